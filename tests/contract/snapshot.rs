//! The promises of `state.json`, alone and beside the stream.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::feed::{NodeStory, Story};
use super::{Faults, Paid, is_empty, is_ordered, text};

const KEYS: [&str; 17] = [
    "schema",
    "run_id",
    "runtime",
    "planning_cost_usd",
    "planning_cost_unknown",
    "planning_usage",
    "graph_source_path",
    "graph_sha256",
    "graph",
    "inputs",
    "continue_on_fail",
    "default_permission_mode",
    "tool_policies",
    "goal",
    "build_evidence",
    "nodes",
    "gate",
];
const ALWAYS: [&str; 5] = ["schema", "run_id", "runtime", "graph", "gate"];
const RECORD_KEYS: [&str; 12] = [
    "verdict",
    "session_id",
    "cost_usd",
    "cost_unknown",
    "usage",
    "budget_usd",
    "duration",
    "artifact_path",
    "detail",
    "round",
    "judged",
    "provenance",
];
const RECORD_ALWAYS: [&str; 5] = ["verdict", "session_id", "cost_usd", "duration", "artifact_path"];

/// Reads the snapshot at `path`. That there is none is no fault.
pub(super) fn read(path: &Path, run_id: &str, faults: &mut Faults) -> Option<Value> {
    let bytes = std::fs::read_to_string(path).ok()?;
    let Ok(snapshot) = serde_json::from_str::<Value>(&bytes) else {
        faults.0.push("state.json is no JSON".into());
        return None;
    };
    let pretty = serde_json::to_string_pretty(&snapshot).unwrap();
    faults.unless(pretty.lines().count() == bytes.lines().count(), || {
        "state.json: not laid out by two spaces".into()
    });
    faults.unless(bytes.starts_with("{\n  \"schema\": 3,\n"), || {
        "state.json: does not begin with schema 3".into()
    });
    faults.unless(bytes.ends_with("\n}"), || "state.json: does not end with its last brace".into());
    faults.unless(text(&snapshot, "run_id") == run_id, || format!("state.json: run_id is not {run_id}"));
    faults.unless(!text(&snapshot, "runtime").is_empty(), || "state.json: runtime is empty".into());
    check_keys("state.json", &snapshot, &KEYS, &ALWAYS, faults);
    check_keys("gate", &snapshot["gate"], &["paused_at", "decisions"], &[], faults);
    let ids = graph_ids(&snapshot);
    let names: Vec<&String> = nodes(&snapshot).map(|(id, _)| id).collect();
    faults.unless(names.is_sorted(), || "state.json: nodes are not sorted".into());
    for (id, record) in nodes(&snapshot) {
        faults.unless(ids.contains(id.as_str()), || format!("{id}: not a node of the graph"));
        check_record(id, record, faults);
    }
    let paused_at = text(&snapshot["gate"], "paused_at");
    faults.unless(paused_at.is_empty() || ids.contains(paused_at), || format!("{paused_at}: no such gate"));
    Some(snapshot)
}

/// Node ids and records.
pub(super) fn nodes(snapshot: &Value) -> impl Iterator<Item = (&String, &Value)> {
    snapshot["nodes"].as_object().into_iter().flatten()
}

/// Whether `id` is a gate of the graph.
pub(super) fn is_gate(snapshot: &Value, id: &str) -> bool {
    let nodes = snapshot["graph"]["nodes"].as_array().into_iter().flatten();
    nodes.clone().any(|node| text(node, "id") == id && text(node, "type") == "gate")
}

fn graph_ids(snapshot: &Value) -> BTreeSet<&str> {
    snapshot["graph"]["nodes"].as_array().into_iter().flatten().map(|node| text(node, "id")).collect()
}

fn check_keys(what: &str, object: &Value, order: &[&str], always: &[&str], faults: &mut Faults) {
    faults.unless(is_ordered(object, order), || format!("{what}: keys are out of order"));
    for key in always {
        faults.unless(!object[key].is_null(), || format!("{what}: {key} is missing"));
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        let may_be = always.contains(&key.as_str()) || !is_empty(value);
        faults.unless(may_be, || format!("{what}: {key} is empty and not left out"));
    }
}

fn check_record(id: &str, record: &Value, faults: &mut Faults) {
    check_keys(id, record, &RECORD_KEYS, &RECORD_ALWAYS, faults);
    let verdict = text(record, "verdict");
    faults.unless(["PASS", "FAIL", ""].contains(&verdict), || format!("{id}: no such verdict: {verdict}"));
    faults
        .unless(record["judged"].is_null() || verdict == "FAIL", || format!("{id}: judged, yet not a FAIL"));
    faults.unless(record["provenance"].is_null() || verdict == "PASS", || {
        format!("{id}: provenance without PASS")
    });
    faults.unless(record["duration"].as_i64().is_some_and(|ns| ns >= 0), || {
        format!("{id}: duration is no time")
    });
    faults.unless(!verdict.is_empty() || record["round"].as_u64() >= Some(1), || {
        format!("{id}: a marker without a round")
    });
}

/// Holds the snapshot against the stream.
pub(super) fn compare(snapshot: &Value, story: &Story, faults: &mut Faults) {
    if story.open {
        // The stream is written first, so the snapshot may be behind it and never ahead.
        for (id, record) in nodes(snapshot).filter(|(_, record)| !text(record, "verdict").is_empty()) {
            let is_told =
                story.nodes.get(id).is_some_and(|node| node.terminals.iter().any(|at| is_same(at, record)));
            faults.unless(is_told, || format!("{id}: the snapshot has a verdict that the stream has not"));
        }
        return;
    }
    let planning = Paid::of(
        &snapshot["planning_cost_usd"],
        &snapshot["planning_cost_unknown"],
        &snapshot["planning_usage"],
    );
    faults.unless(planning == story.planning, || {
        format!("planning: {planning:?} but streamed {:?}", story.planning)
    });
    for (id, node) in &story.nodes {
        compare_node(id, &snapshot["nodes"][id.as_str()], node, faults);
    }
    for (id, _) in nodes(snapshot) {
        faults.unless(story.nodes.contains_key(id), || format!("{id}: not in the stream"));
    }
    compare_skipped(snapshot, story, faults);
}

fn compare_node(id: &str, record: &Value, node: &NodeStory, faults: &mut Faults) {
    let paid = Paid::of(&record["cost_usd"], &record["cost_unknown"], &record["usage"]);
    let waits = node.held && record.is_null();
    faults.unless(waits || paid == node.paid, || format!("{id}: {paid:?} but streamed {:?}", node.paid));
    let Some(last) = node.terminals.last().filter(|_| !node.rearmed) else { return };
    faults.unless(is_same(last, record), || format!("{id}: settled as {record} but streamed {last}"));
}

/// Whether a terminal event and a record tell the same.
fn is_same(event: &Value, record: &Value) -> bool {
    let same_text = ["verdict", "session_id", "detail", "provenance"];
    same_text.into_iter().all(|key| text(event, key) == text(record, key))
        && event["round"].as_u64().unwrap_or(0) == record["round"].as_u64().unwrap_or(0)
}

/// Unless the run waits for somebody, every node either settled or is said to have been skipped.
fn compare_skipped(snapshot: &Value, story: &Story, faults: &mut Faults) {
    if story.outcome == "paused" || story.outcome.is_empty() {
        return;
    }
    let skipped = snapshot["skipped"].as_array().into_iter().flatten();
    let skipped: BTreeSet<&str> = skipped.map(|entry| text(entry, "node")).collect();
    let settled: BTreeSet<&str> = nodes(snapshot).map(|(id, _)| id.as_str()).collect();
    let all = graph_ids(snapshot);
    faults.unless(skipped.is_disjoint(&settled), || "a node settled and was skipped".into());
    faults.unless(&skipped | &settled == all, || {
        format!("of {all:?} settled {settled:?} and skipped {skipped:?}")
    });
    let counted = story.finished["skipped_count"].as_u64().unwrap_or(0);
    faults.unless(counted == skipped.len() as u64, || format!("{counted} skipped, but {skipped:?}"));
}
