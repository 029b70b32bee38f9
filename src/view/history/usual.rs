//! What runs of a graph usually took: of those that have ended, rehearsals left out (DECISIONS 24).
//!
//! A run is of the same graph when it has its name and its nodes, by id; what their prompts say may have changed since.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::graph::Graph;
use crate::graph::node::KIND_GATE;
use crate::record::legs::Nodes;
use crate::record::status::Status;
use crate::record::stream;
use crate::record::{EventKind, Home, RunDir, Snapshot};
use crate::text::money::Cost;
use crate::view::history::list::Listing;
use crate::view::history::lookup::LookupError;
use crate::view::history::{Prober, Run};

/// Only so many of the newest runs are looked at: what was usual long ago is not.
pub const RUNS_MAX: usize = 50;

/// What runs of a graph usually took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usual {
    /// How many runs there are.
    pub runs: usize,
    /// How many of them passed.
    pub passed: usize,
    /// The known part of what they cost, and how many charges of all of them have no known price.
    pub cost: Spread<Cost>,
    /// How many of them have such charges.
    pub of_unknown_cost: usize,
    /// Attempts of prompt and command nodes.
    pub executions: Spread<u64>,
    /// The time of their legs, without what lies between.
    pub time: Spread<Duration>,
}

/// The least, the middle and the most of some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread<T> {
    /// The least.
    pub least: T,
    /// The middle one; of two, the greater.
    pub median: T,
    /// The most.
    pub most: T,
}

impl<T: Copy> Spread<T> {
    /// Of some values; `None` of none.
    fn of<K: Ord>(mut values: Vec<T>, key: impl Fn(&T) -> K) -> Option<Self> {
        values.sort_by_key(key);
        Some(Spread { least: *values.first()?, median: values[values.len() / 2], most: *values.last()? })
    }
}

/// What one run took.
struct Taken {
    cost: Cost,
    executions: u64,
    time: Duration,
    passed: bool,
}

/// What the runs of `graph` in `home` took; `None` when there are none.
pub fn usual(graph: &Graph, home: &Home, probe: Prober) -> Result<Option<Usual>, LookupError> {
    let listing = Listing::read(home, probe)?;
    let same = listing.runs.iter().filter(|run| may_be_of(run, graph));
    let taken: Vec<Taken> =
        same.filter_map(|run| taken(run, &home.run(&run.id), graph)).take(RUNS_MAX).collect();
    Ok(summed(&taken))
}

fn summed(taken: &[Taken]) -> Option<Usual> {
    let of_unknown_cost = taken.iter().filter(|run| run.cost.is_unknown()).count();
    let unknown = taken.iter().map(|run| run.cost.unknown).sum();
    let cost = Spread::of(taken.iter().map(|run| run.cost).collect(), |cost| cost.known)?;
    // Whatever an unknown charge was, it made its run no cheaper: each of the three is at least what is known of it.
    let at_least = |cost: Cost| Cost { unknown, ..cost };
    let cost =
        Spread { least: at_least(cost.least), median: at_least(cost.median), most: at_least(cost.most) };
    Some(Usual {
        runs: taken.len(),
        passed: taken.iter().filter(|run| run.passed).count(),
        cost,
        of_unknown_cost,
        executions: Spread::of(taken.iter().map(|run| run.executions).collect(), |count| *count)?,
        time: Spread::of(taken.iter().map(|run| run.time).collect(), |time| *time)?,
    })
}

/// By what a listing knows.
fn may_be_of(run: &Run, graph: &Graph) -> bool {
    let settled = matches!(run.status, Some(Status::Pass | Status::Fail));
    let alike = |brief: &crate::record::snapshot_reader::Brief| {
        brief.graph.name == graph.name && brief.graph.nodes == graph.nodes().len()
    };
    settled && !run.is_rehearsal() && run.brief.as_ref().is_some_and(alike)
}

/// What of a snapshot's graph is compared.
#[derive(Deserialize)]
struct Nodeset {
    #[serde(default)]
    nodes: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    #[serde(default, rename = "type")]
    kind: String,
}

/// `None` for a run of another graph, and for one that cannot be read: `runs list` tells of those.
fn taken(run: &Run, dir: &RunDir, graph: &Graph) -> Option<Taken> {
    let snapshot = Snapshot::read(dir).ok()?;
    let nodeset: Nodeset = serde_json::from_str(snapshot.graph.get()).ok()?;
    if !nodeset.nodes.iter().all(|node| graph.find(&node.id).is_some()) {
        return None;
    }
    let gates: BTreeSet<&str> =
        nodeset.nodes.iter().filter(|node| node.kind == KIND_GATE).map(|node| node.id.as_str()).collect();
    let (mut nodes, mut began, mut time) = (Nodes::default(), None, Duration::ZERO);
    stream::walk(&dir.feed(), |event| {
        let at: Option<Timestamp> = event.ts.parse().ok();
        match event.event {
            EventKind::RunStarted => began = at,
            EventKind::RunFinished => time += between(began.take(), at),
            _ => {}
        }
        nodes.take(event);
    })
    .ok()?;
    let asked = nodes.by_id.iter().filter(|(id, _)| !gates.contains(id.as_str()));
    let executions = asked.map(|(_, now)| u64::from(now.attempts)).sum();
    Some(Taken { cost: run.cost(), executions, time, passed: run.status == Some(Status::Pass) })
}

/// The time between two moments; none where one is missing or a clock was set back.
fn between(from: Option<Timestamp>, to: Option<Timestamp>) -> Duration {
    let span = from.zip(to).map(|(from, to)| to.duration_since(from));
    span.and_then(|span| Duration::try_from(span).ok()).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::check;
    use crate::graph::raw::{RawGraph, RawNode};
    use crate::text::money::Money;
    use crate::view::history::fixture::{House, free, passed, state};

    fn demo(ids: &[&str]) -> Graph {
        let node = |id: &&str| RawNode { id: (*id).to_owned(), ..RawNode::default() };
        let raw = RawGraph {
            name: "demo".to_owned(),
            nodes: ids.iter().map(node).collect(),
            ..RawGraph::default()
        };
        check(&raw).expect("it is sound")
    }

    fn feed(seconds: u32, charge: &str, rehearsal: bool) -> String {
        format!(
            r#"{{"ts":"2026-01-02T03:00:00Z","event":"run_started","rehearsal":{rehearsal}}}
               {{"ts":"2026-01-02T03:00:00Z","event":"node_started","node_id":"a"}}
               {{"ts":"2026-01-02T03:00:01Z","event":"node_retried","node_id":"a","retries":1{charge}}}
               {{"ts":"2026-01-02T03:00:01Z","event":"node_passed","node_id":"a","verdict":"PASS"}}
               {{"ts":"2026-01-02T03:00:01Z","event":"node_started","node_id":"b"}}
               {{"ts":"2026-01-02T03:00:01Z","event":"node_passed","node_id":"b","verdict":"PASS"}}
               {{"ts":"2026-01-02T03:00:{seconds:02}Z","event":"run_finished","outcome":"passed"}}"#
        )
    }

    #[test]
    fn only_runs_of_the_graph_that_have_ended_count() {
        let house = House::new();
        let all = state(&[passed("a"), passed("b")].join(","));
        let failed = state(&passed("a"));
        house.run("1", &feed(10, "", false), Some(&all));
        house.run("2", &feed(30, ",\"cost_usd\":0.5", false), Some(&all));
        house.run("3", &feed(20, ",\"cost_unknown\":true", false), Some(&failed));
        house.run("4", &feed(50, "", true), Some(&all));
        house.run("5", &feed(50, "", false), Some(&all.replace("demo", "other")));
        house.run("6", &feed(50, "", false), Some(&all.replace("\"b\"", "\"c\"")));
        house.run("7", r#"{"event":"run_started"}"#, Some(&all));
        let found = usual(&demo(&["a", "b"]), &house.home, free).expect("readable").expect("runs");
        assert_eq!((found.runs, found.passed, found.of_unknown_cost), (3, 2, 1));
        let seconds =
            |spread: Spread<Duration>| [spread.least, spread.median, spread.most].map(|t| t.as_secs());
        assert_eq!(seconds(found.time), [10, 20, 30]);
        assert_eq!(found.executions, Spread { least: 3, median: 3, most: 3 });
        assert_eq!(found.cost.most, Cost { known: Money::from_usd(0.5).expect("a price"), unknown: 1 });
        assert_eq!(usual(&demo(&["a", "x"]), &house.home, free).expect("readable"), None);
    }
}
