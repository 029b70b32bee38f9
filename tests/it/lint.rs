//! `omg lint`: what each sweep says, in which forms, of which files, and how a run mentions it.

use std::path::{Path, PathBuf};

use omg::lint::{SWEEPS, Sweep};
use serde_json::Value;

use crate::env::TestEnv;

/// Warns of `no-tools-granted` at a, and of `duplicate-parent` at b.
const WARNED: &str = "nodes:\n  - {id: a, prompt: '@say a'}\n  - {id: b, type: command, command: 'true', depends_on: [a, a]}\n";
const CLEAN: &str = "nodes: [{id: a, type: command, command: 'true'}]\n";
const BROKEN: &str = "nodes:\n  - {id: a, promt: '50% of it'}\n";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lint")
}

/// The YAML files of a directory, by name.
fn graphs_of(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut graphs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    graphs.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    graphs.sort();
    graphs
}

/// The text is that of a file below `tests/golden/lint`; `OMG_UPDATE_GOLDENS=1` writes the file anew.
#[track_caller]
fn is_golden(name: &str, text: &str) {
    let path = golden().join(name);
    if std::env::var_os("OMG_UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
}

/// Each graph of `tests/golden/lint` is told of in exactly the words of the text beside it. A `told` graph is told of by its
/// sweep alone, a `quiet` one by none.
#[test]
fn every_sweep_says_exactly_this() {
    let mut env = TestEnv::new();
    env.set("IS_SANDBOX", "1");
    for sweep in SWEEPS {
        let graphs = graphs_of(&golden().join(sweep.id));
        let names: Vec<&str> =
            graphs.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
        assert!(names.contains(&"told") && names.contains(&"quiet"), "{}: {names:?}", sweep.id);
        for fragment in graphs_of(&golden().join(sweep.id).join("fragments")) {
            let name = Path::new("fragments").join(fragment.file_name().unwrap());
            env.write(name.to_str().unwrap(), std::fs::read(fragment).unwrap());
        }
        for (graph, name) in graphs.iter().zip(names) {
            let file = format!("{name}.yaml");
            env.write(&file, std::fs::read(graph).unwrap());
            let runtime = if sweep.id == "OMG091" { "codex" } else { "claude" };
            let ran = env.omg(&["--runtime", runtime, "lint", &file]).exits(0);
            let alone = ran.stderr.lines().all(|line| line.ends_with(&format!("[{}]", sweep.id)));
            assert!(alone, "{}:\n{}", graph.display(), ran.stderr);
            assert_eq!(
                ran.stderr.is_empty(),
                name.starts_with("quiet"),
                "{}:\n{}",
                graph.display(),
                ran.stderr
            );
            let text = format!("{}/{name}.txt", sweep.id);
            if !ran.stderr.is_empty() {
                is_golden(&text, &ran.stderr);
            }
        }
    }
}

/// The ids of what lint says of an example of a sweep, which is a graph, or a fragment that a graph cites.
fn said_of(sweep: &Sweep, example: &str) -> Vec<String> {
    let mut env = TestEnv::new();
    env.set("IS_SANDBOX", "1");
    if example.starts_with("fragment: check\n") {
        let points =
            example.lines().find_map(|line| line.strip_prefix("substitutions: [")?.strip_suffix(']'));
        let bound: Vec<String> = points.unwrap().split(", ").map(|point| format!("{point}: all")).collect();
        env.write("fragments/check.yaml", example);
        env.write("g.yaml", format!("nodes: [{{id: a, use: check, with: {{{}}}}}]\n", bound.join(", ")));
    } else {
        env.write("g.yaml", example);
    }
    let runtime = if sweep.id == "OMG091" { "codex" } else { "claude" };
    let report = env.omg(&["--runtime", runtime, "lint", "--json", "g.yaml"]).exits(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let advice = report["files"][0]["advice"].as_array().unwrap();
    advice.iter().map(|advice| advice["id"].as_str().unwrap().to_owned()).collect()
}

/// The page of lint shows these as what it tells of, and what not.
#[test]
fn every_sweep_speaks_of_its_bad_example_alone() {
    for sweep in SWEEPS {
        let ids = said_of(sweep, sweep.bad);
        let alone = !ids.is_empty() && ids.iter().all(|id| id == sweep.id);
        assert!(alone, "{}: {ids:?}\n{}", sweep.id, sweep.bad);
        assert_eq!(said_of(sweep, sweep.good), [] as [String; 0], "{}:\n{}", sweep.id, sweep.good);
    }
}

#[test]
fn what_is_allowed_in_a_graph_is_not_told() {
    let env = TestEnv::new();
    env.write("g.yaml", format!("x-omg-allow: [OMG020 a, OMG080]\n{WARNED}"));
    let ran = env.omg(&["lint", "--strict", "g.yaml"]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("g.yaml: valid\n", ""));
    assert!(!env.omg(&["rehearse", "g.yaml"]).exits(0).stderr.contains("lint warning"));
}

#[test]
fn several_files_are_told_in_turn_and_summed_up() {
    let env = TestEnv::new();
    env.write("ok.yaml", CLEAN);
    env.write("warned.yaml", WARNED);
    env.write("bad.yaml", BROKEN);
    env.write("latin.yaml", b"nodes:\n- {id: \xe9}\n");
    let ran = env.omg(&["lint", "ok.yaml", "warned.yaml", "ok.yaml"]).exits(0);
    assert_eq!(ran.stdout, "ok.yaml: valid\nwarned.yaml: valid\n2 files: all valid, 2 warnings\n");
    assert_eq!(ran.stderr.matches("warning: warned.yaml:").count(), 2, "{}", ran.stderr);
    let ran = env.omg(&["lint", "bad.yaml", "none.yaml", "latin.yaml", "warned.yaml"]).exits(1);
    insta::assert_snapshot!(ran.stdout, @r#"
    bad.yaml:2:13: node "a": unknown key "promt"
      |
    2 |   - {id: a, promt: '50% of it'}
      |             ^^^^^
      hint: did you mean "prompt"?
    bad.yaml: 1 issue found
    warned.yaml: valid
    "#);
    insta::assert_snapshot!(ran.stderr, @r#"
    omg: none.yaml: cannot be read: No such file or directory (os error 2)
    omg: latin.yaml:2:8: the file is not UTF-8 here (byte 0xe9)
    warning: warned.yaml:2:10: node "a": allowed_tools: no tool is granted, and no verify would show that one was refused: list what the node needs, or [] for nothing [OMG020]
    warning: warned.yaml:3:61: node "b": depends_on: names "a" more than once: it counts once [OMG080]
    omg: lint: 4 files, 3 invalid: 3 issues, 2 warnings
    "#);
}

#[test]
fn a_directory_is_its_graphs() {
    let env = TestEnv::new();
    for (name, text) in [
        ("graphs/b.yaml", WARNED),
        ("graphs/a.yml", CLEAN),
        ("graphs/sub/c.yaml", CLEAN),
        ("graphs/broken.yaml", "nodes: [{id: \"x}]\n"),
        ("graphs/fragments/f.yaml", "fragment: f\ndescription: x\nnode: {prompt: x}\n"),
        ("graphs/loop.yaml", "fragment: loop\ndescription: x\nnodes: [{id: a}]\n"),
        ("graphs/b.omgtest.yaml", "nodes: 1\n"),
        ("graphs/workflow.yml", "on: push\njobs: {}\n"),
        ("graphs/notes.txt", "nodes: 1\n"),
        ("graphs/.hidden/d.yaml", BROKEN),
        ("empty/readme.yaml", "a: b\n"),
    ] {
        env.write(name, text);
    }
    std::os::unix::fs::symlink("..", env.path("graphs/sub/up")).unwrap();
    let ran = env.omg(&["lint", "graphs"]).exits(1);
    let said = ran.stdout.lines().filter(|line| line.starts_with("graphs/")).collect::<Vec<_>>();
    insta::assert_snapshot!(said.join("\n"), @r#"
    graphs/a.yml: valid
    graphs/b.yaml: valid
    graphs/broken.yaml:1:14: the text that begins here has no closing quote
    graphs/broken.yaml: 1 issue found
    graphs/sub/c.yaml: valid
    "#);
    insta::assert_snapshot!(ran.stderr.lines().last().unwrap(), @r#"omg: lint: 4 files, 1 invalid: 1 issue, 2 warnings (2 files without a graph passed over)"#);
    insta::assert_snapshot!(env.omg(&["lint", "empty"]).exits(1).stderr, @r#"
    omg: empty: no graph was found (1 file without a graph passed over)
      hint: a graph is a *.yaml or *.yml file with nodes: at its top level
    "#);
    assert_eq!(env.omg(&["lint", "graphs/sub"]).exits(0).stdout, "graphs/sub/c.yaml: valid\n");
    let env = TestEnv::new();
    env.write("here.yaml", "nodes: [{id: a, type: gate}]");
    assert_eq!(env.omg(&["lint", "."]).exits(0).stdout, "here.yaml: valid\n");
}

#[test]
fn strict_fails_on_a_warning() {
    let env = TestEnv::new();
    env.write("g.yaml", WARNED);
    env.write("ok.yaml", CLEAN);
    let ran = env.omg(&["lint", "--strict", "g.yaml"]).exits(1);
    assert_eq!(ran.stdout, "g.yaml: valid\n");
    assert!(ran.stderr.ends_with("omg: g.yaml: 2 warnings, and --strict allows none\n"), "{}", ran.stderr);
    let ran = env.omg(&["lint", "--strict", "g.yaml", "ok.yaml"]).exits(1);
    assert!(
        ran.stderr.ends_with("omg: lint: 2 files: 2 warnings, and --strict allows none\n"),
        "{}",
        ran.stderr
    );
    env.omg(&["lint", "--strict", "ok.yaml"]).exits(0);
    for format in ["json", "sarif", "github"] {
        env.omg(&["lint", "--strict", "--format", format, "g.yaml"]).exits(1);
        env.omg(&["lint", "--format", format, "g.yaml"]).exits(0);
    }
}

#[test]
fn json_holds_every_file() {
    let env = TestEnv::new();
    env.write("warned.yaml", WARNED);
    env.write("bad.yaml", BROKEN);
    let ran = env.omg(&["lint", "--json", "warned.yaml", "bad.yaml", "none.yaml"]).exits(1);
    is_golden("several.json", &ran.stdout);
    let one: Value =
        serde_json::from_str(&env.omg(&["lint", "--format", "json", "warned.yaml"]).exits(0).stdout).unwrap();
    assert_eq!(
        (&one["schema"], &one["valid"], one["files"].as_array().map(Vec::len)),
        (&2.into(), &true.into(), Some(1))
    );
}

#[test]
fn sarif_names_rules_and_places() {
    let mut env = TestEnv::new();
    env.write("sub/a b.yaml", WARNED);
    env.write("sub/bad.yaml", BROKEN);
    env.set("GITHUB_WORKSPACE", env.work().to_str().unwrap());
    let ran = env.omg(&["lint", "--format", "sarif", "sub"]).exits(1);
    let log: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&log["version"], log["runs"].as_array().map(Vec::len)), (&"2.1.0".into(), Some(1)));
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), SWEEPS.len() + 1);
    let results = run["results"].as_array().unwrap();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"], "{result}");
    }
    is_golden("results.sarif.json", &serde_json::to_string_pretty(&results).unwrap());
}

#[test]
fn a_workflow_is_annotated_where_the_checkout_has_the_line() {
    let mut env = TestEnv::new();
    let top = env.work();
    env.write("sub/a,b.yaml", WARNED);
    env.write("sub/bad.yaml", BROKEN);
    let plain = env.omg(&["lint", "--format", "github", "sub"]).exits(1);
    insta::assert_snapshot!(plain.stdout, @r#"
    ::warning file=sub/a%2Cb.yaml,line=2,col=10,title=OMG020::node "a": allowed_tools: no tool is granted, and no verify would show that one was refused: list what the node needs, or [] for nothing
    ::warning file=sub/a%2Cb.yaml,line=3,col=61,title=OMG080::node "b": depends_on: names "a" more than once: it counts once
    ::error file=sub/bad.yaml,line=2,col=13,title=invalid graph::node "a": unknown key "promt"%0Ahint: did you mean "prompt"?
    "#);
    assert!(!env.omg(&["lint", "sub"]).exits(1).stdout.contains("::"));
    env.set("GITHUB_ACTIONS", "true").set("GITHUB_WORKSPACE", top.to_str().unwrap());
    let mut command = env.command(&["lint", "../sub"]);
    std::fs::create_dir(env.path("other")).unwrap();
    command.current_dir(env.path("other"));
    let ran = crate::env::Running::of(&mut command).wait().exits(1);
    let annotations: String =
        ran.stdout.lines().filter(|line| line.starts_with("::")).map(|line| format!("{line}\n")).collect();
    assert_eq!(annotations, plain.stdout);
    assert!(ran.stdout.contains("../sub/a,b.yaml: valid"), "{}", ran.stdout);
}

#[test]
fn a_sweep_is_explained_by_its_id_or_name() {
    let env = TestEnv::new();
    let told = env.omg(&["lint", "--explain", "omg080"]).exits(0).stdout;
    insta::assert_snapshot!(told, @r#"
    ## OMG080 duplicate-parent

    `depends_on` names a node more than once.

    It counts once. Most likely another node was meant, and the node does not wait for it.

    Told of:

    ```yaml
    nodes:
      - {id: build, type: command, command: make}
      - {id: test, type: command, depends_on: [build, build], command: make test}
    ```

    Not told of:

    ```yaml
    nodes:
      - {id: build, type: command, command: make}
      - {id: test, type: command, depends_on: [build], command: make test}
    ```
    "#);
    assert_eq!(env.omg(&["lint", "--explain", "duplicate-parent"]).exits(0).stdout, told);
    let unknown = |id: &str| env.omg(&["lint", "--explain", id]).exits(1).stderr;
    insta::assert_snapshot!([unknown("OMG8O0"), unknown("duplicate-parents"), unknown("x")].concat(), @r#"
    omg: lint: there is no sweep "OMG8O0"
      hint: did you mean "OMG010"?
    omg: lint: there is no sweep "duplicate-parents"
      hint: did you mean "duplicate-parent"?
    omg: lint: there is no sweep "x"
      hint: omg lint --list names them
    "#);
    let list = env.omg(&["lint", "--list"]).exits(0).stdout;
    assert_eq!(list.lines().count(), SWEEPS.len());
    assert!(list.contains("OMG080  duplicate-parent "), "{list}");
    env.omg(&["lint"]).exits(1);
}

#[test]
fn a_run_says_how_many_warnings_there_are_and_a_dry_run_which() {
    let env = TestEnv::new();
    for words in [&["run", "g.yaml"][..], &["rehearse", "g.yaml"]] {
        env.write("g.yaml", WARNED);
        let ran = env.omg(words).exits(0);
        assert!(ran.stderr.contains("2 lint warnings: omg lint g.yaml shows them\n"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("[OMG"), "{}", ran.stderr);
        env.write("g.yaml", CLEAN);
        assert!(!env.omg(words).exits(0).stderr.contains("lint warning"));
    }
    env.write("g.yaml", WARNED);
    let (linted, planned) = (env.omg(&["lint", "g.yaml"]), env.omg(&["run", "--dry-run", "g.yaml"]));
    assert_eq!(linted.exits(0).stderr, planned.exits(0).stderr);
    let piped = crate::env::Running::of(
        &mut env.shell(&format!("{} run /dev/stdin < g.yaml | cat", crate::env::OMG)),
    )
    .wait();
    assert!(piped.stderr.contains("2 lint warnings"), "{}", piped.stderr);
}

/// What a run warns of itself no file can silence.
#[test]
fn a_run_warns_of_bypassed_permissions_whatever_the_file_allows() {
    let env = TestEnv::new();
    let graph = "x-omg-allow: [OMG090]\nnodes:\n  - {id: a, prompt: '@say a', permission_mode: bypassPermissions}\n  \
                 - {id: ok, type: gate, depends_on: [a]}\n";
    let warning = "WARNING: node \"a\": permission_mode: bypassPermissions: nothing the node does is asked or denied [OMG090]";
    let ran = env.run_graph(graph, &[]).exits(2);
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let ran = env.omg(&["resume", "latest", "--approve", "ok"]).exits(0);
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(!env.omg(&["lint", "g.yaml"]).exits(0).stderr.contains("OMG090"));
    assert!(env.omg(&["run", "--dry-run", "g.yaml"]).exits(0).stderr.contains(warning));
}
