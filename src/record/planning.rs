//! `planning.json`, internal: what is known of a plan that came to nothing, and what was paid while it is still being bought.
//!
//! A feed carries the price of planning once planning is over. Until then this holds what was paid already, so that a
//! process that dies meanwhile takes no price with it; afterwards it tells why there is no plan.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::record::artifact::{self, ArtifactError};
use crate::record::{RunDir, Usage, private};
use crate::text::money::{Cost, Money};

/// Refusals are quoted in far less.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// What is known of the planning of a run that has no plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanningNote {
    /// Why what the planner said is no plan.
    pub why: String,
    /// The known part of what was paid, in dollars.
    cost_usd: f64,
    /// How many calls have no known price.
    #[serde(skip_serializing_if = "is_zero")]
    unknown_charges: u32,
    /// Tokens of planning.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl PlanningNote {
    /// A note of why there is no plan, and of what was paid.
    pub fn new(why: &str, cost: Cost, usage: Usage) -> Self {
        PlanningNote { why: why.to_owned(), cost_usd: cost.known.usd(), unknown_charges: cost.unknown, usage }
    }

    /// What was paid.
    pub fn cost(&self) -> Cost {
        let known = Money::from_usd(self.cost_usd).unwrap_or(Money::ZERO);
        Cost { known, unknown: self.unknown_charges }
    }

    /// Leaves the note in `run`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn leave(&self, run: &RunDir) -> Result<(), ArtifactError> {
        let text = serde_json::to_string(self).expect("numbers and text always encode") + "\n";
        artifact::persist(&run.planning_note(), text.as_bytes())
    }

    /// The note in `run`, if there is one that can be read.
    pub fn read(run: &RunDir) -> Option<Self> {
        let mut text = Vec::new();
        let file = private::open_to_read(&run.planning_note()).ok()?;
        file.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Removes the note and the reply that was refused: there is a plan after all.
    pub fn forget(run: &RunDir) {
        private::remove_file(&run.planning_note()).ok();
        private::remove_file(&run.rejected()).ok();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_left_and_gone_when_there_is_a_plan() {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::new(home.path().to_owned());
        assert_eq!(PlanningNote::read(&run), None);
        let cost = Cost { known: Money::from_usd(0.05).unwrap(), unknown: 2 };
        let note = PlanningNote::new("it has no nodes", cost, Usage { input_tokens: 3, ..Usage::default() });
        note.leave(&run).unwrap();
        assert_eq!(PlanningNote::read(&run).map(|note| note.cost()), Some(cost));
        assert_eq!(PlanningNote::read(&run), Some(note));
        PlanningNote::forget(&run);
        assert_eq!(PlanningNote::read(&run), None);
    }
}
