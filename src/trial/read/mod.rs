//! Reads a file of tests; every mistake is told with its place, unknown keys and nodes included.
//!
//! What stands beside `tests:` holds for every test that does not say otherwise: inputs and nodes one by one, flags
//! whole.

mod expected;
mod fields;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::graph::{Bounds, NodeId, Work};
use crate::leg::again::Purpose;
use crate::leg::preflight;
use crate::load::problem::Problem;
use crate::load::values::{described, is_unset};
use crate::load::yaml::tree::Entry;
use crate::load::yaml::{self, Limits, Node as Value, Span};
use crate::load::{self, LoadError, Problems, Source, inputs};
use crate::node::runtime::rehearsal::{Rehearsal, Script, read as script};
use crate::schedule::gate::Decision;
use crate::trial::expect::Expected;
use crate::trial::suite::{Case, Step, Suite, Tested};
use fields::Fields;

/// What may stand beside `tests:`, and in a test.
const SETTING_KEYS: [&str; 7] =
    ["inputs", "nodes", "concurrency", "continue_on_fail", "max_usd", "max_executions", "max_wall"];
const STEP_KEYS: [&str; 6] = ["approve", "reject", "retry_failed", "max_usd", "max_executions", "max_wall"];

/// Why a file of tests cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// It cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It, or the graph that it tests, has problems.
    #[error(transparent)]
    Problems(#[from] Problems),
}

/// Reads the tests in `path` and the graph that they test.
///
/// # Errors
/// Everything that is wrong with the file, or with the graph.
pub fn read(path: &Path) -> Result<Suite, Unread> {
    let source = Source::read(path)?;
    let name = path.display().to_string();
    let failed = |list| Unread::Problems(Problems::new(&name, &source.text, list));
    let tree = yaml::parse(&source.text, Limits::default()).map_err(|problem| failed(vec![problem]))?;
    let mut problems = tree.problems;
    let Some(top) = tree.root.entries() else {
        let message = format!(
            "a file of tests is a mapping with graph and tests, and this is {}",
            described(&tree.root)
        );
        problems.push(Problem::at(tree.root.span, message));
        return Err(failed(problems));
    };
    let (tested, at) = match graph(path, &tree.root)? {
        Ok(found) => found,
        Err(problem) => {
            problems.push(problem);
            return Err(failed(problems));
        }
    };
    let refusals = preflight::unrehearsable(&tested.graph);
    problems.extend(refusals.into_iter().map(|refusal| Problem::at(at, refusal)));
    let mut reader = Reader { fields: Fields { graph: &tested.graph, problems, label: None } };
    let cases = reader.top(&top, tree.root.span);
    let mut problems = reader.fields.problems;
    problems.sort_by_key(|problem| problem.span.start);
    if !problems.is_empty() {
        return Err(failed(problems));
    }
    Ok(Suite { file: path.to_path_buf(), text: source.text, tested, cases })
}

/// The graph that a file of tests names, which lies where the file says it does, and the place of its name.
fn graph(file: &Path, root: &Value<'_>) -> Result<Result<(Tested, Span), Problem>, Unread> {
    let Some(value) = root.get("graph").filter(|value| !is_unset(value)) else {
        let problem =
            Problem::at(root.span, "graph is missing: the path of the graph, from this file's directory");
        return Ok(Err(problem.hint("write graph: GRAPH.yaml")));
    };
    let Some(named) = value.text() else {
        let message = format!("graph takes the path of the graph, and this is {}", described(value));
        return Ok(Err(Problem::at(value.span, message)));
    };
    let path = file.parent().unwrap_or(Path::new("")).join(named);
    let source = match Source::read(&path) {
        Ok(source) => source,
        Err(error) => return Ok(Err(Problem::at(value.span, format!("graph: {error}")))),
    };
    let loaded = load::load(&source)?;
    let encoded = loaded.encoded();
    let tested = Tested { graph: Arc::new(loaded.graph), encoded, path, sha256: loaded.sha256 };
    Ok(Ok((tested, value.span)))
}

/// What holds for a test, or for all of a file.
#[derive(Clone, Default)]
struct Settings {
    inputs: BTreeMap<String, String>,
    script: Script,
    concurrency: Option<usize>,
    continue_on_fail: bool,
    bounds: Bounds,
}

struct Reader<'g> {
    fields: Fields<'g>,
}

impl Reader<'_> {
    fn top(&mut self, top: &[Entry<'_, '_>], span: Span) -> Vec<Case> {
        let mut common = Settings::default();
        let mut tests = None;
        for entry in top {
            match entry.name {
                "graph" => {}
                "tests" => tests = Some(entry.value),
                name if name.starts_with("x-") => {}
                _ if is_unset(entry.value) && SETTING_KEYS.contains(&entry.name) => {}
                name => {
                    if !self.setting(entry, &mut common) {
                        let known: Vec<&str> = ["graph", "tests"].into_iter().chain(SETTING_KEYS).collect();
                        self.fields.unknown(entry.key, name, &known);
                    }
                }
            }
        }
        let cases = tests.map(|tests| self.tests(tests, &common)).unwrap_or_default();
        if cases.is_empty() && self.fields.problems.is_empty() {
            let problem =
                Problem::at(tests.map_or(span, |tests| tests.span), "tests is missing: the list of tests");
            self.fields.tell(problem.hint("write tests: [{name: everything passes}]"));
        }
        self.duplicates(&cases);
        cases
    }

    /// Tests are a list, each with a name, or a mapping of names.
    fn tests(&mut self, value: &Value<'_>, common: &Settings) -> Vec<Case> {
        if let Some(items) = value.items() {
            return items.iter().filter_map(|item| self.case(item, None, common)).collect();
        }
        let entries = self.fields.entries(value, "tests");
        entries
            .iter()
            .filter_map(|entry| self.case(entry.value, Some((entry.name, entry.key.span)), common))
            .collect()
    }

    fn duplicates(&mut self, cases: &[Case]) {
        let mut seen = HashSet::new();
        for case in cases.iter().filter(|case| !seen.insert(&case.name)) {
            self.fields.tell(Problem::at(case.span, format!("there is a test {:?} already", case.name)));
        }
    }

    fn case(&mut self, value: &Value<'_>, named: Option<(&str, Span)>, common: &Settings) -> Option<Case> {
        let mut settings = common.clone();
        let mut name = named.map(|(name, span)| (name.to_owned(), span));
        let (mut then, mut expected) = (Vec::new(), None);
        for entry in self.fields.entries(value, "a test") {
            match entry.name {
                "name" if named.is_none() => {
                    name = self.fields.text(entry.value, "name").map(|name| (name, entry.value.span));
                }
                "then" => then = self.steps(entry.value),
                "expect" => expected = Some(expected::expected(&mut self.fields, entry.value)),
                _ if self.setting(&entry, &mut settings) => {}
                other => {
                    let own: &[&str] = if named.is_none() { &["name"] } else { &[] };
                    let known: Vec<&str> =
                        own.iter().copied().chain(SETTING_KEYS).chain(["then", "expect"]).collect();
                    self.fields.unknown(entry.key, other, &known);
                }
            }
        }
        let Some((name, span)) = name.filter(|(name, _)| !name.trim().is_empty()) else {
            self.fields.problem(value, "a test needs a name").hint =
                Some("write - name: what the test is about".to_owned());
            return None;
        };
        let inputs = self.inputs(&settings.inputs, span);
        self.answers(&settings.script, span);
        let graph = self.fields.graph;
        Some(Case {
            name,
            span,
            inputs,
            script: settings.script,
            slots: graph.effective_concurrency(settings.concurrency),
            continue_on_fail: settings.continue_on_fail,
            bounds: graph.bounds.overridden_by(settings.bounds),
            then,
            expected: expected.unwrap_or_else(|| Expected::everything_passes(span)),
        })
    }

    /// Reads a key that may stand beside `tests:` and in a test; whether it is one.
    fn setting(&mut self, entry: &Entry<'_, '_>, settings: &mut Settings) -> bool {
        let value = entry.value;
        match entry.name {
            "inputs" => {
                for Entry { name, key: _, value } in self.fields.entries(value, "inputs") {
                    if let Some(text) = self.fields.text(value, name) {
                        settings.inputs.insert(name.to_owned(), text);
                    }
                }
            }
            "nodes" => {
                let own = script::decode(value, self.fields.graph, &mut self.fields.problems);
                settings.script = own.before(&settings.script);
            }
            "concurrency" => {
                settings.concurrency =
                    self.fields.count(value, "concurrency").map(|n| n as usize).filter(|n| *n > 0);
            }
            "continue_on_fail" => {
                settings.continue_on_fail = self.fields.flag(value, "continue_on_fail").unwrap_or(false);
            }
            _ => return self.fields.bound(entry, &mut settings.bounds).is_some(),
        }
        true
    }

    /// The inputs as a run would take them.
    fn inputs(&mut self, given: &BTreeMap<String, String>, span: Span) -> BTreeMap<String, String> {
        let arguments: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
        inputs::resolve(self.fields.graph, &arguments, None).unwrap_or_else(|errors| {
            for error in errors {
                self.fields.tell(
                    Problem::at(span, error.to_string()).hint("give inputs as in inputs: {name: value}"),
                );
            }
            BTreeMap::new()
        })
    }

    /// Whether every node has an answer.
    fn answers(&mut self, script: &Script, span: Span) {
        if let Err(reasons) = Rehearsal::new(self.fields.graph, Some(script.clone())) {
            for reason in reasons {
                self.fields.tell(Problem::at(span, reason));
            }
        }
    }

    /// The later legs, a list or a single one.
    fn steps(&mut self, value: &Value<'_>) -> Vec<Step> {
        Fields::items(value).iter().filter_map(|item| self.step(item)).collect()
    }

    fn step(&mut self, value: &Value<'_>) -> Option<Step> {
        let (mut decisions, mut retry, mut bounds) = (BTreeMap::new(), false, Bounds::default());
        let before = self.fields.problems.len();
        for entry in self.fields.entries(value, "then") {
            match entry.name {
                "approve" => self.decide(entry.value, Decision::Approve, &mut decisions),
                "reject" => self.decide(entry.value, Decision::Reject, &mut decisions),
                "retry_failed" => retry = self.fields.flag(entry.value, "retry_failed").unwrap_or(false),
                _ if self.fields.bound(&entry, &mut bounds).is_some() => {}
                name => self.fields.unknown(entry.key, name, &STEP_KEYS),
            }
        }
        let wrong = match (retry, decisions.is_empty()) {
            (true, false) => "retry_failed decides no gate; make two legs of it",
            (false, true) => "a later leg needs approve, reject or retry_failed",
            _ => "",
        };
        if !wrong.is_empty() && self.fields.problems.len() == before {
            self.fields.problem(value, wrong);
        }
        let purpose = if retry { Purpose::Retry } else { Purpose::Decide(decisions) };
        (self.fields.problems.len() == before).then_some(Step { span: value.span, purpose, bounds })
    }

    fn decide(&mut self, value: &Value<'_>, decision: Decision, decisions: &mut BTreeMap<NodeId, Decision>) {
        for item in Fields::items(value) {
            let Some(text) = self.fields.text(item, decision.as_str()) else { continue };
            let Some(node) = self.fields.find(item.span, &text) else { continue };
            let (id, is_gate) = (node.id.clone(), matches!(node.work, Work::Gate));
            if !is_gate {
                self.fields.problem(item, format!("node {text:?} is no gate"));
            } else if decisions.insert(id, decision).is_some_and(|other| other != decision) {
                self.fields.problem(item, format!("gate {text:?} cannot be both approved and rejected"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
