//! What a judge is shown of the nodes of a run: how each settled, and what it left (FACTS 8.11).

use crate::graph::Graph;
use crate::plan::assess::Judged;
use crate::record::{RunDir, artifact};
use crate::view::term::ledger::Ledger;
use crate::view::term::words;

/// How much of an artifact is read for an excerpt of it.
const READ_BYTES_MAX: usize = 64 * 1024;

/// The nodes of `graph` that have a record, in its order. Artifacts are read by their names, never by a path that a file says.
pub fn judged(graph: &Graph, dir: &RunDir, ledger: &Ledger) -> Vec<Judged> {
    let nodes = graph.nodes().iter().filter_map(|node| {
        let (_, record) = ledger.rows.iter().find(|(id, _)| id == node.id.as_str())?;
        // What failed by its price alone left one, too.
        let has_artifact = !record.artifact_path.is_empty();
        Some(Judged {
            id: node.id.to_string(),
            verdict: words::verdict(record, false),
            spent: (record.cost(), record.usage),
            detail: words::detail(record),
            artifact: has_artifact.then(|| artifact::read_excerpt(dir, &node.id, READ_BYTES_MAX)).flatten(),
        })
    });
    nodes.collect()
}
