//! Sessions that are gone on with in another place than they began in (FACTS 4.2a).

use super::{Remarks, Subject, Sweep};
use crate::graph::node::Handoff;
use crate::graph::{Graph, Node, NodeIx, Work};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG010",
    name: "session-elsewhere",
    summary: "a node goes on with its parent's session in another directory or worktree",
    why: "The model remembers files by where they were, and the CLI looks for a session where it began, so the child may not \
          find it at all. Give both nodes the same `worktree:` or the same `cwd:`, or hand over by artifact.",
    bad: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit], worktree: lane}\n  - {id: polish, depends_on: \
          [dev], handoff: session, prompt: Tidy up., allowed_tools: [Edit]}\n",
    good: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit], worktree: lane}\n  - {id: polish, depends_on: \
           [dev], handoff: session, prompt: Tidy up., allowed_tools: [Edit], worktree: lane}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        let Some(parent) = resumed(graph, ix) else { continue };
        if let Some((key, detail)) = elsewhere(graph.node(ix), graph.node(parent)) {
            remarks.node(graph, ix, key, detail);
        }
    }
}

/// The parent whose session the node resumes.
pub(super) fn resumed(graph: &Graph, ix: NodeIx) -> Option<NodeIx> {
    let node = graph.node(ix);
    match (&node.work, node.parents.as_slice()) {
        (Work::Model(model), [parent]) if model.handoff == Handoff::Session => Some(*parent),
        _ => None,
    }
}

fn elsewhere(node: &Node, parent: &Node) -> Option<(&'static str, String)> {
    let in_lane = node.worktree.is_some() || parent.worktree.is_some();
    let place = |node: &Node| match (&node.worktree, written(node)) {
        (Some(lane), _) => format!("the worktree {lane:?}"),
        (None, _) if in_lane => "no worktree".to_owned(),
        (None, Some(cwd)) => format!("{cwd:?}"),
        (None, None) => "the directory of the run".to_owned(),
    };
    let (own, its) = (place(node), place(parent));
    let detail = format!(
        "the session of {:?} began in {its}, and this node runs in {own}: it may not be found there",
        parent.id
    );
    (own != its).then_some((if in_lane { "worktree" } else { "cwd" }, detail))
}

fn written(node: &Node) -> Option<&str> {
    node.cwd.as_deref().map(str::trim).filter(|cwd| !cwd.is_empty())
}
