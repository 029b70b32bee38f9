//! Pages that must say what the program does.

#![expect(clippy::unwrap_used, reason = "a page that cannot be read is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

const MARK: &str = "writes it anew. -->\n\n";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// What stands below the mark of a page is what the program says.
#[track_caller]
fn ends_with(name: &str, made: &str) {
    let path = page(name);
    let text = fs::read_to_string(&path).unwrap();
    let (introduction, listed) = text.split_once(MARK).unwrap();
    if std::env::var_os("OMG_UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{introduction}{MARK}{made}")).unwrap();
        return;
    }
    assert_eq!(listed, made, "OMG_UPDATE_DOCS=1 cargo test --test docs writes the page anew");
}

#[test]
fn the_command_page_is_the_programs_own_help() {
    ends_with("CLI.md", &omg::cli::reference());
}

#[test]
fn the_lint_page_is_the_programs_own_catalogue() {
    ends_with("LINT.md", &omg::lint::catalogue());
}

/// Every key of the model stands in the page of the graph file, and no other.
#[test]
fn the_graph_page_lists_every_key() {
    let text = fs::read_to_string(page("GRAPH.md")).unwrap();
    for key in omg::load::known_keys() {
        let told = [format!("`{key}`"), format!("`{key}:"), format!(".{key}`")];
        assert!(told.iter().any(|words| text.contains(words)), "{key} is missing");
    }
}
