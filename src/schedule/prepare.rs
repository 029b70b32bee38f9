//! What a node needs before anything is paid: its worktree, its templates filled in, its directory resolved.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::graph::{Cause, Node, Work};
use crate::node::handoff::{HandoffError, Material, directory};
use crate::node::judge::Fault;
use crate::node::shell::Expectation;
use crate::schedule::lane;
use crate::schedule::nodes::GraphWork;

/// A node whose templates are filled in.
pub(crate) struct Prepared {
    /// The prompt or the command.
    pub(crate) text: String,
    /// The node's directory.
    pub(crate) cwd: PathBuf,
    /// The variables of its shell commands.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Its evidence command.
    pub(crate) verify: Option<PreparedVerify>,
}

/// An evidence command whose templates are filled in.
pub(crate) struct PreparedVerify {
    /// The command.
    pub(crate) command: String,
    /// Its directory.
    pub(crate) cwd: PathBuf,
    /// Its bound.
    pub(crate) timeout: Duration,
    /// What it must show.
    pub(crate) expected: Expectation,
}

/// Fills in the templates of `node`.
///
/// # Errors
/// A worktree that cannot be had, or the first token that has nothing to put in; nothing was paid (DECISIONS 12).
pub(crate) fn prepare(work: &GraphWork, node: &Node) -> Result<Prepared, Fault> {
    let lane = lane::enter(work, node)?;
    work.with_material(|material| fill(work, node, lane, material))
        .map_err(|error| Fault::ending(Cause::Setup, error.to_string()))
}

fn fill(
    work: &GraphWork,
    node: &Node,
    lane: Option<PathBuf>,
    material: &Material<'_>,
) -> Result<Prepared, HandoffError> {
    let text = match &node.work {
        Work::Model(model) => material.fill("prompt", &model.prompt)?,
        Work::Command(command) => material.fill("command", command)?,
        Work::Gate => String::new(),
    };
    let declared = node.cwd.as_deref().map(|cwd| material.fill("cwd", cwd)).transpose()?;
    let cwd = lane.unwrap_or_else(|| directory(&work.base, declared.as_deref()));
    let verify = match &node.check.verify {
        None => None,
        Some(verify) => {
            let own = verify.cwd.as_deref().map(|cwd| material.fill("verify.cwd", cwd)).transpose()?;
            let own = own.filter(|cwd| !cwd.is_empty());
            Some(PreparedVerify {
                command: material.fill("verify.command", &verify.command)?,
                cwd: own.map_or_else(|| cwd.clone(), |own| directory(&work.base, Some(&own))),
                timeout: verify.timeout,
                expected: Expectation {
                    exit: verify.expect_exit,
                    output_matches: verify.output_matches.clone(),
                },
            })
        }
    };
    let shells = verify.is_some() || matches!(node.work, Work::Command(_));
    let parents = node.parents.iter().map(|parent| work.graph.node(*parent).id.as_str());
    let env = if shells { material.exported(node.id.as_str(), parents) } else { Vec::new() };
    Ok(Prepared { text, cwd, env, verify })
}
