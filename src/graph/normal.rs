//! The normalised graph of a snapshot: defaults written out, duplicates gone; and the way back (FACTS 2.2, 6.2).

use std::collections::HashSet;

use crate::graph::check::{self, Fault, Faults, Label};
use crate::graph::raw::{RawGraph, RawNode};
use crate::graph::{Graph, OnFail, node};
use crate::text::duration;

/// Why the graph inside a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It is not the JSON of a graph.
    #[error("the graph of the snapshot cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It breaks a rule.
    #[error("the graph of the snapshot is invalid: {0}")]
    Invalid(Faults),
}

/// Reads the graph of a snapshot. Keys that a newer program added are ignored, and ids may hold the `/` of a
/// spliced fragment.
pub fn from_snapshot(json: &str) -> Result<(RawGraph, Graph), SnapshotError> {
    let raw: RawGraph = serde_json::from_str(json)?;
    match check::check(&raw) {
        Ok(graph) => Ok((raw, graph)),
        Err(faults) => Err(SnapshotError::Invalid(Faults::described(&raw, &faults))),
    }
}

impl RawGraph {
    /// The graph as a snapshot holds it: defaults that a reader must not guess are written, a parent is named once.
    pub fn normalised(mut self) -> Self {
        for field in [&mut self.on_fail, &mut self.model, &mut self.effort, &mut self.setup] {
            unset_blank(field);
        }
        self.on_fail.get_or_insert_with(|| OnFail::Halt.as_str().to_owned());
        for node in &mut self.nodes {
            normalise(node);
        }
        self
    }
}

/// An empty word means the same as none.
fn unset_blank(field: &mut Option<String>) {
    if field.as_deref() == Some("") {
        *field = None;
    }
}

fn normalise(node: &mut RawNode) {
    for field in [
        &mut node.kind,
        &mut node.handoff,
        &mut node.permission_mode,
        &mut node.timeout,
        &mut node.cwd,
        &mut node.agent,
        &mut node.worktree,
        &mut node.model,
        &mut node.effort,
        &mut node.setup,
    ] {
        unset_blank(field);
    }
    let kind = node.kind.get_or_insert_with(|| node::KIND_MODEL.to_owned());
    if kind == node::KIND_MODEL {
        node.handoff.get_or_insert_with(|| node::Handoff::Artifact.as_str().to_owned());
    }
    if node.depends_on.len() > 1 {
        let mut seen = HashSet::new();
        node.depends_on.retain(|parent| seen.insert(parent.clone()));
    }
    if let Some(verify) = &mut node.success_check.verify
        && verify.timeout.as_deref().is_none_or(str::is_empty)
    {
        verify.timeout = Some(duration::exact(node::VERIFY_TIMEOUT_DEFAULT));
    }
}

impl Fault {
    /// The fault as one line, `node "x": …`, for a reader without the source.
    pub fn line(&self, raw: &RawGraph) -> String {
        match self.site.node {
            Some(at) => format!("{}: {}", Label::of(raw, at), self.message),
            None => self.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_written_and_parents_named_once() {
        let json = r#"{"nodes":[
            {"id":"a","prompt":"x","success_check":{"verify":{"command":"true"}},"timeout":""},
            {"id":"b/c","type":"command","command":"true","depends_on":["a","a"],"new_key":1}]}"#;
        let (raw, graph) = from_snapshot(json).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(graph.nodes()[1].parents.len(), 1);
        let written = serde_json::to_string(&raw.normalised()).unwrap_or_default();
        assert_eq!(
            written,
            concat!(
                r#"{"on_fail":"halt","nodes":[{"id":"a","type":"claude-run","prompt":"x","handoff":"artifact","#,
                r#""success_check":{"verify":{"command":"true","timeout":"2m0s"}}},"#,
                r#"{"id":"b/c","type":"command","depends_on":["a"],"success_check":{},"command":"true"}]}"#
            )
        );
        let (again, _) = from_snapshot(&written).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(serde_json::to_string(&again.normalised()).unwrap_or_default(), written);
    }

    #[test]
    fn a_damaged_graph_is_named() {
        let error = from_snapshot(r#"{"nodes":[{"id":"a","depends_on":["b"]}]}"#).expect_err("dangles");
        assert_eq!(
            error.to_string(),
            "the graph of the snapshot is invalid: node \"a\": depends_on names \"b\", which is no node of this graph"
        );
        assert!(
            from_snapshot("[")
                .expect_err("cut")
                .to_string()
                .starts_with("the graph of the snapshot cannot be read: EOF")
        );
    }
}
