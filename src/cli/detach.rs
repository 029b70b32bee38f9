//! `--detach`: a run in the background (case H9).
//!
//! The program starts itself again; the copy has the same standard input and standard error, so it loads, refuses and
//! fails just as it would in the foreground. Once its lock is held and its feed says that it has begun it moves its
//! streams to `detached.log`; the last that it wrote to the pipe that was its standard output is the run's id.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::Failure;
use super::context::Context;
use crate::process::Exit;
use crate::process::again::Background;
use crate::record::{RunDir, RunId, aside};
use crate::text::lossy::lossy;
use crate::view::term::Look;

const ASKED: &str = "--detach";
pub(super) const OBEYED: &str = "--detached";
/// The flags of these commands with a value that may begin with a hyphen, so that it can look like another flag.
pub(super) const HYPHENED: [&str; 3] = ["--verify-cmd", "--verify-timeout", "--max-wall"];
/// Stands before the id. No word for a person holds it.
const BEGUN: u8 = 0;

/// The flags of a command that can go to the background.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Flags {
    /// Starts the run in the background, prints its id once it has begun, and returns.
    ///
    /// What it would have printed goes to detached.log in the run's directory; `omg watch` follows it, `omg stop` ends
    /// it. When it cannot begin, this fails as it would without the flag.
    #[arg(long, conflicts_with = "json")]
    detach: bool,
    /// This process is the copy in the background.
    #[arg(long, hide = true, conflicts_with = "json")]
    detached: bool,
}

impl Flags {
    /// Whether a copy is to be started.
    pub(super) fn is_asked(self) -> bool {
        self.detach
    }

    /// Whether this process is the copy.
    pub(super) fn is_copy(self) -> bool {
        self.detached
    }
}

/// Starts the copy and waits until its run has begun; returns the exit code.
pub(super) fn begin(context: &mut Context) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot start in the background: {error}"));
    let mut copy = Background::start(&copied(std::env::args_os().skip(1))).map_err(failed)?;
    let mut said = Vec::new();
    copy.said.read_to_end(&mut said).map_err(failed)?;
    let (prose, run) = parts(&said);
    if let Some(run) = run {
        context.err.write_all(prose).ok();
        let told = context.out.write_all(run).and_then(|()| context.out.flush());
        return told.map(|()| 0).map_err(|error| unheard(run, &error));
    }
    context.out.write_all(prose)?;
    context.out.flush()?;
    match copy.wait().map_err(failed)? {
        // It has said everything itself.
        Exit::Code(code) => Ok(u8::try_from(code).unwrap_or(super::failure::FAILED)),
        Exit::Signal(signal) => {
            Err(Failure::new(format!("the run was ended by signal {signal} before it began")))
        }
    }
}

/// A run that goes on must not be taken for one that never began, and be started again.
fn unheard(run: &[u8], error: &io::Error) -> Failure {
    let run = lossy(run.to_vec());
    let run = run.trim_end();
    Failure::new(format!(
        "run {run} is under way in the background, and its id could not be printed: {error}"
    ))
    .hinted(format!("omg watch {run} follows it; omg stop {run} ends it"))
}

/// What the copy wrote for a person, and the line with the id of its run if it has begun.
pub(super) fn parts(said: &[u8]) -> (&[u8], Option<&[u8]>) {
    let begun = said.strip_suffix(b"\n").and_then(|line| line.iter().rposition(|byte| *byte == BEGUN));
    begun.map_or((said, None), |at| (&said[..at], Some(&said[at + 1..])))
}

/// The words of the copy. Of no other flag than [`HYPHENED`] a value can begin with a hyphen.
fn copied(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut flags, mut is_value) = (true, false);
    let copy = |word: OsString| {
        let is_flag = flags && !is_value;
        flags &= !is_flag || word != "--";
        is_value = is_flag && HYPHENED.iter().any(|flag| word == *flag);
        if is_flag && word == ASKED { OBEYED.into() } else { word }
    };
    words.map(copy).collect()
}

/// Leaves the terminal's session.
pub(super) fn settle_in() {
    // Whoever leads a group already has been started apart by a shell, and no terminal's signal reaches it.
    setsid().ok();
}

/// Forgets how a terminal wants to be written to: both streams are a file, or soon will be.
pub(super) fn without_a_terminal(context: &mut Context) {
    (context.out_look, context.err_look) = (Look::default(), Look::default());
}

/// Moves the streams to the run's log and says that the run has begun.
pub(super) fn leave(run: &RunId, dir: &RunDir, context: &mut Context) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("run {run}: cannot go to the background: {error}"));
    let log = aside::open_log(dir).map_err(failed)?;
    let nothing = File::open("/dev/null").map_err(failed)?;
    // When nobody waits for the id any more, nobody would know of the run.
    context.out.write_all(&[BEGUN]).map_err(failed)?;
    writeln!(context.out, "{run}").and_then(|()| context.out.flush()).map_err(failed)?;
    dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    dup2_stderr(&log).map_err(|error| failed(error.into()))?;
    dup2_stdout(&log).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, copy: &str) {
        let words = words.split(' ').map(OsString::from);
        let wanted: Vec<OsString> = copy.split(' ').map(OsString::from).collect();
        assert_eq!(copied(words), wanted);
    }

    #[test]
    fn the_id_is_told_from_what_was_said_before_it() {
        assert_eq!(parts(b""), (&b""[..], None));
        assert_eq!(parts(b"it is wrong\n"), (&b"it is wrong\n"[..], None));
        assert_eq!(parts(b"note\n\x001-a\n"), (&b"note\n"[..], Some(&b"1-a\n"[..])));
    }

    #[test]
    fn every_flag_whose_value_can_look_like_a_flag_is_known() {
        let mut omg = <super::super::Omg as clap::CommandFactory>::command();
        omg.build();
        let goes = |command: &&clap::Command| command.get_arguments().any(|arg| arg.get_id() == "detach");
        let commands: Vec<_> = omg.get_subcommands().filter(goes).collect();
        assert_eq!(commands.len(), 3);
        for arg in commands.iter().flat_map(|command| command.get_arguments()) {
            let flag = format!("--{}", arg.get_long().unwrap_or_default());
            assert_eq!(arg.is_allow_hyphen_values_set(), HYPHENED.contains(&flag.as_str()), "{flag}");
        }
    }

    #[test]
    fn the_copy_gets_the_same_words_but_for_the_flag() {
        check("run --detach g.yaml --input a=b", "run --detached g.yaml --input a=b");
        check(
            "--runtime codex run g.yaml --detach --detach",
            "--runtime codex run g.yaml --detached --detached",
        );
        check("run --detach -- --detach", "run --detached -- --detach");
        check(
            "auto x --verify-cmd --detach --verify-timeout -- --detach",
            "auto x --verify-cmd --detach --verify-timeout -- --detached",
        );
    }
}
