//! The cycles of a goal: what begins another one, what ends it, and that the summary holds every cent (FACTS 12, 65 and 66).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{after, graph, has, node};
use crate::contract;
use crate::env::{Ran, TestEnv};

const UNMET: &str = r#"{"goal_met": false, "remaining": "the docs are missing", "evidence": "no docs"}"#;
const MET: &str = r#"{"goal_met": true, "evidence": "all of it is there"}"#;
const WIDE: &str = r#"{"nodes": [{"id": "a", "prompt": "x", "allowed_tools": ["Bash(*)"]}]}"#;

/// A place whose planner follows the directive `planner`, and whose judge `judge`.
fn place(planner: &str, judge: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let cues = env.write("cues", format!("You plan work => @{planner}\nYou judge whether => @{judge}\n"));
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

/// A place whose plan is always this one, and whose judge says these words one after another.
fn judged(nodes: &[Value], words: &[&str]) -> TestEnv {
    place(&format!("say {}", graph(nodes)), &format!("reply-n {}", words.join("|")))
}

/// The prompts of all calls that begin so.
fn prompts(env: &TestEnv, start: &str) -> Vec<String> {
    let prompts = env.spawns().into_iter().map(|spawn| spawn["prompt"].as_str().unwrap().to_owned());
    prompts.filter(|prompt| prompt.starts_with(start)).collect()
}

fn judges(env: &TestEnv) -> Vec<Value> {
    let is_judge = |spawn: &Value| spawn["prompt"].as_str().unwrap().starts_with("You judge whether");
    env.spawns().into_iter().filter(is_judge).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The summary says what the stand-in took, a cent a call.
#[track_caller]
fn sums_up(env: &TestEnv, ran: &Ran, cycles: &str) {
    let wanted = format!("GOAL TOTAL: $0.{:02}00 ({cycles})\n", env.spawns().len());
    assert!(ran.stdout.contains(&wanted), "{wanted}: {}", ran.stdout);
}

#[test]
fn a_goal_goes_on_with_what_remains_until_it_is_met() {
    let env = judged(&[node("work", &[], "@say made"), node("check", &["work"], "@say PASS")], &[UNMET, MET]);
    let ran = env.omg(&["auto", "make it good", "--max-cycles", "3"]).exits(0);
    let runs = env.runs();
    assert_eq!(runs.len(), 2);
    let first = runs[0].file_name().unwrap().to_str().unwrap();
    for (run, cycle) in runs.iter().zip(1..) {
        contract::check_run_dir(run);
        let goal = json!({"text": "make it good", "cycle": cycle, "max_cycles": 3, "first_run_id": first});
        assert_eq!(json(&run.join("state.json"))["goal"], goal);
        assert_eq!(json(&run.join("goal.json")), goal);
        let kept = run.join("assess.json");
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&kept).unwrap().ends_with("}\n"));
        let id = run.file_name().unwrap().to_str().unwrap();
        assert!(ran.stdout.contains(&format!("\nCycle {cycle}/3 (run {id})...\n")), "{}", ran.stdout);
        let outcome = format!("  cycle {cycle}/3  {id}  PASSED  run $0.0300, assessment $0.0100  -> ");
        assert!(ran.stdout.contains(&outcome), "{}", ran.stdout);
    }
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let unmet = json!({"goal_met": false, "remaining": "the docs are missing", "evidence": "no docs",
        "assess_cost_usd": 0.01, "usage": usage});
    assert_eq!(json(&runs[0].join("assess.json")), unmet);
    let met =
        json!({"goal_met": true, "evidence": "all of it is there", "assess_cost_usd": 0.01, "usage": usage});
    assert_eq!(json(&runs[1].join("assess.json")), met);
    let planned = prompts(&env, "You plan work");
    assert!(!planned[0].contains("fell short") && planned[1].contains("fell short"), "{}", planned[1]);
    assert!(planned[1].contains("the docs are missing"));
    sums_up(&env, &ran, "2 assessed cycles");
    assert!(ran.stdout.contains("  remaining: the docs are missing\n"), "{}", ran.stdout);
    let shown = env.omg(&["show", first]).exits(0);
    let told = "goal \"make it good\", cycle 1 of 3\nthe judge: not met, $0.0100\n  remaining: the docs are missing\n  evidence: no docs\n";
    assert!(shown.stdout.contains(told), "{}", shown.stdout);
    let judge = env.omg(&["show", first, "assessor"]).exits(0);
    assert!(
        judge.stdout.starts_with("The assessor of run ") && judge.stdout.contains("cost $0.0100\n"),
        "{}",
        judge.stdout
    );
    assert!(judge.stdout.contains("You judge whether") && judge.stdout.contains(UNMET), "{}", judge.stdout);
}

#[test]
fn the_judge_has_no_tool_and_nobodys_settings_and_sees_what_the_nodes_left() {
    let env = judged(&[node("work", &[], "@say made\n")], &[UNMET, MET]);
    env.omg(&["auto", "make it good", "--max-cycles", "2", "--accept-loaded-user-config"]).exits(0);
    let judges = judges(&env);
    assert_eq!(judges.len(), 2);
    let denied = "Bash,Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent,Read,Glob,Grep";
    for judge in &judges {
        assert_eq!(after(judge, "--permission-mode"), Some("plan"), "{judge}");
        assert_eq!(after(judge, "--tools"), Some(""), "{judge}");
        assert_eq!(after(judge, "--setting-sources"), Some(""), "{judge}");
        assert_eq!(after(judge, "--disallowedTools"), Some(denied), "{judge}");
        assert!(has(judge, "--strict-mcp-config") && !has(judge, "--plugin-dir"), "{judge}");
    }
    let prompts = prompts(&env, "You judge whether");
    assert!(
        prompts[0].contains("make it good") && prompts[0].contains("PASSED, cost $0.0200"),
        "{}",
        prompts[0]
    );
    assert!(prompts[0].contains("work: PASS (exit-only), cost $0.0100") && prompts[0].contains("\nmade\n"));
    assert!(!prompts[0].contains("the docs are missing") && prompts[1].contains("the docs are missing"));
}

#[test]
fn on_codex_a_goal_is_judged_under_the_same_stance_and_no_price_is_told() {
    let env = judged(&[node("work", &[], "@say made")], &[UNMET, MET]);
    let ran = env.omg(&["--runtime", "codex", "auto", "a goal", "--max-cycles", "3"]).exits(0);
    let judges = judges(&env);
    assert_eq!(judges.len(), 2);
    for judge in &judges {
        assert_eq!(after(judge, "--sandbox"), Some("read-only"), "{judge}");
        for word in ["--ignore-user-config", "--ignore-rules", "project_doc_max_bytes=0", "mcp_servers={}"] {
            assert!(has(judge, word), "{word}: {judge}");
        }
    }
    assert!(ran.stdout.contains("GOAL TOTAL: unknown") && !ran.stdout.contains('$'), "{}", ran.stdout);
    let kept = json(&env.runs().pop().unwrap().join("assess.json"));
    assert_eq!((&kept["goal_met"], &kept["assess_cost_unknown"]), (&json!(true), &json!(true)));
    assert_eq!((&kept["assess_cost_usd"], &kept["usage"]["input_tokens"]), (&json!(0.0), &json!(10)));
}

#[test]
fn a_verdict_that_cannot_be_kept_counts_all_the_same() {
    let work = node("work", &[], "@sh mkdir -p $(ls -d $OMG_HOME/runs/*)/assess.json/x\n@say made");
    let env = judged(&[work], &[MET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "2"]).exits(0);
    assert!(ran.stderr.contains("note: ") && ran.stderr.contains("cannot be kept"), "{}", ran.stderr);
    sums_up(&env, &ran, "1 assessed cycle");
}

#[test]
fn the_judge_sees_what_a_node_left_that_failed_by_its_price_alone() {
    let mut work = node("work", &[], "@say made for too much");
    work["budget_usd"] = json!(0.001);
    let env = judged(&[work, node("next", &["work"], "@say made")], &[MET]);
    env.omg(&["auto", "a goal", "--max-cycles", "2"]).exits(1);
    let shown = prompts(&env, "You judge whether").remove(0);
    assert!(shown.contains("--- artifact work ") && shown.contains("\nmade for too much\n"), "{shown}");
}

#[test]
fn a_goal_that_is_met_at_first_takes_one_cycle() {
    let env = judged(&[node("work", &[], "@say made")], &[MET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "5"]).exits(0);
    assert_eq!(env.runs().len(), 1);
    sums_up(&env, &ran, "1 assessed cycle");
}

#[test]
fn a_nul_in_what_was_left_or_remains_keeps_nobody_from_being_asked() {
    let unmet = r#"{"goal_met": false, "remaining": "mend a\u0000b"}"#;
    let left = r#"@raw {"type":"result","is_error":false,"result":"a\u0000b","session_id":"s","total_cost_usd":0.01}"#;
    let env = judged(&[node("work", &[], left)], &[unmet, MET]);
    env.omg(&["auto", "a goal", "--max-cycles", "2"]).exits(0);
    assert!(prompts(&env, "You judge whether")[0].contains("a\u{FFFD}b"));
    assert!(prompts(&env, "You plan work")[1].contains("mend a\u{FFFD}b"));
}

#[test]
fn a_planner_that_died_with_its_engine_cost_what_nobody_knows() {
    let env = place("sh touch begun; sleep 600", "say x");
    let running = env.start(&["auto", "a goal", "--max-cycles", "2"]);
    env.until("the planner is asked", || env.path("begun").exists());
    running.kill();
    env.until("the guard has ended it", || env.pids_of("sleep 600").is_empty());
    let shown = env.omg(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("PLANNING COST: unknown\nTOTAL COST: unknown\n"), "{shown}");
    assert!(shown.contains("while it was being planned: plan the goal again"), "{shown}");
    let list = env.omg(&["runs", "list"]).exits(0).stdout;
    assert!(list.contains("1 run(s), TOTAL COST: unknown"), "{list}");
}

#[test]
fn what_to_do_next_is_said_of_where_a_goal_stopped() {
    let sleep = "sh touch begun; sleep 600";
    let plans = format!("reply-n {}|{WIDE}", graph(&[node("work", &[], "@say made")]));
    let env = place(&plans, &format!("say {UNMET}"));
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "3"]).exits(1);
    let first = env.runs()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let told =
        format!("  hint: remaining: the docs are missing; omg show {first} has what was done last; a goal");
    assert!(ran.stderr.contains(&told) && !ran.stderr.contains("type the same again"), "{}", ran.stderr);
    let env = place(&format!("say {}", graph(&[node("work", &[], "@exit 1")])), sleep);
    let ran = interrupted(&env, || env.path("begun").exists());
    let run = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    let told =
        format!("  hint: it failed: omg show {run}; what passed is kept: omg resume {run} --retry-failed");
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
}

#[test]
fn cycles_that_are_used_up_tell_what_remains() {
    let env = judged(&[node("work", &[], "@say made")], &[UNMET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "2"]).exits(1);
    assert_eq!(env.runs().len(), 2);
    assert!(ran.stderr.contains("the goal is not reached: 2 cycles are used up"), "{}", ran.stderr);
    assert!(ran.stderr.contains("remaining: the docs are missing"), "{}", ran.stderr);
    sums_up(&env, &ran, "2 assessed cycles");
}

#[test]
fn a_judge_cannot_make_a_failed_run_a_passed_one() {
    let env = judged(&[node("work", &[], "@exit 1")], &[MET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "2"]).exits(1);
    assert_eq!(env.runs().len(), 1);
    let run = env.run_dir();
    let told = format!("reached, but run {}: ", run.file_name().unwrap().to_str().unwrap());
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(ran.stdout.contains("FAILED  run $0.0200, assessment $0.0100  -> met"), "{}", ran.stdout);
}

#[test]
fn auto_66_a_ceiling_ends_a_goal_between_cycles() {
    let env = judged(&[node("work", &[], "@say made")], &[UNMET]);
    let words = ["auto", "a goal", "--max-cycles", "3", "--max-goal-budget-usd", "0.03"];
    let ran = env.omg(&words).exits(1);
    assert_eq!(env.runs().len(), 1);
    assert_eq!(env.state()["goal"]["budget_usd"], 0.03);
    assert!(ran.stderr.contains("$0.0300 are spent, and no cycle begins beyond $0.0300"), "{}", ran.stderr);
    sums_up(&env, &ran, "1 assessed cycle");
    // Less than can be counted is still a bound.
    let env = judged(&[node("work", &[], "@say made")], &[UNMET]);
    env.omg(&["auto", "a goal", "--max-cycles", "3", "--max-goal-budget-usd", "1e-12"]).exits(1);
    assert_eq!(env.runs().len(), 1);
    let env = judged(&[node("work", &[], "@say made\n@nocost")], &[UNMET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "3", "--max-goal-budget-usd", "5"]).exits(1);
    assert_eq!(env.runs().len(), 1);
    assert!(ran.stderr.contains("unknown") && ran.stderr.contains("$5.0000"), "{}", ran.stderr);
    assert!(ran.stdout.contains("GOAL TOTAL: ≥ $0.0200 (1 unknown)"), "{}", ran.stdout);
}

#[test]
fn a_plan_that_is_refused_in_a_later_cycle_ends_the_goal_and_is_counted() {
    let plans = format!("reply-n {}|{WIDE}|{WIDE}", graph(&[node("work", &[], "@say made")]));
    let env = place(&plans, &format!("say {UNMET}"));
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "3"]).exits(1);
    let runs = env.runs();
    assert_eq!(runs.len(), 2);
    assert!(runs[1].join("rejected.json").exists() && !runs[1].join("state.json").exists());
    assert!(ran.stderr.contains("the plan was refused"), "{}", ran.stderr);
    assert!(ran.stdout.contains("incomplete: nothing ran, planning $0.0200"), "{}", ran.stdout);
    assert_eq!(env.spawns().len(), 5);
    sums_up(&env, &ran, "1 assessed cycle + 1 incomplete cycle");
    let list = env.omg(&["runs", "list"]).exits(0);
    assert!(list.stdout.contains("FAIL"), "{}", list.stdout);
}

#[test]
fn auto_65_a_reply_that_is_no_verdict_ends_the_goal_and_is_counted() {
    for (words, told) in [
        ("say It looks done.", "no JSON object: It looks done."),
        (r#"say {"remaining": "x"}"#, "does not say goal_met"),
        ("exit 3", "the assessor ended with exit code 3"),
    ] {
        let env = place(&format!("say {}", graph(&[node("work", &[], "@say made")])), words);
        let ran = env.omg(&["auto", "a goal", "--max-cycles", "3"]).exits(1);
        assert_eq!(env.runs().len(), 1, "{words}");
        assert!(ran.stderr.contains("was not judged: ") && ran.stderr.contains(told), "{}", ran.stderr);
        assert!(!env.run_dir().join("assess.json").exists());
        assert!(ran.stdout.contains("it was not judged, run $0.0200, assessment $0.0100"), "{}", ran.stdout);
        sums_up(&env, &ran, "0 assessed cycles + 1 incomplete cycle");
    }
}

#[test]
fn a_run_that_pauses_pauses_the_goal() {
    let env = judged(&[node("a", &[], "@say made"), node("b", &["a"], "@say made")], &[MET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "3", "--max-executions", "1"]).exits(2);
    assert!(judges(&env).is_empty());
    assert!(
        ran.stdout.contains("incomplete: its run did not come to its end, run $0.0200")
            && ran.stdout.contains("omg resume goes on with that run alone"),
        "{}",
        ran.stdout
    );
    sums_up(&env, &ran, "0 assessed cycles + 1 incomplete cycle");
    let before = env.state()["goal"].clone();
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "2"]).exits(0);
    assert_eq!(env.state()["goal"], before, "a later leg keeps the lineage");
    assert!(before.is_object() && judges(&env).is_empty());
}

#[test]
fn a_goal_of_one_cycle_leaves_no_trace_of_cycles() {
    let env = judged(&[node("work", &[], "@say made")], &[MET]);
    let ran = env.omg(&["auto", "a goal", "--max-cycles", "1"]).exits(0);
    assert!(judges(&env).is_empty() && !env.run_dir().join("assess.json").exists());
    assert!(env.state()["goal"].is_null() && !ran.stdout.contains("GOAL TOTAL"), "{}", ran.stdout);
}

/// Interrupts a goal once `ready`, and waits for its end.
fn interrupted(env: &TestEnv, ready: impl FnMut() -> bool) -> Ran {
    let running = env.start(&["auto", "a goal", "--max-cycles", "3"]);
    env.until("it is under way", ready);
    running.signal(Signal::INT);
    let ran = running.wait().exits(130);
    env.assert_none_left("sleep 600");
    for run in env.runs() {
        contract::check_run_dir(&run);
    }
    ran
}

#[test]
fn ctrl_c_ends_a_goal_wherever_it_is() {
    let sleep = "touch begun; sleep 600";
    let plan = graph(&[node("work", &[], "@say made")]);
    let env = place(&format!("sh {sleep}"), "say x");
    let ran = interrupted(&env, || env.path("begun").exists());
    assert!(ran.stdout.contains("incomplete: nothing ran, planning unknown"), "{}", ran.stdout);
    let slow = graph(&[node("work", &[], &format!("@sh {sleep}"))]);
    let env = place(&format!("say {slow}"), &format!("say {MET}"));
    let ran = interrupted(&env, || env.path("begun").exists());
    assert!(judges(&env).is_empty());
    assert!(ran.stdout.contains("GOAL TOTAL: ≥ $0.0100 (1 unknown)"), "{}", ran.stdout);
    let env = place(&format!("say {plan}"), &format!("sh {sleep}"));
    let ran = interrupted(&env, || env.path("begun").exists());
    assert!(ran.stderr.contains("before run "), "{}", ran.stderr);
    assert!(ran.stdout.contains("it was not judged, run $0.0200, assessment unknown"), "{}", ran.stdout);
    assert!(!env.run_dir().join("assess.json").exists());
    assert_eq!(env.runs().len(), 1);
}

#[test]
fn a_goal_can_be_stopped_from_elsewhere_while_its_run_is_judged() {
    let plan = graph(&[node("work", &[], "@exit 1")]);
    let env = place(&format!("say {plan}"), "sh touch begun; sleep 600");
    let running = env.start(&["auto", "a goal", "--max-cycles", "2"]);
    env.until("the judge is asked", || env.path("begun").exists());
    let resumed = env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert!(resumed.stderr.contains(&running.pid().to_string()), "{}", resumed.stderr);
    let stopped = env.omg(&["stop", "--all"]).exits(0);
    assert!(stopped.stdout.contains("has ended: FAIL"), "{}", stopped.stdout);
    let ran = running.wait().exits(143);
    assert!(ran.stderr.contains("interrupted by SIGTERM before run "), "{}", ran.stderr);
    env.assert_none_left("sleep 600");
}

#[test]
fn the_guard_ends_a_judge_whose_engine_was_killed() {
    let plan = graph(&[node("work", &[], "@say made")]);
    let env = place(&format!("say {plan}"), "sh touch begun; sleep 600");
    let running = env.start(&["auto", "a goal", "--max-cycles", "2"]);
    env.until("the judge is asked", || env.path("begun").exists());
    running.kill();
    env.until("the guard has ended it", || env.pids_of("sleep 600").is_empty());
    env.until("the guard is gone", || env.guards().is_empty());
}

#[test]
fn auto_7_what_is_wrong_with_the_bounds_is_told_in_order_and_before_any_spend() {
    let env = judged(&[node("work", &[], "@say made")], &[MET]);
    let auto = ["auto", "a goal"];
    for (flags, told) in [
        (&["--max-cycles", "0", "--max-goal-budget-usd", "-1"][..], "--max-cycles 0"),
        (&["--max-cycles", "-3"], "--max-cycles -3"),
        (&["--max-goal-budget-usd", "-1", "--plan-only"], "--max-goal-budget-usd -1"),
        (&["--max-goal-budget-usd", "NaN"], "--max-goal-budget-usd NaN"),
        (&["--max-goal-budget-usd", "1", "--plan-only"], "before a second cycle, and there is none"),
        (&["--max-cycles", "2", "--plan-only", "--verify-timeout", "1m"], "--plan-only runs nothing"),
        (&["--max-cycles", "2", "--runtime", "codex", "--max-goal-budget-usd", "1"], "tells no prices"),
        (&["--accept-no-build-evidence", "--verify-cmd", " "], "--accept-no-build-evidence"),
    ] {
        let ran = env.omg(&[&auto[..], flags].concat()).exits(1);
        assert!(ran.stderr.contains(told), "{flags:?}: {}", ran.stderr);
    }
    assert!(env.spawns().is_empty() && !env.home().join("runs").exists());
}

#[test]
fn a_browser_is_opened_for_the_first_cycle_alone() {
    let mut env = judged(&[node("work", &[], "@say made")], &[UNMET]);
    let opened = env.path("opened");
    env.set("BROWSER", "true");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" >> {}\n", opened.display()));
    let Some(mut command) = env.on_terminal("auto goal --max-cycles 2") else { return };
    let ran = crate::env::Running::of(&mut command).wait().exits(1);
    assert_eq!(ran.stdout.matches("Live view: http://127.0.0.1:").count(), 2, "{}", ran.stdout);
    env.until("the browser is there", || opened.exists());
    assert_eq!(fs::read_to_string(&opened).unwrap().lines().count(), 1);
}
