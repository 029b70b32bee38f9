//! Where a run stands between two legs: the snapshot and the feed read together, the later word of the two taken for each
//! node (`ARCHITECTURE` 5.4).
//!
//! The snapshot may be one write behind, and the feed may lack a line that could not be written; neither may make a run
//! pay twice. Reads only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;

use crate::graph::{Graph, NodeId, Work};
use crate::record::artifact::{self, ArtifactError};
use crate::record::legs::{Legs, NodeNow, NodeState, Nodes};
use crate::record::snapshot_reader::SnapshotError;
use crate::record::stream::{self, StreamError};
use crate::record::{EventKind, Record, RunDir, Snapshot, Usage, Verdict};
use crate::text::money::Cost;

/// A run as its legs so far left it.
#[derive(Debug)]
pub struct Standing {
    /// The snapshot; its `nodes` are moved to `records`.
    pub snapshot: Snapshot,
    /// The legs.
    pub legs: Legs,
    /// What settled, markers of loops included, costs of all legs in it.
    pub records: BTreeMap<String, Record>,
    /// What nodes that had begun and not settled had cost, in the attempts whose end is known.
    pub unsettled: BTreeMap<String, (Cost, Usage)>,
    /// The leg that each node which the feed has settled did so in, from 1.
    pub settled_in: BTreeMap<String, u32>,
    /// How many attempts of each node were begun.
    pub attempts: BTreeMap<String, u32>,
    /// Whether the snapshot lacks verdicts that the feed has, as after a full disk; a leg, if only one that finds nothing to
    /// run, makes good for it.
    pub is_behind: bool,
    /// The gates that waited when the last leg died; one that closed has them in its snapshot.
    pub waiting: BTreeSet<String>,
    /// The artifacts of nodes that settled, as far as the lines of these carry them (ADR 10).
    pub carried: BTreeMap<String, String>,
    /// How many attempts of each node were cut off when a leg died: nobody knows what they cost.
    pub cut_off: BTreeMap<String, u32>,
}

/// Why it cannot be told where a run stands.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// The snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The feed cannot be read.
    #[error(transparent)]
    Feed(#[from] StreamError),
}

impl Standing {
    /// Reads the run in `dir`; nobody may be writing to it.
    ///
    /// # Errors
    /// When the snapshot or the feed cannot be read.
    pub fn read(dir: &RunDir) -> Result<Self, StandingError> {
        let (snapshot, told) = both(|| Snapshot::read(dir), || told(dir));
        let (mut snapshot, Told { legs, mut nodes, mut carried }) = (snapshot?, told?);
        nodes.end();
        let attempts = nodes.by_id.iter().map(|(id, now)| (id.clone(), now.attempts)).collect();
        let settled_in =
            nodes.by_id.iter().filter_map(|(id, now)| Some((id.clone(), now.terminal.as_ref()?.0)));
        let settled_in = settled_in.collect();
        let cut_off = nodes.by_id.iter().filter(|(_, now)| now.cut_off > 0);
        let cut_off = cut_off.map(|(id, now)| (id.clone(), now.cut_off)).collect();
        let waits = |now: &NodeNow| legs.open && now.state == NodeState::Waiting;
        let waiting = nodes.by_id.iter().filter(|(_, now)| waits(now)).map(|(id, _)| id.clone()).collect();
        let mut records = std::mem::take(&mut snapshot.nodes);
        let (mut unsettled, mut is_behind) = (BTreeMap::new(), false);
        for (id, now) in &nodes.by_id {
            match later(now, records.get(id)) {
                Later::Snapshot if records.get(id).is_some_and(|kept| now.accounts_for(kept)) => {}
                Later::Snapshot => drop(carried.remove(id)),
                Later::Feed(record) => {
                    is_behind |= records.get(id).is_none_or(|kept| kept.verdict != record.verdict);
                    records.insert(id.clone(), record);
                }
                Later::Unsettled => {
                    records.remove(id);
                    unsettled.insert(id.clone(), (now.cost, now.usage));
                }
            }
        }
        for record in records.values_mut() {
            bring_along(record, dir);
        }
        carried.retain(|id, text| {
            !text.is_empty() && records.get(id).is_some_and(|record| !record.artifact_path.is_empty())
        });
        Ok(Standing {
            snapshot,
            legs,
            records,
            unsettled,
            settled_in,
            attempts,
            is_behind,
            waiting,
            carried,
            cut_off,
        })
    }

    /// Puts back the artifacts in `dir` that are whole in the feed alone, as after a loss of power. Only the holder of the
    /// run's lock may call it.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn put_back_artifacts(&self, dir: &RunDir) -> Result<(), ArtifactError> {
        let named = self.carried.iter().filter_map(|(id, text)| Some((NodeId::parse(id)?, text)));
        named.into_iter().try_for_each(|(id, text)| artifact::put_back(&dir.artifact(&id), text))
    }

    /// The nodes of `graph` that have an attempt which died with its engine, and how many: each was paid for, and nobody
    /// knows how much. A command costs nothing.
    pub fn lost(&self, graph: &Graph) -> impl Iterator<Item = (NodeId, u32)> {
        let asks = |id: &str| graph.find(id).is_some_and(|ix| matches!(graph.node(ix).work, Work::Model(_)));
        let lost = self.cut_off.iter().filter(move |(id, _)| asks(id) && !self.legs.rehearsal);
        lost.filter_map(|(id, attempts)| Some((NodeId::parse(id)?, *attempts)))
    }

    /// The nodes that passed.
    pub fn passed(&self) -> BTreeSet<&str> {
        let passed = self.records.iter().filter(|(_, record)| record.verdict == Verdict::Pass);
        passed.map(|(id, _)| id.as_str()).collect()
    }
}

/// An artifact lies in its run's directory, whatever that was called when it was written: a home can be moved.
fn bring_along(record: &mut Record, dir: &RunDir) {
    let recorded = Path::new(&record.artifact_path);
    let here = recorded.file_name().map(|name| dir.path().join(name));
    if let Some(here) = here.filter(|here| here != recorded && here.is_file()) {
        record.artifact_path = here.to_string_lossy().into_owned();
    }
}

/// What the feed tells.
#[derive(Default)]
struct Told {
    legs: Legs,
    nodes: Nodes,
    carried: BTreeMap<String, String>,
}

fn told(dir: &RunDir) -> Result<Told, StreamError> {
    let mut told = Told::default();
    stream::walk(&dir.feed(), |mut event| {
        told.legs.take(&event);
        if matches!(event.event, EventKind::NodePassed | EventKind::NodeFailed) {
            told.carried.insert(event.node_id.clone(), std::mem::take(&mut event.artifact_text));
        }
        told.nodes.take(event);
    })?;
    Ok(told)
}

/// Reads two files at the same time, where the system gives a thread: those of a large run take as long each.
fn both<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let beside = thread::Builder::new().name("snapshot reader".to_owned()).spawn_scoped(scope, &one);
        let other = other();
        let one = beside.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(&one);
        (one, other)
    })
}

enum Later {
    Snapshot,
    Feed(Record),
    Unsettled,
}

/// The later word on a node: `now` is the feed's, `kept` the snapshot's.
fn later(now: &NodeNow, kept: Option<&Record>) -> Later {
    match now.state {
        // A gate that waits has no record.
        NodeState::Waiting => Later::Snapshot,
        // The feed may lack an end that the snapshot has.
        _ if kept.is_some_and(|record| outlives(record, now)) => Later::Snapshot,
        NodeState::Passed | NodeState::Failed => now.record().map_or(Later::Snapshot, Later::Feed),
        NodeState::Idle | NodeState::Running | NodeState::Held => match now.marker() {
            Some(marker) => Later::Feed(marker),
            None => Later::Unsettled,
        },
    }
}

/// Whether a record of the snapshot is later than the feed's last word on its node. What the feed accounts for is not: an
/// end is appended before it is recorded, so only a feed that has lost lines lacks one. A PASS that it does have is worth
/// more than a failure that it lost.
pub fn outlives(record: &Record, now: &NodeNow) -> bool {
    let worse = record.verdict == Verdict::Fail && now.state == NodeState::Passed;
    let settled_in_same_round = record.round == now.round && record.is_settled() && !worse;
    !now.accounts_for(record) && (record.round > now.round || settled_in_same_round)
}
