//! The order of signals that ends a child, as a value that is asked what is due (DECISIONS 20). Sends nothing.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::Ladder;

/// How long claude gets to print its cost after an INT.
const AFTER_INTERRUPT: Duration = Duration::from_secs(3);
/// How long a child gets to tidy up after a TERM.
const AFTER_TERMINATE: Duration = Duration::from_secs(2);

const INTERRUPT_FIRST: &[(Signal, Duration)] =
    &[(Signal::INT, AFTER_INTERRUPT), (Signal::TERM, AFTER_TERMINATE), (Signal::KILL, Duration::ZERO)];

/// A ladder being walked.
#[derive(Debug)]
pub(crate) struct Descent {
    steps: &'static [(Signal, Duration)],
    next: Instant,
}

impl Descent {
    /// Stands before the first step of `ladder`, which is due at once.
    pub(crate) fn new(ladder: Ladder, now: Instant) -> Self {
        let steps = match ladder {
            Ladder::InterruptFirst => INTERRUPT_FIRST,
            Ladder::Terminate => &INTERRUPT_FIRST[1..],
        };
        Descent { steps, next: now }
    }

    /// Takes the step that is due at `now`, if one is.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Signal> {
        let (&(signal, pause), rest) = self.steps.split_first()?;
        if now < self.next {
            return None;
        }
        self.steps = rest;
        self.next = now + pause;
        Some(signal)
    }

    /// When the next step is due; `None` when the last has been taken.
    pub(crate) fn next(&self) -> Option<Instant> {
        (!self.steps.is_empty()).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ladder: Ladder, steps: &[(u64, Signal)]) {
        let start = Instant::now();
        let mut descent = Descent::new(ladder, start);
        for &(second, signal) in steps {
            let due = start + Duration::from_secs(second);
            assert_eq!(descent.next(), Some(due));
            assert_eq!(descent.due(due), Some(signal));
            assert_eq!(descent.due(due), None, "a step is taken once");
        }
        assert_eq!(descent.next(), None);
        assert_eq!(descent.due(start + Duration::from_secs(100)), None);
    }

    #[test]
    fn both_ladders_end_in_a_kill() {
        check(Ladder::InterruptFirst, &[(0, Signal::INT), (3, Signal::TERM), (5, Signal::KILL)]);
        check(Ladder::Terminate, &[(0, Signal::TERM), (2, Signal::KILL)]);
    }
}
