//! What the writers of a run directory leave is what an independent reader of the contract expects; and that reader
//! notices when it is not.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; the sums are small"
)]

#[path = "contract/mod.rs"]
mod contract;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use contract::{check_run_dir, violations};
use omg::clock::SystemClock;
use omg::graph::{Cause, NodeId};
use omg::record::event::{SkipWhy, Skipped};
use omg::record::observe::Silent;
use omg::record::snapshot::GateState;
use omg::record::{
    Durability, Event, EventKind, Feed, Home, Provenance, Record, RunDir, Snapshot, SnapshotWriter, Usage,
    Verdict, artifact, lock, mint,
};
use omg::text::money::{Cost, Money};

const GRAPH: &str =
    r#"{"nodes":[{"id":"g","type":"gate"},{"id":"lane/a"},{"id":"b"},{"id":"c"},{"id":"d"}]}"#;

/// One leg, written as an engine would.
struct Leg {
    run: RunDir,
    feed: Feed,
    writer: SnapshotWriter,
    _lock: lock::LegLock,
}

impl Leg {
    fn open(home: &Path) -> Self {
        let (id, run) = mint::new_run(&Home::new(home), &SystemClock).unwrap();
        let lock = lock::acquire(&run).unwrap();
        let feed = Feed::open(&run, &id, Arc::new(SystemClock)).unwrap();
        let snapshot = format!(r#"{{"schema":3,"run_id":"{id}","graph":{GRAPH}}}"#);
        let snapshot: Snapshot = serde_json::from_str(&snapshot).unwrap();
        let writer = SnapshotWriter::start(&run, snapshot, Durability::Paced, Arc::new(Silent)).unwrap();
        writer.write_initial().unwrap();
        feed.append(&[Event::new(EventKind::RunStarted)]).unwrap();
        Leg { run, feed, writer, _lock: lock }
    }

    fn append(&self, kind: EventKind, node: &str, fill: impl FnOnce(&mut Event)) {
        let mut event = Event::of_node(kind, node);
        fill(&mut event);
        self.feed.append(&[event]).unwrap();
    }

    fn start(&self, node: &str) {
        self.append(EventKind::NodeStarted, node, |_| {});
    }

    /// Settles `node` after charges that the stream has already, the last one excepted.
    fn settle(&self, node: &str, earlier: Cost, last: Cost, mut record: Record) {
        let usage = Usage { input_tokens: 5, ..Usage::default() };
        record.usage = usage;
        record.set_cost(earlier + last);
        let passed = record.verdict == Verdict::Pass;
        self.append(if passed { EventKind::NodePassed } else { EventKind::NodeFailed }, node, |event| {
            record.verdict.as_str().clone_into(&mut event.verdict);
            event.detail.clone_from(&record.detail);
            event.provenance = record.provenance;
            event.cause = record.cause;
            event.judged = record.judged;
            event.set_charge(last, usage);
        });
        self.writer.record(&NodeId::parse(node).unwrap(), &record);
    }
}

fn usd(amount: f64) -> Cost {
    Cost::known(Money::from_usd(amount).unwrap())
}

fn node(id: &str) -> NodeId {
    NodeId::parse(id).unwrap()
}

/// A gate, a pass after a retry, a judged failure, one over its budget, and a node that never ran.
fn a_run(home: &Path) -> RunDir {
    let leg = Leg::open(home);
    leg.start("g");
    leg.append(EventKind::GateApproved, "g", |_| {});
    let gate = Record { verdict: Verdict::Pass, provenance: Some(Provenance::Approved), ..Record::default() };
    leg.append(EventKind::NodePassed, "g", |event| {
        "PASS".clone_into(&mut event.verdict);
        event.provenance = Some(Provenance::Approved);
    });
    leg.writer.record(&node("g"), &gate);
    leg.writer
        .set_gate(GateState { decisions: [("g".into(), "approve".into())].into(), ..GateState::default() });

    leg.start("lane/a");
    leg.append(EventKind::NodeRetried, "lane/a", |event| {
        event.retries = 1;
        event.set_charge(usd(0.01), Usage::default());
    });
    let path = leg.run.artifact(&node("lane/a"));
    artifact::persist(&path, b"done").unwrap();
    let artifact_path = path.to_str().unwrap().to_owned();
    let passed = Record { verdict: Verdict::Pass, artifact_path, ..Record::default() };
    let passed = Record { provenance: Some(Provenance::Verified), detail: "after 1 retry".into(), ..passed };
    leg.settle("lane/a", usd(0.01), usd(0.02), passed);

    leg.start("b");
    artifact::keep_failed(&leg.run, &node("b"), "no").unwrap();
    let judged = Record { verdict: Verdict::Fail, judged: true, ..Record::default() };
    leg.settle("b", Cost::ZERO, Cost::UNKNOWN, Record { cause: Some(Cause::VerifyFailed), ..judged });

    leg.start("c");
    let path = leg.run.artifact(&node("c"));
    artifact::persist(&path, b"dear").unwrap();
    let artifact_path = path.to_str().unwrap().to_owned();
    let over = Record {
        verdict: Verdict::Fail,
        cause: Some(Cause::BudgetExceeded),
        artifact_path,
        ..Record::default()
    };
    leg.settle("c", Cost::ZERO, usd(3.0), over);

    let skipped = vec![Skipped { node: "d".into(), because: "b".into(), why: SkipWhy::AncestorFailed }];
    leg.writer.set_skipped(skipped.clone());
    leg.writer.flush().unwrap();
    let finished =
        Event { outcome: "failed".into(), skipped_count: 1, skipped, ..Event::new(EventKind::RunFinished) };
    leg.feed.append(&[finished]).unwrap();
    leg.feed.close();
    leg.run
}

#[test]
fn a_run_keeps_every_promise() {
    let home = tempfile::tempdir().unwrap();
    check_run_dir(a_run(home.path()).path());
}

#[test]
fn a_leg_under_way_keeps_every_promise() {
    let home = tempfile::tempdir().unwrap();
    let leg = Leg::open(home.path());
    check_run_dir(leg.run.path());
    leg.start("b");
    leg.settle("b", Cost::ZERO, usd(0.5), Record { verdict: Verdict::Fail, ..Record::default() });
    leg.writer.flush().unwrap();
    check_run_dir(leg.run.path());
}

#[test]
fn a_leg_after_a_crash_keeps_every_promise() {
    let home = tempfile::tempdir().unwrap();
    let Leg { run, feed, .. } = Leg::open(home.path());
    feed.append(&[Event::of_node(EventKind::NodeStarted, "b")]).unwrap();
    let mut torn = fs::read(run.feed()).unwrap();
    torn.truncate(torn.len() - 9);
    fs::write(run.feed(), torn).unwrap();
    check_run_dir(run.path());
    let id = omg::record::RunId::parse(run.path().file_name().unwrap().to_str().unwrap()).unwrap();
    let feed = Feed::open(&run, &id, Arc::new(SystemClock)).unwrap();
    feed.append(&[Event::new(EventKind::RunStarted)]).unwrap();
    check_run_dir(run.path());
}

/// A file of the run, what to find in it, and what to put there.
type Damage = (&'static str, &'static str, &'static str);

#[test]
fn damage_is_noticed() {
    let cases: [(Damage, &str); 17] = [
        (("events.jsonl", "\"schema\":3", "\"schema\":4"), "schema is not 3"),
        (("events.jsonl", "\"event\":\"run_finished\"", "\"event\":\"run_ended\""), "no known kind"),
        (("events.jsonl", "\"event\":\"node_retried\"", "\"event\":\"node_passed\""), "verdict is not"),
        (("events.jsonl", "\"provenance\":\"verified\"", "\"provenance\":\"seen\""), "provenance"),
        (("events.jsonl", "\"cost_usd\":0.01", "\"cost_usd\":0.04"), "but streamed"),
        (("events.jsonl", "\"input_tokens\":5", "\"input_tokens\":6"), "but streamed"),
        (
            (
                "events.jsonl",
                "\"event\":\"node_started\",\"node_id\":\"b\"",
                "\"event\":\"node_started\",\"node_id\":\"d\"",
            ),
            "not running",
        ),
        (("events.jsonl", "\"event\":\"run_started\"}\n{", "\"event\":\"run_started\"}{"), "no JSON"),
        (
            ("events.jsonl", "\"outcome\":\"failed\"", "\"detail\":\"x\",\"outcome\":\"failed\",\"round\":1"),
            "out of order",
        ),
        (("events.jsonl", "\"skipped_count\":1", "\"skipped_count\":2"), "2 skipped"),
        (("events.jsonl", "\"retries\":1", "\"retries\":0"), "empty and not left out"),
        (("state.json", "\"schema\": 3", "\"schema\": 2"), "schema 3"),
        (("state.json", "\"verdict\": \"FAIL\"", "\"verdict\": \"PASS\""), "settled as"),
        (("state.json", "\"gate\": {", "\"gat\": {"), "gate is missing"),
        (("state.json", "\"id\": \"d\"", "\"id\": \"e\""), "skipped"),
        (("state.json", "\"judged\": true,", "\"judged\": false,"), "empty and not left out"),
        (("resume.lock", "oh-my-graph-lock 1", "omg-lock 1"), "marker"),
    ];
    let home = tempfile::tempdir().unwrap();
    let run = a_run(home.path());
    for ((file, from, to), wanted) in cases {
        let path = run.path().join(file);
        let whole = fs::read_to_string(&path).unwrap();
        assert!(whole.contains(from), "{file}: no {from}: {whole}");
        fs::write(&path, whole.replacen(from, to, 1)).unwrap();
        let found = violations(run.path());
        assert!(found.iter().any(|fault| fault.contains(wanted)), "{from} -> {to}: {found:#?}");
        fs::write(&path, whole).unwrap();
    }
    check_run_dir(run.path());
}

#[test]
fn stray_and_missing_files_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let run = a_run(home.path());
    let check = |wanted: &str| {
        let found = violations(run.path());
        assert!(found.iter().any(|fault| fault.contains(wanted)), "{wanted}: {found:#?}");
    };
    artifact::persist(&run.artifact(&node("b")), b"stale").unwrap();
    check("b: artifact there: true");
    artifact::remove(&run.artifact(&node("b"))).unwrap();
    artifact::keep_failed(&run, &node("lane/a"), "old").unwrap();
    check("lane/a: passed, and its failed reply");
    artifact::remove_failed(&run, &node("lane/a")).unwrap();
    fs::write(run.path().join("state.json.tmp-Ab3dEf"), "").unwrap();
    check("left over");
    check("mode 644");
    artifact::remove_leftovers(&run);
    artifact::remove(&run.artifact(&node("lane/a"))).unwrap();
    check("lane/a: artifact there: false");
}
