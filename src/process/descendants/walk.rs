//! Systems without `/proc`: descendants by parent, as `ps` lists them, taken before the first signal because an
//! orphan's parent is lost with its leader.
//!
//! Weaker than [`Marked`](super::marked): a process that left the group *and* lost its parent before a look was
//! taken is not found, so after a natural end only the group is. Verified on Linux only, by forcing it.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, getpgrp};

use super::{Descendants, Family};
use crate::process::own::Own;
use crate::process::remains::Stray;

/// Finds descendants by walking the table of processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk;

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pid: i32,
    parent: i32,
    group: i32,
    /// When it was started: with the pid it tells a process from a later one of the same number.
    born: String,
}

impl Descendants for Walk {
    fn note(&self, family: &mut Family) {
        family.noted = below(&table(), family.leader.as_raw_pid());
    }

    fn left(&self, family: &Family) -> Vec<Stray> {
        let pids = remaining(&table(), family.leader.as_raw_pid(), &family.noted, getpgrp().as_raw_pid());
        pids.into_iter().filter_map(Pid::from_raw).map(|pid| Stray { pid, handle: None }).collect()
    }

    fn left_by_run(&self, _: &str, _: &[String]) -> Vec<Stray> {
        Vec::new()
    }

    fn marked(&self, _: &[u8]) -> Vec<Stray> {
        Vec::new()
    }

    fn unclaimed(&self) -> Vec<Stray> {
        Vec::new()
    }

    fn tidy(&self) {}
}

/// Everything below `top`.
fn below(table: &[Row], top: i32) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    let mut open = vec![top];
    while let Some(parent) = open.pop() {
        for row in table.iter().filter(|it| it.parent == parent && it.pid != parent) {
            open.push(row.pid);
            found.push(row.clone());
        }
    }
    found
}

/// Who is left of a family: the leader's group, who was noted, their groups, and everything below those.
fn remaining(table: &[Row], leader: i32, noted: &[Row], own_group: i32) -> BTreeSet<i32> {
    let is_noted = |row: &Row| noted.iter().any(|it| it.pid == row.pid && it.born == row.born);
    let mut groups: BTreeSet<i32> = noted.iter().map(|it| it.group).filter(|it| *it != own_group).collect();
    groups.insert(leader);
    let roots = table.iter().filter(|it| it.pid != leader && (groups.contains(&it.group) || is_noted(it)));
    let mut left = BTreeSet::new();
    for root in roots {
        left.insert(root.pid);
        left.extend(below(table, root.pid).iter().map(|it| it.pid));
    }
    left
}

/// What a process that is gone has left, as far as the table tells: the members of `groups` and everything below
/// them. Pipes and environments are not shown there, so nobody answers to the other arguments.
#[cfg(not(target_os = "linux"))]
pub(crate) fn bereaved(
    groups: &mut BTreeSet<i32>,
    _: &BTreeSet<crate::process::start::PipeId>,
    _: &dyn Fn(&[u8]) -> bool,
) -> Vec<Stray> {
    let table = table();
    groups.retain(|group| table.iter().any(|row| row.group == *group));
    let found: BTreeSet<i32> = groups.iter().flat_map(|leader| whole(&table, *leader)).collect();
    found.into_iter().filter_map(Pid::from_raw).map(|pid| Stray { pid, handle: None }).collect()
}

/// The parent of `pid`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    table().iter().find(|row| row.pid == pid.as_raw_pid()).and_then(|row| Pid::from_raw(row.parent))
}

/// The process group of this process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn own_group() -> i32 {
    getpgrp().as_raw_pid()
}

/// The members of a group and everything below them.
#[cfg(any(not(target_os = "linux"), test))]
fn whole(table: &[Row], group: i32) -> BTreeSet<i32> {
    let members = table.iter().filter(|row| row.group == group);
    members.flat_map(|row| below(table, row.pid).into_iter().map(|it| it.pid).chain([row.pid])).collect()
}

/// The table of processes, empty when `ps` cannot be run; zombies are left out, as there is nothing to end.
fn table() -> Vec<Row> {
    parse(&listing().unwrap_or_default())
}

#[expect(clippy::disallowed_methods, reason = "part of the floor that starts children")]
fn listing() -> Option<String> {
    let (mut listing, theirs) = std::io::pipe().ok()?;
    let mut command = Command::new("/bin/ps");
    command.args(["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]).process_group(0).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(theirs);
    let own = Own::start(&mut command).ok()?;
    drop(command);
    let mut text = Vec::new();
    listing.read_to_end(&mut text).ok()?;
    own.reap().ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn parse(text: &str) -> Vec<Row> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Row> {
    let mut words = line.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<i32>().ok();
    let (pid, parent, group) = (number()?, number()?, number()?);
    let state = words.next()?;
    let born = words.collect::<Vec<_>>().join(" ");
    (!state.starts_with('Z')).then_some(Row { pid, parent, group, born })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        1 0 1 Ss Mon Nov 30 10:00:00 2026
        50 1 50 S Mon Nov 30 10:00:01 2026
        60 50 60 S Mon Nov 30 10:00:02 2026
        61 60 60 S Mon Nov 30 10:00:02 2026
        62 61 62 Ss Mon Nov 30 10:00:03 2026
        63 62 62 S Mon Nov 30 10:00:03 2026
        64 60 60 Z Mon Nov 30 10:00:03 2026
        70 50 70 S Mon Nov 30 10:00:04 2026";

    fn pids(rows: &[Row]) -> Vec<i32> {
        let set: BTreeSet<_> = rows.iter().map(|it| it.pid).collect();
        set.into_iter().collect()
    }

    #[test]
    fn a_tree_is_followed_through_other_sessions() {
        assert_eq!(pids(&below(&parse(TABLE), 60)), [61, 62, 63]);
        assert_eq!(pids(&below(&parse(TABLE), 63)), [] as [i32; 0]);
    }

    #[test]
    fn the_orphans_of_a_noted_tree_are_found_after_their_leader() {
        let before = parse(TABLE);
        let noted = below(&before, 60);
        let after =
            parse("61 1 60 S Mon Nov 30 10:00:02 2026\n63 1 62 S Mon Nov 30 10:00:03 2026\n70 50 70 S x");
        assert_eq!(remaining(&after, 60, &noted, 50), BTreeSet::from([61, 63]));
        assert_eq!(remaining(&after, 60, &[], 50), BTreeSet::from([61]), "without a note the group is known");
    }

    #[test]
    fn a_group_is_found_with_everything_below_it() {
        let after = parse("60 1 60 S x\n61 60 60 S x\n62 61 62 S x\n70 50 70 S x");
        assert_eq!(whole(&after, 60), BTreeSet::from([60, 61, 62]));
        assert_eq!(whole(&after, 99), BTreeSet::new());
    }

    #[test]
    fn a_recycled_pid_is_left_alone() {
        let noted = parse("80 60 50 S Mon Nov 30 10:00:02 2026");
        let after = parse("80 1 81 S Mon Nov 30 11:11:11 2026");
        assert_eq!(remaining(&after, 60, &noted, 50), BTreeSet::new());
    }
}
