//! What the spawns of a planned graph are given, in every leg, and nothing else.

use std::fs;

use serde_json::{Value, json};

use crate::env::TestEnv;

/// The word after `flag` in what a spawn was started with.
fn after<'s>(spawn: &'s Value, flag: &str) -> Option<&'s str> {
    let argv = spawn["argv"].as_array()?;
    let at = argv.iter().position(|word| word == flag)?;
    argv.get(at + 1)?.as_str()
}

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
            "tools": ["Bash", "Skill"], "setting_sources": "", "strict_mcp_config": true, "plugin_dirs": ["/tmp/gone"]}});
    });
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    let spawn = env.spawns().pop().unwrap();
    assert_eq!(after(&spawn, "--setting-sources"), Some(""));
    assert_eq!(after(&spawn, "--allowedTools"), Some("Bash(git *)"));
    assert_eq!(after(&spawn, "--tools"), Some("Bash"));
    assert_eq!(after(&spawn, "--disallowedTools"), Some("Edit"));
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
