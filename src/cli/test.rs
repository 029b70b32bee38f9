//! `omg test`: runs the tests of graphs and says what came out otherwise than expected.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::Context;
use super::{Failure, graph_file};
use crate::process::signals;
use crate::text::sanitize;
use crate::trial::find::{self, FindError};
use crate::trial::judge;
use crate::trial::junit::{self, Broken};
use crate::trial::read::{self, Unread};
use crate::trial::report::Report;
use crate::trial::run::{self, Manner, Outcome, Verdict};
use crate::trial::suite::Suite;
use crate::view::term::feed_lines;
use crate::view::term::style::{BAD, FAINT, GOOD};

/// How many of the last events of a run are shown with a test that failed.
const TRACE_EVENTS_MAX: usize = 40;

/// Runs tests of graphs: scripted replies, and what has to come of them.
///
/// No model is asked, no command runs and nothing is paid. docs/TESTING-GRAPHS.md tells how to write them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of tests, and directories that are searched for files named *.omgtest.yaml.
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Runs only the tests whose names contain this; repeat for more.
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,
    /// Writes the results as JUnit's XML, too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Prints one JSON document instead of text.
    #[arg(long)]
    json: bool,
    /// Keeps the run of every test, and says where.
    #[arg(long)]
    keep: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let files = find::find(&args.paths).map_err(|error| not_found(&error))?;
    let (mut suites, mut unread) = (Vec::new(), Vec::new());
    for file in files {
        match read::read(&file) {
            Ok(suite) => suites.push(suite),
            Err(error) => unread.push((file, error)),
        }
    }
    let wanted = wanted(&suites, &args.filter);
    if wanted.is_empty() && unread.is_empty() {
        let names: Vec<String> = args.filter.iter().map(|name| format!("{name:?}")).collect();
        return Err(Failure::new(format!("test: no test's name contains {}", names.join(" or ")))
            .hinted("omg test without --filter lists every test"));
    }
    let (suites, wanted) = (Arc::new(suites), Arc::new(wanted));
    let outcomes = rehearse(args.keep, &suites, &wanted, context)?;
    if args.json {
        print_json(&suites, &outcomes, &unread, context);
    } else {
        print(&suites, &outcomes, &unread, context);
    }
    if let Some(path) = &args.junit {
        write_junit(path, &suites, &outcomes, &unread)?;
    }
    conclude(&outcomes, unread.len())
}

fn not_found(error: &FindError) -> Failure {
    let failure = Failure::new(format!("test: {error}"));
    match error {
        FindError::Read { .. } => failure,
        FindError::None { .. } => {
            failure.hinted("write GRAPH.omgtest.yaml beside GRAPH.yaml, as docs/TESTING-GRAPHS.md tells")
        }
    }
}

/// The tests to run, by the places of file and test.
fn wanted(suites: &[Suite], filter: &[String]) -> Vec<(usize, usize)> {
    let all = suites.iter().enumerate().flat_map(|(at, suite)| {
        suite.cases.iter().enumerate().map(move |(number, case)| ((at, number), &case.name))
    });
    all.filter(|(_, name)| filter.is_empty() || filter.iter().any(|part| name.contains(part)))
        .map(|(place, _)| place)
        .collect()
}

/// Runs the tests in a directory that goes, whatever happens, unless it is to be kept.
fn rehearse(
    keep: bool,
    suites: &Arc<Vec<Suite>>,
    wanted: &Arc<Vec<(usize, usize)>>,
    context: &Context,
) -> Result<Vec<Outcome>, Failure> {
    let place = tempfile::Builder::new()
        .prefix("omg-test-")
        .tempdir()
        .map_err(|error| Failure::new(format!("test: cannot make a directory for the runs: {error}")))?;
    leave_at_a_signal(place.path().to_path_buf(), keep)?;
    let manner = Manner { place: place.path().to_path_buf(), keep, clock: Arc::clone(&context.clock) };
    let outcomes = run::run(suites, wanted, &manner)
        .map_err(|error| Failure::new(format!("test: cannot start a thread: {error}")))?;
    if keep {
        drop(place.keep());
    }
    Ok(outcomes)
}

/// Nothing of a test is worth finishing: a signal ends the program once its directory is gone.
#[expect(clippy::exit, reason = "the main thread waits for tests that may take as long as their scripts say")]
fn leave_at_a_signal(place: PathBuf, keep: bool) -> Result<(), Failure> {
    let signals =
        signals::listen().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let wait = move || {
        if let Ok(signal) = signals.recv() {
            if !keep {
                fs::remove_dir_all(&place).ok();
            }
            std::process::exit(signal.exit_code().into());
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .map(drop)
        .map_err(|error| Failure::new(format!("test: cannot start a thread: {error}")))
}

fn print(suites: &[Suite], outcomes: &[Outcome], unread: &[(PathBuf, Unread)], context: &mut Context) {
    let mut last = None;
    for outcome in outcomes {
        let suite = &suites[outcome.suite];
        if last != Some(outcome.suite) {
            writeln!(context.out, "{}", sanitize::path(&suite.file)).ok();
            last = Some(outcome.suite);
        }
        print_outcome(suite, outcome, context);
    }
    for (file, error) in unread {
        writeln!(context.out, "{}", sanitize::path(file)).ok();
        match error {
            Unread::Load(error) => drop(writeln!(context.out, "{}", sanitize::one_line(&error.to_string()))),
            Unread::Problems(problems) => graph_file::print_problems(problems, context),
        }
    }
    let passed = outcomes.iter().filter(|outcome| outcome.has_passed()).count();
    let failed = outcomes.len() - passed;
    let mut words = vec![format!("{passed} passed")];
    if failed > 0 {
        words.push(format!("{failed} failed"));
    }
    if !unread.is_empty() {
        words.push(format!("{} that cannot be read", counted(unread.len(), "file")));
    }
    writeln!(context.out, "\n{}: {}", counted(outcomes.len(), "test"), words.join(", ")).ok();
    context.out.flush().ok();
}

fn print_outcome(suite: &Suite, outcome: &Outcome, context: &mut Context) {
    let look = context.out_look;
    let name = sanitize::one_line(&suite.cases[outcome.case].name).into_owned();
    let mark = if outcome.has_passed() { look.paint(GOOD, "✓") } else { look.paint(BAD, "✗") };
    writeln!(context.out, "  {mark} {name}").ok();
    match &outcome.verdict {
        Verdict::Passed => {}
        Verdict::Failed(differences) => {
            graph_file::print_problems(&judge::problems(suite, differences), context);
            print_trace(outcome, context);
        }
        Verdict::Broken(error) => {
            writeln!(context.out, "    {}", sanitize::one_line(&error.to_string())).ok();
        }
    }
    if let Some(home) = &outcome.kept {
        let words = format!("    kept: OMG_HOME={} omg show latest", sanitize::path(home));
        writeln!(context.out, "{}", look.paint(FAINT, &words)).ok();
    }
}

/// The last events of the run, as `watch` shows them.
fn print_trace(outcome: &Outcome, context: &mut Context) {
    let left_out = outcome.events.len().saturating_sub(TRACE_EVENTS_MAX);
    writeln!(context.out, "    what happened:").ok();
    if left_out > 0 {
        writeln!(context.out, "      … {left_out} more before").ok();
    }
    for event in &outcome.events[left_out..] {
        writeln!(context.out, "      {}", feed_lines::watch_line(event, context.out_look)).ok();
    }
}

fn print_json(suites: &[Suite], outcomes: &[Outcome], unread: &[(PathBuf, Unread)], context: &mut Context) {
    let report = Report::of(suites, outcomes, unread);
    // The shape holds nothing that JSON cannot.
    serde_json::to_writer_pretty(&mut context.out, &report).ok();
    writeln!(context.out).ok();
    context.out.flush().ok();
}

fn write_junit(
    path: &Path,
    suites: &[Suite],
    outcomes: &[Outcome],
    unread: &[(PathBuf, Unread)],
) -> Result<(), Failure> {
    let broken = unread.iter().map(|(file, error)| Broken {
        file: file.display().to_string(),
        lines: match error {
            Unread::Problems(problems) => problems.lines(),
            Unread::Load(error) => vec![error.to_string()],
        },
    });
    let (broken, mut xml): (Vec<Broken>, Vec<u8>) = (broken.collect(), Vec::new());
    junit::write(suites, outcomes, &broken, &mut xml)
        .and_then(|()| fs::write(path, xml))
        .map_err(|error| Failure::new(format!("{}: cannot be written: {error}", path.display())))
}

fn conclude(outcomes: &[Outcome], unread: usize) -> Result<u8, Failure> {
    let failed = outcomes.iter().filter(|outcome| !outcome.has_passed()).count();
    let failures = (failed > 0).then(|| format!("{failed} of {} failed", counted(outcomes.len(), "test")));
    let files = (unread > 0).then(|| format!("{} cannot be read", counted(unread, "file")));
    let words: Vec<String> = failures.into_iter().chain(files).collect();
    if words.is_empty() { Ok(0) } else { Err(Failure::new(format!("test: {}", words.join(", ")))) }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
