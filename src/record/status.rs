//! The one place that says how a run stands (FACTS 10, ADR 0015, ADR 0023).
//!
//! Every surface asks [`derive`]; none makes up a word of its own. The lock is asked only beside an open leg, and
//! every doubt about it reads as a run that is still on. Reads no file: the facts are handed in.

use crate::record::legs::{Legs, Outcome};
use crate::record::lock::Probe;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// A planner call is under way.
    Planning,
    /// A leg is under way.
    Running,
    /// The last leg ended waiting for a person or for a limit to pass.
    Paused,
    /// Every node passed.
    Pass,
    /// The last leg ended, and not every node passed.
    Fail,
    /// The last leg never ended, and its process is gone.
    Abandoned,
}

impl Status {
    /// The word on screens and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Planning => "PLANNING",
            Status::Running => "RUNNING",
            Status::Paused => "PAUSED",
            Status::Pass => "PASS",
            Status::Fail => "FAIL",
            Status::Abandoned => "ABANDONED",
        }
    }

    /// Whether a process is at work on the run.
    pub fn is_in_flight(self) -> bool {
        matches!(self, Status::Planning | Status::Running)
    }

    /// The exit code that a command about the run answers with.
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Pass | Status::Planning | Status::Running => 0,
            Status::Fail | Status::Abandoned => 1,
            Status::Paused => 2,
        }
    }
}

/// How far a run came, by its snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Nodes whose record is a PASS.
    pub completed: usize,
    /// Nodes of the graph.
    pub total: usize,
}

/// How the run stands, or `None` while it has said nothing. `completion` is `None` without a snapshot; `probe` is
/// called only when the last leg is open, or when there is a snapshot and no leg.
pub fn derive(legs: &Legs, completion: Option<Completion>, probe: impl FnOnce() -> Probe) -> Option<Status> {
    if legs.open {
        return Some(match probe() {
            Probe::Free => Status::Abandoned,
            _ if legs.planning => Status::Planning,
            _ => Status::Running,
        });
    }
    // A snapshot comes before the first event; whose lock is held then has not ended, it is about to begin.
    if !legs.spoken && (completion.is_none() || probe() == Probe::Held) {
        return None;
    }
    Some(match (legs.outcome, completion) {
        (Some(Outcome::Paused), _) => Status::Paused,
        (_, Some(Completion { completed, total })) if total > 0 && completed == total => Status::Pass,
        _ => Status::Fail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Option<Completion> = Some(Completion { completed: 2, total: 2 });
    const SOME: Option<Completion> = Some(Completion { completed: 1, total: 2 });

    fn open(planning: bool) -> Legs {
        Legs { spoken: true, open: true, planning, ..Legs::default() }
    }

    fn closed(outcome: Outcome) -> Legs {
        Legs { spoken: true, outcome: Some(outcome), ..Legs::default() }
    }

    #[test]
    fn an_open_leg_is_judged_by_its_lock_and_doubt_is_in_flight() {
        for (legs, lock, status) in [
            (open(false), Probe::Held, Status::Running),
            (open(false), Probe::Unknown, Status::Running),
            (open(false), Probe::Free, Status::Abandoned),
            (open(true), Probe::Held, Status::Planning),
            (open(true), Probe::Free, Status::Abandoned),
        ] {
            assert_eq!(derive(&legs, SOME, || lock), Some(status), "{legs:?} {lock:?}");
        }
    }

    #[test]
    fn e5_a_closed_leg_is_judged_without_asking_the_lock() {
        let never = || panic!("the lock says nothing beside a closed leg");
        for (legs, completion, status) in [
            (closed(Outcome::Passed), ALL, Status::Pass),
            (closed(Outcome::Passed), SOME, Status::Fail),
            (closed(Outcome::Passed), None, Status::Fail),
            (closed(Outcome::Passed), Some(Completion::default()), Status::Fail),
            (closed(Outcome::Failed), SOME, Status::Fail),
            (closed(Outcome::Paused), SOME, Status::Paused),
            (closed(Outcome::Paused), None, Status::Paused),
        ] {
            assert_eq!(derive(&legs, completion, never), Some(status), "{legs:?} {completion:?}");
        }
        assert_eq!(derive(&Legs::default(), None, never), None);
    }

    #[test]
    fn a_snapshot_without_a_leg_has_not_ended_while_its_lock_is_held() {
        let status = |lock| derive(&Legs::default(), ALL, || lock);
        assert_eq!(status(Probe::Held), None);
        assert_eq!([status(Probe::Free), status(Probe::Unknown)], [Some(Status::Pass); 2]);
    }
}
