//! Auto mode: a goal becomes a graph under a ceiling, with evidence (DESIGN "Auto mode").
//!
//! Knows no screen and no command line but the names of the flags that its words tell a person to give.

pub mod assess;
pub mod attach;
pub mod call;
pub mod chat;
pub mod disposition;
pub mod evidence;
pub mod goal;
pub mod later;
pub mod prompt;
pub mod repair;
pub mod reply;
pub mod router;
pub mod staging;
mod strict;
pub mod unisolated;
pub mod verify_flags;
