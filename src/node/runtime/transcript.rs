//! Reading what the CLIs write about their own sessions: the running totals to subtract after a resume.
//!
//! claude 2.1.332 reports the cost of the whole session when it is resumed and writes `cost-state` lines into its
//! transcript; older versions do neither (CLI-PROTOCOL 2.5). codex reports a thread's whole usage (3.3).

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use crate::text::money::Money;
use crate::text::usage::Usage;

/// How much of the end of a transcript is read, first and at most: a reply or a tool's output may be long.
const TAIL_BYTES: [u64; 2] = [1 << 20, 1 << 26];
/// How deep rollouts lie below `sessions`: year, month, day.
const ROLLOUT_DEPTH: usize = 3;

/// The session's total cost as its transcript last states it; `None` when it states none.
pub fn claude_total(config: &Path, session: &str) -> Option<Money> {
    #[derive(Deserialize)]
    struct CostState {
        #[serde(rename = "totalCostUSD")]
        total: f64,
    }
    let file = format!("{session}.jsonl");
    let projects = fs::read_dir(config.join("projects")).ok()?;
    let transcripts = projects.flatten().map(|project| project.path().join(&file));
    // One that was gone on with elsewhere may lie in two projects.
    let transcript = transcripts.filter(|path| path.is_file()).max_by_key(|path| changed(path))?;
    last_line_with(&transcript, "\"cost-state\"", |line| {
        serde_json::from_str::<CostState>(line).ok().and_then(|state| Money::from_usd(state.total))
    })
}

/// The thread's total usage as its rollout last states it; `None` when it states none.
pub fn codex_total(home: &Path, thread: &str) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Line {
        payload: Payload,
    }
    #[derive(Deserialize)]
    struct Payload {
        thread_token_usage: Usage,
    }
    let rollout = find_rollout(&home.join("sessions"), thread, ROLLOUT_DEPTH)?;
    last_line_with(&rollout, "\"thread_token_usage\"", |line| {
        serde_json::from_str::<Line>(line).ok().map(|line| line.payload.thread_token_usage)
    })
}

fn find_rollout(dir: &Path, thread: &str, depth: usize) -> Option<PathBuf> {
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(&format!("-{thread}.jsonl")) {
            return Some(path);
        }
        if depth > 0
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(found) = find_rollout(&path, thread, depth - 1)
        {
            return Some(found);
        }
    }
    None
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

fn last_line_with<T>(path: &Path, mark: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    TAIL_BYTES.into_iter().find_map(|most| {
        let text = tail(path, most)?;
        text.lines().rev().filter(|line| line.contains(mark)).find_map(&read)
    })
}

fn tail(path: &Path, most: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most))).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stated_total_counts() {
        let config = tempfile::tempdir().expect("a directory");
        let project = config.path().join("projects/-srv-w");
        fs::create_dir_all(&project).expect("a project");
        let lines = concat!(
            r#"{"type":"cost-state","totalCostUSD":0.21}"#,
            "\n",
            r#"{"type":"user","message":{"content":"a \"cost-state\" of nothing"}}"#,
            "\n",
            r#"{"type":"cost-state","totalCostUSD":0.42}"#,
            "\n",
            r#"{"type":"user","message":{"content":"\"cost-state\""}}"#,
            "\n",
        );
        fs::write(project.join("abc.jsonl"), lines).expect("a transcript");
        assert_eq!(claude_total(config.path(), "abc"), Money::from_usd(0.42));
        assert_eq!(claude_total(config.path(), "other"), None);
    }

    #[test]
    fn a_total_is_found_behind_a_long_line() {
        let config = tempfile::tempdir().expect("a directory");
        let project = config.path().join("projects/-srv-w");
        fs::create_dir_all(&project).expect("a project");
        let long = "x".repeat(1 << 21);
        let lines = format!(
            "{{\"type\":\"cost-state\",\"totalCostUSD\":0.21}}\n{{\"type\":\"user\",\"text\":\"{long}\"}}\n"
        );
        fs::write(project.join("abc.jsonl"), lines).expect("a transcript");
        assert_eq!(claude_total(config.path(), "abc"), Money::from_usd(0.21));
    }

    #[test]
    fn a_rollout_is_found_by_its_thread() {
        let home = tempfile::tempdir().expect("a directory");
        let day = home.path().join("sessions/2026/11/30");
        fs::create_dir_all(&day).expect("a day");
        let line = r#"{"type":"token_usage_record","payload":{"thread_token_usage":{"input_tokens":300,"output_tokens":60}}}"#;
        fs::write(day.join("rollout-2026-11-30T10-00-00-t1.jsonl"), line).expect("a rollout");
        let usage = Usage { input_tokens: 300, output_tokens: 60, ..Usage::default() };
        assert_eq!(codex_total(home.path(), "t1"), Some(usage));
    }
}
