//! Loops that cannot reach a part of what their check judges (FACTS 4.7).
//!
//! A check that waits for several nodes sends its findings back to one of them. What another one made is then judged
//! again each round, unchanged. Whether that is a fault only a person can say: the edges do not tell what a prompt reads.

use std::collections::HashSet;

use super::{Remarks, Subject, Sweep, ancestry};
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, NodeIx, Work, check};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG060",
    name: "feedback-reach",
    summary: "a loop does not run a producer again whose work its check may judge",
    why: "When the check finds fault with what that producer made, the rounds are spent on the others and the fault stays. Let \
          `rerun` name a node that the loop reaches all of them from. A parent that is mere context is better placed \
          before the node that `rerun` names. The sweep sees edges, not what a prompt reads: it may be wrong.",
    bad: "nodes:\n  - {id: plan, type: command, command: ./plan}\n  - {id: api, depends_on: [plan], prompt: \"Mend the API. {{ \
          feedback.test }}\", allowed_tools: [Edit]}\n  - {id: docs, type: command, depends_on: [plan], command: ./docs}\n  - {id: \
          test, type: command, depends_on: [api, docs], command: ./test, feedback: {rerun: api, max: 2}}\n",
    good: "nodes:\n  - {id: plan, type: command, command: ./plan}\n  - {id: api, depends_on: [plan], prompt: \"Mend the API. {{ \
           feedback.test }}\", allowed_tools: [Edit]}\n  - {id: docs, type: command, depends_on: [plan], command: ./docs}\n  - {id: \
           test, type: command, depends_on: [api, docs], command: ./test, feedback: {rerun: plan, max: 2}}\n",
    look: Some(look),
};

/// How many nodes are looked at in all to find a better target.
const SEARCH_MAX: usize = 2_000_000;
/// How many nodes are checked in all to see whether a target is allowed.
const TRIALS_MAX: usize = 500_000;

/// A loop that does not reach a part of what its check judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The node that declares the loop.
    pub declarer: NodeIx,
    /// The parents whose work the loop never runs again.
    pub producers: Vec<NodeIx>,
    /// Where the loop would have to begin to reach them; `None` when no place does, or none was found in time.
    pub target: Option<NodeIx>,
}

/// The loops of `graph` that do not reach a part of what their checks judge, in file order.
pub fn unreached(raw: &RawGraph, graph: &Graph) -> Vec<Unreached> {
    let beside = beside(graph);
    let pairs: Vec<_> = beside.iter().map(|(_, target, parent)| (*target, *parent)).collect();
    let feeds_the_loop = ancestry::waits(graph, &pairs);
    let mut missed: Vec<(NodeIx, Vec<NodeIx>)> = Vec::new();
    for ((declarer, _, parent), _) in beside.into_iter().zip(feeds_the_loop).filter(|(_, feeds)| !feeds) {
        match missed.last_mut() {
            Some((last, parents)) if *last == declarer => parents.push(parent),
            _ => missed.push((declarer, vec![parent])),
        }
    }
    let mut search = Search { raw, graph, visits_left: SEARCH_MAX, trials_left: TRIALS_MAX };
    let found = |(declarer, producers): (NodeIx, Vec<NodeIx>)| {
        let target = search.target(declarer, &producers);
        Unreached { declarer, producers, target }
    };
    missed.into_iter().map(found).collect()
}

fn look(Subject { raw, graph }: Subject<'_>, remarks: &mut Remarks) {
    for Unreached { declarer, producers, target } in unreached(raw, graph) {
        let advised = match target {
            Some(better) => format!("rerun: {} would", graph.node(better).id),
            None => {
                "no rerun of this graph could; put what is mere context before the loop, or judge it apart"
                    .to_owned()
            }
        };
        for parent in &producers {
            let id = &graph.node(*parent).id;
            let detail = format!("never runs {id:?} again, whose work the node may judge: {advised}");
            remarks.node(graph, declarer, "feedback.rerun", detail);
        }
    }
}

/// Parents of declarers that stand outside the loop and are no gate: the declarer, its target, the parent.
fn beside(graph: &Graph) -> Vec<(NodeIx, NodeIx, NodeIx)> {
    let mut found = Vec::new();
    for declarer in graph.positions() {
        let Some(arc) = graph.node(declarer).feedback else { continue };
        let body = graph.feedback_body(declarer);
        let outside =
            graph.node(declarer).parents.iter().filter(|parent| body.binary_search(parent).is_err());
        let working = outside.filter(|parent| !matches!(graph.node(**parent).work, Work::Gate));
        found.extend(working.map(|parent| (declarer, arc.rerun, *parent)));
    }
    found
}

struct Search<'g> {
    raw: &'g RawGraph,
    graph: &'g Graph,
    visits_left: usize,
    trials_left: usize,
}

impl Search<'_> {
    /// The target with the smallest loop that reaches the present one and all of `missed`, and is allowed.
    fn target(&mut self, declarer: NodeIx, missed: &[NodeIx]) -> Option<NodeIx> {
        let present = self.graph.node(declarer).feedback?.rerun;
        let mut common = self.before(present)?;
        for parent in missed {
            let before = self.before(*parent)?;
            common.retain(|ix| before.contains(ix));
        }
        let before = self.before(declarer)?;
        let mut candidates = Vec::with_capacity(common.len());
        for ix in common {
            candidates.push((self.between(ix, &before)?, ix));
        }
        candidates.sort_unstable();
        candidates.into_iter().map(|(_, ix)| ix).find(|ix| self.is_allowed(declarer, *ix))
    }

    /// All that `ix` waits for; `None` when there are no visits left.
    fn before(&mut self, ix: NodeIx) -> Option<HashSet<NodeIx>> {
        let mut seen = HashSet::new();
        let mut open = vec![ix];
        while let Some(at) = open.pop() {
            self.visits_left = self.visits_left.checked_sub(1)?;
            open.extend(self.graph.node(at).parents.iter().filter(|parent| seen.insert(**parent)));
        }
        Some(seen)
    }

    /// How many nodes lie on the paths from `target` to the node that waits for all of `before`, itself left out.
    fn between(&mut self, target: NodeIx, before: &HashSet<NodeIx>) -> Option<usize> {
        let mut seen = HashSet::from([target]);
        let mut open = vec![target];
        while let Some(at) = open.pop() {
            self.visits_left = self.visits_left.checked_sub(1)?;
            let inside = self.graph.dependents(at).iter().filter(|ix| before.contains(*ix));
            open.extend(inside.filter(|ix| seen.insert(**ix)));
        }
        Some(seen.len())
    }

    fn is_allowed(&mut self, declarer: NodeIx, target: NodeIx) -> bool {
        let Some(fewer) = self.trials_left.checked_sub(self.raw.nodes.len()) else { return false };
        self.trials_left = fewer;
        let mut raw = self.raw.clone();
        if let Some(feedback) = &mut raw.nodes[declarer.get()].feedback {
            feedback.rerun = self.graph.node(target).id.to_string();
        }
        check(&raw).is_ok()
    }
}
