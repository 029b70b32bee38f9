//! What became of every node of the run, in the order of the graph: the rows that a summary and a CI system are told.

use std::collections::{BTreeMap, BTreeSet};

use super::Export;
use crate::record::Verdict;
use crate::record::event::Skipped;
use crate::view::history::show::Row;
use crate::view::term::words;

/// One node.
pub(super) struct Fate<'a> {
    /// Its id.
    pub(super) node: &'a str,
    /// What is known of it.
    pub(super) row: Option<&'a Row>,
    /// How it ended.
    pub(super) end: End,
    /// The same in the words of every other screen.
    pub(super) standing: String,
    /// What else there is to say; empty where there is nothing.
    pub(super) detail: String,
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// Something else ended it.
    Cut,
    /// It never ran, and will not.
    Skipped,
    /// It has not ended.
    Open,
}

/// The nodes of `export`: those of the graph in its order, then what else was heard of.
pub(super) fn of(export: &Export) -> Vec<Fate<'_>> {
    let shown = &export.shown;
    let skipped: BTreeMap<&str, &Skipped> =
        shown.skipped.iter().map(|entry| (entry.node.as_str(), entry)).collect();
    let drawn: Vec<&str> = export.shape.nodes.iter().map(|node| node.id.as_str()).collect();
    let known: BTreeSet<&str> = drawn.iter().copied().collect();
    let others = shown.rows.keys().map(String::as_str).chain(skipped.keys().copied());
    let others: Vec<&str> = others.filter(|id| !known.contains(id)).collect();
    let fate = |node| fate(export, node, skipped.get(node).copied());
    drawn.iter().chain(&others).map(|node| fate(node)).collect()
}

fn fate<'a>(export: &'a Export, node: &'a str, skipped: Option<&Skipped>) -> Fate<'a> {
    let shown = &export.shown;
    match (shown.rows.get(node), skipped) {
        (Some(row), _) => {
            let standing = shown.standing(row);
            let end = end(&standing, row);
            Fate { node, row: Some(row), end, standing, detail: shown.detail(row, &export.zone) }
        }
        (None, Some(entry)) => Fate {
            node,
            row: None,
            end: End::Skipped,
            standing: "SKIPPED".to_owned(),
            detail: words::because(entry),
        },
        (None, None) => {
            Fate { node, row: None, end: End::Open, standing: "NOT RUN".to_owned(), detail: String::new() }
        }
    }
}

fn end(standing: &str, row: &Row) -> End {
    match (standing, row.record.verdict) {
        ("LOST" | "CANCELLED", _) => End::Cut,
        ("RUNNING" | "LOOPING" | "WAITING" | "HELD" | "UNSETTLED", _) | (_, Verdict::Marker) => End::Open,
        (_, Verdict::Pass) => End::Passed,
        (_, Verdict::Fail) => End::Failed,
    }
}
