//! Time behind a trait, so that tests fix it. Wall time names moments; [`Instant`] measures durations, because
//! a wall clock may step back while a node runs (case D14).

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

/// Where the program takes the time from.
pub trait Clock: Send + Sync {
    /// The wall time, UTC.
    fn now(&self) -> Timestamp;
    /// A moment that never runs backwards.
    fn instant(&self) -> Instant {
        Instant::now()
    }
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// Formats `at` as the feed does: RFC 3339, UTC, nanoseconds with trailing zeros trimmed (FACTS 6.4).
pub fn rfc3339(at: Timestamp) -> String {
    at.to_string()
}
