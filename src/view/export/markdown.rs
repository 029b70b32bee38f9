//! The run as Markdown for a comment or a job's page: how it stands, a table of its nodes, why what failed did, and what was produced.
//!
//! What children said stands in code, where nothing of it is markup and nobody is called. Everything is bounded, so that the whole fits
//! into a comment; what is left out is told.

use std::io::Write;

use super::fates::{self, End, Fate};
use super::{Export, ExportError};
use crate::record::status::Status;
use crate::text::{duration, fence, markdown};
use crate::view::history::hint;
use crate::view::history::node::{last_words, produced};
use crate::view::term::{when, words};

/// As much as GitHub takes in one comment, with room for what a pipeline puts around it, in bytes.
const BYTES_MAX: usize = 60_000;
/// As much of that as the table takes.
const TABLE_BYTES_MAX: usize = 30_000;
/// As much of each text that a failed node left.
const SAID_BYTES_MAX: usize = 2_000;
/// As much of each artifact.
const PRODUCED_BYTES_MAX: usize = 1_500;
/// As much of a graph's name.
const NAME_BYTES_MAX: usize = 200;

/// Writes the summary.
pub(super) fn write(export: &Export, out: &mut dyn Write) -> Result<(), ExportError> {
    let fates = fates::of(export);
    let mut text = heading(export, &fates) + &table(&fates);
    let (bad, good): (Vec<_>, Vec<_>) = (
        fates.iter().filter(|fate| is_bad(fate)).collect(),
        fates.iter().filter(|fate| fate.end == End::Passed).collect(),
    );
    add(&mut text, "What failed", &bad, |fate| Some(failure(export, fate)));
    add(&mut text, "What was produced", &good, |fate| artifact(export, fate));
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Adds a part with the sections of as many nodes as there is room for; a node may have none.
fn add(text: &mut String, title: &str, fates: &[&Fate<'_>], section: impl Fn(&Fate<'_>) -> Option<String>) {
    let mut heading = format!("\n### {title}\n");
    for (number, fate) in fates.iter().enumerate() {
        let Some(section) = section(fate) else { continue };
        let fits = text.len() + heading.len() + section.len() <= BYTES_MAX;
        text.push_str(&std::mem::take(&mut heading));
        if !fits {
            // What has no room is not even read.
            text.push_str(&no_room(fates.len() - number));
            return;
        }
        text.extend(["\n", &section]);
    }
}

fn no_room(more: usize) -> String {
    format!("\nThere is no room here for {more} more.\n")
}

fn is_bad(fate: &Fate<'_>) -> bool {
    matches!(fate.end, End::Failed | End::Cut)
}

fn heading(export: &Export, fates: &[Fate<'_>]) -> String {
    let run = &export.shown.run;
    let name = if export.shape.name.is_empty() { "a graph" } else { &export.shape.name };
    let rehearsed = if run.is_rehearsal() { " (rehearsed)" } else { "" };
    // What is no moment is shown as it was written.
    let moment = |ts: &str| markdown::code(&when::local(ts, &export.zone));
    let ended = if run.legs.open { "" } else { run.legs.ended.as_str() };
    let told = [("started", run.started()), ("ended", ended)];
    let told =
        told.iter().filter(|(_, ts)| !ts.is_empty()).map(|(word, ts)| format!("{word} {}", moment(ts)));
    let facts: Vec<String> = counted(fates).chain([run.cost().to_string()]).chain(told).collect();
    let first = format!(
        "## {} {}: {}{rehearsed}\n\n{}  \nrun {}\n",
        mark_of_run(export),
        markdown::code(&fence::truncate(name, NAME_BYTES_MAX)),
        export.status(),
        facts.join(" · "),
        markdown::code(run.id.as_str())
    );
    let at = moment(&export.at.to_string());
    let goes_on = export.is_in_flight().then(|| format!("\nThe run goes on; it stood so at {at}.\n"));
    let hint = hint(run).map(|hint| format!("\n{}\n", markdown::code(&hint)));
    [Some(first), goes_on, hint].into_iter().flatten().collect()
}

fn counted(fates: &[Fate<'_>]) -> impl Iterator<Item = String> {
    let words = [
        (End::Passed, "passed"),
        (End::Failed, "failed"),
        (End::Cut, "cut off"),
        (End::Skipped, "skipped"),
        (End::Open, "not settled"),
    ];
    let counts = words.map(|(end, word)| (fates.iter().filter(|fate| fate.end == end).count(), word));
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"))
}

fn mark_of_run(export: &Export) -> &'static str {
    match export.shown.run.status {
        Some(Status::Pass) => mark(End::Passed),
        Some(Status::Fail) => mark(End::Failed),
        Some(Status::Abandoned) => mark(End::Cut),
        Some(Status::Paused) => "⏸️",
        Some(Status::Planning | Status::Running) | None => mark(End::Open),
    }
}

fn mark(end: End) -> &'static str {
    match end {
        End::Passed => "✅",
        End::Failed => "❌",
        End::Cut => "⚠️",
        End::Skipped => "➖",
        End::Open => "⏳",
    }
}

fn table(fates: &[Fate<'_>]) -> String {
    if fates.is_empty() {
        return "\nNothing is known of its nodes.\n".to_owned();
    }
    let mut rows: Vec<(&Fate<'_>, String)> = fates.iter().map(|fate| (fate, row(fate))).collect();
    // Where there are too many, what went wrong is worth a row first.
    if rows.iter().map(|(_, row)| row.len()).sum::<usize>() > TABLE_BYTES_MAX {
        rows.sort_by_key(|(fate, _)| !is_bad(fate));
    }
    let mut text =
        "\n| | node | verdict | cost | took | |\n| --- | --- | --- | ---: | ---: | --- |\n".to_owned();
    for (number, (_, row)) in rows.iter().enumerate() {
        if text.len() + row.len() > TABLE_BYTES_MAX {
            return text + &no_room(rows.len() - number);
        }
        text.push_str(row);
    }
    text
}

fn row(fate: &Fate<'_>) -> String {
    let record = fate.row.map(|row| &row.record);
    let cost = record.map(|record| words::cost_cell(record.cost())).unwrap_or_default();
    let settled = record.filter(|record| record.is_settled());
    let took = settled.map(|record| duration::format(record.took())).unwrap_or_default();
    let (node, detail) = (markdown::cell(fate.node), markdown::cell(&fate.detail));
    format!("| {} | {node} | {} | {cost} | {took} | {detail} |\n", mark(fate.end), fate.standing)
}

fn failure(export: &Export, fate: &Fate<'_>) -> String {
    let detail = if fate.detail.is_empty() { fate.standing.as_str() } else { &fate.detail };
    let first = format!("**{}**\n\n{}", markdown::code(fate.node), markdown::block(detail));
    let said = last_words(&export.dir, fate.node).into_iter().map(|(what, said)| {
        let summary = format!("{what} of <code>{}</code>", markdown::html(fate.node));
        "\n".to_owned() + &folded(&summary, &said, SAID_BYTES_MAX)
    });
    std::iter::once(first).chain(said).collect()
}

fn artifact(export: &Export, fate: &Fate<'_>) -> Option<String> {
    let text = produced(&export.dir, fate.node).filter(|text| !text.trim().is_empty())?;
    Some(folded(&format!("<code>{}</code>", markdown::html(fate.node)), &text, PRODUCED_BYTES_MAX))
}

/// A part that a click unfolds.
fn folded(summary: &str, text: &str, bytes_max: usize) -> String {
    let excerpt = fence::excerpt(text.trim_end(), bytes_max);
    format!("<details><summary>{summary}</summary>\n\n{}\n</details>\n", markdown::block(&excerpt))
}
