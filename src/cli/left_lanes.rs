//! Worktrees that a leg left when it died at its very end: what they hold is kept in the repository before anything is
//! said of the run. Whoever calls holds the run's lock.

use std::path::Path;
use std::sync::Arc;

use super::execute;
use crate::graph::Graph;
use crate::leg::to_come::ToCome;
use crate::node::worktree::{Git, GitLanes};
use crate::process::Launcher;
use crate::record::{RunDir, RunId};

/// Takes them away, but for those that nodes are still to run in; what a person should know of, a line each.
pub(super) fn tidy(run: &RunId, dir: &RunDir, base: &Path, graph: &Graph) -> Vec<String> {
    let Some(lanes) = lanes(run, dir, base) else { return Vec::new() };
    let to_come = ToCome::of(graph, dir);
    lanes.tidy(&|name| to_come.holds(name))
}

/// Makes reachable what they hold, and leaves them where they are; what could not be, a line each.
pub(super) fn keep(run: &RunId, dir: &RunDir, base: &Path) -> Vec<String> {
    lanes(run, dir, base).map(|lanes| lanes.keep()).unwrap_or_default()
}

fn lanes(run: &RunId, dir: &RunDir, base: &Path) -> Option<GitLanes> {
    let any = dir.worktrees().read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if !any || !base.is_dir() {
        return None;
    }
    let git = Git::find(Arc::new(Launcher::new(&execute::mark()).outside_repositories())).ok()?;
    Some(GitLanes::new(git, base, dir.worktrees(), run.as_str()))
}
