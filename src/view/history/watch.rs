//! `watch RUN`: the feed of a run as it grows (FACTS 1.18, DECISIONS 28).
//!
//! It ends at the last `run_finished` on disk, unless somebody holds the lock and so may write more. Lines that do
//! not decode or that a newer version wrote are warned of and passed over. Writes to what it is handed.

use std::io::{self, Write};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::process::signals::Stop;
use crate::record::legs::Legs;
use crate::record::lock::Probe;
use crate::record::status::Status;
use crate::record::stream::{Follow, Line, StreamError, Word};
use crate::record::{RunDir, RunId};
use crate::text::sanitize;
use crate::view::history::{Prober, Run, hint};
use crate::view::term::feed_lines;
use crate::view::term::style::{self, Look};

/// How often the feed is looked at.
const POLL: Duration = Duration::from_millis(200);

/// What is watched for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Waits for later legs when the run has ended.
    pub follow: bool,
    /// Copies the feed's own lines instead of words.
    pub json: bool,
}

/// How watching ended.
#[derive(Debug)]
pub enum Ended {
    /// The run did, and this is how it stands.
    Finished(Option<Status>),
    /// The person had seen enough, and this is how they said so.
    Interrupted(Option<Stop>),
}

/// Why watching broke off.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is a snapshot but nothing to watch.
    #[error("run {run} has no event stream")]
    NoFeed {
        /// The run.
        run: String,
    },
    /// The run died before its first event.
    #[error("run {run} has said nothing, and its process is gone")]
    Silent {
        /// The run.
        run: String,
    },
    /// The run's process is gone, and nobody else will write more.
    #[error("run {run} is ABANDONED: its process is gone")]
    Abandoned {
        /// The run.
        run: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The feed could not be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The output is gone.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// A run being watched.
pub struct Watch<'a> {
    /// The run.
    pub id: &'a RunId,
    /// Its directory.
    pub dir: &'a RunDir,
    /// How its lock is looked at.
    pub probe: Prober,
    /// What is watched for.
    pub options: Options,
    /// How `out` wants to be written to.
    pub look: Look,
}

impl Watch<'_> {
    /// Watches until the run ends or `stop` says so.
    pub fn run(
        &self,
        out: &mut dyn Write,
        err: &mut dyn Write,
        stop: &Receiver<Stop>,
    ) -> Result<Ended, WatchError> {
        if !self.dir.feed().exists() && self.dir.snapshot().exists() {
            return Err(WatchError::NoFeed { run: self.id.to_string() });
        }
        self.greet(out, err)?;
        let mut follow = Follow::new(&self.dir.feed(), 0);
        let mut legs = Legs::default();
        loop {
            while self.catch_up(&mut follow, &mut legs, out, err)? > 0 {}
            if !self.options.follow {
                // A writer that ended between the last look and the probe has left its last lines by now.
                let live = (self.probe)(self.dir);
                if self.is_over(&legs, live) && self.catch_up(&mut follow, &mut legs, out, err)? == 0 {
                    return self.farewell(&legs);
                }
            }
            match stop.recv_timeout(POLL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(signal) => return Ok(Ended::Interrupted(Some(signal))),
                Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Interrupted(None)),
            }
        }
    }

    fn greet(&self, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
        match Run::read(self.id.clone(), self.dir, self.probe) {
            Err(error) => {
                let told = sanitize::one_line(&error.to_string()).into_owned();
                self.warn(err, &format!("the status of run {} is not known: {told}", self.id))
            }
            Ok(Run { status: Some(status), .. }) if !self.options.json => {
                let word = self.look.paint(style::of_status(status), status.as_str());
                let in_flight = usize::from(status.is_in_flight());
                writeln!(out, "run {} is {word}; {in_flight} in flight.", self.id)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Prints what was appended, and says how many lines that was.
    fn catch_up(
        &self,
        follow: &mut Follow,
        legs: &mut Legs,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<usize, WatchError> {
        let mut printed = Ok(());
        let mut newer_seen = false;
        let lines = follow.poll(&mut |line| {
            if printed.is_ok() {
                printed = self.line(&line, legs, &mut newer_seen, out, err);
            }
        })?;
        printed?;
        out.flush()?;
        Ok(lines)
    }

    fn line(
        &self,
        line: &Line<'_>,
        legs: &mut Legs,
        newer_seen: &mut bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<()> {
        if self.options.json {
            out.write_all(line.raw)?;
            out.write_all(b"\n")?;
        }
        let word = line.word();
        match &word {
            Word::Damaged => {
                return self.warn(err, &format!("the line at byte {} does not decode", line.offset));
            }
            Word::Newer(schema, _) if !*newer_seen => {
                *newer_seen = true;
                let told = "a newer omg wrote this; what it means may not be shown";
                self.warn(err, &format!("event schema {schema}: {told}"))?;
            }
            Word::Newer(..) | Word::Event(_) => {}
        }
        if let Word::Event(event) | Word::Newer(_, Some(event)) = &word {
            legs.take(event);
            if !self.options.json {
                writeln!(out, "{}", feed_lines::watch_line(event, self.look))?;
            }
        }
        Ok(())
    }

    /// Whether no more lines will come.
    fn is_over(&self, legs: &Legs, live: Probe) -> bool {
        match live {
            Probe::Held => false,
            Probe::Free => true,
            // A lock that cannot be asked leaves the feed's own word.
            Probe::Unknown => legs.spoken && !legs.open,
        }
    }

    fn farewell(&self, legs: &Legs) -> Result<Ended, WatchError> {
        let run = Run::read(self.id.clone(), self.dir, self.probe);
        if legs.open {
            let hint = run.ok().as_ref().and_then(hint);
            return Err(WatchError::Abandoned { run: self.id.to_string(), hint });
        }
        if !legs.spoken {
            return Err(WatchError::Silent { run: self.id.to_string() });
        }
        Ok(Ended::Finished(run.ok().and_then(|run| run.status)))
    }

    fn warn(&self, err: &mut dyn Write, text: &str) -> io::Result<()> {
        writeln!(err, "warning: {text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::{House, free, held, passed, state};

    const ID: &str = "20260102-030405.000000001-1";

    struct Seen {
        out: String,
        err: String,
        ended: Result<Ended, WatchError>,
    }

    fn watch(dir: &RunDir, probe: Prober, options: Options, stop: &Receiver<Stop>) -> Seen {
        let id = RunId::parse(ID).expect("an id");
        let watch = Watch { id: &id, dir, probe, options, look: Look::default() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let ended = watch.run(&mut out, &mut err, stop);
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Seen { out: text(out), err: text(err), ended }
    }

    const TWO_LEGS: &str = r#"{"event":"run_started"}
        {"event":"node_started","node_id":"a"}
        {"event":"node_passed","node_id":"a","cost_usd":0.01}
        {"event":"node_failed","node_id":"b","detail":"exit 1"}
        {"event":"run_finished","outcome":"failed"}
        {"event":"run_started"}
        {"event":"node_passed","node_id":"b","cost_usd":0.02}
        {"event":"run_finished","outcome":"passed"}"#;

    #[test]
    fn both_legs_of_a_resumed_run_are_replayed() {
        let house = House::new();
        let both = [passed("a"), passed("b")].join(",");
        let dir = house.run(ID, TWO_LEGS, Some(&state(&both)));
        let seen = watch(&dir, free, Options::default(), &crossbeam_channel::never());
        assert!(matches!(seen.ended, Ok(Ended::Finished(Some(Status::Pass)))), "{:?}", seen.ended);
        insta::assert_snapshot!(seen.out, @"
        run 20260102-030405.000000001-1 is PASS; 0 in flight.
        ▶ run started
        ▶ a  running…
        ✓ a  PASS  $0.0100
        ✗ b  FAILED: exit 1
        ■ run finished: failed
        ▶ run started
        ✓ b  PASS  $0.0200
        ■ run finished: passed
        ");
        assert_eq!(seen.err, "");
    }

    #[test]
    fn json_copies_the_feeds_own_lines() {
        let house = House::new();
        let dir = house.run(ID, TWO_LEGS, None);
        let options = Options { json: true, ..Options::default() };
        let seen = watch(&dir, free, options, &crossbeam_channel::never());
        assert_eq!(seen.out, std::fs::read_to_string(dir.feed()).expect("read"));
    }

    #[test]
    fn a_leg_whose_process_is_gone_is_an_error_with_a_hint() {
        let house = House::new();
        let dir = house.run(ID, r#"{"event":"run_started"}"#, Some(&state("")));
        let seen = watch(&dir, free, Options::default(), &crossbeam_channel::never());
        let Err(WatchError::Abandoned { hint: Some(hint), .. }) = seen.ended else {
            panic!("{:?}", seen.ended)
        };
        assert!(
            hint.contains(&format!("omg resume {ID} --retry-failed"))
                && seen.out.starts_with(&format!("run {ID} is ABANDONED;"))
        );
    }

    #[test]
    fn a_held_lock_or_a_wish_for_more_keeps_it_watching_until_it_is_stopped() {
        let house = House::new();
        let dir = house.run(ID, TWO_LEGS, None);
        let (send, stop) = crossbeam_channel::bounded(2);
        for (probe, follow) in [(held as Prober, false), (free, true)] {
            send.send(Stop::Interrupt).expect("there is room");
            let seen = watch(&dir, probe, Options { follow, json: false }, &stop);
            assert!(matches!(seen.ended, Ok(Ended::Interrupted(_))), "{:?}", seen.ended);
            assert!(seen.out.ends_with("■ run finished: passed\n"), "{}", seen.out);
        }
    }

    #[test]
    fn d9_damage_and_newer_lines_are_warned_of_and_passed_over() {
        let house = House::new();
        let dir = house.dir(ID);
        let feed = "{\"schema\":3,\"event\":\"run_started\"}\n{\"sch\n{\"schema\":9,\"event\":\"node_danced\",\"node_id\":\"a\"}\n{\"schema\":9,\"event\":7}\n{\"schema\":3,\"event\":\"run_finished\",\"outcome\":\"passed\"}\n";
        std::fs::write(dir.feed(), feed).expect("written");
        let seen = watch(&dir, free, Options::default(), &crossbeam_channel::never());
        assert_eq!(seen.out, "▶ run started\n• a  node_danced\n■ run finished: passed\n");
        assert_eq!(seen.err.matches("warning: ").count(), 3, "{}", seen.err);
        assert!(seen.err.contains("byte 35") && seen.err.contains("event schema 9"), "{}", seen.err);
    }

    #[test]
    fn a_run_that_died_before_its_first_word_is_not_waited_for() {
        let house = House::new();
        let dir = house.dir(ID);
        std::fs::write(dir.lock(), "").expect("written");
        let seen = watch(&dir, free, Options::default(), &crossbeam_channel::never());
        assert!(matches!(seen.ended, Err(WatchError::Silent { .. })), "{:?}", seen.ended);
    }

    #[test]
    fn a_run_with_a_snapshot_only_has_nothing_to_watch() {
        let house = House::new();
        let dir = house.dir(ID);
        std::fs::write(dir.snapshot(), state("")).expect("written");
        let seen = watch(&dir, free, Options::default(), &crossbeam_channel::never());
        assert!(matches!(seen.ended, Err(WatchError::NoFeed { .. })));
    }
}
