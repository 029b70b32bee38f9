//! Files become a [`Graph`](crate::graph::Graph), or a list of everything that is wrong with them.
//!
//! `source` reads the bytes once, `yaml` makes a tree of them, `fragment` puts the nodes of fragments into it, `decode`
//! makes a raw graph, [`crate::graph::check`] a graph; this file puts the places of the tree to the faults of the check.
//! `inputs` binds a run's inputs. Nothing is run and nothing is written here.

pub(crate) mod citation;
pub(crate) mod decode;
pub(crate) mod files;
pub(crate) mod fragment;
pub mod inputs;
mod locate;
pub mod problem;
pub mod source;
pub(crate) mod values;
pub(crate) mod within;
pub(crate) mod yaml;

use std::path::PathBuf;

use serde_json::value::RawValue;

use crate::graph::Graph;
use crate::graph::check::{self, Fault, Label, Rule, Site};
use crate::graph::raw::RawGraph;
use crate::lint::{self, Advice, Allowed};
use citation::Chain;
use decode::{Doubt, Draft};
use files::Files;
pub use fragment::{Grant, Splice};
use fragment::{Library, Resolved};
pub use locate::{Tree, locate};
use problem::Problem;
pub use problem::{Cited, Problems, Report};
pub use source::{LoadError, Source};
use within::{Finder, Spot};
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
    /// What its author allows, and is left out of `advice`.
    pub allowed: Allowed,
    /// The fragments that went into the graph, a citing one before what it cites.
    pub splices: Vec<Splice>,
    /// What should be known of those fragments, also by a person who only runs the graph.
    pub fragment_advice: Vec<Advice>,
}

impl Loaded {
    /// The normalised graph as a snapshot holds it.
    pub fn encoded(&self) -> Box<RawValue> {
        serde_json::value::to_raw_value(&self.raw.clone().normalised())
            .expect("a raw graph holds nothing that JSON cannot")
    }
}

/// Every key that a graph file may hold, nested ones by their last word; for the page that lists them.
pub fn known_keys() -> impl Iterator<Item = &'static str> {
    decode::known_keys()
}

/// Loads a graph, with the fragments that it cites.
pub fn load(source: &Source) -> Result<Loaded, Problems> {
    load_as(source, false).map(|(loaded, _)| loaded)
}

/// Loads a graph and keeps where everything stands, for who shows what is said of it.
pub fn load_with_tree(source: &Source) -> Result<(Loaded, Tree<'_>), Problems> {
    let (loaded, tree) = load_as(source, true)?;
    Ok((loaded, tree.expect("it was asked for")))
}

fn load_as(source: &Source, keep: bool) -> Result<(Loaded, Option<Tree<'_>>), Problems> {
    let mut library = Library::of(source);
    let parse = || yaml::parse(&source.text, Limits::default());
    let mut tree = match parse() {
        Ok(tree) => tree,
        Err(problem) => return Err(Problems::of(library.into_files(), vec![problem])),
    };
    let Resolved { chains, splices, advice: fragment_advice, problems: unresolved, doubt, too_large } =
        fragment::resolve(&mut tree.root, &mut library);
    if too_large {
        return Err(Problems::of(library.into_files(), citation::merged(unresolved)));
    }
    let allowed = allowed(&tree.root);
    let Draft { raw, problems: undecoded, doubt, is_mistyped } =
        decode::decode(library.files(), &tree.root, doubt);
    // A large tree is not kept while the graph is built; the places of faults are worth parsing again.
    let kept = Some(tree.root).filter(|_| keep);
    let checked = check::check(&raw);
    let fine = tree.problems.is_empty() && unresolved.is_empty() && undecoded.is_empty();
    if let (Ok(graph), true) = (&checked, fine) {
        let advice = lint::advise(&raw, graph, &allowed);
        let graph = checked.expect("it was just looked at");
        let (sha256, path) = (source.sha256.clone(), source.path.clone());
        let loaded = Loaded { graph, raw, sha256, path, advice, allowed, splices, fragment_advice };
        return Ok((loaded, kept.map(|root| Tree::of(root, library))));
    }
    let mut root = match parse() {
        Ok(tree) => tree.root,
        Err(problem) => return Err(Problems::of(library.into_files(), vec![problem])),
    };
    let labels = Labels::of(&root);
    fragment::resolve(&mut root, &mut library);
    let files = library.into_files();
    let places = Places::of(&root, &raw, &chains, &files);
    let mut problems: Vec<Problem> = tree.problems;
    for problem in problems.iter_mut().filter(|problem| problem.node.is_none()) {
        problem.node = labels.at(problem.span);
    }
    problems.extend(unresolved);
    problems.extend(undecoded.into_iter().map(|(node, problem)| places.charged(node, problem)));
    let faults = checked.err().unwrap_or_default();
    let told = faults.iter().filter(|fault| !is_echo(fault, &doubt));
    let mut finder = Finder::of(&files);
    problems.extend(told.map(|fault| places.problem(fault, &mut finder)));
    drop(root);
    // What nodes share by an alias, a merge or a fragment is wrong once, however many of them have it.
    let problems = citation::merged(problems);
    Err(Problems::of(files, problems).advised(fragment_advice).mistyped(is_mistyped))
}

/// The entries of `x-omg-allow`; what is no list is taken as one entry, and told if it means nothing.
fn allowed(root: &Node<'_>) -> Allowed {
    let Some(value) = root.get(lint::ALLOW_KEY) else { return Allowed::default() };
    let entries = value.items().unwrap_or(std::slice::from_ref(value));
    Allowed::new(entries.iter().map(|entry| entry.text().unwrap_or_default().to_owned()).collect())
}

/// Whether a fault only follows from what could not be read.
fn is_echo(fault: &Fault, doubt: &Doubt) -> bool {
    doubt.covers(&fault.site)
        || (fault.rule.judges_names() && doubt.on_ids())
        || (fault.rule.judges_edges() && doubt.on_edges())
        || (fault.rule == Rule::Command && doubt.on_type(fault.site.node))
}

/// Where things stand in the files of a graph.
struct Places<'t, 's> {
    root: &'t Node<'s>,
    items: &'t [Node<'s>],
    raw: &'t RawGraph,
    chains: &'t [Option<Chain>],
    files: &'t Files<'s>,
}

impl<'t, 's> Places<'t, 's> {
    fn of(root: &'t Node<'s>, raw: &'t RawGraph, chains: &'t [Option<Chain>], files: &'t Files<'s>) -> Self {
        Self { root, items: root.get("nodes").and_then(Node::items).unwrap_or_default(), raw, chains, files }
    }

    /// A fault with the place of its site.
    fn problem(&self, fault: &Fault, finder: &mut Finder<'_, '_>) -> Problem {
        if let Some((span, fragment)) = self.citer_at_fault(fault) {
            let message = format!("{} (the fragment {fragment:?} says {})", fault.message, fault.site.key);
            let problem = Problem { hint: fault.hint.clone(), ..Problem::at(span, message) };
            return self.charged(fault.site.node, problem);
        }
        let spot = match (&fault.within, self.value(&fault.site)) {
            (Some(words), Ok(value)) => finder.find("", value, words),
            (None, Ok(value)) if fault.rule.judges_values() => within::whole(value),
            (_, Ok(value)) => Spot::at(value.span),
            (_, Err(span)) => Spot::at(span),
        };
        let mut message = fault.message.clone();
        if let (Some(words), Some(written)) = (&fault.within, &spot.written) {
            message = message.replace(words, written);
        }
        let problem = spot.problem(self.files, message);
        self.charged(fault.site.node, Problem { hint: fault.hint.clone(), ..problem })
    }

    /// What a citing node says and a fragment cannot bear, and the fragment's name: parents of a node that resumes a
    /// session, a type over the keys of another.
    fn citer_at_fault(&self, fault: &Fault) -> Option<(Span, &'t str)> {
        let at = fault.site.node?;
        let chain = self.chains.get(at)?.as_ref()?;
        let item = self.items.get(at)?;
        let depth = |span: Span| {
            let file = self.files.holding(span);
            chain.iter().position(|step| step.file == Some(file)).map_or(0, |at| at + 1)
        };
        let key = depth(item.get(fault.site.key)?.span);
        let (span, outer) = match fault.rule {
            Rule::Session => {
                // Without parents of its own a fragment's node waits for those of the node that cites it.
                let outer = item.get("depends_on").map_or(0, |parents| depth(parents.span));
                (chain.get(outer)?.at, outer)
            }
            Rule::Command => {
                let kind = item.get("type")?.span;
                (kind, depth(kind))
            }
            _ => return None,
        };
        (outer < key).then(|| (span, &*chain[key - 1].fragment))
    }

    /// A problem of a node, charged to the file that it stands in.
    fn charged(&self, node: Option<usize>, problem: Problem) -> Problem {
        let Some(at) = node else { return problem };
        let label = Label::of(self.raw, at);
        match self.chains.get(at).and_then(Option::as_ref) {
            Some(chain) => citation::charged(problem, label, chain, self.files),
            None => Problem { node: problem.node.or(Some(label)), ..problem },
        }
    }

    /// The value at `site`; where there is none, the place where it would stand.
    fn value(&self, site: &Site) -> Result<&'t Node<'s>, Span> {
        let mut at = self.root;
        if let Some(node) = site.node {
            let Some(item) = self.items.get(node) else { return Err(self.root.span) };
            at = item;
            let first = site.key.split('.').next().unwrap_or_default();
            if at.get(first).is_none() {
                // The id names the node better than all of its lines do.
                return Err(at.get("id").map_or(at.span, |id| id.span));
            }
        }
        for part in site.key.split('.') {
            match at.get(part) {
                Some(value) => at = value,
                None => return Err(at.span),
            }
        }
        let item = site.item.and_then(|item| at.items()?.get(item));
        Ok(item.unwrap_or(at))
    }
}

/// The nodes of a graph's own file, for problems that know nothing but their place.
struct Labels(Vec<(Span, Label)>);

impl Labels {
    fn of(root: &Node<'_>) -> Self {
        let items = root.get("nodes").and_then(Node::items).unwrap_or_default().iter();
        let label = |(at, item): (usize, &Node<'_>)| {
            let id = item.get("id").and_then(Node::text).filter(|id| !id.trim().is_empty());
            (item.span, id.map_or(Label::Place(at), |id| Label::Id(id.to_owned())))
        };
        Self(items.enumerate().map(label).collect())
    }

    /// The node that holds `span`.
    fn at(&self, span: Span) -> Option<Label> {
        let after = self.0.partition_point(|(item, _)| item.start <= span.start);
        let (item, label) = self.0.get(after.checked_sub(1)?)?;
        (span.start < item.end).then(|| label.clone())
    }
}

#[cfg(test)]
mod tests;
