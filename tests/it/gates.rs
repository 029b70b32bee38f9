//! Gates: a run stops for a person and goes on (DESIGN "Gate nodes", DECISIONS 25, cases D1 to D4, C10).

use crate::contract;
use crate::env::{Ran, Running, TestEnv};

const TWO_GATES: &str = "
name: two gates
nodes:
  - {id: a, prompt: '@say A'}
  - {id: g1, type: gate, depends_on: [a]}
  - {id: g2, type: gate, depends_on: [a]}
  - {id: b, depends_on: [g1], prompt: \"@echo\\n{{ artifacts.a | inline }}\"}
  - {id: c, depends_on: [g2], prompt: '@say C'}
";

fn resume(env: &TestEnv, flags: &[&str]) -> Ran {
    let words: Vec<&str> = ["resume", "latest"].iter().chain(flags).copied().collect();
    env.omg(&words)
}

#[test]
fn d2_every_gate_is_reached_and_decided_in_any_order() {
    let env = TestEnv::new();
    let ran = env.run_graph(TWO_GATES, &[]).exits(2);
    assert!(ran.stdout.contains("--approve g1") && ran.stdout.contains("--reject g2"), "{}", ran.stdout);
    assert_eq!(env.state()["gate"]["paused_at"], "g1");
    assert_eq!(env.state()["gate"]["waiting"], serde_json::json!(["g1", "g2"]));
    resume(&env, &["--approve", "g2"]).exits(2);
    assert_eq!(env.state()["gate"]["waiting"], serde_json::json!(["g1"]));
    resume(&env, &["--approve", "g1"]).exits(0);
    assert_eq!(env.state()["gate"].get("paused_at"), None);
    assert_eq!(env.spawns().len(), 3, "a, b and c, each once");
    assert_eq!(env.record("g1")["provenance"], "approved");
    assert!(String::from_utf8(env.artifact("b").unwrap()).unwrap().ends_with('A'));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn gates_are_decided_together_and_differently() {
    let env = TestEnv::new();
    env.run_graph(TWO_GATES, &[]).exits(2);
    let ran = resume(&env, &["--approve", "g1", "--reject", "g2"]).exits(1);
    assert!(ran.stderr.contains("\"g2\""), "{}", ran.stderr);
    assert_eq!(env.record("b")["verdict"], "PASS");
    assert_eq!(env.record("g2")["verdict"], "FAIL");
    assert_eq!(
        env.state()["skipped"][0],
        serde_json::json!({"node": "c", "because": "g2", "why": "rejected"})
    );
    // A rejection stands: there is nothing to retry.
    let ran = resume(&env, &["--retry-failed"]).exits(0);
    assert!(ran.stdout.contains("nothing to run again"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_rejection_is_not_blamed_for_what_another_failure_kept_from_running() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: f, prompt: '@exit 1'}, {id: below, prompt: '@say B', depends_on: [f]}, {id: g, type: gate}, \
                 {id: c, prompt: '@say C', depends_on: [g]}]";
    env.run_graph(graph, &["--continue-on-fail"]).exits(2);
    resume(&env, &["--reject", "g"]).exits(1);
    let skipped = serde_json::json!([
        {"node": "below", "because": "f", "why": "ancestor_failed"},
        {"node": "c", "because": "g", "why": "rejected"},
    ]);
    assert_eq!(env.state()["skipped"], skipped);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_resume_never_approves_silently() {
    let env = TestEnv::new();
    env.run_graph(TWO_GATES, &[]).exits(2);
    for (flags, said) in [
        (&[][..], "waits at \"g1\", \"g2\""),
        (&["--approve", "nope"], "does not wait at \"nope\""),
        (&["--approve", "a"], "does not wait at \"a\""),
        (&["--approve", "g1", "--reject", "g1"], "both"),
        (&["--approve", "g1", "--retry-failed"], "--retry-failed"),
    ] {
        let ran = resume(&env, flags).exits(1);
        assert!(ran.stderr.contains(said), "{flags:?}: {}", ran.stderr);
    }
    let ran = resume(&env, &["--retry-failed"]).exits(0);
    assert!(ran.stdout.contains("--approve g1"), "{}", ran.stdout);
    assert_eq!(env.spawns().len(), 1);
    assert_eq!(env.events_of("run_started").len(), 1);
}

#[test]
fn d1_c10_a_resume_runs_where_the_run_began_with_its_inputs() {
    let env = TestEnv::new();
    let graph = "
inputs: [v]
nodes:
  - {id: first, type: command, command: pwd; printf %s \"$OMG_INPUT_V\"}
  - {id: ok, type: gate, depends_on: [first]}
  - {id: second, type: command, depends_on: [ok], command: pwd; printf %s \"$OMG_INPUT_V\"}
";
    let value = "v=x y  z\n--help {{ inputs.v }}=";
    env.run_graph(graph, &["--input", value]).exits(2);
    let mut command = env.command(&["resume", "latest", "--approve", "ok"]);
    command.current_dir(env.home());
    Running::of(&mut command).wait().exits(0);
    assert_eq!(env.artifact("first"), env.artifact("second"));
    assert!(String::from_utf8(env.artifact("second").unwrap()).unwrap().ends_with(&value[2..]));
}

#[test]
fn d3_of_two_resumes_at_once_one_runs_and_the_other_says_so() {
    let env = TestEnv::new();
    let graph = "nodes:\n  - {id: g, type: gate}\n  - {id: x, depends_on: [g], prompt: '@sleep 0.6'}\n";
    env.run_graph(graph, &[]).exits(2);
    let words = ["resume", "latest", "--approve", "g"];
    let (one, other) = (env.start(&words), env.start(&words));
    let ends = [one.wait(), other.wait()];
    let loser = ends.iter().find(|ran| ran.code != 0).expect("one loses");
    assert!(ends.iter().any(|ran| ran.code == 0), "{ends:?}");
    assert!(loser.stderr.contains("lock"), "{}", loser.stderr);
    assert_eq!(env.spawns().len(), 1);
}

#[test]
fn a_failure_beside_a_waiting_gate_halts() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: g, type: gate}, {id: f, prompt: \"@sleep 0.1\\n@exit 1\"}]";
    env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.state()["gate"].get("paused_at"), None);
    // What failed is retried, and the gate is asked again.
    resume(&env, &["--retry-failed"]).exits(1);
    assert_eq!(env.events_of("gate_paused").len(), 2);
}

#[test]
fn an_older_snapshot_with_one_gate_still_loads() {
    let env = TestEnv::new();
    env.run_graph(TWO_GATES, &[]).exits(2);
    let path = env.run_dir().join("state.json");
    let mut state = env.state();
    state["gate"] = serde_json::json!({"paused_at": "g1", "decisions": {"g1": "pause"}});
    std::fs::write(&path, state.to_string()).unwrap();
    resume(&env, &["--approve", "g1"]).exits(2);
    assert_eq!(env.record("b")["verdict"], "PASS");
}

#[test]
fn a_waiting_run_says_how_it_is_decided_wherever_it_is_listed() {
    let env = TestEnv::new();
    env.run_graph(TWO_GATES, &[]).exits(2);
    for words in [&["runs", "list"][..], &["show", "latest"]] {
        let ran = env.omg(words);
        assert!(ran.stdout.contains("--approve g1, or --reject g1"), "{}", ran.stdout);
    }
    let ran = resume(&env, &["--reject", "g1", "--reject", "g2"]).exits(1);
    assert!(!ran.stderr.contains("--retry-failed"), "a retry decides nothing: {}", ran.stderr);
}

#[test]
fn a_gate_that_waited_when_the_engine_died_can_be_decided() {
    for decision in ["--approve", "--retry-failed"] {
        let env = TestEnv::new();
        let graph = "nodes:\n  - {id: g, type: gate}\n  - {id: a, prompt: \"@on 1 sleep 30\"}\n  - {id: b, prompt: b, depends_on: [g]}\n";
        env.write("g.yaml", graph);
        let run = env.start(&["run", "g.yaml"]);
        env.until("the other node runs", || env.spawns().len() == 1);
        env.until("the gate waits", || env.events_of("gate_paused").len() == 1);
        run.signal(rustix::process::Signal::KILL);
        run.wait();
        let shown = env.omg(&["show", "latest"]).exits(0);
        assert!(shown.row("g").contains("WAITING"), "{}", shown.stdout);
        if decision == "--approve" {
            env.omg(&["resume", "latest", "--approve", "g"]).exits(0);
        } else {
            env.omg(&["resume", "latest", "--retry-failed"]).exits(2);
            env.omg(&["resume", "latest", "--approve", "g"]).exits(0);
        }
        assert_eq!(env.spawns().len(), 3, "{decision}");
        contract::check_run_dir(&env.run_dir());
    }
}
