//! The words that screens have for verdicts, causes, costs and tokens; every screen takes them from here.

use crate::graph::Cause;
use crate::record::event::{SkipWhy, Skipped};
use crate::record::{Record, Usage, Verdict};
use crate::text::money::Cost;
use crate::text::sanitize;

/// The verdict of a record: `PASS (verified)`, `PASS (rehearsed)`, `FAIL`, `CANCELLED`, `HELD` by a limit.
pub fn verdict(record: &Record, rehearsal: bool) -> String {
    match (record.verdict, record.provenance) {
        (Verdict::Pass, None) if rehearsal => "PASS (rehearsed)".to_owned(),
        (Verdict::Pass, Some(how)) => format!("PASS ({})", how.as_str()),
        (Verdict::Pass, None) => "PASS".to_owned(),
        (Verdict::Fail, _) if is_cancelled(record.cause) => "CANCELLED".to_owned(),
        (Verdict::Fail, _) => "FAIL".to_owned(),
        (Verdict::Marker, _) if record.round == 0 => "HELD".to_owned(),
        (Verdict::Marker, _) => "LOOPING".to_owned(),
    }
}

/// Whether a FAIL with this cause was no judgment of the node: something else ended it (DECISIONS 12).
pub fn is_cancelled(cause: Option<Cause>) -> bool {
    matches!(cause, Some(Cause::Cancelled | Cause::Interrupted))
}

/// What a record has to say beside its verdict.
pub fn detail(record: &Record) -> String {
    const LEAKY: &str = "leaky: a process it left behind held its output open and was ended";
    let detail = sanitize::one_line(&record.detail);
    match (record.leaky, detail.is_empty()) {
        (false, _) => detail.into_owned(),
        (true, true) => LEAKY.to_owned(),
        (true, false) => format!("{detail}; {LEAKY}"),
    }
}

/// Why a node never ran.
pub fn because(skipped: &Skipped) -> String {
    let because = sanitize::one_line(&skipped.because);
    match skipped.why {
        SkipWhy::AncestorFailed => format!("{because} failed"),
        SkipWhy::Rejected => format!("gate {because} was rejected"),
        SkipWhy::Halted => format!("the run halted when {because} failed"),
        SkipWhy::Interrupted => format!("the run was interrupted ({because})"),
    }
}

/// Says in the record of a node that has one all the same, such as what it cost, why it never ran in the last leg.
pub fn note_skip(record: &mut Record, skipped: &Skipped) {
    if !record.is_settled() {
        record.detail = because(skipped);
    }
}

/// A cost in a column that is headed with its currency: `0.0100`, `unknown`, `≥ 0.0300 (1 unknown)`.
pub fn cost_cell(cost: Cost) -> String {
    cost.to_string().replace('$', "")
}

/// Tokens in a column: `input/cached/output/reasoning`, or `-`.
pub fn tokens_cell(usage: Usage) -> String {
    if usage.is_zero() {
        return "-".to_owned();
    }
    let Usage { input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens } = usage;
    format!("{input_tokens}/{cached_input_tokens}/{output_tokens}/{reasoning_output_tokens}")
}

/// The lines under a table that say what it all cost.
pub fn footer(planning: Cost, total: Cost, usage: Usage) -> String {
    let mut lines = Vec::new();
    if planning != Cost::ZERO {
        lines.push(format!("PLANNING COST: {planning}\n"));
    }
    lines.push(format!("TOTAL COST: {total}\n"));
    lines.push(tokens_line(usage));
    lines.concat()
}

/// The line that says how many tokens there were; empty for none.
pub fn tokens_line(usage: Usage) -> String {
    if usage.is_zero() {
        return String::new();
    }
    let Usage { input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens } = usage;
    format!(
        "TOKEN USAGE: input {input_tokens}, cached {cached_input_tokens}, output {output_tokens}, \
         reasoning {reasoning_output_tokens}\n"
    )
}

/// A cell that is never empty.
pub fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { sanitize::one_line(text).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Provenance;

    #[test]
    fn a_verdict_says_how_it_was_reached() {
        let pass = |provenance| Record { verdict: Verdict::Pass, provenance, ..Record::default() };
        let fail = |cause| Record { verdict: Verdict::Fail, cause, ..Record::default() };
        for (record, rehearsal, word) in [
            (pass(Some(Provenance::Verified)), false, "PASS (verified)"),
            (pass(Some(Provenance::Approved)), true, "PASS (approved)"),
            (pass(None), false, "PASS"),
            (pass(None), true, "PASS (rehearsed)"),
            (fail(None), true, "FAIL"),
            (fail(Some(Cause::Timeout)), false, "FAIL"),
            (fail(Some(Cause::Cancelled)), false, "CANCELLED"),
            (fail(Some(Cause::Interrupted)), false, "CANCELLED"),
        ] {
            assert_eq!(verdict(&record, rehearsal), word);
        }
    }

    #[test]
    fn b6_a_detail_cannot_command_the_terminal() {
        let record = Record { detail: "\u{1b}[31mred\rover".into(), leaky: true, ..Record::default() };
        let shown = detail(&record);
        assert!(
            !shown.contains(char::is_control) && shown.contains("red") && shown.contains("leaky"),
            "{shown}"
        );
    }
}
