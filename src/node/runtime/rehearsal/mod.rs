//! The embedded runtime: a graph runs through the whole engine without a process, a login or money (DECISIONS 24).
//!
//! Prompts, commands and evidence commands are answered from one [`Script`]; what it does not say is answered so
//! that the node's own check passes. No file, no git and no network is touched. It is the engine's test double too.

pub mod lanes;
pub mod read;
pub mod script;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::graph::{Graph, Node, NodeId, Work};
use crate::node::invocation::{End, Invocation, Invoked, Preflight, Runtime, Session};
use crate::node::runtime::limit;
use crate::node::shell::{EVIDENCE_TAIL_BYTES, Evidence, Expectation, Ran, Shell, ShellRequest};
use crate::process::{Cancel, Exit, How, Sink, SpawnError};
use crate::text::sample::sample;
use crate::text::sanitize::one_line;

pub use script::{Check, Ending, Entry, Script};

/// The signal that a command ends by when its time is out.
const TERM: i32 = 15;

/// What becomes of a set-up that should fail where there is none any more.
const SET_UP_ALREADY: &str =
    "the script lets its set-up fail, and another node has set its worktree up already";

/// A runtime and a shell that answer from a script.
#[derive(Debug)]
pub struct Rehearsal {
    script: Script,
    /// What a node with a pattern answers when the script does not say.
    defaults: HashMap<NodeId, String>,
    /// How often each node was spawned.
    spawns: Mutex<HashMap<NodeId, usize>>,
}

impl Rehearsal {
    /// A rehearsal of `graph`.
    ///
    /// # Errors
    /// One line for each node whose pattern no reply could be derived for, where the script gives none either.
    pub fn new(graph: &Graph, script: Option<Script>) -> Result<Self, Vec<String>> {
        Self::of_nodes(graph.nodes(), script.unwrap_or_default())
    }

    fn of_nodes(nodes: &[Node], script: Script) -> Result<Self, Vec<String>> {
        let mut defaults = HashMap::new();
        let mut refusals = Vec::new();
        for node in nodes {
            match derive_reply(node, script.entries(&node.id)) {
                Ok(Some(reply)) => drop(defaults.insert(node.id.clone(), reply)),
                Ok(None) => {}
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() {
            Ok(Rehearsal { script, defaults, spawns: Mutex::default() })
        } else {
            Err(refusals)
        }
    }

    /// Goes on after `spawns` earlier spawns of `node`, such as those of the legs before this one.
    pub fn resume(&self, node: &NodeId, spawns: usize) {
        self.spawns.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone(), spawns);
    }

    /// The entry of the spawn that begins now. Retries, rounds and legs all move on to the next one.
    fn next(&self, node: &NodeId) -> Entry {
        let mut spawns = self.spawns.lock().unwrap_or_else(PoisonError::into_inner);
        let count = spawns.entry(node.clone()).or_default();
        let entry = self.script.entry(node, *count).cloned().unwrap_or_default();
        *count += 1;
        entry
    }

    /// The words of the set-up that fails instead of the spawn that would begin now; it then counts as begun.
    fn failing_set_up(&self, node: &NodeId) -> Option<String> {
        let mut spawns = self.spawns.lock().unwrap_or_else(PoisonError::into_inner);
        let count = spawns.entry(node.clone()).or_default();
        match &self.script.entry(node, *count)?.ending {
            Ending::SetUpFails(words) => {
                *count += 1;
                Some(words.clone())
            }
            _ => None,
        }
    }

    /// What the entry of the last spawn says of its evidence.
    fn check(&self, node: &NodeId) -> Check {
        let spawns = self.spawns.lock().unwrap_or_else(PoisonError::into_inner);
        let last = spawns.get(node).map_or(0, |count| count.saturating_sub(1));
        self.script.entry(node, last).map(|entry| entry.verify.clone()).unwrap_or_default()
    }

    /// What `node` answers when its entry does not say: what its pattern wants, or else a plain line.
    fn default_reply(&self, node: &NodeId) -> String {
        self.defaults.get(node).cloned().unwrap_or_else(|| plain_reply(node))
    }
}

/// What is answered where anything will do.
fn plain_reply(node: &NodeId) -> String {
    format!("rehearsed {node}")
}

/// The reply that `node` needs when the script says none; `None` when it has no pattern to satisfy.
fn derive_reply(node: &Node, entries: &[Entry]) -> Result<Option<String>, String> {
    let answers =
        !matches!(node.work, Work::Gate) && (entries.is_empty() || entries.iter().any(Entry::needs_default));
    let Some(pattern) = node.check.result_matches.as_ref().filter(|_| answers) else { return Ok(None) };
    let plain = plain_reply(&node.id);
    if pattern.is_match(&plain) {
        return Ok(Some(plain));
    }
    let may_be_blank = matches!(node.work, Work::Command(_));
    let why = match sample(pattern) {
        Some(reply) if may_be_blank || !reply.trim().is_empty() => return Ok(Some(reply)),
        Some(_) => "only a blank reply matches it",
        None => "no reply that matches it could be derived",
    };
    let (id, pattern) = (&node.id, pattern.as_str());
    Err(format!(
        "node {id:?}: result_matches `{pattern}`: {why}; give the node a reply in a script (--script)"
    ))
}

/// What became of an attempt's delay.
enum Waited {
    Through,
    TimedOut,
    Cancelled,
}

/// Waits as long as the script says, within the node's own bound.
fn wait(delay: Duration, timeout: Duration, cancel: &Cancel) -> Waited {
    match (cancel.wait(delay.min(timeout)), delay > timeout) {
        (true, _) => Waited::Cancelled,
        (false, true) => Waited::TimedOut,
        (false, false) => Waited::Through,
    }
}

impl Runtime for Rehearsal {
    fn name(&self) -> &'static str {
        "rehearsal"
    }

    fn fresh_session(&self) -> Option<String> {
        Some(Uuid::new_v4().to_string())
    }

    fn preflight(&self, _: &Graph) -> Preflight {
        let line =
            "rehearsal: no model is asked, no command runs and nothing is paid; every reply is made up";
        Preflight { disclosures: vec![line.to_owned()], ..Preflight::default() }
    }

    fn invoke(&self, invocation: &Invocation, cancel: &Cancel, _: &mut dyn FnMut(&str)) -> Invoked {
        if cancel.is_fired() {
            return Invoked::unpaid(End::Cancelled);
        }
        let entry = self.next(&invocation.node);
        let ending = match wait(entry.delay, invocation.timeout, cancel) {
            Waited::Through => entry.ending,
            Waited::TimedOut => Ending::TimesOut,
            Waited::Cancelled => {
                return Invoked { session: session(invocation), ..Invoked::unpaid(End::Cancelled) };
            }
        };
        let (end, reply) = match ending {
            Ending::CannotStart(why) => return Invoked::unpaid(End::Broken(cannot_start(&why))),
            Ending::SetUpFails(_) => return Invoked::unpaid(End::Broken(cannot_start(SET_UP_ALREADY))),
            Ending::TimesOut => (End::TimedOut, String::new()),
            Ending::Limited(words) => (limited(&words), String::new()),
            Ending::Answers { reply, exit } => {
                let reply = reply.unwrap_or_else(|| self.default_reply(&invocation.node));
                (answered(&reply, exit), reply)
            }
        };
        let (session, charge, usage) = (session(invocation), entry.cost, entry.tokens);
        Invoked { reply, session, charge, usage, ..Invoked::unpaid(end) }
    }
}

fn session(invocation: &Invocation) -> Option<String> {
    match &invocation.session {
        Session::Fresh(id) => id.clone(),
        Session::Resume(id) => Some(id.clone()),
    }
}

fn limited(words: &str) -> End {
    End::Limited { cause: one_line(words).into_owned(), resets: limit::resets(words) }
}

fn answered(reply: &str, exit: i32) -> End {
    if exit == 0 && reply.trim().is_empty() {
        return End::Unreadable("the reply is empty".to_owned());
    }
    End::Replied { exit: Exit::Code(exit), note: String::new() }
}

fn cannot_start(why: &str) -> String {
    format!("cannot start the runtime: {}", one_line(why))
}

impl Shell for Rehearsal {
    /// Nothing was started, so nothing is left.
    fn end_left(&self, _: &NodeId, _: u32) {}

    fn run(&self, request: &ShellRequest, stdout: &mut dyn Sink, cancel: &Cancel) -> Result<Ran, SpawnError> {
        if cancel.is_fired() {
            return Err(SpawnError::Cancelled);
        }
        let entry = self.next(&request.node);
        let ending = match wait(entry.delay, request.timeout, cancel) {
            Waited::Through => entry.ending,
            Waited::TimedOut => Ending::TimesOut,
            Waited::Cancelled => return Ok(ran(How::Cancelled, Exit::Signal(TERM))),
        };
        match ending {
            Ending::CannotStart(why) => Err(shell_error(io::Error::other(why))),
            Ending::SetUpFails(_) => Err(shell_error(io::Error::other(SET_UP_ALREADY))),
            Ending::TimesOut => Ok(ran(How::TimedOut, Exit::Signal(TERM))),
            // The reader refuses this for a command; a script that was built in code means a failure.
            Ending::Limited(words) => Err(shell_error(io::Error::other(words))),
            Ending::Answers { reply, exit } => {
                let output = reply.unwrap_or_else(|| match self.defaults.get(&request.node) {
                    Some(output) => output.clone(),
                    None => plain_reply(&request.node) + "\n",
                });
                stdout.take(output.as_bytes()).map_err(shell_error)?;
                Ok(ran(How::Itself, Exit::Code(exit)))
            }
        }
    }

    fn set_up(
        &self,
        request: &ShellRequest,
        stdout: &mut dyn Sink,
        cancel: &Cancel,
    ) -> Result<Ran, SpawnError> {
        if cancel.is_fired() {
            return Err(SpawnError::Cancelled);
        }
        let Some(words) = self.failing_set_up(&request.node) else {
            return Ok(ran(How::Itself, Exit::Code(0)));
        };
        stdout.take(words.as_bytes()).map_err(shell_error)?;
        Ok(ran(How::Itself, Exit::Code(1)))
    }

    fn verify(
        &self,
        request: &ShellRequest,
        expected: &Expectation,
        log: &mut dyn Sink,
        cancel: &Cancel,
    ) -> Result<Evidence, SpawnError> {
        if cancel.is_fired() {
            return Err(SpawnError::Cancelled);
        }
        let (how, exit, output) = match self.check(&request.node) {
            Check::Passes => (How::Itself, Exit::Code(expected.exit), None),
            Check::Fails => (How::Itself, Exit::Code(i32::from(expected.exit != 1)), None),
            Check::Shows { exit, output } => (How::Itself, Exit::Code(exit.unwrap_or(expected.exit)), output),
            Check::TimesOut(output) => (How::TimedOut, Exit::Signal(TERM), Some(output)),
            Check::CannotStart(why) => return Err(shell_error(io::Error::other(why))),
        };
        let matched = match (&expected.output_matches, &output) {
            (Some(pattern), Some(output)) => pattern.is_match(output),
            _ => true,
        };
        let output = output.unwrap_or_default();
        log.take(output.as_bytes()).map_err(shell_error)?;
        Ok(Evidence { how, exit, matched, tail: tail(&output), leaky: false })
    }
}

fn ran(how: How, exit: Exit) -> Ran {
    Ran { how, exit, stderr: String::new(), leaky: false, left_running: Vec::new() }
}

fn shell_error(source: io::Error) -> SpawnError {
    SpawnError::Io { program: PathBuf::from("/bin/sh"), source }
}

/// The end of an output, as much of it as evidence keeps.
fn tail(output: &str) -> String {
    let start = output.len().saturating_sub(EVIDENCE_TAIL_BYTES);
    output[output.ceil_char_boundary(start)..].to_owned()
}

#[cfg(test)]
mod tests;
