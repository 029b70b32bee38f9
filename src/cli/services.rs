//! The real services of a run, wired: children, runtimes, the shell.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::Failure;
use crate::graph::{Graph, Work};
use crate::node::runtime::RuntimeKind;
use crate::node::runtime::claude::Claude;
use crate::node::runtime::codex::Codex;
use crate::node::runtime::settings::Whereabouts;
use crate::node::shell::SystemShell;
use crate::node::worktree::Git;
use crate::node::{Runtime, Shell};
use crate::process::{Launcher, find};

/// What runs nodes.
#[derive(Clone)]
pub(super) struct Services {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) shell: Arc<dyn Shell>,
    pub(super) launcher: Arc<Launcher>,
    pub(super) git: Option<Git>,
}

/// The services for a run of `graph` that is marked by `run`.
///
/// # Errors
/// When the graph has prompts and their CLI is not installed (DECISIONS 19).
pub(super) fn wire(kind: RuntimeKind, graph: &Graph, run: &str) -> Result<Services, Failure> {
    let launcher = Launcher::new(run);
    // A node in a worktree must not be pointed at another repository by what omg itself was started from.
    let launcher = Arc::new(if graph.has_lanes() { launcher.outside_repositories() } else { launcher });
    let git = if graph.has_lanes() { Git::find(Arc::clone(&launcher)).ok() } else { None };
    let runtime = runtime(kind, &launcher, program(kind, graph)?);
    let shell = Arc::new(SystemShell::new(Arc::clone(&launcher)));
    Ok(Services { runtime, shell, launcher, git })
}

/// The services for planning and for what is planned, which names no worktree.
///
/// # Errors
/// When the runtime's CLI is not installed.
pub(super) fn for_plan(kind: RuntimeKind, run: &str) -> Result<Services, Failure> {
    let launcher = Arc::new(Launcher::new(run));
    let program = find::find(kind.as_str()).map_err(|missing| not_installed("planning", kind, &missing))?;
    let runtime = runtime(kind, &launcher, program);
    let shell = Arc::new(SystemShell::new(Arc::clone(&launcher)));
    Ok(Services { runtime, shell, launcher, git: None })
}

/// The runtime for looking at a graph without running it: its CLI need not be installed.
pub(super) fn for_preflight(kind: RuntimeKind) -> Arc<dyn Runtime> {
    let program = find::find(kind.as_str()).unwrap_or_else(|_| PathBuf::from(kind.as_str()));
    runtime(kind, &Arc::new(Launcher::new("preflight")), program)
}

fn runtime(kind: RuntimeKind, launcher: &Arc<Launcher>, program: PathBuf) -> Arc<dyn Runtime> {
    let launcher = Arc::clone(launcher);
    match kind {
        RuntimeKind::Codex => Arc::new(Codex::new(launcher, program, own_directory(kind))),
        RuntimeKind::Claude | RuntimeKind::Rehearsal => {
            Arc::new(Claude::new(launcher, program, own_directory(kind)))
        }
    }
}

/// Where the CLI of `kind` keeps its own files.
pub(super) fn own_directory(kind: RuntimeKind) -> Option<PathBuf> {
    match kind {
        RuntimeKind::Codex => directory("CODEX_HOME", ".codex"),
        RuntimeKind::Claude | RuntimeKind::Rehearsal => directory("CLAUDE_CONFIG_DIR", ".claude"),
    }
}

/// Where the settings of the CLI of `kind` lie, those of no directory yet.
pub(super) fn whereabouts(kind: RuntimeKind) -> Whereabouts {
    Whereabouts {
        config: own_directory(kind),
        home: variable("HOME").map(PathBuf::from),
        system: PathBuf::from("/"),
        directories: BTreeSet::new(),
        is_isolated: false,
    }
}

/// The CLI's own directory: the variable, else the name below the home directory.
pub(super) fn directory(variable: &str, name: &str) -> Option<PathBuf> {
    let set = self::variable(variable).map(PathBuf::from);
    set.or_else(|| Some(PathBuf::from(self::variable("HOME")?).join(name)))
}

/// A variable of this process that is not empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn program(kind: RuntimeKind, graph: &Graph) -> Result<PathBuf, Failure> {
    let word = kind.as_str();
    let asks = |work: &Work| matches!(work, Work::Model(_));
    let Some(first) = graph.nodes().iter().find(|node| asks(&node.work)) else {
        return Ok(PathBuf::from(word));
    };
    find::find(word).map_err(|missing| {
        not_installed(&format!("node \"{}\"", first.id), kind, &missing)
            .hinted(format!("install {word} and log in to it, or try the graph with omg rehearse"))
    })
}

fn not_installed(who: &str, kind: RuntimeKind, missing: &find::NotFound) -> Failure {
    let word = kind.as_str();
    Failure::new(format!("{who} needs {word}: {missing}")).hinted(format!("install {word} and log in to it"))
}
