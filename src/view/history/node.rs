//! `show RUN NODE`: what a node was asked, what it said and what its check said, attempt by attempt
//! (DECISIONS 15 and 29).
//!
//! Reads what the attempts left behind; a run of an older version has only the last reply. Nothing is read through a
//! link, and no control character reaches the terminal. Writes to what it is handed.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;

use crate::graph::NodeId;
use crate::record::assessment::Assessment;
use crate::record::attempts::{self, AttemptId, Caller, Said};
use crate::record::{Record, RunDir};
use crate::text::sanitize;
use crate::text::{duration, suggest};
use crate::view::history::run_json;
use crate::view::history::show::Shown;
use crate::view::term::style::{self, Look};
use crate::view::term::words;

/// The most of one file that is shown, in bytes. Kept texts are bounded well below; an artifact is not.
const SHOWN_BYTES_MAX: u64 = 1 << 20;

/// Why a node could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The run has no such node.
    #[error("run {run} has no node {node:?}{}", near.as_ref().map_or_else(String::new, |near| format!("; did you mean {near:?}?")))]
    Unknown {
        /// The run.
        run: String,
        /// What was typed.
        node: String,
        /// The nearest that it has.
        near: Option<String>,
    },
    /// The output is gone.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// What one attempt left behind.
#[derive(Debug, Default, Serialize)]
struct Attempt {
    leg: u32,
    round: u32,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<String>,
}

/// Shows `node` of the run that was read as `shown` from `dir`.
pub fn show(
    shown: &Shown,
    dir: &RunDir,
    node: &str,
    look: Look,
    out: &mut dyn Write,
) -> Result<(), NodeError> {
    let Found { id, record, caller } = find(shown, dir, node)?;
    let title = match caller {
        Some(caller) => title_of_calls(shown, caller),
        None => title(shown, &id, record, look),
    };
    writeln!(out, "{title}")?;
    let attempts = attempts(dir, &id);
    for attempt in &attempts {
        let round = if attempt.round > 0 { format!(", round {}", attempt.round) } else { String::new() };
        let heading = match caller {
            Some(_) => format!("call {}", attempt.attempt),
            None => format!("attempt {} of leg {}{round}", attempt.attempt, attempt.leg),
        };
        writeln!(out, "\n{}", look.paint(style::BUSY, &heading))?;
        section(out, look, "prompt", attempt.prompt.as_deref())?;
        section(out, look, "reply", attempt.reply.as_deref())?;
        section(out, look, "standard error", attempt.stderr.as_deref())?;
        section(out, look, "check output", attempt.verify.as_deref())?;
    }
    // What a command printed, and all replies of an older version, lie in the artifact alone.
    if attempts.last().is_none_or(|last| last.reply.is_none()) {
        let (reply, failed) = (text(&dir.artifact(&id)), text(&dir.failed(&id)));
        if attempts.is_empty() && reply.is_none() && failed.is_none() {
            writeln!(out, "\nnothing that it was asked or said is kept")?;
        }
        section(out, look, "reply", reply.as_deref().filter(|reply| !reply.is_empty()))?;
        section(out, look, "failed reply", failed.as_deref())?;
    }
    Ok(())
}

/// The same as one JSON document.
pub fn json(shown: &Shown, dir: &RunDir, node: &str) -> Result<String, NodeError> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        run_id: &'a str,
        node_id: &'a str,
        record: Option<&'a Record>,
        attempts: Vec<Attempt>,
        #[serde(skip_serializing_if = "Option::is_none")]
        artifact: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    }
    let Found { id, record, .. } = find(shown, dir, node)?;
    Ok(run_json::print(&Document {
        schema: run_json::SCHEMA,
        run_id: shown.run.id.as_str(),
        node_id: id.as_str(),
        record,
        attempts: attempts(dir, &id),
        artifact: text(&dir.artifact(&id)),
        failed: text(&dir.failed(&id)),
    }))
}

/// What `node` said when it was last tried, each text with what it is; nothing of what is not kept.
pub(crate) fn last_words(dir: &RunDir, node: &str) -> Vec<(&'static str, String)> {
    let Some(id) = NodeId::parse(node) else { return Vec::new() };
    let last = attempts(dir, &id).pop().unwrap_or_default();
    // What a command printed is no attempt's reply.
    let reply = last.reply.or_else(|| text(&dir.failed(&id)));
    let all = [("reply", reply), ("standard error", last.stderr), ("check output", last.verify)];
    let said = all.into_iter().filter_map(|(what, text)| Some((what, text?)));
    said.filter(|(_, text)| !text.trim().is_empty()).collect()
}

/// What `node` produced, bounded.
pub(crate) fn produced(dir: &RunDir, node: &str) -> Option<String> {
    text(&dir.artifact(&NodeId::parse(node)?))
}

/// Who is shown.
struct Found<'a> {
    id: NodeId,
    record: Option<&'a Record>,
    /// Who it is, where it is no node.
    caller: Option<Caller>,
}

/// The node that `text` names, if anything in the run speaks of it; else the planner or the judge of that name, if it was
/// asked.
fn find<'a>(shown: &'a Shown, dir: &RunDir, text: &str) -> Result<Found<'a>, NodeError> {
    let id = NodeId::parse(text);
    let record = shown.rows.get(text).map(|row| &row.record);
    let skipped = shown.skipped.iter().any(|skipped| skipped.node == text);
    if let Some(id) = id
        && (record.is_some() || skipped || is_kept(dir, &id))
    {
        return Ok(Found { id, record, caller: None });
    }
    match Caller::parse(text).map(|caller| (caller, caller.id())) {
        Some((caller, id)) if is_kept(dir, &id) => Ok(Found { id, record: None, caller: Some(caller) }),
        _ => Err(NodeError::Unknown {
            run: shown.run.id.to_string(),
            node: sanitize::one_line(text).into_owned(),
            near: nearest(shown, text),
        }),
    }
}

fn is_kept(dir: &RunDir, id: &NodeId) -> bool {
    [dir.attempts(id), dir.artifact(id), dir.failed(id)].iter().any(|path| path.symlink_metadata().is_ok())
}

fn nearest(shown: &Shown, text: &str) -> Option<String> {
    let nodes = shown.rows.keys().chain(shown.skipped.iter().map(|skipped| &skipped.node));
    suggest::nearest(text, nodes.map(String::as_str)).map(str::to_owned)
}

fn title(shown: &Shown, id: &NodeId, record: Option<&Record>, look: Look) -> String {
    let run = &shown.run;
    let Some(record) = record.filter(|record| record.is_settled()) else {
        let skipped = shown.skipped.iter().find(|skipped| skipped.node == id.as_str());
        let state = skipped.map_or_else(
            || "not settled".to_owned(),
            |skipped| format!("{}\n{}", look.paint(style::FAINT, "SKIPPED"), words::because(skipped)),
        );
        return format!("Node {id} of run {} — {state}", run.id);
    };
    let colour = if record.verdict == crate::record::Verdict::Pass { style::GOOD } else { style::BAD };
    let verdict = look.paint(colour, &words::verdict(record, run.is_rehearsal()));
    let detail = words::detail(record);
    let detail = if detail.is_empty() { detail } else { format!("\n{detail}") };
    let session = words::or_dash(&record.session_id);
    format!(
        "Node {id} of run {} — {verdict}\ncost {}, {}, session {session}{detail}",
        run.id,
        record.cost(),
        duration::format(record.took())
    )
}

fn title_of_calls(shown: &Shown, caller: Caller) -> String {
    let cost = match caller {
        Caller::Planner => Some(shown.run.planning()),
        Caller::Assessor => shown.goal.as_ref().and_then(|goal| goal.verdict.as_ref()).map(Assessment::cost),
    };
    // What no verdict came of is told by the goal's summary alone.
    let cost = cost.map(|cost| format!("\ncost {cost}")).unwrap_or_default();
    let (first, rest) = caller.title().split_at(1);
    format!("{}{rest} of run {}{cost}", first.to_uppercase(), shown.run.id)
}

fn section(out: &mut dyn Write, look: Look, name: &str, text: Option<&str>) -> io::Result<()> {
    let Some(text) = text else { return Ok(()) };
    writeln!(out, "{}", look.paint(style::FAINT, &format!("--- {name}")))?;
    // A line that ends in CR LF is an ordinary line.
    let text = text.replace("\r\n", "\n");
    write!(out, "{}", sanitize::lines(&text))?;
    if text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

/// What the attempts of `node` left, in the order in which they ran. What cannot be read is as good as not kept.
fn attempts(dir: &RunDir, node: &NodeId) -> Vec<Attempt> {
    attempts::list(dir, node).unwrap_or_default().iter().map(Attempt::read).collect()
}

impl Attempt {
    fn read(kept: &attempts::Attempt) -> Attempt {
        let AttemptId { leg, round, attempt } = kept.id;
        let mut read = Attempt { leg, round, attempt, ..Attempt::default() };
        for (said, path) in &kept.said {
            let text = attempts::read(path).ok();
            match said {
                Said::Prompt => read.prompt = text,
                Said::Reply => read.reply = text,
                Said::Stderr => read.stderr = text,
                Said::Verify => read.verify = text,
            }
        }
        read
    }
}

/// The text of a regular file, bounded; `None` for anything else, a link included.
fn text(path: &Path) -> Option<String> {
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    file.take(SHOWN_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(match size.saturating_sub(SHOWN_BYTES_MAX) {
        0 => text.into_owned(),
        more => format!("{text}\n… {more} more bytes in {}\n", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunId;
    use crate::view::history::fixture::{House, free, passed, state};

    const ID: &str = "20260102-030405.000000001-1";

    fn run(files: &[(&str, &str)]) -> (House, RunDir, Shown) {
        let house = House::new();
        let feed = r#"{"event":"run_started"}
            {"event":"run_finished","outcome":"passed"}"#;
        let dir = house.run(ID, feed, Some(&state(&passed("lane/a"))));
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        let shown = Shown::read(RunId::parse(ID).expect("an id"), &dir, free).expect("read");
        (house, dir, shown)
    }

    fn print(files: &[(&str, &str)]) -> String {
        let (_house, dir, shown) = run(files);
        let mut out = Vec::new();
        show(&shown, &dir, "lane/a", Look::default(), &mut out).expect("shown");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn b11_every_attempt_can_be_read_back() {
        let text = print(&[
            ("attempts/lane~a/1-0-2.prompt", "do it\n\nlast time it failed"),
            ("attempts/lane~a/1-0-2.reply", "PASS\r\n"),
            ("attempts/lane~a/1-0-1.prompt", "do it"),
            ("attempts/lane~a/1-0-1.reply", "\u{1b}[31mno"),
            ("attempts/lane~a/1-0-1.verify", "exit 1: 2 tests failed\n"),
            ("attempts/lane~a/2-1-10.prompt", "again"),
            ("attempts/lane~a/1-0-1.reply.tmp-7", "half"),
            ("attempts/lane~a/notes", "x"),
        ]);
        insta::assert_snapshot!(text, @"
        Node lane/a of run 20260102-030405.000000001-1 — PASS (exit-only)
        cost $0.0100, 235ms, session s-lane/a

        attempt 1 of leg 1
        --- prompt
        do it
        --- reply
        ␛[31mno
        --- check output
        exit 1: 2 tests failed

        attempt 2 of leg 1
        --- prompt
        do it

        last time it failed
        --- reply
        PASS

        attempt 10 of leg 2, round 1
        --- prompt
        again
        ");
    }

    #[test]
    fn a_run_without_kept_attempts_shows_its_last_words() {
        let text = print(&[("lane~a.out", "PASS"), ("failed/lane~a.out", "no")]);
        assert!(text.contains("--- reply\nPASS\n--- failed reply\nno\n"), "{text}");
        assert!(print(&[]).contains("nothing that it was asked or said is kept"));
    }

    #[test]
    fn d12_a_planted_link_is_not_followed() {
        let (_house, dir, shown) = run(&[("secret", "hunter2")]);
        std::os::unix::fs::symlink(dir.path().join("secret"), dir.path().join("lane~a.out")).expect("a link");
        assert!(!json(&shown, &dir, "lane/a").expect("shown").contains("hunter2"));
    }

    #[test]
    fn an_unknown_node_is_answered_with_the_nearest() {
        let (_house, dir, shown) = run(&[]);
        for (typed, says) in
            [("lane/b", "did you mean \"lane/a\"?"), ("../x", "no node"), ("zzzzzz", "no node")]
        {
            let error = json(&shown, &dir, typed).expect_err(typed).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
