//! The end of a run before its time, as workers see it: one cancellation and what it is owed to.

use std::io;
use std::sync::OnceLock;

use crate::graph::NodeId;
use crate::process::Cancel;
use crate::process::signals::Stop;

/// What ended the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This node failed, and the run halts on failure.
    Failure(NodeId),
    /// A signal to the engine.
    Signal(Stop),
}

/// Fires at most once; the first reason stays.
#[derive(Debug)]
pub struct Halt {
    cancel: Cancel,
    reason: OnceLock<Reason>,
}

impl Halt {
    /// A halt that has not fired.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Halt { cancel: Cancel::new()?, reason: OnceLock::new() })
    }

    /// Ends the run for `reason`.
    pub fn fire(&self, reason: Reason) {
        // Set before the cancellation wakes anybody, so that whoever is woken can say why.
        self.reason.set(reason).ok();
        self.cancel.fire();
    }

    /// What the children watch.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// What ended the run, once something has.
    pub fn reason(&self) -> Option<&Reason> {
        self.reason.get()
    }
}
