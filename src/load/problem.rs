//! What is wrong with a file, and how it is told: each problem with its line, its column and its source.
//!
//! Three forms of the same list: excerpts with carets for a person, one line each for a pipe, values for JSON.
//! Knows no rule of a graph.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use crate::graph::check::Label;
use crate::load::yaml::Span;
use crate::text::sanitize;

/// How many problems are shown with their source; more are lines only.
const EXCERPTS_MAX: usize = 50;
/// How many bytes of a source line are shown around a problem.
const LINE_BYTES_MAX: usize = 400;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    pub span: Span,
    pub node: Option<Label>,
    pub message: String,
    pub hint: Option<String>,
    /// Another place that the message speaks of.
    pub related: Option<(Span, &'static str)>,
}

impl Problem {
    /// A problem at a place.
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        Problem { span, node: None, message: message.into(), hint: None, related: None }
    }

    /// Adds what to write instead.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another place.
    pub(crate) fn related(mut self, span: Span, label: &'static str) -> Self {
        self.related = Some((span, label));
        self
    }
}

/// Everything wrong with a file.
#[derive(Debug)]
pub struct Problems {
    file: String,
    text: String,
    line_starts: Vec<usize>,
    list: Vec<Problem>,
    /// By problem: its line and column.
    places: Vec<(usize, usize)>,
}

/// A problem as a value, for JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The node's id, or its place as `node 3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problems {
    pub(crate) fn new(file: &str, text: &str, list: Vec<Problem>) -> Self {
        let line_starts = line_starts(text);
        let places = places(text, &line_starts, &list);
        Self { file: file.to_owned(), text: text.to_owned(), line_starts, list, places }
    }

    /// How many there are; never none.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// One line each, `file:line:column: node "x": message`.
    pub fn lines(&self) -> Vec<String> {
        (0..self.list.len()).map(|at| self.header(at)).collect()
    }

    /// As values.
    pub fn reports(&self) -> Vec<Report> {
        (0..self.list.len()).map(|at| self.report(at)).collect()
    }

    /// With source excerpts and hints, for a person.
    pub fn render(&self, colour: bool, width: usize) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(width);
        let mut out = String::new();
        for (at, problem) in self.list.iter().enumerate() {
            out.push_str(&self.header(at));
            out.push('\n');
            if at < EXCERPTS_MAX {
                out.push_str(&self.excerpt(problem, &renderer));
            }
            if let Some(hint) = &problem.hint {
                out.push_str("  hint: ");
                out.push_str(&sanitize::one_line(hint));
                out.push('\n');
            }
        }
        out
    }

    fn report(&self, at: usize) -> Report {
        let (problem, (line, column)) = (&self.list[at], self.places[at]);
        let node = problem.node.as_ref().map(|label| match label {
            Label::Id(id) => id.clone(),
            place => place.to_string(),
        });
        let (message, hint) = (problem.message.clone(), problem.hint.clone());
        Report { file: self.file.clone(), line, column, node, message, hint }
    }

    fn header(&self, at: usize) -> String {
        let (problem, (line, column)) = (&self.list[at], self.places[at]);
        let file = sanitize::one_line(&self.file);
        let message = sanitize::one_line(&problem.message);
        match &problem.node {
            Some(node) => {
                format!("{file}:{line}:{column}: {}: {message}", sanitize::one_line(&node.to_string()))
            }
            None => format!("{file}:{line}:{column}: {message}"),
        }
    }

    fn line_of(&self, at: usize) -> usize {
        line_of(&self.line_starts, at)
    }

    /// The bytes of a line, without its line break.
    fn line_range(&self, line: usize) -> Range<usize> {
        let start = self.line_starts[line];
        let end = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        start..start + self.text[start..end].trim_end_matches(['\n', '\r']).len()
    }

    /// The problem's line with a caret below it, and the related line when there is one.
    fn excerpt(&self, problem: &Problem, renderer: &Renderer) -> String {
        let mut out = String::new();
        if let Some((span, label)) = problem.related
            && self.line_of(span.start as usize) != self.line_of(problem.span.start as usize)
        {
            out.push_str(&self.snippet(span, AnnotationKind::Context, Some(label), renderer));
        }
        out.push_str(&self.snippet(problem.span, AnnotationKind::Primary, None, renderer));
        out
    }

    fn snippet(&self, span: Span, kind: AnnotationKind, label: Option<&str>, renderer: &Renderer) -> String {
        let line = self.line_of(span.start as usize);
        let whole = self.line_range(line);
        // A caret stays on its first line, and a very long line is shown around the caret only.
        let start = (span.start as usize).clamp(whole.start, whole.end);
        let from = self.text.ceil_char_boundary(whole.start.max(start.saturating_sub(LINE_BYTES_MAX / 2)));
        let to = self.text.floor_char_boundary(whole.end.min(start + LINE_BYTES_MAX));
        let end = (span.end as usize).clamp(start, to.max(start));
        let shown = &self.text[from..to.max(from)];
        let snippet = Snippet::source(shown)
            .line_start(line + 1)
            .annotation(kind.span(start - from..end - from).label(label));
        let group = Group::with_level(Level::ERROR).element(snippet);
        format!("{}\n", sanitize::drawn(renderer.render(&[group]).trim_end()))
    }
}

impl fmt::Display for Problems {
    /// The lines, without excerpts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

impl std::error::Error for Problems {}

/// The line that holds the byte `at`, from 0.
fn line_of(line_starts: &[usize], at: usize) -> usize {
    line_starts.partition_point(|start| *start <= at).saturating_sub(1)
}

/// Line and column of each problem, from 1. One pass over the text whatever the number of problems: a file may be
/// one line of many megabytes. A byte order mark has no width.
fn places(text: &str, line_starts: &[usize], list: &[Problem]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by_key(|at| list[*at].span.start);
    let mut places = vec![(1, 1); list.len()];
    let (mut counted_to, mut column) = (0, 1);
    for at in order {
        let offset = text.floor_char_boundary(list[at].span.start as usize);
        let line = line_of(line_starts, offset);
        if line_starts[line] > counted_to {
            (counted_to, column) = (line_starts[line], 1);
        }
        column += text[counted_to..offset].chars().filter(|c| *c != '\u{feff}').count();
        counted_to = offset;
        places[at] = (line + 1, column);
    }
    places
}

fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        // A lone carriage return ends a line in YAML too.
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}
