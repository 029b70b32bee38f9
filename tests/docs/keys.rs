//! The page of the graph file: its tables name the keys of the model and no other, for the kinds that take them, with
//! their words, defaults and bounds.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use omg::graph::node::{Handoff, PermissionMode, REPEATS_MAX, VERIFY_TIMEOUT_MAX};
use omg::graph::node::{KINDS, TIMEOUT_DEFAULT, VERIFY_TIMEOUT_DEFAULT};
use omg::graph::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, Cause, OnFail, Provenance, id};
use omg::load::Source;

use crate::{section, text};

/// The rows of the first table of a section, its head left out, as cells.
fn rows(title: &str) -> Vec<Vec<String>> {
    let section = section("GRAPH.md", title);
    let lines =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let inside = line.replace("\\|", "¦");
        inside.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    lines.skip(2).map(cells).collect()
}

/// The words in backticks of a cell.
fn words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The row of a table whose first cell names `key`.
fn row(title: &str, key: &str) -> String {
    let found = rows(title).into_iter().find(|cells| words(&cells[0]).contains(&key));
    found.unwrap_or_else(|| panic!("no row for {key}")).join(" | ")
}

#[test]
fn every_row_of_the_graph_page_is_a_key() {
    let known: BTreeSet<&str> = omg::load::known_keys().collect();
    for title in ["Top level", "Nodes", "Success checks"] {
        for cells in rows(title) {
            for key in words(&cells[0]) {
                let last = key.split(": ").next().unwrap().rsplit('.').next().unwrap();
                assert!(known.contains(last), "{title}: there is no key {key}");
            }
        }
    }
}

/// Keys that say nothing about a kind: every node has the first, and the others are gone before there is a kind.
const APART: [&str; 3] = ["id", "use", "with"];

/// A value for each key of a node that waits for the prompt node `other`.
const SAMPLES: [(&str, &str); 19] = [
    ("depends_on", "depends_on: [other]"),
    ("prompt", "prompt: x"),
    ("command", "command: x"),
    ("cwd", "cwd: x"),
    ("worktree", "worktree: x"),
    ("setup", "worktree: x, setup: x"),
    ("timeout", "timeout: 1m"),
    ("retry", "retry: {max: 1, on: [timeout]}"),
    ("success_check", "success_check: {exit_zero: true}"),
    ("feedback", "depends_on: [other], feedback: {rerun: other, max: 1}"),
    ("leave_running", "leave_running: true"),
    ("allowed_tools", "allowed_tools: [Read]"),
    ("permission_mode", "permission_mode: plan"),
    ("budget_usd", "budget_usd: 1"),
    ("handoff", "depends_on: [other], handoff: session"),
    ("agent", "agent: x"),
    ("model", "model: x"),
    ("effort", "effort: high"),
    ("type", ""),
];

/// What is wrong with a node of a kind that also says `sample`.
fn refusal(kind: &str, sample: &str) -> Option<String> {
    let own = match kind {
        "command" if !sample.starts_with("command") => "type: command, command: x",
        "prompt" if !sample.starts_with("prompt") => "prompt: x",
        "prompt" => "type: claude-run",
        kind => &format!("type: {kind}"),
    };
    let node = [own, sample].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let text = format!("nodes:\n  - {{id: other, prompt: x}}\n  - {{id: it, {node}}}\n");
    let source = Source::from_bytes(Path::new("g.yaml"), text.into_bytes()).unwrap();
    omg::load::load(&source).err().map(|problems| problems.lines().join("; "))
}

#[test]
fn a_key_is_taken_by_the_kinds_of_its_row() {
    for cells in rows("Nodes") {
        for key in words(&cells[0]).into_iter().filter(|key| !APART.contains(key)) {
            let (_, sample) =
                SAMPLES.iter().find(|(known, _)| *known == key).unwrap_or_else(|| panic!("try {key}"));
            for kind in ["prompt", "command"] {
                let listed = cells[2] == "all" || cells[2].split(", ").any(|word| word == kind);
                let refusal = refusal(kind, sample);
                assert_eq!(refusal.is_none(), listed, "{key} of a {kind} node: {refusal:?}");
            }
            let allowed = !["command", "feedback"].contains(&key);
            assert_eq!(refusal("gate", sample).is_none(), allowed, "{key} of a gate");
        }
    }
}

/// Stops the test unless the row says every one of `words`.
#[track_caller]
fn says(title: &str, key: &str, words: &[&str]) {
    let row = row(title, key);
    for word in words {
        assert!(row.contains(word), "the row of {key} does not say {word}: {row}");
    }
}

#[test]
fn words_defaults_and_bounds_are_those_of_the_model() {
    let code = |word: &str| format!("`{word}`");
    let minutes = |time: Duration| format!("{}m", time.as_secs() / 60);
    says(
        "Top level",
        "concurrency",
        &[&format!("above {CONCURRENCY_MAX}"), &format!("| {CONCURRENCY_DEFAULT}")],
    );
    OnFail::ALL.iter().for_each(|choice| says("Top level", "on_fail", &[&code(choice.as_str())]));
    says("Nodes", "id", &[&format!("{} bytes", id::SEGMENT_BYTES_MAX)]);
    KINDS.iter().for_each(|kind| says("Nodes", "type", &[&code(kind)]));
    PermissionMode::ALL.iter().for_each(|mode| says("Nodes", "permission_mode", &[&code(mode.as_str())]));
    Handoff::ALL.iter().for_each(|handoff| says("Nodes", "handoff", &[&code(handoff.as_str())]));
    says("Nodes", "timeout", &[&format!("default {}", minutes(TIMEOUT_DEFAULT))]);
    says("Nodes", "retry", &[&format!("0 to {REPEATS_MAX}")]);
    says("Nodes", "feedback", &[&format!("1 to {REPEATS_MAX}")]);
    let checks = section("GRAPH.md", "Success checks");
    let verify = [VERIFY_TIMEOUT_DEFAULT, VERIFY_TIMEOUT_MAX].map(minutes);
    assert!(checks.contains(&format!("default {}, at most {}", verify[0], verify[1])), "{verify:?}");
}

#[test]
fn the_causes_of_a_retry_are_those_of_the_table() {
    let listed: BTreeSet<String> =
        rows("Failures").into_iter().map(|cells| words(&cells[0])[0].to_owned()).collect();
    let known: BTreeSet<String> = Cause::RETRYABLE.iter().map(|cause| cause.as_str().to_owned()).collect();
    assert_eq!(listed, known);
    let rest = section("GRAPH.md", "Failures");
    for cause in [Cause::Cancelled, Cause::Interrupted, Cause::Setup, Cause::Rejected] {
        assert!(rest.contains(&format!("`{}`", cause.as_str())), "{cause:?}");
    }
}

#[test]
fn every_provenance_is_told() {
    let pages = [text("RUN-FEED.md"), text("guide/evidence.md")];
    for way in [Provenance::Verified, Provenance::SelfReported, Provenance::ExitOnly, Provenance::Approved] {
        assert!(pages.iter().all(|page| page.contains(way.as_str())), "{way:?}");
    }
}
