//! Graph nodes as units of work: what a node is given when it takes its slot, and what it leaves for others.

use std::collections::BTreeMap;
use std::mem;
use std::path::PathBuf;
use std::sync::{self, Mutex, PoisonError, RwLock};
use std::time::Instant;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::clock::{SharedClock, rfc3339};
use crate::graph::node::{Handoff, PermissionMode};
use crate::graph::{Bounds, Cause, Graph, Node, NodeId, NodeIx, OnFail, Work};
use crate::node::handoff::Material;
use crate::node::runtime::reset;
use crate::node::{Ceiling, Lanes, Runtime, Session, Shell};
use crate::record::feed::FeedError;
use crate::record::observe::{Notice, Observer};
use crate::record::{Event, EventKind, Feed, Record, RunDir, Scribe, Verdict};
use crate::schedule::attempt::Course;
use crate::schedule::gate::Decision;
use crate::schedule::halt::Halt;
use crate::schedule::machine::{Arc, Bill, Ending, Plan, Unit, UnitIx};
use crate::schedule::work::{Settled, Workload};
use crate::text::money::{Cost, Money};
use crate::text::sanitize::cap_detail;
use crate::text::usage::Usage;

/// The nodes of one leg, with everything they need to run.
pub struct GraphWork {
    /// The graph.
    pub graph: sync::Arc<Graph>,
    /// The inputs of the run.
    pub inputs: BTreeMap<String, String>,
    /// Where the run is recorded.
    pub run_dir: RunDir,
    /// The directory that the run was started in.
    pub base: PathBuf,
    /// The leg, from 1.
    pub leg: u32,
    /// The permission mode of nodes that declare none.
    pub default_mode: PermissionMode,
    /// What each node of a planned graph may do; `None` for a hand-written one, whose nodes grant themselves.
    pub ceiling: Option<Ceiling>,
    /// Held by the evidence command that runs, where only one may (FACTS 7.10).
    pub verify_turn: Option<Mutex<()>>,
    /// What answers prompts.
    pub runtime: sync::Arc<dyn Runtime>,
    /// What runs commands.
    pub shell: sync::Arc<dyn Shell>,
    /// What gives nodes their worktrees; `None` runs every node in the run's own directory.
    pub lanes: Option<sync::Arc<dyn Lanes>>,
    /// The time.
    pub clock: SharedClock,
    /// Where attempts are announced.
    pub feed: sync::Arc<Feed>,
    /// What keeps what they say.
    pub scribe: Scribe,
    /// Who hears notices.
    pub observer: sync::Arc<dyn Observer>,
    /// What ends the run before its time.
    pub halt: sync::Arc<Halt>,
    /// Whether this is a rehearsal: nothing is proved by it, so no PASS says how it was reached (DECISIONS 24).
    pub rehearsal: bool,
    /// What passed nodes left for others, by position.
    pub handed: RwLock<Vec<Option<Handed>>>,
    /// What each loop's last round looked like.
    pub rounds_seen: Mutex<BTreeMap<NodeId, [u8; 32]>>,
    /// What declarers of feedback handed back, the latest of each.
    pub payloads: RwLock<BTreeMap<NodeId, String>>,
    /// What earlier rounds, attempts and legs of a node cost: its next record carries it on.
    pub carried: Mutex<BTreeMap<NodeId, (Cost, Usage)>>,
    /// The replies of nodes that an earlier leg judged to fail, for the prompts that try again.
    pub replies: BTreeMap<NodeId, String>,
    /// The nodes that a spent limit held back.
    pub limited: Mutex<Vec<Held>>,
    /// What people decided of gates, by id.
    pub decisions: BTreeMap<NodeId, Decision>,
    /// What was left running on purpose.
    pub left_running: Mutex<Vec<(NodeId, u32)>>,
}

/// What a passed node left for others.
#[derive(Clone, Debug, Default)]
pub struct Handed {
    /// Its artifact.
    pub artifact: Option<PathBuf>,
    /// Its session.
    pub session: Option<String>,
}

/// A node that a spent limit held back.
#[derive(Clone, Debug)]
pub struct Held {
    /// The node.
    pub node: NodeId,
    /// What it cost all the same.
    pub charge: Cost,
    /// Its tokens.
    pub usage: Usage,
    /// The attempt that found the limit spent, from 0.
    pub attempt: u32,
    /// The feedback round that it was in.
    pub round: u32,
    /// What all its attempts since its launch cost.
    pub spent: (Cost, Usage),
    /// The CLI's words.
    pub words: String,
    /// When it said them.
    pub at: Timestamp,
}

impl Held {
    /// When the limit is lifted, if its words say so.
    fn lifts(&self) -> Option<Timestamp> {
        reset::moment(&self.words, self.at, &TimeZone::system())
    }

    /// The event that says that the leg waits until then. It carries the charge, which is nobody else's from then on.
    fn waits(&mut self, until: Timestamp) -> Event {
        let mut event = Event {
            round: self.round,
            retries: self.attempt + 1,
            detail: cap_detail(&self.words),
            held_until: rfc3339(until),
            ..Event::of_node(EventKind::NodeRetried, self.node.as_str())
        };
        event.set_charge(mem::take(&mut self.charge), mem::take(&mut self.usage));
        event
    }
}

/// A node on its way to a worker.
#[derive(Debug)]
pub struct Ticket {
    /// When it took its slot.
    pub since: Instant,
    /// The session of its first attempt.
    pub session: Session,
    /// The feedback round; 0 outside a loop and on its first pass.
    pub round: u32,
    /// A start that is announced once the session's id is known.
    pub unannounced: Option<Event>,
}

impl GraphWork {
    /// The plan of `graph` under `on_fail`. Nodes that go on with one session share it as an exclusive resource:
    /// their cumulative prices would race (DECISIONS 16).
    pub fn plan(graph: &Graph, on_fail: OnFail, bounds: Bounds) -> Plan {
        let unit = |ix: NodeIx| {
            let node = graph.node(ix);
            let executions = if matches!(node.work, Work::Gate) { 0 } else { 1 + node.retry.max };
            Unit {
                parents: node.parents.iter().map(|parent| parent.get()).collect(),
                exclusive: resumes(graph, ix).then(|| graph.session_root(ix).get()),
                may_spend: may_spend(node),
                executions,
            }
        };
        let arc = |ix: NodeIx| {
            let max = graph.node(ix).feedback?.max;
            let body = graph.feedback_body(ix).iter().map(|member| member.get()).collect();
            Some(Arc { declarer: ix.get(), body, max })
        };
        let units = graph.positions().map(unit).collect();
        Plan { units, arcs: graph.positions().filter_map(arc).collect(), on_fail, bounds }
    }

    /// Runs `use_it` with what templates of a node may name.
    pub fn with_material<T>(&self, use_it: impl FnOnce(&Material<'_>) -> T) -> T {
        let artifact = |id: &str| {
            let ix = self.graph.find(id)?;
            self.handed.read().unwrap_or_else(PoisonError::into_inner)[ix.get()].as_ref()?.artifact.clone()
        };
        let feedback = |id: &str| {
            let payloads = self.payloads.read().unwrap_or_else(PoisonError::into_inner);
            payloads.get(id).cloned().unwrap_or_default()
        };
        use_it(&Material { inputs: &self.inputs, artifact: &artifact, feedback: &feedback })
    }

    /// Notes what a passed node left for others.
    pub fn hand_on(&self, ix: NodeIx, handed: Handed) {
        self.handed.write().unwrap_or_else(PoisonError::into_inner)[ix.get()] = Some(handed);
    }

    /// Notes what a round of `declarer`'s loop looked like; returns whether the round before looked the same.
    pub fn seen_before(&self, declarer: &NodeId, looks: [u8; 32]) -> bool {
        let mut seen = self.rounds_seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(declarer.clone(), looks) == Some(looks)
    }

    /// Notes what a declarer hands back.
    pub fn hand_back(&self, declarer: &NodeId, payload: String) {
        self.payloads.write().unwrap_or_else(PoisonError::into_inner).insert(declarer.clone(), payload);
    }

    /// What `node` cost before: in earlier rounds, and in legs whose records were cleared.
    pub fn carried(&self, node: &NodeId) -> (Cost, Usage) {
        let carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        carried.get(node).copied().unwrap_or_default()
    }

    /// Notes what `node` cost in all by now, if it may run again.
    pub fn carry(&self, node: &NodeId, cost: Cost, usage: Usage) {
        if self.graph.find(node.as_str()).is_some_and(|ix| self.graph.declarer_of(ix).is_some()) {
            self.carried.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone(), (cost, usage));
        }
    }

    /// Notes a node that a spent limit held back.
    pub fn hold(&self, held: Held) {
        let (cost, usage) = self.carried(&held.node);
        let total = (cost + held.spent.0, usage + held.spent.1);
        self.carried.lock().unwrap_or_else(PoisonError::into_inner).insert(held.node.clone(), total);
        self.limited.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    /// Tells the observer of something that went wrong and does not end the run.
    pub fn warn(&self, node: &NodeId, message: String) {
        self.observer.notice(Notice::Warning { node: Some(node.clone()), message });
    }

    /// Appends events of a node under way; a failure is a warning as well.
    ///
    /// # Errors
    /// When they are not durable.
    pub fn announce(&self, node: &NodeId, events: &[Event]) -> Result<(), FeedError> {
        let told = self.feed.append(events);
        if let Err(error) = &told {
            self.warn(node, error.to_string());
        }
        self.observer.notice(Notice::Fed);
        told
    }

    /// A round after the first begins in a fresh session, like a retry (DESIGN "Feedback edges").
    fn first_session(&self, ix: NodeIx, round: u32) -> Session {
        let parent = self.graph.node(ix).parents.first().filter(|_| round == 0 && resumes(&self.graph, ix));
        // A node that was judged to fail on an earlier leg is a retry, which starts cold.
        let parent = parent.filter(|_| !self.replies.contains_key(&self.graph.node(ix).id));
        let handed = self.handed.read().unwrap_or_else(PoisonError::into_inner);
        let inherited = parent.and_then(|parent| handed[parent.get()].as_ref()?.session.clone());
        match inherited {
            Some(session) => Session::Resume(session),
            None => Session::Fresh(self.runtime.fresh_session()),
        }
    }
}

/// What one node may cost: its budget for each attempt; nothing named is no bound.
fn may_spend(node: &Node) -> Option<Money> {
    let Work::Model(model) = &node.work else { return None };
    let attempts = 1 + node.retry.max;
    Some((0..attempts).fold(Money::ZERO, |sum, _| sum + model.budget.unwrap_or(Money::ZERO)))
}

fn resumes(graph: &Graph, ix: NodeIx) -> bool {
    matches!(&graph.node(ix).work, Work::Model(model) if model.handoff == Handoff::Session)
}

impl Workload for GraphWork {
    type Ticket = Ticket;

    fn name(&self, unit: UnitIx) -> &NodeId {
        &self.graph.nodes()[unit].id
    }

    fn launch(&self, unit: UnitIx, round: u32) -> (Ticket, Option<Event>) {
        let (ix, since) = (NodeIx::new(unit), Instant::now());
        let node = self.graph.node(ix);
        let mut event = Event { round, ..Event::of_node(EventKind::NodeStarted, node.id.as_str()) };
        let Work::Model(_) = node.work else {
            return (Ticket { since, session: Session::Fresh(None), round, unannounced: None }, Some(event));
        };
        let session = self.first_session(ix, round);
        if self.runtime.announces_late() {
            // The CLI tells the id, and may tell another one than was asked for: the start is announced then.
            return (Ticket { since, session, round, unannounced: Some(event) }, None);
        }
        if let Session::Resume(id) | Session::Fresh(Some(id)) = &session {
            event.session_id.clone_from(id);
        }
        (Ticket { since, session, round, unannounced: None }, Some(event))
    }

    /// The latest of what the CLIs said of the limit that holds back now.
    fn limit_lifts(&self) -> Option<Timestamp> {
        let held = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().filter_map(Held::lifts).max()
    }

    fn wait_begins(&self, until: Timestamp) -> Vec<Event> {
        let mut held = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter_mut().map(|held| held.waits(until)).collect()
    }

    fn wait_ended(&self) {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn run(&self, unit: UnitIx, ticket: Ticket) -> Settled {
        Course::new(self, NodeIx::new(unit), ticket).run()
    }

    fn panicked(&self, unit: UnitIx, message: &str) -> Settled {
        let node = self.name(unit);
        let detail = format!("the engine broke down while running it, please report this: {message}");
        let mut event = Event::of_node(EventKind::NodeFailed, node.as_str());
        event.verdict = Verdict::Fail.as_str().to_owned();
        event.detail.clone_from(&detail);
        event.cause = Some(Cause::RunError);
        event.cost_unknown = true;
        let mut record =
            Record { verdict: Verdict::Fail, detail, cause: Some(Cause::RunError), ..Record::default() };
        record.set_cost(Cost::UNKNOWN);
        Settled {
            ending: Ending::Failed { judged: false },
            bill: Bill { cost: Cost::UNKNOWN, executions: 1 },
            events: vec![event],
            record: Some(record),
            again: None,
        }
    }
}
