//! The guard of a leg, as the engine sees it: a process that outlives it and ends what it leaves (`ARCHITECTURE` 6).
//!
//! The engine keeps a book of every group that starts and ends, a short line each, in a file without a name that both
//! hold: nobody is woken by an entry, and the book outlives whoever wrote it. A pipe tells the guard how the engine's
//! time ended: with a word of leave, or, when it closes without one, by death, however that came. [`post`] is the
//! guard's own side. Knows no run directory: where the guard leaves its note is handed through.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use crate::process::again::this_program;
use crate::process::descendants::own_group;
use crate::process::env::MARK;
use crate::process::own::Staff;
use crate::process::start::PipeId;

pub mod post;

/// The first word of a guard's command line. No command of a person's, so it stands in no help.
const WORD: &str = "__guard";
/// How long the engine waits for a guard that it has taken its leave of.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a guard that is gone means.
const GONE: &str =
    "its guard is gone: if omg itself is killed (SIGKILL), what its nodes started will go on running";

/// Hears what a person should be warned of.
pub type Warn = Box<dyn Fn(String) + Send + Sync>;

/// What a guard is told at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Where it leaves its note; `None` when there is no run that it would be about.
    pub place: Option<PathBuf>,
    /// The name of the variable that everything to be ended carries.
    pub mark: String,
    /// The engine's pid.
    pub engine: u32,
    /// The engine's process group; 0 when it has none that the guard could return to.
    pub group: i32,
}

impl Orders {
    /// The orders of a guard over this process.
    pub(crate) fn here(place: Option<PathBuf>, mark: &str) -> Self {
        Orders { place, mark: mark.to_owned(), engine: std::process::id(), group: own_group() }
    }

    /// Reads the orders back from a command line, the program's name first; `None` when it is none of a guard.
    pub fn read(words: &[OsString]) -> Option<Self> {
        let [_, word, place, mark, engine, group] = words else { return None };
        let text = |word: &OsString| word.to_str().map(str::to_owned);
        let mark = text(mark).filter(|mark| mark.starts_with(MARK))?;
        let (engine, group) = (text(engine)?.parse().ok()?, text(group)?.parse().ok()?);
        let place = Some(PathBuf::from(place)).filter(|place| !place.as_os_str().is_empty());
        (word == WORD).then_some(Orders { place, mark, engine, group })
    }

    fn words(&self) -> [OsString; 5] {
        let word = |text: &str| OsString::from(text);
        let place = self.place.clone().unwrap_or_default().into_os_string();
        [word(WORD), place, word(&self.mark), word(&self.engine.to_string()), word(&self.group.to_string())]
    }
}

/// A guard that was started, or that is gone.
pub(crate) struct Guard {
    link: Mutex<Option<Link>>,
    warn: Warn,
}

/// The way to a guard that is there.
struct Link {
    pipe: PipeWriter,
    book: File,
    staff: Staff,
}

impl Guard {
    /// Starts a guard; `warn` hears of it once should it be lost.
    pub(crate) fn start(orders: &Orders, warn: Warn) -> io::Result<Self> {
        let (theirs, pipe) = io::pipe()?;
        let book = new_book()?;
        let mut command = this_program(&orders.words().each_ref().map(|it| it as &OsStr))?;
        if orders.group > 0 {
            // A group of its own at once, so that a Ctrl-C during its start is not meant for it.
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        // The book is its standard output, the one place besides its input that a program is started with.
        command.stdin(theirs).stdout(book.try_clone()?).stderr(Stdio::null());
        let staff = Staff::start(&mut command)?;
        Ok(Guard { link: Mutex::new(Some(Link { pipe, book, staff })), warn })
    }

    /// A child with this pipe for its standard output is about to start. Should this process die before it can say which
    /// one that was, it is found by its pipe, whatever it has made of its environment by then.
    pub(crate) fn starting(&self, pipe: PipeId) {
        self.tell(&format!("?{}\n", pipe.0));
    }

    /// It leads this group from now on.
    pub(crate) fn started(&self, leader: Pid, pipe: PipeId) {
        self.tell(&format!("+{}\n!{}\n", leader.as_raw_pid(), pipe.0));
    }

    /// The group's leader is about to be reaped: its number may soon be another's.
    pub(crate) fn ended(&self, leader: Pid) {
        self.tell(&format!("-{}\n", leader.as_raw_pid()));
    }

    /// What carries this value of the marker may be left running.
    pub(crate) fn keep(&self, mark: &str) {
        self.tell(&format!("={mark}\n"));
    }

    /// Takes leave of it and waits until it is gone.
    pub(crate) fn dismiss(&self) {
        let Some(mut link) = self.link().take() else { return };
        let told = link.pipe.write_all(post::LEAVE).is_ok();
        link.part(told);
    }

    fn tell(&self, line: &str) {
        let mut held = self.link();
        if held.as_mut().is_none_or(|link| link.note(line).is_ok()) {
            return;
        }
        let lost = held.take();
        drop(held);
        if let Some(link) = lost {
            link.part(false);
            (self.warn)(GONE.to_owned());
        }
    }

    fn link(&self) -> MutexGuard<'_, Option<Link>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("there", &self.link().is_some()).finish_non_exhaustive()
    }
}

impl Link {
    /// Enters a line into the book, for a guard that is there to read it.
    fn note(&mut self, line: &str) -> io::Result<()> {
        let mut ends = [PollFd::new(&self.pipe, PollFlags::empty())];
        poll(&mut ends, Some(&Timespec::default()))?;
        if !ends[0].revents().is_empty() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.book.write_all(line.as_bytes())
    }

    /// Waits until the guard is gone. One that was not told why the pipe closes is killed before it does: it would
    /// take this engine for dead.
    fn part(self, told: bool) {
        if told {
            drop(self.pipe);
            self.staff.leave_within(PATIENCE);
        } else {
            self.staff.end();
        }
    }
}

/// A file without a name, in memory where the system has such.
#[cfg(target_os = "linux")]
fn new_book() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create("omg-guard", flags)?.into())
}

/// A file without a name.
#[cfg(not(target_os = "linux"))]
fn new_book() -> io::Result<File> {
    tempfile::tempfile()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], orders: Option<Orders>) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        assert_eq!(Orders::read(&words), orders, "{words:?}");
    }

    #[test]
    fn orders_are_read_back_as_they_were_written() {
        for place in [Some("/runs/1".into()), None] {
            let orders = Orders { place, mark: "OMG_MARK_31".into(), engine: 7, group: 6 };
            let words: Vec<OsString> = std::iter::once("omg".into()).chain(orders.words()).collect();
            assert_eq!(Orders::read(&words), Some(orders));
        }
    }

    #[test]
    fn a_command_line_of_a_person_is_no_guards() {
        check(&["omg"], None);
        check(&["omg", "run", "/runs/1", "OMG_MARK_31", "7", "6"], None);
        check(&["omg", "__guard"], None);
        check(&["omg", "__guard", "/runs/1", "PATH", "7", "6"], None);
        check(&["omg", "__guard", "/runs/1", "OMG_MARK_31", "7", "x"], None);
    }
}
