//! The engine: decides what runs when, runs it on worker threads, and tells the feed and the snapshot.
//!
//! [`machine`] decides and is pure; [`engine`] is the conductor that carries its decisions out over [`permits`] and
//! [`worker`]s; [`work`] is what a unit is to it. [`nodes`] makes graph nodes units; [`attempt`] is one node's course,
//! which enters its [`lane`], is [`prepare`]d and then tried by [`ask`] or [`execute`]. Knows no command line, no screen and no leg.
//! DESIGN "Execution engine", `ARCHITECTURE` 2 to 5.

pub mod machine;

pub mod engine;
pub mod halt;
pub mod permits;
mod waits;
pub mod work;
pub mod worker;

pub mod nodes;

mod ask;
mod attempt;
mod execute;
pub mod gate;
mod lane;
mod prepare;
mod rounds;
