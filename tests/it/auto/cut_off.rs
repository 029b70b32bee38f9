//! Planning that is cut off, refused or cannot be kept: what was paid is told and kept all the same, and nothing goes on.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{graph, node, place, planning};
use crate::env::TestEnv;

const WIDE: &str = r#"{"name":"w","nodes":[{"id":"a","prompt":"x","allowed_tools":["Bash(*)"]}]}"#;

/// A place whose planner answers by these directives, one a line.
fn cued(cues: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let cues = env.write("cues", cues);
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

/// Kills an engine once its planner has touched `asked`.
fn killed(env: &TestEnv, words: &[&str]) {
    let running = env.start(words);
    env.until("the planner runs", || env.path("asked").exists());
    running.signal(Signal::KILL);
    running.wait();
}

#[test]
fn a_planner_that_died_with_its_engine_is_paid_at_an_unknown_price() {
    let env = cued("You plan work => @touch asked\nYou plan work => @sleep 611\n");
    killed(&env, &["auto", "a goal"]);
    env.until("the guard has ended the planner", || env.run_dir().join("guard.json").exists());
    env.assert_none_left("sleep 611");
    let list = env.omg(&["runs", "list"]).exits(0);
    assert!(
        list.stdout.contains("ABANDONED") && list.stdout.contains("TOTAL COST: unknown"),
        "{}",
        list.stdout
    );
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.stdout.contains("PLANNING COST: unknown\nTOTAL COST: unknown"), "{}", shown.stdout);
    assert!(shown.stdout.contains("plan the goal again"), "{}", shown.stdout);
    let document: Value =
        serde_json::from_str(&env.omg(&["show", "latest", "--json"]).exits(0).stdout).unwrap();
    assert_eq!((&document["run"]["cost_usd"], &document["run"]["unknown_charges"]), (&json!(0.0), &json!(1)));
}

#[test]
fn what_a_refused_reply_cost_outlives_the_engine_and_so_does_the_reply() {
    let env = cued(&format!(
        "You plan work => @say {WIDE}\nYour last reply was refused => @touch asked\nYour last reply was refused => @sleep 612\n"
    ));
    killed(&env, &["auto", "a goal"]);
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.stdout.contains("PLANNING COST: ≥ $0.0100 (1 unknown)"), "{}", shown.stdout);
    let kept = fs::read_to_string(env.run_dir().join("rejected.json")).unwrap();
    assert!(kept.contains("Bash(*)"), "{kept}");
}

#[test]
fn a_preview_that_is_killed_leaves_no_planner() {
    let env = cued("You plan work => @touch asked\nYou plan work => @sleep 613\n");
    killed(&env, &["auto", "a goal", "--plan-only"]);
    env.until("the planner is ended", || env.pids_of("sleep 613").is_empty());
}

#[test]
fn a_second_call_that_fails_keeps_the_first_reply_and_says_what_was_wrong_with_it() {
    for (second, told) in [("@exit 3", "ended with exit code 3"), ("@say sorry", "no JSON object")] {
        let env = cued(&format!("You plan work => @say {WIDE}\nYour last reply was refused => {second}\n"));
        let ran = env.omg(&["auto", "a goal"]).exits(1);
        let refused = "the first reply, for $0.0100, was refused: node \"a\": allowed_tools: \"Bash(*)\"";
        assert!(ran.stderr.contains(told) && ran.stderr.contains(refused), "{}", ran.stderr);
        let kept = fs::read_to_string(env.run_dir().join("rejected.json")).unwrap();
        assert!(kept.contains("Bash(*)"), "{kept}");
    }
}

#[test]
fn a_corrected_reply_leaves_nothing_of_the_refused_one() {
    let env = place(WIDE, &graph(&[node("a", &[], "@say done")]).to_string());
    env.omg(&["auto", "a goal"]).exits(0);
    assert!(!env.run_dir().join("rejected.json").exists() && !env.run_dir().join("planning.json").exists());
}

#[test]
fn no_corrected_reply_is_bought_beyond_the_persons_bound() {
    let env = place(WIDE, &graph(&[node("a", &[], "@say done")]).to_string());
    let ran = env.omg(&["auto", "a goal", "--max-usd", "0.005"]).exits(1);
    assert!(ran.stderr.contains("leaves no room for a corrected reply"), "{}", ran.stderr);
    assert_eq!(env.spawns().len(), 1);
}

#[test]
fn where_no_plan_can_be_kept_none_is_bought() {
    let env = planning(&[node("a", &[], "@say done")]);
    fs::create_dir_all(env.home()).unwrap();
    fs::write(env.home().join("plans"), "").unwrap();
    let ran = env.omg(&["auto", "a goal", "--plan-only"]).exits(1);
    assert!(ran.stderr.contains("no plan can be kept") && env.spawns().is_empty(), "{}", ran.stderr);
}

#[test]
fn a_plan_that_was_bought_and_cannot_be_kept_is_printed_with_its_price() {
    // The planner itself plants what stands in the way.
    let plan = graph(&[node("a", &[], "@say done")]);
    let env = cued(&format!(
        "You plan work => @sh mkdir $OMG_HOME/runs/$OMG_RUN/graph.json\nYou plan work => @say {plan}\n"
    ));
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert!(ran.stdout.contains("\"prompt\": \"@say done\""), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("TOTAL COST: $0.0100") && ran.stderr.contains("cannot be kept"),
        "{}",
        ran.stderr
    );
}

#[test]
fn where_no_copies_can_be_made_the_plan_runs_without_agents_and_skills() {
    let env = planning(&[node("reviewer", &[], "@say A")]);
    env.write("../user/.claude/agents/reviewer.md", "---\nname: reviewer\n---\nReview.\n");
    env.write("../user/.claude/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: d\n---\nTidy up.\n");
    fs::create_dir_all(env.home()).unwrap();
    fs::write(env.home().join("staged"), "").unwrap();
    let ran = env.omg(&["auto", "a goal"]).exits(0);
    assert!(
        ran.stdout.contains("skills are OFF: neither they nor agents of yours can be given"),
        "{}",
        ran.stdout
    );
    let (_, nodes) = super::spawns(&env);
    assert!(!super::has(&nodes[0], "--agent") && !super::has(&nodes[0], "--plugin-dir"), "{}", nodes[0]);
    assert_eq!(super::after(&nodes[0], "--tools"), Some("Read,Bash"));
}

#[test]
fn a_run_that_is_being_planned_is_not_to_be_planned_again() {
    let env = cued("You plan work => @touch asked\nYou plan work => @sleep 614\n");
    let running = env.start(&["auto", "a goal"]);
    env.until("the planner runs", || env.path("asked").exists());
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert!(ran.stderr.contains("still being planned") && ran.stderr.contains("omg watch"), "{}", ran.stderr);
    running.signal(Signal::TERM);
    running.wait().exits(143);
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.stdout.contains("interrupted by SIGTERM while it was being planned"), "{}", shown.stdout);
}

#[test]
fn a_spent_limit_is_no_reason_to_look_at_the_cli() {
    let limit = r#"{"type":"result","subtype":"success","is_error":true,"result":"You've hit your session limit · resets 3pm (UTC)","session_id":"s","total_cost_usd":0,"api_error_status":429}"#;
    let env = cued(&format!("You plan work => @raw {limit}\nYou plan work => @exit 1\n"));
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert!(ran.stderr.contains("once the limit is lifted"), "{}", ran.stderr);
}
