//! Ids: there, each once, well formed, and distinct on a disk that does not tell case apart (DECISIONS 3).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{ById, Found, Rule};
use crate::graph::NodeId;
use crate::graph::id::ID_BYTES_MAX;

/// Positions by id.
pub(super) fn check<'r>(found: &mut Found<'r>) -> ById<'r> {
    let nodes = &found.raw.nodes;
    let mut by_id = ById::with_capacity(nodes.len());
    let mut by_folded: HashMap<String, &str> = HashMap::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let id = node.id.as_str();
        if id.trim().is_empty() {
            found.at(at).fault(Rule::Ids, "id", "the node has no id");
            continue;
        }
        match by_id.entry(id) {
            Entry::Occupied(_) => {
                found.at(at).fault(Rule::Ids, "id", "an earlier node has the same id");
                continue;
            }
            Entry::Vacant(free) => free.insert(at),
        };
        match by_folded.entry(id.to_ascii_lowercase()) {
            Entry::Occupied(other) => {
                let message = format!("the id differs from {:?} only by case", other.get());
                found
                    .at(at)
                    .fault(Rule::Ids, "id", message)
                    .hint("both would be one file on a disk that does not tell case apart");
            }
            Entry::Vacant(free) => {
                free.insert(id);
            }
        }
        pattern(found, at, id);
    }
    by_id
}

fn pattern(found: &mut Found<'_>, at: usize, id: &str) {
    if NodeId::parse(id).is_none() {
        found
            .at(at)
            .fault(Rule::IdPattern, "id", "the id is not well formed")
            .hint("letters, digits, \".\", \"_\" and \"-\", a letter or digit first, at most 200 bytes");
    } else if id.len() > ID_BYTES_MAX {
        let message = format!(
            "the whole id {id:?} has {} bytes, and a file is called by it: {ID_BYTES_MAX} at most",
            id.len()
        );
        found
            .at(at)
            .fault(Rule::IdPattern, "id", message)
            .hint("give the nodes that cite fragments shorter ids");
    }
}
