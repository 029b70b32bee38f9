//! The inputs of a run: `--input NAME=VALUE` and `--inputs FILE` against what the graph knows (DECISIONS 2).
//!
//! Everything that is wrong is told at once, before anything runs (cases C9, C10). Values are taken as they are:
//! nothing in them is read again.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::graph::Graph;
use crate::load::source::{LoadError, Source};
use crate::load::yaml::{self, Kind, Limits};
use crate::text::suggest;
use crate::text::template::{self, Kind as TokenKind};

/// Something wrong with the inputs of a run.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// An argument without `=` or without a name before it.
    #[error("--input {argument:?} is not NAME=VALUE")]
    Malformed {
        /// The argument.
        argument: String,
    },
    /// One name, two values.
    #[error("input {name:?} is given twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A name that the graph neither declares nor uses.
    #[error("input {name:?} is not an input of this graph ({known})")]
    Unknown {
        /// The name.
        name: String,
        /// What the graph knows, as text.
        known: String,
        /// The name that was probably meant.
        meant: Option<String>,
    },
    /// A name that a node uses and that has no value.
    #[error("input {name:?} has no value, and node {node:?} uses it in {field}")]
    Missing {
        /// The name.
        name: String,
        /// The first node that uses it.
        node: String,
        /// Its key.
        field: &'static str,
    },
    /// The file of inputs cannot be read.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The file of inputs is not a mapping of scalars.
    #[error("{place}: {message}")]
    Shape {
        /// `file:line:column`.
        place: String,
        /// What is wrong there.
        message: String,
    },
}

impl InputError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            InputError::Unknown { meant, .. } => {
                meant.as_ref().map(|meant| format!("did you mean {meant:?}?"))
            }
            InputError::Missing { name, .. } => Some(format!("give it one with --input {name}=…")),
            InputError::Malformed { .. } => {
                Some("write --input NAME=VALUE; an empty value is written NAME=".to_owned())
            }
            InputError::Twice { name } => {
                Some(format!("give {name} once, by --input or in the file of --inputs"))
            }
            InputError::File(_) | InputError::Shape { .. } => {
                Some("a file of inputs is a YAML or JSON mapping, as in name: value".to_owned())
            }
        }
    }
}

/// The inputs of a run of `graph`, from repeated `--input` arguments and a file.
pub fn resolve(
    graph: &Graph,
    arguments: &[String],
    file: Option<&Path>,
) -> Result<BTreeMap<String, String>, Vec<InputError>> {
    let (given, mut errors) = given(arguments, file);
    let used = used(graph);
    let known: BTreeSet<&str> = graph.inputs.iter().map(String::as_str).chain(used.keys().copied()).collect();
    let mut inputs = BTreeMap::new();
    let mut told = BTreeSet::new();
    for (name, value) in given {
        if !known.contains(name.as_str()) {
            if told.insert(name.clone()) {
                errors.push(unknown(name, &known));
            }
            continue;
        }
        match inputs.entry(name) {
            Entry::Vacant(free) => {
                free.insert(value);
            }
            Entry::Occupied(taken) => {
                if told.insert(taken.key().clone()) {
                    errors.push(InputError::Twice { name: taken.key().clone() });
                }
            }
        }
    }
    // What could not be read may have held the values that are missing.
    let unread = errors.iter().any(|error| {
        matches!(error, InputError::File(_) | InputError::Shape { .. } | InputError::Malformed { .. })
    });
    let missing = used.into_iter().filter(|(name, _)| !unread && !inputs.contains_key(*name));
    errors.extend(missing.map(|(name, (node, field))| InputError::Missing {
        name: name.to_owned(),
        node: node.to_owned(),
        field,
    }));
    if errors.is_empty() { Ok(inputs) } else { Err(errors) }
}

/// The inputs of a run whose graph is not known yet.
///
/// # Errors
/// Everything that is wrong with them by themselves.
pub fn ahead(arguments: &[String], file: Option<&Path>) -> Result<BTreeMap<String, String>, Vec<InputError>> {
    let (given, mut errors) = given(arguments, file);
    let mut inputs = BTreeMap::new();
    for (name, value) in given {
        if let Some(_first) = inputs.insert(name.clone(), value) {
            errors.push(InputError::Twice { name });
        }
    }
    if errors.is_empty() { Ok(inputs) } else { Err(errors) }
}

/// What was given, in the order of the file and the arguments, and what could not be read.
fn given(arguments: &[String], file: Option<&Path>) -> (Vec<(String, String)>, Vec<InputError>) {
    let mut errors = Vec::new();
    let mut given: Vec<(String, String)> = Vec::new();
    if let Some(path) = file {
        match from_file(path) {
            Ok(pairs) => given.extend(pairs),
            Err(mut wrong) => errors.append(&mut wrong),
        }
    }
    for argument in arguments {
        match argument.split_once('=') {
            Some((name, value)) if !name.is_empty() => given.push((name.to_owned(), value.to_owned())),
            _ => errors.push(InputError::Malformed { argument: argument.clone() }),
        }
    }
    (given, errors)
}

/// The inputs that some node uses, each with the first node that does and its key.
pub fn used(graph: &Graph) -> BTreeMap<&str, (&str, &'static str)> {
    let mut used = BTreeMap::new();
    for node in graph.nodes() {
        for (field, text) in node.templates() {
            for token in template::tokens(text).filter(|token| token.kind == TokenKind::Inputs) {
                used.entry(token.reference).or_insert((node.id.as_str(), field));
            }
        }
    }
    used
}

fn unknown(name: String, known: &BTreeSet<&str>) -> InputError {
    let meant = suggest::nearest(&name, known.iter().copied()).map(str::to_owned);
    let list: Vec<&str> = known.iter().copied().collect();
    let known =
        if list.is_empty() { "it has none".to_owned() } else { format!("it has {}", list.join(", ")) };
    InputError::Unknown { name, known, meant }
}

/// The entries of a YAML or JSON mapping of scalars.
fn from_file(path: &Path) -> Result<Vec<(String, String)>, Vec<InputError>> {
    let source = Source::read(path).map_err(|error| vec![error.into()])?;
    let shape = |list| shape_errors(path, &source.text, list);
    let tree = yaml::parse(&source.text, Limits::default()).map_err(|problem| shape(vec![problem]))?;
    let mut problems = tree.problems;
    let Some(entries) = tree.root.entries() else {
        problems.push(yaml::problem_at(&tree.root, "a file of inputs is a mapping of names to values"));
        return Err(shape(problems));
    };
    let mut pairs = Vec::with_capacity(entries.len());
    for entry in entries {
        match &entry.value.target().kind {
            Kind::Scalar { text, plain } => {
                let unset = *plain && yaml::scalar::is_null(text);
                let value = if unset { String::new() } else { text.clone().into_owned() };
                pairs.push((entry.name.to_owned(), value));
            }
            _ => problems.push(yaml::problem_at(
                entry.value,
                &format!("the value of {:?} is neither text nor a number", entry.name),
            )),
        }
    }
    if problems.is_empty() { Ok(pairs) } else { Err(shape(problems)) }
}

fn shape_errors(path: &Path, text: &str, list: Vec<super::problem::Problem>) -> Vec<InputError> {
    let problems = super::Problems::new(&path.display().to_string(), text, list);
    let reports = problems.reports().into_iter();
    reports
        .map(|report| InputError::Shape {
            place: format!("{}:{}:{}", report.file, report.line, report.column),
            message: report.message,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        let json = r#"{"inputs":["a","spare"],"nodes":[
            {"id":"n","prompt":"{{ inputs.a }}{{ inputs.b.c | inline }}"},
            {"id":"g","type":"gate","prompt":"{{ inputs.ignored }}"},
            {"id":"v","success_check":{"verify":{"command":"{{ inputs.cmd }}"}}}]}"#;
        crate::graph::from_snapshot(json).map(|(_, graph)| graph).unwrap_or_else(|error| panic!("{error}"))
    }

    fn given(pairs: &[&str]) -> Result<BTreeMap<String, String>, Vec<String>> {
        let arguments: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        resolve(&graph(), &arguments, None).map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn file(text: &str, pairs: &[&str]) -> Result<BTreeMap<String, String>, Vec<String>> {
        let file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
        std::fs::write(file.path(), text).unwrap_or_else(|error| panic!("{error}"));
        let arguments: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let name = file.path().display().to_string();
        resolve(&graph(), &arguments, Some(file.path()))
            .map_err(|errors| errors.iter().map(|error| error.to_string().replace(&name, "FILE")).collect())
    }

    #[test]
    fn c9_what_the_graph_does_not_know_or_lacks_is_refused() {
        assert_eq!(
            given(&["spar=1", "a=1", "a=2", "a=3", "=x", "y"]),
            Err(vec![
                "--input \"=x\" is not NAME=VALUE".to_owned(),
                "--input \"y\" is not NAME=VALUE".to_owned(),
                "input \"spar\" is not an input of this graph (it has a, b.c, cmd, spare)".to_owned(),
                "input \"a\" is given twice".to_owned(),
            ])
        );
        assert_eq!(
            given(&["a=1"]),
            Err(vec![
                "input \"b.c\" has no value, and node \"n\" uses it in prompt".to_owned(),
                "input \"cmd\" has no value, and node \"v\" uses it in success_check.verify.command"
                    .to_owned(),
            ])
        );
        let errors = resolve(&graph(), &["spar=1".to_owned()], None).expect_err("unknown");
        assert_eq!(errors[0].hint().as_deref(), Some("did you mean \"spare\"?"));
        assert_eq!(errors[1].hint().as_deref(), Some("give it one with --input a=…"));
    }

    #[test]
    fn c10_values_are_taken_as_they_are() {
        for value in ["x=y", "x y  z", "--help", "", "one\ntwo", "{{ inputs.a }}", "é\u{1b}"] {
            let inputs = given(&[&format!("a={value}"), "b.c=", "cmd=true"]).unwrap_or_default();
            assert_eq!(inputs.get("a").map(String::as_str), Some(value));
            assert_eq!(inputs.len(), 3);
        }
    }

    #[test]
    fn a_file_stands_beside_the_arguments() {
        let inputs = file("a: 0.10\nb.c: |\n  two\n  lines\ncmd: ~\n", &[]).unwrap_or_default();
        let values: Vec<&str> = inputs.values().map(String::as_str).collect();
        assert_eq!(values, ["0.10", "two\nlines\n", ""]);
        assert!(file(r#"{"a": true, "b.c": "x"}"#, &["cmd=1"]).is_ok());
        assert_eq!(
            file("a: 1\nb.c: [1]\na: 2\n", &["cmd=1"]),
            Err(vec![
                "FILE:3:1: the key \"a\" stands twice in this mapping".to_owned(),
                "FILE:2:6: the value of \"b.c\" is neither text nor a number".to_owned(),
            ])
        );
        assert_eq!(file("a: 1\nb.c: 2\ncmd: 3\nzz: 4\n", &["a=2"]).map_err(|errors| errors.len()), Err(2));
        assert_eq!(
            file("- a\n", &["cmd=1"]).map_err(|errors| errors[0].clone()),
            Err("FILE:1:1: a file of inputs is a mapping of names to values".to_owned())
        );
    }
}
