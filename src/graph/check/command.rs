//! Which keys a command node may have, and that no other node has a command (DECISIONS 7).

use super::{At, Rule};
use crate::graph::node;

/// The keys of a command node, for messages.
const KEYS: &str = "id, type, depends_on, command, cwd, worktree, setup, timeout, retry, success_check, feedback, \
     leave_running";

/// Checks the keys of a node against its type.
pub(super) fn check(at: &mut At<'_, '_>) {
    let raw = at.raw();
    let kind = raw.kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(node::KIND_MODEL);
    if kind == node::KIND_COMMAND {
        return of_a_command(at);
    }
    // An unknown type is a fault of its own; what it would allow cannot be known.
    if raw.command.is_some() && node::KINDS.contains(&kind) {
        at.fault(Rule::Command, "command", format!("command belongs to type: command, and this is a {kind}"))
            .hint("add type: command, or write a prompt");
    }
}

fn of_a_command(at: &mut At<'_, '_>) {
    let raw = at.raw();
    if raw.command.as_deref().is_none_or(|command| command.trim().is_empty()) {
        at.fault(Rule::Command, "command", "a command node has no command")
            .hint("write the shell command that it runs, as in command: make");
    }
    let foreign = [
        ("prompt", raw.prompt.is_some()),
        ("allowed_tools", raw.allowed_tools.is_some()),
        ("permission_mode", raw.permission_mode.is_some()),
        ("budget_usd", raw.budget_usd.is_some()),
        ("handoff", raw.handoff.is_some()),
        ("agent", raw.agent.is_some()),
        ("model", raw.model.is_some()),
        ("effort", raw.effort.is_some()),
    ];
    for (key, _) in foreign.into_iter().filter(|(_, present)| *present) {
        at.fault(Rule::Command, key, format!("{key} means nothing to a command node"))
            .hint(format!("its keys are {KEYS}"));
    }
}
