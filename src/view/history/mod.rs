//! What a run's directory tells: how the run stands, what it cost, when it was.
//!
//! Everything comes from the two files that any outsider may read, and from a look at the lock that is handed in.
//! [`lookup`] finds a run, [`list`], [`show`] and [`node`] print one, [`watch`] follows one.

pub(crate) mod cores;
pub mod critical;
pub mod drawing;
pub mod goal;
pub mod judged;
pub mod list;
pub mod lookup;
pub mod node;
pub(crate) mod run_json;
pub mod show;
pub mod usual;
pub mod watch;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use crate::record::legs::Legs;
use crate::record::lock::Probe;
use crate::record::planning::PlanningNote;
use crate::record::snapshot_reader::{Brief, SnapshotError};
use crate::record::standing::Standing;
use crate::record::status::{self, Status};
use crate::record::stream::{self, StreamError};
use crate::record::{Record, RunDir, RunId, Usage, aside};
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::view::term::when;

pub use run_json::SCHEMA as JSON_SCHEMA;

/// How a run's lock is looked at.
pub type Prober = fn(&RunDir) -> Probe;

/// Why a run could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its feed could not.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Its snapshot could not.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl ReadError {
    /// Whether another version wrote what could not be read, as opposed to damage.
    pub fn is_incompatible(&self) -> bool {
        matches!(
            self,
            ReadError::Stream(StreamError::Newer { .. }) | ReadError::Snapshot(SnapshotError::Schema { .. })
        )
    }
}

/// What a listing knows of one run.
#[derive(Debug)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Its legs.
    pub legs: Legs,
    /// Its snapshot, if it has one.
    pub brief: Option<Brief>,
    /// How it stands; `None` while it has said nothing.
    pub status: Option<Status>,
    /// Whether a guard confirmed that nothing is left of an abandoned run.
    pub children_ended: bool,
    /// What died with an abandoned run.
    pub lost: Lost,
}

/// What died with an abandoned run before any of its files told the price.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lost {
    /// Attempts, by node: paid for, and nobody knows how much.
    pub nodes: BTreeMap<String, Cost>,
    /// Planner calls: those whose price was noted, and the one under way.
    pub planning: Cost,
    /// The tokens of the former.
    pub usage: Usage,
}

impl Lost {
    fn cost(&self) -> Cost {
        self.planning + self.nodes.values().copied().sum::<Cost>()
    }
}

impl Run {
    /// Reads the run `id` in `dir`. A file that is not there is no error.
    pub fn read(id: RunId, dir: &RunDir, probe: Prober) -> Result<Run, ReadError> {
        let mut legs = Legs::default();
        stream::walk_legs(&dir.feed(), |event| legs.take(&event))?;
        let brief = match Brief::read(dir) {
            Ok(brief) => Some(brief),
            Err(SnapshotError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let status = status::derive(&legs, brief.as_ref().map(Brief::completion), || probe(dir));
        let children_ended = children_ended(status, dir);
        let lost = lost(status, &legs, brief.is_some(), dir);
        Ok(Run { id, legs, brief, status, children_ended, lost })
    }

    /// A run that had ended, as the index of a listing tells it.
    fn of_index(id: RunId, legs: Legs, brief: Option<Brief>) -> Run {
        // No leg is open, so nobody asks the lock.
        let status = status::derive(&legs, brief.as_ref().map(Brief::completion), || Probe::Unknown);
        Run { id, legs, brief, status, children_ended: false, lost: Lost::default() }
    }

    /// Whether the run is a rehearsal, which costs nothing real.
    pub fn is_rehearsal(&self) -> bool {
        self.legs.rehearsal || self.brief.as_ref().is_some_and(|brief| brief.runtime == "rehearsal")
    }

    /// What the run cost, by feed and snapshot together.
    pub fn cost(&self) -> Cost {
        let told = larger(self.legs.cost, self.brief.as_ref().map_or(Cost::ZERO, Brief::cost));
        told + self.lost.cost()
    }

    /// What planning it cost, by feed and snapshot together.
    pub fn planning(&self) -> Cost {
        let told = larger(self.legs.planning_cost, self.brief.as_ref().map_or(Cost::ZERO, Brief::planning));
        told + self.lost.planning
    }

    /// Its tokens, by feed and snapshot together.
    pub fn usage(&self) -> Usage {
        let told = larger_usage(self.legs.usage, self.brief.as_ref().map_or(Usage::default(), Brief::usage));
        told + self.lost.usage
    }

    /// When the run began, as written; empty when nothing says so.
    pub fn started(&self) -> &str {
        &self.legs.started
    }
}

/// Whether a guard confirmed it; only asked of a run that lost its process.
pub(crate) fn children_ended(status: Option<Status>, dir: &RunDir) -> bool {
    status == Some(Status::Abandoned) && aside::children_were_ended(dir)
}

/// What died with a run that was abandoned. While it was being planned that is a planner call, unless a snapshot tells what
/// planning cost.
pub(crate) fn lost(status: Option<Status>, legs: &Legs, has_snapshot: bool, dir: &RunDir) -> Lost {
    if status != Some(Status::Abandoned) {
        return Lost::default();
    }
    if legs.planning {
        return if has_snapshot { Lost::default() } else { unplanned(dir) };
    }
    Lost { nodes: lost_attempts(dir), ..Lost::default() }
}

fn unplanned(dir: &RunDir) -> Lost {
    let noted = PlanningNote::read(dir).unwrap_or_default();
    Lost { planning: noted.cost() + Cost::UNKNOWN, usage: noted.usage, ..Lost::default() }
}

fn lost_attempts(dir: &RunDir) -> BTreeMap<String, Cost> {
    let Ok(standing) = Standing::read(dir) else { return BTreeMap::new() };
    let Ok((_, graph)) = crate::graph::from_snapshot(standing.snapshot.graph.get()) else {
        return BTreeMap::new();
    };
    let settled = |id: &str| standing.records.get(id).is_some_and(Record::is_settled);
    let lost = standing.lost(&graph).filter(|(id, _)| !settled(id.as_str()));
    lost.map(|(id, attempts)| (id.to_string(), (0..attempts).map(|_| Cost::UNKNOWN).sum())).collect()
}

/// One cost from two books. Both count a charge once and neither makes one up, but either may lag behind the other
/// or have lost a line, so the larger is nearer the truth.
pub fn larger(one: Cost, other: Cost) -> Cost {
    Cost { known: one.known.max(other.known), unknown: one.unknown.max(other.unknown) }
}

/// The same for tokens.
pub fn larger_usage(one: Usage, other: Usage) -> Usage {
    Usage {
        input_tokens: one.input_tokens.max(other.input_tokens),
        cached_input_tokens: one.cached_input_tokens.max(other.cached_input_tokens),
        output_tokens: one.output_tokens.max(other.output_tokens),
        reasoning_output_tokens: one.reasoning_output_tokens.max(other.reasoning_output_tokens),
    }
}

/// What to do about a run that is paused or abandoned.
pub fn hint(run: &Run) -> Option<String> {
    let id = &run.id;
    match run.status? {
        Status::Paused => {
            let gates: Vec<_> =
                waiting(run).iter().map(|gate| sanitize::one_line(gate).into_owned()).collect();
            Some(match gates.first() {
                Some(first) => format!(
                    "run {id} waits at {}: omg resume {id} --approve {first}, or --reject {first}",
                    gates.join(", ")
                ),
                None => format!(
                    "run {id} is paused{}: omg resume {id} --retry-failed goes on with it{}",
                    because(&run.legs.detail),
                    after(&run.legs.held_until)
                ),
            })
        }
        Status::Abandoned if run.brief.is_some() => Some(format!(
            "run {id} lost its process: omg resume {id} --retry-failed goes on with it; {}",
            orphans(run)
        )),
        Status::Abandoned if run.legs.planning => Some(format!(
            "run {id} lost its process while it was being planned: plan the goal again, which is paid for anew; {}",
            orphans(run)
        )),
        Status::Abandoned => Some(format!(
            "run {id} lost its process before it saved anything: run the graph again; {}",
            orphans(run)
        )),
        _ => None,
    }
}

fn because(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(" ({detail})") }
}

/// When a limit is lifted, in local time.
fn after(held_until: &str) -> String {
    if held_until.is_empty() {
        return String::new();
    }
    format!(" after {}", when::local(held_until, &TimeZone::system()))
}

/// What became of the children of a run that lost its process.
fn orphans(run: &Run) -> &'static str {
    match (run.is_rehearsal(), run.children_ended) {
        (true, _) => "a rehearsal has no children",
        (false, true) => "its guard ended every child that it found",
        (false, false) => "a child of it may still be running",
    }
}

/// The gates that wait for a person. An older snapshot names the first one only.
pub fn waiting(run: &Run) -> &[String] {
    let Some(gate) = run.brief.as_ref().map(|brief| &brief.gate) else { return &[] };
    match (gate.waiting.is_empty(), gate.paused_at.is_empty()) {
        (true, false) => std::slice::from_ref(&gate.paused_at),
        _ => &gate.waiting,
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    //! Run directories as the contract describes them, written by the tests themselves.

    use std::path::PathBuf;

    use super::*;
    use crate::record::Home;

    /// A home with no runs.
    pub(crate) struct House {
        _folder: tempfile::TempDir,
        pub(crate) home: Home,
    }

    impl House {
        pub(crate) fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let home = Home::new(folder.path());
            House { _folder: folder, home }
        }

        /// The directory of `id`, created.
        pub(crate) fn dir(&self, id: &str) -> RunDir {
            let dir = self.home.run(&RunId::parse(id).expect("an id"));
            std::fs::create_dir_all(dir.path()).expect("a folder");
            dir
        }

        /// A run with this feed (one event a line, schema added) and, if any, this snapshot.
        pub(crate) fn run(&self, id: &str, feed: &str, state: Option<&str>) -> RunDir {
            let dir = self.dir(id);
            let lines = feed.lines().map(|line| line.trim().replacen('{', "{\"schema\":3,", 1) + "\n");
            std::fs::write(dir.feed(), lines.collect::<String>()).expect("written");
            if let Some(state) = state {
                std::fs::write(dir.snapshot(), state).expect("written");
            }
            dir
        }

        /// A path beside the run directories.
        pub(crate) fn beside(&self, name: &str) -> PathBuf {
            std::fs::create_dir_all(self.home.runs()).expect("a folder");
            self.home.runs().join(name)
        }
    }

    /// A snapshot of a graph `demo` with nodes a and b, of which `records` settled.
    pub(crate) fn state(records: &str) -> String {
        format!(
            r#"{{"schema":3,"run_id":"r","runtime":"claude","graph":{{"name":"demo","nodes":[{{"id":"a"}},{{"id":"b"}}]}},"nodes":{{{records}}},"gate":{{}}}}"#
        )
    }

    /// A record of node `id` that passed for one cent.
    pub(crate) fn passed(id: &str) -> String {
        format!(
            r#""{id}":{{"verdict":"PASS","session_id":"s-{id}","cost_usd":0.01,"duration":235000000,"artifact_path":"","provenance":"exit-only"}}"#
        )
    }

    pub(crate) fn held(_: &RunDir) -> Probe {
        Probe::Held
    }

    pub(crate) fn free(_: &RunDir) -> Probe {
        Probe::Free
    }
}
