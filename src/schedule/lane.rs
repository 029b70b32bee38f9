//! A node enters its worktree: made and set up by the first node that needs it, before anything is paid.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::graph::{Cause, Node};
use crate::node::judge::Fault;
use crate::node::shell::ShellRequest;
use crate::process::capture::Tail;
use crate::process::{Exit, How, SpawnError};
use crate::schedule::nodes::GraphWork;
use crate::text::duration;
use crate::text::lossy::lossy;
use crate::text::sanitize::{lead_detail, one_line, stderr_tail};

/// The variable that tells a set-up where the run was started.
const BASE: &str = "OMG_BASE";

/// The directory of the worktree that `node` names; `None` when it names none.
///
/// # Errors
/// When there is none to be had, or its set-up failed (DECISIONS 12).
pub(crate) fn enter(work: &GraphWork, node: &Node) -> Result<Option<PathBuf>, Fault> {
    let (Some(name), Some(lanes)) = (node.worktree.as_deref(), &work.lanes) else { return Ok(None) };
    let mut set_up = |path: &Path| match work.graph.setup_of(name) {
        Some(command) => run(work, node, command, path),
        None => Ok(()),
    };
    lanes.enter(name, &mut set_up).map(Some)
}

fn run(work: &GraphWork, node: &Node, command: &str, path: &Path) -> Result<(), Fault> {
    let mut env: Vec<(OsString, OsString)> =
        work.with_material(|material| material.exported(node.id.as_str(), std::iter::empty()));
    env.push((BASE.into(), work.base.clone().into()));
    let timeout = node.timeout.unwrap_or(crate::graph::node::TIMEOUT_DEFAULT);
    let request = ShellRequest {
        node: node.id.clone(),
        attempt: 0,
        command: command.to_owned(),
        cwd: path.to_path_buf(),
        env,
        timeout,
        leave_running: false,
    };
    let mut stdout = Tail::default();
    let ran = match work.shell.set_up(&request, &mut stdout, work.halt.cancel()) {
        Ok(ran) => ran,
        Err(SpawnError::Cancelled) => return Err(cancelled()),
        Err(error) => return Err(failed(command, &one_line(&error.to_string()))),
    };
    match (ran.how, ran.exit) {
        (How::Cancelled, _) => Err(cancelled()),
        (How::TimedOut, _) => Err(failed(command, &format!("timed out after {}", duration::format(timeout)))),
        (_, Exit::Code(0)) => Ok(()),
        (_, exit) => {
            let (said, printed) = (stderr_tail(&ran.stderr), lossy(stdout.into_bytes()));
            let said = if said.is_empty() { stderr_tail(&printed) } else { said };
            let said = if said.is_empty() { said } else { format!(": {said}") };
            Err(failed(command, &format!("{exit}{said}")))
        }
    }
}

fn failed(command: &str, why: &str) -> Fault {
    let lead = format!("setup `{}`: ", one_line(command));
    Fault::ending(Cause::Setup, lead_detail(&lead, why))
}

fn cancelled() -> Fault {
    Fault::ending(Cause::Cancelled, "cancelled while its worktree was set up".to_owned())
}
