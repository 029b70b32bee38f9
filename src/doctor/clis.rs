//! The CLIs that answer prompts: whether they are there, which version, and what is known of it (CLI-PROTOCOL).

use std::path::Path;
use std::time::Duration;

use super::{Cli, Finding, Subject, login};
use crate::node::runtime::RuntimeKind;
use crate::node::runtime::claude;
use crate::node::runtime::settings;
use crate::text::sanitize;

/// How long a CLI may take to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

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
    for cli in &subject.clis {
        match &cli.program {
            None => {
                found.push(Finding::ok(name(cli), "not on PATH, which only matters to runs that ask for it"));
            }
            Some(program) => found.extend(present(cli, program, subject)),
        }
    }
    found
}

fn name(cli: &Cli) -> &'static str {
    cli.kind.as_str()
}

fn present(cli: &Cli, program: &Path, subject: &Subject) -> Vec<Finding> {
    let mut found = vec![version(cli, program, subject)];
    found.push(login::look(cli, &subject.environment));
    let settings = settings::findings(cli.kind, &cli.whereabouts);
    if settings.is_empty() {
        found
            .push(Finding::ok("settings", format!("none of {} changes who pays or who is asked", name(cli))));
    }
    found.extend(settings.iter().map(|it| Finding::warning("settings", it.to_string(), it.remedy())));
    found
}

fn version(cli: &Cli, program: &Path, subject: &Subject) -> Finding {
    let path = program.display();
    match subject.launcher.capture(program, &["--version"], VERSION_TIMEOUT) {
        None => Finding::warning(
            name(cli),
            format!("{path} did not tell its version within {} s", VERSION_TIMEOUT.as_secs()),
            format!("see what {path} --version says"),
        ),
        Some(said) => {
            let version = sanitize::one_line(&said).into_owned();
            let differs = differs(cli.kind, &version, subject);
            Finding::ok(name(cli), format!("{version} at {path}{differs}"))
        }
    }
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
