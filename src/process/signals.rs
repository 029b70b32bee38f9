//! The signals that stop a run, as a channel: they arrive on a thread of their own (DECISIONS 20).
//!
//! INT, TERM and HUP, and every other signal that would end the program by default and can be caught, since a program
//! that dies of one leaves its children running. INT and TERM are always handled, also where a shell's `&` had them
//! ignored; a HUP that was ignored when the program started (`nohup`) stays ignored. A write beyond the limit on file
//! sizes is an error like that of a full disk, and no signal. Decides nothing: what the first and the second signal
//! mean is the receiver's business.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

/// Nobody sends these to ask for an orderly end, but each would end the program.
pub(crate) const OTHERS: [i32; 7] = [SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];

/// A signal that asks the program to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// INT: Ctrl-C.
    Interrupt,
    /// TERM.
    Terminate,
    /// HUP: the terminal is gone.
    HangUp,
    /// Another one that ends programs, by its number: QUIT (Ctrl-\), USR1, XCPU and so on.
    Other(u8),
}

impl Stop {
    /// The exit code of a program that this signal stopped.
    pub fn exit_code(self) -> u8 {
        match self {
            Stop::Interrupt => 130,
            Stop::Terminate => 143,
            Stop::HangUp => 129,
            Stop::Other(signal) => signal.saturating_add(128),
        }
    }

    /// The signal's name, for a person.
    pub fn name(self) -> &'static str {
        match self {
            Stop::Interrupt => "SIGINT",
            Stop::Terminate => "SIGTERM",
            Stop::HangUp => "SIGHUP",
            Stop::Other(signal) => signal_name(signal.into()).unwrap_or("a signal"),
        }
    }

    fn from_raw(signal: i32) -> Option<Self> {
        match signal {
            SIGINT => Some(Stop::Interrupt),
            SIGTERM => Some(Stop::Terminate),
            SIGHUP => Some(Stop::HangUp),
            other if OTHERS.contains(&other) => u8::try_from(other).ok().map(Stop::Other),
            _ => None,
        }
    }
}

/// More signals than anyone reads are dropped: the second already means "at once".
const QUEUE: usize = 8;

/// Starts listening. The thread lives as long as the process and is never joined.
///
/// # Errors
/// When a handler or the thread cannot be set up.
pub fn listen() -> io::Result<Receiver<Stop>> {
    // Where nobody tells, HUP is taken as not ignored.
    let hangup = (!is_ignored(SIGHUP).unwrap_or(false)).then_some(SIGHUP);
    let signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup).chain(OTHERS))?;
    outlive_file_limit()?;
    let (sender, receiver) = bounded(QUEUE);
    thread::Builder::new().name("signals".to_owned()).spawn(move || pass_on(signals, &sender))?;
    Ok(receiver)
}

/// Has a write beyond the limit on the size of files fail, where the system would end the program.
///
/// # Errors
/// When the handler cannot be set up.
pub fn outlive_file_limit() -> io::Result<()> {
    // Caught and not ignored, because what is ignored stays so in the children.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

fn pass_on(mut signals: Signals, to: &Sender<Stop>) {
    for stop in signals.forever().filter_map(Stop::from_raw) {
        to.try_send(stop).ok();
    }
}

/// Sees to it that children can be waited for. A program that is started by one that ignores CHLD ignores it too,
/// and then the kernel throws away how its children ended. Any handler undoes that; this one does nothing.
///
/// # Errors
/// When the handler cannot be set up.
pub(crate) fn heed_children() -> io::Result<()> {
    static HEEDED: OnceLock<()> = OnceLock::new();
    if HEEDED.get().is_none() {
        if is_ignored(SIGCHLD).unwrap_or(true) {
            signal_hook::flag::register(SIGCHLD, Arc::default())?;
        }
        HEEDED.set(()).ok();
    }
    Ok(())
}

/// Whether `signal` is ignored now; only Linux tells.
fn is_ignored(signal: i32) -> Option<bool> {
    Some(ignores(&std::fs::read_to_string("/proc/self/status").ok()?, signal))
}

/// Whether the `SigIgn` mask of a `/proc/<pid>/status` holds `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_read_from_the_mask_of_ignored_signals() {
        assert!(ignores("Name:\tomg\nSigBlk:\t0\nSigIgn:\t0000000000001001\n", SIGHUP));
        assert!(!ignores("SigBlk:\t1\nSigIgn:\t0000000000001000\n", SIGHUP));
        assert!(!ignores("", SIGHUP));
    }

    #[test]
    fn a6_every_stop_has_the_exit_code_of_its_signal() {
        let codes = [SIGINT, SIGTERM, SIGHUP].map(|it| Stop::from_raw(it).map(Stop::exit_code));
        assert_eq!(codes, [Some(130), Some(143), Some(129)]);
        assert_eq!(Stop::from_raw(SIGQUIT).map(|it| (it.exit_code(), it.name())), Some((131, "SIGQUIT")));
        assert_eq!(Stop::from_raw(SIGXFSZ), None);
    }
}
