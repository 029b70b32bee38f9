//! The graphs that `omg new` writes: four shapes, filled in with what the person said.
//!
//! A shape is a file in `drafts/`. `@NAME@` and the like stand for values; a line that begins with `@lane`, `@no-lane` or
//! `@check` is there only with (or without) a worktree, or with a command that checks the work. Asks nobody and writes
//! no file.

use std::path::Path;

use super::scalar::scalar;
use crate::text::shell_word::shell_path;

/// What a graph is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One prompt.
    Prompt,
    /// One prompt and a command that judges its work.
    Check,
    /// One prompt, a reviewer, and a bounded loop between them.
    ReviewLoop,
    /// Commands that gather, and one prompt that writes.
    Report,
}

impl Shape {
    /// All of them, the simplest first.
    pub const ALL: [Shape; 4] = [Shape::Prompt, Shape::Check, Shape::ReviewLoop, Shape::Report];

    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Shape::Prompt => "prompt",
            Shape::Check => "check",
            Shape::ReviewLoop => "review-loop",
            Shape::Report => "report",
        }
    }

    /// What it is for, in a line.
    pub fn purpose(self) -> &'static str {
        match self {
            Shape::Prompt => "one prompt does a task",
            Shape::Check => "one prompt does a task, and a command of yours says whether it holds",
            Shape::ReviewLoop => "one prompt does a task, another reviews it, findings go back at most twice",
            Shape::Report => "commands gather facts, one prompt writes a report from them",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.as_str() == word)
    }

    /// Whether a command can check its work.
    pub fn takes_check(self) -> bool {
        matches!(self, Shape::Check | Shape::ReviewLoop)
    }

    /// Whether its work can be done in a worktree.
    pub fn takes_lane(self) -> bool {
        self != Shape::Report
    }

    fn text(self) -> &'static str {
        match self {
            Shape::Prompt => include_str!("drafts/prompt.yaml"),
            Shape::Check => include_str!("drafts/check.yaml"),
            Shape::ReviewLoop => include_str!("drafts/review-loop.yaml"),
            Shape::Report => include_str!("drafts/report.yaml"),
        }
    }
}

/// What a report is made from when nobody says otherwise.
pub const FACTS_DEFAULT: [&str; 2] =
    ["git log -n 40 --date=short --format='%h %ad %an %s'", "git status --short --branch"];

/// What is said of a graph that is to be written. Texts have no line breaks.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What it is for.
    pub shape: Shape,
    /// Its `name:`.
    pub name: String,
    /// The command that checks its work.
    pub check: Option<String>,
    /// The commands that a report is made from.
    pub facts: Vec<String>,
    /// Dollars that one prompt may cost.
    pub budget_usd: f64,
    /// Whether the work is done in a worktree.
    pub has_lane: bool,
}

impl Draft {
    /// The graph's text, for a file that is named `file` on the command line.
    pub fn write(&self, file: &Path) -> String {
        let values = self.values(file);
        let kept = self.shape.text().lines().filter_map(|line| self.keeps(line));
        kept.map(|line| filled(&line, &values) + "\n").collect()
    }

    /// The line without its mark; `None` when it is not for this draft.
    fn keeps(&self, line: &str) -> Option<String> {
        let marks =
            [("@lane", self.has_lane), ("@no-lane", !self.has_lane), ("@check", self.check.is_some())];
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let (word, words) = rest.split_once(' ').unwrap_or((rest, ""));
        match marks.iter().find(|(mark, _)| *mark == word) {
            Some((_, false)) => None,
            Some((_, true)) if words.is_empty() => Some(String::new()),
            Some((_, true)) => Some(format!("{indent}{words}")),
            None => Some(line.to_owned()),
        }
    }

    fn values(&self, file: &Path) -> Vec<(&'static str, String)> {
        let check = self.check.as_deref().unwrap_or_default();
        let (executions, prompts) = self.executions();
        let ids: Vec<String> = (1..=self.facts.len()).map(|number| format!("fact-{number}")).collect();
        vec![
            ("@TITLE@", self.name.clone()),
            ("@FILE@", shell_path(file)),
            ("@NAME@", scalar(&self.name)),
            ("@EXECUTIONS@", executions.to_string()),
            ("@DOLLARS@", format!("{:.2}", self.budget_usd * f64::from(prompts))),
            ("@BUDGET@", self.budget_usd.to_string()),
            ("@GRANTS@", self.grants()),
            ("@IDS@", ids.join(", ")),
            ("@FACTS@", self.nodes(&ids)),
            ("@QUOTES@", self.quotes(&ids)),
            ("@CHECK@", scalar(check)),
            ("@CHECK_TEXT@", check.to_owned()),
        ]
    }

    /// How many nodes run at worst, and how many of them are prompts.
    fn executions(&self) -> (u32, u32) {
        let attempts = if self.check.is_some() { 2 } else { 1 };
        let facts = u32::try_from(self.facts.len()).unwrap_or(u32::MAX);
        match self.shape {
            Shape::Prompt => (1, 1),
            Shape::Check => (attempts, attempts),
            // Two rounds after the first.
            Shape::ReviewLoop => (3 * attempts + 3, 3 * attempts + 3),
            Shape::Report => (facts.saturating_add(1), 1),
        }
    }

    /// Further tools: to commit in a worktree, and to run the check.
    fn grants(&self) -> String {
        let commits = [r#"Bash(git add *)"#, r#"Bash(git commit *)"#].map(str::to_owned);
        let program = self.check.as_deref().and_then(|check| check.split(' ').next());
        let is_plain = |word: &&str| {
            word.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c)) && !word.is_empty()
        };
        let runs = program.filter(is_plain).map(|program| format!("Bash({program} *)"));
        let grants = commits.into_iter().filter(|_| self.has_lane).chain(runs);
        grants.map(|grant| format!(", {grant:?}")).collect()
    }

    fn nodes(&self, ids: &[String]) -> String {
        let node = |(id, command): (&String, &String)| {
            format!("- id: {id}\n    type: command\n    command: {}\n    timeout: 1m\n", scalar(command))
        };
        ids.iter().zip(&self.facts).map(node).collect::<Vec<_>>().join("\n  ")
    }

    fn quotes(&self, ids: &[String]) -> String {
        let quote = |(id, command): (&String, &String)| {
            format!(
                "{id}, from the command: {command}\n      <{id}>\n      {{{{ artifacts.{id} | inline }}}}\n      </{id}>\n"
            )
        };
        ids.iter().zip(&self.facts).map(quote).collect::<Vec<_>>().join("\n      ")
    }
}

/// The line with its values. What was filled in is not read again.
fn filled(line: &str, values: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        match values.iter().find(|(mark, _)| from.starts_with(mark)) {
            Some((mark, value)) => {
                out.push_str(value);
                rest = &from[mark.len()..];
            }
            None => {
                out.push('@');
                rest = &from[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(shape: Shape) -> Draft {
        let facts = FACTS_DEFAULT.map(str::to_owned).to_vec();
        Draft { shape, name: "@NAME@ x".into(), check: None, facts, budget_usd: 0.5, has_lane: false }
    }

    #[test]
    fn every_mark_of_a_shape_is_known() {
        for shape in Shape::ALL {
            let text = Draft { name: "x".into(), ..draft(shape) }.write(Path::new("x.yaml"));
            let with = Draft { name: "x".into(), check: Some("true".into()), has_lane: true, ..draft(shape) };
            for text in [text, with.write(Path::new("x.yaml"))] {
                assert!(!text.contains('@'), "{text}");
            }
        }
    }

    #[test]
    fn what_was_filled_in_is_not_filled_in_again() {
        let text = draft(Shape::Prompt).write(Path::new("@BUDGET@.yaml"));
        assert!(text.contains("\nname: '@NAME@ x'\n") && text.contains("omg run @BUDGET@.yaml"), "{text}");
    }

    #[test]
    fn the_program_of_a_check_is_granted_where_it_is_a_plain_word() {
        for (check, grant) in [
            ("cargo test", Some(r#""Bash(cargo *)""#)),
            ("./check.sh", Some(r#""Bash(./check.sh *)""#)),
            ("(a && b)", None),
            ("A=1 make", None),
        ] {
            let draft = Draft { check: Some(check.into()), ..draft(Shape::Check) };
            let granted = draft.grants();
            assert_eq!(granted, grant.map(|grant| format!(", {grant}")).unwrap_or_default(), "{check}");
        }
    }
}
