//! Parents that a list names more than once (DECISIONS 1, case C4).

use std::collections::HashSet;

use super::{Remarks, Subject, Sweep};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG080",
    name: "duplicate-parent",
    summary: "`depends_on` names a node more than once",
    why: "It counts once. Most likely another node was meant, and the node does not wait for it.",
    bad: "nodes:\n  - {id: build, type: command, command: make}\n  - {id: test, type: command, depends_on: [build, build], \
          command: make test}\n",
    good: "nodes:\n  - {id: build, type: command, command: make}\n  - {id: test, type: command, depends_on: [build], command: \
           make test}\n",
    look: Some(look),
};

fn look(Subject { raw, graph }: Subject<'_>, remarks: &mut Remarks) {
    for (ix, node) in graph.positions().zip(&raw.nodes).filter(|(_, node)| node.depends_on.len() > 1) {
        let mut seen = HashSet::new();
        let mut told = HashSet::new();
        for (at, parent) in node.depends_on.iter().enumerate() {
            if !seen.insert(parent) && told.insert(parent) {
                let detail = format!("names {parent:?} more than once: it counts once");
                remarks.node(graph, ix, "depends_on", detail).item(at);
            }
        }
    }
}
