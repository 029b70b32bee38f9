//! Reading runs back and showing them; writes nothing under `runs/` (`ARCHITECTURE` 2, floor 6).
//!
//! [`history`] answers from a run's two files alone, [`term`] puts words, tables and progress on a terminal or into
//! a pipe, [`web`] shows runs to a browser, [`export`] writes one as a file. None prints: each writes to what it is handed, or hands back text. Knows no
//! schedule.

pub mod export;
pub mod history;
pub mod term;
pub mod web;
