//! Tries on this machine what a run relies on when processes have to end: that a child's leftovers are ended with it, and
//! that a guard ends what an engine leaves that is killed.
//!
//! Both are tried for real, on children of its own that would sleep for a minute. For the second a copy of this program
//! plays the engine, a [`stand_in`].

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, PipeReader, Read as _, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, test_kill_process};

use crate::process::again::Background;
use crate::process::exit::pidfd;
use crate::process::find;
use crate::process::remains::Stray;
use crate::process::{Cancel, Discard, Flow, Ladder, Launcher, Sink, Spec, Stdin, Streams, Whole};

/// The first word of a stand-in's command line. No command of a person's, so it stands in no help.
const WORD: &str = "__stand-in";
/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A child that sleeps, and tells who it is.
const SLEEPER: &str = "echo $$; exec sleep 60";
/// A child that ends and leaves something behind that sleeps, in a session of its own where that can be had.
const LEAVER: &str = "(if command -v setsid >/dev/null; then exec setsid sleep 60; fi; exec sleep 60) >/dev/null 2>&1 </dev/null & \
                      echo $!";

/// Whether what a child leaves running is ended with it by `launcher`.
///
/// # Errors
/// What went wrong, as a sentence without its beginning.
pub fn leftovers_end(launcher: &Launcher) -> Result<(), String> {
    let mut said = Whole::default();
    let streams = Streams::Split { stdout: &mut said, stderr: &mut Discard };
    run(launcher, LEAVER, streams)?;
    let pid =
        pid_in(&String::from_utf8_lossy(&said.0)).ok_or("the child that was to leave one did not start")?;
    if test_kill_process(pid).is_ok() {
        Stray { pid, handle: pidfd(pid) }.end();
        return Err("a process that a child left running went on running".to_owned());
    }
    Ok(())
}

/// Whether a guard ends the child of an engine that is killed.
///
/// # Errors
/// What went wrong, as a sentence without its beginning.
pub fn guard_ends() -> Result<(), String> {
    let mut engine = Background::heard(&[WORD.into()])
        .map_err(|error| format!("this program cannot be started again: {error}"))?;
    let said = line_of(&mut engine.said);
    let child = said.as_deref().ok().and_then(pid_in).map(|pid| Stray { pid, handle: pidfd(pid) });
    engine.kill();
    let Some(child) = child else {
        let said = said.unwrap_or_else(|error| error.to_string());
        return Err(format!(
            "it cannot be tried: {}",
            if said.trim().is_empty() { "no child started" } else { said.trim() }
        ));
    };
    if child.wait(Instant::now() + PATIENCE) {
        return Ok(());
    }
    child.end();
    Err("what a killed engine left went on running".to_owned())
}

/// Plays an engine when the command line says so: posts a guard, starts a child that says its pid into `out`, and waits
/// to be killed. `None` when the command line is a person's.
pub fn stand_in(words: &[OsString], out: &mut (dyn Write + Send)) -> Option<u8> {
    if words.len() != 2 || words[1] != WORD {
        return None;
    }
    let launcher = Launcher::new(&format!("checkup-{}", std::process::id()));
    let (lost, heard) = crossbeam_channel::unbounded();
    launcher.post_guard(None, Box::new(move |warning| drop(lost.send(warning))));
    if let Ok(warning) = heard.try_recv() {
        writeln!(out, "{warning}").ok();
        return Some(1);
    }
    let mut told = Told(out);
    let failed = run(&launcher, SLEEPER, Streams::Split { stdout: &mut told, stderr: &mut Discard }).err();
    if let Some(failed) = failed {
        writeln!(out, "{failed}").ok();
    }
    launcher.dismiss_guard();
    Some(1)
}

fn run(launcher: &Launcher, script: &str, streams: Streams<'_>) -> Result<(), String> {
    let spec = Spec {
        program: find::find("sh").map_err(|missing| missing.to_string())?,
        args: vec!["-c".into(), script.into()],
        cwd: None,
        env: Vec::new(),
        stdin: Stdin::Null,
        timeout: Some(2 * PATIENCE),
        ladder: Ladder::Terminate,
        mark: "checkup/0".to_owned(),
        leave_running: false,
    };
    let cancel = Cancel::new().map_err(|error| error.to_string())?;
    launcher.run(spec, streams, &cancel).map(drop).map_err(|error| error.to_string())
}

/// Hands on at once what a child says.
struct Told<'w>(&'w mut (dyn Write + Send));

impl Sink for Told<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.0.write_all(bytes)?;
        self.0.flush()?;
        Ok(Flow::More)
    }
}

fn line_of(pipe: &mut PipeReader) -> io::Result<String> {
    let patience = Timespec::try_from(PATIENCE).unwrap_or(Timespec { tv_sec: 10, tv_nsec: 0 });
    if poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&patience))? == 0 {
        return Err(io::Error::other("it said nothing"));
    }
    let mut line = String::new();
    BufReader::new(pipe.take(4096)).read_line(&mut line)?;
    Ok(line)
}

fn pid_in(said: &str) -> Option<Pid> {
    Pid::from_raw(said.trim().parse().ok().filter(|pid| *pid > 1)?)
}

impl Stray {
    /// Kills it, for a check that has failed.
    fn end(&self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_leaves_is_ended_on_this_machine() {
        assert_eq!(leftovers_end(&Launcher::new("checkup")), Ok(()));
    }

    #[test]
    fn a_command_line_of_a_person_is_no_stand_ins() {
        for words in [&["omg"] as &[&str], &["omg", "doctor"], &["omg", "__stand-in", "x"]] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(stand_in(&words, &mut Vec::new()), None, "{words:?}");
        }
    }
}
