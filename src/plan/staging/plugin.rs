//! What is staged, as a value: files with their plan-time bytes and hashes, and the record of them beside the run.
//!
//! The bytes stay in memory for the whole leg, so that a copy can always be made of what was planned, whatever has
//! become of the source. The record is for people; nothing is ever staged from it (FACTS 8.7).

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::graph::NodeId;
use crate::record::staged::Planned;
use crate::text::hex;

/// Where a staged file was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it was read.
    pub path: PathBuf,
    /// Its place in a copy.
    pub rel: String,
    /// SHA-256 of its bytes as planned, hex.
    pub sha256: String,
}

/// A set of definitions that nodes are started with.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// What the CLI calls it.
    pub name: &'static str,
    /// Where its files were found, in the order of their places.
    pub sources: Vec<Source>,
    /// Its files and its own description, as they are copied.
    pub files: Arc<[Planned]>,
}

/// A file on its way into a plugin.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) source: PathBuf,
    pub(super) rel: String,
    pub(super) bytes: Vec<u8>,
    pub(super) runnable: bool,
    pub(super) definition: bool,
}

impl Plugin {
    /// The plugin `name` of the files that were `found`, whose places differ.
    pub(super) fn new(name: &'static str, description: &str, found: Vec<Found>) -> Self {
        let about = json!({"name": name, "version": "0.0.0", "description": description});
        let mut sources = Vec::with_capacity(found.len());
        let mut files = vec![Planned {
            path: ".claude-plugin/plugin.json".to_owned(),
            bytes: format!("{about:#}\n").into_bytes(),
            runnable: false,
            definition: true,
        }];
        for Found { source, rel, bytes, runnable, definition } in found {
            sources.push(Source { path: source, rel: rel.clone(), sha256: hex::sha256(&bytes) });
            files.push(Planned { path: rel, bytes, runnable, definition });
        }
        sources.sort_by(|a, b| a.rel.cmp(&b.rel));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Plugin { name, sources, files: files.into() }
    }

    /// The record of what was staged for `nodes`, with what each definition says of itself under `kind`.
    pub(super) fn manifest(&self, kind: &str, definitions: Vec<Value>, nodes: &[&NodeId]) -> Vec<u8> {
        let files = self.sources.iter().map(
            |file| json!({"source": file.path.to_string_lossy(), "rel": file.rel, "sha256": file.sha256}),
        );
        let nodes: Vec<&str> = nodes.iter().map(|id| id.as_str()).collect();
        let mut record = json!({"plugin": self.name});
        record[kind] = definitions.into();
        record["nodes"] = nodes.into();
        record["files"] = files.collect();
        format!("{record:#}\n").into_bytes()
    }
}
