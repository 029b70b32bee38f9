//! What becomes of each key of a graph that a planner writes: a value for each, and whether the plan is taken.

use omg::plan::disposition::{RETRIES_MAX, ROUNDS_MAX, TOOLS};
use serde_json::{Value, json};

/// The node of [`plan`] that no other is tied to.
const FREE: &str = "free";

/// What becomes of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It is one.
    Taken,
    /// A person may write it, a planner not; it is told so.
    Refused(&'static str),
    /// Nobody may write it; what is told.
    Unreadable(&'static str),
}

/// A key with a value.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The key, with those around it.
    pub(crate) path: &'static str,
    /// The node that it is tried at; the graph itself when there is none.
    pub(crate) node: &'static str,
    /// What is set to try it; `null` takes a key away.
    pub(crate) patch: Value,
    /// What becomes of it.
    pub(crate) fate: Fate,
}

impl Row {
    /// What the row is about.
    pub(crate) fn place<'g>(&self, graph: &'g mut Value) -> &'g mut Value {
        if self.node.is_empty() {
            return graph;
        }
        let nodes = graph["nodes"].as_array_mut().expect("the plan has nodes");
        nodes.iter_mut().find(|node| node["id"] == self.node).expect("the plan has that node")
    }

    /// `graph` with it, where its node still has that name.
    pub(crate) fn applied(&self, mut graph: Value) -> Value {
        let nodes = graph["nodes"].as_array().cloned().unwrap_or_default();
        if self.node.is_empty() || nodes.iter().any(|node| node["id"] == self.node) {
            patch(self.place(&mut graph), &self.patch);
        }
        graph
    }

    /// `graph` with it at the node of this number, where it is about nodes.
    pub(crate) fn applied_to(&self, mut graph: Value, node: usize) -> Value {
        match graph.get_mut("nodes").and_then(|nodes| nodes.get_mut(node)) {
            Some(node) if self.node == FREE => patch(node, &self.patch),
            _ => return self.applied(graph),
        }
        graph
    }

    /// Whether it sets a key that the plan has.
    pub(crate) fn replaces(&self) -> bool {
        let mut graph = plan();
        let place = self.place(&mut graph);
        self.patch.as_object().is_some_and(|map| map.keys().any(|key| place.get(key).is_some()))
    }
}

fn patch(place: &mut Value, patch: &Value) {
    for (key, value) in patch.as_object().into_iter().flatten() {
        match (place.as_object_mut(), value) {
            (Some(map), Value::Null) => drop(map.remove(key)),
            (Some(map), value) => drop(map.insert(key.clone(), value.clone())),
            (None, _) => {}
        }
    }
}

/// A plan with a loop, a node beside it, and everything that a plan may say.
pub(crate) fn plan() -> Value {
    let node = |id: &str, parents: &[&str], prompt: &str| json!({"id": id, "depends_on": parents, "prompt": prompt, "allowed_tools": ["Read", "Bash(git *)"]});
    let mut check = node("check", &["api", "docs"], "Judge {{ artifacts.api }}.");
    check["feedback"] = json!({"rerun": "plan", "max": 2});
    check["success_check"] = json!({"result_matches": "PASS"});
    check["retry"] = json!({"max": 1, "on": ["timeout"]});
    let plan = node("plan", &[], "Plan on {{ inputs.branch }}. {{ feedback.check }}");
    let (api, docs) = (node("api", &["plan"], "Mend."), node("docs", &["plan"], "Write."));
    json!({"name": "g", "version": "1", "nodes": [plan, api, docs, check, node(FREE, &[], "Look.")]})
}

/// Every key, most with several values.
pub(crate) fn rows() -> Vec<Row> {
    [of_graph(), of_node(), of_checks(), of_loops()].concat()
}

fn row(path: &'static str, node: &'static str, patch: Value, fate: Fate) -> Row {
    Row { path, node, patch, fate }
}

use Fate::{Refused, Taken, Unreadable};

fn of_graph() -> Vec<Row> {
    let graph = |path, patch, fate| row(path, "", patch, fate);
    // Only where there are worktrees there is something to set up.
    let lane = json!({"id": "a", "prompt": "Look.", "allowed_tools": ["Read"], "worktree": "lane"});
    vec![
        graph("name", json!({"name": "other"}), Taken),
        graph("version", json!({"version": "2"}), Taken),
        graph("inputs", json!({"inputs": ["branch", "other"]}), Taken),
        graph("concurrency", json!({"concurrency": 2}), Taken),
        graph("on_fail", json!({"on_fail": "continue"}), Taken),
        graph("max_usd", json!({"max_usd": 0.5}), Taken),
        graph("max_executions", json!({"max_executions": 3}), Taken),
        graph("max_wall", json!({"max_wall": "1h"}), Taken),
        graph("model", json!({"model": "opus"}), Refused("model: ")),
        graph("effort", json!({"effort": "max"}), Refused("effort: ")),
        graph("setup", json!({"setup": "make", "nodes": [lane]}), Refused("setup: ")),
        graph("nodes", json!({"nodes": []}), Unreadable("no nodes")),
    ]
}

fn of_node() -> Vec<Row> {
    let node = |path, patch, fate| row(path, FREE, patch, fate);
    let mut rows = vec![
        node("node.id", json!({"id": "other"}), Taken),
        node("node.id", json!({"id": "a/b"}), Unreadable("a/b")),
        node("node.type", json!({"type": "claude-run"}), Taken),
        node("node.type", json!({"type": "gate", "prompt": null, "allowed_tools": null}), Refused("no gate")),
        node("node.depends_on", json!({"depends_on": ["check"]}), Taken),
        node("node.prompt", json!({"prompt": "Look at {{ inputs.branch }}."}), Taken),
        node("node.prompt", json!({"prompt": " \n"}), Refused("prompt: it is empty")),
        node("node.prompt", json!({"prompt": null}), Refused("prompt: it is empty")),
        node("node.prompt", json!({"prompt": "{{ inputs.secret }}"}), Refused("no input \"secret\"")),
        node("node.cwd", json!({"cwd": ""}), Taken),
        node("node.cwd", json!({"cwd": "/etc"}), Refused("cwd: ")),
        node("node.cwd", json!({"cwd": "  "}), Refused("cwd: ")),
        node("node.allowed_tools", json!({"allowed_tools": TOOLS}), Taken),
        node("node.allowed_tools", json!({"allowed_tools": []}), Refused("it declares none")),
        node("node.allowed_tools", json!({"allowed_tools": null}), Refused("it declares none")),
        node("node.budget_usd", json!({"budget_usd": 1.5}), Taken),
        node("node.handoff", json!({"handoff": "artifact"}), Taken),
        node("node.handoff", json!({"handoff": "session", "depends_on": ["check"]}), Taken),
        node("node.timeout", json!({"timeout": "1h"}), Taken),
        node("node.agent", json!({"agent": "reviewer"}), Refused("agent: ")),
        node("node.worktree", json!({"worktree": "lane"}), Refused("worktree: ")),
        node(
            "node.command",
            json!({"type": "command", "command": "make", "prompt": null, "allowed_tools": null}),
            Refused("no command"),
        ),
        node("node.command", json!({"command": "make"}), Unreadable("command")),
        node("node.model", json!({"model": "opus"}), Refused("model: ")),
        node("node.effort", json!({"effort": "max"}), Refused("effort: ")),
        node("node.leave_running", json!({"leave_running": false}), Taken),
        node("node.leave_running", json!({"leave_running": true}), Refused("leave_running: ")),
        node("node.setup", json!({"setup": "make", "worktree": "lane"}), Refused("setup: ")),
        node("node.use", json!({"use": "pr-publish"}), Unreadable("use: ")),
        node("node.with", json!({"with": {}}), Unreadable("with: ")),
    ];
    for mode in ["acceptEdits", "auto", "dontAsk", "manual", "plan"] {
        rows.push(node("node.permission_mode", json!({"permission_mode": mode}), Taken));
    }
    let bypass = json!({"permission_mode": "bypassPermissions"});
    rows.push(node("node.permission_mode", bypass, Refused("permission_mode: bypassPermissions")));
    for tool in [
        "Bash",
        "Bash(*)",
        "Bash(git*)",
        "Bash(git *) ",
        "bash(git *)",
        "Bash(rm -rf *)",
        "WebFetch",
        "WebSearch",
        "Skill",
        "Task",
        "Agent",
        "MultiEdit",
        "NotebookEdit",
        "Read,Bash",
        "Read(/etc/*)",
        " Read",
        "*",
        "mcp__files__write",
        "",
    ] {
        rows.push(node(
            "node.allowed_tools",
            json!({"allowed_tools": ["Read", tool]}),
            Refused("allowed_tools: "),
        ));
    }
    rows
}

fn of_checks() -> Vec<Row> {
    let node = |path, patch, fate| row(path, FREE, patch, fate);
    let mut rows = vec![
        node("node.success_check", json!({"success_check": {}}), Taken),
        node("node.retry", json!({"retry": {"max": 0}}), Taken),
        node("node.success_check.exit_zero", json!({"success_check": {"exit_zero": true}}), Taken),
        node(
            "node.success_check.result_matches",
            json!({"success_check": {"result_matches": "^PASS"}}),
            Taken,
        ),
        node("node.success_check.verify", json!({"success_check": {"verify": null}}), Taken),
        node("node.retry.max", json!({"retry": {"max": RETRIES_MAX, "on": ["timeout"]}}), Taken),
        node(
            "node.retry.max",
            json!({"retry": {"max": RETRIES_MAX + 1, "on": ["timeout"]}}),
            Refused("retry.max: "),
        ),
    ];
    for cause in omg::graph::Cause::RETRYABLE {
        rows.push(node("node.retry.on", json!({"retry": {"max": 1, "on": [cause.as_str()]}}), Taken));
    }
    for (path, more) in [
        ("node.success_check.verify.command", json!({})),
        ("node.success_check.verify.cwd", json!({"cwd": "/etc"})),
        ("node.success_check.verify.timeout", json!({"timeout": "1m"})),
        ("node.success_check.verify.expect_exit", json!({"expect_exit": 1})),
        ("node.success_check.verify.output_matches", json!({"output_matches": "ok"})),
    ] {
        let mut verify = more;
        verify["command"] = "true".into();
        rows.push(node(
            path,
            json!({"success_check": {"verify": verify}}),
            Refused("success_check.verify: "),
        ));
    }
    rows
}

/// The loop begins at one of the two nodes whose work is judged.
fn short_of_docs() -> Value {
    let mut nodes = plan()["nodes"].take();
    nodes[0]["prompt"] = "Plan.".into();
    nodes[1]["prompt"] = "Mend. {{ feedback.check }}".into();
    nodes[3]["feedback"]["rerun"] = "api".into();
    json!({"nodes": nodes})
}

fn of_loops() -> Vec<Row> {
    let check =
        |path, rerun, max, fate| row(path, "check", json!({"feedback": {"rerun": rerun, "max": max}}), fate);
    let unquoted = json!({"prompt": "Plan."});
    vec![
        row("node.feedback", "check", json!({"feedback": {}}), Unreadable("feedback")),
        check("node.feedback.rerun", "plan", 1, Taken),
        row("node.feedback.rerun", "", short_of_docs(), Refused("aim it at \"plan\"")),
        check("node.feedback.rerun", FREE, 2, Unreadable("feedback")),
        check("node.feedback.max", "plan", ROUNDS_MAX, Taken),
        check("node.feedback.max", "plan", ROUNDS_MAX + 1, Refused("feedback.max: ")),
        row("node.prompt", "plan", unquoted, Refused("{{ feedback.check }}")),
    ]
}
