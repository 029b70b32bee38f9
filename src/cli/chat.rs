//! `omg chat`: lines that are talk or work; work is planned, shown, confirmed and run (FACTS 1.11).
//!
//! Its course is [`crate::plan::chat`]'s; here is what each step does and tells.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use crossbeam_channel::Receiver;

use super::Failure;
use super::auto::StagingFlags;
use super::context::Context;
use super::execute::{self, LiveView};
use super::failure::{FAILED, PAUSED};
use super::planned::{self, Asked};
use super::planner::{self, Bought};
use super::prompt::{Kind, Prompt};
use super::services::{self, Services};
use crate::graph::Bounds;
use crate::node::policy::Configuration;
use crate::node::runtime::RuntimeKind;
use crate::plan::call::{NoPlan, Paid, Plan, Wanted};
use crate::plan::chat::{self, Console, Desk, Fault, Left, Line};
use crate::plan::evidence::{self, Stated};
use crate::plan::prompt::Brief;
use crate::plan::reply::Terms;
use crate::plan::router::{self, Route, Routed};
use crate::plan::staging::{Choice, Staging};
use crate::process::signals::Stop;
use crate::record::attempts::Caller;
use crate::text::sanitize;

/// Talks with the model, and plans and runs graphs when a line asks for work.
///
/// Each line is one call that answers it or makes a goal of it. A goal is planned and shown, and runs when you say yes,
/// under the ceiling of omg auto. A plan that you decline is kept. exit, quit or the end of the lines leave.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    staging: StagingFlags,
}

/// Runs the command.
pub(super) fn run(args: &Args, kind: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    let choice = args.staging.choice(false, context);
    let services = services::for_plan(kind, &execute::mark())?;
    let signals = execute::listen()?;
    let prompt = Prompt::start(&context.home, signals.clone())?;
    planner::warn_of_machine(kind, Configuration::Isolated, &BTreeMap::new(), &services, context);
    let shared = RefCell::new(context);
    let (left, asking, last) = {
        let mut clerk =
            Clerk { kind, choice, services, signals, context: &shared, asking: Paid::default(), last: None };
        let left = chat::converse(&mut Terminal { prompt, context: &shared }, &mut clerk);
        (left, clerk.asking, clerk.last)
    };
    let context = shared.into_inner();
    if asking.calls > 0 {
        let lines = if asking.calls == 1 { "1 line".to_owned() } else { format!("{} lines", asking.calls) };
        writeln!(context.out, "Reading {lines} cost {}; each plan and run has told its own.", asking.cost)
            .ok();
    }
    context.out.flush().ok();
    match left {
        Left::Done => Ok(0),
        Left::Broken(why) => Err(Failure::new(format!("chat: {why}"))),
        Left::Interrupted(signal) => {
            let silent = Failure { message: String::new(), hint: None, exit: FAILED };
            Err(last.unwrap_or(silent).exiting(signal.exit_code()))
        }
    }
}

/// The person's side.
struct Terminal<'c, 'p> {
    prompt: Prompt,
    context: &'c RefCell<&'p mut Context>,
}

impl Console for Terminal<'_, '_> {
    fn read(&mut self, prompt: &str) -> Line {
        {
            let out = &mut self.context.borrow_mut().out;
            if !self.prompt.has_editor() {
                write!(out, "{prompt}").ok();
            }
            out.flush().ok();
            if out.is_lost() {
                // Nobody would see what the next line is answered with, or which plan is agreed to.
                return Line::End;
            }
        }
        let kind = if prompt == chat::CONFIRM { Kind::Answer } else { Kind::Line };
        let line = self.prompt.read(prompt, kind);
        if matches!(line, Line::Interrupted(_)) {
            // What comes next does not stand behind the prompt.
            writeln!(self.context.borrow_mut().out).ok();
        }
        line
    }

    fn say(&mut self, text: &str) {
        let out = &mut self.context.borrow_mut().out;
        writeln!(out, "{text}").and_then(|()| out.flush()).ok();
    }
}

/// Who plans and runs.
struct Clerk<'c, 'p> {
    kind: RuntimeKind,
    choice: Choice,
    services: Services,
    signals: Receiver<Stop>,
    context: &'c RefCell<&'p mut Context>,
    /// What it cost to read the lines.
    asking: Paid,
    /// What the chat ends with when it was interrupted in a run.
    last: Option<Failure>,
}

/// A plan that was bought and shown.
struct Drawn {
    asked: Asked,
    plan: Plan,
    staging: Option<Staging>,
    services: Services,
}

impl Desk for Clerk<'_, '_> {
    type Plan = Drawn;

    fn route(&mut self, message: &str) -> Result<Route, Fault> {
        let context = &mut **self.context.borrow_mut();
        let asked = planner::ask_alone(&self.services, &self.signals, "the router", context, |asking| {
            router::route(asking, message)
        });
        let Bought { outcome: Routed { outcome, paid, warnings }, signal } = asked.map_err(told)?;
        self.asking = self.asking.and(paid);
        for warning in warnings {
            writeln!(context.err, "warning: router: {}", sanitize::one_line(&warning)).ok();
        }
        match signal {
            Some(signal) => Err(Fault::Interrupted(signal)),
            None => outcome.map_err(|unanswered| Fault::Told(unanswered.why)),
        }
    }

    fn plan(&mut self, goal: &str) -> Result<Drawn, Fault> {
        let asked = self.asked(goal).map_err(told)?;
        let services = services::for_plan(self.kind, &execute::mark()).map_err(told)?;
        let context = &mut **self.context.borrow_mut();
        writeln!(context.out, "Planning a graph for goal {goal:?}...")
            .and_then(|()| context.out.flush())
            .ok();
        let bought = planner::ask_alone(
            &services,
            &self.signals,
            "the planner",
            context,
            planned::question(&asked, None),
        );
        let Bought { outcome, signal } = bought.map_err(told)?;
        let outcome = outcome.and_then(|plan| match signal {
            None => Ok(plan),
            Some(_) => Err(Box::new(NoPlan::cancelled(&plan))),
        });
        let mut plan = match outcome {
            Ok(plan) => plan,
            Err(none) => {
                let dir = none.spec.as_ref().and_then(|_| planned::plan_dir(context).ok());
                let failure = planned::refused(&none, signal, dir.as_ref(), None, context);
                return Err(match signal {
                    None => told(failure),
                    Some(signal) => {
                        self.last = Some(failure);
                        Fault::Interrupted(signal)
                    }
                });
            }
        };
        let staging = planned::stage(&asked, &mut plan).map_err(told)?;
        planned::show(&asked, &plan, staging.as_ref(), None, context);
        planned::can_run_here(&asked, &plan).map_err(told)?;
        Ok(Drawn { asked, plan, staging, services })
    }

    fn run(&mut self, drawn: Drawn) -> Result<(), Fault> {
        let Drawn { asked, plan, staging, services } = drawn;
        let context = &mut **self.context.borrow_mut();
        let claim = execute::claim_hearing(self.signals.clone(), context).map_err(told)?;
        let run = claim.run.run.clone();
        planned::note_goal(&asked, &claim, context);
        planner::keep(&claim.run.dir, Caller::Planner, &plan.said, context);
        planned::save(&plan, &claim.run.dir, context).map_err(told)?;
        let ran = planned::run_plan(&asked, plan, staging, claim, services, context)
            .map_err(|fallen| told(fallen.failure))?;
        match (ran.signal, ran.conclusion) {
            (Some(signal), conclusion) => {
                self.last = conclusion.err();
                Err(Fault::Interrupted(signal))
            }
            (None, Err(failure)) => Err(told(failure)),
            (None, Ok(PAUSED)) => Err(Fault::Told(format!("run {run} is paused"))),
            (None, Ok(_)) => Ok(()),
        }
    }

    fn keep(&mut self, drawn: Drawn) -> Result<PathBuf, String> {
        let context = &mut **self.context.borrow_mut();
        let dir = planned::plan_dir(context).map_err(|failure| failure.message)?;
        planned::save(&drawn.plan, &dir, context).map_err(|failure| failure.message)
    }
}

impl Clerk<'_, '_> {
    /// What is asked of a planner: no inputs, one cycle, no live view; that nothing is evidence is on the plan screen.
    fn asked(&self, goal: &str) -> Result<Asked, Failure> {
        let evidence = evidence::decide(evidence::detect(&Context::base()), Stated::InChat)
            .map_err(|unanswered| Failure::new(unanswered.text()))?;
        Ok(Asked {
            kind: self.kind,
            wanted: Wanted {
                brief: Brief {
                    goal: goal.to_owned(),
                    inputs: BTreeSet::new(),
                    is_verified: false,
                    remaining: None,
                },
                terms: Terms { inputs: BTreeSet::new(), configuration: Configuration::Isolated },
                verify: None,
                spend: None,
            },
            evidence,
            choice: self.choice.clone(),
            inputs: BTreeMap::new(),
            concurrency: None,
            bounds: Bounds::default(),
            patience: None,
            continue_on_fail: false,
            quiet: false,
            json: false,
            detached: false,
            web: LiveView::Off,
            cycle: None,
            goes_on: true,
        })
    }
}

/// A failure as a line of the chat.
fn told(failure: Failure) -> Fault {
    Fault::Told(match failure.hint {
        Some(hint) => format!("{}\n  hint: {hint}", failure.message),
        None => failure.message,
    })
}
