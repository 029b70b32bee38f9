//! Artifacts that a node may not find when it runs: of a node that there is not, of itself, of one that it does not
//! wait for (FACTS 4.1).

use std::collections::VecDeque;

use super::Advice;
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, Node, NodeIx};
use crate::text::suggest;
use crate::text::template::{self, Kind, Token};

/// How many names of no node get a suggestion; finding one compares with every id.
const SUGGESTIONS_MAX: usize = 10;
/// How many edges are followed in all; a graph that needs more is not worth the wait for a remark.
const STEPS_MAX: usize = 5_000_000;

pub(super) fn sweep(_: &RawGraph, graph: &Graph, advice: &mut Vec<Advice>) {
    advice.extend(never_there(graph));
    let mut ancestors = Ancestors::of(graph);
    for ix in graph.positions() {
        for (field, token) in tokens(graph.node(ix)) {
            let Some(named) = graph.find(token.reference).filter(|named| *named != ix) else { continue };
            if !ancestors.has(ix, named) {
                let detail = format!(
                    "{} may not be there yet: the node does not wait for {:?}; add it to depends_on",
                    token.written, token.reference
                );
                advice.push(remark(graph.node(ix), field, detail));
            }
        }
    }
}

/// Tokens that no run can fill: whoever pays for the nodes before them pays for nothing.
pub fn never_there(graph: &Graph) -> Vec<Advice> {
    let mut found = Vec::new();
    let mut suggestions_left = SUGGESTIONS_MAX;
    for ix in graph.positions() {
        let node = graph.node(ix);
        for (field, token) in tokens(node) {
            let why = match graph.find(token.reference) {
                Some(named) if named == ix => "is the node's own, which comes after it".to_owned(),
                Some(_) => continue,
                None => format!(
                    "names {:?}, which is no node of this graph{}",
                    token.reference,
                    meant(graph, &token, &mut suggestions_left)
                ),
            };
            found.push(remark(node, field, format!("{} {why}", token.written)));
        }
    }
    found
}

fn tokens(node: &Node) -> impl Iterator<Item = (&'static str, Token<'_>)> {
    node.templates().flat_map(|(field, text)| {
        template::tokens(text).filter(|token| token.kind == Kind::Artifacts).map(move |token| (field, token))
    })
}

fn meant(graph: &Graph, token: &Token<'_>, left: &mut usize) -> String {
    let Some(fewer) = left.checked_sub(1) else { return String::new() };
    *left = fewer;
    let ids = graph.nodes().iter().map(|node| node.id.as_str());
    suggest::hint(token.reference, ids).map(|hint| format!("; {hint}")).unwrap_or_default()
}

fn remark(node: &Node, field: &'static str, detail: String) -> Advice {
    Advice { node: Some(node.id.to_string()), field, detail }
}

/// Who comes before whom, looked for from a node upwards.
struct Ancestors<'g> {
    graph: &'g Graph,
    /// By position: the last search that came by.
    seen: Vec<usize>,
    searches: usize,
    steps_left: usize,
}

impl<'g> Ancestors<'g> {
    fn of(graph: &'g Graph) -> Self {
        Self { graph, seen: vec![0; graph.nodes().len()], searches: 0, steps_left: STEPS_MAX }
    }

    /// Whether `node` waits for `named`, at once or through others; yes when it would take too long to tell.
    fn has(&mut self, node: NodeIx, named: NodeIx) -> bool {
        self.searches += 1;
        let mut open = VecDeque::from([node]);
        while let Some(next) = open.pop_front() {
            for parent in &self.graph.node(next).parents {
                let Some(fewer) = self.steps_left.checked_sub(1) else { return true };
                self.steps_left = fewer;
                if *parent == named {
                    return true;
                }
                if std::mem::replace(&mut self.seen[parent.get()], self.searches) != self.searches {
                    open.push_back(*parent);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph;

    /// What is said of a graph whose nodes are `id parents prompt`.
    fn said(nodes: &[(&str, &str, &str)]) -> Vec<String> {
        let node = |(id, parents, prompt): &(&str, &str, &str)| {
            let parents: Vec<&str> = parents.split_whitespace().collect();
            serde_json::json!({"id": id, "depends_on": parents, "prompt": prompt})
        };
        let nodes: Vec<serde_json::Value> = nodes.iter().map(node).collect();
        let (raw, graph) = graph::from_snapshot(&serde_json::json!({"nodes": nodes}).to_string())
            .unwrap_or_else(|error| panic!("{error}"));
        let mut advice = Vec::new();
        sweep(&raw, &graph, &mut advice);
        advice.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_artifact_that_cannot_be_there_is_told() {
        assert_eq!(
            said(&[
                ("draft", "", "x"),
                ("middle", "draft", "{{ artifacts.draft }}"),
                ("far", "middle", "{{ artifacts.draft | inline }} {{ artifacts.far }}"),
                ("typo", "draft", "{{ artifacts.draf }} {{ artifacts.other }}"),
                ("beside", "draft", "{{ artifacts.middle }}"),
            ]),
            [
                "node \"far\": prompt: {{ artifacts.far }} is the node's own, which comes after it",
                "node \"typo\": prompt: {{ artifacts.draf }} names \"draf\", which is no node of this graph; did you mean \"draft\"?",
                "node \"typo\": prompt: {{ artifacts.other }} names \"other\", which is no node of this graph",
                "node \"beside\": prompt: {{ artifacts.middle }} may not be there yet: the node does not wait for \"middle\"; add it to depends_on",
            ]
        );
    }
}
