//! Worktrees that a leg left. When it died at its very end, what they hold is kept in the repository before anything is
//! said of the run; whoever calls holds the run's lock. What they hold is shown to a person who decides at a gate.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::execute;
use crate::graph::Graph;
use crate::leg::to_come::ToCome;
use crate::node::worktree::changes::Changes;
use crate::node::worktree::{Git, GitLanes};
use crate::process::Launcher;
use crate::process::find::NotFound;
use crate::record::{RunDir, RunId};
use crate::text::sanitize;
use crate::view::web::LookIntoLanes;

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
    Some(GitLanes::new(git().ok()?, base, dir.worktrees(), run.as_str()))
}

fn git() -> Result<Git, NotFound> {
    Git::find(Arc::new(Launcher::new(&execute::mark()).outside_repositories()))
}

/// Looks into lanes for a page, one at a time: a page that is loaded over and over starts no crowd of gits.
#[derive(Default)]
pub(super) struct LeftLanes(Mutex<()>);

impl LookIntoLanes for LeftLanes {
    fn changes(&self, run: &RunId, dir: &RunDir, base: &Path, lane: &str) -> Result<Option<Changes>, String> {
        let _one = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !base.is_dir() {
            return Err(format!("the run was started in {}, which is not there", base.display()));
        }
        let git = git().map_err(|error| error.to_string())?;
        let lanes = GitLanes::new(git, base, dir.worktrees(), run.as_str());
        lanes.changes(lane).map_err(|error| sanitize::lines(&error.to_string()).into_owned())
    }
}
