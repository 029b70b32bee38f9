//! Bytes of children as text.

/// Reads bytes as UTF-8; what is not becomes U+FFFD (case B5). Valid bytes are not copied.
pub fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|raw| String::from_utf8_lossy(raw.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b5_what_is_not_utf8_is_replaced_and_the_rest_kept() {
        assert_eq!(lossy(b"a\xff\xfeb".to_vec()), "a\u{fffd}\u{fffd}b");
        assert_eq!(lossy("gr\u{fc}n".as_bytes().to_vec()), "gr\u{fc}n");
    }
}
