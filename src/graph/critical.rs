//! What a run could not have been shorter than: the critical path.
//!
//! The chain of nodes, each waiting for the one before, whose own times add up to the most. However many slots there had
//! been, these had to run one after the other. Pure; linear in nodes and edges.

use std::time::Duration;

use crate::graph::order::behind_parents;

/// The positions on the critical path, in order, of nodes that took `took` and wait for `parents`. It begins and ends with
/// nodes that took time, and is empty when none did. Of equals the earlier wins. A circle, which no checked graph has, is
/// no path.
pub fn critical_path(parents: &[Vec<usize>], took: &[Duration]) -> Vec<usize> {
    let order = behind_parents(parents);
    let mut sums = vec![Duration::ZERO; parents.len()];
    let mut before = vec![None; parents.len()];
    let mut last: Option<usize> = None;
    for &at in &order {
        for &parent in &parents[at] {
            if sums[parent] > before[at].map_or(Duration::ZERO, |known: usize| sums[known]) {
                before[at] = Some(parent);
            }
        }
        sums[at] = took[at].saturating_add(before[at].map_or(Duration::ZERO, |parent| sums[parent]));
        if sums[at] > last.map_or(Duration::ZERO, |last| sums[last]) {
            last = Some(at);
        }
    }
    let mut path: Vec<usize> = std::iter::successors(last, |at| before[*at]).collect();
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(took: &[u64]) -> Vec<Duration> {
        took.iter().copied().map(Duration::from_secs).collect()
    }

    #[test]
    fn a_chain_wins_by_its_sum_and_a_gate_in_it_takes_no_time() {
        // 0 → 1 (a gate) → 2, beside 3, which took longest alone.
        let parents = [vec![], vec![0], vec![1], vec![]];
        assert_eq!(critical_path(&parents, &seconds(&[3, 0, 4, 6])), [0, 1, 2]);
        assert_eq!(critical_path(&parents, &seconds(&[3, 0, 2, 6])), [3]);
        // What took no time is no end of it.
        assert_eq!(critical_path(&parents, &seconds(&[0, 0, 4, 0])), [2]);
        assert_eq!(critical_path(&parents, &seconds(&[3, 0, 0, 0])), [0]);
        assert_eq!(critical_path(&parents, &seconds(&[0; 4])), Vec::<usize>::new());
        assert_eq!(critical_path(&[], &[]), Vec::<usize>::new());
    }

    #[test]
    fn a_circle_is_no_path() {
        assert_eq!(critical_path(&[vec![1], vec![0], vec![]], &seconds(&[5, 5, 1])), [2]);
    }

    /// Every chain that ends in `at`, by hand.
    fn longest_of_all(parents: &[Vec<usize>], took: &[u64], at: usize) -> u64 {
        let before = parents[at].iter().map(|parent| longest_of_all(parents, took, *parent));
        took[at] + before.max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn it_is_a_chain_and_none_is_longer(
            (parents, took) in (1_usize..9).prop_flat_map(|count| {
                let parents: Vec<_> = (0..count)
                    .map(|at| proptest::sample::subsequence((0..at).collect::<Vec<_>>(), 0..=at))
                    .collect();
                (parents, proptest::collection::vec(0_u64..5, count))
            })
        ) {
            let path = critical_path(&parents, &seconds(&took));
            prop_assert!(path.windows(2).all(|pair| parents[pair[1]].contains(&pair[0])));
            let sum: u64 = path.iter().map(|at| took[*at]).sum();
            let longest = (0..parents.len()).map(|at| longest_of_all(&parents, &took, at)).max();
            prop_assert_eq!(Some(sum), longest);
            prop_assert!(path.first().is_none_or(|first| took[*first] > 0));
            prop_assert!(path.last().is_none_or(|last| took[*last] > 0));
        }
    }
}
