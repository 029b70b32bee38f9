//! Which worktrees of a run a later leg may enter: those must be found as they were left.
//!
//! Asks what the run has recorded, as a resume will. Changes nothing.

use std::collections::BTreeSet;

use crate::graph::{Graph, NodeIx};
use crate::leg::again::{Inherited, Purpose};
use crate::record::RunDir;
use crate::record::standing::Standing;

/// The names of worktrees, as far as they can be told.
#[derive(Debug)]
pub enum ToCome {
    /// These.
    These(BTreeSet<String>),
    /// Nobody can tell, and so any of them.
    Any,
}

impl ToCome {
    /// What is to come of the run in `dir`, whose graph is `graph`; nobody may be writing to it.
    pub fn of(graph: &Graph, dir: &RunDir) -> Self {
        let Ok(standing) = Standing::read(dir) else { return ToCome::Any };
        let inherited = Inherited::of(graph, dir, &standing, &Purpose::Retry);
        let mut is_done = vec![false; graph.nodes().len()];
        for passed in &inherited.before.passed {
            is_done[*passed] = true;
        }
        // Below a gate that was rejected nothing ever runs.
        let mut rejected = inherited.before.rejected.clone();
        while let Some(at) = rejected.pop() {
            is_done[at] = true;
            let below = graph.dependents(NodeIx::new(at)).iter().map(|ix| ix.get());
            rejected.extend(below.filter(|ix| !is_done[*ix]));
        }
        let waiting = graph.nodes().iter().zip(is_done).filter(|(_, is_done)| !is_done);
        ToCome::These(waiting.filter_map(|(node, _)| node.worktree.clone()).collect())
    }

    /// Whether a later leg may enter the worktree `name`.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            ToCome::These(names) => names.contains(name),
            ToCome::Any => true,
        }
    }
}
