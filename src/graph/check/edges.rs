//! `depends_on`: every parent is a node, none is the node itself, and no path comes back to its beginning.

use super::{At, ById, Found, Rule};
use crate::graph::NodeIx;

/// How many nodes of a cycle are printed from each of its ends when it is long.
const CYCLE_ENDS: usize = 10;

/// The edges, both ways, as far as they can be told.
pub(super) struct Edges {
    /// By child: its parents, each once, in the order of its list.
    pub parents: Vec<Vec<NodeIx>>,
    /// By parent: its dependents, in file order.
    pub dependents: Vec<Vec<NodeIx>>,
    /// All nodes, parents first; nodes on a cycle and behind one are missing.
    pub order: Vec<NodeIx>,
}

/// Resolves the edges and looks for a cycle.
pub(super) fn check(found: &mut Found<'_>, by_id: &ById<'_>) -> Edges {
    let count = found.raw.nodes.len();
    let mut parents: Vec<Vec<NodeIx>> = Vec::with_capacity(count);
    let mut dependents: Vec<Vec<NodeIx>> = vec![Vec::new(); count];
    // Stamps a parent with the child that named it last, which finds duplicates without a set for each node.
    let mut seen = vec![usize::MAX; count];
    for child in 0..count {
        let names = &found.raw.nodes[child].depends_on;
        let mut own = Vec::with_capacity(names.len());
        let mut itself = false;
        for (item, name) in names.iter().enumerate() {
            match by_id.get(name.as_str()) {
                Some(parent) if *parent == child => {
                    if !std::mem::replace(&mut itself, true) {
                        found
                            .at(child)
                            .fault(Rule::Parents, "depends_on", "the node depends on itself")
                            .item(item);
                    }
                }
                Some(parent) if seen[*parent] != child => {
                    seen[*parent] = child;
                    own.push(NodeIx::new(*parent));
                    dependents[*parent].push(NodeIx::new(child));
                }
                Some(_) => {}
                None => unknown(&mut found.at(child), item, name),
            }
        }
        parents.push(own);
    }
    let order = order(&parents, &dependents);
    if order.len() < count {
        cycle(found, &parents, &order);
    }
    Edges { parents, dependents, order }
}

fn unknown(at: &mut At<'_, '_>, item: usize, name: &str) {
    let message = format!("depends_on names {name:?}, which is no node of this graph");
    let hint = at.found.meant_id(name);
    at.fault(Rule::Parents, "depends_on", message).item(item).hint_if_any(hint);
}

/// Parents before children.
fn order(parents: &[Vec<NodeIx>], dependents: &[Vec<NodeIx>]) -> Vec<NodeIx> {
    let mut waiting: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut order: Vec<NodeIx> = (0..parents.len()).filter(|at| waiting[*at] == 0).map(NodeIx::new).collect();
    let mut next = 0;
    while let Some(done) = order.get(next).copied() {
        next += 1;
        for child in &dependents[done.get()] {
            waiting[child.get()] -= 1;
            if waiting[child.get()] == 0 {
                order.push(*child);
            }
        }
    }
    order
}

/// Reports one cycle, exactly its nodes. Every node that has no place in the order has a parent that has none, so
/// walking from parent to parent must come back to where it was.
fn cycle(found: &mut Found<'_>, parents: &[Vec<NodeIx>], order: &[NodeIx]) {
    let mut ordered = vec![false; parents.len()];
    for node in order {
        ordered[node.get()] = true;
    }
    let Some(start) = ordered.iter().position(|ordered| !ordered) else { return };
    let mut place = vec![usize::MAX; parents.len()];
    let mut path: Vec<usize> = Vec::new();
    let mut at = start;
    while place[at] == usize::MAX {
        place[at] = path.len();
        path.push(at);
        let Some(parent) = parents[at].iter().find(|parent| !ordered[parent.get()]) else { return };
        at = parent.get();
    }
    // From child to parent; turned round it reads in the order of the work, from the node that the file names first.
    let mut round = path.split_off(place[at]);
    round.reverse();
    let first = (0..round.len()).min_by_key(|n| round[*n]).unwrap_or(0);
    round.rotate_left(first);
    let head = round[0];
    round.push(head);
    let message = format!("the nodes wait for each other: {}", drawn(found, &round));
    found.at(head).fault(Rule::Cycle, "depends_on", message);
}

fn drawn(found: &Found<'_>, round: &[usize]) -> String {
    let ids =
        |part: &[usize]| -> Vec<String> { part.iter().map(|at| found.raw.nodes[*at].id.clone()).collect() };
    if round.len() <= 2 * CYCLE_ENDS + 1 {
        return ids(round).join(" → ");
    }
    let left_out = round.len() - 2 * CYCLE_ENDS;
    let mut parts = ids(&round[..CYCLE_ENDS]);
    parts.push(format!("({left_out} more)"));
    parts.extend(ids(&round[round.len() - CYCLE_ENDS..]));
    parts.join(" → ")
}
