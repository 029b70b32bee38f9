//! Prompts that ask for a verdict in words that nothing reads (FACTS 4.6a).

use super::{Remarks, Subject, Sweep};
use crate::graph::Work;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG050",
    name: "verdict-unread",
    summary: "a prompt asks for a verdict in words, and no `result_matches` reads it",
    why: "A model that replies \"I will get to it once the build has finished\" exits with 0 and passes. If a prompt names the \
          answer it must give, the check must be able to tell whether it got one.",
    bad: "nodes:\n  - id: review\n    prompt: Read the diff. Begin your reply with PASS if it is right.\n    allowed_tools: \
          [\"Bash(git diff*)\"]\n",
    good: "nodes:\n  - id: review\n    prompt: Read the diff. Begin your reply with PASS if it is right.\n    allowed_tools: \
           [\"Bash(git diff*)\"]\n    success_check: {exit_zero: true, result_matches: '^[*_`\\s]*PASS'}\n",
    look: Some(look),
};

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

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        let node = graph.node(ix);
        let Work::Model(model) = &node.work else { continue };
        if node.check.result_matches.is_none() && asks_for_a_verdict(&model.prompt) {
            let detail =
                "the prompt asks for a verdict that nothing reads: add result_matches with a pattern for it";
            remarks.node(graph, ix, "success_check", detail);
        }
    }
}

fn asks_for_a_verdict(prompt: &str) -> bool {
    let prompt = prompt.to_lowercase();
    ASKED.iter().any(|phrase| prompt.contains(phrase))
}
