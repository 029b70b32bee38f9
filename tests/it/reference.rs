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
/// A fragment of two nodes, one of which is granted a tool, with a point that nothing uses.
const PAIR: &str = r#"
fragment: pair
description: two nodes
substitutions: [x]
nodes: [{id: p, prompt: x, allowed_tools: [Read]}, {id: q, prompt: x, depends_on: [p]}]
exit: q
"#;
const WAITING: &str = "nodes: [{id: gate, type: gate}]";

/// A page, its fenced blocks included.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// Two runs that have ended, one of every fate and one that waits.
fn place() -> TestEnv {
    let env = repository();
    env.write("fates.yaml", FATES);
    env.omg(&["run", "fates.yaml"]).exits(1);
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

/// Files that are wrong, odd, cited and tested in as many ways as the shapes have keys for.
fn files(env: &TestEnv) {
    for (name, text) in [
        ("wrong.yaml", "nodes: [{id: a, promt: x}]"),
        ("odd.yaml", "nodes: [{id: a, prompt: x, depends_on: [b, b]}, {id: b, prompt: x}]"),
        ("fragments/pair.yaml", PAIR),
        ("fragments/bad.yaml", "fragment: bad\ndescription: d\nnode: {promt: x}\n"),
        ("cites.yaml", "nodes: [{id: a, use: pair, with: {x: y}}]"),
        ("overrides.yaml", "nodes: [{id: a, use: one, timeout: 2m}]"),
        (
            "fragments/one.yaml",
            "fragment: one\ndescription: d\nnode: {prompt: x, timeout: 1m, allowed_tools: [Read]}\n",
        ),
        ("cites-bad.yaml", "nodes: [{id: a, use: bad}]"),
        ("fails.omgtest.yaml", "graph: odd.yaml\ntests: [{name: t, nodes: {a: {exit: 1}}}]"),
        ("bad.omgtest.yaml", "graph: odd.yaml\ntests: [{name: t, nodez: {}}]"),
        ("lost.omgtest.yaml", "graph: none.yaml\ntests: [{name: t}]"),
        (
            "drawn.yaml",
            "nodes: [{id: a, prompt: x, worktree: w}, {id: g, type: gate, depends_on: [a]}, {id: b, prompt: x, \
             depends_on: [g], budget_usd: 1}, {id: c, prompt: x, depends_on: [a, b], success_check: \
             {result_matches: y}, feedback: {rerun: b, max: 1}}]",
        ),
    ] {
        env.write(name, text);
    }
}

#[test]
fn every_key_of_json_is_told() {
    let env = place();
    files(&env);
    let run = env.runs()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let (commands, feed) = (page("CLI.md"), page("RUN-FEED.md"));
    let introduction = commands.split("\n## Scripts").next().unwrap();
    let code = [code(introduction), code(&feed)].concat();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let told: Vec<&str> = code.iter().flat_map(|code| code.split(|c| !is_word(c))).collect();
    for (schema, words) in [
        (2, "lint wrong.yaml odd.yaml cites.yaml cites-bad.yaml overrides.yaml none.yaml --json"),
        (1, "graph drawn.yaml --format json"),
        (1, "graph --run RUN --format json"),
        (1, "estimate drawn.yaml --json"),
        (1, "estimate fates.yaml --json"),
        (1, "test . --keep --json"),
        (1, "runs list --json"),
        (1, "show RUN --json"),
        (1, "show latest --json"),
        (1, "export RUN --format json"),
        (1, "export latest --format json"),
        (1, "show RUN fine --json"),
        (1, "show RUN again --json"),
        (1, "show RUN bad --json"),
        (1, "salvage RUN --json"),
        (1, "stop RUN --json"),
        (1, "runs prune --keep 1 --dry-run --json"),
    ] {
        let ran = env.omg(&words.replace("RUN", &run).split(' ').collect::<Vec<_>>());
        let document: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("omg {words}: {error}"));
        assert_eq!(document["schema"], schema, "omg {words}");
        let mut found = Vec::new();
        keys(&document, &mut found);
        let silent: Vec<&str> = found.into_iter().filter(|key| !told.contains(key)).collect();
        assert!(silent.is_empty(), "omg {words}: no page tells of {silent:?}");
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
