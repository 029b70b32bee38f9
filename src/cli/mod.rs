//! The command line, and the composition root: parses, wires the real services, prints. The only printer.
//!
//! One file a command. [`main`] is all that the binary calls. Misuse exits 1 (DECISIONS 26), because 2 means paused.

mod auto;
mod completions;
mod console;
mod context;
mod decide;
mod detach;
mod dry_run;
mod estimate;
mod execute;
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
    /// The CLI that answers prompts, for run, auto and lint; claude unless it says codex.
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
    Init(init::Args),
    /// Writes a first graph: asks on a terminal, or takes flags.
    New(new::Args),
    /// Runs a graph.
    Run(run::Args),
    /// Plans a graph for a goal, and runs it.
    Auto(auto::Args),
    /// Runs a graph with scripted replies: no model, no commands, no money.
    Rehearse(rehearse::Args),
    /// Goes on with a run that paused, failed or was interrupted.
    Resume(resume::Args),
    /// Checks a graph and says everything that is wrong with it.
    Lint(lint::Args),
    /// Draws a graph, or a run's graph with what became of each node.
    Graph(graph::Args),
    /// Says what a graph may take at worst, and what its runs usually took.
    Estimate(estimate::Args),
    /// Runs tests of graphs: scripted replies, and what has to come of them.
    Test(test::Args),
    /// Lists the runs on this machine, and removes old ones.
    Runs(runs::Args),
    /// Shows one run, or what one of its nodes was asked and said.
    Show(show::Args),
    /// Lists what was kept of a run's git worktrees, and restores it.
    Salvage(salvage::Args),
    /// Follows a run from another terminal.
    Watch(watch::Args),
    /// Shows runs in a browser, live.
    Serve(serve::Args),
    /// Ends runs that are under way.
    ///
    /// Their children are ended as by Ctrl-C, and what had settled is kept. Returns when they have ended. A node cannot
    /// stop the run that it is part of.
    Stop(stop::Args),
    /// Prints the JSON Schema of graph files, for an editor.
    Schema(schema::Args),
    /// Prints the version.
    Version,
    /// Prints a completion script for a shell.
    Completions(completions::Args),
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
        Command::Run(args) => run::run(args, runtime.unwrap_or_default(), context),
        Command::Auto(args) => auto::run(&args, runtime.unwrap_or_default(), context),
        Command::Resume(args) => resume::run(&args, runtime, context),
        Command::Lint(args) => lint::run(&args, runtime.unwrap_or_default(), context),
        other => match (runtime, other) {
            (Some(_), _) => Err(Failure::new("--runtime belongs to run, auto, resume and lint")
                .hinted("leave it out: this command asks no model")),
            (None, Command::Init(args)) => init::run(&args, context),
            (None, Command::New(args)) => new::run(&args, context),
            (None, Command::Rehearse(args)) => rehearse::run(args, context),
            (None, Command::Graph(args)) => graph::run(&args, context),
            (None, Command::Estimate(args)) => estimate::run(&args, context),
            (None, Command::Test(args)) => test::run(&args, context),
            (None, Command::Runs(args)) => runs::run(&args, context),
            (None, Command::Show(args)) => show::run(&args, &mut context.console()),
            (None, Command::Salvage(args)) => salvage::run(&args, context),
            (None, Command::Watch(args)) => watch::run(&args, &mut context.listening()?),
            (None, Command::Serve(args)) => serve::run(&args, context),
            (None, Command::Stop(args)) => stop::run(&args, &mut context.console()),
            (None, Command::Schema(args)) => schema::run(&args, context),
            (None, Command::Completions(args)) => completions::run(&args, context, Omg::command()),
            (None, _) => {
                writeln!(context.out, "omg {}", env!("CARGO_PKG_VERSION")).ok();
                Ok(0)
            }
        },
    }
}
