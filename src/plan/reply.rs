//! A planner's reply becomes a graph under a ceiling, or is refused (FACTS 8.2, 8.3).
//!
//! Pure, and the only way from a reply to a graph: a corrected reply, which is as little trusted as the first, comes this
//! way too. Asks no model, writes no file and reads none, since what a plan may not cite is refused before it is loaded.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::graph::raw::RawGraph;
use crate::graph::{Graph, Work};
use crate::load::{self, Source};
use crate::node::policy::{Ceiling, Configuration, Policy};
use crate::plan::disposition;
use crate::plan::strict::Strict;

/// What a reply is called where the loader wants a file's name; no file is read of it.
const CALLED: &str = "reply.json";

/// What a plan is held to besides the table of dispositions.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The inputs that the run has.
    pub inputs: BTreeSet<String>,
    /// Whose configuration planned nodes run under.
    pub configuration: Configuration,
}

/// A reply that is a plan.
#[derive(Debug)]
pub struct Accepted {
    /// The graph as it was said, normalised.
    pub raw: RawGraph,
    /// The graph.
    pub graph: Graph,
    /// What each of its nodes may do.
    pub ceiling: Ceiling,
}

/// A reply that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It holds no object at all.
    NoObject,
    /// It holds something that cannot be read as a graph, so that there is nothing precise to hand back.
    Unreadable {
        /// Why.
        why: String,
        /// What stood between the braces.
        spec: String,
    },
    /// It is a graph, and not one that a plan may be: the reply's own content is at fault, and can be named.
    Refused {
        /// Everything that is known to be wrong, at least one.
        refusals: Vec<String>,
        /// The object, laid out.
        spec: String,
    },
}

impl Rejected {
    /// What was paid for, as far as it is worth keeping.
    pub fn spec(&self) -> Option<&str> {
        match self {
            Rejected::NoObject => None,
            Rejected::Unreadable { spec, .. } | Rejected::Refused { spec, .. } => Some(spec),
        }
    }
}

/// Makes a plan of `reply`.
///
/// # Errors
/// Why it is none.
pub fn read(reply: &str, terms: &Terms) -> Result<Accepted, Rejected> {
    let Some(spec) = object(reply) else { return Err(Rejected::NoObject) };
    // As strict JSON first, and written anew: nothing that YAML could read into the same bytes reaches the loader.
    let strict: Result<Strict, _> = serde_json::from_str(spec);
    let Strict(value) =
        strict.map_err(|error| Rejected::Unreadable { why: error.to_string(), spec: spec.to_owned() })?;
    let spec = serde_json::to_string_pretty(&value).expect("it was JSON a moment ago");
    let refused = |refusals| Rejected::Refused { refusals, spec: spec.clone() };
    let citing = citing(&value);
    if !citing.is_empty() {
        return Err(refused(citing));
    }
    let source = Source::from_bytes(Path::new(CALLED), value.to_string().into_bytes())
        .map_err(|error| Rejected::Unreadable { why: error.to_string(), spec: spec.clone() })?;
    let loaded = match load::load(&source) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let told: Vec<String> = problems.reports().iter().map(told).collect();
            return Err(match problems.is_mistyped() {
                true => Rejected::Unreadable { why: told.join("; "), spec: spec.clone() },
                false => refused(told),
            });
        }
    };
    let refusals = disposition::refusals(&loaded.raw, &loaded.graph, &terms.inputs);
    if !refusals.is_empty() {
        return Err(refused(refusals));
    }
    let ceiling = ceiling(&loaded.graph, terms.configuration);
    Ok(Accepted { raw: loaded.raw.normalised(), graph: loaded.graph, ceiling })
}

/// From the first opening brace to the last closing one.
pub fn object(reply: &str) -> Option<&str> {
    let (first, last) = (reply.find('{')?, reply.rfind('}')?);
    if first < last { reply.get(first..=last) } else { None }
}

/// The nodes that cite a fragment, which would have a file of this machine read and its text run on a plan's word.
fn citing(graph: &Value) -> Vec<String> {
    let nodes = graph.get("nodes").and_then(Value::as_array);
    let cites = |node: &Value, key: &str| node.as_object().is_some_and(|node| node.contains_key(key));
    let mut refusals = Vec::new();
    for (at, node) in nodes.into_iter().flatten().enumerate() {
        for key in ["use", "with"].into_iter().filter(|key| cites(node, key)) {
            let name = match node.get("id").and_then(Value::as_str) {
                Some(id) => format!("node {id:?}"),
                None => format!("node {}", at + 1),
            };
            refusals.push(format!("{name}: {key}: a plan cites no fragment; write the node out"));
        }
    }
    refusals
}

/// A problem without the place in a file that nobody has.
fn told(report: &load::Report) -> String {
    let node = report.node.as_ref().map(|node| format!("{node}: ")).unwrap_or_default();
    let hint = report.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{node}{}{hint}", report.message)
}

fn ceiling(graph: &Graph, configuration: Configuration) -> Ceiling {
    let policy = |node: &crate::graph::Node| {
        let Work::Model(model) = &node.work else { return None };
        let tools = model.allowed_tools.as_deref().unwrap_or_default();
        Some((node.id.clone(), Policy::planned(tools, configuration)))
    };
    graph.nodes().iter().filter_map(policy).collect()
}

#[cfg(test)]
mod tests;
