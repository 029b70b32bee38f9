//! The model of a graph: what a file may say ([`raw`]), what a checked graph is ([`Graph`], [`node`]).
//!
//! Pure data: knows no file, no YAML, no child process and no schedule. A [`Graph`] can only be built by
//! [`check`], so what runs later never asks again whether an edge dangles, a cycle hides or a pattern compiles.

pub mod bounds;
pub mod cause;
pub mod check;
pub mod critical;
pub mod draw;
pub mod estimate;
pub mod export;
pub mod id;
pub mod node;
pub mod normal;
mod order;
pub mod provenance;
pub mod raw;
pub mod schema;

use std::collections::HashMap;

pub use bounds::Bounds;
pub use cause::Cause;
pub use check::check;
pub use id::{NodeId, NodeIx};
pub use node::{Node, Work};
pub use normal::from_snapshot;
pub use provenance::Provenance;

/// What a failed node does to the rest of the run (DESIGN "Execution engine" step 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFail {
    /// Stop launching, end what runs, close the leg.
    Halt,
    /// Skip only what depends on the failed node.
    Continue,
}

impl OnFail {
    /// Both, in the order in which messages list them.
    pub const ALL: [OnFail; 2] = [OnFail::Halt, OnFail::Continue];

    /// The word in graphs.
    pub fn as_str(self) -> &'static str {
        match self {
            OnFail::Halt => "halt",
            OnFail::Continue => "continue",
        }
    }
}

/// Slots when neither the graph nor the command line names a number.
pub const CONCURRENCY_DEFAULT: usize = 4;
/// The most slots any run gets, whatever is asked for.
pub const CONCURRENCY_MAX: usize = 10;

/// A checked graph. Nodes keep the order of the file; edges are held both ways.
#[derive(Debug)]
pub struct Graph {
    /// `name:`, possibly empty.
    pub name: String,
    /// `version:`, possibly empty, as written.
    pub version: String,
    /// `inputs:`, the declared input names.
    pub inputs: Vec<String>,
    /// `concurrency:`, `None` when undeclared or 0.
    pub concurrency: Option<usize>,
    /// `on_fail:`.
    pub on_fail: OnFail,
    /// `max_usd:`, `max_executions:` and `max_wall:`.
    pub bounds: Bounds,
    /// Graph-level `model:` for nodes that name none.
    pub model: Option<String>,
    /// Graph-level `effort:` for nodes that name none.
    pub effort: Option<String>,
    /// Graph-level `setup:` for worktrees whose nodes name none.
    pub setup: Option<String>,
    nodes: Vec<Node>,
    dependents: Vec<Vec<NodeIx>>,
    by_id: HashMap<NodeId, NodeIx>,
    session_roots: Vec<NodeIx>,
    bodies: HashMap<NodeIx, Vec<NodeIx>>,
}

impl Graph {
    /// The nodes, in file order; a [`NodeIx`] is a position here.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node at `ix`.
    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.get()]
    }

    /// The nodes that wait for `ix`, in file order.
    pub fn dependents(&self, ix: NodeIx) -> &[NodeIx] {
        &self.dependents[ix.get()]
    }

    /// Finds a node by its id.
    pub fn find(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    /// Every position, in file order.
    pub fn positions(&self) -> impl Iterator<Item = NodeIx> + use<> {
        (0..self.nodes.len()).map(NodeIx::new)
    }

    /// The node whose session `ix` resumes, through any number of `handoff: session` steps; `ix` itself when it
    /// starts its own. Nodes with one root never run at the same time (DECISIONS 16).
    pub fn session_root(&self, ix: NodeIx) -> NodeIx {
        self.session_roots[ix.get()]
    }

    /// The nodes that the feedback arc declared by `declarer` runs again, in file order, its target and the
    /// declarer included; empty when it declares none.
    pub fn feedback_body(&self, declarer: NodeIx) -> &[NodeIx] {
        self.bodies.get(&declarer).map_or(&[], Vec::as_slice)
    }

    /// The declarer of the loop that `ix` stands in, if it stands in one.
    pub fn declarer_of(&self, ix: NodeIx) -> Option<NodeIx> {
        self.bodies.iter().find(|(_, body)| body.binary_search(&ix).is_ok()).map(|(declarer, _)| *declarer)
    }

    /// Whether a node runs in a worktree.
    pub fn has_lanes(&self) -> bool {
        self.nodes.iter().any(Node::has_lane)
    }

    /// The command that prepares a fresh worktree `name`: what one of its nodes declares, else the graph's.
    pub fn setup_of(&self, name: &str) -> Option<&str> {
        let sharing = self.nodes.iter().filter(|node| node.worktree.as_deref() == Some(name));
        sharing.filter_map(|node| node.setup.as_deref()).next().or(self.setup.as_deref())
    }

    /// Slots for a run of this graph: the flag, else the graph, else 4; never above 10 (FACTS 2.2).
    pub fn effective_concurrency(&self, flag: Option<usize>) -> usize {
        flag.or(self.concurrency).unwrap_or(CONCURRENCY_DEFAULT).min(CONCURRENCY_MAX)
    }
}
