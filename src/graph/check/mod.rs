//! Turns a [`RawGraph`] into a [`Graph`], or names everything that is wrong with it (FACTS 2.4, DECISIONS 1-8).
//!
//! All faults come at once, in the order of the rules and then of the file. A fault knows its place as a node and a
//! key; lines and columns are the loader's business. Linear in nodes and edges, and nothing here recurses.

mod command;
mod edges;
mod exports;
mod feedback;
mod fields;
mod header;
mod ids;
mod session;
mod success;
mod tokens;
mod worktree;

use std::collections::HashMap;
use std::fmt;

use crate::graph::raw::{RawGraph, RawNode};
use crate::graph::{Graph, Node, NodeId, NodeIx};
use crate::text::suggest;
use success::Patterns;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub site: Site,
    /// What is wrong, without the node's name.
    pub message: String,
    /// What to write instead, if there is one answer.
    pub hint: Option<String>,
    /// What it is about within the value of the key, such as a token.
    pub within: Option<String>,
    /// The rule's place in the order of the rules.
    pub rule: Rule,
}

/// A place in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The node's position, `None` for the top level.
    pub node: Option<usize>,
    /// The key, dotted where it is nested (`success_check.verify.timeout`); empty for the node as a whole.
    pub key: &'static str,
    /// The position in the key's list.
    pub item: Option<usize>,
}

/// The groups of rules, in the order in which their faults are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is named after the key or the thing that it judges")]
pub enum Rule {
    Header,
    Ids,
    IdPattern,
    Words,
    Parents,
    Cycle,
    Session,
    SuccessCheck,
    Spaces,
    Worktree,
    Retry,
    Timeout,
    Budget,
    Command,
    Nul,
    Feedback,
    FeedbackTokens,
    Exports,
}

impl Rule {
    /// Whether the rule looks for a name among the ids, so that it says nothing useful while an id is in doubt.
    pub fn judges_names(self) -> bool {
        self == Rule::Parents
    }

    /// Whether the rule judges the text of a value, and not whether the value may be there.
    pub fn judges_values(self) -> bool {
        use Rule::{Budget, Nul, Retry, Spaces, SuccessCheck, Timeout, Words, Worktree};
        matches!(self, Words | SuccessCheck | Spaces | Worktree | Retry | Timeout | Budget | Nul)
    }

    /// Whether the rule misses what more ids or edges might add, so that it says nothing useful while some are in doubt.
    /// A cycle that is there stays one.
    pub fn judges_edges(self) -> bool {
        matches!(self, Rule::Session | Rule::Feedback | Rule::FeedbackTokens | Rule::Exports)
    }
}

/// Checks a graph. Ids may hold the `/` of a spliced fragment; that nobody writes one is the loader's business.
pub fn check(raw: &RawGraph) -> Result<Graph, Vec<Fault>> {
    let mut found = Found { raw, list: Vec::new(), suggestions_left: SUGGESTIONS_MAX };
    let header = header::check(&mut found);
    let by_id = ids::check(&mut found);
    let mut patterns = Patterns::default();
    let nodes: Vec<Option<Node>> =
        (0..raw.nodes.len()).map(|at| node(&mut found.at(at), &mut patterns)).collect();
    worktree::agree(&mut found);
    let edges = edges::check(&mut found, &by_id);
    let session_roots = session::check(&mut found, &edges);
    let loops = feedback::check(&mut found, &by_id, &edges);
    tokens::check(&mut found, &by_id, &loops);
    exports::check(&mut found, &edges);

    let Found { mut list, .. } = found;
    if !list.is_empty() {
        list.sort_by_key(|fault| (fault.rule, fault.site.node));
        return Err(list);
    }
    let mut nodes: Vec<Node> = nodes.into_iter().flatten().collect();
    for ((node, parents), feedback) in nodes.iter_mut().zip(edges.parents).zip(loops.arcs) {
        node.parents = parents;
        node.feedback = feedback;
    }
    let by_id = nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), NodeIx::new(at))).collect();
    let dependents = edges.dependents;
    let bodies = loops.bodies;
    Ok(Graph { nodes, dependents, by_id, session_roots, bodies, ..header })
}

/// What messages call a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// Its id.
    Id(String),
    /// Its position, when it has no id.
    Place(usize),
}

impl Label {
    /// The label of the node at `at`.
    pub fn of(raw: &RawGraph, at: usize) -> Self {
        match raw.nodes.get(at).map(|node| &node.id) {
            Some(id) if !id.trim().is_empty() => Label::Id(id.clone()),
            _ => Label::Place(at),
        }
    }
}

impl fmt::Display for Label {
    /// `node "x"`, or `node 3` counted from one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Id(id) => write!(f, "node {id:?}"),
            Label::Place(at) => write!(f, "node {}", at + 1),
        }
    }
}

/// One node on its own: every rule that looks at no other node. `None` when its id is bad, which is a fault by then.
fn node(at: &mut At<'_, '_>, patterns: &mut Patterns) -> Option<Node> {
    let raw = at.raw();
    let work = fields::work(at);
    let check = success::check(at, patterns);
    let (cwd, worktree) = worktree::place(at);
    let setup = worktree::setup(at);
    let retry = fields::retry(at);
    let timeout = fields::timeout(at);
    command::check(at);
    fields::nul(at);
    Some(Node {
        id: NodeId::parse(&raw.id)?,
        work,
        parents: Vec::new(),
        cwd,
        worktree,
        timeout,
        retry,
        check,
        feedback: None,
        leave_running: raw.leave_running,
        setup,
    })
}

/// Positions by id; where an id stands twice, the first.
type ById<'r> = HashMap<&'r str, usize>;

/// How many names of no node get a suggestion; finding one compares with every id.
const SUGGESTIONS_MAX: usize = 10;

/// The faults found so far.
struct Found<'r> {
    raw: &'r RawGraph,
    list: Vec<Fault>,
    suggestions_left: usize,
}

impl<'r> Found<'r> {
    fn at(&mut self, node: usize) -> At<'_, 'r> {
        At { found: self, node }
    }

    fn graph(&mut self, rule: Rule, key: &'static str, message: impl Into<String>) -> &mut Fault {
        self.push(Fault {
            site: Site { node: None, key, item: None },
            message: message.into(),
            hint: None,
            within: None,
            rule,
        })
    }

    fn push(&mut self, fault: Fault) -> &mut Fault {
        self.list.push(fault);
        self.list.last_mut().expect("it was just pushed")
    }

    /// The id that `name` probably meant, as a hint.
    fn meant_id(&mut self, name: &str) -> Option<String> {
        self.suggestions_left = self.suggestions_left.checked_sub(1)?;
        // In file order, so that a tie is always settled alike.
        suggest::hint(name, self.raw.nodes.iter().map(|node| node.id.as_str()))
    }

    fn any(&self, rules: &[Rule]) -> bool {
        self.list.iter().any(|fault| rules.contains(&fault.rule))
    }
}

/// The faults of one node.
struct At<'f, 'r> {
    found: &'f mut Found<'r>,
    node: usize,
}

impl<'r> At<'_, 'r> {
    fn raw(&self) -> &'r RawNode {
        &self.found.raw.nodes[self.node]
    }

    fn fault(&mut self, rule: Rule, key: &'static str, message: impl Into<String>) -> &mut Fault {
        let site = Site { node: Some(self.node), key, item: None };
        self.found.push(Fault { site, message: message.into(), hint: None, within: None, rule })
    }
}

impl Fault {
    fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }

    fn hint_if_any(&mut self, hint: Option<String>) -> &mut Self {
        self.hint = hint;
        self
    }

    fn within(&mut self, words: &str) -> &mut Self {
        self.within = Some(words.to_owned());
        self
    }

    fn item(&mut self, item: usize) -> &mut Self {
        self.site.item = Some(item);
        self
    }
}

/// Faults as text, for a reader without the source.
#[derive(Debug)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Describes `faults` of `raw`.
    pub fn described(raw: &RawGraph, faults: &[Fault]) -> Self {
        Self(faults.iter().map(|fault| fault.line(raw)).collect())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// `"x"` is none of `known`, as the tail of a sentence.
fn not_one_of<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.collect();
    format!("{word:?} is not one of {}", known.join(", "))
}

#[cfg(test)]
mod tests;
