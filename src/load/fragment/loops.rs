//! Fragments of several nodes, which are one thing from outside: what a graph says to one, it says to its exit.
//!
//! Runs when everything is spliced in: references are led to the exits, and what cannot be led there is refused. Also
//! judges, inside one fragment, whether its exit can be that of a loop.

use std::collections::HashMap;

use super::body::Block;
use super::splice::Weaver;
use super::tokens::{self, Kind as TokenKind};
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::within::Finder;
use crate::load::yaml::{Kind, Node};

/// By the id of the citing node: the id of the fragment's exit, which may be such an id itself.
pub(super) type Exits = HashMap<String, String>;

/// The node that stands for `id` in the end.
fn exit_of<'e>(exits: &'e Exits, id: &str) -> Option<&'e str> {
    let mut exit = exits.get(id)?.as_str();
    while let Some(further) = exits.get(exit) {
        exit = further;
    }
    Some(exit)
}

/// Leads every reference of `node` to the exits; says what cannot be led there.
pub(super) fn redirect(node: &mut Node<'_>, exits: &Exits, files: &Files<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut finder = Finder::of(files);
    let Kind::Mapping(entries) = &mut node.kind else { return problems };
    for (key, value) in entries {
        match key.text() {
            Some("depends_on") => parents(value, exits),
            Some("feedback") => problems.extend(rerun(value, exits)),
            _ => {}
        }
        value.each_scalar(&mut |at, text| {
            let named = tokens::tokens(text).filter_map(|token| match token.kind {
                TokenKind::Feedback(id) if exits.contains_key(id) => Some((token.written, id)),
                _ => None,
            });
            problems.extend(named.map(|(written, id)| {
                let message = format!(
                    "{written} stands for nothing: {id:?} cites a fragment of several nodes, which declares no feedback of its own"
                );
                finder.find("", at, written).problem(files, message)
            }));
        });
        if let Some(led) = led(value, exits) {
            *value = led;
        }
    }
    problems
}

fn parents(value: &mut Node<'_>, exits: &Exits) {
    let Some(items) = value.items() else { return };
    if !items.iter().filter_map(Node::text).any(|name| exits.contains_key(name)) {
        return;
    }
    let led = |item: &Node<'_>| item.text().and_then(|name| exit_of(exits, name)).map(str::to_owned);
    let items = items.iter().map(|item| match led(item) {
        Some(exit) => Node::scalar(exit, item.span),
        None => item.clone(),
    });
    value.kind = Kind::Sequence(items.collect());
}

fn rerun(value: &Node<'_>, exits: &Exits) -> Option<Problem> {
    let rerun = value.get("rerun")?;
    let id = rerun.text().filter(|id| exits.contains_key(*id))?;
    let message = format!("feedback.rerun names {id:?}, which cites a fragment of several nodes");
    Some(
        Problem::at(rerun.span, message)
            .hint("a loop runs again from one node: put the arc into that fragment"),
    )
}

/// `value` with its artifact tokens led to the exits; `None` when nothing changes.
fn led<'s>(value: &Node<'s>, exits: &Exits) -> Option<Node<'s>> {
    let kind = match &value.target().kind {
        Kind::Scalar { text, .. } => {
            let mut weaver = Weaver::of(value, text);
            for token in tokens::tokens(text) {
                let TokenKind::Artifacts(id) = token.kind else { continue };
                if let Some(exit) = exit_of(exits, id) {
                    weaver.renamed(token.at, token.written, &token.renamed(id, exit));
                }
            }
            return weaver.finish();
        }
        Kind::Sequence(items) => {
            let new: Vec<Option<Node<'s>>> = items.iter().map(|item| led(item, exits)).collect();
            if new.iter().all(Option::is_none) {
                return None;
            }
            let both = items.iter().zip(new);
            Kind::Sequence(both.map(|(old, new)| new.unwrap_or_else(|| old.clone())).collect())
        }
        Kind::Mapping(entries) => {
            let new: Vec<Option<Node<'s>>> = entries.iter().map(|(_, value)| led(value, exits)).collect();
            if new.iter().all(Option::is_none) {
                return None;
            }
            let both = entries.iter().zip(new);
            let pair = |((key, old), new): (&(Node<'s>, Node<'s>), Option<Node<'s>>)| {
                (key.clone(), new.unwrap_or_else(|| old.clone()))
            };
            Kind::Mapping(both.map(pair).collect())
        }
        Kind::Anchored(_) | Kind::Alias(_) | Kind::Woven(_) => return None,
    };
    Some(Node { kind, span: value.span })
}

/// The declarer of the loop that runs the node `exit` again although it goes on after it.
pub(super) fn around<'b>(blocks: &'b [Block], exit: &str) -> Option<&'b str> {
    let position: HashMap<&str, usize> =
        blocks.iter().enumerate().map(|(at, block)| (block.id.as_str(), at)).collect();
    let parents: Vec<Vec<usize>> = blocks.iter().map(|block| parents_of(block, &position)).collect();
    let mut children = vec![Vec::new(); blocks.len()];
    for (child, own) in parents.iter().enumerate() {
        own.iter().for_each(|parent| children[*parent].push(child));
    }
    let exit = *position.get(exit)?;
    // Both ends of the way through the exit; each loop is then a look-up.
    let (above, below) = (reached(&parents, exit), reached(&children, exit));
    let arcs = blocks.iter().enumerate().filter(|(declarer, _)| *declarer != exit && below[*declarer]);
    let mut arcs = arcs.filter_map(|(_, block)| {
        let rerun = block.get("feedback")?.value.get("rerun")?.text()?.trim();
        Some((block, *position.get(rerun)?))
    });
    arcs.find(|(_, target)| above[*target]).map(|(block, _)| block.id.as_str())
}

fn parents_of(block: &Block, position: &HashMap<&str, usize>) -> Vec<usize> {
    let names = block.get("depends_on").and_then(|key| key.value.items()).unwrap_or_default();
    names.iter().filter_map(|name| position.get(name.text()?.trim()).copied()).collect()
}

/// What a walk from `start` along `edges` comes by, itself included.
fn reached(edges: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    seen[start] = true;
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for next in &edges[at] {
            if !std::mem::replace(&mut seen[*next], true) {
                open.push(*next);
            }
        }
    }
    seen
}
