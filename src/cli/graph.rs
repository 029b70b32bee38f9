//! `omg graph`: a picture of a graph, or of a run's graph and what became of each node.

use std::io::Write as _;
use std::path::PathBuf;

use super::context::Context;
use super::{Failure, graph_file};
use crate::graph::draw::text::Page;
use crate::graph::draw::{Drawing, Tone, dot, json, mermaid, svg, text};
use crate::view::history::drawing;
use crate::view::history::lookup::find_run;
use crate::view::term::style::{self, Look};

/// Draws a graph, or a run's graph with what became of each node.
///
/// Nodes of one step wait for nothing in it. `text` becomes a list where the lines would not fit.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The graph file; /dev/stdin and pipes work.
    #[arg(required_unless_present = "run", conflicts_with = "run")]
    graph: Option<PathBuf>,
    /// Draws this run instead: its id, the beginning of its id, or `latest`.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Lines for a terminal.
    Text,
    /// Mermaid, for Markdown.
    Mermaid,
    /// Graphviz.
    Dot,
    /// One file for a browser, light and dark.
    Svg,
    /// Layers, rows, edges and loops as a document.
    Json,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let mut run = None;
    let drawing = match (&args.run, &args.graph) {
        (Some(text), _) => {
            let console = context.console();
            let (id, dir) = find_run(&console.home, text)?;
            let drawing = drawing::of_run(&id, &dir, console.probe)?;
            run = Some(id.to_string());
            drawing
        }
        (None, Some(path)) => {
            let (_, loaded) = graph_file::load(path, context)?;
            Drawing::of(&loaded.graph, &graph_file::title(path, &loaded))
        }
        (None, None) => return Err(Failure::new("graph: a graph file or --run is missing")),
    };
    let text = match args.format {
        Format::Text => text::print(
            &drawing,
            &page(context.out_look, &|tone, text| painted(context.out_look, tone, text)),
        ),
        Format::Mermaid => mermaid::print(&drawing),
        Format::Dot => dot::print(&drawing),
        Format::Svg => svg::print(&drawing),
        Format::Json => json::print(&drawing, run.as_deref()),
    };
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    Ok(0)
}

fn page<'a>(look: Look, paint: &'a dyn Fn(Tone, &str) -> String) -> Page<'a> {
    let unicode = style::is_unicode(|name| std::env::var_os(name));
    Page { unicode, width: look.width, paint }
}

fn painted(look: Look, tone: Tone, text: &str) -> String {
    let style = match tone {
        Tone::Good => style::GOOD,
        Tone::Bad => style::BAD,
        Tone::Wary => style::WARY,
        Tone::Busy => style::BUSY,
        Tone::Faint => style::FAINT,
    };
    look.paint(style, text)
}
