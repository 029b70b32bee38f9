//! Turns the events and notices of a run under way into lines, in an order that makes sense to a person
//! (FACTS 1.14). Pure: no thread, no clock, no writer; moments are times since the display began.
//!
//! Feed and notices arrive by two ways. A notice about a node is therefore held until the node is seen running,
//! and comes out at the latest before the line that ends its attempt.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::record::observe::Notice;
use crate::record::{Event, EventKind, Provenance};
use crate::text::duration;
use crate::text::money::Cost;
use crate::text::sanitize;
use crate::view::term::Look;
use crate::view::term::feed_lines::{self, Mark};

/// What the lines of a run are made from.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    look: Look,
    /// Since when each node runs.
    running: BTreeMap<String, Duration>,
    /// What the attempts of the nodes under way cost so far.
    spent: HashMap<String, Cost>,
    /// Notices whose place has not come yet.
    held: Vec<Notice>,
    /// The nodes that have a verdict; a node of a loop loses its own when the next round starts it.
    settled: HashSet<String>,
    total_cost: Cost,
}

impl Transcript {
    pub(crate) fn new(look: Look) -> Self {
        Transcript { look, ..Transcript::default() }
    }

    /// Takes an event; its lines go to `out`, without newlines.
    pub(crate) fn event(&mut self, event: &Event, now: Duration, out: &mut Vec<String>) {
        self.total_cost += event.charge();
        match event.event {
            EventKind::NodeStarted => self.started(event, now, out),
            EventKind::NodeRetried => self.retried(event, out),
            EventKind::NodePassed | EventKind::NodeFailed => self.settled(event, out),
            EventKind::GatePaused => {
                self.running.remove(&event.node_id);
                self.say(Mark::Pause, event, "waiting for a decision", out);
            }
            EventKind::RunFinished if event.outcome == "paused" && !event.detail.is_empty() => {
                let detail = sanitize::one_line(&event.detail);
                out.push(feed_lines::line(self.look, Mark::Pause, &format!("the run pauses: {detail}")));
            }
            _ => {}
        }
    }

    /// Takes a notice; what can be said at once goes to `out`.
    pub(crate) fn notice(&mut self, notice: Notice, out: &mut Vec<String>) {
        match &notice {
            Notice::Fed => {}
            Notice::Warning { .. } => self.tell(&notice, out),
            Notice::Verifying { .. } | Notice::SavedReply { .. } => self.held.push(notice),
        }
    }

    /// Says what is held about nodes that run.
    pub(crate) fn release(&mut self, out: &mut Vec<String>) {
        if !self.held.is_empty() {
            let (due, held) = std::mem::take(&mut self.held)
                .into_iter()
                .partition(|notice| about(notice).is_some_and(|node| self.running.contains_key(node)));
            self.held = held;
            self.tell_all(due, out);
        }
    }

    /// Says everything that is still held.
    pub(crate) fn release_all(&mut self, out: &mut Vec<String>) {
        let held = std::mem::take(&mut self.held);
        self.tell_all(held, out);
    }

    /// The line that tells a silent pipe what is going on; `None` when nothing runs.
    pub(crate) fn heartbeat(&self, now: Duration) -> Option<String> {
        let running: Vec<String> = self
            .running(now)
            .map(|(node, elapsed)| format!("{} {}", sanitize::one_line(node), duration::format(elapsed)))
            .collect();
        let said = || format!("still running: {}", running.join(", "));
        (!running.is_empty()).then(|| feed_lines::line(self.look, Mark::Check, &said()))
    }

    /// The nodes under way, in id order, and for how long in whole seconds.
    pub(crate) fn running(&self, now: Duration) -> impl Iterator<Item = (&str, Duration)> {
        let elapsed = move |since: &Duration| Duration::from_secs(now.saturating_sub(*since).as_secs());
        self.running.iter().map(move |(node, since)| (node.as_str(), elapsed(since)))
    }

    /// How many nodes have settled, and what everything cost.
    pub(crate) fn tally(&self) -> (usize, Cost) {
        (self.settled.len(), self.total_cost)
    }

    fn started(&mut self, event: &Event, now: Duration, out: &mut Vec<String>) {
        // A runtime that learns its session late writes the line again once it knows it.
        if self.running.insert(event.node_id.clone(), now).is_none() {
            self.settled.remove(&event.node_id);
            self.say(Mark::Start, event, "running…", out);
        }
    }

    fn retried(&mut self, event: &Event, out: &mut Vec<String>) {
        self.release_first(&event.node_id, out);
        if event.charge() != Cost::ZERO {
            match self.spent.get_mut(&event.node_id) {
                Some(spent) => *spent += event.charge(),
                None => drop(self.spent.insert(event.node_id.clone(), event.charge())),
            }
        }
        self.say(Mark::Again, event, &feed_lines::retried(event), out);
        // A feedback arc ends the turn of its declarer, a spent limit that of the node; both start it anew.
        if event.round > 0 && event.retries == 0 || !event.held_until.is_empty() {
            self.running.remove(&event.node_id);
        }
    }

    fn settled(&mut self, event: &Event, out: &mut Vec<String>) {
        while self.release_first(&event.node_id, out) {}
        self.running.remove(&event.node_id);
        self.settled.insert(event.node_id.clone());
        let cost = self.spent.remove(&event.node_id).unwrap_or(Cost::ZERO) + event.charge();
        if event.event == EventKind::NodeFailed {
            return self.say(Mark::Fail, event, &feed_lines::failed(event), out);
        }
        let words = match event.provenance {
            Some(Provenance::Approved) => "PASS  gate approved".to_owned(),
            _ => format!("PASS  {}  {}", price(cost), took(event)),
        };
        self.say(Mark::Pass, event, &words, out);
    }

    fn say(&self, mark: Mark, event: &Event, words: &str, out: &mut Vec<String>) {
        let text = format!("{}  {words}", sanitize::one_line(&event.node_id));
        out.push(feed_lines::line(self.look, mark, &text));
    }

    /// Says the first thing that is held about `node`, up to the next check of it.
    fn release_first(&mut self, node: &str, out: &mut Vec<String>) -> bool {
        let Some(at) = self.held.iter().position(|notice| about(notice) == Some(node)) else { return false };
        let notice = self.held.remove(at);
        self.tell(&notice, out);
        true
    }

    fn tell_all(&self, notices: Vec<Notice>, out: &mut Vec<String>) {
        for notice in notices {
            self.tell(&notice, out);
        }
    }

    fn tell(&self, notice: &Notice, out: &mut Vec<String>) {
        let (mark, text) = match notice {
            Notice::Fed => return,
            Notice::Verifying { node, command } => {
                (Mark::Check, format!("{node}  verifying: {}", sanitize::one_line(command)))
            }
            Notice::SavedReply { node, path } => {
                (Mark::Kept, format!("{node}  reply kept: {}", sanitize::one_line(&path.to_string_lossy())))
            }
            Notice::Warning { node: Some(node), message } => {
                (Mark::Warning, format!("{node}  {}", sanitize::one_line(message)))
            }
            Notice::Warning { node: None, message } => {
                (Mark::Warning, sanitize::one_line(message).into_owned())
            }
        };
        out.push(feed_lines::line(self.look, mark, &text));
    }
}

fn about(notice: &Notice) -> Option<&str> {
    match notice {
        Notice::Verifying { node, .. } | Notice::SavedReply { node, .. } => Some(node.as_str()),
        Notice::Warning { node, .. } => node.as_ref().map(|node| node.as_str()),
        Notice::Fed => None,
    }
}

fn price(cost: Cost) -> String {
    if cost.is_unknown() && cost.known.is_zero() { "cost unknown".to_owned() } else { cost.to_string() }
}

fn took(event: &Event) -> String {
    duration::format(Duration::from_nanos(u64::try_from(event.duration).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NodeId;

    fn id(text: &str) -> NodeId {
        NodeId::parse(text).expect("an id")
    }

    fn play(transcript: &mut Transcript, lines: &str, second: u64, out: &mut Vec<String>) {
        for line in lines.lines() {
            let event = serde_json::from_str(line.trim()).expect(line);
            transcript.event(&event, Duration::from_secs(second), out);
        }
    }

    #[test]
    fn a_run_reads_from_top_to_bottom() {
        let (mut transcript, mut out) = (Transcript::default(), Vec::new());
        let feed = r#"{"event":"run_started"}
            {"event":"node_started","node_id":"a"}
            {"event":"node_retried","node_id":"a","retries":1,"cost_usd":0.01,"detail":"verify_failed"}
            {"event":"node_passed","node_id":"a","retries":1,"cost_usd":0.02,"duration":235000000}
            {"event":"node_started","node_id":"b"}
            {"event":"node_passed","node_id":"b","cost_unknown":true,"duration":107000000}
            {"event":"node_started","node_id":"g"}
            {"event":"gate_paused","node_id":"g"}
            {"event":"node_started","node_id":"ok"}
            {"event":"gate_approved","node_id":"ok"}
            {"event":"node_passed","node_id":"ok","provenance":"approved"}
            {"event":"node_started","node_id":"c"}
            {"event":"node_failed","node_id":"c","detail":"exit 1: \u001b]0;pwn\u0007","cause":"nonzero_exit"}
            {"event":"run_finished","outcome":"paused","detail":"x hit its limit"}"#;
        play(&mut transcript, feed, 0, &mut out);
        insta::assert_snapshot!(out.join("\n"), @"
        ▶ a  running…
        ↻ a  retry  verify_failed
        ✓ a  PASS  $0.0300  235ms
        ▶ b  running…
        ✓ b  PASS  cost unknown  107ms
        ▶ g  running…
        ⏸ g  waiting for a decision
        ▶ ok  running…
        ✓ ok  PASS  gate approved
        ▶ c  running…
        ✗ c  FAILED: exit 1: ␛]0;pwn␇
        ⏸ the run pauses: x hit its limit
        ");
    }

    #[test]
    fn a_notice_never_comes_before_its_node_nor_after_its_verdict() {
        let (mut transcript, mut out) = (Transcript::default(), Vec::new());
        transcript.notice(Notice::Verifying { node: id("a"), command: "make\ncheck".into() }, &mut out);
        transcript.release(&mut out);
        assert!(out.is_empty());
        play(&mut transcript, r#"{"event":"node_started","node_id":"a"}"#, 0, &mut out);
        transcript.release(&mut out);
        transcript.notice(Notice::SavedReply { node: id("a"), path: "/r/failed/a.out".into() }, &mut out);
        transcript.notice(Notice::Warning { node: None, message: "disk full".into() }, &mut out);
        play(&mut transcript, r#"{"event":"node_failed","node_id":"a","detail":"no"}"#, 0, &mut out);
        transcript.notice(Notice::Verifying { node: id("late"), command: "true".into() }, &mut out);
        transcript.release_all(&mut out);
        insta::assert_snapshot!(out.join("\n"), @"
        ▶ a  running…
        … a  verifying: make check
        ⚠ disk full
        ✎ a  reply kept: /r/failed/a.out
        ✗ a  FAILED: no
        … late  verifying: true
        ");
    }

    #[test]
    fn a_silent_pipe_is_told_what_runs() {
        let (mut transcript, mut out) = (Transcript::default(), Vec::new());
        assert_eq!(transcript.heartbeat(Duration::from_secs(60)), None);
        play(&mut transcript, r#"{"event":"node_started","node_id":"a"}"#, 0, &mut out);
        play(&mut transcript, r#"{"event":"node_started","node_id":"b"}"#, 48, &mut out);
        let said = transcript.heartbeat(Duration::from_millis(60_400)).expect("two run");
        assert!(said.starts_with("… still running: a ") && said.contains(", b "), "{said}");
        play(&mut transcript, r#"{"event":"node_passed","node_id":"a"}"#, 61, &mut out);
        assert!(!transcript.heartbeat(Duration::from_secs(62)).expect("one runs").contains(" a "));
    }

    #[test]
    fn a_node_that_learns_its_session_late_starts_once() {
        let (mut transcript, mut out) = (Transcript::default(), Vec::new());
        let feed = r#"{"event":"node_started","node_id":"x"}
            {"event":"node_started","node_id":"x","session_id":"t"}"#;
        play(&mut transcript, feed, 0, &mut out);
        assert_eq!(out, ["▶ x  running…"]);
    }
}
