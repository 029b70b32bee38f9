//! A page of the documentation as its fenced blocks and the notes to them, which readers do not see.
//!
//! A note is `<!-- example: KEY VALUE -->`, on one line or several; `mod.rs` says what each means.

use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

const NOTE: &str = "<!-- example: ";
/// What follows it on a page is made from the program, and compared with it by `tests/docs.rs`. The examples of sweeps, which
/// stand there, are linted by `tests/it/lint.rs`.
const GENERATED: &str = "<!-- Everything below is made from the program";

/// One fenced block, or one note before it.
#[derive(Debug)]
pub(super) enum Step {
    /// A note: its key, the rest of it, its line.
    Note(String, String, usize),
    /// A fenced block.
    Block(Block),
}

/// A fenced block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The line of its fence, from 1.
    pub(super) line: usize,
    /// The word after the fence, such as `yaml`.
    pub(super) language: String,
    /// What stands between the fences.
    pub(super) text: String,
}

impl Block {
    /// The file that the block shows: its first line is a comment that holds nothing but a name.
    pub(super) fn file(&self) -> Option<&str> {
        let name = self.text.lines().next()?.strip_prefix("# ")?;
        let is_name = name.contains('.') && !name.contains(' ') && !name.ends_with('.');
        is_name.then_some(name)
    }

    /// Whether it holds a graph: the key `nodes` with a list below it, and no fragment's name.
    pub(super) fn is_graph(&self) -> bool {
        if self.text.lines().any(|line| line.starts_with("fragment:")) {
            return false;
        }
        let mut below = self.text.lines().skip_while(|line| !line.starts_with("nodes:")).skip(1);
        below
            .find(|line| !line.trim_start().starts_with('#'))
            .is_some_and(|line| line.trim_start().starts_with("- "))
    }
}

/// Reads a page.
pub(super) fn read(path: &Path) -> Vec<Step> {
    let text = fs::read_to_string(path).unwrap();
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let (mut steps, mut inside) = (Vec::new(), String::new());
    for (event, place) in Parser::new(&text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => inside.clear(),
            Event::Text(part) | Event::Html(part) => inside.push_str(&part),
            Event::End(TagEnd::CodeBlock) => {
                let fence = text[place.start..].lines().next().unwrap_or_default();
                let language = fence.trim_start_matches('`').to_owned();
                steps.push(Step::Block(Block { line: line(place.start), language, text: inside.clone() }));
            }
            Event::End(TagEnd::HtmlBlock) if inside.starts_with(GENERATED) => break,
            Event::End(TagEnd::HtmlBlock) => {
                let Some(note) = inside.trim().strip_prefix(NOTE).and_then(|note| note.strip_suffix("-->"))
                else {
                    continue;
                };
                let (key, value) = note.trim().split_once([' ', '\n']).unwrap_or((note.trim(), ""));
                steps.push(Step::Note(key.to_owned(), value.to_owned(), line(place.start)));
            }
            _ => {}
        }
    }
    steps
}
