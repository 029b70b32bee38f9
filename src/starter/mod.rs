//! What a person starts from: the graphs that the program carries, and a first one of their own.
//!
//! [`payload`] holds the shipped ones and [`unpack`] puts them into a directory; [`draft`] fills in a new one. Loads and
//! runs nothing, knows no screen.

pub mod draft;
pub mod payload;
mod scalar;
pub mod unpack;
