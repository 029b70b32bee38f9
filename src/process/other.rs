//! Processes that somebody else started: whether one is above this one, and asking one to stop.
//!
//! A pid on file proves little: it may have passed to another process, or belong to another machine's or container's
//! table. So a process is only signalled while it has the file open that names it, where the system shows that.

use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal, getpid};

use crate::process::descendants::parent;

/// More steps than any chain of parents has; the table may change while it is followed.
const STEPS_MAX: usize = 4096;

/// Why a process was not asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing shows that the pid is the right one.
    #[error("process {pid} does not have {} open, so it is left alone", path.display())]
    NotIts {
        /// The pid.
        pid: u32,
        /// The file that names it.
        path: std::path::PathBuf,
    },
    /// The system refused.
    #[error("process {pid} cannot be told to stop: {source}")]
    Io {
        /// The pid.
        pid: u32,
        /// Its word.
        source: io::Error,
    },
}

/// Whether `pid` is this process or above it, and has `file` open: a pid on file may be that of another table, and the 1
/// of a container is above everything here.
pub fn is_above(pid: u32, file: &Path) -> bool {
    let mut chain = std::iter::successors(Some(getpid()), |at| parent(*at)).take(STEPS_MAX);
    let found = chain.find(|at| at.as_raw_pid().unsigned_abs() == pid);
    found.is_some_and(|pid| has_open(pid, file).unwrap_or(false))
}

/// Sends `pid` a TERM, provided that it has `file` open and that `is_wanted`, which is asked last, says so.
///
/// # Errors
/// When it does not, is gone, or is another user's.
pub fn ask_to_stop(pid: u32, file: &Path, is_wanted: impl FnOnce() -> bool) -> Result<(), AskError> {
    let failed = |source: io::Error| AskError::Io { pid, source };
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let target = raw.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    terminate(target, file, is_wanted)
        .map_err(failed)?
        .then_some(())
        .ok_or(AskError::NotIts { pid, path: file.to_owned() })
}

/// Takes hold of the process before it looks, so that what it looked at is what it signals.
#[cfg(target_os = "linux")]
fn terminate(pid: Pid, file: &Path, is_wanted: impl FnOnce() -> bool) -> io::Result<bool> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        Err(rustix::io::Errno::NOSYS) => None,
        Err(error) => return Err(error.into()),
    };
    if !has_open(pid, file)? {
        return Ok(false);
    }
    if !is_wanted() {
        return Ok(true);
    }
    match handle {
        Some(handle) => pidfd_send_signal(&handle, Signal::TERM)?,
        None => rustix::process::kill_process(pid, Signal::TERM)?,
    }
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn terminate(pid: Pid, _: &Path, is_wanted: impl FnOnce() -> bool) -> io::Result<bool> {
    if is_wanted() {
        rustix::process::kill_process(pid, Signal::TERM)?;
    }
    Ok(true)
}

#[cfg(target_os = "linux")]
fn has_open(pid: Pid, file: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let identity = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
    let wanted = identity(std::fs::metadata(file)?);
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    Ok(open.filter_map(|it| std::fs::metadata(it.path()).ok()).any(|meta| identity(meta) == wanted))
}

/// Elsewhere nobody shows it, and a doubt spares the process.
#[cfg(not(target_os = "linux"))]
fn has_open(_: Pid, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_above_itself_and_one_that_does_not_have_the_file_is_another() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(is_above(std::process::id(), file.path()));
        assert!(!is_above(0x7fff_fffe, file.path()));
        if cfg!(target_os = "linux") {
            assert!(!is_above(std::os::unix::process::parent_id(), file.path()));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_without_the_file_is_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!has_open(rustix::process::getppid().unwrap(), file.path()).unwrap());
        assert!(matches!(ask_to_stop(0x7fff_fffe, file.path(), || true), Err(AskError::Io { .. })));
        assert!(has_open(getpid(), file.path()).unwrap());
    }
}
