//! `omg auto`: a goal is planned by one model call, held to a ceiling, and run (DESIGN "Auto mode", FACTS 1.9).
//!
//! Everything that can be refused for free is refused before the planner is asked.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::Context;
use super::execute::{self, Claim, Display};
use super::order::{self, BoundFlags, QuotaFlag};
use super::services::Services;
use super::{Failure, planner, services};
use crate::graph::Bounds;
use crate::leg::again::Inherited;
use crate::leg::open::DEFAULT_MODE;
use crate::leg::{Order, Planned, preflight};
use crate::load::inputs;
use crate::node::Runtime;
use crate::node::policy::Configuration;
use crate::node::provision::Provisioned;
use crate::node::runtime::RuntimeKind;
use crate::plan::call::{NoPlan, Paid, Plan, Wanted};
use crate::plan::evidence::{self, Evidence, Stated};
use crate::plan::prompt::Brief;
use crate::plan::reply::Terms;
use crate::plan::staging::{Choice, Staging};
use crate::plan::unisolated;
use crate::plan::verify_flags::{self, VerifyCommand};
use crate::record::snapshot::EvidenceState;
use crate::record::{Durability, RunDir, artifact, mint};
use crate::text::sanitize;
use crate::text::shell_word::shell_path;
use crate::text::template;
use crate::view::term::plan::Screen;
use crate::view::term::words;

/// The exit code of a run that was refused for want of build evidence.
const UNEVIDENCED: u8 = 3;

/// Plans a graph for a goal, and runs it under a ceiling.
///
/// One call of the model plans; a plan that may not run as it is buys one corrected reply. Planned nodes get the tools that the
/// plan lists, from a short list, and load nobody's settings. In a directory that builds something, say what shows that it
/// still does: --verify-cmd, or --accept-no-build-evidence.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 3: nothing was said of build evidence where something builds; nothing was spent."
)]
pub(super) struct Args {
    /// What is to be reached, in your own words, quoted.
    #[arg(value_name = "GOAL")]
    goal: String,
    /// The value of an input that the plan may use; repeat for more.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    input: Vec<String>,
    /// A YAML or JSON mapping of inputs.
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// How many nodes run at the same time, at most 10; 0 takes the plan's own number, else 4.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = order::whole)]
    concurrency: Option<i64>,
    #[command(flatten)]
    bounds: BoundFlags,
    #[command(flatten)]
    quota: QuotaFlag,
    /// After a failure runs everything that does not depend on it.
    #[arg(long)]
    continue_on_fail: bool,
    #[command(flatten)]
    verify: VerifyFlags,
    /// Goes without build evidence where something builds; the run's record says so.
    #[arg(long, conflicts_with = "verify_cmd")]
    accept_no_build_evidence: bool,
    /// Lets planned nodes load your own configuration of the CLI: settings, hooks, MCP servers.
    ///
    /// Your standing permissions then count beside what the plan grants.
    #[arg(long)]
    accept_loaded_user_config: bool,
    #[command(flatten)]
    staging: StagingFlags,
    /// Plans, shows the plan, keeps it, and runs nothing. The planner is paid.
    #[arg(long)]
    plan_only: bool,
    /// Does not serve the live view of this run.
    #[arg(long)]
    no_web: bool,
    /// Shows no progress, warnings only.
    #[arg(long, short)]
    quiet: bool,
}

/// What of the person's own planned nodes are given.
#[derive(Debug, clap::Args)]
pub(super) struct StagingFlags {
    /// Runs no planned node as an agent of yours.
    #[arg(long)]
    no_agent_mapping: bool,
    /// Runs no planned node as this agent of yours; repeat for more.
    #[arg(long, value_name = "NAME", value_parser = named)]
    no_agent: Vec<String>,
    /// Gives no planned node your skills.
    #[arg(long)]
    no_skill_activation: bool,
    /// What it was called before.
    #[arg(long, hide = true)]
    no_skill_mapping: bool,
}

fn named(name: &str) -> Result<String, String> {
    if name.trim().is_empty() { Err("it names no agent".to_owned()) } else { Ok(name.to_owned()) }
}

impl StagingFlags {
    /// What they choose; the old name of one is told.
    pub(super) fn choice(&self, loaded: bool, context: &mut Context) -> Choice {
        if self.no_skill_mapping {
            writeln!(
                context.err,
                "note: --no-skill-mapping is now called --no-skill-activation; the old name will go"
            )
            .ok();
        }
        Choice {
            without_agents: self.no_agent_mapping,
            declined: self.no_agent.clone(),
            without_skills: self.no_skill_activation || self.no_skill_mapping,
            loaded,
        }
    }
}

/// The evidence command of a planned graph.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyFlags {
    /// A shell command that the engine runs when a last node is done; a node whose work does not pass it fails.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    verify_cmd: Option<String>,
    /// How long it may take, at most 10m.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    verify_timeout: Option<String>,
}

impl VerifyFlags {
    /// Whether there is a command.
    pub(super) fn is_given(&self) -> bool {
        self.verify_cmd.as_ref().is_some_and(|command| !command.is_empty())
    }

    /// The command, checked as far as that is free.
    pub(super) fn read(&self) -> Result<Option<VerifyCommand>, Failure> {
        let path = std::env::var_os("PATH");
        let (command, timeout) = (self.verify_cmd.as_deref(), self.verify_timeout.as_deref());
        verify_flags::read(command, timeout, &Context::base(), path.as_deref())
            .map_err(|error| Failure::new(error.to_string()).hinted(error.hint()))
    }
}

/// What a command line of `auto` asks for, everything free about it checked.
struct Asked<'a> {
    args: &'a Args,
    kind: RuntimeKind,
    wanted: Wanted,
    evidence: Evidence,
    choice: Choice,
    inputs: BTreeMap<String, String>,
    bounds: Bounds,
}

/// Runs the command.
pub(super) fn run(args: &Args, kind: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    let verify = read_flags(args)?;
    let inputs = inputs::ahead(&args.input, args.inputs.as_deref())
        .map_err(|errors| order::wrong_inputs("auto", &errors))?;
    refuse_tokens(verify.as_ref(), &inputs)?;
    let stated = match (&verify, args.accept_no_build_evidence) {
        (Some(_), _) => Stated::Command,
        (None, true) => Stated::Accepted,
        (None, false) => Stated::Nothing,
    };
    let evidence = match evidence::decide(evidence::detect(&Context::base()), stated) {
        Ok(evidence) => evidence,
        Err(unanswered) => {
            write!(context.out, "{}", unanswered.text()).ok();
            return Ok(UNEVIDENCED);
        }
    };
    let configuration = match args.accept_loaded_user_config {
        true => Configuration::Loaded,
        false => Configuration::Isolated,
    };
    let wanted = Wanted {
        brief: Brief {
            goal: args.goal.clone(),
            inputs: inputs.keys().cloned().collect(),
            is_verified: verify.is_some(),
            remaining: None,
        },
        terms: Terms { inputs: inputs.keys().cloned().collect(), configuration },
        verify,
    };
    let choice = args.staging.choice(args.accept_loaded_user_config, context);
    let asked = Asked { args, kind, wanted, evidence, choice, inputs, bounds: args.bounds.read()? };
    let services = services::for_plan(kind, &execute::mark())?;
    introduce(&asked, &services, context);
    if args.plan_only { preview(&asked, &services, context) } else { plan_and_run(&asked, services, context) }
}

/// What is wrong with the command line, in the order in which it is told.
fn read_flags(args: &Args) -> Result<Option<VerifyCommand>, Failure> {
    if args.goal.trim().is_empty() {
        return Err(Failure::new("auto: the goal is blank")
            .hinted("say what is to be reached, in quotes: omg auto \"…\""));
    }
    let verify = args.verify.read()?;
    order::asked_slots(args.concurrency)?;
    args.quota.read()?;
    Ok(verify)
}

/// The evidence command is written before there is a graph, so it can name nothing of one.
fn refuse_tokens(verify: Option<&VerifyCommand>, inputs: &BTreeMap<String, String>) -> Result<(), Failure> {
    let command = verify.map(|verify| verify.command.as_str()).unwrap_or_default();
    let is_known = |token: &template::Token<'_>| {
        token.kind == template::Kind::Inputs && inputs.contains_key(token.reference)
    };
    match template::tokens(command).find(|token| !is_known(token)) {
        None => Ok(()),
        Some(token) => {
            Err(Failure::new(format!("--verify-cmd: nothing can be put in for {}", token.written))
                .hinted("it can name inputs that are given; the nodes of the plan are not known yet"))
        }
    }
}

/// What is told before the planner is asked.
fn introduce(asked: &Asked<'_>, services: &Services, context: &mut Context) {
    let graph = planner::graph();
    let places = services::whereabouts(asked.kind);
    let settings = preflight::settings(asked.kind, &graph, &asked.inputs, &Context::base(), places);
    order::warn_of_settings(&settings, context);
    order::warn(&services.runtime.preflight(&graph), context);
    let out = &mut context.out;
    if let Some(advice) = asked.evidence.advice() {
        writeln!(out, "{advice}").ok();
    }
    if asked.wanted.terms.configuration == Configuration::Loaded {
        writeln!(
            out,
            "Planned nodes will load your own configuration of the CLI, as --accept-loaded-user-config asks.\n"
        )
        .ok();
    }
    if asked.kind == RuntimeKind::Codex {
        writeln!(out, "codex: planned nodes get no agents and no skills of yours; those are claude's.\n")
            .ok();
    }
    out.flush().ok();
}

/// Gives the nodes of `plan` what of the person's own they are to have; `None` on a runtime that has no such thing.
fn stage(asked: &Asked<'_>, plan: &mut Plan) -> Result<Option<Staging>, Failure> {
    if asked.kind != RuntimeKind::Claude {
        return Ok(None);
    }
    let config = services::own_directory(asked.kind);
    let staging = Staging::plan(config.as_deref(), &plan.graph, &asked.choice);
    staging.map(&mut plan.raw);
    plan.graph = staging
        .activate(&plan.raw)
        .map_err(|faults| Failure::new(format!("the plan cannot be given agents and skills: {faults}")))?;
    Ok(Some(staging))
}

/// `--plan-only`: a plan that belongs to no run.
fn preview(asked: &Asked<'_>, services: &Services, context: &mut Context) -> Result<u8, Failure> {
    let signals = execute::listen()?;
    writeln!(context.out, "Planning a graph for goal {:?}...", asked.args.goal).ok();
    context.out.flush().ok();
    let bought = planner::buy(services, &asked.wanted, &signals, context)?;
    let keep = |context: &Context| {
        mint::new_plan(&context.home, &*context.clock)
            .map_err(|error| Failure::new(format!("the plan was paid for and cannot be kept: {error}")))
    };
    let mut plan = match bought.outcome {
        Ok(plan) => plan,
        Err(none) => {
            let dir = if none.spec.is_some() { Some(keep(context)?) } else { None };
            return Err(refused(&none, bought.signal, dir.as_ref(), None, context));
        }
    };
    let staging = stage(asked, &mut plan)?;
    let dir = keep(context)?;
    let path = save(&plan, &dir)?;
    show(asked, &plan, staging.as_ref(), &path, context);
    let Paid { calls, cost, .. } = plan.paid;
    let calls =
        if calls == 1 { "1 planner call was".to_owned() } else { format!("{calls} planner calls were") };
    writeln!(
        context.out,
        "Nothing was run. {calls} paid, {cost}. The plan is no run, so runs list does not show it; this runs it:\n  \
         omg run {}",
        shell_path(&path)
    )
    .ok();
    match bought.signal {
        None => context.out.settle().map(|()| 0),
        Some(signal) => Err(Failure::new(format!("{} came when the plan was there", signal.name()))
            .exiting(signal.exit_code())),
    }
}

fn plan_and_run(asked: &Asked<'_>, services: Services, context: &mut Context) -> Result<u8, Failure> {
    let mut claim = execute::claim(context)?;
    claim
        .run
        .begin_planning(&services.launcher, &context.clock, &planner::observer())
        .map_err(execute::cannot_begin)?;
    writeln!(context.out, "Planning a graph for goal {:?} (run {})...", asked.args.goal, claim.run.run).ok();
    context.out.flush().ok();
    let bought = match planner::buy(&services, &asked.wanted, &claim.signals, context) {
        Ok(bought) => bought,
        Err(failure) => return Err(give_up(claim, &services, Paid::default(), context, failure)),
    };
    let mut plan = match bought.outcome {
        Ok(plan) if bought.signal.is_none() => plan,
        Ok(plan) => {
            let none = NoPlan::cancelled(&plan);
            let failure = refused(&none, bought.signal, None, Some(&claim), context);
            return Err(give_up(claim, &services, plan.paid, context, failure));
        }
        Err(none) => {
            let dir = claim.run.dir.clone();
            let failure = refused(&none, bought.signal, Some(&dir), Some(&claim), context);
            return Err(give_up(claim, &services, none.paid, context, failure));
        }
    };
    match make_ready(asked, &mut plan, &claim, &services, context) {
        Ok(runtime) => {
            let services = Services { runtime, ..services };
            execute_plan(asked, plan, claim, services, context)
        }
        Err(failure) => Err(give_up(claim, &services, plan.paid, context, failure)),
    }
}

/// Everything between a plan that was bought and its first node: staged, kept, shown. Returns what answers its prompts.
fn make_ready(
    asked: &Asked<'_>,
    plan: &mut Plan,
    claim: &Claim,
    services: &Services,
    context: &mut Context,
) -> Result<Arc<dyn Runtime>, Failure> {
    let (run, dir) = (&claim.run.run, &claim.run.dir);
    let staging = stage(asked, plan)?;
    let path = save(plan, dir)?;
    show(asked, plan, staging.as_ref(), &path, context);
    let reasons = preflight::refusals(&plan.graph, &asked.inputs, &Context::base());
    if !reasons.is_empty() {
        return Err(Failure::new(format!("the plan cannot run here: {}", reasons.join("; "))));
    }
    let runtime = Arc::clone(&services.runtime);
    let Some(staging) = staging else { return Ok(runtime) };
    staging.apply(&mut plan.ceiling, dir);
    let copies = staging
        .bind(&context.home, run, dir)
        .map_err(|error| Failure::new(format!("run {run}: {error}; nothing was run")))?;
    Ok(match copies {
        Some(copies) => Arc::new(Provisioned::new(runtime, copies)),
        None => runtime,
    })
}

fn execute_plan(
    asked: &Asked<'_>,
    plan: Plan,
    claim: Claim,
    services: Services,
    context: &mut Context,
) -> Result<u8, Failure> {
    let Asked { args, evidence, inputs, .. } = asked;
    let slots = order::slots(&plan.graph, args.concurrency, context)?;
    let mut inherited = Inherited::first(&plan.graph);
    inherited.before.spent = plan.paid.cost;
    let display = Display {
        title: format!("Running graph \"{}\" (run {})", plan.graph.name, claim.run.run),
        json: false,
        quiet: args.quiet,
        detached: false,
        web: !args.no_web,
        again: again(asked.wanted.verify.as_ref()),
    };
    let order = Order {
        encoded: serde_json::value::to_raw_value(&plan.raw)
            .expect("a raw graph holds nothing that JSON cannot"),
        source_path: String::new(),
        sha256: String::new(),
        bounds: plan.graph.bounds.overridden_by(asked.bounds),
        graph: Arc::new(plan.graph),
        inputs: inputs.clone(),
        base: Context::base(),
        continue_on_fail: args.continue_on_fail,
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
            evidence: Some(state(evidence)),
        }),
        patience: args.quota.read()?,
        inherited,
    };
    execute::execute(claim, order, &display, context)
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

/// Keeps the plan as a graph file.
fn save(plan: &Plan, dir: &RunDir) -> Result<PathBuf, Failure> {
    let path = dir.plan();
    let text = serde_json::to_string_pretty(&plan.raw).expect("a raw graph holds nothing that JSON cannot");
    artifact::persist(&path, (text + "\n").as_bytes())
        .map_err(|error| Failure::new(format!("the plan was paid for and cannot be kept: {error}")))?;
    Ok(path)
}

fn show(asked: &Asked<'_>, plan: &Plan, staging: Option<&Staging>, path: &Path, context: &mut Context) {
    for warning in &plan.warnings {
        writeln!(context.err, "warning: planner: {}", sanitize::one_line(warning)).ok();
    }
    let found = services::for_preflight(asked.kind).preflight(&plan.graph);
    let staged = staging.map(Staging::lines).unwrap_or_default();
    let prompts = plan.raw.nodes.iter().filter_map(|node| Some((node.id.as_str(), node.prompt.as_deref()?)));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let unisolated = unisolated::scan(&asked.args.goal, prompts, &Context::base(), home.as_deref());
    let unisolated = unisolated::warning(&unisolated);
    let screen = Screen {
        plan,
        saved: Some(path),
        runtime: asked.kind,
        disclosures: &found.disclosures,
        staging: &staged,
        staged: staging.and_then(Staging::isolation_note),
        verify: asked.wanted.verify.as_ref(),
        evidence: &asked.evidence,
        unisolated: unisolated.as_deref(),
    };
    write!(context.out, "{}", screen.print()).ok();
    context.out.flush().ok();
}

/// Tells what was paid for no plan, and keeps what the last reply held; returns the refusal.
fn refused(
    none: &NoPlan,
    signal: Option<crate::process::signals::Stop>,
    dir: Option<&RunDir>,
    claim: Option<&Claim>,
    context: &mut Context,
) -> Failure {
    for warning in &none.warnings {
        writeln!(context.err, "warning: planner: {}", sanitize::one_line(warning)).ok();
    }
    let Paid { cost, usage, .. } = none.paid;
    if !cost.is_zero() {
        write!(context.out, "{}", words::footer(cost, cost, usage)).ok();
    }
    if let (Some(spec), Some(dir)) = (&none.spec, dir) {
        let path = dir.rejected();
        match artifact::persist(&path, (spec.clone() + "\n").as_bytes()) {
            Ok(()) => {
                let path = shell_path(&path);
                writeln!(
                    context.out,
                    "What was refused is kept; mended by hand it can be run:\n  omg run {path}"
                )
                .ok();
            }
            Err(error) => drop(writeln!(context.err, "note: the refused reply cannot be kept: {error}")),
        }
    }
    context.out.flush().ok();
    let run = claim.map(|claim| format!("run {}: ", claim.run.run)).unwrap_or_default();
    match signal {
        Some(signal) => {
            Failure::new(format!("{run}interrupted by {} while it was being planned", signal.name()))
                .hinted("nothing was run; type the same again")
                .exiting(signal.exit_code())
        }
        None => Failure::new(format!("{run}{}; nothing was run", none.why)),
    }
}

/// Closes a run that came to no graph; returns the failure that it ends with.
fn give_up(
    claim: Claim,
    services: &Services,
    paid: Paid,
    context: &mut Context,
    failure: Failure,
) -> Failure {
    if let Err(error) = claim.run.give_up_planning(&services.launcher, (paid.cost, paid.usage)) {
        writeln!(context.err, "warning: the end of the run cannot be recorded: {error}").ok();
    }
    failure
}
