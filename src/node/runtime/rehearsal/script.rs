//! A rehearsal's script as values: what each attempt of each node says (DECISIONS 24).
//!
//! Knows no file: `read` decodes one, a test builds one from entries. What no entry says has a default that passes.

use std::collections::HashMap;
use std::time::Duration;

use crate::graph::NodeId;
use crate::text::money::Cost;
use crate::text::usage::Usage;

/// What is said per node, one entry an attempt; the last one repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    nodes: HashMap<NodeId, Vec<Entry>>,
}

impl Script {
    /// A script of these entries.
    pub fn new(nodes: impl IntoIterator<Item = (NodeId, Vec<Entry>)>) -> Self {
        Script { nodes: nodes.into_iter().collect() }
    }

    /// This script, and what `other` says of the nodes that it leaves out.
    #[must_use]
    pub fn before(mut self, other: &Script) -> Self {
        for (node, entries) in &other.nodes {
            self.nodes.entry(node.clone()).or_insert_with(|| entries.clone());
        }
        self
    }

    /// All entries of a node, none when it is not in the script.
    pub fn entries(&self, node: &NodeId) -> &[Entry] {
        self.nodes.get(node).map_or(&[], Vec::as_slice)
    }

    /// The entry for an attempt, counted from 0 over everything that was ever spawned for the node.
    pub fn entry(&self, node: &NodeId, attempt: usize) -> Option<&Entry> {
        let entries = self.entries(node);
        entries.get(attempt).or(entries.last())
    }
}

/// One attempt of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// How it ends.
    pub ending: Ending,
    /// What it costs, however it ends; nothing unless the script says so.
    pub cost: Cost,
    /// Its tokens.
    pub tokens: Usage,
    /// How long it takes.
    pub delay: Duration,
    /// What its evidence command shows.
    pub verify: Check,
}

impl Entry {
    /// An attempt that answers `reply` and exits with 0.
    pub fn reply(reply: impl Into<String>) -> Self {
        Self::ending(Ending::Answers { reply: Some(reply.into()), exit: 0 })
    }

    /// An attempt that ends in this way, at once and for nothing.
    pub fn ending(ending: Ending) -> Self {
        Entry { ending, ..Entry::default() }
    }

    /// Whether it answers without saying what.
    pub(crate) fn needs_default(&self) -> bool {
        matches!(self.ending, Ending::Answers { reply: None, .. })
    }
}

/// How an attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It answers.
    Answers {
        /// The reply, or a command's standard output; `None` takes the default.
        reply: Option<String>,
        /// The exit code.
        exit: i32,
    },
    /// The subscription's limit is spent, in these words.
    Limited(String),
    /// Its time runs out.
    TimesOut,
    /// It cannot be started, in these words.
    CannotStart(String),
    /// The set-up of its worktree fails with these words, so that it is never started.
    SetUpFails(String),
}

impl Default for Ending {
    fn default() -> Self {
        Ending::Answers { reply: None, exit: 0 }
    }
}

/// What an evidence command shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// What is expected of it, its pattern included.
    #[default]
    Passes,
    /// Another exit code than the expected one.
    Fails,
    /// This, to be judged like any command's. What is not said is as expected.
    Shows {
        /// The exit code.
        exit: Option<i32>,
        /// Both outputs together.
        output: Option<String>,
    },
    /// Its time runs out, after this output.
    TimesOut(String),
    /// It cannot be started, in these words.
    CannotStart(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_repeats() {
        let id = |text| NodeId::parse(text).expect("an id");
        let script = Script::new([(id("a"), vec![Entry::reply("one"), Entry::reply("two")])]);
        let said = |attempt| script.entry(&id("a"), attempt).cloned();
        assert_eq!([0, 1, 2, 9].map(said), ["one", "two", "two", "two"].map(|text| Some(Entry::reply(text))));
        assert_eq!(script.entry(&id("b"), 0), None);
    }
}
