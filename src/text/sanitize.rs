//! Makes text of children and files harmless for a terminal and fit for one line (cases B6, B13).
//!
//! Control characters become visible pictures, never nothing: what a child tried to send can still be read. Raw
//! bytes belong to artifacts alone. Knows no colour and no width.

use std::borrow::Cow;
use std::path::Path;

/// How many characters of a detail are kept (FACTS 7.3).
pub const DETAIL_CHARS_MAX: usize = 240;
/// How many bytes of a child's standard error are kept in a cause (FACTS 5.2).
pub const STDERR_TAIL_BYTES: usize = 500;

/// `text` with every control character made visible, but for newlines and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    visible(text, |c| c == '\n' || c == '\t')
}

/// `text` on one line: runs of line breaks and tabs become one space, other control characters become visible.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    if !text.contains(['\n', '\r', '\t', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']) {
        return visible(text, |_| false);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split(is_line_break).map(str::trim).filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&visible(line, |_| false));
    }
    Cow::Owned(out)
}

/// Text that was drawn by a library which sees to the ASCII controls, its own colours among them, and to no others.
pub fn drawn(text: &str) -> Cow<'_, str> {
    visible(text, |c| c.is_ascii())
}

/// A path as it is shown: a name can hold anything.
pub fn path(path: &Path) -> String {
    visible(&path.to_string_lossy(), |_| false).into_owned()
}

/// A detail as recorded: one line, and only its last 240 characters behind an ellipsis when it is longer.
pub fn cap_detail(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().rev().nth(DETAIL_CHARS_MAX) {
        None => line.into_owned(),
        Some((at, first_cut)) => format!("…{}", &line[at + first_cut.len_utf8()..]),
    }
}

/// `lead` and `words` as a detail that [`cap_detail`] need not cut: where they are too long together, the middle of
/// the words is left out, since an error says first what happened and last what to do.
pub fn lead_detail(lead: &str, words: &str) -> String {
    let words = one_line(words);
    let room = DETAIL_CHARS_MAX.saturating_sub(lead.chars().count());
    let length = words.chars().count();
    if length <= room {
        return format!("{lead}{words}");
    }
    let kept = room.saturating_sub(" … ".chars().count());
    let head: String = words.chars().take(kept / 2).collect();
    let tail: String = words.chars().skip(length - (kept - kept / 2)).collect();
    format!("{lead}{} … {}", head.trim_end(), tail.trim_start())
}

/// The end of a child's standard error as part of a cause: at most 500 bytes, its lines joined by ` / `.
pub fn stderr_tail(stderr: &str) -> String {
    let text = stderr.trim();
    let start = text.ceil_char_boundary(text.len().saturating_sub(STDERR_TAIL_BYTES));
    let cut = if start > 0 { "…(truncated) " } else { "" };
    let lines: Vec<Cow<'_, str>> = text[start..]
        .split(is_line_break)
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| visible(line, |_| false))
        .collect();
    format!("{cut}{}", lines.join(" / "))
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What nearly every text is, told at a glance: printable ASCII on one line, shown as it stands.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn visible(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let harmless = |c: char| kept(c) || picture(c).is_none();
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match picture(c) {
            Some(shown) if !kept(c) => out.push(shown),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// What is shown in place of `c`, if it cannot be printed as it is.
fn picture(c: char) -> Option<char> {
    match c {
        // Unicode has a picture for each of the C0 controls, in their order.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        // C1 controls (a terminal may read U+009B as ESC [), line separators, and what reorders or hides text.
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => Some('\u{fffd}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b6_nothing_reaches_the_terminal_as_a_command() {
        let hostile = "\u{1b}]0;pwn\u{7}\u{1b}[31mred\rover\u{9b}2J\u{202e}x";
        assert_eq!(lines(hostile), "␛]0;pwn␇␛[31mred␍over\u{fffd}2J\u{fffd}x");
        assert_eq!(one_line(hostile), "␛]0;pwn␇␛[31mred over\u{fffd}2J\u{fffd}x");
        assert_eq!(lines("a\n\tb"), "a\n\tb");
        assert_eq!(one_line("  a\n\n\tb \r\n c "), "a b c");
        assert!(matches!(lines("plain é → 😀"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_detail_keeps_its_end() {
        assert_eq!(cap_detail("short"), "short");
        assert_eq!(cap_detail(&"é".repeat(240)), "é".repeat(240));
        assert_eq!(cap_detail(&format!("a{}", "é".repeat(240))), format!("…{}", "é".repeat(240)));
    }

    #[test]
    fn a_led_detail_keeps_both_ends_and_fits() {
        assert_eq!(lead_detail("it said: ", "no\nthing"), "it said: no thing");
        let fitting = "é".repeat(DETAIL_CHARS_MAX - 3);
        assert_eq!(lead_detail("a: ", &fitting), format!("a: {fitting}"));
        let cut = lead_detail("a: ", &format!("first {} last", "é".repeat(DETAIL_CHARS_MAX)));
        assert!(cut.starts_with("a: first é") && cut.contains("é … é") && cut.ends_with("é last"), "{cut}");
        assert_eq!(cap_detail(&cut), cut);
    }

    #[test]
    fn the_tail_of_stderr_is_flat() {
        assert_eq!(stderr_tail(" one \n\n  two\r\nthree\n"), "one / two / three");
        let long = format!("{}\nlast", "é".repeat(400));
        let tail = stderr_tail(&long);
        assert!(tail.starts_with("…(truncated) é") && tail.ends_with("é / last"));
        assert!(tail.len() <= STDERR_TAIL_BYTES + "…(truncated) ".len() + 2);
        assert_eq!(stderr_tail(" \n "), "");
    }

    proptest::proptest! {
        #[test]
        fn what_was_made_visible_holds_no_control(text in "\\PC{0,20}|[\\x00-\\x9f]{0,20}") {
            let line = one_line(&text);
            proptest::prop_assert!(!line.chars().any(char::is_control));
            proptest::prop_assert!(!lines(&text).chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
