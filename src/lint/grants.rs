//! Prompts that are granted no tools in words, with nothing that would show that they lacked one (FACTS 4.3).

use super::{Remarks, Subject, Sweep};
use crate::graph::Work;
use crate::graph::node::PermissionMode;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG020",
    name: "no-tools-granted",
    summary: "a prompt has no `allowed_tools` and no `verify` that would show when a tool was refused",
    why: "Nobody is there to say yes: what is not granted may be denied, and a model that was denied its tools still replies and \
          passes. Name the tools, as in `allowed_tools: [Read, Edit, \"Bash(make *)\"]`; write `allowed_tools: []` for a \
          node that needs none; or let `verify` look at the work.",
    bad: "nodes:\n  - {id: dev, prompt: Mend the test.}\n",
    good: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Read, Edit, \"Bash(make *)\"]}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        let node = graph.node(ix);
        let Work::Model(model) = &node.work else { continue };
        let bypasses = model.permission_mode == Some(PermissionMode::BypassPermissions);
        if model.allowed_tools.is_none() && !bypasses && node.check.verify.is_none() {
            let detail = "no tool is granted, and no verify would show that one was refused: list what the node needs, or [] \
                          for nothing";
            remarks.node(graph, ix, "allowed_tools", detail);
        }
    }
}
