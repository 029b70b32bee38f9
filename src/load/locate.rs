//! Where a remark on a graph stands in its file, or in that of a fragment.
//!
//! Asked for by who shows the remarks: a run only counts them, and need not keep or make a tree for that.

use super::files::Files;
use super::fragment::{self, Library};
use super::problem::line_columns;
use super::yaml::{self, Limits, Node, Span};
use super::{Places, Source};
use crate::graph::check::Site;
use crate::graph::raw::RawGraph;
use crate::lint::{Advice, Place};

/// Where everything stands in the files of a graph that was loaded.
#[derive(Debug)]
pub struct Tree<'s> {
    root: Node<'s>,
    files: Files<'s>,
}

/// Gives each remark on `raw`, which `source` says, its place; one that has a place keeps it. The file is parsed again.
pub fn locate(source: &Source, raw: &RawGraph, advice: &mut [Advice]) {
    if advice.is_empty() {
        return;
    }
    let mut library = Library::of(source);
    // The file was loaded before, so it is YAML.
    let Ok(mut tree) = yaml::parse(&source.text, Limits::default()) else { return };
    fragment::resolve(&mut tree.root, &mut library);
    Tree::of(tree.root, library).locate(raw, advice);
}

impl<'s> Tree<'s> {
    pub(super) fn of(root: Node<'s>, library: Library<'s>) -> Self {
        Self { root, files: library.into_files() }
    }

    /// Gives each remark on `raw`, which this tree says, its place; one that has a place keeps it.
    pub fn locate(&self, raw: &RawGraph, advice: &mut [Advice]) {
        let files = &self.files;
        let places = Places::of(&self.root, raw, &[], files);
        let mut finder = Finder { files, last: None };
        let starts: Vec<u32> =
            advice.iter().map(|advice| finder.start(advice, places.span(&advice.site))).collect();
        let known = line_columns(files, starts.clone());
        for (advice, start) in advice.iter_mut().zip(starts).filter(|(advice, _)| advice.place.is_none()) {
            let (line, column) = known.get(&start).copied().unwrap_or((1, 1));
            let file = files.get(files.holding(Span { start, end: start })).name.clone();
            advice.place = Some(Place { file, line, column });
        }
    }
}

/// Finds what a remark is about within the value of its key. The remarks of one sweep on one value are in the order of
/// the text, so each is looked for behind the one before it.
struct Finder<'f> {
    files: &'f Files<'f>,
    /// What was looked at last: the sweep, the place, and where to go on; `None` when nothing was found there.
    last: Option<(&'static str, Site, Option<u32>)>,
}

impl Finder<'_> {
    fn start(&mut self, advice: &Advice, span: Span) -> u32 {
        let Some(within) = &advice.within else { return span.start };
        let from = match self.last {
            Some((id, site, from)) if (id, site) == (advice.id, advice.site) => from,
            _ => Some(span.start),
        };
        let found = from.and_then(|from| self.find(within, Span { start: from, end: span.end }));
        self.last = Some((advice.id, advice.site, found.map(|at| at + within.len() as u32)));
        found.unwrap_or(span.start)
    }

    /// A value may be written in other words than it reads: folded, escaped, put together from bindings.
    fn find(&self, words: &str, span: Span) -> Option<u32> {
        let file = self.files.get(self.files.holding(span));
        let text =
            file.text.get((span.start - file.base) as usize..(span.end.checked_sub(file.base)?) as usize)?;
        text.find(words).map(|at| span.start + at as u32)
    }
}
