//! Recognising that a subscription's limit is spent, in all wordings that the claude CLI is known to use
//! (CLI-PROTOCOL 2.6, FACTS 5.3).

use std::sync::LazyLock;

use regex::Regex;

/// Both apostrophes occur. The older CLI says `session limit`, the newer one `5-hour limit`, both others by name.
static LIMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)(^|[^\w])you['’]ve hit your (\S+ ){0,2}?limit\b").expect("a pattern"));
static RESET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bresets?\s+(?:at\s+)?([^·∙(\n]+(?:\([^)\n]+\))?)").expect("a pattern")
});
/// The API's own overload, which is not the person's limit: never a reason to wait for it.
const NOT_THE_PERSONS: &str = "not your usage limit";

/// Whether an error's `words` say that the person's limit is spent.
pub fn is_limit(words: &str) -> bool {
    LIMIT.is_match(words) && !words.contains(NOT_THE_PERSONS)
}

/// When the limit ends, in the CLI's own words, its time zone included; `None` when it does not say.
pub fn resets(words: &str) -> Option<String> {
    let when = RESET.captures(words)?.get(1)?.as_str().trim().trim_end_matches('.').trim();
    (!when.is_empty()).then(|| when.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_wording_is_a_limit() {
        for words in [
            "You've hit your session limit · resets 8:05am (UTC)",
            "You've hit your 5-hour limit · resets 8:22am (UTC)",
            "You've hit your weekly limit · resets Dec 3, 6:41pm (UTC)",
            "You've hit your Opus limit",
            "You’ve hit your limit · resets 3pm",
            "Error: you've hit your session limit",
        ] {
            assert!(is_limit(words), "{words}");
        }
        for words in [
            "API Error: Server is temporarily limiting requests (not your usage limit) · try again",
            "rate limit exceeded",
            "You've hit your stride; the speed limit is 50",
        ] {
            assert!(!is_limit(words), "{words}");
        }
    }

    #[test]
    fn the_reset_is_what_stands_behind_the_word() {
        let check = |words: &str, when: Option<&str>| assert_eq!(resets(words).as_deref(), when, "{words}");
        check("x · resets 5:20pm", Some("5:20pm"));
        check("will reset at 4pm (Asia/Seoul)", Some("4pm (Asia/Seoul)"));
        check("limit · resets Dec 3, 6:41pm (UTC)", Some("Dec 3, 6:41pm (UTC)"));
        check("limit reached", None);
    }
}
