//! An open leg from its first word to its last: `run_started`, the schedule, the last snapshot, `run_finished`.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crossbeam_channel::Receiver;
use jiff::Timestamp;

use crate::clock::rfc3339;
use crate::graph::{Graph, NodeId, NodeIx, OnFail};
use crate::leg::open::{Leg, LegError, gate_state};
use crate::node::Lanes;
use crate::node::runtime::rehearsal::lanes::RehearsedLanes;
use crate::node::worktree::GitLanes;
use crate::process::signals::Stop;
use crate::record::Usage;
use crate::record::event::{self, SKIPPED_MAX, SkipWhy, Skipped};
use crate::record::observe::Notice;
use crate::record::{Event, EventKind, Scribe};
use crate::schedule::engine::{Conducted, Services, conduct};
use crate::schedule::machine::{Blame, Cap, Closing, Machine, Outcome};
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
}

impl Paused {
    /// Why, in the feed's words: nothing for gates, which have events of their own.
    fn reason(&self) -> String {
        let limit = self.limit.as_ref().map(|words| {
            let nodes: Vec<&str> = self.limited.iter().map(NodeId::as_str).collect();
            format!("{}: {words}", nodes.join(", "))
        });
        let cap = self.cap.map(|cap| format!("the run's bound on {} is reached", cap.words()));
        limit.into_iter().chain(cap).collect::<Vec<_>>().join("; ")
    }
}

impl Leg {
    /// The last of opening: from here on every reader finds the leg under way.
    pub(super) fn begin(&self) {
        self.post_guard();
        let mut started =
            Event { rehearsal: self.order.rehearsal.is_some(), ..Event::new(EventKind::RunStarted) };
        let lost = self.order.inherited.lost.iter();
        started.held =
            lost.map(|node| event::Held::new(node.as_str(), Cost::UNKNOWN, Usage::default())).collect();
        started.cost_unknown = !started.held.is_empty();
        self.announce(&started);
    }

    /// Closes the leg as failed without having run anything.
    pub fn give_up(self) {
        self.announce(&Event { outcome: "failed".to_owned(), ..Event::new(EventKind::RunFinished) });
        self.feed.close();
        self.order.launcher.dismiss_guard();
    }

    /// Runs the schedule to its end and closes the leg.
    ///
    /// # Errors
    /// When a pause could not be recorded.
    pub fn drive(self, signals: Receiver<Stop>) -> Result<Finished, LegError> {
        let lanes = self.lanes().map(Arc::new);
        let (work, slots) = (Arc::new(self.work(lanes.clone())), self.order.slots);
        let mut notes = Vec::new();
        let plan = GraphWork::plan(&self.order.graph, self.on_fail(), self.order.bounds);
        let machine = Machine::new(plan, &self.order.inherited.before);
        let conducted = conduct(&work, machine, slots, self.services(signals.clone()));
        let mut came = None;
        let ending = match conducted {
            Conducted::Abandoned { signal } => Ending::Abandoned(signal),
            Conducted::Closed { closing, signal } => {
                self.order.launcher.sweep();
                self.order.runtime.close();
                work.scribe.flush();
                came = signal;
                let closed = self.close(&work, &closing, signal);
                // After the last word of the feed: a removal that is cut short must not make an abandoned run of it.
                notes = lanes.map(|lanes| lanes.tidy()).unwrap_or_default();
                self.order.launcher.dismiss_guard();
                closed.inspect_err(|_| self.tell(&notes))?
            }
        };
        let left = std::mem::take(&mut *work.left_running.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Finished { ending, left_running: left, notes, signal: came.or_else(|| signals.try_recv().ok()) })
    }

    /// The notes of a leg whose end could not be recorded.
    fn tell(&self, notes: &[String]) {
        for message in notes {
            self.observer.notice(Notice::Warning { node: None, message: message.clone() });
        }
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

    /// The snapshot is complete before the feed says that the leg is over (`ARCHITECTURE` 5.3).
    fn close(&self, work: &GraphWork, closing: &Closing, signal: Option<Stop>) -> Result<Ending, LegError> {
        let ending = self.ending(work, &closing.outcome, signal);
        if let Ending::Paused(pause) = &ending {
            return self.pause(work, pause).map(|()| ending);
        }
        let skipped = skipped(&self.order.graph, closing, signal);
        let count = u32::try_from(skipped.len()).unwrap_or(u32::MAX);
        let listed: Vec<Skipped> = skipped.iter().take(SKIPPED_MAX).cloned().collect();
        if !skipped.is_empty() {
            self.snapshot.set_skipped(skipped);
        }
        // A leg that found everything settled in the feed has changed nothing, and still knows more than the file.
        let later = self.order.inherited.leg > 1;
        let written = if later { self.snapshot.write_initial() } else { self.snapshot.flush() };
        if let Err(error) = written {
            let message = format!("the snapshot is not complete: {error}");
            self.observer.notice(Notice::Warning { node: None, message });
        }
        let outcome = if closing.outcome == Outcome::Passed { "passed" } else { "failed" };
        let outcome = outcome.to_owned();
        let mut event =
            Event { outcome, skipped_count: count, skipped: listed, ..Event::new(EventKind::RunFinished) };
        charge_held(&mut event, work);
        self.announce(&event);
        self.feed.close();
        Ok(ending)
    }

    /// A pause that is not on disk would be a lie: it fails the leg (`ARCHITECTURE` 5.5).
    fn pause(&self, work: &GraphWork, pause: &Paused) -> Result<(), LegError> {
        self.snapshot.set_gate(gate_state(&work.decisions, &pause.gates));
        self.snapshot.flush()?;
        let mut event = Event {
            outcome: "paused".to_owned(),
            detail: cap_detail(&pause.reason()),
            held_until: pause.lifts.map(rfc3339).unwrap_or_default(),
            ..Event::new(EventKind::RunFinished)
        };
        charge_held(&mut event, work);
        self.feed.append(&[event])?;
        self.observer.notice(Notice::Fed);
        self.feed.close();
        Ok(())
    }

    fn ending(&self, work: &GraphWork, outcome: &Outcome, signal: Option<Stop>) -> Ending {
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
                })
            }
            (Outcome::Stopped, Some(signal)) => Ending::Stopped(signal),
            (Outcome::Failed { halted, failed }, _) => {
                Ending::Failed { halted: halted.as_ref().map(id), failed: failed.iter().map(id).collect() }
            }
            (Outcome::Stopped, None) => Ending::Failed { halted: None, failed: Vec::new() },
        }
    }

    fn announce(&self, event: &Event) {
        if let Err(error) = self.feed.append(std::slice::from_ref(event)) {
            self.observer.notice(Notice::Warning { node: None, message: error.to_string() });
        }
        self.observer.notice(Notice::Fed);
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
            Blame::Stop => (signal.map_or("signal", Stop::name).to_owned(), SkipWhy::Interrupted),
        };
        Skipped { node: id(unit), because, why }
    };
    closing.skipped.iter().map(entry).collect()
}
