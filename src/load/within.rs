//! Where a few words of a value stand: on which line of a block, and in whose file when a citation put the value together.
//!
//! A token is told where its author wrote it, and as it was written there. Knows no rule of a graph.

use std::ops::Range;

use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::yaml::{Node, Span};

/// How many bytes are looked through, in all, for words of texts that were put together.
const BYTES_MAX: usize = 256 << 20;

/// Where words stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The words; the whole value when they could not be found in it, being folded or escaped there.
    pub span: Span,
    /// The words as their author wrote them, when these are others.
    pub written: Option<String>,
    /// The text that puts a part of them in: the place is that of the value which is bound there.
    pub woven_into: Option<Span>,
}

impl Spot {
    /// A problem here; it names the fragment that puts the value into its text, since that is not where it stands.
    pub(crate) fn problem(&self, files: &Files<'_>, message: String) -> Problem {
        let message = match self.woven_into {
            Some(text) => {
                format!("{message}; {} puts this into its text", files.get(files.holding(text)).name)
            }
            None => message,
        };
        Problem::at(self.span, message)
    }

    /// The whole of what stands at `span`.
    pub(crate) fn at(span: Span) -> Self {
        Self { span, written: None, woven_into: None }
    }
}

/// Finds words in values. What is asked of one value one after the other stands there in this order, so that each is
/// looked for behind the one before it, and a long text is read once.
pub(crate) struct Finder<'f, 's> {
    files: &'f Files<'s>,
    /// Who asked last and of which value, and where to go on; `None` when nothing was found there.
    last: Option<(&'static str, *const (), Option<usize>)>,
    bytes_left: usize,
}

impl<'f, 's> Finder<'f, 's> {
    /// A finder in `files`.
    pub(crate) fn of(files: &'f Files<'s>) -> Self {
        Self { files, last: None, bytes_left: BYTES_MAX }
    }

    /// Where the next `words` of `value` stand for `who` asks.
    pub(crate) fn find(&mut self, who: &'static str, value: &Node<'_>, words: &str) -> Spot {
        let of_value = std::ptr::from_ref(value).cast();
        let from = match self.last {
            Some((asked, of, from)) if (asked, of) == (who, of_value) => from,
            _ => Some(0),
        };
        let text = match value.woven() {
            Some(_) => value.text(),
            // What comes by an alias is told at the alias.
            None => self.source(value.span),
        };
        let found = from.and_then(|from| Some(from + text?.get(from..)?.find(words)?));
        self.last = Some((who, of_value, found.map(|at| at + words.len())));
        match found {
            None => Spot::at(value.span),
            Some(at) if value.woven().is_some() => self.of_parts(value, at..at + words.len()),
            Some(at) => Spot::at(part(value.span, at, words)),
        }
    }

    /// Where the bytes `range` of the text of `value` stand.
    fn of_parts(&mut self, value: &Node<'_>, range: Range<usize>) -> Spot {
        let text = value.text().unwrap_or_default();
        let Some(woven) = value.woven() else { return self.plain(value, range) };
        let after = woven.parts.partition_point(|part| part.start <= range.start);
        let Some(part) = after.checked_sub(1).map(|at| &woven.parts[at]) else { return Spot::at(value.span) };
        let end = woven.parts.get(after).map_or(text.len(), |next| next.start);
        if range.end > end {
            return bound_part(value, &range).unwrap_or_else(|| Spot::at(value.span));
        }
        match &part.written {
            Some(written) => {
                let spot = self.of_parts(&part.from, part.at..part.at + written.len());
                Spot { written: spot.written.or_else(|| Some(written.clone())), ..spot }
            }
            None => {
                let moved = |at: usize| at - part.start + part.at;
                self.of_parts(&part.from, moved(range.start)..moved(range.end))
            }
        }
    }

    /// Where the bytes `range` of a text stand that is written as one: as many of the same words stand before them.
    fn plain(&mut self, value: &Node<'_>, range: Range<usize>) -> Spot {
        let span = value.target().span;
        let found = || {
            let text = value.text()?;
            let words = text.get(range.clone())?;
            let before = text[..range.start].matches(words).count();
            let at = self.source(span)?.match_indices(words).nth(before)?.0;
            Some(part(span, at, words))
        };
        let left = self.bytes_left.checked_sub(range.end);
        let spot = left.and_then(|_| found()).map_or_else(|| Spot::at(value.span), Spot::at);
        self.bytes_left = left.unwrap_or(0);
        spot
    }

    fn source(&self, span: Span) -> Option<&'f str> {
        let file = self.files.get(self.files.holding(span));
        file.text.get((span.start - file.base) as usize..span.end.checked_sub(file.base)? as usize)
    }
}

/// The place of a value as a whole: that of what is bound into it, when it was put together so.
pub(crate) fn whole(value: &Node<'_>) -> Spot {
    let length = value.text().map_or(0, str::len);
    bound_part(value, &(0..length)).unwrap_or_else(|| Spot::at(value.span))
}

/// The first value that is bound into the bytes `range`.
fn bound_part(value: &Node<'_>, range: &Range<usize>) -> Option<Spot> {
    let woven = value.woven()?;
    let first = woven.parts.partition_point(|part| part.start <= range.start).saturating_sub(1);
    woven.parts[first..].iter().take_while(|part| part.start < range.end).find_map(|part| {
        if part.from.span != woven.text.span {
            return Some(Spot { woven_into: Some(woven.text.span), ..Spot::at(part.from.span) });
        }
        let length = part.from.text().map_or(0, str::len);
        bound_part(&part.from, &(part.at..length))
    })
}

fn part(span: Span, at: usize, words: &str) -> Span {
    let start = span.start.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
    Span { start, end: start.saturating_add(u32::try_from(words.len()).unwrap_or(u32::MAX)) }
}
