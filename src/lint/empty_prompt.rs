//! Prompts that ask nothing.

use super::{Remarks, Subject, Sweep};
use crate::graph::Work;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG053",
    name: "empty-prompt",
    summary: "a prompt is empty or absent",
    why: "The node pays for a reply to nothing. For a person's decision write `type: gate`, for a command `type: command`.",
    bad: "nodes:\n  - {id: review, prompt: \"\", allowed_tools: []}\n",
    good: "nodes:\n  - {id: review, type: gate}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        if matches!(&graph.node(ix).work, Work::Model(model) if model.prompt.trim().is_empty()) {
            remarks.node(graph, ix, "prompt", "is empty: the node pays for a reply to nothing");
        }
    }
}
