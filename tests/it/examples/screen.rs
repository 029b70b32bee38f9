//! Whether what a command printed is what a page shows. Ids, times, dates and widths are not compared; a line `…` of the
//! page stands for any number of lines.

use std::sync::LazyLock;

use regex::Regex;

/// A line of a page that stands for any lines.
const ANYTHING: &str = "…";

/// What is another each time, and the word that it is compared as.
static VARIES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"\d{8}-\d{6}\.\d{9}-\d+", "RUN"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+…?", "SESSION"),
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "DATE"),
        (r"\b(\d+(\.\d+)?(h|ms|m|s|µs))+\b", "TIME"),
        (r"\b[0-9a-f]{6,40}\b", "CODE"),
        (r"\bpid \d+", "pid N"),
        (r"-{5,}", "-----"),
        (r" {2,}", " "),
    ];
    patterns.map(|(pattern, word)| (Regex::new(pattern).unwrap(), word)).to_vec()
});

/// Whether the lines of `printed` are those of `shown`.
pub(super) fn is_as_shown(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (comparable(shown), comparable(printed));
    fits(&shown, &printed)
}

fn comparable(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let plain =
            |line: String, (pattern, word): &(Regex, &str)| pattern.replace_all(&line, *word).into_owned();
        VARIES.iter().fold(line.trim().to_owned(), plain)
    });
    lines.filter(|line| !line.is_empty()).collect()
}

fn fits(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == ANYTHING => {
            (0..=printed.len()).any(|skip| fits(rest, &printed[skip..]))
        }
        Some((line, rest)) => printed.first() == Some(line) && fits(rest, &printed[1..]),
    }
}

#[test]
fn a_screen_is_compared_without_what_varies() {
    let printed = "Run 20261130-131629.209920474-1 — 1 node(s)\n✓ log  PASS  18ms\n\nTOTAL: $0.02\n";
    for (shown, same) in [
        (printed, true),
        ("Run 20260101-000000.000000001-2 — 1 node(s)\n✓ log   PASS   1m2.5s\nTOTAL: $0.02\n", true),
        ("…\nTOTAL: $0.02\n", true),
        ("…\nTOTAL: $0.03\n", false),
        ("Run 20260101-000000.000000001-2 — 1 node(s)\n…\n", true),
        ("TOTAL: $0.02\n", false),
        ("", false),
    ] {
        assert_eq!(is_as_shown(shown, printed), same, "{shown}");
    }
}
