//! One node's settled facts, as `state.json` holds them under `nodes` (RUN-FEED, FACTS 6.2).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::graph::{Cause, Provenance};
use crate::record::{Event, EventKind};
use crate::text::money::{Cost, Money};
use crate::text::usage::Usage;

/// How a node stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It passed.
    #[serde(rename = "PASS")]
    Pass,
    /// It failed for good.
    #[serde(rename = "FAIL")]
    Fail,
    /// Not settled: the marker of a feedback loop under way (ADR 0010). The key is written, and empty.
    #[default]
    #[serde(rename = "")]
    Marker,
}

impl Verdict {
    /// The word in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Marker => "",
        }
    }
}

/// What is known of a node once it settled. Fields after `provenance` are additive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The verdict; empty on a marker.
    pub verdict: Verdict,
    /// The session or thread of the last attempt, or empty.
    pub session_id: String,
    /// The known part of what all attempts and rounds cost, in dollars.
    pub cost_usd: f64,
    /// Whether some of it has no known price; `cost_usd` is then no measurement.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// Tokens of all attempts and rounds.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// The declared budget, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// From launch to verdict, in nanoseconds.
    pub duration: i64,
    /// Where the artifact is, or empty.
    pub artifact_path: String,
    /// The cause of a FAIL, the notes of a PASS.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The feedback round, from 1.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub round: u32,
    /// Whether a check rendered the FAIL, as opposed to the machinery breaking (ADR 0020).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// How a PASS was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// The cause of a FAIL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whether a descendant outlived a child and held its output open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leaky: bool,
    /// Retries before the last attempt.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub retries: u32,
    /// How many charges of `cost_usd`'s sum have no known price.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub unknown_charges: u32,
}

impl Record {
    /// What the node cost in all.
    pub fn cost(&self) -> Cost {
        let known = Money::from_usd(self.cost_usd).unwrap_or(Money::ZERO);
        let unknown = if self.cost_unknown { self.unknown_charges.max(1) } else { 0 };
        Cost { known, unknown }
    }

    /// Sets what the node cost in all.
    pub fn set_cost(&mut self, cost: Cost) {
        self.cost_usd = cost.known.usd();
        self.cost_unknown = cost.is_unknown();
        self.unknown_charges = cost.unknown;
    }

    /// How long the node took.
    pub fn took(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.duration).unwrap_or(0))
    }

    /// Puts everything but the price on a terminal event: it carries what the record holds, and its own charge.
    pub fn describe(&self, event: &mut Event) {
        self.verdict.as_str().clone_into(&mut event.verdict);
        event.session_id.clone_from(&self.session_id);
        event.retries = self.retries;
        event.detail.clone_from(&self.detail);
        event.round = self.round;
        event.provenance = self.provenance;
        event.duration = self.duration;
        event.artifact_path.clone_from(&self.artifact_path);
        event.judged = self.judged;
        event.cause = self.cause;
        event.leaky = self.leaky;
        event.budget_usd = self.budget_usd;
    }

    /// What a terminal event says, everything but the price: [`describe`](Self::describe) undone.
    pub(crate) fn told_by(event: Event) -> Self {
        Record {
            verdict: if event.event == EventKind::NodePassed { Verdict::Pass } else { Verdict::Fail },
            session_id: event.session_id,
            budget_usd: event.budget_usd,
            duration: event.duration,
            artifact_path: event.artifact_path,
            detail: event.detail,
            round: event.round,
            judged: event.judged,
            provenance: event.provenance,
            cause: event.cause,
            leaky: event.leaky,
            retries: event.retries,
            ..Record::default()
        }
    }

    /// The marker of the loop that the node declares, in the round that this record is of.
    pub fn into_marker(self) -> Self {
        let mut marker = Record { round: self.round, usage: self.usage, ..Record::default() };
        marker.set_cost(self.cost());
        marker
    }

    /// Whether the record settles its node.
    pub fn is_settled(&self) -> bool {
        self.verdict != Verdict::Marker
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero_u32(n: &u32) -> bool {
    *n == 0
}
