//! The event lines of `codex exec --json`, read as they arrive (CLI-PROTOCOL 3.2, FACTS 5.4).

use serde::Deserialize;
use serde_json::Value;

use crate::node::runtime::lenient::if_understood;
use crate::process::capture::OUTPUT_BYTES_MAX;
use crate::text::sanitize::one_line;
use crate::text::usage::Usage;

/// What was said so far.
#[derive(Debug, Default)]
pub struct Events {
    partial: Vec<u8>,
    lines: usize,
    thread: Option<String>,
    reply: Option<String>,
    usage: Option<Usage>,
    ending: Option<Ending>,
    fault: Option<String>,
    is_endless: bool,
}

/// How the turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a reply.
    Completed,
    /// With an error: the CLI's words, one line.
    Failed(String),
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type", default, deserialize_with = "if_understood")]
    kind: String,
    #[serde(default, deserialize_with = "if_understood")]
    thread_id: String,
    #[serde(default)]
    item: Option<Value>,
    #[serde(default, deserialize_with = "if_understood")]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

impl Events {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&b| b == b'\n') {
            self.partial.extend_from_slice(&rest[..end]);
            self.take_line();
            rest = &rest[end + 1..];
        }
        if self.partial.len() + rest.len() > OUTPUT_BYTES_MAX {
            let limit = OUTPUT_BYTES_MAX >> 20;
            self.fault.get_or_insert(format!("a line of the output is longer than {limit} MB"));
            (self.partial, self.is_endless) = (Vec::new(), true);
            return;
        }
        self.partial.extend_from_slice(rest);
    }

    /// The thread, once it is known.
    pub fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// The last completed message.
    pub fn reply(&self) -> &str {
        self.reply.as_deref().unwrap_or_default()
    }

    /// The whole thread's usage, once the turn completed.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Whether nothing that matters follows: the turn has ended, or a line never does.
    pub fn is_over(&self) -> bool {
        self.ending.is_some() || self.is_endless
    }

    /// Takes the last line when it lacks its newline (case B10); call it after the last byte.
    pub fn end_of_output(&mut self) {
        if !self.partial.is_empty() {
            self.take_line();
        }
    }

    /// How the turn ended.
    ///
    /// # Errors
    /// Why it cannot be told, for a person.
    pub fn finish(self) -> Result<Ending, String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.lines == 0 {
            return Err("no output".to_owned());
        }
        if self.thread.is_none() {
            return Err("the output names no thread".to_owned());
        }
        match self.ending {
            None => Err("the output holds no end of the turn".to_owned()),
            Some(Ending::Completed) if self.reply.as_deref().unwrap_or_default().trim().is_empty() => {
                Err("the reply is empty".to_owned())
            }
            Some(ending) => Ok(ending),
        }
    }

    fn take_line(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        self.lines += 1;
        let text = String::from_utf8_lossy(&bytes);
        match serde_json::from_str::<Line>(text.trim_end_matches('\r')) {
            Ok(line) => self.take_event(line),
            Err(error) => {
                self.fault.get_or_insert(format!("line {} of the output is not JSON: {error}", self.lines));
            }
        }
    }

    fn take_event(&mut self, line: Line) {
        match line.kind.as_str() {
            "thread.started" if line.thread_id.is_empty() => {
                self.fault.get_or_insert("the output begins a thread without an id".to_owned());
            }
            "thread.started" => {
                self.thread.get_or_insert(line.thread_id);
            }
            "item.completed" => self.take_item(line.item.as_ref()),
            "turn.completed" => {
                self.usage = line.usage;
                self.ending = Some(Ending::Completed);
            }
            "turn.failed" => self.ending = Some(Ending::Failed(failure(line.error.as_ref()))),
            // Others, `error` among them, tell of progress or of a retry (CLI-PROTOCOL 1b).
            _ => {}
        }
    }

    fn take_item(&mut self, item: Option<&Value>) {
        let Some(item) = item else { return };
        if item.get("type").and_then(Value::as_str) == Some("agent_message") {
            self.reply = item.get("text").and_then(Value::as_str).map(str::to_owned);
        }
    }
}

fn failure(error: Option<&Value>) -> String {
    let words = match error {
        Some(Value::String(words)) => words.clone(),
        Some(Value::Object(fields)) => match fields.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => Value::Object(fields.clone()).to_string(),
        },
        Some(Value::Null) | None => "the turn failed without saying why".to_owned(),
        Some(other) => other.to_string(),
    };
    one_line(&words).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = r#"{"type":"thread.started","thread_id":"t"}"#;
    const DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":5}}"#;

    fn message(text: &str) -> String {
        format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{text}"}}}}"#)
    }

    fn events(text: &str, chunk: usize) -> Events {
        let mut events = Events::default();
        for part in text.as_bytes().chunks(chunk) {
            events.feed(part);
        }
        events.end_of_output();
        events
    }

    #[test]
    fn b10_the_last_message_counts_whatever_the_chunks_and_without_a_last_newline() {
        let text = [
            THREAD,
            &message("first"),
            r#"{"type":"error","message":"Reconnecting... 1/5"}"#,
            &message("PASS"),
            DONE,
        ]
        .join("\n");
        for chunk in [1, 7, 4096] {
            let read = events(&text, chunk);
            assert_eq!((read.reply(), read.thread()), ("PASS", Some("t")));
            assert_eq!(read.finish(), Ok(Ending::Completed));
        }
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let check = |lines: &[&str], part: &str| {
            let error = events(&lines.join("\n"), 4096).finish().expect_err(part);
            assert!(error.contains(part), "{error}");
        };
        check(&[], "no output");
        check(&[THREAD, "", DONE], "line 2");
        check(&[THREAD, "oops", DONE], "line 2");
        check(&[DONE], "no thread");
        check(&[THREAD, &message("x")], "no end");
        check(&[THREAD, &message(" "), DONE], "empty");
    }

    #[test]
    fn a_failure_is_told_in_the_clis_own_words() {
        for (error, words) in [
            (
                r#"{"message":"You’ve hit your usage limit.\nTry again"}"#,
                "You’ve hit your usage limit. Try again",
            ),
            (r#""plain""#, "plain"),
            ("null", "the turn failed without saying why"),
        ] {
            let text = format!("{THREAD}\n{{\"type\":\"turn.failed\",\"error\":{error}}}\n");
            assert_eq!(events(&text, 64).finish(), Ok(Ending::Failed(words.to_owned())));
        }
    }
}
