//! Causes of a retry that the node cannot fail with.

use super::{Remarks, Subject, Sweep};
use crate::graph::{Cause, Node, Work};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG071",
    name: "impossible-cause",
    summary: "`retry.on` names a cause that the node cannot fail with",
    why: "The entry earns no attempt: `verify_failed` needs a `verify`, `result_mismatch` a `result_matches`, `budget_exceeded` a \
          `budget_usd`; a command has no reply that could be unreadable, and its exit code counts only where the check \
          judges it. Most likely the check is missing.",
    bad: "nodes:\n  - {id: test, type: command, command: make test, retry: {max: 1, on: [verify_failed]}}\n",
    good: "nodes:\n  - {id: test, type: command, command: make test, retry: {max: 1, on: [nonzero_exit]}}\n",
    look: Some(look),
};

fn look(Subject { raw, graph }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions().filter(|ix| graph.node(*ix).retry.max > 0) {
        let written =
            raw.nodes[ix.get()].retry.as_ref().and_then(|retry| retry.on.as_deref()).unwrap_or_default();
        for (at, word) in written.iter().enumerate() {
            let cause = Cause::retryable_from(word);
            if let Some(why) = cause.and_then(|cause| impossible(graph.node(ix), cause)) {
                remarks.node(graph, ix, "retry.on", format!("{word} cannot happen: {why}")).item(at);
            }
        }
    }
}

fn impossible(node: &Node, cause: Cause) -> Option<&'static str> {
    let check = &node.check;
    match (cause, &node.work) {
        (Cause::VerifyFailed, _) if check.verify.is_none() => Some("the node has no verify"),
        (Cause::ResultMismatch, _) if check.result_matches.is_none() => {
            Some("the node has no result_matches")
        }
        (Cause::BudgetExceeded, Work::Model(model)) if model.budget.is_none() => {
            Some("the node has no budget_usd")
        }
        (Cause::BudgetExceeded, Work::Command(_)) => Some("a command costs nothing"),
        (Cause::OutputError, Work::Command(_)) => Some("any output of a command can be read"),
        (Cause::NonzeroExit, Work::Command(_)) if !check.judges_exit() => {
            Some("the check does not look at the exit code; add exit_zero: true")
        }
        _ => None,
    }
}
