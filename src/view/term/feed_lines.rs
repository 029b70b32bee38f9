//! One line of text for one event of a feed (FACTS 1.14, 1.18).
//!
//! `watch` prints these as they are; the progress of a run adds what it knows itself (elapsed times, sums, checks
//! under way). A symbol, the node, two spaces, the words.

use jiff::tz::TimeZone;

use crate::record::{Event, EventKind, Usage};
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::text::table::paint;
use crate::view::term::style::{BAD, BUSY, FAINT, GOOD, Look, WARY};
use crate::view::term::{when, words};

/// The line that `watch` prints for `event`.
pub fn watch_line(event: &Event, look: Look) -> String {
    let node = sanitize::one_line(&event.node_id);
    let detail = sanitize::one_line(&event.detail);
    let spent = accounting(event.charge(), event.usage);
    match event.event {
        EventKind::RunStarted if event.phase == "planning" => {
            line(look, Mark::Start, "run started (planning)")
        }
        EventKind::RunStarted => line(look, Mark::Start, &format!("run started{spent}")),
        EventKind::NodeStarted => line(look, Mark::Start, &format!("{node}  running…")),
        EventKind::NodePassed => line(look, Mark::Pass, &format!("{node}  PASS{spent}{}", after(&detail))),
        EventKind::NodeFailed => line(look, Mark::Fail, &format!("{node}  {}{spent}", failed(event))),
        EventKind::NodeRetried => line(look, Mark::Again, &format!("{node}  {}{spent}", retried(event))),
        EventKind::GatePaused => line(look, Mark::Pause, &format!("{node}  waiting for a decision")),
        EventKind::RunFinished => {
            let outcome = sanitize::one_line(&event.outcome);
            let skipped = match event.skipped_count {
                0 => String::new(),
                n => format!("  {n} skipped"),
            };
            line(look, Mark::End, &format!("run finished: {outcome}{spent}{skipped}{}", after(&detail)))
        }
        _ => {
            let parts = [node.as_ref(), &sanitize::one_line(event.event.as_str()), &detail];
            let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            line(look, Mark::Other, &said.join("  "))
        }
    }
}

/// What a line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Start,
    Pass,
    Fail,
    Again,
    Pause,
    Check,
    Kept,
    Warning,
    End,
    Other,
}

/// `text` behind its mark.
pub(crate) fn line(look: Look, mark: Mark, text: &str) -> String {
    let (symbol, style) = match mark {
        Mark::Start => ("▶", BUSY),
        Mark::Pass => ("✓", GOOD),
        Mark::Fail => ("✗", BAD),
        Mark::Again => ("↻", WARY),
        Mark::Pause => ("⏸", WARY),
        Mark::Check => ("…", FAINT),
        Mark::Kept => ("✎", FAINT),
        Mark::Warning => ("⚠", WARY),
        Mark::End => ("■", FAINT),
        Mark::Other => ("•", FAINT),
    };
    format!("{} {text}", paint(look.style(style), symbol))
}

/// The words of a `node_failed`.
pub(crate) fn failed(event: &Event) -> String {
    let word = if words::is_cancelled(event.cause) { "CANCELLED" } else { "FAILED" };
    format!("{word}: {}", sanitize::one_line(&event.detail))
}

/// The words of a `node_retried`: a feedback round says where it goes back to.
pub(crate) fn retried(event: &Event) -> String {
    let detail = sanitize::one_line(&event.detail);
    if !event.held_until.is_empty() {
        let until = when::local(&event.held_until, &TimeZone::system());
        return format!("held back until {until}{}", after(&detail));
    }
    match detail.strip_prefix("feedback round ").and_then(|rest| rest.split_once(": re-running ")) {
        Some((round, body)) => format!("feedback round {round} — re-running {body}"),
        None => format!("retry{}", after(&detail)),
    }
}

fn after(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!("  {detail}") }
}

fn accounting(cost: Cost, usage: Usage) -> String {
    let cost = match (cost.is_unknown(), cost.known.is_zero()) {
        (true, true) => "  cost unknown".to_owned(),
        (false, true) => String::new(),
        _ => format!("  {cost}"),
    };
    let tokens = if usage.is_zero() { String::new() } else { format!("  tokens {}", tokens(usage)) };
    cost + &tokens
}

fn tokens(usage: Usage) -> String {
    format!("{}/{}/{}", usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_event_has_its_line() {
        let feed = r#"{"event":"run_started","phase":"planning"}
{"event":"run_started","cost_usd":0.2}
{"event":"node_started","node_id":"a"}
{"event":"node_retried","node_id":"a","retries":1,"cost_usd":0.01}
{"event":"node_retried","node_id":"q","round":1,"detail":"feedback round 1/2: re-running impl → q"}
{"event":"node_passed","node_id":"a","cost_usd":0.0123,"usage":{"input_tokens":5,"output_tokens":2},"detail":"1 retry"}
{"event":"node_failed","node_id":"b","cost_unknown":true,"detail":"exit 3: \u001b[31mred"}
{"event":"node_failed","node_id":"c","cause":"cancelled","detail":"b failed"}
{"event":"gate_paused","node_id":"g"}
{"event":"gate_approved","node_id":"g"}
{"event":"tea_time","detail":"milk"}
{"event":"run_finished","outcome":"failed","skipped_count":2}"#;
        let lines: Vec<String> = feed
            .lines()
            .map(|line| watch_line(&serde_json::from_str(line).expect(line), Look::default()))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ▶ run started (planning)
        ▶ run started  $0.2000
        ▶ a  running…
        ↻ a  retry  $0.0100
        ↻ q  feedback round 1/2 — re-running impl → q
        ✓ a  PASS  $0.0123  tokens 5/0/2  1 retry
        ✗ b  FAILED: exit 3: ␛[31mred  cost unknown
        ✗ c  CANCELLED: b failed
        ⏸ g  waiting for a decision
        • g  gate_approved
        • tea_time  milk
        ■ run finished: failed  2 skipped
        ");
    }
}
