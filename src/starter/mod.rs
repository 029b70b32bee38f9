//! What a person starts from: the graphs that the program carries and how they get into a directory.
//!
//! [`payload`] holds them, [`unpack`] writes them. Loads and runs nothing, knows no screen.

pub mod payload;
pub mod unpack;
