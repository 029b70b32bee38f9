//! The person's agents and skills for planned nodes (FACTS 8.6 to 8.8, ADR 0017 and 0022 of the design).
//!
//! Planned nodes load nobody's settings, and with them no agent and no skill. [`Staging::plan`] looks at the person's
//! own, once, after the plan was checked: a node whose name matches one agent's runs as it, every other node may use all
//! skills. What is read then is held in memory and is what every spawn of the leg is given ([`copies`]); a later leg has
//! no such memory, trusts nothing on disk and is given nothing. [`screen`] says all of it before anything is
//! spent. Knows neither the planner nor the screen itself.

pub mod agents;
pub mod copies;
mod front_matter;
pub mod mapping;
pub mod plugin;
mod reading;
pub mod screen;
pub mod skills;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;

use std::path::Path;

use self::agents::Agent;
use self::mapping::Match;
use self::plugin::{Found, Plugin};
use self::skills::Corpus;
use crate::graph::check::{self, Faults};
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, NodeId, Work};
use crate::node::policy::Ceiling;
use crate::record::RunDir;

/// What is added to the prompt of a node that may use skills, after a blank line. It names none and no place.
pub const ACTIVATION: &str =
    "A corpus of procedures is available through the Skill tool; consult it if one fits this task.";

const AGENTS_NAME: &str = "oh-my-graph-staged-agents";
const SKILLS_NAME: &str = "oh-my-graph-staged-skills";

/// What the person said about their agents and skills.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// `--no-agent-mapping`.
    pub without_agents: bool,
    /// `--no-agent NAME`, as typed.
    pub declined: Vec<String>,
    /// `--no-skill-activation`.
    pub without_skills: bool,
    /// `--accept-loaded-user-config`: claude finds both by itself then, and staging could promise nothing.
    pub loaded: bool,
    /// Why no copy can be made of either here, if that was tried.
    pub unable: Option<String>,
}

/// Which nodes of a plan are given what.
#[derive(Debug)]
pub struct Staging {
    /// The matches of names, in the order of the graph; none when nothing was scanned.
    matches: Vec<Match>,
    agents: Vec<Agent>,
    /// What `--no-agent` named and no agent is called.
    strangers: Vec<String>,
    agents_plugin: Option<Plugin>,
    /// What a scan found; `None` when there was none.
    corpus: Option<Corpus>,
    skills_plugin: Option<Plugin>,
    /// The nodes that may use skills, in the order of the graph, or why none may.
    activated: Result<Vec<NodeId>, String>,
}

impl Staging {
    /// Decides for the nodes of `graph`, a plan that was checked. `config` is where claude keeps the person's own files,
    /// `~/.claude`, if that is known. Reads there and writes nowhere.
    pub fn plan(config: Option<&Path>, graph: &Graph, choice: &Choice) -> Self {
        let directory = config
            .filter(|_| !choice.without_agents && !choice.loaded && choice.unable.is_none())
            .map(|config| config.join("agents"));
        let agents = directory.as_deref().map(agents::scan).unwrap_or_default();
        let is_known = |name: &str| agents.iter().any(|agent| mapping::is_named(&agent.name, name));
        let strangers = choice.declined.iter().filter(|name| directory.is_some() && !is_known(name));
        let matches = mapping::matches(graph, &agents, &choice.declined);
        let mut staging = Staging {
            strangers: strangers.cloned().collect(),
            agents_plugin: plugin_of(&agents, &matches),
            agents,
            matches,
            corpus: None,
            skills_plugin: None,
            activated: Ok(Vec::new()),
        };
        staging.activated = staging.skilled(config, graph, choice);
        staging
    }

    /// The nodes that may use skills.
    fn skilled(
        &mut self,
        config: Option<&Path>,
        graph: &Graph,
        choice: &Choice,
    ) -> Result<Vec<NodeId>, String> {
        if choice.without_skills {
            return Err("--no-skill-activation was given".to_owned());
        }
        if choice.loaded {
            return Err("claude finds your own by itself, since your configuration is loaded".to_owned());
        }
        if let Some(why) = &choice.unable {
            return Err(format!("neither they nor agents of yours can be given to a node: {why}"));
        }
        let config = config.ok_or("where your home directory is cannot be told")?;
        let mut corpus = Corpus::scan(&config.join("skills"))?;
        let found = std::mem::take(&mut corpus.found);
        let is_empty = corpus.skills.is_empty();
        self.corpus = Some(corpus);
        if is_empty {
            return Err("none of yours can be used".to_owned());
        }
        let nodes: Vec<NodeId> =
            model_nodes(graph).filter(|id| self.agent_of(id).is_none()).cloned().collect();
        if nodes.is_empty() {
            return Err("every node runs as an agent of yours, and those are given none".to_owned());
        }
        self.skills_plugin = Some(Plugin::new(SKILLS_NAME, "The skills of whoever started this run.", found));
        Ok(nodes)
    }

    /// The agent that `node` runs as, if any: its `agent:`.
    pub fn agent_of(&self, node: &NodeId) -> Option<&str> {
        let found = self.applied().find(|(id, _)| *id == node)?;
        Some(&found.1.name)
    }

    /// The nodes that run as an agent, in the order of the graph, with their agents.
    pub fn applied(&self) -> impl Iterator<Item = (&NodeId, &Agent)> {
        let applied = self.matches.iter().filter(|found| found.refused.is_none());
        applied.map(|found| (&found.node, &self.agents[found.agent]))
    }

    /// The nodes whose prompts are to end in [`ACTIVATION`], in the order of the graph.
    pub fn activated(&self) -> &[NodeId] {
        self.activated.as_deref().unwrap_or_default()
    }

    /// Writes the agents into `raw`, the plan as it is kept.
    pub fn map(&self, raw: &mut RawGraph) {
        for node in &mut raw.nodes {
            let agent = NodeId::parse(&node.id).and_then(|id| self.agent_of(&id).map(str::to_owned));
            node.agent = agent.or(node.agent.take());
        }
    }

    /// The graph of `raw` as it runs: the prompts of nodes that may use skills say so. What is kept does not, since who
    /// runs that again has no such nodes.
    ///
    /// # Errors
    /// When it is no graph.
    pub fn activate(&self, raw: &RawGraph) -> Result<Graph, Faults> {
        let mut raw = raw.clone();
        let is_activated = |id: &str| self.activated().iter().any(|node| node.as_str() == id);
        for node in raw.nodes.iter_mut().filter(|node| is_activated(&node.id)) {
            if let Some(prompt) = &mut node.prompt {
                *prompt = format!("{prompt}\n\n{ACTIVATION}");
            }
        }
        check::check(&raw).map_err(|faults| Faults::described(&raw, &faults))
    }

    /// Writes what is given into the ceiling of a run in `dir`.
    pub fn apply(&self, ceiling: &mut Ceiling, dir: &RunDir) {
        for (node, _) in self.applied() {
            if let Some(policy) = ceiling.policy_mut(node) {
                policy.plugin_dirs.push(dir.agents_plugin());
            }
        }
        for node in self.activated() {
            if let Some(policy) = ceiling.policy_mut(node) {
                *policy = std::mem::take(policy).with_skills(dir.skills_plugin());
            }
        }
    }
}

fn model_nodes(graph: &Graph) -> impl Iterator<Item = &NodeId> {
    graph.nodes().iter().filter(|node| matches!(node.work, Work::Model(_))).map(|node| &node.id)
}

/// The plugin of the agents that are applied, each once.
fn plugin_of(agents: &[Agent], matches: &[Match]) -> Option<Plugin> {
    let applied = |at: &usize| matches.iter().any(|found| found.agent == *at && found.refused.is_none());
    let found: Vec<Found> = (0..agents.len())
        .filter(applied)
        .filter_map(|at| {
            let agent = &agents[at];
            Some(Found {
                source: agent.path.clone(),
                rel: format!("agents/{}.md", agent.name),
                bytes: agent.bytes.clone()?,
                runnable: false,
                definition: true,
            })
        })
        .collect();
    (!found.is_empty()).then(|| {
        Plugin::new(AGENTS_NAME, "The agents of whoever started this run that its plan uses.", found)
    })
}
