//! Verdict patterns that match anywhere in a reply (DESIGN "Verdict patterns").

use std::collections::HashMap;

use super::{Remarks, Subject, Sweep};
use crate::graph::Work;
use crate::text::regexp::Anchor;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG052",
    name: "unanchored-verdict",
    summary: "a verdict pattern of a prompt is not anchored to the beginning of the reply",
    why: "`PASS` also matches \"the suite did not PASS\", and `(?m)^PASS` a reply that only lists the verdicts it might give: a check \
          that cannot fail. What rejects a promise is that the verdict comes first. Begin the pattern with `^`, and let a \
          class absorb the markdown that a model wraps around a word: ``'^[*_`\\s]*PASS'``; end it with ``[*_`\\s]*$`` when \
          nothing else may follow. Patterns of command nodes are not spoken of.",
    bad: "nodes:\n  - id: review\n    prompt: Read the diff. Begin your reply with PASS if it is right.\n    allowed_tools: \
          [\"Bash(git diff*)\"]\n    success_check: {exit_zero: true, result_matches: PASS}\n",
    good: "nodes:\n  - id: review\n    prompt: Read the diff. Begin your reply with PASS if it is right.\n    allowed_tools: \
           [\"Bash(git diff*)\"]\n    success_check: {exit_zero: true, result_matches: '^[*_`\\s]*PASS'}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    // Many nodes share few patterns.
    let mut known: HashMap<&str, Anchor> = HashMap::new();
    for ix in graph.positions() {
        let node = graph.node(ix);
        let (Work::Model(_), Some(pattern)) = (&node.work, &node.check.result_matches) else { continue };
        let anchor = *known.entry(pattern.as_str()).or_insert_with(|| pattern.anchor());
        let why = match anchor {
            Anchor::Text => continue,
            Anchor::Line => "may begin on any line, so a reply that only speaks of the verdict passes",
            Anchor::Nowhere => "matches anywhere, so a reply that only mentions the verdict passes",
        };
        let detail = format!("`{}` {why}; begin it with ^, as in '^[*_`\\s]*PASS'", pattern.as_str());
        remarks.node(graph, ix, "success_check.result_matches", detail);
    }
}
