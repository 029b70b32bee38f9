//! A text as a YAML scalar on one line, written as a person would: plain where that is safe, quoted where it is not.

/// `text` as a scalar.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().any(char::is_control) {
        // JSON's quotation is YAML's double one.
        serde_json::Value::from(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Whether YAML reads these characters as they stand, and as text.
fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let words = text.chars().all(|c| c.is_ascii_alphanumeric() || " ./_=+@-".contains(c));
    let reserved = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    begins && words && !text.ends_with(' ') && !reserved.contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_would_read_otherwise_is_quoted() {
        for (text, written) in [
            ("cargo test -q", "cargo test -q"),
            ("make local PORT=80", "make local PORT=80"),
            ("test -s a && echo 'b'", "'test -s a && echo ''b'''"),
            ("yes", "'yes'"),
            ("1.0", "'1.0'"),
            ("", "''"),
            ("a: b", "'a: b'"),
            ("a # b", "'a # b'"),
            ("a ", "'a '"),
            ("a\tb", r#""a\tb""#),
        ] {
            assert_eq!(scalar(text), written);
        }
    }
}
