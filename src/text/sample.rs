//! A short readable text that a pattern matches, for rehearsed replies (DECISIONS 24).
//!
//! The pattern's own structure is written out first: its literals, a plain character of each class, the first
//! branch of each alternative. Where that is blank or misses (a `\B`, an anchor in the middle), the pattern's
//! automaton is searched for the shortest text that it accepts. Whatever is found is checked with
//! [`Pattern::is_match`]; knows nothing of nodes, so a blank text is an answer when no other matches.

use std::collections::{HashMap, VecDeque};

use regex_automata::Input;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use crate::text::regexp::{self, Pattern};

/// What stands for any text at all, as in `.+`.
const WORD: &str = "rehearsed";
/// How many states of an automaton are searched; a pattern that needs more is written by a script.
const STATES_MAX: usize = 4_000;

/// A text that `pattern` matches, one that is not blank when there is one; `None` when none was found.
pub fn sample(pattern: &Pattern) -> Option<String> {
    let hir = regex_syntax::parse(pattern.translated()).ok()?;
    let mut written = String::new();
    write(&hir, &mut written);
    let written = Some(written).filter(|text| pattern.is_match(text));
    match written {
        Some(text) if !is_blank(&text) => Some(text),
        blank => search(pattern, &hir).or(blank),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Writes `hir` out as a person would read it. What looks around is left to luck and to the search.
fn write(hir: &Hir, out: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => out.extend(plainest(class)),
        HirKind::Repetition(repetition) => repeat(repetition, out),
        HirKind::Capture(capture) => write(&capture.sub, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, out)),
        // An alternative without any character of its own is the last resort.
        HirKind::Alternation(branches) => {
            let first = branches.iter().find(|branch| branch.properties().minimum_len() > Some(0));
            if let Some(branch) = first.or(branches.first()) {
                write(branch, out);
            }
        }
    }
}

/// As often as it must be, or a whole word where any text will do.
fn repeat(repetition: &Repetition, out: &mut String) {
    let (least, most) = (repetition.min as usize, repetition.max.map_or(usize::MAX, |max| max as usize));
    let takes_word = (1..=WORD.len()).contains(&least) && most >= WORD.len();
    if takes_word && let HirKind::Class(class) = repetition.sub.kind() {
        let ranges = ranges(class);
        if WORD.chars().all(|c| holds(&ranges, c))
            && WORD.chars().all(|c| holds(&ranges, c.to_ascii_uppercase()))
        {
            return out.push_str(WORD);
        }
    }
    let mut once = String::new();
    write(&repetition.sub, &mut once);
    out.push_str(&once.repeat(least));
}

/// The character of a class that reads best; none for a class without one.
fn plainest(class: &Class) -> Option<char> {
    let ranges = ranges(class);
    let held = |c: &char| holds(&ranges, *c);
    preferred().find(held).or_else(|| beyond_ascii(&ranges)).or_else(|| ranges.first().map(|range| range.0))
}

/// The ASCII characters, most readable first; the control characters are not among them.
fn preferred() -> impl Iterator<Item = char> {
    ('a'..='z').chain('A'..='Z').chain('1'..='9').chain(['0']).chain('!'..='~').chain([' ', '\n', '\t'])
}

/// The first letter or other printable character past ASCII. Only the beginnings of ranges are looked through.
fn beyond_ascii(ranges: &[(char, char)]) -> Option<char> {
    const LOOKED_AT: usize = 64;
    let each =
        || ranges.iter().flat_map(|(low, high)| (*low..=*high).filter(|c| !c.is_ascii()).take(LOOKED_AT));
    each().find(|c| c.is_alphanumeric()).or_else(|| each().find(|c| !c.is_control() && !c.is_whitespace()))
}

fn ranges(class: &Class) -> Vec<(char, char)> {
    match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        // Only ASCII is a class of bytes in a pattern that matches text.
        Class::Bytes(class) => {
            class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect()
        }
    }
}

fn holds(ranges: &[(char, char)], c: char) -> bool {
    ranges.iter().any(|(low, high)| (*low..=*high).contains(&c))
}

/// The characters to search with: all readable ASCII, and one for each thing that the pattern names beside them.
fn alphabet(hir: &Hir) -> Vec<char> {
    let mut named = Vec::new();
    name(hir, &mut named);
    named.retain(|c| !preferred().any(|known| known == *c));
    named.sort_unstable();
    named.dedup();
    preferred().chain(named).collect()
}

fn name(hir: &Hir, named: &mut Vec<char>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => named.extend(String::from_utf8_lossy(&literal.0).chars()),
        HirKind::Class(class) => named.extend(plainest(class)),
        HirKind::Repetition(repetition) => name(&repetition.sub, named),
        HirKind::Capture(capture) => name(&capture.sub, named),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().for_each(|part| name(part, named));
        }
    }
}

/// A place in the search: where the automaton stands, and whether anything readable has been written.
type Place = (LazyStateID, bool);

/// The shortest text that is accepted and not blank, else the shortest blank one.
fn search(pattern: &Pattern, hir: &Hir) -> Option<String> {
    let alphabet = alphabet(hir);
    let dfa = regexp::searchable(pattern.translated())?;
    let mut cache = dfa.create_cache();
    let start = (dfa.start_state_forward(&mut cache, &Input::new("")).ok()?, false);
    let mut came_from: HashMap<Place, Option<(Place, char)>> = HashMap::from([(start, None)]);
    let mut queue = VecDeque::from([start]);
    let mut blank = None;
    while let Some(place) = queue.pop_front() {
        if accepts(&dfa, &mut cache, place.0) {
            let text = spell(&came_from, place);
            // A match that is complete stays one, whatever follows.
            let text = if place.1 || !place.0.is_match() { text } else { text + "a" };
            match (is_blank(&text), pattern.is_match(&text)) {
                (false, true) => return Some(text),
                (true, true) => blank = blank.or(Some(text)),
                (_, false) => {}
            }
        }
        for &c in &alphabet {
            let Some(state) = step(&dfa, &mut cache, place.0, c) else { continue };
            let next = (state, place.1 || !c.is_whitespace());
            if came_from.len() < STATES_MAX && !came_from.contains_key(&next) {
                came_from.insert(next, Some((place, c)));
                queue.push_back(next);
            }
        }
    }
    blank
}

/// Whether a text that ends here matches: the match is complete, or the end of the text completes it.
fn accepts(dfa: &DFA, cache: &mut Cache, state: LazyStateID) -> bool {
    state.is_match() || dfa.next_eoi_state(cache, state).is_ok_and(|end| end.is_match())
}

/// Where `c` leads; `None` when nothing can match any more, or the automaton has grown too big.
fn step(dfa: &DFA, cache: &mut Cache, mut state: LazyStateID, c: char) -> Option<LazyStateID> {
    let mut bytes = [0; 4];
    for byte in c.encode_utf8(&mut bytes).bytes() {
        state = dfa.next_state(cache, state, byte).ok()?;
    }
    (!state.is_dead() && !state.is_quit()).then_some(state)
}

fn spell(came_from: &HashMap<Place, Option<(Place, char)>>, mut place: Place) -> String {
    let mut reversed = Vec::new();
    while let Some(Some((before, c))) = came_from.get(&place) {
        reversed.push(*c);
        place = *before;
    }
    reversed.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, wanted: Option<&str>) {
        let compiled = Pattern::compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let found = sample(&compiled);
        assert_eq!(found.as_deref(), wanted, "{pattern}");
        assert!(found.is_none_or(|text| compiled.is_match(&text)), "{pattern}");
    }

    #[test]
    fn the_patterns_of_real_graphs_have_readable_samples() {
        check(r"^[*_`\s]*PASS[*_`\s]*$", Some("PASS"));
        check(r"^[*_`\s]*ship it\b", Some("ship it"));
        check(r"^[*_`\s]*(APPROVED|REJECTED)", Some("APPROVED"));
        check(r"^PR https?://\S+", Some("PR http://rehearsed"));
        check(r"(?s)^APPLIED [0-9a-f]{7,40}\b", Some("APPLIED aaaaaaa"));
        check("^(CLEAN|FINDINGS:)", Some("CLEAN"));
        check(r"^ok\s+github", Some("ok github"));
        check("(?m)^VERDICT: (yes|no)$", Some("VERDICT: yes"));
        check(r"(?i)^lgtm\b", Some("lgtm"));
        check(r"\A.+\z", Some("rehearsed"));
        check(r"\d{4}-\d{2}", Some("1111-11"));
        check("^판정: 통과", Some("판정: 통과"));
    }

    #[test]
    fn a_sample_is_not_blank_where_any_other_matches() {
        check(r"\S", Some("a"));
        check(".", Some("a"));
        check("", Some("a"));
        check(r"\s", Some("a "));
        check("^(?m:$)", Some("\na"));
        check("(PASS)?", Some("a"));
        check("^(PASS)?$", Some("PASS"));
        check("^(|PASS)$", Some("PASS"));
    }

    #[test]
    fn a_pattern_of_blank_texts_has_a_blank_sample() {
        check("^$", Some(""));
        check(r"^\s$", Some(" "));
        check(r"^\s*$", Some(""));
    }

    #[test]
    fn what_looks_around_is_searched_for() {
        check(r"foo\B", Some("fooa"));
        check(r"\Bfoo", Some("afoo"));
        check(r"^.\b.$", Some("a!"));
        check("(?m)^a$^b$", None);
        check("(?m)^a$\n^b$", Some("a\nb"));
        check(r"a\b\W", Some("a!"));
    }

    #[test]
    fn a_pattern_that_matches_no_text_has_no_sample() {
        for pattern in ["a^", "$a", r"\Ba\b\Bb", r"[^\x00-\x{10FFFF}]", r"x\A"] {
            check(pattern, None);
        }
    }

    #[test]
    fn unreadable_characters_are_written_only_where_nothing_else_will_do() {
        check(r"^\x00$", Some("\0"));
        check(r"^[\x00-\x1fz]$", Some("z"));
        check(r"^\p{Greek}+$", Some("Ͱ"));
        check("^[^\\x00-\\x7f]$", Some("ª"));
        check(r"\x{FFFD}", Some("\u{fffd}"));
    }

    #[test]
    fn a_pattern_with_a_huge_automaton_is_given_up_in_time() {
        let compiled = Pattern::compile(r"^[ab]*a[ab]{20}\B$").expect("a pattern");
        assert_eq!(sample(&compiled), None);
    }

    fn pattern() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a",
            "b",
            "é",
            "0",
            " ",
            r"\s",
            r"\S",
            r"\w",
            r"\W",
            r"\b",
            r"\B",
            "^",
            "$",
            "(?m:^)",
            "(?m:$)",
            ".",
            "[ab]",
            "[^a]",
            r"\n",
            r"\A",
            r"\z",
            "(?i:k)",
            r"[[:punct:]]",
        ])
        .prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                1 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
                1 => (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "{2,}", "+?"]))
                    .prop_map(|(part, times)| format!("({part}){times}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(800))]
        #[test]
        fn a_sample_matches_and_only_a_pattern_without_matches_has_none(
            source in pattern(),
            texts in prop::collection::vec("[ab0é .\n]{0,6}", 20),
        ) {
            let pattern = Pattern::compile(&source).expect("the generator writes patterns");
            match sample(&pattern) {
                Some(text) if is_blank(&text) => {
                    let other = texts.iter().find(|text| !is_blank(text) && pattern.is_match(text));
                    prop_assert!(pattern.is_match(&text), "{source:?} on {text:?}");
                    prop_assert_eq!(other, None, "{:?} has only {:?}", source, text);
                }
                Some(text) => prop_assert!(pattern.is_match(&text), "{source:?} on {text:?}"),
                None => {
                    let matched = texts.iter().find(|text| pattern.is_match(text));
                    prop_assert_eq!(matched, None, "{:?}", source);
                }
            }
        }
    }
}
