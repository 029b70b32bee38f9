//! What a person may not write: the `/` of the ids that only splicing makes (ADR 0027).
//!
//! With it a graph could reach into the middle of a fragment, past its exit, and its author would never know.

use super::tokens;
use crate::load::decode::Doubt;
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::within::Finder;
use crate::load::yaml::{Kind, Node};

/// Looks for `/` in the names of a node of a graph's own file. A name that was refused is not looked for again: `doubt`
/// takes its place at the node `at`.
pub(super) fn check(item: &Node<'_>, at: usize, files: &Files<'_>, doubt: &mut Doubt) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut finder = Finder::of(files);
    let Kind::Mapping(own) = &item.target().kind else { return problems };
    let merged = own.iter().any(|(key, _)| key.is_merge_key());
    let entries = if merged { item.entries() } else { None };
    let pairs = own.iter().filter_map(|(key, value)| Some((key.text()?, value)));
    match entries {
        Some(entries) => {
            entries
                .iter()
                .for_each(|entry| key(entry.name, entry.value, at, &mut finder, doubt, &mut problems));
        }
        None => pairs.for_each(|(word, value)| key(word, value, at, &mut finder, doubt, &mut problems)),
    }
    problems
}

fn key(
    word: &str,
    value: &Node<'_>,
    at: usize,
    finder: &mut Finder<'_, '_>,
    doubt: &mut Doubt,
    problems: &mut Vec<Problem>,
) {
    let names_fragment = |text: Option<&str>| text.is_some_and(|text| text.contains('/'));
    match word {
        "id" if names_fragment(value.text()) => {
            problems.push(
                Problem::at(value.span, "the id holds \"/\", which only the nodes of a fragment have")
                    .hint("use \"-\" or \".\" instead"),
            );
            doubt.field(at, "id");
        }
        "depends_on" => {
            for (place, item) in value.items().unwrap_or_default().iter().enumerate() {
                if names_fragment(item.text()) {
                    problems.push(reaching(item, "depends_on"));
                    doubt.item(at, "depends_on", place);
                }
            }
        }
        "feedback" => {
            if let Some(rerun) = value.get("rerun").filter(|rerun| names_fragment(rerun.text())) {
                problems.push(reaching(rerun, "feedback.rerun"));
                doubt.field(at, "feedback.rerun");
            }
        }
        _ => {}
    }
    value.each_scalar(&mut |scalar, text| {
        // Few texts of a large graph hold a brace, and none is read twice.
        if !text.contains("{{") {
            return;
        }
        for token in tokens::tokens(text).filter(|token| names_fragment(token.id())) {
            let span = finder.find("", scalar, token.written).span;
            problems.push(
                Problem::at(span, format!("{} reaches into a fragment", token.written))
                    .hint("name the node that cites it: its value is the fragment's exit's"),
            );
            doubt.unresolved(at);
        }
    });
}

fn reaching(value: &Node<'_>, key: &str) -> Problem {
    let name = value.text().unwrap_or_default();
    let citer = name.split('/').next().unwrap_or_default();
    Problem::at(value.span, format!("{key} names {name:?}, which reaches into a fragment"))
        .hint(format!("name the node that cites it, {citer:?}"))
}
