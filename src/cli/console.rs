//! What a command is given of the world: where runs lie, where its words go, and when to stop.
//!
//! Made once by the program and by tests; a command reaches for nothing else.

use std::io::Write;

use crossbeam_channel::Receiver;
use jiff::tz::TimeZone;

use crate::process::signals::Stop;
use crate::record::Home;
use crate::view::history::Prober;
use crate::view::term::Look;

/// The surroundings of a command that reads runs.
pub(super) struct Console<'a> {
    /// Where runs lie.
    pub(super) home: Home,
    /// Standard output.
    pub(super) out: &'a mut dyn Write,
    /// Standard error.
    pub(super) err: &'a mut dyn Write,
    /// How standard output wants to be written to.
    pub(super) out_look: Look,
    /// How standard error wants to be written to.
    pub(super) err_look: Look,
    /// The zone in which moments are printed.
    pub(super) zone: TimeZone,
    /// How a run's lock is looked at.
    pub(super) probe: Prober,
    /// Speaks up, or hangs up, when the person interrupts.
    pub(super) stop: Receiver<Stop>,
}
