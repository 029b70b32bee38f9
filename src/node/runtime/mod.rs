//! The runtimes, one file each. A new one is a file here and a line in [`RuntimeKind::ALL`].

#[cfg(test)]
mod ceilings;
pub mod claude;
pub mod codex;
pub mod codex_events;
pub mod envelope;
mod lenient;
pub mod limit;
mod mentions;
pub mod prompt;
pub mod rehearsal;
pub mod reset;
pub mod settings;
pub mod transcript;

/// Which runtime answers the prompts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeKind {
    /// The `claude` CLI.
    #[default]
    Claude,
    /// The `codex` CLI.
    Codex,
    /// No CLI at all: replies come from a script or from the graph's own checks.
    Rehearsal,
}

impl RuntimeKind {
    /// All runtimes.
    pub const ALL: [RuntimeKind; 3] = [RuntimeKind::Claude, RuntimeKind::Codex, RuntimeKind::Rehearsal];

    /// The word on the command line and in `state.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            RuntimeKind::Claude => "claude",
            RuntimeKind::Codex => "codex",
            RuntimeKind::Rehearsal => "rehearsal",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
