//! What the terminal shows: words, colour, widths, the ledger, progress.
//!
//! Text of children and of files passes [`sanitize`](crate::text::sanitize) before it is shown; colour and width come in as a [`Look`].

pub mod feed_lines;
pub mod goal;
pub mod ledger;
mod live;
pub mod plan;
pub mod progress;
pub mod style;
mod transcript;
pub mod when;
pub mod words;

pub use style::Look;
