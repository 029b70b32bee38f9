//! What a plan may say of each key of a graph: every key of the model has a disposition here, or this does not compile.
//!
//! A planned graph is what a model made of a goal, and nobody has looked at it: what would name a file, a command, a person
//! or another model of the machine is not for it to say. The patterns below name every field and have no `..`, so that a
//! new key is a decision. Refusals come in the order of FACTS 8.3.

use std::collections::BTreeSet;

use crate::graph::node::{KIND_MODEL, PermissionMode};
use crate::graph::raw::{RawFeedback, RawGraph, RawNode, RawRetry, RawSuccessCheck};
use crate::graph::{Graph, NodeIx};
use crate::lint;
use crate::text::template::{self, Kind};

/// The tools that a planned node may declare, word for word (FACTS 8.1).
pub const TOOLS: [&str; 12] = [
    "Read",
    "Glob",
    "Grep",
    "Edit",
    "Write",
    "Bash(git *)",
    "Bash(go *)",
    "Bash(make *)",
    "Bash(ls *)",
    "Bash(cat *)",
    "Bash(grep *)",
    "Bash(gh pr *)",
];
/// The most rounds of a planned loop.
pub const ROUNDS_MAX: i64 = 3;
/// The most further attempts of a planned node: each runs an attached evidence command again.
pub const RETRIES_MAX: i64 = 3;

/// Everything that a plan may not be, one line each; none when it may be run. `inputs` are those that the run has.
pub fn refusals(raw: &RawGraph, graph: &Graph, inputs: &BTreeSet<String>) -> Vec<String> {
    judged(raw, graph, inputs, |node| tools(node.allowed_tools.as_deref().unwrap_or_default()))
}

/// The same of a plan whose nodes' tools are recorded beside it.
pub fn refusals_besides_tools(raw: &RawGraph, graph: &Graph, inputs: &BTreeSet<String>) -> Vec<String> {
    judged(raw, graph, inputs, |_| None)
}

fn judged(
    raw: &RawGraph,
    graph: &Graph,
    inputs: &BTreeSet<String>,
    tools: impl Fn(&RawNode) -> Option<String>,
) -> Vec<String> {
    let RawGraph {
        // Words for screens.
        name: _,
        version: _,
        // Which inputs there are is decided by what the prompts use, below.
        inputs: _,
        // These only ever hold a run back, and the command line's own come before them.
        concurrency: _,
        on_fail: _,
        max_usd: _,
        max_executions: _,
        max_wall: _,
        model,
        effort,
        setup,
        nodes,
    } = raw;
    if nodes.is_empty() {
        return vec!["the graph has no nodes".to_owned()];
    }
    let mut refusals = Vec::new();
    for (key, value) in [("model", model), ("effort", effort)] {
        if is_set(value.as_ref()) {
            refusals.push(format!("{key}: which model answers is the person's to say; leave {key} out"));
        }
    }
    if is_set(setup.as_ref()) {
        refusals.push("setup: a plan runs no command of its own; leave setup out".to_owned());
    }
    refusals.extend(unreached(raw, graph));
    refusals.extend(unquoted(graph));
    for (at, node) in nodes.iter().enumerate() {
        let label = crate::graph::check::Label::of(raw, at);
        let found = of_node(node, tools(node), inputs);
        refusals.extend(found.into_iter().map(|refusal| format!("{label}: {refusal}")));
    }
    // A run would refuse these before its first node, and the plan would be paid for nothing.
    refusals.extend(lint::never_there(graph).iter().map(ToString::to_string));
    refusals
}

/// Loops that do not reach all that their checks judge, where another beginning would: they spend their rounds in vain.
fn unreached(raw: &RawGraph, graph: &Graph) -> impl Iterator<Item = String> {
    let id = |ix: NodeIx| graph.node(ix).id.to_string();
    let refusal = move |loop_: lint::Unreached| {
        let target = id(loop_.target?);
        let producers: Vec<String> = loop_.producers.iter().map(|ix| format!("{:?}", id(*ix))).collect();
        Some(format!(
            "node {:?}: feedback.rerun: the loop never runs {} again, whose work this node judges; aim it at {target:?}, or, if \
             that work is mere context, put it before the node that the loop begins at",
            id(loop_.declarer),
            producers.join(", ")
        ))
    };
    lint::unreached(raw, graph).into_iter().filter_map(refusal).collect::<Vec<_>>().into_iter()
}

/// Loops that ask the same thing again, all in one refusal: each is mended by one token in one prompt.
fn unquoted(graph: &Graph) -> Option<String> {
    let id = |ix: NodeIx| graph.node(ix).id.as_str();
    let each: Vec<String> = lint::unread_feedback(graph)
        .into_iter()
        .map(|(declarer, target)| {
            let token = format!("{{{{ feedback.{} }}}}", id(declarer));
            format!("put {token} into the prompt of {:?}", id(target))
        })
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "a loop in which no prompt quotes what its check said asks the same thing again: {}",
            each.join("; ")
        )
    })
}

fn of_node(node: &RawNode, tools: Option<String>, inputs: &BTreeSet<String>) -> Vec<String> {
    let RawNode {
        id,
        kind,
        // Edges and how work is handed along them bind nothing but the order.
        depends_on: _,
        handoff: _,
        prompt,
        cwd,
        // Judged by the caller, who knows where they stand.
        allowed_tools: _,
        permission_mode,
        // Both only ever stop a node.
        budget_usd: _,
        timeout: _,
        success_check,
        retry,
        agent,
        worktree,
        feedback,
        command,
        model,
        effort,
        leave_running,
        setup,
    } = node;
    // The exit code and a pattern over the reply are looked at, and nothing is run for them.
    let RawSuccessCheck { exit_zero: _, result_matches: _, verify } = success_check;
    let kind = kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(KIND_MODEL);
    let is_prompt = kind == KIND_MODEL;
    let mut refusals = Vec::new();
    let mut refuse = |is_bad: bool, words: &str| {
        if is_bad {
            refusals.push(words.to_owned());
        }
    };
    let blank = prompt.as_deref().unwrap_or_default().trim().is_empty();
    refuse(is_prompt && blank, "prompt: it is empty; say what the node has to do");
    refuse(
        !is_prompt || is_set(command.as_ref()),
        "type: a planned node is a prompt; it is no gate and no command",
    );
    refuse(
        permission_mode.as_deref() == Some(PermissionMode::BypassPermissions.as_str()),
        "permission_mode: bypassPermissions is for nodes that a person has read; leave permission_mode out",
    );
    refuse(id.contains('/'), "id: a slash stands only in what fragments make; use - instead");
    refuse(is_set(cwd.as_ref()), "cwd: a planned node runs where omg was started; leave cwd out");
    refuse(
        verify.is_some(),
        "success_check.verify: a plan runs no command of its own; use result_matches or exit_zero",
    );
    refuse(is_set(agent.as_ref()), "agent: which agent answers is not the plan's to say; leave agent out");
    refuse(is_set(worktree.as_ref()), "worktree: a plan makes no worktree; leave worktree out");
    refuse(is_set(setup.as_ref()), "setup: a plan runs no command of its own; leave setup out");
    for (key, value) in [("model", model), ("effort", effort)] {
        let words = format!("{key}: which model answers is the person's to say; leave {key} out");
        refuse(is_set(value.as_ref()), &words);
    }
    refuse(*leave_running, "leave_running: a planned node leaves nothing behind; leave it out");
    // Where a loop begins is an edge, and checked as one.
    if let Some(RawFeedback { rerun: _, max }) = feedback {
        let words = format!("feedback.max: a planned loop has at most {ROUNDS_MAX} rounds");
        refuse(max.is_some_and(|max| max > ROUNDS_MAX), &words);
    }
    // The causes are a closed set.
    if let Some(RawRetry { max, on: _ }) = retry {
        let words = format!("retry.max: a planned node has at most {RETRIES_MAX} further attempts");
        refuse(max.is_some_and(|max| max > RETRIES_MAX), &words);
    }
    refusals.extend(tools);
    refusals.extend(unknown_input(prompt.as_deref().unwrap_or_default(), inputs));
    refusals
}

/// What is wrong with the tools that a node is `declared` to have.
pub fn tools(declared: &[String]) -> Option<String> {
    if declared.is_empty() {
        return Some(format!("allowed_tools: it declares none; take some of {}", TOOLS.join(", ")));
    }
    let outside = declared.iter().find(|tool| !TOOLS.contains(&tool.as_str()))?;
    Some(format!("allowed_tools: {outside:?} is not one of {}", TOOLS.join(", ")))
}

/// Found here, it costs a corrected reply; found when the run begins, it would cost the plan.
fn unknown_input(prompt: &str, inputs: &BTreeSet<String>) -> Option<String> {
    let tokens = template::tokens(prompt).filter(|token| token.kind == Kind::Inputs);
    let unknown = tokens.map(|token| token.reference).find(|name| !inputs.contains(*name))?;
    let known: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let known =
        if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    Some(format!("prompt: the run has no input {unknown:?}; {known}"))
}

/// An empty word is none; a blank one is a word.
fn is_set(word: Option<&String>) -> bool {
    word.is_some_and(|word| !word.is_empty())
}
