//! The wire shape of `state.json` (RUN-FEED "the snapshot", FACTS 6.2, schema 3).
//!
//! Key order is field order. Reading ignores unknown keys and requires the schema exactly.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::graph::{Bounds, bounds};
use crate::record::event::Skipped;
use crate::record::{Record, Usage};
use crate::text::duration;
use crate::text::money::Money;

/// The snapshot's schema number.
pub const SCHEMA: u32 = 3;

/// A whole run, as far as it settled.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The run.
    #[serde(default)]
    pub run_id: String,
    /// `claude`, `codex` or `rehearsal`; absent means `claude`.
    #[serde(default = "claude")]
    pub runtime: String,
    /// What planning cost, in dollars.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub planning_cost_usd: f64,
    /// Whether planning has no known price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planning_cost_unknown: bool,
    /// Tokens of planning.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub planning_usage: Usage,
    /// The graph file as it was typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub graph_source_path: String,
    /// SHA-256 of the file's bytes, hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub graph_sha256: String,
    /// The normalised graph.
    pub graph: Box<RawValue>,
    /// The inputs of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// Whether `--continue-on-fail` was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continue_on_fail: bool,
    /// The permission mode of nodes that declare none; absent means `dontAsk` (FACTS 0.2).
    #[serde(default = "dont_ask")]
    pub default_permission_mode: String,
    /// What each node of a planned graph may do, by node id; absent for a hand-written one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_policies: BTreeMap<String, PolicyState>,
    /// The goal that the run is a cycle of; absent where a goal has one cycle only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalState>,
    /// How the question of build evidence was answered; absent for a hand-written graph, which is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_evidence: Option<EvidenceState>,
    /// What settled, by node id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, Record>,
    /// Where gates stand; always written.
    #[serde(default)]
    pub gate: GateState,
    /// Additive: the directory that the run was started in, absolute (case D1).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    /// Additive: the bounds of the run, as far as its command line set them.
    #[serde(default, skip_serializing_if = "BoundsState::is_none")]
    pub bounds: BoundsState,
    /// Additive: the nodes that never ran, once a leg ended other than paused (DECISIONS 13).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

impl Snapshot {
    /// Whether something in it is written of planned runs alone.
    pub fn was_planned(&self) -> bool {
        self.build_evidence.is_some()
            || self.goal.is_some()
            || self.planning_cost_unknown
            || self.planning_cost_usd > 0.0
            || !self.planning_usage.is_zero()
    }
}

/// What one planned node may do (FACTS 6.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyState {
    /// The rules that allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// The tools that are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The tools that exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Empty where no settings are loaded; absent where the person's are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting_sources: Option<String>,
    /// Whether no MCP server is loaded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict_mcp_config: bool,
    /// Where staged agents and skills lay; no later leg uses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_dirs: Vec<String>,
}

/// Which cycle of which goal a run is (ADR 0011 of the design).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoalState {
    /// The goal, word for word.
    pub text: String,
    /// The cycle, from 1.
    pub cycle: u32,
    /// How many there may be.
    pub max_cycles: u32,
    /// The run of the first cycle, by which the runs of a goal are grouped.
    pub first_run_id: String,
    /// Additive: no cycle begins once the goal has cost this much, in dollars; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
}

/// The question of build evidence, answered when a planned run was started (ADR 0030 of the design).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvidenceState {
    /// `attached`, `declared`, `disclosed` or `none-detected`.
    pub answer: String,
    /// What was typed to give the answer, for the two that a person gives.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared_by: String,
    /// The names of the files by which a build system was known; never a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<String>,
}

/// Bounds on a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoundsState {
    /// Dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
    /// Executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<u32>,
    /// A duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall: Option<String>,
}

impl BoundsState {
    fn is_none(&self) -> bool {
        *self == BoundsState::default()
    }

    /// The bounds as written.
    pub fn of(bounds: Bounds) -> Self {
        BoundsState {
            max_usd: bounds.spend.map(Money::usd),
            max_executions: bounds.executions,
            max_wall: bounds.wall.map(duration::exact),
        }
    }

    /// The bounds as meant; what cannot be read is none.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            spend: self.max_usd.and_then(|usd| bounds::spend(usd).ok()),
            executions: self.max_executions,
            wall: self.max_wall.as_deref().and_then(|text| bounds::wall(text).ok()),
        }
    }
}

/// Where gates stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateState {
    /// The first waiting gate, in file order.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub paused_at: String,
    /// `approve`, `reject` or `pause`, by gate id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decisions: BTreeMap<String, String>,
    /// Additive: every waiting gate, in file order (DECISIONS 25).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
}

fn claude() -> String {
    "claude".to_owned()
}

fn dont_ask() -> String {
    "dontAsk".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &f64) -> bool {
    *n == 0.0
}
