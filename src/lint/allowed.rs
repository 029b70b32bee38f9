//! What an author has looked at and allows: `x-omg-allow:` at the top of a graph.
//!
//! An entry is the id of a sweep, or an id and a node: `[OMG020, OMG052 review]`. It silences `omg lint` alone: what a
//! run says of danger (`bypassPermissions`) it says anyhow.

use std::collections::HashSet;

use super::advice::{Advice, Place, Remarks, SUGGESTIONS_MAX, meant};
use super::{SWEEPS, Sweep};
use crate::graph::Graph;

/// The key at the top of a graph.
pub const ALLOW_KEY: &str = "x-omg-allow";

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG110",
    name: "unknown-allowance",
    summary: "x-omg-allow names a sweep or a node that there is not, so it silences nothing",
    why: "`x-omg-allow` lists what the author of a graph has looked at and means: `OMG020` silences a sweep in the \
          whole graph, `OMG020 draft` at one node. An entry with a slip in it silences nothing, and nobody would see.",
    bad: "x-omg-allow: [OMG007]\nnodes:\n  - {id: build, type: command, command: make}\n",
    good: "x-omg-allow: [OMG020 draft]\nnodes:\n  - {id: draft, prompt: Write a haiku.}\n",
    look: None,
};

/// The entries of `x-omg-allow`.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// As written.
    written: Vec<String>,
    /// By sweep and node, `None` for all nodes.
    entries: HashSet<(String, Option<String>)>,
}

/// The remark on an `x-omg-allow` in the file of a fragment, which stands at `place`.
pub fn allowance_of_a_fragment(fragment: &str, place: Place) -> Advice {
    let mut remarks = Remarks::of(&SWEEP);
    let detail = format!(
        "it stands in the fragment {fragment:?}, where it silences nothing: allow it in the graph, at the node that cites it"
    );
    remarks.graph(ALLOW_KEY, detail).place = Some(place);
    remarks.into_list().remove(0)
}

impl Allowed {
    /// Takes the entries as they are written.
    pub fn new(written: Vec<String>) -> Self {
        let entry = |text: &String| {
            let (id, node) = parts(text);
            (id.to_ascii_uppercase(), node.map(str::to_owned))
        };
        Self { entries: written.iter().map(entry).collect(), written }
    }

    /// Whether the author allows what `advice` remarks.
    pub fn covers(&self, advice: &Advice) -> bool {
        let has =
            |node: Option<&str>| self.entries.contains(&(advice.id.to_owned(), node.map(str::to_owned)));
        // The nodes of a fragment are allowed what the node that cites it is.
        let mut of_node = advice.node.iter().flat_map(|id| {
            let ends = id.match_indices('/').map(|(at, _)| at).chain([id.len()]);
            ends.map(|end| &id[..end])
        });
        !self.entries.is_empty() && (has(None) || of_node.any(|id| has(Some(id))))
    }

    /// The entries that can silence nothing.
    pub(super) fn unknown(&self, graph: &Graph) -> Vec<Advice> {
        let mut remarks = Remarks::of(&SWEEP);
        let mut suggestions_left = SUGGESTIONS_MAX;
        for (at, entry) in self.written.iter().enumerate() {
            let wrong = match parts(entry) {
                (id, _) if !SWEEPS.into_iter().any(|sweep| sweep.id.eq_ignore_ascii_case(id)) => {
                    format!("{id:?} is no sweep, so it silences nothing; omg lint --list names them")
                }
                (_, Some(node)) if !is_node(graph, node) => {
                    let hint = meant(graph, node, &mut suggestions_left);
                    format!("{node:?} is no node of this graph, so {entry:?} silences nothing{hint}")
                }
                _ => continue,
            };
            remarks.graph(ALLOW_KEY, wrong).item(at);
        }
        remarks.into_list()
    }
}

/// Whether `name` is a node, or one that cites a fragment of several nodes, whose place these took.
fn is_node(graph: &Graph, name: &str) -> bool {
    let below = |id: &str| id.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    graph.find(name).is_some() || graph.nodes().iter().any(|node| below(node.id.as_str()))
}

/// The id of the sweep, and the node.
fn parts(entry: &str) -> (&str, Option<&str>) {
    match entry.trim().split_once(char::is_whitespace) {
        Some((id, node)) => (id, Some(node.trim())),
        None => (entry.trim(), None),
    }
}
