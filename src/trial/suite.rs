//! A file of tests as values: the graph, and the cases with what each expects.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::graph::{Bounds, Graph};
use crate::leg::again::Purpose;
use crate::load::yaml::Span;
use crate::node::runtime::rehearsal::Script;
use crate::trial::expect::Expected;

/// A file of tests.
pub struct Suite {
    /// The file as it was named.
    pub file: PathBuf,
    /// The graph that it tests.
    pub tested: Tested,
    /// The tests, in file order.
    pub cases: Vec<Case>,
    /// What the file says, for excerpts.
    pub(crate) text: String,
}

/// The graph under test, as every run of it needs it.
pub struct Tested {
    /// The graph.
    pub graph: Arc<Graph>,
    /// The same as a snapshot holds it.
    pub encoded: Box<RawValue>,
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of that, hex.
    pub sha256: String,
}

/// One test.
pub struct Case {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub(crate) span: Span,
    /// The inputs, all that the graph uses.
    pub(crate) inputs: BTreeMap<String, String>,
    /// What nodes answer.
    pub(crate) script: Script,
    /// How many nodes run at once.
    pub(crate) slots: usize,
    /// Whether a failure leaves the rest running, whatever the graph says.
    pub(crate) continue_on_fail: bool,
    /// The bounds of its first leg, the graph's own applied.
    pub(crate) bounds: Bounds,
    /// The legs after the first one.
    pub(crate) then: Vec<Step>,
    /// What has to come of it.
    pub(crate) expected: Expected,
}

/// A later leg.
pub struct Step {
    /// Where it stands.
    pub(crate) span: Span,
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// The bounds that it changes.
    pub(crate) bounds: Bounds,
}
