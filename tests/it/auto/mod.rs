//! Planned graphs: what a goal becomes, and what each spawn of it is given.

mod argv;
mod background;
mod ceiling;
mod cut_off;
mod cycles;
mod feed;
mod planning;
mod resumed;
mod staging;

use serde_json::{Value, json};

use crate::env::TestEnv;

/// A planned node that reads.
fn node(id: &str, parents: &[&str], prompt: &str) -> Value {
    json!({"id": id, "depends_on": parents, "prompt": prompt, "allowed_tools": ["Read", "Bash(git *)"]})
}

fn graph(nodes: &[Value]) -> Value {
    json!({"name": "planned", "version": "1", "nodes": nodes})
}

/// A place whose planner answers with `first`, and with `second` once that was refused.
fn place(first: &str, second: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let cues = format!("You plan work => @say {first}\nYour last reply was refused => @say {second}\n");
    let cues = env.write("cues", cues);
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

/// A place whose planner answers with this graph.
fn planning(nodes: &[Value]) -> TestEnv {
    place(&graph(nodes).to_string(), "no")
}

/// The word after `flag` in what a spawn was started with.
fn after<'s>(spawn: &'s Value, flag: &str) -> Option<&'s str> {
    let argv = spawn["argv"].as_array()?;
    let at = argv.iter().position(|word| word == flag)?;
    argv.get(at + 1)?.as_str()
}

fn has(spawn: &Value, flag: &str) -> bool {
    spawn["argv"].as_array().unwrap().iter().any(|word| word == flag)
}

/// The spawns of the planner and those of nodes.
fn spawns(env: &TestEnv) -> (Vec<Value>, Vec<Value>) {
    env.spawns().into_iter().partition(|spawn| spawn["prompt"].as_str().unwrap().starts_with("You plan work"))
}
