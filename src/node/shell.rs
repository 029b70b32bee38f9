//! Shell commands that the engine runs itself: command nodes and the evidence of `success_check.verify`.
//!
//! A trait, because a rehearsal answers both from its script (DECISIONS 24). Output of any size is judged in flat
//! memory: it is spooled or streamed, never held (DECISIONS 7, case B3).

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::graph::NodeId;
use crate::graph::node::VERIFY_TIMEOUT_DEFAULT;
use crate::node::invocation::mark;
use crate::process::capture::Tail;
use crate::process::{
    Cancel, Ended, Exit, Flow, How, Ladder, Launcher, Sink, SpawnError, Spec, Stdin, Streams,
};
use crate::text::lossy::lossy;
use crate::text::regexp::{Pattern, Stream};

/// A command to run with `sh -c`.
#[derive(Clone, Debug)]
pub struct ShellRequest {
    /// The node.
    pub node: NodeId,
    /// The attempt, from 0.
    pub attempt: u32,
    /// The command, tokens resolved.
    pub command: String,
    /// The directory.
    pub cwd: PathBuf,
    /// `OMG_INPUT_*` and `OMG_ARTIFACT_*` (DECISIONS 8).
    pub env: Vec<(OsString, OsString)>,
    /// The bound.
    pub timeout: Duration,
    /// Whether what it leaves running is left running.
    pub leave_running: bool,
}

/// How a command node's command ended.
#[derive(Debug)]
pub struct Ran {
    /// What brought the end about.
    pub how: How,
    /// The exit.
    pub exit: Exit,
    /// The tail of standard error.
    pub stderr: String,
    /// Whether a descendant held the output open.
    pub leaky: bool,
    /// The pids left running on purpose.
    pub left_running: Vec<u32>,
}

/// What an evidence command must show.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The exit code that passes.
    pub exit: i32,
    /// A pattern over everything printed.
    pub output_matches: Option<Pattern>,
}

/// What an evidence command showed.
#[derive(Debug)]
pub struct Evidence {
    /// What brought the end about.
    pub how: How,
    /// The exit.
    pub exit: Exit,
    /// Whether the pattern matched; true without one.
    pub matched: bool,
    /// The last 16 KiB of output, both streams together.
    pub tail: String,
    /// Whether a descendant held the output open.
    pub leaky: bool,
}

/// Bytes of output that an [`Evidence`] keeps: 4,000 characters of feedback payload at 4 bytes each (FACTS 5.6).
pub const EVIDENCE_TAIL_BYTES: usize = 16 << 10;
/// The bound of an evidence command that names none.
pub const EVIDENCE_TIMEOUT: Duration = VERIFY_TIMEOUT_DEFAULT;

/// Runs shell commands.
pub trait Shell: Send + Sync {
    /// Runs a command node's command; standard output goes to `stdout` byte for byte.
    ///
    /// # Errors
    /// When it could not be started, or `stdout` failed.
    fn run(&self, request: &ShellRequest, stdout: &mut dyn Sink, cancel: &Cancel) -> Result<Ran, SpawnError>;

    /// Runs the command that prepares a fresh worktree.
    ///
    /// # Errors
    /// When it could not be started, or `stdout` failed.
    fn set_up(
        &self,
        request: &ShellRequest,
        stdout: &mut dyn Sink,
        cancel: &Cancel,
    ) -> Result<Ran, SpawnError> {
        self.run(request, stdout, cancel)
    }

    /// Runs an evidence command and compares it with `expected`; `log` hears its output.
    ///
    /// # Errors
    /// When it could not be started.
    fn verify(
        &self,
        request: &ShellRequest,
        expected: &Expectation,
        log: &mut dyn Sink,
        cancel: &Cancel,
    ) -> Result<Evidence, SpawnError>;

    /// Ends what an attempt that failed was allowed to leave running.
    fn end_left(&self, node: &NodeId, attempt: u32);
}

/// The machine's own shell.
#[derive(Debug)]
pub struct SystemShell {
    launcher: Arc<Launcher>,
}

impl SystemShell {
    /// A shell whose children `launcher` sees to.
    pub fn new(launcher: Arc<Launcher>) -> Self {
        SystemShell { launcher }
    }

    fn spec(request: &ShellRequest) -> Spec {
        Spec {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), request.command.clone().into()],
            cwd: Some(request.cwd.clone()),
            env: request.env.clone(),
            stdin: Stdin::Null,
            timeout: Some(request.timeout),
            ladder: Ladder::Terminate,
            mark: mark(&request.node, request.attempt),
            leave_running: request.leave_running,
        }
    }
}

impl Shell for SystemShell {
    fn run(&self, request: &ShellRequest, stdout: &mut dyn Sink, cancel: &Cancel) -> Result<Ran, SpawnError> {
        let mut stderr = Tail::default();
        let streams = Streams::Split { stdout, stderr: &mut stderr };
        let Ended { exit, how, leaky, left_running } =
            self.launcher.run(Self::spec(request), streams, cancel)?;
        Ok(Ran { how, exit, stderr: lossy(stderr.into_bytes()), leaky, left_running })
    }

    fn verify(
        &self,
        request: &ShellRequest,
        expected: &Expectation,
        log: &mut dyn Sink,
        cancel: &Cancel,
    ) -> Result<Evidence, SpawnError> {
        let mut watch = Watch {
            stream: expected.output_matches.as_ref().map(Pattern::stream),
            tail: Tail::new(EVIDENCE_TAIL_BYTES),
            log,
        };
        let mut spec = Self::spec(request);
        // A mark of its own: what the node itself may leave running outlives its check.
        spec.mark += "/check";
        let ended = self.launcher.run(spec, Streams::Merged(&mut watch), cancel)?;
        let matched = watch.stream.is_none_or(Stream::finish);
        let (exit, how, leaky) = (ended.exit, ended.how, ended.leaky);
        Ok(Evidence { how, exit, matched, tail: lossy(watch.tail.into_bytes()), leaky })
    }

    fn end_left(&self, node: &NodeId, attempt: u32) {
        self.launcher.end_left(&mark(node, attempt));
    }
}

/// Judges, keeps and logs output as it arrives.
struct Watch<'a> {
    stream: Option<Stream>,
    tail: Tail,
    log: &'a mut dyn Sink,
}

impl Sink for Watch<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        if let Some(stream) = &mut self.stream {
            stream.feed(bytes);
        }
        self.tail.take(bytes)?;
        self.log.take(bytes)?;
        Ok(Flow::More)
    }
}
