//! What on this machine keeps a run from working, or may surprise in one: looked at, and where looking does not tell, tried.
//!
//! Nothing here asks a model, a network or a person, and nothing is left behind. Each finding says one thing and, unless it
//! is well, what to do about it. Knows no screen.

mod clis;
mod login;
mod machine;
mod storage;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::node::runtime::RuntimeKind;
use crate::node::runtime::settings::Whereabouts;
use crate::process::Launcher;
use crate::record::Home;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It is well.
    Ok,
    /// Runs work, but not all of them, or not as one may think.
    Warning,
    /// A run cannot work.
    Problem,
}

impl Level {
    /// The word in JSON and on the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, one word.
    pub check: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What was found, one sentence; names of files may hold anything.
    pub what: String,
    /// What to do about it; `None` when it is well.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Finding { check, level: Level::Ok, what: what.into(), remedy: None }
    }

    fn warning(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { check, level: Level::Warning, what: what.into(), remedy: Some(remedy.into()) }
    }

    fn problem(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { level: Level::Problem, ..Finding::warning(check, what, remedy) }
    }
}

/// A CLI that is looked at.
#[derive(Clone, Debug)]
pub struct Cli {
    /// Which.
    pub kind: RuntimeKind,
    /// Where it is, if it is on `PATH`.
    pub program: Option<PathBuf>,
    /// Where its settings lie.
    pub whereabouts: Whereabouts,
}

/// What is looked at.
#[derive(Debug)]
pub struct Subject {
    /// Where runs are kept.
    pub home: Home,
    /// The directory of temporary files.
    pub temporary: PathBuf,
    /// The CLIs; one alone is one that was asked for by name.
    pub clis: Vec<Cli>,
    /// The environment that children start from, before it is scrubbed.
    pub environment: Vec<(OsString, OsString)>,
    /// Starts the children.
    pub launcher: Arc<Launcher>,
    /// The time of day.
    pub now: Timestamp,
}

/// Looks at everything, in the order that a person reads it in.
pub fn examine(subject: &Subject) -> Vec<Finding> {
    let mut found = clis::look(subject);
    found.extend(machine::environment(subject));
    found.extend(machine::programs(subject));
    found.extend(storage::look(subject));
    found.extend(machine::processes(subject));
    found.extend(machine::clock(subject.now));
    found
}
