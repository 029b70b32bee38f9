//! What a unit of work is to the engine. A graph node is one implementation ([`crate::schedule::nodes`]).

use jiff::Timestamp;

use crate::graph::NodeId;
use crate::record::{Event, Record};
use crate::schedule::machine::{Bill, Ending, UnitIx};

/// Work in numbered units, each run at most once at a time.
pub trait Workload: Send + Sync + 'static {
    /// What was decided when a unit took its slot, for the worker that runs it.
    type Ticket: Send;

    /// The unit's name in warnings and records.
    fn name(&self, unit: UnitIx) -> &NodeId;

    /// A unit takes its slot, in this round: returns its ticket, and the event to make durable before anything else
    /// happens. Called by the conductor; must be quick.
    fn launch(&self, unit: UnitIx, round: u32) -> (Self::Ticket, Option<Event>);

    /// When the limit that holds units back is lifted, as far as anybody said.
    fn limit_lifts(&self) -> Option<Timestamp> {
        None
    }

    /// The leg waits for that until then: returns the events that say so, and what the units that are held back cost.
    fn wait_begins(&self, _until: Timestamp) -> Vec<Event> {
        Vec::new()
    }

    /// The wait is over, and what was held back is tried again.
    fn wait_ended(&self) {}

    /// Runs a unit to its end, on a worker.
    fn run(&self, unit: UnitIx, ticket: Self::Ticket) -> Settled;

    /// What to record of a unit whose worker panicked.
    fn panicked(&self, unit: UnitIx, message: &str) -> Settled;
}

/// A unit that settled: what to decide, announce and record.
#[derive(Debug)]
pub struct Settled {
    /// For the machine.
    pub ending: Ending,
    /// What it took, for the machine.
    pub bill: Bill,
    /// The last events of the unit, in order; the terminal one closes them.
    pub events: Vec<Event>,
    /// For the snapshot; `None` leaves what is there, as for a unit that counts as not run.
    pub record: Option<Record>,
    /// What is announced and recorded instead when the machine runs the unit's loop again.
    pub again: Option<Box<Again>>,
}

/// The not final end of a feedback declarer (ADR 0010).
#[derive(Debug)]
pub struct Again {
    /// The events, the one that names the new round last.
    pub events: Vec<Event>,
    /// The marker of the loop under way.
    pub record: Record,
}
