//! What the judge of a goal's cycle said of a run, kept beside it as `assess.json` (RUN-FEED "Goal cycles").
//!
//! What asking cost stands here because the run's own ledger ended before it was asked.

use serde::{Deserialize, Serialize};

use crate::record::artifact::{self, ArtifactError};
use crate::record::{RunDir, Usage, private};
use crate::text::money::{Cost, Money};

/// A verdict on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// Whether the goal is reached.
    pub goal_met: bool,
    /// What is left to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remaining: String,
    /// What decided it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The known part of what asking cost, in dollars.
    pub assess_cost_usd: f64,
    /// Whether some of it has no known price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assess_cost_unknown: bool,
    /// Tokens of asking.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
}

impl Assessment {
    /// Keeps it in the run's directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, dir: &RunDir) -> Result<(), ArtifactError> {
        let text = serde_json::to_string_pretty(self).expect("it holds nothing that JSON cannot");
        artifact::persist(&dir.assessment(), (text + "\n").as_bytes())
    }

    /// The verdict on the run in `dir`, if it was judged.
    pub fn read(dir: &RunDir) -> Option<Assessment> {
        private::read_json(&dir.assessment())
    }

    /// What asking cost.
    pub fn cost(&self) -> Cost {
        Cost {
            known: Money::from_usd(self.assess_cost_usd).unwrap_or(Money::ZERO),
            unknown: u32::from(self.assess_cost_unknown),
        }
    }
}
