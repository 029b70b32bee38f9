//! `omg graph`: a graph, and a run's graph, in every format.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::TestEnv;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/draw").join(name)
}

/// The picture is the kept one; `OMG_UPDATE_DOCS=1` keeps it anew.
#[track_caller]
fn is_golden(name: &str, picture: &str) {
    let path = golden(name);
    if std::env::var_os("OMG_UPDATE_DOCS").is_some() {
        fs::write(&path, picture).unwrap();
        return;
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), picture, "{name}");
}

const RUN: &str = r"
name: made
nodes:
  - {id: fine, prompt: '@say x'}
  - {id: sign, type: gate, depends_on: [fine]}
  - {id: publish, prompt: x, depends_on: [sign]}
  - {id: bad, prompt: '@exit 3'}
  - {id: after, type: command, command: 'true', depends_on: [bad]}
";

#[test]
fn a_graph_is_drawn_in_every_format() {
    let env = TestEnv::new();
    let graph = golden("release.yaml");
    let graph = graph.to_str().unwrap();
    let text = env.omg(&["graph", graph]).exits(0).stdout;
    is_golden("release.txt", &text);
    for format in ["mermaid", "dot", "svg", "json"] {
        let ran = env.omg(&["graph", graph, "--format", format]).exits(0);
        is_golden(&format!("release.{format}"), &ran.stdout);
        assert_eq!(ran.stderr, "");
    }
    assert!(!env.home().exists(), "drawing makes nothing");
}

#[test]
fn where_the_locale_shows_ascii_only_so_does_the_picture() {
    let mut env = TestEnv::new();
    env.set("LC_ALL", "C");
    let text = env.omg(&["graph", golden("release.yaml").to_str().unwrap()]).exits(0).stdout;
    assert!(text.is_ascii(), "{text}");
    is_golden("release.ascii.txt", &text);
}

#[test]
fn a_run_is_drawn_with_what_became_of_each_node() {
    let env = TestEnv::new();
    env.run_graph(RUN, &["--continue-on-fail"]).exits(2);
    let run = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    let text = env.omg(&["graph", "--run", "latest"]).exits(0).stdout;
    let row = |text: &str, node: &str| -> String {
        text.lines().find(|line| line.contains(&format!(" {node} "))).unwrap().to_owned()
    };
    assert!(text.starts_with(&format!("run {run} of made — PAUSED: 5 nodes in 3 steps\n")), "{text}");
    for (node, state) in [
        ("fine", "PASS (exit-only)"),
        ("sign", "WAITING"),
        ("publish", "NOT RUN"),
        ("bad", "FAIL"),
        ("after", "NOT RUN"),
    ] {
        assert!(row(&text, node).contains(state), "{text}");
    }
    assert!(text.ends_with("1 PASS, 1 FAIL, 1 WAITING, 2 NOT RUN\n"), "{text}");

    env.omg(&["resume", &run, "--reject", "sign"]).exits(1);
    let text = env.omg(&["graph", "--run", &run[..10]]).exits(0).stdout;
    assert!(row(&text, "publish").contains("SKIPPED (gate sign was rejected)"), "{text}");
    assert!(row(&text, "after").contains("SKIPPED"), "{text}");
    let coloured = env.omg(&["--color", "always", "graph", "--run", &run]).exits(0).stdout;
    assert!(coloured.contains("\u{1b}[31mFAIL"), "{coloured}");

    let json = env.omg(&["graph", "--run", &run, "--format", "json"]).exits(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["run_id"]), (&1.into(), &run.as_str().into()));
    assert_eq!((&json["nodes"][3]["state"], &json["nodes"][3]["tone"]), (&"FAIL".into(), &"bad".into()));
    let svg = env.omg(&["graph", "--run", &run, "--format", "svg"]).exits(0).stdout;
    assert!(svg.contains("class=\"n bad\"") && svg.contains(">FAIL<") && !svg.contains("<script"), "{svg}");
}

#[test]
fn what_cannot_be_drawn_is_told_in_a_line() {
    let env = TestEnv::new();
    env.write("bad.yaml", "nodes: [{id: a, promt: x}]");
    env.write("g.yaml", "nodes: [{id: a, prompt: x}]");
    for (words, told) in [
        (&["graph"][..], "<GRAPH> is missing"),
        (&["graph", "g.yaml", "--run", "latest"], "--run"),
        (&["graph", "nowhere.yaml"], "nowhere.yaml"),
        (&["graph", "bad.yaml"], "1 issue found"),
        (&["graph", "--run", "latest"], "no runs yet"),
        (&["graph", "g.yaml", "--format", "png"], "text, mermaid, dot, svg, json"),
    ] {
        let ran = env.omg(words).exits(1);
        assert!(ran.stderr.contains(told), "{words:?}: {}", ran.stderr);
    }
}
