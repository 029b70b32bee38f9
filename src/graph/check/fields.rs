//! The fields of one node that have rules of their own: words, amounts, times.

use std::time::Duration;

use super::{At, Rule, not_one_of};
use crate::graph::Cause;
use crate::graph::node::{self, Handoff, Model, PermissionMode, REPEATS_MAX, Retry, Work};
use crate::text::duration;
use crate::text::money::Money;
use crate::text::suggest;

const DURATION_HINT: &str = "write numbers with units, as in 90s, 10m or 1h30m";

/// What the node does; a wrong word is a fault, and then it counts as the default.
pub(super) fn work(at: &mut At<'_, '_>) -> Work {
    let raw = at.raw();
    let kind = word(at, "type", raw.kind.as_deref(), node::KINDS).unwrap_or(node::KIND_MODEL);
    let handoff = word(at, "handoff", raw.handoff.as_deref(), Handoff::ALL.map(Handoff::as_str));
    let modes = PermissionMode::ALL.map(PermissionMode::as_str);
    let mode = word(at, "permission_mode", raw.permission_mode.as_deref(), modes);
    let budget = budget(at);
    for (key, value) in [("agent", &raw.agent), ("model", &raw.model), ("effort", &raw.effort)] {
        if let Some(fault) = spaces(key, value.as_deref()) {
            at.fault(Rule::Spaces, key, fault);
        }
    }
    match kind {
        node::KIND_GATE => Work::Gate,
        node::KIND_COMMAND => Work::Command(raw.command.clone().unwrap_or_default()),
        _ => Work::Model(Box::new(Model {
            prompt: raw.prompt.clone().unwrap_or_default(),
            allowed_tools: raw.allowed_tools.clone(),
            permission_mode: mode.and_then(PermissionMode::parse),
            budget,
            handoff: match handoff {
                Some(word) if word == Handoff::Session.as_str() => Handoff::Session,
                _ => Handoff::Artifact,
            },
            agent: declared(raw.agent.as_deref()),
            model: declared(raw.model.as_deref()),
            effort: declared(raw.effort.as_deref()),
        })),
    }
}

/// A text field, of which the empty one counts as absent.
pub(super) fn declared(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What is wrong when a name begins or ends with white space.
pub(super) fn spaces(key: &str, value: Option<&str>) -> Option<String> {
    let value = value?;
    (value != value.trim()).then(|| format!("{key} {value:?} begins or ends with white space"))
}

fn word<const N: usize>(
    at: &mut At<'_, '_>,
    key: &'static str,
    word: Option<&str>,
    known: [&'static str; N],
) -> Option<&'static str> {
    let word = word.filter(|word| !word.is_empty())?;
    let found = known.into_iter().find(|candidate| *candidate == word);
    if found.is_none() {
        at.fault(Rule::Words, key, format!("{key}: {}", not_one_of(word, known.into_iter())))
            .hint_if_any(suggest::hint(word, known));
    }
    found
}

fn budget(at: &mut At<'_, '_>) -> Option<Money> {
    let usd = at.raw().budget_usd.filter(|usd| *usd != 0.0)?;
    let amount = Money::from_usd(usd).filter(|amount| !amount.is_zero());
    if amount.is_none() {
        at.fault(Rule::Budget, "budget_usd", format!("budget_usd is {usd}, which is no amount to spend"))
            .hint("write dollars, as in 0.50, or leave it out for no bound");
    }
    amount
}

/// `retry`.
pub(super) fn retry(at: &mut At<'_, '_>) -> Retry {
    let Some(raw) = &at.raw().retry else { return Retry::default() };
    let max = raw.max.unwrap_or(0);
    let bounded = u32::try_from(max).ok().filter(|max| *max <= REPEATS_MAX);
    if bounded.is_none() {
        at.fault(Rule::Retry, "retry.max", format!("retry.max is {max}, which is not 0 to {REPEATS_MAX}"));
    }
    let words = raw.on.as_deref().unwrap_or_default();
    if words.is_empty() && max > 0 {
        at.fault(Rule::Retry, "retry.on", "retry.max without retry.on retries nothing")
            .hint("name the causes, as in on: [nonzero_exit, timeout]");
    }
    let known = || Cause::RETRYABLE.into_iter().map(Cause::as_str);
    let mut on: Vec<Cause> = Vec::new();
    for (item, word) in words.iter().enumerate() {
        match Cause::retryable_from(word) {
            Some(cause) if !on.contains(&cause) => on.push(cause),
            Some(_) => {}
            None => {
                at.fault(Rule::Retry, "retry.on", format!("retry.on: {}", not_one_of(word, known())))
                    .hint_if_any(suggest::hint(word, known()))
                    .item(item);
            }
        }
    }
    Retry { max: bounded.unwrap_or(0), on }
}

/// `timeout`.
pub(super) fn timeout(at: &mut At<'_, '_>) -> Option<Duration> {
    time(at, Rule::Timeout, "timeout", "timeout", at.raw().timeout.as_deref(), None)
}

/// A time that must be more than nothing and at most `longest`; the empty text counts as absent.
pub(super) fn time(
    at: &mut At<'_, '_>,
    rule: Rule,
    key: &'static str,
    name: &str,
    text: Option<&str>,
    longest: Option<Duration>,
) -> Option<Duration> {
    let text = text.filter(|text| !text.is_empty())?;
    let wrong = match duration::parse(text) {
        Err(error) => {
            at.fault(rule, key, format!("{name} {text:?} is not a duration: {error}")).hint(DURATION_HINT);
            return None;
        }
        Ok(time) => match (time.positive(), longest) {
            (None, _) => format!("{name} {text:?} is not more than nothing"),
            (Some(time), Some(longest)) if time > longest => {
                format!("{name} {text:?} is longer than {}", duration::exact(longest))
            }
            (time, _) => return time,
        },
    };
    at.fault(rule, key, wrong);
    None
}

/// No text that goes to a program may hold a NUL byte (case C16).
pub(super) fn nul(at: &mut At<'_, '_>) {
    let raw = at.raw();
    let verify = raw.success_check.verify.as_ref();
    let texts = [
        ("prompt", raw.prompt.as_deref()),
        ("command", raw.command.as_deref()),
        ("cwd", raw.cwd.as_deref()),
        ("setup", raw.setup.as_deref()),
        ("agent", raw.agent.as_deref()),
        ("model", raw.model.as_deref()),
        ("effort", raw.effort.as_deref()),
        ("success_check.verify.command", verify.map(|verify| verify.command.as_str())),
        ("success_check.verify.cwd", verify.and_then(|verify| verify.cwd.as_deref())),
    ];
    let tools = raw.allowed_tools.iter().flatten().map(|tool| ("allowed_tools", Some(tool.as_str())));
    let mut last = "";
    for (key, text) in texts.into_iter().chain(tools) {
        if text.is_some_and(|text| text.as_bytes().contains(&0)) && key != last {
            last = key;
            at.fault(Rule::Nul, key, format!("{key} holds a NUL byte, which no program can be given"));
        }
    }
}
