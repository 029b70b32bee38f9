//! `feedback`: an arc back to an ancestor whose body is a loop of its own (FACTS 2.5, ADR 0010).
//!
//! The body is what lies on a path from the target to the declarer. It is found by walking forward from the target
//! and never past the declarer: in a valid graph that walk stays inside the body, so all bodies together cost one
//! pass over the graph. A graph that makes the walks longer than that is at fault, and the walks end.

use std::collections::{HashMap, HashSet};

use super::edges::Edges;
use super::{At, ById, Found, Rule, session};
use crate::graph::NodeIx;
use crate::graph::node::{self, Feedback, REPEATS_MAX};

/// The arcs and bodies of a graph.
pub(super) struct Loops {
    /// By declarer: its arc.
    pub arcs: Vec<Option<Feedback>>,
    /// By declarer: its body, in file order.
    pub bodies: HashMap<NodeIx, Vec<NodeIx>>,
}

impl Loops {
    /// Whether `node` is in the body of the arc that `declarer` declares; `None` when that body cannot be told.
    pub(super) fn holds(&self, declarer: usize, node: usize) -> Option<bool> {
        let body = self.bodies.get(&NodeIx::new(declarer))?;
        Some(body.binary_search(&NodeIx::new(node)).is_ok())
    }
}

/// Checks all arcs.
pub(super) fn check(found: &mut Found<'_>, by_id: &ById<'_>, edges: &Edges) -> Loops {
    let count = found.raw.nodes.len();
    let mut loops = Loops { arcs: vec![None; count], bodies: HashMap::new() };
    // With a parent missing or a cycle the paths cannot be told.
    let sound = !found.any(&[Rule::Parents, Rule::Cycle]);
    let mut walker = Walker { edges, visits_left: 8 * (count + 8), stamp: vec![usize::MAX; count] };
    let mut owners: Vec<Option<usize>> = vec![None; count];
    for declarer in 0..count {
        let Some(arc) = arc(&mut found.at(declarer), by_id) else { continue };
        loops.arcs[declarer] = Some(arc);
        if !sound {
            continue;
        }
        let Some(walk) = walker.walk(arc.rerun.get(), declarer) else { break };
        if walk.body.is_empty() {
            let target = &found.raw.nodes[arc.rerun.get()].id;
            let message = format!("feedback.rerun names {target:?}, which is no ancestor of the node");
            found.at(declarer).fault(Rule::Feedback, "feedback.rerun", message);
            continue;
        }
        body(found, edges, declarer, &walk, &mut owners);
        loops.bodies.insert(NodeIx::new(declarer), walk.body.into_iter().map(NodeIx::new).collect());
    }
    loops
}

/// The arc's own fields.
fn arc(at: &mut At<'_, '_>, by_id: &ById<'_>) -> Option<Feedback> {
    let raw = at.raw().feedback.as_ref()?;
    let max = raw.max.unwrap_or(0);
    let bounded = u32::try_from(max).ok().filter(|max| (1..=REPEATS_MAX).contains(max));
    match (raw.max, bounded) {
        (None, _) => {
            at.fault(Rule::Feedback, "feedback.max", "feedback has no max")
                .hint("write how often the loop may run again, as in max: 2");
        }
        (Some(_), None) => {
            let message = format!("feedback.max is {max}, which is not 1 to {REPEATS_MAX}");
            at.fault(Rule::Feedback, "feedback.max", message);
        }
        _ => {}
    }
    if raw.rerun.trim().is_empty() {
        at.fault(Rule::Feedback, "feedback.rerun", "feedback has no rerun")
            .hint("name the ancestor where the loop begins");
        return None;
    }
    let Some(target) = by_id.get(raw.rerun.as_str()).copied() else {
        let message = format!("feedback.rerun names {:?}, which is no node of this graph", raw.rerun);
        let hint = at.found.meant_id(&raw.rerun);
        at.fault(Rule::Feedback, "feedback.rerun", message).hint_if_any(hint);
        return None;
    };
    if target == at.node {
        let message = "feedback.rerun names the node itself, which is no ancestor of it";
        at.fault(Rule::Feedback, "feedback.rerun", message).hint("to run only this node again, use retry");
        return None;
    }
    Some(Feedback { rerun: NodeIx::new(target), max: bounded.unwrap_or(1) })
}

/// What a walk from a target towards its declarer met.
struct Walk {
    /// What lies on a path between them, both included, in file order; empty when there is no path.
    body: Vec<usize>,
    /// Nodes outside the body that depend on a node inside it other than the declarer, with that node.
    exits: Vec<(usize, usize)>,
}

struct Walker<'e> {
    edges: &'e Edges,
    visits_left: usize,
    stamp: Vec<usize>,
}

impl Walker<'_> {
    /// `None` once the walks have been longer than those of a valid graph can be.
    fn walk(&mut self, target: usize, declarer: usize) -> Option<Walk> {
        let mut reached = vec![target];
        self.stamp[target] = declarer;
        let mut next = 0;
        while let Some(at) = reached.get(next).copied() {
            next += 1;
            self.visits_left = self.visits_left.checked_sub(1)?;
            if at == declarer {
                continue;
            }
            for child in &self.edges.dependents[at] {
                if self.stamp[child.get()] != declarer {
                    self.stamp[child.get()] = declarer;
                    reached.push(child.get());
                }
            }
        }
        if self.stamp[declarer] != declarer {
            return Some(Walk { body: Vec::new(), exits: Vec::new() });
        }
        let inside = self.back(&reached, declarer);
        let mut body: Vec<usize> = inside.iter().copied().collect();
        body.sort_unstable();
        let exits = reached.iter().filter(|at| !inside.contains(at)).flat_map(|at| {
            let parents = self.edges.parents[*at].iter();
            parents
                .map(|parent| parent.get())
                .filter(|parent| inside.contains(parent))
                .map(|parent| (*at, parent))
        });
        let mut exits: Vec<(usize, usize)> = exits.collect();
        // The declarer's dependents are not reached through it, but one may be reached beside it.
        exits.retain(|(_, parent)| *parent != declarer);
        exits.sort_unstable();
        Some(Walk { body, exits })
    }

    /// Of what was reached, the declarer and its ancestors.
    fn back(&self, reached: &[usize], declarer: usize) -> HashSet<usize> {
        let mut inside = HashSet::with_capacity(reached.len());
        inside.insert(declarer);
        let mut stack = vec![declarer];
        while let Some(at) = stack.pop() {
            for parent in self.edges.parents[at].iter().map(|parent| parent.get()) {
                if self.stamp[parent] == declarer && inside.insert(parent) {
                    stack.push(parent);
                }
            }
        }
        inside
    }
}

/// The rules about a body.
fn body(found: &mut Found<'_>, edges: &Edges, declarer: usize, walk: &Walk, owners: &mut [Option<usize>]) {
    let raw = found.raw;
    let id = |at: usize| raw.nodes[at].id.as_str();
    let mut wrong: Vec<String> = Vec::new();
    for at in &walk.body {
        match owners[*at] {
            Some(owner) => wrong.push(format!(
                "the loop holds {:?}, which the loop of {:?} runs again already",
                id(*at),
                id(owner)
            )),
            None => owners[*at] = Some(declarer),
        }
    }
    let gates = walk.body.iter().filter(|at| raw.nodes[**at].kind.as_deref() == Some(node::KIND_GATE));
    wrong.extend(
        gates.map(|at| format!("the loop holds the gate {:?}, and a decision is not asked twice", id(*at))),
    );
    for at in walk.body.iter().filter(|at| session::resumes(&raw.nodes[**at])) {
        if let [parent] = edges.parents[*at].as_slice()
            && walk.body.binary_search(&parent.get()).is_err()
        {
            wrong.push(format!(
                "the loop holds {:?}, which resumes the session of {:?} outside it",
                id(*at),
                id(parent.get())
            ));
        }
    }
    wrong.extend(walk.exits.iter().map(|(outside, inside)| {
        format!("{:?} depends on {:?} in the middle of the loop", id(*outside), id(*inside))
    }));
    for message in wrong {
        found.at(declarer).fault(Rule::Feedback, "feedback.rerun", message);
    }
}
