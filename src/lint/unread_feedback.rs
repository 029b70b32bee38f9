//! Loops in which nobody reads what the check said (FACTS 4.5, ADR 0028 of the design).

use super::{Remarks, Subject, Sweep};
use crate::graph::{Graph, NodeIx, Work};
use crate::text::template::{self, Kind};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG040",
    name: "feedback-unread",
    summary: "a loop runs again and no prompt in it quotes what the check said",
    why: "The nodes are asked the same thing again and will answer the same: twice the money for one result. Quote \
          `{{ feedback.ID }}` of the node that declares the loop where the work is done; it is empty on the first pass.",
    bad: "nodes:\n  - {id: dev, prompt: Mend the test., allowed_tools: [Edit]}\n  - {id: test, type: command, depends_on: [dev], \
          command: make test, feedback: {rerun: dev, max: 2}}\n",
    good: "nodes:\n  - {id: dev, prompt: \"Mend the test. What it last said: {{ feedback.test }}\", allowed_tools: [Edit]}\n  - \
           {id: test, type: command, depends_on: [dev], command: make test, feedback: {rerun: dev, max: 2}}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for (declarer, target) in unread(graph) {
        let id = graph.node(declarer).id.as_str();
        let key = asked(graph, target).map_or("", |(key, _)| key);
        let detail = format!(
            "nothing in the loop that {id:?} runs again quotes {{{{ feedback.{id} }}}}: it is asked the same thing again"
        );
        remarks.node(graph, target, key, detail);
    }
}

/// The declarers of loops in which nothing quotes what they hand back, each with the node where its loop begins.
pub fn unread(graph: &Graph) -> Vec<(NodeIx, NodeIx)> {
    let blind = |declarer: &NodeIx| {
        let body = graph.feedback_body(*declarer).iter().filter(|ix| *ix != declarer);
        !body.into_iter().any(|ix| quotes(graph, *ix, graph.node(*declarer).id.as_str()))
    };
    let arcs = graph.positions().filter_map(|ix| Some((ix, graph.node(ix).feedback?.rerun)));
    arcs.filter(|(declarer, _)| blind(declarer)).collect()
}

/// Whether what the node is asked quotes the feedback of `declarer`.
fn quotes(graph: &Graph, ix: NodeIx, declarer: &str) -> bool {
    let quoted = |text| {
        template::tokens(text).any(|token| token.kind == Kind::Feedback && token.reference == declarer)
    };
    asked(graph, ix).is_some_and(|(_, text)| quoted(text))
}

fn asked(graph: &Graph, ix: NodeIx) -> Option<(&'static str, &str)> {
    match &graph.node(ix).work {
        Work::Model(model) => Some(("prompt", &model.prompt)),
        Work::Command(line) => Some(("command", line)),
        Work::Gate => None,
    }
}
