//! An independent reader of run directories, written from the run-feed contract alone: it shares no type and no code
//! with the program. Tests call [`check_run_dir`] on what a run left; [`violations`] says what is broken, in words.

mod feed;
mod files;
mod snapshot;

use std::path::Path;

use serde_json::Value;

/// Fails the test when the run directory at `path` breaks a promise of the contract.
pub(crate) fn check_run_dir(path: &Path) {
    let found = violations(path);
    assert!(found.is_empty(), "{} breaks the run-feed contract:\n  {}", path.display(), found.join("\n  "));
}

/// Every promise that the run directory at `path` breaks.
pub(crate) fn violations(path: &Path) -> Vec<String> {
    let mut faults = Faults::default();
    let run_id = path.file_name().unwrap().to_str().unwrap();
    let story = feed::read(&path.join("events.jsonl"), run_id, &mut faults);
    let snapshot = snapshot::read(&path.join("state.json"), run_id, &mut faults);
    if let Some(snapshot) = &snapshot {
        snapshot::compare(snapshot, &story, &mut faults);
    }
    files::check(path, snapshot.as_ref(), !story.open, &mut faults);
    faults.0
}

/// What was found to be broken.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }
}

/// What was paid for, as the contract says it is to be summed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Paid {
    billionths: i64,
    unknown: bool,
    tokens: [u64; 4],
}

const TOKENS: [&str; 4] = ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"];

impl Paid {
    fn of(cost: &Value, unknown: &Value, usage: &Value) -> Self {
        Paid {
            billionths: (cost.as_f64().unwrap_or(0.0) * 1e9).round() as i64,
            unknown: unknown == &Value::Bool(true),
            tokens: TOKENS.map(|name| usage[name].as_u64().unwrap_or(0)),
        }
    }

    fn add(&mut self, other: &Paid) {
        self.billionths += other.billionths;
        self.unknown |= other.unknown;
        for (sum, more) in self.tokens.iter_mut().zip(other.tokens) {
            *sum += more;
        }
    }
}

/// The text under `key`, empty when it is absent.
fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or("")
}

/// Whether the keys of `object` that stand in `order` stand in that order.
fn is_ordered(object: &Value, order: &[&str]) -> bool {
    let keys = object.as_object().into_iter().flat_map(|members| members.keys());
    keys.filter_map(|key| order.iter().position(|known| known == key)).is_sorted()
}

/// Whether a value is one that the contract leaves out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}
