//! What the events of a feed mean together: its legs, what they cost, and how each node stands (RUN-FEED "legs",
//! FACTS 6.4 and 10).
//!
//! Both types are fed one event at a time, in file order, and never look at a clock or a file. `ts` is kept for
//! display only.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::event::{Held, Skipped};
use crate::record::{Event, EventKind, Record, Usage, Verdict};
use crate::text::money::Cost;

/// The legs of a run, taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Legs {
    /// Legs begun, the planner call of an auto run not counted apart.
    pub count: u32,
    /// Whether a `run_started` was seen at all.
    pub spoken: bool,
    /// Whether the last leg has no `run_finished` yet.
    pub open: bool,
    /// Whether the last leg is a planner call.
    pub planning: bool,
    /// How the last closed leg ended.
    pub outcome: Option<Outcome>,
    /// What its `run_finished` added.
    #[serde(skip)]
    pub detail: String,
    /// When the limit that it paused for is lifted, as written; empty when nobody knows.
    #[serde(skip)]
    pub held_until: String,
    /// Whether some leg ran on the rehearsal runtime.
    pub rehearsal: bool,
    /// Everything that the feed charged.
    pub cost: Cost,
    /// Every token that it counted.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// What no node was charged for: planner calls.
    pub planning_cost: Cost,
    /// The tokens of that.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub planning_usage: Usage,
    /// When the first leg began, as written.
    pub started: String,
    /// When the last leg began, as written.
    pub leg_started: String,
    /// When the last closed leg ended, as written.
    pub ended: String,
    /// How long the legs took that are over, in milliseconds; the time between two of them is nobody's.
    pub took_ms: u64,
    /// When the last event of a leg was written that has no end yet, as written.
    #[serde(skip)]
    pub last: String,
    /// Nodes that the last closed leg never ran.
    pub skipped_count: u32,
    /// The first of them.
    #[serde(skip)]
    pub skipped: Vec<Skipped>,
}

/// How a leg ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every node passed.
    Passed,
    /// Some did not.
    Failed,
    /// A person or a limit is waited for.
    Paused,
}

impl Outcome {
    /// Reads the word on the stream; what is neither of the good ones is a failure.
    pub fn from_word(word: &str) -> Self {
        match word {
            "passed" => Outcome::Passed,
            "paused" => Outcome::Paused,
            _ => Outcome::Failed,
        }
    }
}

impl Legs {
    /// The same without what only a page about this one run tells: the words of its end, but for a pause, and the nodes
    /// that never ran.
    pub fn in_brief(self) -> Self {
        let paused = self.outcome == Some(Outcome::Paused);
        let detail = if paused { self.detail } else { String::new() };
        Legs { detail, skipped: Vec::new(), ..self }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        // A line says of its own charge only whether some of it is unknown; its parts say how often.
        let parts = event.held.iter().map(Held::charge).sum::<Cost>();
        self.cost += if event.held.is_empty() { event.charge() } else { parts };
        self.usage = self.usage + event.usage;
        match event.event {
            EventKind::RunStarted => self.begin(event),
            // A close without an open is damage, not a leg.
            EventKind::RunFinished if self.open => self.close(event),
            _ => {}
        }
        if event.node_id.is_empty() && event.held.is_empty() {
            self.planning_cost += event.charge();
            self.planning_usage = self.planning_usage + event.usage;
        }
        if self.open {
            self.last.clone_from(&event.ts);
        } else {
            self.last.clear();
        }
    }

    /// How long the legs took together, in milliseconds, where none is running: one that was cut off took until the last
    /// event that it wrote.
    pub fn took_ms_in_all(&self) -> u64 {
        self.took_ms + if self.open { milliseconds(&self.leg_started, &self.last) } else { 0 }
    }

    fn begin(&mut self, event: &Event) {
        let planned = self.open && self.planning;
        if !planned || !event.phase.is_empty() {
            self.count += 1;
        }
        let until = if planned { &event.ts } else { &self.last };
        self.took_ms += if self.open { milliseconds(&self.leg_started, until) } else { 0 };
        if !self.spoken {
            self.started.clone_from(&event.ts);
        }
        self.leg_started.clone_from(&event.ts);
        // Who was skipped before may run now.
        (self.skipped_count, self.skipped) = (0, Vec::new());
        self.spoken = true;
        self.open = true;
        self.planning = event.phase == "planning";
        self.rehearsal |= event.rehearsal;
    }

    fn close(&mut self, event: &Event) {
        self.open = false;
        self.outcome = Some(Outcome::from_word(&event.outcome));
        self.detail.clone_from(&event.detail);
        self.held_until.clone_from(&event.held_until);
        self.ended.clone_from(&event.ts);
        self.took_ms += milliseconds(&self.leg_started, &event.ts);
        self.skipped_count = event.skipped_count.max(u32::try_from(event.skipped.len()).unwrap_or(u32::MAX));
        self.skipped.clone_from(&event.skipped);
    }
}

/// From one time as written to another; 0 where a clock was set back, or either makes no sense.
fn milliseconds(from: &str, until: &str) -> u64 {
    let at = |time: &str| time.parse::<Timestamp>().ok();
    let between = at(from).zip(at(until)).map(|(from, until)| until.duration_since(from).as_millis());
    between.and_then(|it| u64::try_from(it).ok()).unwrap_or(0)
}

/// How every node stands that the feed named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// By node id.
    pub by_id: BTreeMap<String, NodeNow>,
    leg: u32,
    /// Whether the leg at hand has ended.
    closed: bool,
}

/// How one node stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeNow {
    /// What it is doing.
    pub state: NodeState,
    /// The leg of its last event, from 1.
    pub leg: u32,
    /// When it got into this state, as written.
    pub since: String,
    /// Retries so far.
    pub retries: u32,
    /// The feedback round, 0 outside a loop.
    pub round: u32,
    /// The session of the attempt at hand.
    pub session_id: String,
    /// What it cost over all legs.
    pub cost: Cost,
    /// What it cost in its last leg.
    pub leg_cost: Cost,
    /// Tokens over all legs.
    pub usage: Usage,
    /// Tokens of its last leg.
    pub leg_usage: Usage,
    /// What its last terminal event says, the costs aside, and the leg of that.
    pub terminal: Option<(u32, Box<Record>)>,
    /// The round of each of its terminal events and firings, and the duration of the former: which records of it the
    /// feed accounts for.
    pub ends: Vec<(u32, Option<i64>)>,
    /// Attempts begun, over all legs and rounds.
    pub attempts: u32,
    /// The round that its feedback arc fired last, until it settles.
    pub fired: Option<u32>,
    /// Attempts that a leg which never closed had under way: nobody knows what they cost.
    pub cut_off: u32,
    /// Until when a spent limit holds it back, as written; empty unless it is [`NodeState::Held`].
    pub held_until: String,
    /// Whether a leg that never closed had it under way, and no leg has taken it up since.
    pub lost: bool,
}

/// What a node is doing, as far as the feed tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    /// Nothing: it was named, but no leg that is still on ran it.
    #[default]
    Idle,
    /// An attempt is under way.
    Running,
    /// A gate waits for a person.
    Waiting,
    /// The leg waits for a spent limit to be lifted, and then starts it again.
    Held,
    /// It passed.
    Passed,
    /// It failed for good.
    Failed,
}

impl Nodes {
    /// Takes the next event.
    pub fn take(&mut self, event: Event) {
        self.closed |= event.event == EventKind::RunFinished;
        if event.event == EventKind::RunStarted && event.phase.is_empty() {
            self.next_leg();
        }
        for held in &event.held {
            let now = self.by_id.entry(held.node.clone()).or_default();
            now.charge(held.charge(), held.usage);
            // Charged now, if as unknown.
            now.cut_off = 0;
        }
        let state = match event.event {
            EventKind::NodeRetried if !event.held_until.is_empty() => Some(NodeState::Held),
            // An arc fires: the declarer is done until its round starts it again.
            EventKind::NodeRetried if event.retries == 0 => Some(NodeState::Idle),
            EventKind::NodeStarted | EventKind::NodeRetried => Some(NodeState::Running),
            EventKind::NodePassed => Some(NodeState::Passed),
            EventKind::NodeFailed => Some(NodeState::Failed),
            EventKind::GatePaused => Some(NodeState::Waiting),
            _ => None,
        };
        if !event.node_id.is_empty() {
            self.of(&event).take(state, event);
        }
    }

    /// Counts what a leg that ended without closing had under way; for a run that nobody writes to any more.
    pub fn end(&mut self) {
        self.next_leg();
    }

    /// What the nodes of the last leg are, in id order.
    pub fn of_last_leg(&self) -> impl Iterator<Item = (&String, &NodeNow)> {
        self.by_id.iter().filter(|(_, now)| now.leg == self.leg)
    }

    /// A node that an earlier leg left running is not running, whatever the new leg does.
    fn next_leg(&mut self) {
        self.leg += 1;
        for now in self.by_id.values_mut() {
            now.lost |= now.state == NodeState::Running && !self.closed;
            now.cut_off += u32::from(now.state == NodeState::Running && !self.closed);
            if matches!(now.state, NodeState::Running | NodeState::Held) {
                now.state = NodeState::Idle;
            }
        }
        self.closed = false;
    }

    fn of(&mut self, event: &Event) -> &mut NodeNow {
        let now = self.by_id.entry(event.node_id.clone()).or_default();
        if now.leg != self.leg {
            now.leg = self.leg;
            now.leg_cost = Cost::ZERO;
            now.leg_usage = Usage::default();
        }
        now
    }
}

impl NodeNow {
    fn take(&mut self, state: Option<NodeState>, event: Event) {
        self.charge(event.charge(), event.usage);
        let Some(state) = state else { return };
        if self.state != state || event.event == EventKind::NodeStarted {
            self.since.clone_from(&event.ts);
        }
        self.state = state;
        self.lost = false;
        self.held_until.clone_from(&event.held_until);
        match event.event {
            // No further attempt yet: its start is announced when the limit is lifted.
            EventKind::NodeRetried if state == NodeState::Held => {}
            EventKind::NodeRetried if event.retries == 0 => {
                self.fired = Some(event.round);
                self.ends.push((event.round, None));
            }
            EventKind::NodeStarted | EventKind::NodeRetried => self.attempts += 1,
            _ => {}
        }
        self.retries = event.retries;
        self.round = event.round;
        self.session_id.clone_from(&event.session_id);
        if matches!(state, NodeState::Passed | NodeState::Failed) {
            self.ends.push((event.round, Some(event.duration)));
            self.terminal = Some((self.leg, Box::new(Record::told_by(event))));
            self.fired = None;
        }
    }

    fn charge(&mut self, charge: Cost, usage: Usage) {
        self.cost += charge;
        self.leg_cost += charge;
        self.usage = self.usage + usage;
        self.leg_usage = self.leg_usage + usage;
    }

    /// Whether one of its terminal events or firings is what `record` was made of.
    pub fn accounts_for(&self, record: &Record) -> bool {
        self.ends.contains(&(record.round, record.is_settled().then_some(record.duration)))
    }

    /// The marker of a loop under way, the costs of all legs in it.
    pub fn marker(&self) -> Option<Record> {
        let mut marker =
            Record { verdict: Verdict::Marker, round: self.fired?, usage: self.usage, ..Record::default() };
        marker.set_cost(self.cost);
        Some(marker)
    }

    /// The record that the last terminal event stands for, the costs of all legs in it.
    pub fn record(&self) -> Option<Record> {
        let (_, told) = self.terminal.as_ref()?;
        Some(self.priced(Record::clone(told)))
    }

    /// The same of a node that is of no more use otherwise.
    pub fn into_record(mut self) -> Option<Record> {
        let (_, told) = self.terminal.take()?;
        Some(self.priced(*told))
    }

    fn priced(&self, record: Record) -> Record {
        let mut record = Record { usage: self.usage, ..record };
        record.set_cost(self.cost);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::money::Money;

    fn events(lines: &str) -> Vec<Event> {
        lines.lines().map(|line| serde_json::from_str(line.trim()).expect(line)).collect()
    }

    fn legs(lines: &str) -> Legs {
        let mut legs = Legs::default();
        events(lines).iter().for_each(|event| legs.take(event));
        legs
    }

    fn nodes(lines: &str) -> Nodes {
        let mut nodes = Nodes::default();
        events(lines).into_iter().for_each(|event| nodes.take(event));
        nodes
    }

    fn usd(amount: f64) -> Cost {
        Cost::known(Money::from_usd(amount).expect("a price"))
    }

    #[test]
    fn a_planned_run_is_one_leg_with_two_opens() {
        let planning = legs(r#"{"event":"run_started","phase":"planning","ts":"t0"}"#);
        assert!(planning.open && planning.planning && planning.spoken);
        let committed = legs(
            r#"{"event":"run_started","phase":"planning","ts":"t0"}
               {"event":"run_started","ts":"t1","cost_usd":0.25}
               {"event":"run_finished","outcome":"passed","ts":"t2"}"#,
        );
        assert_eq!((committed.count, committed.open, committed.outcome), (1, false, Some(Outcome::Passed)));
        assert_eq!((committed.started.as_str(), committed.ended.as_str()), ("t0", "t2"));
        assert_eq!(committed.cost, usd(0.25));
    }

    #[test]
    fn the_time_between_two_legs_is_nobodys() {
        let at = |time: &str, rest: &str| format!(r#"{{"ts":"2026-01-02T{time}Z",{rest}}}"#) + "\n";
        let planning = at("10:00:00", r#""event":"run_started","phase":"planning""#);
        let committed = planning + &at("10:00:04", r#""event":"run_started""#);
        assert_eq!(legs(&committed).took_ms, 4000);
        let paused = committed + &at("10:00:05.5", r#""event":"run_finished","outcome":"paused""#);
        assert_eq!(legs(&paused).took_ms_in_all(), 5500);
        let cut_off = paused
            + &at("11:00:00", r#""event":"run_started""#)
            + &at("11:00:01", r#""event":"node_started""#);
        assert_eq!((legs(&cut_off).took_ms, legs(&cut_off).took_ms_in_all()), (5500, 6500));
        let resumed = cut_off + &at("12:00:00", r#""event":"run_started""#);
        let ended = resumed + &at("12:00:02", r#""event":"run_finished","outcome":"passed""#);
        assert_eq!(legs(&ended).took_ms_in_all(), 8500);
    }

    #[test]
    fn a_close_without_an_open_is_no_leg() {
        let damaged = legs(r#"{"event":"run_finished","outcome":"passed"}"#);
        assert_eq!(damaged, Legs::default());
    }

    #[test]
    fn only_what_ran_when_the_engine_died_was_cut_off() {
        let mut nodes = nodes(
            r#"{"event":"run_started"}
            {"event":"node_started","node_id":"w"}
            {"event":"node_passed","node_id":"w","cost_usd":0.01}
            {"event":"node_started","node_id":"r"}
            {"event":"node_retried","node_id":"r","round":1,"cost_usd":0.01}
            {"event":"node_started","node_id":"w","round":1}
            {"event":"node_started","node_id":"x"}
            {"event":"node_retried","node_id":"x","retries":1,"held_until":"2026-01-02T03:04:05Z"}"#,
        );
        assert_eq!((nodes.by_id["r"].state, nodes.by_id["x"].state), (NodeState::Idle, NodeState::Held));
        nodes.end();
        let cut: Vec<(&str, u32)> = nodes.by_id.iter().map(|(id, now)| (id.as_str(), now.cut_off)).collect();
        assert_eq!(cut, [("r", 0), ("w", 1), ("x", 0)]);
        assert_eq!(nodes.by_id["x"].attempts, 1);
        assert!(nodes.by_id["w"].lost && !nodes.by_id["x"].lost && !nodes.by_id["r"].lost);
        nodes.take(serde_json::from_str(r#"{"event":"node_started","node_id":"w"}"#).expect("an event"));
        assert!(!nodes.by_id["w"].lost);
    }

    #[test]
    fn f1_the_charges_of_retries_are_summed_and_unknown_ones_stay_unknown() {
        let text = r#"{"event":"run_started"}
            {"event":"node_started","node_id":"x"}
            {"event":"node_retried","node_id":"x","retries":1,"cost_usd":0.01}
            {"event":"node_retried","node_id":"x","retries":2,"cost_unknown":true}
            {"event":"node_passed","node_id":"x","retries":2,"cost_usd":0.02,"duration":5}"#;
        assert_eq!(legs(text).cost, usd(0.03) + Cost::UNKNOWN);
        let record = nodes(text).by_id["x"].record().expect("settled");
        assert_eq!((record.cost(), record.duration), (usd(0.03) + Cost::UNKNOWN, 5));
    }

    #[test]
    fn a_later_leg_ends_what_an_earlier_one_left_running_and_keeps_its_spend() {
        let nodes = nodes(
            r#"{"event":"run_started"}
            {"event":"node_started","node_id":"a"}
            {"event":"node_started","node_id":"b","ts":"t1"}
            {"event":"node_failed","node_id":"b","cost_usd":0.01}
            {"event":"run_started"}
            {"event":"node_started","node_id":"b","ts":"t2"}
            {"event":"node_passed","node_id":"b","cost_usd":0.02}
            {"event":"gate_paused","node_id":"g"}"#,
        );
        assert_eq!(nodes.by_id["a"].state, NodeState::Idle);
        assert_eq!(nodes.by_id["g"].state, NodeState::Waiting);
        let b = &nodes.by_id["b"];
        assert_eq!((b.state, b.cost, b.leg_cost), (NodeState::Passed, usd(0.03), usd(0.02)));
        assert_eq!(nodes.of_last_leg().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["b", "g"]);
    }
}
