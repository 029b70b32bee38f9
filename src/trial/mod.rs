//! Tests for graphs: `*.omgtest.yaml` files say what nodes answer and what has to come of it (docs/TESTING-GRAPHS.md).
//!
//! [`find`] finds the files, [`read`] makes a [`Suite`] of one or a list of problems, [`play`] rehearses one of its cases
//! in a home of its own, [`judge`] compares what happened with what was expected, and [`run`] does so for many at once.
//! [`junit`] and [`report`] are forms of the result. The script of a case is that of a rehearsal (DECISIONS 24).
//! Knows no screen.

pub(crate) mod expect;
pub mod find;
pub mod judge;
pub mod junit;
pub mod play;
pub mod read;
pub mod report;
pub mod run;
pub mod suite;

pub use run::{Outcome, Verdict};
pub use suite::Suite;
