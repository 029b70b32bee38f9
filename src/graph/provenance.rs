//! How a PASS was reached (ADR 0016).

use serde::{Deserialize, Serialize};

/// How a PASS was reached (ADR 0016). It says what was looked at, never that it was enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// The engine ran a command and judged it.
    Verified,
    /// The node said the right words.
    SelfReported,
    /// A child ran and exited 0.
    ExitOnly,
    /// A person approved a gate.
    Approved,
}

impl Provenance {
    /// The word in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Provenance::Verified => "verified",
            Provenance::SelfReported => "self-reported",
            Provenance::ExitOnly => "exit-only",
            Provenance::Approved => "approved",
        }
    }
}
