//! Driving an open leg to its close: the schedule, the last snapshot, `run_finished`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crossbeam_channel::Receiver;
use jiff::Timestamp;

use crate::clock::rfc3339;
use crate::graph::{Graph, NodeId, NodeIx, OnFail};
use crate::leg::open::{Leg, gate_state};
use crate::leg::to_come::ToCome;
use crate::node::Lanes;
use crate::node::runtime::rehearsal::lanes::RehearsedLanes;
use crate::node::worktree::GitLanes;
use crate::process::signals::Stop;
use crate::record::Usage;
use crate::record::event::{self, SKIPPED_MAX, SkipWhy, Skipped};
use crate::record::lock::LegLock;
use crate::record::observe::Notice;
use crate::record::{Event, EventKind, Scribe, SnapshotError};
use crate::schedule::engine::{Conducted, Services, conduct};
use crate::schedule::machine::{Blame, Cap, Closing, Machine, Outcome, Short};
use crate::schedule::nodes::GraphWork;
use crate::schedule::work::Workload as _;
use crate::text::money::Cost;
use crate::text::sanitize::cap_detail;

/// How a leg ended.
#[derive(Debug)]
pub struct Finished {
    /// What came of it.
    pub ending: Ending,
    /// What was left running on purpose, by node.
    pub left_running: Vec<(NodeId, u32)>,
    /// What was kept of worktrees, and what to type, a line each.
    pub notes: Vec<String>,
    /// The signal that came, if one did, until the leg was closed and tidied.
    pub signal: Option<Stop>,
    /// Whether something was paid for that the feed may not tell of.
    pub lacks_charges: bool,
    /// The lock of the run, for a command that has more to do with the run before another leg or a person may.
    pub lock: Option<LegLock>,
}

/// What came of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every node passed.
    Passed,
    /// Nodes failed; the first in file order, or the one that halted the run.
    Failed {
        /// The node that halted the run, if one did.
        halted: Option<NodeId>,
        /// All that failed by themselves, in file order.
        failed: Vec<NodeId>,
    },
    /// It can go on later.
    Paused(Paused),
    /// A signal ended it.
    Stopped(Stop),
    /// It could not be recorded, as on a full disk.
    Unrecorded {
        /// What the system said.
        why: String,
        /// Whether every node had passed.
        passed: bool,
    },
    /// A second signal: nothing after it was recorded.
    Abandoned(Stop),
}

/// What a paused run waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paused {
    /// Gates that wait for a person, in file order.
    pub gates: Vec<NodeId>,
    /// Nodes that a spent limit held back, in file order.
    pub limited: Vec<NodeId>,
    /// The CLI's words on the limit.
    pub limit: Option<String>,
    /// When it is lifted, as far as anybody understood them.
    pub lifts: Option<Timestamp>,
    /// The bound that was reached.
    pub cap: Option<Cap>,
    /// What it left no room for: the node, and what that takes.
    pub short: Option<(NodeId, Short)>,
}

impl Paused {
    /// Why, in the feed's words: nothing for gates, which have events of their own.
    fn reason(&self) -> String {
        let limit = self.limit.as_ref().map(|words| {
            let nodes: Vec<&str> = self.limited.iter().map(NodeId::as_str).collect();
            format!("{}: {words}", nodes.join(", "))
        });
        limit.into_iter().chain(self.bound()).collect::<Vec<_>>().join("; ")
    }
}

impl Paused {
    /// Which bound was reached, and what it left no room for.
    pub fn bound(&self) -> Option<String> {
        let cap = self.cap?;
        let Some((node, short)) = &self.short else {
            return Some(format!("the run's bound on {} is reached", cap.words()));
        };
        let takes = match (short.cap, short.may_spend.is_zero()) {
            (Cap::Spend, true) => format!("{} are spent", short.spent),
            (Cap::Spend, false) => {
                format!("that may spend {}, and {} are spent", short.may_spend, short.spent)
            }
            _ => format!(
                "that may take {} with its retries, and there were {}",
                short.executions, short.executed
            ),
        };
        Some(format!("the run's bound on {} leaves no room for {node}: {takes}", cap.words()))
    }
}

impl Leg {
    /// Closes the leg as failed without having run anything.
    pub fn give_up(self) {
        let last = Event { outcome: "failed".to_owned(), ..Event::new(EventKind::RunFinished) };
        if let Err(error) = self.feed.append(&[last]) {
            self.observer.notice(Notice::Warning { node: None, message: error.to_string() });
        }
        self.observer.notice(Notice::Fed);
        self.feed.close();
        self.order.launcher.dismiss_guard();
    }

    /// Runs the schedule to its end and closes the leg.
    pub fn drive(self, signals: Receiver<Stop>) -> Finished {
        let lanes = self.lanes().map(Arc::new);
        let (work, slots) = (Arc::new(self.work(lanes.clone())), self.order.slots);
        let mut notes = Vec::new();
        let plan = GraphWork::plan(&self.order.graph, self.on_fail(), self.order.bounds);
        let machine = Machine::new(plan, &self.order.inherited.before);
        let conducted = conduct(&work, machine, slots, self.services(signals.clone()));
        let mut came = None;
        let ending = match conducted {
            Conducted::Abandoned { signal } => Ending::Abandoned(signal),
            Conducted::Closed { closing, signal, unrecorded } => {
                self.order.launcher.sweep();
                self.order.runtime.close();
                work.scribe.flush();
                came = signal;
                let ending = self.ending(&work, &closing.outcome, signal, unrecorded);
                let ending = self.close(&work, &closing, ending, signal, &mut notes);
                // After the last word of the feed: a removal that is cut short must not make an abandoned run of it.
                let passed = closing.outcome == Outcome::Passed;
                notes.extend(lanes.map(|lanes| self.tidy(&lanes, passed)).unwrap_or_default());
                self.order.launcher.dismiss_guard();
                ending
            }
        };
        let left = std::mem::take(&mut *work.left_running.lock().unwrap_or_else(PoisonError::into_inner));
        let signal = came.or_else(|| signals.try_recv().ok());
        let lacks_charges = self.feed.lacks_charges();
        Finished { ending, left_running: left, notes, signal, lacks_charges, lock: Some(self.lock) }
    }

    fn tidy(&self, lanes: &GitLanes, passed: bool) -> Vec<String> {
        let to_come = match passed {
            true => ToCome::These(BTreeSet::new()),
            false => ToCome::of(&self.order.graph, &self.dir),
        };
        lanes.tidy(&|name| to_come.holds(name))
    }

    fn lanes(&self) -> Option<GitLanes> {
        let (git, order) = (self.order.git.clone()?, &self.order);
        Some(GitLanes::new(git, &order.base, self.dir.worktrees(), self.run.as_str()))
    }

    /// A rehearsal makes no worktree, and still sets up those that there would be.
    fn rehearsed_lanes(&self) -> Option<Arc<dyn Lanes>> {
        let order = &self.order;
        let lanes = || Arc::new(RehearsedLanes::new(&order.base)) as _;
        (order.rehearsal.is_some() && order.graph.has_lanes()).then(lanes)
    }

    fn work(&self, lanes: Option<Arc<GitLanes>>) -> GraphWork {
        let order = &self.order;
        GraphWork {
            graph: Arc::clone(&order.graph),
            inputs: order.inputs.clone(),
            run_dir: self.dir.clone(),
            base: order.base.clone(),
            leg: order.inherited.leg,
            default_mode: order.default_mode,
            ceiling: order.planned.as_ref().map(|planned| planned.ceiling.clone()),
            verify_turn: order.planned.as_ref().map(|_| Mutex::default()),
            runtime: Arc::clone(&order.runtime),
            shell: Arc::clone(&order.shell),
            lanes: lanes.map(|lanes| lanes as _).or_else(|| self.rehearsed_lanes()),
            clock: Arc::clone(&self.clock),
            feed: Arc::clone(&self.feed),
            scribe: Scribe::start(self.dir.clone(), Arc::clone(&self.observer)),
            observer: Arc::clone(&self.observer),
            halt: Arc::clone(&self.halt),
            rehearsal: order.rehearsal.is_some(),
            handed: RwLock::new(order.inherited.handed.clone()),
            rounds_seen: Mutex::default(),
            payloads: RwLock::new(order.inherited.payloads.clone()),
            carried: Mutex::new(order.inherited.carried.clone()),
            replies: order.inherited.replies.clone(),
            limited: Mutex::default(),
            decisions: order.inherited.decisions.clone(),
            left_running: Mutex::default(),
        }
    }

    /// Either says continue: then it is continue (DESIGN "Execution engine" step 4).
    fn on_fail(&self) -> OnFail {
        if self.order.continue_on_fail { OnFail::Continue } else { self.order.graph.on_fail }
    }

    fn services(&self, signals: Receiver<Stop>) -> Services {
        let launcher = Arc::clone(&self.order.launcher);
        Services {
            feed: Arc::clone(&self.feed),
            snapshot: Arc::clone(&self.snapshot),
            observer: Arc::clone(&self.observer),
            halt: Arc::clone(&self.halt),
            signals,
            kill_all: Box::new(move || launcher.kill_all()),
            wall: self.order.bounds.wall,
            patience: self.order.patience,
            clock: Arc::clone(&self.clock),
        }
    }

    /// The snapshot is complete before the feed says that the leg is over (`ARCHITECTURE` 5.3). An end that cannot be
    /// recorded is not the end that it would have been: a pass or a pause that is not on disk would be a lie (5.5).
    fn close(
        &self,
        work: &GraphWork,
        closing: &Closing,
        ending: Ending,
        signal: Option<Stop>,
        notes: &mut Vec<String>,
    ) -> Ending {
        let skipped = skipped(&self.order.graph, closing, signal);
        let mut event = Event {
            skipped_count: u32::try_from(skipped.len()).unwrap_or(u32::MAX),
            skipped: skipped.iter().take(SKIPPED_MAX).cloned().collect(),
            ..Event::new(EventKind::RunFinished)
        };
        let written = self.write_last(work, &ending, skipped);
        let ending = or_unrecorded(ending, written.as_ref().err());
        match &ending {
            Ending::Passed => "passed".clone_into(&mut event.outcome),
            Ending::Paused(pause) => {
                "paused".clone_into(&mut event.outcome);
                event.detail = cap_detail(&pause.reason());
                event.held_until = pause.lifts.map(rfc3339).unwrap_or_default();
            }
            Ending::Unrecorded { why, .. } => {
                "failed".clone_into(&mut event.outcome);
                event.detail = cap_detail(&format!("it could not be recorded: {why}"));
            }
            Ending::Failed { .. } | Ending::Stopped(_) | Ending::Abandoned(_) => {
                "failed".clone_into(&mut event.outcome);
            }
        }
        charge_held(&mut event, work);
        let told = self.feed.settle(&[event], &[]);
        self.observer.notice(Notice::Fed);
        self.feed.close();
        let told: Vec<String> = written
            .err()
            .map(|error| error.to_string())
            .into_iter()
            .chain(told.as_ref().err().map(ToString::to_string))
            .collect();
        let ending = or_unrecorded(ending, told.first());
        if !told.is_empty() && !matches!(ending, Ending::Unrecorded { .. }) {
            notes.push(format!(
                "the run is not recorded whole: {}; omg resume {} --retry-failed makes good for it",
                told.join("; "),
                self.run
            ));
        }
        ending
    }

    fn write_last(
        &self,
        work: &GraphWork,
        ending: &Ending,
        skipped: Vec<Skipped>,
    ) -> Result<(), SnapshotError> {
        if let Ending::Paused(pause) = ending {
            self.snapshot.set_gate(gate_state(&work.decisions, &pause.gates));
            return self.snapshot.flush();
        }
        if !skipped.is_empty() {
            self.snapshot.set_skipped(skipped);
        }
        // A leg that found everything settled in the feed has changed nothing, and still knows more than the file.
        let later = self.order.inherited.leg > 1;
        if later { self.snapshot.write_initial() } else { self.snapshot.flush() }
    }

    fn ending(
        &self,
        work: &GraphWork,
        outcome: &Outcome,
        signal: Option<Stop>,
        unrecorded: Option<String>,
    ) -> Ending {
        let id = |&unit: &usize| self.order.graph.node(NodeIx::new(unit)).id.clone();
        match (outcome, signal) {
            (Outcome::Passed, _) => Ending::Passed,
            (Outcome::Paused(pause), _) => {
                let lifts = work.limit_lifts();
                let limited = work.limited.lock().unwrap_or_else(PoisonError::into_inner);
                Ending::Paused(Paused {
                    gates: pause.gates.iter().map(id).collect(),
                    limited: pause.limited.iter().map(id).collect(),
                    limit: limited.first().map(|held| held.words.clone()),
                    lifts,
                    cap: pause.cap,
                    short: pause.short.map(|short| (id(&short.unit), short)),
                })
            }
            (Outcome::Stopped, Some(signal)) => Ending::Stopped(signal),
            (Outcome::Unrecorded { .. }, _) => {
                Ending::Unrecorded { why: unrecorded.unwrap_or_default(), passed: false }
            }
            (Outcome::Failed { halted, failed }, _) => {
                Ending::Failed { halted: halted.as_ref().map(id), failed: failed.iter().map(id).collect() }
            }
            (Outcome::Stopped, None) => Ending::Failed { halted: None, failed: Vec::new() },
        }
    }
}

/// A run that passed or paused and cannot be recorded as that did neither.
fn or_unrecorded(ending: Ending, error: Option<impl ToString>) -> Ending {
    match (error, ending) {
        (Some(error), ending @ (Ending::Passed | Ending::Paused(_))) => {
            Ending::Unrecorded { why: error.to_string(), passed: ending == Ending::Passed }
        }
        (_, ending) => ending,
    }
}

/// What nodes that a limit held back cost all the same: they have no terminal event to carry it.
fn charge_held(event: &mut Event, work: &GraphWork) {
    let limited = work.limited.lock().unwrap_or_else(PoisonError::into_inner);
    let paid = limited.iter().filter(|held| !held.charge.is_zero());
    event.held = paid.map(|held| event::Held::new(held.node.as_str(), held.charge, held.usage)).collect();
    let (charge, usage) = limited
        .iter()
        .fold((Cost::ZERO, Usage::default()), |sum, held| (sum.0 + held.charge, sum.1 + held.usage));
    event.set_charge(charge, usage);
}

fn skipped(graph: &Graph, closing: &Closing, signal: Option<Stop>) -> Vec<Skipped> {
    let id = |unit: usize| graph.node(NodeIx::new(unit)).id.to_string();
    let entry = |&(unit, blame): &(usize, Blame)| {
        let (because, why) = match blame {
            Blame::Ancestor(failed) => (id(failed), SkipWhy::AncestorFailed),
            Blame::Halt(failed) => (id(failed), SkipWhy::Halted),
            Blame::Rejected(gate) => (id(gate), SkipWhy::Rejected),
            Blame::Unrecorded => ("it could not be recorded".to_owned(), SkipWhy::Interrupted),
            Blame::Stop => (signal.map_or("signal", Stop::name).to_owned(), SkipWhy::Interrupted),
        };
        Skipped { node: id(unit), because, why }
    };
    closing.skipped.iter().map(entry).collect()
}
