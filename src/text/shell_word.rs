//! A text as one word of a shell command, for commands that a person is told to type. Runs nothing.

use std::path::Path;

/// `text` as a shell takes it for one word; quoted only where it must be.
pub fn shell_word(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:@".contains(&byte));
    if is_plain && !text.is_empty() { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A path of a file as a word that no command takes for a flag.
pub fn shell_path(path: &Path) -> String {
    let text = path.display().to_string();
    if text.starts_with('-') { shell_word(&format!("./{text}")) } else { shell_word(&text) }
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

    #[test]
    fn a_path_is_never_a_flag() {
        for (path, word) in
            [("-d/g.yaml", "./-d/g.yaml"), ("-a b", "'./-a b'"), ("d/-g", "d/-g"), ("/-x", "/-x")]
        {
            assert_eq!(shell_path(Path::new(path)), word);
        }
    }
}
