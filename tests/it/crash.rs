//! The engine is killed at any moment of a run with retries, a loop, a gate and a lane, again and again, and the run is
//! driven to its end (cases D5, D6, G3; `ARCHITECTURE` 5.4).
//!
//! `OMG_CRASHES=500 cargo nextest run crash` looks at more moments.

use std::collections::BTreeMap;

use rustix::process::Signal;

use crate::contract;
use crate::env::TestEnv;

const GRAPH: &str = r#"
concurrency: 3
nodes:
  - {id: first, prompt: "@say first"}
  - {id: tool, type: command, depends_on: [first], command: "cat $OMG_ARTIFACT_FIRST"}
  - {id: flaky, depends_on: [first], prompt: "@on 1 exit 1\n@say steady", retry: {max: 2, on: [nonzero_exit]}}
  - {id: impl, depends_on: [first], prompt: "@say work {{ feedback.review }}"}
  - id: review
    depends_on: [impl]
    prompt: "@reply-n no|not yet|ship it|ship it|ship it|ship it"
    success_check: {result_matches: "^ship"}
    feedback: {rerun: impl, max: 6}
  - {id: lane, depends_on: [first], worktree: lane, prompt: "@sh echo change > made; git add made; git commit -qm made\n@say committed"}
  - {id: gate, type: gate, depends_on: [flaky, review]}
  - {id: last, depends_on: [gate, tool, lane], prompt: "@say last"}
"#;

fn crashes() -> u64 {
    std::env::var("OMG_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(120)
}

/// When an engine is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So many microseconds after its start.
    Time(u64),
    /// As soon as the feed has so many lines: every one is a durable step, and what follows it may be lost.
    Lines(usize),
}

fn repository() -> TestEnv {
    let env = TestEnv::new();
    for words in [
        &["init", "-q"][..],
        &["config", "user.name", "t"],
        &["config", "user.email", "t@t.invalid"],
        &["commit", "-q", "--allow-empty", "-m", "base"],
    ] {
        let mut git = std::process::Command::new("git");
        assert!(git.args(words).current_dir(env.work()).status().unwrap().success());
    }
    env
}

/// The feed, but for a line that a kill cut off in the middle.
fn events(env: &TestEnv) -> Vec<serde_json::Value> {
    let feed = std::fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap_or_default();
    feed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Runs or resumes until the run has passed, killing the engine after `moments` of legs in turn.
fn drive(env: &TestEnv, moments: &[Moment]) {
    env.write("g.yaml", GRAPH);
    let mut waits = false;
    for leg in 0..40 {
        let words: &[&str] = match (leg, waits) {
            (0, _) => &["run", "g.yaml"],
            (_, true) => &["resume", "latest", "--approve", "gate"],
            (_, false) => &["resume", "latest", "--retry-failed"],
        };
        let mut engine = env.start(words);
        match moments.get(leg) {
            // The moment is the test's input: any is good.
            Some(Moment::Time(micros)) => std::thread::sleep(std::time::Duration::from_micros(*micros)),
            Some(Moment::Lines(lines)) => {
                while !engine.is_over() && (env.runs().is_empty() || env.feed_lines() < *lines) {
                    std::thread::yield_now();
                }
            }
            None => {}
        }
        if moments.get(leg).is_some() && !engine.is_over() {
            engine.signal(Signal::KILL);
        }
        let ran = engine.wait();
        // What to do next is what the run itself says: its last event, or the answer to a retry.
        waits = ran.stdout.contains("--approve gate")
            || !env.runs().is_empty() && events(env).last().is_some_and(|event| event["outcome"] == "paused");
        env.until("nothing of it is left", || env.pids_of("claude").is_empty());
        if env.runs().is_empty() || !env.run_dir().join("state.json").exists() {
            return;
        }
        if ran.code == 0 && env.record("last")["verdict"] == "PASS" {
            return;
        }
        let feed = std::fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap_or_default();
        assert!([0, 2, -9].contains(&ran.code), "leg {leg}: {ran:#?}\n{feed}");
    }
    let feed = std::fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap_or_default();
    panic!(
        "the run never came to its end: {:#?}\n{}\n{feed}",
        env.omg(&["resume", "latest", "--retry-failed"]),
        env.state()
    );
}

fn check(env: &TestEnv) {
    contract::check_run_dir(&env.run_dir());
    let nodes = env.state()["nodes"].as_object().unwrap().clone();
    assert!(nodes.values().all(|record| record["verdict"] == "PASS"), "{nodes:#?}");
    for (node, text) in [("first", "first"), ("tool", "first"), ("flaky", "steady"), ("last", "last")] {
        assert_eq!(env.artifact(node).unwrap(), text.as_bytes(), "{node}");
    }
    // A node outside a loop is never spawned again once it passed.
    let mut passed: BTreeMap<&str, usize> = BTreeMap::new();
    let events = events(env);
    for event in &events {
        let node = event["node_id"].as_str().unwrap_or_default();
        let starts = ["node_started", "node_retried"].contains(&event["event"].as_str().unwrap());
        assert!(!starts || !passed.contains_key(node), "{node} runs again after its PASS");
        if event["event"] == "node_passed" && !["impl", "review"].contains(&node) {
            *passed.entry(node).or_default() += 1;
        }
    }
    // Every spawn is in the sums: as its cent, or as unknown.
    let cents: f64 = nodes.values().map(|record| record["cost_usd"].as_f64().unwrap() * 100.0).sum();
    let unknown: u64 = nodes.values().map(|record| record["unknown_charges"].as_u64().unwrap_or(0)).sum();
    let spawns = env.spawns().len() as f64;
    assert!(
        spawns >= cents.round() && spawns <= cents.round() + unknown as f64,
        "{spawns} spawns, {cents} cents, {unknown} unknown"
    );
}

#[test]
fn d5_a_run_that_is_killed_again_and_again_comes_to_the_same_end() {
    let mut seed: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for _ in 0..crashes() {
        let moments: Vec<Moment> = (0..1 + random(3)).map(|_| Moment::Time(random(180_000))).collect();
        let env = repository();
        drive(&env, &moments);
        if !env.runs().is_empty() && env.run_dir().join("state.json").exists() {
            check(&env);
        }
    }
}

#[test]
fn d5_a_run_that_is_killed_after_any_durable_step_comes_to_the_same_end() {
    let whole = repository();
    drive(&whole, &[]);
    check(&whole);
    for lines in 1..=whole.feed_lines() {
        let env = repository();
        // A leg that is killed at once, and one that reaches its gate before, are followed by another.
        drive(&env, &[Moment::Lines(lines); 3]);
        check(&env);
    }
}
