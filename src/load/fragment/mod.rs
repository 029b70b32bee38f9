//! Fragments: a node that cites one (`use:`, `with:`) becomes the nodes that the fragment declares (ADR 0013, 0027, 0029).
//!
//! Works on the tree, before anything of it is decoded, so that what is spliced in passes every check that a written
//! graph does; downstream of this module there are no fragments. `library` finds and reads the files, `definition` judges
//! one (`body` is one that holds), `citing` knows what a citing node may say, `splice` carries out one citation, `resolver`
//! follows citations within citations, `loops` leads references to exits, `authored` refuses the ids that only splicing
//! makes. Knows no rule of a node.

mod authored;
mod body;
mod citing;
mod definition;
mod library;
mod loops;
mod resolver;
mod splice;
mod tokens;

use serde::Serialize;

use crate::lint::Advice;
use crate::load::citation::Chain;
use crate::load::decode::Doubt;
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::yaml::{Kind, Node};
pub(crate) use library::Library;

/// How many citations may lead from the graph to a fragment (ADR 0029). A limit on how far is walked, not on how large
/// the graph becomes, which is bounded by itself.
pub(crate) const CHAIN_MAX: usize = 3;

/// A fragment that a node cited, for the person who runs the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Splice {
    /// The id of the node that cites, with its namespace.
    pub node: String,
    /// The fragment's name.
    pub fragment: String,
    /// Its file, as joined to the graph's path as that was given.
    pub file: String,
    /// The fragment's own description.
    pub description: String,
    /// Of a fragment of several nodes: the ids that it added to the graph. Those that a fragment cited inside it added
    /// are in a splice of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Of a fragment of one node: its keys that the citing node has itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// The tools that a node is granted, where the list was put together from bindings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// How many citations lead here, this one included.
    pub depth: usize,
}

/// A list of tools that a citation put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The node.
    pub node: String,
    /// Its tools.
    pub tools: Vec<String>,
}

/// What resolving a tree left beside it.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// By node of the tree: the citations that brought it in. Empty when the graph cites nothing.
    pub chains: Vec<Option<Chain>>,
    /// Every fragment, a citing one before what it cites.
    pub splices: Vec<Splice>,
    /// What should be known of the fragments themselves.
    pub advice: Vec<Advice>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Where.
    pub doubt: Doubt,
    /// The fragments are more than a graph may hold: the tree is not whole, and what is wrong ends with that.
    pub too_large: bool,
}

/// Puts the nodes of fragments in the place of the nodes that cite them.
pub(crate) fn resolve(root: &mut Node<'_>, library: &mut Library<'_>) -> Resolved {
    let cites = root.get("nodes").and_then(Node::items).is_some_and(|items| items.iter().any(cites));
    if !cites {
        return authored_only(root, library.files());
    }
    match nodes_of(root) {
        Some(nodes) => resolver::resolve(nodes, library),
        None => Resolved::default(),
    }
}

/// A graph that cites nothing still names no node of a fragment.
fn authored_only(root: &Node<'_>, files: &Files<'_>) -> Resolved {
    let mut resolved = Resolved::default();
    for (at, item) in root.get("nodes").and_then(Node::items).unwrap_or_default().iter().enumerate() {
        let found = authored::check(item, at, files, &mut resolved.doubt);
        if !found.is_empty() {
            let node = Some(resolver::label(item, at));
            resolved
                .problems
                .extend(found.into_iter().map(|problem| Problem { node: node.clone(), ..problem }));
        }
    }
    resolved
}

/// Whether a node has one of the two keys of a citation.
fn cites(item: &Node<'_>) -> bool {
    let Kind::Mapping(entries) = &item.target().kind else { return false };
    let is_citing = |word: &str| matches!(word, "use" | "with");
    entries.iter().any(|(key, _)| {
        if key.is_merge_key() {
            return item.entries().is_some_and(|all| all.iter().any(|entry| is_citing(entry.name)));
        }
        key.text().is_some_and(is_citing)
    })
}

/// The list of nodes, to be changed in its place.
fn nodes_of<'t, 's>(root: &'t mut Node<'s>) -> Option<&'t mut Vec<Node<'s>>> {
    // A list that came by a merge becomes the graph's own.
    let merged = root.entry("nodes").map(|entry| (entry.key.clone(), entry.value.clone()));
    let Kind::Mapping(entries) = &mut own(root).kind else { return None };
    if !entries.iter().any(|(key, _)| key.text() == Some("nodes")) {
        entries.extend(merged);
    }
    let (_, value) = entries.iter_mut().find(|(key, _)| key.text() == Some("nodes"))?;
    match &mut own(value).kind {
        Kind::Sequence(items) => Some(items),
        _ => None,
    }
}

/// The value behind anchors and aliases, no longer shared.
fn own<'t, 's>(mut node: &'t mut Node<'s>) -> &'t mut Node<'s> {
    while matches!(node.kind, Kind::Anchored(_) | Kind::Alias(_)) {
        node = match &mut node.kind {
            Kind::Anchored(inner) | Kind::Alias(inner) => std::rc::Rc::make_mut(inner),
            _ => unreachable!("it was just looked at"),
        };
    }
    node
}

#[cfg(test)]
mod tests;
