//! Artifacts that no run can have: of a node that there is not, or of the node itself (FACTS 4.1).

use super::Sweep;
use super::advice::{Advice, Remarks, SUGGESTIONS_MAX, meant};
use crate::graph::{Graph, Node};
use crate::text::template::{self, Kind, Token};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG003",
    name: "artifact-never-there",
    summary: "a token names the artifact of the node itself, or of a node that there is not",
    why: "Such a token cannot be filled in any run, so a run of the graph is refused before anything is paid. Correct \
          the id; for a node's own earlier reply use `feedback:` or `retry:`, which quote it.",
    bad: "nodes:\n  - {id: build, type: command, command: make}\n  - {id: size, type: command, depends_on: [build], \
          command: \"wc -c {{ artifacts.biuld }}\"}\n",
    good: "nodes:\n  - {id: build, type: command, command: make}\n  - {id: size, type: command, depends_on: [build], \
           command: \"wc -c {{ artifacts.build }}\"}\n",
    look: Some(|subject, remarks| look(subject.graph, remarks)),
};

/// Tokens that no run can fill: whoever pays for the nodes before them pays for nothing.
pub fn never_there(graph: &Graph) -> Vec<Advice> {
    let mut remarks = Remarks::of(&SWEEP);
    look(graph, &mut remarks);
    remarks.into_list()
}

/// The artifacts that the templates of `node` name, each with its key.
pub(super) fn artifacts(node: &Node) -> impl Iterator<Item = (&'static str, Token<'_>)> {
    node.templates().flat_map(|(key, text)| {
        template::tokens(text).filter(|token| token.kind == Kind::Artifacts).map(move |token| (key, token))
    })
}

fn look(graph: &Graph, remarks: &mut Remarks) {
    let mut suggestions_left = SUGGESTIONS_MAX;
    for ix in graph.positions() {
        for (key, token) in artifacts(graph.node(ix)) {
            let Token { written, reference, .. } = token;
            let why = match graph.find(reference) {
                Some(named) if named == ix => "is the node's own, which comes after it".to_owned(),
                Some(_) => continue,
                None => {
                    let hint = meant(graph, reference, &mut suggestions_left);
                    format!("names {reference:?}, which is no node of this graph{hint}")
                }
            };
            remarks.node(graph, ix, key, format!("{written} {why}")).within(written);
        }
    }
}
