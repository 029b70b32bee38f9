//! Small pure helpers on text and numbers; each file knows one thing and none knows what a node is.

pub mod dialect;
pub mod duration;
pub mod fence;
pub mod hex;
pub mod junit;
pub mod lossy;
pub mod markdown;
pub mod money;
pub mod regexp;
pub mod sample;
pub mod sanitize;
pub mod shell_word;
pub mod suggest;
pub mod table;
pub mod template;
pub mod usage;
