//! What a planned run is for: its goal, what the judge said of it, and the runs of the goal's other cycles (RUN-FEED "Goal
//! cycles").
//!
//! The runs of a goal are grouped by the id of the first one. One process plans them one after another, so they are all among
//! those that began after it.

use std::fmt::Write as _;

use serde::Serialize;

use crate::record::assessment::Assessment;
use crate::record::snapshot::GoalState;
use crate::record::status::Status;
use crate::record::{Home, RunDir, RunId};
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::view::history::lookup::{self, LookupError};
use crate::view::history::{Prober, Run};

/// As much of a goal, and of a judge's words, as a line of a screen shows, in characters.
const LINE_CHARS_MAX: usize = 300;
const STRING: &str = "writing to a string";

/// What a run is for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// The goal, and which cycle of it the run is.
    #[serde(flatten)]
    pub aim: GoalState,
    /// What the judge said of the run, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Assessment>,
}

/// The run of one cycle of a goal.
#[derive(Debug)]
pub struct CycleRun {
    /// The run.
    pub run: RunId,
    /// Which cycle it is, from 1.
    pub cycle: u32,
    /// How it stands.
    pub status: Option<Status>,
    /// Whether the judge finds the goal reached, if it was asked.
    pub goal_met: Option<bool>,
    /// What it cost, its judge included.
    pub cost: Cost,
}

impl Goal {
    /// What the run in `dir` is for; `None` of one that was not planned.
    pub fn read(dir: &RunDir) -> Option<Goal> {
        Some(Goal { aim: GoalState::read(dir)?, verdict: Assessment::read(dir) })
    }

    /// Whether the goal may take several cycles.
    pub fn has_cycles(&self) -> bool {
        self.aim.max_cycles > 1
    }

    /// What a person is told of it in a few lines.
    pub fn lines(&self) -> String {
        let mut text = format!("goal {:?}", one_line(&self.aim.text));
        if self.has_cycles() {
            write!(text, ", cycle {} of {}", self.aim.cycle, self.aim.max_cycles).expect(STRING);
        }
        text.push('\n');
        if let Some(verdict) = &self.verdict {
            let met = if verdict.goal_met { "met" } else { "not met" };
            writeln!(text, "the judge: {met}, {}", verdict.cost()).expect(STRING);
            for (what, said) in [("remaining", &verdict.remaining), ("evidence", &verdict.evidence)] {
                if !said.is_empty() {
                    writeln!(text, "  {what}: {}", one_line(said)).expect(STRING);
                }
            }
        }
        text
    }
}

/// As much of `text` as a line shows, with nothing in it that a screen obeys.
pub(crate) fn one_line(text: &str) -> String {
    let line = sanitize::one_line(text);
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

/// The runs of the goal that `aim` is of, the first cycle first. One that cannot be read is left out.
///
/// # Errors
/// When the runs cannot be listed.
pub fn cycles(home: &Home, aim: &GoalState, probe: Prober) -> Result<Vec<CycleRun>, LookupError> {
    let runs = lookup::entries(home)?.runs;
    let first = RunId::parse(&aim.first_run_id);
    let began = first.and_then(|first| runs.iter().position(|run| *run == first));
    let Some(began) = began else { return Ok(Vec::new()) };
    let mut found: Vec<CycleRun> = Vec::new();
    for run in runs[..=began].iter().rev() {
        let dir = home.run(run);
        let own = GoalState::read(&dir).filter(|other| other.first_run_id == aim.first_run_id);
        let Some(cycle) = own.map(|own| own.cycle) else { continue };
        found.extend(cycle_run(run, cycle, &dir, probe));
        if cycle >= aim.max_cycles {
            break;
        }
    }
    Ok(found)
}

fn cycle_run(run: &RunId, cycle: u32, dir: &RunDir, probe: Prober) -> Option<CycleRun> {
    let read = Run::read(run.clone(), dir, probe).ok()?;
    let verdict = Assessment::read(dir);
    Some(CycleRun {
        run: run.clone(),
        cycle,
        status: read.status,
        goal_met: verdict.as_ref().map(|verdict| verdict.goal_met),
        cost: read.cost() + verdict.map_or(Cost::ZERO, |verdict| verdict.cost()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::{House, free};

    const IDS: [&str; 4] = [
        "20260102-030405.000000001-1",
        "20260102-030406.000000001-1",
        "20260102-030407.000000001-1",
        "20260102-030408.000000001-1",
    ];

    fn aim(cycle: u32) -> GoalState {
        GoalState {
            text: "make it\u{1b} good".into(),
            cycle,
            max_cycles: 2,
            first_run_id: IDS[0].into(),
            budget_usd: None,
        }
    }

    fn verdict(goal_met: bool) -> Assessment {
        Assessment {
            goal_met,
            remaining: if goal_met { String::new() } else { "the docs".into() },
            evidence: "x".repeat(LINE_CHARS_MAX + 1),
            assess_cost_usd: 0.01,
            assess_cost_unknown: false,
            usage: Default::default(),
        }
    }

    #[test]
    fn the_runs_of_a_goal_are_found_among_others_with_what_they_cost() {
        let house = House::new();
        let feed = r#"{"event":"run_started","phase":"planning"}
            {"event":"run_finished","outcome":"failed","cost_usd":0.25}"#;
        for id in IDS {
            house.run(id, feed, None);
        }
        let dir = |at: usize| house.home.run(&RunId::parse(IDS[at]).expect("an id"));
        for (at, cycle) in [(0, 1), (2, 2), (3, 3)] {
            aim(cycle).keep(&dir(at)).expect("kept");
        }
        verdict(false).keep(&dir(0)).expect("kept");
        let found = cycles(&house.home, &aim(1), free).expect("listed");
        let told: Vec<_> =
            found.iter().map(|it| (it.run.as_str(), it.cycle, it.goal_met, it.cost.to_string())).collect();
        assert_eq!(
            told,
            [(IDS[0], 1, Some(false), "$0.2600".to_owned()), (IDS[2], 2, None, "$0.2500".to_owned())],
            "nothing is looked for beyond the last cycle"
        );
        let gone = GoalState { first_run_id: "../x".into(), ..aim(1) };
        assert!(cycles(&house.home, &gone, free).expect("listed").is_empty());
    }

    #[test]
    fn a_goal_is_told_in_lines_that_a_screen_can_show() {
        let goal = Goal { aim: aim(1), verdict: Some(verdict(false)) };
        let shown = format!("{}…", "x".repeat(LINE_CHARS_MAX));
        assert_eq!(
            goal.lines(),
            format!(
                "goal \"make it␛ good\", cycle 1 of 2\nthe judge: not met, $0.0100\n  remaining: the docs\n  evidence: {shown}\n"
            )
        );
        let alone = Goal { aim: GoalState { max_cycles: 1, ..aim(1) }, verdict: None };
        assert_eq!(alone.lines(), "goal \"make it␛ good\"\n");
    }
}
