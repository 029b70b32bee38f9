//! `omg auto --detach`: what can be refused for free is refused in the foreground, what costs happens in the background.

use std::fs;

use super::{graph, node};
use crate::contract;
use crate::env::{Ran, TestEnv};

/// A place whose planner waits for the file `go`, and whose judge says these words.
fn waiting(judge: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let plan = graph(&[node("work", &[], "@say made")]);
    let wait = "@sh while test ! -e go; do sleep 0.02; done";
    let cues = format!(
        "You plan work => @touch asked\nYou plan work => {wait}\nYou plan work => @say {plan}\nYou judge whether => @say {judge}\n"
    );
    let cues = env.write("cues", cues);
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

fn log(env: &TestEnv) -> String {
    fs::read_to_string(env.runs()[0].join("detached.log")).unwrap()
}

#[test]
fn a_goal_in_the_background_is_being_planned_when_its_id_is_printed() {
    let env = waiting("x");
    let ran = env.omg(&["auto", "a goal", "--detach"]).exits(0);
    let id = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(ran.stdout, format!("{id}\n"), "{}", ran.stderr);
    env.until("the planner is asked", || env.path("asked").exists());
    assert!(env.omg(&["show", &id]).exits(0).stdout.contains("PLANNING"));
    env.write("go", "");
    env.omg(&["watch", &id, "--exit-status"]).exits(0);
    env.until("the ledger is written", || log(&env).contains("TOTAL COST: $0.0200"));
    let log = log(&env);
    for told in ["Planning a graph for goal \"a goal\"", "Plan \"planned\"", "Running graph"] {
        assert!(log.contains(told), "{told}: {log}");
    }
    assert!(!log.contains('\u{1b}'), "{log}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn the_cycles_of_a_goal_go_on_in_the_background_and_tell_their_sum_in_the_log_of_the_first() {
    let env = waiting(r#"{"goal_met": false, "remaining": "more"}"#);
    env.write("go", "");
    env.omg(&["auto", "a goal", "--detach", "--max-cycles", "2"]).exits(0);
    env.until("the sum is told", || log(&env).contains("the goal is not reached"));
    assert!(log(&env).contains("GOAL TOTAL: $0.0600 (2 assessed cycles)"), "{}", log(&env));
    assert_eq!(env.runs().len(), 2);
    assert!(!env.runs()[1].join("detached.log").exists());
}

#[test]
fn a_goal_in_the_background_can_be_stopped_while_it_is_planned() {
    let env = waiting("x");
    let ran = env.omg(&["auto", "a goal", "--detach"]).exits(0);
    env.until("the planner is asked", || env.path("asked").exists());
    let id = ran.stdout.trim_end();
    assert_eq!(env.omg(&["stop", id]).exits(0).stdout, format!("run {id} has ended: FAIL\n"));
    env.until("the last word is written", || {
        log(&env).contains("interrupted by SIGTERM while it was being planned")
    });
    assert_eq!(env.guards(), [] as [i32; 0]);
}

/// The same command fails alike with and without the flag, and asks nobody.
#[track_caller]
fn check_alike(env: &TestEnv, words: &[&str], code: i32) {
    let foreground = env.omg(words).exits(code);
    let background = env.omg(&[words, &["--detach"]].concat());
    let told = |ran: &Ran| (ran.code, ran.stdout.clone(), ran.stderr.clone());
    assert_eq!(told(&background), told(&foreground), "{words:?}");
    assert!(env.spawns().is_empty() && env.runs().is_empty());
}

#[test]
fn what_is_free_to_refuse_is_refused_as_in_the_foreground() {
    let mut env = waiting("x");
    check_alike(&env, &["auto", "  "], 1);
    check_alike(&env, &["auto", "x", "--verify-cmd", "--detach"], 1);
    check_alike(&env, &["auto", "x", "--max-cycles", "0"], 1);
    env.write("go.mod", "");
    check_alike(&env, &["auto", "x"], 3);
    env.set("PATH", "/nowhere");
    check_alike(&env, &["auto", "x", "--accept-no-build-evidence"], 1);
}

/// Nobody would know of a run whose id could not be printed, so nothing of it is paid.
#[test]
fn a_goal_whose_id_nobody_hears_is_not_planned() {
    let env = waiting("x");
    let mut unheard = env.command(&["auto", "a goal", "--detached"]);
    let status = unheard.stdout(fs::File::create("/dev/full").unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(env.spawns().is_empty());
    let shown = env.omg(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("FAIL") && shown.contains("cannot go to the background"), "{shown}");
}
