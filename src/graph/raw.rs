//! A graph as a file says it, before any check: every field optional, every word still text.
//!
//! The text above a field is what an editor shows for its key, through [`crate::graph::schema`].
//!
//! The same types are the normalised graph inside `state.json`: field order here is key order there (FACTS 2.2),
//! and reading ignores keys that a newer program added (DECISIONS 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A graph of agent work for omg.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RawGraph {
    /// What the graph is called, on screens and in listings.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The graph's own version; kept as written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The names that `--input NAME=VALUE` may give; prompts say `{{ inputs.NAME }}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// How many nodes run at the same time; 0 means the default, more than 10 counts as 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
    /// What a failed node does: `halt` ends the run, `continue` leaves out only what depends on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_fail: Option<String>,
    /// Pauses the run before it spends more dollars than this, all legs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
    /// Pauses the run before it executes nodes more often than this, all legs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<i64>,
    /// Starts no more nodes of a leg after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall: Option<String>,
    /// The model of prompt nodes that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort of prompt nodes that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Shell command that prepares each fresh worktree whose nodes name none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The nodes, in the order in which screens list them.
    pub nodes: Vec<RawNode>,
}

/// One node of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "node")]
pub struct RawNode {
    /// The node's name: letters, digits, `.`, `_` and `-`, a letter or digit first.
    pub id: String,
    /// What the node does: a prompt (`claude-run`), a shell `command`, or a `gate` where a person decides.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The nodes that must pass before this one starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What the model is asked; a template with `{{ inputs.NAME }}`, `{{ artifacts.ID }}` and `{{ feedback.ID }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The directory that the node runs in; a template, relative to where omg was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The tools that the model may use without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// How claude treats a tool that no rule settles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The most that one invocation may cost, in dollars; 0 is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// `artifact` begins a fresh session; `session` resumes that of the only parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// What must hold for a PASS; without it, exit code 0.
    pub success_check: RawSuccessCheck,
    /// Further attempts after a failure with one of the named causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RawRetry>,
    /// How long one attempt may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// One of your own claude agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The managed git worktree that the node runs in; nodes that name the same one share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Runs a part of the graph again when this node is judged to fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<RawFeedback>,
    /// The shell command of a `type: command` node; a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The model, as the CLI names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort, as the CLI names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// For a node whose job is to start a server: what it leaves behind stays after a PASS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leave_running: bool,
    /// Shell command that prepares the node's fresh worktree; no template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
}

/// What must hold for a PASS; everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "success_check")]
pub struct RawSuccessCheck {
    /// The exit code must be 0, also where another check is given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exit_zero: bool,
    /// A pattern (RE2) that the whole reply must match somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_matches: Option<String>,
    /// A command that the engine runs itself and whose exit code it believes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<RawVerify>,
}

/// A command that the engine runs to see for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "verify")]
pub struct RawVerify {
    /// The shell command; a template.
    pub command: String,
    /// Its directory; a template, the node's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How long it may run, at most 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The exit code that passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_exit: Option<i64>,
    /// A pattern (RE2) that what it printed must match somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_matches: Option<String>,
}

/// Further attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "retry")]
pub struct RawRetry {
    /// How many further attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// The causes that earn one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
}

/// A way back to an ancestor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "feedback")]
pub struct RawFeedback {
    /// The ancestor where the loop begins.
    pub rerun: String,
    /// How often the loop may run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
}
