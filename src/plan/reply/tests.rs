//! Replies as planners write them: what is taken, what is refused in which words (`tests/ceiling.rs`
//! has that nothing gets past it).

use serde_json::{Value, json};

use super::*;
use crate::plan::disposition::{ROUNDS_MAX, TOOLS};

fn terms() -> Terms {
    Terms { inputs: ["branch".to_owned()].into(), configuration: Configuration::Isolated }
}

fn node() -> Value {
    json!({"id": "work", "prompt": "Do it on {{ inputs.branch }}.", "allowed_tools": ["Read", "Bash(git *)"]})
}

fn with(key: &str, value: Value) -> Value {
    let mut node = node();
    node[key] = value;
    json!({"name": "g", "version": "1", "nodes": [node]})
}

fn refusals(graph: &Value) -> Vec<String> {
    match read(&graph.to_string(), &terms()) {
        Err(Rejected::Refused { refusals, .. }) => refusals,
        other => panic!("{graph}: {other:?}"),
    }
}

#[track_caller]
fn refused_for(graph: &Value, words: &str) {
    let refusals = refusals(graph);
    assert!(refusals.iter().any(|refusal| refusal.contains(words)), "{words}: {refusals:?}");
}

#[test]
fn a_reply_is_what_stands_between_its_outer_braces() {
    let reply = format!("Here it is:\n```json\n{}\n```\nGood luck!", with("handoff", json!("artifact")));
    let accepted = read(&reply, &terms()).expect("a plan");
    assert_eq!(accepted.raw.nodes.len(), 1);
    let policy = accepted.ceiling.policy(&accepted.graph.nodes()[0].id).expect("a policy");
    assert_eq!(policy.tools, Some(vec!["Read".to_owned(), "Bash".to_owned()]));
    assert!(matches!(read("I cannot do that.", &terms()), Err(Rejected::NoObject)));
    assert!(matches!(read("}{", &terms()), Err(Rejected::NoObject)));
}

#[test]
fn auto_58_a_value_of_the_wrong_type_leaves_nothing_precise_to_hand_back() {
    for graph in [
        json!({"nodes": "x"}),
        json!({"nodes": [1]}),
        with("allowed_tools", json!("Read")),
        with("prompt", json!(["x"])),
    ] {
        assert!(matches!(read(&graph.to_string(), &terms()), Err(Rejected::Unreadable { .. })), "{graph}");
    }
    assert!(matches!(read("{nodes: []}", &terms()), Err(Rejected::Unreadable { .. })), "YAML is no JSON");
}

#[test]
fn what_the_loader_refuses_is_handed_back_with_its_hint() {
    refused_for(&with("promt", json!("x")), "unknown key \"promt\" (did you mean \"prompt\"?)");
    refused_for(&with("depends_on", json!(["other"])), "other");
    refused_for(&with("permission_mode", json!("dontask")), "dontask");
    refused_for(&json!({"nodes": [node(), node()]}), "work");
}

#[test]
fn every_key_that_a_plan_may_not_set_is_refused_by_name() {
    refused_for(&with("prompt", json!(" \n")), "prompt: it is empty");
    refused_for(&json!({"nodes": [{"id": "g", "type": "gate"}]}), "no gate and no command");
    refused_for(
        &json!({"nodes": [{"id": "c", "type": "command", "command": "make"}]}),
        "no gate and no command",
    );
    refused_for(&with("permission_mode", json!("bypassPermissions")), "bypassPermissions");
    refused_for(&with("id", json!("a/b")), "a/b");
    refused_for(&with("cwd", json!("/etc")), "cwd:");
    refused_for(&with("cwd", json!("  ")), "cwd:");
    refused_for(&with("success_check", json!({"verify": {"command": "true"}})), "success_check.verify:");
    refused_for(&with("agent", json!("reviewer")), "agent:");
    refused_for(&with("worktree", json!("w")), "worktree:");
    refused_for(&with("setup", json!("make")), "setup");
    refused_for(&with("model", json!("opus")), "model:");
    refused_for(&with("effort", json!("max")), "effort:");
    refused_for(&with("leave_running", json!(true)), "leave_running:");
    refused_for(&with("retry", json!({"max": 4, "on": ["timeout"]})), "retry.max:");
    refused_for(&with("allowed_tools", json!([])), "allowed_tools: it declares none");
    refused_for(&with("allowed_tools", json!(null)), "allowed_tools: it declares none");
    refused_for(&with("use", json!("pr-publish")), "use:");
    refused_for(&with("with", json!({})), "with:");
    refused_for(&json!({"setup": "make", "nodes": [node()]}), "setup");
    refused_for(&json!({"model": "opus", "nodes": [node()]}), "model:");
    refused_for(&json!({"nodes": []}), "no nodes");
    refused_for(&with("prompt", json!("{{ inputs.secret }}")), "no input \"secret\"; it has branch");
}

#[test]
fn auto_57_only_the_listed_tools_are_taken_word_for_word() {
    for tool in [
        "Bash",
        "Bash(*)",
        "Bash(git*)",
        "bash(git *)",
        "Bash(rm -rf *)",
        "WebFetch",
        "Skill",
        "Task",
        "Read,Bash",
        " Read",
        "mcp__x__y",
    ] {
        refused_for(&with("allowed_tools", json!(["Read", tool])), tool);
    }
    assert!(read(&with("allowed_tools", json!(TOOLS)).to_string(), &terms()).is_ok());
}

#[test]
fn what_only_holds_a_node_back_is_taken() {
    for (key, value) in [
        ("budget_usd", json!(1.5)),
        ("timeout", json!("1h")),
        ("retry", json!({"max": 3, "on": ["timeout"]})),
        ("permission_mode", json!("dontAsk")),
        ("success_check", json!({"exit_zero": true, "result_matches": "PASS"})),
    ] {
        let graph = with(key, value);
        assert!(read(&graph.to_string(), &terms()).is_ok(), "{graph}");
    }
}

/// `plan` and `api`, then `docs` beside it, all judged by `check`, whose loop begins at `rerun`.
fn fan_in(rerun: &str, prompt: &str) -> Value {
    let node = |id: &str, parents: &[&str], prompt: &str| json!({"id": id, "depends_on": parents, "prompt": prompt, "allowed_tools": ["Read"]});
    let mut check = node("check", &["api", "docs"], "Judge.");
    check["feedback"] = json!({"rerun": rerun, "max": 2});
    check["success_check"] = json!({"result_matches": "PASS"});
    json!({"nodes": [node("plan", &[], "Plan."), node("api", &["plan"], prompt), node("docs", &["plan"], "Write."), check]})
}

#[test]
fn a_loop_that_cannot_converge_is_refused_with_what_would() {
    refused_for(&fan_in("api", "Mend. {{ feedback.check }}"), "never runs \"docs\" again");
    refused_for(&fan_in("api", "Mend. {{ feedback.check }}"), "aim it at \"plan\"");
    refused_for(&fan_in("plan", "Mend."), "put {{ feedback.check }} into the prompt of \"plan\"");
    assert!(read(&fan_in("plan", "Mend. {{ feedback.check }}").to_string(), &terms()).is_ok());
    let mut long = fan_in("plan", "Mend. {{ feedback.check }}");
    long["nodes"][3]["feedback"]["max"] = json!(ROUNDS_MAX + 1);
    refused_for(&long, "feedback.max:");
}

#[test]
fn refusals_come_in_one_order() {
    let mut graph = fan_in("api", "Mend.");
    graph["nodes"][0]["cwd"] = json!("/x");
    graph["nodes"][0]["permission_mode"] = json!("bypassPermissions");
    graph["nodes"][0]["allowed_tools"] = json!(["Bash"]);
    graph["nodes"][1]["agent"] = json!("x");
    let refusals = refusals(&graph);
    let starts = [
        "node \"check\": feedback.rerun",
        "a loop in which no prompt quotes",
        "node \"plan\": permission_mode",
        "node \"plan\": cwd",
        "node \"plan\": allowed_tools",
        "node \"api\": agent",
    ];
    assert_eq!(refusals.len(), starts.len(), "{refusals:?}");
    for (refusal, start) in refusals.iter().zip(starts) {
        assert!(refusal.starts_with(start), "{refusal} does not begin with {start}");
    }
}
