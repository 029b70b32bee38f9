//! `omg runs prune`: removes runs that have ended, says what that freed, and names every run that stays and why.
//!
//! What a run's worktrees hold is kept in the repository first, as at the end of a leg; a run whose worktrees hold
//! work that cannot be kept there stays whole. Removes nothing by itself; `record::prune` does.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::context::Context;
use super::{Failure, execute};
use crate::node::worktree::salvage::{Item, Kind, Salvage};
use crate::node::worktree::{Git, GitLanes};
use crate::process::Launcher;
use crate::record::lock::{LockError, Probe};
use crate::record::prune::{self, PruneError};
use crate::record::status::Status;
use crate::record::{RunDir, RunId, Snapshot};
use crate::text::duration;
use crate::text::sanitize::one_line;
use crate::view::history::Run;
use crate::view::history::list::{Listing, Reason};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keep the N newest runs, whatever became of them, and remove older ones.
    #[arg(long, value_name = "N", required_unless_present = "older_than", conflicts_with = "older_than")]
    keep: Option<usize>,
    /// Remove runs in which nothing was written for this long, as 720h or 90m.
    #[arg(long, value_name = "DURATION", value_parser = age)]
    older_than: Option<Duration>,
    /// Say what would be removed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document instead.
    #[arg(long)]
    json: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| format!("{error}; write it as 720h or 90m"))?;
    time.non_negative().ok_or_else(|| "a run cannot be younger than now".to_owned())
}

#[derive(Default, Serialize)]
struct Report {
    schema: u32,
    dry_run: bool,
    removed: Vec<Removed>,
    left: Vec<Left>,
    freed_bytes: u64,
    #[serde(skip)]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Removed {
    run_id: String,
    bytes: u64,
    /// What stays of its worktrees in the repository: refs and branches.
    kept: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<PathBuf>,
}

#[derive(Serialize)]
struct Left {
    run_id: String,
    reason: Why,
    detail: String,
}

/// Why a run stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Why {
    Running,
    Paused,
    Lost,
    Silent,
    Unreadable,
    Link,
    Worktrees,
    Failed,
}

type Stays = (Why, String);

/// What stays of a run's worktrees in the repository.
#[derive(Default)]
struct Kept {
    names: Vec<String>,
    repository: Option<PathBuf>,
}

impl Kept {
    fn of(items: &[Item], base: &Path) -> Self {
        let refs = items.iter().filter(|item| item.kind != Kind::Directory);
        let names: Vec<String> = refs.map(|item| item.name.clone()).collect();
        Kept { repository: (!names.is_empty()).then(|| base.to_path_buf()), names }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let console = context.console();
    let listing = Listing::read(&console.home, console.probe)?;
    drop(console);
    let mut report = Report { schema: 1, dry_run: args.dry_run, ..Report::default() };
    if !args.dry_run {
        report.freed_bytes = prune::sweep(&context.home);
    }
    for run in chosen(args, &listing, context) {
        let done = consider(run, args.dry_run, context, &mut report.notes);
        report.take(&run.id, done);
    }
    let unreadable = listing.skipped.iter().filter(|skipped| skipped.reason != Reason::NotARun);
    for skipped in unreadable {
        let (run_id, detail) = (skipped.name.clone(), skipped.error.clone());
        report.left.push(Left { run_id, reason: Why::Unreadable, detail });
    }
    report.print(args.json, context)?;
    Ok(u8::from(report.left.iter().any(|left| left.reason == Why::Failed)))
}

/// The runs that the flags are about, whatever their state.
fn chosen<'l>(args: &Args, listing: &'l Listing, context: &Context) -> Vec<&'l Run> {
    if let Some(keep) = args.keep {
        return listing.runs.iter().skip(keep).collect();
    }
    let (now, age) = (context.clock.now(), args.older_than.unwrap_or_default());
    let is_old = |run: &&Run| {
        let last = last_written(&context.home.run(&run.id));
        let since = last.and_then(|last| Duration::try_from(now.duration_since(last)).ok());
        since.is_some_and(|since| since > age)
    };
    listing.runs.iter().filter(is_old).collect()
}

/// When something was written last to the snapshot or the feed.
fn last_written(dir: &RunDir) -> Option<Timestamp> {
    let written = |path: PathBuf| Timestamp::try_from(fs::metadata(path).ok()?.modified().ok()?).ok();
    [dir.snapshot(), dir.feed()].into_iter().filter_map(written).max()
}

fn consider(run: &Run, dry: bool, context: &Context, notes: &mut Vec<String>) -> Result<Removed, Stays> {
    let (id, dir) = (&run.id, context.home.run(&run.id));
    has_ended(run)?;
    if fs::symlink_metadata(dir.path()).is_ok_and(|found| found.is_symlink()) {
        return Err(stays(&PruneError::Link(dir.path().to_path_buf())));
    }
    let removed = |bytes, kept: Kept| Removed {
        run_id: id.to_string(),
        bytes,
        kept: kept.names,
        repository: kept.repository,
    };
    if dry {
        let kept = Worktrees::of(id, &dir).look()?;
        return Ok(removed(prune::size(dir.path()), kept));
    }
    let claimed = prune::claim(&context.home, id).map_err(|error| stays(&error))?;
    has_not_changed(run, claimed.dir())?;
    let kept = Worktrees::of(id, claimed.dir()).tidy(notes)?;
    let bytes = claimed.remove().map_err(|error| stays(&error))?;
    Ok(removed(bytes, kept))
}

/// Only what has ended may go; a run that lost its process only when nothing of it can still be at work.
fn has_ended(run: &Run) -> Result<(), Stays> {
    let (why, detail) = match run.status {
        Some(Status::Pass | Status::Fail) => return Ok(()),
        Some(Status::Abandoned) if run.children_ended || run.is_rehearsal() => return Ok(()),
        Some(Status::Abandoned) => (Why::Lost, "it lost its process, and a child of it may still be running"),
        Some(Status::Running | Status::Planning) => (Why::Running, "it is under way"),
        Some(Status::Paused) => (Why::Paused, "it is paused"),
        None => (Why::Silent, "it has said nothing yet"),
    };
    Err((why, detail.to_owned()))
}

/// A leg may have begun and ended between the listing and the lock.
fn has_not_changed(run: &Run, dir: &RunDir) -> Result<(), Stays> {
    let changed = |detail: String| (Why::Running, detail);
    // The lock is ours, so nobody else is alive.
    let now = Run::read(run.id.clone(), dir, |_| Probe::Free).map_err(|error| changed(error.to_string()))?;
    match now.legs.in_brief() == run.legs && now.status == run.status {
        true => Ok(()),
        false => Err(changed("it has just gone on".to_owned())),
    }
}

fn stays(error: &PruneError) -> Stays {
    let why = match error {
        PruneError::Link(_) => Why::Link,
        PruneError::Locked(LockError::Held { .. } | LockError::Legacy { .. }) => Why::Running,
        PruneError::Locked(_) | PruneError::Untouched { .. } | PruneError::Rest { .. } => Why::Failed,
    };
    (why, error.to_string())
}

/// The worktrees of a run, with what is needed to ask about them.
struct Worktrees<'a> {
    run: &'a RunId,
    root: PathBuf,
    /// Where the run was started, if any of its nodes asked for a worktree.
    base: Option<PathBuf>,
}

impl<'a> Worktrees<'a> {
    fn of(run: &'a RunId, dir: &RunDir) -> Self {
        let snapshot =
            Snapshot::read(dir).ok().filter(|snapshot| snapshot.graph.get().contains("\"worktree\""));
        Worktrees { run, root: dir.worktrees(), base: snapshot.map(|snapshot| PathBuf::from(snapshot.cwd)) }
    }

    /// Keeps in the repository what can be kept there, and takes the directories away.
    fn tidy(&self, notes: &mut Vec<String>) -> Result<Kept, Stays> {
        let Some((git, base)) = self.repository()? else { return Ok(Kept::default()) };
        if !self.names().is_empty() {
            notes.extend(self.lanes(&git, base).tidy(&|_| false));
            let names = self.names();
            if !names.is_empty() {
                return Err(self.hold_work(&names, "what they hold is not all in the repository"));
            }
        }
        Ok(Kept::of(&self.list(&git, base)?, base))
    }

    fn lanes(&self, git: &Git, base: &Path) -> GitLanes {
        GitLanes::new(git.clone(), base, self.root.clone(), self.run.as_str())
    }

    /// The same as far as it can be told without changing anything.
    fn look(&self) -> Result<Kept, Stays> {
        let Some((git, base)) = self.repository()? else { return Ok(Kept::default()) };
        let items = self.list(&git, base)?;
        let lanes = if self.names().is_empty() { Vec::new() } else { self.lanes(&git, base).would_stay() };
        if !lanes.is_empty() {
            return Err(self.hold_work(&lanes, "they hold changes that no commit holds"));
        }
        Ok(Kept::of(&items, base))
    }

    /// Git and the directory to ask it in; `None` when there is nothing to ask about.
    fn repository(&self) -> Result<Option<(Git, &Path)>, Stays> {
        let names = self.names();
        let unless_empty = |why: String| match names.is_empty() {
            true => Ok(None),
            false => Err(self.hold_work(&names, &why)),
        };
        let Some(base) = &self.base else {
            return unless_empty("its snapshot does not tell their repository".to_owned());
        };
        if !base.is_dir() {
            return unless_empty(format!("it was started in {}, which is gone", base.display()));
        }
        let launcher = Arc::new(Launcher::new(&execute::mark()).outside_repositories());
        match Git::find(launcher) {
            Ok(git) => Ok(Some((git, base))),
            Err(error) => unless_empty(error.to_string()),
        }
    }

    fn list(&self, git: &Git, base: &Path) -> Result<Vec<Item>, Stays> {
        let salvage = Salvage { git, base, lanes: &self.root, run: self.run.as_str() };
        salvage.list().map_err(|error| (Why::Worktrees, error.to_string()))
    }

    /// What lies in the directory of the worktrees. A link in its place leads nowhere: it goes with the run.
    fn names(&self) -> Vec<String> {
        let is_real = fs::symlink_metadata(&self.root).is_ok_and(|found| found.is_dir());
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|_| is_real)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn hold_work(&self, lanes: &[String], why: &str) -> Stays {
        let lanes: Vec<String> = lanes.iter().map(|lane| format!("\"{lane}\"")).collect();
        let run = self.run;
        (Why::Worktrees, format!("its worktrees {}: {why}; see omg salvage {run}", lanes.join(", ")))
    }
}

impl Report {
    fn take(&mut self, id: &RunId, done: Result<Removed, Stays>) {
        match done {
            Ok(removed) => {
                self.freed_bytes += removed.bytes;
                self.removed.push(removed);
            }
            Err((reason, detail)) => self.left.push(Left { run_id: id.to_string(), reason, detail }),
        }
    }

    fn print(&self, json: bool, context: &mut Context) -> Result<(), Failure> {
        for note in &self.notes {
            writeln!(context.err, "note: {}", one_line(note))?;
        }
        if json {
            let text = serde_json::to_string_pretty(self).expect("strings and numbers are JSON");
            writeln!(context.out, "{text}")?;
        } else {
            write!(context.out, "{}", self.text())?;
        }
        Ok(context.out.flush()?)
    }

    fn text(&self) -> String {
        let (verb, sum) = match self.dry_run {
            true => ("would remove", "would be removed"),
            false => ("removed", "removed"),
        };
        let removed = self.removed.iter().map(|it| {
            let kept = it.repository.as_ref().map(|place| {
                let names = it.kept.join(", ");
                format!("; kept in {}: {}", one_line(&place.display().to_string()), one_line(&names))
            });
            format!("{verb} {} ({}){}\n", it.run_id, amount(it.bytes), kept.unwrap_or_default())
        });
        let left =
            self.left.iter().map(|it| format!("left {}: {}\n", one_line(&it.run_id), one_line(&it.detail)));
        let (count, stay) = (self.removed.len(), self.left.len());
        let last = format!("{count} run(s) {sum}, {} freed; {stay} left\n", amount(self.freed_bytes));
        removed.chain(left).chain([last]).collect()
    }
}

/// A size as a person reads it.
fn amount(bytes: u64) -> String {
    const STEPS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match STEPS.iter().find(|(step, _)| bytes >= *step) {
        // A tenth is as exact as it gets.
        Some((step, unit)) => format!("{}.{} {unit}", bytes / step, bytes % step * 10 / step),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        for (bytes, told) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
        ] {
            assert_eq!(amount(bytes), told);
        }
    }

    #[test]
    fn an_age_is_a_duration_of_this_program() {
        assert_eq!(age("90m"), Ok(Duration::from_secs(5400)));
        for text in ["3d", "-1h", "soon", ""] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
