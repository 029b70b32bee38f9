//! Nodes that run with `bypassPermissions`; a run says so too, and nothing silences it there (FACTS 1.6).

use super::Sweep;
use super::advice::{Advice, Remarks};
use crate::graph::node::PermissionMode;
use crate::graph::{Graph, Work};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG090",
    name: "permissions-bypassed",
    summary: "a node runs with `bypassPermissions`: nothing it does is asked or denied",
    why: "The model may run any command and change any file that you may. Grant what the node needs by `allowed_tools` \
          instead. Every run of such a graph warns of it, whatever `x-omg-allow` says.",
    bad: "nodes:\n  - {id: dev, prompt: Mend the test., permission_mode: bypassPermissions}\n",
    good: "nodes:\n  - {id: dev, prompt: Mend the test., permission_mode: acceptEdits, allowed_tools: [\"Bash(make *)\"]}\n",
    look: None,
};

/// A remark on each such node.
pub fn bypassing(graph: &Graph) -> Vec<Advice> {
    let mut remarks = Remarks::of(&SWEEP);
    for ix in graph.positions() {
        if let Work::Model(model) = &graph.node(ix).work
            && model.permission_mode == Some(PermissionMode::BypassPermissions)
        {
            let detail = "bypassPermissions: nothing the node does is asked or denied";
            remarks.node(graph, ix, "permission_mode", detail);
        }
    }
    remarks.into_list()
}
