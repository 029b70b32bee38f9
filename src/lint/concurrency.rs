//! More slots than any run gets.

use super::{Remarks, Subject, Sweep};
use crate::graph::CONCURRENCY_MAX;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG082",
    name: "concurrency-capped",
    summary: "`concurrency` is more than a run gets",
    why: "A run never has more than 10 nodes at work. The number is taken as 10.",
    bad: "concurrency: 64\nnodes:\n  - {id: build, type: command, command: make}\n",
    good: "concurrency: 10\nnodes:\n  - {id: build, type: command, command: make}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    if let Some(asked) = graph.concurrency.filter(|asked| *asked > CONCURRENCY_MAX) {
        remarks
            .graph("concurrency", format!("{asked} is more than a run gets: it counts as {CONCURRENCY_MAX}"));
    }
}
