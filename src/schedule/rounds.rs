//! Feedback rounds of a node under way (ADR 0010, FACTS 7.8): whether its failure may fire an arc, what is handed back,
//! and how a round is told.

use sha2::{Digest, Sha256};

use crate::node::judge::Fault;
use crate::record::{Event, EventKind, Record, Verdict, artifact};
use crate::schedule::attempt::Course;
use crate::schedule::work::Again;
use crate::text::sanitize::cap_detail;

impl Course<'_> {
    /// Whether this round changed nothing: the loop's artifacts and what is handed back are those of the round before.
    pub(super) fn is_stale(&self, fault: &Fault) -> bool {
        if self.node.feedback.is_none() || !fault.judged {
            return false;
        }
        let mut hash = Sha256::new();
        hash.update(self.payload(fault));
        for member in self.work.graph.feedback_body(self.ix).iter().filter(|member| **member != self.ix) {
            let path = self.work.run_dir.artifact(&self.work.graph.node(*member).id);
            // A length before each keeps two different loops from reading the same.
            let bytes = std::fs::read(path).unwrap_or_default();
            hash.update(bytes.len().to_le_bytes());
            hash.update(bytes);
        }
        self.work.seen_before(&self.node.id, hash.finalize().into())
    }

    /// What is announced and recorded should the machine run this node's loop again; `None` when its failure is final.
    /// The payload is on disk before anybody may be told of the round.
    pub(super) fn again(&self, fault: &Fault, stale: bool) -> Option<Box<Again>> {
        let feedback = self.node.feedback?;
        if !fault.judged || self.round >= feedback.max {
            return None;
        }
        let payload = self.payload(fault);
        if let Err(error) = artifact::keep_feedback(&self.work.run_dir, &self.node.id, &payload) {
            self.work
                .warn(&self.node.id, format!("its feedback cannot be kept, so that its loop ends: {error}"));
            return None;
        }
        self.work.hand_back(&self.node.id, payload);
        let (round, target) = (self.round + 1, &self.work.graph.node(feedback.rerun).id);
        let mut event = Event::of_node(EventKind::NodeRetried, self.node.id.as_str());
        event.round = round;
        event.detail = format!(
            "feedback round {round}/{}: re-running {target} → {}: {}",
            feedback.max, self.node.id, fault.detail
        );
        event.detail = cap_detail(&event.detail) + stale_note(stale);
        event.set_charge(self.told.charge, self.told.usage);
        let marker =
            Record { verdict: Verdict::Marker, round, artifact_path: String::new(), ..self.record() };
        let events = self.unannounced.clone().into_iter().chain([event]).collect();
        Some(Box::new(Again { events, record: marker }))
    }

    /// What the loop's target is told: what the evidence command printed, else the reply, else the failure.
    fn payload(&self, fault: &Fault) -> String {
        match &fault.evidence {
            Some(evidence) => evidence.clone(),
            None if self.told.reply.trim().is_empty() => fault.detail.clone(),
            None => self.told.reply.clone(),
        }
    }

    /// The note on a row of a loop's body; the declarer's rows have words of their own.
    pub(super) fn round_note(&self) -> Option<String> {
        let declarer = self.work.graph.declarer_of(self.ix)?;
        let max = self.work.graph.node(declarer).feedback?.max;
        (self.round > 0 && declarer != self.ix).then(|| format!("feedback round {}/{max}", self.round))
    }

    /// How the last failure of a declarer whose rounds are spent is told.
    pub(super) fn exhausted(&self, fault: &Fault) -> Option<String> {
        let feedback = self.node.feedback.filter(|feedback| fault.judged && self.round >= feedback.max)?;
        let target = &self.work.graph.node(feedback.rerun).id;
        let rounds = if feedback.max == 1 { "round" } else { "rounds" };
        Some(format!(
            "feedback exhausted after {} {rounds} of {target} → {}: {}",
            feedback.max, self.node.id, fault.detail
        ))
    }
}

/// What is said of a round that changed nothing.
pub(super) fn stale_note(stale: bool) -> &'static str {
    if stale { "; nothing changed since the round before" } else { "" }
}
