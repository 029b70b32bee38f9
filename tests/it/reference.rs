//! Runs of many kinds, and the pages that say what programs find of them: the files of a run, the shapes of `--json`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::env::TestEnv;
use crate::lanes::repository;
use crate::markdown::code;

/// A node of every fate: passed, retried, judged to fail, skipped, in a worktree, waiting.
const FATES: &str = r#"
name: fates
on_fail: continue
nodes:
  - {id: fine, prompt: "@say PASS\n@bigerr 10", success_check: {exit_zero: true, verify: {command: echo ok}}}
  - {id: again, prompt: "@nocost\n@on 1 exit 1", retry: {max: 1, on: [nonzero_exit]}, budget_usd: 1}
  - {id: bad, prompt: "@say FAIL", success_check: {exit_zero: true, result_matches: '^PASS'}}
  - {id: below, depends_on: [bad], prompt: x}
  - {id: lane, worktree: lane, prompt: "@sh echo x > kept.txt"}
  - {id: loop, depends_on: [fine], prompt: "@reply-n no|yes", success_check: {result_matches: '^yes'}, feedback: {rerun: fine, max: 1}}
"#;
const WAITING: &str = "nodes: [{id: gate, type: gate}]";

/// A page, its fenced blocks included.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// Two runs that have ended, one of every fate and one that waits.
fn place() -> TestEnv {
    let env = repository();
    env.run_graph(FATES, &[]).exits(1);
    env.run_graph(WAITING, &[]).exits(2);
    env
}

fn keys<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.push(key);
            keys(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_json_is_told() {
    let env = place();
    env.write("wrong.yaml", "nodes: [{id: a, promt: x}]");
    env.write("odd.yaml", "nodes: [{id: a, prompt: x, depends_on: [b, b]}, {id: b, prompt: x}]");
    let run = env.runs()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let (commands, feed) = (page("CLI.md"), page("RUN-FEED.md"));
    let introduction = commands.split("\n## Scripts").next().unwrap();
    let code = [code(introduction), code(&feed)].concat();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let told: Vec<&str> = code.iter().flat_map(|code| code.split(|c| !is_word(c))).collect();
    for words in [
        &["lint", "wrong.yaml"][..],
        &["lint", "odd.yaml"],
        &["runs", "list"],
        &["show", &run],
        &["show", "latest"],
        &["show", &run, "fine"],
        &["show", &run, "again"],
        &["show", &run, "bad"],
        &["salvage", &run],
        &["stop", &run],
        &["runs", "prune", "--keep", "1", "--dry-run"],
    ] {
        let ran = env.omg(&[words, &["--json"]].concat());
        let document: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert_eq!(document["schema"], 1, "{words:?}");
        let mut found = Vec::new();
        keys(&document, &mut found);
        let silent: Vec<&str> = found.into_iter().filter(|key| !told.contains(key)).collect();
        assert!(silent.is_empty(), "omg {}: no page tells of {silent:?}", words.join(" "));
    }
}

#[test]
fn every_file_of_a_run_is_told() {
    let env = place();
    env.write("slow.yaml", "nodes: [{id: a, type: command, command: sleep 601}]");
    env.omg(&["run", "slow.yaml", "--detach"]).exits(0);
    env.omg(&["stop", "latest"]).exits(0);
    env.omg(&["rehearse", "g.yaml", "--script", env.write("s.yaml", "nodes: {}").to_str().unwrap()]).exits(2);
    let page = page("RUN-FEED.md");
    for run in env.runs() {
        for entry in fs::read_dir(run).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let told = name.ends_with(".out") || page.contains(&format!("\n  {name}"));
            assert!(told, "the page of a run's files does not list {name}");
        }
    }
}
