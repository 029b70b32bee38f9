//! The children of this process, which are one list for the whole process, whoever started them: hence the statics.
//!
//! A child started here is *known*: nobody but its owner waits for it. Everything else that turns up among this
//! process's children was adopted, and is the business of `descendants`. [`quiet`] waits until no start is under
//! way: until its start has returned a child is not yet known.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::process::exit::ExitWatch;
use crate::process::signals;

static STARTING: RwLock<()> = RwLock::new(());
static KNOWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static STAFF: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A child of which this value is the only owner. Dropped unreaped, it kills the group and reaps.
#[derive(Debug)]
pub(crate) struct Own {
    child: Child,
    pid: Pid,
    reaped: bool,
}

impl Own {
    /// Starts `command`, which must ask for a group of its own.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        signals::heed_children()?;
        let starting = steady();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        known().insert(pid.as_raw_pid());
        drop(starting);
        Ok(Own { child, pid, reaped: false })
    }

    /// The child's pid, which is also its group's number.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Signals the group. Safe while the child is not reaped, because its pid cannot be another's.
    pub(crate) fn signal_group(&self, signal: Signal) {
        signal_group(self.pid, signal);
    }

    /// Waits for the exit and reaps.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        self.wait()
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.reaped = true;
        let status = self.child.wait();
        known().remove(&self.pid.as_raw_pid());
        status
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal_group(Signal::KILL);
            self.wait().ok();
        }
    }
}

/// A helper of this program, not of a node: nobody adopts, waits for or ends it but who holds this value, and it may
/// outlive this process.
#[derive(Debug)]
pub(crate) struct Staff {
    child: Child,
}

impl Staff {
    /// Starts `command`.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        signals::heed_children()?;
        let _starting = steady();
        let child = command.spawn()?;
        staff().insert(Pid::from_child(&child).as_raw_pid());
        Ok(Staff { child })
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait();
        staff().remove(&Pid::from_child(&self.child).as_raw_pid());
        status
    }

    /// Kills it and waits for its end.
    pub(crate) fn end(self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).ok();
        self.wait().ok();
    }

    /// Waits for its end at most for `patience`, and then kills it.
    pub(crate) fn leave_within(self, patience: Duration) {
        let pid = Pid::from_child(&self.child);
        let time = Timespec::try_from(patience).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let gone = ExitWatch::new(pid, false).is_ok_and(|exit| {
            poll(&mut [PollFd::from_borrowed_fd(exit.fd(), PollFlags::IN)], Some(&time)) == Ok(1)
        });
        if !gone {
            kill_process(pid, Signal::KILL).ok();
        }
        self.wait().ok();
    }
}

/// Signals the group of `leader`. A leader can leave its group for another, so it is signalled alone when there is no
/// such group, and at the last step in any case; a second INT, though, would mean something of its own.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    if kill_process_group(leader, signal).is_err() || signal == Signal::KILL {
        kill_process(leader, signal).ok();
    }
}

/// The pids that have an owner.
pub(crate) fn known() -> MutexGuard<'static, BTreeSet<i32>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pids of helpers.
pub(crate) fn staff() -> MutexGuard<'static, BTreeSet<i32>> {
    STAFF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it is held no adopted process is reaped, so that the list of children can be read without a gap.
pub(crate) fn steady() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// While it is held no child is being started, and every child is known.
pub(crate) fn quiet() -> RwLockWriteGuard<'static, ()> {
    STARTING.write().unwrap_or_else(PoisonError::into_inner)
}
