//! Pictures of a graph: one layout that is a value, and a file for each format that writes it down.
//!
//! A [`Drawing`] says what stands where, in layers and rows; it knows no pixel, no screen and no file. Pure text in,
//! text out: what is hostile in an id, a title or a lane's name is made harmless by each format for its own readers.

pub mod dot;
pub mod json;
mod layout;
pub mod mermaid;
mod rails;
pub mod svg;
pub mod text;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::graph::node::Handoff;
use crate::graph::order::behind_parents;
use crate::graph::{Graph, Node, NodeIx, Work};
use crate::text::sanitize;

/// A graph with a place for everything. Positions in lists are what `from`, `to` and `lane` count by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawing {
    /// What it is a drawing of; one line.
    pub title: String,
    /// The nodes, in file order.
    pub nodes: Vec<Spot>,
    /// What waits for what.
    pub edges: Vec<Edge>,
    /// The ways back.
    pub loops: Vec<Loop>,
    /// The names of the worktrees, in the order of their first nodes.
    pub lanes: Vec<String>,
    /// How many layers there are.
    pub layers: usize,
}

/// A node and its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spot {
    /// The node's id.
    pub id: String,
    /// What it does.
    pub kind: Kind,
    /// Its layer, from 0: one more than the highest of its parents.
    pub layer: usize,
    /// Its place in its layer, from 0.
    pub position: usize,
    /// Its row, from 0, where neighbours in a layer are at least one row apart.
    pub row: f64,
    /// Its worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<usize>,
    /// What became of it in a run.
    #[serde(flatten)]
    pub mark: Option<Mark>,
}

impl Spot {
    fn new(id: &str, kind: Kind) -> Self {
        Spot { id: id.to_owned(), kind, layer: 0, position: 0, row: 0.0, lane: None, mark: None }
    }
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It asks a model.
    Prompt,
    /// It runs a shell command.
    Command,
    /// It waits for a person.
    Gate,
}

impl Kind {
    /// All, in the order of legends.
    pub const ALL: [Kind; 3] = [Kind::Prompt, Kind::Command, Kind::Gate];

    /// The word in pictures.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Prompt => "prompt",
            Kind::Command => "command",
            Kind::Gate => "gate",
        }
    }

    fn of(node: &Node) -> Self {
        match node.work {
            Work::Model(_) => Kind::Prompt,
            Work::Command(_) => Kind::Command,
            Work::Gate => Kind::Gate,
        }
    }
}

/// An edge from a node to one that waits for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// The parent.
    pub from: usize,
    /// The dependent.
    pub to: usize,
    /// Whether the dependent goes on with the parent's session.
    pub session: bool,
    /// The rows at which it crosses the layers between the two; empty as well where that would be too many.
    pub via: Vec<f64>,
}

/// A way back: when the node at its beginning is judged to fail, everything in between runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loop {
    /// The node that declares it.
    pub from: usize,
    /// Where the loop begins anew.
    pub to: usize,
    /// How often, at most.
    pub max: u32,
    /// What runs again, both ends included, in file order.
    pub body: Vec<usize>,
}

impl Loop {
    /// How often it runs again, for a person.
    pub fn words(&self) -> String {
        let rounds = if self.max == 1 { "round" } else { "rounds" };
        format!("at most {} {rounds}", self.max)
    }
}

/// What became of a node, in words, and how good that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The words.
    #[serde(rename = "state")]
    pub words: String,
    /// How good it is, for a colour.
    pub tone: Tone,
}

/// How good something is. Never told by colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// It passed.
    Good,
    /// It failed.
    Bad,
    /// It wants a look.
    Wary,
    /// It is under way.
    Busy,
    /// It did not run.
    Faint,
}

impl Tone {
    /// All, in the order of legends.
    pub const ALL: [Tone; 5] = [Tone::Good, Tone::Bad, Tone::Wary, Tone::Busy, Tone::Faint];

    /// The word in class names.
    pub fn as_str(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Wary => "wary",
            Tone::Busy => "busy",
            Tone::Faint => "faint",
        }
    }
}

impl Drawing {
    /// Lays `graph` out.
    pub fn of(graph: &Graph, title: &str) -> Self {
        let mut drawing = Drawing::empty(title);
        let mut lanes: HashMap<&str, usize> = HashMap::new();
        for ix in graph.positions() {
            let node = graph.node(ix);
            let lane = node.worktree.as_deref().filter(|_| node.has_lane()).map(|name| {
                *lanes.entry(name).or_insert_with(|| {
                    drawing.lanes.push(name.to_owned());
                    drawing.lanes.len() - 1
                })
            });
            drawing.edges.extend(edges(node, ix));
            drawing.loops.extend(loop_of(graph, ix));
            drawing.nodes.push(Spot { lane, ..Spot::new(node.id.as_str(), Kind::of(node)) });
        }
        layout::place(&mut drawing);
        drawing
    }

    /// Lays out nodes of which nobody knows more than what each is and waits for. A circle, which no checked graph has, is
    /// left out, and whatever hangs on it.
    pub fn sketch<'n>(title: &str, nodes: impl Iterator<Item = (&'n str, Kind, &'n [String])>) -> Self {
        let nodes: Vec<_> = nodes.collect();
        let by_id: HashMap<&str, usize> = nodes.iter().enumerate().map(|(at, (id, ..))| (*id, at)).collect();
        let known = |ids: &[String]| ids.iter().filter_map(|id| by_id.get(id.as_str()).copied()).collect();
        let parents: Vec<Vec<usize>> = nodes.iter().map(|(_, _, ids)| known(ids)).collect();
        let mut drawing = Drawing::empty(title);
        let mut sound = behind_parents(&parents);
        sound.sort_unstable();
        for to in sound {
            let edge = |&from: &usize| Edge { from, to, session: false, via: Vec::new() };
            drawing.edges.extend(parents[to].iter().map(edge));
        }
        drawing.nodes = nodes.into_iter().map(|(id, kind, _)| Spot::new(id, kind)).collect();
        layout::place(&mut drawing);
        drawing
    }

    fn empty(title: &str) -> Self {
        Drawing {
            title: sanitize::one_line(title).into_owned(),
            nodes: Vec::new(),
            edges: Vec::new(),
            loops: Vec::new(),
            lanes: Vec::new(),
            layers: 0,
        }
    }

    /// Says of each node what became of it.
    #[must_use]
    pub fn marked(mut self, mut mark: impl FnMut(&str) -> Mark) -> Self {
        for spot in &mut self.nodes {
            spot.mark = Some(mark(&spot.id));
        }
        self
    }

    /// The kinds that occur, in the order of legends.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| self.nodes.iter().any(|spot| spot.kind == *kind))
    }

    /// What became of the nodes, by tone and first word, and of how many.
    fn states(&self) -> BTreeMap<(Tone, &str), usize> {
        let mut states = BTreeMap::new();
        for mark in self.nodes.iter().filter_map(|spot| spot.mark.as_ref()) {
            let word = mark.words.split(" (").next().unwrap_or_default();
            *states.entry((mark.tone, word)).or_insert(0) += 1;
        }
        states
    }

    /// How many nodes and steps there are, for a person.
    fn size(&self) -> String {
        let counted =
            |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        format!("{} in {}", counted(self.nodes.len(), "node"), counted(self.layers, "step"))
    }

    /// The nodes by layer, and by position in it.
    fn rows(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&at| (self.nodes[at].layer, self.nodes[at].position));
        order
    }
}

fn edges(node: &Node, ix: NodeIx) -> impl Iterator<Item = Edge> + use<'_> {
    let session = matches!(&node.work, Work::Model(model) if model.handoff == Handoff::Session);
    node.parents.iter().map(move |parent| Edge { from: parent.get(), to: ix.get(), session, via: Vec::new() })
}

fn loop_of(graph: &Graph, ix: NodeIx) -> Option<Loop> {
    let feedback = graph.node(ix).feedback?;
    let body = graph.feedback_body(ix).iter().map(|member| member.get()).collect();
    Some(Loop { from: ix.get(), to: feedback.rerun.get(), max: feedback.max, body })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
