//! The top level's own rules: `on_fail`, `concurrency`, the bounds of a run, `inputs`, `model`, `effort`, and that there is a node.

use std::collections::HashMap;

use super::{Found, Rule, fields, not_one_of, worktree};
use crate::graph::{Bounds, Graph, OnFail, bounds};
use crate::text::suggest;

/// A graph with everything but its nodes.
pub(super) fn check(found: &mut Found<'_>) -> Graph {
    let raw = found.raw;
    let on_fail = on_fail(found);
    let concurrency = concurrency(found);
    let bounds = bounds(found);
    inputs(found);
    for (key, value) in [("model", &raw.model), ("effort", &raw.effort)] {
        if let Some(fault) = fields::spaces(key, value.as_deref()) {
            found.graph(Rule::Spaces, key, fault);
        }
    }
    if raw.nodes.is_empty() {
        found.graph(Rule::Ids, "nodes", "the graph has no nodes").hint("list at least one under nodes:");
    }
    Graph {
        name: raw.name.clone(),
        version: raw.version.clone(),
        inputs: raw.inputs.clone(),
        concurrency,
        on_fail,
        bounds,
        model: fields::declared(raw.model.as_deref()),
        effort: fields::declared(raw.effort.as_deref()),
        setup: setup(found),
        nodes: Vec::new(),
        dependents: Vec::new(),
        by_id: HashMap::new(),
        session_roots: Vec::new(),
        bodies: HashMap::new(),
    }
}

/// A set-up without a worktree would never run.
fn setup(found: &mut Found<'_>) -> Option<String> {
    let raw = found.raw;
    let setup = fields::declared(raw.setup.as_deref())?;
    if let Some((fault, hint)) = worktree::wrong_setup(&setup) {
        found.graph(Rule::Worktree, "setup", fault).hint(hint);
    }
    if raw.nodes.iter().all(|node| node.worktree.as_deref().is_none_or(str::is_empty)) {
        found
            .graph(Rule::Worktree, "setup", "setup prepares worktrees, and no node names one")
            .hint("add worktree: to a node, or make the set-up a command node");
    }
    Some(setup)
}

fn on_fail(found: &mut Found<'_>) -> OnFail {
    let Some(word) = found.raw.on_fail.as_deref().filter(|word| !word.is_empty()) else {
        return OnFail::Halt;
    };
    let words = || OnFail::ALL.into_iter().map(OnFail::as_str);
    OnFail::ALL.into_iter().find(|choice| choice.as_str() == word).unwrap_or_else(|| {
        found
            .graph(Rule::Header, "on_fail", format!("on_fail: {}", not_one_of(word, words())))
            .hint_if_any(suggest::hint(word, words()));
        OnFail::Halt
    })
}

fn concurrency(found: &mut Found<'_>) -> Option<usize> {
    let asked = found.raw.concurrency.filter(|n| *n != 0)?;
    let slots = usize::try_from(asked).ok();
    if slots.is_none() {
        found
            .graph(Rule::Header, "concurrency", format!("concurrency is {asked}, which is below nothing"))
            .hint("write 1 to 10, or 0 for the default of 4");
    }
    slots
}

fn bounds(found: &mut Found<'_>) -> Bounds {
    let raw = found.raw;
    Bounds {
        spend: bound(found, "max_usd", raw.max_usd.map(bounds::spend)),
        executions: bound(found, "max_executions", raw.max_executions.map(bounds::executions)),
        wall: bound(found, "max_wall", raw.max_wall.as_deref().map(bounds::wall)),
    }
}

fn bound<T>(found: &mut Found<'_>, key: &'static str, read: Option<Result<T, String>>) -> Option<T> {
    match read? {
        Ok(bound) => Some(bound),
        Err(wrong) => {
            found.graph(Rule::Header, key, format!("{key}: {wrong}")).hint("leave it out for no bound");
            None
        }
    }
}

fn inputs(found: &mut Found<'_>) {
    for (at, name) in found.raw.inputs.iter().enumerate() {
        let wrong = if name.trim().is_empty() {
            "an input has no name".to_owned()
        } else if name.contains('=') || name.chars().any(char::is_control) {
            format!("input {name:?} holds a character that no --input can name")
        } else {
            continue;
        };
        found.graph(Rule::Header, "inputs", wrong).item(at);
    }
}
