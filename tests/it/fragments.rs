//! Graphs that cite fragments, run: what is told of them, what they leave, and how they go on (ADR 0013, 0027, 0029).

use std::fs;

use crate::contract;
use crate::env::{Running, TestEnv};

const ROUND: &str = "\
fragment: round
description: a draft and its polish
substitutions: [topic, spare]
exit: polish
nodes:
  - id: draft
    prompt: '@say a draft of {{ with.topic }}'
  - id: polish
    depends_on: [draft]
    prompt: |
      @say polished
      {{ artifacts.draft | inline }}
";

const GRAPH: &str = "\
name: essay
nodes:
  - {id: plan, prompt: '@say the plan'}
  - id: one
    use: round
    depends_on: [plan]
    with: {topic: '{{ artifacts.plan | inline }}', spare: ''}
  - {id: out, depends_on: [one], prompt: \"@say out\\n{{ artifacts.one | inline }}\"}
";

fn place() -> TestEnv {
    let env = TestEnv::new();
    env.write("fragments/round.yaml", ROUND);
    env
}

const DISCLOSED: &str = "fragment: node \"one\" spliced from \"round\" (fragments/round.yaml) — a draft and its polish — nodes: one/draft, one/polish";
const ADVISED: &str =
    "warning: fragments/round.yaml:3:24: substitutions: the fragment \"round\" declares \"spare\"";

#[test]
fn a_fragment_runs_as_its_nodes() {
    let env = place();
    let ran = env.run_graph(GRAPH, &[]).exits(0);
    assert!(ran.stdout.starts_with(DISCLOSED), "{}", ran.stdout);
    assert!(ran.stderr.contains(ADVISED), "{}", ran.stderr);
    assert_eq!(ran.row("one/polish").split_whitespace().nth(1), Some("PASS"), "{}", ran.stdout);
    let prompts: Vec<String> = env.spawns().iter().map(|spawn| spawn["prompt"].to_string()).collect();
    assert!(prompts[1].contains("a draft of the plan"), "{prompts:?}");
    assert!(prompts[2].contains("a draft of the plan"), "{prompts:?}");
    assert!(prompts[3].contains("polished"), "{prompts:?}");
    for name in ["one~draft", "one~polish", "plan", "out"] {
        assert!(env.artifact(name).is_some(), "{name}");
    }
    let attempts = env.run_dir().join("attempts");
    assert!(attempts.join("one~draft").is_dir(), "{:?}", fs::read_dir(attempts).unwrap().collect::<Vec<_>>());
    let ids: Vec<String> = ids(&env);
    assert_eq!(ids, ["plan", "one/draft", "one/polish", "out"]);
    let shown = env.omg(&["show", "latest", "one/draft"]).exits(0);
    assert!(shown.stdout.contains("a draft of the plan"), "{}", shown.stdout);
    contract::check_run_dir(&env.run_dir());
}

fn ids(env: &TestEnv) -> Vec<String> {
    let state = env.state();
    let nodes = state["graph"]["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn whoever_looks_before_running_is_told_the_same() {
    let env = place();
    env.write("g.yaml", GRAPH);
    let lint = env.omg(&["lint", "g.yaml"]).exits(0);
    assert!(lint.stdout.starts_with(DISCLOSED) && lint.stderr.contains(ADVISED), "{lint:?}");
    let dry = env.omg(&["run", "g.yaml", "--dry-run"]).exits(0);
    assert!(dry.stdout.contains(DISCLOSED) && dry.stderr.contains(ADVISED), "{dry:?}");
    assert!(dry.stdout.contains("  - one/polish (after one/draft)"), "{dry:?}");
    let rehearsed = env.omg(&["rehearse", "g.yaml"]).exits(0);
    assert!(rehearsed.stdout.contains(DISCLOSED), "{rehearsed:?}");
    let json = env.omg(&["lint", "g.yaml", "--json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let document = &document["files"][0];
    assert_eq!(document["fragments"][0]["nodes"], serde_json::json!(["one/draft", "one/polish"]));
    let advice = document["advice"].as_array().unwrap().last().unwrap();
    assert_eq!((&advice["id"], &advice["file"]), (&"OMG100".into(), &"fragments/round.yaml".into()));
    // A feed on standard output holds nothing else.
    let feed = env.omg(&["run", "g.yaml", "--json"]).exits(0);
    assert!(
        feed.stdout.lines().all(|line| line.starts_with('{')) && feed.stderr.contains(DISCLOSED),
        "{feed:?}"
    );
}

#[test]
fn a_later_leg_needs_no_fragment_any_more() {
    let env = TestEnv::new();
    env.write(
        "fragments/gated.yaml",
        "fragment: gated\ndescription: waits in the middle\nexit: after\nnodes:\n  - {id: before, prompt: '@say b'}\n  - {id: ok, type: gate, depends_on: [before]}\n  - {id: after, depends_on: [ok], prompt: \"@say a\\n{{ artifacts.before | inline }}\"}\n",
    );
    let graph = "nodes: [{id: g, use: gated}, {id: end, depends_on: [g], prompt: '@reply-n bad|fine', success_check: {result_matches: fine}}]";
    let paused = env.run_graph(graph, &[]).exits(2);
    assert!(paused.stdout.contains("--approve g/ok"), "{}", paused.stdout);
    fs::remove_dir_all(env.path("fragments")).unwrap();
    let resumed = env.omg(&["resume", "latest", "--approve", "g/ok"]).exits(1);
    assert!(!resumed.stdout.contains("fragment:"), "{}", resumed.stdout);
    assert!(env.artifact("g~after").is_some());
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.spawns().len(), 4, "what passed is not run again");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_loop_inside_a_fragment_runs_its_rounds() {
    let env = TestEnv::new();
    env.write(
        "fragments/qa.yaml",
        "fragment: qa\ndescription: tries until it is right\nsubstitutions: [answers]\nexit: check\nnodes:\n  - {id: try, prompt: \"@echo\\n[{{ feedback.check }}]\"}\n  - id: check\n    depends_on: [try]\n    prompt: '@reply-n {{ with.answers }}'\n    success_check: {result_matches: '^good'}\n    feedback: {rerun: try, max: 3}\n",
    );
    let graph = "
nodes:
  - {id: first, prompt: '@say f'}
  - {id: qa, use: qa, depends_on: [first], with: {answers: 'too short|too long|good'}}
  - {id: last, depends_on: [qa], prompt: '{{ artifacts.qa | inline }}'}
";
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.record("qa/check")["round"], 2);
    let told = env.artifact("qa~try").unwrap();
    assert!(told.ends_with(b"[too long]"), "{}", String::from_utf8_lossy(&told));
    assert!(env.run_dir().join("feedback/qa~check.out").is_file());
    assert_eq!(env.spawns().len(), 8);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn commands_find_artifacts_under_the_names_that_their_author_knows() {
    let env = TestEnv::new();
    env.write(
        "fragments/count.yaml",
        "fragment: count\ndescription: lists and counts\nexit: count\nnodes:\n  - {id: list, type: command, command: 'printf \"%s\\n\" a b; cat \"$OMG_ARTIFACT_FIRST\"'}\n  - {id: count, type: command, depends_on: [list], command: 'wc -l < \"$OMG_ARTIFACT_LIST\"'}\n",
    );
    let graph = "
nodes:
  - {id: first, type: command, command: echo c}
  - {id: n, use: count, depends_on: [first]}
  - id: end
    type: command
    depends_on: [n]
    command: 'cat \"$OMG_ARTIFACT_N\" \"$OMG_ARTIFACT_N_COUNT\"'
";
    env.run_graph(graph, &[]).exits(0);
    let told = String::from_utf8(env.artifact("end").unwrap()).unwrap();
    assert_eq!(told.split_whitespace().collect::<Vec<_>>(), ["3", "3"]);
}

#[test]
fn one_fault_of_a_fragment_is_one_problem_with_its_sites() {
    let env = TestEnv::new();
    env.write("fragments/f.yaml", "fragment: f\ndescription: d\nnode: {prompt: x, timeout: soon}\n");
    env.write("fragments/o.yaml", "fragment: o\ndescription: d\nexit: n\nnodes: [{id: n, use: f}]\n");
    env.write("g.yaml", "nodes:\n- {id: a, use: f}\n- {id: b, use: f}\n- {id: c, use: o}\n");
    let lint = env.omg(&["lint", "g.yaml"]).exits(1);
    assert_eq!(lint.stdout.matches("soon\" is not a duration").count(), 1, "{}", lint.stdout);
    assert!(
        lint.stdout
            .contains("  cited by node \"c\" at g.yaml:4:16, through node \"c/n\" at fragments/o.yaml:4:22")
    );
    assert!(lint.stderr.contains("g.yaml: 1 issue found"), "{}", lint.stderr);
    let json = env.omg(&["lint", "g.yaml", "--json"]).exits(1);
    let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let problem = &document["files"][0]["problems"][0];
    assert_eq!((&problem["file"], &problem["line"]), (&"fragments/f.yaml".into(), &3.into()));
    let nodes: Vec<&str> =
        problem["cited_by"].as_array().unwrap().iter().map(|cited| cited["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["a", "b", "c"]);
    assert_eq!(problem["cited_by"][2]["through"][0]["file"], "fragments/o.yaml");
    env.omg(&["run", "g.yaml"]).exits(1);
    assert!(env.runs().is_empty() && env.spawns().is_empty());
}

#[test]
fn a_graph_out_of_a_pipe_has_no_fragments() {
    let env = place();
    env.write("g.yaml", GRAPH);
    for line in ["cat g.yaml | $OMG lint /dev/stdin", "$OMG lint /dev/stdin < g.yaml"] {
        let said = Running::of(env.shell(line).env("OMG", crate::env::OMG)).wait().exits(1);
        assert!(
            said.stdout.contains("a graph that comes through a pipe has no directory"),
            "{}",
            said.stdout
        );
        assert!(said.stdout.contains("hint: save the graph as a file"), "{}", said.stdout);
    }
}

#[test]
fn a_fragment_is_looked_for_beside_the_graph_whatever_the_directory() {
    let env = TestEnv::new();
    env.write("graphs/fragments/round.yaml", ROUND);
    env.write("graphs/g.yaml", GRAPH);
    let lint = env.omg(&["lint", "graphs/g.yaml"]).exits(0);
    assert!(lint.stdout.contains("(graphs/fragments/round.yaml)"), "{}", lint.stdout);
    env.write("other/g.yaml", GRAPH);
    assert!(
        env.omg(&["lint", "other/g.yaml"]).exits(1).stdout.contains("no file other/fragments/round.yaml")
    );
    std::os::unix::fs::symlink("../graphs/fragments", env.path("other/fragments")).unwrap();
    env.omg(&["lint", "other/g.yaml"]).exits(0);
    // What is no file is not waited for.
    let pipe = env.path("graphs/fragments/pipe.yaml");
    assert!(env.program("mkfifo").arg(&pipe).status().unwrap().success());
    env.write("graphs/p.yaml", "nodes: [{id: a, use: pipe}]");
    assert!(env.omg(&["lint", "graphs/p.yaml"]).exits(1).stdout.contains("is no regular file"));
}
