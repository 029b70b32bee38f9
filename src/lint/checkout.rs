//! Nodes that may edit one checkout at the same time.
//!
//! The writers of one directory are safe when each waits for the one before it, in some order that the edges allow. So
//! it is enough to ask of each whether it waits for its neighbour in one such order: there is a pair that may run at the
//! same time if and only if there is one of neighbours. Reads are not spoken of, nor commands, which nobody can read.

use std::collections::HashMap;

use super::{Remarks, Subject, Sweep, ancestry};
use crate::graph::node::PermissionMode;
use crate::graph::{Graph, Node, NodeIx, Work};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG081",
    name: "shared-checkout",
    summary: "two prompts that may edit files run at the same time in one directory",
    why: "Each sees the other's half-done work, a commit of one sweeps in the other's changes, and a branch is switched under both. \
          Give each a `worktree:` of its own, let one wait for the other, or say `concurrency: 1`. A prompt counts as one that \
          may edit when its `permission_mode` is `acceptEdits` or `bypassPermissions`, or its `allowed_tools` grant `Edit`, \
          `Write`, `MultiEdit`, `NotebookEdit` or all of `Bash`; never when its `permission_mode` is `plan`.",
    bad: "nodes:\n  - {id: api, prompt: Mend the API., allowed_tools: [Edit]}\n  - {id: docs, prompt: Mend the docs., \
          allowed_tools: [Edit]}\n",
    good: "nodes:\n  - {id: api, prompt: Mend the API., allowed_tools: [Edit], worktree: api}\n  - {id: docs, prompt: Mend the \
           docs., allowed_tools: [Edit], worktree: docs}\n",
    look: Some(look),
};

/// Tools that change files.
const EDITING: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// `Bash` without a bound on the command.
const ANY_COMMAND: [&str; 4] = ["Bash", "Bash(*)", "Bash(:*)", "Bash(**)"];

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    if graph.concurrency == Some(1) {
        return;
    }
    let pairs = neighbours(graph);
    let answers = ancestry::waits(graph, &pairs);
    let mut loose: Vec<(NodeIx, NodeIx)> =
        pairs.into_iter().zip(answers).filter(|(_, waits)| !waits).map(|(pair, _)| pair).collect();
    loose.sort_unstable();
    for (ix, other) in loose {
        let (key, place) = match directory(graph.node(ix)) {
            Directory::Lane(name) => ("worktree", format!("the worktree {name:?}")),
            Directory::Given(cwd) => ("cwd", cwd.to_owned()),
            Directory::Runs => ("worktree", "the directory of the run".to_owned()),
        };
        let detail = format!(
            "may edit {place} at the same time as {:?}: give it a worktree of its own, or let one wait for the other",
            graph.node(other).id
        );
        remarks.node(graph, ix, key, detail);
    }
}

/// Each writer after the first of its directory, with the one before it.
fn neighbours(graph: &Graph) -> Vec<(NodeIx, NodeIx)> {
    let mut last: HashMap<Directory<'_>, NodeIx> = HashMap::new();
    let mut pairs = Vec::new();
    for ix in ancestry::order(graph).into_iter().filter(|ix| writes(graph.node(*ix))) {
        let before = last.insert(directory(graph.node(ix)), ix);
        // Nodes of one session never run at the same time.
        pairs
            .extend(before.filter(|it| graph.session_root(*it) != graph.session_root(ix)).map(|it| (ix, it)));
    }
    pairs
}

/// Where a node runs, as far as the text tells.
#[derive(PartialEq, Eq, Hash)]
enum Directory<'g> {
    Lane(&'g str),
    Given(&'g str),
    Runs,
}

fn directory(node: &Node) -> Directory<'_> {
    if let Some(lane) = &node.worktree {
        return Directory::Lane(lane);
    }
    match node.cwd.as_deref().map(|cwd| cwd.trim().trim_end_matches('/')) {
        None | Some("" | ".") => Directory::Runs,
        Some(cwd) => Directory::Given(cwd),
    }
}

fn writes(node: &Node) -> bool {
    let Work::Model(model) = &node.work else { return false };
    match model.permission_mode {
        Some(PermissionMode::Plan) => false,
        Some(PermissionMode::AcceptEdits | PermissionMode::BypassPermissions) => true,
        _ => model.allowed_tools.iter().flatten().any(|tool| edits(tool)),
    }
}

/// Whether a grant such as `Edit(src/**)` lets a model change files.
fn edits(tool: &str) -> bool {
    let tool = tool.trim();
    let name = tool.split('(').next().unwrap_or_default().trim_end();
    EDITING.contains(&name) || ANY_COMMAND.contains(&tool)
}
