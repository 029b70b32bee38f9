//! Inputs that a token uses and `inputs:` does not declare, and ones that it declares twice.

use std::collections::HashSet;

use super::Advice;
use crate::graph::Graph;
use crate::graph::raw::RawGraph;
use crate::text::template::{self, Kind};

pub(super) fn sweep(_: &RawGraph, graph: &Graph, advice: &mut Vec<Advice>) {
    let mut declared: HashSet<&str> = HashSet::new();
    for name in &graph.inputs {
        if !declared.insert(name) {
            let detail = format!("{name:?} is declared twice");
            advice.push(Advice { node: None, field: "inputs", detail });
        }
    }
    for node in graph.nodes() {
        for (field, text) in node.templates() {
            for token in template::tokens(text).filter(|token| token.kind == Kind::Inputs) {
                // Told once for each name: the remedy is one line at the top.
                if declared.insert(token.reference) {
                    let detail = format!("{} uses an input that inputs: does not declare", token.written);
                    advice.push(Advice { node: Some(node.id.to_string()), field, detail });
                }
            }
        }
    }
}
