//! `show RUN`: one run, node by node (FACTS 1.17).
//!
//! A row is the later word of snapshot and feed about its node: beside an open leg the feed leads, a closed leg left
//! everything in the snapshot. Nodes under way and nodes that never ran have rows as well. Prints nothing itself.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::record::attempts::Caller;
use crate::record::event::Skipped;
use crate::record::legs::{Legs, NodeNow, NodeState, Nodes};
use crate::record::snapshot_reader::{Brief, SnapshotError};
use crate::record::status::{self, Status};
use crate::record::stream::{self, StreamError};
use crate::record::{Record, RunDir, RunId, Snapshot};
use crate::text::duration;
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::text::table::{Align, Cell, Table};
use crate::view::history::goal::Goal;
use crate::view::history::run_json::{self, RunJson};
use crate::view::history::{Prober, ReadError, Run, children_ended, hint, larger, larger_usage, lost};
use crate::view::term::style::{self, Look};
use crate::view::term::{ledger, when, words};

/// One run, node by node.
#[derive(Debug)]
pub struct Shown {
    /// The run as a listing has it.
    pub run: Run,
    /// Its nodes that were heard of, by id.
    pub rows: BTreeMap<String, Row>,
    /// The nodes that never ran.
    pub skipped: Vec<Skipped>,
    /// What a planned run is for.
    pub goal: Option<Goal>,
    dir: RunDir,
    stream_error: Option<StreamError>,
}

/// One node.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its record, empty while it has none.
    pub record: Record,
    /// What it is doing besides.
    pub now: NodeState,
    /// Until when a spent limit holds it back, as written; empty unless it does.
    pub held_until: String,
}

impl Shown {
    /// Reads the run `id` in `dir`. A feed that cannot be read costs the status only, as long as there is a snapshot.
    pub fn read(id: RunId, dir: &RunDir, probe: Prober) -> Result<Shown, ReadError> {
        let (mut legs, mut nodes) = (Legs::default(), Nodes::default());
        let walked = stream::walk(&dir.feed(), |event| {
            legs.take(&event);
            nodes.take(event);
        });
        let snapshot = match Snapshot::read(dir) {
            Ok(snapshot) => Some(snapshot),
            Err(SnapshotError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let stream_error = match (walked, &snapshot) {
            (Err(error), None) => return Err(error.into()),
            (walked, _) => walked.err(),
        };
        let brief = snapshot.as_ref().map(Brief::of).transpose().map_err(|source| {
            ReadError::Snapshot(SnapshotError::Malformed { path: dir.snapshot(), source })
        })?;
        let status = match stream_error {
            Some(_) => None,
            None => status::derive(&legs, brief.as_ref().map(Brief::completion), || probe(dir)),
        };
        let mut rows = rows(snapshot.map(|snapshot| snapshot.nodes).unwrap_or_default(), nodes, &legs);
        let lost = lost(status, &legs, brief.is_some(), dir);
        for (id, lost) in &lost.nodes {
            let record = &mut rows.entry(id.clone()).or_default().record;
            record.set_cost(record.cost() + *lost);
        }
        let mut skipped = ledger::skipped(&legs, dir);
        // A node has one row: its record's where it has one, if only for what it cost.
        skipped.retain(|entry| match rows.get_mut(&entry.node) {
            Some(row) if row.record != Record::default() => {
                words::note_skip(&mut row.record, entry);
                false
            }
            _ => {
                rows.remove(&entry.node);
                true
            }
        });
        let children_ended = children_ended(status, dir);
        Ok(Shown {
            run: Run { id, legs, brief, status, children_ended, lost },
            rows,
            skipped,
            goal: Goal::read(dir),
            dir: dir.clone(),
            stream_error,
        })
    }

    /// The table with its title and its sums.
    pub fn print(&self, look: Look, zone: &TimeZone) -> String {
        let body = match self.rows.is_empty() && self.skipped.is_empty() {
            true => format!("no node has a record yet: {}\n", self.why_empty()),
            false => self.table(look, zone).print(look.width),
        };
        let footer = words::footer(self.run.planning(), self.run.cost(), self.run.usage());
        let hint = hint(&self.run).map(|hint| format!("\n{}\n", sanitize::one_line(&hint)));
        [self.title(look), self.why_no_status(), self.about(zone), body, footer, hint.unwrap_or_default()]
            .concat()
    }

    /// Everything, as one JSON document.
    pub fn json(&self) -> String {
        run_json::print(&self.document())
    }

    /// What that document holds.
    pub(crate) fn document(&self) -> Document<'_> {
        Document {
            schema: run_json::SCHEMA,
            run: RunJson::from(&self.run),
            directory: self.dir.path().to_string_lossy().into_owned(),
            goal: self.goal.as_ref(),
            nodes: self.rows.iter().map(|(id, row)| self.node_json(id, row)).collect(),
            skipped: &self.skipped,
        }
    }

    fn node_json<'a>(&self, id: &'a str, row: &'a Row) -> NodeJson<'a> {
        let record = (row.record != Record::default()).then_some(&row.record);
        let held_until = (row.now == NodeState::Held).then_some(row.held_until.as_str());
        NodeJson { node_id: id, state: self.state(row), held_until, record }
    }

    fn title(&self, look: Look) -> String {
        let count = self.rows.len() + self.skipped.len();
        let in_flight = usize::from(self.run.status.is_some_and(Status::is_in_flight));
        let id = &self.run.id;
        match self.run.status {
            Some(status) => {
                let word = look.paint(style::of_status(status), status.as_str());
                let rehearsed = if self.run.is_rehearsal() { " (rehearsed)" } else { "" };
                format!("Run {id} — {word}{rehearsed}, {count} node(s); {in_flight} in flight\n")
            }
            None => format!("Run {id} — {count} node(s)\n"),
        }
    }

    fn why_no_status(&self) -> String {
        let told = |error| format!("{}\n", sanitize::one_line(&format!("the status is not known: {error}")));
        self.stream_error.as_ref().map(told).unwrap_or_default()
    }

    fn about(&self, zone: &TimeZone) -> String {
        let graph = self.run.brief.as_ref().map(|brief| sanitize::one_line(&brief.graph.name));
        let moment =
            |word: &str, ts: &str| (!ts.is_empty()).then(|| format!("{word} {}", when::local(ts, zone)));
        let ended = if self.run.legs.open { "" } else { self.run.legs.ended.as_str() };
        let facts = [
            graph.filter(|name| !name.is_empty()).map(|name| format!("graph {name}")),
            moment("started", self.run.started()),
            moment("ended", ended),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let facts = if facts.is_empty() { String::new() } else { facts.join(", ") + "\n" };
        let goal = self.goal.as_ref().map(Goal::lines).unwrap_or_default();
        facts + &sanitize::one_line(&self.dir.path().to_string_lossy()) + "\n" + &goal
    }

    fn table(&self, look: Look, zone: &TimeZone) -> Table {
        let mut table = Table::new(&[
            ("NODE", Align::Left),
            ("VERDICT", Align::Left),
            ("SESSION", Align::Left),
            ("COST(USD)", Align::Right),
            ("DURATION", Align::Right),
            ("DETAIL", Align::Left),
        ])
        .yielding(&["SESSION"]);
        for (id, row) in &self.rows {
            let record = &row.record;
            let settled = record.is_settled();
            table.row([
                sanitize::one_line(id).into(),
                self.verdict(row, look),
                words::or_dash(&record.session_id).into(),
                if settled || record.cost() != Cost::ZERO {
                    words::cost_cell(record.cost())
                } else {
                    "-".into()
                }
                .into(),
                if settled { duration::format(record.took()) } else { "-".to_owned() }.into(),
                self.detail(row, zone).into(),
            ]);
        }
        for skipped in &self.skipped {
            let word = Cell::styled("SKIPPED", look.style(style::FAINT));
            let because = words::because(skipped);
            let dash = || Cell::from("-");
            table.row([
                sanitize::one_line(&skipped.node).into(),
                word,
                dash(),
                dash(),
                dash(),
                because.into(),
            ]);
        }
        table
    }

    /// What else there is to say of a node.
    pub(crate) fn detail(&self, row: &Row, zone: &TimeZone) -> String {
        if self.state(row) == Some("HELD") {
            return format!("the usage limit is spent; waiting until {}", when::local(&row.held_until, zone));
        }
        words::detail(&row.record)
    }

    fn verdict(&self, row: &Row, look: Look) -> Cell {
        match self.state(row) {
            Some(word @ ("RUNNING" | "LOOPING")) => Cell::styled(word, look.style(style::BUSY)),
            Some(word) => Cell::styled(word, look.style(style::WARY)),
            None => ledger::verdict(&row.record, self.run.is_rehearsal(), look),
        }
    }

    /// How a node stands, in a word or two.
    pub(crate) fn standing(&self, row: &Row) -> String {
        let verdict = || words::verdict(&row.record, self.run.is_rehearsal());
        self.state(row).map_or_else(verdict, str::to_owned)
    }

    /// What the node is doing, where that outranks its record.
    fn state(&self, row: &Row) -> Option<&'static str> {
        match (row.now, self.run.status) {
            (NodeState::Running, Some(Status::Running)) => Some("RUNNING"),
            (NodeState::Running, Some(Status::Abandoned)) => Some("LOST"),
            (NodeState::Held, Some(Status::Running)) => Some("HELD"),
            (NodeState::Waiting, _) => Some("WAITING"),
            _ if row.record == Record::default() => Some("UNSETTLED"),
            _ => None,
        }
    }

    fn why_empty(&self) -> String {
        match self.run.status {
            None if self.stream_error.is_none() => "the run has said nothing so far".to_owned(),
            Some(Status::Planning) => "it is being planned".to_owned(),
            Some(Status::Abandoned) if self.run.legs.planning => self.why_no_plan().to_owned(),
            Some(Status::Abandoned) => {
                "its process is gone and left nothing to resume; run the graph again".to_owned()
            }
            Some(Status::Fail) => self.why_nothing_ran(),
            _ => "none has settled".to_owned(),
        }
    }

    /// What became of the plan of a run that lost its process before it ran it.
    fn why_no_plan(&self) -> &'static str {
        match (self.dir.plan().exists(), self.dir.rejected().exists()) {
            (true, _) => "its process was gone before the plan was run; the plan is kept as graph.json",
            (_, true) => {
                "its process was gone before there was a plan; a reply that was refused is kept as rejected.json; plan the goal again"
            }
            _ => "its process was gone before there was a plan; plan the goal again",
        }
    }

    /// Why a run failed before its first node. A plan that came to nothing says so.
    fn why_nothing_ran(&self) -> String {
        let why = match self.run.legs.detail.as_str() {
            "" => "the run ended before any node settled".into(),
            detail => sanitize::one_line(detail),
        };
        let refused = self.dir.rejected().symlink_metadata().is_ok();
        let kept = if refused { "; what was refused is kept as rejected.json" } else { "" };
        let asked = self.dir.attempts(&Caller::Planner.id()).symlink_metadata().is_ok();
        let said = format!("\nwhat was asked and said: omg show {} planner", self.run.id);
        format!("{why}{kept}{}", if asked { &said } else { "" })
    }
}

/// One run as `--json` tells it.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    schema: u32,
    run: RunJson<'a>,
    directory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'a Goal>,
    nodes: Vec<NodeJson<'a>>,
    skipped: &'a [Skipped],
}

/// One node in the JSON document; the record is that of `state.json`.
#[derive(Serialize)]
struct NodeJson<'a> {
    node_id: &'a str,
    state: Option<&'static str>,
    held_until: Option<&'a str>,
    record: Option<&'a Record>,
}

/// The later word about each node.
fn rows(records: BTreeMap<String, Record>, nodes: Nodes, legs: &Legs) -> BTreeMap<String, Row> {
    let row = |(id, record)| (id, Row { record, ..Row::default() });
    let mut rows: BTreeMap<String, Row> = records.into_iter().map(row).collect();
    for (id, now) in nodes.by_id {
        let row = rows.entry(id).or_default();
        row.now = now.state;
        row.held_until.clone_from(&now.held_until);
        settle(&mut row.record, &now, legs);
    }
    rows
}

fn settle(record: &mut Record, now: &NodeNow, legs: &Legs) {
    let (cost, usage) = (larger(record.cost(), now.cost), larger_usage(record.usage, now.usage));
    let fed = now.record();
    let feed_leads = legs.open && now.terminal.as_ref().is_some_and(|(leg, _)| *leg == now.leg);
    if let Some(fed) = fed
        && (feed_leads || *record == Record::default())
    {
        *record = fed;
    }
    if let (true, Some(marker)) = (*record == Record::default(), now.marker()) {
        *record = marker;
    }
    if *record == Record::default() {
        record.session_id.clone_from(&now.session_id);
    }
    record.set_cost(cost);
    record.usage = usage;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::{House, free, held, passed, state};

    const ID: &str = "20260102-030405.000000001-1";

    fn shown(feed: &str, state: Option<&str>, probe: Prober) -> Result<Shown, String> {
        let house = House::new();
        let dir = house.run(ID, feed, state);
        Shown::read(RunId::parse(ID).expect("an id"), &dir, probe).map_err(|error| error.to_string())
    }

    fn text(shown: &Shown) -> String {
        let text = shown.print(Look::default(), &TimeZone::UTC);
        text.replace(&*shown.dir.path().to_string_lossy(), "[RUN]")
    }

    #[test]
    fn a_run_under_way_shows_what_runs_and_what_the_feed_alone_knows() {
        let feed = r#"{"event":"run_started","ts":"2026-01-02T03:04:05Z"}
            {"event":"node_started","node_id":"a"}
            {"event":"node_passed","node_id":"a","cost_usd":0.01,"session_id":"s-a","provenance":"exit-only","duration":235000000}
            {"event":"node_started","node_id":"b"}
            {"event":"node_failed","node_id":"b","cost_usd":0.02,"detail":"exit 1","leaky":true,"duration":7000000}
            {"event":"node_started","node_id":"c","session_id":"s-c"}
            {"event":"gate_paused","node_id":"g"}"#;
        let shown = shown(feed, Some(&state(&passed("a"))), held).expect("read");
        insta::assert_snapshot!(text(&shown), @"
        Run 20260102-030405.000000001-1 — RUNNING, 4 node(s); 1 in flight
        graph demo, started 2026-01-02 03:04:05+00:00
        [RUN]
        NODE  VERDICT           SESSION  COST(USD)  DURATION  DETAIL
        ----------------------------------------------------------------------------------------------------
        a     PASS (exit-only)  s-a         0.0100     235ms
        b     FAIL              -           0.0200       7ms  exit 1; leaky: a process it left behind held its output open and was ended
        c     RUNNING           s-c              -         -
        g     WAITING           -                -         -
        ----------------------------------------------------------------------------------------------------
        TOTAL COST: $0.0300
        ");
    }

    #[test]
    fn e3_a_closed_run_shows_what_never_ran_and_why() {
        let feed = r#"{"event":"run_started","ts":"2026-01-02T03:04:05Z"}
            {"event":"node_failed","node_id":"a","cost_unknown":true,"cause":"interrupted"}
            {"event":"run_finished","outcome":"failed","ts":"2026-01-02T03:04:09Z","skipped_count":1,"skipped":[{"node":"b","because":"a","why":"ancestor_failed"}]}"#;
        let records = r#""a":{"verdict":"FAIL","session_id":"","cost_usd":0,"cost_unknown":true,"duration":3000000,"artifact_path":"","cause":"interrupted"}"#;
        let shown = shown(feed, Some(&state(records)), free).expect("read");
        insta::assert_snapshot!(text(&shown), @"
        Run 20260102-030405.000000001-1 — FAIL, 2 node(s); 0 in flight
        graph demo, started 2026-01-02 03:04:05+00:00, ended 2026-01-02 03:04:09+00:00
        [RUN]
        NODE  VERDICT    SESSION  COST(USD)  DURATION  DETAIL
        -------------------------------------------------------
        a     CANCELLED  -          unknown       3ms
        b     SKIPPED    -                -         -  a failed
        -------------------------------------------------------
        TOTAL COST: unknown
        ");
    }

    #[test]
    fn f1_spend_of_a_leg_whose_record_was_replaced_still_counts() {
        let feed = r#"{"event":"run_started"}
            {"event":"node_failed","node_id":"a","cost_usd":0.25}
            {"event":"run_finished","outcome":"failed"}
            {"event":"run_started"}
            {"event":"node_passed","node_id":"a","cost_usd":0.01}
            {"event":"run_finished","outcome":"passed"}"#;
        let shown = shown(feed, Some(&state(&passed("a"))), free).expect("read");
        assert_eq!(shown.rows["a"].record.cost().to_string(), "$0.2600");
        assert!(text(&shown).contains("\nTOTAL COST: $0.2600\n"), "{}", text(&shown));
    }

    #[test]
    fn d8_damage_is_one_clear_error_and_a_bad_feed_costs_the_status_only() {
        let started = r#"{"event":"run_started"}"#;
        assert!(shown(started, Some(""), held).expect_err("empty").contains("state.json: the file is empty"));
        let newer = r#"{"schema":99}"#;
        assert!(shown(started, Some(newer), held).expect_err("newer").contains("schema 99"));
        let feed = r#"{"event":"x"}"#.to_owned() + &" ".repeat(crate::record::event::LINE_BYTES_MAX);
        assert!(shown(&feed, None, held).is_err() || !feed.contains('\n'));
    }

    #[test]
    fn a_run_without_a_snapshot_says_why() {
        for (feed, probe, why) in [
            ("", held as Prober, "said nothing"),
            (r#"{"event":"run_started","phase":"planning"}"#, held, "being planned"),
            (r#"{"event":"run_started"}"#, held, "none has settled"),
            (r#"{"event":"run_started"}"#, free, "run the graph again"),
        ] {
            let shown = shown(feed, None, probe).expect("read");
            assert!(text(&shown).contains(why), "{}", text(&shown));
        }
    }

    #[test]
    fn the_json_shape_holds_the_records_as_the_snapshot_does() {
        let feed = r#"{"event":"run_started"}
            {"event":"node_started","node_id":"b"}"#;
        let shown = shown(feed, Some(&state(&passed("a"))), held).expect("read");
        let json: serde_json::Value = serde_json::from_str(&shown.json()).expect("JSON");
        assert_eq!((&json["schema"], &json["run"]["run_id"]), (&1.into(), &ID.into()));
        assert_eq!(json["nodes"][0]["record"]["verdict"], "PASS");
        assert_eq!(json["nodes"][1]["state"], "RUNNING");
    }
}
