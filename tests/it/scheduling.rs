//! What runs when: slots, order, halting, pruning. Measured by what the nodes themselves wrote down, never by the clock.

use rustix::process::Signal;
use serde_json::Value;

use crate::contract;
use crate::env::TestEnv;

/// The most nodes that were at work at the same time: each writes `+` when it begins and `-` before it ends.
fn most_at_once(log: &str) -> i32 {
    let change = |mark: &str| if mark == "+" { 1 } else { -1 };
    let counts = log.split_whitespace().scan(0, |now, mark| {
        *now += change(mark);
        Some(*now)
    });
    counts.max().unwrap_or(0)
}

/// The ids of the events of one kind, in feed order.
fn ids(env: &TestEnv, kind: &str) -> Vec<String> {
    env.events_of(kind).iter().map(|event| event["node_id"].as_str().unwrap().to_owned()).collect()
}

const SIBLINGS: &str = r#"
nodes:
  - {id: s, prompt: "@sh touch begun; while test ! -e go; do sleep 0.01; done; : MARK\n@say done"}
  - {id: f, prompt: "@sh while test ! -e begun; do sleep 0.01; done\n@exit 1"}
  - {id: d, depends_on: [f], prompt: "@say never"}
"#;

#[test]
fn e2_a_failure_halts_its_siblings_and_waits_for_their_end() {
    let env = TestEnv::new();
    let ran = env.run_graph(&SIBLINGS.replace("MARK", "halt-e2"), &[]).exits(1);
    env.assert_none_left("halt-e2");
    let row = ran.row("s");
    assert!(row.contains("CANCELLED") && row.contains("\"f\"") && row.contains("cost is unknown"), "{row}");
    assert!(ran.row("d").contains("SKIPPED") && ran.row("d").contains('f'), "{}", ran.stdout);
    let record = env.record("s");
    assert_eq!((&record["cause"], &record["judged"]), (&"cancelled".into(), &Value::Null));
    assert_eq!(record["cost_unknown"], true);
    assert!(ran.stderr.contains("halted after node \"f\" failed"), "{}", ran.stderr);
    assert_eq!(env.events().pop().unwrap()["outcome"], "failed");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn e2_continue_lets_the_siblings_finish() {
    for (header, flags) in [("on_fail: continue\n", &[][..]), ("", &["--continue-on-fail"][..])] {
        let env = TestEnv::new();
        // The failure is over when somebody sees it in the feed, so the sibling outlives it for certain.
        env.write("g.yaml", header.to_owned() + SIBLINGS);
        let running = env.start(&[&["run", "g.yaml"], flags].concat());
        env.until("f fails", || !env.runs().is_empty() && !env.events_of("node_failed").is_empty());
        env.write("go", "");
        let ran = running.wait().exits(1);
        assert_eq!(env.artifact("s").unwrap(), b"done");
        assert!(ran.row("d").contains("SKIPPED"), "{}", ran.stdout);
        assert!(ran.stderr.contains("completed with failed node(s) \"f\""), "{}", ran.stderr);
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn e3_a_pruned_subtree_ends_and_names_its_ancestor_everywhere() {
    let env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - {id: f, prompt: "@exit 1"}
  - {id: ok, prompt: "@say fine"}
  - {id: one, depends_on: [f], prompt: "@say never"}
  - {id: two, depends_on: [one, ok], prompt: "@say never"}
  - {id: three, depends_on: [two], type: command, command: "touch never"}
  - {id: free, depends_on: [ok], prompt: "@say free"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.artifact("free").unwrap(), b"free");
    assert!(!env.path("never").exists());
    let finished = env.events_of("run_finished").pop().unwrap();
    assert_eq!(finished["skipped_count"], 3);
    for list in [&finished["skipped"], &env.state()["skipped"]] {
        let told: Vec<_> =
            list.as_array().unwrap().iter().map(|it| (&it["node"], &it["because"], &it["why"])).collect();
        let told = serde_json::to_value(told).unwrap();
        let wanted = ["one", "two", "three"].map(|node| (node, "f", "ancestor_failed"));
        assert_eq!(told, serde_json::to_value(wanted).unwrap());
    }
    for node in ["one", "two", "three"] {
        let row = ran.row(node);
        assert!(row.contains("SKIPPED") && row.ends_with("f failed"), "{row}");
    }
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.row("three").contains("SKIPPED"), "{}", shown.stdout);
    contract::check_run_dir(&env.run_dir());
}

/// Twelve nodes: some retried, some verified, some commands; each at work for a moment.
fn twelve() -> String {
    let work = "echo + >> log; sleep 0.15; echo - >> log";
    let node = |n: usize| match n % 4 {
        0 => format!("  - {{id: n{n}, prompt: \"@sh {work}\"}}\n"),
        1 => format!(
            "  - {{id: n{n}, prompt: \"@sh {work}\\n@reply-n no{n}|ok{n}\", retry: {{max: 1, on: [result_mismatch]}}, \
             success_check: {{result_matches: \"^ok\"}}}}\n"
        ),
        2 => format!(
            "  - {{id: n{n}, prompt: \"@sh {work}\", success_check: {{verify: {{command: \"{work}\"}}}}}}\n"
        ),
        _ => format!("  - {{id: n{n}, type: command, command: \"{work}\"}}\n"),
    };
    format!("concurrency: 3\nnodes:\n{}", (0..12).map(node).collect::<String>())
}

#[test]
fn e4_every_slot_is_used_and_no_more() {
    let env = TestEnv::new();
    env.run_graph(&twelve(), &[]).exits(0);
    assert_eq!(most_at_once(&env.read("log")), 3);
    assert_eq!(
        env.read("log").lines().count(),
        2 * (12 + 3 + 3),
        "each attempt and each evidence command once"
    );
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn e4_one_slot_means_one_after_the_other_in_file_order() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: zeta, prompt: "@sh echo + >> log; sleep 0.02; echo - >> log"}
  - {id: late, depends_on: [zeta], prompt: "@sh echo + >> log; sleep 0.02; echo - >> log"}
  - {id: beta, type: command, command: "echo + >> log; sleep 0.02; echo - >> log"}
  - {id: alpha, prompt: "@sh echo + >> log; sleep 0.02; echo - >> log"}
"#;
    env.run_graph(graph, &["--concurrency", "1"]).exits(0);
    assert_eq!(most_at_once(&env.read("log")), 1);
    let started = ids(&env, "node_started");
    let ready_first: Vec<&String> = started.iter().filter(|id| *id != "late").collect();
    assert_eq!(ready_first, ["zeta", "beta", "alpha"], "{started:?}");
}

#[test]
fn e4_the_flag_outranks_the_graph_and_ten_is_the_most() {
    let env = TestEnv::new();
    let node =
        |n: usize| format!("  - {{id: n{n}, prompt: \"@sh echo + >> log; sleep 0.3; echo - >> log\"}}\n");
    let graph = format!("concurrency: 2\nnodes:\n{}", (0..14).map(node).collect::<String>());
    let ran = env.run_graph(&graph, &["--concurrency", "50"]).exits(0);
    assert_eq!(most_at_once(&env.read("log")), 10);
    assert!((ran.stdout + &ran.stderr).contains("10"), "that it was capped is said");
}

#[test]
fn e5_a_stopped_engine_is_still_running() {
    let env = TestEnv::new();
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@sh while test ! -e go; do sleep 0.02; done"}]"#);
    let running = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || env.spawns().len() == 1);
    running.signal(Signal::STOP);
    let listed = env.omg(&["runs", "list"]).exits(0);
    let shown = env.omg(&["show", "latest"]).exits(0);
    running.signal(Signal::CONT);
    env.write("go", "");
    running.wait().exits(0);
    assert!(listed.stdout.contains("RUNNING"), "{}", listed.stdout);
    assert!(shown.stdout.contains("RUNNING"), "{}", shown.stdout);
    assert!(env.omg(&["runs", "list"]).exits(0).stdout.contains("PASS"));
}

#[test]
fn nodes_that_share_a_session_never_run_at_once() {
    for runtime in ["claude", "codex"] {
        let env = TestEnv::new();
        let graph = r#"
nodes:
  - {id: root, prompt: "@say hello"}
  - {id: left, depends_on: [root], handoff: session, prompt: "@sh echo + >> log; sleep 0.1; echo - >> log"}
  - {id: right, depends_on: [root], handoff: session, prompt: "@sh echo + >> log; sleep 0.1; echo - >> log"}
  - {id: below, depends_on: [left], handoff: session, prompt: "@sh echo + >> log; sleep 0.1; echo - >> log"}
  - {id: apart, depends_on: [root], prompt: "@sh while test ! -e log; do sleep 0.01; done; touch apart"}
"#;
        env.run_graph(graph, &["--runtime", runtime]).exits(0);
        assert_eq!(most_at_once(&env.read("log")), 1, "{runtime}");
        let session = |node: &str| env.record(node)["session_id"].clone();
        for node in ["left", "right", "below"] {
            assert_eq!(session(node), session("root"), "{runtime} {node}");
        }
        assert_ne!(session("apart"), session("root"));
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn a_halt_starts_nothing_that_was_waiting() {
    let env = TestEnv::new();
    let graph = r#"
concurrency: 1
nodes:
  - {id: f, prompt: "@exit 1", retry: {max: 1, on: [nonzero_exit]}}
  - {id: waiting, prompt: "@say never"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.spawns().len(), 2);
    assert_eq!(env.events_of("run_finished")[0]["skipped"][0]["why"], "halted");
    assert!(ran.row("waiting").contains("the run halted when f failed"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_halt_cancels_a_sibling_that_is_being_verified_too() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: s, prompt: "@say PASS", success_check: {verify: {command: "touch begun; sleep 341.20"}}}
  - {id: c, type: command, command: "touch begun_c; sleep 341.20", retry: {max: 2, on: [nonzero_exit, run_error]}}
  - {id: f, prompt: "@sh while test ! -e begun -o ! -e begun_c; do sleep 0.01; done\n@exit 1"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    env.assert_none_left("sleep 341.20");
    for node in ["s", "c"] {
        assert_eq!(env.record(node)["cause"], "cancelled", "{}", ran.stdout);
        assert!(env.record(node)["judged"].is_null());
        assert!(ran.row(node).contains("CANCELLED") && ran.row(node).contains("\"f\""), "{}", ran.stdout);
    }
    assert_eq!(env.record("s")["cost_usd"], 0.01);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_node_that_waits_for_a_session_holds_no_slot() {
    let env = TestEnv::new();
    let graph = r#"
concurrency: 2
nodes:
  - {id: root, prompt: "@say hello"}
  - {id: left, depends_on: [root], handoff: session, timeout: 30s, prompt: "@sh while test ! -e apart; do sleep 0.01; done"}
  - {id: right, depends_on: [root], handoff: session, prompt: "@say right"}
  - {id: apart, depends_on: [root], prompt: "@touch apart"}
"#;
    env.run_graph(graph, &[]).exits(0);
    let order = ids(&env, "node_started");
    assert_eq!(order, ["root", "left", "apart", "right"]);
}

#[test]
fn e3_more_skipped_nodes_than_a_feed_line_holds_are_all_accounted_for() {
    for header in ["on_fail: continue\n", ""] {
        let env = TestEnv::new();
        let parent = |n: usize| if n == 0 { "f".to_owned() } else { format!("n{}", (n - 1) / 2) };
        let node =
            |n: usize| format!("  - {{id: n{n}, depends_on: [{}], prompt: \"@say never\"}}\n", parent(n));
        let graph = format!(
            "{header}nodes:\n  - {{id: f, type: command, command: exit 1}}\n{}",
            (0..620).map(node).collect::<String>()
        );
        let ran = env.run_graph(&graph, &[]).exits(1);
        let finished = env.events_of("run_finished").pop().unwrap();
        assert_eq!(
            (&finished["skipped_count"], finished["skipped"].as_array().unwrap().len()),
            (&620.into(), 500)
        );
        assert_eq!(env.state()["skipped"].as_array().unwrap().len(), 620);
        assert!(ran.row("n619").contains("SKIPPED"), "{}", ran.stdout);
        assert!(env.omg(&["show", "latest"]).exits(0).row("n619").contains("SKIPPED"));
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn a_diamond_runs_each_node_once_and_joins_on_all_its_parents() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: join, depends_on: [left, right, top], prompt: "@say {{ artifacts.left | inline }}+{{ artifacts.right | inline }}"}
  - {id: left, depends_on: [top], prompt: "@sh sleep 0.05\n@say L"}
  - {id: right, depends_on: [top], prompt: "@say R"}
  - {id: top, prompt: "@say T"}
"#;
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.artifact("join").unwrap(), b"L+R");
    assert_eq!(env.spawns().len(), 4);
    assert_eq!(ids(&env, "node_started").first().unwrap(), "top");
    assert_eq!(ids(&env, "node_started").last().unwrap(), "join");
}
