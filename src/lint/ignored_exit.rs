//! Patterns that take the place of the exit code (FACTS 4.6b).

use super::{Remarks, Subject, Sweep};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG051",
    name: "exit-ignored",
    summary: "`result_matches` without `exit_zero`: the exit code is no longer looked at",
    why: "A node without any check passes by its exit code. The first predicate that is added takes the place of that, so a node \
          that says the right words and then fails passes. Add `exit_zero: true`.",
    bad: "nodes:\n  - {id: test, type: command, command: make test, success_check: {result_matches: passed}}\n",
    good: "nodes:\n  - {id: test, type: command, command: make test, success_check: {exit_zero: true, result_matches: \
           passed}}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        let check = &graph.node(ix).check;
        if check.result_matches.is_some() && !check.exit_zero {
            let detail = "result_matches without exit_zero: a node that fails after the right words passes; add exit_zero: true";
            remarks.node(graph, ix, "success_check", detail);
        }
    }
}
