//! `omg run --dry-run`: what would run, in what order, and whether its inputs suffice. Starts nothing (case C18).

use std::io::Write;

use super::context::Context;
use super::order::{self, Common, Ready};
use super::{Failure, graph_file, services};
use crate::graph::{Graph, Node, Work};
use crate::leg::preflight;
use crate::load;
use crate::node::runtime::RuntimeKind;
use crate::text::sanitize;

/// Prints the plan; returns the exit code that a run would be refused with, or 0.
pub(super) fn run(
    common: &Common,
    Ready { source, mut loaded, .. }: Ready,
    runtime: RuntimeKind,
    context: &mut Context,
) -> Result<u8, Failure> {
    let found = services::for_preflight(runtime).preflight(&loaded.graph);
    order::warn(&found, context);
    load::locate(&source, &loaded.raw, &mut loaded.advice);
    graph_file::print_advice(&common.graph, &loaded.advice, context);
    graph_file::print_advice(&common.graph, &loaded.fragment_advice, context);
    graph_file::print_splices(&loaded.splices, context);
    plan(&loaded.graph, context);
    for line in &found.disclosures {
        writeln!(context.out, "{}", sanitize::one_line(line)).ok();
    }
    order::refuse(common, found.refusals)?;
    let values = order::input_values(common, &loaded.graph)?;
    let (graph, base) = (&loaded.graph, Context::base());
    order::refuse(common, preflight::refusals(graph, &values, &base))?;
    let settings = preflight::settings(runtime, graph, &values, &base, services::whereabouts(runtime));
    order::warn_of_settings(&settings, "", context);
    writeln!(context.out, "\nDry run: nothing was executed.").ok();
    Ok(0)
}

fn plan(graph: &Graph, context: &mut Context) {
    let nodes = graph.nodes();
    writeln!(context.out, "Graph \"{}\" ({} nodes):", sanitize::one_line(&graph.name), nodes.len()).ok();
    for node in nodes {
        writeln!(context.out, "  - {}{}{}", node.id, after(graph, node), kind(node)).ok();
    }
}

fn after(graph: &Graph, node: &Node) -> String {
    if node.parents.is_empty() {
        return String::new();
    }
    let ids: Vec<&str> = node.parents.iter().map(|parent| graph.node(*parent).id.as_str()).collect();
    format!(" (after {})", ids.join(", "))
}

fn kind(node: &Node) -> &'static str {
    match node.work {
        Work::Model(_) => "",
        Work::Command(_) => " [command]",
        Work::Gate => " [gate: the run stops here for your decision]",
    }
}
