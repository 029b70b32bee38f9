//! A drawing for a terminal: a line a node with rails beside it, or an indented list where the rails would not fit.

use std::collections::BTreeMap;
use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::rails::{self, Ink, Line};
use super::{Drawing, Spot, Tone};
use crate::text::table::cut;

/// The most rails side by side in a pipe, whose width nobody knows.
const COLUMNS_MAX: usize = 24;
/// What is left to the names on a terminal, in columns.
const NAMES_MIN: usize = 40;
/// A longer id does not push everybody's words to the right.
const ID_MAX: usize = 32;
/// How deep the list is indented at most, in steps.
const INDENT_MAX: usize = 12;
/// How many parents the list names.
const PARENTS_NAMED: usize = 3;
/// `PASS (rehearsed)`: words of what became of a node are padded to this at least.
const MARK_WIDTH_MIN: usize = 16;
/// Words in less room than this are left out.
const WORDS_MIN: usize = 6;

/// What is printed on.
pub struct Page<'a> {
    /// Whether it can show more than ASCII.
    pub unicode: bool,
    /// Its columns, if they are known.
    pub width: Option<usize>,
    /// How a tone is painted there.
    pub paint: &'a dyn Fn(Tone, &str) -> String,
}

/// The drawing, with a title and a legend.
pub fn print(drawing: &Drawing, page: &Page<'_>) -> String {
    let ink = if page.unicode { rails::BOXES } else { rails::ASCII };
    let columns = page.width.map_or(COLUMNS_MAX, |width| (width.saturating_sub(NAMES_MIN) / 2).max(1));
    let order = drawing.rows();
    let rails = rails::draw(drawing, &order, columns, &ink);
    let marks = drawing.nodes.iter().filter_map(|spot| Some(spot.mark.as_ref()?.words.width()));
    let marks = marks.max().unwrap_or(0).max(MARK_WIDTH_MIN);
    let steps = drawing.layers.to_string().len();
    let sheet = Sheet { drawing, page, ink, loops: loops(drawing), steps, marks };
    let body = match rails {
        Some(lines) => sheet.rails(&lines),
        None => sheet.list(&order),
    };
    format!("{}\n{body}\n{}", sheet.title(), sheet.legend())
}

struct Sheet<'a> {
    drawing: &'a Drawing,
    page: &'a Page<'a>,
    ink: Ink,
    /// The words about the loop that each declarer declares.
    loops: BTreeMap<usize, (String, String)>,
    /// How wide the number of a step is.
    steps: usize,
    /// How wide the words of what became of a node are.
    marks: usize,
}

/// By declarer, where its loop goes back to and how often.
fn loops(drawing: &Drawing) -> BTreeMap<usize, (String, String)> {
    drawing.loops.iter().map(|back| (back.from, (drawing.nodes[back.to].id.clone(), back.words()))).collect()
}

impl Sheet<'_> {
    fn title(&self) -> String {
        let title = if self.page.unicode { self.drawing.title.clone() } else { ascii(&self.drawing.title) };
        let named = if title.is_empty() { String::new() } else { format!("{title}: ") };
        format!("{named}{}\n", self.drawing.size())
    }

    fn rails(&self, lines: &[Line]) -> String {
        let width = lines.iter().map(|line| line.text.width()).max().unwrap_or(0);
        let ids = self.id_width();
        let mut last_layer = None;
        let mut out = String::new();
        for line in lines {
            let Some(at) = line.node else {
                writeln!(out, "{:steps$}  {}", "", line.text, steps = self.steps).ok();
                continue;
            };
            let spot = &self.drawing.nodes[at];
            let step =
                if last_layer == Some(spot.layer) { String::new() } else { (spot.layer + 1).to_string() };
            last_layer = Some(spot.layer);
            let padding = " ".repeat(width - line.text.width());
            let lead = format!("{step:>steps$}  {}{padding}  ", line.text, steps = self.steps);
            self.line(&mut out, &lead, at, ids, String::new());
        }
        out
    }

    fn list(&self, order: &[usize]) -> String {
        let mut parents: Vec<Vec<usize>> = vec![Vec::new(); self.drawing.nodes.len()];
        for edge in &self.drawing.edges {
            parents[edge.to].push(edge.from);
        }
        let arrow = if self.page.unicode { "←" } else { "<-" };
        let mut out = String::new();
        for &at in order {
            let spot = &self.drawing.nodes[at];
            let named: Vec<&str> = parents[at]
                .iter()
                .take(PARENTS_NAMED)
                .map(|parent| self.drawing.nodes[*parent].id.as_str())
                .collect();
            let more = match parents[at].len().saturating_sub(PARENTS_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let after =
                if named.is_empty() { String::new() } else { format!("{arrow} {}{more}", named.join(", ")) };
            let indent = "  ".repeat(spot.layer.min(INDENT_MAX));
            let (step, glyph) = (spot.layer + 1, self.ink.node(spot.kind));
            let lead = format!("{step:>steps$}  {indent}{glyph} ", steps = self.steps);
            self.line(&mut out, &lead, at, 0, after);
        }
        out
    }

    /// A node's line: what leads to it, its id, what became of it, and as many more words as fit.
    fn line(&self, out: &mut String, lead: &str, at: usize, ids: usize, after: String) {
        let spot = &self.drawing.nodes[at];
        let mut used = lead.width() + spot.id.width().max(ids);
        out.push_str(lead);
        write!(out, "{:<ids$}", spot.id).ok();
        if let Some(mark) = &spot.mark {
            let padding = if ids > 0 { self.marks.saturating_sub(mark.words.width()) } else { 0 };
            write!(out, "  {}{:padding$}", (self.page.paint)(mark.tone, &mark.words), "").ok();
            used += 2 + mark.words.width() + padding;
        }
        let words: Vec<String> =
            self.words(at, spot).into_iter().chain([after]).filter(|w| !w.is_empty()).collect();
        let words = words.join("  ");
        let room = self.page.width.map_or(usize::MAX, |width| width.saturating_sub(used + 2));
        if room >= WORDS_MIN.min(words.width()) {
            write!(out, "  {}", cut(&words, room)).ok();
        }
        out.push('\n');
    }

    fn words(&self, at: usize, spot: &Spot) -> Vec<String> {
        let lane = spot.lane.map(|lane| format!("worktree {}", self.drawing.lanes[lane]));
        let back = self.loops.get(&at).map(|(target, often)| {
            let sign = if self.page.unicode { "↺" } else { "^" };
            format!("{sign} back to {target}, {often}")
        });
        [Some(spot.kind.as_str().to_owned()), lane, back].into_iter().flatten().collect()
    }

    fn id_width(&self) -> usize {
        self.drawing
            .nodes
            .iter()
            .map(|spot| spot.id.width())
            .filter(|width| *width <= ID_MAX)
            .max()
            .unwrap_or(0)
    }

    /// The glyphs, and how many nodes became what.
    fn legend(&self) -> String {
        let kinds = self.drawing.kinds().map(|kind| format!("{} {}", self.ink.node(kind), kind.as_str()));
        let mut lines = vec![kinds.collect::<Vec<_>>().join("  ")];
        if !self.drawing.loops.is_empty() {
            let sign = if self.page.unicode { "↺" } else { "^" };
            lines.push(format!("{sign} runs everything from there again when it is judged to fail"));
        }
        let states = self.drawing.states();
        if !states.is_empty() {
            let counted = states
                .iter()
                .map(|((tone, words), count)| (self.page.paint)(*tone, &format!("{count} {words}")));
            lines.push(counted.collect::<Vec<_>>().join(", "));
        }
        lines.join("\n") + "\n"
    }
}

fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}
