//! The CLIs that answer prompts: whether they are there, which version, and what is known of it (CLI-PROTOCOL).

use std::path::Path;
use std::time::Duration;

use super::{Cli, Finding, Level, Subject, login};
use crate::node::runtime::RuntimeKind;
use crate::node::runtime::claude;
use crate::node::runtime::settings;
use crate::process::Exit;
use crate::process::question::Unanswered;
use crate::text::{fence, sanitize};

/// How long a CLI may take to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of what it says then is shown.
const SHOWN_BYTES_MAX: usize = 200;
/// The exit codes of a shell, and of `env` in the first line of a script, for what cannot be run or is not there.
const NOT_RUN: [Exit; 2] = [Exit::Code(126), Exit::Code(127)];

/// What a CLI says of its version, or why it does not.
type Told = Result<String, Unanswered>;

pub(super) fn look(subject: &Subject) -> Vec<Finding> {
    let mut found = Vec::new();
    let absent: Vec<&'static str> =
        subject.clis.iter().filter(|cli| cli.program.is_none()).map(|cli| cli.kind.as_str()).collect();
    if absent.len() == subject.clis.len() {
        let (neither, install) = match absent.as_slice() {
            [one] => (format!("{one} is not on PATH"), format!("install {one} and log in to it")),
            all => (
                format!("neither {} is on PATH", all.join(" nor ")),
                "install one of them and log in to it".to_owned(),
            ),
        };
        found.push(Finding::problem(
            "runtime",
            format!(
                "{neither}: no prompt can be asked (graphs of commands alone run, and so does omg rehearse)"
            ),
            install,
        ));
        return found;
    }
    let ask = |program: &Path| subject.launcher.question(program, &["--version"], VERSION_TIMEOUT);
    let told: Vec<Option<Told>> = subject.clis.iter().map(|cli| cli.program.as_deref().map(ask)).collect();
    // While one of them starts, runs can ask it.
    let broken = if told.iter().flatten().any(starts) { Level::Warning } else { Level::Problem };
    for (cli, told) in subject.clis.iter().zip(told) {
        match (&cli.program, told) {
            (Some(program), Some(told)) => found.extend(present(cli, program, &told, broken, subject)),
            _ => {
                found.push(Finding::ok(name(cli), "not on PATH, which only matters to runs that ask for it"));
            }
        }
    }
    found
}

/// Whether the program could be run at all.
fn starts(told: &Told) -> bool {
    match told {
        Err(Unanswered::Unstarted(_)) => false,
        Err(Unanswered::Failed { exit, .. }) => !NOT_RUN.contains(exit),
        _ => true,
    }
}

fn name(cli: &Cli) -> &'static str {
    cli.kind.as_str()
}

fn present(cli: &Cli, program: &Path, told: &Told, broken: Level, subject: &Subject) -> Vec<Finding> {
    let mut found = vec![version(cli, program, told, broken, subject)];
    found.push(login::look(cli, &subject.environment));
    let settings = settings::findings(cli.kind, &cli.whereabouts);
    if settings.is_empty() {
        found
            .push(Finding::ok("settings", format!("none of {} changes who pays or who is asked", name(cli))));
    }
    found.extend(settings.iter().map(|it| Finding::warning("settings", it.to_string(), it.remedy())));
    found
}

fn version(cli: &Cli, program: &Path, told: &Told, broken: Level, subject: &Subject) -> Finding {
    let (name, path) = (name(cli), program.display());
    let look = format!("see what {path} --version says");
    let again = format!("install {name} again, or put one that works first on PATH");
    let said = match told {
        Ok(said) => said,
        Err(why) if !starts(told) => {
            let what = format!("{path} cannot be run: {why}");
            return Finding { level: broken, ..Finding::warning(name, what, again) };
        }
        Err(Unanswered::Late(limit)) => {
            let what = format!("{path} did not tell its version within {} s", limit.as_secs());
            return Finding::warning(name, what, look);
        }
        Err(why) => {
            return Finding::warning(name, format!("{path} did not tell its version: {why}"), look);
        }
    };
    let version = sanitize::one_line(&fence::truncate(said.trim(), SHOWN_BYTES_MAX)).into_owned();
    if !holds_a_number(&version) {
        let said =
            if version.is_empty() { "it says nothing".to_owned() } else { format!("it says {version:?}") };
        return Finding::warning(name, format!("{path} did not tell its version: {said}"), look);
    }
    if cli.kind == RuntimeKind::Claude && claude::is_older_than_known(&version) {
        let oldest = claude::KNOWN_SINCE;
        let what = format!(
            "{version} at {path} is older than {oldest}, the oldest one that is known to take the flags that omg gives it"
        );
        return Finding::warning(name, what, "claude update, or install it anew");
    }
    Finding::ok(name, format!("{version} at {path}{}", differs(cli.kind, &version, subject)))
}

/// Whether some word of it is the number of a version, such as `2.1.332`.
fn holds_a_number(said: &str) -> bool {
    let is_number = |word: &str| {
        word.contains('.') && word.split('.').all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    said.split_whitespace().any(is_number)
}

/// What is known of a version that another one does otherwise.
fn differs(kind: RuntimeKind, version: &str, subject: &Subject) -> String {
    if kind != RuntimeKind::Claude {
        return String::new();
    }
    let is_sandbox = subject.environment.iter().any(|(name, _)| name == "IS_SANDBOX");
    let mut notes = String::new();
    if claude::is_older_than_manual(version) {
        notes.push_str("; it may not know permission_mode manual");
    }
    if rustix::process::geteuid().is_root() && !is_sandbox {
        notes.push_str("; for root it refuses permission_mode bypassPermissions unless IS_SANDBOX=1 is set");
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_from_other_words() {
        for said in ["2.1.332 (Claude Code)", "codex-cli 0.171.0", "1.2.3-beta.4", "v 0.1"] {
            assert!(holds_a_number(said), "{said}");
        }
        for said in ["", "ok", "Usage: claude [...]", "see https://a.b", "...", "3"] {
            assert!(!holds_a_number(said), "{said}");
        }
    }
}
