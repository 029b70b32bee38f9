//! `handoff: session`: exactly one parent, and one that has a session to resume.

use super::edges::Edges;
use super::{Found, Rule};
use crate::graph::NodeIx;
use crate::graph::node::{self, Handoff};
use crate::graph::raw::RawNode;

/// Checks the rule, and finds the head of each chain of sessions.
pub(super) fn check(found: &mut Found<'_>, edges: &Edges) -> Vec<NodeIx> {
    let raw = found.raw;
    for at in (0..raw.nodes.len()).filter(|at| resumes(&raw.nodes[*at])) {
        let message = match edges.parents[at].as_slice() {
            [parent] => {
                let parent = &raw.nodes[parent.get()];
                match kind(parent) {
                    kind @ (node::KIND_GATE | node::KIND_COMMAND) => {
                        format!("handoff: session resumes its parent, and {:?} is a {kind}", parent.id)
                    }
                    _ => continue,
                }
            }
            parents => {
                format!("handoff: session takes exactly one parent, and this node has {}", parents.len())
            }
        };
        found.at(at).fault(Rule::Session, "handoff", message);
    }
    roots(found, edges)
}

/// Whether the node resumes its parent's session.
pub(super) fn resumes(node: &RawNode) -> bool {
    node.handoff.as_deref() == Some(Handoff::Session.as_str()) && kind(node) == node::KIND_MODEL
}

fn kind(node: &RawNode) -> &str {
    node.kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(node::KIND_MODEL)
}

fn roots(found: &Found<'_>, edges: &Edges) -> Vec<NodeIx> {
    let mut roots: Vec<NodeIx> = (0..edges.parents.len()).map(NodeIx::new).collect();
    for ix in &edges.order {
        if let ([parent], true) = (edges.parents[ix.get()].as_slice(), resumes(&found.raw.nodes[ix.get()])) {
            roots[ix.get()] = roots[parent.get()];
        }
    }
    roots
}
