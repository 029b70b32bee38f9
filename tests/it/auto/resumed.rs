//! Later legs of planned runs: nothing of the run's files runs by itself (FACTS 12, Auto 62 and 63).

use std::fs;

use serde_json::{Value, json};

use super::{node, planning, spawns};

#[test]
fn auto_62_the_evidence_command_is_never_taken_from_disk() {
    let env = planning(&[node("a", &[], "@say A"), node("b", &["a"], "@say B")]);
    let ran = env.omg(&["auto", "a goal", "--verify-cmd", "test -f built"]).exits(1);
    assert!(ran.stderr.contains("--retry-failed --verify-cmd 'test -f built'"), "{}", ran.stderr);
    let path = env.run_dir().join("state.json");
    let mut snapshot: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    snapshot["graph"]["nodes"][1]["success_check"]["verify"]["command"] = json!("touch planted");
    fs::write(&path, serde_json::to_vec_pretty(&snapshot).unwrap()).unwrap();
    let spawned = env.spawns().len();
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert!(ran.stderr.contains("node \"b\" was checked by an evidence command"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--verify-cmd") && env.spawns().len() == spawned, "{}", ran.stderr);
    env.write("built", "");
    let ran = env.omg(&["resume", "latest", "--retry-failed", "--verify-cmd", "test -f built"]).exits(0);
    assert!(ran.stdout.contains("when b is done the engine runs 'test -f built'"), "{}", ran.stdout);
    assert!(!env.path("planted").exists());
    assert_eq!(env.record("b")["provenance"], "verified");
    assert_eq!(env.state()["planning_cost_usd"], 0.01, "what planning cost is kept");
}

#[test]
fn auto_62_a_hand_written_graph_takes_no_evidence_command() {
    let env = planning(&[]);
    env.run_graph("nodes: [{id: a, prompt: '@say A'}]", &[]).exits(0);
    let ran = env.omg(&["resume", "latest", "--retry-failed", "--verify-cmd", "true"]).exits(1);
    assert!(ran.stderr.contains("written by hand"), "{}", ran.stderr);
}

#[test]
fn an_evidence_command_can_be_given_to_a_later_leg_alone() {
    let env = planning(&[node("a", &[], "@on 1 exit 1\n@say A")]);
    env.omg(&["auto", "a goal"]).exits(1);
    env.omg(&["resume", "latest", "--retry-failed", "--verify-cmd", "true"]).exits(0);
    assert_eq!(env.record("a")["provenance"], "verified");
    assert_eq!(spawns(&env).0.len(), 1, "the planner was asked once");
}

#[test]
fn the_hint_of_a_pause_can_be_pasted_with_its_evidence_command() {
    let env =
        planning(&[node("a", &[], "@on 1 iserror\n@on 1 say You've hit your session limit · resets 5pm")]);
    let verify = "test \"$(echo 'it is')\" = 'it is' && touch checked";
    let ran = env.omg(&["auto", "a goal", "--verify-cmd", verify, "--verify-timeout", "2m"]).exits(2);
    let hint = ran
        .stdout
        .lines()
        .find(|line| line.contains("--verify-cmd '"))
        .unwrap_or_else(|| panic!("{}", ran.stdout));
    let pasted = hint[hint.find("omg resume").unwrap()..].split("    (after ").next().unwrap();
    assert!(pasted.ends_with(" --verify-timeout 2m0s"), "{hint}");
    let pasted = pasted.replacen("omg", crate::env::OMG, 1);
    assert!(env.shell(&pasted).status().unwrap().success(), "{pasted}");
    assert!(env.path("checked").exists());
    assert_eq!(env.record("a")["provenance"], "verified");
}

#[test]
fn the_agent_of_a_graph_that_a_person_wrote_stays_in_every_leg() {
    let env = planning(&[]);
    env.run_graph("nodes: [{id: a, agent: reviewer, prompt: \"@on 1 exit 1\"}]", &[]).exits(1);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    let agents: Vec<Value> = env.spawns();
    assert_eq!(agents.len(), 2);
    assert!(agents.iter().all(|spawn| super::after(spawn, "--agent") == Some("reviewer")), "{agents:?}");
    assert!(agents.iter().all(|spawn| !super::has(spawn, "--setting-sources")), "{agents:?}");
}

#[test]
fn a_command_that_something_wrote_into_a_planned_run_is_never_run() {
    let env = planning(&[node("a", &[], "@on 1 exit 1\n@say A")]);
    env.omg(&["auto", "a goal"]).exits(1);
    let path = env.run_dir().join("state.json");
    let snapshot: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let spawned = env.spawns().len();
    let planted = json!({"id": "evil", "type": "command", "command": "touch planted", "success_check": {}});
    for (told, place, value) in [
        ("no gate and no command", "/graph/nodes/0", planted),
        ("bypassPermissions", "/default_permission_mode", json!("bypassPermissions")),
        ("no longer say what its nodes may do", "/tool_policies", json!({})),
        ("no longer those of a plan", "/tool_policies/a/allowed_tools", json!(["Bash"])),
    ] {
        let mut edited = snapshot.clone();
        *edited.pointer_mut(place).unwrap() = value;
        fs::write(&path, serde_json::to_vec_pretty(&edited).unwrap()).unwrap();
        let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
        assert!(ran.stderr.contains(told) && ran.stderr.contains("hint: "), "{told}: {}", ran.stderr);
    }
    assert!(!env.path("planted").exists() && env.spawns().len() == spawned);
    fs::write(&path, serde_json::to_vec_pretty(&snapshot).unwrap()).unwrap();
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
}
