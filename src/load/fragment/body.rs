//! A fragment that holds, ready to be spliced in as often as it is cited.

use std::collections::HashSet;
use std::rc::Rc;

use super::tokens::{self, Kind as TokenKind};
use crate::load::yaml::tree::Entry;
use crate::load::yaml::{Node, Span};

/// A fragment that holds.
#[derive(Debug)]
pub(super) struct Fragment {
    /// Its name, which is its file's.
    pub name: Rc<str>,
    /// The position of its file among the files.
    pub file: usize,
    /// `description:`.
    pub description: String,
    /// `substitutions:`, each once.
    pub points: Vec<String>,
    /// Those of them that nothing in the file uses, each with its place.
    pub unused: Vec<(String, Span)>,
    /// Where it allows what a sweep says, which only a graph can.
    pub allowance: Option<Span>,
    /// What it declares.
    pub body: Body,
}

/// What a fragment declares.
#[derive(Debug)]
pub(super) enum Body {
    /// `node:`, how one node behaves.
    One(Block),
    /// `nodes:` and `exit:`.
    Many {
        /// The nodes.
        blocks: Vec<Block>,
        /// Their ids.
        ids: HashSet<String>,
        /// The id of the node whose value is the fragment's.
        exit: String,
    },
}

/// A node of a fragment.
#[derive(Debug)]
pub(super) struct Block {
    /// Its id, empty in a fragment of one node.
    pub id: String,
    /// Its other keys, in the order of the file.
    pub keys: Vec<Key>,
    /// Its place.
    pub span: Span,
    /// That of its id.
    pub id_span: Span,
}

/// A key of a node.
#[derive(Debug)]
pub(super) struct Key {
    /// The key's word.
    pub name: Rc<Node<'static>>,
    /// Its value.
    pub value: Rc<Node<'static>>,
    /// Whether the value holds a token that a citation fills or renames; another value is shared and never copied.
    pub varies: bool,
    /// Whether it holds a binding.
    pub is_bound: bool,
}

impl Key {
    /// The key's word as text.
    pub(super) fn word(&self) -> &str {
        self.name.text().unwrap_or_default()
    }
}

impl Block {
    /// The node of these entries, without what they borrow.
    pub(super) fn of(id: String, entries: &[Entry<'_, '_>], span: Span) -> Block {
        let keys = entries.iter().filter(|entry| entry.name != "id").map(|entry| {
            let (mut varies, mut is_bound) = (false, false);
            entry.value.each_scalar(&mut |_, text| {
                for token in tokens::tokens(text) {
                    varies = true;
                    is_bound |= matches!(token.kind, TokenKind::With(_));
                }
            });
            let value = entry.value.owned();
            let value = Rc::new(if varies { value.sharing_scalars() } else { value });
            let name = Rc::new(entry.key.owned());
            Key { name, value, varies, is_bound }
        });
        let id_span = entries.iter().find(|entry| entry.name == "id").map_or(span, |entry| entry.value.span);
        Block { id, keys: keys.collect(), span, id_span }
    }

    /// The value of a key.
    pub(super) fn get(&self, word: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.word() == word)
    }
}
