//! What each ceiling is on the command line of each runtime: goldens (CLI-PROTOCOL 1c).

use super::{claude, codex};
use crate::graph::node::PermissionMode;
use crate::node::invocation::{Invocation, Session};
use crate::node::policy::{Configuration, Policy};

fn invocation(policy: Policy, permission_mode: PermissionMode) -> Invocation {
    Invocation {
        session: Session::Fresh(Some("S".into())),
        permission_mode,
        policy,
        ..Invocation::plain("a")
    }
}

/// Every word in quotes, so that an empty one is seen.
fn lines(invocation: &Invocation) -> String {
    let quoted = |words: Vec<std::ffi::OsString>| {
        let words = words.iter().map(|word| format!("'{}'", word.to_string_lossy()));
        words.collect::<Vec<_>>().join(" ")
    };
    format!(
        "claude {}\ncodex {}",
        quoted(claude::argv(invocation, Some(&invocation.prompt))),
        quoted(codex::argv(invocation, Some(&invocation.prompt)))
    )
}

fn node(configuration: Configuration) -> Policy {
    Policy::planned(&["Read".into(), "Edit".into(), "Bash(git *)".into(), "Bash(ls *)".into()], configuration)
}

#[test]
fn a_hand_written_node_runs_under_its_own_settings() {
    let policy = Policy::granting(vec!["Read".into(), "Bash(git *)".into()]);
    insta::assert_snapshot!(lines(&invocation(policy, PermissionMode::Auto)), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'auto' '--allowedTools' 'Read,Bash(git *)' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'workspace-write' '--config' 'approval_policy="never"' 'Do it.'
    "#);
}

#[test]
fn a_planned_node_has_all_five_layers() {
    let policy = node(Configuration::Isolated);
    insta::assert_snapshot!(lines(&invocation(policy, PermissionMode::Auto)), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'auto' '--setting-sources' '' '--allowedTools' 'Read,Edit,Bash(git *),Bash(ls *)' '--tools' 'Read,Edit,Bash' '--strict-mcp-config' '--disallowedTools' 'Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'workspace-write' '--config' 'approval_policy="never"' '--ignore-user-config' '--ignore-rules' '--config' 'project_doc_max_bytes=0' '--config' 'mcp_servers={}' 'Do it.'
    "#);
}

#[test]
fn the_opt_in_takes_isolation_and_mcp_away_and_nothing_else() {
    let policy = node(Configuration::Loaded);
    insta::assert_snapshot!(lines(&invocation(policy, PermissionMode::Auto)), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'auto' '--allowedTools' 'Read,Edit,Bash(git *),Bash(ls *)' '--tools' 'Read,Edit,Bash' '--disallowedTools' 'Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'workspace-write' '--config' 'approval_policy="never"' 'Do it.'
    "#);
}

#[test]
fn skills_come_from_a_directory_and_as_a_tool() {
    let policy = node(Configuration::Isolated).with_skills("/run/skills-plugin".into());
    insta::assert_snapshot!(lines(&invocation(policy, PermissionMode::Auto)), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'auto' '--setting-sources' '' '--plugin-dir' '/run/skills-plugin' '--allowedTools' 'Read,Edit,Bash(git *),Bash(ls *)' '--tools' 'Read,Edit,Bash,Skill' '--strict-mcp-config' '--disallowedTools' 'Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'workspace-write' '--config' 'approval_policy="never"' '--ignore-user-config' '--ignore-rules' '--config' 'project_doc_max_bytes=0' '--config' 'mcp_servers={}' 'Do it.'
    "#);
}

#[test]
fn an_agent_comes_from_a_directory_under_the_same_ceiling() {
    let mut policy = node(Configuration::Isolated);
    policy.plugin_dirs.push("/run/agents-plugin".into());
    let mapped = Invocation { agent: Some("reviewer".into()), ..invocation(policy, PermissionMode::DontAsk) };
    insta::assert_snapshot!(lines(&mapped), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'dontAsk' '--setting-sources' '' '--plugin-dir' '/run/agents-plugin' '--agent' 'reviewer' '--allowedTools' 'Read,Edit,Bash(git *),Bash(ls *)' '--tools' 'Read,Edit,Bash' '--strict-mcp-config' '--disallowedTools' 'Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'workspace-write' '--config' 'approval_policy="never"' '--ignore-user-config' '--ignore-rules' '--config' 'project_doc_max_bytes=0' '--config' 'mcp_servers={}' 'Do it.'
    "#);
}

#[test]
fn who_plans_and_who_routes_reads_under_the_persons_settings() {
    insta::assert_snapshot!(lines(&invocation(Policy::planner(), PermissionMode::Plan)), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'plan' '--disallowedTools' 'Bash,Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'read-only' '--config' 'approval_policy="never"' 'Do it.'
    "#);
}

#[test]
fn who_judges_a_run_has_no_tool_and_nobodys_settings() {
    insta::assert_snapshot!(lines(&invocation(Policy::assessor(), PermissionMode::Plan)), @r#"
    claude '-p' 'Do it.' '--output-format' 'json' '--permission-mode' 'plan' '--setting-sources' '' '--tools' '' '--strict-mcp-config' '--disallowedTools' 'Bash,Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent,Read,Glob,Grep' '--session-id' 'S'
    codex 'exec' '--json' '--color' 'never' '--skip-git-repo-check' '--sandbox' 'read-only' '--config' 'approval_policy="never"' '--ignore-user-config' '--ignore-rules' '--config' 'project_doc_max_bytes=0' '--config' 'mcp_servers={}' 'Do it.'
    "#);
}
