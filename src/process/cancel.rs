//! One cancellation for a whole run: every child, delay and wait that watches it wakes at once.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A cancellation that fires at most once. The read end of a pipe stands in every `poll`; closing the write end
/// wakes them all, for good.
#[derive(Debug)]
pub struct Cancel {
    watch: PipeReader,
    hold: Mutex<Option<PipeWriter>>,
}

impl Cancel {
    /// A cancellation that has not fired.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (watch, hold) = io::pipe()?;
        Ok(Self { watch, hold: Mutex::new(Some(hold)) })
    }

    /// Fires. Later calls do nothing.
    pub fn fire(&self) {
        drop(self.hold.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether it has fired.
    pub fn is_fired(&self) -> bool {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// A descriptor that is readable (hung up) once it has fired.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// Waits until it fires or `time` has passed; returns whether it fired.
    pub fn wait(&self, time: Duration) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let until = std::time::Instant::now() + time;
        while !self.is_fired() {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return false;
            }
            let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            poll(&mut [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)], Some(&timeout)).ok();
        }
        true
    }
}
