//! One citation carried out: the texts of a fragment with their ids in a namespace and their bindings filled in.
//!
//! Both happen in one pass over the fragment's own text, so that what is bound is never read again: its ids are those of
//! the graph that binds it (ADR 0029). What holds no token is shared among all citations.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::body::{Block, Body, Fragment, Key};
use super::tokens::{self, Kind as TokenKind};
use crate::load::yaml::{Kind, Node, Part, Span, Woven};

/// The most nodes that the fragments of a graph may add to it.
const NODES_MAX: usize = 200_000;
/// The most values that they may add.
const VALUES_MAX: usize = 4_000_000;
/// The most bytes of text that they may add.
const BYTES_MAX: usize = 64 << 20;

/// How much may still be spliced in: three hops of a hundred nodes each are a million from one line.
#[derive(Debug)]
pub(super) struct Room {
    nodes: usize,
    values: usize,
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Room { nodes: NODES_MAX, values: VALUES_MAX, bytes: BYTES_MAX }
    }
}

impl Room {
    /// Takes the room of so many nodes.
    pub(super) fn take_nodes(&mut self, nodes: usize) -> Result<(), Refusal> {
        self.nodes = self.nodes.checked_sub(nodes).ok_or(Refusal::NoRoom)?;
        Ok(())
    }

    fn take(&mut self, values: usize, bytes: usize) -> Result<(), Refusal> {
        let left = self.values.checked_sub(values).zip(self.bytes.checked_sub(bytes));
        (self.values, self.bytes) = left.ok_or(Refusal::NoRoom)?;
        Ok(())
    }

    fn take_all(&mut self, value: &Node<'_>) -> Result<(), Refusal> {
        match &value.target().kind {
            Kind::Scalar { text, .. } => self.take(1, text.len()),
            Kind::Sequence(items) => {
                self.take(1, 0)?;
                items.iter().try_for_each(|item| self.take_all(item))
            }
            Kind::Mapping(entries) => {
                self.take(1, 0)?;
                entries.iter().try_for_each(|(_, value)| self.take_all(value))
            }
            Kind::Anchored(_) | Kind::Alias(_) | Kind::Woven(_) => Ok(()),
        }
    }

    /// What is said when there is none left.
    pub(super) fn spent() -> String {
        format!(
            "once its fragments are spliced in, the graph has more than {NODES_MAX} nodes of them, {VALUES_MAX} values or {} MB \
             of text",
            BYTES_MAX >> 20
        )
    }
}

/// Why a value cannot be spliced in.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A text holds bindings to what is no text: each with its point and its place.
    NotText(Vec<(String, Span)>),
    /// A token names a node that the namespace does not have.
    Undeclared {
        /// The token.
        written: String,
        /// The id in it.
        id: String,
    },
    /// The graph becomes too large.
    NoRoom,
}

/// The ids of a fragment of several nodes where it is cited.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    /// The id of the citing node.
    pub citer: Rc<str>,
    /// The fragment.
    pub fragment: Rc<Fragment>,
}

impl Namespace {
    /// The whole id of a node of the fragment.
    pub(super) fn id(&self, own: &str) -> String {
        format!("{}/{own}", self.citer)
    }

    fn declares(&self, id: &str) -> bool {
        matches!(&self.fragment.body, Body::Many { ids, .. } if ids.contains(id))
    }
}

/// The values that a citation binds, by point.
pub(super) type Bindings<'s> = HashMap<String, Rc<Node<'s>>>;

/// Carries out one citation.
pub(super) struct Splicer<'c, 's> {
    /// What its `with` binds.
    pub bindings: &'c Bindings<'s>,
    /// Whose ids the fragment's own text names; `None` for those of the graph itself.
    pub namespace: Option<&'c Namespace>,
    /// What is left to fill.
    pub room: &'c mut Room,
}

impl<'s> Splicer<'_, 's> {
    /// A node of the fragment, without the keys in `but`.
    pub(super) fn entries(
        &mut self,
        block: &Block,
        but: &HashSet<&str>,
    ) -> Result<Vec<(Node<'s>, Node<'s>)>, Refusal> {
        let mut entries = Vec::with_capacity(block.keys.len() + 4);
        let mut no_text = Vec::new();
        for key in block.keys.iter().filter(|key| !but.contains(key.word())) {
            match self.value(block, key) {
                Ok(value) => entries.push((shared(&key.name), value)),
                Err(Refusal::NotText(more)) => no_text.extend(more),
                Err(refusal) => return Err(refusal),
            }
        }
        if no_text.is_empty() { Ok(entries) } else { Err(Refusal::NotText(no_text)) }
    }

    fn value(&mut self, block: &Block, key: &Key) -> Result<Node<'s>, Refusal> {
        let named = match (self.namespace, key.word()) {
            (Some(namespace), "depends_on") if !block.id.is_empty() => {
                let items = key.value.items().unwrap_or_default().iter();
                let items = items.map(|item| renamed(item, namespace)).collect();
                Some(Node { kind: Kind::Sequence(items), span: key.value.span })
            }
            (Some(namespace), "feedback") if !block.id.is_empty() => {
                let entries = key.value.entries().unwrap_or_default().into_iter();
                let entries = entries.map(|entry| {
                    let value = match entry.name {
                        "rerun" => Ok(renamed(entry.value, namespace)),
                        _ => self.filled(entry.value),
                    };
                    Ok((entry.key.clone(), value?))
                });
                Some(Node { kind: Kind::Mapping(entries.collect::<Result<_, _>>()?), span: key.value.span })
            }
            _ => None,
        };
        let value = match named {
            Some(value) => value,
            None if key.varies => self.filled(&key.value)?,
            None => shared(&key.value),
        };
        self.room.take_all(&value)?;
        Ok(value)
    }

    fn filled(&mut self, node: &Node<'static>) -> Result<Node<'s>, Refusal> {
        let kind = match &node.target().kind {
            Kind::Scalar { text, .. } => return self.text(node, text),
            Kind::Sequence(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.filled(item)).collect();
                Kind::Sequence(items?)
            }
            Kind::Mapping(entries) => {
                let pairs = entries.iter().map(|(key, value)| Ok((key.clone(), self.filled(value)?)));
                Kind::Mapping(pairs.collect::<Result<Vec<_>, _>>()?)
            }
            Kind::Anchored(_) | Kind::Alias(_) | Kind::Woven(_) => return Ok(node.clone()),
        };
        Ok(Node { kind, span: node.span })
    }

    fn text(&mut self, node: &Node<'static>, text: &str) -> Result<Node<'s>, Refusal> {
        let mut weaver = Weaver::of(node, text);
        let mut no_text = Vec::new();
        for token in tokens::tokens(text) {
            match token.kind {
                TokenKind::With(point) => {
                    let Some(bound) = self.bindings.get(point) else { continue };
                    if token.written == text {
                        return Ok(shared(bound));
                    }
                    let Some(new) = bound_text(bound) else {
                        no_text.push((point.to_owned(), bound.span));
                        continue;
                    };
                    weaver.room_for(new, self.room)?;
                    weaver.bound(token.at, token.written, new, bound);
                }
                TokenKind::Artifacts(id) | TokenKind::Feedback(id) => {
                    let Some(namespace) = self.namespace else { continue };
                    if !namespace.declares(id) {
                        let (written, id) = (token.written.to_owned(), id.to_owned());
                        return Err(Refusal::Undeclared { written, id });
                    }
                    let new = token.renamed(id, &namespace.id(id));
                    weaver.room_for(&new, self.room)?;
                    weaver.renamed(token.at, token.written, &new);
                }
                TokenKind::Malformed => {}
            }
        }
        if !no_text.is_empty() {
            return Err(Refusal::NotText(no_text));
        }
        Ok(weaver.finish().unwrap_or_else(|| node.clone()))
    }
}

/// Puts a text together from another one, and remembers where its parts stand.
pub(super) struct Weaver<'t, 's> {
    node: &'t Node<'s>,
    text: &'t str,
    from: Option<Rc<Node<'s>>>,
    out: String,
    parts: Vec<Part<'s>>,
    done: usize,
}

impl<'t, 's> Weaver<'t, 's> {
    /// Nothing yet of `text`, which is that of `node`.
    pub(super) fn of(node: &'t Node<'s>, text: &'t str) -> Self {
        Self { node, text, from: None, out: String::new(), parts: Vec::new(), done: 0 }
    }

    /// Bindings of bindings can multiply: what will not fit is not built.
    fn room_for(&self, new: &str, room: &Room) -> Result<(), Refusal> {
        if self.out.len() + new.len() > room.bytes { Err(Refusal::NoRoom) } else { Ok(()) }
    }

    /// In the place of `written` at `at` comes `new`, the text of `bound`.
    fn bound(&mut self, at: usize, written: &str, new: &str, bound: &Rc<Node<'s>>) {
        self.verbatim(at);
        if !new.is_empty() {
            self.parts.push(Part { start: self.out.len(), from: Rc::clone(bound), at: 0, written: None });
        }
        self.out.push_str(new);
        self.done = at + written.len();
    }

    /// In the place of `written` at `at` comes `new`, which is another name of the same.
    pub(super) fn renamed(&mut self, at: usize, written: &str, new: &str) {
        self.verbatim(at);
        let (from, written) = (self.from(), written.to_owned());
        self.done = at + written.len();
        self.parts.push(Part { start: self.out.len(), from, at, written: Some(written) });
        self.out.push_str(new);
    }

    /// The text; `None` when nothing changed.
    pub(super) fn finish(mut self) -> Option<Node<'s>> {
        if self.done == 0 {
            return None;
        }
        self.verbatim(self.text.len());
        let text = Node::scalar(self.out, self.node.span);
        let woven = Woven { text, parts: self.parts };
        Some(Node { kind: Kind::Woven(Rc::new(woven)), span: self.node.span })
    }

    fn verbatim(&mut self, to: usize) {
        if to > self.done {
            let (from, at) = (self.from(), self.done);
            self.parts.push(Part { start: self.out.len(), from, at, written: None });
            self.out.push_str(&self.text[at..to]);
        }
    }

    fn from(&mut self) -> Rc<Node<'s>> {
        Rc::clone(self.from.get_or_insert_with(|| self.node.handle()))
    }
}

/// What a binding puts into a text, nothing for a word that stands for nothing; `None` when it is no text.
fn bound_text<'b>(bound: &'b Node<'_>) -> Option<&'b str> {
    if bound.is_null() { Some("") } else { bound.text() }
}

fn renamed<'s>(item: &Node<'static>, namespace: &Namespace) -> Node<'s> {
    Node::scalar(namespace.id(item.text().unwrap_or_default().trim()), item.span)
}

/// The same value in another place of the tree.
pub(super) fn shared<'s>(value: &Rc<Node<'s>>) -> Node<'s> {
    Node { kind: Kind::Alias(Rc::clone(value)), span: value.span }
}
