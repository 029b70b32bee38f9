//! What is estimated of small graphs; tests/worst_case.rs holds the whole to the schedule.

use std::collections::BTreeMap;

use super::*;
use crate::graph::check;
use crate::graph::raw::{RawGraph, RawNode};

fn estimate(raw: RawGraph) -> Estimate {
    Estimate::of(&check(&raw).unwrap_or_else(|faults| panic!("{faults:?}")))
}

fn prompts(ids: &[(&str, &[&str])]) -> RawGraph {
    let node = |(id, parents): &(&str, &[&str])| RawNode {
        id: (*id).to_owned(),
        depends_on: parents.iter().map(|parent| (*parent).to_owned()).collect(),
        ..RawNode::default()
    };
    RawGraph { nodes: ids.iter().map(node).collect(), ..RawGraph::default() }
}

#[test]
fn bounds_of_the_run_are_applied() {
    let mut raw = prompts(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    assert_eq!(estimate(raw.clone()).spend(), None);
    (raw.max_usd, raw.max_executions, raw.max_wall) = (Some(2.0), Some(2), Some("10m".to_owned()));
    let bounded = estimate(raw.clone());
    assert_eq!((bounded.executions(), bounded.spend()), (2, Money::from_usd(2.0)));
    // What runs when the time is up goes on to its own end.
    assert_eq!(bounded.wall(), Duration::from_secs(30 * 60));
    raw.nodes.iter_mut().for_each(|node| node.budget_usd = Some(0.5));
    assert_eq!(estimate(raw).spend(), Money::from_usd(1.5));
}

#[test]
fn what_waits_behind_a_gate_is_counted_once() {
    let mut raw = prompts(&[("g", &[]), ("a", &["g"]), ("b", &["g"]), ("c", &["a", "b"]), ("d", &[])]);
    raw.nodes[0].kind = Some("gate".to_owned());
    let found = estimate(raw);
    assert_eq!(found.gates, [(NodeIx::new(0), 3)]);
    assert_eq!(found.executions(), 4);
}

#[test]
fn a_worktree_is_prepared_once() {
    let mut raw = prompts(&[("a", &[]), ("b", &["a"])]);
    for node in &mut raw.nodes {
        (node.worktree, node.timeout) = (Some("w".to_owned()), Some("1m".to_owned()));
    }
    raw.nodes[0].setup = Some("make".to_owned());
    let found = estimate(raw);
    assert_eq!(found.lanes, BTreeMap::from([("w".to_owned(), true)]));
    assert_eq!(found.longest_path, Duration::from_secs(180));
}

#[test]
fn a_node_waits_for_the_set_up_that_another_of_its_worktree_runs() {
    let mut raw = prompts(&[("a", &[]), ("b", &[]), ("x", &["b"])]);
    for (node, timeout) in raw.nodes.iter_mut().zip(["10s", "1s", "20s"]) {
        node.timeout = Some(timeout.to_owned());
    }
    for at in [0, 1] {
        raw.nodes[at].worktree = Some("w".to_owned());
    }
    raw.nodes[0].setup = Some("make".to_owned());
    // b waits for a's set-up, runs, and then x does.
    assert_eq!(estimate(raw).longest_path, Duration::from_secs(10 + 1 + 20));
}

#[test]
fn more_gates_than_a_word_has_bits_are_counted() {
    let ids: Vec<String> = (0..200).map(|at| format!("g{at}")).collect();
    let mut raw = RawGraph::default();
    for (at, id) in ids.iter().enumerate() {
        let parents = at.checked_sub(1).map(|before| ids[before].clone());
        let kind = Some("gate".to_owned());
        let depends_on = parents.into_iter().collect();
        raw.nodes.push(RawNode { id: id.clone(), kind, depends_on, ..RawNode::default() });
    }
    let behind: Vec<usize> = estimate(raw).gates.iter().map(|(_, behind)| *behind).collect();
    assert_eq!(behind, (0..200).rev().collect::<Vec<_>>());
}

#[test]
fn nodes_that_go_on_with_one_session_wait_for_each_other() {
    let mut raw = prompts(&[("a", &[]), ("b", &["a"]), ("c", &["a"])]);
    for node in &mut raw.nodes {
        node.timeout = Some("1m".to_owned());
    }
    for at in [1, 2] {
        raw.nodes[at].handoff = Some("session".to_owned());
    }
    assert_eq!(estimate(raw).longest_path, Duration::from_secs(180));
}
