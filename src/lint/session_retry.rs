//! Retries of nodes that go on with a session (FACTS 4.2b).

use super::session_place::resumed;
use super::{Remarks, Subject, Sweep};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG011",
    name: "session-retry",
    summary: "a node that goes on with a session is retried, and a retry begins a fresh one",
    why: "The second attempt knows nothing of what the parent did. Its prompt must be able to stand alone, for instance by \
          naming `{{ artifacts.PARENT }}`; or leave the retry out and let a `feedback:` loop begin at the parent.",
    bad: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit]}\n  - {id: polish, depends_on: [dev], handoff: \
          session, prompt: Tidy up., allowed_tools: [Edit], retry: {max: 1, on: [timeout]}}\n",
    good: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit]}\n  - {id: polish, depends_on: [dev], handoff: \
           session, prompt: Tidy up., allowed_tools: [Edit]}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions().filter(|ix| graph.node(*ix).retry.max > 0) {
        if let Some(parent) = resumed(graph, ix) {
            let id = &graph.node(parent).id;
            let detail = format!("begins a fresh session: a second attempt does not know what {id:?} did");
            remarks.node(graph, ix, "retry", detail);
        }
    }
}
