//! What was found, as one JSON document (shape 2, docs/CLI.md).

use std::io::Write;

use serde::Serialize;

use super::look::Looked;
use crate::cli::context::Context;
use crate::lint::{self, Advice};
use crate::load::{Report, Splice};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    valid: bool,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    file: String,
    valid: bool,
    problems: Vec<Report>,
    advice: Vec<Remark<'a>>,
    #[serde(skip_serializing_if = "<[Splice]>::is_empty")]
    fragments: &'a [Splice],
    notes: &'a [String],
}

/// A remark; its `file` is left out where it is the graph's own.
#[derive(Serialize)]
struct Remark<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    field: &'a str,
    detail: &'a str,
}

/// Prints the document.
pub(super) fn print(looked: &[Looked], context: &mut Context) {
    let document = Document {
        schema: 2,
        valid: looked.iter().all(Looked::is_valid),
        files: looked.iter().map(file).collect(),
    };
    // The shape holds nothing that JSON cannot; a reader that is gone is nobody's loss.
    serde_json::to_writer_pretty(&mut context.out, &document).ok();
    writeln!(context.out).ok();
}

fn file(looked: &Looked) -> File<'_> {
    let file = looked.path.display().to_string();
    let advice = looked.advice.iter().map(|advice| remark(advice, &file)).collect();
    let (fragments, notes) = (&looked.splices, &looked.notes);
    File { valid: looked.is_valid(), problems: looked.reports(), advice, fragments, notes, file }
}

fn remark<'a>(advice: &'a Advice, graph: &str) -> Remark<'a> {
    let place = advice.place.as_ref();
    Remark {
        id: advice.id,
        name: lint::find(advice.id).map_or("", |sweep| sweep.name),
        file: place.map(|place| place.file.as_str()).filter(|file| *file != graph),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        node: advice.node.as_deref(),
        field: advice.field(),
        detail: &advice.detail,
    }
}
