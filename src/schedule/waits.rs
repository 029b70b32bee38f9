//! How long a leg waits for a spent limit, and how often (ADR 0009). Pure: moments and durations are handed in.
//!
//! A limit is waited out until the moment that the CLI names. One that outlasts that moment, or that names none, is asked
//! after less and less often: every time that somebody asks may cost something.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How long after the named moment a limit is taken to be lifted: the CLI names minutes.
const MARGIN: Duration = Duration::from_secs(5);
/// How long the first wait is that nobody named a moment for. Each further one is twice as long.
const FIRST: Duration = Duration::from_secs(60);
/// The longest wait that nobody named a moment for.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The waits of one leg.
#[derive(Debug)]
pub(super) struct Waits {
    /// How long it may still wait in all; `None` when it may not at all.
    left: Option<Duration>,
    /// Waits since something was let through.
    in_a_row: u32,
}

impl Waits {
    /// The waits of a leg that may wait so long in all.
    pub(super) fn new(patience: Option<Duration>) -> Self {
        Waits { left: patience, in_a_row: 0 }
    }

    /// How long to wait at `now` for a limit that is said to be lifted at `lifts`; `None` when that is too long.
    pub(super) fn next(&mut self, lifts: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
        let left = self.left?;
        if lifts.is_none() {
            // Not even a first guess is near.
            self.in_a_row = self.in_a_row.max(1);
        }
        let told = lifts.and_then(|at| positive(at.duration_since(now))).unwrap_or_default() + MARGIN;
        let wait = match self.in_a_row {
            0 => told,
            n => told.max(FIRST.saturating_mul(1 << (n - 1).min(16)).min(LONGEST)),
        };
        self.in_a_row += 1;
        (wait <= left).then_some(wait)
    }

    /// Whether a wait that has taken so long by now has taken too long, as when the clock was set back meanwhile.
    pub(super) fn are_out_of_patience(&self, so_far: Duration) -> bool {
        self.left.is_none_or(|left| so_far > left)
    }

    /// A wait took so long.
    pub(super) fn took(&mut self, time: Duration) {
        self.left = self.left.map(|left| left.saturating_sub(time));
    }

    /// The limit let something through.
    pub(super) fn ended(&mut self) {
        self.in_a_row = 0;
    }
}

/// A span as a duration, if it lies ahead.
pub(super) fn positive(span: SignedDuration) -> Option<Duration> {
    Duration::try_from(span).ok().filter(|ahead| !ahead.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).expect("a moment")
    }

    /// The waits, in seconds, for a limit that is never lifted and always says `lifts`.
    fn series(patience: Duration, lifts: impl Fn(i64) -> Option<i64>) -> Vec<u64> {
        let (mut waits, mut now, mut series) = (Waits::new(Some(patience)), 0, Vec::new());
        while let Some(wait) = waits.next(lifts(now).map(at), at(now)) {
            waits.took(wait);
            now += i64::try_from(wait.as_secs()).expect("a wait");
            series.push(wait.as_secs());
        }
        series
    }

    #[test]
    fn a_limit_is_waited_out_until_the_named_moment() {
        assert_eq!(Waits::new(Some(DAY)).next(Some(at(3600)), at(0)), Some(Duration::from_secs(3605)));
        assert_eq!(Waits::new(Some(DAY)).next(Some(at(-40)), at(0)), Some(Duration::from_secs(5)));
        assert_eq!(Waits::new(None).next(Some(at(1)), at(0)), None);
        assert_eq!(Waits::new(Some(Duration::from_secs(10))).next(Some(at(6)), at(0)), None);
    }

    #[test]
    fn a_limit_that_outlasts_its_moment_is_asked_after_less_and_less_often() {
        let patience = Duration::from_secs(10 * 60);
        assert_eq!(series(patience, |_| Some(-60)), [5, 60, 120, 240]);
        assert_eq!(series(patience, |_| Some(30)), [35, 60, 120, 240]);
        // One that is put off again and again is believed each time, and never asked after more often than that.
        assert_eq!(series(patience, |now| Some(now + 100)), [105, 105, 120, 240]);
    }

    #[test]
    fn a_limit_that_names_no_moment_is_asked_after_a_few_times_in_hours() {
        let series = series(Duration::from_secs(6 * 3600), |_| None);
        assert_eq!(series[..7], [60, 120, 240, 480, 960, 1800, 1800]);
        assert!(series.len() < 20 && series.iter().sum::<u64>() <= 6 * 3600);
    }

    #[test]
    fn what_is_let_through_begins_the_series_anew() {
        let mut waits = Waits::new(Some(DAY));
        assert_eq!(waits.next(None, at(0)), Some(Duration::from_secs(60)));
        assert_eq!(waits.next(None, at(0)), Some(Duration::from_secs(120)));
        waits.ended();
        assert_eq!(waits.next(None, at(0)), Some(Duration::from_secs(60)));
    }

    #[test]
    fn patience_is_spent_by_what_was_really_waited() {
        let mut waits = Waits::new(Some(Duration::from_secs(100)));
        assert_eq!(waits.next(Some(at(80)), at(0)), Some(Duration::from_secs(85)));
        assert!(!waits.are_out_of_patience(Duration::from_secs(100)));
        assert!(waits.are_out_of_patience(Duration::from_secs(101)));
        // The clock jumped ahead.
        waits.took(Duration::from_secs(1));
        waits.ended();
        assert_eq!(waits.next(Some(at(90)), at(0)), Some(Duration::from_secs(95)));
    }
}
