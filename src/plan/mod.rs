//! Auto mode: a goal becomes a graph under a ceiling, with evidence (DESIGN "Auto mode").
//!
//! Knows no screen and no command line but the names of the flags that its words tell a person to give.

pub mod evidence;
pub mod unisolated;
pub mod verify_flags;
