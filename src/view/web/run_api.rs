//! What the page of one run asks for: its graph, its nodes, what they produced and what they are saying (FACTS 9.3).
//!
//! A node's id is looked up in the run's own graph before any path is made of it.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::diff::{self, LookIntoLanes};
use super::http::{Answer, Request};
use super::state;
use super::transcript::{self, Projects};
use crate::graph::draw::{Drawing, Kind};
use crate::graph::{self, NodeId};
use crate::record::attempts::{self, Said};
use crate::record::legs::{NodeState, Nodes};
use crate::record::snapshot::GoalState;
use crate::record::snapshot_reader::SnapshotError;
use crate::record::status::Status;
use crate::record::stream::{self, open_regular};
use crate::record::{Home, RunDir, RunId, Snapshot};
use crate::view::history::critical::Took;
use crate::view::history::goal::{self, CycleRun, Goal};
use crate::view::history::run_json::CostJson;
use crate::view::history::show::Shown;
use crate::view::history::{Prober, Run, hint};

/// The longest artifact that is sent, in bytes; what is longer is cut.
const RESULT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// One run, as its routes see it.
pub(super) struct OneRun<'a> {
    pub(super) id: &'a RunId,
    pub(super) dir: RunDir,
    pub(super) probe: Prober,
    pub(super) projects: &'a Projects,
}

/// The graph of a snapshot, as far as a page draws it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::view) struct Shape {
    pub(in crate::view) name: String,
    pub(in crate::view) nodes: Vec<ShapeNode>,
}

/// One node of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::view) struct ShapeNode {
    pub(in crate::view) id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::view) r#type: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::view) depends_on: Vec<String>,
    /// Of no use to a drawing.
    #[serde(skip_serializing)]
    pub(super) worktree: String,
}

impl ShapeNode {
    /// Whether a person decides it.
    pub(super) fn is_gate(&self) -> bool {
        self.kind() == Kind::Gate
    }

    fn kind(&self) -> Kind {
        match self.r#type.as_str() {
            "gate" => Kind::Gate,
            "command" => Kind::Command,
            _ => Kind::Prompt,
        }
    }
}

impl Shape {
    /// Where everything is drawn.
    pub(super) fn drawing(&self) -> Drawing {
        let nodes = self.nodes.iter().map(|node| (node.id.as_str(), node.kind(), node.depends_on.as_slice()));
        Drawing::sketch(&self.name, nodes)
    }

    /// The graph of `snapshot`.
    pub(super) fn of(snapshot: &Snapshot) -> Result<Shape, serde_json::Error> {
        serde_json::from_str(snapshot.graph.get())
    }
}

/// The drawing that `omg graph` makes of the run's graph, or one of its shape alone where this program has rules that the
/// graph breaks.
fn drawing(snapshot: &Snapshot, shape: &Shape) -> Drawing {
    match graph::from_snapshot(snapshot.graph.get()) {
        Ok((_, graph)) => Drawing::of(&graph, &graph.name),
        Err(_) => shape.drawing(),
    }
}

fn json(status: u16, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => Answer::of(status, "application/json", body),
        Err(error) => Answer::text(500, error.to_string()),
    }
}

impl OneRun<'_> {
    /// `GET api/graph`.
    pub(super) fn graph(&self) -> Answer {
        #[derive(Serialize)]
        struct Graph<'a> {
            run_id: &'a str,
            available: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            nodes: Option<Vec<ShapeNode>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            drawing: Option<Drawing>,
            #[serde(skip_serializing_if = "Option::is_none")]
            goal: Option<GoalState>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            abandoned: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            transcript_note: Option<&'static str>,
        }
        let snapshot = match self.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return Answer::text(500, error),
        };
        let shape = match snapshot.as_ref().map(Shape::of).transpose() {
            Ok(shape) => shape,
            Err(error) => {
                return Answer::text(500, format!("the graph of the snapshot cannot be read: {error}"));
            }
        };
        let run = Run::read(self.id.clone(), &self.dir, self.probe).ok();
        let abandoned = run.as_ref().is_some_and(|run| run.status == Some(Status::Abandoned));
        let drawing = snapshot.as_ref().zip(shape.as_ref()).map(|(snapshot, shape)| drawing(snapshot, shape));
        let (name, nodes) = shape.map(|shape| (shape.name, shape.nodes)).unzip();
        json(
            200,
            &Graph {
                run_id: self.id.as_str(),
                available: snapshot.is_some(),
                name,
                nodes,
                drawing,
                goal: GoalState::read(&self.dir),
                abandoned,
                hint: run.as_ref().filter(|_| abandoned).and_then(hint),
                transcript_note: snapshot.and_then(|snapshot| transcript::note(&snapshot.runtime)),
            },
        )
    }

    /// `GET api/run`: the document that `omg show RUN --json` prints.
    pub(super) fn run(&self) -> Answer {
        match Shown::read(self.id.clone(), &self.dir, self.probe) {
            Ok(shown) => Answer::of(200, "application/json", shown.json()),
            Err(error) => Answer::text(500, error.to_string()),
        }
    }

    /// `GET api/goal`: what a planned run is for, what its judge said, and the runs of the goal's cycles below `home`.
    pub(super) fn goal(&self, home: &Home) -> Answer {
        #[derive(Serialize)]
        struct Document {
            #[serde(flatten)]
            goal: Goal,
            /// Whether its plan was refused.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            refused: bool,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            cycles: Vec<Cycle>,
        }
        #[derive(Serialize)]
        struct Cycle {
            run_id: String,
            cycle: u32,
            state: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            goal_met: Option<bool>,
            #[serde(flatten)]
            cost: CostJson,
        }
        let Some(goal) = Goal::read(&self.dir) else { return Answer::empty() };
        let found =
            if goal.has_cycles() { goal::cycles(home, &goal.aim, self.probe) } else { Ok(Vec::new()) };
        let cycle = |it: CycleRun| Cycle {
            run_id: it.run.to_string(),
            cycle: it.cycle,
            state: state::of_run(it.status),
            goal_met: it.goal_met,
            cost: it.cost.into(),
        };
        match found {
            Ok(runs) => {
                let refused = self.dir.rejected().symlink_metadata().is_ok();
                json(200, &Document { goal, refused, cycles: runs.into_iter().map(cycle).collect() })
            }
            Err(error) => Answer::text(500, error.to_string()),
        }
    }

    /// `GET api/refused`: what the planner's last reply held, if its plan was refused.
    pub(super) fn refused(&self) -> Answer {
        sent(&self.dir.rejected())
    }

    /// `GET api/result?node=`.
    pub(super) fn result(&self, request: &Request) -> Answer {
        self.about(request, |node| self.result_of(node))
    }

    /// `GET api/failed?node=`: the kept reply of a node whose last outcome is a failure.
    pub(super) fn failed(&self, request: &Request) -> Answer {
        self.about(request, |node| self.failed_of(node))
    }

    /// What `node` produced.
    pub(super) fn result_of(&self, node: &NodeId) -> Answer {
        sent(&self.dir.artifact(node))
    }

    /// What is kept of the reply of `node`, whose last outcome is a failure.
    pub(super) fn failed_of(&self, node: &NodeId) -> Answer {
        sent(&self.dir.failed(node))
    }

    /// `GET api/attempts?node=`: which attempts left what.
    pub(super) fn attempts(&self, request: &Request) -> Answer {
        self.about(request, |node| self.attempts_of(node))
    }

    /// Which attempts of `node` left what.
    pub(super) fn attempts_of(&self, node: &NodeId) -> Answer {
        #[derive(Serialize)]
        struct Attempt {
            leg: u32,
            round: u32,
            attempt: u32,
            said: Vec<&'static str>,
        }
        match attempts::list(&self.dir, node) {
            Ok(found) => {
                let attempt = |it: attempts::Attempt| Attempt {
                    leg: it.id.leg,
                    round: it.id.round,
                    attempt: it.id.attempt,
                    said: it.said.iter().map(|(said, _)| said.as_str()).collect(),
                };
                json(200, &found.into_iter().map(attempt).collect::<Vec<_>>())
            }
            Err(error) => Answer::text(500, error.to_string()),
        }
    }

    /// `GET api/said?node=&attempt=LEG-ROUND-ATTEMPT&what=`: what one attempt was asked or said.
    pub(super) fn said(&self, request: &Request) -> Answer {
        let node = match self.node(request) {
            Ok(node) => node,
            Err(refusal) => return refusal,
        };
        let which = request.parameter("attempt").unwrap_or_default();
        let what = request.parameter("what").unwrap_or_default();
        let wanted =
            |it: &attempts::Attempt| format!("{}-{}-{}", it.id.leg, it.id.round, it.id.attempt) == which;
        let found = match attempts::list(&self.dir, &node) {
            Ok(found) => found.into_iter().find(wanted),
            Err(error) => return Answer::text(500, error.to_string()),
        };
        let is = |said: &Said| said.as_str() == what;
        let Some((_, path)) = found.into_iter().flat_map(|it| it.said).find(|(said, _)| is(said)) else {
            return Answer::text(404, "there is no such attempt, or it left nothing of this kind");
        };
        match attempts::read(&path) {
            Ok(text) => Answer::of(200, "text/plain; charset=utf-8", text),
            Err(error) => Answer::text(500, error.to_string()),
        }
    }

    /// `GET api/path`: the critical path of what has ended so far.
    pub(super) fn path(&self) -> Answer {
        let mut took = Took::default();
        if let Err(error) = stream::walk(&self.dir.feed(), |event| took.take(&event)) {
            return Answer::text(500, error.to_string());
        }
        let shape = match self.snapshot().map(|snapshot| snapshot.as_ref().map(Shape::of).transpose()) {
            Ok(Ok(shape)) => shape.unwrap_or_default(),
            Ok(Err(error)) => return Answer::text(500, error.to_string()),
            Err(error) => return Answer::text(500, error),
        };
        let nodes = shape.nodes.iter().map(|node| (node.id.as_str(), node.depends_on.as_slice()));
        json(200, &took.critical(nodes))
    }

    /// `GET api/diff?node=`: what the lanes hold that the node worked in, or that it decides about.
    pub(super) fn diff(&self, request: &Request, look: Option<&dyn LookIntoLanes>) -> Answer {
        let node = match self.node(request) {
            Ok(node) => node,
            Err(refusal) => return refusal,
        };
        let Some(look) = look else { return Answer::empty() };
        match self.snapshot() {
            Ok(Some(snapshot)) => match Shape::of(&snapshot) {
                Ok(shape) => diff::answer(&shape, node.as_str(), &|lane| {
                    look.changes(self.id, &self.dir, Path::new(&snapshot.cwd), lane)
                }),
                Err(error) => Answer::text(500, error.to_string()),
            },
            Ok(None) => unknown_node(),
            Err(error) => Answer::text(500, error),
        }
    }

    /// `GET api/transcript?node=`: what a running node is doing now.
    pub(super) fn transcript(&self, request: &Request) -> Answer {
        let asked = request.parameter("node").unwrap_or_default();
        let mut nodes = Nodes::default();
        if let Err(error) = stream::walk(&self.dir.feed(), |event| nodes.take(event)) {
            return Answer::text(500, error.to_string());
        }
        let known = match self.snapshot() {
            Ok(Some(snapshot)) => {
                Shape::of(&snapshot).is_ok_and(|shape| shape.nodes.iter().any(|it| it.id == asked))
            }
            Ok(None) => nodes.by_id.contains_key(&asked),
            Err(error) => return Answer::text(500, error),
        };
        if !known {
            return unknown_node();
        }
        let now = nodes.by_id.get(&asked).filter(|now| now.state == NodeState::Running);
        let Some(now) = now.filter(|_| !self.is_over()) else { return Answer::empty() };
        match self.projects.tail(&now.session_id) {
            Ok(Some(entries)) => json(200, &serde_json::json!({ "node": asked, "entries": entries })),
            Ok(None) => Answer::empty(),
            Err(error) => Answer::text(500, format!("the transcript cannot be read: {error}")),
        }
    }

    /// Whether nobody is at work on the run.
    fn is_over(&self) -> bool {
        Run::read(self.id.clone(), &self.dir, self.probe)
            .is_ok_and(|run| !run.status.is_some_and(Status::is_in_flight))
    }

    /// `answer` about the node that is asked about.
    fn about(&self, request: &Request, answer: impl FnOnce(&NodeId) -> Answer) -> Answer {
        self.node(request).map_or_else(|refusal| refusal, |node| answer(&node))
    }

    /// The node that is asked about, if the graph of the run has it.
    fn node(&self, request: &Request) -> Result<NodeId, Answer> {
        let asked = request.parameter("node").unwrap_or_default();
        let snapshot = self.snapshot().map_err(|error| Answer::text(500, error))?.ok_or_else(unknown_node)?;
        let shape = Shape::of(&snapshot).map_err(|error| Answer::text(500, error.to_string()))?;
        let is_there = shape.nodes.iter().any(|node| node.id == asked);
        NodeId::parse(&asked).filter(|_| is_there).ok_or_else(unknown_node)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, String> {
        match Snapshot::read(&self.dir) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(SnapshotError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The text in `path`, as much of it as is sent.
fn sent(path: &Path) -> Answer {
    let read = open_regular(path).and_then(|file| {
        let Some(file) = file else { return Ok(None) };
        let mut bytes = Vec::new();
        let whole = file.metadata()?.len();
        file.take(RESULT_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(Some((bytes, whole)))
    });
    match read {
        Ok(Some((bytes, whole))) => {
            Answer::of(200, "text/plain; charset=utf-8", bytes).with("X-OMG-Bytes", whole.to_string())
        }
        Ok(None) => Answer::empty(),
        Err(error) => Answer::text(500, format!("cannot read {}: {error}", path.display())),
    }
}

fn unknown_node() -> Answer {
    Answer::text(404, "the run has no such node")
}
