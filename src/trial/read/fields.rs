//! Reads single values of a file of tests; what cannot be read is a problem with its place.

use crate::graph::check::Label;
use crate::graph::{Bounds, Graph, Node, NodeId, bounds};
use crate::load::problem::Problem;
use crate::load::values::{described, is_unset, plain, unknown_key};
use crate::load::yaml::tree::Entry;
use crate::load::yaml::{Node as Value, Span, scalar};
use crate::text::suggest;

/// Reads values, and remembers what is wrong with them.
pub(super) struct Fields<'g> {
    /// The graph that the file speaks of.
    pub(super) graph: &'g Graph,
    /// What is wrong so far.
    pub(super) problems: Vec<Problem>,
    /// The node that is spoken of.
    pub(super) label: Option<Label>,
}

impl Fields<'_> {
    /// The entries of a mapping that say something; anything else is a problem.
    pub(super) fn entries<'t, 's>(&mut self, value: &'t Value<'s>, key: &str) -> Vec<Entry<'t, 's>> {
        if is_unset(value) {
            return Vec::new();
        }
        let Some(entries) = value.entries() else {
            self.mismatch(value, key, "a mapping");
            return Vec::new();
        };
        entries.into_iter().filter(|entry| !is_unset(entry.value)).collect()
    }

    /// The items of a list; a single value stands for a list of one.
    pub(super) fn items<'t, 's>(value: &'t Value<'s>) -> &'t [Value<'s>] {
        value.items().unwrap_or(std::slice::from_ref(value))
    }

    /// Any text.
    pub(super) fn text(&mut self, value: &Value<'_>, key: &str) -> Option<String> {
        let text = value.text().map(str::to_owned);
        if text.is_none() {
            self.mismatch(value, key, "text");
        }
        text
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, value: &Value<'_>, key: &str) -> Option<bool> {
        let flag = plain(value).and_then(scalar::boolean);
        if flag.is_none() {
            self.mismatch(value, key, "true or false");
        }
        flag
    }

    /// A whole number from 0.
    pub(super) fn count(&mut self, value: &Value<'_>, key: &str) -> Option<u32> {
        let count = plain(value).and_then(scalar::integer).and_then(|count| u32::try_from(count).ok());
        if count.is_none() {
            self.mismatch(value, key, "a whole number from 0");
        }
        count
    }

    /// One word of a closed set.
    pub(super) fn word<T: Clone>(
        &mut self,
        value: &Value<'_>,
        key: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let word = value.text().unwrap_or_default();
        let known = words.iter().find(|(known, _)| *known == word);
        if known.is_none() {
            let names: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
            let hint = suggest::hint(word, names.iter().copied());
            let problem = self.mismatch(value, key, &format!("one of {}", names.join(", ")));
            problem.hint = hint;
        }
        known.map(|(_, known)| known.clone())
    }

    /// The id of a node of the graph.
    pub(super) fn node(&mut self, value: &Value<'_>, key: &str) -> Option<NodeId> {
        let id = self.text(value, key)?;
        self.find(value.span, &id).map(|node| node.id.clone())
    }

    /// The node of the graph with this id.
    pub(super) fn find(&mut self, span: Span, id: &str) -> Option<&Node> {
        let graph = self.graph;
        if let Some(ix) = graph.find(id) {
            return Some(graph.node(ix));
        }
        let hint = suggest::hint(id, graph.nodes().iter().map(|node| node.id.as_str()));
        let problem = Problem::at(span, format!("the graph has no node {id:?}"));
        self.tell(Problem { hint, ..problem });
        None
    }

    /// A bound on a run, under its own key; `None` for any other key.
    pub(super) fn bound(&mut self, entry: &Entry<'_, '_>, bounds: &mut Bounds) -> Option<()> {
        let value = entry.value;
        let word = value.text().unwrap_or_default();
        let told = match entry.name {
            "max_usd" => match scalar::float(word) {
                Some(usd) => bounds::spend(usd).map(|spend| bounds.spend = Some(spend)),
                None => Err(format!("it takes dollars, and this is {}", described(value))),
            },
            "max_executions" => match scalar::integer(word) {
                Some(count) => bounds::executions(count).map(|count| bounds.executions = Some(count)),
                None => Err(format!("it takes a whole number, and this is {}", described(value))),
            },
            "max_wall" => bounds::wall(word).map(|wall| bounds.wall = Some(wall)),
            _ => return None,
        };
        if let Err(wrong) = told {
            self.problem(value, format!("{}: {wrong}", entry.name));
        }
        Some(())
    }

    /// A key that is none of `known`.
    pub(super) fn unknown(&mut self, key: &Value<'_>, name: &str, known: &[&str]) {
        let problem = unknown_key(key, name, known);
        self.tell(problem);
    }

    /// A value that is not what its key takes.
    pub(super) fn mismatch(&mut self, value: &Value<'_>, key: &str, wanted: &str) -> &mut Problem {
        self.problem(value, format!("{key} takes {wanted}, and this is {}", described(value)))
    }

    /// A problem at a value.
    pub(super) fn problem(&mut self, at: &Value<'_>, message: impl Into<String>) -> &mut Problem {
        self.tell(Problem::at(at.span, message))
    }

    /// A problem of the node that is spoken of.
    pub(super) fn tell(&mut self, problem: Problem) -> &mut Problem {
        self.problems.push(Problem { node: self.label.clone(), ..problem });
        self.problems.last_mut().expect("it was put there")
    }
}
