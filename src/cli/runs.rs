//! `omg runs list`, and the way to `omg runs prune`.

use clap::{Args as ClapArgs, Subcommand};

use super::context::Context;
use super::{Failure, prune};
use crate::view::history::list::Listing;

/// Lists the runs on this machine, and removes old ones.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List every run, the newest first.
    ///
    /// A run that cannot be read is left out and counted in the line under the table. Rehearsals are listed, and
    /// left out of the total.
    List(ListArgs),
    /// Remove runs that have ended.
    ///
    /// A run that is under way, paused, lost or unreadable stays, and so does one whose worktrees hold work: each is named.
    /// What was kept of worktrees in the repository stays there, under refs/omg/RUN/ and omg/RUN/.
    #[command(override_usage = "omg runs prune <--keep N|--older-than DURATION> [--dry-run] [--json]")]
    Prune(prune::Args),
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    /// Name every run that was left out, and why, on standard error.
    #[arg(long)]
    show_skipped: bool,
    /// Print one JSON document instead of the table.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    match &args.command {
        Command::List(args) => list(args, context),
        Command::Prune(args) => prune::run(args, context),
    }
}

fn list(args: &ListArgs, context: &mut Context) -> Result<u8, Failure> {
    let console = &mut context.console();
    let listing = Listing::read(&console.home, console.probe)?;
    if args.show_skipped {
        write!(console.err, "{}", listing.print_skipped(console.err_look))?;
    }
    let text = if args.json { listing.json() } else { listing.print(console.out_look, &console.zone) };
    write!(console.out, "{text}")?;
    console.out.flush()?;
    Ok(0)
}
