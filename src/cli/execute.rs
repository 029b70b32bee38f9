//! Running a leg under a person's eyes: the banner, the progress, the ledger, the last word.
//!
//! What happens in the run never depends on whether anybody can still read it: failures to print are dropped.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use jiff::tz::TimeZone;

use super::Failure;
use super::context::Context;
use super::failure::PAUSED;
use super::{detach, serve};
use crate::clock::rfc3339;
use crate::graph::{Graph, NodeId, Work};
use crate::leg::Claimed;
use crate::leg::drive::{Ending, Finished, Paused};
use crate::leg::{Leg, LegError, Order};
use crate::node::runtime::limit;
use crate::process::signals::{self, Stop};
use crate::record::lock::{LegLock, LockError};
use crate::record::stream::StreamError;
use crate::record::{RunDir, RunId, Usage, stream};
use crate::schedule::machine::Cap;
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::view::term::ledger::Ledger;
use crate::view::term::progress::{Options, Outlets, Progress};
use crate::view::term::when;
use crate::view::web::{self, Serving};

/// How long a screen that takes nothing may keep a run that a signal ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What to do about a home that cannot be written.
pub(super) const WHERE_RUNS_LIE: &str =
    "set OMG_HOME to a directory on a local disk that can be written; without it runs lie in ~/.oh-my-graph";
/// A warning names so many nodes, and counts the rest.
const NAMED_MAX: usize = 10;

/// A run that has its directory, and the signals to it from before that moment.
pub(super) struct Claim {
    pub(super) run: Claimed,
    pub(super) signals: Receiver<Stop>,
}

/// What is shown of a run.
pub(super) struct Display {
    /// What is being done, one line.
    pub(super) title: String,
    /// Whether standard output is the feed's alone.
    pub(super) json: bool,
    /// Whether progress is left out.
    pub(super) quiet: bool,
    /// Whether it goes to the background once it is open.
    pub(super) detached: bool,
    /// What a person at a terminal gets of the live view.
    pub(super) web: LiveView,
    /// What a later leg must be given again, behind a space; empty for most runs.
    pub(super) again: String,
    /// Whether the command has more to do when the run has ended, and hears the signals from then on.
    pub(super) goes_on: bool,
}

/// What a person at a terminal gets of the live view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveView {
    /// None.
    Off,
    /// Its address.
    Served,
    /// Its address, and a browser that shows it.
    Opened,
}

impl LiveView {
    /// What `--no-web` says.
    pub(super) fn unless(off: bool) -> Self {
        if off { LiveView::Off } else { LiveView::Opened }
    }
}

/// A run that was driven to the end of its leg, and told.
pub(super) struct Ran {
    /// How it ended.
    pub(super) ending: Ending,
    /// The signal that came, if one did.
    pub(super) signal: Option<Stop>,
    /// Its graph.
    pub(super) graph: Arc<Graph>,
    /// Its ledger, if that can be read.
    pub(super) ledger: Option<Ledger>,
    /// The run's lock, where the command has more to do with the run.
    pub(super) lock: Option<LegLock>,
    /// What a command that does no more than this run ends with.
    pub(super) conclusion: Result<u8, Failure>,
}

impl Ran {
    /// What it cost, planning included, and its tokens. What nobody can tell is unknown.
    pub(super) fn spent(&self) -> (Cost, Usage) {
        let (cost, usage) = match &self.ledger {
            Some(ledger) => (ledger.total(), ledger.usage()),
            None => (Cost::UNKNOWN, Usage::default()),
        };
        // Its last steps are not recorded.
        let killed = if matches!(self.ending, Ending::Abandoned(_)) { Cost::UNKNOWN } else { Cost::ZERO };
        (cost + killed, usage)
    }
}

/// The signals to this program, from here on: none ends it without a word.
pub(super) fn listen() -> Result<Receiver<Stop>, Failure> {
    signals::listen().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
}

/// Claims a new run. From here on no signal ends this program without a word.
pub(super) fn claim(context: &Context) -> Result<Claim, Failure> {
    claim_hearing(listen()?, context)
}

/// The same for a command that listens already.
pub(super) fn claim_hearing(signals: Receiver<Stop>, context: &Context) -> Result<Claim, Failure> {
    let run = Claimed::new(&context.home, &context.clock).map_err(cannot_begin)?;
    Ok(Claim { run, signals })
}

/// Claims a run for a later leg.
pub(super) fn claim_again(run: RunId, dir: RunDir) -> Result<Claim, Failure> {
    let signals = listen()?;
    let run = Claimed::again(run.clone(), dir).map_err(|error| cannot_go_on(&run, error))?;
    Ok(Claim { run, signals })
}

/// A run that is under way already is followed or stopped; no other directory helps.
fn cannot_go_on(run: &RunId, error: LegError) -> Failure {
    match error {
        LegError::Lock(lock @ LockError::Held { .. }) => Failure::new(lock.to_string())
            .hinted(format!("omg watch {run} follows it; omg stop {run} ends it")),
        LegError::Lock(lock @ LockError::Legacy { .. }) => Failure::new(lock.to_string()),
        other => cannot_begin(other),
    }
}

/// A word for this process's children that no other process uses.
pub(super) fn mark() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Runs a claimed run to its end and says how it went; returns the exit code.
pub(super) fn execute(
    claim: Claim,
    order: Order,
    display: &Display,
    context: &mut Context,
) -> Result<u8, Failure> {
    see_through(claim, order, display, context)?.conclusion
}

/// Runs a claimed run to its end and shows it up to its ledger.
///
/// # Errors
/// When its leg could not be opened, so that nothing was run.
pub(super) fn see_through(
    claim: Claim,
    order: Order,
    display: &Display,
    context: &mut Context,
) -> Result<Ran, Failure> {
    let Claim { run: claimed, signals } = claim;
    let (run, dir) = (claimed.run.clone(), claimed.dir.clone());
    let (from, graph) = (stream::length(&dir.feed()), Arc::clone(&order.graph));
    let is_first = order.inherited.leg == 1;
    warn_of_unbounded(&order, context);
    if display.detached {
        detach::without_a_terminal(context);
    } else {
        banner(&dir, display, context);
    }
    // Until the last word is said: what the run wrote last is shown too.
    let view = view(&run, display, context);
    let (observer, progress) =
        Progress::start(&dir, options(&order, display, from, context), outlets(display));
    let opened = Leg::open(claimed, order, Arc::clone(&context.clock), observer);
    let opened =
        opened.map_err(|error| if is_first { cannot_begin(error) } else { cannot_record(&run, &error) });
    let mut finished = opened.and_then(|leg| {
        if display.detached
            && let Err(failure) = detach::leave(&run, &dir, context)
        {
            leg.give_up();
            return Err(failure);
        }
        Ok(leg.drive(signals.clone()))
    });
    if let (Ok(finished), false) = (&mut finished, display.goes_on) {
        finished.lock = None;
    }
    let came = finished.as_ref().ok().and_then(signal_of);
    if came.is_some() || !display.goes_on {
        leave_at_a_signal(signals, came);
    }
    progress.finish();
    let ran = tell(&run, &dir, graph, finished?, display, context);
    if let (Some(view), None) = (&view, came) {
        view.linger();
    }
    Ok(ran)
}

/// Tells how a leg ended.
fn tell(
    run: &RunId,
    dir: &RunDir,
    graph: Arc<Graph>,
    finished: Finished,
    display: &Display,
    context: &mut Context,
) -> Ran {
    let came = signal_of(&finished);
    let Finished { ending, left_running, notes, signal, lacks_charges, lock } = finished;
    for (node, pid) in left_running {
        writeln!(context.err, "left running: node \"{node}\", pid {pid}").ok();
    }
    for note in notes {
        writeln!(context.err, "note: {}", sanitize::one_line(&note)).ok();
    }
    let ledger = Ledger::of_run(run, dir).map(|ledger| Ledger { lacks_charges, ..ledger });
    if let Ending::Abandoned(signal) = ending {
        let failure =
            Failure::new(format!("run {run}: killed at the second signal; its last steps are not recorded"));
        let conclusion = Err(failure.exiting(signal.exit_code()));
        return Ran { ending, signal: came, graph, ledger: ledger.ok(), lock, conclusion };
    }
    print_ledger(ledger.as_ref(), dir, context);
    if let Ending::Paused(pause) = &ending {
        pause_hint(run, pause, &display.again, context);
    }
    let conclusion = conclude(run, &graph, &ending, signal, &display.again).map_err(|failure| match signal {
        Some(signal) => failure.exiting(signal.exit_code()),
        None => failure,
    });
    Ran { ending, signal: came, graph, ledger: ledger.ok(), lock, conclusion }
}

/// A bound on dollars holds back starts; what a node without a budget costs is known once it has ended.
fn warn_of_unbounded(order: &Order, context: &mut Context) {
    if order.bounds.spend.is_none() || order.rehearsal.is_some() {
        return;
    }
    let graph = &order.graph;
    let left = graph.positions().filter(|ix| !order.inherited.before.passed.contains(&ix.get()));
    let is_unbounded = |work: &Work| matches!(work, Work::Model(model) if model.budget.is_none());
    let nodes: Vec<String> = left
        .map(|ix| graph.node(ix))
        .filter(|node| is_unbounded(&node.work))
        .map(|node| format!("\"{}\"", node.id))
        .collect();
    if nodes.is_empty() {
        return;
    }
    let more = nodes.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    writeln!(
        context.err,
        "WARNING: max_usd is kept by not starting nodes, and what a node without budget_usd will cost is not known when it \
         starts: those that run when it is reached are paid on top ({}{more})",
        nodes[..nodes.len().min(NAMED_MAX)].join(", ")
    )
    .ok();
}

/// Nothing is left to be ended or recorded, only told, and nobody may be reading: the next signal ends the program
/// at once; and when one has ended the run already, so does a screen that takes nothing for a while.
#[expect(clippy::exit, reason = "the main thread may be stuck in a write that never returns")]
fn leave_at_a_signal(signals: Receiver<Stop>, first: Option<Stop>) {
    let wait = move || {
        let next = match first {
            Some(first) => match signals.recv_timeout(LAST_WORDS) {
                Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(first),
                Err(RecvTimeoutError::Disconnected) => return,
            },
            None => signals.recv(),
        };
        if let Ok(signal) = next {
            std::process::exit(signal.exit_code().into());
        }
    };
    // Without a thread the last words are waited for, as long as it takes.
    std::thread::Builder::new().name("last words".to_owned()).spawn(wait).ok();
}

fn signal_of(finished: &Finished) -> Option<Stop> {
    match finished.ending {
        Ending::Stopped(signal) | Ending::Abandoned(signal) => Some(signal),
        Ending::Passed | Ending::Paused(_) | Ending::Failed { .. } | Ending::Unrecorded { .. } => {
            finished.signal
        }
    }
}

/// What a paused run waits for, and what to type (FACTS 1.13).
fn pause_hint(run: &RunId, pause: &Paused, again: &str, context: &mut Context) {
    let (out, _) = context.prose();
    if !pause.gates.is_empty() {
        let gates: Vec<String> = pause.gates.iter().map(|gate| format!("\"{gate}\"")).collect();
        writeln!(out, "\nPaused: your decision is waited for at {}.", gates.join(", ")).ok();
        for gate in &pause.gates {
            writeln!(
                out,
                "  omg resume {run} --approve {gate}{again}\n  omg resume {run} --reject {gate}{again}"
            )
            .ok();
        }
    }
    if let Some(words) = &pause.limit {
        writeln!(out, "\nPaused: {}", sanitize::one_line(words)).ok();
        let local = pause.lifts.map(|at| when::local(&rfc3339(at), &TimeZone::system()));
        let later = local.or_else(|| limit::resets(words));
        let later = later.map(|when| format!("    (after {when})")).unwrap_or_default();
        writeln!(out, "  omg resume {run} --retry-failed{again}{later}").ok();
    }
    if let Some(bound) = pause.bound() {
        writeln!(out, "\nPaused: {bound}.").ok();
        let flag = raised(pause);
        writeln!(out, "  omg resume {run} --retry-failed{again} {flag}").ok();
    }
    out.flush().ok();
}

/// What lets a run go on whose bound was reached. The bound on time is each leg's own.
fn raised(pause: &Paused) -> String {
    let Some((_, short)) = &pause.short else {
        return "   (for as long again; --max-wall TIME changes it)".to_owned();
    };
    match (short.cap, short.may_spend.is_zero()) {
        (Cap::Spend, true) => format!("--max-usd DOLLARS    (more than {})", short.spent),
        (Cap::Spend, false) => {
            format!("--max-usd {}    (or more)", (short.spent + short.may_spend).usd())
        }
        _ => format!("--max-executions {}    (or more)", short.executed + short.executions),
    }
}

fn banner(dir: &RunDir, display: &Display, context: &mut Context) {
    let title = sanitize::one_line(&display.title).into_owned();
    let (out, _) = context.prose();
    writeln!(out, "{title}\n{}\n", sanitize::path(dir.path())).ok();
    out.flush().ok();
}

/// The live view of this leg, for a person at a terminal. That there is none is a warning.
fn view(run: &RunId, display: &Display, context: &mut Context) -> Option<Serving> {
    if display.web == LiveView::Off || display.detached || display.json || !context.out_is_terminal {
        return None;
    }
    let site = serve::site(context, Some(run.clone()));
    match web::bind(0).and_then(|listener| Serving::start(listener, site)) {
        Ok(serving) => {
            let address = serving.url();
            writeln!(context.out, "Live view: {address}\n").ok();
            context.out.flush().ok();
            if display.web == LiveView::Opened {
                serve::open(&address, context);
            }
            Some(serving)
        }
        Err(error) => {
            writeln!(context.err, "note: there is no live view: {error}").ok();
            None
        }
    }
}

/// Copies the feed in `dir` from byte `from` on to standard output, for `--json`, while nobody else does.
pub(super) fn copy_feed(dir: &RunDir, from: u64, context: &mut Context) {
    let copied = File::open(dir.feed()).and_then(|mut feed| {
        feed.seek(SeekFrom::Start(from))?;
        io::copy(&mut feed, &mut context.out)
    });
    copied.and_then(|_| context.out.flush()).ok();
}

fn options(order: &Order, display: &Display, from: u64, context: &Context) -> Options {
    Options {
        from,
        quiet: display.quiet,
        live: context.err_look.is_live(),
        look: context.err_look,
        nodes: Some(order.graph.nodes().len()),
    }
}

fn outlets(display: &Display) -> Outlets {
    let copy: Option<Box<dyn Write + Send>> =
        if display.json { Some(Box::new(BufWriter::new(io::stdout()))) } else { None };
    Outlets { screen: Box::new(BufWriter::new(io::stderr())), copy }
}

fn print_ledger(ledger: Result<&Ledger, &StreamError>, dir: &RunDir, context: &mut Context) {
    let (out, look) = context.prose();
    let text = match ledger {
        Ok(ledger) => ledger.print(look),
        Err(error) => format!("the ledger cannot be shown: {error}\n"),
    };
    write!(out, "\n{text}\n{}\n", sanitize::path(dir.path())).ok();
    out.flush().ok();
}

/// Whoever sent a signal is owed its exit code, also when the run ended or paused by itself at that moment (case A6).
fn conclude(
    run: &RunId,
    graph: &Graph,
    ending: &Ending,
    signal: Option<Stop>,
    again: &str,
) -> Result<u8, Failure> {
    let late = |signal: Stop, when: &str, hint: String| {
        let failure = Failure::new(format!("run {run}: {} came when {when}", signal.name()));
        Err(failure.hinted(hint).exiting(signal.exit_code()))
    };
    match ending {
        Ending::Passed => signal.map_or(Ok(0), |signal| {
            late(signal, "every node had passed", format!("the run is complete: omg show {run}"))
        }),
        Ending::Paused(_) => signal.map_or(Ok(PAUSED), |signal| {
            late(signal, "it was pausing", format!("it is paused all the same: omg show {run}"))
        }),
        Ending::Stopped(signal) | Ending::Abandoned(signal) => Err(interrupted(run, *signal, again)),
        Ending::Unrecorded { why, passed } => Err(unrecorded(run, why, *passed, again)),
        Ending::Failed { halted: Some(node), .. } => Err(Failure::new(format!(
            "run {run}: halted after node \"{node}\" failed"
        ))
        .hinted(format!("see why: omg show {run} {node}; then omg resume {run} --retry-failed{again}"))),
        Ending::Failed { halted: None, failed } => {
            let names: Vec<String> = failed.iter().map(|node| format!("\"{node}\"")).collect();
            let failure =
                Failure::new(format!("run {run}: completed with failed node(s) {}", names.join(", ")));
            let is_gate = |id: &&NodeId| {
                graph.find(id.as_str()).is_some_and(|ix| matches!(graph.node(ix).work, Work::Gate))
            };
            Err(match failed.iter().find(|id| !is_gate(id)) {
                Some(first) => failure.hinted(format!(
                    "see why: omg show {run} {first}; then omg resume {run} --retry-failed{again}"
                )),
                None => failure.hinted("a rejected gate stays rejected; to decide anew run the graph again"),
            })
        }
    }
}

fn unrecorded(run: &RunId, why: &str, passed: bool, again: &str) -> Failure {
    let what =
        if passed { "every node passed, but that is not recorded" } else { "it could not be recorded" };
    Failure::new(format!("run {run}: {what}: {why}")).hinted(format!(
        "make room, or its directory writable again; then omg resume {run} --retry-failed{again} goes on from what is recorded"
    ))
}

fn interrupted(run: &RunId, signal: Stop, again: &str) -> Failure {
    Failure::new(format!("run {run}: interrupted by {}", signal.name()))
        .hinted(format!("what passed is kept; go on with omg resume {run} --retry-failed{again}"))
        .exiting(signal.exit_code())
}

fn cannot_record(run: &RunId, error: &LegError) -> Failure {
    Failure::new(format!("run {run} cannot go on: {error}"))
        .hinted("nothing was run; make room, or its directory writable, and type the same again")
}

pub(super) fn cannot_begin(error: LegError) -> Failure {
    Failure::new(format!("the run cannot begin: {error}")).hinted(WHERE_RUNS_LIE)
}
