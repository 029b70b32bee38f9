//! Reads what a test expects, the value of `expect:`.

use crate::graph::check::Label;
use crate::graph::{Cause, NodeId, Work};
use crate::load::problem::Problem;
use crate::load::values::is_unset;
use crate::load::yaml::tree::Entry;
use crate::load::yaml::{Node as Value, Span, scalar};
use crate::node::runtime::rehearsal::read;
use crate::text::money::{Cost, Money};
use crate::text::regexp::Pattern;
use crate::text::suggest;
use crate::trial::expect::{At, End, Exits, Expected, OfNode, Others, PausedBy, Price, Prompt, WHYS, Words};
use crate::trial::read::fields::Fields;

const EXPECT_KEYS: [&str; 6] = ["exit", "paused_by", "order", "spend", "nodes", "others"];
const NODE_KEYS: [&str; 8] = ["verdict", "cause", "why", "because", "attempts", "rounds", "prompt", "cost"];
const WORDS_KEYS: [&str; 4] = ["contains", "lacks", "equals", "matches"];
/// Every cause that a rehearsal can bring about.
const CAUSES: [Cause; 10] = [
    Cause::NonzeroExit,
    Cause::RunError,
    Cause::Timeout,
    Cause::OutputError,
    Cause::BudgetExceeded,
    Cause::VerifyFailed,
    Cause::ResultMismatch,
    Cause::Cancelled,
    Cause::Setup,
    Cause::Rejected,
];
/// Between the two nodes of an order.
const BEFORE: &str = " before ";

/// Reads the value of `expect:`; what it leaves out is expected to pass.
pub(super) fn expected(fields: &mut Fields<'_>, value: &Value<'_>) -> Expected {
    let mut expected = Expected::everything_passes(value.span);
    for Entry { name, key, value } in fields.entries(value, "expect") {
        match name {
            "exit" => expected.exits = exits(fields, value),
            "paused_by" => expected.paused_by = paused_by(fields, value),
            "order" => order(fields, value, &mut expected),
            "spend" => expected.spend = price(fields, value, "spend"),
            "nodes" => nodes(fields, value, &mut expected),
            "others" => expected.others = others(fields, value),
            name => fields.unknown(key, name, &EXPECT_KEYS),
        }
    }
    expected
}

fn exits(fields: &mut Fields<'_>, value: &Value<'_>) -> Option<At<Exits>> {
    let codes: Vec<u8> = Fields::items(value)
        .iter()
        .filter_map(|item| {
            let code = item.text().and_then(scalar::integer).and_then(|code| u8::try_from(code).ok());
            let code = code.filter(|code| *code <= 2);
            if code.is_none() {
                fields.mismatch(item, "exit", "0 (passed), 1 (failed) or 2 (paused)");
            }
            code
        })
        .collect();
    if codes.is_empty() && value.items().is_some_and(<[_]>::is_empty) {
        fields.problem(value, "exit: the list is empty");
    }
    let exits = match (value.items(), codes.first()) {
        (Some(_), Some(_)) => Exits::Each(codes),
        (None, Some(code)) => Exits::Last(*code),
        (_, None) => return None,
    };
    Some(At::new(value.span, exits))
}

fn paused_by(fields: &mut Fields<'_>, value: &Value<'_>) -> Option<At<Vec<PausedBy>>> {
    let words = Fields::items(value).iter();
    let words: Vec<PausedBy> =
        words.filter_map(|item| fields.word(item, "paused_by", &PausedBy::WORDS)).collect();
    (!words.is_empty()).then(|| At::new(value.span, words))
}

/// Ids are one sequence, whatever stands between them; every `a before b` is a statement of its own.
fn order(fields: &mut Fields<'_>, value: &Value<'_>, expected: &mut Expected) {
    let mut sequence = Vec::new();
    for item in Fields::items(value) {
        let Some(text) = fields.text(item, "order") else { continue };
        match text.split_once(BEFORE) {
            Some((one, other)) => {
                let one = fields.find(item.span, one.trim()).map(|node| node.id.clone());
                let other = fields.find(item.span, other.trim()).map(|node| node.id.clone());
                if let (Some(one), Some(other)) = (one, other) {
                    expected.before.push(At::new(item.span, (one, other)));
                }
            }
            None => sequence.extend(fields.find(item.span, &text).map(|node| node.id.clone())),
        }
    }
    if !sequence.is_empty() {
        expected.order = Some(At::new(value.span, sequence));
    }
}

fn price(fields: &mut Fields<'_>, value: &Value<'_>, key: &str) -> Option<At<Price>> {
    if value.entries().is_some() {
        let mut most = None;
        for Entry { name, key: at, value } in fields.entries(value, key) {
            match name {
                "at_most" => most = known_price(fields, value, "at_most"),
                name => fields.unknown(at, name, &["at_most"]),
            }
        }
        return most.map(|most| At::new(value.span, Price::AtMost(most)));
    }
    match read::cost(value) {
        Some(cost) if cost.is_unknown() => Some(At::new(value.span, Price::Unknown)),
        Some(Cost { known, .. }) => Some(At::new(value.span, Price::Exactly(known))),
        None => {
            fields.mismatch(value, key, &format!("{}, or a mapping with at_most", read::price_words()));
            None
        }
    }
}

fn known_price(fields: &mut Fields<'_>, value: &Value<'_>, key: &str) -> Option<Money> {
    let price = read::cost(value).filter(|cost| !cost.is_unknown());
    if price.is_none() {
        fields.mismatch(value, key, "a price in dollars");
    }
    price.map(|cost| cost.known)
}

fn others(fields: &mut Fields<'_>, value: &Value<'_>) -> Others {
    let mut words = vec![("PASS", Others::Pass), ("any", Others::Any)];
    words.extend(End::WORDS.into_iter().skip(1).map(|(word, end)| (word, Others::All(end))));
    fields.word(value, "others", &words).unwrap_or(Others::Any)
}

fn nodes(fields: &mut Fields<'_>, value: &Value<'_>, expected: &mut Expected) {
    for Entry { name, key, value } in fields.entries(value, "nodes") {
        let Some(node) = fields.find(key.span, name) else { continue };
        let (id, is_gate) = (node.id.clone(), matches!(node.work, Work::Gate));
        fields.label = Some(Label::Id(name.to_owned()));
        let of_node = if value.entries().is_some() {
            of_node(fields, key.span, value, is_gate)
        } else {
            let end = end_word(fields, value).unwrap_or(End::Pass);
            OfNode { end: At::new(value.span, end), attempts: None, rounds: None, prompt: None, cost: None }
        };
        fields.label = None;
        expected.nodes.insert(id, of_node);
    }
}

/// A verdict, or the cause of a FAIL.
fn end_word(fields: &mut Fields<'_>, value: &Value<'_>) -> Option<End> {
    let word = value.text().unwrap_or_default();
    if let Some(cause) = CAUSES.into_iter().find(|cause| cause.as_str() == word) {
        return Some(End::Fail(Some(cause)));
    }
    let end = End::WORDS.into_iter().find(|(known, _)| *known == word);
    if end.is_none() {
        let words = End::WORDS.map(|(word, _)| word);
        let hint = suggest::hint(word, words.into_iter().chain(CAUSES.map(Cause::as_str)));
        let hint =
            hint.unwrap_or_else(|| format!("a cause is one of {}", CAUSES.map(Cause::as_str).join(", ")));
        let wanted = format!("one of {}, the cause of a failure, or a mapping", words.join(", "));
        fields.mismatch(value, "a node", &wanted).hint = Some(hint);
    }
    end.map(|(_, end)| end)
}

fn of_node(fields: &mut Fields<'_>, at: Span, value: &Value<'_>, is_gate: bool) -> OfNode {
    let (mut end, mut cause, mut why, mut because) = (None, None, None, None);
    let mut of_node =
        OfNode { end: At::new(at, End::Pass), attempts: None, rounds: None, prompt: None, cost: None };
    for Entry { name, key, value } in fields.entries(value, "a node") {
        let span = value.span;
        let count = |count: Option<u32>| count.map(|count| At::new(span, count));
        match name {
            "verdict" => {
                end = fields.word(value, "verdict", &End::WORDS).map(|end| At::new(span, end));
            }
            "cause" => {
                let words = CAUSES.map(|cause| (cause.as_str(), cause));
                cause = fields.word(value, "cause", &words).map(|cause| At::new(span, cause));
            }
            "why" => why = fields.word(value, "why", &WHYS).map(|why| At::new(span, why)),
            "because" => because = fields.node(value, "because").map(|node| At::new(span, node)),
            "attempts" => of_node.attempts = count(fields.count(value, "attempts")),
            "rounds" => of_node.rounds = count(fields.count(value, "rounds")),
            "cost" => of_node.cost = price(fields, value, "cost"),
            "prompt" => of_node.prompt = prompt(fields, value),
            name => fields.unknown(key, name, &NODE_KEYS),
        }
        if is_gate && ["attempts", "rounds", "cost", "prompt"].contains(&name) {
            fields.problem(key, format!("{name}: the node is a gate, which runs nothing"));
        }
    }
    of_node.end = conclude(fields, at, end, cause, why, because);
    of_node
}

/// The parts of an end as one; what is said of a failure means one, and likewise of a skip.
fn conclude(
    fields: &mut Fields<'_>,
    at: Span,
    end: Option<At<End>>,
    cause: Option<At<Cause>>,
    why: Option<At<crate::record::event::SkipWhy>>,
    because: Option<At<NodeId>>,
) -> At<End> {
    let skip_at = why.as_ref().map(|why| why.span).or(because.as_ref().map(|node| node.span));
    let part = match (&cause, skip_at) {
        (Some(cause), Some(_)) => {
            fields.tell(Problem::at(
                cause.span,
                "a node that was skipped has no cause, and one that failed no why",
            ));
            return At::new(at, End::Fail(None));
        }
        (Some(cause), None) => Some(At::new(cause.span, End::Fail(Some(cause.value)))),
        (None, Some(span)) => {
            let skipped = End::Skipped { why: why.map(|why| why.value), because: because.map(|id| id.value) };
            Some(At::new(span, skipped))
        }
        (None, None) => None,
    };
    match (end, part) {
        (Some(end), Some(part)) if !end.value.admits(&part.value) => {
            fields
                .tell(Problem::at(part.span, format!("the verdict {} cannot be {}", end.value, part.value)));
            end
        }
        (_, Some(part)) => part,
        (Some(end), None) => end,
        (None, None) => At::new(at, End::Pass),
    }
}

fn prompt(fields: &mut Fields<'_>, value: &Value<'_>) -> Option<Prompt> {
    match value.items() {
        None => Some(Prompt::Last(words(fields, value))),
        Some(items) => Some(Prompt::Each(value.span, items.iter().map(|item| words(fields, item)).collect())),
    }
}

/// What one prompt is compared with: a text that it holds, or a mapping. Nothing is compared with nothing.
fn words(fields: &mut Fields<'_>, value: &Value<'_>) -> Vec<At<Words>> {
    if is_unset(value) {
        return Vec::new();
    }
    if let Some(text) = value.text() {
        return vec![At::new(value.span, Words::Contains(text.to_owned()))];
    }
    let mut words = Vec::new();
    for Entry { name, key, value } in fields.entries(value, "prompt") {
        if !WORDS_KEYS.contains(&name) {
            fields.unknown(key, name, &WORDS_KEYS);
            continue;
        }
        for item in Fields::items(value) {
            let Some(text) = fields.text(item, name) else { continue };
            let read = match name {
                "contains" => Ok(Words::Contains(text)),
                "lacks" => Ok(Words::Lacks(text)),
                "equals" => Ok(Words::Equals(text)),
                _ => Pattern::compile(&text).map(Words::Matches),
            };
            match read {
                Ok(read) => words.push(At::new(item.span, read)),
                Err(wrong) => drop(fields.problem(item, format!("matches: {wrong}"))),
            }
        }
    }
    words
}
