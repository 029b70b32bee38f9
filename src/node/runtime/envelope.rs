//! What `claude -p --output-format json` prints (CLI-PROTOCOL 1, 2.2, 2.3).
//!
//! One object; with the person's `verbose` setting an array of events; as a stream one object a line. In the last
//! two the last element of type `result` counts, since background work may print a second one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::node::runtime::lenient::if_understood;
use crate::text::sanitize::one_line;
use crate::text::usage::Usage;

/// How an error begins that is meant for the CLI's own developers.
const RIDDLE: &str = "[ede_diagnostic]";

const NO_RESULT: &str = "the output holds no result";

/// The fields of a result that are read; all others are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// `success`, `error_max_budget_usd`, …
    #[serde(deserialize_with = "or_default")]
    pub subtype: String,
    /// Whether the CLI reports an error; an API failure does so under `success`.
    #[serde(deserialize_with = "or_default")]
    pub is_error: bool,
    /// The reply, or the words of an API failure; absent on `error_*`.
    #[serde(deserialize_with = "if_understood")]
    pub result: String,
    /// The words of an `error_*`.
    #[serde(deserialize_with = "if_understood")]
    pub errors: Vec<String>,
    /// The session.
    #[serde(deserialize_with = "or_default")]
    pub session_id: String,
    /// Dollars; of the whole session after a resume on newer versions.
    #[serde(deserialize_with = "if_understood")]
    pub total_cost_usd: Option<f64>,
    /// Tokens of this invocation.
    #[serde(deserialize_with = "if_understood")]
    pub usage: Tokens,
    /// `usage_limit_reached` and others, on newer versions.
    #[serde(deserialize_with = "if_understood")]
    pub api_error: String,
    /// The HTTP status of an API failure.
    #[serde(deserialize_with = "if_understood")]
    pub api_error_status: Option<i64>,
    /// The tool calls that were refused; the exit code and `is_error` tell nothing of them.
    #[serde(deserialize_with = "if_understood")]
    pub permission_denials: Vec<Denial>,
    /// Tokens by model; of the whole session after a resume on newer versions.
    #[serde(rename = "modelUsage", deserialize_with = "if_understood")]
    pub model_usage: BTreeMap<String, ModelTokens>,
}

/// A tool call that was refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// What it was called with.
    #[serde(deserialize_with = "if_understood")]
    pub tool_input: ToolInput,
}

/// What a tool was called with, as far as a person is told of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolInput {
    /// What a shell was to run.
    pub command: String,
    /// The skill that was to be used.
    pub skill: String,
}

/// Tokens of one model.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelTokens {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl ModelTokens {
    fn usage(self) -> Usage {
        Tokens {
            input_tokens: self.input_tokens,
            cache_creation_input_tokens: self.cache_creation_input_tokens,
            cache_read_input_tokens: self.cache_read_input_tokens,
            output_tokens: self.output_tokens,
        }
        .usage()
    }
}

/// Tokens as the API counts them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Tokens {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl Tokens {
    /// The counts in the feed's terms: cached tokens are part of the input.
    pub fn usage(self) -> Usage {
        Usage {
            input_tokens: self
                .input_tokens
                .saturating_add(self.cache_creation_input_tokens)
                .saturating_add(self.cache_read_input_tokens),
            cached_input_tokens: self.cache_read_input_tokens,
            output_tokens: self.output_tokens,
            reasoning_output_tokens: 0,
        }
    }
}

/// `null` is the same as absent.
fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: serde::Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Envelope {
    /// Reads everything that was printed.
    ///
    /// # Errors
    /// Why it cannot be read, for a person.
    pub fn parse(stdout: &str) -> Result<Self, String> {
        let text = stdout.trim();
        if text.is_empty() {
            return Err("no output".to_owned());
        }
        if text.starts_with('[') {
            let events: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| not_json(&e))?;
            return last_result(events.into_iter().map(RawValue::get));
        }
        match serde_json::from_str::<Kind<'_>>(text) {
            Ok(Kind { kind: Some(kind) }) if kind != "result" => Err(NO_RESULT.to_owned()),
            Ok(_) => serde_json::from_str(text).map_err(|error| not_json(&error)),
            Err(error) if text.contains('\n') => last_result(text.lines()).map_err(|_| not_json(&error)),
            Err(error) => Err(not_json(&error)),
        }
    }

    /// The CLI's own words on a failure, one line: errors, else the result of an error (CLI-PROTOCOL 1.7).
    pub fn failure(&self) -> Option<String> {
        if !self.errors.is_empty() {
            let words = one_line(&self.errors.join(" / ")).into_owned();
            let is_riddle = self.errors.iter().all(|error| error.starts_with(RIDDLE));
            return Some(if is_riddle {
                format!("the model's answer broke off, most likely by an error of the API ({words})")
            } else {
                words
            });
        }
        self.is_error.then(|| one_line(&self.result).into_owned())
    }

    /// The tokens of an invocation that began its session. A stop at the budget leaves `usage` at 0, and only the
    /// counts by model tell (CLI-PROTOCOL 1b).
    pub fn fresh_usage(&self) -> Usage {
        let stated = self.usage.usage();
        if stated.is_zero() { self.model_usage.values().map(|model| model.usage()).sum() } else { stated }
    }

    /// Whether the CLI stopped at `--max-budget-usd`.
    pub fn is_over_budget(&self) -> bool {
        self.subtype == "error_max_budget_usd"
    }
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<std::borrow::Cow<'a, str>>,
}

fn last_result<'a>(events: impl DoubleEndedIterator<Item = &'a str>) -> Result<Envelope, String> {
    for event in events.rev() {
        let Ok(Kind { kind }) = serde_json::from_str(event) else { continue };
        if kind.as_deref() == Some("result") {
            return serde_json::from_str(event).map_err(|e| not_json(&e));
        }
    }
    Err(NO_RESULT.to_owned())
}

fn not_json(error: &serde_json::Error) -> String {
    format!("the output is not the JSON that was asked for: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"PASS","session_id":"s","total_cost_usd":0.01,"usage":{"input_tokens":1,"cache_read_input_tokens":4,"output_tokens":2}}"#;

    #[test]
    fn an_object_an_array_and_lines_are_all_read() {
        let noise = r#"{"type":"assistant","message":{"usage":null},"result":{"not":"a string"}}"#;
        for text in [
            format!("{RESULT}\n"),
            format!("[{noise},{RESULT}]"),
            format!("{noise}\n{RESULT}\n"),
            format!("[{},{noise},{RESULT}]", RESULT.replace("PASS", "an earlier one")),
        ] {
            let envelope = Envelope::parse(&text).expect("a result");
            assert_eq!(envelope.result, "PASS");
            assert_eq!(envelope.usage.usage().input_tokens, 5);
        }
    }

    #[test]
    fn anything_else_says_why() {
        let check = |text: &str, part: &str| {
            let error = Envelope::parse(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        };
        check("  \n", "no output");
        check("Execution error", "not the JSON");
        check("[]", "no result");
        check(r#"{"is_error": "no"}"#, "invalid type");
    }

    #[test]
    fn a_price_survives_a_reply_of_another_shape_and_a_reply_a_price() {
        let envelope =
            Envelope::parse(r#"{"result":5,"errors":"x","total_cost_usd":0.05}"#).expect("a result");
        assert_eq!((envelope.result.as_str(), envelope.total_cost_usd), ("", Some(0.05)));
        let envelope = Envelope::parse(r#"{"result":"PASS","total_cost_usd":"0.05"}"#).expect("a result");
        assert_eq!((envelope.result.as_str(), envelope.total_cost_usd), ("PASS", None));
    }

    #[test]
    fn a_failure_is_told_in_the_clis_own_words() {
        let failure = |text: &str| Envelope::parse(text).expect("a result").failure();
        assert_eq!(failure(r#"{"is_error":true,"errors":["a","b"],"result":"r"}"#).as_deref(), Some("a / b"));
        assert_eq!(
            failure(r#"{"is_error":true,"result":"You've hit\nyour limit"}"#).as_deref(),
            Some("You've hit your limit")
        );
        assert_eq!(failure(RESULT), None);
        let riddle = failure(r#"{"is_error":true,"errors":["[ede_diagnostic] result_type=assistant"]}"#);
        assert!(riddle.is_some_and(|words| words.starts_with("the model's answer broke off")));
    }

    #[test]
    fn a_stop_at_the_budget_is_counted_by_model() {
        let stopped = r#"{"subtype":"error_max_budget_usd","usage":{"input_tokens":0,"output_tokens":0},
            "modelUsage":{"a":{"inputTokens":10,"cacheReadInputTokens":5,"outputTokens":2,"costUSD":3},"b":{"outputTokens":1}}}"#;
        let usage = Envelope::parse(stopped).expect("a result").fresh_usage();
        assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (15, 5, 3));
        assert_eq!(Envelope::parse(RESULT).expect("a result").fresh_usage().input_tokens, 5);
    }

    #[test]
    fn what_only_adds_to_the_story_may_be_of_any_shape() {
        let odd = r#"{"result":"ok","permission_denials":"none","modelUsage":[1],"usage":null}"#;
        let envelope = Envelope::parse(odd).expect("a result");
        assert_eq!((envelope.result.as_str(), envelope.permission_denials.len()), ("ok", 0));
        let denied =
            r#"{"result":"ok","permission_denials":[{"tool_name":"Bash","tool_input":{"command":"x"}}]}"#;
        assert_eq!(Envelope::parse(denied).expect("a result").permission_denials[0].tool_name, "Bash");
    }
}
