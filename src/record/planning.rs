//! `planning.json`, internal: what was paid for a plan that is still being bought.
//!
//! A feed carries the price of planning once planning is over. Until then this holds what a refused reply cost, so that a process
//! that dies while another is bought takes no price with it.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::record::artifact::{self, ArtifactError};
use crate::record::{RunDir, Usage, private};
use crate::text::money::{Cost, Money};

/// A note is far shorter.
const NOTE_BYTES_MAX: u64 = 4096;

/// What was paid for a plan so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanningNote {
    /// The known part, in dollars.
    cost_usd: f64,
    /// How many calls have no known price.
    unknown_charges: u32,
    /// Tokens.
    pub usage: Usage,
}

impl PlanningNote {
    /// A note of what was paid.
    pub fn new(cost: Cost, usage: Usage) -> Self {
        PlanningNote { cost_usd: cost.known.usd(), unknown_charges: cost.unknown, usage }
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
        let text = serde_json::to_string(self).expect("numbers always encode") + "\n";
        artifact::persist(&run.planning_note(), text.as_bytes())
    }

    /// The note in `run`, if there is one that can be read.
    pub fn read(run: &RunDir) -> Option<Self> {
        let mut text = Vec::new();
        let file = private::open_to_read(&run.planning_note()).ok()?;
        file.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Removes the note: the price stands elsewhere.
    pub fn forget(run: &RunDir) {
        private::remove_file(&run.planning_note()).ok();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_left_until_it_is_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::new(home.path().to_owned());
        assert_eq!(PlanningNote::read(&run), None);
        let cost = Cost { known: Money::from_usd(0.05).unwrap(), unknown: 2 };
        let note = PlanningNote::new(cost, Usage { input_tokens: 3, ..Usage::default() });
        note.leave(&run).unwrap();
        assert_eq!(PlanningNote::read(&run).map(|note| note.cost()), Some(cost));
        assert_eq!(PlanningNote::read(&run), Some(note));
        PlanningNote::forget(&run);
        assert_eq!(PlanningNote::read(&run), None);
    }
}
