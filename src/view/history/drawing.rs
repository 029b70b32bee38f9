//! A run's graph with what became of each node, for `omg graph --run` and whoever else draws it.

use std::collections::HashMap;

use crate::graph::draw::{Drawing, Mark, Tone};
use crate::graph::{self, normal};
use crate::record::{RunDir, RunId, Snapshot, Verdict};
use crate::view::history::show::{Row, Shown};
use crate::view::history::{Prober, ReadError};
use crate::view::term::words;

/// Why a run could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its graph could not.
    #[error("run {run}: {source}")]
    Graph {
        /// The run.
        run: String,
        /// Why.
        source: normal::SnapshotError,
    },
}

/// Draws the run `id` in `dir`.
pub fn of_run(id: &RunId, dir: &RunDir, probe: Prober) -> Result<Drawing, DrawError> {
    let snapshot = Snapshot::read(dir).map_err(ReadError::from)?;
    let (_, graph) = graph::from_snapshot(snapshot.graph.get())
        .map_err(|source| DrawError::Graph { run: id.to_string(), source })?;
    let shown = Shown::read(id.clone(), dir, probe)?;
    let status = shown.run.status.map(|status| format!(" — {}", status.as_str())).unwrap_or_default();
    let name = if graph.name.is_empty() { String::new() } else { format!(" of {}", graph.name) };
    let drawing = Drawing::of(&graph, &format!("run {id}{name}{status}"));
    Ok(marked(drawing, &shown))
}

fn marked(drawing: Drawing, shown: &Shown) -> Drawing {
    let skipped: HashMap<&str, _> = shown.skipped.iter().map(|entry| (entry.node.as_str(), entry)).collect();
    drawing.marked(|node| match (shown.rows.get(node), skipped.get(node)) {
        (Some(row), _) => mark(row, shown),
        (None, Some(entry)) => {
            Mark { words: format!("SKIPPED ({})", words::because(entry)), tone: Tone::Faint }
        }
        (None, None) => Mark { words: "NOT RUN".to_owned(), tone: Tone::Faint },
    })
}

fn mark(row: &Row, shown: &Shown) -> Mark {
    let words = shown.standing(row);
    let tone = match (words.as_str(), row.record.verdict) {
        ("RUNNING" | "LOOPING", _) => Tone::Busy,
        ("WAITING" | "LOST" | "UNSETTLED" | "HELD" | "CANCELLED", _) => Tone::Wary,
        (_, Verdict::Pass) => Tone::Good,
        (_, Verdict::Fail) => Tone::Bad,
        (_, Verdict::Marker) => Tone::Busy,
    };
    Mark { words, tone }
}
