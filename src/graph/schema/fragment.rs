//! The schema of fragment files: a node or nodes of a graph in which any value may stand open (FACTS 3.3).

use serde_json::{Value, json};

use super::{SEGMENT, merge, object};

/// The keys that a fragment of one node leaves to the node that cites it.
const CITERS_KEYS: [&str; 6] = ["id", "depends_on", "feedback", "cwd", "worktree", "setup"];

/// Makes the schema of fragments of that of graphs.
pub(super) fn of_fragments(mut graph: Value) -> Value {
    let mut defs = graph["$defs"].take();
    for of_a_type in defs.as_object_mut().into_iter().flat_map(|defs| defs.values_mut()) {
        let properties = of_a_type.get_mut("properties").and_then(Value::as_object_mut);
        properties.into_iter().flat_map(|properties| properties.values_mut()).for_each(open);
    }
    let node = object(&mut defs, "/node");
    // What a node is may itself stand open, so that its keys cannot be told from its type.
    node.remove("allOf");
    node.insert("if".to_owned(), json!({"required": ["use"]}));
    node.insert("then".to_owned(), json!({"properties": {"prompt": false, "command": false}}));
    node.remove("required");
    let mut schema = json!({
        "$schema": graph["$schema"],
        "title": "omg fragment",
        "description": "A part of a graph that graphs cite with `use`.",
        "type": "object",
        "required": ["fragment", "description"],
        "additionalProperties": false,
        "patternProperties": {"^x-": {"description": "Ignored."}},
        "oneOf": [
            {"required": ["node"], "properties": {"nodes": false, "exit": false}},
            {"required": ["nodes", "exit"], "properties": {"node": false}},
        ],
        "properties": {
            "fragment": {"description": "The fragment's name, that of its file.", "type": "string", "pattern": SEGMENT},
            "description": {"description": "What it is for.", "type": "string", "pattern": r"\S"},
            "substitutions": {
                "description": "The points that a citing node binds under `with`; the text says `{{ with.NAME }}`.",
                "type": "array",
                "items": {"type": ["string", "number"], "minLength": 1},
            },
            "exit": {
                "description": "The node that others wait for when they wait for the fragment.",
                "type": ["string", "number"],
                "minLength": 1,
            },
        },
        "$defs": defs,
    });
    let refused = CITERS_KEYS.map(|key| (key.to_owned(), Value::from(false)));
    let one = json!({
        "description": "The body of a fragment of one node; its id and place are the citing node's.",
        "$ref": "#/$defs/node",
        "properties": serde_json::Map::from_iter(refused),
    });
    let several = json!({
        "description": "The nodes of a fragment of several; their place is the citing node's.",
        "type": "array",
        "minItems": 1,
        "items": {
            "$ref": "#/$defs/node",
            "required": ["id"],
            "properties": {"cwd": false, "worktree": false, "setup": false, "depends_on": {"minItems": 1}},
        },
    });
    merge(object(&mut schema, "/properties"), json!({"node": one, "nodes": several}));
    schema
}

/// Lets a value be a substitution point.
fn open(property: &mut Value) {
    let description = property.get("description").cloned();
    let closed = property.take();
    *property = json!({"anyOf": [closed, {"type": "string", "pattern": r"\{\{\s*with\."}]});
    if let Some(description) = description {
        property["description"] = description;
    }
}
