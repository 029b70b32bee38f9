//! `omg stop`: ends live legs from elsewhere, and waits until they have ended.
//!
//! The lock alone says what lives; the pid in it is signalled only while the lock is held. A run that this command
//! was started by is never ended: an agent that tidies up would end its own work (case A15).

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Console, Failure, execute};
use crate::process::env::RUN;
use crate::process::other;
use crate::record::lock::{self, Probe};
use crate::record::status::Status;
use crate::record::{RunDir, RunId};
use crate::text::sanitize;
use crate::view::history::lookup::{entries, find_run};
use crate::view::history::{Run, hint};

/// The longest ladder of a child takes five seconds; the rest is for what comes after it.
const PATIENCE: Duration = Duration::from_secs(15);
/// A leg that ends tells nobody who is not its parent, and to wait for its lock by taking it would be to hold the run.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Ends runs that are under way.
///
/// Their children are ended as by Ctrl-C, and what had settled is kept. Returns when they have ended. A node cannot
/// stop the run that it is part of.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    run: Option<String>,
    /// End every run of this home that is under way.
    #[arg(long)]
    all: bool,
    /// Print one JSON document instead.
    #[arg(long)]
    json: bool,
}

/// A run that is to end.
struct Target {
    id: RunId,
    dir: RunDir,
    pid: Option<u32>,
}

/// What came of one.
#[derive(Serialize)]
struct Stopped {
    run_id: String,
    pid: Option<u32>,
    result: Outcome,
    status: Option<&'static str>,
    #[serde(skip)]
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It has ended.
    Stopped,
    /// Nothing of it lived.
    NotRunning,
    /// It was told, and still lives.
    StillRunning,
    /// Nothing was done.
    LeftAlone,
}

/// Runs the command.
pub(super) fn run(args: &Args, console: &mut Console<'_>) -> Result<u8, Failure> {
    let targets = targets(args, console)?;
    refuse_own(&targets)?;
    let asked: Vec<Asked> = targets.iter().map(ask).collect();
    let until = Instant::now() + PATIENCE;
    let told = targets.iter().zip(&asked);
    let results: Vec<Stopped> = told.map(|(target, asked)| conclude(target, asked, until, console)).collect();
    report(args, &results, console)?;
    let well = |result: &Stopped| matches!(result.result, Outcome::Stopped | Outcome::NotRunning);
    Ok(u8::from(!results.iter().all(well)))
}

fn targets(args: &Args, console: &Console<'_>) -> Result<Vec<Target>, Failure> {
    let target = |(id, dir): (RunId, RunDir)| Target { pid: lock::signer(&dir), id, dir };
    if let Some(text) = &args.run {
        return Ok(vec![target(find_run(&console.home, text)?)]);
    }
    let runs = entries(&console.home)?.runs.into_iter().map(|id| (id.clone(), console.home.run(&id)));
    Ok(runs.filter(|(_, dir)| (console.probe)(dir) == Probe::Held).map(target).collect())
}

/// Told by the variable that children carry, and by the processes above this one where that was cleared.
fn refuse_own(targets: &[Target]) -> Result<(), Failure> {
    let named = std::env::var_os(RUN);
    let is_own = |target: &&Target| {
        named.as_deref().is_some_and(|run| run == target.id.as_str())
            || target.pid.is_some_and(|pid| other::is_above(pid, &lock::held_file(&target.dir)))
    };
    match targets.iter().find(is_own) {
        None => Ok(()),
        Some(own) => Err(Failure::new(format!(
            "run {}: this command was started by the run itself, which it does not end; nothing was stopped",
            own.id
        ))
        .hinted("a node ends by leaving; stop the run from another terminal")),
    }
}

/// What came of telling a leg to end.
enum Asked {
    /// It was told.
    Told,
    /// It does not live.
    Gone,
    /// It was not told, for this reason.
    Not(String),
}

/// Tells a live leg to end.
fn ask(target: &Target) -> Asked {
    let pid = match (lock::probe(&target.dir), lock::signer(&target.dir)) {
        (Probe::Free, _) => return Asked::Gone,
        (Probe::Unknown, _) => return Asked::Not("whether it is running cannot be told".to_owned()),
        (Probe::Held, None) => return Asked::Not("its lock does not name its process".to_owned()),
        (Probe::Held, Some(pid)) => pid,
    };
    // A second signal would kill the engine in the middle of its end: whoever comes later waits with the first.
    let is_first = || lock::is_first_to_stop(&target.dir, &execute::mark());
    match other::ask_to_stop(pid, &lock::held_file(&target.dir), is_first) {
        Ok(()) => Asked::Told,
        // It has ended by itself in this moment.
        Err(_) if lock::probe(&target.dir) == Probe::Free => Asked::Gone,
        Err(error) => Asked::Not(error.to_string()),
    }
}

fn conclude(target: &Target, asked: &Asked, until: Instant, console: &Console<'_>) -> Stopped {
    let result = match asked {
        Asked::Told if wait(target, until) => Outcome::Stopped,
        Asked::Told => Outcome::StillRunning,
        Asked::Gone => Outcome::NotRunning,
        Asked::Not(_) => Outcome::LeftAlone,
    };
    let run = Run::read(target.id.clone(), &target.dir, console.probe).ok();
    let words = words(target, asked, result, run.as_ref());
    let status = run.and_then(|run| run.status).map(Status::as_str);
    Stopped { run_id: target.id.to_string(), pid: target.pid, result, status, words }
}

fn words(target: &Target, asked: &Asked, result: Outcome, run: Option<&Run>) -> String {
    let id = &target.id;
    let status = run.and_then(|run| run.status);
    let word = status.map_or("it has said nothing", Status::as_str);
    match (result, asked) {
        (Outcome::Stopped, _) => {
            let lost = run.filter(|_| status == Some(Status::Abandoned)).and_then(hint);
            format!("run {id} has ended: {word}{}", lost.map(|hint| format!("; {hint}")).unwrap_or_default())
        }
        (Outcome::StillRunning, _) => {
            let (seconds, pid) = (PATIENCE.as_secs(), target.pid.unwrap_or_default());
            format!(
                "run {id} was told to end and is still running after {seconds} s; kill -9 {pid} ends it at once, and \
                 its guard ends its children"
            )
        }
        (_, Asked::Not(why)) => format!("run {id} was left alone: {why}"),
        _ => format!("run {id} is not running: {word}"),
    }
}

/// Waits until the leg has given its lock back; a later leg has another process.
fn wait(target: &Target, until: Instant) -> bool {
    loop {
        if lock::probe(&target.dir) != Probe::Held || lock::signer(&target.dir) != target.pid {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

fn report(args: &Args, results: &[Stopped], console: &mut Console<'_>) -> Result<(), Failure> {
    if args.json {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: u32,
            runs: &'a [Stopped],
        }
        let document = Document { schema: crate::view::history::JSON_SCHEMA, runs: results };
        let text = serde_json::to_string_pretty(&document).expect("text and numbers always encode");
        writeln!(console.out, "{text}")?;
    } else if results.is_empty() {
        writeln!(console.out, "no run is under way")?;
    } else {
        for result in results {
            writeln!(console.out, "{}", sanitize::one_line(&result.words))?;
        }
    }
    Ok(console.out.flush()?)
}
