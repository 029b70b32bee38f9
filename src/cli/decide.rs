//! A decision that a page took: `omg resume --detach` in a process of its own (`docs/adr/0008`).
//!
//! The leg has its own session, guard and log, so it does not end when serving does.

use std::ffi::OsString;
use std::io::Read;

use super::detach;
use crate::process::Exit;
use crate::process::again::Background;
use crate::record::RunId;
use crate::view::web::{Choice, Decide};

/// Carries decisions out in the background.
pub(super) struct InBackground;

impl Decide for InBackground {
    fn decide(&self, run: &RunId, gate: &str, choice: Choice) -> Result<(), String> {
        let flag = match choice {
            Choice::Approve => "--approve",
            Choice::Reject => "--reject",
        };
        let words = ["resume", run.as_str(), &format!("{flag}={gate}"), detach::OBEYED].map(OsString::from);
        let failed = |error: std::io::Error| format!("the leg cannot be started: {error}");
        let mut copy = Background::heard(&words).map_err(failed)?;
        let mut said = Vec::new();
        copy.said.read_to_end(&mut said).map_err(failed)?;
        let (prose, begun) = detach::parts(&said);
        if begun.is_some() {
            // It is waited for so that it does not stay in the table of processes; nothing depends on it.
            let wait = move || drop(copy.wait());
            std::thread::Builder::new().name("decided leg".to_owned()).spawn(wait).map_err(failed)?;
            return Ok(());
        }
        let told = String::from_utf8_lossy(prose).trim().to_owned();
        match copy.wait().map_err(failed)? {
            Exit::Signal(signal) => Err(format!("the leg was ended by signal {signal} before it began")),
            Exit::Code(code) if told.is_empty() => Err(format!("the leg ended with {code} before it began")),
            Exit::Code(_) => Err(told),
        }
    }
}
