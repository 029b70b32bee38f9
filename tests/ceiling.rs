//! No planner's reply, however it is changed, becomes a node outside its ceiling.

#![expect(clippy::unwrap_used, reason = "replies that cannot be read are a failed test")]

#[path = "fuzz/ceiling.rs"]
mod ceiling;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

/// A plan with a loop and everything that a plan may say.
fn plan() -> Value {
    let node = |id: &str, parents: &[&str], prompt: &str| json!({"id": id, "depends_on": parents, "prompt": prompt, "allowed_tools": ["Read", "Bash(git *)"]});
    let mut check = node("check", &["api", "docs"], "Judge {{ artifacts.api }}.");
    check["feedback"] = json!({"rerun": "plan", "max": 2});
    check["success_check"] = json!({"result_matches": "PASS"});
    check["retry"] = json!({"max": 1, "on": ["timeout"]});
    let plan = node("plan", &[], "Plan on {{ inputs.branch }}. {{ feedback.check }}");
    json!({"name": "g", "version": "1", "nodes": [plan, node("api", &["plan"], "Mend."), node("docs", &["plan"], "Write."), check]})
}

#[test]
fn the_plan_that_is_changed_is_one() {
    assert!(ceiling::holds(&plan().to_string()));
}

#[test]
fn every_kept_reply_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/replies");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 5, "the replies were not found");
    for file in files {
        let reply = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        if std::panic::catch_unwind(|| ceiling::holds(&reply)).is_err() {
            panic!("{}", file.display());
        }
    }
}

/// Values that a mutation puts somewhere.
fn value() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "",
        " ",
        "a",
        "work",
        "second",
        "check",
        "gate",
        "command",
        "claude-run",
        "session",
        "artifact",
        "bypassPermissions",
        "auto",
        "dontAsk",
        "Bash",
        "Bash(*)",
        "Bash(git *)",
        "Read",
        "Skill",
        "/etc",
        "1h",
        "pr-publish",
        "true",
        "a/b",
        "{{ feedback.check }}",
        "{{ inputs.x }}",
        "<<",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..6).prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let mut keys: Vec<String> = omg::load::known_keys().map(str::to_owned).collect();
    keys.extend(["<<", "x-a", "Use", "CWD"].map(str::to_owned));
    prop::sample::select(keys)
}

/// Puts values at places of the graph: at its top, in a node, in a node's mapping.
fn mutated(mut graph: Value, changes: Vec<(u8, usize, String, Value)>) -> Value {
    for (depth, at, key, value) in changes {
        let nodes = graph["nodes"].as_array().map_or(0, Vec::len);
        match (depth, nodes) {
            (0, _) | (_, 0) => graph[&key] = value,
            (1, _) => drop(graph["nodes"][at % nodes].as_object_mut().map(|node| node.insert(key, value))),
            (_, _) => {
                let node = graph["nodes"][at % nodes].as_object_mut();
                let inner =
                    node.and_then(|node| node.values_mut().filter_map(Value::as_object_mut).nth(at % 2));
                drop(inner.map(|inner| inner.insert(key, value)));
            }
        }
        if !graph["nodes"].is_array() {
            break;
        }
    }
    graph
}

proptest! {
    #[test]
    fn no_graph_gets_past_the_ceiling(
        changes in prop::collection::vec((0_u8..3, 0_usize..4, key(), value()), 0..5),
    ) {
        let graph = mutated(plan(), changes);
        ceiling::holds(&graph.to_string());
    }

    #[test]
    fn no_text_gets_past_the_ceiling(cuts in prop::collection::vec((any::<prop::sample::Index>(), "[\"{}:,\\[\\]a-z\\\\ ]{0,3}"), 0..4)) {
        let mut text = plan().to_string();
        for (at, patch) in cuts {
            let at = at.index(text.len());
            if text.is_char_boundary(at) {
                text.replace_range(at..(at + 1).min(text.len()), &patch);
            }
        }
        ceiling::holds(&text);
    }
}
