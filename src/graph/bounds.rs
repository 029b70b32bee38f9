//! Bounds on a whole run: what it may spend, how often it may execute a node, how long it may start new work.
//!
//! A graph declares them, a command line may override each. Reaching one pauses the run; it loses nothing.

use std::time::Duration;

use crate::text::duration;
use crate::text::money::Money;

/// The bounds of a run; `None` is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// `max_usd:`, dollars over all legs.
    pub spend: Option<Money>,
    /// `max_executions:`, attempts of prompt and command nodes over all legs.
    pub executions: Option<u32>,
    /// `max_wall:`, how long one leg may start new work.
    pub wall: Option<Duration>,
}

impl Bounds {
    /// These bounds, where `over` names none.
    #[must_use]
    pub fn overridden_by(self, over: Self) -> Self {
        Bounds {
            spend: over.spend.or(self.spend),
            executions: over.executions.or(self.executions),
            wall: over.wall.or(self.wall),
        }
    }
}

/// Reads an amount of dollars above nothing.
///
/// # Errors
/// What is wrong with it.
pub fn spend(usd: f64) -> Result<Money, String> {
    let amount = Money::from_usd(usd).filter(|amount| !amount.is_zero());
    amount.ok_or_else(|| format!("{usd} is no amount to spend"))
}

/// Reads a number of executions above nothing.
///
/// # Errors
/// What is wrong with it.
pub fn executions(count: i64) -> Result<u32, String> {
    u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| format!("{count} lets nothing run"))
}

/// Reads a duration above nothing.
///
/// # Errors
/// What is wrong with it.
pub fn wall(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| format!("{text:?} is not a duration: {error}"))?;
    time.positive().ok_or_else(|| format!("{text} lets nothing run"))
}
