//! Asking the planner, or another that is no node, under a person's eyes: a signal ends it, and a long silence is broken.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, never, select};

use super::context::Context;
use super::services::{self, Services};
use super::{Failure, order};
use crate::graph::Graph;
use crate::graph::raw::{RawGraph, RawNode};
use crate::leg::{guarded, preflight};
use crate::node::policy::Configuration;
use crate::node::runtime::RuntimeKind;
use crate::node::runtime::settings::Whereabouts;
use crate::plan::call::{Asking, Exchange};
use crate::process::Cancel;
use crate::process::signals::Stop;
use crate::record::RunDir;
use crate::record::attempts::{self, Caller, Said};
use crate::record::observe::{Notice, Observer};
use crate::text::{duration, sanitize};

/// How often it is said that a call still lasts: systems that run jobs end silent ones.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// What came of asking.
pub(super) struct Bought<T> {
    /// The answer.
    pub(super) outcome: T,
    /// The signal that came meanwhile.
    pub(super) signal: Option<Stop>,
}

/// Has `who` asked by `question`. The first signal ends the call, a second one kills it.
pub(super) fn ask<T: Send>(
    services: &Services,
    signals: &Receiver<Stop>,
    who: &str,
    context: &mut Context,
    question: impl FnOnce(&Asking<'_>) -> T + Send,
) -> Result<Bought<T>, Failure> {
    let cancel = Cancel::new().map_err(|error| Failure::new(format!("cannot make a pipe: {error}")))?;
    let (done, heard) = bounded(1);
    let (mut signal, mut signals, begun) = (None, signals.clone(), Instant::now());
    let outcome = thread::scope(|scope| {
        let asking = Asking { runtime: &*services.runtime, cancel: &cancel, cwd: Context::base() };
        scope.spawn(move || drop(done.send(question(&asking))));
        loop {
            select! {
                recv(heard) -> outcome => return outcome,
                recv(signals) -> stop => match (stop, signal) {
                    (Ok(stop), None) => {
                        signal = Some(stop);
                        writeln!(
                            context.err,
                            "{}: ending {who}; a second signal kills it at once",
                            stop.name()
                        )
                        .ok();
                        cancel.fire();
                    }
                    (Ok(_), Some(_)) => services.launcher.kill_all(),
                    (Err(_), _) => signals = never(),
                },
                default(SILENCE_MAX) => {
                    let spent = duration::format(begun.elapsed());
                    writeln!(context.err, "still waiting for {who}, for {spent}").ok();
                }
            }
        }
    });
    let outcome =
        outcome.map_err(|_| Failure::new(format!("the thread of {who} broke down; please report this")))?;
    Ok(Bought { outcome, signal })
}

/// The same for a call that belongs to no run, under a guard of its own.
pub(super) fn ask_alone<T: Send>(
    services: &Services,
    signals: &Receiver<Stop>,
    who: &str,
    context: &mut Context,
    question: impl FnOnce(&Asking<'_>) -> T + Send,
) -> Result<Bought<T>, Failure> {
    guarded(&services.launcher, None, &observer(), || ask(services, signals, who, context, question))
}

/// Keeps what `caller` was asked and said beside the run, for `omg show`. That it cannot be kept changes nothing.
pub(super) fn keep(dir: &RunDir, caller: Caller, said: &[Exchange], context: &mut Context) {
    let kept = said.iter().zip(1..).try_for_each(|(exchange, call)| {
        let Exchange { prompt, reply, stderr } = exchange;
        attempts::keep_call(
            dir,
            caller,
            call,
            &[(Said::Prompt, prompt), (Said::Reply, reply), (Said::Stderr, stderr)],
        )
    });
    if let Err(error) = kept {
        writeln!(context.err, "note: what {} was asked and said cannot be kept: {error}", caller.title())
            .ok();
    }
}

/// Tells what may surprise about this machine before anybody is asked. Who plans and who reads the lines of a chat runs under
/// the person's own settings, whatever planned nodes run under.
pub(super) fn warn_of_machine(
    kind: RuntimeKind,
    nodes: Configuration,
    inputs: &BTreeMap<String, String>,
    services: &Services,
    context: &mut Context,
) {
    let graph = graph();
    let found = |is_isolated| {
        let places = Whereabouts { is_isolated, ..services::whereabouts(kind) };
        preflight::settings(kind, &graph, inputs, &Context::base(), places)
    };
    let everywhere = found(nodes == Configuration::Isolated);
    order::warn_of_settings(&everywhere, "", context);
    let settings = found(false);
    let of_planning = settings.iter().filter(|finding| !everywhere.contains(finding));
    let whose = " (where it plans; planned nodes do not load the file)";
    order::warn_of_settings(of_planning, whose, context);
    order::warn(&services.runtime.preflight(&graph), context);
}

/// The planner as a graph of its own, for what a runtime looks at before it is asked.
fn graph() -> Graph {
    let node = RawNode { id: "planner".to_owned(), prompt: Some("plan".to_owned()), ..RawNode::default() };
    let raw = RawGraph { nodes: vec![node], ..RawGraph::default() };
    crate::graph::check(&raw).unwrap_or_else(|faults| unreachable!("one plain node is a graph: {faults:?}"))
}

/// Who hears what goes wrong beside the planner.
pub(super) fn observer() -> Arc<dyn Observer> {
    Arc::new(Aloud)
}

struct Aloud;

impl Observer for Aloud {
    fn notice(&self, notice: Notice) {
        if let Notice::Warning { message, .. } = notice {
            writeln!(std::io::stderr(), "warning: {}", sanitize::one_line(&message)).ok();
        }
    }
}
