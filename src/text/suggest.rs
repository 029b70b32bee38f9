//! "Did you mean": the nearest of a set of known words to one that is not in it.

/// The word of `known` that `word` most likely meant, if any is near enough.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain = flatten(word);
    known
        .into_iter()
        .map(|candidate| (distance(&plain, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= reach(word, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// [`nearest`] as a hint line, `did you mean "prompt"?`.
pub fn hint<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean {candidate:?}?"))
}

fn distance(plain: &str, candidate: &str) -> usize {
    strsim::damerau_levenshtein(plain, &flatten(candidate))
}

/// Case and the kind of separator never count as a difference.
fn flatten(word: &str) -> String {
    // A word of any length may come from a file; no key is this long.
    word.chars().take(64).map(|c| if c == '-' || c == ' ' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// How many edits still count as a slip of the finger.
fn reach(word: &str, candidate: &str) -> usize {
    match word.len().max(candidate.len()) {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let known = ["prompt", "depends_on", "timeout", "success_check", "on", "id"];
        let cases = [
            ("promt", Some("prompt")),
            ("depends-on", Some("depends_on")),
            ("dependsOn", Some("depends_on")),
            ("timeouts", Some("timeout")),
            ("succes_check", Some("success_check")),
            ("Prompt", Some("prompt")),
            ("banana", None),
            ("x", None),
            ("", None),
        ];
        for (word, wanted) in cases {
            assert_eq!(nearest(word, known), wanted, "{word}");
        }
    }
}
