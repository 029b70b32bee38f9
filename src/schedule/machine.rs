//! The schedule as a pure state machine: events in, actions out, no thread, clock, file or child in it.
//!
//! A unit is a number; what it stands for is the caller's business. Every transition happens in
//! [`Machine::step`]. The rules (DESIGN "Execution engine", "Gate nodes", "Feedback edges"; DECISIONS 13, 16, 25):
//!
//! - a unit is ready once all its parents passed, and starts in the order in which units became ready, file order
//!   among those that became ready together;
//! - units that share an exclusive resource never run at the same time;
//! - a failure halts the run, or under `Continue` skips only the failed unit's descendants; a rejection only ever skips;
//! - a judged failure of an arc's declarer with rounds left runs the arc's body again instead;
//! - a waiting gate holds back its descendants only, a bound on the run what it leaves no room for, a spent limit
//!   everything not yet started;
//! - once the run cannot be recorded any more, what runs goes on to its end and nothing more is started;
//! - a halt or a stop cancels what runs, waits for it, and starts nothing more;
//! - a unit that never ran is accounted for when the run closes, with what it is owed to.

use std::collections::{HashMap, VecDeque};

use crate::graph::{Bounds, OnFail};
use crate::text::money::{Cost, Money};

/// A unit's number: its position in the plan.
pub type UnitIx = usize;

/// One unit of a [`Plan`].
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// The units that must pass first, each once.
    pub parents: Vec<UnitIx>,
    /// A resource that only one running unit may hold.
    pub exclusive: Option<usize>,
    /// The most that running it may cost: `None` when it costs nothing, nothing when it costs and has no bound.
    pub may_spend: Option<Money>,
    /// The most executions that running it may take; 0 for one that executes nothing.
    pub executions: u32,
}

/// A way back: when `declarer` is judged to fail, its body runs again, at most `max` times.
#[derive(Clone, Debug)]
pub struct Arc {
    /// The unit whose failure fires it.
    pub declarer: UnitIx,
    /// Everything that runs again, target and declarer included, in file order.
    pub body: Vec<UnitIx>,
    /// How often it may fire.
    pub max: u32,
}

/// What is to be run. The parent relation must be acyclic, which loading has checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The units, in file order.
    pub units: Vec<Unit>,
    /// The ways back; their bodies are disjoint.
    pub arcs: Vec<Arc>,
    /// What a failure does.
    pub on_fail: OnFail,
    /// Bounds on the whole run; the one on its time is the caller's to watch.
    pub bounds: Bounds,
}

/// Where earlier legs left a run.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Units that passed and do not run again.
    pub passed: Vec<UnitIx>,
    /// Gates that were rejected; they and their descendants do not run.
    pub rejected: Vec<UnitIx>,
    /// Units that failed and are not tried again; nor do their descendants run.
    pub failed: Vec<UnitIx>,
    /// Rounds that arcs have fired, by declarer.
    pub rounds: HashMap<UnitIx, u32>,
    /// What was spent.
    pub spent: Cost,
    /// How many executions there were.
    pub executions: u32,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A slot is free.
    SlotFree,
    /// A running unit settled.
    Settled(UnitIx, Ending, Bill),
    /// The run is to stop: a signal.
    Stop,
    /// The bound on the run's time is reached.
    OutOfTime,
    /// The limit that held units back is lifted.
    Refilled,
    /// This unit was to start, and could not be recorded: it does not.
    NotStarted(UnitIx),
    /// What happens cannot be recorded any more.
    Unrecorded,
}

/// What a unit took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// What it cost.
    pub cost: Cost,
    /// How many executions it took.
    pub executions: u32,
}

/// How a unit settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It passed.
    Passed,
    /// It failed by itself; `judged` when a check looked at the work, so that an arc may fire.
    Failed {
        /// Whether an arc may fire.
        judged: bool,
    },
    /// A gate was rejected.
    Rejected,
    /// A gate waits for a person.
    Waiting,
    /// A spent limit kept it from running: it counts as not run.
    Limited,
    /// It was ended because the run is ending.
    Cancelled,
}

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this unit in the slot that was offered.
    Start(UnitIx),
    /// The settled unit's arc fires: this is its round. Record the failure as not final.
    Fire {
        /// The declarer.
        declarer: UnitIx,
        /// The round that begins, from 1.
        round: u32,
    },
    /// End everything that runs.
    Cancel(Blame),
}

/// What a cancellation, or a unit that never ran, is owed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// This ancestor failed.
    Ancestor(UnitIx),
    /// This gate was rejected.
    Rejected(UnitIx),
    /// This unit failed and halted the run.
    Halt(UnitIx),
    /// The run was stopped.
    Stop,
    /// The run could not be recorded any more.
    Unrecorded,
}

/// Which bound of the run was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// Dollars.
    Spend,
    /// Executions.
    Executions,
    /// Time.
    Wall,
}

impl Cap {
    /// What is bounded, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Cap::Spend => "dollars",
            Cap::Executions => "executions",
            Cap::Wall => "time",
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The overall outcome.
    pub outcome: Outcome,
    /// The units that never ran, in file order; none when the run is paused.
    pub skipped: Vec<(UnitIx, Blame)>,
}

/// The overall outcome of a run. What stands first here outranks what follows (FACTS 7.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every unit passed.
    Passed,
    /// The run can go on later.
    Paused(Pause),
    /// These units failed by themselves or were rejected, in file order.
    Failed {
        /// The unit whose failure halted the run.
        halted: Option<UnitIx>,
        /// All that failed by themselves or were rejected.
        failed: Vec<UnitIx>,
    },
    /// The run was stopped before it was done.
    Stopped,
    /// The run could not be recorded any more, and was not done.
    Unrecorded {
        /// All that failed by themselves or were rejected, in file order.
        failed: Vec<UnitIx>,
    },
}

/// Why a run is paused; at least one member says something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Gates that wait, in file order.
    pub gates: Vec<UnitIx>,
    /// Units that a spent limit held back, in file order.
    pub limited: Vec<UnitIx>,
    /// The bound that was reached.
    pub cap: Option<Cap>,
    /// The first unit that it left no room for; none for the bound on time.
    pub short: Option<Short>,
}

/// A unit that a bound leaves no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// The unit.
    pub unit: UnitIx,
    /// The bound.
    pub cap: Cap,
    /// The most executions that the unit may take.
    pub executions: u32,
    /// The executions of all legs so far.
    pub executed: u32,
    /// The most that it may spend, as far as that is bounded.
    pub may_spend: Money,
    /// What all legs have spent so far.
    pub spent: Money,
}

/// Whether the bounds of a run leave room for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Enough,
    /// There may be, once a running unit settles.
    Later,
    /// Not in this leg.
    Never(Cap),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This many parents have not passed.
    Blocked(usize),
    Ready,
    Running,
    Settled(Ending),
}

/// The schedule of one leg. See the module's text.
#[derive(Debug)]
pub struct Machine {
    plan: Plan,
    dependents: Vec<Vec<UnitIx>>,
    states: Vec<State>,
    ready: VecDeque<UnitIx>,
    /// Ready units whose resource is held, by resource; they go to the front once it is free.
    parked: HashMap<usize, VecDeque<UnitIx>>,
    /// The running holder of each resource.
    holders: HashMap<usize, UnitIx>,
    /// Rounds fired, by arc.
    rounds: Vec<u32>,
    /// The arc that a unit declares, and the one whose body it is in.
    declares: HashMap<UnitIx, usize>,
    in_body: HashMap<UnitIx, usize>,
    running: usize,
    ledger: Ledger,
    limited: bool,
    capped: Option<Cap>,
    short: Option<Short>,
    unrecorded: bool,
    ending: Option<Blame>,
}

/// What was spent, and what running units may still spend.
#[derive(Debug, Default)]
struct Ledger {
    spent: Money,
    reserved: Money,
    executions: u32,
    reserved_executions: u32,
}

impl Machine {
    /// A machine for a leg of `plan` that goes on from `before`.
    pub fn new(plan: Plan, before: &Before) -> Self {
        let count = plan.units.len();
        let mut dependents = vec![Vec::new(); count];
        for (unit, spec) in plan.units.iter().enumerate() {
            for &parent in &spec.parents {
                dependents[parent].push(unit);
            }
        }
        let mut states = vec![State::Blocked(0); count];
        for &unit in &before.passed {
            states[unit] = State::Settled(Ending::Passed);
        }
        for &unit in &before.rejected {
            states[unit] = State::Settled(Ending::Rejected);
        }
        for &unit in &before.failed {
            states[unit] = State::Settled(Ending::Failed { judged: false });
        }
        let declares: HashMap<UnitIx, usize> =
            plan.arcs.iter().enumerate().map(|(arc, spec)| (spec.declarer, arc)).collect();
        let bodies = plan.arcs.iter().enumerate();
        let in_body = bodies.flat_map(|(arc, spec)| spec.body.iter().map(move |&unit| (unit, arc))).collect();
        let rounds =
            plan.arcs.iter().map(|arc| before.rounds.get(&arc.declarer).copied().unwrap_or(0)).collect();
        let ledger = Ledger { spent: before.spent.known, executions: before.executions, ..Ledger::default() };
        let mut machine = Machine {
            plan,
            dependents,
            states,
            ready: VecDeque::new(),
            parked: HashMap::new(),
            holders: HashMap::new(),
            rounds,
            declares,
            in_body,
            running: 0,
            ledger,
            limited: false,
            capped: None,
            short: None,
            unrecorded: false,
            ending: None,
        };
        for unit in 0..count {
            if !matches!(machine.states[unit], State::Settled(_)) {
                machine.block(unit, |_| true);
            }
        }
        machine
    }

    /// Takes one event and says what to do. The one place where anything changes.
    ///
    /// # Panics
    /// When a unit settles that does not run: the caller has lost count.
    pub fn step(&mut self, event: Event) -> Option<Action> {
        match event {
            Event::SlotFree => self.start_next(),
            Event::Settled(unit, ending, bill) => self.settle(unit, ending, bill),
            Event::Stop => self.end(Blame::Stop),
            Event::OutOfTime => {
                self.capped.get_or_insert(Cap::Wall);
                None
            }
            Event::Refilled => {
                self.refill();
                None
            }
            Event::NotStarted(unit) => {
                self.take_back(unit);
                None
            }
            Event::Unrecorded => {
                self.unrecorded = true;
                None
            }
        }
    }

    /// Whether nothing runs and nothing more will, unless a limit is lifted.
    pub fn is_done(&self) -> bool {
        self.running == 0 && (self.limited || self.is_ending() || self.ready.is_empty())
    }

    /// Whether a spent limit holds units back, and nothing else ends the leg.
    pub fn waits_for_limit(&self) -> bool {
        self.limited && !self.is_ending()
    }

    /// Whether nothing more is started in this leg.
    fn is_ending(&self) -> bool {
        self.ending.is_some() || self.capped.is_some() || self.unrecorded
    }

    /// The round that `unit` is in: 0 outside a loop and on its first pass.
    pub fn round(&self, unit: UnitIx) -> u32 {
        self.in_body.get(&unit).map_or(0, |&arc| self.rounds[arc])
    }

    /// How the run ended. Meaningful once [`Machine::is_done`].
    pub fn close(&self) -> Closing {
        let outcome = self.outcome();
        let skipped = if matches!(outcome, Outcome::Paused(_)) { Vec::new() } else { self.skipped() };
        Closing { outcome, skipped }
    }

    fn start_next(&mut self) -> Option<Action> {
        if self.limited || self.is_ending() {
            return None;
        }
        let (mut at, mut short) = (0, None);
        while let Some(&unit) = self.ready.get(at) {
            if let Some(resource) = self.plan.units[unit].exclusive
                && self.holders.contains_key(&resource)
            {
                self.ready.remove(at);
                self.parked.entry(resource).or_default().push_back(unit);
                continue;
            }
            match self.room_for(unit) {
                Room::Enough => {
                    self.ready.remove(at);
                    return Some(self.start(unit));
                }
                // A running unit may leave more than it reserved: what came first is not overtaken.
                Room::Later => return None,
                Room::Never(cap) => {
                    short.get_or_insert(self.short(unit, cap));
                    at += 1;
                }
            }
        }
        if self.running == 0 && short.is_some() {
            self.capped = short.map(|short| short.cap);
            self.short = short;
        }
        None
    }

    fn start(&mut self, unit: UnitIx) -> Action {
        let spec = &self.plan.units[unit];
        if let Some(resource) = spec.exclusive {
            self.holders.insert(resource, unit);
        }
        self.ledger.reserved = self.ledger.reserved + spec.may_spend.unwrap_or(Money::ZERO);
        self.ledger.reserved_executions += spec.executions;
        self.states[unit] = State::Running;
        self.running += 1;
        Action::Start(unit)
    }

    /// Undoes [`start`](Self::start).
    fn take_back(&mut self, unit: UnitIx) {
        self.states[unit] = State::Ready;
        self.running -= 1;
        self.release(unit, Bill::default());
        self.ready.push_front(unit);
        self.unrecorded = true;
    }

    /// Whether the bounds leave room for `unit`, counting what running units may still take.
    fn room_for(&self, unit: UnitIx) -> Room {
        let ledger = &self.ledger;
        let Some(cap) = self.cap_reached_by(unit, ledger.reserved, ledger.reserved_executions) else {
            return Room::Enough;
        };
        if self.cap_reached_by(unit, Money::ZERO, 0).is_some() { Room::Never(cap) } else { Room::Later }
    }

    /// The bound that starting `unit` might break while so much is reserved.
    fn cap_reached_by(&self, unit: UnitIx, reserved: Money, reserved_executions: u32) -> Option<Cap> {
        let (spec, caps, ledger) = (&self.plan.units[unit], &self.plan.bounds, &self.ledger);
        if spec.executions == 0 {
            return None;
        }
        let executions = ledger.executions + reserved_executions + spec.executions;
        if caps.executions.is_some_and(|cap| executions > cap) {
            return Some(Cap::Executions);
        }
        let committed = ledger.spent + reserved;
        let (cap, may_spend) = (caps.spend?, spec.may_spend?);
        (committed >= cap || committed + may_spend > cap).then_some(Cap::Spend)
    }

    fn short(&self, unit: UnitIx, cap: Cap) -> Short {
        let (spec, ledger) = (&self.plan.units[unit], &self.ledger);
        Short {
            unit,
            cap,
            executions: spec.executions,
            executed: ledger.executions,
            may_spend: spec.may_spend.unwrap_or(Money::ZERO),
            spent: ledger.spent,
        }
    }

    fn settle(&mut self, unit: UnitIx, ending: Ending, bill: Bill) -> Option<Action> {
        assert_eq!(self.states[unit], State::Running, "unit {unit} settles without running");
        self.states[unit] = State::Settled(ending);
        self.running -= 1;
        self.release(unit, bill);
        match ending {
            Ending::Passed => self.pass_on(unit),
            Ending::Failed { judged: true } if self.can_fire(unit) => return Some(self.fire(unit)),
            Ending::Failed { .. } if self.plan.on_fail == OnFail::Halt => return self.end(Blame::Halt(unit)),
            Ending::Limited => self.limited = true,
            Ending::Failed { .. } | Ending::Rejected | Ending::Waiting | Ending::Cancelled => {}
        }
        None
    }

    fn release(&mut self, unit: UnitIx, bill: Bill) {
        let spec = &self.plan.units[unit];
        let ledger = &mut self.ledger;
        ledger.spent = ledger.spent + bill.cost.known;
        ledger.executions += bill.executions;
        ledger.reserved = ledger.reserved.saturating_sub(spec.may_spend.unwrap_or(Money::ZERO));
        ledger.reserved_executions -= spec.executions;
        let Some(resource) = spec.exclusive else { return };
        self.holders.remove(&resource);
        if let Some(next) = self.parked.get_mut(&resource).and_then(VecDeque::pop_front) {
            self.ready.push_front(next);
        }
    }

    fn pass_on(&mut self, unit: UnitIx) {
        for at in 0..self.dependents[unit].len() {
            let dependent = self.dependents[unit][at];
            if let State::Blocked(missing) = self.states[dependent] {
                self.unblock(dependent, missing - 1);
            }
        }
    }

    fn unblock(&mut self, unit: UnitIx, missing: usize) {
        self.states[unit] = State::Blocked(missing);
        if missing == 0 {
            self.states[unit] = State::Ready;
            self.ready.push_back(unit);
        }
    }

    /// Blocks `unit` on those of its parents that `counts` and have not passed.
    fn block(&mut self, unit: UnitIx, counts: impl Fn(UnitIx) -> bool) {
        let has_passed = |parent: UnitIx| self.states[parent] == State::Settled(Ending::Passed);
        let parents = self.plan.units[unit].parents.iter();
        let missing = parents.filter(|&&parent| counts(parent) && !has_passed(parent)).count();
        self.unblock(unit, missing);
    }

    /// An end that is under way makes every failure final: what would run again could not.
    fn can_fire(&self, unit: UnitIx) -> bool {
        let Some(&arc) = self.declares.get(&unit) else { return false };
        self.ending.is_none() && self.rounds[arc] < self.plan.arcs[arc].max
    }

    fn fire(&mut self, declarer: UnitIx) -> Action {
        let arc = self.declares[&declarer];
        self.rounds[arc] += 1;
        let body = self.plan.arcs[arc].body.clone();
        for &unit in &body {
            // Not passed any more, so that what waits for it inside the body waits again.
            self.states[unit] = State::Blocked(usize::MAX);
        }
        for &unit in &body {
            self.block(unit, |parent| body.binary_search(&parent).is_ok());
        }
        Action::Fire { declarer, round: self.rounds[arc] }
    }

    fn refill(&mut self) {
        self.limited = false;
        let limited: Vec<UnitIx> =
            self.units_that(|state| state == State::Settled(Ending::Limited)).collect();
        for &unit in limited.iter().rev() {
            self.states[unit] = State::Ready;
            self.ready.push_front(unit);
        }
    }

    /// Begins the end, once: the first reason stays.
    fn end(&mut self, blame: Blame) -> Option<Action> {
        if self.ending.is_some() {
            return None;
        }
        self.ending = Some(blame);
        Some(Action::Cancel(blame))
    }

    fn outcome(&self) -> Outcome {
        let own = |state| matches!(state, State::Settled(Ending::Failed { .. } | Ending::Rejected));
        let failed: Vec<UnitIx> = self.units_that(own).collect();
        let all_passed = self.units_that(|state| state != State::Settled(Ending::Passed)).next().is_none();
        let pause = self.pause();
        match self.ending {
            Some(Blame::Halt(unit)) => Outcome::Failed { halted: Some(unit), failed },
            _ if all_passed => Outcome::Passed,
            Some(_) => Outcome::Stopped,
            None if self.unrecorded => Outcome::Unrecorded { failed },
            None if pause != Pause::default() => Outcome::Paused(pause),
            None => Outcome::Failed { halted: None, failed },
        }
    }

    fn pause(&self) -> Pause {
        let that_ended = |ending| self.units_that(move |state| state == State::Settled(ending)).collect();
        Pause {
            gates: that_ended(Ending::Waiting),
            limited: that_ended(Ending::Limited),
            cap: self.capped,
            short: self.short,
        }
    }

    fn units_that(&self, holds: impl Fn(State) -> bool) -> impl Iterator<Item = UnitIx> {
        (0..self.states.len()).filter(move |&unit| holds(self.states[unit]))
    }

    /// Everything that never ran. A unit below a failed or rejected one is owed to it (the first that reaches it), any
    /// other to what ended the run.
    fn skipped(&self) -> Vec<(UnitIx, Blame)> {
        let mut owed: Vec<Option<Blame>> = vec![None; self.states.len()];
        let mut queue: VecDeque<UnitIx> = VecDeque::new();
        for (unit, owed) in owed.iter_mut().enumerate() {
            *owed = match self.states[unit] {
                State::Settled(Ending::Failed { .. }) => Some(Blame::Ancestor(unit)),
                State::Settled(Ending::Rejected) => Some(Blame::Rejected(unit)),
                _ => None,
            };
            queue.extend(owed.map(|_| unit));
        }
        while let Some(unit) = queue.pop_front() {
            for &dependent in &self.dependents[unit] {
                if owed[dependent].is_none() {
                    owed[dependent] = owed[unit];
                    queue.push_back(dependent);
                }
            }
        }
        let ran = |state| match state {
            State::Settled(ending) => !matches!(ending, Ending::Waiting | Ending::Limited),
            other => other == State::Running,
        };
        let ended = self.ending.or(self.unrecorded.then_some(Blame::Unrecorded));
        self.units_that(|state| !ran(state)).filter_map(|unit| Some((unit, owed[unit].or(ended)?))).collect()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
