//! The only code that starts a child process: its group, its environment, its pipes, its deadline and its end.
//!
//! One thread serves one child. The worker that called [`Launcher::run`] sleeps in a single `poll` over the
//! child's outputs, its input, its exit and the run's cancellation, with the deadline as the timeout
//! (`vigil`). Reader threads would cost three stacks and three joins a child, and a reader stuck on a pipe that
//! a grandchild holds could never be joined; here there is nothing to join, and no deadline can be missed
//! because nothing else can block.
//!
//! Knows no node, no prompt and no run directory: users hand it a [`Spec`] and get an [`Ended`] back. What a
//! child leaves behind is found by `descendants` and ended by `remains`. DECISIONS 19 to 22 are followed here.

pub mod again;
pub mod browser;
pub mod cancel;
pub mod capture;
pub mod checkup;
pub(crate) mod descendants;
pub mod env;
pub(crate) mod exit;
pub mod find;
pub mod guard;
pub(crate) mod ladder;
pub mod launcher;
pub mod other;
pub(crate) mod own;
pub mod question;
pub(crate) mod remains;
pub mod signals;
pub mod spec;
pub(crate) mod start;
pub(crate) mod vigil;

pub use cancel::Cancel;
pub use capture::{Discard, HeadTail, Tail, Whole};
pub use launcher::Launcher;
pub use spec::{Ended, Exit, Flow, How, Ladder, Sink, SpawnError, Spec, Stdin, Streams};
