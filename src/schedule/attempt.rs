//! The course of one node on its worker: prepared, tried, judged, retried, settled (FACTS 7.2 to 7.6).
//!
//! Money is charged when it is known: every attempt's charge goes into the record's sum, and onto exactly one event:
//! the `node_retried` that follows it, or the terminal one (DECISIONS 10).

use std::sync::PoisonError;
use std::time::Duration;

use crate::graph::node::TIMEOUT_DEFAULT;
use crate::graph::{Cause, Node, NodeIx, Work};
use crate::node::Session;
use crate::node::judge::{self, Fault};
use crate::record::artifact::ArtifactError;
use crate::record::attempts::{AttemptId, Said};
use crate::record::feed::FeedError;
use crate::record::observe::Notice;
use crate::record::{Event, EventKind, Record, Usage, Verdict, artifact};
use crate::schedule::halt::Reason;
use crate::schedule::machine::{Bill, Ending};
use crate::schedule::nodes::{GraphWork, Handed, Held, Ticket};
use crate::schedule::prepare::{Prepared, prepare};
use crate::schedule::rounds::stale_note;
use crate::schedule::work::Settled;
use crate::text::money::{Cost, Money};
use crate::text::sanitize::cap_detail;

/// One node under way.
pub(crate) struct Course<'a> {
    pub(crate) work: &'a GraphWork,
    pub(crate) ix: NodeIx,
    pub(crate) node: &'a Node,
    ticket: Ticket,
    /// The attempt under way, from 0; also the number of retries so far.
    pub(crate) attempt: u32,
    /// The feedback round; 0 outside a loop and on its first pass.
    pub(crate) round: u32,
    pub(crate) session: Session,
    /// A start or retry that waits for its session's id.
    pub(crate) unannounced: Option<Event>,
    pub(crate) told: Told,
    spent: Cost,
    used: Usage,
    pub(crate) leaky: bool,
    keeps_artifact: bool,
    /// Its artifact, where the terminal event is to carry it.
    pub(crate) carried: String,
    /// What the attempt under way left running on purpose.
    pub(crate) left_running: Vec<u32>,
}

/// What the last attempt said of itself.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Its price.
    pub(crate) charge: Cost,
    /// Its tokens.
    pub(crate) usage: Usage,
    /// Its session.
    pub(crate) session: Option<String>,
    /// Its reply, or as much of a command's output as is kept.
    pub(crate) reply: String,
}

impl<'a> Course<'a> {
    pub(crate) fn new(work: &'a GraphWork, ix: NodeIx, mut ticket: Ticket) -> Self {
        let (session, unannounced) = (ticket.session.clone(), ticket.unannounced.take());
        Course {
            work,
            ix,
            node: work.graph.node(ix),
            attempt: 0,
            round: ticket.round,
            session,
            unannounced,
            told: Told::default(),
            spent: Cost::ZERO,
            used: Usage::default(),
            leaky: false,
            keeps_artifact: false,
            carried: String::new(),
            left_running: Vec::new(),
            ticket,
        }
    }

    /// Runs the node to its verdict.
    pub(crate) fn run(mut self) -> Settled {
        if matches!(self.node.work, Work::Gate) {
            return self.decide();
        }
        match self.attempts() {
            Ok(()) => self.passed(),
            Err(fault) if fault.limited => self.limited(fault.detail),
            Err(fault) => self.failed(&fault),
        }
    }

    /// Every attempt, until one passes or none is left.
    fn attempts(&mut self) -> Result<(), Fault> {
        let prepared = prepare(self.work, self.node)?;
        let mut prompt = self.first_prompt(&prepared);
        loop {
            self.told = Told::default();
            self.keeps_artifact = false;
            let verdict = self.attempt(&prepared, &prompt);
            self.spent += self.told.charge;
            self.used = self.used + self.told.usage;
            self.settle_left(verdict.is_ok());
            let Err(fault) = verdict else { return Ok(()) };
            if !self.may_retry(&fault) {
                return Err(fault);
            }
            prompt = self.next_prompt(&prepared, &fault);
            if !self.retry() {
                return Err(Fault {
                    detail: format!("{}; a retry cannot be recorded", fault.detail),
                    ..fault
                });
            }
        }
    }

    fn attempt(&mut self, prepared: &Prepared, prompt: &str) -> Result<(), Fault> {
        match &self.node.work {
            Work::Model(model) => self.ask(model, prepared, prompt),
            Work::Command(_) => self.execute(prepared),
            Work::Gate => Ok(()),
        }?;
        let budget = self.budget();
        self.keeps_artifact = true;
        judge::judge_budget(self.told.charge, budget)
    }

    /// Only a node that passed leaves anything running: the next attempt must find its port free.
    fn settle_left(&mut self, passed: bool) {
        let pids = std::mem::take(&mut self.left_running);
        if passed {
            let mut left = self.work.left_running.lock().unwrap_or_else(PoisonError::into_inner);
            left.extend(pids.into_iter().map(|pid| (self.node.id.clone(), pid)));
        } else if !pids.is_empty() {
            self.work.shell.end_left(&self.node.id, self.attempt);
        }
    }

    fn may_retry(&self, fault: &Fault) -> bool {
        let retry = &self.node.retry;
        !fault.is_final
            && self.attempt < retry.max
            && retry.on.contains(&fault.cause)
            && self.work.halt.reason().is_none()
    }

    /// The prompt of the first attempt: what an earlier leg judged to fail is a retry, and told so.
    fn first_prompt(&self, prepared: &Prepared) -> String {
        match self.work.replies.get(&self.node.id).filter(|_| self.round == 0) {
            Some(reply) if !reply.trim().is_empty() && matches!(self.node.work, Work::Model(_)) => {
                crate::node::quote::with_previous(&prepared.text, reply)
                    .unwrap_or_else(|_| prepared.text.clone())
            }
            _ => prepared.text.clone(),
        }
    }

    /// The prompt of the next attempt: the node's own, with the last reply quoted when a check judged it.
    fn next_prompt(&mut self, prepared: &Prepared, fault: &Fault) -> String {
        let quotes =
            fault.judged && matches!(self.node.work, Work::Model(_)) && !self.told.reply.trim().is_empty();
        if !quotes {
            return prepared.text.clone();
        }
        crate::node::quote::with_previous(&prepared.text, &self.told.reply).unwrap_or_else(|error| {
            self.work.warn(&self.node.id, format!("its last reply is not quoted: {error}"));
            prepared.text.clone()
        })
    }

    /// Announces the next attempt, which begins in a fresh session (DESIGN "retry"). `false` when that is not recorded,
    /// and so it does not begin.
    fn retry(&mut self) -> bool {
        let mut event =
            Event { round: self.round, ..Event::of_node(EventKind::NodeRetried, self.node.id.as_str()) };
        event.retries = self.attempt + 1;
        event.set_charge(self.told.charge, self.told.usage);
        let overdue = self.unannounced.take();
        let is_model = matches!(self.node.work, Work::Model(_));
        let fresh = if is_model { self.work.runtime.fresh_session() } else { None };
        let late = is_model && self.work.runtime.announces_late();
        if !late {
            event.session_id = fresh.clone().unwrap_or_default();
        }
        let (now, later) = if late { (None, Some(event)) } else { (Some(event), None) };
        let events: Vec<Event> = overdue.into_iter().chain(now).collect();
        if let Err(error) = self.work.announce(&self.node.id, &events) {
            if let (FeedError::Write { written: true, .. }, false) = (error, late) {
                // The line that could not be synced has taken the charge; the terminal one must not take it again.
                self.told.charge = Cost::ZERO;
                self.told.usage = Usage::default();
            }
            return false;
        }
        self.attempt += 1;
        self.session = Session::Fresh(fresh);
        self.unannounced = later;
        true
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.node.timeout.unwrap_or(TIMEOUT_DEFAULT)
    }

    fn budget(&self) -> Option<Money> {
        match &self.node.work {
            Work::Model(model) => model.budget,
            Work::Command(_) | Work::Gate => None,
        }
    }

    /// Keeps what an attempt said, for `omg show RUN NODE`.
    pub(crate) fn keep(&self, said: Said, text: &[u8]) {
        let id = AttemptId { leg: self.work.leg, round: self.round, attempt: self.attempt + 1 };
        self.work.scribe.keep(&self.node.id, id, said, text);
    }

    fn passed(mut self) -> Settled {
        if let Err(error) = artifact::remove_failed(&self.work.run_dir, &self.node.id) {
            self.work.warn(&self.node.id, error.to_string());
        }
        let path = self.work.run_dir.artifact(&self.node.id);
        let handed = Handed { artifact: Some(path), session: self.told.session.clone() };
        self.work.hand_on(self.ix, handed);
        let provenance = match self.node.work {
            _ if self.work.rehearsal => None,
            Work::Command(_) => Some(crate::graph::Provenance::Verified),
            Work::Model(_) | Work::Gate => Some(judge::provenance(&self.node.check)),
        };
        let detail = self.notes().join("; ");
        let record = Record { verdict: Verdict::Pass, detail, provenance, ..self.record() };
        self.settle(Ending::Passed, EventKind::NodePassed, record)
    }

    fn failed(mut self, fault: &Fault) -> Settled {
        let stale = self.is_stale(fault);
        let again = self.again(fault, stale).filter(|_| self.work.halt.reason().is_none());
        if again.is_none() {
            self.keep_failure();
        }
        let (ending, cause, detail) = self.story(fault);
        let detail = self.exhausted(fault).unwrap_or(detail);
        let note = self.round_note().map(|note| format!("; {note}")).unwrap_or_default();
        let detail = cap_detail(&detail) + &note + stale_note(stale);
        let record = Record {
            verdict: Verdict::Fail,
            detail,
            judged: fault.judged,
            cause: Some(cause),
            ..self.record()
        };
        Settled { again, ..self.settle(ending, EventKind::NodeFailed, record) }
    }

    /// A spent limit: the node counts as not run (ADR 0009). What it cost all the same is told when the leg ends, and
    /// carried into the record of the leg that runs it.
    fn limited(mut self, words: String) -> Settled {
        self.work.hold(Held {
            node: self.node.id.clone(),
            charge: self.told.charge,
            usage: self.told.usage,
            attempt: self.attempt,
            round: self.round,
            spent: (self.spent, self.used),
            words,
            at: self.work.clock.now(),
        });
        let events = self.unannounced.take().into_iter().collect();
        Settled { ending: Ending::Limited, bill: self.bill(), events, record: None, again: None }
    }

    /// The reply is kept beside the run; a stale artifact goes, unless this failure keeps its own (DECISIONS 14).
    fn keep_failure(&self) {
        let (run, node) = (&self.work.run_dir, &self.node.id);
        match artifact::keep_failed(run, node, &self.told.reply) {
            Ok(Some(path)) => self.work.observer.notice(Notice::SavedReply { node: node.clone(), path }),
            Ok(None) => {}
            Err(error) => self.work.warn(node, error.to_string()),
        }
        if !self.keeps_artifact
            && let Err(error) = artifact::remove(&run.artifact(node))
        {
            self.work.warn(node, error.to_string());
        }
    }

    /// What a failure is told as: one that the end of the run brought about says so.
    fn story(&self, fault: &Fault) -> (Ending, Cause, String) {
        let charge = self.told.charge;
        let was_ended = fault.is_final || fault.cause == Cause::Timeout;
        let unknown = match (charge.is_unknown() && was_ended, charge.known.is_zero()) {
            (false, _) => "",
            (true, true) => "; its cost is unknown, it was ended before it told",
            (true, false) => "; its cost is known in part, it was ended before it told the rest",
        };
        match (fault.cause, self.work.halt.reason()) {
            (Cause::Cancelled, Some(Reason::Failure(node))) => {
                let detail = format!("cancelled: run halted after node \"{node}\" failed{unknown}");
                (Ending::Cancelled, Cause::Cancelled, detail)
            }
            (Cause::Cancelled, Some(Reason::Signal(signal))) => {
                (Ending::Cancelled, Cause::Interrupted, format!("interrupted by {}{unknown}", signal.name()))
            }
            (cause, _) => {
                (Ending::Failed { judged: fault.judged }, cause, format!("{}{unknown}", fault.detail))
            }
        }
    }

    /// The notes of a PASS (FACTS 7.3).
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.attempt {
            0 => {}
            1 => notes.push("passed after 1 retry".to_owned()),
            n => notes.push(format!("passed after {n} retries")),
        }
        if self.attempt > 0 && matches!(self.ticket.session, Session::Resume(_)) {
            notes.push("the retry began a fresh session".to_owned());
        }
        if let (Some(budget), false) = (self.budget(), self.told.charge.is_unknown()) {
            let which = if self.attempt > 0 { "its last attempt was " } else { "" };
            notes.push(format!("{which}under budget by {}", budget.saturating_sub(self.told.charge.known)));
        }
        notes.extend(self.round_note());
        notes
    }

    pub(crate) fn record(&self) -> Record {
        let path = self.work.run_dir.artifact(&self.node.id);
        let mut record = Record {
            session_id: self.told.session.clone().unwrap_or_default(),
            budget_usd: self.budget().map(Money::usd),
            duration: i64::try_from(self.ticket.since.elapsed().as_nanos()).unwrap_or(i64::MAX),
            artifact_path: if self.keeps_artifact {
                path.to_string_lossy().into_owned()
            } else {
                String::new()
            },
            leaky: self.leaky,
            retries: self.attempt,
            round: self.round,
            ..Record::default()
        };
        let (cost, usage) = self.work.carried(&self.node.id);
        record.set_cost(cost + self.spent);
        record.usage = usage + self.used;
        record
    }

    fn bill(&self) -> Bill {
        Bill { cost: self.spent, executions: self.attempt + 1 }
    }

    fn settle(&mut self, ending: Ending, kind: EventKind, record: Record) -> Settled {
        let mut event = Event::of_node(kind, self.node.id.as_str());
        record.describe(&mut event);
        event.set_charge(self.told.charge, self.told.usage);
        if self.keeps_artifact {
            event.artifact_text = std::mem::take(&mut self.carried);
        }
        self.work.carry(&self.node.id, record.cost(), record.usage);
        Settled {
            ending,
            bill: self.bill(),
            events: self.unannounced.take().into_iter().chain([event]).collect(),
            record: Some(record),
            again: None,
        }
    }
}

/// A reply that cannot be kept is no result.
#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error")]
pub(crate) fn not_kept(error: ArtifactError) -> Fault {
    Fault::ending(Cause::RunError, format!("its artifact could not be kept: {error}"))
}
