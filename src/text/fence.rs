//! Quoting model text inside a prompt: a nonce for the markers, and cuts that stay inside a byte bound (FACTS 7.7).
//!
//! Every cut falls between characters. Knows nothing of why something is quoted.

use crate::text::hex;

/// What stands where an [`excerpt`] left out its middle.
pub const MIDDLE_CUT: &str = "\n\n[… the middle is left out …]\n\n";
/// What stands where [`truncate`] cut.
pub const END_CUT: &str = "\n[… cut here]";

/// Six lower-case hex digits that the quoted text cannot have foreseen.
pub fn nonce() -> Result<String, getrandom::Error> {
    hex::random::<3>()
}

/// `text` whole when it fits into `bytes_max`, else its head and its tail around [`MIDDLE_CUT`].
pub fn excerpt(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    if bytes_max <= MIDDLE_CUT.len() {
        return truncate(text, bytes_max);
    }
    let room = bytes_max - MIDDLE_CUT.len();
    let head = &text[..text.floor_char_boundary(room / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - (room - room / 2))..];
    format!("{head}{MIDDLE_CUT}{tail}")
}

/// `text` whole when it fits into `bytes_max`, else its head and [`END_CUT`], or its bare head where not even the
/// marker fits.
pub fn truncate(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    match bytes_max.checked_sub(END_CUT.len()) {
        Some(room) => format!("{}{END_CUT}", &text[..text.floor_char_boundary(room)]),
        None => text[..text.floor_char_boundary(bytes_max)].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_six_hex_digits_and_differs() {
        let nonces: Vec<String> = (0..8).map(|_| nonce().unwrap_or_default()).collect();
        assert!(
            nonces.iter().all(|n| n.len() == 6 && n.bytes().all(|b| b.is_ascii_hexdigit())),
            "{nonces:?}"
        );
        assert!(nonces.iter().any(|n| n != &nonces[0]));
    }

    #[test]
    fn head_and_tail_survive_around_the_cut() {
        let text = format!("HEAD{}TAIL", "x".repeat(20_000));
        let cut = excerpt(&text, 8000);
        assert!(cut.len() <= 8000 && cut.starts_with("HEADx") && cut.ends_with("xTAIL"));
        assert_eq!(cut.matches(MIDDLE_CUT).count(), 1);
        assert_eq!(excerpt("short", 5), "short");
    }

    proptest::proptest! {
        #[test]
        fn no_cut_exceeds_its_bound(text in "[aé→😀]{0,60}", bytes_max in 0_usize..120) {
            proptest::prop_assert!(excerpt(&text, bytes_max).len() <= bytes_max);
            proptest::prop_assert!(truncate(&text, bytes_max).len() <= bytes_max);
        }
    }
}
