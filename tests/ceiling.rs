//! No planner's reply, however it is changed, becomes a node outside its ceiling.

#![expect(clippy::unwrap_used, reason = "replies that cannot be read are a failed test")]

#[path = "fuzz/ceiling.rs"]
mod ceiling;
#[path = "ceiling/fates.rs"]
mod fates;

use std::fs;
use std::path::Path;

use fates::{Fate, Row, plan, rows};
use omg::load::{Source, load};
use omg::plan::reply::{Rejected, read};
use proptest::prelude::*;
use serde_json::{Map, Value};

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

/// Why `reply` is refused.
fn refusals(reply: &Value) -> String {
    match read(&reply.to_string(), &ceiling::terms()) {
        Err(Rejected::Refused { refusals, .. }) => refusals.join("\n"),
        other => panic!("{reply}: {other:?}"),
    }
}

#[test]
fn every_key_that_a_graph_may_hold_has_a_fate_in_a_plan() {
    let mut paths: Vec<&str> = rows().iter().map(|row| row.path).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut words: Vec<&str> = paths.iter().map(|path| path.rsplit('.').next().unwrap_or(path)).collect();
    let mut known: Vec<&str> = omg::load::known_keys().collect();
    words.sort_unstable();
    known.sort_unstable();
    assert_eq!(words, known, "a key is new, or gone: what may a plan say of it? See fates.rs");
}

#[test]
fn every_key_of_a_plan_meets_its_fate() {
    for row in rows() {
        let graph = row.applied(plan());
        let source = Source::from_bytes(Path::new("graph.json"), graph.to_string().into_bytes()).unwrap();
        let by_hand = load(&source).is_ok();
        match row.fate {
            Fate::Taken => assert!(ceiling::holds(&graph.to_string()), "{}: {graph}", row.path),
            Fate::Refused(why) => {
                assert!(by_hand, "{}: a person may write it, or it shows nothing: {graph}", row.path);
                let told = refusals(&graph);
                assert!(told.contains(why), "{}: {why}: {told}", row.path);
            }
            Fate::Unreadable(why) => {
                let told = refusals(&graph);
                assert!(!by_hand && told.contains(why), "{}: {why}: {told}", row.path);
            }
        }
    }
}

/// The keys of a patch that are set, as members of an object in JSON.
fn members(patch: &Value, spelled: impl Fn(&str) -> String) -> String {
    let set = patch.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    set.map(|(key, value)| format!("{}:{value},", spelled(key))).collect()
}

/// The plan, and the place in it after the brace that opens what `row` is about.
fn opened(row: &Row) -> (String, usize) {
    let text = plan().to_string();
    let (start, node) = (text.find('{').unwrap() + 1, format!("\"id\":\"{}\"", row.node));
    let at =
        if row.node.is_empty() { start } else { text[..text.find(&node).unwrap()].rfind('{').unwrap() + 1 };
    (text, at)
}

/// Rows that a plan may not hold and that set a key which the plan does not have.
fn planted() -> impl Iterator<Item = Row> {
    rows().into_iter().filter(|row| !matches!(row.fate, Fate::Taken) && !row.replaces())
}

#[test]
fn a_key_that_is_spelled_otherwise_is_the_same_key_or_none() {
    let escaped = |key: &str| format!("\"\\u{:04x}{}\"", u32::from(key.as_bytes()[0]), &key[1..]);
    let variants: [fn(&str) -> String; 6] = [
        |key| format!("\"{}\"", key.to_uppercase()),
        |key| format!("\"{}{}\"", key[..1].to_uppercase(), &key[1..]),
        |key| format!("\" {key}\""),
        |key| format!("\"{key} \""),
        |key| format!("\"{}\"", key.replace('_', "-") + "\u{200b}"),
        |key| format!("\"!!str {key}\""),
    ];
    for row in planted() {
        let (text, at) = opened(&row);
        let with = |members: String| format!("{}{members}{}", &text[..at], &text[at..]);
        assert!(!ceiling::holds(&with(members(&row.patch, escaped))), "{}", row.path);
        for variant in variants {
            assert!(!ceiling::holds(&with(members(&row.patch, variant))), "{}", row.path);
        }
    }
}

#[test]
fn of_a_key_that_stands_twice_what_is_checked_is_what_runs() {
    for row in planted() {
        let (text, at) = opened(&row);
        let bad = members(&row.patch, |key| format!("\"{key}\""));
        let none: String =
            row.patch.as_object().unwrap().keys().map(|key| format!("\"{key}\":null,")).collect();
        let with = |members: [&str; 2]| format!("{}{}{}", &text[..at], members.concat(), &text[at..]);
        assert!(!ceiling::holds(&with([&none, &bad])), "{}: the last one counts", row.path);
        // Nothing is said of whether it is a plan, but that it is none of its ceiling's business if it is one.
        ceiling::holds(&with([&bad, &none]));
    }
}

#[test]
fn what_is_merged_or_nested_elsewhere_brings_no_key() {
    for row in planted() {
        let set: Map<String, Value> = row
            .patch
            .as_object()
            .unwrap()
            .clone()
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect();
        for key in ["<<", "x-more", "<<: *a", "&a", "extends", "defaults", "node", "nodes[0]"] {
            let mut graph = plan();
            row.place(&mut graph)[key] = set.clone().into();
            let is_ignored = row.node.is_empty() && key == "x-more";
            assert_eq!(ceiling::holds(&graph.to_string()), is_ignored, "{} below {key}", row.path);
        }
    }
}

#[test]
fn what_yaml_would_make_of_a_string_stays_a_string() {
    for trick in [
        "cwd: /etc",
        "x\ncwd: /etc\nsetup: make",
        "x\r\ncwd: /etc",
        "x\u{85}cwd: /etc",
        "x\u{2028}cwd: /etc\u{2029}",
        "\u{feff}x",
        "---\nnodes: []\n...",
        "!!binary aGk=",
        "!include /etc/passwd",
        "&a x",
        "*a",
        "| \n  x",
        "x\", \"cwd\": \"/etc",
        "x # no comment",
        "yes\t\u{1b}[2J",
        "%YAML 1.2",
        "{{ artifacts.plan }} ${HOME} $(id)",
    ] {
        let mut graph = plan();
        graph["nodes"][1]["prompt"] = trick.into();
        ceiling::holds(&graph.to_string());
        let accepted =
            read(&graph.to_string(), &ceiling::terms()).unwrap_or_else(|why| panic!("{trick:?}: {why:?}"));
        let read = accepted.raw.nodes[1].prompt.as_deref().unwrap();
        assert_eq!(read, trick, "{trick:?}");
    }
}

/// Values of every kind, as deep as what they are put into.
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
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
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

/// The places of a graph where a value is: those within a value come after it.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(item, value)| places(value, &format!("{at}/{item}"), found));
        }
        _ => {}
    }
}

/// A change of a graph.
#[derive(Clone, Debug)]
enum Change {
    /// A key with a value that it may be read with, whoever may write it, at some node.
    Known(Row, prop::sample::Index),
    /// Any value anywhere: beside what is there, under this key, or in its place.
    Any(prop::sample::Index, String, Value, bool),
}

fn change() -> impl Strategy<Value = Change> {
    let row = prop::sample::select(rows());
    prop_oneof![
        2 => (row, any::<prop::sample::Index>()).prop_map(|(row, at)| Change::Known(row, at)),
        1 => (any::<prop::sample::Index>(), key(), value(), any::<bool>())
            .prop_map(|(at, key, value, beside)| Change::Any(at, key, value, beside)),
    ]
}

fn changed(mut graph: Value, change: &Change) -> Value {
    match change {
        Change::Known(row, at) => {
            let nodes = graph["nodes"].as_array().map_or(1, |nodes| nodes.len().max(1));
            row.applied_to(graph, at.index(nodes))
        }
        Change::Any(at, key, value, beside) => {
            let mut found = Vec::new();
            places(&graph, "", &mut found);
            match graph.pointer_mut(&found[at.index(found.len())]).unwrap() {
                Value::Object(map) if *beside => drop(map.insert(key.clone(), value.clone())),
                Value::Array(items) if *beside => items.push(value.clone()),
                place => *place = value.clone(),
            }
            graph
        }
    }
}

fn any_row(taken: bool) -> impl Strategy<Value = Row> {
    let is_wanted = |row: &Row| matches!(row.fate, Fate::Taken) == taken;
    prop::sample::select(rows().into_iter().filter(is_wanted).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn no_graph_gets_past_the_ceiling(changes in prop::collection::vec(change(), 0..4)) {
        ceiling::holds(&changes.iter().fold(plan(), changed).to_string());
    }

    /// What may be said makes nothing else sayable.
    #[test]
    fn no_company_makes_a_refused_key_a_taken_one(
        taken in prop::collection::vec(any_row(true), 0..6),
        refused in any_row(false),
        node in any::<prop::sample::Index>(),
    ) {
        let graph = taken.iter().fold(plan(), |graph, row| row.applied(graph));
        let at = node.index(graph["nodes"].as_array().map_or(0, Vec::len));
        let graph = refused.applied_to(graph, at);
        prop_assert!(!ceiling::holds(&graph.to_string()), "{}: {graph}", refused.path);
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
