//! Lanes: managed git worktrees, one a name and run, shared by the nodes that name it (DESIGN "Worktree isolation",
//! FACTS 11).
//!
//! [`lanes`] makes or adopts a lane when its first node needs it; [`tidy`] takes lanes away when the leg ends, and
//! loses nothing: [`keep`] finds commits and stashes that would become unreachable, [`leftovers`] files that git does
//! not look after; both are put under `refs/omg/<run>/<lane>/…`, the latter byte for byte ([`raw`]). [`salvage`] lists what was kept and gives it back. [`changes`] tells
//! what a lane's nodes changed, for whoever decides about it.
//! Knows neither a schedule nor a run's files; is told the directory that lanes lie in.

pub mod changes;
pub mod git;
pub mod keep;
pub mod lanes;
pub mod leftovers;
mod raw;
pub mod salvage;
pub mod tidy;

use std::path::{Path, PathBuf};

use crate::node::judge::Fault;

pub use git::{Git, GitError};
pub use lanes::GitLanes;

/// Where nodes with `worktree:` run.
pub trait Lanes: Send + Sync {
    /// The directory of the lane `name`, made when it is asked for first. `set_up` is called in a directory that was
    /// not set up before; others that ask for the lane wait for it.
    ///
    /// # Errors
    /// When there is no such lane to be had, or `set_up` failed; nothing was paid.
    fn enter(&self, name: &str, set_up: &mut dyn FnMut(&Path) -> Result<(), Fault>)
    -> Result<PathBuf, Fault>;
}
