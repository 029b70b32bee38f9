//! What a later leg of a planned run makes of what the first one left (FACTS 8.15).
//!
//! The run's directory lies where planned nodes could write. So a later leg takes nothing from it that would run by itself:
//! no evidence command, which has to be given again, and no agent or skill, which were staged by a leg that is gone. What is
//! left is held to what any plan is held to, and its ceiling is made anew from it: a file that says more now than when it was
//! written is not believed. A later leg can only ever do less than the one before. The snapshot's own graph stays as it is.

use std::collections::BTreeSet;

use crate::graph::check::{self, Faults};
use crate::graph::node::PermissionMode;
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, NodeId};
use crate::node::policy::{Ceiling, Configuration, Policy};
use crate::plan::attach::{self, AttachError};
use crate::plan::disposition;
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
    /// The run's files hold what no plan may be.
    #[error("its files are no longer those of a plan: {}", .0.join("; "))]
    Altered(Vec<String>),
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
            LaterError::Altered(_) => Some(
                "something wrote into the run's directory; look at it, or plan the goal again".to_owned(),
            ),
            LaterError::Attach(_) | LaterError::Graph(_) => None,
        }
    }
}

/// What a run's files say of its plan.
#[derive(Debug)]
pub struct Kept<'a> {
    /// The graph.
    pub raw: RawGraph,
    /// What each node may do.
    pub ceiling: Ceiling,
    /// The mode of nodes that declare none.
    pub default_mode: PermissionMode,
    /// The inputs that the run has.
    pub inputs: BTreeSet<&'a str>,
}

/// Makes the graph and the ceiling of a later leg.
///
/// # Errors
/// When an evidence command is missing, the one that was given does not fit, or what was kept may not run as a plan.
pub fn later(kept: Kept<'_>, verify: Option<&VerifyCommand>) -> Result<Later, LaterError> {
    let Kept { mut raw, ceiling, default_mode, inputs } = kept;
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
    let bare = check::check(&raw).map_err(|faults| LaterError::Graph(Faults::described(&raw, &faults)))?;
    let inputs = inputs.into_iter().map(str::to_owned).collect();
    let mut altered = disposition::refusals_besides_tools(&raw, &bare, &inputs);
    altered.extend(ceiling.iter().filter_map(|(id, policy)| {
        Some(format!("node \"{id}\": {}", disposition::tools(&policy.allowed_tools)?))
    }));
    if default_mode == PermissionMode::BypassPermissions {
        altered.push(
            "default_permission_mode: bypassPermissions is for nodes that a person has read".to_owned(),
        );
    }
    if !altered.is_empty() {
        return Err(LaterError::Altered(altered));
    }
    let ceiling = anew(&ceiling);
    let (graph, attached) = match verify {
        Some(verify) => attach::attach(&mut raw, &verify.command, verify.timeout)?,
        None if !stripped.is_empty() => return Err(LaterError::Unverified { nodes: stripped }),
        None => (bare, Vec::new()),
    };
    Ok(Later { graph, ceiling, attached, agents, skills })
}

/// The ceiling that the granted tools make, of those nodes that have one. The person's configuration is loaded for all or for
/// none, so one that is said to run without it keeps it from the others.
fn anew(kept: &Ceiling) -> Ceiling {
    let is_loaded = kept.iter().all(|(_, policy)| !policy.is_isolated);
    let configuration = if is_loaded { Configuration::Loaded } else { Configuration::Isolated };
    let policies = kept.iter();
    policies.map(|(id, policy)| (id.clone(), Policy::planned(&policy.allowed_tools, configuration))).collect()
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
    use std::time::Duration;

    const GRAPH: &str = r#"{"nodes":[{"id":"a","prompt":"x","agent":"writer","allowed_tools":["Read"]},
        {"id":"b","prompt":"x","depends_on":["a"],"allowed_tools":["Read"],
        "success_check":{"exit_zero":true,"verify":{"command":"rm -rf /","timeout":"10m0s"}}}]}"#;

    fn id(id: &str) -> NodeId {
        NodeId::parse(id).expect("an id")
    }

    fn isolated() -> Policy {
        Policy::planned(&["Read".to_owned()], Configuration::Isolated)
    }

    fn kept(graph: &str) -> Kept<'static> {
        let mapped = Policy { plugin_dirs: vec!["/run/agents-plugin".into()], ..isolated() };
        let skilled = isolated().with_skills("/run/skills-plugin".into());
        Kept {
            raw: serde_json::from_str(graph).expect("a graph"),
            ceiling: [(id("a"), mapped), (id("b"), skilled)].into_iter().collect(),
            default_mode: PermissionMode::Auto,
            inputs: BTreeSet::new(),
        }
    }

    fn given() -> VerifyCommand {
        VerifyCommand { command: "make test".into(), timeout: Duration::from_secs(60) }
    }

    #[test]
    fn nothing_of_the_runs_files_runs_by_itself() {
        let later = later(kept(GRAPH), Some(&given())).expect("a later leg");
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
            assert_eq!(policy, &isolated(), "{id}");
        }
    }

    #[test]
    fn auto_62_a_command_that_was_there_has_to_be_given_again() {
        let error = later(kept(GRAPH), None).expect_err("a refusal");
        assert!(error.to_string().starts_with("node \"b\" was checked by an evidence command"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--verify-cmd")));
    }

    #[test]
    fn what_no_plan_may_hold_is_not_run_because_a_file_holds_it_now() {
        for (was, is, named) in [
            (r#""id":"a""#, r#""id":"a","permission_mode":"bypassPermissions""#, "permission_mode"),
            (r#""id":"a""#, r#""id":"a","cwd":"/etc""#, "cwd"),
            (r#""id":"a""#, r#""id":"a","model":"x""#, "model"),
            (r#"{"nodes":["#, r#"{"nodes":[{"id":"c","type":"command","command":"id"},"#, "type"),
            (r#"{"nodes":["#, r#"{"nodes":[{"id":"c","type":"gate"},"#, "type"),
            (r#""id":"a""#, r#""id":"a","worktree":"w","setup":"id""#, "setup"),
        ] {
            let error = later(kept(&GRAPH.replacen(was, is, 1)), Some(&given())).expect_err(is);
            assert!(
                matches!(error, LaterError::Altered(_)) && error.to_string().contains(named),
                "{is}: {error}"
            );
        }
        let widened = Kept { default_mode: PermissionMode::BypassPermissions, ..kept(GRAPH) };
        let error = later(widened, Some(&given())).expect_err("a mode");
        assert!(error.to_string().contains("default_permission_mode"), "{error}");
    }

    #[test]
    fn a_ceiling_is_made_anew_of_the_tools_that_were_granted_whatever_else_the_files_say() {
        let run = |a: Policy, b: Option<Policy>| {
            let ceiling = [Some((id("a"), a)), b.map(|b| (id("b"), b))].into_iter().flatten().collect();
            later(Kept { ceiling, ..kept(GRAPH) }, Some(&given()))
        };
        let read = || vec!["Read".to_owned()];
        let lifted = || Policy::granting(read());
        let ceiling = run(lifted(), Some(isolated())).expect("a later leg").ceiling;
        assert!(ceiling.iter().all(|(_, policy)| policy == &isolated()), "{ceiling:?}");
        let ceiling = run(lifted(), Some(lifted())).expect("a later leg").ceiling;
        let loaded = Policy::planned(&read(), Configuration::Loaded);
        assert!(ceiling.iter().all(|(_, policy)| policy == &loaded), "as the person asked: {ceiling:?}");
        let ceiling = run(isolated(), None).expect("a later leg").ceiling;
        assert_eq!(ceiling.policy(&id("b")), None, "who has none is given none");
        for tools in [vec!["Bash".to_owned()], Vec::new()] {
            let error = run(Policy::granting(tools), Some(isolated())).expect_err("no plan grants that");
            assert!(error.to_string().contains("node \"a\": allowed_tools"), "{error}");
        }
    }
}
