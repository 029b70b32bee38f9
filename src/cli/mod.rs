//! The command line, and the composition root: parses, wires the real services, prints. The only printer.
//!
//! One file a command. [`main`] is all that the binary calls. Misuse exits 1 (DECISIONS 26), because 2 means paused.

mod auto;
mod completions;
mod console;
mod context;
mod cycles;
mod decide;
mod deferred;
mod detach;
mod doctor;
mod dry_run;
mod estimate;
mod execute;
mod export;
mod failure;
mod graph;
mod graph_file;
mod guard;
mod init;
mod interview;
mod left_lanes;
mod lint;
mod misuse;
mod new;
mod order;
mod output;
mod planned;
mod planner;
mod prune;
mod reference;
mod rehearse;
mod resume;
mod run;
mod runs;
mod salvage;
mod schema;
mod serve;
mod services;
mod show;
mod stop;
mod test;
mod watch;

use std::ffi::OsString;
use std::io::Write;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser, Subcommand};

use crate::node::runtime::RuntimeKind;
use crate::view::term::style::ColourChoice;
use console::Console;
use context::Context;
use deferred::Deferred;
use failure::Failure;
pub use reference::reference;

/// Runs a graph of agent work on your own machine, with the claude or codex you are logged in to.
#[derive(Debug, Parser)]
#[command(
    name = "omg",
    version,
    args_override_self = true,
    subcommand_required = true,
    arg_required_else_help = true,
    infer_long_args = false,
    after_help = "Exit codes: 0 passed, 1 failed or misused, 2 paused, 3 auto refused for want of build evidence, 130/143/129 interrupted by INT/TERM/HUP.\n\
                  Runs are kept under $OMG_HOME, else ~/.oh-my-graph."
)]
struct Omg {
    /// The CLI that answers prompts, for run, auto, lint and doctor; claude unless it says codex.
    #[arg(long, global = true, value_name = "RUNTIME", value_parser = runtimes())]
    runtime: Option<RuntimeKind>,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColourChoice::Auto)]
    color: ColourChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Puts the shipped graphs and fragments into a directory.
    Init(Deferred<init::Args>),
    /// Writes a first graph: asks on a terminal, or takes flags.
    New(Deferred<new::Args>),
    /// Runs a graph.
    Run(Deferred<run::Args>),
    /// Plans a graph for a goal, and runs it under a ceiling.
    Auto(Deferred<auto::Args>),
    /// Runs a graph with scripted replies: no model, no commands, no money.
    Rehearse(Deferred<rehearse::Args>),
    /// Goes on with a run that paused, failed or was interrupted.
    Resume(Deferred<resume::Args>),
    /// Checks graphs and says everything that is wrong with them.
    Lint(Deferred<lint::Args>),
    /// Draws a graph, or a run's graph with what became of each node.
    Graph(Deferred<graph::Args>),
    /// Says what a graph may take at worst, and what its runs usually took.
    Estimate(Deferred<estimate::Args>),
    /// Runs tests of graphs: scripted replies, and what has to come of them.
    Test(Deferred<test::Args>),
    /// Lists the runs on this machine, and removes old ones.
    Runs(Deferred<runs::Args>),
    /// Shows one run, or what one of its nodes was asked and said.
    Show(Deferred<show::Args>),
    /// Lists what was kept of a run's git worktrees, and restores it.
    Salvage(Deferred<salvage::Args>),
    /// Writes a run as one file: its page, a trace, or a report for CI.
    Export(Deferred<export::Args>),
    /// Follows a run from another terminal.
    Watch(Deferred<watch::Args>),
    /// Shows runs in a browser, live, and takes decisions at gates there.
    Serve(Deferred<serve::Args>),
    /// Ends runs that are under way.
    Stop(Deferred<stop::Args>),
    /// Looks at this machine: what keeps a run from working, and what to do about it.
    Doctor(Deferred<doctor::Args>),
    /// Prints the JSON Schema of graph files, for an editor.
    Schema(Deferred<schema::Args>),
    /// Prints the version.
    Version,
    /// Prints a completion script for a shell.
    Completions(Deferred<completions::Args>),
}

impl Command {
    /// Whether what it prints only shows a run, which is done whoever looks.
    fn is_display(&self) -> bool {
        matches!(self, Command::Run(_) | Command::Auto(_) | Command::Rehearse(_) | Command::Resume(_))
    }
}

/// `claude` and `codex`; the rehearsal has a command of its own.
fn runtimes() -> impl TypedValueParser<Value = RuntimeKind> {
    PossibleValuesParser::new(["claude", "codex"])
        .map(|word| RuntimeKind::parse(&word).expect("every word that is offered names a runtime"))
}

/// Runs the program with `words`, the program's name first; returns the exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(code) = guard::stand(&words) {
        return code;
    }
    let omg = match Omg::try_parse_from(&words) {
        Ok(omg) => omg,
        Err(error) => return misuse::answer(&error, &words),
    };
    let mut context = Context::of_process(omg.color);
    let is_display = omg.command.is_display();
    let done = dispatch(omg, &mut context);
    // What a command was asked to print is its result.
    let settled =
        done.and_then(|code| if is_display { Ok(code) } else { context.out.settle().map(|()| code) });
    match settled {
        Ok(code) => code,
        Err(failure) => {
            // A terminal that is gone does not change how the command ended.
            failure.print(&mut context.err).ok();
            failure.exit
        }
    }
}

fn dispatch(omg: Omg, context: &mut Context) -> Result<u8, Failure> {
    let Omg { runtime, command, .. } = omg;
    match command {
        Command::Run(Deferred(args)) => run::run(args, runtime.unwrap_or_default(), context),
        Command::Auto(Deferred(args)) => auto::run(&args, runtime.unwrap_or_default(), context),
        Command::Resume(Deferred(args)) => resume::run(&args, runtime, context),
        Command::Lint(Deferred(args)) => lint::run(&args, runtime.unwrap_or_default(), context),
        Command::Doctor(Deferred(args)) => doctor::run(&args, runtime, context),
        other => match (runtime, other) {
            (Some(_), _) => Err(Failure::new("--runtime belongs to run, auto, resume, lint and doctor")
                .hinted("leave it out: this command asks no model")),
            (None, Command::Init(Deferred(args))) => init::run(&args, context),
            (None, Command::New(Deferred(args))) => new::run(&args, context),
            (None, Command::Rehearse(Deferred(args))) => rehearse::run(args, context),
            (None, Command::Graph(Deferred(args))) => graph::run(&args, context),
            (None, Command::Estimate(Deferred(args))) => estimate::run(&args, context),
            (None, Command::Test(Deferred(args))) => test::run(&args, context),
            (None, Command::Runs(Deferred(args))) => runs::run(&args, context),
            (None, Command::Show(Deferred(args))) => show::run(&args, &mut context.console()),
            (None, Command::Export(Deferred(args))) => export::run(&args, context),
            (None, Command::Salvage(Deferred(args))) => salvage::run(&args, context),
            (None, Command::Watch(Deferred(args))) => watch::run(&args, &mut context.listening()?),
            (None, Command::Serve(Deferred(args))) => serve::run(&args, context),
            (None, Command::Stop(Deferred(args))) => stop::run(&args, &mut context.console()),
            (None, Command::Schema(Deferred(args))) => schema::run(&args, context),
            (None, Command::Completions(Deferred(args))) => completions::run(&args, context, Omg::command()),
            (None, _) => {
                writeln!(context.out, "omg {}", env!("CARGO_PKG_VERSION")).ok();
                Ok(0)
            }
        },
    }
}
