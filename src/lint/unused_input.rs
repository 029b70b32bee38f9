//! Inputs that nothing uses: no token, and no command by its variable.

use std::collections::HashSet;

use super::{Remarks, Subject, Sweep};
use crate::graph::{Graph, Node, Work, export};
use crate::text::template::{self, Kind};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG005",
    name: "unused-input",
    summary: "an input is declared that no template and no command uses",
    why: "Whoever runs the graph thinks about a value that changes nothing, or believes that it does. Use it as `{{ \
          inputs.NAME }}` or, in a command, as `$OMG_INPUT_NAME`; or take it out. A script that a command starts may read \
          the variable unseen: say so with `x-omg-allow: [OMG005]`.",
    bad: "inputs: [repo, branch]\nnodes:\n  - {id: build, type: command, cwd: \"{{ inputs.repo }}\", command: make}\n",
    good: "inputs: [repo, branch]\nnodes:\n  - id: build\n    type: command\n    cwd: \"{{ inputs.repo }}\"\n    command: git \
           switch \"$OMG_INPUT_BRANCH\" && make\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    if graph.inputs.is_empty() {
        return;
    }
    let used = used(graph);
    let variables = variables(graph);
    let mut told = HashSet::new();
    for (at, name) in graph.inputs.iter().enumerate() {
        let exported = export::input_variable(name);
        // `env | grep ^OMG_INPUT_` reads them all.
        let read = [exported.as_str(), export::PREFIXES[0]].iter().any(|name| variables.contains(name));
        if !used.contains(name.as_str()) && !read && told.insert(name) {
            let detail = format!("nothing uses {name:?}: no token, and no command as ${exported}");
            remarks.graph("inputs", detail).item(at);
        }
    }
}

/// The inputs that tokens name.
fn used(graph: &Graph) -> HashSet<&str> {
    let texts = graph.nodes().iter().flat_map(Node::templates);
    let tokens = texts.flat_map(|(_, text)| template::tokens(text));
    tokens.filter(|token| token.kind == Kind::Inputs).map(|token| token.reference).collect()
}

/// Every `OMG_INPUT_…` in a command line.
fn variables(graph: &Graph) -> HashSet<&str> {
    let lines = graph.nodes().iter().flat_map(|node| {
        let own = match &node.work {
            Work::Command(line) => Some(line.as_str()),
            Work::Model(_) | Work::Gate => None,
        };
        let verify = node.check.verify.as_ref().map(|verify| verify.command.as_str());
        [own, verify, node.setup.as_deref()].into_iter().flatten()
    });
    lines.chain(graph.setup.as_deref()).flat_map(named_in).collect()
}

fn named_in(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(export::PREFIXES[0]).map(|(at, _)| {
        let rest = &line[at..];
        &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())]
    })
}
