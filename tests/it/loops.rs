//! Feedback loops: rounds, payloads, exhaustion, legs in the middle of one (ADR 0010, FACTS 7.8 and 7.9).

use crate::contract;
use crate::env::TestEnv;

fn graph(replies: &str, max: u32) -> String {
    format!(
        "
nodes:
  - {{id: impl, prompt: \"@echo\\n[{{{{ feedback.review }}}}]\"}}
  - id: review
    depends_on: [impl]
    prompt: '@reply-n {replies}'
    success_check: {{result_matches: '^ship'}}
    feedback: {{rerun: impl, max: {max}}}
  - {{id: publish, depends_on: [review], prompt: '@say out'}}
"
    )
}

fn said(env: &TestEnv, node: &str) -> String {
    String::from_utf8(env.artifact(node).unwrap()).unwrap()
}

#[test]
fn a_judged_failure_hands_its_words_back_until_it_passes() {
    let env = TestEnv::new();
    env.run_graph(&graph("too short|too long|ship it", 2), &[]).exits(0);
    assert!(said(&env, "impl").ends_with("[too long]"), "{}", said(&env, "impl"));
    assert_eq!(env.spawns().len(), 7);
    assert_eq!((&env.record("review")["round"], &env.record("impl")["round"]), (&2.into(), &2.into()));
    assert_eq!(env.record("review")["cost_usd"], 0.03);
    let fired: Vec<_> = env.events_of("node_retried").iter().map(|event| event["round"].clone()).collect();
    assert_eq!(fired, [1, 2]);
    assert!(env.events_of("node_failed").is_empty());
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn spent_rounds_fail_and_a_retry_leg_begins_the_loop_anew() {
    let env = TestEnv::new();
    env.run_graph(&graph("no|no|no|ship it", 2), &[]).exits(1);
    let record = env.record("review");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.starts_with("feedback exhausted after 2 rounds of impl → review"), "{detail}");
    assert_eq!(record["cost_usd"], 0.03);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.record("impl")["cost_usd"], 0.04, "the money of cleared records is carried");
    assert_eq!(env.spawns().len(), 9);
    assert_eq!(said(&env, "publish"), "out");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_round_that_changes_nothing_says_so() {
    let env = TestEnv::new();
    let graph = "
nodes:
  - {id: impl, prompt: '@say the same'}
  - {id: review, depends_on: [impl], prompt: '@reply-n no|no|other', success_check: {result_matches: '^ship'}, feedback: {rerun: impl, max: 2}}
";
    env.run_graph(graph, &[]).exits(1);
    let stale = |event: &serde_json::Value| {
        event["detail"].as_str().unwrap().ends_with("nothing changed since the round before")
    };
    let fired: Vec<bool> = env.events_of("node_retried").iter().map(stale).collect();
    assert_eq!(fired, [false, true], "the second round was like the first");
    assert!(!stale(&env.events_of("node_failed")[0]), "the third was not");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_machine_failure_fires_no_arc() {
    let env = TestEnv::new();
    let graph = "
nodes:
  - {id: impl, prompt: '@say done'}
  - {id: review, depends_on: [impl], prompt: '@empty', feedback: {rerun: impl, max: 3}}
";
    env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.spawns().len(), 2);
}

/// Loop, exhausted on its only round; the third leg's nodes come in the same order.
const EXHAUSTED: &str = r#"
nodes:
  - {id: w, prompt: "@say w"}
  - {id: m, depends_on: [w], prompt: "@on 3 sleep 46.2\n@say m"}
  - {id: r, depends_on: [m], prompt: "@reply-n no|no|PASS", success_check: {result_matches: "^PASS"}, feedback: {rerun: w, max: 1}}
"#;

#[test]
fn what_a_cut_off_retry_leg_ran_of_a_loop_is_not_run_again() {
    let env = TestEnv::new();
    env.run_graph(EXHAUSTED, &[]).exits(1);
    let leg = env.start(&["resume", "latest", "--retry-failed"]);
    env.until("m runs the third time", || env.spawns().len() == 8);
    leg.signal(rustix::process::Signal::KILL);
    leg.wait();
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert!(ran.stdout.contains("running again: r)"), "{}", ran.stdout);
    assert_eq!(env.spawns().len(), 10, "m and r once more, w not");
    assert_eq!(env.record("w")["cost_usd"], 0.03);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_retry_of_a_spent_loop_names_all_that_runs_again() {
    let env = TestEnv::new();
    env.run_graph(&graph("no|no|no|ship it", 2), &[]).exits(1);
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert!(ran.stdout.contains("running again: impl, review)"), "{}", ran.stdout);
}

#[test]
fn a_later_legs_rounds_carry_what_the_body_cost_before() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: w, prompt: "@say w"}
  - {id: m, depends_on: [w], prompt: "@on 1 exit 1\n@say m"}
  - {id: r, depends_on: [m], prompt: "@reply-n no|PASS", success_check: {result_matches: "^PASS"}, feedback: {rerun: w, max: 2}}
"#;
    env.run_graph(graph, &[]).exits(1);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.record("w")["cost_usd"], 0.02, "the first leg's and the round's");
    assert_eq!(env.record("m")["cost_usd"], 0.03);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_kill_in_a_rerun_body_loses_neither_money_nor_tokens() {
    let env = TestEnv::new();
    env.run_graph(&EXHAUSTED.replace("sleep 46.2", "sleep 46.7"), &[]).exits(1);
    let leg = env.start(&["resume", "latest", "--retry-failed"]);
    env.until("m runs the third time", || env.spawns().len() == 8);
    leg.signal(rustix::process::Signal::KILL);
    leg.wait();
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.record("m")["usage"]["output_tokens"], 3, "two in the first leg, one in the last");
    contract::check_run_dir(&env.run_dir());
}

/// A loop whose declarer takes its time in the second round.
const SLOW_REVIEW: &str = "  - {id: w, prompt: \"w {{ feedback.r }}\"}
  - {id: r, depends_on: [w], prompt: \"review\\n@on 2 touch asked\\n@on 2 sleep 30\\n@reply-n FAIL|PASS|PASS\", success_check: {result_matches: '^PASS'}, feedback: {rerun: w, max: 2}}
";

fn goes_on_in_its_round(env: &TestEnv) {
    let body = |env: &TestEnv| {
        env.spawns().iter().filter(|spawn| spawn["prompt"].as_str().unwrap().starts_with("w ")).count()
    };
    assert_eq!(body(env), 2);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(body(env), 2, "the body's round had passed");
    assert_eq!((&env.record("r")["verdict"], &env.record("r")["round"]), (&"PASS".into(), &1.into()));
    assert_eq!(env.record("w")["round"], 1);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_declarer_that_a_signal_ended_goes_on_in_its_round() {
    let env = TestEnv::new();
    env.write("g.yaml", format!("nodes:\n{SLOW_REVIEW}"));
    let run = env.start(&["run", "g.yaml"]);
    env.until("the second review is under way", || env.path("asked").exists());
    run.signal(rustix::process::Signal::INT);
    run.wait().exits(130);
    goes_on_in_its_round(&env);
}

#[test]
fn a_declarer_that_a_failure_beside_it_ended_goes_on_in_its_round() {
    let env = TestEnv::new();
    let beside =
        "  - {id: bad, type: command, command: 'until [ -e asked ]; do sleep 0.01; done; test -e mended'}\n";
    env.write("g.yaml", format!("nodes:\n{beside}{SLOW_REVIEW}"));
    env.omg(&["run", "g.yaml"]).exits(1);
    env.write("mended", "");
    goes_on_in_its_round(&env);
}

#[test]
fn a_declarer_that_broke_is_tried_again_on_what_its_round_made() {
    let env = TestEnv::new();
    env.write("g.yaml", format!("nodes:\n{}", SLOW_REVIEW.replace("@on 2 sleep 30", "@on 2 iserror")));
    env.omg(&["run", "g.yaml"]).exits(1);
    goes_on_in_its_round(&env);
}

#[test]
fn a_crash_in_a_round_counts_only_what_ran_as_lost() {
    let env = TestEnv::new();
    let slow = "@on 2 touch asked\\n@on 2 sleep 30\\n";
    let graph = SLOW_REVIEW.replace(slow, "").replace("\"w {{", &format!("\"{slow}w {{{{"));
    env.write("g.yaml", format!("nodes:\n{graph}"));
    let run = env.start(&["run", "g.yaml"]);
    env.until("the second round is under way", || env.path("asked").exists());
    run.signal(rustix::process::Signal::KILL);
    run.wait();
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.row("r").contains("LOOPING") && shown.row("w").contains("LOST"), "{}", shown.stdout);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    let held = &env.events_of("run_started")[1]["held"];
    assert_eq!(held.as_array().map(Vec::len), Some(1), "{held}");
    assert_eq!(held[0]["node"], "w");
    assert_eq!(env.record("r")["cost_unknown"], serde_json::Value::Null);
    contract::check_run_dir(&env.run_dir());
}
