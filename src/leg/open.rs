//! Opening a leg (FACTS 1.6): the directory, the lock, the feed, the first snapshot, `run_started`, in this order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::clock::SharedClock;
use crate::graph::node::PermissionMode;
use crate::graph::{Bounds, Graph, NodeId};
use crate::leg::again::Inherited;
use crate::leg::claim::Claimed;
use crate::leg::planned::Planned;
use crate::node::worktree::Git;
use crate::node::{Runtime, Shell};
use crate::process::Launcher;
use crate::record::artifact::{self, ArtifactError};
use crate::record::event::Held;
use crate::record::feed::FeedError;
use crate::record::lock::{LegLock, LockError};
use crate::record::mint::MintError;
use crate::record::observe::{Notice, Observer};
use crate::record::snapshot::{BoundsState, GateState, SCHEMA};
use crate::record::{
    Durability, Event, EventKind, Feed, RunDir, RunId, Snapshot, SnapshotError, SnapshotWriter, Usage,
};
use crate::schedule::gate::Decision;
use crate::schedule::halt::Halt;
use crate::text::money::Cost;

/// The permission mode of nodes that declare none (FACTS 0.1).
pub const DEFAULT_MODE: PermissionMode = PermissionMode::Auto;

/// A run to be started: everything that the leg needs, checked.
pub struct Order {
    /// The graph.
    pub graph: Arc<Graph>,
    /// The graph, normalised and encoded, for the snapshot.
    pub encoded: Box<RawValue>,
    /// The graph file as it was typed.
    pub source_path: String,
    /// SHA-256 of the file's bytes, hex.
    pub sha256: String,
    /// The inputs.
    pub inputs: BTreeMap<String, String>,
    /// The directory that the run is started in, absolute.
    pub base: PathBuf,
    /// `--continue-on-fail`.
    pub continue_on_fail: bool,
    /// Slots, the graph's own number and the ceiling applied.
    pub slots: usize,
    /// How soon a verdict is in the snapshot.
    pub durability: Durability,
    /// What answers prompts.
    pub runtime: Arc<dyn Runtime>,
    /// What runs commands.
    pub shell: Arc<dyn Shell>,
    /// What starts children.
    pub launcher: Arc<Launcher>,
    /// What makes worktrees, for a graph that names some.
    pub git: Option<Git>,
    /// The script of a rehearsal, empty without one; `None` for a run in earnest.
    pub rehearsal: Option<String>,
    /// The permission mode of nodes that declare none.
    pub default_mode: PermissionMode,
    /// What makes the run a planned one; `None` for a hand-written graph.
    pub planned: Option<Planned>,
    /// Bounds on the whole run.
    pub bounds: Bounds,
    /// How long the leg may wait for a spent limit to be lifted.
    pub patience: Option<Duration>,
    /// What earlier legs left.
    pub inherited: Inherited,
}

/// Why a leg could not be opened. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LegError {
    /// The run's directory could not be made.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// The lock could not be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The feed could not be opened.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The script of a rehearsal could not be kept.
    #[error(transparent)]
    Script(#[from] ArtifactError),
    /// The first snapshot could not be written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The system refused something else.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's word.
        source: std::io::Error,
    },
}

/// A leg that is open: its lock is held until it is dropped.
pub struct Leg {
    /// The run.
    pub run: RunId,
    /// Its directory.
    pub dir: RunDir,
    pub(super) order: Order,
    pub(super) feed: Arc<Feed>,
    pub(super) snapshot: Arc<SnapshotWriter>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) clock: SharedClock,
    pub(super) halt: Arc<Halt>,
    // Declared last: released after everything else is gone.
    pub(super) lock: LegLock,
}

impl Leg {
    /// Opens a leg of a claimed run and says so in its feed. The first one writes its snapshot at once; a later one with
    /// its first record.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub fn open(
        claimed: Claimed,
        order: Order,
        clock: SharedClock,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, LegError> {
        let unfinished = claimed.unfinished(&order);
        let opened = Self::begin(claimed, order, clock, observer);
        if let (Err(_), Some(unfinished)) = (&opened, unfinished) {
            // It was said that the run is being planned; that nothing came of it is said too.
            unfinished.close();
        }
        opened
    }

    fn begin(
        claimed: Claimed,
        order: Order,
        clock: SharedClock,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, LegError> {
        let Claimed { run, dir, mut lock, planning } = claimed;
        order.launcher.name_run(run.as_str());
        let halt = Halt::new().map_err(|source| LegError::System { what: "make a pipe", source })?;
        let is_guarded = planning.is_some();
        let feed = match planning {
            Some(feed) => feed,
            None => Arc::new(Feed::open(&dir, &run, Arc::clone(&clock))?),
        };
        if let Some(script) = order.rehearsal.as_ref().filter(|script| !script.is_empty()) {
            artifact::persist(&dir.script(), script.as_bytes())?;
        }
        let begun = snapshot_at_start(&run, &order);
        let snapshot = SnapshotWriter::start(&dir, begun, order.durability, Arc::clone(&observer))?;
        match order.inherited.leg {
            1 => snapshot.write_initial()?,
            // What is there tells of gates that wait, and must until this leg has begun.
            _ => snapshot.could_write()?,
        }
        // A leg that cannot say that it begins could not say either what it spent.
        feed.append(&[started(&order)])?;
        lock.begun();
        observer.notice(Notice::Fed);
        let (halt, snapshot) = (Arc::new(halt), Arc::new(snapshot));
        let leg = Leg { run, dir, order, feed, snapshot, observer, clock, halt, lock };
        if !is_guarded {
            leg.post_guard();
        }
        Ok(leg)
    }
}

/// The first line of the leg. It carries what its plan cost, or what attempts may have cost that died with the engine of an earlier leg.
fn started(order: &Order) -> Event {
    let lost = order.inherited.lost.iter();
    let held: Vec<Held> =
        lost.map(|node| Held::new(node.as_str(), Cost::UNKNOWN, Usage::default())).collect();
    let mut event = Event { rehearsal: order.rehearsal.is_some(), ..Event::new(EventKind::RunStarted) };
    // A plan is committed by the first leg, and paid there.
    if let Some(planned) = order.planned.as_ref().filter(|_| order.inherited.leg == 1) {
        event.set_charge(planned.planning.0, planned.planning.1);
    }
    event.cost_unknown |= !held.is_empty();
    event.held = held;
    event
}

fn snapshot_at_start(run: &RunId, order: &Order) -> Snapshot {
    let planned = order.planned.as_ref();
    let (cost, usage) = planned.map(|planned| planned.planning).unwrap_or_default();
    Snapshot {
        schema: SCHEMA,
        run_id: run.to_string(),
        runtime: order.runtime.name().to_owned(),
        planning_cost_usd: cost.known.usd(),
        planning_cost_unknown: cost.is_unknown(),
        planning_usage: usage,
        graph_source_path: order.source_path.clone(),
        graph_sha256: order.sha256.clone(),
        graph: order.encoded.clone(),
        inputs: order.inputs.clone(),
        continue_on_fail: order.continue_on_fail,
        default_permission_mode: order.default_mode.as_str().to_owned(),
        tool_policies: planned.map(Planned::policies).unwrap_or_default(),
        goal: planned.and_then(|planned| planned.goal.clone()),
        build_evidence: planned.and_then(|planned| planned.evidence.clone()),
        nodes: order.inherited.stood.clone(),
        gate: gate_state(&order.inherited.decisions, &[]),
        cwd: order.base.to_string_lossy().into_owned(),
        bounds: BoundsState::of(order.bounds),
        skipped: Vec::new(),
    }
}

/// Where gates stand: what was decided, and which `waiting` ones are not.
pub(super) fn gate_state(decisions: &BTreeMap<NodeId, Decision>, waiting: &[NodeId]) -> GateState {
    let pause = waiting.iter().map(|id| (id.to_string(), "pause".to_owned()));
    let decided = decisions.iter().map(|(id, decision)| (id.to_string(), decision.as_str().to_owned()));
    GateState {
        paused_at: waiting.first().map(ToString::to_string).unwrap_or_default(),
        decisions: pause.chain(decided).collect(),
        waiting: waiting.iter().map(ToString::to_string).collect(),
    }
}
