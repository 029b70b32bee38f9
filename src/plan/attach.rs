//! The person's evidence command, put where a run ends (ADR 0016 of the design, FACTS 8.5).
//!
//! Only trusted code attaches a command to a planned graph, and only the one that was typed for this leg: never one that a
//! reply or a file of the run holds.

use std::time::Duration;

use crate::graph::check::{self, Faults};
use crate::graph::node::KIND_GATE;
use crate::graph::raw::{RawGraph, RawVerify};
use crate::graph::{Graph, NodeId};
use crate::text::duration;

/// Why a command could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No node ends the graph that could be checked.
    #[error("the evidence command has no place: everything ends at gates")]
    OnlyGates,
    /// The command names something that the graph does not have.
    #[error("the evidence command does not fit the graph: {0}")]
    Unfit(Faults),
}

/// Attaches `command` to every node that nothing waits for and that is no gate; returns the graph and those nodes, in file
/// order. Other checks of theirs stay; that the exit code is 0, which goes without saying where no check does, is said.
///
/// # Errors
/// When there is no such node, or the command's own tokens cannot be.
pub fn attach(
    raw: &mut RawGraph,
    command: &str,
    timeout: Duration,
) -> Result<(Graph, Vec<NodeId>), AttachError> {
    let is_waited_for =
        |id: &str| raw.nodes.iter().any(|node| node.depends_on.iter().any(|parent| parent == id));
    let is_sink = |at: &usize| {
        let node = &raw.nodes[*at];
        node.kind.as_deref() != Some(KIND_GATE) && !is_waited_for(&node.id)
    };
    let sinks: Vec<usize> = (0..raw.nodes.len()).filter(is_sink).collect();
    if sinks.is_empty() {
        return Err(AttachError::OnlyGates);
    }
    for at in &sinks {
        let check = &mut raw.nodes[*at].success_check;
        check.exit_zero |= check.result_matches.is_none();
        check.verify = Some(RawVerify {
            command: command.to_owned(),
            timeout: Some(duration::exact(timeout)),
            ..RawVerify::default()
        });
    }
    let graph = check::check(raw).map_err(|faults| AttachError::Unfit(Faults::described(raw, &faults)))?;
    let ids = sinks.iter().map(|at| graph.nodes()[*at].id.clone()).collect();
    Ok((graph, ids))
}

/// Takes every evidence command away; returns the nodes that had one.
pub fn strip(raw: &mut RawGraph) -> Vec<String> {
    let with = raw.nodes.iter_mut().filter(|node| node.success_check.verify.is_some());
    with.map(|node| {
        node.success_check.verify = None;
        node.id.clone()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(nodes: &str) -> Result<(RawGraph, Vec<String>), AttachError> {
        let mut raw: RawGraph = serde_json::from_str(&format!("{{\"nodes\":[{nodes}]}}")).expect("a graph");
        let (_, ids) = attach(&mut raw, "make test", Duration::from_secs(90))?;
        Ok((raw, ids.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn every_end_of_the_graph_is_checked_and_keeps_its_own_checks() {
        let (raw, ids) = attached(
            r#"{"id":"a","prompt":"x"},{"id":"b","prompt":"x","depends_on":["a"],"success_check":{"result_matches":"PASS"}},
               {"id":"c","prompt":"x","depends_on":["a"]}"#,
        )
        .expect("two ends");
        assert_eq!(ids, ["b", "c"]);
        let check = |at: usize| &raw.nodes[at].success_check;
        assert!(check(0).verify.is_none());
        assert_eq!((check(1).result_matches.as_deref(), check(1).exit_zero), (Some("PASS"), false));
        assert!(check(2).exit_zero, "it went without saying before");
        let verify = check(2).verify.as_ref().expect("a command");
        assert_eq!((verify.command.as_str(), verify.timeout.as_deref()), ("make test", Some("1m30s")));
    }

    #[test]
    fn a_graph_that_ends_at_gates_has_no_place_for_it() {
        let nodes = r#"{"id":"a","prompt":"x"},{"id":"ok","type":"gate","depends_on":["a"]}"#;
        assert!(matches!(attached(nodes), Err(AttachError::OnlyGates)));
    }
}
