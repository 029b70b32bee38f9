//! `omg lint`: everything that is wrong with graphs, then what should be known about them (FACTS 1.8).
//!
//! `files` finds the graphs, `look` looks at one, and each way to print what was found is a file.

mod files;
mod github;
mod json;
mod look;
mod paths;
mod sarif;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::{Failure, graph_file};
use crate::lint::{self, SWEEPS};
use crate::node::runtime::RuntimeKind;
use crate::text::suggest;
use files::Find;
use look::{Looked, State};
use paths::Paths;

/// Checks graphs and says everything that is wrong with them.
///
/// What is wrong makes a graph invalid (exit 1). Advice on a graph that is valid is a warning with the id of the sweep
/// that gives it; `--explain` says more, and `x-omg-allow` at the top of a graph silences it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Graph files, and directories that hold some; /dev/stdin and pipes work.
    #[arg(value_name = "GRAPH", required_unless_present_any = ["explain", "list"])]
    graphs: Vec<PathBuf>,
    /// How to print what was found; text also annotates a GitHub workflow that it runs in.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Prints one JSON document, as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Fails when there is a warning.
    #[arg(long)]
    strict: bool,
    /// Explains a sweep, and shows what it speaks of.
    #[arg(long, value_name = "ID", conflicts_with_all = ["graphs", "list"])]
    explain: Option<String>,
    /// Lists the sweeps.
    #[arg(long, conflicts_with = "graphs")]
    list: bool,
}

/// How to print what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a person.
    Text,
    /// One document.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of a GitHub workflow.
    Github,
}

/// Runs the command.
pub(super) fn run(args: &Args, runtime: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    if let Some(id) = &args.explain {
        return explain(id, context);
    }
    if args.list {
        return list(context);
    }
    let Find { files, skipped, .. } = files::find(&args.graphs);
    let looked: Vec<Looked> = files.into_iter().map(|file| look::look(file, runtime)).collect();
    let format = if args.json { Format::Json } else { args.format };
    let paths = Paths::of_process();
    match format {
        Format::Text => text::print(&looked, context),
        Format::Json => json::print(&looked, context),
        Format::Sarif => sarif::print(&looked, &paths, context),
        Format::Github => github::print(&looked, &paths, context),
    }
    if format == Format::Text && std::env::var_os("GITHUB_ACTIONS").is_some_and(|set| set == "true") {
        github::print(&looked, &paths, context);
    }
    let tally = Tally { skipped, ..Tally::of(&looked) };
    tally.verdict(&looked, args, format, context)
}

fn explain(id: &str, context: &mut Context) -> Result<u8, Failure> {
    let Some(sweep) = lint::find(id) else {
        let names = SWEEPS.into_iter().flat_map(|sweep| [sweep.id, sweep.name]);
        let hint = suggest::hint(id, names).unwrap_or_else(|| "omg lint --list names them".to_owned());
        return Err(Failure::new(format!("lint: there is no sweep {id:?}")).hinted(hint));
    };
    write!(context.out, "{}", sweep.explanation())?;
    Ok(0)
}

fn list(context: &mut Context) -> Result<u8, Failure> {
    let width = SWEEPS.into_iter().map(|sweep| sweep.name.len()).max().unwrap_or(0);
    for sweep in SWEEPS {
        writeln!(context.out, "{}  {:width$}  {}", sweep.id, sweep.name, sweep.summary)?;
    }
    Ok(0)
}

/// What was found in all.
#[derive(Default)]
struct Tally {
    files: usize,
    invalid: usize,
    issues: usize,
    warnings: usize,
    skipped: usize,
}

impl Tally {
    fn of(looked: &[Looked]) -> Self {
        let mut tally = Tally { files: looked.len(), ..Tally::default() };
        for file in looked {
            tally.invalid += usize::from(!file.is_valid());
            tally.issues += file.reports().len();
            tally.warnings += file.advice.len();
        }
        tally
    }

    /// The last word, and the exit code.
    fn verdict(
        &self,
        looked: &[Looked],
        args: &Args,
        format: Format,
        context: &mut Context,
    ) -> Result<u8, Failure> {
        let strict = args.strict && self.warnings > 0;
        let demand = if strict { ", and --strict allows none" } else { "" };
        if let [only] = looked {
            return match &only.state {
                State::Valid if strict => {
                    let warnings = counted(self.warnings, "warning");
                    Err(Failure::new(format!("{}: {warnings}{demand}", only.path.display())))
                }
                State::Valid => Ok(0),
                State::Invalid(problems) => Err(Failure::new(graph_file::counted(&only.path, problems))),
                State::Refused(reasons) => Err(refused(&only.path, reasons)),
                State::Unreadable(error) => Err(Failure::new(error.to_string())),
            };
        }
        let skipped = match self.skipped {
            0 => String::new(),
            count => format!(" ({} without a graph passed over)", counted(count, "file")),
        };
        let named = |paths: &[PathBuf]| {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            names.join(", ")
        };
        if self.files == 0 {
            let failure = Failure::new(format!("{}: no graph was found{skipped}", named(&args.graphs)));
            return Err(failure.hinted("a graph is a *.yaml or *.yml file with nodes: at its top level"));
        }
        let warnings = counted(self.warnings, "warning");
        if self.invalid > 0 {
            let issues = counted(self.issues, "issue");
            let invalid = format!("{}, {} invalid", counted(self.files, "file"), self.invalid);
            return Err(Failure::new(format!("lint: {invalid}: {issues}, {warnings}{skipped}")));
        }
        let files = counted(self.files, "file");
        if strict {
            return Err(Failure::new(format!("lint: {files}: {warnings}{demand}{skipped}")));
        }
        if format == Format::Text {
            writeln!(context.out, "{files}: all valid, {warnings}{skipped}")?;
        }
        Ok(0)
    }
}

/// What a runtime refuses.
fn refused(path: &Path, reasons: &[String]) -> Failure {
    Failure::new(format!("{}: {}", path.display(), reasons.join("; ")))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
