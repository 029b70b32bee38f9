//! What a command line that cannot be parsed is answered with: one line, one hint, exit code 1 (DECISIONS 26, 27).
//!
//! Help and versions that were asked for are answers, on standard output with 0. Knows the parser's kinds of error,
//! and no command.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::ValueEnum as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::failure::{FAILED, Failure};
use crate::view::term::style::{ColourChoice, Look};

/// Answers; returns the exit code.
pub(super) fn answer(error: &clap::Error, words: &[OsString]) -> u8 {
    // Where nobody listens any more, nothing is left to be said.
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print(error, Look::of(&io::stdout(), colour(words)), &mut io::stdout());
            0
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            print(error, Look::of(&io::stderr(), colour(words)), &mut io::stderr());
            FAILED
        }
        _ => {
            let failure = failure(error, words);
            failure.print(&mut io::stderr()).ok();
            failure.exit
        }
    }
}

fn print(error: &clap::Error, look: Look, to: &mut dyn Write) {
    let text = error.render();
    let text = if look.colour { text.ansi().to_string() } else { text.to_string() };
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).ok();
}

/// What `--color` says in words that do not parse, or that ask for help.
fn colour(words: &[OsString]) -> ColourChoice {
    let words: Vec<&str> =
        words.iter().map_while(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let value = |at: usize| match words[at].strip_prefix("--color") {
        Some("") => words.get(at + 1).copied(),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    };
    let last = (0..words.len()).rev().find_map(value);
    last.and_then(|word| ColourChoice::from_str(word, false).ok()).unwrap_or_default()
}

fn failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let usage = usage(error);
    let place = place(&usage);
    let what = match error.kind() {
        ErrorKind::UnknownArgument => unknown(&text(error, ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command {:?}", text(error, ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{} is missing", plain(&text(error, ContextKind::InvalidArg)))
        }
        ErrorKind::InvalidValue if text(error, ContextKind::InvalidValue).is_empty() => {
            let flag = flag(error);
            if flag.starts_with('-') { format!("{flag} needs a value") } else { format!("{flag} is empty") }
        }
        ErrorKind::TooManyValues => format!("{} takes no value", flag(error)),
        ErrorKind::InvalidValue => {
            format!("{} cannot be {:?}", flag(error), text(error, ContextKind::InvalidValue))
        }
        ErrorKind::ValueValidation => validation(error),
        ErrorKind::InvalidUtf8 => {
            let odd = words.iter().find(|word| word.to_str().is_none());
            format!("{:?} is not UTF-8", odd.map(|word| word.to_string_lossy()).unwrap_or_default())
        }
        _ => first_line(error),
    };
    let message = if place.is_empty() { what } else { format!("{place}: {what}") };
    Failure::new(message).hinted(hint(error, &usage, &place))
}

fn unknown(argument: &str) -> String {
    if argument.starts_with('-') {
        format!("there is no flag {argument}")
    } else {
        format!("{argument:?} is one argument too many")
    }
}

fn validation(error: &clap::Error) -> String {
    let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{} cannot be {:?}: {why}", flag(error), text(error, ContextKind::InvalidValue))
}

fn hint(error: &clap::Error, usage: &str, place: &str) -> String {
    let meant = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand].map(|kind| text(error, kind));
    if let Some(meant) = meant.iter().find(|meant| !meant.is_empty()) {
        return format!("did you mean {meant}?");
    }
    let values = text(error, ContextKind::ValidValue);
    if !values.is_empty() {
        return format!("it can be {values}");
    }
    let argument = text(error, ContextKind::InvalidArg);
    if error.kind() == ErrorKind::InvalidValue && argument.starts_with("--") {
        return format!("write {}", argument.replace(['<', '>'], ""));
    }
    match (usage, place) {
        ("", "") => "omg --help lists the commands and their flags".to_owned(),
        ("", place) => format!("omg {place} --help says more"),
        (_, "") => "omg --help lists the commands".to_owned(),
        (usage, place) => format!("write {usage}; omg {place} --help says more"),
    }
}

/// The form of the command, on one line.
fn usage(error: &clap::Error) -> String {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let line = usage.trim().lines().next().unwrap_or_default();
    line.strip_prefix("Usage: ").unwrap_or_default().trim().to_owned()
}

/// The words of the command in its form: `runs list` of `omg runs list [OPTIONS]`.
fn place(usage: &str) -> String {
    let words = usage.split(' ').skip(1);
    words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect::<Vec<_>>().join(" ")
}

/// The flag or argument that is spoken of, without the name of its value.
fn flag(error: &clap::Error) -> String {
    let argument = text(error, ContextKind::InvalidArg);
    plain(argument.split(' ').next().unwrap_or_default())
}

/// An argument without the marks of its number: `<GRAPH>` of `[GRAPH]...`.
fn plain(argument: &str) -> String {
    argument.replace("...", "").replace('[', "<").replace(']', ">")
}

/// What the parser says under `kind`; a list is separated by commas, and nothing said is empty.
fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(list)) => list.join(", "),
        _ => String::new(),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
