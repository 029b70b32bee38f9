//! `omg rehearse`: the same engine, scripted replies (DECISIONS 24).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::Context;
use super::execute::LiveView;
use super::order::{self, Common, Manner};
use super::services::Services;
use super::{Failure, execute, graph_file};
use crate::graph::Graph;
use crate::leg::preflight;
use crate::node::Runtime as _;
use crate::node::runtime::rehearsal::{Rehearsal, Script, read};
use crate::process::Launcher;
use crate::record::Durability;

/// Runs a graph with scripted replies: no model, no commands, no money.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,
    /// What nodes answer, per node and attempt; without one every node answers what its own check asks for.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: Args, context: &mut Context) -> Result<u8, Failure> {
    let common = &args.common;
    let ready = order::load(common, context)?;
    let graph = &ready.loaded.graph;
    let values = order::input_values(common, graph)?;
    order::refuse(common, preflight::unrehearsable(graph))?;
    let script = args.script.as_deref().map(|path| read_script(path, graph, context)).transpose()?;
    let (script, written) = script.unzip();
    let rehearsal = match Rehearsal::new(graph, script) {
        Ok(rehearsal) => Arc::new(rehearsal),
        Err(reasons) => return order::refuse(common, reasons).map(|()| 1),
    };
    order::announce(common, &ready.loaded, rehearsal.preflight(graph), context)?;
    let services = Services {
        runtime: Arc::clone(&rehearsal) as _,
        shell: rehearsal,
        launcher: Arc::new(Launcher::new(&execute::mark())),
        git: None,
    };
    let manner = Manner {
        durability: Durability::Paced,
        rehearsal: Some(written.unwrap_or_default()),
        detached: false,
        web: LiveView::Off,
    };
    order::start(common, ready, values, services, manner, context)
}

/// Reads the script; its problems are printed, with their places, like a graph's.
fn read_script(path: &Path, graph: &Graph, context: &mut Context) -> Result<(Script, String), Failure> {
    let source = graph_file::read(path)?;
    match read::read(&path.display().to_string(), &source.text, graph) {
        Ok(script) => Ok((script, source.text)),
        Err(problems) => {
            graph_file::print_problems(&problems, context);
            Err(Failure::new(format!("{}; nothing was run", graph_file::counted(path, &problems))))
        }
    }
}
