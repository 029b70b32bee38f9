//! `omg salvage RUN`: what was kept of a run's worktrees, and how to get it back.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::context::Context;
use super::{Failure, execute, left_lanes};
use crate::node::worktree::Git;
use crate::node::worktree::salvage::{Failed, Item, Kind, Restored, Salvage, SalvageError};
use crate::process::Launcher;
use crate::record::{Snapshot, lock};
use crate::text::sanitize::one_line;
use crate::text::table::{Align, Table};
use crate::view::history::lookup::find_run;

/// Lists what was kept of a run's git worktrees, and restores it.
///
/// Kept are directories with uncommitted work, branches with commits, commits on no branch, stashes, ignored files and
/// contents that were staged and never committed. Of a run whose process was killed they are made safe first.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// Only what was kept of this worktree; repeat for more.
    #[arg(long, value_name = "NAME")]
    worktree: Vec<String>,
    /// Writes the files that each adds or changes below this directory, which must be empty or new.
    ///
    /// What cannot be restored is named and does not keep the rest; the exit code is 1 then.
    #[arg(long, value_name = "DIR")]
    restore: Option<PathBuf>,
    /// Makes a branch PREFIX/WORKTREE/… of each that is a commit.
    #[arg(long, value_name = "PREFIX", conflicts_with = "restore")]
    branch: Option<String>,
    /// Prints one JSON document instead.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    run_id: &'a str,
    repository: &'a Path,
    kept: &'a [Item],
    restored: &'a [PathBuf],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    failed: &'a [Failed],
    branches: &'a [String],
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let (run, dir) = find_run(&context.home, &args.run)?;
    let snapshot = Snapshot::read(&dir)
        .map_err(|error| Failure::new(format!("run {run}: {error}")).hinted(format!("omg show {run}")))?;
    let base = PathBuf::from(&snapshot.cwd);
    if !base.is_dir() {
        return Err(Failure::new(format!("run {run} was started in {}, which is gone", base.display())));
    }
    let launcher = Arc::new(Launcher::new(&execute::mark()).outside_repositories());
    let git = Git::find(launcher).map_err(|error| Failure::new(error.to_string()))?;
    // A run that somebody else is at work on is only looked at.
    if let Ok(_held) = lock::hold(&dir) {
        for note in left_lanes::keep(&run, &dir, &base) {
            writeln!(context.err, "warning: {}", one_line(&note)).ok();
        }
    }
    let (lanes, name) = (dir.worktrees(), run.as_str());
    let salvage = Salvage { git: &git, base: &base, lanes: &lanes, run: name };
    let mut kept = salvage.list().map_err(|error| Failure::new(format!("run {run}: {error}")))?;
    kept.retain(|item| args.worktree.is_empty() || args.worktree.contains(&item.lane));
    let failed = |error: SalvageError| Failure::new(format!("run {run}: {error}; nothing was changed"));
    let branches = match &args.branch {
        Some(prefix) => salvage.branches(&kept, prefix).map_err(failed)?,
        None => Vec::new(),
    };
    let restored = match &args.restore {
        Some(target) => salvage.restore(&kept, target).map_err(|error| {
            Failure::new(format!("run {run}: {error}")).hinted("give a directory that is empty or new")
        })?,
        None => Restored::default(),
    };
    let document = Document {
        schema: 1,
        run_id: name,
        repository: &base,
        kept: &kept,
        restored: &restored.places,
        failed: &restored.failed,
        branches: &branches,
    };
    print(args, &document, context)
}

fn print(args: &Args, document: &Document<'_>, context: &mut Context) -> Result<u8, Failure> {
    let (width, run) = (context.out_look.width, document.run_id);
    let text = match (args.json, document.kept.is_empty(), &args.restore, &args.branch) {
        (true, ..) => serde_json::to_string_pretty(document).expect("strings and numbers are JSON") + "\n",
        (_, true, ..) => format!("run {run}: nothing is kept of its worktrees\n"),
        (.., Some(_), _) => document.restored.iter().map(|place| format!("{}\n", place.display())).collect(),
        (.., Some(_)) => document.branches.iter().map(|name| format!("{name}\n")).collect(),
        _ => table(document.kept).print(width) + &advice(document),
    };
    write!(context.out, "{text}")?;
    context.out.flush()?;
    for Failed { lane, name, why } in document.failed {
        let line = format!("worktree \"{lane}\": {name} is not restored, or not wholly: {why}");
        writeln!(context.err, "{}", one_line(&line)).ok();
    }
    Ok(u8::from(!document.failed.is_empty()))
}

fn table(kept: &[Item]) -> Table {
    let columns = ["WORKTREE", "KIND", "FILES", "BYTES", "NAME", "ABOUT"];
    let right = |title: &str| matches!(title, "FILES" | "BYTES");
    let columns = columns.map(|title| (title, if right(title) { Align::Right } else { Align::Left }));
    let mut table = Table::new(&columns);
    for item in kept {
        let lane = if item.lane.is_empty() { "-" } else { &item.lane };
        table.row([
            lane.into(),
            item.kind.word().into(),
            item.files.to_string().into(),
            item.bytes.to_string().into(),
            one_line(&item.name).into(),
            one_line(&item.about).into(),
        ]);
    }
    table
}

fn advice(document: &Document<'_>) -> String {
    let run = document.run_id;
    let branch = document.kept.iter().find(|item| item.kind == Kind::Branch);
    let merge = branch.map(|item| format!("  git merge {}\n", item.name)).unwrap_or_default();
    format!(
        "\nGet it back:\n  omg salvage {run} --restore DIR      the files\n  omg salvage {run} --branch PREFIX    branches\n{merge}"
    )
}
