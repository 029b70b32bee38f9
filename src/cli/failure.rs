//! What a command that failed tells: one line, at most one hint, an exit code (`ARCHITECTURE` 7, DECISIONS 27).
//!
//! Each error of a lower floor becomes one here; no other file words an error.

use std::io;

use crate::text::sanitize;
use crate::view::history::ReadError;
use crate::view::history::drawing::DrawError;
use crate::view::history::lookup::LookupError;
use crate::view::history::node::NodeError;
use crate::view::history::watch::WatchError;

/// The exit code of a failure and of misuse.
pub(super) const FAILED: u8 = 1;
/// The exit code of a run that is paused.
pub(super) const PAUSED: u8 = 2;

/// A command that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// `WHERE: what`, without the program's name; empty when nothing is to be said.
    pub(super) message: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
    /// The exit code.
    pub(super) exit: u8,
}

impl Failure {
    /// A failure with this message.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), hint: None, exit: FAILED }
    }

    /// The same with a hint.
    pub(super) fn hinted(self, hint: impl Into<String>) -> Self {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// The same with another exit code.
    pub(super) fn exiting(self, exit: u8) -> Self {
        Failure { exit, ..self }
    }

    /// Prints both lines; nothing for a failure without words.
    ///
    /// # Errors
    /// When the stream is gone.
    pub(super) fn print(&self, err: &mut dyn io::Write) -> io::Result<()> {
        if !self.message.is_empty() {
            writeln!(err, "omg: {}", sanitize::one_line(&self.message))?;
        }
        match &self.hint {
            Some(hint) => writeln!(err, "  hint: {}", sanitize::one_line(hint)),
            None => Ok(()),
        }
    }

    /// What it means that output could not be written. A reader that has seen enough is no failure.
    pub(super) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { message: String::new(), hint: None, exit: 0 },
            _ => Failure::new(format!("cannot write the output: {error}")),
        }
    }
}

impl From<io::Error> for Failure {
    /// Of a command that only reads runs, the one thing that fails this way is its output.
    fn from(error: io::Error) -> Self {
        Failure::output(&error)
    }
}

impl From<LookupError> for Failure {
    fn from(error: LookupError) -> Self {
        Failure { hint: error.hint(), ..Failure::new(error.to_string()) }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let failure = Failure::new(error.to_string());
        match error.is_incompatible() {
            true => failure.hinted("the version of omg that wrote the run can read it"),
            false => failure.hinted("omg watch still shows the run's events, as far as they can be read"),
        }
    }
}

impl From<DrawError> for Failure {
    fn from(error: DrawError) -> Self {
        match error {
            DrawError::Read(error) => error.into(),
            DrawError::Graph { .. } => {
                Failure::new(error.to_string()).hinted("the version of omg that wrote the run can read it")
            }
        }
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Output(error) => Failure::output(&error),
            NodeError::Unknown { ref run, .. } => {
                let hint = format!("omg show {run} names its nodes");
                Failure::new(error.to_string()).hinted(hint)
            }
        }
    }
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        let failure = Failure::new(error.to_string());
        match error {
            WatchError::Output(error) => Failure::output(&error),
            WatchError::NoFeed { run } => failure.hinted(format!("omg show {run} shows what it left")),
            WatchError::Abandoned { hint, .. } => Failure { hint, ..failure },
            WatchError::Silent { .. } => failure.hinted("run the graph again"),
            WatchError::Stream(_) => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.message.as_str(), failure.exit), ("", 0));
        let failure = Failure::from(WatchError::Output(io::ErrorKind::BrokenPipe.into()));
        assert_eq!(failure.exit, 0);
        let failure = Failure::from(NodeError::Output(io::ErrorKind::StorageFull.into()));
        assert!(failure.exit == 1 && failure.message.starts_with("cannot write the output"));
    }

    #[test]
    fn what_was_not_found_comes_with_what_to_do() {
        let failure = Failure::from(LookupError::Malformed { text: "../x".to_owned() });
        assert!(
            failure.message.contains("../x") && failure.hint.is_some_and(|hint| hint.contains("runs list"))
        );
    }
}
