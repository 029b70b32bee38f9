//! One run as the dashboard shows it (FACTS 9.4), kept up to date event by event.

use serde::Serialize;

use super::run_api::{Shape, ShapeNode};
use super::state;
use crate::record::assessment::Assessment;
use crate::record::legs::{NodeNow, NodeState, Nodes};
use crate::record::snapshot::GoalState;
use crate::record::snapshot_reader::{Brief, Outline, SnapshotError};
use crate::record::status::{self, Status};
use crate::record::stream::{Follow, StreamError, Word};
use crate::record::{RunDir, RunId, Snapshot, Usage, Verdict};
use crate::text::money::Cost;
use crate::view::history::goal::one_line;
use crate::view::history::{Lost, Prober, ReadError, Run, children_ended, hint, lost, waiting};

/// The largest graph that is drawn on a card; of a larger one a card tells the counts.
const DRAWN_MAX: usize = 400;

/// A node that has not run.
const PENDING: &str = "pending";

/// A card, and what the sum of all cards is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Card {
    pub(super) json: String,
    pub(super) brief: CardBrief,
}

/// What the sum of all cards is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CardBrief {
    pub(super) state: &'static str,
    /// What counts in the sum: nothing of a rehearsal.
    pub(super) cost: Cost,
}

impl CardBrief {
    pub(super) fn of(run: &Run) -> Self {
        let cost = if run.is_rehearsal() { Cost::ZERO } else { run.cost() };
        CardBrief { state: state::of_run(run.status), cost }
    }

    /// The card of a run that cannot be read.
    pub(super) fn unknown() -> Self {
        CardBrief { state: state::UNKNOWN, cost: Cost::ZERO }
    }

    /// Whether nothing more is expected of the run and nobody is waited for.
    pub(super) fn is_settled(self) -> bool {
        matches!(self.state, "passed" | "failed")
    }

    /// Whether its process may die at any moment.
    pub(super) fn is_in_flight(self) -> bool {
        matches!(self.state, "running" | "planning")
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    run_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    available: bool,
    state: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    started_at: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    ended_at: &'a str,
    /// How long its legs took that are over.
    took_ms: u64,
    /// When the leg began that is running.
    #[serde(skip_serializing_if = "str::is_empty")]
    leg_started_at: &'a str,
    cost_usd: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cost_unknown: bool,
    #[serde(skip_serializing_if = "Usage::is_zero")]
    usage: Usage,
    counts: Counts,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<WireNode<'a>>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    waiting: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<WireGoal<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rehearsal: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    paused_because: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    held_until: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    children_ended: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What a planned run is for, as much as a card has room for.
#[derive(Serialize)]
struct WireGoal<'a> {
    text: String,
    cycle: u32,
    max_cycles: u32,
    first_run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal_met: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    remaining: String,
}

impl<'a> WireGoal<'a> {
    fn of(aim: &'a GoalState, verdict: Option<&Assessment>) -> Self {
        WireGoal {
            text: one_line(&aim.text),
            cycle: aim.cycle,
            max_cycles: aim.max_cycles,
            first_run_id: &aim.first_run_id,
            goal_met: verdict.map(|verdict| verdict.goal_met),
            remaining: verdict.map(|verdict| one_line(&verdict.remaining)).unwrap_or_default(),
        }
    }
}

#[derive(Default, Serialize)]
struct Counts {
    total: usize,
    passed: usize,
    failed: usize,
    running: usize,
    pending: usize,
}

#[derive(Serialize)]
struct WireNode<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    r#type: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    depends_on: &'a [String],
    state: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    held_until: &'a str,
    /// Its layer and its row.
    at: (usize, f64),
}

/// A run as far as it was read.
pub(super) struct Reading {
    follow: Follow,
    nodes: Nodes,
    shape: Option<Shape>,
    places: Places,
    goal: Option<GoalState>,
    run: Run,
}

/// Where the nodes of a graph stand on its card, in the order of the graph; none of one that is too large for it.
type Places = Vec<(usize, f64)>;

fn places(shape: &Shape) -> Places {
    match shape.nodes.len() <= DRAWN_MAX {
        true => shape.drawing().nodes.iter().map(|spot| (spot.layer, spot.row)).collect(),
        false => vec![(0, 0.0); shape.nodes.len()],
    }
}

impl Reading {
    /// Nothing of `id` yet.
    pub(super) fn new(id: &RunId, dir: &RunDir) -> Self {
        let run = Run {
            id: id.clone(),
            legs: crate::record::legs::Legs::default(),
            brief: None,
            status: None,
            children_ended: false,
            lost: Lost::default(),
        };
        Reading {
            follow: Follow::new(&dir.feed(), 0),
            nodes: Nodes::default(),
            shape: None,
            places: Places::new(),
            goal: None,
            run,
        }
    }

    /// Reads what is new, and makes the card.
    ///
    /// # Errors
    /// When a file cannot be read. Then nothing of this value is worth keeping.
    pub(super) fn update(&mut self, dir: &RunDir, probe: Prober) -> Result<Card, ReadError> {
        let mut newer = None;
        let (legs, nodes) = (&mut self.run.legs, &mut self.nodes);
        self.follow.poll(&mut |line| match line.word() {
            Word::Event(event) => {
                legs.take(&event);
                nodes.take(*event);
            }
            Word::Newer(schema, _) => newer = newer.or(Some(schema)),
            Word::Damaged => {}
        })?;
        if let Some(schema) = newer {
            return Err(StreamError::Newer { path: dir.feed(), schema }.into());
        }
        // Beside an open leg the feed leads; once it is closed the snapshot is complete.
        if !self.run.legs.open || self.shape.is_none() {
            self.read_snapshot(dir)?;
        }
        let completion = self.run.brief.as_ref().map(Brief::completion);
        self.run.status = status::derive(&self.run.legs, completion, || probe(dir));
        self.run.children_ended = children_ended(self.run.status, dir);
        self.run.lost = lost(self.run.status, &self.run.legs, self.run.brief.is_some(), dir);
        // It lies there before the feed begins, and stays as it is.
        self.goal = self.goal.take().or_else(|| GoalState::read(dir));
        let verdict = self.goal.as_ref().and_then(|_| Assessment::read(dir));
        let goal = self.goal.as_ref().map(|aim| WireGoal::of(aim, verdict.as_ref()));
        let name = self.shape.as_ref().map_or("", |shape| &shape.name);
        Ok(card(&self.run, name, goal, self.wire_nodes()))
    }

    fn read_snapshot(&mut self, dir: &RunDir) -> Result<(), ReadError> {
        let snapshot = match Snapshot::read(dir) {
            Ok(snapshot) => snapshot,
            Err(SnapshotError::Missing { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let malformed = |source| SnapshotError::Malformed { path: dir.snapshot(), source };
        self.run.brief = Some(Brief::of(&snapshot).map_err(malformed)?);
        let shape = Shape::of(&snapshot).map_err(malformed)?;
        self.places = places(&shape);
        self.shape = Some(shape);
        Ok(())
    }

    /// The nodes of the graph in file order, or those that the feed named while there is no graph.
    fn wire_nodes<'a>(&'a self) -> Vec<WireNode<'a>> {
        let stands = |now: &NodeNow| state::of_node(now.state, now.lost, self.run.status);
        let wire = |node: WireNode<'a>| match self.nodes.by_id.get(node.id) {
            Some(now) => WireNode { state: stands(now), ..node }.held(&now.held_until),
            None => node,
        };
        match &self.shape {
            Some(shape) => {
                let placed = shape.nodes.iter().zip(&self.places);
                placed.map(|(node, at)| wire(WireNode::of(node, *at, PENDING))).collect()
            }
            None => {
                // Nobody knows yet what waits for what.
                let placed = self.nodes.by_id.keys().zip(0_u32..);
                placed.map(|(id, nth)| wire(WireNode::new(id, (0, f64::from(nth)), PENDING))).collect()
            }
        }
    }
}

impl<'a> WireNode<'a> {
    fn new(id: &'a str, at: (usize, f64), state: &'static str) -> Self {
        WireNode { id, r#type: "", depends_on: &[], state, held_until: "", at }
    }

    fn of(node: &'a ShapeNode, at: (usize, f64), state: &'static str) -> Self {
        WireNode { r#type: &node.r#type, depends_on: &node.depends_on, ..WireNode::new(&node.id, at, state) }
    }

    /// The same until when it waits, if it does.
    fn held(self, until: &'a str) -> Self {
        if self.state == state::HELD { WireNode { held_until: until, ..self } } else { self }
    }
}

fn card<'a>(run: &'a Run, name: &'a str, goal: Option<WireGoal<'a>>, nodes: Vec<WireNode<'a>>) -> Card {
    let cost = run.cost();
    let is_live = run.status.is_some_and(Status::is_in_flight);
    let why = |told: &'a str| if run.status == Some(Status::Paused) { told } else { "" };
    let wire = Wire {
        run_id: run.id.as_str(),
        name,
        available: run.brief.is_some(),
        state: state::of_run(run.status),
        started_at: run.started(),
        ended_at: if run.legs.open { "" } else { &run.legs.ended },
        took_ms: if is_live { run.legs.took_ms } else { run.legs.took_ms_in_all() },
        leg_started_at: if is_live { &run.legs.leg_started } else { "" },
        cost_usd: cost.known.usd(),
        cost_unknown: cost.is_unknown(),
        usage: run.usage(),
        counts: Counts::of(&nodes),
        nodes: (nodes.len() <= DRAWN_MAX).then_some(nodes),
        waiting: if run.status == Some(Status::Paused) { waiting(run) } else { &[] },
        goal,
        rehearsal: run.is_rehearsal(),
        paused_because: why(&run.legs.detail),
        held_until: why(&run.legs.held_until),
        children_ended: (run.status == Some(Status::Abandoned)).then_some(run.children_ended),
        hint: hint(run),
    };
    Card { json: serde_json::to_string(&wire).unwrap_or_default(), brief: CardBrief::of(run) }
}

/// The card of a run with a snapshot that has ended, of which a listing told how: the snapshot alone has the rest.
///
/// # Errors
/// When the snapshot cannot be read.
pub(super) fn settled(run: &Run, dir: &RunDir) -> Result<Card, ReadError> {
    let outline = Outline::<Shape>::read(dir)?;
    let word = |id: &str| match outline.verdict(id) {
        Some(Verdict::Pass) => NodeState::Passed,
        Some(Verdict::Fail) => NodeState::Failed,
        _ => NodeState::Idle,
    };
    let placed = outline.graph.nodes.iter().zip(places(&outline.graph));
    let stands = |id: &str| state::of_node(word(id), false, run.status);
    let nodes = placed.map(|(node, at)| WireNode::of(node, at, stands(&node.id))).collect();
    // A planned run that has run has its plan beside it: one look spares every other run the rest.
    let is_planned = dir.plan().symlink_metadata().is_ok();
    let aim = is_planned.then(|| GoalState::read(dir)).flatten();
    let verdict = aim.as_ref().and_then(|_| Assessment::read(dir));
    let goal = aim.as_ref().map(|aim| WireGoal::of(aim, verdict.as_ref()));
    Ok(card(run, &outline.graph.name, goal, nodes))
}

impl Counts {
    fn of(nodes: &[WireNode<'_>]) -> Self {
        let mut counts = Counts { total: nodes.len(), ..Counts::default() };
        for node in nodes {
            *match node.state {
                "passed" => &mut counts.passed,
                "failed" => &mut counts.failed,
                "running" => &mut counts.running,
                _ => &mut counts.pending,
            } += 1;
        }
        counts
    }
}

/// The card of a run that cannot be read.
pub(super) fn unreadable(id: &RunId, error: &str) -> Card {
    let json = serde_json::json!({
        "run_id": id.as_str(), "available": false, "state": state::UNKNOWN, "cost_usd": 0.0,
        "counts": {"total": 0, "passed": 0, "failed": 0, "running": 0, "pending": 0}, "error": error,
    });
    Card { json: json.to_string(), brief: CardBrief::unknown() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::{House, free, held, state};

    const ID: &str = "20260102-030405.000000001-1";

    /// How nodes a and b stand on the card of a run with this feed.
    fn nodes(feed: &str, probe: Prober) -> serde_json::Value {
        let house = House::new();
        let dir = house.run(ID, feed, Some(&state("")));
        let card = Reading::new(&RunId::parse(ID).expect("an id"), &dir).update(&dir, probe).expect("read");
        let card: serde_json::Value = serde_json::from_str(&card.json).expect("JSON");
        card["nodes"].clone()
    }

    #[test]
    fn what_a_dead_leg_left_is_abandoned_until_a_later_one_takes_it_up() {
        let feed = r#"{"event":"run_started"}
            {"event":"node_started","node_id":"a"}
            {"event":"run_started"}
            {"event":"node_started","node_id":"b"}"#;
        let told = |feed: &str, probe| {
            let nodes = nodes(feed, probe);
            format!("{} {}", nodes[0]["state"], nodes[1]["state"]).replace('"', "")
        };
        assert_eq!(told(feed, held), "abandoned running");
        assert_eq!(told(feed, free), "abandoned abandoned");
        let again = format!("{feed}\n{}", r#"{"event":"node_started","node_id":"a"}"#);
        assert_eq!(told(&again, held), "running running");
    }

    #[test]
    fn what_a_limit_holds_back_says_until_when() {
        let feed = r#"{"event":"run_started"}
            {"event":"node_started","node_id":"a"}
            {"event":"node_retried","node_id":"a","retries":1,"held_until":"2026-01-02T05:00:00Z"}"#;
        let node = &nodes(feed, held)[0];
        assert_eq!((&node["state"], &node["held_until"]), (&"held".into(), &"2026-01-02T05:00:00Z".into()));
        let gone = &nodes(feed, free)[0];
        assert_eq!((&gone["state"], &gone["held_until"]), (&"pending".into(), &serde_json::Value::Null));
    }
}
