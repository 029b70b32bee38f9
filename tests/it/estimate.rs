//! `omg estimate`: the worst case is one that a run can reach, and what was usual is what was.

use serde_json::Value;

use crate::env::TestEnv;

const LOOP: &str = r"
name: loop
nodes:
  - {id: make, type: command, command: make, timeout: 1m, retry: {max: 1, on: [nonzero_exit]}}
  - id: review
    prompt: Review it.
    budget_usd: 0.5
    timeout: 2m
    depends_on: [make]
    success_check: {verify: {command: make test, timeout: 30s}}
    retry: {max: 1, on: [verify_failed]}
    feedback: {rerun: make, max: 2}
  - {id: sign, type: gate, depends_on: [review]}
  - {id: ship, prompt: Ship it., depends_on: [sign], worktree: out}
";

/// Fails as often as it may, and passes only then.
const WORST: &str = r"
nodes:
  make: [{exit: 1}, {exit: 0}, {exit: 1}, {exit: 0}, {exit: 1}, {exit: 0}]
  review: [{verify: fail}, {verify: fail}, {verify: fail}, {verify: fail}, {verify: fail}, {verify: pass}]
";

fn json(env: &TestEnv) -> Value {
    serde_json::from_str(&env.omg(&["estimate", "g.yaml", "--json"]).exits(0).stdout).unwrap()
}

#[test]
fn the_worst_case_is_told_for_a_person_and_as_json() {
    let env = TestEnv::new();
    env.write("g.yaml", LOOP);
    let ran = env.omg(&["estimate", "g.yaml"]).exits(0);
    insta::assert_snapshot!(ran.stdout, @r"
    loop, at worst:
      executions  13: 7 prompts and 6 commands, retries and rounds included
      dollars     unbounded: 1 node has no budget: ship; the others may spend $3.0000
      time        41m0s with 4 at a time; the longest path alone takes 41m0s
      checks      6 commands run as evidence
      worktrees   1: out
      a person    at sign: 1 node waits behind it
      beyond it   a prompt overshoots its budget by what it spends before it is stopped
      beyond it   codex keeps no budgets: with --runtime codex the dollars are unbounded
      beyond it   a node that is ended at its timeout is given a few seconds to end
      beyond it   with --wait-for-quota a prompt that a limit held back has all its attempts again
    ");
    assert_eq!(ran.stderr, "");
    let json = json(&env);
    let worst = &json["worst"];
    assert_eq!((&json["schema"], &json["usual"], &worst["usd"]), (&1.into(), &Value::Null, &Value::Null));
    assert_eq!(worst["unbudgeted"], serde_json::json!(["ship"]));
    assert_eq!(worst["gates"], serde_json::json!([{"id": "sign", "behind": 1}]));
    assert!(!env.home().exists(), "an estimate makes nothing");
}

#[test]
fn a_run_that_fails_until_nothing_is_left_executes_what_was_estimated() {
    let env = TestEnv::new();
    let head = LOOP.split("  - {id: sign").next().unwrap();
    env.write("g.yaml", head);
    env.write("worst.yaml", WORST);
    let executions = json(&env)["worst"]["executions"].as_u64().unwrap();
    assert_eq!(executions, 12);
    let rehearse = |bound: u64| {
        env.omg(&["rehearse", "g.yaml", "--script", "worst.yaml", "--max-executions", &bound.to_string()])
    };
    rehearse(executions).exits(0);
    rehearse(executions - 1).exits(2);
}

#[test]
fn the_bounds_of_the_run_are_told_with_what_they_cut() {
    let env = TestEnv::new();
    env.write("g.yaml", format!("max_usd: 1\nmax_executions: 5\nmax_wall: 3m\n{LOOP}"));
    let text = env.omg(&["estimate", "g.yaml"]).exits(0).stdout;
    for told in [
        "5: max_executions pauses the run there, before 7 prompts and 6 commands",
        "$1.0000: max_usd starts nothing beyond it, but 1 node has no budget: ship",
        "max_wall starts nothing after 3m",
    ] {
        assert!(text.contains(told), "{text}");
    }
    let worst = &json(&env)["worst"];
    assert_eq!((&worst["executions"], &worst["usd"]), (&5.into(), &1.0.into()));
}

#[test]
fn what_was_usual_comes_from_runs_that_ended() {
    let env = TestEnv::new();
    let graph = "name: two\nnodes: [{id: a, prompt: '@say x'}, {id: b, prompt: '@say y', depends_on: [a]}]";
    env.run_graph(graph, &[]).exits(0);
    env.run_graph(&graph.replace("@say y", "@exit 3"), &[]).exits(1);
    env.run_graph(&graph.replace("two", "other"), &[]).exits(0);
    env.write("g.yaml", graph);
    env.omg(&["rehearse", "g.yaml"]).exits(0);
    let text = env.omg(&["estimate", "g.yaml"]).exits(0).stdout;
    assert!(text.contains("usually, by 2 runs that have ended, 1 of them passed:\n"), "{text}");
    assert!(text.contains("  executions  2\n  dollars     $0.0200\n"), "{text}");
    let usual = &json(&env)["usual"];
    assert_eq!(
        (&usual["runs"], &usual["passed"], &usual["cost_unknown"]),
        (&2.into(), &1.into(), &false.into())
    );
    assert_eq!(usual["usd"]["median"], 0.02);
}

#[test]
fn what_goes_beyond_the_estimate_is_told_where_the_graph_gives_rise_to_it() {
    let told = |graph: &str| {
        let env = TestEnv::new();
        env.write("g.yaml", graph);
        let text = env.omg(&["estimate", "g.yaml"]).exits(0).stdout;
        text.lines().filter(|line| line.contains("beyond it")).count()
    };
    assert_eq!(told("nodes: [{id: a, type: gate}]"), 0);
    assert_eq!(told("nodes: [{id: a, type: command, command: make}]"), 1);
    assert_eq!(told("nodes: [{id: a, prompt: hi}]"), 2);
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes: [{id: a, prompt: hi, budget_usd: 1, retry: {max: 2, on: [budget_exceeded]}}]",
    );
    let text = env.omg(&["estimate", "g.yaml"]).exits(0).stdout;
    assert!(text.contains("stopped, and again with each retry on budget_exceeded\n"), "{text}");
}

#[test]
fn a_broken_graph_is_not_estimated() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, promt: x}]");
    let ran = env.omg(&["estimate", "g.yaml"]).exits(1);
    assert!(ran.stderr.contains("1 issue found"), "{}", ran.stderr);
}
