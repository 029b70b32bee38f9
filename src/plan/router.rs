//! What a line of a chat is: talk, or work that deserves a graph (FACTS 8.13). The prompt of the one call that decides, and
//! how its reply is read.
//!
//! A reply that is not what was asked for costs nothing but its words: it is shown as talk.

use serde::Deserialize;

use crate::node::policy::Policy;
use crate::plan::call::{self, Asking, Paid, Unanswered};

/// What a line turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Talk, and the answer to it.
    Converse(String),
    /// Work, and the goal that a graph is planned for.
    Graph(String),
}

/// What came of asking what a line is.
#[derive(Debug)]
pub struct Routed {
    /// What it is, or why nobody could tell.
    pub outcome: Result<Route, Unanswered>,
    /// What asking cost.
    pub paid: Paid,
    /// What a person should hear of the call.
    pub warnings: Vec<String>,
}

/// Asks what `message` is, once.
pub fn route(asking: &Asking<'_>, message: &str) -> Routed {
    let mut paid = Paid::default();
    let mut invoked = call::spawn(asking, "router", Policy::planner(), &prompt(message), 1);
    paid.count(&invoked);
    let warnings = std::mem::take(&mut invoked.warnings);
    let outcome = call::replied("the router", &invoked).map(|()| read(&invoked.reply));
    Routed { outcome, paid, warnings }
}

#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
enum Reply {
    Converse {
        #[serde(default)]
        reply: String,
    },
    Graph {
        #[serde(default)]
        goal: String,
    },
}

/// The prompt that asks what `message` is.
pub fn prompt(message: &str) -> String {
    format!(
        "You are the front desk of a program that plans and runs graphs of agent work in the directory that you are in. \
         Somebody types lines to it; decide what the line below is. You may read files to answer, and you change nothing.\n\n\
         Reply with one JSON object and nothing else, without a fence:\n\n\
         {{\"mode\": \"converse\", \"reply\": \"your answer\"}}\n\
         when the line is a question, small talk, or something that you can answer here and now;\n\n\
         {{\"mode\": \"graph\", \"goal\": \"what is to be done, complete in itself\"}}\n\
         only when the line asks for real work that changes or makes something and is worth several steps by agents. Each \
         graph costs money and time. If in doubt, converse: ask what is meant.\n\n\
         The line, word for word:\n\n{message}\n"
    )
}

/// Reads the reply to [`prompt`].
pub fn read(reply: &str) -> Route {
    let object = reply.find('{').zip(reply.rfind('}')).and_then(|(from, to)| reply.get(from..=to));
    match object.and_then(|object| serde_json::from_str(object).ok()) {
        Some(Reply::Graph { goal }) if !goal.trim().is_empty() => Route::Graph(goal.trim().to_owned()),
        Some(Reply::Converse { reply }) if !reply.trim().is_empty() => {
            Route::Converse(reply.trim().to_owned())
        }
        _ => Route::Converse(reply.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_stands_in_the_prompt_word_for_word() {
        let line = "make {\"mode\": \"graph\"} of\ttwo  things";
        assert!(prompt(line).ends_with(&format!("\n\n{line}\n")));
    }

    #[test]
    fn the_text() {
        insta::assert_snapshot!(prompt("(the line)"));
    }

    #[test]
    fn a_reply_is_talk_or_a_goal() {
        let talk = |text: &str| Route::Converse(text.into());
        assert_eq!(read(r#"{"mode":"converse","reply":" Hello. "}"#), talk("Hello."));
        assert_eq!(
            read("Sure:\n```json\n{\"mode\":\"graph\",\"goal\":\"Fix the tests\"}\n```\n"),
            Route::Graph("Fix the tests".into())
        );
    }

    #[test]
    fn what_was_not_asked_for_is_shown_as_it_is() {
        for reply in [
            "Hello there.",
            r#"{"mode":"graph","goal":"  "}"#,
            r#"{"mode":"graph"}"#,
            r#"{"mode":"sing","reply":"la"}"#,
            r#"{"mode":"converse","reply":""}"#,
            r#"{"mode":"converse","reply":"#,
            "} {",
            "{\"mode\":\"converse\",\"reply\":\"a\"} and {\"mode\":\"converse\",\"reply\":\"b\"}",
        ] {
            assert_eq!(read(&format!(" {reply}\n")), Route::Converse(reply.into()), "{reply}");
        }
    }

    proptest! {
        #[test]
        fn no_reply_is_too_odd(reply in r#"(\{|\}|"mode":"(graph|converse)"|"goal":"[a-z ]*"|,|.|\n){0,12}"#) {
            match read(&reply) {
                Route::Graph(goal) => prop_assert!(!goal.is_empty()),
                Route::Converse(_) => {}
            }
        }
    }
}
