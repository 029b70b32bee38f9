//! The table at the end of a leg: what ran, what never did, and what it cost (FACTS 1.15, DECISIONS 12 and 13).
//!
//! Read back from the run directory like any other screen, so that it cannot disagree with what is on disk. Costs
//! are those of this leg: every charge of it once, retries and rounds included.

use std::collections::BTreeMap;

use crate::record::event::Skipped;
use crate::record::legs::{Legs, Nodes};
use crate::record::snapshot_reader::{self, Brief};
use crate::record::standing::outlives;
use crate::record::stream::{self, StreamError};
use crate::record::{Record, RunDir, RunId, Usage};
use crate::text::money::{Cost, Money};
use crate::text::sanitize;
use crate::text::table::{Align, Cell, Table};
use crate::view::term::style::{self, Look};
use crate::view::term::words;

/// How many characters of a session are shown; the whole of it is in `omg show`.
const SESSION_CHARS: usize = 16;
/// The width of ` (100%)`, so that costs line up where only some nodes have a budget.
const PERCENT_WIDTH: usize = 7;

/// What one leg did.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The run.
    pub run: String,
    /// The nodes that settled, in id order, with what this leg spent on them.
    pub rows: Vec<(String, Record)>,
    /// The nodes that never ran.
    pub skipped: Vec<Skipped>,
    /// What planning cost, and its tokens.
    pub planning: (Cost, Usage),
    /// Whether the leg was a rehearsal.
    pub rehearsal: bool,
    /// Whether something was paid for that is not on disk, and so in no row.
    pub lacks_charges: bool,
}

impl Ledger {
    /// Reads back the run in `dir`, all its legs together: the total is what the run cost.
    pub fn of_run(run: &RunId, dir: &RunDir) -> Result<Ledger, StreamError> {
        let (mut legs, mut nodes) = (Legs::default(), Nodes::default());
        stream::walk(&dir.feed(), |event| {
            legs.take(&event);
            nodes.take(event);
        })?;
        // A feed that has lost lines does not lose rows.
        let kept = snapshot_reader::records(dir, |id, record| {
            record.is_settled() && nodes.by_id.get(id).is_none_or(|now| outlives(record, now))
        });
        let settled = nodes.by_id.into_iter().filter_map(|(id, now)| {
            let held = Record { round: now.round, usage: now.usage, ..Record::default() };
            let cost = now.cost;
            let mut record = now.into_record().or_else(|| (cost != Cost::ZERO).then_some(held))?;
            record.set_cost(cost);
            Some((id, record))
        });
        let mut rows: BTreeMap<String, Record> = settled.collect();
        rows.extend(kept.unwrap_or_default());
        let mut skipped = skipped(&legs, dir);
        // A node that cost something, or failed in an earlier leg, has a row already.
        skipped.retain(|entry| {
            rows.get_mut(&entry.node).map(|record| words::note_skip(record, entry)).is_none()
        });
        Ok(Ledger {
            run: run.to_string(),
            rows: rows.into_iter().collect(),
            skipped,
            planning: (legs.planning_cost, legs.planning_usage),
            rehearsal: legs.rehearsal,
            lacks_charges: false,
        })
    }

    /// What the run cost.
    pub fn total(&self) -> Cost {
        let lacking = if self.lacks_charges { Cost::UNKNOWN } else { Cost::ZERO };
        lacking + self.planning.0 + self.rows.iter().map(|(_, record)| record.cost()).sum::<Cost>()
    }

    /// Its tokens.
    pub fn usage(&self) -> Usage {
        self.planning.1 + self.rows.iter().map(|(_, record)| record.usage).sum::<Usage>()
    }

    /// The table with its title and its sums.
    pub fn print(&self, look: Look) -> String {
        let count = self.rows.len() + self.skipped.len();
        let title = format!("Run {} — {count} node(s)\n", sanitize::one_line(&self.run));
        title
            + &self.table(look).print(look.width)
            + &words::footer(self.planning.0, self.total(), self.usage())
    }

    fn table(&self, look: Look) -> Table {
        let mut table = Table::new(&[
            ("NODE", Align::Left),
            ("VERDICT", Align::Left),
            ("SESSION", Align::Left),
            ("COST(USD)", Align::Right),
            ("DETAIL", Align::Left),
        ])
        .yielding(&["SESSION"]);
        let budgets = self.rows.iter().any(|(_, record)| percent(record).is_some());
        for (node, record) in &self.rows {
            table.row([
                sanitize::one_line(node).into(),
                verdict(record, self.rehearsal, look),
                short(&record.session_id).into(),
                budgeted(&words::cost_cell(record.cost()), percent(record), budgets).into(),
                words::detail(record).into(),
            ]);
        }
        // A node that a limit held back has a row that says so.
        let has_row = |node: &str| self.rows.iter().any(|(id, _)| id == node);
        for skipped in self.skipped.iter().filter(|skipped| !has_row(&skipped.node)) {
            table.row([
                sanitize::one_line(&skipped.node).into(),
                Cell::styled("SKIPPED", look.style(style::FAINT)),
                "-".into(),
                budgeted("-", None, budgets).into(),
                words::because(skipped).into(),
            ]);
        }
        table
    }
}

/// The verdict of `record` in its colour.
pub(crate) fn verdict(record: &Record, rehearsal: bool, look: Look) -> Cell {
    let colour = match record.verdict {
        crate::record::Verdict::Pass => style::GOOD,
        crate::record::Verdict::Fail if words::is_cancelled(record.cause) => style::WARY,
        crate::record::Verdict::Fail => style::BAD,
        crate::record::Verdict::Marker => style::BUSY,
    };
    Cell::styled(words::verdict(record, rehearsal), look.style(colour))
}

/// Every skipped node: the feed's own list, or the snapshot's where the feed had room for a part only.
pub(crate) fn skipped(legs: &Legs, dir: &RunDir) -> Vec<Skipped> {
    let whole = legs.skipped.len() >= legs.skipped_count as usize;
    let listed = if whole { None } else { Brief::read(dir).ok().map(|brief| brief.skipped) };
    listed.filter(|listed| listed.len() > legs.skipped.len()).unwrap_or_else(|| legs.skipped.clone())
}

fn short(session: &str) -> String {
    let session = words::or_dash(session);
    if session.chars().count() <= SESSION_CHARS {
        return session;
    }
    session.chars().take(SESSION_CHARS - 1).chain(['…']).collect()
}

/// A cost cell with room for the share of a budget, where any row has one.
fn budgeted(cell: &str, percent: Option<i64>, budgets: bool) -> String {
    let used = percent.map_or_else(String::new, |percent| format!(" ({percent}%)"));
    if budgets { format!("{cell}{used:<PERCENT_WIDTH$}") } else { cell.to_owned() }
}

/// How much of its budget a node used, when both are known.
fn percent(record: &Record) -> Option<i64> {
    let cost = record.cost();
    cost.known.percent_of(Money::from_usd(record.budget_usd?)?).filter(|_| !cost.is_unknown())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(feed: &str) -> Ledger {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::new(folder.path().to_path_buf());
        let lines: Vec<&str> = feed.lines().map(str::trim).collect();
        std::fs::write(dir.feed(), lines.join("\n")).expect("written");
        let run = RunId::parse("20260102-030405.000000001-1").expect("an id");
        Ledger::of_run(&run, &dir).expect("read")
    }

    #[test]
    fn e3_f1_a_leg_is_summed_and_its_skipped_nodes_have_rows() {
        let ledger = ledger(
            r#"{"schema":3,"event":"run_started","cost_usd":0.5}
            {"schema":3,"event":"node_started","node_id":"build"}
            {"schema":3,"event":"node_retried","node_id":"build","retries":1,"cost_usd":0.01}
            {"schema":3,"event":"node_retried","node_id":"build","retries":2,"cost_usd":0.01}
            {"schema":3,"event":"node_passed","node_id":"build","retries":2,"cost_usd":0.01,"provenance":"verified","session_id":"0123456789abcdef0123","budget_usd":0.05,"detail":"2 retries","usage":{"input_tokens":7}}
            {"schema":3,"event":"node_failed","node_id":"test/unit","cost_unknown":true,"detail":"exit 3","cause":"nonzero_exit","leaky":true}
            {"schema":3,"event":"node_failed","node_id":"side","cause":"cancelled","detail":"halted"}
            {"schema":3,"event":"run_finished","outcome":"failed","skipped_count":2,"skipped":[{"node":"ship","because":"test/unit","why":"ancestor_failed"},{"node":"z","because":"SIGINT","why":"interrupted"}]}"#,
        );
        insta::assert_snapshot!(ledger.print(Look::default()), @"
        Run 20260102-030405.000000001-1 — 5 node(s)
        NODE       VERDICT          SESSION                COST(USD)  DETAIL
        ----------------------------------------------------------------------------------------------------
        build      PASS (verified)  0123456789abcde…   0.0300 (60%)   2 retries
        side       CANCELLED        -                  0.0000         halted
        test/unit  FAIL             -                 unknown         exit 3; leaky: a process it left behind held its output open and was ended
        ship       SKIPPED          -                       -         test/unit failed
        z          SKIPPED          -                       -         the run was interrupted (SIGINT)
        ----------------------------------------------------------------------------------------------------
        PLANNING COST: $0.5000
        TOTAL COST: ≥ $0.5300 (1 unknown)
        TOKEN USAGE: input 7, cached 0, output 0, reasoning 0
        ");
        let red = ledger.print(Look { colour: true, width: Some(80) });
        assert!(red.contains("\u{1b}[31mFAIL\u{1b}[0m"), "{red}");
    }

    #[test]
    fn every_leg_is_counted() {
        let ledger = ledger(
            r#"{"schema":3,"event":"run_started"}
            {"schema":3,"event":"node_passed","node_id":"a","cost_usd":0.25}
            {"schema":3,"event":"node_failed","node_id":"b","cost_usd":0.25}
            {"schema":3,"event":"run_finished","outcome":"failed"}
            {"schema":3,"event":"run_started","rehearsal":true}
            {"schema":3,"event":"node_passed","node_id":"b","cost_usd":0.01}
            {"schema":3,"event":"node_started","node_id":"c"}
            {"schema":3,"event":"run_finished","outcome":"passed"}"#,
        );
        assert_eq!(ledger.total().to_string(), "$0.5100");
        assert_eq!(ledger.rows.len(), 2);
        assert!(ledger.print(Look::default()).contains("PASS (rehearsed)"));
    }
}
