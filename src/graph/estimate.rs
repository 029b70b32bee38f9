//! What a run of a graph may take at worst: executions, dollars, time, people.
//!
//! Straight through, without a resume: every attempt of every round of every loop is used up, and each node passes all
//! the same. Loops never overlap, so that a node runs in at most one; the bounds of a run are applied last. Pure
//! arithmetic, linear in nodes and edges, once for every 64 gates.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::graph::node::{Handoff, TIMEOUT_DEFAULT};
use crate::graph::{Bounds, Graph, Node, NodeIx, Work};
use crate::text::money::Money;

/// The worst case of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Attempts of prompt nodes.
    pub prompts: u64,
    /// Attempts of command nodes.
    pub commands: u64,
    /// How often the engine runs a check's command.
    pub checks: u64,
    /// What the nodes with a budget may spend.
    pub budgeted: Money,
    /// The prompt nodes without a budget, by position.
    pub unbudgeted: Vec<NodeIx>,
    /// The longest way through the graph, with a slot for every node.
    pub longest_path: Duration,
    /// The time of all nodes together.
    pub work: Duration,
    /// The time of the node that may take longest, all its attempts of one round.
    pub longest_node: Duration,
    /// The slots of a run.
    pub slots: usize,
    /// The worktrees, and whether each has a command that prepares it.
    pub lanes: BTreeMap<String, bool>,
    /// The gates in file order, and how many nodes wait behind each.
    pub gates: Vec<(NodeIx, usize)>,
    /// The bounds that the graph declares.
    pub bounds: Bounds,
}

impl Estimate {
    /// The worst case of `graph`.
    pub fn of(graph: &Graph) -> Self {
        let mut estimate = Estimate {
            slots: graph.effective_concurrency(None),
            lanes: lanes(graph),
            bounds: graph.bounds,
            ..Estimate::default()
        };
        let order = order(graph);
        estimate.gates = gates(graph, &order);
        let rounds = rounds(graph);
        for ix in graph.positions() {
            estimate.count(graph, ix, u64::from(rounds[ix.get()]));
        }
        let times = Times::of(graph, &estimate.lanes);
        estimate.longest_path = times.longest_path(graph, &order);
        for ix in graph.positions() {
            let once = times.of[ix.get()];
            estimate.longest_node = estimate.longest_node.max(once + times.setup[ix.get()]);
            let all = once.saturating_mul(rounds[ix.get()]).saturating_add(times.setup[ix.get()]);
            estimate.work = estimate.work.saturating_add(all);
        }
        estimate
    }

    /// Attempts of all nodes, no more than the run's bound.
    pub fn executions(&self) -> u64 {
        let all = self.prompts + self.commands;
        self.bounds.executions.map_or(all, |bound| all.min(u64::from(bound)))
    }

    /// The dollars, no more than the run's bound; `None` when nothing bounds them.
    pub fn spend(&self) -> Option<Money> {
        match (self.unbudgeted.is_empty(), self.bounds.spend) {
            (true, bound) => Some(bound.map_or(self.budgeted, |bound| self.budgeted.min(bound))),
            (false, bound) => bound,
        }
    }

    /// The time that any schedule with the run's slots keeps to, no more than the run's bound: no slot is idle while a
    /// node is ready, so that whatever is not on the longest path is shared by all slots (Graham 1969). A node that
    /// runs when the bound is reached goes on to its end.
    pub fn wall(&self) -> Duration {
        let beside = self.work.saturating_sub(self.longest_path);
        let slots = u32::try_from(self.slots).unwrap_or(u32::MAX).max(1);
        let free = self.longest_path.saturating_add(beside / slots);
        self.bounds.wall.map_or(free, |bound| free.min(bound.saturating_add(self.longest_node)))
    }

    fn count(&mut self, graph: &Graph, ix: NodeIx, rounds: u64) {
        let node = graph.node(ix);
        let runs = u64::from(attempts(node)) * rounds;
        match &node.work {
            Work::Gate => return,
            Work::Command(_) => self.commands += runs,
            Work::Model(model) => {
                self.prompts += runs;
                match model.budget {
                    Some(budget) => self.budgeted = self.budgeted.saturating_add(budget.times(runs)),
                    None => self.unbudgeted.push(ix),
                }
            }
        }
        self.checks += if node.check.verify.is_some() { runs } else { 0 };
    }
}

fn attempts(node: &Node) -> u32 {
    1 + node.retry.max
}

/// How often each node may run anew: once, and once more for each round of the loop that it stands in.
fn rounds(graph: &Graph) -> Vec<u32> {
    let mut rounds = vec![1; graph.nodes().len()];
    for ix in graph.positions() {
        let Some(feedback) = graph.node(ix).feedback else { continue };
        for member in graph.feedback_body(ix) {
            rounds[member.get()] = 1 + feedback.max;
        }
    }
    rounds
}

fn lanes(graph: &Graph) -> BTreeMap<String, bool> {
    let named =
        graph.nodes().iter().filter(|node| node.has_lane()).filter_map(|node| node.worktree.as_deref());
    let names: BTreeSet<&str> = named.collect();
    names.into_iter().map(|name| (name.to_owned(), graph.setup_of(name).is_some())).collect()
}

/// The gates in file order, and how many nodes descend from each. As many gates as a word has bits go along the edges
/// together, parents before children.
fn gates(graph: &Graph, order: &[NodeIx]) -> Vec<(NodeIx, usize)> {
    let is_gate = |ix: &NodeIx| matches!(graph.node(*ix).work, Work::Gate);
    let gates: Vec<NodeIx> = graph.positions().filter(is_gate).collect();
    let mut counted = Vec::with_capacity(gates.len());
    for some in gates.chunks(u64::BITS as usize) {
        // By node, the gates above it; and those that it is itself.
        let (mut above, mut own) = (vec![0_u64; order.len()], vec![0_u64; order.len()]);
        let mut behind = vec![0; some.len()];
        for (bit, gate) in some.iter().enumerate() {
            own[gate.get()] = 1 << bit;
        }
        for ix in order {
            let parents = graph.node(*ix).parents.iter();
            let mut found = parents.fold(0, |all, parent| all | above[parent.get()] | own[parent.get()]);
            above[ix.get()] = found;
            while found != 0 {
                behind[found.trailing_zeros() as usize] += 1;
                found &= found - 1;
            }
        }
        counted.extend(some.iter().copied().zip(behind));
    }
    counted
}

/// How long each node may take.
struct Times {
    /// One round of it: every attempt and its check.
    of: Vec<Duration>,
    /// Preparing its worktree, or waiting for others to, where it may be among the first there; once in a run.
    setup: Vec<Duration>,
}

impl Times {
    fn of(graph: &Graph, lanes: &BTreeMap<String, bool>) -> Self {
        let one = |node: &Node| match node.work {
            Work::Gate => Duration::ZERO,
            Work::Model(_) | Work::Command(_) => {
                let check = node.check.verify.as_ref().map_or(Duration::ZERO, |verify| verify.timeout);
                timeout(node).saturating_add(check).saturating_mul(attempts(node))
            }
        };
        let lane = |node: &Node| node.worktree.clone().filter(|name| node.has_lane() && lanes[name]);
        // Behind another node of its worktree it finds it prepared.
        let is_first = |node: &Node| {
            let is_shared = |parent: &NodeIx| {
                let parent = graph.node(*parent);
                parent.has_lane() && parent.worktree == node.worktree
            };
            !node.parents.iter().any(is_shared)
        };
        let first = graph.nodes().iter().filter(|node| is_first(node));
        let mut longest: BTreeMap<String, Duration> = BTreeMap::new();
        for (name, node) in first.filter_map(|node| Some((lane(node)?, node))) {
            let longest = longest.entry(name).or_default();
            *longest = timeout(node).max(*longest);
        }
        // One of them runs it, and the others wait for that one.
        let setup = |node: &Node| match lane(node).filter(|_| is_first(node)) {
            Some(name) => longest[&name],
            None => Duration::ZERO,
        };
        let nodes = graph.nodes().iter();
        Times { of: nodes.clone().map(one).collect(), setup: nodes.map(setup).collect() }
    }

    /// When the last node ends, each having started when its last parent ended.
    fn longest_path(&self, graph: &Graph, order: &[NodeIx]) -> Duration {
        let loops = rounds_after(self, graph, order);
        let mut ends = vec![Duration::ZERO; order.len()];
        let mut sessions: HashMap<NodeIx, Duration> = HashMap::new();
        for &ix in order {
            let node = graph.node(ix);
            let ready = node.parents.iter().map(|parent| ends[parent.get()]).max().unwrap_or(Duration::ZERO);
            let own = self.of[ix.get()].saturating_add(self.setup[ix.get()]);
            let again = loops.get(&ix).copied().unwrap_or(Duration::ZERO);
            let end = after_session(graph, ix, ready, &sessions).saturating_add(own).saturating_add(again);
            ends[ix.get()] = end;
            if resumes(node) {
                sessions.insert(graph.session_root(ix), end);
            }
        }
        ends.into_iter().max().unwrap_or(Duration::ZERO)
    }
}

/// By declarer, how long all rounds after the first may take: each is one way through the loop's body.
fn rounds_after(times: &Times, graph: &Graph, order: &[NodeIx]) -> HashMap<NodeIx, Duration> {
    let mut owner = vec![None; order.len()];
    for ix in graph.positions() {
        for member in graph.feedback_body(ix) {
            owner[member.get()] = Some(ix);
        }
    }
    let mut ends = vec![Duration::ZERO; order.len()];
    let mut sessions: HashMap<NodeIx, Duration> = HashMap::new();
    let mut after = HashMap::new();
    for &ix in order {
        let Some(declarer) = owner[ix.get()] else { continue };
        let node = graph.node(ix);
        let inside = node.parents.iter().filter(|parent| owner[parent.get()] == Some(declarer));
        let ready = inside.map(|parent| ends[parent.get()]).max().unwrap_or(Duration::ZERO);
        let end = after_session(graph, ix, ready, &sessions).saturating_add(times.of[ix.get()]);
        ends[ix.get()] = end;
        if resumes(node) {
            sessions.insert(graph.session_root(ix), end);
        }
        if let (true, Some(feedback)) = (declarer == ix, node.feedback) {
            after.insert(ix, end.saturating_mul(feedback.max));
        }
    }
    after
}

/// Nodes that go on with one session wait for each other.
fn after_session(
    graph: &Graph,
    ix: NodeIx,
    ready: Duration,
    sessions: &HashMap<NodeIx, Duration>,
) -> Duration {
    let busy = sessions.get(&graph.session_root(ix)).filter(|_| resumes(graph.node(ix)));
    busy.map_or(ready, |busy| ready.max(*busy))
}

fn resumes(node: &Node) -> bool {
    matches!(&node.work, Work::Model(model) if model.handoff == Handoff::Session)
}

fn timeout(node: &Node) -> Duration {
    node.timeout.unwrap_or(TIMEOUT_DEFAULT)
}

/// Every node, its parents before it.
fn order(graph: &Graph) -> Vec<NodeIx> {
    let mut missing: Vec<usize> = graph.nodes().iter().map(|node| node.parents.len()).collect();
    let mut order: Vec<NodeIx> = graph.positions().filter(|ix| missing[ix.get()] == 0).collect();
    let mut next = 0;
    while let Some(ix) = order.get(next).copied() {
        next += 1;
        for dependent in graph.dependents(ix) {
            missing[dependent.get()] -= 1;
            if missing[dependent.get()] == 0 {
                order.push(*dependent);
            }
        }
    }
    order
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
