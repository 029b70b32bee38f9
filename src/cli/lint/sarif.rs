//! What was found, as SARIF 2.1.0, for code scanning.

use std::io::Write;

use serde_json::{Value, json};

use super::look::Looked;
use super::paths::Paths;
use crate::cli::context::Context;
use crate::lint::{SWEEPS, Sweep};

/// The rule of everything that makes a graph invalid.
const INVALID: &str = "OMG000";

/// Prints one log with one run.
pub(super) fn print(looked: &[Looked], paths: &Paths, context: &mut Context) {
    let results: Vec<Value> = looked.iter().flat_map(|file| results(file, paths)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "omg",
                "fullName": "oh-my-graph",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut context.out, &log).ok();
    writeln!(context.out).ok();
}

fn rules() -> Vec<Value> {
    let invalid = json!({
        "id": INVALID,
        "name": "invalid-graph",
        "shortDescription": {"text": "The graph cannot be run."},
        "defaultConfiguration": {"level": "error"},
    });
    let rule = |sweep: &Sweep| {
        json!({
            "id": sweep.id,
            "name": sweep.name,
            "shortDescription": {"text": sweep.summary},
            "fullDescription": {"text": sweep.why},
            "help": {"text": sweep.why, "markdown": sweep.explanation()},
            "defaultConfiguration": {"level": "warning"},
        })
    };
    std::iter::once(invalid).chain(SWEEPS.into_iter().map(rule)).collect()
}

fn results(file: &Looked, paths: &Paths) -> Vec<Value> {
    let problems = file.reports().into_iter().map(|report| {
        let hint = report.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let place = (report.file.as_str(), report.line, report.column);
        result((INVALID, "error"), format!("{}{hint}", report.message), place, report.node.as_deref(), paths)
    });
    let advice = file.advice.iter().filter_map(|advice| {
        let place = advice.place.as_ref()?;
        let place = (place.file.as_str(), place.line, place.column);
        let text = format!("{}: {}", advice.field(), advice.detail);
        Some(result((advice.id, "warning"), text, place, advice.node.as_deref(), paths))
    });
    problems.chain(advice).collect()
}

fn result(
    (rule, level): (&str, &str),
    text: String,
    (file, line, column): (&str, usize, usize),
    node: Option<&str>,
    paths: &Paths,
) -> Value {
    // The first rule is that of invalid graphs.
    let index = SWEEPS.into_iter().position(|sweep| sweep.id == rule).map_or(0, |at| at + 1);
    let uri = paths.uri(file);
    let artifact = match uri.starts_with("file:") {
        true => json!({"uri": uri}),
        false => json!({"uri": uri, "uriBaseId": "%SRCROOT%"}),
    };
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": artifact,
            "region": {"startLine": line, "startColumn": column},
        },
    });
    if let Some(node) = node {
        location["logicalLocations"] = json!([{"name": node, "kind": "object"}]);
    }
    let text = match node {
        Some(node) => format!("node \"{node}\": {text}"),
        None => text,
    };
    json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level,
        "message": {"text": text},
        "locations": [location],
    })
}
