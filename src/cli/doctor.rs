//! `omg doctor`: what on this machine keeps a run from working, and what to do about it.

use std::io::Write as _;
use std::sync::Arc;

use serde::Serialize;

use super::context::Context;
use super::{Failure, execute, services};
use crate::doctor::{Cli, Finding, Level, Subject, examine};
use crate::node::runtime::RuntimeKind;
use crate::process::signals::outlive_file_limit;
use crate::process::{Launcher, find};
use crate::text::sanitize::one_line;
use crate::text::table::{Align, Cell, Table};
use crate::view::term::style::{self, Look};

/// The version of the JSON document.
const SCHEMA: u32 = 1;

/// Looks at this machine: what keeps a run from working, and what to do about it.
///
/// Tells as well what may surprise in one. Asks no model and no network, and leaves nothing behind. `omg --runtime codex
/// doctor` looks at one CLI alone. Exits 1 when a run could not work.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Prints one JSON document instead.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, asked: Option<RuntimeKind>, context: &mut Context) -> Result<u8, Failure> {
    outlive_file_limit().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let found = examine(&subject(asked, context));
    let worst = found.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    let text = if args.json { json(&found, worst) } else { print(&found, worst, context.out_look) };
    context.out.write_all(text.as_bytes())?;
    Ok(u8::from(worst == Level::Problem))
}

fn subject(asked: Option<RuntimeKind>, context: &Context) -> Subject {
    let kinds = asked.map_or(vec![RuntimeKind::Claude, RuntimeKind::Codex], |kind| vec![kind]);
    let cli = |kind: RuntimeKind| {
        let mut whereabouts = services::whereabouts(kind);
        whereabouts.directories.insert(Context::base());
        Cli { kind, program: find::find(kind.as_str()).ok(), whereabouts }
    };
    Subject {
        home: context.home.clone(),
        temporary: std::env::temp_dir(),
        clis: kinds.into_iter().map(cli).collect(),
        environment: std::env::vars_os().collect(),
        launcher: Arc::new(Launcher::new(&execute::mark()).outside_repositories()),
        now: context.clock.now(),
    }
}

fn print(found: &[Finding], worst: Level, look: Look) -> String {
    let columns = [("CHECK", Align::Left), ("LEVEL", Align::Left), ("FOUND", Align::Left)];
    let mut table = Table::new(&columns);
    for finding in found {
        let told = match &finding.remedy {
            Some(remedy) => format!("{}; {remedy}", finding.what),
            None => finding.what.clone(),
        };
        table.row([
            finding.check.into(),
            Cell::styled(finding.level.as_str(), look.style(colour(finding.level))),
            one_line(&told).into(),
        ]);
    }
    let last = match worst {
        Level::Problem => "A run could not work here.",
        Level::Warning => "Runs work here; see the warnings.",
        Level::Ok => "Runs work here.",
    };
    format!("{}{last}\n", table.print(look.width))
}

fn colour(level: Level) -> anstyle::Style {
    match level {
        Level::Ok => style::GOOD,
        Level::Warning => style::WARY,
        Level::Problem => style::BAD,
    }
}

#[derive(Serialize)]
struct Document<'f> {
    schema: u32,
    level: &'static str,
    findings: Vec<Row<'f>>,
}

#[derive(Serialize)]
struct Row<'f> {
    check: &'static str,
    level: &'static str,
    what: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'f str>,
}

fn json(found: &[Finding], worst: Level) -> String {
    let findings = found.iter().map(|it| Row {
        check: it.check,
        level: it.level.as_str(),
        what: &it.what,
        remedy: it.remedy.as_deref(),
    });
    let document = Document { schema: SCHEMA, level: worst.as_str(), findings: findings.collect() };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}
