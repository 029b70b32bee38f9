//! What holds of every planner's reply, whatever is in it: a plan that is taken lies within its ceiling.
//!
//! The fuzzer looks for bytes that break it; `tests/ceiling.rs` has graphs that are changed at random, and the replies that
//! are kept in `replies/`.

use omg::graph::node::PermissionMode;
use omg::graph::{Work, from_snapshot};
use omg::node::policy::{Configuration, DENIABLE, Policy};
use omg::plan::disposition::{RETRIES_MAX, ROUNDS_MAX, TOOLS};
use omg::plan::reply::{Accepted, Rejected, Terms, read};

/// Reads `reply`; whether it is a plan.
///
/// # Panics
/// When a plan is taken that may do more than a plan may, or a refusal says nothing.
pub(crate) fn holds(reply: &str) -> bool {
    match read(reply, &terms()) {
        Ok(accepted) => {
            is_within(&accepted);
            let loaded = read(reply, &Terms { configuration: Configuration::Loaded, ..terms() });
            is_lifted(&accepted, &loaded.expect("whose configuration counts decides of no reply"));
            true
        }
        Err(Rejected::Refused { refusals, .. }) => {
            assert!(!refusals.is_empty() && refusals.iter().all(|refusal| !refusal.is_empty()));
            false
        }
        Err(Rejected::NoObject | Rejected::Unreadable { .. }) => false,
    }
}

/// What a reply is held to here.
pub(crate) fn terms() -> Terms {
    Terms { inputs: ["branch".to_owned()].into(), configuration: Configuration::Isolated }
}

fn is_within(accepted: &Accepted) {
    let Accepted { raw, graph, ceiling } = accepted;
    assert!(!graph.nodes().is_empty(), "a plan of nothing");
    assert_eq!(ceiling.iter().count(), graph.nodes().len());
    assert!(graph.setup.is_none() && graph.model.is_none() && graph.effort.is_none());
    for node in graph.nodes() {
        let Work::Model(model) = &node.work else { panic!("{}: no prompt", node.id) };
        let declared = model.allowed_tools.as_deref().unwrap_or_default();
        assert!(!declared.is_empty() && declared.iter().all(|tool| TOOLS.contains(&tool.as_str())));
        assert!(!model.prompt.trim().is_empty() && !node.id.as_str().contains('/'));
        assert_ne!(model.permission_mode, Some(PermissionMode::BypassPermissions));
        assert!(model.agent.is_none() && model.model.is_none() && model.effort.is_none());
        assert!(node.cwd.is_none() && node.worktree.is_none() && node.setup.is_none() && !node.leave_running);
        assert!(node.check.verify.is_none());
        assert!(i64::from(node.retry.max) <= RETRIES_MAX);
        assert!(node.feedback.is_none_or(|arc| i64::from(arc.max) <= ROUNDS_MAX));
        let policy = ceiling.policy(&node.id).expect("every node has a policy");
        assert!(policy.is_isolated && policy.has_strict_mcp && policy.plugin_dirs.is_empty());
        assert_eq!(policy.allowed_tools, declared);
        let tools = policy.tools.as_deref().expect("the tools that exist are listed");
        for tool in tools {
            assert!(declared.iter().any(|it| it.split('(').next() == Some(tool)), "{tool} is not declared");
        }
        for tool in DENIABLE {
            let exists = tools.iter().any(|it| it == tool);
            assert_ne!(exists, policy.disallowed_tools.iter().any(|it| it == tool), "{tool}");
            assert!(!exists || TOOLS.iter().any(|it| it.split('(').next() == Some(tool)), "{tool}");
        }
    }
    // What is run is what was checked.
    let encoded = serde_json::to_string(raw).expect("a graph is JSON");
    let (raw_again, again) = from_snapshot(&encoded).expect("it is a graph still");
    assert_eq!(&raw_again, raw);
    assert_eq!(format!("{:?}", again.nodes()), format!("{:?}", graph.nodes()));
}

/// The person's opt-in changes two layers of every policy, and nothing else of a plan.
fn is_lifted(isolated: &Accepted, loaded: &Accepted) {
    assert_eq!(isolated.raw, loaded.raw);
    for ((id, within), (_, lifted)) in isolated.ceiling.iter().zip(loaded.ceiling.iter()) {
        let same = Policy { is_isolated: false, has_strict_mcp: false, ..within.clone() };
        assert_eq!(&same, lifted, "{id}");
    }
    assert_eq!(isolated.ceiling.iter().count(), loaded.ceiling.iter().count());
}
