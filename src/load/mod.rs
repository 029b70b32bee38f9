//! Files become a [`Graph`](crate::graph::Graph), or a list of everything that is wrong with them.
//!
//! `source` reads the bytes once, `yaml` makes a tree of them, `decode` a raw graph, [`crate::graph::check`] a graph;
//! this file puts the places of the tree to the faults of the check. `inputs` binds a run's inputs. Nothing is run
//! and nothing is written here.

pub(crate) mod decode;
pub mod inputs;
pub mod problem;
pub mod source;
pub(crate) mod yaml;

use std::collections::HashSet;
use std::path::PathBuf;

use crate::graph::Graph;
use crate::graph::check::{self, Fault, Label, Origin, Rule, Site};
use crate::graph::raw::RawGraph;
use crate::lint::{self, Advice};
use decode::{Doubt, Draft};
use problem::Problem;
pub use problem::{Problems, Report};
pub use source::{LoadError, Source};
use yaml::{Limits, Node, Span};

/// A graph that was loaded from a file.
#[derive(Debug)]
pub struct Loaded {
    /// The graph, checked.
    pub graph: Graph,
    /// The graph as the file says it; [`RawGraph::normalised`] is what a snapshot holds.
    pub raw: RawGraph,
    /// SHA-256 of the file's bytes, hex.
    pub sha256: String,
    /// The file as it was named.
    pub path: PathBuf,
    /// What a person should know though nothing is wrong.
    pub advice: Vec<Advice>,
}

/// Every key that a graph file may hold, nested ones by their last word; for the page that lists them.
pub fn known_keys() -> impl Iterator<Item = &'static str> {
    decode::known_keys()
}

/// Loads a graph.
pub fn load(source: &Source) -> Result<Loaded, Problems> {
    let failed = |list| Problems::new(&source.path.display().to_string(), &source.text, list);
    let parse = || yaml::parse(&source.text, Limits::default());
    let tree = parse().map_err(|problem| failed(vec![problem]))?;
    let Draft { raw, mut problems, doubt } = decode::decode(&source.text, &tree.root);
    problems.splice(0..0, tree.problems);
    // A large tree is not kept while the graph is built; the places of faults are worth parsing again.
    drop(tree.root);
    let checked = check::check_as(&raw, Origin::Authored);
    if let (Ok(graph), true) = (&checked, problems.is_empty()) {
        let advice = lint::advise(&raw, graph);
        let graph = checked.expect("it was just looked at");
        return Ok(Loaded { graph, raw, sha256: source.sha256.clone(), path: source.path.clone(), advice });
    }
    let tree = parse().map_err(|problem| failed(vec![problem]))?;
    let places = Places::of(&tree.root, &raw);
    let faults = checked.err().unwrap_or_default();
    let told = faults.iter().filter(|fault| !is_echo(fault, &doubt));
    problems.extend(told.map(|fault| places.problem(fault)));
    // What nodes share by an alias or a merge is wrong once, however many of them have it.
    let mut said = HashSet::new();
    problems.retain(|problem| said.insert((problem.span.start, problem.message.clone())));
    for problem in problems.iter_mut().filter(|problem| problem.node.is_none()) {
        problem.node = places.label_at(problem.span);
    }
    Err(failed(problems))
}

/// Whether a fault only follows from what could not be read.
fn is_echo(fault: &Fault, doubt: &Doubt) -> bool {
    doubt.covers(&fault.site)
        || (fault.rule.judges_names() && doubt.on_ids())
        || (fault.rule.judges_edges() && doubt.on_edges())
        || (fault.rule == Rule::Command && doubt.on_type(fault.site.node))
}

/// Where things stand in a file.
struct Places<'t, 's> {
    root: &'t Node<'s>,
    items: &'t [Node<'s>],
    raw: &'t RawGraph,
}

impl<'t, 's> Places<'t, 's> {
    fn of(root: &'t Node<'s>, raw: &'t RawGraph) -> Self {
        Self { root, items: root.get("nodes").and_then(Node::items).unwrap_or_default(), raw }
    }

    /// A fault with the place of its site.
    fn problem(&self, fault: &Fault) -> Problem {
        Problem {
            span: self.span(&fault.site),
            node: fault.site.node.map(|at| Label::of(self.raw, at)),
            message: fault.message.clone(),
            hint: fault.hint.clone(),
            related: None,
        }
    }

    /// Walks to `site` as far as the tree goes: a missing key is shown where it would stand.
    fn span(&self, site: &Site) -> Span {
        let mut at = self.root;
        if let Some(node) = site.node {
            let Some(item) = self.items.get(node) else { return self.root.span };
            at = item;
            let first = site.key.split('.').next().unwrap_or_default();
            if at.get(first).is_none() {
                // The id names the node better than all of its lines do.
                return at.get("id").map_or(at.span, |id| id.span);
            }
        }
        for part in site.key.split('.') {
            match at.get(part) {
                Some(value) => at = value,
                None => return at.span,
            }
        }
        let item = site.item.and_then(|item| at.items()?.get(item));
        item.map_or(at.span, |item| item.span)
    }

    /// The node that holds `span`.
    fn label_at(&self, span: Span) -> Option<Label> {
        let after = self.items.partition_point(|item| item.span.start <= span.start);
        let at = after.checked_sub(1)?;
        (span.start < self.items[at].span.end).then(|| Label::of(self.raw, at))
    }
}

#[cfg(test)]
mod tests;
