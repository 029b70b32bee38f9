//! One process's share of a run: open its directory, take the lock, drive the schedule, close.
//!
//! Used by every command that runs a graph. [`preflight`] is what is looked at before anything is opened;
//! [`Leg::open`] takes the lock and begins the feed; [`Leg::drive`] runs the schedule and closes the leg.
//! Knows no command line and no screen.

pub mod again;
pub mod claim;
pub mod drive;
pub mod open;
pub mod planned;
pub mod preflight;
pub mod to_come;
mod watched;

pub use claim::Claimed;
pub use drive::Finished;
pub use open::{Leg, LegError, Order};
pub use planned::Planned;
pub use watched::guarded;
