//! The words for states that pages go by (FACTS 9.4). Each stands for one of the record's own.

use crate::record::legs::NodeState;
use crate::record::status::Status;

/// A run or a file that could not be read.
pub(super) const UNKNOWN: &str = "unknown";

/// A node that waits for a spent limit to be lifted.
pub(super) const HELD: &str = "held";

/// The word for a run; one that has said nothing is pending.
pub(super) fn of_run(status: Option<Status>) -> &'static str {
    match status {
        None => "pending",
        Some(Status::Planning) => "planning",
        Some(Status::Running) => "running",
        Some(Status::Paused) => "paused",
        Some(Status::Pass) => "passed",
        Some(Status::Fail) => "failed",
        Some(Status::Abandoned) => "abandoned",
    }
}

/// The word for a node of a run that stands so. What a leg left running when it died is abandoned, until a later one takes it
/// up (`lost`); what a spent limit holds back waits for it while somebody is there to wait, and has not run otherwise.
pub(super) fn of_node(state: NodeState, lost: bool, run: Option<Status>) -> &'static str {
    match (state, run) {
        (NodeState::Running, Some(Status::Abandoned)) => "abandoned",
        (NodeState::Running, Some(Status::Running | Status::Planning) | None) => "running",
        (NodeState::Held, Some(Status::Running)) => HELD,
        (NodeState::Idle, _) if lost => "abandoned",
        (NodeState::Idle | NodeState::Running | NodeState::Held, _) => "pending",
        (NodeState::Waiting, _) => "gate-paused",
        (NodeState::Passed, _) => "passed",
        (NodeState::Failed, _) => "failed",
    }
}
