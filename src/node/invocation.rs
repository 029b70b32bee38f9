//! What a runtime is asked, and what it answers.

use std::path::PathBuf;
use std::time::Duration;

use crate::graph::node::PermissionMode;
use crate::graph::{Graph, NodeId};
use crate::lint::Advice;
use crate::node::policy::Policy;
use crate::process::{Cancel, Exit};
use crate::text::money::{Cost, Money};
use crate::text::usage::Usage;

/// The word that marks the children of one attempt (DECISIONS 21).
pub(crate) fn mark(node: &NodeId, attempt: u32) -> String {
    format!("{node}/{attempt}")
}

/// One paid invocation of a model, as a value.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The node.
    pub node: NodeId,
    /// The attempt, from 0.
    pub attempt: u32,
    /// The prompt, tokens resolved.
    pub prompt: String,
    /// The directory.
    pub cwd: PathBuf,
    /// Whether a session is begun or gone on with.
    pub session: Session,
    /// The permission mode, the run's default filled in.
    pub permission_mode: PermissionMode,
    /// What it may do.
    pub policy: Policy,
    /// `budget_usd:`.
    pub budget: Option<Money>,
    /// `agent:`.
    pub agent: Option<String>,
    /// The model, the graph's default filled in.
    pub model: Option<String>,
    /// The effort, the graph's default filled in.
    pub effort: Option<String>,
    /// The bound on the whole invocation.
    pub timeout: Duration,
    /// Whether what it leaves running is left running.
    pub leave_running: bool,
}

#[cfg(test)]
impl Invocation {
    /// One with nothing special about it, for tests to vary.
    pub(crate) fn plain(node: &str) -> Self {
        Invocation {
            node: NodeId::parse(node).expect("an id"),
            attempt: 0,
            prompt: "Do it.".into(),
            cwd: "/srv".into(),
            session: Session::Fresh(None),
            permission_mode: PermissionMode::Auto,
            policy: Policy::default(),
            budget: None,
            agent: None,
            model: None,
            effort: None,
            timeout: Duration::from_secs(60),
            leave_running: false,
        }
    }
}

/// The session of an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// A fresh one; the id is named here by a runtime that chooses it before the spawn.
    Fresh(Option<String>),
    /// A parent's, gone on with.
    Resume(String),
}

/// What came of an invocation. The charge and the usage are of this invocation alone.
#[derive(Clone, Debug)]
pub struct Invoked {
    /// How it ended.
    pub end: End,
    /// The reply's text, possibly empty.
    pub reply: String,
    /// The session or thread that answered, if known.
    pub session: Option<String>,
    /// What it cost.
    pub charge: Cost,
    /// Its tokens.
    pub usage: Usage,
    /// The tail of standard error.
    pub stderr: String,
    /// Whether a descendant held the output open.
    pub leaky: bool,
    /// The pids left running on purpose.
    pub left_running: Vec<u32>,
    /// Things a person should hear of, such as a price that cannot be.
    pub warnings: Vec<String>,
}

impl Invoked {
    /// An invocation that never came to be: nothing said, nothing paid.
    pub fn unpaid(end: End) -> Self {
        Invoked {
            end,
            reply: String::new(),
            session: None,
            charge: Cost::ZERO,
            usage: Usage::default(),
            stderr: String::new(),
            leaky: false,
            left_running: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The model answered; the exit is for the check to judge, `note` says what the CLI said about it.
    Replied {
        /// The exit.
        exit: Exit,
        /// The CLI's own words on an exit that is not 0, one line.
        note: String,
    },
    /// The CLI reported an error instead of an answer (DECISIONS 11).
    Reported {
        /// The exit.
        exit: Exit,
        /// Its words, one line.
        cause: String,
    },
    /// The subscription's limit is spent (DECISIONS 18).
    Limited {
        /// The CLI's words, one line.
        cause: String,
        /// When it ends, in the CLI's words.
        resets: Option<String>,
    },
    /// The CLI stopped at the node's budget.
    OverBudget {
        /// The CLI's words, one line.
        cause: String,
    },
    /// What it printed could not be read, or the reply was empty.
    Unreadable(String),
    /// It could not be started, or broke down in a way that is not the node's.
    Broken(String),
    /// Its own time ran out.
    TimedOut,
    /// The run's cancellation ended it.
    Cancelled,
}

/// What answers a prompt. One implementation a file in [`crate::node::runtime`].
pub trait Runtime: Send + Sync {
    /// The word in `state.json`: `claude`, `codex`, `rehearsal`.
    fn name(&self) -> &'static str;

    /// The id of a fresh session when the runtime chooses it before the spawn, `None` when the CLI tells it later.
    fn fresh_session(&self) -> Option<String>;

    /// Whether the CLI tells the id of its session only once it runs, so that a start is announced then.
    fn announces_late(&self) -> bool {
        false
    }

    /// What a person should hear, or fix, before anything is paid.
    fn preflight(&self, graph: &Graph) -> Preflight;

    /// Runs one invocation to its end. `announce` hears the session id of a runtime that learns it while running,
    /// once, before any reply.
    fn invoke(&self, invocation: &Invocation, cancel: &Cancel, announce: &mut dyn FnMut(&str)) -> Invoked;

    /// Tidies up after the last invocation of a leg.
    fn close(&self) {}
}

/// What a runtime says of a graph before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preflight {
    /// Why the graph cannot run here; nothing is started when there is one.
    pub refusals: Vec<String>,
    /// What may surprise about the graph on this runtime.
    pub advice: Vec<Advice>,
    /// What may surprise about this machine.
    pub warnings: Vec<String>,
    /// Lines that every run on this runtime is told.
    pub disclosures: Vec<String>,
}
