//! A planned graph under a person's eyes: staged, shown, kept, run. What `auto`, the cycles of a goal and `chat` share.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::execute::{self, Claim, Display, LiveView, Ran};
use super::planner;
use super::services::Services;
use super::{Failure, detach, order, services};
use crate::graph::Bounds;
use crate::leg::again::Inherited;
use crate::leg::open::DEFAULT_MODE;
use crate::leg::{Claimed, Order, Planned, preflight};
use crate::node::provision::Provisioned;
use crate::node::runtime::RuntimeKind;
use crate::plan::call::{self, Asking, NoPlan, Paid, Plan, Replanned, Wanted};
use crate::plan::evidence::Evidence;
use crate::plan::staging::copies::Copies;
use crate::plan::staging::{Choice, Staging};
use crate::plan::unisolated;
use crate::plan::verify_flags::VerifyCommand;
use crate::process::signals::Stop;
use crate::record::attempts::Caller;
use crate::record::planning::PlanningNote;
use crate::record::snapshot::{EvidenceState, GoalState};
use crate::record::{Durability, RunDir, artifact, mint, staged, stream};
use crate::text::sanitize;
use crate::text::shell_word::shell_path;
use crate::view::term::plan::Screen;
use crate::view::term::words;

/// What is to be planned and how it is to be run, everything free about it checked.
pub(super) struct Asked {
    /// What answers prompts.
    pub(super) kind: RuntimeKind,
    /// The goal, and what its plan is held to.
    pub(super) wanted: Wanted,
    /// How the question of build evidence was answered.
    pub(super) evidence: Evidence,
    /// What of the person's own planned nodes are given.
    pub(super) choice: Choice,
    /// The inputs.
    pub(super) inputs: BTreeMap<String, String>,
    /// `--concurrency`.
    pub(super) concurrency: Option<i64>,
    /// Bounds on each run.
    pub(super) bounds: Bounds,
    /// How long a run may wait for a spent limit to be lifted.
    pub(super) patience: Option<Duration>,
    /// `--continue-on-fail`.
    pub(super) continue_on_fail: bool,
    /// Whether progress is left out.
    pub(super) quiet: bool,
    /// Whether standard output is the feeds' alone.
    pub(super) json: bool,
    /// Whether the command goes to the background once a run says that it is being planned.
    pub(super) detached: bool,
    /// What is shown of the live view.
    pub(super) web: LiveView,
    /// The cycle that is asked for, of a goal that may take several.
    pub(super) cycle: Option<GoalState>,
    /// Whether the command has more to do after a run.
    pub(super) goes_on: bool,
}

/// Why planning came to no run, and what it had cost by then.
pub(super) struct Fallen {
    /// Why.
    pub(super) failure: Failure,
    /// What was paid.
    pub(super) paid: Paid,
}

/// Decides what of the person's own the nodes of `plan` are to have, and has the plan say so; `None` on a runtime that has
/// no such thing.
pub(super) fn stage(asked: &Asked, plan: &mut Plan) -> Result<Option<Staging>, Failure> {
    let staging = chosen(asked, &asked.choice, plan);
    if let Some(staging) = &staging {
        give(staging, plan)?;
    }
    Ok(staging)
}

fn chosen(asked: &Asked, choice: &Choice, plan: &Plan) -> Option<Staging> {
    let config = services::own_directory(asked.kind);
    (asked.kind == RuntimeKind::Claude).then(|| Staging::plan(config.as_deref(), &plan.graph, choice))
}

fn give(staging: &Staging, plan: &mut Plan) -> Result<(), Failure> {
    staging.map(&mut plan.raw);
    plan.graph = staging
        .activate(&plan.raw)
        .map_err(|faults| Failure::new(format!("the plan cannot be given agents and skills: {faults}")))?;
    Ok(())
}

/// Plans in a run of its own and runs the plan to its end. `headline` is told once the run says that it is being planned.
///
/// # Errors
/// When nothing was run.
pub(super) fn plan_and_run(
    asked: &Asked,
    mut claim: Claim,
    services: Services,
    headline: &str,
    context: &mut Context,
) -> Result<Ran, Fallen> {
    // What a leg that was killed left of its copies.
    staged::sweep(&context.home, None);
    note_goal(asked, &claim, context);
    let begun = claim.run.begin_planning(&services.launcher, &context.clock, &planner::observer());
    begun.map_err(|error| Fallen { failure: execute::cannot_begin(error), paid: Paid::default() })?;
    if let Err(failure) = set_out(asked, &claim, headline, context) {
        return Err(give_up(asked, claim, &services, Paid::default(), context, failure));
    }
    let dir = claim.run.dir.clone();
    let bought = planner::ask(&services, &claim.signals, "the planner", context, question(asked, Some(&dir)));
    let bought = match bought {
        Ok(bought) => bought,
        Err(failure) => return Err(give_up(asked, claim, &services, Paid::default(), context, failure)),
    };
    let said = bought.outcome.as_ref().map_or_else(|none| &none.said, |plan| &plan.said);
    planner::keep(&claim.run.dir, Caller::Planner, said, context);
    let mut plan = match bought.outcome {
        Ok(plan) => plan,
        Err(none) => {
            let failure = refused(&none, bought.signal, Some(&dir), Some(&claim), context);
            return Err(give_up(asked, claim, &services, none.paid, context, failure));
        }
    };
    // There is a plan after all.
    artifact::remove(&dir.rejected()).ok();
    if let Some(signal) = bought.signal {
        let failure = came_too_late(&plan, signal, &claim, context);
        return Err(give_up(asked, claim, &services, plan.paid, context, failure));
    }
    let copies = match make_ready(asked, &mut plan, &claim, context) {
        Ok(copies) => copies,
        Err(failure) => {
            tell_spent(&plan.paid, context);
            return Err(give_up(asked, claim, &services, plan.paid, context, failure));
        }
    };
    run_ready(asked, plan, copies, claim, services, context)
}

/// The question that buys a plan. What a first reply cost that was refused, and the reply, are kept in `dir` before another is
/// bought.
pub(super) fn question<'a>(
    asked: &'a Asked,
    dir: Option<&'a RunDir>,
) -> impl FnOnce(&Asking<'_>) -> Result<Plan, Box<NoPlan>> + Send + 'a {
    move |asking| {
        call::plan(asking, &asked.wanted, &mut |first: &Replanned| {
            let Some(dir) = dir else { return };
            // Should this fail the same is tried, and told, when nothing comes of the second.
            artifact::persist(&dir.rejected(), (first.spec.clone() + "\n").as_bytes()).ok();
            PlanningNote::new(first.paid.cost, first.paid.usage).leave(dir).ok();
        })
    }
}

/// A plan that was there in the moment in which a signal came: it was paid for, so it is kept.
fn came_too_late(plan: &Plan, signal: Stop, claim: &Claim, context: &mut Context) -> Failure {
    tell_spent(&plan.paid, context);
    let failure = Failure::new(format!(
        "run {}: interrupted by {} when the plan was there",
        claim.run.run,
        signal.name()
    ))
    .exiting(signal.exit_code());
    match save(plan, &claim.run.dir, context) {
        Ok(path) => failure.hinted(format!("nothing was run; {}", unbound(&path))),
        Err(unsaved) => {
            writeln!(context.err, "note: {}", unsaved.message).ok();
            failure.hinted("nothing was run")
        }
    }
}

/// How a plan is run that is kept, and what it lacks then.
pub(super) fn unbound(path: &Path) -> String {
    format!("omg run {} runs the plan, as a graph of your own: under no ceiling", shell_path(path))
}

/// Says that a run is being planned: to whoever reads its feed, and to whoever waits for it to begin in the background.
fn set_out(asked: &Asked, claim: &Claim, headline: &str, context: &mut Context) -> Result<(), Failure> {
    let Claimed { run, dir, .. } = &claim.run;
    if asked.json {
        execute::copy_feed(dir, 0, context);
    }
    if asked.detached {
        detach::leave(run, dir, context)?;
        detach::without_a_terminal(context);
    }
    let (out, _) = context.prose();
    writeln!(out, "{headline}").and_then(|()| out.flush()).ok();
    Ok(())
}

/// Keeps beside a run what it is for, from before its planner is asked. That it cannot be kept changes nothing.
pub(super) fn note_goal(asked: &Asked, claim: &Claim, context: &mut Context) {
    let alone = || GoalState {
        text: asked.wanted.brief.goal.clone(),
        cycle: 1,
        max_cycles: 1,
        first_run_id: claim.run.run.to_string(),
        budget_usd: None,
    };
    if let Err(error) = asked.cycle.clone().unwrap_or_else(alone).keep(&claim.run.dir) {
        writeln!(context.err, "note: the goal cannot be kept beside the run: {error}").ok();
    }
}

/// Everything between a plan that was bought and its first node: what it is given, kept, shown, looked at.
fn make_ready(
    asked: &Asked,
    plan: &mut Plan,
    claim: &Claim,
    context: &mut Context,
) -> Result<Option<Arc<Copies>>, Failure> {
    let (staging, copies) = lay_out(asked, plan, claim, context)?;
    let path = save(plan, &claim.run.dir, context)?;
    show(asked, plan, staging.as_ref(), Some(&path), context);
    can_run_here(asked, plan)?;
    Ok(copies)
}

/// Stages for a run that was claimed. Where no copies can be made nothing is staged, and the plan, which was paid for, runs
/// without (ADR 0022 of the design, 3).
fn lay_out(
    asked: &Asked,
    plan: &mut Plan,
    claim: &Claim,
    context: &Context,
) -> Result<(Option<Staging>, Option<Arc<Copies>>), Failure> {
    let (run, dir) = (&claim.run.run, &claim.run.dir);
    let Some(mut staging) = chosen(asked, &asked.choice, plan) else { return Ok((None, None)) };
    let copies = match staging.bind(&context.home, run, dir) {
        Ok(copies) => copies,
        Err(error) => {
            let unable = Choice { unable: Some(error.to_string()), ..asked.choice.clone() };
            staging = chosen(asked, &unable, plan).unwrap_or(staging);
            None
        }
    };
    give(&staging, plan)?;
    staging.apply(&mut plan.ceiling, dir);
    Ok((Some(staging), copies))
}

/// Refuses a plan that names what this machine does not have.
///
/// # Errors
/// Why it cannot run.
pub(super) fn can_run_here(asked: &Asked, plan: &Plan) -> Result<(), Failure> {
    let reasons = preflight::refusals(&plan.graph, &asked.inputs, &Context::base());
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the plan cannot run here: {}", reasons.join("; "))))
}

/// Runs a plan that is kept and was shown to its end, in a run that was claimed since.
///
/// # Errors
/// When nothing was run.
pub(super) fn run_plan(
    asked: &Asked,
    mut plan: Plan,
    staging: Option<Staging>,
    claim: Claim,
    services: Services,
    context: &mut Context,
) -> Result<Ran, Fallen> {
    let paid = plan.paid;
    match provide(&mut plan, staging, &claim, context) {
        Ok(copies) => run_ready(asked, plan, copies, claim, services, context),
        Err(failure) => Err(give_up(asked, claim, &services, paid, context, failure)),
    }
}

/// Lays out what the nodes of `plan` are given.
fn provide(
    plan: &mut Plan,
    staging: Option<Staging>,
    claim: &Claim,
    context: &Context,
) -> Result<Option<Arc<Copies>>, Failure> {
    let (run, dir) = (&claim.run.run, &claim.run.dir);
    let Some(staging) = staging else { return Ok(None) };
    staging.apply(&mut plan.ceiling, dir);
    staging
        .bind(&context.home, run, dir)
        .map_err(|error| Failure::new(format!("run {run}: {error}; nothing was run")))
}

fn run_ready(
    asked: &Asked,
    plan: Plan,
    copies: Option<Arc<Copies>>,
    claim: Claim,
    services: Services,
    context: &mut Context,
) -> Result<Ran, Fallen> {
    let paid = plan.paid;
    let runtime = match copies {
        Some(copies) => Arc::new(Provisioned::new(services.runtime, copies)),
        None => services.runtime,
    };
    let services = Services { runtime, ..services };
    execute_plan(asked, plan, claim, services, context).map_err(|failure| Fallen { failure, paid })
}

fn execute_plan(
    asked: &Asked,
    plan: Plan,
    claim: Claim,
    services: Services,
    context: &mut Context,
) -> Result<Ran, Failure> {
    let slots = order::slots(&plan.graph, asked.concurrency, context)?;
    let mut inherited = Inherited::first(&plan.graph);
    inherited.before.spent = plan.paid.cost;
    let display = Display {
        title: format!("Running graph \"{}\" (run {})", plan.graph.name, claim.run.run),
        json: asked.json,
        quiet: asked.quiet,
        // It went before it was planned, if it was to go.
        detached: false,
        web: asked.web,
        again: again(asked.wanted.verify.as_ref()),
        goes_on: asked.goes_on,
    };
    let order = Order {
        encoded: serde_json::value::to_raw_value(&plan.raw)
            .expect("a raw graph holds nothing that JSON cannot"),
        source_path: String::new(),
        sha256: String::new(),
        bounds: plan.graph.bounds.overridden_by(asked.bounds),
        graph: Arc::new(plan.graph),
        inputs: asked.inputs.clone(),
        base: Context::base(),
        continue_on_fail: asked.continue_on_fail,
        slots,
        durability: Durability::Paced,
        runtime: services.runtime,
        shell: services.shell,
        launcher: services.launcher,
        git: services.git,
        rehearsal: None,
        default_mode: DEFAULT_MODE,
        planned: Some(Planned {
            ceiling: plan.ceiling,
            planning: (plan.paid.cost, plan.paid.usage),
            evidence: Some(state(&asked.evidence)),
            goal: asked.cycle.clone(),
        }),
        patience: asked.patience,
        inherited,
    };
    let dir = claim.run.dir.clone();
    let ran = execute::see_through(claim, order, &display, context);
    // What planning cost stands on the feed now.
    PlanningNote::forget(&dir);
    ran
}

/// What a later leg must be given again: a command is never taken from disk.
pub(super) fn again(verify: Option<&VerifyCommand>) -> String {
    verify.map(|verify| format!(" {}", verify.words())).unwrap_or_default()
}

fn state(evidence: &Evidence) -> EvidenceState {
    EvidenceState {
        answer: evidence.answer.as_str().to_owned(),
        declared_by: evidence.answer.declared_by().unwrap_or_default().to_owned(),
        signals: evidence.files(),
    }
}

/// A directory for a plan that belongs to no run.
pub(super) fn plan_dir(context: &Context) -> Result<RunDir, Failure> {
    mint::new_plan(&context.home, &*context.clock).map_err(|error| {
        Failure::new(format!("no plan can be kept: {error}")).hinted(execute::WHERE_RUNS_LIE)
    })
}

/// Keeps the plan as a graph file. One that cannot be kept is told instead: it was paid for.
pub(super) fn save(plan: &Plan, dir: &RunDir, context: &mut Context) -> Result<PathBuf, Failure> {
    let path = dir.plan();
    let text =
        serde_json::to_string_pretty(&plan.raw).expect("a raw graph holds nothing that JSON cannot") + "\n";
    artifact::persist(&path, text.as_bytes()).map_err(|error| {
        write!(context.prose().0, "The plan:\n{}\n", sanitize::lines(&text)).ok();
        Failure::new(format!("the plan was paid for and cannot be kept: {error}"))
            .hinted("it stands above: as a file, omg run runs it, under no ceiling")
    })?;
    Ok(path)
}

/// Tells what was paid where no ledger does.
pub(super) fn tell_spent(paid: &Paid, context: &mut Context) {
    let Paid { cost, usage, .. } = *paid;
    if !cost.is_zero() {
        write!(context.prose().0, "{}", words::footer(cost, cost, usage)).ok();
        context.prose().0.flush().ok();
    }
}

pub(super) fn show(
    asked: &Asked,
    plan: &Plan,
    staging: Option<&Staging>,
    path: Option<&Path>,
    context: &mut Context,
) {
    for warning in &plan.warnings {
        writeln!(context.err, "warning: planner: {}", sanitize::one_line(warning)).ok();
    }
    let found = services::for_preflight(asked.kind).preflight(&plan.graph);
    order::warn(&found, context);
    let staged = staging.map(Staging::lines).unwrap_or_default();
    let prompts = plan.raw.nodes.iter().filter_map(|node| Some((node.id.as_str(), node.prompt.as_deref()?)));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let unisolated = unisolated::scan(&asked.wanted.brief.goal, prompts, &Context::base(), home.as_deref());
    let unisolated = unisolated::warning(&unisolated);
    let screen = Screen {
        plan,
        saved: path,
        runtime: asked.kind,
        disclosures: &found.disclosures,
        staging: &staged,
        staged: staging.and_then(Staging::isolation_note),
        verify: asked.wanted.verify.as_ref(),
        evidence: &asked.evidence,
        unisolated: unisolated.as_deref(),
        bounds: plan.graph.bounds.overridden_by(asked.bounds),
    };
    let (out, _) = context.prose();
    write!(out, "{}", screen.print()).and_then(|()| out.flush()).ok();
}

/// Tells what was paid for no plan, and keeps what the last reply held; returns the refusal.
pub(super) fn refused(
    none: &NoPlan,
    signal: Option<Stop>,
    dir: Option<&RunDir>,
    claim: Option<&Claim>,
    context: &mut Context,
) -> Failure {
    for warning in &none.warnings {
        writeln!(context.err, "warning: planner: {}", sanitize::one_line(warning)).ok();
    }
    tell_spent(&none.paid, context);
    let is_kept = match (&none.spec, dir) {
        (Some(spec), Some(dir)) => keep_refused(spec, dir, context),
        _ => false,
    };
    context.prose().0.flush().ok();
    let run = claim.map(|claim| format!("run {}: ", claim.run.run)).unwrap_or_default();
    match signal {
        Some(signal) => {
            Failure::new(format!("{run}interrupted by {} while it was being planned", signal.name()))
                .hinted("nothing was run; type the same again")
                .exiting(signal.exit_code())
        }
        None => Failure::new(format!("{run}{}; nothing was run", none.why)).hinted(match is_kept {
            true => "mend what was kept, or type the same again: it is planned, and paid for, anew",
            false if none.is_limited => "type the same again once the limit is lifted",
            false => {
                "type the same again to have it planned, and paid for, anew; omg doctor tells whether the CLI works"
            }
        }),
    }
}

/// Keeps what a refused reply held, which was paid for, and says where; or tells it, if it cannot be kept.
fn keep_refused(spec: &str, dir: &RunDir, context: &mut Context) -> bool {
    let path = dir.rejected();
    match artifact::persist(&path, (spec.to_owned() + "\n").as_bytes()) {
        Ok(()) => {
            let path = shell_path(&path);
            writeln!(
                context.prose().0,
                "What was refused is kept; mended by hand it can be run, as a graph of your own: under no ceiling\n  omg run {path}"
            )
            .ok();
            true
        }
        Err(error) => {
            writeln!(context.err, "note: the refused reply cannot be kept: {error}").ok();
            writeln!(context.prose().0, "What was refused:\n{}", sanitize::lines(spec)).ok();
            false
        }
    }
}

/// Closes a run that came to nothing.
fn give_up(
    asked: &Asked,
    claim: Claim,
    services: &Services,
    paid: Paid,
    context: &mut Context,
    failure: Failure,
) -> Fallen {
    let (dir, told) = (claim.run.dir.clone(), stream::length(&claim.run.dir.feed()));
    let run = format!("run {}: ", claim.run.run);
    let why = failure.message.strip_prefix(&run).unwrap_or(&failure.message);
    match claim.run.give_up_planning(&services.launcher, (paid.cost, paid.usage), why) {
        Ok(()) => PlanningNote::forget(&dir),
        Err(error) => {
            writeln!(context.err, "warning: the end of the run cannot be recorded: {error}").ok();
        }
    }
    if asked.json {
        execute::copy_feed(&dir, told, context);
    }
    Fallen { failure, paid }
}
