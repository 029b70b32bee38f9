//! What every spawn of a whole planned run was started with, word for word: the planner, retries, rounds, a session that
//! goes on, and a later leg.

use std::fs;

use serde_json::{Value, json};

use super::{graph, node};
use crate::contract;
use crate::env::TestEnv;

/// A place whose person has an agent and a skill, and whose plan is tried twice, goes round once and ends in a session.
fn place() -> TestEnv {
    let mut env = TestEnv::new();
    let file = |name: &str, more: &str| format!("---\nname: {name}\ndescription: d\n{more}---\nDo {name}.\n");
    env.write("../user/.claude/agents/code-reviewer.md", file("code-reviewer", "tools: Read\n"));
    env.write("../user/.claude/skills/pdf/SKILL.md", file("pdf", ""));
    let asked = |id: &str, parents: &[&str], script: &str| node(id, parents, &format!("Do {id}.\n{script}"));
    let mut work = asked("work", &[], "@on 1 exit 1\n@say made\n{{ feedback.check }}");
    work["retry"] = json!({"max": 1, "on": ["nonzero_exit"]});
    work["permission_mode"] = "acceptEdits".into();
    let mut check = asked("check", &["work"], "@reply-n no|PASS");
    check["success_check"] = json!({"result_matches": "PASS"});
    check["feedback"] = json!({"rerun": "work", "max": 1});
    check["permission_mode"] = "plan".into();
    let review = asked("review", &["check"], "@on 1 exit 1\n@say well");
    let mut last = asked("last", &["review"], "@say done");
    last["handoff"] = "session".into();
    last["allowed_tools"] = json!(["Read", "Edit", "Bash(git *)", "Bash(go *)"]);
    last["budget_usd"] = json!(2.5);
    let cues = env.write("cues", format!("You plan work => @say {}\n", graph(&[work, check, review, last])));
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

/// Plans and runs, halts at `review`, and goes on in a second leg. Returns a line for each spawn.
fn spawned(runtime: &str, flags: &[&str]) -> String {
    let env = place();
    let words = ["--runtime", runtime, "auto", "a goal", "--no-web", "--verify-cmd", "test -d ."];
    env.omg(&[&words, flags].concat()).exits(1);
    env.omg(&["resume", "latest", "--retry-failed", "--verify-cmd", "test -d ."]).exits(0);
    assert_eq!(env.record("last")["provenance"], "verified");
    contract::check_run_dir(&env.run_dir());
    let left = fs::read_dir(env.home().join("staged")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "copies are taken away");
    env.spawns().iter().map(line).collect()
}

/// The words of a spawn in quotes; in the place of what differs from run to run stands its kind.
fn line(spawn: &Value) -> String {
    let prompt = spawn["prompt"].as_str().unwrap();
    let argv: Vec<&str> =
        spawn["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let told = argv.iter().enumerate().map(|(at, word)| match at.checked_sub(1).map(|at| argv[at]) {
        _ if *word == prompt => shown(prompt),
        Some("--session-id" | "--resume" | "resume") => "SESSION".to_owned(),
        Some("--plugin-dir") if word.contains("/home/staged/") => "COPY".to_owned(),
        _ => format!("'{word}'"),
    });
    told.collect::<Vec<_>>().join(" ") + "\n"
}

/// The beginning of a prompt, and whether it tells of skills.
fn shown(prompt: &str) -> String {
    let first = prompt.lines().next().unwrap_or_default();
    let skills = if prompt.contains("consult it if one fits this task.") { "+SKILLS" } else { "" };
    format!("<{}{skills}>", first.split_inclusive(' ').take(3).collect::<String>().trim())
}

#[test]
fn on_claude_with_what_is_staged() {
    insta::assert_snapshot!(spawned("claude", &[]));
}

#[test]
fn on_claude_under_the_persons_own_configuration() {
    insta::assert_snapshot!(spawned("claude", &["--accept-loaded-user-config"]));
}

#[test]
fn on_codex() {
    insta::assert_snapshot!(spawned("codex", &[]));
}

#[test]
fn on_codex_under_the_persons_own_configuration() {
    insta::assert_snapshot!(spawned("codex", &["--accept-loaded-user-config"]));
}
