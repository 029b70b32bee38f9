//! Running one node, knowing nothing of a schedule or of a run's files.
//!
//! [`invocation`] is what a runtime is asked and answers, [`policy`] what it may do, [`provision`] what is staged for it;
//! [`runtime`] holds the runtimes; [`shell`] runs command
//! nodes and evidence commands; [`handoff`] fills in templates; [`judge`] turns an answer into a verdict; [`quote`]
//! tells a retried node what it said before. DESIGN "Execution engine", "Success checks".

pub mod checkout;
pub mod handoff;
pub mod invocation;
pub mod judge;
pub mod policy;
pub mod provision;
pub mod quote;
pub mod runtime;
pub mod shell;
pub mod worktree;

pub use invocation::{End, Invocation, Invoked, Runtime, Session};
pub use policy::{Ceiling, Policy};
pub use provision::Provision;
pub use shell::Shell;
pub use worktree::Lanes;
