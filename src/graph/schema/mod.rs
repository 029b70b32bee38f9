//! The JSON Schema of graph files, for editors: keys, types and texts come from [`raw`](crate::graph::raw), words and
//! bounds from where the checks have them.
//!
//! A schema sees one node at a time. It says no more than the loader does: what it refuses is refused there as well,
//! but for a key that is written and left empty. Ids that must exist, cycles and loops are `omg lint`'s.

mod fragment;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::graph::node::{Handoff, KIND_COMMAND, KIND_MODEL, KINDS, PermissionMode, REPEATS_MAX};
use crate::graph::raw::RawGraph;
use crate::graph::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, Cause, OnFail, id};
use crate::text::money::PRICE_USD_MAX;

/// A Go duration above nothing, or the empty text that counts as none.
const DURATION: &str = r"^$|^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$";
/// One segment of an id, a worktree's name or a fragment's.
const SEGMENT: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
/// A name without white space around it.
const TRIMMED: &str = r"^(\S([\s\S]*\S)?)?$";
/// The keys of a prompt node that mean nothing to a command node.
const PROMPT_KEYS: [&str; 8] =
    ["prompt", "allowed_tools", "permission_mode", "budget_usd", "handoff", "agent", "model", "effort"];

/// Makes the schema of a graph file, as JSON with a newline at its end. The program hands out the
/// file that was made so before; only the test that keeps that file true calls this, and the generator is left out of it.
pub fn graph() -> String {
    printed(&of_graphs())
}

/// Makes the schema of a fragment file, likewise.
pub fn fragment() -> String {
    printed(&fragment::of_fragments(of_graphs()))
}

fn printed(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).expect("a schema is plain JSON") + "\n"
}

fn of_graphs() -> Value {
    let mut schema = derived();
    merge(
        object(&mut schema, ""),
        json!({
            "title": "omg graph",
            "required": ["nodes"],
            "additionalProperties": false,
            "patternProperties": {"^x-": {"description": "Ignored: a home for anchors."}},
        }),
    );
    for (place, rule) in rules() {
        merge(object(&mut schema, place), rule);
    }
    schema
}

/// What schemars makes of the raw types, without what only Rust cares about.
fn derived() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<RawGraph>().to_value();
    tidy(&mut schema);
    schema
}

/// Takes away defaults that say nothing, integer formats, and the null of optional fields.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("format");
            members.remove("default");
            if let Some(Value::Array(types)) = members.get("type") {
                let kept = types.iter().find(|word| *word != "null").cloned();
                members.insert("type".to_owned(), kept.unwrap_or(Value::Null));
            }
            let only = members.get("anyOf").and_then(Value::as_array).and_then(|any| any.first()).cloned();
            if let Some(Value::Object(only)) = only {
                members.remove("anyOf");
                members.extend(only);
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// What is known of a place beyond its type: a JSON pointer, and what is added there.
fn rules() -> Vec<(&'static str, Value)> {
    // Text keeps the spelling of the file, so that a number or a yes is text as well.
    let text = json!({"type": ["string", "number", "boolean"]});
    let name = json!({"type": ["string", "number"], "pattern": SEGMENT, "maxLength": id::SEGMENT_BYTES_MAX});
    let reference = json!({"type": ["string", "number"], "minLength": 1});
    let duration = json!({"pattern": DURATION, "examples": ["90s", "45m", "1h30m"]});
    let trimmed = json!({"type": ["string", "number"], "pattern": TRIMMED});
    let words = |list: &[&str], default: &str| json!({"enum": list, "default": default});
    let causes: Vec<&str> = Cause::RETRYABLE.iter().map(|cause| cause.as_str()).collect();
    vec![
        ("/properties/name", text.clone()),
        ("/properties/version", text.clone()),
        ("/properties/inputs/items", reference.clone()),
        (
            "/properties/concurrency",
            json!({"minimum": 0, "default": CONCURRENCY_DEFAULT, "examples": [CONCURRENCY_MAX]}),
        ),
        ("/properties/on_fail", words(&OnFail::ALL.map(OnFail::as_str), OnFail::Halt.as_str())),
        ("/properties/max_usd", json!({"exclusiveMinimum": 0, "maximum": PRICE_USD_MAX})),
        ("/properties/max_executions", json!({"minimum": 1, "maximum": u32::MAX})),
        ("/properties/max_wall", duration.clone()),
        ("/properties/model", trimmed.clone()),
        ("/properties/effort", trimmed.clone()),
        ("/properties/setup", text.clone()),
        ("/properties/nodes", json!({"minItems": 1})),
        ("/$defs/node", node()),
        ("/$defs/node/properties/id", name.clone()),
        ("/$defs/node/properties/type", words(&KINDS, KIND_MODEL)),
        ("/$defs/node/properties/depends_on/items", reference.clone()),
        ("/$defs/node/properties/prompt", text.clone()),
        ("/$defs/node/properties/command", text.clone()),
        ("/$defs/node/properties/cwd", text.clone()),
        ("/$defs/node/properties/setup", text.clone()),
        (
            "/$defs/node/properties/allowed_tools/items",
            json!({"examples": ["Read", "Edit", "Bash(git diff:*)"]}),
        ),
        (
            "/$defs/node/properties/permission_mode",
            words(&PermissionMode::ALL.map(PermissionMode::as_str), PermissionMode::Auto.as_str()),
        ),
        ("/$defs/node/properties/budget_usd", json!({"minimum": 0, "maximum": PRICE_USD_MAX})),
        (
            "/$defs/node/properties/handoff",
            words(&Handoff::ALL.map(Handoff::as_str), Handoff::Artifact.as_str()),
        ),
        ("/$defs/node/properties/timeout", merged(&duration, &json!({"default": "20m"}))),
        ("/$defs/node/properties/agent", trimmed.clone()),
        ("/$defs/node/properties/model", trimmed.clone()),
        ("/$defs/node/properties/effort", trimmed),
        // The empty name counts as none.
        ("/$defs/node/properties/worktree", merged(&name, &json!({"pattern": format!("^$|{SEGMENT}")}))),
        ("/$defs/success_check", closed()),
        ("/$defs/success_check/properties/result_matches", json!({"examples": ["^[*_`\\s]*PASS"]})),
        ("/$defs/verify", merged(&closed(), &json!({"required": ["command"]}))),
        ("/$defs/verify/properties/command", merged(&text, &json!({"minLength": 1}))),
        ("/$defs/verify/properties/cwd", text),
        ("/$defs/verify/properties/timeout", merged(&duration, &json!({"default": "2m"}))),
        ("/$defs/verify/properties/expect_exit", json!({"minimum": 0, "maximum": 255, "default": 0})),
        ("/$defs/retry", merged(&closed(), &retry())),
        ("/$defs/retry/properties/max", json!({"minimum": 0, "maximum": REPEATS_MAX})),
        ("/$defs/retry/properties/on/items", json!({"enum": causes})),
        ("/$defs/feedback", merged(&closed(), &json!({"required": ["rerun", "max"]}))),
        ("/$defs/feedback/properties/rerun", reference),
        ("/$defs/feedback/properties/max", json!({"minimum": 1, "maximum": REPEATS_MAX})),
    ]
}

fn closed() -> Value {
    json!({"additionalProperties": false})
}

/// The rules of a node as a whole, and the keys that are spliced away before a node is one.
fn node() -> Value {
    let refused: Map<String, Value> =
        PROMPT_KEYS.iter().map(|key| ((*key).to_owned(), false.into())).collect();
    let is_command = json!({"properties": {"type": {"const": KIND_COMMAND}}, "required": ["type"]});
    json!({
        "required": ["id"],
        "additionalProperties": false,
        "properties": {
            "use": {
                "description": "The fragment that this node becomes: a file of the folder fragments beside the graph.",
                "type": "string",
                "pattern": SEGMENT,
            },
            "with": {
                "description": "The values of the fragment's substitution points, by name.",
                "type": "object",
            },
        },
        "dependentRequired": {"with": ["use"], "setup": ["worktree"]},
        "allOf": [
            {
                "if": is_command,
                "then": {"properties": refused},
                "else": {"properties": {"command": false}},
            },
            {
                "if": {"allOf": [is_command, {"not": {"required": ["use"]}}]},
                "then": {"required": ["command"]},
            },
            {"if": {"required": ["use"]}, "then": {"properties": {"prompt": false, "command": false}}},
            {
                "if": {"properties": {"worktree": {"minLength": 1}}, "required": ["worktree"]},
                "then": {"properties": {"cwd": {"maxLength": 0}}},
            },
        ],
    })
}

/// Causes are asked for only where there is something to retry.
fn retry() -> Value {
    json!({
        "if": {"properties": {"max": {"exclusiveMinimum": 0}}, "required": ["max"]},
        "then": {"required": ["on"], "properties": {"on": {"minItems": 1}}},
    })
}

/// The object at `place`, a JSON pointer.
///
/// # Panics
/// When the raw types have no such place; the test of the checked-in file calls all of this.
fn object<'v>(schema: &'v mut Value, place: &str) -> &'v mut Map<String, Value> {
    let found = schema.pointer_mut(place).and_then(Value::as_object_mut);
    found.unwrap_or_else(|| panic!("the raw types have no {place}"))
}

/// Adds `more` to `members`; `properties` grow, everything else is replaced.
fn merge(members: &mut Map<String, Value>, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        match (members.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if key == "properties" => old.extend(new),
            (_, value) => drop(members.insert(key, value)),
        }
    }
}

fn merged(one: &Value, more: &Value) -> Value {
    let mut members = one.as_object().cloned().unwrap_or_default();
    merge(&mut members, more.clone());
    Value::Object(members)
}
