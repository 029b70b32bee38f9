//! The files of one graph, laid out as one row of bytes: the graph's own file first, then the fragments that it cites.
//!
//! A [`Span`] is a range of that row, so that it tells its file without a field for it, and a graph that cites nothing
//! pays nothing. Knows names and texts, and reads no file.

use std::borrow::Cow;

use crate::load::yaml::Span;

/// The files, in the order of the row.
#[derive(Debug)]
pub(crate) struct Files<'s> {
    list: Vec<File<'s>>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct File<'s> {
    /// The file as messages call it.
    pub name: String,
    /// What it says.
    pub text: Cow<'s, str>,
    /// The place of its first byte.
    pub base: u32,
}

impl<'s> Files<'s> {
    /// The row of one file.
    pub(crate) fn of(name: String, text: &'s str) -> Self {
        Self { list: vec![File { name, text: Cow::Borrowed(text), base: 0 }] }
    }

    /// Where the next file begins: one byte further on, so that the end of a text is not the beginning of the next.
    pub(crate) fn next_base(&self) -> u32 {
        self.list.last().map_or(0, |last| {
            let length =
                u32::try_from(last.text.len()).expect("the bytes of all files are bounded far below this");
            last.base + length + 1
        })
    }

    /// Adds a file at [`Files::next_base`]; returns its position.
    pub(crate) fn push(&mut self, name: String, text: String) -> usize {
        let base = self.next_base();
        self.list.push(File { name, text: Cow::Owned(text), base });
        self.list.len() - 1
    }

    /// The file at `position`.
    pub(crate) fn get(&self, position: usize) -> &File<'s> {
        &self.list[position]
    }

    /// The position of the file that holds `span`.
    pub(crate) fn holding(&self, span: Span) -> usize {
        self.list.partition_point(|file| file.base <= span.start).saturating_sub(1)
    }

    /// Whether `words` stand where `span` begins.
    pub(crate) fn stands_at(&self, span: Span, words: &str) -> bool {
        let file = &self.list[self.holding(span)];
        let at = (span.start - file.base) as usize;
        file.text.as_bytes().get(at..).is_some_and(|text| text.starts_with(words.as_bytes()))
    }

    /// The files without what they borrow, for a list of problems that outlives the load.
    pub(crate) fn into_owned(self) -> Files<'static> {
        let owned = |file: File<'s>| File { text: Cow::Owned(file.text.into_owned()), ..file };
        Files { list: self.list.into_iter().map(owned).collect() }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &File<'s>> {
        self.list.iter()
    }
}
