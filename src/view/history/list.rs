//! `runs list`: every run of a home, newest first, and how much of the home that is (FACTS 0.3, 1.16, case D8).
//!
//! A run that cannot be read never hides another: it is left out, counted and, when asked, named. Rehearsals are
//! shown and left out of the sum. Prints nothing itself.

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::record::index::{Index, Stamp};
use crate::record::status::Status;
use crate::record::{Home, RunId};
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::text::table::{Align, Cell, Table};
use crate::view::history::cores::on_every_core;
use crate::view::history::lookup::{self, LookupError};
use crate::view::history::run_json::{self, CostJson, RunJson};
use crate::view::history::{Prober, Run, hint};
use crate::view::term::style::{self, Look};
use crate::view::term::{when, words};

/// The runs of a home.
#[derive(Debug, Default)]
pub struct Listing {
    /// What could be read, newest first.
    pub runs: Vec<Run>,
    /// What could not.
    pub skipped: Vec<Skipped>,
}

/// An entry of the runs directory that is not shown.
#[derive(Debug, Serialize)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// The kind of reason.
    pub reason: Reason,
    /// What exactly was wrong.
    pub error: String,
}

/// Why an entry is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Damage.
    Unreadable,
    /// Another version.
    Incompatible,
    /// Something else lies there.
    NotARun,
}

impl Reason {
    const ALL: [Reason; 3] = [Reason::Unreadable, Reason::Incompatible, Reason::NotARun];

    fn words(self) -> &'static str {
        match self {
            Reason::Unreadable => "unreadable run files",
            Reason::Incompatible => "written by an incompatible snapshot schema",
            Reason::NotARun => "not a run directory",
        }
    }
}

/// A directory on its way into a listing.
struct Candidate {
    id: RunId,
    stamp: Option<Stamp>,
    /// What it is, once that is known.
    found: Option<Found>,
}

enum Found {
    /// A run as the index remembers it.
    Known(Box<Run>),
    /// A run as its files tell.
    Read(Box<Run>),
    Skipped(Reason, String),
    /// It was removed in this moment, and is nothing to tell of.
    Gone,
}

impl Candidate {
    fn at(id: RunId) -> Self {
        Candidate { id, stamp: None, found: None }
    }

    fn recall(&mut self, index: &mut Index) {
        let known = self.stamp.and_then(|stamp| index.get(&self.id, stamp));
        let run = |(legs, brief)| Box::new(Run::of_index(self.id.clone(), legs, brief));
        self.found = known.map(run).map(Found::Known);
    }

    /// Reads the files, unless it is known already what it is.
    fn read(&mut self, home: &Home, probe: Prober) {
        if self.found.is_none() {
            self.found = Some(read(&self.id, home, probe));
        }
    }
}

fn read(id: &RunId, home: &Home, probe: Prober) -> Found {
    let dir = home.run(id);
    if !lookup::is_run(&dir) {
        return match dir.path().exists() {
            true => Found::Skipped(Reason::NotARun, "the directory holds no file of a run".to_owned()),
            false => Found::Gone,
        };
    }
    match Run::read(id.clone(), &dir, probe) {
        Ok(run) => Found::Read(Box::new(Run { legs: run.legs.in_brief(), ..run })),
        Err(error) if error.is_incompatible() => Found::Skipped(Reason::Incompatible, error.to_string()),
        Err(error) => Found::Skipped(Reason::Unreadable, error.to_string()),
    }
}

impl Listing {
    /// Reads every run of `home`. Of runs that have ended, an index remembers what their files told; it is asked only
    /// where they are still the same files.
    pub fn read(home: &Home, probe: Prober) -> Result<Listing, LookupError> {
        let entries = lookup::entries(home)?;
        let mut index = Index::open(home);
        let mut candidates: Vec<Candidate> = entries.runs.into_iter().map(Candidate::at).collect();
        // Taken before the files are read: what changes meanwhile no longer fits it.
        on_every_core(&mut candidates, |it| it.stamp = Stamp::of(&home.run(&it.id)));
        candidates.iter_mut().for_each(|it| it.recall(&mut index));
        on_every_core(&mut candidates, |it| it.read(home, probe));
        let mut listing = Listing::default();
        for mut candidate in candidates {
            candidate.read(home, probe);
            listing.take(candidate, &mut index);
        }
        index.save();
        for name in entries.others {
            listing.skip(&name, Reason::NotARun, "it is no directory, or its name can be no run id");
        }

        Ok(listing)
    }

    fn take(&mut self, candidate: Candidate, index: &mut Index) {
        match candidate.found {
            Some(Found::Known(run)) => self.runs.push(*run),
            Some(Found::Read(run)) => {
                if let Some(stamp) =
                    candidate.stamp.filter(|_| matches!(run.status, Some(Status::Pass | Status::Fail)))
                {
                    index.put(&run.id, stamp, &run.legs, run.brief.as_ref());
                }
                self.runs.push(*run);
            }
            Some(Found::Skipped(reason, why)) => self.skip(candidate.id.as_str(), reason, &why),
            Some(Found::Gone) | None => {}
        }
    }

    /// The table, the sum, the coverage line and the hints.
    pub fn print(&self, look: Look, zone: &TimeZone) -> String {
        if self.runs.is_empty() {
            let coverage = if self.skipped.is_empty() { String::new() } else { self.coverage() + "\n" };
            return format!("no runs yet\n{coverage}");
        }
        let hints =
            self.runs.iter().filter_map(hint).map(|hint| format!("\n{}\n", sanitize::one_line(&hint)));
        let sum = format!("{} run(s), TOTAL COST: {}{}\n", self.runs.len(), self.total(), self.left_out());
        let table = self.table(look, zone).print(look.width);
        table + &sum + &self.coverage() + "\n" + &hints.collect::<String>()
    }

    /// One line for each entry that is not shown.
    pub fn print_skipped(&self, look: Look) -> String {
        let line = |skipped: &Skipped| {
            let (reason, error) = (skipped.reason.words(), sanitize::one_line(&skipped.error));
            format!("{}: {:?}: {reason}: {error}\n", look.paint(style::WARY, "warning"), skipped.name)
        };
        self.skipped.iter().map(line).collect()
    }

    /// Everything, as one JSON document.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: u32,
            runs: Vec<RunJson<'a>>,
            skipped: &'a [Skipped],
            found: usize,
            in_flight: usize,
            abandoned: usize,
            total: CostJson,
        }
        run_json::print(&Document {
            schema: run_json::SCHEMA,
            runs: self.runs.iter().map(RunJson::from).collect(),
            skipped: &self.skipped,
            found: self.found(),
            in_flight: self.in_flight(),
            abandoned: self.abandoned(),
            total: self.total().into(),
        })
    }

    /// How many runs are shown, how they stand, and what is not shown and why.
    pub fn coverage(&self) -> String {
        let (shown, found, skipped) = (self.runs.len(), self.found(), self.skipped.len());
        let (in_flight, abandoned) = (self.in_flight(), self.abandoned());
        let reasons: Vec<String> = Reason::ALL
            .iter()
            .map(|reason| (self.skipped.iter().filter(|skipped| skipped.reason == *reason).count(), reason))
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| format!("{count} {}", reason.words()))
            .collect();
        let why = match skipped {
            0 => String::new(),
            _ => format!(" ({}); --show-skipped names them", reasons.join(", ")),
        };
        format!(
            "{shown} of {found} run(s) shown; {in_flight} in flight, {abandoned} abandoned; {skipped} skipped{why}"
        )
    }

    /// What all runs cost, rehearsals left out.
    pub fn total(&self) -> Cost {
        self.runs.iter().filter(|run| !run.is_rehearsal()).map(Run::cost).sum()
    }

    fn table(&self, look: Look, zone: &TimeZone) -> Table {
        let mut table = Table::new(&[
            ("RUN", Align::Left),
            ("GRAPH", Align::Left),
            ("NODES", Align::Right),
            ("COST(USD)", Align::Right),
            ("TOKENS(I/C/O/R)", Align::Left),
            ("STARTED", Align::Left),
            ("STATUS", Align::Left),
        ])
        .yielding(&["TOKENS(I/C/O/R)", "STARTED"]);
        for run in &self.runs {
            let brief = run.brief.as_ref();
            table.row([
                run.id.to_string().into(),
                words::or_dash(brief.map_or("", |brief| &brief.graph.name)).into(),
                brief.map_or("-".to_owned(), |brief| brief.graph.nodes.to_string()).into(),
                cost(run).into(),
                words::tokens_cell(run.usage()).into(),
                words::or_dash(&when::local(run.started(), zone)).into(),
                status(run, look),
            ]);
        }
        table
    }

    fn skip(&mut self, name: &str, reason: Reason, error: &str) {
        self.skipped.push(Skipped { name: name.to_owned(), reason, error: error.to_owned() });
    }

    fn found(&self) -> usize {
        self.runs.len() + self.skipped.len()
    }

    fn in_flight(&self) -> usize {
        self.runs.iter().filter(|run| run.status.is_some_and(Status::is_in_flight)).count()
    }

    fn abandoned(&self) -> usize {
        self.runs.iter().filter(|run| run.status == Some(Status::Abandoned)).count()
    }

    fn left_out(&self) -> String {
        match self.runs.iter().filter(|run| run.is_rehearsal()).count() {
            0 => String::new(),
            n => format!(" ({n} rehearsed run(s) not counted)"),
        }
    }
}

/// The cost of a run that has a snapshot or spent anything; nothing is known of any other.
fn cost(run: &Run) -> String {
    let quiet = run.cost() == Cost::ZERO && run.usage().is_zero();
    if run.brief.is_none() && quiet { "-".to_owned() } else { words::cost_cell(run.cost()) }
}

fn status(run: &Run, look: Look) -> Cell {
    let Some(status) = run.status else { return "-".into() };
    let rehearsed = if run.is_rehearsal() { " (rehearsed)" } else { "" };
    Cell::styled(format!("{}{rehearsed}", status.as_str()), look.style(style::of_status(status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::{House, free, held, passed, state};

    const STARTED: &str = r#"{"ts":"2026-01-02T03:04:05.5Z","event":"run_started"}"#;
    const DONE: &str = r#"{"event":"run_finished","outcome":"passed"}"#;

    fn both(first: &str, second: &str) -> String {
        format!("{first}\n{second}")
    }

    fn house() -> House {
        let house = House::new();
        let whole = state(&both(&passed("a"), &passed("b")).replace('\n', ","));
        house.run("20260102-030405.000000001-1", &both(STARTED, DONE), Some(&whole));
        let rehearsal = whole.replace("\"claude\"", "\"rehearsal\"").replace("demo", "de\u{1b}[31mmo");
        house.run(
            "20260102-030406.000000001-1",
            &both(STARTED, DONE),
            Some(&rehearsal.replace('\u{1b}', "\\u001b")),
        );
        house.run("20260102-030407.000000001-1", STARTED, Some(&state(&passed("a"))));
        let spent =
            r#"{"event":"run_finished","outcome":"failed","cost_unknown":true,"usage":{"input_tokens":9}}"#;
        house.run("20260102-030408.000000001-1", &both(STARTED, spent), None);
        let dir = house.dir("20260102-030409.000000001-1");
        std::fs::write(dir.lock(), "").expect("written");
        house
    }

    #[test]
    fn d14_runs_are_listed_newest_first_in_local_time() {
        let listing = Listing::read(&house().home, held).expect("read");
        let seoul = TimeZone::posix("KST-9").expect("a zone");
        insta::assert_snapshot!(listing.print(Look::default(), &seoul), @"
        RUN                          GRAPH      NODES  COST(USD)  TOKENS(I/C/O/R)  STARTED                    STATUS
        ------------------------------------------------------------------------------------------------------------
        20260102-030409.000000001-1  -              -          -  -                -                          -
        20260102-030408.000000001-1  -              -    unknown  9/0/0/0          2026-01-02 12:04:05+09:00  FAIL
        20260102-030407.000000001-1  demo           2     0.0100  -                2026-01-02 12:04:05+09:00  RUNNING
        20260102-030406.000000001-1  de␛[31mmo      2     0.0200  -                2026-01-02 12:04:05+09:00  PASS (rehearsed)
        20260102-030405.000000001-1  demo           2     0.0200  -                2026-01-02 12:04:05+09:00  PASS
        ------------------------------------------------------------------------------------------------------------
        5 run(s), TOTAL COST: ≥ $0.0300 (1 unknown) (1 rehearsed run(s) not counted)
        5 of 5 run(s) shown; 1 in flight, 0 abandoned; 0 skipped
        ");
    }

    #[test]
    fn a_run_whose_process_is_gone_is_abandoned_and_hinted_at() {
        let listing = Listing::read(&house().home, free).expect("read");
        let text = listing.print(Look::default(), &TimeZone::UTC);
        assert!(text.contains("; 0 in flight, 1 abandoned; 0 skipped\n"), "{text}");
        assert!(text.contains("\n\nrun 20260102-030407.000000001-1 lost its process: omg resume "), "{text}");
    }

    #[test]
    fn d8_damage_in_one_run_hides_no_other() {
        let house = house();
        house.run("20260103-000000.000000001-1", STARTED, Some(""));
        house.run("20260103-000000.000000002-1", STARTED, Some(r#"{"schema":3,"run_id":"#));
        house.run(
            "20260103-000000.000000003-1",
            STARTED,
            Some(&state("").replace("\"schema\":3", "\"schema\":99")),
        );
        let cut = house.run("20260103-000000.000000004-1", "", None);
        std::fs::write(
            cut.feed(),
            format!("{}\n{{\"schema\":3,\"ev", STARTED.replacen('{', "{\"schema\":3,", 1)),
        )
        .expect("written");
        house.dir("junk");
        std::fs::write(house.beside("note.txt"), "x").expect("written");
        std::fs::write(house.beside(".DS_Store"), "x").expect("written");
        std::os::unix::fs::symlink("nowhere", house.beside("20260103-000000.000000005-1")).expect("a link");
        let listing = Listing::read(&house.home, held).expect("read");
        assert_eq!(
            listing.coverage(),
            "6 of 12 run(s) shown; 2 in flight, 0 abandoned; 6 skipped (2 unreadable run files, 1 written by an \
             incompatible snapshot schema, 3 not a run directory); --show-skipped names them"
        );
        let named = listing.print_skipped(Look::default());
        assert_eq!(named.lines().count(), 6);
        assert!(
            named.contains(r#"warning: "20260103-000000.000000001-1": unreadable run files: "#),
            "{named}"
        );
        assert!(named.contains("schema 99"), "{named}");
    }

    #[test]
    fn the_index_changes_no_word() {
        let house = house();
        house.run("20260102-030410.000000001-1", STARTED, Some(""));
        let read = || {
            let listing = Listing::read(&house.home, held).expect("read");
            listing.print(Look::default(), &TimeZone::UTC)
                + &listing.json()
                + &listing.print_skipped(Look::default())
        };
        let index = house.home.cache().join("runs");
        let without = read();
        let bytes = std::fs::read(&index).expect("an index");
        assert_eq!(read(), without, "with it");
        assert_eq!(std::fs::read(&index).expect("an index"), bytes, "nothing was new");
        for damage in [&b""[..], b"{}\n{}", &bytes[..bytes.len() / 2]] {
            std::fs::write(&index, damage).expect("written");
            assert_eq!(read(), without, "damaged");
            assert_eq!(std::fs::read(&index).expect("an index"), bytes, "made anew");
        }
    }

    #[test]
    fn a_run_that_went_on_is_read_again() {
        let house = house();
        let id = "20260102-030405.000000001-1";
        let status = || {
            let listing = Listing::read(&house.home, held).expect("read");
            listing.runs.iter().find(|run| run.id.as_str() == id).and_then(|run| run.status)
        };
        assert_eq!((status(), status()), (Some(Status::Pass), Some(Status::Pass)));
        let whole = state(&both(&passed("a"), &passed("b")).replace('\n', ","));
        house.run(id, &format!("{STARTED}\n{DONE}\n{STARTED}"), Some(&whole));
        assert_eq!((status(), status()), (Some(Status::Running), Some(Status::Running)));
    }

    #[test]
    fn an_empty_home_says_so() {
        let listing = Listing::read(&House::new().home, held).expect("read");
        assert_eq!(listing.print(Look::default(), &TimeZone::UTC), "no runs yet\n");
    }

    #[test]
    fn the_json_shape_is_numbered_and_carries_no_screen_words() {
        let listing = Listing::read(&house().home, held).expect("read");
        let json: serde_json::Value = serde_json::from_str(&listing.json()).expect("JSON");
        assert_eq!(json["schema"], 1);
        assert_eq!(json["runs"][4]["status"], "PASS");
        assert_eq!(json["runs"][4]["cost_usd"], 0.02);
        assert_eq!(json["runs"][3]["rehearsal"], true);
        assert_eq!(json["runs"][2]["in_flight"], true);
        assert_eq!(json["runs"][1]["cost_unknown"], true);
        assert_eq!(json["runs"][0]["status"], serde_json::Value::Null);
        assert_eq!(json["total"]["unknown_charges"], 1);
    }
}
