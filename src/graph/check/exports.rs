//! No two names may become one variable where a shell runs (DECISIONS 8).

use std::collections::{HashMap, HashSet};

use super::edges::Edges;
use super::{Found, Rule, Site, tokens};
use crate::graph::raw::RawNode;
use crate::graph::{export, node};
use crate::text::template::{self, Kind};

/// Compares the variables of inputs in the graph, and of parents at each node that runs a shell.
pub(super) fn check(found: &mut Found<'_>, edges: &Edges) {
    let raw = found.raw;
    let shells: Vec<usize> = (0..raw.nodes.len()).filter(|at| runs_a_shell(&raw.nodes[*at])).collect();
    if shells.is_empty() && raw.setup.is_none() {
        return;
    }
    inputs(found);
    for at in shells {
        parents(found, edges, at);
    }
}

fn runs_a_shell(node: &RawNode) -> bool {
    match node.kind.as_deref() {
        Some(node::KIND_GATE) => false,
        Some(node::KIND_COMMAND) => true,
        _ => node.success_check.verify.is_some() || node.worktree.is_some() && node.setup.is_some(),
    }
}

fn inputs(found: &mut Found<'_>) {
    let raw = found.raw;
    let mut by_variable: HashMap<String, &str> = HashMap::new();
    let mut known: HashSet<&str> = HashSet::new();
    let mut meet = |site: Site, name: &'_ str, other: &str, variable: &str| {
        found.graph(Rule::Exports, site.key, clash("inputs", name, other, variable)).site = site;
    };
    let declared = raw
        .inputs
        .iter()
        .enumerate()
        .map(|(item, name)| (Site { node: None, key: "inputs", item: Some(item) }, name.as_str()));
    let used = raw.nodes.iter().enumerate().flat_map(|(at, node)| {
        tokens::templates(node).flat_map(move |(key, text)| {
            template::tokens(text)
                .filter(|token| token.kind == Kind::Inputs)
                .map(move |token| (Site { node: Some(at), key, item: None }, token.reference))
        })
    });
    for (site, name) in declared.chain(used) {
        if known.insert(name) {
            let variable = export::input_variable(name);
            match by_variable.get(&variable) {
                Some(other) => meet(site, name, other, &variable),
                None => {
                    by_variable.insert(variable, name);
                }
            }
        }
    }
}

fn parents(found: &mut Found<'_>, edges: &Edges, at: usize) {
    let raw = found.raw;
    let mut by_variable: HashMap<String, &str> = HashMap::new();
    let own = raw.nodes[at].id.as_str();
    for parent in &edges.parents[at] {
        let id = raw.nodes[parent.get()].id.as_str();
        for variable in export::artifact_variables(own, id) {
            match by_variable.get(&variable) {
                Some(other) => {
                    let message = clash("parents", id, other, &variable);
                    found.at(at).fault(Rule::Exports, "depends_on", message);
                }
                None => {
                    by_variable.insert(variable, id);
                }
            }
        }
    }
}

fn clash(what: &str, name: &str, other: &str, variable: &str) -> String {
    format!("{what} {other:?} and {name:?} would both be the variable {variable}")
}
