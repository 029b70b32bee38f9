//! Keeping a bounded part of a text of any length: its beginning, its end, and how much is missing (FACTS 6.6).
//!
//! Pure; knows no file.

use std::borrow::Cow;

/// The most bytes that a kept reply, prompt or output takes, the announcement of the cut included.
pub const KEPT_BYTES_MAX: usize = 256 * 1024;

/// `text` itself when it fits into `bytes_max`, else its head and tail around a line that says how much was
/// dropped. Never cuts a character in two and never exceeds `bytes_max` (which must leave room for that line).
pub fn excerpt(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let half = bytes_max.saturating_sub(cut_marker(text.len() as u64).len()) / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let dropped = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}{}{tail}", cut_marker(dropped as u64)))
}

/// Room for [`cut_marker`].
pub const CUT_BYTES: usize = 64;

/// The line that stands where `dropped` bytes are missing.
pub fn cut_marker(dropped: u64) -> String {
    format!("\n[... {dropped} bytes dropped here ...]\n")
}

/// Whether `kept` is what [`excerpt`] left of a text longer than [`KEPT_BYTES_MAX`]: nearly that long, with the
/// announcement in its middle.
pub fn is_cut(kept: &str) -> bool {
    if kept.len() + CUT_BYTES <= KEPT_BYTES_MAX {
        return false;
    }
    let middle = kept.len() / 2;
    let around = kept.floor_char_boundary(middle - CUT_BYTES)..kept.ceil_char_boundary(middle + CUT_BYTES);
    kept[around].contains(" bytes dropped here ...]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bytes_max: usize) {
        let kept = excerpt(text, bytes_max);
        assert!(kept.len() <= bytes_max);
        let (head, rest) = kept.split_once("\n[... ").expect("the cut is announced");
        let (dropped, rest) = rest.split_once(' ').expect("a number");
        let tail = rest.strip_prefix("bytes dropped here ...]\n").expect("the announcement ends");
        let dropped: usize = dropped.parse().expect("a number");
        assert_eq!(head.len() + dropped + tail.len(), text.len());
        assert!(text.starts_with(head) && text.ends_with(tail));
        assert!(head.len() + tail.len() + 60 >= bytes_max, "no more is dropped than need be");
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let text = "x".repeat(KEPT_BYTES_MAX);
        assert_eq!(excerpt(&text, KEPT_BYTES_MAX), text);
        assert!(!is_cut(&text) && !is_cut(&excerpt(&"x".repeat(200), 100)));
    }

    #[test]
    fn a_cut_is_exact_and_between_characters() {
        check(&"x".repeat(KEPT_BYTES_MAX + 1), KEPT_BYTES_MAX);
        for text in ["x", "🦀"] {
            for more in [1, 100, 9_000_000] {
                let whole = text.repeat(KEPT_BYTES_MAX / text.len() + more);
                assert!(is_cut(&excerpt(&whole, KEPT_BYTES_MAX)), "{text} and {more} more");
            }
        }
        for width in 100..110 {
            check(&"héllo→🦀".repeat(50), width);
        }
    }
}
