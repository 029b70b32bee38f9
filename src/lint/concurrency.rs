//! More slots than any run gets.

use super::Advice;
use crate::graph::raw::RawGraph;
use crate::graph::{CONCURRENCY_MAX, Graph};

pub(super) fn sweep(_: &RawGraph, graph: &Graph, advice: &mut Vec<Advice>) {
    if let Some(asked) = graph.concurrency.filter(|asked| *asked > CONCURRENCY_MAX) {
        let detail = format!("{asked} is more than a run gets: it counts as {CONCURRENCY_MAX}");
        advice.push(Advice { node: None, field: "concurrency", detail });
    }
}
