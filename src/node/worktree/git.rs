//! Runs git: one call at a time by whoever calls, each with a bound, its words kept for messages.
//!
//! Knows no lane. The launcher that is handed in has no variable of the caller left that names a repository, so that
//! git finds its repository by the directory alone (`process::env`). Hooks of the repository run as they would for
//! its owner.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::process::capture::{Tail, Whole};
use crate::process::find::{self, NotFound};
use crate::process::{Cancel, Exit, How, Ladder, Launcher, Sink, SpawnError, Spec, Stdin, Streams};
use crate::text::duration;
use crate::text::lossy::lossy;
use crate::text::sanitize::stderr_tail;

/// How long a question may take (FACTS 11).
pub const QUESTION: Duration = Duration::from_secs(30);
/// How long a call may take that writes or removes a whole checkout.
pub const CHECKOUT: Duration = Duration::from_secs(10 * 60);

/// Variables of every call: nothing asks, nothing writes what it need not, paths are taken as they are.
const ALWAYS: [(&str, &str); 8] = [
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_GLOB_PATHSPECS", "0"),
    ("GIT_NOGLOB_PATHSPECS", "0"),
    ("GIT_ICASE_PATHSPECS", "0"),
    ("GIT_EDITOR", "true"),
];

/// Why git did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It said no.
    #[error("git {command}: {said}")]
    Refused {
        /// What was asked, without its paths.
        command: String,
        /// Its last words.
        said: String,
    },
    /// It took too long.
    #[error("git {command} took longer than {}", duration::format(*bound))]
    TimedOut {
        /// What was asked.
        command: String,
        /// The bound.
        bound: Duration,
    },
    /// It could not be run.
    #[error(transparent)]
    NotStarted(#[from] SpawnError),
}

/// One call of git.
#[derive(Debug)]
pub struct Call<'a> {
    dir: &'a Path,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    bound: Duration,
}

impl<'a> Call<'a> {
    /// A call in `dir`.
    pub fn new<S: AsRef<OsStr>>(dir: &'a Path, args: impl IntoIterator<Item = S>) -> Self {
        let args = args.into_iter().map(|word| word.as_ref().to_owned()).collect();
        Call { dir, args, env: Vec::new(), input: Vec::new(), bound: QUESTION }
    }

    /// The same with another bound.
    pub fn within(self, bound: Duration) -> Self {
        Call { bound, ..self }
    }

    /// The same with something to read.
    pub fn reading(self, input: Vec<u8>) -> Self {
        Call { input, ..self }
    }

    /// The same with one more variable.
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// The machine's git.
#[derive(Clone, Debug)]
pub struct Git {
    launcher: Arc<Launcher>,
    program: PathBuf,
}

impl Git {
    /// The git on `PATH`, its children seen to by `launcher`.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(launcher: Arc<Launcher>) -> Result<Self, NotFound> {
        Ok(Git { launcher, program: find::find("git")? })
    }

    /// Runs `call` and returns what it printed.
    ///
    /// # Errors
    /// When it did not end with 0 in time.
    pub fn run(&self, call: Call<'_>) -> Result<Vec<u8>, GitError> {
        let mut stdout = Whole::default();
        self.run_into(call, &mut stdout)?;
        Ok(stdout.0)
    }

    /// Runs `call`, what it prints going to `stdout`.
    ///
    /// # Errors
    /// When it did not end with 0 in time.
    pub fn run_into(&self, call: Call<'_>, stdout: &mut dyn Sink) -> Result<(), GitError> {
        let command = call.args.first().map_or_else(String::new, |word| word.display().to_string());
        let bound = call.bound;
        let always = ALWAYS.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let spec = Spec {
            program: self.program.clone(),
            args: call.args,
            cwd: Some(call.dir.to_path_buf()),
            env: always.chain(call.env).collect(),
            stdin: if call.input.is_empty() { Stdin::Null } else { Stdin::Bytes(call.input) },
            timeout: Some(bound),
            ladder: Ladder::Terminate,
            mark: "git/0".to_owned(),
            leave_running: false,
        };
        let mut stderr = Tail::default();
        let never =
            Cancel::new().map_err(|source| SpawnError::Io { program: self.program.clone(), source })?;
        let streams = Streams::Split { stdout, stderr: &mut stderr };
        let ended = self.launcher.run(spec, streams, &never)?;
        match (ended.how, ended.exit) {
            (How::TimedOut, _) => Err(GitError::TimedOut { command, bound }),
            (_, Exit::Code(0)) => Ok(()),
            (_, exit) => {
                let said = stderr_tail(&lossy(stderr.into_bytes()));
                let silent = || match exit {
                    Exit::Code(code) => format!("exit code {code}, without a word"),
                    Exit::Signal(signal) => format!("ended by signal {signal}"),
                };
                let said = if said.is_empty() { silent() } else { said };
                Err(GitError::Refused { command, said })
            }
        }
    }

    /// Asks for one line.
    ///
    /// # Errors
    /// When git says no.
    pub fn line<S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, GitError> {
        let bytes = self.run(Call::new(dir, args))?;
        Ok(lossy(bytes).trim_end_matches('\n').to_owned())
    }

    /// Asks for a path; a relative answer is relative to `dir`.
    ///
    /// # Errors
    /// When git says no.
    pub fn path<S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Result<PathBuf, GitError> {
        let bytes = self.run(Call::new(dir, args))?;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let path = dir.join(OsStr::from_bytes(bytes));
        Ok(path.canonicalize().unwrap_or(path))
    }

    /// The commit that `name` stands for, `None` when there is none.
    ///
    /// # Errors
    /// When git could not be asked.
    pub fn commit(&self, dir: &Path, name: &str) -> Result<Option<String>, GitError> {
        let wanted = format!("{name}^{{commit}}");
        match self.line(dir, ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]) {
            Ok(sha) => Ok(Some(sha)),
            Err(GitError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What git printed, split at NUL bytes, as paths.
pub fn paths(bytes: &[u8]) -> Vec<PathBuf> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|it| !it.is_empty())
        .map(|it| OsStr::from_bytes(it).into())
        .collect()
}
