//! Pages that must say what the program does. What they show by example is run by `tests/it/examples`.

#![expect(clippy::unwrap_used, reason = "a page that cannot be read is a failed test")]

#[path = "docs/keys.rs"]
mod keys;
#[path = "docs/markdown.rs"]
mod markdown;
#[path = "docs/prose.rs"]
mod prose;
#[path = "docs/wire.rs"]
mod wire;

use std::fs;
use std::path::{Path, PathBuf};

const MARK: &str = "writes it anew. -->\n\n";

/// A page of `docs/`.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// What a page of `docs/` says.
fn text(name: &str) -> String {
    fs::read_to_string(page(name)).unwrap()
}

/// The part of a page below the heading `title`, up to the next of its level.
fn section(name: &str, title: &str) -> String {
    let text = text(name);
    let below = text.split(&format!("\n## {title}\n")).nth(1);
    below.unwrap_or_else(|| panic!("{name} has no {title:?}")).split("\n## ").next().unwrap().to_owned()
}

#[test]
fn the_command_page_is_the_programs_own_help() {
    let path = page("CLI.md");
    let text = fs::read_to_string(&path).unwrap();
    let (introduction, listed) = text.split_once(MARK).unwrap();
    let made = omg::cli::reference();
    if std::env::var_os("OMG_UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{introduction}{MARK}{made}")).unwrap();
        return;
    }
    assert_eq!(listed, made, "OMG_UPDATE_DOCS=1 cargo test --test docs writes the page anew");
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
