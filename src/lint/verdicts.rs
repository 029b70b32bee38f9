//! Checks that do not see what their author means them to see (FACTS 4.6), and prompts that ask nothing.

use super::Advice;
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, Node, Work};

/// Phrases of a prompt that asks for a verdict in words.
const ASKED: [&str; 7] = [
    "start your reply with",
    "start the reply with",
    "begin your reply with",
    "your reply must start",
    "your reply is exactly",
    "first characters of the reply",
    "reply with exactly",
];

pub(super) fn sweep(_: &RawGraph, graph: &Graph, advice: &mut Vec<Advice>) {
    for node in graph.nodes() {
        let mut tell = |field, detail: &str| {
            advice.push(Advice { node: Some(node.id.to_string()), field, detail: detail.to_owned() });
        };
        if asks_nothing(node) {
            tell("prompt", "is empty: the node pays for a reply to nothing");
        }
        if asks_for_a_verdict(node) && node.check.result_matches.is_none() {
            tell(
                "success_check",
                "the prompt asks for a verdict that nothing reads: add result_matches with a pattern for it",
            );
        }
        if node.check.result_matches.is_some() && !node.check.exit_zero {
            tell(
                "success_check",
                "result_matches without exit_zero: a node that fails after the right words passes; add exit_zero: true",
            );
        }
    }
}

fn asks_nothing(node: &Node) -> bool {
    matches!(&node.work, Work::Model(model) if model.prompt.trim().is_empty())
}

fn asks_for_a_verdict(node: &Node) -> bool {
    let Work::Model(model) = &node.work else { return false };
    let prompt = model.prompt.to_lowercase();
    ASKED.iter().any(|phrase| prompt.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_sees_less_than_it_seems_is_told() {
        for (node, told) in [
            (r#"{"id":"a","prompt":"x"}"#, vec![]),
            (r#"{"id":"a","prompt":" \n"}"#, vec!["prompt"]),
            (r#"{"id":"a","type":"command","command":"x"}"#, vec![]),
            (r#"{"id":"a","type":"gate"}"#, vec![]),
            (r#"{"id":"a","prompt":"Begin your reply with PASS."}"#, vec!["success_check"]),
            (r#"{"id":"a","prompt":"x","success_check":{"result_matches":"y"}}"#, vec!["success_check"]),
            (
                r#"{"id":"a","prompt":"Reply with exactly y","success_check":{"result_matches":"y","exit_zero":true}}"#,
                vec![],
            ),
        ] {
            let (raw, graph) = crate::graph::from_snapshot(&format!(r#"{{"nodes":[{node}]}}"#))
                .unwrap_or_else(|error| panic!("{error}"));
            let mut advice = Vec::new();
            sweep(&raw, &graph, &mut advice);
            assert_eq!(advice.iter().map(|advice| advice.field).collect::<Vec<_>>(), told, "{node}");
        }
    }
}
