//! What is looked at before the first spend (DECISIONS 19): directories and artifacts that are not there, worktrees
//! that cannot be made, settings that change who pays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::graph::{Graph, Node, Work, export};
use crate::lint;
use crate::node::checkout;
use crate::node::handoff::{Material, directory};
use crate::node::runtime::RuntimeKind;
use crate::node::runtime::settings::{self, Finding, Whereabouts};
use crate::node::worktree::{Git, GitError};

/// Why `graph` cannot be run from `base` with `inputs`; each names its node.
pub fn refusals(graph: &Graph, inputs: &BTreeMap<String, String>, base: &Path) -> Vec<String> {
    let nodes = graph.nodes().iter();
    nodes.filter_map(|node| missing_directory(node, inputs, base)).chain(never_there(graph)).collect()
}

/// Why `graph` cannot be rehearsed; a rehearsal needs no directory and makes no worktree.
pub fn unrehearsable(graph: &Graph) -> Vec<String> {
    never_there(graph).collect()
}

fn never_there(graph: &Graph) -> impl Iterator<Item = String> {
    lint::never_there(graph).into_iter().map(|advice| advice.to_string())
}

/// The inputs of a run that will not be exported to the commands of its nodes (DECISIONS 8); their tokens still work.
pub fn unexported(graph: &Graph, inputs: &BTreeMap<String, String>) -> Vec<String> {
    if graph.setup.is_none() && !graph.nodes().iter().any(Node::runs_a_shell) {
        return Vec::new();
    }
    let unfit = inputs.iter().filter(|(_, value)| !export::fits(value));
    unfit
        .map(|(name, value)| {
            let why = if value.contains('\0') {
                "a NUL byte".to_owned()
            } else {
                let (bytes, most) = (value.len(), export::VALUE_BYTES_MAX);
                format!("{bytes} bytes, more than the {most} that a variable may have")
            };
            format!("input {name:?} has {why}: {} is not set for commands", export::input_variable(name))
        })
        .collect()
}

/// Why the worktrees of `graph` cannot be made from `base` by `git`; names the first node that needs one.
pub fn lanes(graph: &Graph, base: &Path, git: Option<&Git>) -> Vec<String> {
    let Some(node) = graph.nodes().iter().find(|node| node.has_lane()) else { return Vec::new() };
    let why = match git {
        None => Some("git was not found on PATH".to_owned()),
        Some(git) => no_lanes(git, base),
    };
    why.map(|why| format!("node \"{}\" runs in a git worktree, and {why}", node.id)).into_iter().collect()
}

fn no_lanes(git: &Git, base: &Path) -> Option<String> {
    let here = base.display();
    match git.path(base, ["rev-parse", "--git-common-dir"]) {
        Ok(_) => {}
        Err(GitError::Refused { said, .. }) if said.contains("not a git repository") => {
            return Some(format!("{here} is in no git repository (git init makes one)"));
        }
        Err(error) => return Some(format!("the repository of {here} cannot be used: {error}")),
    }
    match (git.commit(base, "HEAD"), git.commit(base, "refs/heads/omg")) {
        (Err(error), _) | (_, Err(error)) => Some(format!("the repository of {here} cannot be used: {error}")),
        (Ok(None), _) => Some(format!("the repository of {here} has no commit yet (git commit makes one)")),
        (_, Ok(Some(_))) => Some(
            "the repository has a branch called omg, which leaves no room for branches omg/… (git branch -m omg \
             OTHER renames it)"
                .to_owned(),
        ),
        _ => None,
    }
}

/// What is to be told of the settings files that the prompts of `graph` are asked under, run from `base` with `inputs`, in
/// a CLI that loads them; `own` says where the CLI has its own.
pub fn settings(
    kind: RuntimeKind,
    graph: &Graph,
    inputs: &BTreeMap<String, String>,
    base: &Path,
    own: Whereabouts,
) -> Vec<Finding> {
    let prompts: Vec<&Node> =
        graph.nodes().iter().filter(|node| matches!(node.work, Work::Model(_))).collect();
    if prompts.is_empty() {
        return Vec::new();
    }
    // A worktree has the files of its repository, at its top.
    let top = || checkout::top(base).unwrap_or(base);
    let place = |node: &&Node| match node.has_lane() {
        true => Some(top().to_path_buf()),
        false => stated_directory(node, inputs, base),
    };
    settings::findings(kind, &Whereabouts { directories: prompts.iter().filter_map(place).collect(), ..own })
}

/// Where a node runs, as far as that is known before the run: when its template names nothing but inputs.
fn stated_directory(node: &Node, inputs: &BTreeMap<String, String>, base: &Path) -> Option<PathBuf> {
    let Some(declared) = node.cwd.as_deref() else { return Some(base.to_path_buf()) };
    let (artifact, feedback) = (|_: &str| None::<PathBuf>, |_: &str| String::new());
    let material = Material { inputs, artifact: &artifact, feedback: &feedback };
    Some(directory(base, Some(&material.fill("cwd", declared).ok()?)))
}

fn missing_directory(node: &Node, inputs: &BTreeMap<String, String>, base: &Path) -> Option<String> {
    node.cwd.as_deref()?;
    let path = stated_directory(node, inputs, base)?;
    let why = match path.metadata() {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => "is not a directory",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist",
        Err(_) => "cannot be entered",
    };
    Some(format!("node \"{}\": cwd {} {why}", node.id, path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_too_long_is_told_where_a_shell_would_miss_it() {
        let graph = |json: &str| {
            crate::graph::from_snapshot(json)
                .map(|(_, graph)| graph)
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let long = "x".repeat(export::VALUE_BYTES_MAX + 1);
        let inputs = BTreeMap::from([("task".to_owned(), long), ("short".to_owned(), "x".to_owned())]);
        let with_shell = graph(r#"{"nodes":[{"id":"a","type":"command","command":"x"}]}"#);
        assert_eq!(
            unexported(&with_shell, &inputs),
            [
                "input \"task\" has 122881 bytes, more than the 122880 that a variable may have: OMG_INPUT_TASK is not set for commands"
            ]
        );
        assert!(unexported(&graph(r#"{"nodes":[{"id":"a"}]}"#), &inputs).is_empty());
    }
}
