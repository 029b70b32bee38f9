//! `omg lint`: everything that is wrong with a graph, then what should be known about it.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::Failure;
use super::context::Context;
use super::graph_file;
use crate::lint::Advice;
use crate::load::{Loaded, Problems, Report, Splice};
use crate::node::runtime::RuntimeKind;
use crate::text::sanitize;

/// Checks a graph and says everything that is wrong with it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The graph file; /dev/stdin and pipes work.
    graph: PathBuf,
    /// Prints one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints (shape 1, see docs/CLI.md).
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    file: String,
    valid: bool,
    problems: Vec<Report>,
    advice: Vec<&'a Advice>,
    #[serde(skip_serializing_if = "<[Splice]>::is_empty")]
    fragments: &'a [Splice],
}

/// Runs the command.
pub(super) fn run(args: &Args, runtime: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    let source = graph_file::read(&args.graph)?;
    match crate::load::load(&source) {
        Ok(loaded) => valid(args, &loaded, runtime, context),
        Err(problems) => invalid(args, &problems, context),
    }
}

fn valid(args: &Args, loaded: &Loaded, runtime: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    let file = args.graph.display();
    let preflight = super::services::for_preflight(runtime).preflight(&loaded.graph);
    let refused = (!preflight.refusals.is_empty())
        .then(|| Failure::new(format!("{file}: {}", preflight.refusals.join("; "))));
    if args.json {
        // What the runtime refuses is about the graph as a whole.
        let problem = |message: &String| Report {
            file: file.to_string(),
            line: 1,
            column: 1,
            node: None,
            message: message.clone(),
            hint: None,
            cited_by: Vec::new(),
        };
        let document = Document {
            schema: 1,
            file: file.to_string(),
            valid: refused.is_none(),
            problems: preflight.refusals.iter().map(problem).collect(),
            advice: loaded.advice.iter().chain(&loaded.fragment_advice).collect(),
            fragments: &loaded.splices,
        };
        print_json(context, &document);
        return refused.map_or(Ok(0), Err);
    }
    if let Some(refused) = refused {
        return Err(refused);
    }
    for line in preflight.warnings {
        writeln!(context.err, "warning: {}", sanitize::one_line(&line)).ok();
    }
    graph_file::print_splices(&loaded.splices, context);
    graph_file::print_advice(&args.graph, &loaded.advice, context);
    graph_file::print_advice(&args.graph, &loaded.fragment_advice, context);
    for line in preflight.disclosures {
        writeln!(context.out, "{}", sanitize::one_line(&line)).ok();
    }
    writeln!(context.out, "{}: valid", sanitize::path(&args.graph)).ok();
    Ok(0)
}

fn invalid(args: &Args, problems: &Problems, context: &mut Context) -> Result<u8, Failure> {
    if args.json {
        let file = args.graph.display().to_string();
        let advice = problems.advice().iter().collect();
        let problems = problems.reports();
        print_json(context, &Document { schema: 1, file, valid: false, problems, advice, fragments: &[] });
    } else {
        graph_file::print_problems(problems, context);
        graph_file::print_advice(&args.graph, problems.advice(), context);
    }
    Err(Failure::new(graph_file::counted(&args.graph, problems)))
}

fn print_json(context: &mut Context, document: &Document<'_>) {
    // The shape holds nothing that JSON cannot; a reader that is gone is nobody's loss.
    serde_json::to_writer_pretty(&mut context.out, document).ok();
    writeln!(context.out).ok();
}
