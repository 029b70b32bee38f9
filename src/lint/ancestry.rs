//! Who waits for whom, for many pairs of nodes at once.
//!
//! No set of ancestors is kept for each node, which would be quadratic: the nodes that are asked for are taken 64 at a
//! time, and one pass over the graph tells who comes after each of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::graph::{Graph, NodeIx};

/// How many nodes are followed in one pass: one bit each.
const AT_ONCE: usize = u64::BITS as usize;
/// How many edges are followed in all; a graph that needs more is not worth the wait for a remark.
const STEPS_MAX: usize = 200_000_000;

/// For each `(node, named)`: whether `node` waits for `named`, at once or through others; yes when it would take too
/// long to tell.
pub(super) fn waits(graph: &Graph, pairs: &[(NodeIx, NodeIx)]) -> Vec<bool> {
    let mut answers: Vec<bool> =
        pairs.iter().map(|(node, named)| waits_directly(graph, *node, *named)).collect();
    if answers.iter().all(|answer| *answer) {
        return answers;
    }
    let order = order(graph);
    let mut place = vec![0; order.len()];
    for (at, ix) in order.iter().enumerate() {
        place[ix.get()] = at;
    }
    let mut asked: HashMap<NodeIx, Vec<usize>> = HashMap::new();
    for (at, (node, named)) in pairs.iter().enumerate() {
        if !answers[at] && place[named.get()] < place[node.get()] {
            asked.entry(*named).or_default().push(at);
        }
    }
    let mut named: Vec<NodeIx> = asked.keys().copied().collect();
    named.sort_unstable_by_key(|ix| place[ix.get()]);
    let mut steps_left = STEPS_MAX;
    let mut behind = vec![0_u64; order.len()];
    for batch in named.chunks(AT_ONCE) {
        let questions =
            || batch.iter().enumerate().flat_map(|(bit, ix)| asked[ix].iter().map(move |at| (bit, *at)));
        let first = place[batch[0].get()];
        let last = questions().map(|(_, at)| place[pairs[at].0.get()]).max().unwrap_or(first);
        let followed = follow(graph, &order[first..=last], batch, &mut behind, &mut steps_left);
        for (bit, at) in questions() {
            answers[at] = !followed || behind[pairs[at].0.get()] >> bit & 1 == 1;
        }
    }
    answers
}

fn waits_directly(graph: &Graph, node: NodeIx, named: NodeIx) -> bool {
    let (up, down) = (&graph.node(node).parents, graph.dependents(named));
    if up.len() <= down.len() { up.contains(&named) } else { down.contains(&node) }
}

/// Marks in `behind` what stands behind each node of `batch`, its bit its place; no when there are no steps left.
fn follow(graph: &Graph, order: &[NodeIx], batch: &[NodeIx], behind: &mut [u64], left: &mut usize) -> bool {
    behind.fill(0);
    let mut batch = batch.iter().enumerate().peekable();
    for ix in order {
        let parents = &graph.node(*ix).parents;
        let Some(fewer) = left.checked_sub(1 + parents.len()) else { return false };
        *left = fewer;
        let mut bits = parents.iter().fold(0, |bits, parent| bits | behind[parent.get()]);
        if let Some((bit, _)) = batch.next_if(|(_, named)| *named == ix) {
            bits |= 1 << bit;
        }
        behind[ix.get()] = bits;
    }
    true
}

/// All nodes, parents first, and otherwise in the order of the file.
pub(super) fn order(graph: &Graph) -> Vec<NodeIx> {
    let in_order = |ix: NodeIx| graph.node(ix).parents.iter().all(|parent| *parent < ix);
    if graph.positions().all(in_order) {
        return graph.positions().collect();
    }
    let mut waiting: Vec<usize> = graph.nodes().iter().map(|node| node.parents.len()).collect();
    let mut ready: BinaryHeap<Reverse<NodeIx>> =
        graph.positions().filter(|ix| waiting[ix.get()] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(Reverse(ix)) = ready.pop() {
        order.push(ix);
        for dependent in graph.dependents(ix) {
            waiting[dependent.get()] -= 1;
            if waiting[dependent.get()] == 0 {
                ready.push(Reverse(*dependent));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A graph of `count` nodes in an order that is not the file's, with these edges where they go forward.
    fn graph(count: usize, edges: &[(usize, usize)], turned: bool) -> Graph {
        let id = |at: usize| format!("n{}", if turned { count - 1 - at } else { at });
        let node = |at: usize| {
            let parents = edges.iter().filter(|(_, to)| *to == at).filter(|(from, to)| from < to);
            let parents: Vec<String> = parents.map(|(from, _)| id(*from)).collect();
            serde_json::json!({"id": id(at), "depends_on": parents})
        };
        let mut nodes: Vec<serde_json::Value> = (0..count).map(node).collect();
        if turned {
            nodes.reverse();
        }
        let text = serde_json::json!({"nodes": nodes}).to_string();
        crate::graph::from_snapshot(&text).map(|(_, graph)| graph).unwrap_or_else(|error| panic!("{error}"))
    }

    fn reaches(graph: &Graph, node: NodeIx, named: NodeIx) -> bool {
        graph.node(node).parents.iter().any(|parent| *parent == named || reaches(graph, *parent, named))
    }

    proptest! {
        #[test]
        fn the_answers_are_those_of_a_search_for_each_pair(
            edges in proptest::collection::vec((0_usize..90, 0_usize..90), 0..160),
            turned in any::<bool>(),
        ) {
            let edges: Vec<(usize, usize)> =
                edges.into_iter().filter(|(from, to)| to.wrapping_sub(*from) < 12).collect();
            let graph = graph(90, &edges, turned);
            let pairs: Vec<(NodeIx, NodeIx)> = graph
                .positions()
                .flat_map(|node| graph.positions().map(move |named| (node, named)))
                .filter(|(node, named)| node != named)
                .collect();
            for ((node, named), answer) in pairs.iter().zip(waits(&graph, &pairs)) {
                prop_assert_eq!(answer, reaches(&graph, *node, *named));
            }
        }
    }
}
