//! A graph file on its way into a command: read once, loaded, and its problems told.

use std::io::Write;
use std::path::Path;

use super::Failure;
use super::context::Context;
use crate::lint::Advice;
use crate::load::{Grant, Loaded, Problems, Source, Splice};
use crate::text::sanitize;

/// Columns of an excerpt where the terminal's width is not known.
const WIDTH_DEFAULT: usize = 100;

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<Source, Failure> {
    Source::read(path).map_err(|error| Failure::new(error.to_string()))
}

/// Reads and loads the file; its problems are printed, with their places.
pub(super) fn load(path: &Path, context: &mut Context) -> Result<(Source, Loaded), Failure> {
    let source = read(path)?;
    let loaded = crate::load::load(&source).map_err(|problems| {
        print_problems(&problems, context);
        print_advice(path, problems.advice(), context);
        refused(path, &problems)
    })?;
    Ok((source, loaded))
}

/// Says which fragments went into a graph: one line each, and the tools that bindings put together.
pub(super) fn print_splices(splices: &[Splice], context: &mut Context) {
    let (out, _) = context.prose();
    for splice in splices {
        let Splice { node, fragment, file, description, .. } = splice;
        let mut parts = vec![
            format!("fragment: node \"{node}\" spliced from \"{fragment}\" ({file})"),
            description.clone(),
        ];
        if !splice.nodes.is_empty() {
            parts.push(format!("nodes: {}", splice.nodes.join(", ")));
        }
        if !splice.overrides.is_empty() {
            parts.push(format!("node overrides: {}", splice.overrides.join(", ")));
        }
        let many = match splice.grants.as_slice() {
            [one] => {
                parts.push(format!("tools: {}", tools(one)));
                &[]
            }
            many => many,
        };
        writeln!(out, "{}", sanitize::one_line(&parts.join(" — "))).ok();
        for grant in many {
            writeln!(out, "  {}", sanitize::one_line(&format!("{}: {}", grant.node, tools(grant)))).ok();
        }
    }
}

fn tools(grant: &Grant) -> String {
    if grant.tools.is_empty() { "(none)".to_owned() } else { grant.tools.join(", ") }
}

/// What a run of the graph is announced as: its name, else its file's.
pub(super) fn title(path: &Path, loaded: &Loaded) -> String {
    let file = || path.file_name().unwrap_or(path.as_os_str()).display().to_string();
    if loaded.graph.name.is_empty() { file() } else { loaded.graph.name.clone() }
}

/// Prints every problem with its excerpt.
pub(super) fn print_problems(problems: &Problems, context: &mut Context) {
    let (out, look) = context.prose();
    let text = problems.render(look.colour, look.width.unwrap_or(WIDTH_DEFAULT));
    writeln!(out, "{}", text.trim_end()).ok();
    out.flush().ok();
}

/// The refusal to run what has problems.
pub(super) fn refused(path: &Path, problems: &Problems) -> Failure {
    Failure::new(format!("{}; nothing was run", counted(path, problems)))
}

/// How many problems a file has, as the last word on it.
pub(super) fn counted(path: &Path, problems: &Problems) -> String {
    let count = problems.len();
    let issues = if count == 1 { "issue" } else { "issues" };
    format!("{}: {count} {issues} found", path.display())
}

/// Prints advice, one line each, with its place where that is known.
pub(super) fn print_advice(path: &Path, advice: &[Advice], context: &mut Context) {
    let lines: String = advice.iter().map(|advice| advice_line(path, advice) + "\n").collect();
    // At once: standard error keeps nothing back, and there may be very many.
    context.err.write_all(lines.as_bytes()).ok();
}

/// `warning: FILE:LINE:COLUMN: node "x": field: detail [ID]`.
fn advice_line(path: &Path, advice: &Advice) -> String {
    let place = match &advice.place {
        Some(place) => format!("{}:{}:{}", place.file, place.line, place.column),
        None => path.display().to_string(),
    };
    sanitize::one_line(&format!("warning: {place}: {advice} [{}]", advice.id)).into_owned()
}
