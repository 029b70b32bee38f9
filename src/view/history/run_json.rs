//! The JSON shape of one run, as `runs list --json` and `show --json` print it (DECISIONS 28).
//!
//! Names and units are those of `state.json`. A key is added without a new number; one that changes its meaning
//! takes the next.

use serde::Serialize;

use crate::record::Usage;
use crate::record::status::Status;
use crate::text::money::Cost;
use crate::view::history::{Run, waiting};

/// The number of every `--json` shape of this folder.
pub const SCHEMA: u32 = 1;

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct RunJson<'a> {
    run_id: &'a str,
    status: Option<&'static str>,
    in_flight: bool,
    graph: Option<&'a str>,
    nodes: Option<usize>,
    nodes_passed: Option<usize>,
    runtime: Option<&'a str>,
    rehearsal: bool,
    #[serde(flatten)]
    cost: CostJson,
    usage: Usage,
    legs: u32,
    started: Option<&'a str>,
    ended: Option<&'a str>,
    waiting: &'a [String],
    paused_because: Option<&'a str>,
    held_until: Option<&'a str>,
    children_ended: Option<bool>,
}

/// What something cost: the known part, and how many charges have no known price.
#[derive(Debug, Serialize)]
pub(crate) struct CostJson {
    cost_usd: f64,
    cost_unknown: bool,
    unknown_charges: u32,
}

impl From<Cost> for CostJson {
    fn from(cost: Cost) -> Self {
        CostJson {
            cost_usd: cost.known.usd(),
            cost_unknown: cost.is_unknown(),
            unknown_charges: cost.unknown,
        }
    }
}

impl<'a> From<&'a Run> for RunJson<'a> {
    fn from(run: &'a Run) -> Self {
        let said = |text: &'a str| (!text.is_empty()).then_some(text);
        let brief = run.brief.as_ref();
        RunJson {
            run_id: run.id.as_str(),
            status: run.status.map(Status::as_str),
            in_flight: run.status.is_some_and(Status::is_in_flight),
            graph: brief.map(|brief| brief.graph.name.as_str()),
            nodes: brief.map(|brief| brief.completion().total),
            nodes_passed: brief.map(|brief| brief.completion().completed),
            runtime: brief.map(|brief| said(&brief.runtime).unwrap_or("claude")),
            rehearsal: run.is_rehearsal(),
            cost: run.cost().into(),
            usage: run.usage(),
            legs: run.legs.count,
            started: said(run.started()),
            ended: said(&run.legs.ended).filter(|_| !run.legs.open),
            waiting: waiting(run),
            paused_because: said(&run.legs.detail).filter(|_| run.status == Some(Status::Paused)),
            held_until: said(&run.legs.held_until).filter(|_| run.status == Some(Status::Paused)),
            children_ended: (run.status == Some(Status::Abandoned)).then_some(run.children_ended),
        }
    }
}

/// A document as `--json` prints it: indented, a newline at its end.
pub(crate) fn print(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("maps with text keys always encode") + "\n"
}
