//! How a prompt reaches a CLI unharmed (DECISIONS 17, CLI-PROTOCOL 2.7 and 3.5).

use crate::node::invocation::End;
use crate::process::Stdin;

/// From this size on a prompt goes on standard input; one word of a command line holds at most 131,071 bytes.
pub const ARGV_BYTES_MAX: usize = 120 * 1000;

/// How an answer that was none is told when the prompt's `size` is more than `cli` is known to take: a CLI's own words
/// do not say what to do. The prompt is sent all the same, since a newer CLI may take more.
pub fn blame_size(end: End, cli: &str, size: usize, max: usize, unit: &str) -> End {
    let told = |words: String| {
        format!(
            "the prompt is too large: {size} {unit}, {cli} takes {max}; hand artifacts on as a path, not inline: {words}"
        )
    };
    match end {
        End::Unreadable(why) if size > max => End::Unreadable(told(why)),
        End::Reported { exit, cause } if size > max => End::Reported { exit, cause: told(cause) },
        other => other,
    }
}

/// A prompt on its way.
#[derive(Debug)]
pub struct Delivery {
    /// The word for the command line; `None` when the prompt goes on standard input.
    pub word: Option<String>,
    /// Standard input.
    pub stdin: Stdin,
}

/// Prepares `prompt`. A leading newline keeps a CLI from reading it as an option, a slash command or, when it is
/// one of `subcommands`, as that.
pub fn deliver(prompt: &str, subcommands: &[&str]) -> Delivery {
    let misread = prompt.starts_with(['-', '/']) || subcommands.contains(&prompt.trim());
    let text = if misread { format!("\n{prompt}") } else { prompt.to_owned() };
    if text.len() > ARGV_BYTES_MAX {
        Delivery { word: None, stdin: Stdin::Bytes(text.into_bytes()) }
    } else {
        Delivery { word: Some(text), stdin: Stdin::Null }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(prompt: &str) -> Option<String> {
        deliver(prompt, &["help", "review"]).word
    }

    #[test]
    fn what_a_cli_would_misread_gets_a_leading_newline() {
        for misread in ["- item", "--help", "/cost", "/tmp/x", "help", " review\n"] {
            assert_eq!(word(misread), Some(format!("\n{misread}")));
        }
        for plain in ["do it", "help me", "", "!ls"] {
            assert_eq!(word(plain).as_deref(), Some(plain));
        }
    }

    #[test]
    fn a_prompt_that_no_cli_takes_is_blamed_with_a_way_out() {
        let blamed = |end: End, size: usize| blame_size(end, "codex", size, 10, "characters");
        assert_eq!(blamed(End::Unreadable("no".into()), 10), End::Unreadable("no".into()));
        assert_eq!(blamed(End::TimedOut, 11), End::TimedOut);
        let End::Unreadable(why) = blamed(End::Unreadable("no output".into()), 11) else {
            panic!("an unreadable end")
        };
        assert!(why.starts_with("the prompt is too large: 11 characters, codex takes 10;"), "{why}");
        assert!(why.ends_with(": no output"), "{why}");
    }

    #[test]
    fn c16_a_large_prompt_goes_on_standard_input() {
        assert!(word(&"x".repeat(ARGV_BYTES_MAX)).is_some());
        let large = deliver(&"x".repeat(ARGV_BYTES_MAX + 1), &[]);
        assert!(large.word.is_none());
        assert!(matches!(large.stdin, Stdin::Bytes(bytes) if bytes.len() == ARGV_BYTES_MAX + 1));
    }
}
