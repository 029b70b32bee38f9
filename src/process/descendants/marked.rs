//! Linux: as child subreaper this process adopts every orphan below it, so one small file, the list of its main
//! thread's children, tells whether anything was left at all; only then are environments read.
//!
//! Adopted processes are told apart by the marker variable in their environment or by the group they are in. Dead
//! ones are reaped by their own pid, never by "any child", which would steal a status that another worker waits
//! for. Children that were already there at the start belong to whoever ran the program before its exec.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, getpgid, getpid, set_child_subreaper, waitpid};

use super::{Descendants, Family};
use crate::process::env::MARK;
use crate::process::exit::pidfd;
use crate::process::own;
use crate::process::remains::Stray;
use crate::process::start::PipeId;

/// How often, and how long apart, an environment is read again that cannot be had in one piece: while a process
/// execs it is empty or cut short, and under load that may take a while.
const READS: u32 = 1000;
const READ_PAUSE: Duration = Duration::from_millis(1);

/// The parent of the kernel's threads.
const KTHREADD: i32 = 2;

/// Finds descendants by adoption and marker.
#[derive(Debug)]
pub(crate) struct Marked {
    /// Absent where the kernel does not offer it: then every look is a sweep.
    children: Option<File>,
    before: BTreeSet<i32>,
}

impl Marked {
    /// Becomes the reaper of everything below this process; `None` where the system refuses.
    pub(crate) fn new() -> Option<Self> {
        let me = getpid();
        set_child_subreaper(Some(me)).ok()?;
        let children = File::open(format!("/proc/self/task/{me}/children")).ok();
        let mut marked = Marked { children, before: BTreeSet::new() };
        // What an earlier launcher of this process has adopted is told by its marker, so it is no bystander.
        let there = {
            let _steady = own::steady();
            marked.strangers().unwrap_or_default()
        };
        marked.before = there.into_iter().filter(|pid| !is_marked(*pid)).map(Pid::as_raw_pid).collect();
        Some(marked)
    }

    /// The children of the main thread that nobody here started. The caller holds one of `own`'s locks, since the
    /// kernel may skip an entry when another one goes while the list is read.
    fn strangers(&self) -> Option<Vec<Pid>> {
        let text = read_whole(self.children.as_ref()?).ok()?;
        if text.is_empty() {
            return Some(Vec::new());
        }
        let (known, staff) = (own::known(), own::staff());
        let pids = String::from_utf8_lossy(&text);
        let pids = pids.split_ascii_whitespace().filter_map(|it| it.parse::<i32>().ok());
        Some(
            pids.filter(|it| !known.contains(it) && !staff.contains(it) && !self.before.contains(it))
                .filter_map(Pid::from_raw)
                .collect(),
        )
    }

    /// The living adopted processes, the dead ones reaped; `None` when the kernel does not tell.
    fn adopted(&self) -> Option<Vec<Pid>> {
        let there = {
            let _steady = own::steady();
            self.strangers()?
        };
        if there.is_empty() {
            return Some(there);
        }
        let _quiet = own::quiet();
        let mut adopted = self.strangers()?;
        adopted.retain(|pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)));
        Some(adopted)
    }
}

impl Descendants for Marked {
    fn note(&self, _: &mut Family) {}

    fn left(&self, family: &Family) -> Vec<Stray> {
        let belongs =
            |pid: Pid| getpgid(Some(pid)) == Ok(family.leader) || carries(pid, &|it| it == family.mark);
        let Some(adopted) = self.adopted() else { return sweep(&|it| it == family.mark) };
        let mut left: Vec<_> = adopted.into_iter().filter_map(|pid| seize(pid, &belongs)).collect();
        if !left.is_empty() {
            left.extend(sweep(&|it| it == family.mark));
        }
        left
    }

    fn left_by_run(&self, name: &str, kept: &[String]) -> Vec<Stray> {
        let wanted = |entry: &[u8]| {
            let value = entry.strip_prefix(name.as_bytes()).and_then(|it| it.strip_prefix(b"="));
            value.is_some_and(|value| !kept.iter().any(|it| it.as_bytes() == value))
        };
        let adopted = self.adopted();
        if adopted.as_ref().is_some_and(Vec::is_empty) && own::known().is_empty() {
            return Vec::new();
        }
        let adopted = adopted.unwrap_or_default().into_iter();
        let mut left: Vec<_> = adopted.filter_map(|pid| seize(pid, &|pid| carries(pid, &wanted))).collect();
        left.extend(sweep(&wanted));
        left
    }

    fn marked(&self, mark: &[u8]) -> Vec<Stray> {
        let wanted = |it: &[u8]| it == mark;
        let adopted = self.adopted().unwrap_or_default().into_iter();
        let mut left: Vec<_> = adopted.filter_map(|pid| seize(pid, &|pid| carries(pid, &wanted))).collect();
        left.extend(sweep(&wanted));
        left
    }

    fn unclaimed(&self) -> Vec<Stray> {
        let adopted = self.adopted().unwrap_or_default();
        adopted.into_iter().filter_map(|pid| seize(pid, &|pid| !is_marked(pid))).collect()
    }

    fn tidy(&self) {
        self.adopted();
    }
}

/// Whether `pid` was started by a launcher of this process. What this process inherited marks everyone alike.
fn is_marked(pid: Pid) -> bool {
    carries(pid, &|entry| {
        let name = entry.split(|it| *it == b'=').next().unwrap_or_default();
        name.starts_with(MARK.as_bytes())
            && std::str::from_utf8(name).is_ok_and(|name| std::env::var_os(name).is_none())
    })
}

/// Takes hold of `pid` if it answers to `test` before and after, so that a recycled pid is never taken.
fn seize(pid: Pid, test: &dyn Fn(Pid) -> bool) -> Option<Stray> {
    if !test(pid) {
        return None;
    }
    let handle = pidfd(pid);
    (handle.is_none() || test(pid)).then_some(Stray { pid, handle })
}

/// Every process below this one with a variable that answers to `wanted`, but this one and the known children.
fn sweep(wanted: &dyn Fn(&[u8]) -> bool) -> Vec<Stray> {
    let me = getpid();
    others()
        .filter_map(|pid| seize(pid, &|pid| seems_to_carry(pid, wanted) && descends_from(pid, me)))
        .filter(|it| !own::known().contains(&it.pid.as_raw_pid()))
        .collect()
}

/// What a process that is gone has left: the living members of `groups`, whoever holds one of `pipes`, and whatever has a
/// variable that answers to `wanted`. A group in which nobody lives is struck off, because its number may become another's.
pub(crate) fn bereaved(
    groups: &mut BTreeSet<i32>,
    pipes: &BTreeSet<PipeId>,
    wanted: &dyn Fn(&[u8]) -> bool,
) -> Vec<Stray> {
    let mut living = BTreeSet::new();
    let found = others().filter_map(|pid| {
        let group = stat(pid).filter(|it| !it.is_dead())?.group;
        let is_member = |pid: Pid| groups.contains(&group) && stat(pid).is_some_and(|it| it.group == group);
        let stray = seize(pid, &|pid| is_member(pid) || holds_one(pid, pipes) || carries(pid, wanted))?;
        living.insert(group);
        Some(stray)
    });
    let found: Vec<Stray> = found.collect();
    groups.retain(|group| living.contains(group));
    found
}

/// Whether `pid` has an end of one of `pipes` open.
fn holds_one(pid: Pid, pipes: &BTreeSet<PipeId>) -> bool {
    // Nearly always there is none, and nothing to be opened.
    if pipes.is_empty() {
        return false;
    }
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|it| fs::read_link(it.path()).ok()).any(|target| {
        let name = target.to_str().and_then(|it| it.strip_prefix("pipe:[")?.strip_suffix(']'));
        name.and_then(|name| name.parse().ok()).is_some_and(|name| pipes.contains(&PipeId(name)))
    })
}

/// The process group of this process; 0 when that lies outside of its own table of processes.
pub(crate) fn own_group() -> i32 {
    stat(getpid()).map_or(0, |it| it.group)
}

/// The parent of `pid`.
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(stat(pid)?.parent)
}

/// Every process of the system but this one.
fn others() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(Pid::from_raw).filter(|pid| *pid != getpid())
}

/// Whether the environment of `pid` holds an entry that is `wanted`. Patient: a "no" is given only of a whole
/// environment, because a process that is missed in the middle of its exec is missed for good.
fn carries(pid: Pid, wanted: &dyn Fn(&[u8]) -> bool) -> bool {
    for _ in 0..READS {
        let Ok(text) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        if holds(&text, wanted) {
            return true;
        }
        let Some(stat) = stat(pid) else { return false };
        if !stat.has_environment() || stat.environment == Some(text.len() as u64) {
            return false;
        }
        thread::sleep(READ_PAUSE);
    }
    false
}

/// The same at a glance, for a look at all processes of the system.
fn seems_to_carry(pid: Pid, wanted: &dyn Fn(&[u8]) -> bool) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| holds(&text, wanted))
}

fn holds(text: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> bool {
    text.split(|it| *it == 0).any(wanted)
}

/// Whether the chain of parents of `pid` leads to `ancestor`. One that breaks while it is followed counts as such:
/// its upper part has just been adopted.
fn descends_from(pid: Pid, ancestor: Pid) -> bool {
    let mut at = pid;
    while let Some(stat) = stat(at) {
        match Pid::from_raw(stat.parent) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent != Pid::INIT => at = parent,
            _ => return false,
        }
    }
    true
}

/// What `/proc/<pid>/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: i32,
    /// Its group; 0 for the kernel's threads, and for a group of another namespace.
    group: i32,
    /// The length of its environment; `None` in the middle of an exec.
    environment: Option<u64>,
}

impl Stat {
    fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Zombies and the kernel's threads have none for good.
    fn has_environment(&self) -> bool {
        !self.is_dead() && self.parent != 0 && self.parent != KTHREADD
    }
}

fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&text)
}

/// The name, in brackets, may itself hold brackets and blanks; what follows the last bracket does not. There, the
/// bounds of the environment are the words 48 and 49. An exec sets both to its start before it finds its end, which
/// looks like an empty environment; the start of the program's code, word 24, it sets last.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after = text.iter().rposition(|it| *it == b')')?;
    let words: Vec<_> = std::str::from_utf8(&text[after + 1..]).ok()?.split_ascii_whitespace().collect();
    let bound = |at: usize| words.get(at).and_then(|it| it.parse::<u64>().ok()).filter(|it| *it != 0);
    let environment = bound(23).and_then(|_| bound(48)?.checked_sub(bound(47)?));
    let number = |at: usize| words.get(at)?.parse::<i32>().ok();
    Some(Stat { state: words.first()?.bytes().next()?, parent: number(1)?, group: number(2)?, environment })
}

/// Reads from the start whatever was read before; the file is made anew by each read.
fn read_whole(file: &File) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 1024];
    let mut text = Vec::new();
    loop {
        match file.read_at(&mut buffer, text.len() as u64)? {
            0 => return Ok(text),
            count => text.extend_from_slice(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, read: Option<(u8, i32, Option<u64>)>) {
        let read = read.map(|(state, parent, environment)| Stat { state, parent, group: 3, environment });
        assert_eq!(parse_stat(line.as_bytes()), read, "{line}");
    }

    #[test]
    fn a_stat_line_is_read_from_its_last_bracket() {
        let begun = "0 ".repeat(44);
        let whole = format!("{}4096 {}", "0 ".repeat(20), "0 ".repeat(23));
        check("12 (sh) S 7 3", Some((b'S', 7, None)));
        check("12 (a) Z 9 (b) Z 1 3 12", Some((b'Z', 1, None)));
        check(&format!("12 (sh) S 7 3 {whole}1000 1010 0"), Some((b'S', 7, Some(10))));
        check(&format!("12 (sh) S 7 3 {whole}1000 1000 0"), Some((b'S', 7, Some(0))));
        check(&format!("12 (sh) R 7 3 {begun}1000 1000 0"), Some((b'R', 7, None)));
        check(&format!("12 (sh) R 7 3 {begun}0 0 0"), Some((b'R', 7, None)));
        check("12 (sh", None);
        check("", None);
    }

    #[test]
    fn the_length_of_an_environment_is_the_kernels_own() {
        let text = fs::read("/proc/self/environ").unwrap_or_default();
        assert_eq!(stat(getpid()).and_then(|it| it.environment), Some(text.len() as u64));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what is tested finds what nobody watches")]
    fn whoever_holds_a_pipe_is_found_with_an_empty_environment() {
        let (ours, theirs) = std::io::pipe().expect("a pipe");
        let pipes = BTreeSet::from([PipeId::of(&ours).expect("its name")]);
        let found = |pipes: &BTreeSet<PipeId>| bereaved(&mut BTreeSet::new(), pipes, &|_| false);
        let mut command = std::process::Command::new("cat");
        let mut child =
            command.env_clear().stdin(std::process::Stdio::piped()).stdout(theirs).spawn().expect("a child");
        drop(command);
        let child_pid = Pid::from_child(&child);
        assert_eq!(found(&pipes).iter().map(|it| it.pid).collect::<Vec<_>>(), [child_pid]);
        assert!(found(&BTreeSet::new()).is_empty());
        drop(child.stdin.take());
        child.wait().expect("its end");
        assert!(found(&pipes).is_empty());
    }
}
