//! A descriptor that becomes readable when a child has exited, without reaping it.
//!
//! Linux gives one for a process (`pidfd`). Elsewhere, and on kernels without it, a thread waits for the exit and
//! closes a pipe. Either way the child stays a zombie, so its pid and its group's number cannot be taken by
//! another process before the group has been signalled.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The exit of one child, to be polled.
#[derive(Debug)]
pub(crate) enum ExitWatch {
    /// The kernel's own.
    Pidfd(OwnedFd),
    /// The read end of a pipe that a waiting thread holds open.
    Waiter(PipeReader),
}

impl ExitWatch {
    /// Watches `pid`, a child of this process that only the caller reaps.
    pub(crate) fn new(pid: Pid, portable: bool) -> io::Result<Self> {
        if !portable && let Some(fd) = pidfd(pid) {
            return Ok(ExitWatch::Pidfd(fd));
        }
        let (watch, hold) = io::pipe()?;
        // Never joined: the child's exit ends it, and nobody reaps the child before that.
        thread::Builder::new().name("child exit".to_owned()).spawn(move || {
            while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
                .is_err_and(|it| it == rustix::io::Errno::INTR)
            {}
            drop(hold);
        })?;
        Ok(ExitWatch::Waiter(watch))
    }

    /// Readable or hung up once the child has exited.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            ExitWatch::Pidfd(fd) => fd.as_fd(),
            ExitWatch::Waiter(watch) => watch.as_fd(),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn pidfd(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pidfd(_: Pid) -> Option<OwnedFd> {
    None
}
