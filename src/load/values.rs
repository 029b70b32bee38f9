//! What the readers of small documents share, of rehearsals' scripts and of tests of graphs: what a value is, and what
//! is wrong with a key.

use crate::load::problem::Problem;
use crate::load::yaml::{Kind, Node, scalar};
use crate::text::suggest;

/// How much of a value a message shows, in characters.
const SHOWN_CHARS: usize = 40;

/// A problem with a key that is none of `known`.
pub(crate) fn unknown_key(key: &Node<'_>, name: &str, known: &[&str]) -> Problem {
    let hint = suggest::hint(name, known.iter().copied())
        .unwrap_or_else(|| format!("the keys here are {}", known.join(", ")));
    Problem::at(key.span, format!("unknown key {name:?}")).hint(hint)
}

/// A word that is neither quoted nor a block.
pub(crate) fn plain<'t>(value: &'t Node<'_>) -> Option<&'t str> {
    match &value.target().kind {
        Kind::Scalar { text, plain: true } => Some(text),
        _ => None,
    }
}

/// Whether the value is written as nothing.
pub(crate) fn is_unset(value: &Node<'_>) -> bool {
    plain(value).is_some_and(scalar::is_null)
}

/// What a value is, as the end of a sentence.
pub(crate) fn described(value: &Node<'_>) -> String {
    match &value.target().kind {
        _ if is_unset(value) => "nothing".to_owned(),
        Kind::Scalar { text, .. } => {
            let short: String = text.chars().take(SHOWN_CHARS).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            format!("{:?}", short + more)
        }
        Kind::Sequence(_) => "a list".to_owned(),
        _ => "a mapping".to_owned(),
    }
}
