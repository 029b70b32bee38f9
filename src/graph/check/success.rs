//! `success_check`: its patterns compile, its command is there and its time is bounded.

use std::collections::HashMap;

use super::{At, Rule, fields};
use crate::graph::node::{SuccessCheck, VERIFY_TIMEOUT_DEFAULT, VERIFY_TIMEOUT_MAX, Verify};
use crate::graph::raw::RawVerify;
use crate::text::regexp::Pattern;

/// Patterns compiled so far: large graphs say the same one many times.
#[derive(Default)]
pub(super) struct Patterns(HashMap<String, Result<Pattern, String>>);

impl Patterns {
    fn compile(&mut self, source: &str) -> Result<Pattern, String> {
        if let Some(known) = self.0.get(source) {
            return known.clone();
        }
        let compiled = Pattern::compile(source);
        self.0.insert(source.to_owned(), compiled.clone());
        compiled
    }
}

/// The check, without what is at fault in it.
pub(super) fn check(at: &mut At<'_, '_>, patterns: &mut Patterns) -> SuccessCheck {
    let raw = &at.raw().success_check;
    SuccessCheck {
        exit_zero: raw.exit_zero,
        result_matches: pattern(at, patterns, "success_check.result_matches", raw.result_matches.as_deref()),
        verify: raw.verify.as_ref().map(|raw| verify(at, patterns, raw)),
    }
}

fn verify(at: &mut At<'_, '_>, patterns: &mut Patterns, raw: &RawVerify) -> Verify {
    if raw.command.trim().is_empty() {
        at.fault(Rule::SuccessCheck, "success_check.verify.command", "verify has no command")
            .hint("write the shell command that decides, as in command: make test");
    }
    let key = "success_check.verify.timeout";
    let timeout = raw.timeout.as_deref();
    let timeout =
        fields::time(at, Rule::SuccessCheck, key, "verify.timeout", timeout, Some(VERIFY_TIMEOUT_MAX));
    Verify {
        command: raw.command.clone(),
        cwd: fields::declared(raw.cwd.as_deref()),
        timeout: timeout.unwrap_or(VERIFY_TIMEOUT_DEFAULT),
        expect_exit: expect_exit(at, raw.expect_exit),
        output_matches: pattern(
            at,
            patterns,
            "success_check.verify.output_matches",
            raw.output_matches.as_deref(),
        ),
    }
}

fn expect_exit(at: &mut At<'_, '_>, code: Option<i64>) -> i32 {
    let Some(code) = code else { return 0 };
    match u8::try_from(code) {
        Ok(code) => i32::from(code),
        Err(_) => {
            let message = format!("verify.expect_exit is {code}, which is not 0 to 255");
            at.fault(Rule::SuccessCheck, "success_check.verify.expect_exit", message);
            0
        }
    }
}

/// A pattern; the empty one counts as absent.
fn pattern(
    at: &mut At<'_, '_>,
    patterns: &mut Patterns,
    key: &'static str,
    source: Option<&str>,
) -> Option<Pattern> {
    let source = source.filter(|source| !source.is_empty())?;
    match patterns.compile(source) {
        Ok(pattern) => Some(pattern),
        Err(reason) => {
            let name = key.rsplit('.').next().unwrap_or(key);
            at.fault(Rule::SuccessCheck, key, format!("{name} {source:?} does not compile: {reason}"));
            None
        }
    }
}
