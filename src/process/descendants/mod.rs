//! Finding what a child left running (DECISIONS 21), behind a trait because systems differ in what they tell.
//!
//! Finds only; `remains` ends what was found. [`Marked`] is Linux's way and finds everything; [`Walk`] is for the
//! other systems and is tested on Linux only, by forcing it.

use rustix::process::Pid;

use crate::process::remains::Stray;

#[cfg(target_os = "linux")]
mod marked;
mod walk;

#[cfg(target_os = "linux")]
pub(crate) use marked::{Marked, bereaved, own_group, parent};
pub(crate) use walk::Walk;
#[cfg(not(target_os = "linux"))]
pub(crate) use walk::{bereaved, own_group, parent};

/// What is known of a child's tree.
#[derive(Debug)]
pub(crate) struct Family {
    /// The child, which is not reaped yet: its pid and its group's number are still its own.
    pub(crate) leader: Pid,
    /// The marker as it stands in an environment, `NAME=VALUE`.
    pub(crate) mark: Vec<u8>,
    /// Who belonged to the tree before its first signal, if that was noted.
    pub(crate) noted: Vec<walk::Row>,
}

/// A way to find descendants.
pub(crate) trait Descendants: std::fmt::Debug + Send + Sync {
    /// Notes a tree whose leader is about to be signalled.
    fn note(&self, family: &mut Family);

    /// Returns the living members of a family whose leader has exited.
    fn left(&self, family: &Family) -> Vec<Stray>;

    /// Returns everything living that carries the variable `name` with a value that is not in `kept`, the children
    /// that are being watched excepted.
    fn left_by_run(&self, name: &str, kept: &[String]) -> Vec<Stray>;

    /// Returns everything living that carries the marker `mark`, as it stands in an environment; nothing where the
    /// system does not show environments.
    fn marked(&self, mark: &[u8]) -> Vec<Stray>;

    /// Returns the adopted processes that carry no marker at all, so that nobody can say whose they are.
    fn unclaimed(&self) -> Vec<Stray>;

    /// Reaps the adopted processes that have died.
    fn tidy(&self);
}
