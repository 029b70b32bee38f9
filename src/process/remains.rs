//! Ends what a child left running: TERM, a short grace, then KILL until nothing is left (DECISIONS 20, 21).
//!
//! Does not know how the processes are found; it asks again after every round, because a process may fork while
//! its relatives are being ended.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How long what is left gets to leave after a TERM.
pub(crate) const GRACE: Duration = Duration::from_millis(200);
/// How long a KILL may take before we stop waiting: a process in an uninterruptible sleep must not hang a run.
pub(crate) const STUBBORN: Duration = Duration::from_secs(2);
/// How long one round waits after a KILL before it looks again.
const ROUND: Duration = Duration::from_millis(50);
/// How often a process is looked at that cannot be waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// A process that is no child started here.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) pid: Pid,
    /// Stands for this very process, where the system has such a thing.
    pub(crate) handle: Option<OwnedFd>,
}

impl Stray {
    /// Signals it; returns whether it may still be ended that way.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let sent = match &self.handle {
            Some(handle) => send(handle, signal),
            None => kill_process(self.pid, signal),
        };
        sent != Err(Errno::PERM)
    }

    /// Waits until it is gone, at most until `until`; returns whether it is.
    pub(crate) fn wait(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let gone = match &self.handle {
                Some(handle) => pause(&mut [PollFd::new(handle, PollFlags::IN)], left),
                None => pause(&mut [], left.min(LOOK)) || test_kill_process(self.pid).is_err(),
            };
            if gone || left.is_zero() {
                return gone;
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn send(handle: &OwnedFd, signal: Signal) -> rustix::io::Result<()> {
    rustix::process::pidfd_send_signal(handle, signal)
}

#[cfg(not(target_os = "linux"))]
fn send(_: &OwnedFd, _: Signal) -> rustix::io::Result<()> {
    Ok(())
}

fn pause(fds: &mut [PollFd<'_>], time: Duration) -> bool {
    let time = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
    poll(fds, Some(&time)).is_ok_and(|ready| ready > 0)
}

/// Ends everything that `left` finds, and with each round what `group` signals; at once without a `grace`.
pub(crate) fn end(left: &dyn Fn() -> Vec<Stray>, group: &dyn Fn(Signal), grace: Duration) {
    let mut hopeless = HashSet::new();
    let begun = Instant::now();
    loop {
        let strays: Vec<_> = left().into_iter().filter(|it| !hopeless.contains(&it.pid)).collect();
        let now = Instant::now();
        if strays.is_empty() || now >= begun + grace + STUBBORN {
            return;
        }
        let patient = now < begun + grace;
        let signal = if patient { Signal::TERM } else { Signal::KILL };
        group(signal);
        for stray in &strays {
            if !stray.signal(signal) {
                hopeless.insert(stray.pid);
            }
        }
        let until = if patient { begun + grace } else { now + ROUND };
        for stray in strays.iter().filter(|it| !hopeless.contains(&it.pid)) {
            stray.wait(until);
        }
    }
}
