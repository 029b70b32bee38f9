//! A short question to a program, such as its version: what it printed, or why there is no answer.
//!
//! The answer is bounded in time and in size, whatever the program does. Knows nothing of what is asked.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::process::{
    Cancel, Exit, Flow, How, Ladder, Launcher, Sink, SpawnError, Spec, Stdin, Streams, Tail,
};

/// How much an answer may be.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much is kept of what was said beside it.
const ASIDE_BYTES: usize = 4096;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The program could not be started.
    #[error(transparent)]
    Unstarted(#[from] SpawnError),
    /// The system gave no means to wait for it.
    #[error("it cannot be waited for: {0}")]
    Unwatched(#[from] io::Error),
    /// It did not end in time.
    #[error("it did not end within {} s", .0.as_secs())]
    Late(Duration),
    /// It printed more than an answer can be.
    #[error("it prints without end")]
    Endless,
    /// It ended otherwise than well.
    #[error("{exit}{}{aside}", if aside.is_empty() { "" } else { ": " })]
    Failed {
        /// How.
        exit: Exit,
        /// The last line that it said on standard error.
        aside: String,
    },
}

impl Launcher {
    /// Runs `program` and returns what it printed, when it ended with 0 within `timeout`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn question(&self, program: &Path, args: &[&str], timeout: Duration) -> Result<String, Unanswered> {
        let spec = Spec {
            program: program.to_owned(),
            args: args.iter().map(OsString::from).collect(),
            cwd: None,
            env: Vec::new(),
            stdin: Stdin::Null,
            timeout: Some(timeout),
            ladder: Ladder::Terminate,
            mark: format!("{}/0", program.file_name().unwrap_or(OsStr::new("question")).display()),
            leave_running: false,
        };
        let (mut answer, mut aside) = (Short::default(), Tail::new(ASIDE_BYTES));
        let streams = Streams::Split { stdout: &mut answer, stderr: &mut aside };
        let ended = self.run(spec, streams, &Cancel::new()?)?;
        match (ended.how, ended.exit) {
            _ if answer.is_over => Err(Unanswered::Endless),
            (How::TimedOut, _) => Err(Unanswered::Late(timeout)),
            (_, Exit::Code(0)) => Ok(String::from_utf8_lossy(&answer.bytes).into_owned()),
            (_, exit) => {
                let said = String::from_utf8_lossy(&aside.into_bytes()).into_owned();
                let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
                Err(Unanswered::Failed { exit, aside: last.unwrap_or_default().to_owned() })
            }
        }
    }
}

/// Keeps as much as an answer may be.
#[derive(Default)]
struct Short {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Sink for Short {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.is_over |= self.bytes.len() + bytes.len() > ANSWER_BYTES_MAX;
        if self.is_over {
            return Ok(Flow::Enough);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(Flow::More)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str) -> Result<String, Unanswered> {
        let launcher = Launcher::new("question");
        launcher.question(Path::new("/bin/sh"), &["-c", script], Duration::from_secs(20))
    }

    #[test]
    fn an_answer_is_bounded_and_why_there_is_none_is_told() {
        assert_eq!(asked("echo 1.2; echo aside >&2").ok().as_deref(), Some("1.2\n"));
        for (script, told) in [
            ("exit 3", "exit code 3"),
            ("echo one >&2; echo 'no node' >&2; exit 127", "exit code 127: no node"),
            ("kill -9 $$", "killed by signal 9"),
            ("while :; do echo more; done", "it prints without end"),
        ] {
            assert_eq!(asked(script).map_err(|why| why.to_string()), Err(told.to_owned()), "{script}");
        }
        let launcher = Launcher::new("question");
        let late =
            launcher.question(Path::new("/bin/sh"), &["-c", "exec sleep 60"], Duration::from_millis(50));
        assert!(matches!(late, Err(Unanswered::Late(_))), "{late:?}");
        let none = launcher.question(Path::new("/nowhere/sh"), &[], Duration::from_secs(20));
        assert!(matches!(none, Err(Unanswered::Unstarted(_))), "{none:?}");
    }
}
