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

/// `made` is the checked-in page `name`, or becomes it.
fn is_page(name: &str, made: &str) {
    let path = page(name);
    if std::env::var_os("OMG_UPDATE_DOCS").is_some() {
        fs::write(&path, made).unwrap();
        return;
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        made,
        "OMG_UPDATE_DOCS=1 cargo test --test docs writes it anew"
    );
}

#[test]
fn the_schemas_are_those_of_the_model() {
    is_page("graph.schema.json", &omg::graph::schema::graph());
    is_page("fragment.schema.json", &omg::graph::schema::fragment());
}

/// An editor knows the keys that the loader knows, and two that are spliced away before it.
#[test]
fn the_schema_has_the_keys_that_the_loader_reads() {
    let schema: serde_json::Value = serde_json::from_str(&omg::graph::schema::graph()).unwrap();
    let defs = schema["$defs"].as_object().unwrap().values();
    let mut keys: Vec<&str> = defs
        .chain([&schema])
        .flat_map(|of_a_type| of_a_type["properties"].as_object().unwrap().keys())
        .map(String::as_str)
        .collect();
    let mut known: Vec<&str> = omg::load::known_keys().filter(|key| !["use", "with"].contains(key)).collect();
    known.extend(["use", "with"]);
    keys.sort_unstable();
    known.sort_unstable();
    assert_eq!(keys, known);
}

/// In the checkout a link stands where `omg init` unpacks the schema.
#[test]
fn every_shipped_graph_names_the_schema_beside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, schema) in [("graphs", "graph.schema.json"), ("fragments", "fragment.schema.json")] {
        let beside = fs::canonicalize(root.join(folder).join(schema)).unwrap();
        assert_eq!(beside, fs::canonicalize(page(schema)).unwrap());
        let files = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let is_test = |file: &PathBuf| file.to_string_lossy().ends_with(".omgtest.yaml");
        for file in files.filter(|file| file.extension().is_some_and(|ext| ext == "yaml") && !is_test(file)) {
            let text = fs::read_to_string(&file).unwrap();
            let line = format!("# yaml-language-server: $schema={schema}");
            assert_eq!(text.lines().next(), Some(line.as_str()), "{}", file.display());
        }
    }
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
