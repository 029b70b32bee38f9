//! Gates: a person's decision as a unit of work (DESIGN "Gate nodes", DECISIONS 25).
//!
//! A gate never waits for anybody: it is approved, rejected, or left waiting, by what was decided before the leg began.

use crate::graph::{Cause, Provenance};
use crate::record::{Event, EventKind, Record, Verdict};
use crate::schedule::attempt::Course;
use crate::schedule::machine::{Bill, Ending};
use crate::schedule::work::Settled;

/// What a person decided of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Approve,
    /// Leave out everything below it.
    Reject,
}

impl Decision {
    /// The word in the snapshot.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
        }
    }

    /// Reads the word; `pause`, which older snapshots hold, is no decision.
    pub fn parse(word: &str) -> Option<Self> {
        [Decision::Approve, Decision::Reject].into_iter().find(|decision| decision.as_str() == word)
    }
}

impl Course<'_> {
    /// Applies the decision of this gate, if there is one.
    pub(super) fn decide(self) -> Settled {
        let id = self.node.id.as_str();
        match self.work.decisions.get(id) {
            Some(Decision::Approve) => {
                let record = Record {
                    verdict: Verdict::Pass,
                    provenance: (!self.work.rehearsal).then_some(Provenance::Approved),
                    ..Record::default()
                };
                self.decided(EventKind::GateApproved, EventKind::NodePassed, Ending::Passed, record)
            }
            Some(Decision::Reject) => {
                let record = Record {
                    verdict: Verdict::Fail,
                    detail: "the gate was rejected".to_owned(),
                    cause: Some(Cause::Rejected),
                    ..Record::default()
                };
                self.decided(EventKind::GateRejected, EventKind::NodeFailed, Ending::Rejected, record)
            }
            None => Settled {
                ending: Ending::Waiting,
                bill: Bill::default(),
                events: vec![Event::of_node(EventKind::GatePaused, id)],
                record: None,
                again: None,
            },
        }
    }

    fn decided(self, decision: EventKind, terminal: EventKind, ending: Ending, record: Record) -> Settled {
        let id = self.node.id.as_str();
        let mut last = Event::of_node(terminal, id);
        record.describe(&mut last);
        Settled {
            ending,
            bill: Bill::default(),
            events: vec![Event::of_node(decision, id), last],
            record: Some(record),
            again: None,
        }
    }
}
