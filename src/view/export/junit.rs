//! The run as JUnit's XML: a suite, and a case for every node.

use std::io::Write;

use super::fates::{self, End, Fate};
use super::{Export, ExportError};
use crate::record::status::Status;
use crate::text::fence;
use crate::text::junit::{self, Case, Ending, Suite, Wrong};
use crate::view::history::node::last_words;

/// As much of what a failed node said as a case holds, in bytes.
const SAID_BYTES_MAX: usize = 16 * 1024;
/// How much of a moment is written: up to its seconds.
const SECONDS: usize = "2026-01-02T03:04:05".len();

/// Writes the suite.
pub(super) fn write(export: &Export, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut cases: Vec<Case> = fates::of(export).iter().map(|fate| case(export, fate)).collect();
    let is_bad = |case: &Case| matches!(case.ending, Ending::Failure(_) | Ending::Error(_));
    let failed = matches!(export.shown.run.status, Some(Status::Fail | Status::Abandoned));
    // No reader may take a run that did not pass for one that did.
    if failed && !cases.iter().any(is_bad) {
        cases.push(whole(export));
    }
    let run = &export.shown.run;
    let cost = run.cost();
    let suite = Suite {
        name: name(export),
        // The forms that validate these files know neither fractions nor zones.
        timestamp: run.started().get(..SECONDS).unwrap_or_default().to_owned(),
        properties: vec![
            ("run_id", run.id.to_string()),
            ("status", export.status().to_owned()),
            ("cost", cost.to_string()),
        ],
        cases,
    };
    junit::write("omg export", &[suite], out)?;
    Ok(())
}

/// The graph's name, or the run's id where it has none.
fn name(export: &Export) -> String {
    if export.shape.name.is_empty() { export.id().to_string() } else { export.shape.name.clone() }
}

fn whole(export: &Export) -> Case {
    let text = format!("the run is {}, and no node says why; omg show {} may", export.status(), export.id());
    Case {
        name: "the run".to_owned(),
        seconds: 0.0,
        ending: Ending::Error(Wrong { kind: "omg".to_owned(), text }),
    }
}

fn case(export: &Export, fate: &Fate<'_>) -> Case {
    let record = fate.row.map(|row| &row.record);
    let kind = record.and_then(|record| record.cause).map_or("failed", |cause| cause.as_str());
    let wrong = || Wrong { kind: kind.to_owned(), text: told(export, fate) };
    let words = || match fate.detail.as_str() {
        "" => fate.standing.clone(),
        detail => format!("{}: {detail}", fate.standing),
    };
    Case {
        name: fate.node.to_owned(),
        seconds: record.map_or(0.0, |record| record.took().as_secs_f64()),
        ending: match fate.end {
            End::Passed => Ending::Passed,
            End::Failed => Ending::Failure(wrong()),
            End::Cut => Ending::Error(wrong()),
            End::Skipped | End::Open => Ending::Skipped(words()),
        },
    }
}

/// Why a node failed, and what its last attempt and its check said.
fn told(export: &Export, fate: &Fate<'_>) -> String {
    let first = if fate.detail.is_empty() { &fate.standing } else { &fate.detail };
    let said = last_words(&export.dir, fate.node);
    let excerpt = |text: &str| fence::excerpt(text.trim_end(), SAID_BYTES_MAX);
    let parts = said.iter().map(|(what, text)| format!("\n--- {what}\n{}", excerpt(text)));
    std::iter::once(first.clone()).chain(parts).collect()
}
