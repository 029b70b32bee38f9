//! `omg resume`: a run that was left is picked up where it stood (DESIGN "Gate nodes and resume", FACTS 1.12).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::auto::VerifyFlags;
use super::context::Context;
use super::execute::{self, Claim, Display, LiveView};
use super::order::{BoundFlags, QuotaFlag};
use super::services::Services;
use super::{Failure, detach, left_lanes, order, planned, services};
use crate::graph::node::PermissionMode;
use crate::graph::{Graph, NodeId};
use crate::leg::again::{self, Inherited, Purpose, waiting};
use crate::leg::{Order, Planned, preflight};
use crate::load::Source;
use crate::node::runtime::RuntimeKind;
use crate::node::runtime::rehearsal::{Rehearsal, read};
use crate::node::runtime::settings::Whereabouts;
use crate::plan::later::{Kept, Later, later};
use crate::plan::verify_flags::VerifyCommand;
use crate::process::Launcher;
use crate::record::aside;
use crate::record::lock::{self, Probe};
use crate::record::snapshot_reader::{Brief, SnapshotError};
use crate::record::standing::{Standing, StandingError};
use crate::record::status::{self, Status};
use crate::record::stream::StreamError;
use crate::record::{Durability, RunDir, RunId, Snapshot, staged};
use crate::schedule::gate::Decision;
use crate::text::sanitize;
use crate::view::history::Run;
use crate::view::history::lookup::find_run;
use crate::view::term::plan;

/// Goes on with a run that paused, failed or was interrupted.
///
/// A run that waits at gates needs a decision for at least one of them; a run that failed, hit a limit or was cut off needs
/// --retry-failed. What passed is never run again.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// Approves a waiting gate; repeat for more.
    #[arg(long, value_name = "GATE")]
    approve: Vec<String>,
    /// Rejects a waiting gate and leaves out everything below it; repeat for more.
    #[arg(long, value_name = "GATE")]
    reject: Vec<String>,
    /// Runs what failed again, and what never ran.
    #[arg(long)]
    retry_failed: bool,
    /// How many nodes run at the same time, at most 10; 0 takes the graph's own number, else 4.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    concurrency: Option<i64>,
    #[command(flatten)]
    bounds: BoundFlags,
    #[command(flatten)]
    quota: QuotaFlag,
    #[command(flatten)]
    verify: VerifyFlags,
    /// Gives no planned node your skills, as no later leg does.
    #[arg(long)]
    no_skill_activation: bool,
    #[command(flatten)]
    background: detach::Flags,
    /// Does not serve the live view of this leg.
    ///
    /// On a terminal it is served while the leg runs, on a port of its own, and opened in a browser.
    #[arg(long)]
    no_web: bool,
    /// Prints the feed's own lines on standard output, and everything else on standard error.
    #[arg(long)]
    json: bool,
    /// Shows no progress, warnings only.
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, asked: Option<RuntimeKind>, context: &mut Context) -> Result<u8, Failure> {
    if args.background.is_asked() {
        return detach::begin(context);
    }
    if args.background.is_copy() {
        detach::settle_in();
    }
    context.out_is_feed = args.json;
    let (run, dir) = find_run(&context.home, &args.run)?;
    refuse_links(&run, &dir)?;
    let kind = runtime_of(&run, &read_brief(&run, &dir)?, asked)?;
    if args.retry_failed && !(args.approve.is_empty() && args.reject.is_empty()) {
        return Err(Failure::new("--retry-failed decides no gate; give it without --approve and --reject"));
    }
    let orphans = Orphans::of(&dir);
    let claimed = execute::claim_again(run.clone(), dir.clone())?;
    let standing = Standing::read(&dir).map_err(|error| unreadable(&dir, error))?;
    standing.put_back_artifacts(&dir).map_err(|error| Failure::new(error.to_string()))?;
    orphans.warn(&run, &standing, context);
    let (_, graph) = crate::graph::from_snapshot(standing.snapshot.graph.get())
        .map_err(|error| Failure::new(format!("run {run}: its graph cannot be read: {error}")))?;
    warn_of_change(&standing.snapshot, context);
    if args.verify.is_given() && standing.snapshot.tool_policies.is_empty() {
        return Err(Failure::new(format!(
            "run {run}: --verify-cmd is for planned runs, and its graph was written by hand"
        ))
        .hinted("leave it out: the graph's own checks are what decides"));
    }
    let Some(purpose) = purpose(args, &run, &graph, &standing)? else {
        return redirect(&run, &graph, &standing, context);
    };
    let inherited = Inherited::of(&graph, &dir, &standing, &purpose);
    // A run that was killed before it could say that it ended, or whose snapshot lacks what its feed has, is closed by a leg
    // with nothing to run.
    if !inherited.has_work(&graph) && !standing.legs.open && !standing.is_behind {
        let base = Path::new(&standing.snapshot.cwd);
        for note in left_lanes::tidy(&run, &claimed.run.dir, base, &graph) {
            writeln!(context.err, "note: {}", sanitize::one_line(&note)).ok();
        }
        writeln!(context.prose().0, "run {run}: nothing to run again").ok();
        return Ok(0);
    }
    resume(args, kind, claimed, graph, standing, inherited, &purpose, context)
}

/// A leg writes through no link. What it needs is looked at before anything is paid that it could not keep.
fn refuse_links(run: &RunId, dir: &RunDir) -> Result<(), Failure> {
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.is_symlink());
    match [dir.path().to_path_buf(), dir.lock(), dir.feed()].into_iter().find(is_link) {
        None => Ok(()),
        Some(link) => Err(Failure::new(format!(
            "run {run}: {} is a link, and a run is not written through one; nothing was run",
            link.display()
        ))
        .hinted("move what it leads to into its place")),
    }
}

/// What is needed before the lock is taken; the rest is read once it is.
fn read_brief(run: &RunId, dir: &RunDir) -> Result<Brief, Failure> {
    if !dir.snapshot().exists() {
        return Err(nothing_recorded(run, dir));
    }
    Brief::read(dir).map_err(|error| unreadable(dir, StandingError::Snapshot(error)))
}

/// Why a run without a snapshot cannot go on.
fn nothing_recorded(run: &RunId, dir: &RunDir) -> Failure {
    let known = Run::read(run.clone(), dir, lock::probe).ok();
    if known.as_ref().and_then(|known| known.status) == Some(Status::Planning) {
        return Failure::new(format!("run {run} is still being planned"))
            .hinted(format!("omg watch {run} follows it; omg stop {run} ends it"));
    }
    if let Some(known) = known.filter(|known| known.legs.planning) {
        let why = sanitize::one_line(&known.legs.detail);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let failure = Failure::new(format!("run {run} came to no plan{why}"));
        return match dir.rejected().exists() {
            true => failure.hinted(format!(
                "plan the goal again, or mend what was refused: {}",
                sanitize::path(&dir.rejected())
            )),
            false => failure.hinted("plan the goal again"),
        };
    }
    Failure::new(format!("run {run} has no snapshot: it ended before anything was recorded"))
        .hinted("run the graph again")
}

/// Why nobody can tell where a run stands, and what is left to do about it.
fn unreadable(dir: &RunDir, error: StandingError) -> Failure {
    let hint = match &error {
        StandingError::Snapshot(SnapshotError::Schema { .. })
        | StandingError::Feed(StreamError::Newer { .. }) => {
            "the version of omg that wrote the run can go on with it".to_owned()
        }
        _ => format!(
            "nothing was run; what the nodes made is in {}; run the graph again to go on without it",
            dir.path().display()
        ),
    };
    Failure::new(error.to_string()).hinted(hint)
}

/// The run keeps its runtime; asking for another one is refused.
fn runtime_of(run: &RunId, brief: &Brief, asked: Option<RuntimeKind>) -> Result<RuntimeKind, Failure> {
    let word = if brief.runtime.is_empty() { "claude" } else { &brief.runtime };
    let kind = RuntimeKind::parse(word)
        .ok_or_else(|| Failure::new(format!("run {run}: this program knows no runtime {word:?}")))?;
    match asked {
        Some(asked) if asked != kind => Err(Failure::new(format!(
            "run {run} was started with {}; it cannot go on with {}",
            kind.as_str(),
            asked.as_str()
        ))
        .hinted("leave --runtime out")),
        _ => Ok(kind),
    }
}

/// What is known of the last leg's children before the lock is taken, which makes every run look alive.
struct Orphans {
    probe: Probe,
    were_ended: bool,
}

impl Orphans {
    fn of(dir: &RunDir) -> Self {
        Orphans { probe: lock::probe(dir), were_ended: aside::children_were_ended(dir) }
    }

    fn warn(&self, run: &RunId, standing: &Standing, context: &mut Context) {
        let abandoned = status::derive(&standing.legs, None, || self.probe) == Some(Status::Abandoned);
        if abandoned && !standing.legs.rehearsal && !self.were_ended {
            let line = format!(
                "WARNING: run {run} was abandoned: its process died. A child that it had started may still run and spend"
            );
            writeln!(context.err, "{line}").ok();
        }
    }
}

/// The snapshot is what runs, whatever the file says by now.
fn warn_of_change(snapshot: &Snapshot, context: &mut Context) {
    let path = Path::new(&snapshot.cwd).join(&snapshot.graph_source_path);
    let Some(source) = Source::read_again(&path) else { return };
    if !snapshot.graph_sha256.is_empty() && source.sha256 != snapshot.graph_sha256 {
        let path = path.display();
        writeln!(
            context.err,
            "WARNING: {path} has changed since; the run goes on with the graph it was started with"
        )
        .ok();
    }
}

/// What the leg is for; `None` when a retry is asked for and only gates are waited for.
fn purpose(args: &Args, run: &RunId, graph: &Graph, standing: &Standing) -> Result<Option<Purpose>, Failure> {
    let waiting = waiting(graph, standing);
    if args.retry_failed {
        let retry = retry(graph, standing);
        let unfinished = !retry.cleared.is_empty() || !standing.unsettled.is_empty() || retry.has_work(graph);
        // A leg that died there has yet to say that the run pauses.
        let only_gates = !standing.legs.open
            && !waiting.is_empty()
            && retry.cleared.is_empty()
            && !retry.has_work_besides(graph, &waiting);
        let is_work = unfinished && !only_gates || waiting.is_empty() || standing.legs.open;
        return Ok(is_work.then_some(Purpose::Retry));
    }
    let mut decisions = BTreeMap::new();
    let asked = args.approve.iter().map(|id| (id, Decision::Approve));
    for (id, decision) in asked.chain(args.reject.iter().map(|id| (id, Decision::Reject))) {
        let gate = waiting.iter().find(|gate| gate.as_str() == id.as_str());
        let gate = gate.ok_or_else(|| not_waiting(run, id, &waiting))?;
        if decisions.insert(gate.clone(), decision).is_some_and(|other| other != decision) {
            return Err(Failure::new(format!("gate \"{id}\" cannot be both approved and rejected")));
        }
    }
    match (decisions.is_empty(), waiting.first()) {
        (false, _) => Ok(Some(Purpose::Decide(decisions))),
        (true, Some(gate)) => Err(Failure::new(format!("run {run} waits at {}", list(&waiting)))
            .hinted(format!("omg resume {run} --approve {gate}, or --reject {gate}"))),
        (true, None) if !standing.legs.open && !retry(graph, standing).has_work(graph) => {
            Err(Failure::new(format!("run {run} has ended; nothing of it is left to run"))
                .hinted(format!("omg show {run}")))
        }
        (true, None) => Err(Failure::new(format!("run {run} waits at no gate"))
            .hinted(format!("omg resume {run} --retry-failed runs what failed or never ran"))),
    }
}

/// What a retry would find.
fn retry(graph: &Graph, standing: &Standing) -> Inherited {
    Inherited::of(graph, &RunDir::new(PathBuf::new()), standing, &Purpose::Retry)
}

fn not_waiting(run: &RunId, id: &str, waiting: &[NodeId]) -> Failure {
    let failure = Failure::new(format!("run {run} does not wait at \"{id}\""));
    match waiting {
        [] => {
            failure.hinted(format!("it waits at no gate; omg resume {run} --retry-failed runs what is left"))
        }
        some => failure.hinted(format!("it waits at {}", list(some))),
    }
}

fn list(gates: &[NodeId]) -> String {
    gates.iter().map(|gate| format!("\"{gate}\"")).collect::<Vec<_>>().join(", ")
}

fn redirect(run: &RunId, graph: &Graph, standing: &Standing, context: &mut Context) -> Result<u8, Failure> {
    let waiting = waiting(graph, standing);
    let (out, _) = context.prose();
    writeln!(out, "run {run}: nothing failed; it waits at {}", list(&waiting)).ok();
    if let Some(gate) = waiting.first() {
        writeln!(out, "decide it: omg resume {run} --approve {gate}, or --reject {gate}").ok();
    }
    Ok(0)
}

#[expect(
    clippy::too_many_arguments,
    reason = "each is a different thing that the leg needs, and it is called once"
)]
fn resume(
    args: &Args,
    kind: RuntimeKind,
    claimed: Claim,
    graph: Graph,
    standing: Standing,
    mut inherited: Inherited,
    purpose: &Purpose,
    context: &mut Context,
) -> Result<u8, Failure> {
    let Standing { snapshot, attempts, .. } = standing;
    let base = base(&snapshot)?;
    let verify = args.verify.read()?;
    let (graph, planned) = if snapshot.was_planned() || !snapshot.tool_policies.is_empty() {
        replanned(&snapshot, &claimed.run.run, &claimed.run.dir, kind, verify.as_ref(), context)?
    } else {
        (graph, None)
    };
    let slots = order::slots(&graph, args.concurrency, context)?;
    let (services, rehearsal) = services(kind, &graph, &claimed.run.dir, &attempts)?;
    let mut refusals = preflight::refusals(&graph, &snapshot.inputs, &base);
    if rehearsal.is_none() {
        refusals.extend(preflight::lanes(&graph, &base, services.git.as_ref()));
    }
    if !refusals.is_empty() {
        return Err(Failure::new(format!(
            "run {}: {}; nothing was run",
            claimed.run.run,
            refusals.join("; ")
        )));
    }
    let is_isolated = planned.as_ref().is_some_and(|planned| !planned.ceiling.is_loaded());
    let places = Whereabouts { is_isolated, ..services::whereabouts(kind) };
    let settings = preflight::settings(kind, &graph, &snapshot.inputs, &base, places);
    order::warn_of_settings(&settings, "", context);
    order::warn(&services.runtime.preflight(&graph), context);
    for line in &inherited.warnings {
        writeln!(context.err, "warning: {line}").ok();
    }
    let display = Display {
        title: title(&claimed.run.run, purpose, &inherited, inherited.has_work(&graph)),
        json: args.json,
        quiet: args.quiet,
        detached: args.background.is_copy(),
        web: LiveView::unless(args.no_web),
        again: planned::again(verify.as_ref()),
        goes_on: false,
    };
    let bounds = again::bounds(&snapshot, args.bounds.read()?);
    let default_mode = default_mode(&snapshot);
    if let Some(planned) = &planned {
        inherited.before.spent += planned.planning.0;
    }
    let order = Order {
        encoded: snapshot.graph,
        source_path: snapshot.graph_source_path,
        sha256: snapshot.graph_sha256,
        graph: Arc::new(graph),
        inputs: snapshot.inputs,
        base,
        continue_on_fail: snapshot.continue_on_fail,
        slots,
        durability: Durability::Paced,
        runtime: services.runtime,
        shell: services.shell,
        launcher: services.launcher,
        git: services.git,
        rehearsal,
        default_mode,
        planned,
        bounds,
        patience: args.quota.read()?,
        inherited,
    };
    execute::execute(claimed, order, &display, context)
}

/// The permission mode of nodes that declare none (FACTS 0.2).
fn default_mode(snapshot: &Snapshot) -> PermissionMode {
    PermissionMode::parse(&snapshot.default_permission_mode).unwrap_or(PermissionMode::DontAsk)
}

/// A planned graph as this leg runs it, with what is said of it.
fn replanned(
    snapshot: &Snapshot,
    run: &RunId,
    dir: &RunDir,
    kind: RuntimeKind,
    verify: Option<&VerifyCommand>,
    context: &mut Context,
) -> Result<(Graph, Option<Planned>), Failure> {
    // The copies of the leg that planned, should that have been killed.
    staged::sweep(&context.home, Some(run));
    let planned = Planned::of(snapshot).ok_or_else(|| {
        Failure::new(format!("run {run}: it was planned, and its files no longer say what its nodes may do"))
            .hinted("something wrote into the run's directory; look at it, or plan the goal again")
    })?;
    let (raw, _) = crate::graph::from_snapshot(snapshot.graph.get())
        .map_err(|error| Failure::new(format!("run {run}: its graph cannot be read: {error}")))?;
    let kept = Kept {
        raw,
        ceiling: planned.ceiling,
        default_mode: default_mode(snapshot),
        inputs: snapshot.inputs.keys().map(String::as_str).collect(),
    };
    let Later { graph, ceiling, attached, agents, skills } = later(kept, verify).map_err(|error| {
        let failure = Failure::new(format!("run {run}: {error}"));
        match error.hint() {
            Some(hint) => failure.hinted(hint),
            None => failure,
        }
    })?;
    let loaded = ceiling.is_loaded();
    let screen = plan::Again {
        attached: &attached,
        verify,
        agents: &agents,
        skills: &skills,
        corpus: aside::skills_staged(dir),
        runtime: kind,
        loaded,
    };
    let (out, _) = context.prose();
    write!(out, "{}", screen.print()).ok();
    Ok((graph, Some(Planned { ceiling, ..planned })))
}

/// The leg runs where the run was started, not where resume was typed (case D1).
fn base(snapshot: &Snapshot) -> Result<PathBuf, Failure> {
    if snapshot.cwd.is_empty() {
        return Ok(Context::base());
    }
    let base = PathBuf::from(&snapshot.cwd);
    if base.is_dir() {
        return Ok(base);
    }
    Err(Failure::new(format!("run {} was started in {}, which is gone", snapshot.run_id, base.display()))
        .hinted("make the directory again, or run the graph anew"))
}

fn services(
    kind: RuntimeKind,
    graph: &Graph,
    dir: &RunDir,
    attempts: &BTreeMap<String, u32>,
) -> Result<(Services, Option<String>), Failure> {
    if kind != RuntimeKind::Rehearsal {
        return services::wire(kind, graph, &execute::mark()).map(|services| (services, None));
    }
    let path = dir.script();
    let script = match Source::read(&path) {
        Ok(source) => Some(
            read::read(&path.display().to_string(), &source.text, graph)
                .map_err(|problems| Failure::new(problems.lines().join("; ")))?,
        ),
        Err(_) => None,
    };
    let rehearsal = Rehearsal::new(graph, script).map_err(|reasons| Failure::new(reasons.join("; ")))?;
    // Its script goes on where it was, whatever came of the attempts so far.
    for (id, spawns) in attempts {
        if let Some(id) = NodeId::parse(id) {
            rehearsal.resume(&id, *spawns as usize);
        }
    }
    let rehearsal = Arc::new(rehearsal);
    let launcher = Arc::new(Launcher::new(&execute::mark()));
    let services = Services { runtime: Arc::clone(&rehearsal) as _, shell: rehearsal, launcher, git: None };
    Ok((services, Some(String::new())))
}

fn title(run: &RunId, purpose: &Purpose, inherited: &Inherited, has_work: bool) -> String {
    let what = match purpose {
        Purpose::Decide(decisions) => {
            let each = decisions.iter().map(|(gate, decision)| match decision {
                Decision::Approve => format!("gate \"{gate}\" approved"),
                Decision::Reject => format!("gate \"{gate}\" rejected"),
            });
            each.collect::<Vec<_>>().join(", ")
        }
        Purpose::Retry if !has_work => "everything has run; its end is recorded".to_owned(),
        Purpose::Retry if inherited.cleared.is_empty() => "running unfinished nodes".to_owned(),
        Purpose::Retry => format!("running again: {}", inherited.cleared.join(", ")),
    };
    format!("Resuming run {run} ({what})")
}
