//! Pauses that no gate causes: spent limits and bounds of a run (ADR 0009, DECISIONS 18).

use crate::contract;
use crate::env::TestEnv;

const LIMITED: &str = r#"
nodes:
  - id: x
    prompt: |
      @on 1 raw {"is_error":true,"result":"You've hit your session limit · resets 8:05am (UTC)","total_cost_usd":0.02}
      @say through
  - {id: beside, prompt: "@sleep 0.3\n@say slow"}
  - {id: below, depends_on: [x], prompt: "@say below"}
  - {id: after, depends_on: [beside], prompt: "@say after"}
"#;

#[test]
fn a_spent_limit_drains_pauses_and_goes_on() {
    let env = TestEnv::new();
    let ran = env.run_graph(LIMITED, &[]).exits(2);
    assert!(ran.stdout.contains("8:05am") && ran.stdout.contains("--retry-failed"), "{}", ran.stdout);
    assert_eq!(env.record("beside")["verdict"], "PASS", "what ran was drained");
    assert_eq!(env.spawns().len(), 2, "nothing was started after the limit");
    assert!(env.events_of("node_failed").is_empty());
    assert_eq!(env.events_of("run_finished")[0]["outcome"], "paused");
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.spawns().len(), 5);
    assert_eq!(env.artifact("x").unwrap(), b"through");
    assert_eq!(env.record("x")["cost_usd"], 0.03, "what the limited attempt cost is kept");
    contract::check_run_dir(&env.run_dir());
}

fn chain(nodes: usize) -> String {
    let mut graph = String::from("nodes:\n");
    for n in 0..nodes {
        let parent = if n == 0 { String::new() } else { format!("depends_on: [n{}], ", n - 1) };
        graph.push_str(&["  - {id: n", &n.to_string(), ", ", &parent, "prompt: '@say ok'}\n"].concat());
    }
    graph
}

#[test]
fn a_bound_on_dollars_pauses_before_it_is_broken() {
    let env = TestEnv::new();
    let ran = env.run_graph(&chain(5), &["--max-usd", "0.03"]).exits(2);
    assert!(ran.stdout.contains("dollars"), "{}", ran.stdout);
    assert_eq!(env.spawns().len(), 3);
    // The bound stays; a higher one goes on.
    env.omg(&["resume", "latest", "--retry-failed"]).exits(2);
    assert_eq!(env.spawns().len(), 3);
    env.omg(&["resume", "latest", "--retry-failed", "--max-usd", "1"]).exits(0);
    assert_eq!(env.spawns().len(), 5);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn bounds_on_executions_count_all_legs() {
    let env = TestEnv::new();
    let graph = format!("max_executions: 2\n{}", chain(5));
    env.run_graph(&graph, &[]).exits(2);
    assert_eq!(env.spawns().len(), 2);
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "4"]).exits(2);
    assert_eq!(env.spawns().len(), 4);
    env.omg(&["runs", "list"]).exits(0);
}

#[test]
fn a_bound_on_time_lets_what_runs_end() {
    let env = TestEnv::new();
    let graph = "nodes:\n  - {id: a, prompt: '@sleep 0.5'}\n  - {id: b, depends_on: [a], prompt: '@say b'}\n";
    let ran = env.run_graph(graph, &["--max-wall", "100ms"]).exits(2);
    assert!(ran.stdout.contains("time"), "{}", ran.stdout);
    assert_eq!(env.record("a")["verdict"], "PASS");
    env.omg(&["resume", "latest", "--retry-failed", "--max-wall", "1h"]).exits(0);
}

#[test]
fn bounds_that_cannot_be_are_refused() {
    let env = TestEnv::new();
    let wrong =
        [("--max-usd", "-1"), ("--max-executions", "0"), ("--max-wall", "soon"), ("--max-wall", "-1s")];
    for (flag, value) in wrong {
        let ran = env.run_graph(&chain(1), &[flag, value]).exits(1);
        assert!(ran.stderr.contains(&format!("{flag}: ")), "{}", ran.stderr);
    }
    for (flag, says) in [("--max-usd", "it takes dollars"), ("--max-executions", "it takes a whole number")] {
        let ran = env.run_graph(&chain(1), &[flag, "lots"]).exits(1);
        assert!(ran.stderr.contains(flag) && ran.stderr.contains(says), "{}", ran.stderr);
    }
    assert!(env.spawns().is_empty() && env.runs().is_empty(), "no run is left of it");
}

#[test]
fn what_a_limited_node_cost_is_kept_when_a_failure_halts_the_run() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: limited
    prompt: |
      @on 1 raw {"is_error":true,"result":"You've hit your limit · resets 3pm","total_cost_usd":0.02}
      @say PASS
  - {id: broken, prompt: "@sleep 0.5\n@on 1 exit 1"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert!(ran.stdout.contains("TOTAL COST: $0.0300"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("\nlimited ").count(), 1, "one row: {}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.record("limited")["cost_usd"], 0.03);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_gate_that_a_halt_overtook_has_one_row() {
    let env = TestEnv::new();
    let graph = "nodes:\n  - {id: g, type: gate}\n  - {id: a, prompt: \"@sleep 0.3\\n@exit 1\"}\n";
    env.run_graph(graph, &[]).exits(1);
    let shown = env.omg(&["show", "latest"]).stdout;
    assert!(shown.contains("2 node(s)") && !shown.contains("WAITING"), "{shown}");
}

/// A limit that is lifted at `when`, as `date` understands it, told in the CLI's own form.
fn limited_until(when: &str) -> String {
    let out = std::process::Command::new("date").args(["-u", "-d", when, "+%-I:%M%P"]).output().unwrap();
    let told = String::from_utf8(out.stdout).unwrap();
    LIMITED.replace("8:05am", told.trim())
}

#[test]
fn a_limit_that_is_never_told_to_end_in_time_is_not_waited_for() {
    let env = TestEnv::new();
    let ran = env.run_graph(LIMITED, &["--wait-for-quota=1s"]).exits(2);
    assert!(ran.stdout.contains("--retry-failed"), "{}", ran.stdout);
    let ran = env.run_graph(LIMITED, &["--wait-for-quota=soon"]).exits(1);
    assert!(ran.stderr.contains("--wait-for-quota"), "{}", ran.stderr);
}

#[test]
fn an_interrupted_wait_leaves_a_run_that_goes_on() {
    let env = TestEnv::new();
    env.write("g.yaml", limited_until("2 hours"));
    let run = env.start(&["run", "g.yaml", "--wait-for-quota=25h"]);
    env.until("both are asked", || env.spawns().len() == 2);
    env.until("what ran is drained", || env.events_of("node_passed").len() == 1);
    run.signal(rustix::process::Signal::INT);
    run.wait().exits(130);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.record("x")["cost_usd"], 0.03);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_limit_that_is_lifted_in_time_is_waited_out_in_the_same_leg() {
    let env = TestEnv::new();
    env.run_graph(&limited_until("now"), &["--wait-for-quota"]).exits(0);
    assert_eq!(env.events_of("run_started").len(), 1);
    assert_eq!(env.spawns().len(), 5);
    assert_eq!(env.record("x")["cost_usd"], 0.03);
    contract::check_run_dir(&env.run_dir());
}

/// A node that finds its limit spent whenever it is asked, lifted at `when` as the CLI tells it.
fn always_limited(when: &str) -> String {
    format!(
        "nodes:\n  - {{id: a, prompt: \"@say You've hit your session limit · resets {when}\\n@iserror\\n@exit 1\"}}\n"
    )
}

#[test]
fn a_limit_that_outlasts_its_reset_is_not_asked_after_again_and_again() {
    let env = TestEnv::new();
    let told =
        std::process::Command::new("date").args(["-u", "-d", "-1 minute", "+%-I:%M%P"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let graph = always_limited(&format!("{} (UTC)", told.trim()));
    // The first wait is a few seconds, the next one a minute, for which there is no patience.
    let ran = env.run_graph(&graph, &["--wait-for-quota=30s"]).exits(2);
    assert_eq!(env.spawns().len(), 2, "{}", ran.stderr);
    assert!(ran.stdout.contains("TOTAL COST: $0.0200"), "{}", ran.stdout);
    let held = &env.events_of("run_finished")[0]["held"];
    assert_eq!(held.as_array().map(Vec::len), Some(1), "a wait's charge has a line of its own: {held}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_limit_whose_reset_nobody_understands_is_not_polled() {
    for told in ["in 2 hours", "Tue 3pm", "15:00"] {
        let env = TestEnv::new();
        env.run_graph(&always_limited(told), &["--wait-for-quota=50s"]).exits(2);
        assert_eq!(env.spawns().len(), 1, "{told}");
    }
}

#[test]
fn what_a_limited_attempt_cost_outlives_an_engine_that_is_killed_during_the_wait() {
    let env = TestEnv::new();
    env.write("g.yaml", limited_until("2 hours"));
    let run = env.start(&["run", "g.yaml", "--wait-for-quota=25h"]);
    env.until("both are asked", || env.spawns().len() == 2);
    env.until("the leg waits", || env.events_of("node_retried").len() == 1);
    let shown = env.omg(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("HELD") && shown.contains("waiting until"), "{shown}");
    let event = &env.events_of("node_retried")[0];
    assert_eq!((&event["cost_usd"], &event["node_id"]), (&0.02.into(), &"x".into()));
    assert!(event["held_until"].as_str().unwrap().ends_with('Z'), "{event}");
    run.signal(rustix::process::Signal::KILL);
    run.wait();
    let shown = env.omg(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("TOTAL COST: $0.0300\n"), "nothing was under way: {shown}");
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.record("x")["cost_usd"], 0.03);
    assert!(env.record("x")["cost_unknown"].is_null());
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_limit_pause_says_its_reason_and_its_end_in_local_time_everywhere() {
    let mut env = TestEnv::new();
    env.set("TZ", "KST-9");
    let graph = LIMITED.replace("8:05am (UTC)", "Dec 3, 6:41pm (UTC)");
    let ran = env.run_graph(&graph, &[]).exits(2);
    let local = "-12-04 03:41:00+09:00";
    assert!(ran.stdout.contains("(after ") && ran.stdout.contains(local), "{}", ran.stdout);
    for words in [&["show", "latest"][..], &["runs", "list"]] {
        let said = env.omg(words).exits(0).stdout;
        assert!(said.contains(local) && said.contains("You've hit your session limit"), "{said}");
    }
    for words in [&["show", "latest", "--json"][..], &["runs", "list", "--json"]] {
        let said: serde_json::Value = serde_json::from_str(&env.omg(words).exits(0).stdout).unwrap();
        let run = if said["run"].is_null() { &said["runs"][0] } else { &said["run"] };
        assert!(run["held_until"].as_str().unwrap().ends_with("12-03T18:41:00Z"), "{run}");
        assert!(run["paused_because"].as_str().unwrap().contains("x: usage limit: You've hit"), "{run}");
    }
    // A reset that nobody understands is told in the CLI's own words.
    let other = TestEnv::new();
    let ran = other.run_graph(&LIMITED.replace("8:05am (UTC)", "Tue 3pm (UTC)"), &[]).exits(2);
    assert!(ran.stdout.contains("(after Tue 3pm (UTC))"), "{}", ran.stdout);
}

#[test]
fn a_limit_that_was_waited_out_is_not_told_as_the_reason_of_a_later_pause() {
    let env = TestEnv::new();
    let graph = limited_until("now") + "  - {id: g, type: gate}\n";
    let ran = env.run_graph(&graph, &["--wait-for-quota"]).exits(2);
    assert!(!ran.stdout.contains("You've hit") && ran.stdout.contains("--approve g"), "{}", ran.stdout);
    assert_eq!(env.events_of("run_finished")[0]["detail"], serde_json::Value::Null);
    assert_eq!(env.events_of("run_finished")[0]["held"], serde_json::Value::Null);
}

#[test]
fn a_bound_on_executions_lets_what_fits_run_and_says_what_would_do() {
    let env = TestEnv::new();
    let graph = "max_executions: 3\nnodes:\n  - {id: a, prompt: \"@exit 1\", retry: {max: 5, on: [nonzero_exit]}}\n  - {id: b, prompt: b}\n";
    let ran = env.run_graph(graph, &[]).exits(2);
    assert_eq!(env.record("b")["verdict"], "PASS");
    for said in ["no room for a", "may take 6", "there were 1", "--max-executions 7"] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "6"]).exits(2);
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "7"]).exits(1);
    assert_eq!(env.spawns().len(), 7);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_bound_on_dollars_names_what_it_cannot_bound_and_what_would_do() {
    let env = TestEnv::new();
    let graph = "nodes:\n  - {id: a, prompt: a}\n  - {id: b, prompt: b, depends_on: [a], budget_usd: 0.5}\n";
    let ran = env.run_graph(graph, &["--max-usd", "0.2"]).exits(2);
    assert!(ran.stderr.contains("WARNING: max_usd") && ran.stderr.contains("(\"a\")"), "{}", ran.stderr);
    assert!(ran.stdout.contains("no room for b") && ran.stdout.contains("--max-usd 0.51"), "{}", ran.stdout);
    let ran = env.omg(&["resume", "latest", "--retry-failed", "--max-usd", "0.51"]).exits(0);
    assert!(!ran.stderr.contains("WARNING"), "{}", ran.stderr);
    let other = TestEnv::new();
    let ran = other.run_graph(graph, &[]).exits(0);
    assert!(!ran.stderr.contains("WARNING"), "{}", ran.stderr);
}
