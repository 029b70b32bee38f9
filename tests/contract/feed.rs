//! The promises of `events.jsonl`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Faults, Paid, is_empty, is_ordered, text};

const LINE_BYTES_MAX: usize = 1 << 20;
const KEYS: [&str; 16] = [
    "schema",
    "ts",
    "run_id",
    "event",
    "node_id",
    "verdict",
    "cost_usd",
    "cost_unknown",
    "usage",
    "session_id",
    "retries",
    "detail",
    "round",
    "provenance",
    "outcome",
    "phase",
];
const PROVENANCES: [&str; 4] = ["verified", "self-reported", "exit-only", "approved"];

/// What a stream tells.
#[derive(Default)]
pub(super) struct Story {
    /// Whether the last leg has no end.
    pub(super) open: bool,
    /// How the last leg ended.
    pub(super) outcome: String,
    /// The end of the last leg.
    pub(super) finished: Value,
    /// What planning cost.
    pub(super) planning: Paid,
    /// Each node's part.
    pub(super) nodes: BTreeMap<String, NodeStory>,
    opened_by_planning: bool,
}

/// One node's part.
#[derive(Default)]
pub(super) struct NodeStory {
    /// All that was paid for it.
    pub(super) paid: Paid,
    /// Its terminal events, in order.
    pub(super) terminals: Vec<Value>,
    /// Whether a leg's own line charged it: it may have no record yet.
    pub(super) held: bool,
    /// Whether its loop began a further round after the last of them.
    pub(super) rearmed: bool,
    is_running: bool,
    settled_rounds: Vec<u64>,
    failed_in_leg: bool,
    approved: Option<bool>,
}

/// Reads the stream at `path`.
pub(super) fn read(path: &Path, run_id: &str, faults: &mut Faults) -> Story {
    let mut story = Story::default();
    let stream = match std::fs::read_to_string(path) {
        Ok(stream) => stream,
        Err(error) => {
            faults.unless(error.kind() == std::io::ErrorKind::NotFound, || format!("events.jsonl: {error}"));
            return story;
        }
    };
    let mut damaged = None;
    for (at, line) in stream.split_inclusive('\n').enumerate() {
        let at = at + 1;
        // A crash may have cut the last line.
        let Some(line) = line.strip_suffix('\n') else { break };
        faults.unless(line.len() <= LINE_BYTES_MAX, || format!("line {at} has {} bytes", line.len()));
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            damaged = Some(at);
            continue;
        };
        if let Some(cut) = damaged.take() {
            // Only a crash cuts a line, and what follows a crash is a new leg.
            faults.unless(text(&event, "event") == "run_started", || format!("line {cut} is no JSON"));
        }
        let mut found = Faults::default();
        check_shape(&event, run_id, &mut found);
        story.take(&event, &mut found);
        faults.0.extend(found.0.into_iter().map(|fault| format!("line {at}: {fault}: {line}")));
    }
    story
}

fn check_shape(event: &Value, run_id: &str, faults: &mut Faults) {
    faults.unless(event["schema"] == 3, || "schema is not 3".into());
    faults.unless(is_utc(text(event, "ts")), || "ts is not RFC 3339 in UTC, trimmed".into());
    faults.unless(text(event, "run_id") == run_id, || format!("run_id is not {run_id}"));
    faults.unless(is_ordered(event, &KEYS), || "keys are out of order".into());
    for (key, value) in event.as_object().into_iter().flatten() {
        faults.unless(!is_empty(value), || format!("{key} is empty and not left out"));
    }
    let kind = text(event, "event");
    let is_of_node = kind.starts_with("node_") || kind.starts_with("gate_");
    faults.unless(is_of_node != text(event, "node_id").is_empty(), || {
        "node_id is where it does not belong".into()
    });
    let verdict = match kind {
        "node_passed" => "PASS",
        "node_failed" => "FAIL",
        _ => "",
    };
    faults.unless(text(event, "verdict") == verdict, || format!("verdict is not \"{verdict}\""));
    let provenance = text(event, "provenance");
    let may_have = provenance.is_empty() || kind == "node_passed" && PROVENANCES.contains(&provenance);
    faults.unless(may_have, || "provenance is of no known kind".into());
    let outcome = text(event, "outcome");
    let is_outcome = ["passed", "failed", "paused"].contains(&outcome);
    faults.unless(is_outcome == (kind == "run_finished"), || "outcome is where it does not belong".into());
    faults.unless(outcome.is_empty() || is_outcome, || "outcome is of no known kind".into());
    let phase = text(event, "phase");
    let may_have = phase.is_empty() || kind == "run_started" && phase == "planning";
    faults.unless(may_have, || "phase is where it does not belong".into());
    faults.unless(event["cost_usd"].as_f64().unwrap_or(1.0) > 0.0, || "cost_usd is negative".into());
}

fn is_utc(ts: &str) -> bool {
    let Some(moment) = ts.strip_suffix('Z') else { return false };
    let (second, fraction) = moment.split_once('.').unwrap_or((moment, "1"));
    let shape: String = second.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00"
        && fraction.len() <= 9
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && !fraction.ends_with('0')
}

impl Story {
    fn take(&mut self, event: &Value, faults: &mut Faults) {
        match text(event, "event") {
            "run_started" => self.open_leg(event, faults),
            "run_finished" => self.close_leg(event, faults),
            kind => {
                faults.unless(self.open && !self.opened_by_planning, || "no leg is open".into());
                self.nodes.entry(text(event, "node_id").to_owned()).or_default().take(kind, event, faults);
            }
        }
    }

    fn open_leg(&mut self, event: &Value, faults: &mut Faults) {
        let is_planning = text(event, "phase") == "planning";
        // Without that a leg may follow one without an end, whose process was killed.
        faults
            .unless(!(is_planning && self.opened_by_planning && self.open), || "planning opens twice".into());
        self.opened_by_planning = is_planning;
        self.open = true;
        for node in self.nodes.values_mut() {
            node.begin_leg();
        }
        self.take_parts(event);
    }

    /// The price of a leg's first or last line is planning's, unless it says whose it is.
    fn take_parts(&mut self, event: &Value) {
        let held = event["held"].as_array().cloned().unwrap_or_default();
        if held.is_empty() {
            self.planning.add(&paid(event));
        }
        for each in &held {
            let node = self.nodes.entry(text(each, "node").to_owned()).or_default();
            node.paid.add(&paid(each));
            node.held = true;
            node.is_running = false;
        }
    }

    fn close_leg(&mut self, event: &Value, faults: &mut Faults) {
        faults.unless(self.open, || "no leg is open".into());
        self.open = false;
        self.opened_by_planning = false;
        self.outcome = text(event, "outcome").to_owned();
        self.take_parts(event);
        let skipped = event["skipped"].as_array().map_or(0, Vec::len) as u64;
        faults.unless(event["skipped_count"].as_u64().unwrap_or(0) >= skipped, || {
            "more is skipped than counted".into()
        });
        for (id, node) in &self.nodes {
            // A node at a session limit has no end, and runs again in a later leg; without a pause it is skipped.
            let listed = event["skipped"].as_array().into_iter().flatten();
            let is_skipped = listed.clone().any(|each| text(each, "node") == id.as_str());
            let may_run = self.outcome == "paused" || is_skipped || !node.is_running;
            faults.unless(may_run, || format!("{id} is still running"));
            faults.unless(node.approved.is_none(), || format!("{id} was decided and has no verdict"));
        }
        self.finished = event.clone();
    }
}

impl NodeStory {
    fn begin_leg(&mut self) {
        self.is_running = false;
        self.settled_rounds.clear();
        self.failed_in_leg = false;
        self.approved = None;
    }

    fn take(&mut self, kind: &str, event: &Value, faults: &mut Faults) {
        self.paid.add(&paid(event));
        if kind != "node_started" {
            faults.unless(self.is_running, || "the node is not running".into());
        }
        match kind {
            "node_started" => {
                self.is_running = true;
                faults.unless(paid(event) == Paid::default(), || "a start is charged".into());
            }
            "node_retried" => {
                let is_arc = event["retries"].is_null();
                faults.unless(!is_arc || !event["round"].is_null(), || "neither a retry nor an arc".into());
                faults.unless(!is_arc || event["session_id"].is_null(), || "an arc names a session".into());
                if is_arc {
                    self.is_running = false;
                    self.rearmed = true;
                }
            }
            "node_passed" | "node_failed" => self.settle(kind == "node_passed", event, faults),
            "gate_paused" => self.is_running = false,
            "gate_approved" | "gate_rejected" => self.approved = Some(kind == "gate_approved"),
            _ => faults.0.push("the event is of no known kind".into()),
        }
    }

    fn settle(&mut self, passed: bool, event: &Value, faults: &mut Faults) {
        let round = event["round"].as_u64().unwrap_or(0);
        faults.unless(!self.settled_rounds.contains(&round), || "the round settles twice in a leg".into());
        faults.unless(passed || !self.failed_in_leg, || "the node fails twice in a leg".into());
        if let Some(approved) = self.approved.take() {
            faults.unless(approved == passed, || "the verdict is not the gate's".into());
            faults.unless(paid(event) == Paid::default(), || "a gate is charged".into());
        }
        self.settled_rounds.push(round);
        self.failed_in_leg |= !passed;
        self.is_running = false;
        self.rearmed = false;
        self.terminals.push(event.clone());
    }
}

fn paid(event: &Value) -> Paid {
    Paid::of(&event["cost_usd"], &event["cost_unknown"], &event["usage"])
}
