//! What a leg of a planned run is told besides its graph: the ceiling, and how the plan came to be.
//!
//! The shapes that `state.json` keeps of it are the record's; this is where they become what a leg runs under, and back.

use std::collections::BTreeMap;

use crate::graph::NodeId;
use crate::node::policy::{Ceiling, Policy};
use crate::record::snapshot::{EvidenceState, GoalState, PolicyState};
use crate::record::{Snapshot, Usage};
use crate::text::money::{Cost, Money};

/// What makes a run a planned one.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// What each node may do.
    pub ceiling: Ceiling,
    /// What planning cost, and its tokens.
    pub planning: (Cost, Usage),
    /// How the question of build evidence was answered.
    pub evidence: Option<EvidenceState>,
    /// The goal that the run is a cycle of, if it may have several.
    pub goal: Option<GoalState>,
}

impl Planned {
    /// What the run of `snapshot` was planned as; `None` for a hand-written graph.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        if snapshot.tool_policies.is_empty() {
            return None;
        }
        let policies = snapshot.tool_policies.iter();
        let ceiling = policies.filter_map(|(id, state)| Some((NodeId::parse(id)?, policy(state)))).collect();
        let cost = Cost {
            known: Money::from_usd(snapshot.planning_cost_usd).unwrap_or(Money::ZERO),
            unknown: u32::from(snapshot.planning_cost_unknown),
        };
        let evidence = snapshot.build_evidence.clone();
        let goal = snapshot.goal.clone();
        Some(Planned { ceiling, planning: (cost, snapshot.planning_usage), evidence, goal })
    }

    /// The policies as `state.json` keeps them.
    pub(super) fn policies(&self) -> BTreeMap<String, PolicyState> {
        self.ceiling.iter().map(|(id, policy)| (id.to_string(), state(policy))).collect()
    }
}

fn state(policy: &Policy) -> PolicyState {
    PolicyState {
        allowed_tools: policy.allowed_tools.clone(),
        disallowed_tools: policy.disallowed_tools.clone(),
        tools: policy.tools.clone(),
        setting_sources: policy.is_isolated.then(String::new),
        strict_mcp_config: policy.has_strict_mcp,
        plugin_dirs: policy.plugin_dirs.iter().map(|dir| dir.to_string_lossy().into_owned()).collect(),
    }
}

/// Sources that somebody named are no reason to load any: only a key that is not there says that the person agreed.
fn policy(state: &PolicyState) -> Policy {
    Policy {
        allowed_tools: state.allowed_tools.clone(),
        disallowed_tools: state.disallowed_tools.clone(),
        tools: state.tools.clone(),
        is_isolated: state.setting_sources.is_some(),
        has_strict_mcp: state.strict_mcp_config,
        plugin_dirs: state.plugin_dirs.iter().map(Into::into).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::policy::Configuration;

    #[test]
    fn a_policy_survives_the_snapshot() {
        let tools = ["Read".to_owned(), "Bash(git *)".to_owned()];
        let isolated = Policy::planned(&tools, Configuration::Isolated);
        for before in [
            isolated.clone(),
            Policy::planned(&tools, Configuration::Loaded),
            isolated.with_skills("/run/skills-plugin".into()),
            Policy::assessor(),
        ] {
            let json = serde_json::to_string(&state(&before)).expect("a policy is JSON");
            let after: PolicyState = serde_json::from_str(&json).expect("it was just written");
            assert_eq!(policy(&after), before, "{json}");
        }
    }

    #[test]
    fn isolation_is_written_as_an_empty_word_and_its_absence_as_nothing() {
        let json = |configuration| {
            serde_json::to_string(&state(&Policy::planned(&["Read".to_owned()], configuration)))
                .expect("a policy is JSON")
        };
        assert!(json(Configuration::Isolated).contains(r#""setting_sources":"","strict_mcp_config":true"#));
        let loaded = json(Configuration::Loaded);
        assert!(!loaded.contains("setting_sources") && !loaded.contains("strict_mcp"), "{loaded}");
    }
}
