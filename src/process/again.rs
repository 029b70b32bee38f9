//! Starts this very program again: as a guard, or as a run in the background.
//!
//! On Linux by `/proc/self/exe`, which is this program even when its file has been replaced meanwhile. Such helpers
//! are no children that the launcher knows; [`Staff`] keeps them apart from what nodes start.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

use crate::process::Exit;
use crate::process::launcher;
use crate::process::own::Staff;

/// The name that the copies go by in a table of processes.
const NAME: &str = "omg";

/// A copy of this program that goes on by itself, with this process's standard input and standard error.
#[derive(Debug)]
pub struct Background {
    staff: Staff,
    /// Its standard output.
    pub said: PipeReader,
}

impl Background {
    /// Starts a copy with `words`, the program's name not among them.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(words: &[OsString]) -> io::Result<Self> {
        let (said, theirs) = io::pipe()?;
        let mut command = this_program(words)?;
        command.stdout(theirs);
        let staff = Staff::start(&mut command)?;
        Ok(Background { staff, said })
    }

    /// The same with what it writes to standard error among what it said: somebody else is to read it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn heard(words: &[OsString]) -> io::Result<Self> {
        let (said, theirs) = io::pipe()?;
        let mut command = this_program(words)?;
        command.stdin(Stdio::null()).stderr(theirs.try_clone()?).stdout(theirs);
        let staff = Staff::start(&mut command)?;
        Ok(Background { staff, said })
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(self) {
        self.staff.end();
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(self) -> io::Result<Exit> {
        self.staff.wait().map(|status: ExitStatus| launcher::exit(status))
    }
}

/// The command that starts this program with `words`.
#[expect(clippy::disallowed_methods, reason = "part of the floor that starts children")]
pub(super) fn this_program(words: &[impl AsRef<OsStr>]) -> io::Result<Command> {
    let mut command = Command::new(program()?);
    command.arg0(NAME).args(words);
    Ok(command)
}

#[cfg(target_os = "linux")]
fn program() -> io::Result<std::path::PathBuf> {
    Ok("/proc/self/exe".into())
}

#[cfg(not(target_os = "linux"))]
fn program() -> io::Result<std::path::PathBuf> {
    std::env::current_exe()
}
