//! `omg new`: a first graph of one's own, from answers on a terminal or from flags. Never writes over a file.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::context::Context;
use super::interview::Interview;
use super::{Failure, graph_file};
use crate::graph::bounds;
use crate::load::Source;
use crate::starter::draft::{Draft, FACTS_DEFAULT, Shape};
use crate::text::money::PRICE_USD_MAX;
use crate::text::sanitize;
use crate::text::shell_word::shell_path;
use crate::trial::find::ENDINGS;

/// What one prompt may cost when nobody says otherwise.
const BUDGET_USD_DEFAULT: f64 = 2.0;

/// Writes a first graph: asks on a terminal, or takes flags.
///
/// With --template nothing is asked and what is not said has its default; without it the questions come on a terminal, those
/// that a flag has answered left out. A file that exists is never written over.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file to write; NAME.yaml without one.
    file: Option<PathBuf>,
    /// What the graph is for.
    #[arg(long, short, value_parser = shapes())]
    template: Option<Shape>,
    /// The graph's name; that of the file without one.
    #[arg(long, value_parser = line)]
    name: Option<String>,
    /// The command that says whether the work holds, such as "cargo test"; for check and review-loop.
    #[arg(long, value_name = "COMMAND", value_parser = line)]
    check: Option<String>,
    /// A command that gathers facts for a report; repeat for more.
    #[arg(long, value_name = "COMMAND", value_parser = line)]
    gather: Vec<String>,
    /// What one prompt may cost at most; 2 without it.
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true, value_parser = dollars)]
    budget: Option<f64>,
    /// Do the work in a git worktree of its own; not for report.
    #[arg(long)]
    lane: bool,
}

fn shapes() -> impl TypedValueParser<Value = Shape> {
    PossibleValuesParser::new(Shape::ALL.map(Shape::as_str))
        .map(|word| Shape::parse(&word).expect("every word that is offered names a shape"))
}

/// A text that fits into one line of a graph.
fn line(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is blank".to_owned()),
        text if text.chars().any(char::is_control) => Err("it must be one line".to_owned()),
        text => Ok(text.to_owned()),
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches('$').parse().ok();
    amount.filter(|usd: &f64| bounds::spend(*usd).is_ok()).ok_or_else(|| {
        format!("it takes dollars above nothing, such as 2 or 0.50, and at most {PRICE_USD_MAX}")
    })
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    if let Some(file) = &args.file {
        is_free(file)?;
    }
    let (draft, file) = match args.template {
        Some(shape) => from_flags(shape, args)?,
        None if io::stdin().is_terminal() => {
            let mut interview = Interview { answers: &mut io::stdin().lock(), questions: &mut context.out };
            from_answers(args, &mut interview)?
        }
        None => {
            return Err(Failure::new("new: the questions need a terminal; without one, --template says what to write")
                .hinted("omg new --template review-loop --check \"cargo test\" FILE; omg new --help lists the templates"));
        }
    };
    let text = draft.write(&file);
    let prompts = check(&file, &text, context)?;
    write(&file, &text)?;
    tell(&draft, &file, prompts, context)?;
    Ok(0)
}

fn is_free(file: &Path) -> Result<(), Failure> {
    let told = sanitize::path(file);
    if told.chars().ne(file.display().to_string().chars()) {
        return Err(Failure::new(format!("{told}: the name of a graph's file must be plain text")));
    }
    if ENDINGS.iter().any(|ending| told.ends_with(ending)) {
        return Err(Failure::new(format!("{told}: a file that is named so holds tests of a graph"))
            .hinted("name the graph's own file, such as graph.yaml"));
    }
    match std::fs::symlink_metadata(file) {
        Ok(_) => Err(taken(file)),
        Err(_) => Ok(()),
    }
}

fn taken(file: &Path) -> Failure {
    Failure::new(format!("{}: it is there already, and nothing was written", file.display()))
        .hinted("name another file, or move this one away")
}

/// Everything that was not said has its default.
fn from_flags(shape: Shape, args: &Args) -> Result<(Draft, PathBuf), Failure> {
    belongs(shape, args)?;
    if shape == Shape::Check && args.check.is_none() {
        return Err(Failure::new(
            "new: --template check needs --check, the command that says whether the work holds",
        )
        .hinted("omg new --template check --check \"cargo test\" FILE"));
    }
    let name = args.name.clone().unwrap_or_else(|| name_of(args.file.as_deref(), shape));
    let file = args.file.clone().map_or_else(|| default_file(&name), Ok)?;
    is_free(&file)?;
    let draft = Draft {
        shape,
        name,
        check: args.check.clone(),
        facts: facts(&args.gather),
        budget_usd: args.budget.unwrap_or(BUDGET_USD_DEFAULT),
        has_lane: args.lane,
    };
    Ok((draft, file))
}

/// Refuses flags that say nothing about this shape.
fn belongs(shape: Shape, args: &Args) -> Result<(), Failure> {
    let misplaced = [
        ("--check", args.check.is_some() && !shape.takes_check(), "check and review-loop"),
        ("--lane", args.lane && !shape.takes_lane(), "prompt, check and review-loop"),
        ("--gather", !args.gather.is_empty() && shape != Shape::Report, "report"),
    ];
    match misplaced.iter().find(|(_, is_misplaced, _)| *is_misplaced) {
        Some((flag, _, shapes)) => Err(Failure::new(format!("new: {flag} belongs to {shapes}"))
            .hinted(format!("leave it out: {} has no use for it", shape.as_str()))),
        None => Ok(()),
    }
}

fn from_answers(args: &Args, interview: &mut Interview<'_>) -> Result<(Draft, PathBuf), Failure> {
    let shape = ask_shape(interview)?;
    belongs(shape, args)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => interview.ask("Name", &name_of(args.file.as_deref(), shape), line)?,
    };
    let check = match &args.check {
        Some(check) => Some(check.clone()),
        None => ask_check(shape, interview)?,
    };
    let gather = match args.gather.is_empty() && shape == Shape::Report {
        true => ask_facts(interview)?,
        false => args.gather.clone(),
    };
    let budget_usd = match args.budget {
        Some(budget) => budget,
        None => interview.ask(
            "Dollars that one prompt may cost at most",
            &BUDGET_USD_DEFAULT.to_string(),
            dollars,
        )?,
    };
    let has_lane = args.lane
        || shape.takes_lane() && interview.ask("Work in a git worktree of its own (y or n)", "n", yes)?;
    let file = match &args.file {
        Some(file) => file.clone(),
        None => ask_file(&name, interview)?,
    };
    Ok((Draft { shape, name, check, facts: facts(&gather), budget_usd, has_lane }, file))
}

fn ask_shape(interview: &mut Interview<'_>) -> Result<Shape, Failure> {
    interview.say("What is the graph for?")?;
    for (at, shape) in Shape::ALL.iter().enumerate() {
        interview.say(&format!("  {} {:<12} {}", at + 1, shape.as_str(), shape.purpose()))?;
    }
    interview.ask("A number or a word", "1", |answer| {
        let numbered =
            answer.parse::<usize>().ok().and_then(|number| Shape::ALL.get(number.checked_sub(1)?).copied());
        numbered.or_else(|| Shape::parse(answer)).ok_or_else(|| format!("{answer:?} is none of these"))
    })
}

fn ask_check(shape: Shape, interview: &mut Interview<'_>) -> Result<Option<String>, Failure> {
    match shape {
        Shape::Check => {
            interview.ask("Command that says whether the work holds, such as cargo test", "", line).map(Some)
        }
        Shape::ReviewLoop => {
            let question = "Command that says whether the work holds, such as cargo test; nothing for none";
            interview.ask(question, "", |answer| Ok(line(answer).ok()))
        }
        Shape::Prompt | Shape::Report => Ok(None),
    }
}

/// Commands, until an empty answer.
fn ask_facts(interview: &mut Interview<'_>) -> Result<Vec<String>, Failure> {
    interview.say("Commands that gather the facts, one a line; nothing ends them, nothing at once takes the latest commits and the status")?;
    let mut commands = Vec::new();
    while let Some(command) = interview.ask("Command", "", |answer| Ok(line(answer).ok()))? {
        commands.push(command);
    }
    Ok(commands)
}

fn ask_file(name: &str, interview: &mut Interview<'_>) -> Result<PathBuf, Failure> {
    let usual = default_file(name).map(|file| file.display().to_string()).unwrap_or_default();
    interview.ask("File", &usual, |answer| {
        let file = line(answer).map(PathBuf::from)?;
        is_free(&file).map(|()| file).map_err(|failure| failure.message)
    })
}

fn yes(answer: &str) -> Result<bool, String> {
    match answer.to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("it takes y or n".to_owned()),
    }
}

fn facts(gather: &[String]) -> Vec<String> {
    if gather.is_empty() { FACTS_DEFAULT.map(str::to_owned).to_vec() } else { gather.to_vec() }
}

fn name_of(file: Option<&Path>, shape: Shape) -> String {
    let stem = file.and_then(Path::file_stem).map(|stem| stem.display().to_string());
    stem.unwrap_or_else(|| shape.as_str().to_owned())
}

/// `NAME.yaml`, for a name that is one element of a path.
fn default_file(name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') || name.starts_with(['.', '-']) {
        return Err(Failure::new(format!("new: the name {name:?} does not name a file"))
            .hinted("say where to write it"));
    }
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name);
    Ok(PathBuf::from(format!("{stem}.yaml")))
}

/// Loads what is about to be written; what there is to say of it is said. The number of its nodes.
fn check(file: &Path, text: &str, context: &mut Context) -> Result<usize, Failure> {
    let source = Source::from_bytes(file, text.as_bytes().to_vec());
    let source = source.map_err(|error| Failure::new(error.to_string()))?;
    let loaded = crate::load::load(&source).map_err(|problems| {
        graph_file::print_problems(&problems, context);
        Failure::new(format!("{}; nothing was written", graph_file::counted(file, &problems)))
    })?;
    graph_file::print_advice(file, &loaded.advice, context);
    Ok(loaded.graph.nodes().len())
}

/// Creates the file, which must not exist; a link in its place counts as one.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(file),
        _ => Failure::new(format!("{}: cannot be written: {error}", file.display())),
    };
    let mut opened = OpenOptions::new().write(true).create_new(true).open(file).map_err(failed)?;
    opened.write_all(text.as_bytes()).map_err(|error| {
        // Half a graph is worse than none.
        std::fs::remove_file(file).ok();
        failed(error)
    })
}

fn tell(draft: &Draft, file: &Path, nodes: usize, context: &mut Context) -> Result<(), Failure> {
    let word = shell_path(file);
    let input = if draft.shape == Shape::Report { "" } else { " --input task=\"what is to be done\"" };
    let plural = if nodes == 1 { "node" } else { "nodes" };
    writeln!(context.out, "wrote {} ({}, {nodes} {plural})", sanitize::path(file), draft.shape.as_str())?;
    writeln!(
        context.out,
        "next: omg rehearse {word}{input}   # the same engine: no model, no command, no money"
    )?;
    writeln!(context.out, "then: omg run {word}{input}")?;
    Ok(context.out.flush()?)
}
