//! A text as one word of a shell command, for commands that a person is told to type. Runs nothing.

/// `text` as a shell takes it for one word; quoted only where it must be.
pub fn shell_word(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:@".contains(&byte));
    if is_plain && !text.is_empty() { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_read_otherwise_is_quoted() {
        for (text, word) in [
            ("graphs/a-b_1.yaml", "graphs/a-b_1.yaml"),
            ("my graphs", "'my graphs'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
