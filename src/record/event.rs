//! The lines of `events.jsonl` (RUN-FEED "the stream", schema 3).
//!
//! Key order is field order. Fields after `phase` are additive: a reader that does not know them loses nothing,
//! one that does can rebuild every record from the feed alone (`ARCHITECTURE` 5).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::graph::Cause;
use crate::record::{Provenance, Usage};
use crate::text::money::{Cost, Money};

/// The stream's schema number.
pub const SCHEMA: u32 = 3;
/// The longest line that a reader accepts, newline excluded, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// The most entries of `skipped` on one `run_finished` line; the whole list is in the snapshot (DECISIONS 13).
pub const SKIPPED_MAX: usize = 500;

/// One transition. Absent fields are empty, zero or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// RFC 3339, UTC; for display, never for ordering. Stamped by the feed.
    pub ts: String,
    /// The run. Stamped by the feed.
    pub run_id: String,
    /// What happened.
    pub event: EventKind,
    /// The node it happened to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_id: String,
    /// `PASS` or `FAIL` on a terminal event.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// The charge of one paid invocation, in dollars; absent when 0 or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether that charge has no known price.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// Tokens of that invocation.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// The session or thread that a resume would name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    /// Retries before this attempt; on `node_retried` its 1-based ordinal.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// A short note: the cause of a FAIL, the notes of a PASS.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The feedback round, from 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub round: u32,
    /// How a PASS was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// `passed`, `failed` or `paused` on `run_finished`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// `planning` on the leg of a planner call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Nanoseconds from launch to verdict, all attempts and checks included (additive, terminal events).
    #[serde(skip_serializing_if = "is_zero_i64")]
    pub duration: i64,
    /// The artifact's path (additive, terminal events).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub artifact_path: String,
    /// The artifact itself where it is short ([`CARRIED_BYTES_MAX`](crate::record::artifact::CARRIED_BYTES_MAX)): this
    /// line is what makes it durable, and a later leg puts its file back (additive, terminal events, ADR 10).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub artifact_text: String,
    /// Whether a check rendered the FAIL (additive, `node_failed`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// The cause of a FAIL (additive, DECISIONS 12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whether a descendant outlived the child and held its output open (additive, case A1).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// The node's declared budget in dollars (additive, terminal events).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// Whether the leg ran on the rehearsal runtime (additive, `run_started`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rehearsal: bool,
    /// What nodes cost that have no event to carry it: those that a spent limit held back (on `run_finished`), those
    /// whose attempt died with its engine (on the next `run_started`). The line's own charge is their sum (additive).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// How many nodes never ran (additive, `run_finished`, DECISIONS 13).
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_count: u32,
    /// The first [`SKIPPED_MAX`] of them (additive, `run_finished`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Until when a spent limit holds back, RFC 3339, UTC. On `node_retried`: the attempt found the limit spent, and the
    /// leg waits before it starts the node again. On a `run_finished` that pauses: when the limit is lifted (additive).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub held_until: String,
}

impl Event {
    /// An event of `kind`, about no node.
    pub fn new(kind: EventKind) -> Self {
        Event { schema: SCHEMA, event: kind, ..Event::default() }
    }

    /// An event of `kind` about `node`.
    pub fn of_node(kind: EventKind, node: &str) -> Self {
        Event { node_id: node.to_owned(), ..Event::new(kind) }
    }

    /// Puts one invocation's price on the event.
    pub fn set_charge(&mut self, charge: Cost, usage: Usage) {
        (self.cost_usd, self.cost_unknown) = written(charge);
        self.usage = usage;
    }

    /// The price on the event. Zero when it carries none.
    pub fn charge(&self) -> Cost {
        read(self.cost_usd, self.cost_unknown)
    }
}

/// What a node cost that has no event of its own to carry it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// The node.
    pub node: String,
    /// Dollars; absent when 0 or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether the price is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// Its tokens.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
}

impl Held {
    /// A node with its charge.
    pub fn new(node: &str, charge: Cost, usage: Usage) -> Self {
        let (cost_usd, cost_unknown) = written(charge);
        Held { node: node.to_owned(), cost_usd, cost_unknown, usage }
    }

    /// Its charge.
    pub fn charge(&self) -> Cost {
        read(self.cost_usd, self.cost_unknown)
    }
}

/// A charge as a line has it: the dollars, absent when 0 or unknown, and whether some of it has no known price.
fn written(charge: Cost) -> (Option<f64>, bool) {
    ((!charge.known.is_zero()).then(|| charge.known.usd()), charge.is_unknown())
}

fn read(usd: Option<f64>, unknown: bool) -> Cost {
    Cost { known: usd.and_then(Money::from_usd).unwrap_or(Money::ZERO), unknown: u32::from(unknown) }
}

/// A node that never ran, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The node.
    pub node: String,
    /// What it is owed to: a node id, or the name of a signal.
    pub because: String,
    /// How that kept it from running.
    pub why: SkipWhy,
}

/// Why a node never ran (DECISIONS 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipWhy {
    /// A node that it depends on failed.
    AncestorFailed,
    /// A gate that it depends on was rejected.
    Rejected,
    /// A failure elsewhere halted the run.
    Halted,
    /// A signal ended the run.
    Interrupted,
}

/// The kinds of event of schema 3; the set is closed per schema, a reader skips what it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventKind {
    /// A leg begins.
    RunStarted,
    /// A node takes its slot.
    NodeStarted,
    /// A node passed.
    NodePassed,
    /// A node failed for good.
    NodeFailed,
    /// A further attempt begins, or a feedback arc fires.
    NodeRetried,
    /// The leg ends.
    RunFinished,
    /// A gate waits for a person.
    GatePaused,
    /// A gate's approval was applied.
    GateApproved,
    /// A gate's rejection was applied.
    GateRejected,
    /// A kind of a newer schema.
    Other(String),
    /// No kind at all: damage.
    #[default]
    Missing,
}

const KINDS: [(EventKind, &str); 9] = [
    (EventKind::RunStarted, "run_started"),
    (EventKind::NodeStarted, "node_started"),
    (EventKind::NodePassed, "node_passed"),
    (EventKind::NodeFailed, "node_failed"),
    (EventKind::NodeRetried, "node_retried"),
    (EventKind::RunFinished, "run_finished"),
    (EventKind::GatePaused, "gate_paused"),
    (EventKind::GateApproved, "gate_approved"),
    (EventKind::GateRejected, "gate_rejected"),
];

impl EventKind {
    /// The word on the stream.
    pub fn as_str(&self) -> &str {
        match self {
            EventKind::Other(word) => word,
            EventKind::Missing => "",
            known => KINDS.iter().find(|(kind, _)| kind == known).map_or("", |(_, word)| word),
        }
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KindVisitor)
    }
}

/// Reads a kind without a copy of its word: a listing reads one for every line of every feed.
struct KindVisitor;

impl de::Visitor<'_> for KindVisitor {
    type Value = EventKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a kind of event")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<EventKind, E> {
        let known = KINDS.iter().find(|(_, known)| *known == word);
        Ok(known.map_or_else(|| EventKind::Other(word.to_owned()), |(kind, _)| kind.clone()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero_i64(n: &i64) -> bool {
    *n == 0
}
