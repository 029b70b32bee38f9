//! Where a node runs: `cwd`, `worktree`, and the `setup` that prepares a fresh worktree.
//!
//! A worktree's name becomes the last part of a branch's name, so that git's rules hold for it, too.

use std::collections::HashMap;

use super::fields::declared;
use super::{At, Found, Rule};
use crate::graph::id;
use crate::text::template;

/// `cwd` and `worktree`.
pub(super) fn place(at: &mut At<'_, '_>) -> (Option<String>, Option<String>) {
    let raw = at.raw();
    let (cwd, worktree) = (declared(raw.cwd.as_deref()), declared(raw.worktree.as_deref()));
    if let Some(name) = &worktree {
        if !id::is_segment(name) {
            at.fault(Rule::Worktree, "worktree", format!("worktree {name:?} is not well formed"))
                .hint("letters, digits, \".\", \"_\" and \"-\", a letter or digit first, at most 200 bytes");
        } else if name.contains("..") || name.ends_with('.') || name.ends_with(".lock") {
            at.fault(
                Rule::Worktree,
                "worktree",
                format!("worktree {name:?} cannot be the name of a git branch"),
            )
            .hint("leave out \"..\", and \".\" or \".lock\" at the end");
        }
        if cwd.is_some() {
            at.fault(Rule::Worktree, "worktree", "worktree and cwd are both set")
                .hint("keep one: a node in a worktree runs at the worktree's top");
        }
    }
    (cwd, worktree)
}

/// `setup` of a node.
pub(super) fn setup(at: &mut At<'_, '_>) -> Option<String> {
    let raw = at.raw();
    let setup = declared(raw.setup.as_deref())?;
    if let Some((fault, hint)) = wrong_setup(&setup) {
        at.fault(Rule::Worktree, "setup", fault).hint(hint);
    }
    if declared(raw.worktree.as_deref()).is_none() {
        at.fault(Rule::Worktree, "setup", "setup prepares a worktree, and the node names none")
            .hint("add worktree:, or make the set-up a command node that this one depends on");
    }
    Some(setup)
}

/// What is wrong with a set-up command, and what to do about it.
pub(super) fn wrong_setup(setup: &str) -> Option<(String, &'static str)> {
    if setup.trim().is_empty() {
        return Some(("setup is blank".to_owned(), "write the shell command that prepares a worktree"));
    }
    let token = template::tokens(setup).next()?;
    let hint = "it runs once for all nodes of a worktree; the inputs are there as OMG_INPUT_<NAME>";
    Some((format!("setup is no template, and names {:?}", token.reference), hint))
}

/// Nodes that share a worktree share its set-up, whichever of them comes first.
pub(super) fn agree(found: &mut Found<'_>) {
    let raw = found.raw;
    let mut by_name: HashMap<&str, (&str, &str)> = HashMap::new();
    for (at, node) in raw.nodes.iter().enumerate() {
        let (Some(name), Some(setup)) = (node.worktree.as_deref(), node.setup.as_deref()) else { continue };
        if name.is_empty() || setup.is_empty() {
            continue;
        }
        match by_name.get(name) {
            Some((other, first)) if *first != setup => {
                let message =
                    format!("setup differs from that of node {other:?}, which shares worktree {name:?}");
                found
                    .at(at)
                    .fault(Rule::Worktree, "setup", message)
                    .hint("a worktree is set up once: declare it at one of its nodes");
            }
            Some(_) => {}
            None => drop(by_name.insert(name, (&node.id, setup))),
        }
    }
}
