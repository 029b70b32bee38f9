//! Parents that a list names more than once.

use std::collections::HashSet;

use super::Advice;
use crate::graph::Graph;
use crate::graph::raw::RawGraph;

pub(super) fn sweep(raw: &RawGraph, _: &Graph, advice: &mut Vec<Advice>) {
    for node in raw.nodes.iter().filter(|node| node.depends_on.len() > 1) {
        let mut seen = HashSet::new();
        let mut told = HashSet::new();
        for parent in &node.depends_on {
            if !seen.insert(parent) && told.insert(parent) {
                let detail = format!("names {parent:?} more than once: it counts once");
                advice.push(Advice { node: Some(node.id.clone()), field: "depends_on", detail });
            }
        }
    }
}
