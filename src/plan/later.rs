//! What a later leg of a planned run makes of what the first one left (FACTS 8.15).
//!
//! The run's directory lies where planned nodes could write. So a later leg takes nothing from it that would run by itself:
//! no evidence command, which has to be given again, and no agent or skill, which were staged by a leg that is gone. It can
//! only ever do less than the one before. The snapshot's own graph stays as it is.

use crate::graph::check::{self, Faults};
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, NodeId};
use crate::node::policy::Ceiling;
use crate::plan::attach::{self, AttachError};
use crate::plan::evidence::VERIFY_FLAG;
use crate::plan::verify_flags::VerifyCommand;

/// A planned graph as a later leg runs it.
#[derive(Debug)]
pub struct Later {
    /// The graph, without what the first leg staged, and with the evidence command that was given to this leg.
    pub graph: Graph,
    /// What its nodes may do.
    pub ceiling: Ceiling,
    /// The nodes that the command was attached to.
    pub attached: Vec<NodeId>,
    /// The nodes that ran as an agent, each with its agent.
    pub agents: Vec<(String, String)>,
    /// The nodes that could use skills.
    pub skills: Vec<String>,
}

/// Why a later leg cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LaterError {
    /// The run had an evidence command, and this leg was given none.
    #[error("{} checked by an evidence command, and none is ever taken from a run's files", list(nodes))]
    Unverified {
        /// The nodes that it had been attached to.
        nodes: Vec<String>,
    },
    /// The command that was given has no place.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// What is left is no graph.
    #[error("what is left of the plan is no graph: {0}")]
    Graph(Faults),
}

impl LaterError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            LaterError::Unverified { .. } => Some(format!("give it again: {VERIFY_FLAG} 'COMMAND'")),
            LaterError::Attach(_) | LaterError::Graph(_) => None,
        }
    }
}

/// Makes the graph and the ceiling of a later leg.
///
/// # Errors
/// When an evidence command is missing, or the one that was given does not fit.
pub fn later(
    mut raw: RawGraph,
    ceiling: Ceiling,
    verify: Option<&VerifyCommand>,
) -> Result<Later, LaterError> {
    let mut agents = Vec::new();
    for node in &mut raw.nodes {
        if let Some(agent) = node.agent.take() {
            agents.push((node.id.clone(), agent));
        }
    }
    let is_mapped = |id: &NodeId| agents.iter().any(|(node, _)| node == id.as_str());
    let staged = ceiling.iter().filter(|(id, policy)| !policy.plugin_dirs.is_empty() && !is_mapped(id));
    let skills = staged.map(|(id, _)| id.to_string()).collect();
    let stripped = attach::strip(&mut raw);
    let (graph, attached) = match verify {
        Some(verify) => attach::attach(&mut raw, &verify.command, verify.timeout)?,
        None if !stripped.is_empty() => return Err(LaterError::Unverified { nodes: stripped }),
        None => {
            let graph =
                check::check(&raw).map_err(|faults| LaterError::Graph(Faults::described(&raw, &faults)))?;
            (graph, Vec::new())
        }
    };
    Ok(Later { graph, ceiling: ceiling.without_plugins(), attached, agents, skills })
}

/// `node "a" was`, `nodes "a", "b" were`.
fn list(nodes: &[String]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("{node:?}")).collect();
    match names.as_slice() {
        [one] => format!("node {one} was"),
        many => format!("nodes {} were", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::policy::{Configuration, Policy};
    use std::time::Duration;

    const GRAPH: &str = r#"{"nodes":[{"id":"a","prompt":"x","agent":"writer"},{"id":"b","prompt":"x","depends_on":["a"],
        "success_check":{"exit_zero":true,"verify":{"command":"rm -rf /","timeout":"10m0s"}}}]}"#;

    fn of(verify: Option<&VerifyCommand>) -> Result<Later, LaterError> {
        let raw: RawGraph = serde_json::from_str(GRAPH).expect("a graph");
        let id = |id: &str| NodeId::parse(id).expect("an id");
        let policy = || Policy::planned(&["Read".to_owned()], Configuration::Isolated);
        let mapped = Policy { plugin_dirs: vec!["/run/agents-plugin".into()], ..policy() };
        let skilled = policy().with_skills("/run/skills-plugin".into());
        later(raw, [(id("a"), mapped), (id("b"), skilled)].into_iter().collect(), verify)
    }

    #[test]
    fn nothing_of_the_runs_files_runs_by_itself() {
        let given = VerifyCommand { command: "make test".into(), timeout: Duration::from_secs(60) };
        let later = of(Some(&given)).expect("a later leg");
        let commands: Vec<_> = later
            .graph
            .nodes()
            .iter()
            .map(|node| node.check.verify.as_ref().map(|it| it.command.as_str()))
            .collect();
        assert_eq!(commands, [None, Some("make test")]);
        assert_eq!(later.agents, [("a".to_owned(), "writer".to_owned())]);
        assert_eq!(later.skills, ["b"]);
        for (id, policy) in later.ceiling.iter() {
            assert!(policy.plugin_dirs.is_empty(), "{id}");
            assert_eq!(policy.tools, Some(vec!["Read".to_owned()]), "{id}");
        }
    }

    #[test]
    fn auto_62_a_command_that_was_there_has_to_be_given_again() {
        let error = of(None).expect_err("a refusal");
        assert!(error.to_string().starts_with("node \"b\" was checked by an evidence command"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--verify-cmd")));
    }
}
