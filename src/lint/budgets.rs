//! Budgets on a runtime that reports no cost (FACTS 4.8); a run says so too.

use super::Sweep;
use super::advice::{Advice, Remarks};
use crate::graph::node::TIMEOUT_DEFAULT;
use crate::graph::{Graph, Work};
use crate::text::duration;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG091",
    name: "budget-unkept",
    summary: "`budget_usd` under codex, which reports no cost",
    why: "What a codex node costs is unknown, so nothing can hold it to a budget. Its `timeout` bounds it still. Told under \
          `--runtime codex` alone.",
    bad: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit], budget_usd: 2}\n",
    good: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit], timeout: 10m}\n",
    look: None,
};

/// A remark on each node with a budget.
pub fn unkept(graph: &Graph) -> Vec<Advice> {
    let mut remarks = Remarks::of(&SWEEP);
    for ix in graph.positions() {
        let node = graph.node(ix);
        let Work::Model(model) = &node.work else { continue };
        if let Some(budget) = model.budget {
            let bound = duration::format(node.timeout.unwrap_or(TIMEOUT_DEFAULT));
            let detail = format!(
                "${:.2} cannot be kept, since codex reports no cost; its timeout of {bound} still bounds it",
                budget.usd()
            );
            remarks.node(graph, ix, "budget_usd", detail);
        }
    }
    remarks.into_list()
}
