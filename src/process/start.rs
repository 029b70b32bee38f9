//! Turns a [`Spec`] into a running child with its pipes.
//!
//! Everything asked of `Command` here (absolute program, own group, whole environment, no hook between fork and
//! exec) keeps std on `posix_spawn`, which costs a tenth of a fork (PERF 0). Our ends of the pipes do not block
//! and every descriptor is close-on-exec (case A11); standard input is never inherited (case A12).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rustix::fs::{Access, OFlags, access, fcntl_setfl};
use rustix::io::Errno;

use crate::process::own::Own;
use crate::process::{SpawnError, Spec, Stdin};

/// Becomes the program that follows, with the terminal's stop signals ignored. A child is in the background of our
/// terminal: without this a question there (a password, a host key) would stop it until its deadline, as case A12
/// says of standard input; with it the question fails at once.
const DEAF: &str = "trap '' TTIN TTOU; exec \"$0\" \"$@\"";

/// What the system calls a pipe, at either end of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PipeId(pub(crate) u64);

impl PipeId {
    /// The pipe that `end` is an end of.
    pub(crate) fn of(end: &impl AsFd) -> io::Result<Self> {
        Ok(PipeId(rustix::fs::fstat(end)?.st_ino))
    }
}

/// A child and our ends of its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) own: Own,
    /// Where the prompt is written; absent with `/dev/null`.
    pub(crate) input: Option<PipeWriter>,
    /// Standard output and standard error, or one pipe for both.
    pub(crate) outputs: Vec<PipeReader>,
}

/// Starts `spec` with `base` under its own variables and `over` over them. Right before it, `starting` hears which pipe
/// will be the child's standard output: the one mark of it that there is before its pid is known.
pub(crate) fn start(
    spec: &Spec,
    merged: bool,
    base: &[(OsString, OsString)],
    over: &[(&OsStr, &OsStr)],
    starting: impl FnOnce(PipeId),
) -> Result<Started, SpawnError> {
    let failed = |source: io::Error| SpawnError::Io { program: spec.program.clone(), source };
    if let Some(place) = nul_in(spec) {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, format!("NUL byte in {place}"))));
    }
    let mut command = command(spec, base, over);
    let (input, outputs) = pipes(&mut command, spec, merged).map_err(failed)?;
    starting(PipeId::of(&outputs[0]).map_err(failed)?);
    let own = Own::start(&mut command).map_err(|error| explain(spec, error))?;
    Ok(Started { own, input, outputs })
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that starts what the program runs")]
fn command(spec: &Spec, base: &[(OsString, OsString)], over: &[(&OsStr, &OsStr)]) -> Command {
    let mut command = Command::new(&spec.program);
    if has_terminal() && access(&spec.program, Access::EXEC_OK).is_ok() {
        command = Command::new("/bin/sh");
        command.args(["-c", DEAF]).arg(&spec.program);
    }
    command.args(&spec.args).process_group(0).env_clear();
    command.envs(base.iter().map(|(name, value)| (name, value)));
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.envs(over.iter().copied());
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    command
}

/// Whether this program has a terminal that its children could ask at, in front of a person or in the background.
fn has_terminal() -> bool {
    static TERMINAL: LazyLock<bool> = LazyLock::new(|| File::open("/dev/tty").is_ok());
    *TERMINAL
}

/// The command holds the child's ends until it is dropped, which is before anyone waits for an end of file.
fn pipes(
    command: &mut Command,
    spec: &Spec,
    merged: bool,
) -> io::Result<(Option<PipeWriter>, Vec<PipeReader>)> {
    let input = match &spec.stdin {
        Stdin::Null => {
            command.stdin(Stdio::null());
            None
        }
        Stdin::Bytes(_) => {
            let (theirs, ours) = io::pipe()?;
            command.stdin(theirs);
            fcntl_setfl(&ours, OFlags::WRONLY | OFlags::NONBLOCK)?;
            Some(ours)
        }
    };
    let (out, theirs) = output()?;
    if merged {
        command.stderr(theirs.try_clone()?).stdout(theirs);
        return Ok((input, vec![out]));
    }
    command.stdout(theirs);
    let (err, theirs) = output()?;
    command.stderr(theirs);
    Ok((input, vec![out, err]))
}

fn output() -> io::Result<(PipeReader, PipeWriter)> {
    let (ours, theirs) = io::pipe()?;
    fcntl_setfl(ours.as_fd(), OFlags::RDONLY | OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

fn nul_in(spec: &Spec) -> Option<String> {
    let has = |it: &OsStr| it.as_bytes().contains(&0);
    if let Some(at) = spec.args.iter().position(|it| has(it)) {
        return Some(format!("argument {}", at + 1));
    }
    let bad = spec.env.iter().find(|(name, value)| has(name) || has(value));
    bad.map(|(name, _)| format!("variable {}", name.display().to_string().replace('\0', "\u{fffd}")))
}

/// A missing directory and a missing program are one error code to the system; only looking tells them apart.
fn explain(spec: &Spec, error: io::Error) -> SpawnError {
    if error.raw_os_error() == Some(Errno::TOOBIG.raw_os_error()) {
        let words = spec.args.iter().map(|it| it.len() + 1).sum::<usize>();
        return SpawnError::TooLong { bytes: spec.program.as_os_str().len() + 1 + words };
    }
    if let Some(path) = &spec.cwd
        && let Some(reason) = unusable(path)
    {
        return SpawnError::Cwd { path: path.clone(), reason };
    }
    SpawnError::Io { program: spec.program.clone(), source: error }
}

/// Why a child cannot be started in `path`, if it cannot.
fn unusable(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("does not exist".to_owned()),
        Err(error) => Some(format!("cannot be read: {error}")),
        Ok(it) if !it.is_dir() => Some("is not a directory".to_owned()),
        Ok(_) => access(path, Access::EXEC_OK).is_err().then(|| "cannot be entered".to_owned()),
    }
}
