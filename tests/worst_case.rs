//! The estimate of a graph against the schedule itself: a run in which everything fails until nothing is left, in a time of its
//! own, takes what was estimated.

#![expect(clippy::unwrap_used, reason = "every node of these graphs has a timeout")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use omg::graph::estimate::Estimate;
use omg::graph::raw::{RawFeedback, RawGraph, RawNode, RawRetry, RawSuccessCheck, RawVerify};
use omg::graph::{Bounds, Graph, Node, NodeIx, OnFail, Work, check};
use omg::schedule::machine::{Action, Before, Bill, Ending, Event, Machine, Outcome};
use omg::schedule::nodes::GraphWork;
use omg::text::money::{Cost, Money};
use proptest::prelude::*;

/// What a run took: executions, dollars, seconds.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    executions: u64,
    spent: Money,
    wall: Duration,
}

/// How long a round of a node takes when every attempt does what it may.
fn longest(node: &Node) -> Duration {
    let check = node.check.verify.as_ref().map_or(Duration::ZERO, |verify| verify.timeout);
    (node.timeout.unwrap() + check) * (1 + node.retry.max)
}

/// Runs the worst case on the machine with so many slots and a clock that jumps.
fn worst(graph: &Graph, slots: usize) -> Taken {
    let mut plan = GraphWork::plan(graph, OnFail::Halt, Bounds::default());
    for unit in &mut plan.units {
        unit.may_spend = unit.may_spend.map(|_| Money::ZERO);
    }
    let mut machine = Machine::new(plan, &Before::default());
    let mut taken = Taken { executions: 0, spent: Money::ZERO, wall: Duration::ZERO };
    let mut rounds: BTreeMap<usize, u32> = BTreeMap::new();
    let mut running: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    loop {
        while running.len() < slots {
            let Some(Action::Start(unit)) = machine.step(Event::SlotFree) else { break };
            running.push(Reverse((taken.wall + longest(graph.node(NodeIx::new(unit))), unit)));
        }
        let Some(Reverse((end, unit))) = running.pop() else { break };
        taken.wall = end;
        let node = graph.node(NodeIx::new(unit));
        let executions = 1 + node.retry.max;
        let budget = match &node.work {
            Work::Model(model) => model.budget.unwrap_or(Money::ZERO),
            _ => Money::ZERO,
        };
        let cost = budget.times(u64::from(executions));
        taken.executions += u64::from(executions);
        taken.spent = taken.spent + cost;
        let round = rounds.entry(unit).or_default();
        let fails = node.feedback.is_some_and(|feedback| *round < feedback.max);
        *round += 1;
        let ending = if fails { Ending::Failed { judged: true } } else { Ending::Passed };
        machine.step(Event::Settled(unit, ending, Bill { cost: Cost::known(cost), executions }));
    }
    assert_eq!(machine.close().outcome, Outcome::Passed);
    taken
}

/// A part of a graph: nodes side by side behind the part before, then one that waits for them all and may send them
/// back.
type Part = (Vec<(u32, u32, bool)>, u32);

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let node = (0..3_u32, 1..40_u32, any::<bool>());
    prop::collection::vec((prop::collection::vec(node, 1..5), 0..4_u32), 1..5)
}

fn graph_of(parts: &[Part]) -> Graph {
    let mut raw = RawGraph::default();
    let mut before: Vec<String> = Vec::new();
    for (at, (nodes, rounds)) in parts.iter().enumerate() {
        let first = format!("first{at}");
        raw.nodes.push(node(&first, &before, (0, 1, true)));
        let beside: Vec<String> = (0..nodes.len()).map(|nth| format!("n{at}-{nth}")).collect();
        for (id, about) in beside.iter().zip(nodes) {
            raw.nodes.push(node(id, std::slice::from_ref(&first), *about));
        }
        let last = format!("last{at}");
        let mut declarer = node(&last, &beside, (1, 2, false));
        declarer.feedback =
            (*rounds > 0).then(|| RawFeedback { rerun: first, max: Some(i64::from(*rounds)) });
        raw.nodes.push(declarer);
        before = vec![last];
    }
    check(&raw).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn node(id: &str, parents: &[String], (retries, seconds, is_model): (u32, u32, bool)) -> RawNode {
    let on = Some(vec!["timeout".to_owned()]);
    let verify =
        RawVerify { command: "true".to_owned(), timeout: Some("5s".to_owned()), ..RawVerify::default() };
    RawNode {
        id: id.to_owned(),
        kind: (!is_model).then(|| "command".to_owned()),
        prompt: is_model.then(|| "x".to_owned()),
        command: (!is_model).then(|| "x".to_owned()),
        budget_usd: is_model.then(|| f64::from(seconds) / 100.0),
        depends_on: parents.to_vec(),
        timeout: Some(format!("{seconds}s")),
        retry: Some(RawRetry { max: Some(i64::from(retries)), on }),
        success_check: RawSuccessCheck {
            verify: (!is_model).then_some(verify),
            ..RawSuccessCheck::default()
        },
        ..RawNode::default()
    }
}

proptest! {
    #[test]
    fn the_worst_run_takes_what_was_estimated(parts in parts(), slots in 1..6_usize) {
        let graph = graph_of(&parts);
        let estimate = Estimate { slots, ..Estimate::of(&graph) };
        let free = worst(&graph, usize::MAX);
        prop_assert_eq!(free.executions, estimate.executions());
        prop_assert_eq!(Some(free.spent), estimate.spend());
        prop_assert_eq!(free.wall, estimate.longest_path);
        let bounded = worst(&graph, slots);
        prop_assert_eq!(bounded.executions, estimate.executions());
        prop_assert!(bounded.wall <= estimate.wall(), "{:?} above {:?}", bounded.wall, estimate.wall());
        prop_assert_eq!(worst(&graph, 1).wall, estimate.work);
    }
}
