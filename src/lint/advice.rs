//! A remark on a graph, and how a sweep makes one.

use std::fmt;

use super::Sweep;
use crate::graph::check::Site;
use crate::graph::{Graph, NodeIx};
use crate::text::suggest;

/// How many names of no node get a suggestion; finding one compares with every id.
pub(super) const SUGGESTIONS_MAX: usize = 10;

/// A remark on a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The sweep that makes it.
    pub id: &'static str,
    /// The node it is about, `None` for the graph.
    pub node: Option<String>,
    /// The node's position and the key.
    pub site: Site,
    /// What it is about within the value of the key, such as a token.
    pub within: Option<String>,
    /// What should be known.
    pub detail: String,
    /// Where it stands in the file, once [`crate::load::locate`] was asked.
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Advice {
    /// The key it is about, dotted where it is nested.
    pub fn field(&self) -> &'static str {
        self.site.key
    }
}

impl fmt::Display for Advice {
    /// `node "x": prompt: …`, or `concurrency: …` for the graph.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "node {node:?}: ")?;
        }
        write!(f, "{}: {}", self.field(), self.detail)
    }
}

/// The remarks of one sweep.
pub(super) struct Remarks {
    id: &'static str,
    list: Vec<Advice>,
}

impl Remarks {
    /// None yet.
    pub(super) fn of(sweep: &Sweep) -> Self {
        Self { id: sweep.id, list: Vec::new() }
    }

    /// A remark on a key of a node.
    pub(super) fn node(
        &mut self,
        graph: &Graph,
        ix: NodeIx,
        key: &'static str,
        detail: impl Into<String>,
    ) -> &mut Advice {
        let site = Site { node: Some(ix.get()), key, item: None };
        self.push(Some(graph.node(ix).id.to_string()), site, detail.into())
    }

    /// A remark on a key of the top level.
    pub(super) fn graph(&mut self, key: &'static str, detail: impl Into<String>) -> &mut Advice {
        self.push(None, Site { node: None, key, item: None }, detail.into())
    }

    /// Everything that was said.
    pub(super) fn into_list(self) -> Vec<Advice> {
        self.list
    }

    fn push(&mut self, node: Option<String>, site: Site, detail: String) -> &mut Advice {
        self.list.push(Advice { id: self.id, node, site, within: None, detail, place: None });
        self.list.last_mut().expect("it was just pushed")
    }
}

impl Advice {
    /// Adds what it is about within the value.
    pub(super) fn within(&mut self, text: &str) -> &mut Self {
        self.within = Some(text.to_owned());
        self
    }

    /// Adds the position in the key's list.
    pub(super) fn item(&mut self, item: usize) -> &mut Self {
        self.site.item = Some(item);
        self
    }
}

/// The id that `name` probably meant, as the end of a sentence.
pub(super) fn meant(graph: &Graph, name: &str, suggestions_left: &mut usize) -> String {
    let Some(fewer) = suggestions_left.checked_sub(1) else { return String::new() };
    *suggestions_left = fewer;
    let ids = graph.nodes().iter().map(|node| node.id.as_str());
    suggest::hint(name, ids).map(|hint| format!("; {hint}")).unwrap_or_default()
}
