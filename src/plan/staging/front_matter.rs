//! The head of an agent's or a skill's file, between its two lines of dashes (FACTS 8.6).
//!
//! Only what staging asks for is read; whatever else the CLI makes of a head is its own affair. A file whose head cannot
//! be read is no agent and no skill.

use crate::load::yaml::{self, Limits, Node};

/// How much of a head is read; nobody's needs more.
const LIMITS: Limits = Limits { depth: 32, nodes: 10_000, bytes: 1 << 20 };

/// Keys of a skill with which claude, as measured (2.1.197 and 2.1.332), lets a model use it only when a person agrees, or
/// never.
const RESERVES: [&str; 3] = ["disable-model-invocation", "allowed-tools", "hooks"];

/// A head that could be read, and what follows it.
#[derive(Debug, PartialEq)]
pub(super) struct FrontMatter<'f> {
    /// `name:`, without white space.
    pub(super) name: String,
    /// `description:`, perhaps empty.
    pub(super) description: String,
    /// `tools:`, a list or words between commas.
    pub(super) tools: Vec<String>,
    /// The first key by which it keeps itself from being used unasked.
    pub(super) reserve: Option<&'static str>,
    /// What follows the head.
    pub(super) body: &'f [u8],
}

/// Why a head cannot be used, in words that follow "its front matter".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not begin with a line of dashes, or never ends.
    Missing,
    /// It is not UTF-8, not YAML, or a value has the wrong type.
    Unreadable,
    /// No name, or one with white space in it.
    Name,
}

impl Fault {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Fault::Missing => "does not stand between two lines of ---",
            Fault::Unreadable => "is not YAML that can be read",
            Fault::Name => "has no name, or one with white space in it",
        }
    }
}

/// Reads the head of `file`.
pub(super) fn read(file: &[u8]) -> Result<FrontMatter<'_>, Fault> {
    let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let rest = text.strip_prefix(b"---\n").or_else(|| text.strip_prefix(b"---\r\n")).ok_or(Fault::Missing)?;
    let end = memchr::memmem::find(rest, b"\n---").ok_or(Fault::Missing)?;
    let (head, body) = (&rest[..end], &rest[end + b"\n---".len()..]);
    let head = std::str::from_utf8(head).map_err(|_| Fault::Unreadable)?;
    let tree = yaml::parse(head, LIMITS).map_err(|_| Fault::Unreadable)?;
    if !tree.problems.is_empty() || tree.root.entries().is_none() {
        return Err(Fault::Unreadable);
    }
    let text = |key| tree.root.get(key).map_or(Ok(String::new()), word);
    let (name, description) = (text("name")?, text("description")?);
    if name.is_empty() || name.contains([' ', '\t', '\r', '\n']) {
        return Err(Fault::Name);
    }
    let tools = tree.root.get("tools").map_or(Ok(Vec::new()), words)?;
    let is_set = |key: &&str| {
        tree.root.get(key).is_some_and(|value| !value.is_null() && value.text() != Some("false"))
    };
    let reserve = RESERVES.into_iter().find(is_set);
    Ok(FrontMatter { name, description, tools, reserve, body })
}

fn word(value: &Node<'_>) -> Result<String, Fault> {
    if value.is_null() {
        return Ok(String::new());
    }
    value.text().map(str::to_owned).ok_or(Fault::Unreadable)
}

fn words(value: &Node<'_>) -> Result<Vec<String>, Fault> {
    let found: Vec<String> = match value.items() {
        Some(items) => items.iter().map(word).collect::<Result<_, _>>()?,
        None => word(value)?.split(',').map(str::to_owned).collect(),
    };
    Ok(found.iter().map(|tool| tool.trim()).filter(|tool| !tool.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(file: &str) -> Result<String, Fault> {
        read(file.as_bytes()).map(|found| found.name)
    }

    #[test]
    fn a_head_stands_between_two_lines_of_dashes() {
        assert_eq!(named("---\nname: a\n---\nbody"), Ok("a".into()));
        assert_eq!(named("\u{feff}---\r\nname: a\r\n---\r\nbody"), Ok("a".into()));
        assert_eq!(named("---\nname: \"a\"\ncolour: [red]\n---"), Ok("a".into()));
        for file in ["", "name: a\n---\n", "\n---\nname: a\n---\n", "--- \nname: a\n---\n", "---\nname: a\n"]
        {
            assert_eq!(named(file), Err(Fault::Missing), "{file:?}");
        }
    }

    #[test]
    fn a_head_that_cannot_be_read_is_none() {
        for file in [
            "---\nname: a\nname: b\n---",
            "---\n- a\n---",
            "---\nname: [a]\n---",
            "---\nx: a: b\n---",
            "---\n\n---",
        ] {
            assert_eq!(named(file), Err(Fault::Unreadable), "{file:?}");
        }
        assert_eq!(read(b"---\nname: \xff\n---"), Err(Fault::Unreadable));
        for file in
            ["---\nname:\n---", "---\nmodel: x\n---", "---\nname: a b\n---", "---\nname: \"a\\tb\"\n---"]
        {
            assert_eq!(named(file), Err(Fault::Name), "{file:?}");
        }
    }

    #[test]
    fn tools_are_a_list_or_words_between_commas() {
        let tools = |written: &str| {
            read(format!("---\nname: a\n{written}\n---\n").as_bytes()).map(|found| found.tools.join("|"))
        };
        assert_eq!(tools("tools: Read, Bash(git *) ,, Grep"), Ok("Read|Bash(git *)|Grep".into()));
        assert_eq!(tools("tools: [Read, ' ', \"Bash(git *)\"]"), Ok("Read|Bash(git *)".into()));
        assert_eq!(tools("tools:"), Ok(String::new()));
        assert_eq!(tools("model: opus"), Ok(String::new()));
        assert_eq!(tools("tools: {Read: true}"), Err(Fault::Unreadable));
    }

    #[test]
    fn what_follows_may_be_any_bytes() {
        let found = read(b"---\nname: a\n---\n\xff\x00").expect("a head");
        assert_eq!(found.body, b"\n\xff\x00");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(
            head in prop::collection::vec(prop_oneof![
                any::<u8>().prop_map(|byte| vec![byte]),
                Just(b"---\n".to_vec()), Just(b"\n---".to_vec()), Just(b"name: a\n".to_vec()), Just(b"tools: [".to_vec()),
                Just(b"&a *a ".to_vec()), Just(b"\xef\xbb\xbf".to_vec()), Just(b"<<: ".to_vec()),
            ], 0..24),
        ) {
            let mut file = b"---\n".to_vec();
            file.extend(head.concat());
            for file in [&file[..], &file[4..]] {
                if let Ok(found) = read(file) {
                    prop_assert!(!found.name.is_empty() && !found.name.contains([' ', '\t', '\r', '\n']));
                }
            }
        }
    }
}
