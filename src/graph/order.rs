//! The nodes of a graph in an order in which each comes behind all that it waits for. Pure.

/// The nodes, each behind all of its parents; without those that are in a circle or behind one.
pub(in crate::graph) fn behind_parents(parents: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); parents.len()];
    for (at, parents) in parents.iter().enumerate() {
        parents.iter().for_each(|parent| dependents[*parent].push(at));
    }
    let mut order: Vec<usize> = (0..parents.len()).filter(|at| missing[*at] == 0).collect();
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        for &dependent in &dependents[at] {
            missing[dependent] -= 1;
            if missing[dependent] == 0 {
                order.push(dependent);
            }
        }
    }
    order
}
