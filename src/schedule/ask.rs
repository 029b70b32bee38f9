//! One attempt of a prompt node: asked, judged, verified, kept.

use std::sync::PoisonError;

use crate::graph::Cause;
use crate::graph::node::Model;
use crate::node::invocation::{End, Invocation, Invoked};
use crate::node::judge::{self, Answer, Fault};
use crate::node::policy::Policy;
use crate::node::shell::ShellRequest;
use crate::process::Exit;
use crate::process::capture::HeadTail;
use crate::record::attempts::Said;
use crate::record::excerpt::{CUT_BYTES, KEPT_BYTES_MAX, cut_marker};
use crate::record::observe::Notice;
use crate::record::{Event, artifact};
use crate::schedule::attempt::{Course, Told, not_kept};
use crate::schedule::prepare::{Prepared, PreparedVerify};

impl Course<'_> {
    /// Asks the runtime and judges its answer. The artifact is kept once everything passed.
    pub(crate) fn ask(&mut self, model: &Model, prepared: &Prepared, prompt: &str) -> Result<(), Fault> {
        self.keep(Said::Prompt, prompt.as_bytes());
        let policy = self.policy(model)?;
        let invocation = self.invocation(model, prepared, prompt, policy);
        let mut invoked = self.invoke(&invocation);
        self.keep(Said::Reply, invoked.reply.as_bytes());
        self.keep(Said::Stderr, invoked.stderr.as_bytes());
        self.leaky |= invoked.leaky;
        self.left_running.append(&mut invoked.left_running);
        for warning in invoked.warnings.drain(..) {
            self.work.warn(&self.node.id, warning);
        }
        self.told = Told {
            charge: invoked.charge,
            usage: invoked.usage,
            session: invoked.session.take(),
            reply: std::mem::take(&mut invoked.reply),
        };
        if let Some(fault) = judge::no_answer(&invoked.end, invocation.timeout) {
            return Err(fault);
        }
        self.judge(&invoked.end)?;
        if let Some(verify) = &prepared.verify {
            self.verify(verify, prepared)?;
        }
        let path = self.work.run_dir.artifact(&self.node.id);
        self.carried = artifact::persist_artifact(&path, self.told.reply.as_bytes()).map_err(not_kept)?;
        Ok(())
    }

    /// What the node may do: what it grants itself, or what its plan's ceiling gives it.
    fn policy(&self, model: &Model) -> Result<Policy, Fault> {
        match &self.work.ceiling {
            None => Ok(Policy::granting(model.allowed_tools.clone().unwrap_or_default())),
            Some(ceiling) => ceiling.policy(&self.node.id).cloned().ok_or_else(|| {
                Fault::ending(
                    Cause::RunError,
                    "it is planned and has no ceiling, so it is not run".to_owned(),
                )
            }),
        }
    }

    fn invocation(&self, model: &Model, prepared: &Prepared, prompt: &str, policy: Policy) -> Invocation {
        let graph = &self.work.graph;
        Invocation {
            node: self.node.id.clone(),
            attempt: self.attempt,
            prompt: prompt.to_owned(),
            cwd: prepared.cwd.clone(),
            session: self.session.clone(),
            permission_mode: model.permission_mode.unwrap_or(self.work.default_mode),
            policy,
            budget: model.budget,
            agent: model.agent.clone(),
            model: model.model.clone().or_else(|| graph.model.clone()),
            effort: model.effort.clone().or_else(|| graph.effort.clone()),
            timeout: self.timeout(),
            leave_running: self.node.leave_running,
        }
    }

    fn invoke(&mut self, invocation: &Invocation) -> Invoked {
        let (work, node) = (self.work, &self.node.id);
        let unannounced: &mut Option<Event> = &mut self.unannounced;
        let mut announce = |session: &str| {
            if let Some(mut event) = unannounced.take() {
                session.clone_into(&mut event.session_id);
                // It runs already; what it cost is told with its end.
                work.announce(node, &[event]).ok();
            }
        };
        work.runtime.invoke(invocation, work.halt.cancel(), &mut announce)
    }

    fn judge(&self, end: &End) -> Result<(), Fault> {
        let End::Replied { exit, note } = end else { return Ok(()) };
        let check = &self.node.check;
        let matches = check.result_matches.as_ref().is_none_or(|pattern| pattern.is_match(&self.told.reply));
        judge::judge(check, Answer { exit: *exit, note, matches })
    }

    /// Runs the node's evidence command and judges it.
    pub(crate) fn verify(&mut self, verify: &PreparedVerify, prepared: &Prepared) -> Result<(), Fault> {
        let _turn =
            self.work.verify_turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let notice = Notice::Verifying { node: self.node.id.clone(), command: verify.command.clone() };
        self.work.observer.notice(notice);
        let request = ShellRequest {
            node: self.node.id.clone(),
            attempt: self.attempt,
            command: verify.command.clone(),
            cwd: verify.cwd.clone(),
            env: prepared.env.clone(),
            timeout: verify.timeout,
            leave_running: false,
        };
        let mut log = HeadTail::new(KEPT_BYTES_MAX / 2, KEPT_BYTES_MAX / 2 - CUT_BYTES);
        let cancel = self.work.halt.cancel();
        let evidence = self
            .work
            .shell
            .verify(&request, &verify.expected, &mut log, cancel)
            .map_err(|error| Fault { cause: verify_cause(&error), ..judge::not_started(&error) })?;
        self.keep(Said::Verify, &printed(log));
        self.leaky |= evidence.leaky;
        judge::judge_evidence(&verify.command, &verify.expected, verify.timeout, &evidence)
    }
}

/// A command that could not be completed fails its check, whatever kept it (FACTS 7.3).
fn verify_cause(error: &crate::process::SpawnError) -> Cause {
    match error {
        crate::process::SpawnError::Cancelled => Cause::Cancelled,
        _ => Cause::VerifyFailed,
    }
}

/// What is kept of an output: its beginning and its end, the cut said.
fn printed(log: HeadTail) -> Vec<u8> {
    let (mut kept, missing, tail) = log.into_parts();
    if missing > 0 {
        kept.extend_from_slice(cut_marker(missing).as_bytes());
    }
    kept.extend(tail);
    kept
}

/// Whether an exit is a plain success.
pub(crate) fn is_zero(exit: Exit) -> bool {
    exit == Exit::Code(0)
}
