//! What a command is given of the process: its streams, its home, its clock.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::never;
use jiff::tz::TimeZone;

use super::output::Output;
use super::{Console, Failure};
use crate::clock::{SharedClock, SystemClock};
use crate::process::signals;
use crate::record::{Home, lock};
use crate::view::term::style::{ColourChoice, Look};

/// The process as commands see it.
pub(super) struct Context {
    /// Standard output.
    pub(super) out: Output,
    /// How it wants to be written to.
    pub(super) out_look: Look,
    /// Whether it is a terminal.
    pub(super) out_is_terminal: bool,
    /// Standard error.
    pub(super) err: Box<dyn Write + Send>,
    /// How it wants to be written to.
    pub(super) err_look: Look,
    /// Where runs are kept.
    pub(super) home: Home,
    /// The time.
    pub(super) clock: SharedClock,
    /// Whether standard output is the feed's alone, and every word for a person goes to standard error.
    pub(super) out_is_feed: bool,
}

impl Context {
    /// The real process.
    pub(super) fn of_process(colour: ColourChoice) -> Self {
        let var = |name: &str| std::env::var_os(name);
        Context {
            out: Output::new(BufWriter::new(io::stdout())),
            out_look: Look::of(&io::stdout(), colour),
            out_is_terminal: io::stdout().is_terminal(),
            err: Box::new(io::stderr()),
            err_look: Look::of(&io::stderr(), colour),
            home: Home::from_env(var("OMG_HOME").as_deref(), var("HOME").as_deref()),
            clock: Arc::new(SystemClock),
            out_is_feed: false,
        }
    }

    /// Where words for a person go, and how that stream wants to be written to.
    pub(super) fn prose(&mut self) -> (&mut dyn Write, Look) {
        if self.out_is_feed { (&mut self.err, self.err_look) } else { (&mut self.out, self.out_look) }
    }

    /// The surroundings of a command that reads runs.
    pub(super) fn console(&mut self) -> Console<'_> {
        Console {
            home: self.home.clone(),
            out: &mut self.out,
            err: &mut *self.err,
            out_look: self.out_look,
            err_look: self.err_look,
            zone: TimeZone::system(),
            probe: lock::probe,
            stop: never(),
        }
    }

    /// The same for a command that goes on until a signal ends it.
    pub(super) fn listening(&mut self) -> Result<Console<'_>, Failure> {
        let stop =
            signals::listen().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        Ok(Console { stop, ..self.console() })
    }

    /// The current directory, absolute.
    pub(super) fn base() -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }
}
