//! Which files `omg lint` looks at: those that are named, and the graphs in directories that are.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::load::{LoadError, Source};

/// A file to look at, read.
pub(super) struct File {
    /// As it was named or found.
    pub(super) path: PathBuf,
    /// What it says, or why that is not known.
    pub(super) read: Result<Source, LoadError>,
}

/// What was found.
#[derive(Default)]
pub(super) struct Find {
    /// In the order of the arguments, and below a directory by name.
    pub(super) files: Vec<File>,
    /// How many YAML files in directories hold no graph.
    pub(super) skipped: usize,
    seen: HashSet<PathBuf>,
}

/// Reads every file that `named` names or holds, each once.
pub(super) fn find(named: &[PathBuf]) -> Find {
    let mut find = Find::default();
    for path in named {
        if path.is_dir() {
            find.directory(path);
        } else if find.seen.insert(path.clone()) {
            find.files.push(File { path: path.clone(), read: Source::read(path) });
        }
    }
    find
}

impl Find {
    /// Everything below `top`, without recursion: a tree of directories may be deep.
    fn directory(&mut self, top: &Path) {
        let mut open = vec![top.to_owned()];
        while let Some(path) = open.pop() {
            // A link to a directory is not followed: it may lead back.
            let is_directory = path == top || fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
            if is_directory {
                match entries(&path) {
                    Ok(entries) => open.extend(entries.into_iter().rev()),
                    Err(source) => {
                        self.files
                            .push(File { read: Err(LoadError::Read { path: path.clone(), source }), path });
                    }
                }
            } else if path.is_file() && self.seen.insert(path.clone()) {
                self.candidate(path);
            }
        }
    }

    fn candidate(&mut self, path: PathBuf) {
        let read = Source::read(&path);
        if read.as_ref().is_ok_and(|source| !holds_a_graph(&source.text)) {
            self.skipped += 1;
        } else {
            self.files.push(File { path, read });
        }
    }
}

/// The entries of a directory that may be graphs or hold some, by name.
fn entries(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // `.` alone would make a longer path of a short one.
        let path = if path == Path::new(".") { entry.file_name().into() } else { entry.path() };
        if if path.is_dir() { may_hold_graphs(&path) } else { may_be_a_graph(&path) } {
            entries.push(path);
        }
    }
    entries.sort();
    Ok(entries)
}

fn may_hold_graphs(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name != b"fragments" && !name.starts_with(b".")
}

fn may_be_a_graph(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ends = |end: &str| name.ends_with(end.as_bytes());
    (ends(".yaml") || ends(".yml")) && !ends(".omgtest.yaml") && !ends(".omgtest.yml")
}

/// Whether the text has `nodes` at its top level, however broken the rest may be, and is no fragment.
fn holds_a_graph(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let has = |key: &str| {
        let quoted = [format!("{key}:"), format!("\"{key}\""), format!("'{key}'")];
        text.lines().any(|line| quoted.iter().any(|word| line.starts_with(word.as_str())))
    };
    // A mapping in braces stands on any line.
    let braced = text.trim_start().starts_with('{') && text.contains("nodes");
    braced || (has("nodes") && !has("fragment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_known_by_its_nodes() {
        for (text, wanted) in [
            ("name: x\nnodes:\n- id: a\n", true),
            ("nodes: [{id: \"x}]\n", true),
            ("{\"name\": \"x\", \"nodes\": []}", true),
            ("\"nodes\": []", true),
            ("on: push\njobs:\n  nodes: 1\n", false),
            ("fragment: x\ndescription: y\nnodes:\n- id: a\n", false),
            ("", false),
        ] {
            assert_eq!(holds_a_graph(text), wanted, "{text}");
        }
    }
}
