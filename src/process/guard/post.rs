//! The guard's own side: it listens until the engine takes its leave or dies, and then ends what is left.
//!
//! It is a process of its own session that no terminal reaches, so it outlives everything but a KILL meant for it. On
//! Linux it finds what carries the run's marker as well, wherever that went; elsewhere the groups that it was told of.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, chdir, kill_process_group, setpgid, setsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::process::descendants::bereaved;
use crate::process::guard::Orders;
use crate::process::remains::{self, GRACE, Stray};
use crate::process::signals::OTHERS;
use crate::process::start::PipeId;

/// The word by which the engine takes its leave.
pub(crate) const LEAVE: &[u8] = b"bye\n";
/// How often it looks again once nothing is found. What is between fork and exec carries no marker yet, but it holds the
/// engine's end of the pipe, so that the guard did not wake before; what is in the middle of its exec shows soon after.
const LOOKS: u32 = 3;
/// How long after one another.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How often it tries against processes that go on coming.
const TRIES_MAX: u32 = 10;

/// How a guard's time ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The engine took its leave.
    Dismissed,
    /// The engine died.
    Bereaved {
        /// How many processes were ended.
        ended: usize,
        /// How many could not be.
        left: usize,
    },
}

/// What the engine has said so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct Charges {
    groups: BTreeSet<i32>,
    /// The pipes of children whose group it has not heard of yet.
    pipes: BTreeSet<PipeId>,
    kept: BTreeSet<Vec<u8>>,
}

/// Stands guard, the engine on standard input, until there is nothing more to do; `book` is the engine's book.
pub fn keep(orders: &Orders, book: BorrowedFd<'_>) -> Parting {
    withdraw(orders.group);
    if takes_leave(&mut io::stdin().lock()) {
        return Parting::Dismissed;
    }
    // A book that cannot be read leaves what carries the marker, and that is found without it.
    end_all(Charges::read(&whole(book).unwrap_or_default()), &orders.mark)
}

/// Waits until the engine takes its leave or is gone; returns which.
fn takes_leave(engine: &mut dyn Read) -> bool {
    let mut word = Vec::new();
    engine.read_to_end(&mut word).is_ok() && word == LEAVE
}

/// What the engine wrote. Its place in the file is at the end, where the engine, who shares it, left it.
fn whole(book: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let book = File::from(book.try_clone_to_owned()?);
    let length = usize::try_from(book.metadata()?.len()).map_err(io::Error::other)?;
    let mut text = vec![0; length];
    book.read_exact_at(&mut text, 0)?;
    Ok(text)
}

/// Goes where no terminal and no signal but a KILL ends it, and holds no directory.
fn withdraw(engine_group: i32) {
    let heard = Arc::default();
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().chain(OTHERS) {
        // Without a handler it is ended by that signal, and missed no more than any guard that was killed.
        signal_hook::flag::register(signal, Arc::clone(&heard)).ok();
    }
    // Who leads a group can begin no session, so it first goes back to the engine's.
    if let Some(group) = Pid::from_raw(engine_group) {
        setpgid(None, Some(group)).ok();
    }
    setsid().ok();
    chdir("/").ok();
}

impl Charges {
    /// Reads the book. A line without an end was cut off by a death.
    fn read(mut book: &[u8]) -> Self {
        let (mut charges, mut line) = (Charges::default(), Vec::new());
        while book.read_until(b'\n', &mut line).is_ok() && line.pop() == Some(b'\n') {
            charges.take(&line);
            line.clear();
        }
        charges
    }

    fn take(&mut self, line: &[u8]) {
        let Some((sign, rest)) = line.split_first() else { return };
        let group = || std::str::from_utf8(rest).ok()?.parse::<i32>().ok().filter(|group| *group > 1);
        let pipe = || std::str::from_utf8(rest).ok()?.parse().ok().map(PipeId);
        match sign {
            b'+' => self.groups.extend(group()),
            b'-' => drop(group().map(|group| self.groups.remove(&group))),
            b'?' => self.pipes.extend(pipe()),
            b'!' => drop(pipe().map(|pipe| self.pipes.remove(&pipe))),
            b'=' => drop(self.kept.insert(rest.to_vec())),
            _ => {}
        }
    }
}

fn end_all(charges: Charges, mark: &str) -> Parting {
    let Charges { groups, pipes, kept } = charges;
    let wanted = |entry: &[u8]| {
        let value = entry.strip_prefix(mark.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| !kept.contains(value))
    };
    let (groups, met) = (RefCell::new(groups), RefCell::new(BTreeSet::new()));
    let find = || {
        let found: Vec<Stray> = bereaved(&mut groups.borrow_mut(), &pipes, &wanted);
        met.borrow_mut().extend(found.iter().map(|stray| stray.pid.as_raw_pid()));
        found
    };
    // What forks faster than it is found dies with its group.
    let whole = |signal: Signal| {
        for group in groups.borrow().iter().filter_map(|group| Pid::from_raw(*group)) {
            kill_process_group(group, signal).ok();
        }
    };
    let mut quiet = 0;
    for _ in 0..TRIES_MAX {
        remains::end(&find, &whole, GRACE);
        quiet = if find().is_empty() { quiet + 1 } else { 0 };
        if quiet == LOOKS {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    let left = find().len();
    let met = met.borrow().len();
    Parting::Bereaved { ended: met.saturating_sub(left), left }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(book: &str, groups: &[i32], kept: &[&str]) {
        let charges = Charges::read(book.as_bytes());
        assert_eq!(charges.groups, groups.iter().copied().collect(), "{book:?}");
        assert_eq!(charges.kept, kept.iter().map(|it| it.as_bytes().to_vec()).collect(), "{book:?}");
    }

    #[test]
    fn what_started_and_did_not_end_is_left_to_the_guard() {
        check("+12\n+13\n-12\n", &[13], &[]);
        check("+12\n-12\n+12\n", &[12], &[]);
        check("=a/0\n=b/sub/1\n+9\n", &[9], &["a/0", "b/sub/1"]);
        check("", &[], &[]);
    }

    #[test]
    fn a_child_whose_group_was_never_told_is_known_by_its_pipe() {
        let charges = Charges::read(b"?71\n?72\n+12\n!71\n?x\n");
        assert_eq!(charges.pipes, BTreeSet::from([PipeId(72)]));
        assert_eq!(charges.groups, BTreeSet::from([12]));
    }

    #[test]
    fn what_was_cut_off_or_makes_no_sense_is_no_group() {
        check("+12\n+13", &[12], &[]);
        check("+0\n+1\n+-5\n+x\n\n?\n", &[], &[]);
    }

    #[test]
    fn only_the_whole_word_is_a_leave() {
        for (said, leave) in [("bye\n", true), ("by", false), ("", false), ("bye\nbye\n", false)] {
            assert_eq!(takes_leave(&mut said.as_bytes()), leave, "{said:?}");
        }
    }
}
