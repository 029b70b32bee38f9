//! The end of the transcript that claude keeps of a session: what a running node is doing now (FACTS 9.3).
//!
//! The one place outside a run's directory that is read. The file is named by the session in the run's own feed, never by
//! what a request says.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::record::stream::open_regular;

/// How much of the end is read, in bytes.
const TAIL_BYTES: u64 = 256 * 1024;
/// How many entries are told.
const ENTRIES_MAX: usize = 30;
/// How much of a text is told, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// Why there is no transcript with `runtime`; `None` when there is one.
pub(super) fn note(runtime: &str) -> Option<&'static str> {
    match runtime {
        "" | "claude" => None,
        "codex" => Some(
            "codex keeps no transcript that can be followed; what a node said is shown when it has settled",
        ),
        _ => Some("a rehearsal has no transcript"),
    }
}

/// Where claude keeps its transcripts, if anybody knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Projects(pub(super) Option<PathBuf>);

/// One thing that was said or done.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Entry {
    /// Words.
    Text {
        /// As many of them as are shown.
        text: String,
    },
    /// A tool was used.
    ToolUse {
        /// Its name.
        name: String,
    },
}

impl Projects {
    /// The last entries of `session`; `None` when it has no transcript.
    pub(super) fn tail(&self, session: &str) -> io::Result<Option<Vec<Entry>>> {
        if !is_session(session) {
            return Ok(None);
        }
        let Some(projects) = &self.0 else { return Ok(None) };
        let Ok(folders) = fs::read_dir(projects) else { return Ok(None) };
        let name = format!("{session}.jsonl");
        let found = folders.flatten().map(|folder| folder.path().join(&name)).find(|path| path.is_file());
        found.map(|path| read_tail(&path)).transpose()
    }
}

fn is_session(text: &str) -> bool {
    let is = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is)
}

fn read_tail(path: &Path) -> io::Result<Vec<Entry>> {
    let Some(mut file) = open_regular(path)? else { return Ok(Vec::new()) };
    let skipped = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line is most likely the end of one.
    let lines = text.lines().skip(usize::from(skipped > 0));
    let entries: Vec<Entry> = lines.flat_map(entries).collect();
    let left_out = entries.len().saturating_sub(ENTRIES_MAX);
    Ok(entries.into_iter().skip(left_out).collect())
}

fn entries(line: &str) -> Vec<Entry> {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    if line["type"] != "assistant" {
        return Vec::new();
    }
    let items = line["message"]["content"].as_array();
    items.into_iter().flatten().filter_map(entry).collect()
}

fn entry(item: &Value) -> Option<Entry> {
    match item["type"].as_str()? {
        "text" => Some(Entry::Text { text: beginning(item["text"].as_str()?) }),
        "tool_use" => Some(Entry::ToolUse { name: item["name"].as_str()?.to_owned() }),
        _ => None,
    }
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0a1B2c3d-0000-4000-8000-00000000000f";

    #[test]
    fn only_what_has_the_shape_of_a_session_names_a_file() {
        assert!(is_session(SESSION));
        for text in
            ["", "x", &SESSION[1..], &SESSION.replace('-', "0"), "../../../../../../../../../etc/passwdx"]
        {
            assert!(!is_session(text), "{text}");
        }
    }

    #[test]
    fn the_last_words_and_tools_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("-work");
        fs::create_dir(&project).expect("a folder");
        let long = "é".repeat(TEXT_CHARS_MAX + 1);
        let lines = format!(
            "{}\nnot json\n{}\n{}\n",
            r#"{"type":"user","message":{"content":[{"type":"text","text":"asked"}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"},{"type":"thinking"}]}}"#,
            serde_json::json!({"type":"assistant","message":{"content":[{"type":"text","text":long}]}}),
        );
        fs::write(project.join(format!("{SESSION}.jsonl")), lines).expect("written");
        let entries =
            Projects(Some(folder.path().to_path_buf())).tail(SESSION).expect("read").expect("found");
        let cut = format!("{}…", "é".repeat(TEXT_CHARS_MAX));
        assert_eq!(entries, [Entry::ToolUse { name: "Bash".into() }, Entry::Text { text: cut }]);
        assert_eq!(Projects(None).tail(SESSION).expect("nothing to read"), None);
    }
}
