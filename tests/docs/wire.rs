//! The page of a run's files names every field that is written. The values here list every field of their types, so that
//! a new one does not compile until it is put here, and does not pass until the page tells it.

use omg::graph::{Cause, Provenance};
use omg::record::event::{Held, SkipWhy, Skipped};
use omg::record::snapshot::{BoundsState, EvidenceState, GateState, GoalState, PolicyState};
use omg::record::{Event, EventKind, Record, Snapshot, Usage, Verdict};
use serde_json::Value;

use crate::markdown::code;
use crate::{section, text};

fn words() -> Vec<String> {
    vec!["x".to_owned()]
}

fn usage() -> Usage {
    Usage { input_tokens: 1, cached_input_tokens: 1, output_tokens: 1, reasoning_output_tokens: 1 }
}

fn skipped() -> Vec<Skipped> {
    vec![Skipped { node: "x".into(), because: "y".into(), why: SkipWhy::Halted }]
}

fn event() -> Event {
    Event {
        schema: 3,
        ts: "x".into(),
        run_id: "x".into(),
        event: EventKind::RunFinished,
        node_id: "x".into(),
        verdict: "x".into(),
        cost_usd: Some(1.0),
        cost_unknown: true,
        usage: usage(),
        session_id: "x".into(),
        retries: 1,
        detail: "x".into(),
        round: 1,
        provenance: Some(Provenance::Verified),
        outcome: "x".into(),
        phase: "x".into(),
        duration: 1,
        artifact_path: "x".into(),
        artifact_text: "x".into(),
        judged: true,
        cause: Some(Cause::Timeout),
        leaky: true,
        budget_usd: Some(1.0),
        rehearsal: true,
        held: vec![Held { node: "x".into(), cost_usd: Some(1.0), cost_unknown: true, usage: usage() }],
        skipped_count: 1,
        skipped: skipped(),
        held_until: "x".into(),
    }
}

fn record() -> Record {
    Record {
        verdict: Verdict::Fail,
        session_id: "x".into(),
        cost_usd: 1.0,
        cost_unknown: true,
        usage: usage(),
        budget_usd: Some(1.0),
        duration: 1,
        artifact_path: "x".into(),
        detail: "x".into(),
        round: 1,
        judged: true,
        provenance: Some(Provenance::Verified),
        cause: Some(Cause::Timeout),
        leaky: true,
        retries: 1,
        unknown_charges: 1,
    }
}

fn policy() -> PolicyState {
    PolicyState {
        allowed_tools: words(),
        disallowed_tools: words(),
        tools: Some(words()),
        setting_sources: Some("x".into()),
        strict_mcp_config: true,
        plugin_dirs: words(),
    }
}

fn snapshot() -> Snapshot {
    let paired = || [("x".to_owned(), "approve".to_owned())].into();
    Snapshot {
        schema: 3,
        run_id: "x".into(),
        runtime: "claude".into(),
        planning_cost_usd: 1.0,
        planning_cost_unknown: true,
        planning_usage: usage(),
        graph_source_path: "x".into(),
        graph_sha256: "x".into(),
        // The keys of a graph are those of the page of the graph file.
        graph: serde_json::value::to_raw_value(&Value::Null).unwrap(),
        inputs: Default::default(),
        continue_on_fail: true,
        default_permission_mode: "plan".into(),
        tool_policies: [("x".to_owned(), policy())].into(),
        goal: Some(GoalState {
            text: "x".into(),
            cycle: 1,
            max_cycles: 2,
            first_run_id: "x".into(),
            budget_usd: Some(1.0),
        }),
        build_evidence: Some(EvidenceState {
            answer: "attached".into(),
            declared_by: "x".into(),
            signals: words(),
        }),
        nodes: Default::default(),
        gate: GateState { paused_at: "x".into(), decisions: paired(), waiting: words() },
        cwd: "x".into(),
        bounds: BoundsState { max_usd: Some(1.0), max_executions: Some(1), max_wall: Some("1h".into()) },
        skipped: skipped(),
    }
}

/// The keys of a value and of everything in it.
fn keys(value: &Value, found: &mut Vec<String>) {
    match value {
        // "x" is the name of something, not a field.
        Value::Object(members) => members.iter().filter(|(key, _)| *key != "x").for_each(|(key, value)| {
            found.push(key.clone());
            keys(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// Stops the test unless `text` names each key of `value` as code.
#[track_caller]
fn names_all(text: &str, value: &impl serde::Serialize) {
    let mut found = Vec::new();
    keys(&serde_json::to_value(value).unwrap(), &mut found);
    let code = code(text);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let told = |key: &str| code.iter().any(|code| code.split(|c| !is_word(c)).any(|word| word == key));
    let silent: Vec<&String> = found.iter().filter(|key| !told(key)).collect();
    assert!(silent.is_empty(), "RUN-FEED.md does not name {silent:?}");
}

#[test]
fn every_field_of_the_feed_is_named() {
    // What tokens consist of is told with the records.
    names_all(
        &[section("RUN-FEED.md", "events.jsonl"), section("RUN-FEED.md", "state.json")].concat(),
        &event(),
    );
}

#[test]
fn every_field_of_the_snapshot_is_named() {
    let section = section("RUN-FEED.md", "state.json");
    names_all(&section, &snapshot());
    names_all(&section, &record());
}

#[test]
fn every_event_and_reason_is_named() {
    let page = text("RUN-FEED.md");
    let kinds = [
        EventKind::RunStarted,
        EventKind::NodeStarted,
        EventKind::NodePassed,
        EventKind::NodeFailed,
        EventKind::NodeRetried,
        EventKind::RunFinished,
        EventKind::GatePaused,
        EventKind::GateApproved,
        EventKind::GateRejected,
    ];
    kinds.iter().for_each(|kind| assert!(page.contains(&format!("`{}`", kind.as_str())), "{kind:?}"));
    for why in [SkipWhy::AncestorFailed, SkipWhy::Rejected, SkipWhy::Halted, SkipWhy::Interrupted] {
        let word = serde_json::to_value(why).unwrap();
        assert!(page.contains(&format!("`{}`", word.as_str().unwrap())), "{why:?}");
    }
}
