//! The words for states that pages go by (FACTS 9.4). Each stands for one of the record's own.

use crate::record::status::Status;

/// A run or a file that could not be read.
pub(super) const UNKNOWN: &str = "unknown";

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
