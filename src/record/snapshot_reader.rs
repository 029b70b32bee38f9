//! Reads `state.json`: whole, or only what a listing shows (RUN-FEED "the snapshot", PERF P7).
//!
//! The schema must be exactly ours; unknown keys are ignored. A [`Brief`] is made in one pass that counts nodes
//! and sums records without keeping any of them, and skips the graph's prompts. Checks no graph, writes nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::record::event::Skipped;
use crate::record::snapshot::{GateState, GoalState, SCHEMA};
use crate::record::status::Completion;
use crate::record::stream::open_regular;
use crate::record::{Record, RunDir, Snapshot, Usage, Verdict};
use crate::text::money::{Cost, Money};

/// What is expected under `nodes`.
const RECORDS: &str = "records by node id";

/// Why a snapshot could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is none. That is a fact about the run, not damage.
    #[error("{}: no such file", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// The file is there, and reading it failed.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The snapshot.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is empty, as a full disk leaves one.
    #[error("{}: the file is empty", path.display())]
    Empty {
        /// The snapshot.
        path: PathBuf,
    },
    /// The file is no snapshot.
    #[error("{}:{}:{}: not a run snapshot: {source}", path.display(), source.line(), source.column())]
    Malformed {
        /// The snapshot.
        path: PathBuf,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// Another program wrote it, an older or a newer one.
    #[error(
        "{}: snapshot schema {found} is not the one that this omg reads ({SCHEMA})",
        path.display()
    )]
    Schema {
        /// The snapshot.
        path: PathBuf,
        /// The number that it carries.
        found: i64,
    },
}

/// The graph of a snapshot as a reader draws it, and how each of its nodes settled.
#[derive(Debug, Deserialize)]
pub struct Outline<G> {
    schema: i64,
    /// The graph, as far as it is wanted.
    pub graph: G,
    #[serde(default)]
    nodes: BTreeMap<String, VerdictOnly>,
}

#[derive(Debug, Deserialize)]
struct VerdictOnly {
    verdict: Verdict,
}

impl<G: for<'de> Deserialize<'de>> Outline<G> {
    /// Reads this much of the snapshot of the run in `dir`.
    pub fn read(dir: &RunDir) -> Result<Self, SnapshotError> {
        read(&dir.snapshot(), |bytes| {
            let outline: Self = serde_json::from_slice(bytes)?;
            Ok((outline.schema, outline))
        })
    }

    /// How `node` settled, if it did.
    pub fn verdict(&self, node: &str) -> Option<Verdict> {
        self.nodes.get(node).map(|it| it.verdict)
    }
}

impl Snapshot {
    /// Reads the snapshot of the run in `dir`.
    pub fn read(dir: &RunDir) -> Result<Snapshot, SnapshotError> {
        read(&dir.snapshot(), |bytes| {
            let snapshot: Snapshot = serde_json::from_slice(bytes)?;
            Ok((i64::from(snapshot.schema), snapshot))
        })
    }
}

/// Those records of the run in `dir` that `wanted` wants, by node id. No other is ever held.
pub fn records(
    dir: &RunDir,
    wanted: impl FnMut(&str, &Record) -> bool,
) -> Result<BTreeMap<String, Record>, SnapshotError> {
    read(&dir.snapshot(), |bytes| {
        let Whereabouts { schema, nodes } = serde_json::from_slice(bytes)?;
        let text = nodes.map_or("{}", RawValue::get);
        Ok((schema, Sieve(wanted).deserialize(&mut serde_json::Deserializer::from_str(text))?))
    })
}

/// The goal that the run in `dir` is a cycle of, by its snapshot; nothing where that cannot be read.
pub(crate) fn goal(dir: &RunDir) -> Option<GoalState> {
    #[derive(Deserialize)]
    struct Aim {
        schema: i64,
        goal: Option<GoalState>,
    }
    let aim = |bytes: &[u8]| {
        let aim: Aim = serde_json::from_slice(bytes)?;
        Ok((aim.schema, aim.goal))
    };
    read(&dir.snapshot(), aim).ok().flatten()
}

/// Where the records stand in a snapshot.
#[derive(Deserialize)]
struct Whereabouts<'a> {
    schema: i64,
    #[serde(borrow)]
    nodes: Option<&'a RawValue>,
}

/// Keeps those records that its question is answered yes for.
struct Sieve<F>(F);

impl<'de, F: FnMut(&str, &Record) -> bool> DeserializeSeed<'de> for Sieve<F> {
    type Value = BTreeMap<String, Record>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str, &Record) -> bool> Visitor<'de> for Sieve<F> {
    type Value = BTreeMap<String, Record>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(RECORDS)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kept = BTreeMap::new();
        while let Some((id, record)) = map.next_entry::<String, Record>()? {
            if (self.0)(&id, &record) {
                kept.insert(id, record);
            }
        }
        Ok(kept)
    }
}

/// What a listing shows of a snapshot.
#[derive(Debug, Deserialize)]
pub struct Brief {
    schema: i64,
    /// `claude`, `codex` or `rehearsal`; empty means `claude`.
    #[serde(default)]
    pub runtime: String,
    #[serde(default)]
    planning_cost_usd: f64,
    #[serde(default)]
    planning_cost_unknown: bool,
    #[serde(default)]
    planning_usage: Usage,
    /// The graph.
    pub graph: GraphBrief,
    /// Where gates stand.
    #[serde(default)]
    pub gate: GateState,
    /// The nodes that never ran.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    #[serde(default)]
    nodes: Tally,
}

impl Brief {
    /// Reads what a listing needs of the run in `dir`.
    pub fn read(dir: &RunDir) -> Result<Brief, SnapshotError> {
        read(&dir.snapshot(), |bytes| {
            let brief: Brief = serde_json::from_slice(bytes)?;
            Ok((brief.schema, brief))
        })
    }

    /// What a listing needs of a snapshot that was read whole.
    pub fn of(snapshot: &Snapshot) -> Result<Brief, serde_json::Error> {
        let mut tally = Tally::default();
        snapshot.nodes.values().for_each(|record| tally.take(record));
        Ok(Brief {
            schema: i64::from(snapshot.schema),
            runtime: snapshot.runtime.clone(),
            planning_cost_usd: snapshot.planning_cost_usd,
            planning_cost_unknown: snapshot.planning_cost_unknown,
            planning_usage: snapshot.planning_usage,
            graph: serde_json::from_str(snapshot.graph.get())?,
            gate: snapshot.gate.clone(),
            skipped: snapshot.skipped.clone(),
            nodes: tally,
        })
    }

    /// How far the run came.
    pub fn completion(&self) -> Completion {
        Completion { completed: self.nodes.passed, total: self.graph.nodes }
    }

    /// What planning cost.
    pub fn planning(&self) -> Cost {
        planning(self.planning_cost_usd, self.planning_cost_unknown)
    }

    /// What the run cost, by its records.
    pub fn cost(&self) -> Cost {
        self.planning() + self.nodes.cost
    }

    /// Its tokens, by its records.
    pub fn usage(&self) -> Usage {
        self.planning_usage + self.nodes.usage
    }
}

/// A [`Brief`] as the index of a listing keeps it: the sums, and not what they are sums of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeptBrief {
    runtime: String,
    #[serde(skip_serializing_if = "is_zero")]
    planning_cost_usd: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    planning_cost_unknown: bool,
    #[serde(skip_serializing_if = "Usage::is_zero")]
    planning_usage: Usage,
    graph: String,
    nodes: usize,
    #[serde(skip_serializing_if = "is_nowhere")]
    gate: GateState,
    passed: usize,
    cost: Cost,
    #[serde(skip_serializing_if = "Usage::is_zero")]
    usage: Usage,
}

impl From<&Brief> for KeptBrief {
    fn from(brief: &Brief) -> Self {
        KeptBrief {
            runtime: brief.runtime.clone(),
            planning_cost_usd: brief.planning_cost_usd,
            planning_cost_unknown: brief.planning_cost_unknown,
            planning_usage: brief.planning_usage,
            graph: brief.graph.name.clone(),
            nodes: brief.graph.nodes,
            gate: brief.gate.clone(),
            passed: brief.nodes.passed,
            cost: brief.nodes.cost,
            usage: brief.nodes.usage,
        }
    }
}

impl From<KeptBrief> for Brief {
    fn from(kept: KeptBrief) -> Self {
        Brief {
            schema: i64::from(SCHEMA),
            runtime: kept.runtime,
            planning_cost_usd: kept.planning_cost_usd,
            planning_cost_unknown: kept.planning_cost_unknown,
            planning_usage: kept.planning_usage,
            graph: GraphBrief { name: kept.graph, nodes: kept.nodes },
            gate: kept.gate,
            skipped: Vec::new(),
            nodes: Tally { passed: kept.passed, cost: kept.cost, usage: kept.usage },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &f64) -> bool {
    *n == 0.0
}

fn is_nowhere(gate: &GateState) -> bool {
    *gate == GateState::default()
}

/// A graph's name and size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GraphBrief {
    /// Its name, possibly empty.
    pub name: String,
    /// How many nodes it has.
    #[serde(deserialize_with = "count")]
    pub nodes: usize,
}

fn planning(usd: f64, unknown: bool) -> Cost {
    Cost { known: Money::from_usd(usd).unwrap_or(Money::ZERO), unknown: u32::from(unknown) }
}

/// Reads the file at `path` by `decode`, which returns the schema that it found along with what it made of it.
fn read<T>(
    path: &Path,
    decode: impl FnOnce(&[u8]) -> serde_json::Result<(i64, T)>,
) -> Result<T, SnapshotError> {
    let bytes = bytes(path)?;
    let other = |found| SnapshotError::Schema { path: path.to_path_buf(), found };
    match decode(&bytes) {
        Ok((schema, value)) if schema == i64::from(SCHEMA) => Ok(value),
        Ok((schema, _)) => Err(other(schema)),
        // Another schema may have other shapes; its number is the better answer than the first that did not fit.
        Err(source) => Err(match serde_json::from_slice::<SchemaOnly>(&bytes) {
            Ok(SchemaOnly { schema }) if schema != i64::from(SCHEMA) => other(schema),
            _ => SnapshotError::Malformed { path: path.to_path_buf(), source },
        }),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, SnapshotError> {
    let unreadable = |source| SnapshotError::Unreadable { path: path.to_path_buf(), source };
    let Some(mut file) = open_regular(path).map_err(unreadable)? else {
        return Err(SnapshotError::Missing { path: path.to_path_buf() });
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.is_empty() {
        return Err(SnapshotError::Empty { path: path.to_path_buf() });
    }
    Ok(bytes)
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: i64,
}

/// Sums over the records of a snapshot.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    cost: Cost,
    usage: Usage,
}

impl Tally {
    fn take(&mut self, record: &Record) {
        self.passed += usize::from(record.verdict == Verdict::Pass);
        self.cost += record.cost();
        self.usage = self.usage + record.usage;
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Tally::default())
    }
}

impl<'de> Visitor<'de> for Tally {
    type Value = Tally;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(RECORDS)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Tally, A::Error> {
        while let Some((IgnoredAny, record)) = map.next_entry::<IgnoredAny, Record>()? {
            self.take(&record);
        }
        Ok(self)
    }
}

/// Counts the elements of a list without looking at one.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct Count;
    impl<'de> Visitor<'de> for Count {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of nodes")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while seq.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(count)
        }

        fn visit_unit<E>(self) -> Result<usize, E> {
            Ok(0)
        }
    }
    deserializer.deserialize_any(Count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"schema":3,"run_id":"1","planning_cost_usd":0.5,"tea":{"lumps":[1]},
        "graph":{"name":"g","nodes":[{"id":"a","prompt":"long"},{"id":"b"}]},
        "nodes":{"a":{"verdict":"PASS","session_id":"","cost_usd":0.01,"duration":1,"artifact_path":"","x":1},
                 "b":{"verdict":"","session_id":"","cost_usd":0.02,"cost_unknown":true,"duration":1,"artifact_path":""}},
        "gate":{}}"#;

    fn with(state: &str) -> (tempfile::TempDir, RunDir) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("state.json"), state).expect("written");
        let dir = RunDir::new(folder.path().to_path_buf());
        (folder, dir)
    }

    #[test]
    fn a_brief_counts_and_sums_without_the_model() {
        let (_folder, dir) = with(WHOLE);
        let brief = Brief::read(&dir).expect("read");
        assert_eq!(brief.graph, GraphBrief { name: "g".into(), nodes: 2 });
        assert_eq!(brief.completion(), Completion { completed: 1, total: 2 });
        assert_eq!(brief.cost().to_string(), "≥ $0.5300 (1 unknown)");
        let snapshot = Snapshot::read(&dir).expect("read");
        let same = Brief::of(&snapshot).expect("a graph");
        assert_eq!(
            (same.completion(), same.cost(), &same.graph),
            (brief.completion(), brief.cost(), &brief.graph)
        );
    }

    #[test]
    fn only_the_records_that_are_wanted_are_kept() {
        let (_folder, dir) = with(WHOLE);
        let kept = records(&dir, |id, record| id == "a" && record.is_settled()).expect("read");
        assert_eq!(
            kept,
            BTreeMap::from([("a".to_owned(), Snapshot::read(&dir).expect("read").nodes["a"].clone())])
        );
        let (_folder, without) = with("{\"schema\":3}");
        assert_eq!(records(&without, |_, _| true).expect("read"), BTreeMap::new());
    }

    #[test]
    fn d8_each_kind_of_damage_says_what_it_is() {
        for (state, says) in [
            ("", "the file is empty"),
            (&WHOLE[..90], "state.json:2:20: not a run snapshot"),
            ("[3]", "not a run snapshot"),
            ("{}", "not a run snapshot"),
            (r#"{"schema":99,"graph":7}"#, "schema 99"),
            (&WHOLE.replace("\"schema\":3", "\"schema\":2"), "schema 2"),
        ] {
            let (_folder, dir) = with(state);
            for error in [
                Snapshot::read(&dir).expect_err(state).to_string(),
                Brief::read(&dir).expect_err(state).to_string(),
            ] {
                assert!(error.contains(says) && error.contains("state.json"), "{state:?}: {error}");
            }
        }
    }

    #[test]
    fn a_run_without_a_snapshot_is_told_from_one_that_cannot_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::new(folder.path().to_path_buf());
        assert!(matches!(Snapshot::read(&dir), Err(SnapshotError::Missing { .. })));
        std::fs::create_dir(dir.snapshot()).expect("a folder in its place");
        assert!(matches!(Snapshot::read(&dir), Err(SnapshotError::Unreadable { .. })));
    }
}
