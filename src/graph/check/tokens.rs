//! `{{ feedback.ID }}` tokens: without a filter, of a node that declares an arc, inside that arc's body (FACTS 2.5).

use super::feedback::Loops;
use super::{ById, Found, Rule};
use crate::graph::node;
use crate::graph::raw::RawNode;
use crate::text::template;

/// The templates of a node as written, each with its key; none for a gate, which runs nothing.
pub(super) fn templates(node: &RawNode) -> impl Iterator<Item = (&'static str, &str)> {
    let verify = node.success_check.verify.as_ref();
    let runs = node.kind.as_deref() != Some(node::KIND_GATE);
    [
        ("prompt", node.prompt.as_deref()),
        ("command", node.command.as_deref()),
        ("cwd", node.cwd.as_deref()),
        ("success_check.verify.command", verify.map(|verify| verify.command.as_str())),
        ("success_check.verify.cwd", verify.and_then(|verify| verify.cwd.as_deref())),
    ]
    .into_iter()
    .filter_map(move |(key, text)| Some((key, text.filter(|_| runs)?)))
}

/// Checks every feedback token.
pub(super) fn check(found: &mut Found<'_>, by_id: &ById<'_>, loops: &Loops) {
    let raw = found.raw;
    for (at, node) in raw.nodes.iter().enumerate() {
        for (key, text) in templates(node) {
            for token in template::feedback_tokens(text) {
                if let Some(message) = wrong(found, by_id, loops, at, &token) {
                    found.at(at).fault(Rule::FeedbackTokens, key, message).within(token.written);
                }
            }
        }
    }
}

fn wrong(
    found: &Found<'_>,
    by_id: &ById<'_>,
    loops: &Loops,
    at: usize,
    token: &template::FeedbackToken<'_>,
) -> Option<String> {
    let (reference, written) = (token.reference, token.written);
    if token.filtered {
        return Some(format!("{written} takes no filter: feedback is always inlined"));
    }
    let Some(declarer) = by_id.get(reference).copied() else {
        return Some(format!("{written} names {reference:?}, which is no node of this graph"));
    };
    if found.raw.nodes[declarer].feedback.is_none() {
        return Some(format!("{written} stands for nothing: {reference:?} declares no feedback"));
    }
    // An arc that is itself at fault has no body to be in.
    let inside = loops.holds(declarer, at)?;
    (!inside).then(|| {
        format!("{written} would always be empty: the node is not in the loop that {reference:?} runs again")
    })
}
