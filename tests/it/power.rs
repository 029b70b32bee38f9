//! A machine that goes down keeps what was synced: the line of a short artifact, and not always its file (ADR 10,
//! `ARCHITECTURE` 5.2). Each test does to the files what a loss of power may have done.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::contract;
use crate::env::TestEnv;

const GRAPH: &str = r#"
nodes:
  - {id: asked, prompt: "@say one"}
  - {id: printed, type: command, command: "printf 'two\n'"}
  - {id: zeroes, type: command, command: "printf three"}
  - {id: edited, type: command, command: "printf four"}
  - {id: linked, type: command, command: "printf five"}
  - {id: gate, type: gate, depends_on: [asked, printed, zeroes, edited, linked]}
  - id: last
    type: command
    depends_on: [gate, asked, printed, zeroes, edited, linked]
    command: "cat $OMG_ARTIFACT_ASKED $OMG_ARTIFACT_PRINTED $OMG_ARTIFACT_ZEROES $OMG_ARTIFACT_EDITED $OMG_ARTIFACT_LINKED"
"#;

/// The artifact that the last terminal event of `node` carries.
fn carried(env: &TestEnv, node: &str) -> Option<String> {
    let is_end = |event: &Value| event["node_id"] == node && event.get("verdict").is_some();
    let end = env.events().into_iter().rfind(is_end)?;
    Some(end.get("artifact_text")?.as_str()?.to_owned())
}

#[test]
fn d5_a_short_artifact_that_never_reached_the_disk_is_put_back_and_not_paid_again() {
    let env = TestEnv::new();
    env.run_graph(GRAPH, &[]).exits(2);
    for (node, text) in [("asked", "one"), ("printed", "two\n")] {
        assert_eq!(carried(&env, node).as_deref(), Some(text), "{node}");
    }
    let path = |node: &str| env.run_dir().join(format!("{node}.out"));
    let victim = env.write("victim", "mine");
    fs::write(path("asked"), "").unwrap();
    fs::remove_file(path("printed")).unwrap();
    let hole = fs::File::create(path("zeroes")).unwrap();
    hole.set_len(5).unwrap();
    fs::write(path("edited"), "by hand ").unwrap();
    fs::remove_file(path("linked")).unwrap();
    symlink(&victim, path("linked")).unwrap();
    env.omg(&["resume", "latest", "--approve", "gate"]).exits(0);
    assert_eq!(String::from_utf8(env.artifact("last").unwrap()).unwrap(), "onetwo\nthreeby hand five");
    assert_eq!(env.spawns().len(), 1, "nothing was asked again");
    assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_run_that_has_ended_gets_its_artifacts_back_too() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: a, prompt: '@say one'}]", &[]).exits(0);
    fs::write(env.run_dir().join("a.out"), "").unwrap();
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert!(ran.stdout.contains("nothing to run again"), "{}", ran.stdout);
    assert_eq!((env.artifact("a").unwrap(), env.spawns().len()), (b"one".to_vec(), 1));
}

#[test]
fn an_artifact_that_is_long_or_no_text_is_not_in_its_line() {
    let env = TestEnv::new();
    let graph = "nodes:
  - {id: fits, type: command, command: \"head -c 4096 /dev/zero | tr '\\\\0' x\"}
  - {id: long, type: command, command: \"head -c 4097 /dev/zero | tr '\\\\0' x\"}
  - {id: silent, type: command, command: 'true'}
  - {id: bytes, type: command, command: \"printf '\\\\377'\"}";
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(carried(&env, "fits"), Some("x".repeat(4096)));
    assert_eq!((carried(&env, "long"), carried(&env, "bytes"), carried(&env, "silent")), (None, None, None));
    assert_eq!(env.artifact("silent").unwrap(), b"");
    assert_eq!(env.artifact("long").unwrap().len(), 4097);
    assert_eq!(env.artifact("bytes").unwrap(), [0xff]);
}

#[test]
fn a_node_that_failed_leaves_no_artifact_to_put_back() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: a, prompt: '@say no', success_check: {result_matches: yes}}, {id: b, prompt: '@say b'}]";
    env.run_graph(graph, &["--continue-on-fail"]).exits(1);
    assert_eq!((carried(&env, "a"), carried(&env, "b")), (None, Some("b".to_owned())));
    env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert_eq!(env.artifact("a"), None);
    contract::check_run_dir(&env.run_dir());
}
