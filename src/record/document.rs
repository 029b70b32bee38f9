//! `state.json` as pieces that were encoded once and are only copied from then on (FACTS 6.2).
//!
//! The bytes are those that `serde_json` would lay a [`Snapshot`] out to, two spaces a level, no newline at the end.
//! Which keys there are and in which order is the business of [`Snapshot`] alone; of its keys this file knows by
//! name only those that change while a leg runs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::record::event::Skipped;
use crate::record::indent::indent;
use crate::record::snapshot::GateState;
use crate::record::{Record, Snapshot};

/// A snapshot in encoded pieces, in the order of the file.
pub(crate) struct Document {
    /// `{` and every member before `nodes`, the graph among them.
    before_nodes: Box<[u8]>,
    /// One `"id": {…}` a node, by id.
    entries: BTreeMap<Box<str>, Box<[u8]>>,
    gate: Box<[u8]>,
    /// Every member between `gate` and `skipped`.
    after_gate: Box<[u8]>,
    skipped: Box<[u8]>,
}

impl Document {
    /// Encodes `snapshot`.
    pub(crate) fn new(mut snapshot: Snapshot) -> Result<Self, serde_json::Error> {
        let nodes = std::mem::take(&mut snapshot.nodes);
        let gate = std::mem::take(&mut snapshot.gate);
        let skipped = std::mem::take(&mut snapshot.skipped);
        let graph = std::mem::replace(&mut snapshot.graph, RawValue::from_string("null".to_owned())?);
        let Fixed { before_nodes, after_gate } = encode_fixed(&snapshot, &graph)?;
        let entries =
            nodes.iter().map(|(id, record)| (id.as_str().into(), Self::entry(id, record))).collect();
        let mut document =
            Document { before_nodes, entries, gate: Box::default(), after_gate, skipped: Box::default() };
        document.set_gate(&gate);
        document.set_skipped(&skipped);
        Ok(document)
    }

    /// Encodes the `record` of node `id` as a member of `nodes`.
    pub(crate) fn entry(id: &str, record: &Record) -> Box<[u8]> {
        member(id, &encode(record), 2).into()
    }

    /// Puts an encoded record in the place of node `id`.
    pub(crate) fn set_entry(&mut self, id: &str, entry: Box<[u8]>) {
        match self.entries.get_mut(id) {
            Some(place) => *place = entry,
            None => drop(self.entries.insert(id.into(), entry)),
        }
    }

    /// Replaces where the gates stand.
    pub(crate) fn set_gate(&mut self, gate: &GateState) {
        self.gate = member("gate", &encode(gate), 1).into();
    }

    /// Replaces which nodes never ran.
    pub(crate) fn set_skipped(&mut self, skipped: &[Skipped]) {
        self.skipped =
            if skipped.is_empty() { Box::default() } else { member("skipped", &encode(skipped), 1).into() };
    }

    /// Copies the document to `out`.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.before_nodes)?;
        let mut lead: &[u8] = b",\n  \"nodes\": {\n    ";
        for entry in self.entries.values() {
            out.write_all(lead)?;
            out.write_all(entry)?;
            lead = b",\n    ";
        }
        if !self.entries.is_empty() {
            out.write_all(b"\n  }")?;
        }
        for piece in [&self.gate, &self.after_gate, &self.skipped] {
            if !piece.is_empty() {
                out.write_all(b",\n  ")?;
                out.write_all(piece)?;
            }
        }
        out.write_all(b"\n}")
    }
}

/// The members that a leg never changes.
struct Fixed {
    before_nodes: Box<[u8]>,
    after_gate: Box<[u8]>,
}

fn encode_fixed(snapshot: &Snapshot, graph: &RawValue) -> Result<Fixed, serde_json::Error> {
    let Value::Object(members) = serde_json::to_value(snapshot)? else {
        unreachable!("a snapshot is an object")
    };
    let (mut before, mut after) = (b"{\n  ".to_vec(), Vec::new());
    let mut fixed = &mut before;
    let mut is_first = true;
    for (key, value) in &members {
        if key == "gate" {
            (fixed, is_first) = (&mut after, true);
            continue;
        }
        if !is_first {
            fixed.extend_from_slice(b",\n  ");
        }
        is_first = false;
        let json = if key == "graph" { graph.get() } else { &value.to_string() };
        fixed.extend(member(key, json, 1));
    }
    Ok(Fixed { before_nodes: before.into(), after_gate: after.into() })
}

/// `"key": value`, for a place `level` levels in.
fn member(key: &str, json: &str, level: usize) -> Vec<u8> {
    let mut out = Value::from(key).to_string().into_bytes();
    out.extend_from_slice(b": ");
    out.append(&mut indent(json, level));
    out
}

fn encode(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("the parts of a snapshot hold nothing that JSON cannot")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::graph::Cause;
    use crate::record::event::SkipWhy;
    use crate::record::{Provenance, Usage, Verdict};

    const GOLDEN: &str = r#"{
  "schema": 3,
  "run_id": "1-a",
  "runtime": "codex",
  "graph_source_path": "g.yaml",
  "graph_sha256": "00",
  "graph": {
    "name": "é\"{",
    "nodes": [
      {
        "id": "b"
      },
      {}
    ],
    "n": 1.50
  },
  "inputs": {
    "who": "a\nb"
  },
  "continue_on_fail": true,
  "default_permission_mode": "auto",
  "nodes": {
    "b": {
      "verdict": "PASS",
      "session_id": "s",
      "cost_usd": 0.01,
      "usage": {
        "output_tokens": 7
      },
      "duration": 234650880,
      "artifact_path": "/r/b.out",
      "provenance": "exit-only"
    }
  },
  "gate": {
    "decisions": {
      "g": "approve"
    }
  },
  "cwd": "/w"
}"#;

    fn full() -> Snapshot {
        let mut snapshot: Snapshot = serde_json::from_str(
            r#"{"schema":3,"run_id":"1-a","runtime":"codex","planning_cost_usd":0.25,"planning_usage":{"input_tokens":3},
                "graph_source_path":"g.yaml","graph_sha256":"00","graph":{"name":"é\"{","nodes":[{"id":"b"},{}],"n":1.50},
                "inputs":{"who":"a\nb"},"continue_on_fail":true,"default_permission_mode":"auto","cwd":"/w"}"#,
        )
        .unwrap();
        let usage = Usage { output_tokens: 7, ..Usage::default() };
        let passed = Record {
            verdict: Verdict::Pass,
            session_id: "s".into(),
            cost_usd: 0.01,
            usage,
            duration: 234_650_880,
            artifact_path: "/r/b.out".into(),
            provenance: Some(Provenance::ExitOnly),
            ..Record::default()
        };
        let failed =
            Record { verdict: Verdict::Fail, judged: true, cause: Some(Cause::Timeout), ..Record::default() };
        snapshot.nodes = [("b".into(), passed), ("a/c".into(), failed)].into();
        snapshot.gate.decisions = [("g".into(), "approve".into())].into();
        snapshot.skipped =
            vec![Skipped { node: "z".into(), because: "b".into(), why: SkipWhy::AncestorFailed }];
        snapshot
    }

    fn text(snapshot: Snapshot) -> String {
        let mut out = Vec::new();
        Document::new(snapshot).unwrap().write_to(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn it_is_what_serde_would_write() {
        for empty in 0..16_u8 {
            let mut snapshot = full();
            let is = |bit: u8| empty & bit != 0;
            if is(1) {
                snapshot.nodes.clear();
            }
            if is(2) {
                snapshot.gate = GateState::default();
            }
            if is(4) {
                snapshot.skipped.clear();
            }
            if is(8) {
                snapshot.cwd.clear();
            }
            let text = text(snapshot);
            let back: Snapshot = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string_pretty(&back).unwrap(), text);
            assert_eq!((back.nodes.is_empty(), back.skipped.is_empty()), (is(1), is(4)));
        }
    }

    #[test]
    fn its_bytes_are_these() {
        let mut snapshot = full();
        snapshot.skipped.clear();
        snapshot.nodes.remove("a/c");
        snapshot.planning_cost_usd = 0.0;
        snapshot.planning_usage = Usage::default();
        assert_eq!(text(snapshot), GOLDEN);
    }

    #[test]
    fn a_record_takes_the_place_of_an_earlier_one() {
        let mut document = Document::new(full()).unwrap();
        let record = Record { verdict: Verdict::Pass, round: 2, ..Record::default() };
        document.set_entry("a/c", Document::entry("a/c", &record));
        document.set_skipped(&[]);
        let mut out = Vec::new();
        document.write_to(&mut out).unwrap();
        let back: Snapshot = serde_json::from_slice(&out).unwrap();
        assert_eq!((back.nodes.len(), &back.nodes["a/c"], back.skipped.len()), (2, &record, 0));
    }
}
