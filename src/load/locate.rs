//! Where a remark on a graph stands in its file, or in that of a fragment.
//!
//! Asked for by who shows the remarks: a run only counts them, and need not keep or make a tree for that.

use super::files::Files;
use super::fragment::{self, Library};
use super::problem::line_columns;
use super::within::{Finder, Spot};
use super::yaml::{self, Limits, Node, Span};
use super::{Places, Source};
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
        let mut finder = Finder::of(files);
        let mut starts = Vec::with_capacity(advice.len());
        for advice in advice.iter_mut() {
            let value = places.value(&advice.site);
            let spot = match (&advice.within, value) {
                (Some(words), Ok(value)) => finder.find(advice.id, value, words),
                (_, Ok(value)) => Spot::at(value.span),
                (_, Err(span)) => Spot::at(span),
            };
            if let (Some(words), Some(written)) = (&advice.within, spot.written) {
                advice.detail = advice.detail.replace(words, &written);
            }
            starts.push(spot.span.start);
        }
        let known = line_columns(files, starts.clone());
        for (advice, start) in advice.iter_mut().zip(starts).filter(|(advice, _)| advice.place.is_none()) {
            let (line, column) = known.get(&start).copied().unwrap_or((1, 1));
            let file = files.get(files.holding(Span { start, end: start })).name.clone();
            advice.place = Some(Place { file, line, column });
        }
    }
}
