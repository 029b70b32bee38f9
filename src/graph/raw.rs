//! A graph as a file says it, before any check: every field optional, every word still text.
//!
//! The same types are the normalised graph inside `state.json`: field order here is key order there (FACTS 2.2),
//! and reading ignores keys that a newer program added (DECISIONS 1).

use serde::{Deserialize, Serialize};

/// The top level of a graph file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawGraph {
    /// `name:`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `version:`, as written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `inputs:`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// `concurrency:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
    /// `on_fail:`; the normalised form always has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_fail: Option<String>,
    /// `max_usd:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
    /// `max_executions:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<i64>,
    /// `max_wall:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall: Option<String>,
    /// `model:` for nodes that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `effort:` for nodes that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `setup:` of worktrees whose nodes name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// `nodes:`.
    pub nodes: Vec<RawNode>,
}

/// One entry of `nodes:`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawNode {
    /// `id:`.
    pub id: String,
    /// `type:`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `depends_on:`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// `prompt:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// `cwd:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// `allowed_tools:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// `permission_mode:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// `budget_usd:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// `handoff:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// `success_check:`; always written, if only as `{}`.
    pub success_check: RawSuccessCheck,
    /// `retry:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RawRetry>,
    /// `timeout:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// `agent:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `worktree:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// `feedback:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<RawFeedback>,
    /// `command:`, for `type: command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// `model:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `effort:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `leave_running:`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leave_running: bool,
    /// `setup:`, of the node's worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
}

/// `success_check:`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawSuccessCheck {
    /// `exit_zero:`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exit_zero: bool,
    /// `result_matches:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_matches: Option<String>,
    /// `verify:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<RawVerify>,
}

/// `success_check.verify:`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawVerify {
    /// `command:`.
    pub command: String,
    /// `cwd:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// `timeout:`; the normalised form always has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// `expect_exit:`; 0 is not the same as absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_exit: Option<i64>,
    /// `output_matches:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_matches: Option<String>,
}

/// `retry:`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawRetry {
    /// `max:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// `on:`, always the string key, never a boolean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
}

/// `feedback:`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawFeedback {
    /// `rerun:`.
    pub rerun: String,
    /// `max:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
}
