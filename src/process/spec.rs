//! What to run, and how it ended: the values that go in and out of this floor.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A child to run.
#[derive(Debug)]
pub struct Spec {
    /// The program, an absolute path (see `find`).
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its directory; `None` is the engine's own.
    pub cwd: Option<PathBuf>,
    /// Variables set over the scrubbed environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub stdin: Stdin,
    /// How long it may run; `None` is without bound.
    pub timeout: Option<Duration>,
    /// How it is ended.
    pub ladder: Ladder,
    /// `<node>/<attempt>`, the value of the run's marker variable.
    pub mark: String,
    /// Whether what it leaves running is left running (DECISIONS 22).
    pub leave_running: bool,
}

/// A child's standard input. It is never inherited (case A12).
#[derive(Debug)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// These bytes, then end of file at once.
    Bytes(Vec<u8>),
}

/// The signals that end a child, in order (DECISIONS 20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ladder {
    /// INT, 3 s, TERM, 2 s, KILL: claude prints its cost on INT.
    InterruptFirst,
    /// TERM, 2 s, KILL.
    Terminate,
}

/// Where a child's output goes. Called on the thread that waits for the child, as bytes arrive.
pub trait Sink {
    /// Takes the next bytes. An error ends the child as [`SpawnError::Io`].
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow>;
}

/// Whether a sink wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    More,
    /// All that matters has been said: give the child a moment to leave by itself, then end it
    /// (CLI-PROTOCOL 3.8).
    Enough,
}

/// A child's two outputs.
pub enum Streams<'a> {
    /// Each on its own.
    Split {
        /// Standard output.
        stdout: &'a mut dyn Sink,
        /// Standard error.
        stderr: &'a mut dyn Sink,
    },
    /// Both on one pipe, in the order of their writing.
    Merged(&'a mut dyn Sink),
}

/// How a child ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit.
    pub exit: Exit,
    /// What brought the end about.
    pub how: How,
    /// Whether a descendant still held an output open when the child was gone.
    pub leaky: bool,
    /// With [`Spec::leave_running`], the pids that still run.
    pub left_running: Vec<u32>,
}

/// An exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

impl Exit {
    /// The code, -1 for a signal.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(_) => -1,
        }
    }
}

/// What brought a child's end about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The child itself.
    Itself,
    /// Its own deadline; the ladder was walked.
    TimedOut,
    /// The run's cancellation; the ladder was walked.
    Cancelled,
    /// A sink had enough, and the child did not leave by itself.
    Enough,
}

/// Why a child never ran, or could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The directory is not there or cannot be entered.
    #[error("working directory {} {reason}", path.display())]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// `does not exist`, `is not a directory`, …
        reason: String,
    },
    /// The arguments do not fit (E2BIG).
    #[error("the command line is too long for this system ({bytes} bytes)")]
    TooLong {
        /// Bytes of all arguments.
        bytes: usize,
    },
    /// The run was cancelled before the child was started.
    #[error("cancelled before it was started")]
    Cancelled,
    /// It was started, and then something failed that has nothing to do with it: what it did and cost is not known.
    #[error("{} could not be run to its end: {source}", program.display())]
    Lost {
        /// The program.
        program: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot start {}: {source}", program.display())]
    Io {
        /// The program.
        program: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}
