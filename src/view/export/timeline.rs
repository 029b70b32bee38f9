//! When what ran: the legs of a run, every attempt with the slot that it had, and how long gates waited.
//!
//! The feed tells no slot, only that a node has one from its start until it settles; here each gets the lowest that was free, which is what
//! a person wants to see. Moments are those of the feed: a clock that was set back makes something short, never negative.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Serialize, Serializer};

use super::Export;
use crate::graph::{Cause, Provenance};
use crate::record::event::Held;
use crate::record::status::Status;
use crate::record::stream::{self, StreamError};
use crate::record::{Event, EventKind, Usage};
use crate::text::money::Cost;
use crate::view::history::run_json::CostJson;

/// All of it, in the order in which things began.
#[derive(Debug, Default, Serialize)]
pub(super) struct Timeline {
    pub(super) legs: Vec<Leg>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) gates: Vec<Wait>,
}

/// One leg.
#[derive(Debug, Serialize)]
pub(super) struct Leg {
    pub(super) leg: u32,
    #[serde(flatten)]
    pub(super) span: Span,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<String>,
}

/// From when until when; what has not ended has no end.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Span {
    #[serde(serialize_with = "written")]
    pub(super) started: Timestamp,
    #[serde(serialize_with = "written_if_known", skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Timestamp>,
}

/// One attempt of a node.
#[derive(Debug, Serialize)]
pub(super) struct Attempt {
    pub(super) node_id: String,
    pub(super) leg: u32,
    /// From 0.
    pub(super) round: u32,
    /// From 1 in each round of each leg.
    pub(super) attempt: u32,
    /// From 1.
    pub(super) slot: u32,
    #[serde(flatten)]
    pub(super) span: Span,
    pub(super) state: State,
    #[serde(flatten, serialize_with = "as_cost")]
    pub(super) charge: Cost,
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub(super) usage: Usage,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) session_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provenance: Option<Provenance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<Cause>,
    /// The first attempt of the same turn: a node has one slot until it settles.
    #[serde(skip)]
    turn: usize,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It has not.
    Running,
    /// The node passed.
    Passed,
    /// The node failed.
    Failed,
    /// It failed, and another followed.
    Retried,
    /// Its node was judged to fail, and a part of the graph ran again.
    SentBack,
    /// A spent limit held it back.
    Held,
    /// Its leg ended without it.
    Stopped,
    /// Its process is gone.
    Lost,
}

/// A gate that waited.
#[derive(Debug, Serialize)]
pub(super) struct Wait {
    pub(super) node_id: String,
    #[serde(flatten)]
    pub(super) span: Span,
    /// `approved` or `rejected`; nothing while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<&'static str>,
}

impl Timeline {
    /// Reads that of `export`.
    ///
    /// # Errors
    /// When the feed cannot be read.
    pub(super) fn read(export: &Export) -> Result<Timeline, StreamError> {
        let mut fold = Fold::default();
        let gates = export.shape.nodes.iter().filter(|node| node.r#type == "gate");
        fold.gates.extend(gates.map(|node| node.id.clone()));
        stream::walk(&export.dir.feed(), |event| fold.take(&event))?;
        Ok(fold.finish(export.shown.run.status == Some(Status::Abandoned)))
    }
}

/// A timeline in the making.
#[derive(Default)]
struct Fold {
    made: Timeline,
    /// The attempt of each node that is under way.
    open: BTreeMap<String, usize>,
    /// How many attempts each node had, by leg and round.
    begun: BTreeMap<(String, u32, u32), u32>,
    gates: BTreeSet<String>,
    planning: bool,
    /// The last moment that was told.
    last: Timestamp,
}

impl Fold {
    fn take(&mut self, event: &Event) {
        let before = self.last;
        // Time stands still at a moment that cannot be read, and where a clock was set back.
        self.last = event.ts.parse().map_or(self.last, |at: Timestamp| at.max(self.last));
        let node = event.node_id.as_str();
        match event.event {
            EventKind::RunStarted => self.leg(event, before),
            EventKind::RunFinished => self.leg_ends(event),
            EventKind::GatePaused => self.wait(node),
            EventKind::GateApproved => self.decided(node, "approved"),
            EventKind::GateRejected => self.decided(node, "rejected"),
            EventKind::NodeStarted => {
                let at = self.open.get(node).copied().unwrap_or_else(|| self.begin(event));
                self.made.attempts[at].session_id.clone_from(&event.session_id);
            }
            EventKind::NodeRetried => self.again(event),
            EventKind::NodePassed => self.settle(event, State::Passed),
            EventKind::NodeFailed => self.settle(event, State::Failed),
            EventKind::Other(_) | EventKind::Missing => {}
        }
    }

    fn leg(&mut self, event: &Event, before: Timestamp) {
        // A planner's call and what it planned are one leg.
        let goes_on = self.planning && event.phase.is_empty();
        self.planning = event.phase == "planning";
        if goes_on {
            return;
        }
        self.lose(before);
        for held in &event.held {
            let lost = self.made.attempts.iter_mut().rfind(|attempt| attempt.node_id == held.node);
            lost.into_iter().for_each(|attempt| attempt.pay(held.charge(), held.usage));
        }
        let leg = self.made.legs.last().map_or(1, |leg| leg.leg + 1);
        self.made.legs.push(Leg { leg, span: self.begins_now(), outcome: None });
    }

    fn leg_ends(&mut self, event: &Event) {
        self.planning = false;
        let held = |node: &str| event.held.iter().find(|held| held.node == node);
        for (node, at) in std::mem::take(&mut self.open) {
            let attempt = &mut self.made.attempts[at];
            attempt.end(self.last, if held(&node).is_some() { State::Held } else { State::Stopped });
            attempt.pay(
                held(&node).map_or(Cost::ZERO, Held::charge),
                held(&node).map_or_else(Usage::default, |held| held.usage),
            );
        }
        if let Some(leg) = self.made.legs.last_mut() {
            leg.span.ended = Some(self.last);
            leg.outcome = Some(event.outcome.clone()).filter(|word| !word.is_empty());
        }
    }

    fn wait(&mut self, node: &str) {
        self.gates.insert(node.to_owned());
        if self.waiting(node).is_none() {
            let span = self.begins_now();
            self.made.gates.push(Wait { node_id: node.to_owned(), span, decision: None });
        }
    }

    fn decided(&mut self, node: &str, decision: &'static str) {
        let last = self.last;
        if let Some(wait) = self.waiting(node) {
            wait.span.ended = Some(last);
            wait.decision = Some(decision);
        }
    }

    fn waiting(&mut self, node: &str) -> Option<&mut Wait> {
        self.made.gates.iter_mut().find(|wait| wait.node_id == node && wait.decision.is_none())
    }

    fn again(&mut self, event: &Event) {
        let at = self.open.get(&event.node_id).copied().unwrap_or_else(|| self.begin(event));
        let turn = self.made.attempts[at].turn;
        let state = match (event.held_until.is_empty(), event.retries) {
            (false, _) => State::Held,
            (true, 0) => State::SentBack,
            (true, _) => State::Retried,
        };
        self.close(at, event, state);
        if state == State::Retried {
            let next = self.begin(event);
            self.made.attempts[next].turn = turn;
            self.made.attempts[next].session_id.clone_from(&event.session_id);
        }
    }

    fn settle(&mut self, event: &Event, state: State) {
        let open = self.open.get(&event.node_id).copied();
        let at = open.unwrap_or_else(|| self.begin(event));
        self.close(at, event, state);
        let attempt = &mut self.made.attempts[at];
        attempt.provenance = event.provenance;
        attempt.cause = event.cause;
        // A runtime that tells its session late is announced late.
        let took = SignedDuration::from_nanos(event.duration.max(0));
        if attempt.turn == at
            && let Ok(started) = self.last.checked_sub(took)
        {
            attempt.span.started = attempt.span.started.min(started);
        }
    }

    fn begin(&mut self, event: &Event) -> usize {
        let leg = self.made.legs.last().map_or(1, |leg| leg.leg);
        let begun = self.begun.entry((event.node_id.clone(), leg, event.round)).or_default();
        *begun += 1;
        let (attempt, at) = (*begun, self.made.attempts.len());
        self.made.attempts.push(Attempt {
            node_id: event.node_id.clone(),
            leg,
            round: event.round,
            attempt,
            slot: 0,
            span: self.begins_now(),
            state: State::Running,
            charge: Cost::ZERO,
            usage: Usage::default(),
            session_id: String::new(),
            detail: String::new(),
            provenance: None,
            cause: None,
            turn: at,
        });
        self.open.insert(event.node_id.clone(), at);
        at
    }

    fn close(&mut self, at: usize, event: &Event, state: State) {
        let attempt = &mut self.made.attempts[at];
        attempt.end(self.last, state);
        attempt.pay(event.charge(), event.usage);
        attempt.detail.clone_from(&event.detail);
        self.open.remove(&event.node_id);
    }

    /// What was under way when its leg died ended with the last thing that was told.
    fn lose(&mut self, told: Timestamp) {
        for at in std::mem::take(&mut self.open).into_values() {
            self.made.attempts[at].end(told, State::Lost);
        }
        if let Some(leg) = self.made.legs.last_mut() {
            leg.span.ended.get_or_insert(told);
        }
    }

    fn finish(mut self, is_abandoned: bool) -> Timeline {
        if is_abandoned {
            self.lose(self.last);
        }
        // A gate is announced like any node, and does nothing in its slot but ask.
        self.made.attempts.retain(|attempt| !self.gates.contains(&attempt.node_id));
        self.made.give_slots();
        self.made
    }

    fn begins_now(&self) -> Span {
        Span { started: self.last, ended: None }
    }
}

impl Attempt {
    fn end(&mut self, at: Timestamp, state: State) {
        self.span.ended = Some(at);
        self.state = state;
    }

    fn pay(&mut self, charge: Cost, usage: Usage) {
        self.charge += charge;
        self.usage = self.usage + usage;
    }
}

impl Timeline {
    /// Gives each turn the lowest slot that is free from its first attempt to the end of its last.
    fn give_slots(&mut self) {
        let mut turns: BTreeMap<usize, Span> = BTreeMap::new();
        for attempt in &self.attempts {
            let turn = turns.entry(attempt.turn).or_insert(attempt.span);
            // What was lost ran on after the last thing that was told.
            let beyond = SignedDuration::from_nanos(i64::from(attempt.state == State::Lost));
            turn.ended = attempt.span.ended.map(|at| at.checked_add(beyond).unwrap_or(at));
        }
        let mut by_start: Vec<(usize, Span)> = turns.into_iter().collect();
        by_start.sort_by_key(|(turn, span)| (span.started, *turn));
        let slots = lanes(by_start.iter().map(|(_, span)| *span));
        let of_turn: BTreeMap<usize, u32> =
            by_start.iter().zip(slots).map(|((turn, _), slot)| (*turn, slot)).collect();
        for attempt in &mut self.attempts {
            attempt.slot = of_turn[&attempt.turn];
        }
    }
}

/// For each of `spans`, which begin one after the other, the lowest lane in which nothing else is; from 1.
pub(super) fn lanes(spans: impl Iterator<Item = Span>) -> Vec<u32> {
    // Until when each lane is taken; `None` for good.
    let mut taken: Vec<Option<Timestamp>> = Vec::new();
    let place = |span: Span| {
        let free = taken.iter().position(|until| until.is_some_and(|until| until <= span.started));
        let lane = free.unwrap_or(taken.len());
        if lane == taken.len() {
            taken.push(None);
        }
        taken[lane] = span.ended;
        u32::try_from(lane + 1).unwrap_or(u32::MAX)
    };
    spans.map(place).collect()
}

fn written<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn written_if_known<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&at.unwrap_or_default())
}

fn as_cost<S: Serializer>(cost: &Cost, serializer: S) -> Result<S::Ok, S::Error> {
    CostJson::from(*cost).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(feed: &str, is_abandoned: bool) -> Timeline {
        let mut fold = Fold::default();
        feed.lines().for_each(|line| fold.take(&serde_json::from_str(line.trim()).expect(line)));
        fold.finish(is_abandoned)
    }

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).expect("a moment")
    }

    /// Node, round, attempt, slot, state, and the seconds of start and end of each attempt.
    fn table(timeline: &Timeline) -> String {
        let row = |it: &Attempt| {
            let ended = it.span.ended.map_or("…".to_owned(), |at| at.as_second().to_string());
            let started = it.span.started.as_second();
            format!(
                "{} {}.{} slot {} {:?} {started}-{ended}\n",
                it.node_id, it.round, it.attempt, it.slot, it.state
            )
        };
        timeline.attempts.iter().map(row).collect()
    }

    fn feed(lines: &[(i64, &str)]) -> String {
        let line = |(at, rest): &(i64, &str)| format!("{{\"schema\":3,\"ts\":\"{}\",{rest}}}\n", second(*at));
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_node_has_one_slot_until_it_settles_and_the_next_gets_the_lowest() {
        let timeline = of(
            &feed(&[
                (0, r#""event":"run_started""#),
                (1, r#""event":"node_started","node_id":"a""#),
                (1, r#""event":"node_started","node_id":"b""#),
                (2, r#""event":"node_retried","node_id":"a","retries":1,"cost_usd":0.5"#),
                (3, r#""event":"node_passed","node_id":"b""#),
                (3, r#""event":"node_started","node_id":"c""#),
                (4, r#""event":"node_passed","node_id":"a","retries":1,"cost_usd":0.25"#),
                (4, r#""event":"node_retried","node_id":"c","round":1"#),
                (5, r#""event":"node_started","node_id":"c","round":1"#),
            ]),
            false,
        );
        insta::assert_snapshot!(table(&timeline), @r"
        a 0.1 slot 1 Retried 1-2
        b 0.1 slot 2 Passed 1-3
        a 0.2 slot 1 Passed 2-4
        c 0.1 slot 2 SentBack 3-4
        c 1.1 slot 1 Running 5-…
        ");
        assert_eq!(timeline.attempts[2].charge.known.usd().to_string(), "0.25");
    }

    #[test]
    fn what_a_dead_leg_left_ended_with_the_last_thing_that_was_told() {
        let lines = [
            (0, r#""event":"run_started""#),
            (1, r#""event":"node_started","node_id":"a""#),
            (2, r#""event":"node_started","node_id":"b""#),
            (90, r#""event":"run_started","held":[{"node":"a","cost_unknown":true}],"cost_unknown":true"#),
            (91, r#""event":"node_started","node_id":"a""#),
            (99, r#""event":"run_finished","outcome":"failed""#),
        ];
        let timeline = of(&feed(&lines), false);
        insta::assert_snapshot!(table(&timeline), @r"
        a 0.1 slot 1 Lost 1-2
        b 0.1 slot 2 Lost 2-2
        a 0.1 slot 1 Stopped 91-99
        ");
        assert!(timeline.attempts[0].charge.is_unknown());
        let legs: Vec<_> = timeline.legs.iter().map(|leg| (leg.leg, leg.span.ended)).collect();
        assert_eq!(legs, [(1, Some(second(2))), (2, Some(second(99)))]);
        assert_eq!(of(&feed(&lines[..3]), true).legs[0].span.ended, Some(second(2)));
    }

    #[test]
    fn a_gate_waits_over_legs_and_has_no_attempt() {
        let timeline = of(
            &feed(&[
                (0, r#""event":"run_started""#),
                (1, r#""event":"node_started","node_id":"g""#),
                (1, r#""event":"gate_paused","node_id":"g""#),
                (1, r#""event":"run_finished","outcome":"paused""#),
                (60, r#""event":"run_started""#),
                (61, r#""event":"node_started","node_id":"g""#),
                (61, r#""event":"gate_approved","node_id":"g""#),
                (61, r#""event":"node_passed","node_id":"g","provenance":"approved""#),
            ]),
            false,
        );
        assert_eq!(table(&timeline), "");
        let wait = &timeline.gates[0];
        assert_eq!((wait.span.ended, wait.decision), (Some(second(61)), Some("approved")));
    }

    #[test]
    fn a_runtime_that_is_announced_late_ran_for_as_long_as_its_end_says() {
        let timeline = of(
            &feed(&[
                (0, r#""event":"run_started""#),
                (9, r#""event":"node_started","node_id":"a""#),
                (9, r#""event":"node_passed","node_id":"a","duration":8000000000"#),
                // The clock was set back.
                (5, r#""event":"node_started","node_id":"b""#),
                (6, r#""event":"node_passed","node_id":"b""#),
            ]),
            false,
        );
        insta::assert_snapshot!(table(&timeline), @r"
        a 0.1 slot 1 Passed 1-9
        b 0.1 slot 1 Passed 9-9
        ");
    }
}
