//! Patterns in Go's dialect, over text in memory and over output of any size.
//!
//! [`Pattern::is_match`] judges a whole text; [`Pattern::stream`] gives the same answer for bytes that arrive in
//! pieces and are never held, which is how a check reads output without a bound (case B3). The spelling of the
//! dialect is `dialect`'s business.

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Input, MatchKind};

use crate::text::dialect;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: String,
    regex: regex::Regex,
}

/// Where the matches of a pattern begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At the beginning of the text.
    Text,
    /// At the beginning of a line.
    Line,
    /// Anywhere.
    Nowhere,
}

impl Pattern {
    /// Compiles `source`, or says why it cannot be.
    pub fn compile(source: &str) -> Result<Self, String> {
        let translated = dialect::translate(source)?;
        let regex = regex::Regex::new(&translated).map_err(|error| reason(&error))?;
        Ok(Self { source: source.to_owned(), regex })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The pattern in the `regex` crate's dialect.
    pub(crate) fn translated(&self) -> &str {
        self.regex.as_str()
    }

    /// Where a match may begin.
    pub fn anchor(&self) -> Anchor {
        use regex_syntax::hir::Look;
        let begins = regex_syntax::parse(self.translated()).map(|hir| hir.properties().look_set_prefix());
        match begins {
            Ok(looks) if looks.contains(Look::Start) => Anchor::Text,
            Ok(looks) if looks.contains(Look::StartLF) || looks.contains(Look::StartCRLF) => Anchor::Line,
            _ => Anchor::Nowhere,
        }
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Begins to match bytes that arrive in pieces.
    pub fn stream(&self) -> Stream {
        Stream::new(automaton(self.regex.as_str()))
    }
}

/// The last line of a compile error: the ones above it draw the translated pattern, which nobody wrote.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too big".to_owned(),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

/// The automaton of a pattern that compiled. It is built where it is used: most commands only look at a graph.
fn automaton(translated: &str) -> DFA {
    DFA::builder()
        .configure(
            DFA::config()
                // All matches: an empty one inside a character is passed over and the search goes on.
                .match_kind(MatchKind::All)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(None),
        )
        .thompson(thompson::Config::new().shrink(false))
        .build(translated)
        .expect("it compiled within a size limit, has no Unicode word boundary, and no cache is too small")
}

/// An automaton whose states keep their names while it is walked in all directions; it gives up where it would
/// grow past a bound.
pub(crate) fn searchable(translated: &str) -> Option<DFA> {
    const CACHE_BYTES: usize = 32 << 20;
    let config = DFA::config()
        .match_kind(MatchKind::All)
        .skip_cache_capacity_check(true)
        .cache_capacity(CACHE_BYTES)
        .minimum_cache_clear_count(Some(0));
    DFA::builder().configure(config).thompson(thompson::Config::new().shrink(false)).build(translated).ok()
}

/// A search over bytes that arrive in pieces; its memory does not grow with them.
///
/// Its answer is that of [`Pattern::is_match`] over the lossy decoding of all the bytes.
#[derive(Debug)]
pub struct Stream {
    search: Box<Search>,
    /// The beginning of a character whose end has not arrived.
    pending: Vec<u8>,
}

impl Stream {
    fn new(dfa: DFA) -> Self {
        let mut cache = dfa.create_cache();
        let state = dfa
            .start_state_forward(&mut cache, &Input::new(""))
            .expect("the start of text needs no byte before it and the cache never gives up");
        Self { search: Box::new(Search { dfa, cache, state, verdict: None }), pending: Vec::new() }
    }

    /// Whether the answer is known to be yes; more bytes cannot change it.
    pub fn matched(&self) -> bool {
        self.search.verdict == Some(true)
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.search.verdict.is_some() || bytes.is_empty() {
            return;
        }
        if self.pending.is_empty() {
            return self.decode(bytes);
        }
        // At most four bytes finish or break the pending character; the rest is decoded where it is.
        let (near, far) = bytes.split_at(bytes.len().min(4));
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(near);
        self.decode(&joined);
        if !far.is_empty() {
            self.feed(far);
        }
    }

    /// Ends the input and returns the answer.
    pub fn finish(mut self) -> bool {
        if !self.pending.is_empty() {
            self.search.step("\u{fffd}");
        }
        self.search.end()
    }

    fn decode(&mut self, mut bytes: &[u8]) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => return self.search.step(text),
                Err(error) => error,
            };
            let (valid, after) = bytes.split_at(error.valid_up_to());
            self.search.step(std::str::from_utf8(valid).expect("the decoder said so"));
            let Some(broken) = error.error_len() else {
                self.pending.extend_from_slice(after);
                return;
            };
            self.search.step("\u{fffd}");
            bytes = &after[broken..];
        }
    }
}

#[derive(Debug)]
struct Search {
    dfa: DFA,
    cache: Cache,
    state: LazyStateID,
    verdict: Option<bool>,
}

impl Search {
    /// Walks over `text`. A match is seen one byte late, so it ends before the byte that reveals it.
    fn step(&mut self, text: &str) {
        if self.verdict.is_some() {
            return;
        }
        for (at, byte) in text.bytes().enumerate() {
            self.state = self
                .dfa
                .next_state(&mut self.cache, self.state, byte)
                .expect("the cache is never told to give up");
            if !self.state.is_tagged() {
                continue;
            }
            // An empty match inside a character is none, in Go as in the `regex` crate.
            if self.state.is_match() && text.is_char_boundary(at) {
                self.verdict = Some(true);
                return;
            }
            if self.state.is_dead() {
                self.verdict = Some(false);
                return;
            }
        }
    }

    fn end(&mut self) -> bool {
        if let Some(verdict) = self.verdict {
            return verdict;
        }
        let state = self.dfa.next_eoi_state(&mut self.cache, self.state);
        state.expect("the cache is never told to give up").is_match()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use proptest::prelude::*;

    fn compile(source: &str) -> Pattern {
        Pattern::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"))
    }

    #[test]
    fn b14_decoration_around_a_verdict_is_accepted() {
        let pattern = compile(r"^[*_`\s]*PASS[*_`\s]*$");
        for reply in ["PASS", "PASS\r\n", "**PASS**", "`PASS`", "\n_PASS_\n"] {
            assert!(pattern.is_match(reply), "{reply:?}");
        }
        assert!(!pattern.is_match("PASS with remarks"));
    }

    #[test]
    fn the_dialect_is_gos() {
        for (pattern, text, matches) in [
            (r"^\w+$", "é", false),
            (r"^\s$", "\u{a0}", false),
            (r"\Qa.b\E", "a.b", true),
            (r"a{,2}", "a{,2}", true),
            (r"x$", "x\n", false),
            (r"(?m)x$", "x\ny", true),
            (r"[a[b]", "[", true),
            (r"\101", "A", true),
            (r"(?i)k", "\u{212a}", true),
            (r"^\d$", "٣", false),
            (r"\bé", "aé", true),
            (r"^\s$", "\u{b}", false),
            (r"{", "{", true),
            (r"a{", "a{", true),
            (r"^[a&&b]$", "&", true),
            (r"^[a~~b]$", "~", true),
            (r"\<a\>", "<a>", true),
            (r"^[]a]$", "]", true),
            (r"^[[:^alpha:]]$", "1", true),
            (r"(?<n>a)(?P<m>b)", "ab", true),
            (r"^\x{41}\x42$", "AB", true),
            (r"^\pN\p{Greek}$", "1α", true),
            (r"^\p{^Greek}\P{^Greek}[\p{^Greek}]$", "aαa", true),
            (r"a|", "", true),
            (r"(?s)^.$", "\n", true),
            (r"^.$", "\n", false),
        ] {
            assert_eq!(compile(pattern).is_match(text), matches, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn a_bad_pattern_is_refused_in_one_line() {
        for pattern in [
            "(",
            "a**",
            r"\Z",
            r"\C",
            r"\1",
            r"\h",
            r"\u0041",
            "[a--b]",
            "(?u)a",
            "a{2}{3}",
            r"\p{IsGreek}",
            r"\p{sc=Greek}",
            r"\p{}",
            r"\p{",
            r"\p",
            "(?=x)",
            "[z-a]",
            "a{1001}",
            "(?x)a",
            "[[:foo:]]",
            r"\p{Nope}",
            "x{1000}{1000}",
        ] {
            let error = Pattern::compile(pattern).expect_err(pattern);
            assert!(!error.is_empty() && !error.contains('\n'), "{pattern}: {error:?}");
        }
        assert_eq!(Pattern::compile("(").expect_err("open"), "unclosed group");
    }

    #[test]
    fn b3_a_match_is_found_wherever_it_stands() {
        let pattern = compile("MARK");
        for mark_first in [true, false] {
            let mut stream = pattern.stream();
            if mark_first {
                stream.feed(b"MARK");
            }
            for _ in 0..1000 {
                stream.feed(&[b'a'; 1000]);
            }
            assert_eq!(stream.matched(), mark_first);
            if !mark_first {
                stream.feed(b"MA");
                stream.feed(b"RK");
            }
            assert!(stream.finish());
        }
    }

    #[test]
    fn an_empty_match_inside_a_character_is_none() {
        let pattern = compile(r"\B");
        assert!(!pattern.is_match("aéa"));
        let mut stream = pattern.stream();
        stream.feed("aéa".as_bytes());
        assert!(!stream.finish());
    }

    const PATTERNS: [&str; 28] = [
        "",
        "a",
        "^a",
        "a$",
        "^$",
        "(?m)^a",
        "(?m)a$",
        "(?m)^$",
        r"\ba",
        r"a\b",
        r"\B",
        r"\bab\b",
        "^[^a]*$",
        "é",
        "[é→]+$",
        r"\x{FFFD}",
        r"^\x{FFFD}+$",
        ".",
        "^.$",
        "(?s)^.{3}$",
        r"(?i)AB|→",
        "a.*b",
        "(a|b)*c$",
        r"\Aab",
        r"b\z",
        r"^\s*a",
        r"\d+",
        "[^\u{0}-\u{7f}]$",
    ];

    static COMPILED: LazyLock<Vec<Pattern>> = LazyLock::new(|| PATTERNS.into_iter().map(compile).collect());

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let unit = prop_oneof![
            4 => prop::sample::select(vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"\n".to_vec(), b" ".to_vec(), b"1".to_vec()]),
            2 => prop::sample::select(vec!["é".as_bytes().to_vec(), "→".as_bytes().to_vec(), "😀".as_bytes().to_vec()]),
            2 => any::<u8>().prop_map(|b| vec![b]),
            1 => prop::sample::select(vec![vec![0xf0, 0x9f], vec![0xe2, 0x86], vec![0xc3], vec![0xed, 0xa0, 0x80], vec![0xff]]),
        ];
        prop::collection::vec(unit, 0..12).prop_map(|units| units.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn every_pattern_that_compiles_streams(
            source in r"(a|é|\.|\*|\+|\?|\||\(|\)|\(\?i\)|\(\?m\)|\(\?s\)|\(\?U\)|\[a-c\]|\[\^a\]|\\[bBdDsSwWAznxQE]|\{2\}|\{1,3\}|\^|\$|\\pL|\[\[:alpha:\]\]){0,8}",
            text in "(a|b|é|\n| |1|_){0,8}",
        ) {
            if let Ok(pattern) = Pattern::compile(&source) {
                let mut stream = pattern.stream();
                stream.feed(text.as_bytes());
                prop_assert_eq!(stream.finish(), pattern.is_match(&text), "{:?} on {:?}", source, text);
            }
        }

        #[test]
        fn a_stream_answers_as_the_whole_does(
            at in 0..PATTERNS.len(),
            bytes in bytes(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let pattern = &COMPILED[at];
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            ends.sort_unstable();
            let mut stream = pattern.stream();
            let mut start = 0;
            for end in ends {
                stream.feed(&bytes[start..end]);
                start = end;
            }
            stream.feed(&bytes[start..]);
            prop_assert_eq!(
                stream.finish(),
                pattern.is_match(&String::from_utf8_lossy(&bytes)),
                "{:?} on {:?}", PATTERNS[at], bytes
            );
        }
    }
}
