//! What is wrong with a file, and how it is told: each problem with its line, its column and its source.
//!
//! Three forms of the same list: excerpts with carets for a person, one line each for a pipe, values for JSON.
//! Knows no rule of a graph.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::rc::Rc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use crate::graph::check::Label;
use crate::lint::Advice;
use crate::load::citation::{Chain, Step};
use crate::load::files::{File, Files};
use crate::load::yaml::Span;
use crate::text::sanitize;

/// How many problems are shown with their source; more are lines only.
const EXCERPTS_MAX: usize = 50;
/// How many citations of a fragment are shown with a problem of it.
const SITES_MAX: usize = 5;
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
    /// When it stands in a fragment: how that came into the graph, once for each node that cites it.
    pub sites: Rc<[Chain]>,
}

impl Problem {
    /// A problem at a place.
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        Problem { span, node: None, message: message.into(), hint: None, related: None, sites: Rc::default() }
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

/// Everything wrong with a file, and with the fragments that it cites.
#[derive(Debug)]
pub struct Problems {
    files: Files<'static>,
    list: Vec<Problem>,
    /// By the place where a span begins: its line and column, from 1.
    places: HashMap<u32, (usize, usize)>,
    advice: Box<[Advice]>,
    is_mistyped: bool,
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
    /// Of a problem in a fragment: the nodes of the graph that it reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cited_by: Vec<Cited>,
}

/// A citation of a fragment, as a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cited {
    /// The node that cites, with its whole id, or its place as `node 3`.
    pub node: String,
    /// The file that it stands in.
    pub file: String,
    /// The line of its `use`, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The citations between that fragment and the one with the problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<Cited>,
}

impl Problems {
    pub(crate) fn new(file: &str, text: &str, list: Vec<Problem>) -> Self {
        Self::of(Files::of(file.to_owned(), text), list)
    }

    pub(crate) fn of(files: Files<'_>, list: Vec<Problem>) -> Self {
        let places = places(&files, &list);
        Self { files: files.into_owned(), list, places, advice: Box::default(), is_mistyped: false }
    }

    /// Adds what should be known of the fragments that could be read.
    pub(crate) fn advised(self, advice: Vec<Advice>) -> Self {
        Self { advice: advice.into(), ..self }
    }

    /// Says whether a value of the wrong type is among them.
    pub(crate) fn mistyped(self, is_mistyped: bool) -> Self {
        Self { is_mistyped, ..self }
    }

    /// Whether a value of the wrong type is among them: the file then says too little for its other problems to be all.
    pub fn is_mistyped(&self) -> bool {
        self.is_mistyped
    }

    /// What should be known of the fragments that could be read, though nothing is wrong with that.
    pub fn advice(&self) -> &[Advice] {
        &self.advice
    }

    /// How many there are; never none.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// One line each, `file:line:column: node "x": message`.
    pub fn lines(&self) -> Vec<String> {
        (0..self.list.len()).map(|at| self.line(at)).collect()
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
            // What many problems of one file have in common is said below the last of them.
            if self.list.get(at + 1).is_none_or(|next| next.sites != problem.sites) {
                self.render_sites(problem, &mut out);
            }
        }
        out
    }

    fn render_sites(&self, problem: &Problem, out: &mut String) {
        let mut sites = self.sites(problem);
        for chain in sites.by_ref().take(SITES_MAX) {
            writeln!(out, "  cited by {}", self.told(chain)).ok();
        }
        match sites.count() {
            0 => {}
            more => drop(writeln!(out, "  cited by {more} more")),
        }
    }

    fn report(&self, at: usize) -> Report {
        let problem = &self.list[at];
        let (file, line, column) = self.place(problem.span);
        let node = problem.node.as_ref().map(named);
        let (message, hint) = (problem.message.clone(), problem.hint.clone());
        let cited_by = self.sites(problem).filter_map(|chain| self.cited(chain)).collect();
        Report { file: file.to_owned(), line, column, node, message, hint, cited_by }
    }

    fn header(&self, at: usize) -> String {
        let problem = &self.list[at];
        let message = sanitize::one_line(&problem.message);
        let spot = self.spot(problem.span);
        match &problem.node {
            Some(node) => format!("{spot}: {}: {message}", sanitize::one_line(&node.to_string())),
            None => format!("{spot}: {message}"),
        }
    }

    /// A line of its own, with every citation in short.
    fn line(&self, at: usize) -> String {
        let header = self.header(at);
        let cited: Vec<String> = self.sites(&self.list[at]).map(|chain| self.told(chain)).collect();
        match cited.as_slice() {
            [] => header,
            [one] => format!("{header} (cited by {one})"),
            [first, more @ ..] => format!("{header} (cited by {first} and {} more)", more.len()),
        }
    }

    /// Citations that say more than the problem's own place does.
    fn sites<'p>(&self, problem: &'p Problem) -> impl Iterator<Item = &'p Chain> {
        problem.sites.iter().filter(|chain| !matches!(&***chain, [step] if step.at == problem.span))
    }

    fn cited(&self, chain: &[Step]) -> Option<Cited> {
        let one = |step: &Step| {
            let (file, line, column) = self.place(step.at);
            Cited { node: named(&step.node), file: file.to_owned(), line, column, through: Vec::new() }
        };
        let (first, through) = chain.split_first()?;
        Some(Cited { through: through.iter().map(one).collect(), ..one(first) })
    }

    /// `node "x" at g.yaml:5:10`, with the citations between.
    fn told(&self, chain: &[Step]) -> String {
        let one =
            |step: &Step| format!("{} at {}", sanitize::one_line(&step.node.to_string()), self.spot(step.at));
        chain.iter().map(one).collect::<Vec<String>>().join(", through ")
    }

    fn place(&self, span: Span) -> (&str, usize, usize) {
        let (line, column) = self.places.get(&span.start).copied().unwrap_or((1, 1));
        (&self.file(span).name, line, column)
    }

    /// `file:line:column`.
    fn spot(&self, span: Span) -> String {
        let (file, line, column) = self.place(span);
        format!("{}:{line}:{column}", sanitize::one_line(file))
    }

    fn file(&self, span: Span) -> &File<'static> {
        self.files.get(self.files.holding(span))
    }

    /// The problem's line with a caret below it, and the related line when there is one.
    fn excerpt(&self, problem: &Problem, renderer: &Renderer) -> String {
        let mut out = String::new();
        if let Some((span, label)) = problem.related
            && self.place(span).1 != self.place(problem.span).1
        {
            out.push_str(&self.snippet(span, AnnotationKind::Context, Some(label), renderer));
        }
        out.push_str(&self.snippet(problem.span, AnnotationKind::Primary, None, renderer));
        out
    }

    fn snippet(&self, span: Span, kind: AnnotationKind, label: Option<&str>, renderer: &Renderer) -> String {
        let (file, line) = (self.file(span), self.place(span).1);
        let text: &str = &file.text;
        let within = |at: u32| (at - file.base) as usize;
        let whole = line_around(text, within(span.start));
        // A caret stays on its first line, and a very long line is shown around the caret only.
        let start = within(span.start).clamp(whole.start, whole.end);
        let from = text.ceil_char_boundary(whole.start.max(start.saturating_sub(LINE_BYTES_MAX / 2)));
        let to = text.floor_char_boundary(whole.end.min(start + LINE_BYTES_MAX));
        let end = within(span.end.max(span.start)).clamp(start, to.max(start));
        let shown = &text[from..to.max(from)];
        let snippet = Snippet::source(shown)
            .line_start(line)
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

/// A node in a value.
fn named(label: &Label) -> String {
    match label {
        Label::Id(id) => id.clone(),
        place => place.to_string(),
    }
}

/// Line and column of every span that is told.
fn places(files: &Files<'_>, list: &[Problem]) -> HashMap<u32, (usize, usize)> {
    let told = list.iter().flat_map(|problem| {
        let cited = problem.sites.iter().flat_map(|chain| chain.iter().map(|step| step.at));
        [problem.span].into_iter().chain(problem.related.map(|(span, _)| span)).chain(cited)
    });
    line_columns(files, told.map(|span| span.start).collect())
}

/// Line and column of every place in `starts`, from 1. One pass over a text whatever their number: a file may be one
/// line of many megabytes. A byte order mark has no width.
pub(crate) fn line_columns(files: &Files<'_>, mut starts: Vec<u32>) -> HashMap<u32, (usize, usize)> {
    starts.sort_unstable();
    starts.dedup();
    let mut places = HashMap::with_capacity(starts.len());
    let mut rest = starts.as_slice();
    for (at, file) in files.iter().enumerate() {
        let after = rest.partition_point(|start| files.holding(Span { start: *start, end: *start }) <= at);
        let (own, others) = rest.split_at(after);
        rest = others;
        if !own.is_empty() {
            places_in(file, own, &mut places);
        }
    }
    places
}

fn places_in(file: &File<'_>, starts: &[u32], places: &mut HashMap<u32, (usize, usize)>) {
    let (text, lines) = (&file.text, line_starts(&file.text));
    let (mut counted_to, mut column) = (0, 1);
    for start in starts {
        let offset = text.floor_char_boundary((start - file.base) as usize);
        let line = lines.partition_point(|start| *start <= offset).saturating_sub(1);
        if lines[line] > counted_to {
            (counted_to, column) = (lines[line], 1);
        }
        column += text[counted_to..offset].chars().filter(|c| *c != '\u{feff}').count();
        counted_to = offset;
        places.insert(*start, (line + 1, column));
    }
}

/// The bytes of the line that holds byte `at`, without its line break.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let mut at = text.floor_char_boundary(at);
    let ends = |c: char| c == '\n' || c == '\r';
    if text[..at].ends_with('\r') && text[at..].starts_with('\n') {
        at -= 1;
    }
    let start = text[..at].rfind(ends).map_or(0, |end| end + 1);
    let end = text[start..].find(ends).map_or(text.len(), |end| start + end);
    start..end
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
