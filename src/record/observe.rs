//! The few things that are told in-process instead of through the files (`ARCHITECTURE` 3).

use std::path::PathBuf;

use crate::graph::NodeId;

/// Something that a person watching this process should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The check's command of `node` is about to run.
    Verifying {
        /// The node.
        node: NodeId,
        /// The command, tokens resolved.
        command: String,
    },
    /// Something that does not end the run went wrong.
    Warning {
        /// The node it concerns, if one.
        node: Option<NodeId>,
        /// What was tried and what came of it.
        message: String,
    },
    /// The reply of a node that failed was kept.
    SavedReply {
        /// The node.
        node: NodeId,
        /// Where.
        path: PathBuf,
    },
    /// New lines are in the feed.
    Fed,
}

/// Who hears notices. Called from any thread; must not block.
pub trait Observer: Send + Sync {
    /// Takes one notice.
    fn notice(&self, notice: Notice);
}

/// An observer that drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn notice(&self, _notice: Notice) {}
}
