//! What one invocation of a model may do, as one value (DESIGN "Auto mode", ADR 0004, 0022, 0032).
//!
//! A hand-written node's policy holds its grants alone: it runs under the person's own settings. A planned node's has
//! five layers, each a flag of the CLI, so that a wrong assumption about one of them leaves the others standing:
//!
//! 1. isolation: no settings file of the user, the project or the directory is loaded;
//! 2. grant: the rules that allow;
//! 3. narrowing: the tools that exist at all;
//! 4. MCP: no server but those that were named, which are none;
//! 5. residual: the tools that are refused whatever else says yes.
//!
//! The permission mode, which settles what no rule does, is another axis and stands on the invocation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::graph::NodeId;

/// The tools that can be refused by name, in the order in which they are (FACTS 8.1).
pub const DENIABLE: [&str; 9] =
    ["Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "WebFetch", "WebSearch", "Task", "Agent"];
/// What a judge of material is denied besides: it has been given everything that it may look at.
const READING: [&str; 3] = ["Read", "Glob", "Grep"];
/// The tool that uses skills. No plan may ask for it; it comes with a staged corpus alone.
pub const SKILL: &str = "Skill";

/// What one invocation may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Layer 2, the rules that allow: `Read`, `Bash(git *)`.
    pub allowed_tools: Vec<String>,
    /// Layer 5, the tools that are refused, by bare name.
    pub disallowed_tools: Vec<String>,
    /// Layer 3, the tools that exist, by bare name; `None` leaves all of the CLI's.
    pub tools: Option<Vec<String>>,
    /// Layer 1, whether no settings file is loaded.
    pub is_isolated: bool,
    /// Layer 4, whether no MCP server is.
    pub has_strict_mcp: bool,
    /// Directories that bring definitions of agents and skills, and grant nothing. What a spawn is given is a copy of its
    /// own where a [`Provision`](crate::node::Provision) makes one.
    pub plugin_dirs: Vec<PathBuf>,
}

/// Whose configuration of the CLI an invocation runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// Nobody's: layers 1 and 4 hold.
    Isolated,
    /// The person's own, who asked for it (ADR 0032): layers 1 and 4 are lifted, together.
    Loaded,
}

impl Policy {
    /// The policy of a hand-written node: its grants.
    pub fn granting(allowed_tools: Vec<String>) -> Self {
        Policy { allowed_tools, ..Policy::default() }
    }

    /// The policy of a planned node that declared `allowed_tools`.
    pub fn planned(allowed_tools: &[String], configuration: Configuration) -> Self {
        let declared = |tool: &&str| allowed_tools.iter().any(|declared| bare(declared) == *tool);
        let mut tools: Vec<String> = Vec::new();
        for name in allowed_tools.iter().map(|declared| bare(declared)) {
            if !tools.iter().any(|tool| tool == name) {
                tools.push(name.to_owned());
            }
        }
        let is_isolated = configuration == Configuration::Isolated;
        Policy {
            allowed_tools: allowed_tools.to_vec(),
            disallowed_tools: words(DENIABLE.iter().filter(|tool| !declared(tool))),
            tools: Some(tools),
            is_isolated,
            has_strict_mcp: is_isolated,
            plugin_dirs: Vec::new(),
        }
    }

    /// The stance of who plans and who routes: reads under the person's own settings, changes nothing.
    pub fn planner() -> Self {
        Policy { disallowed_tools: words(&DENIABLE), ..Policy::default() }
    }

    /// The stance of who judges a run: no tool at all, nobody's settings, since what it reads was written by models.
    pub fn assessor() -> Self {
        Policy {
            disallowed_tools: words(DENIABLE.iter().chain(&READING)),
            tools: Some(Vec::new()),
            is_isolated: true,
            has_strict_mcp: true,
            ..Policy::default()
        }
    }

    /// The same with skills in reach, which `plugin_dir` brings.
    #[must_use]
    pub fn with_skills(mut self, plugin_dir: PathBuf) -> Self {
        self.plugin_dirs.push(plugin_dir);
        if let Some(tools) = &mut self.tools {
            tools.push(SKILL.to_owned());
        }
        self
    }

    /// The same without anything that was staged: what a later leg is given, since only the leg that planned held what was
    /// staged, and whatever lies on disk a node could have written (ADR 0017 of the design).
    #[must_use]
    pub fn without_plugins(mut self) -> Self {
        if std::mem::take(&mut self.plugin_dirs).is_empty() {
            return self;
        }
        if let Some(tools) = &mut self.tools {
            tools.retain(|tool| tool != SKILL);
        }
        self
    }
}

/// The policies of a planned graph, one a node. A node that has none is not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ceiling(BTreeMap<NodeId, Policy>);

impl Ceiling {
    /// The policy of `node`.
    pub fn policy(&self, node: &NodeId) -> Option<&Policy> {
        self.0.get(node)
    }

    /// The policy of `node`, to be changed.
    pub fn policy_mut(&mut self, node: &NodeId) -> Option<&mut Policy> {
        self.0.get_mut(node)
    }

    /// Every node's, in id order.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeId, &Policy)> {
        self.0.iter()
    }

    /// The same without anything that was staged.
    #[must_use]
    pub fn without_plugins(self) -> Self {
        self.0.into_iter().map(|(id, policy)| (id, policy.without_plugins())).collect()
    }

    /// Whether any node runs under the person's own configuration.
    pub fn is_loaded(&self) -> bool {
        self.0.values().any(|policy| !policy.is_isolated)
    }
}

impl FromIterator<(NodeId, Policy)> for Ceiling {
    fn from_iter<I: IntoIterator<Item = (NodeId, Policy)>>(policies: I) -> Self {
        Ceiling(policies.into_iter().collect())
    }
}

/// `Bash` of `Bash(git *)`.
fn bare(tool: &str) -> &str {
    tool.split('(').next().unwrap_or(tool)
}

fn words<'w>(tools: impl IntoIterator<Item = &'w &'static str>) -> Vec<String> {
    tools.into_iter().map(|tool| (*tool).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(tools: &[&str]) -> Policy {
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        Policy::planned(&tools, Configuration::Isolated)
    }

    #[test]
    fn a_tool_exists_for_a_planned_node_once_and_only_if_declared() {
        let policy = planned(&["Bash(git *)", "Read", "Bash(make *)"]);
        assert_eq!(policy.tools, Some(vec!["Bash".to_owned(), "Read".to_owned()]));
        assert_eq!(
            policy.disallowed_tools,
            ["Edit", "Write", "MultiEdit", "NotebookEdit", "WebFetch", "WebSearch", "Task", "Agent"]
        );
    }

    #[test]
    fn the_opt_in_lifts_two_layers_and_no_other() {
        let tools = ["Read".to_owned()];
        let loaded = Policy::planned(&tools, Configuration::Loaded);
        let lifted = Policy { is_isolated: false, has_strict_mcp: false, ..planned(&["Read"]) };
        assert_eq!(loaded, lifted);
    }

    #[test]
    fn a_later_leg_loses_what_was_staged_and_keeps_the_rest() {
        let staged = planned(&["Read"]).with_skills("/run/skills-plugin".into());
        assert_eq!(staged.tools, Some(vec!["Read".to_owned(), "Skill".to_owned()]));
        assert_eq!(staged.without_plugins(), planned(&["Read"]));
    }
}
