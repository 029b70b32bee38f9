//! The pages, and what they say as code within their sentences.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Parser};

/// Every page of the repository's top and of `docs/`.
pub(crate) fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf(), root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && folder != root {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The spans of code of a page, blocks left out.
pub(crate) fn code(text: &str) -> Vec<String> {
    let spans = Parser::new(text).filter_map(|event| match event {
        Event::Code(span) => Some(span.into_string()),
        _ => None,
    });
    spans.collect()
}
