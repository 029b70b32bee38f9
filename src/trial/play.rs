//! Rehearses one test: its first leg, then the later ones, each over the same run directory, as a person would.
//!
//! The runtime is the rehearsal of DECISIONS 24 and the legs are those of every run: no model, no command, no git, no
//! money.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::never;

use crate::clock::SharedClock;
use crate::graph::{Graph, NodeId};
use crate::leg::Claimed;
use crate::leg::again::{self, Inherited, Purpose, waiting};
use crate::leg::drive::{Ending, Finished};
use crate::leg::open::DEFAULT_MODE;
use crate::leg::{Leg, LegError, Order};
use crate::node::runtime::rehearsal::Rehearsal;
use crate::process::Launcher;
use crate::record::legs::Nodes;
use crate::record::observe::Silent;
use crate::record::standing::{Standing, StandingError};
use crate::record::stream::{self, StreamError};
use crate::record::{Durability, Event, Home, RunDir, RunId};
use crate::trial::suite::{Case, Step, Tested};

/// What a test's run did.
pub struct Played {
    /// Where it is recorded.
    pub dir: RunDir,
    /// How each leg ended.
    pub endings: Vec<Ending>,
    /// Which later leg could not be begun, and why.
    pub refused: Option<(usize, String)>,
    /// Where the run stands.
    pub standing: Standing,
    /// Gates that wait.
    pub waiting: Vec<NodeId>,
    /// What its feed says of each node.
    pub nodes: Nodes,
    /// Its whole feed.
    pub events: Vec<Event>,
}

/// Why a test could not be rehearsed; nothing that the test is about.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A leg could not begin, or not be recorded.
    #[error("the run cannot be recorded: {0}")]
    Leg(#[from] LegError),
    /// What the run recorded cannot be read.
    #[error("the run cannot be read back: {0}")]
    Standing(#[from] StandingError),
    /// Its feed cannot be read.
    #[error("the run cannot be read back: {0}")]
    Feed(#[from] StreamError),
    /// A node has no answer; the reader looks for this first.
    #[error("{}", .0.join("; "))]
    Unanswered(Vec<String>),
    /// The fault is the program's.
    #[error("omg panicked, which is its own fault")]
    Panic,
}

/// Rehearses `case` below `home`.
///
/// # Errors
/// When the machine is in the way.
pub fn play(case: &Case, tested: &Tested, home: &Path, clock: &SharedClock) -> Result<Played, PlayError> {
    let rehearsal =
        Rehearsal::new(&tested.graph, Some(case.script.clone())).map_err(PlayError::Unanswered)?;
    let stage = Stage { case, tested, rehearsal: Arc::new(rehearsal), clock };
    let claimed = Claimed::new(&Home::new(home), clock)?;
    let (run, dir) = (claimed.run.clone(), claimed.dir.clone());
    let mut endings = vec![stage.leg(claimed, Inherited::first(&tested.graph), case.bounds)?];
    let mut refused = None;
    for (at, step) in case.then.iter().enumerate() {
        match stage.again(&run, &dir, step)? {
            Ok(ending) => endings.push(ending),
            Err(why) => {
                refused = Some((at, why));
                break;
            }
        }
    }
    let standing = Standing::read(&dir)?;
    let waiting = waiting(&tested.graph, &standing);
    let (mut nodes, mut events) = (Nodes::default(), Vec::new());
    stream::walk(&dir.feed(), |event| {
        nodes.take(event.clone());
        events.push(event);
    })?;
    Ok(Played { dir, endings, refused, standing, waiting, nodes, events })
}

struct Stage<'a> {
    case: &'a Case,
    tested: &'a Tested,
    rehearsal: Arc<Rehearsal>,
    clock: &'a SharedClock,
}

impl Stage<'_> {
    /// A later leg, or why there can be none.
    fn again(&self, run: &RunId, dir: &RunDir, step: &Step) -> Result<Result<Ending, String>, PlayError> {
        let standing = Standing::read(dir)?;
        let graph = &self.tested.graph;
        if let Some(why) = refusal(graph, &standing, &step.purpose) {
            return Ok(Err(why));
        }
        let inherited = Inherited::of(graph, dir, &standing, &step.purpose);
        let gates = waiting(graph, &standing);
        if step.purpose == Purpose::Retry
            && inherited.cleared.is_empty()
            && !inherited.has_work_besides(graph, &gates)
        {
            return Ok(Err(format!("nothing failed and nothing is left to run{}", waits_at(&gates))));
        }
        let claimed = Claimed::again(run.clone(), dir.clone())?;
        let bounds = again::bounds(&standing.snapshot, step.bounds);
        self.leg(claimed, inherited, bounds).map(Ok)
    }

    fn leg(
        &self,
        claimed: Claimed,
        inherited: Inherited,
        bounds: crate::graph::Bounds,
    ) -> Result<Ending, PlayError> {
        let (case, tested) = (self.case, self.tested);
        let order = Order {
            graph: Arc::clone(&tested.graph),
            encoded: tested.encoded.clone(),
            source_path: tested.path.display().to_string(),
            sha256: tested.sha256.clone(),
            inputs: case.inputs.clone(),
            base: base(&tested.path),
            continue_on_fail: case.continue_on_fail,
            slots: case.slots,
            durability: Durability::Paced,
            runtime: Arc::clone(&self.rehearsal) as _,
            shell: Arc::clone(&self.rehearsal) as _,
            launcher: Arc::new(Launcher::new(claimed.run.as_str())),
            git: None,
            rehearsal: Some(String::new()),
            default_mode: DEFAULT_MODE,
            planned: None,
            bounds,
            patience: None,
            inherited,
        };
        let leg = Leg::open(claimed, order, Arc::clone(self.clock), Arc::new(Silent))?;
        let Finished { ending, .. } = leg.drive(never());
        Ok(ending)
    }
}

/// Where a run of the graph is taken to be started: beside the graph.
fn base(graph: &Path) -> PathBuf {
    let beside = graph.parent().unwrap_or(Path::new("."));
    std::path::absolute(beside).unwrap_or_else(|_| beside.to_path_buf())
}

/// Why the decisions of `purpose` cannot be taken.
fn refusal(graph: &Graph, standing: &Standing, purpose: &Purpose) -> Option<String> {
    let Purpose::Decide(decisions) = purpose else { return None };
    let gates = waiting(graph, standing);
    let early = decisions.keys().find(|gate| !gates.contains(gate))?;
    let where_else = if gates.is_empty() { "; it waits at no gate".to_owned() } else { waits_at(&gates) };
    Some(format!("the run does not wait at \"{early}\"{where_else}"))
}

fn waits_at(gates: &[NodeId]) -> String {
    let names: Vec<String> = gates.iter().map(|gate| format!("\"{gate}\"")).collect();
    if names.is_empty() { String::new() } else { format!("; it waits at {}", names.join(", ")) }
}
