//! `omg schema`: the JSON Schema of the files that people write, for an editor.

use std::io::Write;

use super::Failure;
use super::context::Context;
use crate::starter::payload;

/// Prints the JSON Schema of graph files, for an editor.
///
/// Name it in the first line of a graph: `# yaml-language-server: $schema=graph.schema.json`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which files it describes.
    #[arg(value_enum, default_value_t = Files::Graph)]
    files: Files,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Files {
    /// Graphs.
    Graph,
    /// Fragments, which graphs cite.
    Fragment,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let name = match args.files {
        Files::Graph => "graph.schema.json",
        Files::Fragment => "fragments/fragment.schema.json",
    };
    context.out.write_all(payload::schema(name).expect("every schema ships"))?;
    context.out.flush()?;
    Ok(0)
}
