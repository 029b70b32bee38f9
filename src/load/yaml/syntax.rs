//! Syntax errors in the words of somebody who writes a graph: what stands there, and what to write instead.
//!
//! Knows the parser's kinds of error and the marks of YAML, and no key of a graph.

use granit_parser::{ErrorKind, ScanError};

use super::tree::Span;
use crate::load::problem::Problem;

/// A syntax error, with what to do about the common ones. Of a tab in front of a line the parser knows only the value
/// before it.
pub(super) fn syntax(source: &str, error: &ScanError) -> Problem {
    let at = source.floor_char_boundary(error.marker().byte_offset().unwrap_or(0));
    let here = |at: usize| Span { start: offset(at), end: offset(at) };
    if error.info().contains("tab") {
        let problem = match indenting_tab(source, at) {
            Some(tab) => Problem::at(here(tab), "a tab indents this line, and YAML allows none there"),
            None => Problem::at(here(at), error.info()),
        };
        return problem.hint("indent with spaces");
    }
    let (message, hint) = told(source, at, error);
    let problem = Problem::at(here(at), message);
    if hint.is_empty() { problem } else { problem.hint(hint) }
}

/// What is wrong at byte `at`, and what to write instead; the parser's own words for what nobody does by mistake.
fn told(source: &str, at: usize, error: &ScanError) -> (String, &'static str) {
    if follows_token(source, at) {
        return (
            "text goes on here behind a value that begins with {{".to_owned(),
            "put quotes around all of it",
        );
    }
    let (message, hint) = match error.kind() {
        ErrorKind::UnknownAnchor => {
            ("the alias names no & anchor above it", "put quotes around text that begins with *")
        }
        ErrorKind::MappingValueNotAllowed => (
            "a colon stands where no key can",
            "put quotes around text that holds a colon and a space, and check the indentation",
        ),
        ErrorKind::UnexpectedCharacter { character } => return unexpected(*character),
        ErrorKind::InvalidColonPlacement => return (error.info(), "a bracket may be open above"),
        ErrorKind::UnclosedQuotedScalar => {
            ("the text that begins here has no closing quote", "add the quote at its end")
        }
        ErrorKind::UnclosedFlowCollection { open } => return unclosed(*open),
        ErrorKind::RecursionLimitExceeded => ("the document nests deeper than 64 levels here", ""),
        ErrorKind::SimpleKeyExpected => (
            "this line is neither a key with its value nor part of the text above",
            "write key: value, or indent it deeper than the key that it belongs to",
        ),
        ErrorKind::ExpectedBlockMappingKey => (
            "no key stands here where the mapping above goes on",
            "write key: value, in the same column as the keys above",
        ),
        ErrorKind::ExpectedBlockSequenceEntry => (
            "no item stands here where the list above goes on",
            "the keys of an item begin in one column, two to the right of its -",
        ),
        ErrorKind::ExpectedFlowMappingSeparator => (
            "a , or a } is missing before this",
            "put quotes around text that holds braces, commas or quotes",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            "a , or a ] is missing before this",
            "put quotes around text that holds brackets, commas or quotes",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar => (
            "text goes on here behind a closing quote",
            "separate values with a comma; a quote inside single quotes is written twice",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "text goes on here behind a closing quote",
            "separate values with a comma; a quote inside double quotes is written \\\"",
        ),
        ErrorKind::UnknownQuotedScalarEscape => (
            "this backslash in double quotes begins no escape that YAML knows",
            "write it twice, or put single quotes around the text",
        ),
        _ => return (error.info(), ""),
    };
    (message.to_owned(), hint)
}

/// A character at which no value can begin, or that no file may hold.
fn unexpected(character: char) -> (String, &'static str) {
    match character {
        '@' | '`' | '%' => (
            format!("a value cannot begin with {character}"),
            "put quotes around it, or write the text below a |",
        ),
        '\0' => ("a NUL byte stands here".to_owned(), "save the file as UTF-8 text"),
        c if c.is_control() => (
            format!("the control character {c:?} stands here"),
            "write it as an escape in double quotes, as in \"\\e\"",
        ),
        c => (format!("the character {c:?} cannot stand here"), "put quotes around the text that holds it"),
    }
}

fn unclosed(open: char) -> (String, &'static str) {
    let hint = match open {
        '[' => "add ] where the list ends",
        _ => "add } where the mapping ends",
    };
    (format!("the {open} that stands here is never closed"), hint)
}

/// Whether byte `at` stands behind a token that begins a value without quotes, as in `prompt: {{ inputs.x }} and more`.
fn follows_token(source: &str, at: usize) -> bool {
    let line = source[..at].rsplit('\n').next().unwrap_or_default();
    let Some(before) = line.trim_end().strip_suffix("}}") else { return false };
    before.rfind("{{").is_some_and(|open| before[..open].trim_end().ends_with([':', '-', '[', ',']))
}

/// The first tab at or after byte `at`, in its line or the next, that has nothing but blanks before it.
fn indenting_tab(source: &str, at: usize) -> Option<usize> {
    let start = source[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut from = start;
    for line in source[start..].split_inclusive('\n').take(2) {
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line[..blank].find('\t') {
            return Some(from + tab);
        }
        from += line.len();
    }
    None
}

pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
