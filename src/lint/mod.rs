//! Advice on a graph that is valid: each sweep is a file, and a row in [`SWEEPS`].
//!
//! Advice never changes an exit code. Knows no screen and no file.

mod artifacts;
mod braces;
mod concurrency;
mod inputs;
mod parents;
mod spliced;
mod verdicts;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

pub use artifacts::never_there;

use crate::graph::raw::RawGraph;
use crate::graph::{Graph, export};

/// A remark on a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The node it is about, `None` for the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The key it is about.
    pub field: &'static str,
    /// What should be known.
    pub detail: String,
}

impl fmt::Display for Advice {
    /// `node "x": prompt: …`, or `concurrency: …` for the graph.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "node {node:?}: ")?;
        }
        write!(f, "{}: {}", self.field, self.detail)
    }
}

/// Looks at a graph, as written and as checked, and adds what it finds.
type Sweep = fn(&RawGraph, &Graph, &mut Vec<Advice>);

/// The sweeps, in the order of their remarks.
const SWEEPS: [Sweep; 7] = [
    concurrency::sweep,
    braces::sweep,
    inputs::sweep,
    artifacts::sweep,
    parents::sweep,
    spliced::sweep,
    verdicts::sweep,
];

/// Everything there is to say about a graph.
pub fn advise(raw: &RawGraph, graph: &Graph) -> Vec<Advice> {
    let mut advice = Vec::new();
    for sweep in SWEEPS {
        sweep(raw, graph, &mut advice);
    }
    advice
}

/// The inputs of a run that will not be exported to the commands of its nodes (DECISIONS 8); their tokens still work.
pub fn unexported(graph: &Graph, inputs: &BTreeMap<String, String>) -> Vec<Advice> {
    if graph.setup.is_none() && !graph.nodes().iter().any(crate::graph::Node::runs_a_shell) {
        return Vec::new();
    }
    let too_long = inputs.iter().filter(|(_, value)| !export::fits(value));
    too_long
        .map(|(name, value)| {
            let why = if value.contains('\0') {
                "a NUL byte".to_owned()
            } else {
                format!(
                    "{} bytes, more than the {} that a variable may have",
                    value.len(),
                    export::VALUE_BYTES_MAX
                )
            };
            let variable = export::input_variable(name);
            let detail = format!("input {name:?} has {why}: {variable} is not set for commands");
            Advice { node: None, field: "inputs", detail }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_too_long_is_told_where_a_shell_would_miss_it() {
        let graph = |json: &str| {
            crate::graph::from_snapshot(json)
                .map(|(_, graph)| graph)
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let long = "x".repeat(export::VALUE_BYTES_MAX + 1);
        let inputs = BTreeMap::from([("task".to_owned(), long), ("short".to_owned(), "x".to_owned())]);
        let with_shell = graph(r#"{"nodes":[{"id":"a","type":"command","command":"x"}]}"#);
        let said = unexported(&with_shell, &inputs);
        assert_eq!(
            said.iter().map(|advice| advice.detail.as_str()).collect::<Vec<_>>(),
            [
                "input \"task\" has 122881 bytes, more than the 122880 that a variable may have: OMG_INPUT_TASK is not set for commands"
            ]
        );
        assert_eq!(unexported(&graph(r#"{"nodes":[{"id":"a"}]}"#), &inputs), []);
    }
}
