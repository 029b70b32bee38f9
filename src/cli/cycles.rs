//! The cycles of a goal (`auto --max-cycles`): plan, run, have it judged, and again with what remains (FACTS 1.10).
//!
//! Whether another cycle begins is [`Course`]'s to say; here is what each of its steps does and tells.

use std::io::Write;

use crossbeam_channel::Receiver;

use super::context::Context;
use super::execute::{self, LiveView, Ran};
use super::failure::FAILED;
use super::order;
use super::planned::{self, Asked, Fallen};
use super::services::{self, Services};
use super::{Failure, planner};
use crate::leg::drive::Ending;
use crate::leg::guarded;
use crate::plan::assess::{self, Assessed, Material, Verdict};
use crate::plan::call::Paid;
use crate::plan::goal::{Course, Cycle, End, Halfway, Incomplete, Limits, Spent, Step};
use crate::process::signals::Stop;
use crate::record::assessment::Assessment;
use crate::record::attempts::Caller;
use crate::record::lock::LegLock;
use crate::record::snapshot::GoalState;
use crate::record::{RunDir, RunId};
use crate::text::money::Money;
use crate::text::sanitize;
use crate::view::history::judged::judged;
use crate::view::term::goal;

/// How many cycles a goal may take.
#[derive(Debug, clap::Args)]
pub(super) struct CycleFlags {
    /// Has each run judged, and plans and runs again with what remains, at most this often in all.
    ///
    /// The judge is one more call of the model after each run; it has no tools and sees what the nodes left. The goal
    /// is reached, exit 0, when the judge says so and the last run passed.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = order::count)]
    max_cycles: i64,
    /// Begins no further cycle once the goal has cost this much: planning, runs and judges together.
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true, value_parser = order::dollars)]
    max_goal_budget_usd: Option<f64>,
}

impl CycleFlags {
    /// The limits, or what is wrong with the first bad one.
    pub(super) fn read(&self) -> Result<Limits, Failure> {
        let cycles = u32::try_from(self.max_cycles).ok().filter(|cycles| *cycles > 0).ok_or_else(|| {
            Failure::new(format!("--max-cycles {}: it takes a whole number from 1", self.max_cycles))
                .hinted("1 plans and runs once, and asks no judge")
        })?;
        let given = self.max_goal_budget_usd.unwrap_or(0.0);
        let spend = Money::from_usd(given).ok_or_else(|| {
            Failure::new(format!("--max-goal-budget-usd {given}: it takes dollars from 0"))
                .hinted("0 is no bound")
        })?;
        // Less than can be counted is still a bound.
        let spend = Some(spend).filter(|_| given > 0.0);
        if spend.is_some() && cycles < 2 {
            return Err(Failure::new(
                "--max-goal-budget-usd is looked at before a second cycle, and there is none",
            )
            .hinted("give --max-cycles 2 or more; --max-usd bounds a single run"));
        }
        Ok(Limits { cycles, spend })
    }
}

/// Runs the cycles of a goal to its end; returns the exit code.
pub(super) fn run(
    mut asked: Asked,
    limits: Limits,
    services: Services,
    context: &mut Context,
) -> Result<u8, Failure> {
    let signals = execute::listen()?;
    let goal = asked.wanted.brief.goal.clone();
    writeln!(context.prose().0, "Planning a graph for goal {goal:?} (up to {} cycles)...", limits.cycles)
        .ok();
    asked.goes_on = true;
    let (mut course, mut services) = (Course::new(limits), Some(services));
    let mut last = Ok(FAILED);
    // While a run is judged, and until the next has its own, somebody who stops what is under way has to find it.
    let mut held = None;
    let end = loop {
        let (cycle, remaining) = match course.next() {
            Step::Begin { cycle, remaining } => (cycle, remaining.map(str::to_owned)),
            Step::End(end) => break end,
        };
        asked.wanted.brief.remaining = remaining;
        asked.detached &= cycle == 1;
        if cycle > 1 && asked.web == LiveView::Opened {
            asked.web = LiveView::Served;
        }
        let services = match services.take() {
            Some(services) => Ok(services),
            None => services::for_plan(asked.kind, &execute::mark()),
        };
        last = one_cycle(&mut asked, &mut course, services, &signals, &mut held, context);
    };
    let (out, _) = context.prose();
    write!(out, "\n{}", goal::summary(&goal, &course)).ok();
    if course.incomplete().is_some_and(|it| it.halfway == Halfway::Unfinished) {
        writeln!(out, "omg resume goes on with that run alone: nobody judges it, and the goal ends here.")
            .ok();
    }
    out.flush().ok();
    conclude(&course, end, last)
}

/// One cycle; tells the course what came of it. What its run alone would end the command with comes back.
fn one_cycle(
    asked: &mut Asked,
    course: &mut Course,
    services: Result<Services, Failure>,
    signals: &Receiver<Stop>,
    held: &mut Option<LegLock>,
    context: &mut Context,
) -> Result<u8, Failure> {
    let claimed =
        services.and_then(|services| Ok((services, execute::claim_hearing(signals.clone(), context)?)));
    let (services, claim) = claimed.inspect_err(|_| {
        course.break_off(Incomplete { run: None, halfway: Halfway::Unplanned, ran: Spent::default() });
    })?;
    *held = None;
    let (run, dir) = (claim.run.run.clone(), claim.run.dir.clone());
    let (cycle, cycles) = (course.number(), course.limits().cycles);
    asked.cycle = Some(GoalState {
        text: asked.wanted.brief.goal.clone(),
        cycle,
        max_cycles: cycles,
        first_run_id: course.first_run().unwrap_or(&run).to_string(),
        budget_usd: course.limits().spend.map(Money::usd),
    });
    let headline = format!("\nCycle {cycle}/{cycles} (run {run})...");
    let again = services.clone();
    let mut ran = planned::plan_and_run(asked, claim, services, &headline, context).map_err(|fallen| {
        let Fallen { failure, paid: Paid { cost, usage, .. } } = fallen;
        course.break_off(Incomplete {
            run: Some(run.clone()),
            halfway: Halfway::Unplanned,
            ran: (cost, usage),
        });
        failure
    })?;
    *held = ran.lock.take();
    judge(asked, course, &Place { run: &run, dir: &dir, services: &again, signals }, ran, context)
}

/// Where a run lies, and who is asked about it.
struct Place<'a> {
    run: &'a RunId,
    dir: &'a RunDir,
    services: &'a Services,
    signals: &'a Receiver<Stop>,
}

/// Has a run judged that came to its end, and tells the course.
fn judge(
    asked: &Asked,
    course: &mut Course,
    place: &Place<'_>,
    ran: Ran,
    context: &mut Context,
) -> Result<u8, Failure> {
    let (spent, run) = (ran.spent(), place.run.clone());
    let mut broken = |halfway| {
        course.break_off(Incomplete { run: Some(run.clone()), halfway, ran: spent });
    };
    let has_passed = match ran.ending {
        Ending::Passed => true,
        Ending::Failed { .. } => false,
        _ => {
            broken(Halfway::Unfinished);
            return ran.conclusion;
        }
    };
    if ran.signal.is_some() {
        broken(Halfway::Unjudged { judged: Spent::default() });
        return ran.conclusion;
    }
    // One that came while the run was told.
    if let Ok(signal) = place.signals.try_recv() {
        broken(Halfway::Unjudged { judged: Spent::default() });
        return Err(interrupted(&run, has_passed, signal));
    }
    let material = Material {
        goal: asked.wanted.brief.goal.clone(),
        run: run.to_string(),
        has_passed,
        spent,
        nodes: ran.ledger.as_ref().map(|ledger| judged(&ran.graph, place.dir, ledger)).unwrap_or_default(),
        before: asked.wanted.brief.remaining.clone(),
    };
    let answered = guarded(&place.services.launcher, Some(place.dir), &planner::observer(), || {
        planner::ask(place.services, place.signals, "the assessor", context, |asking| {
            assess::assess(asking, &material)
        })
    });
    let (Assessed { outcome, paid, said, warnings }, signal) = match answered {
        Ok(bought) => (bought.outcome, bought.signal),
        Err(failure) => {
            broken(Halfway::Unjudged { judged: Spent::default() });
            return Err(failure);
        }
    };
    for warning in warnings {
        writeln!(context.err, "warning: assessor: {}", sanitize::one_line(&warning)).ok();
    }
    planner::keep(place.dir, Caller::Assessor, &said, context);
    let asking = (paid.cost, paid.usage);
    match outcome {
        Ok(verdict) if signal.is_none() => {
            keep(&verdict, asking, place.dir, context);
            let cycle = Cycle { run: run.clone(), has_passed, ran: spent, judged: asking, verdict };
            let (out, _) = context.prose();
            write!(out, "\n{}", goal::assessed(course.number(), &cycle)).and_then(|()| out.flush()).ok();
            course.complete(cycle);
            ran.conclusion
        }
        outcome => {
            broken(Halfway::Unjudged { judged: asking });
            Err(match (signal, outcome) {
                (None, Err(unanswered)) => {
                    Failure::new(format!("run {run} was not judged: {}", unanswered.why))
                        .hinted(unjudged(&run, has_passed))
                }
                (signal, _) => interrupted(&run, has_passed, signal.unwrap_or(Stop::Interrupt)),
            })
        }
    }
}

fn interrupted(run: &RunId, has_passed: bool, signal: Stop) -> Failure {
    Failure::new(format!("interrupted by {} before run {run} was judged", signal.name()))
        .hinted(unjudged(run, has_passed))
        .exiting(signal.exit_code())
}

/// What there is of a run that nobody judged.
fn unjudged(run: &RunId, has_passed: bool) -> String {
    match has_passed {
        true => format!("its work is done and kept: omg show {run}"),
        false => format!("it failed: omg show {run}; what passed is kept: omg resume {run} --retry-failed"),
    }
}

/// Keeps a verdict beside its run. That it cannot be kept changes nothing.
fn keep(verdict: &Verdict, (cost, usage): Spent, dir: &RunDir, context: &mut Context) {
    let assessment = Assessment {
        goal_met: verdict.is_met,
        remaining: verdict.remaining.clone(),
        evidence: verdict.evidence.clone(),
        assess_cost_usd: cost.known.usd(),
        assess_cost_unknown: cost.is_unknown(),
        usage,
    };
    if let Err(error) = assessment.keep(dir) {
        writeln!(context.err, "note: the verdict cannot be kept: {error}").ok();
    }
}

/// What the goal ends with. The judge can end the spending; it cannot make a failed run a passed one.
fn conclude(course: &Course, end: End, last: Result<u8, Failure>) -> Result<u8, Failure> {
    let limits = course.limits();
    let unmet =
        |why: String| Err(Failure::new(format!("the goal is not reached: {why}")).hinted(onward(course)));
    match end {
        End::Broken => last.map_err(|failure| match course.incomplete() {
            // Nothing was run of this cycle, but of those before it.
            Some(Incomplete { halfway: Halfway::Unplanned, .. }) if !course.cycles().is_empty() => {
                failure.hinted(onward(course))
            }
            _ => failure,
        }),
        End::Met => last.map_err(|failure| Failure {
            message: format!("the judge finds the goal reached, but {}", failure.message),
            ..failure
        }),
        End::Exhausted => unmet(format!("{} cycles are used up", limits.cycles)),
        End::OverBudget => unmet(format!(
            "{} are spent, and no cycle begins beyond {}",
            course.total().0,
            limits.spend.unwrap_or_default()
        )),
        End::Unmeasurable => unmet(format!(
            "some price is unknown ({}), so that nobody can tell whether {} allows another cycle",
            course.total().0,
            limits.spend.unwrap_or_default()
        )),
    }
}

/// What the cycles that were judged leave to do, and how.
fn onward(course: &Course) -> String {
    let Some(last) = course.cycles().last() else { return "nothing was done".to_owned() };
    let run = &last.run;
    let remaining = match goal::excerpt(&last.verdict.remaining) {
        text if text.is_empty() => "nothing was recorded".to_owned(),
        text => text,
    };
    let why = if last.has_passed { "" } else { " and why it failed" };
    format!(
        "remaining: {remaining}; omg show {run} has what was done last{why}; a goal that says what remains goes on from there"
    )
}
