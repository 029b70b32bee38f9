//! Files that a prompt names after an `@`: claude reads them and attaches what they say, whatever tools a node has and
//! whatever its rules allow (measured with 2.1.197 and 2.1.332; CLI-PROTOCOL 2.7). Where a ceiling lists the tools that
//! exist, that would be one more, so the `@` goes and the name stays. Looks at names only, and never into a file.

use std::borrow::Cow;
use std::path::Path;

/// No path of more bytes can be opened (`PATH_MAX`).
const NAME_BYTES_MAX: usize = 4096;

/// `prompt` without the `@` of each mention that claude, started in `cwd`, would find something at.
pub(super) fn detached<'p>(prompt: &'p str, cwd: &Path) -> Cow<'p, str> {
    let mut told = String::new();
    let (mut kept, mut before) = (0, None);
    for (at, c) in prompt.char_indices() {
        if c == '@' && may_follow(before) && leads_somewhere(&prompt[at + 1..], cwd) {
            told.push_str(&prompt[kept..at]);
            kept = at + 1;
        }
        before = Some(c);
    }
    if kept == 0 {
        return Cow::Borrowed(prompt);
    }
    told.push_str(&prompt[kept..]);
    told.into()
}

/// A mention begins at the start, after white space and after the punctuation of scripts that put no space there.
fn may_follow(before: Option<char>) -> bool {
    before.is_none_or(|c| c.is_whitespace() || !(c.is_ascii() || c.is_alphanumeric()))
}

fn leads_somewhere(rest: &str, cwd: &Path) -> bool {
    let rest = &rest[..rest.floor_char_boundary(NAME_BYTES_MAX)];
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => rest.split(|c: char| c.is_whitespace() || c == '\u{feff}').next().unwrap_or_default(),
    };
    // Where its home is, claude knows better.
    if name == "~" || name.starts_with("~/") {
        return true;
    }
    // It takes a name to its last letter, of English or of any script, and as much of that as stands before a number
    // of lines.
    let letters = [char::is_alphanumeric, |c: char| c.is_ascii_alphanumeric()];
    let ends = letters.map(|is_letter| name.trim_end_matches(|c: char| !(is_letter(c) || c == '_')));
    let is_there = |name: &str| !name.is_empty() && cwd.join(name).symlink_metadata().is_ok();
    [name, ends[0], ends[1]].into_iter().any(|name| {
        let lines = name.split_once('#').map_or(name, |(name, _)| name);
        is_there(name) || is_there(lines)
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sign_goes_where_something_is_and_stays_everywhere_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("src/ünï")).unwrap();
        std::fs::write(dir.path().join("src/a b.rs"), "").unwrap();
        std::fs::write(dir.path().join("notes.md"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        for (prompt, wanted) in [
            ("@notes.md", "notes.md"),
            ("read @notes.md, then\n@src/.", "read notes.md, then\nsrc/."),
            ("(see @notes.md#L1-3)", "(see notes.md#L1-3)"),
            ("@/etc/passwd and @/etc/passwd\u{feff}x", "/etc/passwd and /etc/passwd\u{feff}x"),
            ("@~/.ssh/id @~", "~/.ssh/id ~"),
            ("@\"src/a b.rs\" @\"src/a c.rs\"", "\"src/a b.rs\" @\"src/a c.rs\""),
            ("見て。@notes.md", "見て。notes.md"),
            ("@src/ünï @src/ünö @src/ü", "src/ünï @src/ünö src/ü"),
            ("@link @../ @.", "link ../ ."),
            ("me@notes.md '@notes.md' @@notes.md", "me@notes.md '@notes.md' @@notes.md"),
            ("@alice @types/node @ @\"\" @#notes.md", "@alice @types/node @ @\"\" @#notes.md"),
        ] {
            assert_eq!(detached(prompt, dir.path()), wanted, "{prompt}");
            assert_eq!(detached(wanted, dir.path()), wanted, "nothing new is named");
        }
    }

    proptest! {
        #[test]
        fn only_signs_go_and_none_that_leads_somewhere_is_left(prompt in r#"(@|"|notes\.md|/etc|~/|#| |\n|。|\u{feff}|x|\PC){0,20}"#) {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("notes.md"), "").unwrap();
            let told = detached(&prompt, dir.path());
            prop_assert_eq!(told.replace('@', ""), prompt.replace('@', ""));
            prop_assert_eq!(detached(&told, dir.path()), told.as_ref());
        }
    }
}
