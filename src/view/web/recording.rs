//! What the server would answer about one run, all of it at once: for a page that is read without a server.
//!
//! An answer is found by the route and the values of its parameters, parted by spaces, as `ui/source_export.js` asks. What
//! would make the file too big to open is cut, and that is told.

use std::collections::BTreeMap;

use serde::Serialize;

use super::feeds;
use super::http::{Answer, Whole};
use super::run_api::{OneRun, Shape};
use super::transcript::Projects;
use crate::graph::NodeId;
use crate::record::attempts;
use crate::record::stream::{Follow, StreamError, Word};
use crate::record::{Home, RunDir, RunId};
use crate::view::history::Prober;

/// As much of one text as the page shows, in bytes.
const TEXT_BYTES_MAX: usize = 200_000;
/// As much of all texts together, and of the feed.
const ALL_BYTES_MAX: usize = 24 * 1024 * 1024;

/// Everything that the page of one run asks for.
#[derive(Debug, Default, Serialize)]
pub(in crate::view) struct Recording {
    answers: BTreeMap<String, Text>,
    status: String,
    feed: Vec<String>,
    warnings: Vec<String>,
}

/// What was answered, and how long the whole of it is.
#[derive(Debug, Serialize)]
struct Text {
    text: String,
    bytes: u64,
}

impl Recording {
    /// Records the run `id` of `home`, whose graph is `shape`.
    ///
    /// # Errors
    /// When its feed cannot be read.
    pub(in crate::view) fn of(
        id: &RunId,
        home: &Home,
        probe: Prober,
        shape: &Shape,
    ) -> Result<Self, StreamError> {
        let projects = Projects::default();
        let dir = home.run(id);
        let run = OneRun { id, dir: dir.clone(), probe, projects: &projects };
        let mut recorder = Recorder::default();
        recorder.feed(&dir)?;
        recorder.document("api/graph".to_owned(), run.graph());
        recorder.document("api/run".to_owned(), run.run());
        recorder.document("api/path".to_owned(), run.path());
        recorder.document("api/goal".to_owned(), run.goal(home));
        recorder.text("api/refused".to_owned(), run.refused());
        let nodes: Vec<NodeId> = shape.nodes.iter().filter_map(|node| NodeId::parse(&node.id)).collect();
        for node in &nodes {
            recorder.document(format!("api/attempts {node}"), run.attempts_of(node));
            recorder.text(format!("api/result {node}"), run.result_of(node));
            recorder.text(format!("api/failed {node}"), run.failed_of(node));
        }
        for node in &nodes {
            recorder.said(&dir, node);
        }
        Ok(recorder.finish(feeds::status(id, &dir, probe)))
    }
}

/// A recording in the making.
#[derive(Default)]
struct Recorder {
    made: Recording,
    bytes: usize,
    left_out: usize,
}

impl Recorder {
    fn feed(&mut self, dir: &RunDir) -> Result<(), StreamError> {
        let (mut bytes, mut newer, mut left_out) = (0, false, 0_usize);
        let feed = &mut self.made.feed;
        Follow::new(&dir.feed(), 0).poll(&mut |line| {
            let word = line.word();
            newer |= matches!(word, Word::Newer(..));
            let Some(text) = feeds::told(&line, &word) else { return };
            bytes += text.len();
            if bytes <= ALL_BYTES_MAX {
                feed.push(text.to_owned());
            } else {
                left_out += 1;
            }
        })?;
        if newer {
            let words = "a newer omg wrote this run; what it means may not be shown";
            self.made.warnings.push(words.to_owned());
        }
        if left_out > 0 {
            let words = format!("the last {left_out} lines of the feed had no room in this file");
            self.made.warnings.push(words);
        }
        Ok(())
    }

    /// Keeps an answer that must be whole.
    fn document(&mut self, key: String, answer: Answer) {
        if let Some((body, _)) = answered(answer) {
            self.made.answers.insert(key, Text { bytes: body.len() as u64, text: body });
        }
    }

    /// Keeps as much of an answer as there is room for.
    fn text(&mut self, key: String, answer: Answer) {
        let Some((text, bytes)) = answered(answer) else { return };
        let kept = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        if self.bytes + kept.len() > ALL_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.bytes += kept.len();
        self.made.answers.insert(key, Text { text: kept.to_owned(), bytes });
    }

    /// Keeps what the attempts of `node` were asked and said.
    fn said(&mut self, dir: &RunDir, node: &NodeId) {
        // What cannot be listed is not offered either.
        for attempt in attempts::list(dir, node).unwrap_or_default() {
            let attempts::AttemptId { leg, round, attempt: number } = attempt.id;
            for (said, path) in attempt.said {
                let Ok(text) = attempts::read(&path) else { continue };
                let key = format!("api/said {node} {leg}-{round}-{number} {}", said.as_str());
                self.text(key, Answer::of(200, "text/plain", text));
            }
        }
    }

    fn finish(mut self, status: String) -> Recording {
        if self.left_out > 0 {
            let words =
                format!("{} texts had no room in this file; omg show RUN NODE has them", self.left_out);
            self.made.warnings.push(words);
        }
        Recording { status, ..self.made }
    }
}

/// The text of an answer and the length of the whole that it is of; nothing of a refusal.
fn answered(answer: Answer) -> Option<(String, u64)> {
    let Answer::Whole(Whole { status: 200, headers, body }) = answer else { return None };
    let length = headers.iter().find(|(name, _)| *name == "X-OMG-Bytes");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(body.len() as u64);
    Some((crate::text::lossy::lossy(body), length))
}
