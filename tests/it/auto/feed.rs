//! `omg auto --json`: standard output is the feeds' lines, from the planning on, and nothing else.

use std::fs;

use super::{graph, node, place, planning};
use crate::env::TestEnv;

const WIDE: &str = r#"{"nodes": [{"id": "a", "prompt": "x", "allowed_tools": ["Bash(*)"]}]}"#;

/// What the feeds of all runs hold, the oldest first.
fn feeds(env: &TestEnv) -> String {
    env.runs().iter().map(|run| fs::read_to_string(run.join("events.jsonl")).unwrap()).collect()
}

#[test]
fn the_feed_of_a_planned_run_is_all_that_is_printed_and_all_else_is_told_beside_it() {
    let env = planning(&[node("work", &[], "@say made"), node("check", &["work"], "@say PASS")]);
    let ran = env.omg(&["auto", "a goal", "--json", "--verify-cmd", "true"]).exits(0);
    assert_eq!(ran.stdout, feeds(&env));
    assert!(ran.stdout.lines().next().unwrap().contains(r#""phase":"planning""#), "{}", ran.stdout);
    for told in
        ["Planning a graph", "Plan \"planned\"", "Build evidence: when check", "Running graph", "TOTAL COST"]
    {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

#[test]
fn the_cycles_of_a_goal_follow_one_another_and_a_refused_plan_ends_its_own_feed() {
    let mut env = TestEnv::new();
    let plans = format!("reply-n {}|{WIDE}|{WIDE}", graph(&[node("work", &[], "@say made")]));
    let judge = r#"{"goal_met": false, "remaining": "more"}"#;
    let cues = env.write("cues", format!("You plan work => @{plans}\nYou judge whether => @say {judge}\n"));
    env.set("FAKE_CUES", cues.to_str().unwrap());
    let ran = env.omg(&["auto", "a goal", "--json", "--max-cycles", "3"]).exits(1);
    assert_eq!(env.runs().len(), 2);
    assert_eq!(ran.stdout, feeds(&env));
    assert!(ran.stdout.ends_with("\n") && ran.stdout.contains("the plan was refused"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("GOAL TOTAL") && ran.stderr.contains("Assessment of cycle 1"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_is_refused_before_there_is_a_run_prints_nothing_there() {
    let env = place(WIDE, WIDE);
    env.write("go.mod", "");
    let ran = env.omg(&["auto", "a goal", "--json"]).exits(3);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("go.mod"), "{}", ran.stderr);
    let ran = env.omg(&["auto", "a goal", "--json", "--plan-only"]).exits(1);
    assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    assert!(env.spawns().is_empty() && env.runs().is_empty());
}
