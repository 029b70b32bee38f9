//! Artifacts of nodes that are not waited for (FACTS 4.1).

use super::never_there::artifacts;
use super::{Remarks, Subject, Sweep, ancestry};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG004",
    name: "artifact-not-awaited",
    summary: "a token names the artifact of a node that is not waited for",
    why: "Whether the artifact is there when the node starts is then a matter of chance; when it is not, the node fails. \
          Add the node to `depends_on`, or wait for one that waits for it.",
    bad: "nodes:\n  - {id: build, type: command, command: make}\n  - {id: size, type: command, \
          command: \"wc -c {{ artifacts.build }}\"}\n",
    good: "nodes:\n  - {id: build, type: command, command: make}\n  - {id: size, type: command, depends_on: [build], \
           command: \"wc -c {{ artifacts.build }}\"}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    let named = graph.positions().flat_map(|ix| {
        artifacts(graph.node(ix)).filter_map(move |(key, token)| {
            let named = graph.find(token.reference).filter(|named| *named != ix)?;
            Some((ix, named, key, token))
        })
    });
    let named: Vec<_> = named.collect();
    let pairs: Vec<_> = named.iter().map(|(ix, named, ..)| (*ix, *named)).collect();
    let answers = ancestry::waits(graph, &pairs);
    for ((ix, _, key, token), _) in named.iter().zip(answers).filter(|(_, waits)| !waits) {
        let detail = format!(
            "{} may not be there yet: the node does not wait for {:?}; add it to depends_on",
            token.written, token.reference
        );
        remarks.node(graph, *ix, key, detail).within(token.written);
    }
}
