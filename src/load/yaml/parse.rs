//! Composes parser events into a tree, within limits.
//!
//! Beside `syntax` the only file that names the parser. What makes a tree impossible ends the parse with one problem; a
//! repeated key is noted and the parse goes on, so that everything wrong with a file is told at once. An alias shares
//! its target, so an alias bomb costs one pointer an alias; what it would expand to is counted before anything is.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle};

use super::syntax::{offset, syntax};
use super::tree::{Kind, Node, Span};
use crate::load::problem::Problem;

/// How much of a document is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How deep collections nest, aliases followed.
    pub depth: usize,
    /// How many values there are once every alias is followed.
    pub nodes: usize,
    /// How many bytes of text there are once every alias is followed.
    pub bytes: usize,
}

impl Default for Limits {
    /// Fifty thousand nodes with every key set stay below a third of this.
    fn default() -> Self {
        Limits { depth: 64, nodes: 4_000_000, bytes: 64 << 20 }
    }
}

/// A mapping with more entries finds repeated keys through a set.
const SCANNED_ENTRIES_MAX: usize = 16;

/// A parsed document.
#[derive(Debug)]
pub(crate) struct Tree<'s> {
    /// The top value.
    pub root: Node<'s>,
    /// Repeated keys and keys that are not text.
    pub problems: Vec<Problem>,
}

/// Parses the one document of `source`.
pub(crate) fn parse(source: &str, limits: Limits) -> Result<Tree<'_>, Problem> {
    parse_at(source, 0, limits)
}

/// Parses the one document of `source`, a file whose first byte has the place `base` (see [`crate::load::files`]).
pub(crate) fn parse_at(source: &str, base: u32, limits: Limits) -> Result<Tree<'_>, Problem> {
    let options = granit_parser::options! {
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
        block_scalar_eof_without_line_feed: true,
    };
    let mut composer = Composer {
        source,
        base,
        limits,
        stack: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        total: Weight::default(),
        problems: Vec::new(),
    };
    for next in Parser::new_from_str_with_options(source, options) {
        let (event, span) = next.map_err(|error| {
            let problem = syntax(source, &error);
            Problem { span: problem.span.moved(base), ..problem }
        })?;
        let range = span.byte_range().unwrap_or(0..0);
        let span = Span { start: offset(range.start), end: offset(range.end) };
        composer.event(event, span.moved(base))?;
    }
    let Composer { root, problems, .. } = composer;
    match root {
        Some(root) => Ok(Tree { root, problems }),
        None => Err(Problem::at(Span::default().moved(base), "the file is empty")),
    }
}

/// A tag that asks for more than a graph can give: read over, `!include x` would be the text `x`.
fn foreign_tag(event: &Event<'_>, span: Span) -> Option<Problem> {
    let tag = event.tag().filter(|tag| tag.is_custom())?;
    // A lone ! only says that a plain word is text.
    let lone = tag.handle().is_empty() && tag.suffix() == "!";
    let written = [tag.original_handle(), tag.suffix()].concat();
    (!lone).then(|| {
        Problem::at(span, format!("the tag {written} means nothing in a graph")).hint(
            "leave it out and write here what it stands for, or put quotes around text that begins with !",
        )
    })
}

/// What a value would cost if every alias in it were written out.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    height: usize,
}

impl Weight {
    fn hold(&mut self, inner: Weight) {
        self.nodes = self.nodes.saturating_add(inner.nodes);
        self.bytes = self.bytes.saturating_add(inner.bytes);
        self.height = self.height.max(inner.height + 1);
    }
}

/// A collection that is still open.
struct Frame<'s> {
    kind: Kind<'s>,
    span: Span,
    anchor: usize,
    weight: Weight,
    key: Option<Node<'s>>,
    /// The last key was refused; its value goes with it.
    skip: bool,
    names: HashSet<Cow<'s, str>>,
}

struct Composer<'s> {
    source: &'s str,
    base: u32,
    limits: Limits,
    stack: Vec<Frame<'s>>,
    anchors: HashMap<usize, (Rc<Node<'s>>, Weight)>,
    root: Option<Node<'s>>,
    total: Weight,
    problems: Vec<Problem>,
}

impl<'s> Composer<'s> {
    fn event(&mut self, event: Event<'s>, span: Span) -> Result<(), Problem> {
        self.problems.extend(foreign_tag(&event, span));
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                return Err(Problem::at(span, "a second document begins here")
                    .hint("a file holds one graph: put the other into a file of its own"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let forced = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let plain = style == ScalarStyle::Plain && !forced;
                let weight = Weight { nodes: 1, bytes: text.len(), height: 0 };
                self.grow(span, weight)?;
                self.done(Node { kind: Kind::Scalar { text, plain }, span }, anchor, weight)?;
            }
            Event::Alias(id) => {
                let Some((target, weight)) = self.anchors.get(&id) else {
                    return Err(Problem::at(span, "the alias stands inside the value that it names"));
                };
                let (target, weight) = (Rc::clone(target), *weight);
                self.grow(span, weight)?;
                self.done(Node { kind: Kind::Alias(target), span }, 0, weight)?;
            }
            Event::SequenceStart(_, anchor, _) => self.open(Kind::Sequence(Vec::new()), span, anchor)?,
            Event::MappingStart(_, anchor, _) => self.open(Kind::Mapping(Vec::new()), span, anchor)?,
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.stack.pop() else { return Ok(()) };
                let end = frame.span.end.max(span.end);
                let node = Node { kind: frame.kind, span: Span { start: frame.span.start, end } };
                self.done(node, frame.anchor, frame.weight)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, kind: Kind<'s>, span: Span, anchor: usize) -> Result<(), Problem> {
        let weight = Weight { nodes: 1, ..Weight::default() };
        self.grow(span, weight)?;
        let names = HashSet::new();
        self.stack.push(Frame { kind, span, anchor, weight, key: None, skip: false, names });
        Ok(())
    }

    /// Counts what `weight` adds to the whole document.
    fn grow(&mut self, span: Span, weight: Weight) -> Result<(), Problem> {
        self.total.nodes = self.total.nodes.saturating_add(weight.nodes);
        self.total.bytes = self.total.bytes.saturating_add(weight.bytes);
        let Limits { depth, nodes, bytes } = self.limits;
        let over = if self.stack.len() + weight.height > depth {
            format!("the document nests deeper than {depth} levels here")
        } else if self.total.nodes > nodes {
            format!("the document holds more than {nodes} values here, aliases followed")
        } else if self.total.bytes > bytes {
            format!("the document holds more than {} MB of text here, aliases followed", bytes >> 20)
        } else {
            return Ok(());
        };
        Err(Problem::at(span, over))
    }

    /// Puts a finished value where it belongs.
    fn done(&mut self, mut node: Node<'s>, anchor: usize, weight: Weight) -> Result<(), Problem> {
        if anchor != 0 {
            let (span, shared) = (node.span, Rc::new(node));
            self.anchors.insert(anchor, (Rc::clone(&shared), weight));
            node = Node { kind: Kind::Anchored(shared), span };
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.weight.hold(weight);
        // A block collection ends where its last value does.
        frame.span.end = frame.span.end.max(node.span.end);
        match &mut frame.kind {
            Kind::Sequence(items) => items.push(node),
            Kind::Mapping(entries) => match frame.key.take() {
                _ if std::mem::take(&mut frame.skip) => {}
                Some(key) => {
                    merges_mappings(&key, &node)?;
                    entries.push((key, node));
                }
                None => match frame.judge(self.source, self.base, &node) {
                    Key::Good => frame.key = Some(node),
                    Key::Refused(problem) => {
                        frame.skip = true;
                        self.problems.extend(problem);
                    }
                },
            },
            _ => {}
        }
        Ok(())
    }
}

/// What a key is worth.
enum Key {
    /// It may have a value.
    Good,
    /// It may not; without a problem when the field that holds the mapping says it better.
    Refused(Option<Problem>),
}

impl<'s> Frame<'s> {
    /// Judges the next key of this mapping.
    fn judge(&mut self, source: &str, base: u32, key: &Node<'s>) -> Key {
        let Kind::Scalar { text, .. } = &key.target().kind else {
            // `{{ inputs.x }}` without quotes: the field that it stands in is not text, and says so.
            let before = (key.span.start - base).saturating_sub(1) as usize;
            let token = source.as_bytes().get(before..).is_some_and(|text| text.starts_with(b"{{"));
            let problem = || Problem::at(key.span, "a key is one word, and this is a list or a mapping");
            return Key::Refused((!token).then(problem));
        };
        let Kind::Mapping(entries) = &self.kind else { return Key::Good };
        if entries.len() > SCANNED_ENTRIES_MAX {
            if self.names.is_empty() {
                self.names = entries.iter().filter_map(|(key, _)| key.text()).map(owned).collect();
            }
            if self.names.insert(text.clone()) {
                return Key::Good;
            }
        }
        match entries.iter().find(|(other, _)| other.text() == Some(text)) {
            None => Key::Good,
            Some((first, _)) => {
                let message = format!("the key {text:?} stands twice in this mapping");
                Key::Refused(Some(Problem::at(key.span, message).related(first.span, "first here")))
            }
        }
    }
}

fn owned<'s>(text: &str) -> Cow<'s, str> {
    Cow::Owned(text.to_owned())
}

fn merges_mappings(key: &Node<'_>, value: &Node<'_>) -> Result<(), Problem> {
    if !key.is_merge_key() {
        return Ok(());
    }
    let is_mapping = |node: &Node<'_>| matches!(node.target().kind, Kind::Mapping(_));
    let fine = is_mapping(value) || value.items().is_some_and(|items| items.iter().all(is_mapping));
    if fine { Ok(()) } else { Err(Problem::at(value.span, "<< takes a mapping or a list of mappings")) }
}
