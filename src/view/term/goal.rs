//! What the terminal shows of a goal's cycles: each verdict, and the summary with every cent (FACTS 1.10).

use std::fmt::Write as _;

use crate::plan::goal::{Course, Cycle, Halfway, Incomplete, Spent};
use crate::plan::prompt::REMAINING_BYTES_MAX;
use crate::text::{fence, sanitize};
use crate::view::term::words;

const STRING: &str = "writing to a string";

/// What is said when cycle `number` has its verdict.
pub fn assessed(number: u32, cycle: &Cycle) -> String {
    let (cost, usage) = cycle.judged;
    let mut text = format!("Assessment of cycle {number} (run {}): {}, {cost}\n", cycle.run, met(cycle));
    if !usage.is_zero() {
        writeln!(text, "  tokens: {}", words::tokens_cell(usage)).expect(STRING);
    }
    for (what, said) in [("remaining", &cycle.verdict.remaining), ("evidence", &cycle.verdict.evidence)] {
        if !said.is_empty() {
            writeln!(text, "  {what}: {}", excerpt(said)).expect(STRING);
        }
    }
    text
}

/// As much of a model's words as a screen takes, in one line.
pub fn excerpt(said: &str) -> String {
    sanitize::one_line(&fence::truncate(said, REMAINING_BYTES_MAX)).into_owned()
}

/// What a goal took: a line a cycle, and the sum.
pub fn summary(goal: &str, course: &Course) -> String {
    let limits = course.limits();
    let mut text = format!("Goal {goal:?}\n");
    for (cycle, number) in course.cycles().iter().zip(1..) {
        let outcome = if cycle.has_passed { "PASSED" } else { "FAILED" };
        writeln!(
            text,
            "  cycle {number}/{}  {}  {outcome}  run {}, assessment {}  -> {}",
            limits.cycles,
            cycle.run,
            cycle.ran.0,
            cycle.judged.0,
            met(cycle)
        )
        .expect(STRING);
    }
    if let Some(incomplete) = course.incomplete() {
        writeln!(text, "  cycle {}/{}  {}", course.number(), limits.cycles, halfway(incomplete))
            .expect(STRING);
    }
    let (cost, usage) = course.total();
    writeln!(text, "GOAL TOTAL: {cost} ({})", counted(course)).expect(STRING);
    text + &words::tokens_line(usage)
}

fn met(cycle: &Cycle) -> &'static str {
    if cycle.verdict.is_met { "met" } else { "not met" }
}

/// How the cycle that broke it off stands, and what it cost.
fn halfway(incomplete: &Incomplete) -> String {
    let run = incomplete.run.as_ref().map(|run| format!("{run}  ")).unwrap_or_default();
    let (cost, _): Spent = incomplete.ran;
    run + &match incomplete.halfway {
        Halfway::Unplanned => format!("incomplete: nothing ran, planning {cost}"),
        Halfway::Unfinished => format!("incomplete: its run did not come to its end, run {cost}"),
        Halfway::Unjudged { judged: (judged, _) } => {
            format!("incomplete: it was not judged, run {cost}, assessment {judged}")
        }
    }
}

fn counted(course: &Course) -> String {
    let cycles = match course.cycles().len() {
        1 => "1 assessed cycle".to_owned(),
        count => format!("{count} assessed cycles"),
    };
    if course.incomplete().is_some() { cycles + " + 1 incomplete cycle" } else { cycles }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::assess::Verdict;
    use crate::plan::goal::Limits;
    use crate::record::RunId;
    use crate::text::money::{Cost, Money};
    use crate::text::usage::Usage;

    fn run(number: u32) -> RunId {
        RunId::parse(&format!("20260102-030405.{number:09}-1")).expect("an id")
    }

    fn usd(usd: f64) -> Spent {
        (Cost::known(Money::from_usd(usd).expect("a price")), Usage { input_tokens: 3, ..Usage::default() })
    }

    #[test]
    fn every_cycle_has_its_line_and_the_sum_every_cent() {
        let mut course = Course::new(Limits { cycles: 3, spend: None });
        let verdict = Verdict {
            is_met: false,
            remaining: "the \u{1b}[31mdocs\nand tests".into(),
            evidence: String::new(),
        };
        let cycle = Cycle { run: run(1), has_passed: false, ran: usd(0.03), judged: usd(0.01), verdict };
        insta::assert_snapshot!(assessed(1, &cycle), @r"
        Assessment of cycle 1 (run 20260102-030405.000000001-1): not met, $0.0100
          tokens: 3/0/0/0
          remaining: the ␛[31mdocs and tests
        ");
        course.complete(cycle);
        let halfway = Halfway::Unjudged { judged: (Cost::UNKNOWN, Usage::default()) };
        course.break_off(Incomplete { run: Some(run(2)), halfway, ran: usd(0.02) });
        insta::assert_snapshot!(summary("make \"it\" good", &course), @r#"
        Goal "make \"it\" good"
          cycle 1/3  20260102-030405.000000001-1  FAILED  run $0.0300, assessment $0.0100  -> not met
          cycle 2/3  20260102-030405.000000002-1  incomplete: it was not judged, run $0.0200, assessment unknown
        GOAL TOTAL: ≥ $0.0600 (1 unknown) (1 assessed cycle + 1 incomplete cycle)
        TOKEN USAGE: input 9, cached 0, output 0, reasoning 0
        "#);
    }

    #[test]
    fn a_cycle_that_never_ran_says_so() {
        let mut course = Course::new(Limits { cycles: 2, spend: None });
        course.break_off(Incomplete { run: None, halfway: Halfway::Unplanned, ran: usd(0.02) });
        let text = summary("x", &course);
        assert!(text.contains("  cycle 1/2  incomplete: nothing ran, planning $0.0200\n"), "{text}");
        assert!(text.contains("GOAL TOTAL: $0.0200 (0 assessed cycles + 1 incomplete cycle)"), "{text}");
    }
}
