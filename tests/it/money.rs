//! What a run cost: every paid spawn once, on every surface the same, and never a zero for what nobody knows.

use std::fs;

use serde_json::Value;

use crate::contract;
use crate::env::{Ran, TestEnv};

/// Thousandths of a dollar.
fn thousandths(dollars: f64) -> i64 {
    (dollars * 1000.0).round() as i64
}

fn sum<'a>(values: impl Iterator<Item = &'a Value>) -> i64 {
    values.map(|value| thousandths(value.as_f64().unwrap_or(0.0))).sum()
}

/// What the spawns said they cost.
fn paid(env: &TestEnv) -> i64 {
    let told = |spawn: &Value| {
        let prompt = spawn["prompt"].as_str().unwrap().to_owned();
        let line = prompt.lines().find_map(|line| line.strip_prefix("@cost ")).map(str::to_owned);
        line.map_or(0, |line| thousandths(line.parse().unwrap()))
    };
    env.spawns().iter().map(told).sum()
}

/// Holds the sum on every surface against `wanted`, which is followed by `unknown` unknown charges.
#[track_caller]
fn check_total(env: &TestEnv, ran: &Ran, wanted: i64, unknown: usize) {
    let dollars = format!("${:.4}", wanted as f64 / 1000.0);
    let total = match (wanted, unknown) {
        (_, 0) => dollars,
        (0, _) => "unknown".to_owned(),
        _ => format!("≥ {dollars} ({unknown} unknown)"),
    };
    let line = format!("TOTAL COST: {total}\n");
    assert!(ran.stdout.contains(&line), "{line}{}", ran.stdout);
    let state = env.state();
    assert_eq!(
        sum(state["nodes"].as_object().into_iter().flatten().map(|(_, record)| &record["cost_usd"])),
        wanted
    );
    assert_eq!(sum(env.events().iter().map(|event| &event["cost_usd"])), wanted);
    let in_feed = env.events().iter().filter(|event| event["cost_unknown"] == true).count();
    assert_eq!(in_feed, unknown, "each unknown charge stands in the feed once");
    for words in [&["runs", "list"][..], &["show", "latest"]] {
        let shown = env.omg(words).exits(0).stdout;
        assert!(shown.contains(&line), "{line}{shown}");
    }
    let listed: Value = serde_json::from_str(&env.omg(&["runs", "list", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(thousandths(listed["total"]["cost_usd"].as_f64().unwrap()), wanted, "{listed}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn f1_every_attempt_is_paid_for_once() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    prompt: "@append f\n@cost 0.01"
    retry: {max: 3, on: [verify_failed]}
    success_check: {verify: {command: "test $(wc -l < f) -ge 3"}}
"#;
    let ran = env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.spawns().len(), 3);
    assert!(ran.row("x").contains(" 0.0300 "), "{}", ran.stdout);
    check_total(&env, &ran, 30, 0);
}

/// A node of a mixed graph: healthy, healed, hopeless, below a hopeless one, over its budget, verified late, a command.
fn node(n: usize) -> String {
    let cost = format!("0.{:03}", 3 * n + 1);
    let rest = match n % 7 {
        0 => format!("prompt: \"@cost {cost}\""),
        1 => format!(
            "prompt: \"@cost {cost}\\n@reply-n no|no|yes {n}\", retry: {{max: 2, on: [result_mismatch]}}, \
             success_check: {{result_matches: \"^yes\"}}"
        ),
        2 => format!("prompt: \"@cost {cost}\\n@exit 3\", retry: {{max: 1, on: [nonzero_exit]}}"),
        3 => format!("depends_on: [n{}], prompt: \"@cost {cost}\"", n - 1),
        4 => format!("prompt: \"@cost {cost}\", budget_usd: 0.0001"),
        5 => format!(
            "prompt: \"@cost {cost}\\n@append f{n}\", retry: {{max: 2, on: [verify_failed]}}, \
             success_check: {{verify: {{command: \"test $(wc -l < f{n}) -ge 2\"}}}}"
        ),
        _ => "type: command, command: \"exit 1\", retry: {max: 1, on: [nonzero_exit]}".to_owned(),
    };
    format!("  - {{id: n{n}, {rest}}}\n")
}

#[test]
fn f1_all_surfaces_agree_on_a_mixed_run() {
    let env = TestEnv::new();
    let graph =
        format!("concurrency: 10\non_fail: continue\nnodes:\n{}", (0..32).map(node).collect::<String>());
    let ran = env.run_graph(&graph, &[]).exits(1);
    // Five healthy, five healed by the third attempt, five hopeless twice, four over budget, four verified late.
    assert_eq!(env.spawns().len(), 5 + 5 * 3 + 5 * 2 + 4 + 4 * 2);
    let wanted = paid(&env);
    check_total(&env, &ran, wanted, 0);
}

#[test]
fn f1_all_surfaces_agree_on_a_run_that_was_interrupted_anywhere() {
    let graph =
        format!("concurrency: 7\non_fail: continue\nnodes:\n{}", (0..32).map(node).collect::<String>());
    for moment in [1, 4, 12, 21, 34, 48, 62] {
        let env = TestEnv::new();
        env.write("g.yaml", &graph);
        let running = env.start(&["run", "g.yaml"]);
        env.until("enough has happened", || !env.runs().is_empty() && env.feed_lines() >= moment);
        running.signal(rustix::process::Signal::INT);
        let ran = running.wait().exits(130);
        let wanted = sum(env.events().iter().map(|event| &event["cost_usd"]));
        let unknown = env.events().iter().filter(|event| event["cost_unknown"] == true).count();
        check_total(&env, &ran, wanted, unknown);
        let started = env.spawns().len();
        assert!(paid(&env) >= wanted, "no more is charged than {started} spawns cost");
    }
}

#[test]
fn an_unknown_price_is_never_a_zero() {
    let env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - {id: known, prompt: "@cost 0.02"}
  - {id: silent, prompt: "@nocost"}
  - {id: mute, prompt: "@empty", retry: {max: 1, on: [output_error]}}
  - {id: mixed, prompt: "@cost 0.04\n@reply-n no|yes\n@on 2 nocost", retry: {max: 1, on: [result_mismatch]}, success_check: {result_matches: "^yes"}}
  - {id: free, type: command, command: "true"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert!(ran.row("silent").ends_with(" unknown"), "{}", ran.stdout);
    assert!(ran.row("mixed").contains("≥ 0.0400 (1 unknown)"), "{}", ran.stdout);
    assert!(ran.row("free").ends_with(" 0.0000"), "{}", ran.stdout);
    check_total(&env, &ran, 60, 4);
}

#[test]
fn an_absurd_price_is_unknown_and_said() {
    for price in ["-1", "1e300"] {
        let env = TestEnv::new();
        let ran = env.run_graph(&format!("nodes: [{{id: x, prompt: \"@cost {price}\"}}]"), &[]).exits(0);
        assert!(ran.stdout.contains("TOTAL COST: unknown"), "{}", ran.stdout);
        assert!(ran.stderr.contains("warning") || ran.stderr.contains('⚠'), "{}", ran.stderr);
        contract::check_run_dir(&env.run_dir());
    }
}

/// Writes the transcript that claude keeps of a session; `totals` are what it says the session cost so far.
fn plant_transcript(env: &TestEnv, session: &str, totals: &[f64]) {
    let project = env.home().parent().unwrap().join("user/.claude/projects/-some-place");
    fs::create_dir_all(&project).unwrap();
    let line = |total: &f64| {
        format!("{{\"type\":\"cost-state\",\"totalCostUSD\":{total}}}\n{{\"type\":\"user\"}}\n")
    };
    fs::write(project.join(format!("{session}.jsonl")), totals.iter().map(line).collect::<String>()).unwrap();
}

const CHAIN: &str = r#"
nodes:
  - {id: root, prompt: "@session s-1\n@cost 0.21"}
  - {id: two, depends_on: [root], handoff: session, prompt: "@cost SECOND"}
  - {id: three, depends_on: [two], handoff: session, budget_usd: 0.3, prompt: "@cost THIRD"}
"#;

fn costs(env: &TestEnv) -> [Value; 3] {
    ["root", "two", "three"].map(|node| env.record(node)["cost_usd"].clone())
}

#[test]
fn a_resumed_session_that_reports_its_whole_cost_is_charged_its_share() {
    let env = TestEnv::new();
    plant_transcript(&env, "s-1", &[0.1, 0.21]);
    let graph = CHAIN.replace("SECOND", "0.42").replace("THIRD", "0.63");
    let ran = env.run_graph(&graph, &[]).exits(0);
    assert_eq!(
        costs(&env),
        [0.21, 0.21, 0.21].map(Value::from),
        "the budget is not blown by the parents' costs"
    );
    check_total(&env, &ran, 630, 0);
}

#[test]
fn a_resumed_session_that_reports_itself_alone_is_charged_what_it_reports() {
    let env = TestEnv::new();
    let graph = CHAIN.replace("SECOND", "0.2").replace("THIRD", "0.25");
    let ran = env.run_graph(&graph, &[]).exits(0);
    assert_eq!(costs(&env), [0.21, 0.2, 0.25].map(Value::from));
    check_total(&env, &ran, 660, 0);
}

#[test]
fn a_total_that_went_down_is_unknown() {
    let env = TestEnv::new();
    plant_transcript(&env, "s-1", &[0.5]);
    let graph = CHAIN.replace("SECOND", "0.42").replace("THIRD", "0.7");
    let ran = env.run_graph(&graph, &[]).exits(0);
    assert_eq!(env.record("two")["cost_unknown"], true);
    assert!(ran.stderr.contains("two") && ran.stderr.contains("unknown"), "{}", ran.stderr);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_codex_thread_that_reports_its_whole_usage_is_charged_its_share() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: root, prompt: "@session t-1\n@tokens 100 20"}
  - {id: two, depends_on: [root], handoff: session, prompt: "@tokens 250 50"}
  - {id: three, depends_on: [two], handoff: session, prompt: "@tokens 300 60"}
  - {id: apart, depends_on: [root], prompt: "@tokens 7 1"}
"#;
    let ran = env.run_graph(graph, &["--runtime", "codex"]).exits(0);
    let usage = |node: &str| {
        let usage = env.record(node)["usage"].clone();
        (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap())
    };
    assert_eq!(
        [usage("root"), usage("two"), usage("three"), usage("apart")],
        [(100, 20), (150, 30), (50, 10), (7, 1)]
    );
    assert!(ran.stdout.contains("TOTAL COST: unknown"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("TOKEN USAGE: input 307, cached 0, output 61, reasoning 0"),
        "{}",
        ran.stdout
    );
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_codex_retry_counts_the_tokens_of_every_attempt() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    prompt: "@tokens 100 20\n@reply-n no|no|yes"
    retry: {max: 2, on: [result_mismatch]}
    success_check: {result_matches: "^yes"}
"#;
    env.run_graph(graph, &["--runtime", "codex"]).exits(0);
    let record = env.record("x");
    assert_eq!((&record["usage"]["input_tokens"], &record["cost_unknown"]), (&300.into(), &true.into()));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn what_died_with_its_engine_is_unknown_on_every_screen_from_then_on() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, prompt: \"@cost 0.03\"}, {id: b, prompt: \"@on 1 sleep 30\", depends_on: [a]}, {id: c, type: command, command: \"test -e again || sleep 30\", depends_on: [a]}]");
    let run = env.start(&["run", "g.yaml"]);
    env.until("all have begun", || env.spawns().len() == 2 && env.feed_lines() == 5);
    run.signal(rustix::process::Signal::KILL);
    run.wait();
    for words in [&["runs", "list"][..], &["show", "latest"]] {
        let shown = env.omg(words).exits(0).stdout;
        assert!(shown.contains("TOTAL COST: ≥ $0.0300 (1 unknown)"), "{shown}");
    }
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.row("b").contains("LOST") && shown.row("b").contains("unknown"), "{}", shown.stdout);
    assert!(!shown.row("c").contains("unknown"), "a command costs nothing: {}", shown.stdout);
    let listed: Value = serde_json::from_str(&env.omg(&["runs", "list", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(listed["runs"][0]["unknown_charges"], 1, "{listed}");
    let shown: Value = serde_json::from_str(&env.omg(&["show", "latest", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(shown["run"]["cost_unknown"], true, "{shown}");
    assert_eq!(shown["nodes"][1]["record"]["cost_unknown"], true, "{shown}");
    env.write("again", "");
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    check_total(&env, &ran, 40, 1);
}
