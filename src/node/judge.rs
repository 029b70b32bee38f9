//! From an answer to a verdict, cheapest predicate first (DESIGN "Success checks", FACTS 7.2 and 7.3).
//!
//! Only a predicate that looked at the work *judges*: an exit code, a reply, a command's evidence. Everything else
//! that can go wrong is the machinery's fault; it is never quoted back and fires no arc.

use std::time::Duration;

use crate::graph::node::SuccessCheck;
use crate::graph::{Cause, Provenance};
use crate::node::invocation::End;
use crate::node::shell::{Evidence, Expectation};
use crate::process::{Exit, How, SpawnError};
use crate::text::duration;
use crate::text::money::{Cost, Money};
use crate::text::sanitize::{cap_detail, lead_detail, one_line};

/// How much of the end of an evidence command's output is told in a detail, before it is condensed.
const SAID_BYTES: usize = 4096;

/// Why a node did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The cause, which `retry.on` may name.
    pub cause: Cause,
    /// Whether a check looked at the work and said no.
    pub judged: bool,
    /// One line for a person.
    pub detail: String,
    /// What an evidence command printed, for a feedback payload.
    pub evidence: Option<String>,
    /// Whether a retry is out of the question whatever `retry.on` says.
    pub is_final: bool,
    /// Whether a spent limit is the cause: the node counts as not run.
    pub limited: bool,
}

impl Fault {
    fn judged(cause: Cause, detail: String) -> Self {
        Fault { cause, judged: true, detail, evidence: None, is_final: false, limited: false }
    }

    /// A failure of the machinery.
    pub fn broken(cause: Cause, detail: String) -> Self {
        Fault { cause, judged: false, detail, evidence: None, is_final: false, limited: false }
    }

    /// A failure of the machinery that no retry may follow.
    pub fn ending(cause: Cause, detail: String) -> Self {
        Fault { is_final: true, ..Self::broken(cause, detail) }
    }
}

/// The parts of an answer that free predicates look at.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The exit.
    pub exit: Exit,
    /// What was said about an exit that is not 0, one line.
    pub note: &'a str,
    /// Whether the reply matches `result_matches`; true without one.
    pub matches: bool,
}

/// Why an invocation gave no answer to judge; `None` when it did.
pub fn no_answer(end: &End, timeout: Duration) -> Option<Fault> {
    Some(match end {
        End::Replied { .. } => return None,
        End::Reported { exit, cause } => {
            let kind = if exit.code() == 0 { Cause::RunError } else { Cause::NonzeroExit };
            let lead = format!("the runtime reported an error ({exit}): ");
            Fault::broken(kind, lead_detail(&lead, cause))
        }
        End::Limited { cause, .. } => {
            let fault = Fault::ending(Cause::RunError, lead_detail("usage limit: ", cause));
            Fault { limited: true, ..fault }
        }
        End::OverBudget { cause } => {
            let lead = if cause.is_empty() { "stopped at its budget" } else { "stopped at its budget: " };
            Fault::broken(Cause::BudgetExceeded, lead_detail(lead, cause))
        }
        End::Unreadable(why) => Fault::broken(Cause::OutputError, lead_detail("", why)),
        End::Broken(why) => Fault::broken(Cause::RunError, lead_detail("", why)),
        End::TimedOut => timed_out(timeout),
        End::Cancelled => Fault::ending(Cause::Cancelled, "cancelled".to_owned()),
    })
}

/// The fault of a child that ran past its own bound.
pub fn timed_out(timeout: Duration) -> Fault {
    Fault::broken(Cause::Timeout, format!("timed out after {}", duration::format(timeout)))
}

/// Why a command node's command gave no answer to judge; `None` when it did.
pub fn command_ended(how: How, timeout: Duration) -> Option<Fault> {
    match how {
        How::Itself | How::Enough => None,
        How::TimedOut => Some(timed_out(timeout)),
        How::Cancelled => Some(Fault::ending(Cause::Cancelled, "cancelled".to_owned())),
    }
}

/// The fault of a child that could not be started.
pub fn not_started(error: &SpawnError) -> Fault {
    match error {
        SpawnError::Cancelled => {
            Fault::ending(Cause::Cancelled, "cancelled before it was started".to_owned())
        }
        other => Fault::broken(Cause::RunError, one_line(&other.to_string()).into_owned()),
    }
}

/// Judges an answer by the free predicates.
///
/// # Errors
/// The first predicate that says no.
pub fn judge(check: &SuccessCheck, answer: Answer<'_>) -> Result<(), Fault> {
    if check.judges_exit() && answer.exit != Exit::Code(0) {
        let note = if answer.note.is_empty() { String::new() } else { format!(": {}", answer.note) };
        return Err(Fault::judged(Cause::NonzeroExit, format!("{}{note}", answer.exit)));
    }
    if let (Some(pattern), false) = (&check.result_matches, answer.matches) {
        let detail = format!("the reply does not match result_matches `{}`", pattern.as_str());
        return Err(Fault::judged(Cause::ResultMismatch, detail));
    }
    Ok(())
}

/// Judges what an evidence command showed.
///
/// # Errors
/// When it could not be completed (not judged), or said no (judged).
pub fn judge_evidence(
    command: &str,
    expected: &Expectation,
    timeout: Duration,
    evidence: &Evidence,
) -> Result<(), Fault> {
    let verify = format!("verify `{}`", one_line(command));
    match evidence.how {
        How::Cancelled => {
            return Err(Fault::ending(Cause::Cancelled, format!("cancelled during its {verify}")));
        }
        How::TimedOut => {
            let detail =
                format!("{verify} timed out after {}{}", duration::format(timeout), said(&evidence.tail));
            return Err(Fault::broken(Cause::VerifyFailed, detail));
        }
        How::Itself | How::Enough => {}
    }
    if evidence.exit != Exit::Code(expected.exit) {
        let exit = evidence.exit;
        let detail = format!("{verify}: {exit}, expected {}{}", expected.exit, said(&evidence.tail));
        return Err(evidence_against(command, detail, &evidence.tail));
    }
    match &expected.output_matches {
        Some(pattern) if !evidence.matched => {
            let detail =
                format!("{verify}: output does not match `{}`{}", pattern.as_str(), said(&evidence.tail));
            Err(evidence_against(command, detail, &evidence.tail))
        }
        _ => Ok(()),
    }
}

fn evidence_against(command: &str, detail: String, output: &str) -> Fault {
    let output = output.trim();
    let shown = if output.is_empty() { "(it printed nothing)" } else { last_chars(output, 4000) };
    let evidence = Some(format!("$ {command}\n{shown}"));
    Fault { evidence, ..Fault::judged(Cause::VerifyFailed, detail) }
}

fn said(output: &str) -> String {
    let end = &output[output.ceil_char_boundary(output.len().saturating_sub(SAID_BYTES))..];
    match cap_detail(end) {
        said if said.is_empty() => String::new(),
        said => format!("; output: {said}"),
    }
}

fn last_chars(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    &text[start..]
}

/// Judges one invocation's price against the node's budget, after the work is kept (DESIGN "budget_usd").
///
/// # Errors
/// When it is known to have cost more.
pub fn judge_budget(charge: Cost, budget: Option<Money>) -> Result<(), Fault> {
    match budget {
        Some(budget) if !charge.is_unknown() && charge.known > budget => Err(Fault::broken(
            Cause::BudgetExceeded,
            format!("cost {} is over its budget of {budget}; the artifact is kept", charge.known),
        )),
        _ => Ok(()),
    }
}

/// How a PASS under `check` was reached (FACTS 7.11).
pub fn provenance(check: &SuccessCheck) -> Provenance {
    match (&check.verify, &check.result_matches) {
        (Some(_), _) => Provenance::Verified,
        (None, Some(_)) => Provenance::SelfReported,
        (None, None) => Provenance::ExitOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::regexp::Pattern;

    fn answer(code: i32, matches: bool) -> Answer<'static> {
        Answer { exit: Exit::Code(code), note: "", matches }
    }

    fn matching() -> SuccessCheck {
        SuccessCheck {
            result_matches: Some(Pattern::compile("^PASS").expect("a pattern")),
            ..Default::default()
        }
    }

    #[test]
    fn an_empty_check_looks_at_the_exit_code() {
        assert_eq!(judge(&SuccessCheck::default(), answer(0, true)), Ok(()));
        let fault = judge(&SuccessCheck::default(), answer(3, true)).expect_err("exit 3");
        assert_eq!(
            (fault.cause, fault.judged, fault.detail.as_str()),
            (Cause::NonzeroExit, true, "exit code 3")
        );
    }

    #[test]
    fn a_pattern_alone_leaves_the_exit_code_out() {
        assert_eq!(judge(&matching(), answer(3, true)), Ok(()));
        let fault = judge(&matching(), answer(0, false)).expect_err("no match");
        assert_eq!((fault.cause, fault.judged), (Cause::ResultMismatch, true));
    }

    #[test]
    fn only_a_check_that_looked_at_the_work_judges() {
        let timeout = Duration::from_millis(300);
        for end in [
            End::Reported { exit: Exit::Code(0), cause: "limit".into() },
            End::OverBudget { cause: "$1".into() },
            End::Unreadable("no output".into()),
            End::Broken("x".into()),
            End::TimedOut,
            End::Cancelled,
        ] {
            let fault = no_answer(&end, timeout).expect("no answer");
            assert!(!fault.judged, "{end:?}");
        }
        assert_eq!(
            no_answer(&End::TimedOut, timeout).map(|f| f.detail),
            Some("timed out after 300ms".into())
        );
    }

    #[test]
    fn an_evidence_command_that_says_no_is_quoted_with_its_output() {
        let expected = Expectation { exit: 0, output_matches: None };
        let evidence = Evidence {
            how: How::Itself,
            exit: Exit::Code(1),
            matched: true,
            tail: "test a ... ok\ntest b ... FAILED\n".into(),
            leaky: false,
        };
        let fault =
            judge_evidence("make test", &expected, Duration::from_secs(1), &evidence).expect_err("exit 1");
        assert!(fault.judged);
        assert_eq!(
            fault.detail,
            "verify `make test`: exit code 1, expected 0; output: test a ... ok test b ... FAILED"
        );
        assert_eq!(fault.evidence.as_deref(), Some("$ make test\ntest a ... ok\ntest b ... FAILED"));
    }

    #[test]
    fn a_budget_is_broken_only_by_a_known_higher_price() {
        let price = |usd| Money::from_usd(usd).expect("a price");
        assert_eq!(judge_budget(Cost::known(price(0.5)), Some(price(0.5))), Ok(()));
        assert_eq!(judge_budget(Cost::UNKNOWN, Some(price(0.5))), Ok(()));
        let fault = judge_budget(Cost::known(price(0.6)), Some(price(0.5))).expect_err("over");
        assert_eq!((fault.cause, fault.judged), (Cause::BudgetExceeded, false));
    }
}
