//! `omg auto`: a goal is planned by one model call, held to a ceiling, and run (DESIGN "Auto mode", FACTS 1.9).
//!
//! Everything that can be refused for free is refused before the planner is asked.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use super::context::Context;
use super::cycles::{self, CycleFlags};
use super::execute::{self, LiveView};
use super::order::{self, BoundFlags, QuotaFlag};
use super::planned::{self, Asked};
use super::planner::{self, Bought};
use super::services::Services;
use super::{Failure, detach, services};
use crate::load::inputs;
use crate::node::policy::Configuration;
use crate::node::runtime::RuntimeKind;
use crate::plan::call::{NoPlan, Paid, Plan, Wanted};
use crate::plan::evidence::{self, Stated};
use crate::plan::goal::Limits;
use crate::plan::prompt::Brief;
use crate::plan::reply::Terms;
use crate::plan::staging::Choice;
use crate::plan::verify_flags::{self, VerifyCommand};
use crate::record::planning::PlanningNote;
use crate::record::{RunDir, mint};
use crate::text::shell_word::shell_path;
use crate::text::template;

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
    #[arg(long)]
    accept_no_build_evidence: bool,
    /// Lets planned nodes load your own configuration of the CLI: settings, hooks, MCP servers.
    ///
    /// Your standing permissions then count beside what the plan grants.
    #[arg(long)]
    accept_loaded_user_config: bool,
    #[command(flatten)]
    staging: StagingFlags,
    #[command(flatten)]
    cycles: CycleFlags,
    /// Plans, shows the plan, keeps it, and runs nothing. The planner is paid.
    #[arg(long, conflicts_with_all = ["json", "detach"])]
    plan_only: bool,
    #[command(flatten)]
    background: detach::Flags,
    /// Does not serve the live view of this run.
    #[arg(long)]
    no_web: bool,
    /// Prints the feeds' own lines on standard output, from the planning on, and everything else on standard error.
    #[arg(long)]
    json: bool,
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
                "note: --no-skill-mapping is now called --no-skill-activation\n      the old name still works, and will go with a later version"
            )
            .ok();
        }
        Choice {
            without_agents: self.no_agent_mapping,
            declined: self.no_agent.clone(),
            without_skills: self.no_skill_activation || self.no_skill_mapping,
            loaded,
            unable: None,
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

/// Runs the command.
pub(super) fn run(args: &Args, kind: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    if args.background.is_asked() {
        return detach::begin(context);
    }
    if args.background.is_copy() {
        detach::settle_in();
    }
    context.out_is_feed = args.json;
    if std::env::current_dir().is_err() {
        return Err(Failure::new("auto: the directory that omg was started in is gone")
            .hinted("go to one that is there; nothing was spent"));
    }
    let Read { limits, verify } = read_flags(args, kind)?;
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
            write!(context.prose().0, "{}", unanswered.text()).ok();
            return Ok(UNEVIDENCED);
        }
    };
    let configuration = match args.accept_loaded_user_config {
        true => Configuration::Loaded,
        false => Configuration::Isolated,
    };
    let bounds = args.bounds.read()?;
    let wanted = Wanted {
        brief: Brief {
            goal: args.goal.clone(),
            inputs: inputs.keys().cloned().collect(),
            is_verified: verify.is_some(),
            remaining: None,
        },
        terms: Terms { inputs: inputs.keys().cloned().collect(), configuration },
        verify,
        spend: bounds.spend,
    };
    let asked = Asked {
        kind,
        wanted,
        evidence,
        choice: args.staging.choice(args.accept_loaded_user_config, context),
        inputs,
        concurrency: args.concurrency,
        bounds,
        patience: args.quota.read()?,
        continue_on_fail: args.continue_on_fail,
        quiet: args.quiet,
        json: args.json,
        detached: args.background.is_copy(),
        web: LiveView::unless(args.no_web),
        cycle: None,
        goes_on: false,
    };
    let services = services::for_plan(kind, &execute::mark())?;
    introduce(&asked, &services, context);
    match limits {
        _ if args.plan_only => preview(&asked, &services, context),
        Limits { cycles: 1, .. } => once(&asked, services, context),
        limits => cycles::run(asked, limits, services, context),
    }
}

/// A goal of one cycle.
fn once(asked: &Asked, services: Services, context: &mut Context) -> Result<u8, Failure> {
    let claim = execute::claim(context)?;
    let (goal, run) = (&asked.wanted.brief.goal, &claim.run.run);
    let headline = format!("Planning a graph for goal {goal:?} (run {run})...");
    match planned::plan_and_run(asked, claim, services, &headline, context) {
        Ok(ran) => ran.conclusion,
        Err(fallen) => Err(fallen.failure),
    }
}

/// What was read of a command line.
struct Read {
    limits: Limits,
    verify: Option<VerifyCommand>,
}

/// What is wrong with the command line, in the order in which it is told.
fn read_flags(args: &Args, kind: RuntimeKind) -> Result<Read, Failure> {
    if args.goal.trim().is_empty() {
        return Err(Failure::new("auto: the goal is blank")
            .hinted("say what is to be reached, in quotes: omg auto \"…\""));
    }
    let limits = args.cycles.read()?;
    if args.plan_only && limits.cycles > 1 {
        return Err(Failure::new("--plan-only runs nothing, so there is nothing for --max-cycles to judge")
            .hinted("leave one of the two out"));
    }
    if args.accept_no_build_evidence && args.verify.is_given() {
        return Err(Failure::new("--accept-no-build-evidence goes without what --verify-cmd gives")
            .hinted("leave one of the two out"));
    }
    let verify = args.verify.read()?;
    if kind == RuntimeKind::Codex && limits.spend.is_some() {
        return Err(Failure::new("--max-goal-budget-usd bounds nothing on codex, which tells no prices")
            .hinted("bound the goal with --max-cycles, and each run with --max-executions or --max-wall"));
    }
    order::asked_slots(args.concurrency)?;
    args.quota.read()?;
    Ok(Read { limits, verify })
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
fn introduce(asked: &Asked, services: &Services, context: &mut Context) {
    planner::warn_of_machine(asked.kind, asked.wanted.terms.configuration, &asked.inputs, services, context);
    let (out, _) = context.prose();
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

/// `--plan-only`: a plan that belongs to no run.
fn preview(asked: &Asked, services: &Services, context: &mut Context) -> Result<u8, Failure> {
    let signals = execute::listen()?;
    // Before anything is paid for.
    let dir = planned::plan_dir(context)?;
    writeln!(context.out, "Planning a graph for goal {:?}...", asked.wanted.brief.goal).ok();
    context.out.flush().ok();
    let bought =
        planner::ask_alone(services, &signals, "the planner", context, planned::question(asked, Some(&dir)));
    PlanningNote::forget(&dir);
    let ended = bought.and_then(|bought| previewed(asked, bought, &dir, context));
    // A plan that came to nothing leaves no directory for it.
    mint::discard_empty(&dir);
    ended
}

/// Keeps and shows what was bought.
fn previewed(
    asked: &Asked,
    bought: Bought<Result<Plan, Box<NoPlan>>>,
    dir: &RunDir,
    context: &mut Context,
) -> Result<u8, Failure> {
    let mut plan = match bought.outcome {
        Ok(plan) => plan,
        Err(none) => return Err(planned::refused(&none, bought.signal, Some(dir), None, context)),
    };
    let staging = planned::stage(asked, &mut plan)?;
    let path =
        planned::save(&plan, dir, context).inspect_err(|_| planned::tell_spent(&plan.paid, context))?;
    planned::show(asked, &plan, staging.as_ref(), Some(&path), context);
    let Paid { calls, cost, .. } = plan.paid;
    let calls =
        if calls == 1 { "1 planner call was".to_owned() } else { format!("{calls} planner calls were") };
    writeln!(
        context.out,
        "Nothing was run. {calls} paid, {cost}. The plan is no run, so runs list does not show it. Look at it first: this \
         runs it as a graph of your own, under no ceiling:\n  omg run {}",
        shell_path(&path)
    )
    .ok();
    match bought.signal {
        None => context.out.settle().map(|()| 0),
        Some(signal) => Err(Failure::new(format!("{} came when the plan was there", signal.name()))
            .exiting(signal.exit_code())),
    }
}
