//! The conductor: carries out what the [`machine`](crate::schedule::machine) decides.
//!
//! One thread owns all scheduling state, so no lock guards it (`ARCHITECTURE` 4). Its loop:
//!
//! 1. wait for a result or a signal, then take every result that is already there;
//! 2. tell the machine, and end what runs if it says so;
//! 3. fill the free slots from the machine;
//! 4. make the ends and the starts durable, in one append and one sync (`ARCHITECTURE` 5.2);
//! 5. hand the starts to workers, and the ends to the snapshot's writer (before them where that is asked for).
//!
//! A leg with patience for it waits out a spent limit between two turns.
//! A snapshot that fails is a warning. A feed that fails ends the run: what it cannot announce it does not start, what runs
//! goes on to its end, and the ends that it could not append are appended with the next call that can.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, after, never, select};

use crate::clock::SharedClock;
use crate::graph::NodeId;
use crate::process::signals::Stop;
use crate::record::observe::{Notice, Observer};
use crate::record::{Event, Feed, Record, SnapshotWriter, artifact};
use crate::schedule::halt::{Halt, Reason};
use crate::schedule::machine::{self, Action, Blame, Closing, Ending, Machine, UnitIx};
use crate::schedule::permits::{Permit, Permits};
use crate::schedule::waits::{Waits, positive};
use crate::schedule::work::Workload;
use crate::schedule::worker::{Done, Pool};
use crate::text::duration;
use crate::text::money::Cost;

/// How often the time of day is looked at during a wait.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A warning names so many nodes.
const NAMED_MAX: usize = 10;

/// What the conductor works with.
pub struct Services {
    /// Where transitions go.
    pub feed: Arc<Feed>,
    /// Where records go.
    pub snapshot: Arc<SnapshotWriter>,
    /// Who hears warnings.
    pub observer: Arc<dyn Observer>,
    /// What ends children.
    pub halt: Arc<Halt>,
    /// Signals to the engine.
    pub signals: Receiver<Stop>,
    /// Ends every child at once, for a second signal.
    pub kill_all: Box<dyn Fn() + Send>,
    /// How long the leg may start new work.
    pub wall: Option<Duration>,
    /// How long the leg may wait for a spent limit to be lifted.
    pub patience: Option<Duration>,
    /// The time of day, which limits are told in.
    pub clock: SharedClock,
}

/// How a schedule came to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Conducted {
    /// Everything that ran has settled.
    Closed {
        /// Outcome and skipped units.
        closing: Closing,
        /// The signal that stopped the run, if one did.
        signal: Option<Stop>,
        /// Why the run could not be recorded any more, if that is so.
        unrecorded: Option<String>,
    },
    /// A second signal: everything was killed and nothing more is recorded.
    Abandoned {
        /// The first signal, which names the exit code.
        signal: Stop,
    },
}

/// Runs `machine` to its end over `slots` slots.
pub fn conduct<W: Workload>(work: &Arc<W>, machine: Machine, slots: usize, services: Services) -> Conducted {
    let time_is_up = services.wall.map_or_else(never, after);
    let conductor = Conductor {
        work: Arc::clone(work),
        machine,
        permits: Permits::new(slots),
        pool: Pool::new(Arc::clone(work)),
        waits: Waits::new(services.patience),
        services,
        signal: None,
        unrecorded: None,
        time_is_up,
    };
    conductor.run()
}

struct Conductor<W: Workload> {
    work: Arc<W>,
    machine: Machine,
    permits: Permits,
    pool: Pool<W>,
    waits: Waits,
    services: Services,
    signal: Option<Stop>,
    unrecorded: Option<String>,
    /// Speaks up when the leg's time is over.
    time_is_up: Receiver<Instant>,
}

/// A unit on its way to a worker, with its slot.
type Start<T> = (UnitIx, T, Permit);

/// What happened while the conductor waited.
enum Woken {
    Done(Vec<Done>),
    Signal(Stop),
    OutOfTime,
}

impl<W: Workload> Conductor<W> {
    fn run(mut self) -> Conducted {
        let mut woken = self.signalled().unwrap_or(Woken::Done(Vec::new()));
        loop {
            match woken {
                Woken::Done(done) => self.turn(done),
                Woken::OutOfTime => {
                    self.machine.step(machine::Event::OutOfTime);
                }
                Woken::Signal(signal) => {
                    if let Some(first) = self.signal {
                        (self.services.kill_all)();
                        return Conducted::Abandoned { signal: first };
                    }
                    self.signal = Some(signal);
                    self.answer(signal);
                    let action = self.machine.step(machine::Event::Stop);
                    self.obey(action);
                }
            }
            woken = match self.machine.is_done() {
                false => self.wait(),
                true if self.machine.waits_for_limit() => match self.wait_for_limit() {
                    Some(woken) => woken,
                    None => break,
                },
                true => break,
            };
        }
        self.pool.join();
        // One that came while the last unit settled stopped nothing, and is told all the same.
        let signal = self.signal.or_else(|| self.services.signals.try_recv().ok());
        Conducted::Closed { closing: self.machine.close(), signal, unrecorded: self.unrecorded }
    }

    /// A signal that is there already. It goes before everything else, so that nothing is started after it.
    fn signalled(&self) -> Option<Woken> {
        self.services.signals.try_recv().ok().map(Woken::Signal)
    }

    /// Waits until the limit is lifted, if there is patience for it; `None` when there is not. Nothing is started and
    /// nobody is asked. The time of day is looked at again and again, since clocks are set and machines sleep.
    fn wait_for_limit(&mut self) -> Option<Woken> {
        let (now, begun) = (self.services.clock.now(), Instant::now());
        let wait = self.waits.next(self.work.limit_lifts(), now)?;
        let until = now.checked_add(wait).ok()?;
        if !self.commit(&self.work.wait_begins(until), &[]) {
            return None;
        }
        let message = format!("waiting for the usage limit, about {}", duration::format(wait));
        self.services.observer.notice(Notice::Warning { node: None, message });
        while let Some(left) = positive(until.duration_since(self.services.clock.now())) {
            if self.waits.are_out_of_patience(begun.elapsed()) {
                return None;
            }
            select! {
                recv(self.services.signals) -> signal => match signal {
                    Ok(signal) => return Some(Woken::Signal(signal)),
                    Err(_) => self.services.signals = never(),
                },
                recv(self.time_is_up) -> _ => {
                    self.time_is_up = never();
                    return Some(Woken::OutOfTime);
                }
                default(left.min(LOOK_AGAIN)) => {}
            }
        }
        self.waits.took(begun.elapsed());
        self.work.wait_ended();
        self.machine.step(machine::Event::Refilled);
        Some(Woken::Done(Vec::new()))
    }

    fn wait(&mut self) -> Woken {
        if let Some(woken) = self.signalled() {
            return woken;
        }
        loop {
            select! {
                recv(self.pool.results()) -> done => {
                    let first = done.expect("the pool holds a sender as long as it lives");
                    return Woken::Done(std::iter::once(first).chain(self.pool.results().try_iter()).collect());
                }
                recv(self.time_is_up) -> _ => {
                    self.time_is_up = never();
                    return Woken::OutOfTime;
                }
                recv(self.services.signals) -> signal => match signal {
                    Ok(signal) => return Woken::Signal(signal),
                    // Nobody sends signals any more, as in a test.
                    Err(_) => self.services.signals = never(),
                }
            }
        }
    }

    /// One turn of the loop: what settled, what starts in its place, one commit for both.
    fn turn(&mut self, settled: Vec<Done>) {
        let mut events: Vec<Event> = Vec::with_capacity(settled.len() * 2);
        let mut records: Vec<(NodeId, Record)> = Vec::with_capacity(settled.len());
        for Done { unit, settled, permit } in settled {
            self.pool.took();
            if settled.ending == Ending::Passed && settled.bill.cost != Cost::ZERO {
                self.waits.ended();
            }
            let action = self.machine.step(machine::Event::Settled(unit, settled.ending, settled.bill));
            let (last, record) = match (action, settled.again) {
                (Some(Action::Fire { .. }), Some(again)) => (again.events, Some(again.record)),
                _ => (settled.events, settled.record),
            };
            self.obey(action);
            events.extend(last);
            records.extend(record.map(|record| (self.work.name(unit).clone(), record)));
            drop(permit);
        }
        let (starts, announced) = self.fill();
        let recorded = self.commit(&events, &announced);
        let starts = if recorded { starts } else { self.take_back(starts) };
        // Whoever is woken first runs first: a node, unless its start waits for the snapshot.
        if self.services.snapshot.is_strict() {
            self.hand_over(&records);
            self.submit(starts);
        } else {
            self.submit(starts);
            self.hand_over(&records);
        }
        if !(events.is_empty() && announced.is_empty()) {
            self.services.observer.notice(Notice::Fed);
        }
    }

    fn submit(&mut self, starts: Vec<Start<W::Ticket>>) {
        for (unit, ticket, permit) in starts {
            self.pool.submit(unit, ticket, permit);
        }
    }

    /// A person who asked for the end and sees nothing happen should know that it was heard.
    fn answer(&self, signal: Stop) {
        let message = format!("{}: ending what runs; a second signal kills it at once", signal.name());
        self.services.observer.notice(Notice::Warning { node: None, message });
    }

    fn obey(&self, action: Option<Action>) {
        let Some(Action::Cancel(blame)) = action else { return };
        let reason = match (blame, self.signal) {
            (Blame::Stop, Some(signal)) => Reason::Signal(signal),
            (Blame::Halt(unit) | Blame::Ancestor(unit) | Blame::Rejected(unit), _) => {
                Reason::Failure(self.work.name(unit).clone())
            }
            (Blame::Stop, None) | (Blame::Unrecorded, _) => return,
        };
        self.services.halt.fire(reason);
    }

    fn fill(&mut self) -> (Vec<Start<W::Ticket>>, Vec<Event>) {
        let (mut starts, mut events) = (Vec::new(), Vec::new());
        while let Some(permit) = self.permits.try_take() {
            let Some(Action::Start(unit)) = self.machine.step(machine::Event::SlotFree) else { break };
            let (ticket, event) = self.work.launch(unit, self.machine.round(unit));
            events.extend(event);
            starts.push((unit, ticket, permit));
        }
        (starts, events)
    }

    /// What cannot be made durable does not happen: a start is a promise to say what became of it (`ARCHITECTURE` 5.1).
    fn take_back(&mut self, starts: Vec<Start<W::Ticket>>) -> Vec<Start<W::Ticket>> {
        for (unit, ..) in starts.into_iter().rev() {
            self.machine.step(machine::Event::NotStarted(unit));
        }
        Vec::new()
    }

    /// Makes `ends` and `starts` durable; `false` when that failed, and the run therefore comes to its end.
    fn commit(&mut self, ends: &[Event], starts: &[Event]) -> bool {
        let Err(error) = self.services.feed.settle(ends, starts) else { return true };
        self.warn(ends, starts, &error.to_string());
        for end in ends.iter().filter(|end| !end.artifact_text.is_empty()) {
            // What the line does not carry after all has to be on the disk; a second fault of it adds nothing.
            artifact::sync(Path::new(&end.artifact_path)).ok();
        }
        self.unrecorded.get_or_insert(error.to_string());
        self.machine.step(machine::Event::Unrecorded);
        false
    }

    fn hand_over(&self, records: &[(NodeId, Record)]) {
        if !records.is_empty() {
            self.services.snapshot.record_all(records.iter().map(|(node, record)| (node, record)));
        }
    }

    fn warn(&self, ends: &[Event], starts: &[Event], error: &str) {
        let message = match (names(ends), names(starts)) {
            (ended, None) => format!("the feed lacks the end of {}: {error}", ended.unwrap_or_default()),
            (None, Some(held)) => format!("{held} is not started, since that cannot be recorded: {error}"),
            (Some(ended), Some(held)) => {
                format!("the feed lacks the end of {ended}, and {held} is not started: {error}")
            }
        };
        self.services.observer.notice(Notice::Warning { node: None, message });
    }
}

/// The nodes that `events` are about, with a bound on how many of them; `None` when it is none.
fn names(events: &[Event]) -> Option<String> {
    let mut nodes: Vec<&str> = events.iter().map(|event| event.node_id.as_str()).collect();
    nodes.dedup();
    let more = if nodes.len() > NAMED_MAX { " and others" } else { "" };
    (!nodes.is_empty()).then(|| nodes[..nodes.len().min(NAMED_MAX)].join(", ") + more)
}
