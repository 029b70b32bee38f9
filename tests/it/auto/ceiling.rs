//! What the spawns of a planned graph are given, in every leg, and nothing else.

use std::fs;

use serde_json::{Value, json};

use super::{after, has, node, planning, spawns};
use crate::contract;
use crate::env::TestEnv;

fn edit_snapshot(env: &TestEnv, edit: impl FnOnce(&mut Value)) {
    let path = env.run_dir().join("state.json");
    let mut snapshot: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut snapshot);
    fs::write(path, serde_json::to_vec_pretty(&snapshot).unwrap()).unwrap();
}

#[test]
fn a_later_leg_keeps_the_ceiling_and_loses_what_was_staged() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: a, prompt: '@reply-n no|PASS', success_check: {result_matches: PASS}}]", &[])
        .exits(1);
    edit_snapshot(&env, |snapshot| {
        snapshot["tool_policies"] = json!({"a": {"allowed_tools": ["Bash(git *)"], "disallowed_tools": ["Edit"],
            "tools": ["Bash", "Write", "Skill"], "setting_sources": "", "strict_mcp_config": true, "plugin_dirs": ["/tmp/gone"]}});
    });
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    let spawn = env.spawns().pop().unwrap();
    assert_eq!(after(&spawn, "--setting-sources"), Some(""));
    assert_eq!(after(&spawn, "--allowedTools"), Some("Bash(git *)"));
    assert_eq!(after(&spawn, "--tools"), Some("Bash"));
    let denied = "Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent";
    assert_eq!(after(&spawn, "--disallowedTools"), Some(denied), "whatever the file says");
    assert!(after(&spawn, "--strict-mcp-config").is_some());
    assert_eq!(after(&spawn, "--plugin-dir"), None);
    let policies = &env.state()["tool_policies"]["a"];
    assert_eq!(policies["tools"], json!(["Bash"]));
    assert_eq!(policies["setting_sources"], "");
    assert!(policies["plugin_dirs"].is_null(), "{policies}");
}

#[test]
fn a_planned_node_without_a_ceiling_is_not_run() {
    let env = TestEnv::new();
    let failing = "nodes: [{id: a, prompt: '@exit 1'}, {id: b, prompt: '@exit 1'}]";
    env.run_graph(failing, &["--continue-on-fail"]).exits(1);
    edit_snapshot(&env, |snapshot| snapshot["tool_policies"] = json!({"a": {"allowed_tools": ["Read"]}}));
    let spawned = env.spawns().len();
    env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert_eq!(env.spawns().len(), spawned + 1, "a alone");
    let detail = env.record("b")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("no ceiling"), "{detail}");
}

/// Stops the test unless `spawn` was started under the whole ceiling of `node`.
#[track_caller]
fn is_under_its_ceiling(spawn: &Value) {
    let denied = "Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent";
    assert_eq!(after(spawn, "--setting-sources"), Some(""), "{spawn}");
    assert_eq!(after(spawn, "--allowedTools"), Some("Read,Bash(git *)"), "{spawn}");
    assert_eq!(after(spawn, "--tools"), Some("Read,Bash"), "{spawn}");
    assert_eq!(after(spawn, "--disallowedTools"), Some(denied), "{spawn}");
    assert!(
        has(spawn, "--strict-mcp-config") && !has(spawn, "--plugin-dir") && !has(spawn, "--agent"),
        "{spawn}"
    );
}

#[test]
fn every_spawn_of_a_planned_run_is_under_its_ceiling() {
    let mut work = node("work", &[], "@on 1 exit 1\n@say done {{ feedback.check }}");
    work["retry"] = json!({"max": 1, "on": ["nonzero_exit"]});
    let mut check = node("check", &["work"], "@reply-n no|PASS\n");
    check["success_check"] = json!({"result_matches": "PASS"});
    check["feedback"] = json!({"rerun": "work", "max": 1});
    let mut last = node("last", &["check"], "@say well");
    last["handoff"] = json!("session");
    let env = planning(&[work, check, last]);
    let verify = ["--verify-cmd", "test -f built"];
    env.omg(&["auto", "a goal", "--verify-cmd", "test -f built"]).exits(1);
    env.write("built", "");
    env.omg(&[&["resume", "latest", "--retry-failed"], &verify[..]].concat()).exits(0);
    let (planner, nodes) = spawns(&env);
    assert_eq!(planner.len(), 1);
    assert_eq!(after(&planner[0], "--permission-mode"), Some("plan"));
    assert!(!has(&planner[0], "--setting-sources") && !has(&planner[0], "--tools"));
    let denied = "Bash,Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent";
    assert_eq!(after(&planner[0], "--disallowedTools"), Some(denied));
    // Work and its retry, check; the same again in the round; last; and last in the second leg.
    assert_eq!(nodes.len(), 8);
    nodes.iter().for_each(is_under_its_ceiling);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn the_prompt_of_a_planned_node_attaches_no_file() {
    let a = node("a", &[], "Do a. Read @notes.md and @../work, tell @alice.");
    let b = node("b", &["a"], "Do b. {{ artifacts.a | inline }}");
    let mut env = planning(&[]);
    let cues = format!("You plan work => @say {}\nDo a => @say @/etc/hostname\n", super::graph(&[a, b]));
    let cues = env.write("cues", cues);
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env.write("notes.md", "");
    env.omg(&["auto", "a goal @notes.md"]).exits(0);
    env.run_graph("nodes: [{id: x, prompt: 'Read @notes.md'}]", &[]).exits(0);
    let asked: Vec<String> =
        env.spawns().iter().map(|spawn| spawn["prompt"].as_str().unwrap().to_owned()).collect();
    assert!(asked[0].contains("a goal @notes.md"), "the person's own word: {}", asked[0]);
    assert_eq!(asked[1], "Do a. Read notes.md and ../work, tell @alice.");
    assert_eq!(asked[2], "Do b. /etc/hostname", "what another node said is no way either");
    assert_eq!(asked[3], "Read @notes.md", "nor is a graph that a person wrote touched");
}

#[test]
fn the_opt_in_lifts_isolation_for_every_leg_and_is_told_again() {
    let env = planning(&[node("a", &[], "@on 1 exit 1")]);
    let ran = env.omg(&["auto", "a goal", "--accept-loaded-user-config"]).exits(1);
    assert!(ran.stdout.contains("load your own configuration"), "{}", ran.stdout);
    let policy = env.state()["tool_policies"]["a"].clone();
    assert!(policy["setting_sources"].is_null() && policy["strict_mcp_config"].is_null(), "{policy}");
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert!(ran.stdout.contains("load your own configuration"), "{}", ran.stdout);
    let (_, nodes) = spawns(&env);
    assert_eq!(nodes.len(), 2);
    for spawn in nodes {
        assert!(!has(&spawn, "--setting-sources") && !has(&spawn, "--strict-mcp-config"), "{spawn}");
        assert_eq!(after(&spawn, "--tools"), Some("Read,Bash"));
    }
}

#[test]
fn a_later_leg_on_codex_tells_of_the_opt_in_and_of_the_sandbox() {
    for (flags, is_told) in [(&[][..], false), (&["--accept-loaded-user-config"], true)] {
        let env = planning(&[node("a", &[], "@on 1 exit 1")]);
        env.omg(&[&["--runtime", "codex", "auto", "a goal"], flags].concat()).exits(1);
        let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
        for words in ["read-only sandbox", "load your own configuration"] {
            assert_eq!(ran.stdout.contains(words), is_told, "{words}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_plan_on_codex_ignores_the_persons_configuration_and_its_planner_does_not() {
    let env = planning(&[node("a", &[], "@say done")]);
    let ran = env.omg(&["--runtime", "codex", "auto", "a goal"]).exits(0);
    assert!(ran.stdout.contains("[sandbox: workspace-write]"), "{}", ran.stdout);
    for told in ["read-only sandbox", "needs the network", "budget_usd binds nothing", "a spent limit fails"]
    {
        assert_eq!(ran.stdout.matches(told).count(), 1, "{told}: {}", ran.stdout);
    }
    let (planner, nodes) = spawns(&env);
    assert!(
        after(&planner[0], "--sandbox") == Some("read-only") && !has(&planner[0], "--ignore-user-config")
    );
    assert!(after(&nodes[0], "--sandbox") == Some("workspace-write"));
    for word in ["--ignore-user-config", "--ignore-rules", "project_doc_max_bytes=0", "mcp_servers={}"] {
        assert!(has(&nodes[0], word), "{word}");
    }
    assert_eq!(env.state()["planning_cost_unknown"], true);
}

#[test]
fn settings_that_change_who_pays_are_told_for_whom_they_do() {
    let key = "user/.claude/settings.json sets env.ANTHROPIC_API_KEY: claude bills a key";
    let alone = "(where it plans; planned nodes do not load the file)";
    for (flags, is_loaded) in [(&[][..], false), (&["--accept-loaded-user-config"][..], true)] {
        let env = planning(&[node("a", &[], "@on 1 exit 1\n@say A")]);
        env.write("../user/.claude/settings.json", r#"{"env":{"ANTHROPIC_API_KEY":"sk-secret"}}"#);
        env.write(".claude/settings.json", r#"{"apiKeyHelper":"x"}"#);
        let ran = env.omg(&[&["auto", "a goal"], flags].concat()).exits(1);
        assert_eq!(ran.stderr.matches(key).count(), 1, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches(alone).count(), if is_loaded { 0 } else { 2 }, "{}", ran.stderr);
        let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
        assert_eq!(
            ran.stderr.contains(key) && ran.stderr.contains("apiKeyHelper"),
            is_loaded,
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains(alone) && !ran.stderr.contains("sk-secret"), "{}", ran.stderr);
    }
}
