//! Where everything lies: `$OMG_HOME`, run ids and the names inside a run directory (RUN-FEED, FACTS 6.1).

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::graph::NodeId;

/// The base directory, absolute: `$OMG_HOME`, else `$HOME/.oh-my-graph`, else `.oh-my-graph` where the command runs.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// A base at `path`, which is made absolute against the current directory.
    pub fn new(path: &Path) -> Self {
        Home(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()))
    }

    /// The base that the environment names, given the values of `OMG_HOME` and `HOME`. An empty value names nothing.
    pub fn from_env(omg_home: Option<&OsStr>, home: Option<&OsStr>) -> Self {
        let named = |value: Option<&OsStr>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = named(omg_home)
            .unwrap_or_else(|| named(home).unwrap_or_else(|| PathBuf::from(".")).join(".oh-my-graph"));
        Home::new(&base)
    }

    /// Whether a command that is typed with only `HOME` set, to this value, finds another base.
    pub fn must_be_named(&self, home: Option<&OsStr>) -> bool {
        // Without a home the base depends on where the command is typed.
        home.is_none_or(OsStr::is_empty) || Home::from_env(None, home).0 != self.0
    }

    /// The base itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory that holds one directory a run.
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// The directory of plans that belong to no run: previews, and refused replies of commands that make no run.
    pub fn plans(&self) -> PathBuf {
        self.0.join("plans")
    }

    /// The directory of what can be made anew at any time (internal).
    pub fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    /// The lines that were typed into chats (internal).
    pub fn typed(&self) -> PathBuf {
        self.cache().join("chat-history")
    }

    /// The directory of the private copies that nodes are started with (internal).
    pub fn staged(&self) -> PathBuf {
        self.0.join("staged")
    }

    /// The directory of `run`.
    pub fn run(&self, run: &RunId) -> RunDir {
        RunDir(self.runs().join(run.as_str()))
    }
}

/// A run's id: one path element that begins with a digit, `YYYYMMDD-HHMMSS.nnnnnnnnn-k` when this program mints it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    /// Builds an id from what a person typed or a directory is called; `None` unless it is one safe path element.
    pub fn parse(text: &str) -> Option<Self> {
        crate::graph::id::is_segment(text).then(|| RunId(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// One run's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// The directory at `path`.
    pub fn new(path: PathBuf) -> Self {
        RunDir(path)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The snapshot.
    pub fn snapshot(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// The feed.
    pub fn feed(&self) -> PathBuf {
        self.0.join("events.jsonl")
    }

    /// The script of a rehearsal, for its later legs (DECISIONS 24, internal).
    pub fn script(&self) -> PathBuf {
        self.0.join("rehearsal.yaml")
    }

    /// The plan of a planned run, as it was bought and checked; a graph file.
    pub fn plan(&self) -> PathBuf {
        self.0.join("graph.json")
    }

    /// The reply of a planner that was refused, kept because it was paid for. Never called a graph, since none may run it.
    pub fn rejected(&self) -> PathBuf {
        self.0.join("rejected.json")
    }

    /// What was paid for a plan that is still being bought (internal).
    pub fn planning_note(&self) -> PathBuf {
        self.0.join("planning.json")
    }

    /// The goal of a planned run, from before its planner is asked.
    pub fn goal(&self) -> PathBuf {
        self.0.join("goal.json")
    }

    /// What the judge of a goal's cycle said of the run.
    pub fn assessment(&self) -> PathBuf {
        self.0.join("assess.json")
    }

    /// The lock.
    pub fn lock(&self) -> PathBuf {
        self.0.join("resume.lock")
    }

    /// The directory of the run's git worktrees (internal).
    pub fn worktrees(&self) -> PathBuf {
        self.0.join("worktrees")
    }

    /// What the agents that a planned run staged are recorded as. Nothing lies there: each spawn reads a copy of its own
    /// (docs/adr/0009).
    pub fn agents_plugin(&self) -> PathBuf {
        self.0.join("agents-plugin")
    }

    /// The same of its skills.
    pub fn skills_plugin(&self) -> PathBuf {
        self.0.join("skills-plugin")
    }

    /// The record of the agents that were staged; nothing is ever staged from it.
    pub fn agents_manifest(&self) -> PathBuf {
        self.0.join("agents-plugin.manifest.json")
    }

    /// The record of the skills that were staged; nothing is ever staged from it.
    pub fn skills_manifest(&self) -> PathBuf {
        self.0.join("skills-plugin.manifest.json")
    }

    /// What the last leg's guard did, if its engine died (internal).
    pub fn guard_note(&self) -> PathBuf {
        self.0.join("guard.json")
    }

    /// What a run in the background had to say (internal).
    pub fn log(&self) -> PathBuf {
        self.0.join("detached.log")
    }

    /// The artifact of `node`.
    pub fn artifact(&self, node: &NodeId) -> PathBuf {
        self.0.join(format!("{}.out", node.file_stem()))
    }

    /// The kept reply of a `node` that failed.
    pub fn failed(&self, node: &NodeId) -> PathBuf {
        self.0.join("failed").join(format!("{}.out", node.file_stem()))
    }

    /// What the feedback arc of `node` hands back (ADR 0010, internal).
    pub fn feedback(&self, node: &NodeId) -> PathBuf {
        self.0.join("feedback").join(format!("{}.out", node.file_stem()))
    }

    /// The directory of what the attempts of `node` said (DECISIONS 15, internal).
    pub fn attempts(&self, node: &NodeId) -> PathBuf {
        self.0.join("attempts").join(node.file_stem())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_the_first_of_three_places() {
        let here = std::env::current_dir().expect("a current directory");
        let check = |omg_home: Option<&str>, home: Option<&str>, wanted: &Path| {
            let base = Home::from_env(omg_home.map(OsStr::new), home.map(OsStr::new));
            assert_eq!(base.path(), wanted, "{omg_home:?} {home:?}");
        };
        check(Some("/o"), Some("/h"), Path::new("/o"));
        check(Some("o"), Some("/h"), &here.join("o"));
        check(Some(""), Some("/h"), Path::new("/h/.oh-my-graph"));
        check(None, Some(""), &here.join(".oh-my-graph"));
        check(None, None, &here.join(".oh-my-graph"));
    }
}
