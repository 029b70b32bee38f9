//! The critical path of a run: which of its nodes it could not have been shorter than, by what its feed tells.
//!
//! A node's time is that of everything it ran, in all rounds and legs, from each start to its end: what a person or a
//! spent limit was waited for is no time of it, and neither is what has not ended.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::graph::critical::critical_path;
use crate::record::{Event, EventKind};

/// How long each node ran, fed one event at a time.
#[derive(Debug, Default)]
pub struct Took {
    ended: HashMap<String, Duration>,
    open: HashMap<String, Timestamp>,
}

/// The critical path.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Critical {
    /// The nodes, each of which waited for the one before.
    pub nodes: Vec<Step>,
    /// What they took together, in milliseconds.
    pub took_ms: u64,
}

/// A node on it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The node.
    pub node: String,
    /// What it took, in milliseconds.
    pub took_ms: u64,
}

impl Took {
    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        // What a leg left open has no end.
        if matches!(event.event, EventKind::RunStarted | EventKind::RunFinished) {
            self.open.clear();
        }
        let Ok(at) = event.ts.parse::<Timestamp>() else { return };
        let node = &event.node_id;
        match event.event {
            EventKind::NodeStarted => {
                self.open.entry(node.clone()).or_insert(at);
            }
            EventKind::GatePaused | EventKind::GateApproved | EventKind::GateRejected => {
                self.open.remove(node);
            }
            // Another attempt follows at once, but for a limit that is waited for and an arc that fires.
            EventKind::NodeRetried if event.retries > 0 && event.held_until.is_empty() => {}
            EventKind::NodeRetried | EventKind::NodePassed | EventKind::NodeFailed => {
                if let Some(began) = self.open.remove(node) {
                    let took = Duration::try_from(at.duration_since(began)).unwrap_or_default();
                    *self.ended.entry(node.clone()).or_default() += took;
                }
            }
            _ => {}
        }
    }

    /// The critical path of these nodes with what each waits for.
    pub fn critical<'n>(&self, nodes: impl Iterator<Item = (&'n str, &'n [String])>) -> Critical {
        let nodes: Vec<_> = nodes.collect();
        let by_id: HashMap<&str, usize> = nodes.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        let known = |ids: &[String]| ids.iter().filter_map(|id| by_id.get(id.as_str()).copied()).collect();
        let parents: Vec<Vec<usize>> = nodes.iter().map(|(_, ids)| known(ids)).collect();
        let took: Vec<Duration> =
            nodes.iter().map(|(id, _)| self.ended.get(*id).copied().unwrap_or_default()).collect();
        let path = critical_path(&parents, &took);
        let sum = path.iter().map(|at| took[*at]).sum();
        let step = |at: usize| Step { node: nodes[at].0.to_owned(), took_ms: milliseconds(took[at]) };
        Critical { nodes: path.into_iter().map(step).collect(), took_ms: milliseconds(sum) }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn critical(feed: &str, nodes: &[(&str, &[&str])]) -> (Vec<(String, u64)>, u64) {
        let mut took = Took::default();
        for line in feed.lines() {
            let (second, event) = line.trim().split_once(' ').expect("a second and an event");
            let mut event: Event = serde_json::from_str(event).expect(line);
            event.ts = format!("2026-01-02T03:04:{second}Z");
            took.take(&event);
        }
        let nodes: Vec<(&str, Vec<String>)> =
            nodes.iter().map(|(id, ids)| (*id, ids.iter().map(|id| (*id).to_owned()).collect())).collect();
        let path = took.critical(nodes.iter().map(|(id, ids)| (*id, ids.as_slice())));
        (path.nodes.into_iter().map(|step| (step.node, step.took_ms)).collect(), path.took_ms)
    }

    #[test]
    fn every_round_counts_and_no_wait_for_a_person_a_limit_or_a_dead_leg_does() {
        let feed = r#"00 {"event":"run_started"}
            00 {"event":"node_started","node_id":"a"}
            01 {"event":"node_retried","node_id":"a","retries":1}
            02.5 {"event":"node_passed","node_id":"a"}
            02.5 {"event":"node_started","node_id":"b"}
            03 {"event":"node_retried","node_id":"b","round":1}
            04 {"event":"node_started","node_id":"b","round":1}
            05 {"event":"node_retried","node_id":"b","retries":1,"held_until":"2026-01-02T03:04:20Z"}
            20 {"event":"node_started","node_id":"b","round":1}
            21 {"event":"node_passed","node_id":"b","round":1}
            21 {"event":"node_started","node_id":"g"}
            21 {"event":"gate_paused","node_id":"g"}
            21 {"event":"node_started","node_id":"lost"}
            40 {"event":"run_started"}
            41 {"event":"gate_approved","node_id":"g"}
            41 {"event":"node_passed","node_id":"g"}
            41 {"event":"node_started","node_id":"c"}
            42 {"event":"node_failed","node_id":"c"}
            42 {"event":"node_started","node_id":"now"}"#;
        let nodes: &[(&str, &[&str])] = &[
            ("a", &[]),
            ("b", &["a"]),
            ("lost", &["a"]),
            ("g", &["b", "gone"]),
            ("c", &["g"]),
            ("now", &["c"]),
        ];
        let (path, sum) = critical(feed, nodes);
        let told: Vec<(&str, u64)> = path.iter().map(|(id, ms)| (id.as_str(), *ms)).collect();
        assert_eq!(told, [("a", 2500), ("b", 2500), ("g", 0), ("c", 1000)]);
        assert_eq!(sum, 6000);
    }

    #[test]
    fn a_run_of_which_nothing_ended_has_none() {
        assert_eq!(critical(r#"00 {"event":"node_started","node_id":"a"}"#, &[("a", &[])]), (vec![], 0));
    }
}
