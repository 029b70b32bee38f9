//! The timeline as a trace in Chrome's format, which Perfetto opens: a track for the legs, for every slot and for the gates, a
//! slice for every attempt, an arrow from a node to each that needed it, and what the run had cost by then.
//!
//! Times are microseconds since the run began.

use std::collections::HashMap;
use std::io::Write;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::timeline::{Attempt, Span, Timeline, lanes};
use super::{Export, ExportError};

/// The number of the one process.
const RUN: u32 = 1;
/// The track of the legs; that of a slot has the slot's number.
const LEGS: u32 = 0;
/// The tracks of gates come after this one.
const GATES: u32 = 100_000;

/// Where a slice is, for arrows to it.
#[derive(Clone, Copy)]
struct Slice {
    track: u32,
    at: i64,
    length: i64,
}

/// Writes the trace.
pub(super) fn write(export: &Export, out: &mut dyn Write) -> Result<(), ExportError> {
    let timeline = Timeline::read(export)?;
    let began = timeline.legs.first().map_or(export.at, |leg| leg.span.started);
    // What a runtime announced late may have begun before its leg was told.
    let began = timeline.attempts.iter().map(|attempt| attempt.span.started).fold(began, Timestamp::min);
    let mut trace = Trace { began, now: export.at, events: Vec::new(), slices: HashMap::new() };
    trace.legs(&timeline);
    trace.attempts(&timeline);
    trace.gates(&timeline);
    trace.arrows(export);
    trace.costs(&timeline);
    trace.names(export);
    let document = json!({
        "displayTimeUnit": "ms",
        "otherData": {
            "run_id": export.id().as_str(),
            "status": export.status(),
            "began": began.to_string(),
            "exported": export.at.to_string(),
            "omg": export.build.version,
        },
        "traceEvents": trace.events,
    });
    serde_json::to_writer(&mut *out, &document).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

struct Trace {
    began: Timestamp,
    now: Timestamp,
    events: Vec<Value>,
    /// The slices of each node, in the order in which they began.
    slices: HashMap<String, Vec<Slice>>,
}

impl Trace {
    fn legs(&mut self, timeline: &Timeline) {
        for leg in &timeline.legs {
            let args = json!({ "outcome": leg.outcome });
            self.slice(&format!("leg {}", leg.leg), "leg", (LEGS, leg.span), args);
        }
    }

    fn attempts(&mut self, timeline: &Timeline) {
        for attempt in &timeline.attempts {
            let place = (attempt.slot, attempt.span);
            let slice = self.slice(&attempt.node_id, "attempt", place, args(attempt));
            self.slices.entry(attempt.node_id.clone()).or_default().push(slice);
        }
    }

    fn gates(&mut self, timeline: &Timeline) {
        let tracks = lanes(timeline.gates.iter().map(|wait| wait.span));
        for (wait, track) in timeline.gates.iter().zip(tracks) {
            let args = json!({ "decision": wait.decision.unwrap_or("waits") });
            let slice = self.slice(&wait.node_id, "gate", (GATES + track, wait.span), args);
            self.slices.entry(wait.node_id.clone()).or_default().push(slice);
        }
    }

    /// An arrow for each edge of the graph that ran: from the last slice of the parent that had begun by then. What it handed
    /// on and what that released are told at the same moment, by clocks that may differ by less than anybody sees.
    fn arrows(&mut self, export: &Export) {
        let mut number = 0;
        for node in &export.shape.nodes {
            for child in self.slices.get(&node.id).cloned().unwrap_or_default() {
                for parent in &node.depends_on {
                    let slices = self.slices.get(parent).map(Vec::as_slice).unwrap_or_default();
                    let Some(from) = slices.iter().rfind(|it| it.at <= child.at).copied() else { continue };
                    number += 1;
                    let end = (from.at + from.length - 1).min(child.at);
                    let arrow = |phase: &str, track, at| json!({ "ph": phase, "id": number, "name": "depends_on", "cat": "edge", "pid": RUN, "tid": track, "ts": at });
                    self.events.push(arrow("s", from.track, end));
                    let mut to = arrow("f", child.track, child.at);
                    to["bp"] = "e".into();
                    self.events.push(to);
                }
            }
        }
    }

    /// What the known part of the cost had come to at the end of each attempt.
    fn costs(&mut self, timeline: &Timeline) {
        let mut charges: Vec<(i64, f64)> = timeline
            .attempts
            .iter()
            .filter(|attempt| !attempt.charge.known.is_zero())
            .map(|attempt| (self.at(attempt.span.ended.unwrap_or(self.now)), attempt.charge.known.usd()))
            .collect();
        charges.sort_by_key(|(at, _)| *at);
        let mut sum = 0.0;
        for (at, usd) in charges {
            sum += usd;
            self.events.push(
                json!({ "ph": "C", "name": "cost (USD)", "pid": RUN, "ts": at, "args": { "usd": sum } }),
            );
        }
    }

    /// The names of process and tracks.
    fn names(&mut self, export: &Export) {
        let mut tracks: Vec<u32> = self.slices.values().flatten().map(|slice| slice.track).collect();
        tracks.push(LEGS);
        tracks.sort_unstable();
        tracks.dedup();
        let name = match export.shape.name.as_str() {
            "" => format!("run {}", export.id()),
            name => format!("{name}, run {}", export.id()),
        };
        let named = |what: &str, track: u32, args: Value| json!({ "ph": "M", "name": what, "pid": RUN, "tid": track, "args": args });
        self.events.push(named("process_name", LEGS, json!({ "name": name })));
        for track in tracks {
            let name = match track {
                LEGS => "legs".to_owned(),
                gate if gate > GATES => format!("gates {}", gate - GATES),
                slot => format!("slot {slot}"),
            };
            self.events.push(named("thread_name", track, json!({ "name": name })));
            self.events.push(named("thread_sort_index", track, json!({ "sort_index": track })));
        }
    }

    /// Adds a slice; what has not ended reaches until now. None is so short that nothing can be tied to it.
    fn slice(&mut self, name: &str, kind: &str, (track, span): (u32, Span), args: Value) -> Slice {
        let at = self.at(span.started);
        let length = (self.at(span.ended.unwrap_or(self.now)) - at).max(1);
        self.events.push(json!({
            "ph": "X", "name": name, "cat": kind, "pid": RUN, "tid": track, "ts": at, "dur": length, "args": args,
        }));
        Slice { track, at, length }
    }

    fn at(&self, moment: Timestamp) -> i64 {
        moment.as_microsecond() - self.began.as_microsecond()
    }
}

fn args(attempt: &Attempt) -> Value {
    let mut args = serde_json::to_value(attempt).unwrap_or_default();
    if let Some(args) = args.as_object_mut() {
        for told_by_the_slice in ["node_id", "slot", "started", "ended"] {
            args.shift_remove(told_by_the_slice);
        }
    }
    args
}
