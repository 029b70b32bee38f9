//! The tokens that matter while fragments are spliced in: bindings, and ids of nodes.
//!
//! Wider than the tokens of a run ([`template::tokens`]): an id is followed into a token of any filter, and what claims
//! to be a binding is judged, because a token that can never be filled would reach a model as it is.

use crate::text::template::{SPACE, braced};

/// A `{{ … }}` of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// What it is.
    pub kind: Kind<'t>,
    /// The token as written.
    pub written: &'t str,
    /// Where it begins in the text.
    pub at: usize,
}

/// What a `{{ … }}` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// `{{ with.NAME }}`.
    With(&'t str),
    /// It begins with the word `with`, and is no binding.
    Malformed,
    /// `{{ artifacts.ID … }}`.
    Artifacts(&'t str),
    /// `{{ feedback.ID … }}`.
    Feedback(&'t str),
}

impl<'t> Token<'t> {
    /// The id of the node that it names.
    pub(super) fn id(&self) -> Option<&'t str> {
        match self.kind {
            Kind::Artifacts(id) | Kind::Feedback(id) => Some(id),
            Kind::With(_) | Kind::Malformed => None,
        }
    }

    /// The token with another id in the place of its own.
    pub(super) fn renamed(&self, id: &str, new: &str) -> String {
        let start = id.as_ptr() as usize - self.written.as_ptr() as usize;
        [&self.written[..start], new, &self.written[start + id.len()..]].concat()
    }
}

/// The tokens of `text` that matter here, in order.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    braced(text).filter_map(|(at, written)| Some(Token { kind: kind(written)?, written, at }))
}

/// Whether `text` holds a `{{ … }}` of any kind.
pub(super) fn is_templated(text: &str) -> bool {
    braced(text).next().is_some()
}

fn kind(written: &str) -> Option<Kind<'_>> {
    let inside = written[2..written.len() - 2].trim_matches(SPACE);
    let word_end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (word, rest) = inside.split_at(word_end);
    if word.eq_ignore_ascii_case("with") {
        let name = rest.strip_prefix('.').filter(|name| word == "with" && is_name(name));
        return Some(name.map_or(Kind::Malformed, Kind::With));
    }
    let id = rest.strip_prefix('.')?;
    let id = id.split('|').next().unwrap_or_default().trim_end_matches(SPACE);
    if id.is_empty() || id.contains(SPACE) {
        return None;
    }
    match word {
        "artifacts" => Some(Kind::Artifacts(id)),
        "feedback" => Some(Kind::Feedback(id)),
        _ => None,
    }
}

/// Whether a declared point could be called so.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_told_apart() {
        for (text, wanted) in [
            ("{{ with.a-b.c }}", Some(Kind::With("a-b.c"))),
            ("{{with.a}}", Some(Kind::With("a"))),
            ("{{ with.a | inline }}", Some(Kind::Malformed)),
            ("{{ with. }}", Some(Kind::Malformed)),
            ("{{ With.a }}", Some(Kind::Malformed)),
            ("{{ with }}", Some(Kind::Malformed)),
            ("{{ without.a }}", None),
            ("{{ artifacts.x|inline }}", Some(Kind::Artifacts("x"))),
            ("{{\nartifacts.x/y | anything }}", Some(Kind::Artifacts("x/y"))),
            ("{{ feedback.r }}", Some(Kind::Feedback("r"))),
            ("{{ artifacts. }}", None),
            ("{{ artifacts.a b }}", None),
            ("{{ inputs.a }}", None),
            ("{{ }} {{", None),
        ] {
            assert_eq!(tokens(text).next().map(|token| token.kind), wanted, "{text}");
        }
    }

    #[test]
    fn an_id_is_renamed_where_it_stands() {
        let renamed: Vec<String> = tokens("é {{artifacts.a|inline}} {{ feedback.b }}")
            .filter_map(|token| Some(token.renamed(token.id()?, "r/x")))
            .collect();
        assert_eq!(renamed, ["{{artifacts.r/x|inline}}", "{{ feedback.r/x }}"]);
    }
}
