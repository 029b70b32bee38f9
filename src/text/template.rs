//! The `{{ … }}` tokens of prompts, directories and commands (FACTS 2.6): finds them, resolves none.
//!
//! One pass: the text that a token stands for is never read again, and what does not match stays as it is
//! written. There is no escape. Knows neither inputs nor artifacts.
//!
//! Scanned by hand: a pattern would have to be compiled by every command that only looks at a graph.

/// What a token refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{{ inputs.NAME }}`.
    Inputs,
    /// `{{ artifacts.ID }}`.
    Artifacts,
    /// `{{ feedback.ID }}`.
    Feedback,
}

/// A token of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    /// What it refers to.
    pub kind: Kind,
    /// The name or id after the dot.
    pub reference: &'t str,
    /// Whether `| inline` stands behind it.
    pub inline: bool,
    /// The token as written, braces included.
    pub written: &'t str,
}

/// A stretch of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text that stands for itself.
    Text(&'t str),
    /// A token to resolve.
    Token(Token<'t>),
}

/// A feedback token with whatever stands behind its bar, for the check that allows nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackToken<'t> {
    /// The id after the dot.
    pub reference: &'t str,
    /// Whether a filter of any spelling follows.
    pub filtered: bool,
    /// The token as written.
    pub written: &'t str,
}

/// The tokens of `template`, in order.
pub fn tokens(template: &str) -> impl Iterator<Item = Token<'_>> {
    found(template, |candidate| {
        let inline = match candidate.filter.map(|filter| filter.trim_matches(SPACE)) {
            None => false,
            Some("inline") => true,
            Some(_) => return None,
        };
        let Candidate { kind, reference, written, .. } = candidate;
        Some((Token { kind, reference, inline, written }, written))
    })
}

/// The whole of `template`, in order, as text and tokens; no piece of text is empty.
pub fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut tokens = tokens(template).peekable();
    let mut at = 0;
    std::iter::from_fn(move || {
        let next = tokens.peek().map(|token| token.written.as_ptr() as usize - template.as_ptr() as usize);
        match next {
            Some(start) if start == at => {
                let token = tokens.next()?;
                at = start + token.written.len();
                Some(Piece::Token(token))
            }
            _ => {
                let end = next.unwrap_or(template.len());
                let text = &template[at..end];
                at = end;
                (!text.is_empty()).then_some(Piece::Text(text))
            }
        }
    })
}

/// The feedback tokens of `template`, those with a filter of any spelling included.
pub fn feedback_tokens(template: &str) -> impl Iterator<Item = FeedbackToken<'_>> {
    found(template, |Candidate { kind, reference, filter, written }| {
        let token = FeedbackToken { reference, filtered: filter.is_some(), written };
        (kind == Kind::Feedback).then_some((token, written))
    })
}

/// Every `{{ … }}` of `text` that holds no brace, with its place in bytes: what is a token, and what only looks like one.
pub fn braced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let open = from + text[from..].find("{{")?;
            let inside = &text[open + 2..];
            let end = inside.find(['{', '}']).unwrap_or(inside.len());
            if inside[end..].starts_with("}}") {
                from = open + end + 4;
                return Some((open, &text[open..from]));
            }
            from = open + 1;
        }
    })
}

/// The white space of a token: Go's `\s`, which is these five.
pub const SPACE: [char; 5] = ['\t', '\n', '\u{c}', '\r', ' '];

/// What may be a token, with whatever stands behind a bar.
struct Candidate<'t> {
    kind: Kind,
    reference: &'t str,
    filter: Option<&'t str>,
    written: &'t str,
}

/// The candidates that `accept` takes, each with its text, without overlap.
fn found<'t, T>(
    template: &'t str,
    accept: impl Fn(Candidate<'t>) -> Option<(T, &'t str)>,
) -> impl Iterator<Item = T> {
    let mut rest = template;
    std::iter::from_fn(move || {
        loop {
            let text = &rest[rest.find("{{")?..];
            match candidate(text).and_then(&accept) {
                Some((token, written)) => {
                    rest = &text[written.len()..];
                    return Some(token);
                }
                // The second brace may begin a token: `{{{ inputs.x }}` holds one.
                None => rest = &text[1..],
            }
        }
    })
}

/// Reads `{{ kind.reference }}` or `{{ kind.reference | … }}` at the beginning of `text`.
fn candidate(text: &str) -> Option<Candidate<'_>> {
    let rest = text.strip_prefix("{{")?.trim_start_matches(SPACE);
    let kinds = [(Kind::Inputs, "inputs."), (Kind::Artifacts, "artifacts."), (Kind::Feedback, "feedback.")];
    let (kind, rest) = kinds.into_iter().find_map(|(kind, word)| Some((kind, rest.strip_prefix(word)?)))?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._/-".contains(c))?;
    let (reference, rest) = rest.split_at(end);
    let rest = rest.trim_start_matches(SPACE);
    let (filter, rest) = match rest.strip_prefix('|') {
        Some(rest) => {
            let (filter, rest) = rest.split_at(rest.find('}')?);
            (Some(filter), rest)
        }
        None => (None, rest),
    };
    let rest = rest.strip_prefix("}}")?;
    let written = &text[..text.len() - rest.len()];
    (!reference.is_empty()).then_some(Candidate { kind, reference, filter, written })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// Pieces as text: `kind:reference` in angle brackets, `|` for inline.
    fn seen(template: &str) -> String {
        pieces(template)
            .map(|piece| match piece {
                Piece::Text(text) => text.to_owned(),
                Piece::Token(t) => {
                    format!("<{:?}:{}{}>", t.kind, t.reference, if t.inline { "|" } else { "" })
                }
            })
            .collect()
    }

    #[test]
    fn tokens_are_found_and_everything_else_stays() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            ("{{inputs.x}}", "<Inputs:x>"),
            ("a {{ inputs.a.b }} c", "a <Inputs:a.b> c"),
            ("{{\n artifacts.x\t|\n inline }}", "<Artifacts:x|>"),
            ("{{ inputs.x | inline }}{{ feedback.r/s }}", "<Inputs:x|><Feedback:r/s>"),
            ("{{ Inputs.x }}", "{{ Inputs.x }}"),
            ("{{ artifacts.x | inlin }}", "{{ artifacts.x | inlin }}"),
            ("{{ inputs. }} {{ inputs.x", "{{ inputs. }} {{ inputs.x"),
            ("{{{{ inputs.x }}}}", "{{<Inputs:x>}}"),
            ("{{\u{a0}inputs.x }}", "{{\u{a0}inputs.x }}"),
            ("é{{ inputs.x }}é", "é<Inputs:x>é"),
        ];
        for (template, wanted) in cases {
            assert_eq!(seen(template), wanted, "{template}");
        }
    }

    #[test]
    fn any_filter_on_feedback_is_seen() {
        let found: Vec<_> = feedback_tokens("{{ feedback.a }} {{feedback.b | inline}} {{ feedback.c |}}")
            .map(|token| (token.reference, token.filtered))
            .collect();
        assert_eq!(found, [("a", false), ("b", true), ("c", true)]);
    }

    /// The grammar as patterns: of tokens, and of feedback tokens with any filter.
    static GRAMMAR: LazyLock<(regex::Regex, regex::Regex)> = LazyLock::new(|| {
        let pattern = |kinds: &str, filter: &str| {
            let source = r"\{\{~(KINDS)\.([A-Za-z0-9._/-]+)~FILTER\}\}";
            let source =
                source.replace("FILTER", filter).replace("KINDS", kinds).replace('~', r"[\t\n\f\r ]*");
            regex::Regex::new(&source).expect("a fixed pattern")
        };
        (pattern("inputs|artifacts|feedback", r"(?:\|~inline~)?"), pattern("feedback", r"(?:\|[^}]*)?"))
    });

    proptest::proptest! {
        #[test]
        fn the_scan_agrees_with_the_grammar(
            template in r"(\{\{|\{|\}\}|\}|inputs\.|artifacts\.|feedback\.|x|\||inline| |\n|é){0,24}"
        ) {
            let (strict, wide) = &*GRAMMAR;
            let wanted: Vec<&str> = strict.find_iter(&template).map(|found| found.as_str()).collect();
            let seen: Vec<&str> = tokens(&template).map(|token| token.written).collect();
            proptest::prop_assert_eq!(seen, wanted);
            let wanted: Vec<&str> = wide.find_iter(&template).map(|found| found.as_str()).collect();
            let seen: Vec<&str> = feedback_tokens(&template).map(|token| token.written).collect();
            proptest::prop_assert_eq!(seen, wanted);
        }

        #[test]
        fn pieces_put_together_are_the_template(
            template in r"(\{\{|\}\}|inputs|artifacts|feedback|\.|x|\||inline| |é){0,40}"
        ) {
            let again: String = pieces(&template)
                .map(|piece| match piece { Piece::Text(text) => text, Piece::Token(t) => t.written })
                .collect();
            proptest::prop_assert_eq!(again, template);
        }
    }
}
