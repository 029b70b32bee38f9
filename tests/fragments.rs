//! Graphs that cite fragments, as files: what each becomes, or every word that is said about it.
//!
//! A case is a directory of `tests/golden/fragments` with a `graph.yaml`, its `fragments/`, and `expected.txt`.
//! `OMG_UPDATE_GOLDENS=1 cargo test --test fragments` writes the expectations anew.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read is a failed test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use omg::load::{Loaded, Problems, Source, load};

/// The columns of an excerpt.
const WIDTH: usize = 120;

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fragments");
    let mut cases: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 20, "the cases were not found");
    cases
}

#[test]
fn every_case_says_what_is_expected_of_it() {
    let mut wrong = Vec::new();
    for case in cases() {
        let said = match load(&Source::read(&case.join("graph.yaml")).unwrap()) {
            Ok(loaded) => resolved(&loaded),
            Err(problems) => refused(&problems),
        };
        // Paths as they read when somebody stands beside the graph.
        let said = said.replace(&format!("{}/", case.display()), "");
        let expected = case.join("expected.txt");
        if std::env::var_os("OMG_UPDATE_GOLDENS").is_some() {
            fs::write(&expected, &said).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != said {
            wrong.push(format!("{}:\n{said}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "OMG_UPDATE_GOLDENS=1 takes these as they are:\n\n{}", wrong.join("\n"));
}

fn resolved(loaded: &Loaded) -> String {
    let mut out = String::new();
    for splice in &loaded.splices {
        writeln!(out, "{}", serde_json::to_string(splice).unwrap()).unwrap();
    }
    // Of the graph's own remarks those about tokens, which is what a fragment can change.
    let of_tokens = loaded.advice.iter().filter(|advice| advice.id.starts_with("OMG00"));
    for advice in loaded.fragment_advice.iter().chain(of_tokens) {
        writeln!(out, "advice: {advice}").unwrap();
    }
    for node in loaded.raw.clone().normalised().nodes {
        writeln!(out, "{}", serde_json::to_string(&node).unwrap()).unwrap();
    }
    out
}

fn refused(problems: &Problems) -> String {
    let mut out = problems.render(false, WIDTH);
    writeln!(out, "---").unwrap();
    for line in problems.lines() {
        writeln!(out, "{line}").unwrap();
    }
    for advice in problems.advice() {
        writeln!(out, "advice: {advice}").unwrap();
    }
    out
}
