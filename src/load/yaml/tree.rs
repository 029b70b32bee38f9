//! The tree: values with their byte ranges, keys in file order, aliases and merge keys still visible.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use super::scalar;

/// A half-open range of bytes of the source; of a fragment, counted from the place of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

impl Span {
    /// The same range of a text that begins `by` bytes later.
    pub(crate) fn moved(self, by: u32) -> Self {
        Span { start: self.start.saturating_add(by), end: self.end.saturating_add(by) }
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'s> {
    pub kind: Kind<'s>,
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind<'s> {
    /// A word or a text; `plain` when it is neither quoted nor a block.
    Scalar { text: Cow<'s, str>, plain: bool },
    /// A list.
    Sequence(Vec<Node<'s>>),
    /// A mapping, in file order.
    Mapping(Vec<(Node<'s>, Node<'s>)>),
    /// A `&name` on this value, which is shared with its aliases and never copied.
    Anchored(Rc<Node<'s>>),
    /// A `*name`.
    Alias(Rc<Node<'s>>),
    /// A text that was put together, from a fragment and what is bound to it.
    Woven(Rc<Woven<'s>>),
}

/// A text that stands nowhere as it is, and where its parts do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Woven<'s> {
    /// The text, with the place of the value that it was made for.
    pub text: Node<'s>,
    /// Its parts in order, none of them empty; together they are all of it.
    pub parts: Vec<Part<'s>>,
}

/// A part of a text that was put together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part<'s> {
    /// Where it begins in the whole, in bytes.
    pub start: usize,
    /// The text that it was taken from.
    pub from: Rc<Node<'s>>,
    /// Where it begins there.
    pub at: usize,
    /// What stands there, when it is not the same.
    pub written: Option<String>,
}

/// An entry of a mapping.
pub(crate) struct Entry<'t, 's> {
    /// The key's text.
    pub name: &'t str,
    /// The key.
    pub key: &'t Node<'s>,
    /// The value.
    pub value: &'t Node<'s>,
}

impl<'s> Node<'s> {
    /// The value itself, behind anchors and aliases.
    pub(crate) fn target(&self) -> &Node<'s> {
        let mut node = self;
        loop {
            node = match &node.kind {
                Kind::Anchored(inner) | Kind::Alias(inner) => inner,
                Kind::Woven(woven) => &woven.text,
                _ => return node,
            };
        }
    }

    /// How its text was put together, if it was.
    pub(crate) fn woven(&self) -> Option<&Woven<'s>> {
        let mut node = self;
        loop {
            node = match &node.kind {
                Kind::Anchored(inner) | Kind::Alias(inner) => inner,
                Kind::Woven(woven) => return Some(woven),
                _ => return None,
            };
        }
    }

    /// The same value with each of its scalars shared: what is made of one tells where it comes from without a copy.
    pub(crate) fn sharing_scalars(self) -> Self {
        let Node { kind, span } = self;
        let kind = match kind {
            Kind::Scalar { .. } => Kind::Anchored(Rc::new(Node { kind, span })),
            Kind::Sequence(items) => Kind::Sequence(items.into_iter().map(Node::sharing_scalars).collect()),
            Kind::Mapping(entries) => {
                let pair = |(key, value): (Node<'s>, Node<'s>)| (key, value.sharing_scalars());
                Kind::Mapping(entries.into_iter().map(pair).collect())
            }
            shared => shared,
        };
        Node { kind, span }
    }

    /// A handle on this value that costs no copy of a text that is shared.
    pub(crate) fn handle(&self) -> Rc<Node<'s>> {
        match &self.kind {
            Kind::Anchored(inner) | Kind::Alias(inner) if inner.span == self.span => Rc::clone(inner),
            _ => Rc::new(self.clone()),
        }
    }

    /// A word or a text that stands in no file.
    pub(crate) fn scalar(text: impl Into<Cow<'s, str>>, span: Span) -> Self {
        Node { kind: Kind::Scalar { text: text.into(), plain: false }, span }
    }

    /// The value as one that outlives its source. Anchors are dropped and aliases written out.
    pub(crate) fn owned(&self) -> Node<'static> {
        let kind = match &self.kind {
            Kind::Scalar { text, plain } => {
                Kind::Scalar { text: Cow::Owned(text.clone().into_owned()), plain: *plain }
            }
            Kind::Sequence(items) => Kind::Sequence(items.iter().map(Node::owned).collect()),
            Kind::Mapping(entries) => {
                Kind::Mapping(entries.iter().map(|(key, value)| (key.owned(), value.owned())).collect())
            }
            Kind::Anchored(inner) | Kind::Alias(inner) => inner.owned().kind,
            Kind::Woven(woven) => woven.text.owned().kind,
        };
        Node { kind, span: self.span }
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.target().kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether this is a word that stands for nothing.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.target().kind, Kind::Scalar { text, plain: true } if scalar::is_null(text))
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Option<&[Node<'s>]> {
        match &self.target().kind {
            Kind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Visits every scalar among the values, aliases followed; keys are no values.
    pub(crate) fn each_scalar<'t>(&'t self, visit: &mut impl FnMut(&'t Node<'s>, &'t str)) {
        match &self.kind {
            Kind::Scalar { text, .. } => visit(self, text),
            Kind::Sequence(items) => items.iter().for_each(|item| item.each_scalar(visit)),
            Kind::Mapping(entries) => entries.iter().for_each(|(_, value)| value.each_scalar(visit)),
            Kind::Anchored(inner) | Kind::Alias(inner) => inner.each_scalar(visit),
            Kind::Woven(woven) => visit(self, woven.text.text().unwrap_or_default()),
        }
    }

    /// Whether this key merges another mapping in; a quoted `<<` is an ordinary key.
    pub(crate) fn is_merge_key(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if text == "<<")
    }

    /// The entries of a mapping with `<<` merged in: its own keys win, then earlier merges over later ones.
    pub(crate) fn entries(&self) -> Option<Vec<Entry<'_, 's>>> {
        let Kind::Mapping(own) = &self.target().kind else { return None };
        let mut entries = Vec::with_capacity(own.len());
        let mut merges = Vec::new();
        for (key, value) in own {
            if key.is_merge_key() {
                merges.push(value);
            } else if let Some(name) = key.text() {
                entries.push(Entry { name, key, value });
            }
        }
        if !merges.is_empty() {
            merge(&mut entries, merges);
        }
        Some(entries)
    }

    /// The value under `name`, merged ones included.
    pub(crate) fn get(&self, name: &str) -> Option<&Node<'s>> {
        self.entry(name).map(|entry| entry.value)
    }

    /// The entry under `name`, merged ones included.
    pub(crate) fn entry(&self, name: &str) -> Option<Entry<'_, 's>> {
        self.entries()?.into_iter().find(|entry| entry.name == name)
    }
}

fn merge<'t, 's>(entries: &mut Vec<Entry<'t, 's>>, merges: Vec<&'t Node<'s>>) {
    let mut have: HashSet<&str> = entries.iter().map(|entry| entry.name).collect();
    for value in merges {
        let sources = match value.items() {
            Some(items) => items.iter().collect(),
            None => vec![value],
        };
        for entry in sources.into_iter().filter_map(Node::entries).flatten() {
            if have.insert(entry.name) {
                entries.push(entry);
            }
        }
    }
}
