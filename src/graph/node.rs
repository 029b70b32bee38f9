//! A checked node: closed sets are enums, patterns are compiled, times are parsed.

use std::time::Duration;

use crate::graph::{Cause, NodeId, NodeIx};
use crate::text::money::Money;
use crate::text::regexp::Pattern;

/// How long a node may run when it declares no `timeout:`.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(20 * 60);
/// How long a check's command may run when it declares no timeout.
pub const VERIFY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(2 * 60);
/// The longest timeout that a check's command may declare.
pub const VERIFY_TIMEOUT_MAX: Duration = Duration::from_secs(10 * 60);

/// `type:` of a prompt node, the default.
pub const KIND_MODEL: &str = "claude-run";
/// `type:` of a human decision.
pub const KIND_GATE: &str = "gate";
/// `type:` of a shell command.
pub const KIND_COMMAND: &str = "command";
/// The words of `type:`, in the order in which messages list them.
pub const KINDS: [&str; 3] = [KIND_MODEL, KIND_GATE, KIND_COMMAND];

/// The most further attempts and feedback rounds that a node may ask for (DECISIONS 3).
pub const REPEATS_MAX: u32 = 100;

/// A node of a checked graph. Text fields named *template* still hold `{{ … }}` tokens.
#[derive(Debug)]
pub struct Node {
    /// The node's id.
    pub id: NodeId,
    /// What the node does.
    pub work: Work,
    /// The nodes it waits for, in file order of the list, each once.
    pub parents: Vec<NodeIx>,
    /// `cwd:`, a template; `None` runs in the run's own directory.
    pub cwd: Option<String>,
    /// `worktree:`, the name of the lane's managed git worktree.
    pub worktree: Option<String>,
    /// `timeout:`; `None` means [`TIMEOUT_DEFAULT`].
    pub timeout: Option<Duration>,
    /// `retry:`.
    pub retry: Retry,
    /// `success_check:`.
    pub check: SuccessCheck,
    /// `feedback:`.
    pub feedback: Option<Feedback>,
    /// `leave_running:`, for a node whose job is to start a server (DECISIONS 22).
    pub leave_running: bool,
    /// `setup:`, a command that prepares the node's worktree; `None` takes the graph's.
    pub setup: Option<String>,
}

impl Node {
    /// The templates that are resolved when the node runs, each with its key; none for a gate, which runs nothing.
    pub fn templates(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = match &self.work {
            Work::Model(model) => Some(("prompt", model.prompt.as_str())),
            Work::Command(command) => Some(("command", command.as_str())),
            Work::Gate => None,
        };
        let runs = own.is_some();
        let cwd = self.cwd.as_deref().map(|cwd| ("cwd", cwd));
        let verify = self.check.verify.as_ref();
        let command = verify.map(|verify| ("success_check.verify.command", verify.command.as_str()));
        let verify_cwd =
            verify.and_then(|verify| verify.cwd.as_deref()).map(|cwd| ("success_check.verify.cwd", cwd));
        [own, cwd, command, verify_cwd].into_iter().flatten().filter(move |_| runs)
    }

    /// Whether the node runs in a worktree; a gate runs nowhere.
    pub fn has_lane(&self) -> bool {
        self.worktree.is_some() && !matches!(self.work, Work::Gate)
    }

    /// Whether a shell runs for this node, so that variables are exported for it (DECISIONS 8).
    pub fn runs_a_shell(&self) -> bool {
        match self.work {
            Work::Gate => false,
            Work::Command(_) => true,
            Work::Model(_) => self.check.verify.is_some() || self.setup.is_some(),
        }
    }
}

/// What a node does.
#[derive(Debug)]
pub enum Work {
    /// `type: claude-run`, the default: a prompt answered by the run's runtime.
    Model(Box<Model>),
    /// `type: command`: a shell command that the engine runs itself; a template.
    Command(String),
    /// `type: gate`: a human decision.
    Gate,
}

/// The fields of a prompt node.
#[derive(Debug)]
pub struct Model {
    /// `prompt:`, a template; may be empty.
    pub prompt: String,
    /// `allowed_tools:`; `None` when absent, which is not the same as `[]`.
    pub allowed_tools: Option<Vec<String>>,
    /// `permission_mode:`; `None` takes the run's default.
    pub permission_mode: Option<PermissionMode>,
    /// `budget_usd:`; 0 and absent are `None`.
    pub budget: Option<Money>,
    /// `handoff:`.
    pub handoff: Handoff,
    /// `agent:`, passed to claude unread.
    pub agent: Option<String>,
    /// `model:` of the node itself.
    pub model: Option<String>,
    /// `effort:` of the node itself.
    pub effort: Option<String>,
}

/// `permission_mode:`, the set that the claude CLI knows (DESIGN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// Edits are accepted without asking.
    AcceptEdits,
    /// The CLI's own judge decides what no rule settles; the default of a run.
    Auto,
    /// Nothing is asked.
    BypassPermissions,
    /// What no rule allows is denied.
    DontAsk,
    /// Everything is asked, which an unattended node cannot answer.
    Manual,
    /// Reads only.
    Plan,
}

impl PermissionMode {
    /// All modes, in the order in which messages list them.
    pub const ALL: [PermissionMode; 6] = [
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
        PermissionMode::BypassPermissions,
        PermissionMode::DontAsk,
        PermissionMode::Manual,
        PermissionMode::Plan,
    ];

    /// The word in graphs and on the claude command line.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionMode::AcceptEdits => "acceptEdits",
            PermissionMode::Auto => "auto",
            PermissionMode::BypassPermissions => "bypassPermissions",
            PermissionMode::DontAsk => "dontAsk",
            PermissionMode::Manual => "manual",
            PermissionMode::Plan => "plan",
        }
    }

    /// Reads a word; the spelling is exact.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// `handoff:`, how a prompt node is handed its parent's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handoff {
    /// A fresh session; parents are read as artifacts.
    Artifact,
    /// The single parent's session is resumed.
    Session,
}

impl Handoff {
    /// Both, in the order in which messages list them.
    pub const ALL: [Handoff; 2] = [Handoff::Artifact, Handoff::Session];

    /// The word in graphs.
    pub fn as_str(self) -> &'static str {
        match self {
            Handoff::Artifact => "artifact",
            Handoff::Session => "session",
        }
    }
}

/// `retry:`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// Further attempts after the first.
    pub max: u32,
    /// The causes that earn one.
    pub on: Vec<Cause>,
}

/// `success_check:`, a conjunction of predicates (DESIGN "Success checks").
#[derive(Debug, Default)]
pub struct SuccessCheck {
    /// `exit_zero:`.
    pub exit_zero: bool,
    /// `result_matches:`, over the whole raw reply.
    pub result_matches: Option<Pattern>,
    /// `verify:`, a command that the engine runs.
    pub verify: Option<Verify>,
}

impl SuccessCheck {
    /// Whether the exit code is looked at: it is named, or nothing else is (FACTS 7.2).
    pub fn judges_exit(&self) -> bool {
        self.exit_zero || (self.result_matches.is_none() && self.verify.is_none())
    }
}

/// `success_check.verify:`.
#[derive(Debug)]
pub struct Verify {
    /// The shell command, a template.
    pub command: String,
    /// Its directory, a template; `None` is the node's own.
    pub cwd: Option<String>,
    /// Its bound.
    pub timeout: Duration,
    /// The exit code that passes.
    pub expect_exit: i32,
    /// A pattern over everything it printed, both streams together.
    pub output_matches: Option<Pattern>,
}

/// `feedback:`, an arc back to an ancestor (ADR 0010).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Where the loop's body begins.
    pub rerun: NodeIx,
    /// How many rounds at most.
    pub max: u32,
}
