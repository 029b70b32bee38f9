//! What the lanes hold that a node decides about or worked in: `GET api/diff` (`docs/WEB.md`).
//!
//! Which lanes those are is read off the run's own graph; who looks into them is handed in, since the view starts no
//! child.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::http::Answer;
use super::run_api::{Shape, ShapeNode};
use crate::node::worktree::changes::Changes;
use crate::record::{RunDir, RunId};

/// The most lanes that one answer tells of.
const LANES_MAX: usize = 12;

/// Looks into lanes.
pub trait LookIntoLanes: Send + Sync {
    /// What the nodes of `lane` changed, of `run` that was started in `base`; `None` when nothing is left of it.
    ///
    /// # Errors
    /// Why nobody can tell, for a person.
    fn changes(&self, run: &RunId, dir: &RunDir, base: &Path, lane: &str) -> Result<Option<Changes>, String>;
}

/// One lane, as it is sent.
#[derive(Serialize)]
struct Lane<'a> {
    lane: &'a str,
    /// The nodes that worked in it and that are decided about, nearest first.
    nodes: &'a [&'a str],
    #[serde(flatten)]
    changes: Option<Changes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The answer for `node` of `shape`: its own lane, or those that it decides about.
pub(super) fn answer(
    shape: &Shape,
    node: &str,
    look: &dyn Fn(&str) -> Result<Option<Changes>, String>,
) -> Answer {
    let lanes = lanes_of(shape, node);
    let told = lanes.iter().take(LANES_MAX).map(|(lane, nodes)| {
        let (changes, problem) = match look(lane) {
            Ok(changes) => (changes, None),
            Err(problem) => (None, Some(problem)),
        };
        Lane { lane, nodes, changes, problem }
    });
    let body = serde_json::json!({
        "node": node,
        "lanes": told.collect::<Vec<_>>(),
        "more": lanes.len().saturating_sub(LANES_MAX),
    });
    Answer::of(200, "application/json", body.to_string())
}

/// The lanes, with their nodes, the nearest first. A gate's are those of everything before it, as far as another gate,
/// which decided about what lies before that.
fn lanes_of<'s>(shape: &'s Shape, node: &str) -> Vec<(&'s str, Vec<&'s str>)> {
    let by_id: BTreeMap<&str, &ShapeNode> = shape.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let Some(&start) = by_id.get(node) else { return Vec::new() };
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let (mut layer, mut seen) = (vec![start], BTreeSet::from([start.id.as_str()]));
    while !layer.is_empty() {
        let mut next = Vec::new();
        for node in layer {
            if !node.worktree.is_empty() {
                match found.iter_mut().find(|(lane, _)| *lane == node.worktree) {
                    Some((_, nodes)) => nodes.push(&node.id),
                    None => found.push((&node.worktree, vec![&node.id])),
                }
            }
            let is_start = std::ptr::eq(node, start);
            if is_start && !node.is_gate() || !is_start && node.is_gate() {
                continue;
            }
            let parents = node.depends_on.iter().filter_map(|parent| by_id.get(parent.as_str()));
            next.extend(parents.filter(|parent| seen.insert(&parent.id)));
        }
        layer = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(node: &str, lanes: &[(&str, &[&str])]) {
        let shape: Shape = serde_json::from_str(
            r#"{"nodes": [
                {"id": "old", "worktree": "zero"},
                {"id": "plan", "type": "gate", "depends_on": ["old"]},
                {"id": "a", "worktree": "one", "depends_on": ["plan"]},
                {"id": "b", "worktree": "two", "depends_on": ["plan"]},
                {"id": "c", "worktree": "one", "depends_on": ["a", "b"]},
                {"id": "sum", "depends_on": ["c"]},
                {"id": "gate", "type": "gate", "depends_on": ["sum", "a", "gone"]}
            ]}"#,
        )
        .expect("a shape");
        let found = lanes_of(&shape, node);
        let found: Vec<(&str, &[&str])> =
            found.iter().map(|(lane, nodes)| (*lane, nodes.as_slice())).collect();
        assert_eq!(found, lanes, "{node}");
    }

    #[test]
    fn a_gate_decides_about_the_lanes_before_it_as_far_as_another_gate() {
        check("gate", &[("one", &["a", "c"]), ("two", &["b"])]);
        check("plan", &[("zero", &["old"])]);
    }

    #[test]
    fn any_other_node_has_its_own_lane_at_most() {
        check("c", &[("one", &["c"])]);
        check("sum", &[]);
        check("gone", &[]);
    }
}
