//! From a file to a graph: what is refused and in which words, what is only warned of, and that nothing is spent
//! before. The rules themselves are tested below; here is what a person sees.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::contract;
use crate::env::{Ran, Running, TestEnv};

/// What `lint` and `run` say of a graph that they refuse, in one text; that `run` spends nothing is checked.
#[track_caller]
fn refused(graph: &str) -> String {
    let env = TestEnv::new();
    let linted = lint(&env, graph).exits(1);
    let ran = env.run_graph(graph, &[]).exits(1);
    assert_eq!(linted.stdout, ran.stdout, "lint and run say the same");
    nothing_happened(&env);
    assert!(linted.stderr.starts_with("omg: g.yaml: "), "{}", linted.stderr);
    linted.stdout + &linted.stderr
}

fn lint(env: &TestEnv, graph: &str) -> Ran {
    env.write("g.yaml", graph);
    env.omg(&["lint", "g.yaml"])
}

#[track_caller]
fn nothing_happened(env: &TestEnv) {
    assert!(env.spawns().is_empty(), "{:?}", env.spawns());
    assert!(!env.home().exists(), "a run directory was made");
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn c2_a_file_with_crlf_is_the_same_graph() {
    let text = "name: two\nnodes:\n  - id: x\n    prompt: |\n      @say one\n\n      last line\n";
    let run = |text: &str| {
        let env = TestEnv::new();
        env.run_graph(text, &[]).exits(0);
        let state = env.state();
        (env.spawns()[0]["prompt"].clone(), state["graph"].clone(), state["graph_sha256"].clone())
    };
    let (lf, crlf) = (run(text), run(&text.replace('\n', "\r\n")));
    assert_eq!(lf.0, "@say one\n\nlast line\n");
    assert_eq!((&lf.0, &lf.1), (&crlf.0, &crlf.1));
    assert_ne!(lf.2, crlf.2, "the hash is that of the file's bytes");
}

#[test]
fn c3_a_misspelt_key_is_refused_with_the_right_one() {
    for (graph, meant) in [
        ("nodes: [{id: a, promt: x}]", "prompt"),
        ("nodes: [{id: a, prompt: x}, {id: b, prompt: x, depends-on: [a]}]", "depends_on"),
        ("nodes: [{id: a, prompt: x, timeouts: 1s}]", "timeout"),
        ("nodes: [{id: a, prompt: x, succes_check: {}}]", "success_check"),
        ("nodes: [{id: a, prompt: x, success_check: {verify: {comand: x}}}]", "command"),
        ("nodes: [{id: a, prompt: x, retry: {mx: 1}}]", "max"),
        ("concurency: 3\nnodes: [{id: a, prompt: x}]", "concurrency"),
    ] {
        says(&refused(graph), &["did you mean", meant]);
    }
}

#[test]
fn c3_a_tag_that_would_be_read_over_is_refused() {
    for tagged in ["!include other.txt", "!!binary aGk=", "!secret key", "!reference [a, b]"] {
        let tag = tagged.split(' ').next().unwrap();
        says(
            &refused(&format!("nodes:\n- id: a\n  prompt: {tagged}\n")),
            &["g.yaml:3:", &format!("the tag {tag}")],
        );
    }
    let env = TestEnv::new();
    lint(&env, "nodes: [{id: a, prompt: !!str 5}, {id: b, prompt: ! x}]").exits(0);
}

#[test]
fn c4_a_parent_named_twice_counts_once() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: z, prompt: '@say z'}, {id: x, prompt: '@say x', depends_on: [z, z]}]";
    says(
        &lint(&env, graph).exits(0).stderr,
        &["warning: g.yaml:1:78: node \"x\": depends_on:", "\"z\"", "[OMG080]"],
    );
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.record("x")["verdict"], "PASS");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn c5_a_graph_without_nodes_is_refused() {
    for graph in ["", "# only a comment\n", "---\n", "nodes: []\n", "name: n\n", "nodes:\n", "\u{feff}"] {
        let text = refused(graph);
        assert!(text.contains("node") || text.contains("empty"), "{graph:?}: {text}");
    }
}

#[test]
fn c6_a_second_document_is_refused() {
    let one = "nodes: [{id: a, prompt: x}]\n";
    says(&refused(&format!("{one}---\n{one}")), &["g.yaml:2:1", "document"]);
}

#[test]
fn c6_a_key_given_twice_is_refused() {
    for graph in [
        "nodes:\n  - id: a\n    prompt: x\n    prompt: y\n",
        "name: a\nnodes: [{id: a, prompt: x}]\nname: b\n",
    ] {
        says(&refused(graph), &["twice"]);
    }
}

#[test]
fn c7_a_cycle_is_told_once_and_without_its_lead_in() {
    let graph = "nodes: [{id: lead, prompt: x, depends_on: [c]}, {id: a, prompt: x, depends_on: [c]}, \
                 {id: b, prompt: x, depends_on: [a]}, {id: c, prompt: x, depends_on: [b]}]";
    let text = refused(graph);
    says(&text, &["a → b → c → a", "1 issue found"]);
    assert!(!text.lines().next().unwrap().contains("lead"), "{text}");
}

#[test]
fn c7_a_node_that_depends_on_itself_is_one_problem() {
    let text = refused("nodes: [{id: a, prompt: x, depends_on: [a]}]");
    says(&text, &["node \"a\"", "itself", "1 issue found"]);
}

#[test]
fn c9_inputs_that_do_not_fit_are_refused_before_anything_runs() {
    let env = TestEnv::new();
    env.write("g.yaml", "inputs: [name]\nnodes: [{id: x, prompt: '@say {{ inputs.name }}'}]");
    for (flags, parts) in [
        (&["--input", "nam=1"][..], &["\"nam\"", "did you mean \"name\"?", "no value"][..]),
        (&[], &["\"name\"", "node \"x\"", "no value", "--input name="]),
        (&["--input", "name=1", "--input", "name=2"], &["\"name\"", "twice"]),
        (&["--input", "name"], &["NAME=VALUE"]),
        (&["--input", "=1"], &["NAME=VALUE"]),
        (&["--inputs", "none.yaml"], &["none.yaml"]),
        (&["--inputs", "g.yaml"], &["g.yaml:2:"]),
    ] {
        let words = [&["run", "g.yaml"], flags].concat();
        let ran = env.omg(&words).exits(1);
        says(&ran.stderr, parts);
        assert!(ran.stderr.lines().count() <= 2, "{}", ran.stderr);
        nothing_happened(&env);
    }
}

#[test]
fn c10_a_value_arrives_byte_for_byte_and_is_not_read_again() {
    let values = [
        "x y  z",
        "--help",
        "x=y",
        "",
        "two\nlines",
        "{{ inputs.a }}",
        "'q' \"d\" $HOME `id` \\n",
        "ü\t\u{1f600}",
    ];
    for value in values {
        let env = TestEnv::new();
        let graph = "inputs: [a]\nnodes:\n  - {id: x, prompt: '[{{ inputs.a }}]'}\n  \
                     - {id: c, type: command, command: 'printf %s \"$OMG_INPUT_A\"'}";
        env.run_graph(graph, &["--input", &format!("a={value}")]).exits(0);
        assert_eq!(env.spawns()[0]["prompt"], format!("[{value}]"));
        assert_eq!(String::from_utf8(env.artifact("c").unwrap()).unwrap(), value);
        assert_eq!(env.state()["inputs"]["a"], value);
    }
}

#[test]
fn c10_a_file_of_inputs_stands_beside_the_flag() {
    let env = TestEnv::new();
    env.write("in.json", r#"{"a": "from \"file\"", "n": 3}"#);
    let graph = "nodes: [{id: x, prompt: '{{ inputs.a }}|{{ inputs.b }}|{{ inputs.n }}'}]";
    env.run_graph(graph, &["--inputs", "in.json", "--input", "b=flag"]).exits(0);
    assert_eq!(env.spawns()[0]["prompt"], "from \"file\"|flag|3");
    let ran = env.run_graph(graph, &["--inputs", "in.json", "--input", "a=1", "--input", "b=2"]).exits(1);
    says(&ran.stderr, &["\"a\"", "twice"]);
}

#[test]
fn c11_a_bound_that_cannot_be_is_refused_and_names_its_node() {
    for body in [
        "timeout: 0s",
        "timeout: -5s",
        "timeout: 30",
        "timeout: 1d",
        "timeout: '1 h'",
        "budget_usd: -1",
        "budget_usd: .nan",
        "budget_usd: .inf",
        "retry: {max: -1, on: [timeout]}",
        "retry: {max: 999999999, on: [timeout]}",
        "retry: {max: 99999999999999999999, on: [timeout]}",
        "success_check: {verify: {command: x, timeout: 11m}}",
        "success_check: {verify: {command: x, timeout: 0s}}",
    ] {
        let text = refused(&format!("nodes: [{{id: knot, prompt: x, {body}}}]"));
        says(&text, &["node \"knot\"", "g.yaml:1:"]);
    }
    says(&refused("concurrency: -1\nnodes: [{id: a, prompt: x}]"), &["g.yaml:1:", "concurrency"]);
}

#[test]
fn c12_retries_need_to_say_for_what() {
    let text = refused("nodes: [{id: a, prompt: '@exit 1', retry: {max: 2}}]");
    says(&text, &["node \"a\"", "on"]);
}

#[test]
fn c14_an_alias_bomb_is_refused() {
    let mut text = String::from("x-0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..=9 {
        let nine = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&["x-", &level.to_string(), ": &a", &level.to_string(), " [", &nine, "]\n"].concat());
    }
    text += "nodes: [{id: a, prompt: x, depends_on: *a9}]\n";
    says(&refused(&text), &["g.yaml:"]);
}

#[test]
fn c14_a_deep_document_does_not_overflow_the_stack() {
    let deep =
        format!("x-deep: {}{}\nnodes: [{{id: a, prompt: x}}]\n", "[".repeat(200_000), "]".repeat(200_000));
    says(&refused(&deep), &["g.yaml:1:"]);
    let nested: String = (0..5_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    says(&refused(&nested), &["g.yaml:"]);
}

#[test]
fn c14_long_chains_and_wide_fans_load() {
    let env = TestEnv::new();
    let chain: String = (0..3_000)
        .rev()
        .map(|at| match at {
            0 => "  - {id: n0, type: command, command: 'true'}\n".to_owned(),
            at => format!("  - {{id: n{at}, type: command, command: 'true', depends_on: [n{}]}}\n", at - 1),
        })
        .collect();
    says(&lint(&env, &format!("nodes:\n{chain}")).exits(0).stdout, &["g.yaml: valid"]);
    let names: Vec<String> = (0..5_000).map(|at| format!("n{at}")).collect();
    let fan: String =
        names.iter().map(|name| format!("  - {{id: {name}, type: command, command: 'true'}}\n")).collect();
    let last =
        format!("  - {{id: last, type: command, command: 'true', depends_on: [{}]}}\n", names.join(", "));
    says(&lint(&env, &format!("nodes:\n{fan}{last}")).exits(0).stdout, &["g.yaml: valid"]);
}

/// `omg` under a shell, for redirections.
fn shell(env: &TestEnv, line: &str) -> Ran {
    let mut command = Command::new("bash");
    command.arg("-c").arg(line).env_clear().current_dir(env.work()).stdin(Stdio::null());
    command.envs(env.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("OMG", env!("CARGO_BIN_EXE_omg"));
    Running::of(&mut command).wait()
}

const ADVISED: &str =
    "nodes: [{id: a, prompt: '@say a'}, {id: b, prompt: '@say {{ inputs.w }}', depends_on: [a, a]}]";

#[test]
fn c15_a_pipe_is_linted_like_a_file() {
    for (graph, code) in [(ADVISED, 0), ("nodes: [{id: a, promt: x}]", 1)] {
        let env = TestEnv::new();
        let wanted = lint(&env, graph).exits(code);
        for (line, name) in [
            ("$OMG lint <(cat g.yaml)", "/dev/fd/63"),
            ("$OMG lint /dev/stdin < g.yaml", "/dev/stdin"),
            ("cat g.yaml | $OMG lint /dev/stdin", "/dev/stdin"),
            ("mkfifo a.fifo; (cat g.yaml > a.fifo &) ; $OMG lint a.fifo", "a.fifo"),
        ] {
            let ran = shell(&env, line).exits(code);
            assert_eq!(ran.stdout.replace(name, "g.yaml"), wanted.stdout, "{line}");
            assert_eq!(ran.stderr.replace(name, "g.yaml"), wanted.stderr, "{line}");
        }
    }
}

#[test]
fn c15_a_pipe_is_run_like_a_file() {
    for line in [
        "$OMG run <(cat g.yaml) --input w=1",
        "$OMG run /dev/stdin --input w=1 < g.yaml",
        "cat g.yaml | $OMG run /dev/stdin --input w=1",
        "mkfifo p; (cat g.yaml > p &) ; $OMG run p --input w=1",
        "$OMG run g.yaml --inputs <(echo 'w: 1')",
    ] {
        let env = TestEnv::new();
        env.write("g.yaml", ADVISED);
        shell(&env, line).exits(0);
        assert_eq!(env.artifact("b").unwrap(), b"1", "{line}");
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn c16_a_prompt_too_long_for_a_word_goes_by_standard_input() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: a, prompt: '@big 3000000'}, \
                 {id: b, depends_on: [a], prompt: \"@say done\\n{{ artifacts.a | inline }}\"}]";
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.artifact("b").unwrap(), b"done");
    let second = &env.spawns()[1];
    assert_eq!(second["prompt"].as_str().unwrap().len(), "@say done\n".len() + 3_000_000);
    let longest = second["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().len()).max();
    assert!(longest.unwrap() < 1_000, "{longest:?}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn c16_prompts_on_both_sides_of_the_system_s_limit_arrive() {
    for (runtime, bytes) in [("claude", 131_071), ("claude", 131_072), ("codex", 131_071), ("codex", 131_072)]
    {
        let env = TestEnv::new();
        let fill = bytes - "@say ok\n".len();
        let graph = format!("nodes: [{{id: a, prompt: \"@say ok\\n{}\"}}]", "y".repeat(fill));
        env.run_graph(&graph, &["--runtime", runtime]).exits(0);
        assert_eq!(env.spawns()[0]["prompt"].as_str().unwrap().len(), bytes, "{runtime}");
    }
}

#[test]
fn c16_a_nul_in_a_prompt_or_a_command_is_refused_at_load() {
    for body in [
        r#"prompt: "a\0b""#,
        r#"type: command, command: "a\0b""#,
        r#"prompt: x, cwd: "a\0b""#,
        r#"prompt: x, success_check: {verify: {command: "a\0b"}}"#,
    ] {
        says(&refused(&format!("nodes: [{{id: knot, {body}}}]")), &["node \"knot\"", "NUL"]);
    }
}

#[test]
fn c18_a_dry_run_does_nothing_and_says_where_a_gate_stops() {
    let env = TestEnv::new();
    let graph = "name: plan\nnodes:\n  - {id: a, prompt: x, success_check: {verify: {command: 'touch verified'}}}\n  \
                 - {id: ok, type: gate, depends_on: [a]}\n  - {id: b, prompt: x, worktree: lane, depends_on: [ok]}\n  \
                 - {id: c, type: command, command: 'touch ran', depends_on: [a, b]}\n";
    let before: Vec<_> = std::fs::read_dir(env.work()).unwrap().collect();
    assert!(before.is_empty());
    let ran = env.run_graph(graph, &["--dry-run"]);
    says(
        &ran.stdout,
        &["Graph \"plan\" (4 nodes):", "- ok (after a) [gate: the run stops here", "- c (after a, b)"],
    );
    nothing_happened(&env);
    let after: Vec<_> =
        std::fs::read_dir(env.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(after, ["g.yaml"]);
}

#[test]
fn c18_a_dry_run_finds_what_a_run_would_be_refused_for() {
    let env = TestEnv::new();
    let ran = env.run_graph("nodes: [{id: a, prompt: x, cwd: /nonexistent}]", &["--dry-run"]).exits(1);
    says(&ran.stderr, &["node \"a\"", "/nonexistent"]);
    let ran = env.run_graph("nodes: [{id: a, prompt: '{{ inputs.v }}'}]", &["--dry-run"]).exits(1);
    says(&ran.stderr, &["\"v\"", "no value"]);
    let ran = env.run_graph("nodes: [{id: a, prompt: x}]", &["--dry-run"]).exits(0);
    says(&ran.stdout, &["nothing was executed"]);
    nothing_happened(&env);
}

#[test]
fn i5_a_reply_spliced_into_a_command_line_is_warned_of_and_the_safe_form_is_named() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: a, prompt: x}, {id: b, prompt: x, depends_on: [a], \
                 success_check: {verify: {command: \"test '{{ artifacts.a | inline }}' != y\"}}}]";
    says(&lint(&env, graph).exits(0).stderr, &["node \"b\"", "OMG_ARTIFACT_A"]);
}

#[test]
fn i5_the_exported_path_is_safe_whatever_the_reply_says() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: a, prompt: \"@say x'; touch pwned; echo '\"}, {id: b, prompt: '@say ok', depends_on: [a], \
                 success_check: {verify: {command: 'grep -q touch \"$OMG_ARTIFACT_A\"'}}}]";
    env.run_graph(graph, &[]).exits(0);
    assert!(!env.path("pwned").exists());
}

#[test]
fn a_file_with_several_problems_shows_each_in_its_place() {
    let env = TestEnv::new();
    let graph = "\
name: broken
concurency: 3
nodes:
  - id: build
    promt: compile it
    timeout: 30
  - id: test
    prompt: test it
    depends_on: [biuld]
    retry: {max: 2}
  - id: test
    type: shell
    prompt: again
";
    let ran = lint(&env, graph).exits(1);
    insta::assert_snapshot!(ran.stdout + &ran.stderr, @r#"
    g.yaml:2:1: unknown key "concurency"
      |
    2 | concurency: 3
      | ^^^^^^^^^^
      hint: did you mean "concurrency"?
    g.yaml:5:5: node "build": unknown key "promt"
      |
    5 |     promt: compile it
      |     ^^^^^
      hint: did you mean "prompt"?
    g.yaml:11:9: node "test": an earlier node has the same id
       |
    11 |   - id: test
       |         ^^^^
    g.yaml:12:11: node "test": type: "shell" is not one of claude-run, gate, command
       |
    12 |     type: shell
       |           ^^^^^
    g.yaml:9:18: node "test": depends_on names "biuld", which is no node of this graph
      |
    9 |     depends_on: [biuld]
      |                  ^^^^^
      hint: did you mean "build"?
    g.yaml:10:12: node "test": retry.max without retry.on retries nothing
       |
    10 |     retry: {max: 2}
       |            ^^^^^^^^
      hint: name the causes, as in on: [nonzero_exit, timeout]
    g.yaml:6:14: node "build": timeout "30" is not a duration: the unit is missing
      |
    6 |     timeout: 30
      |              ^^
      hint: write numbers with units, as in 90s, 10m or 1h30m
    omg: g.yaml: 7 issues found
    "#);
}

#[test]
fn a_file_that_is_not_yaml_says_where() {
    let env = TestEnv::new();
    let ran = lint(&env, "nodes:\n  - id: a\n\tprompt: x\n").exits(1);
    insta::assert_snapshot!(ran.stdout + &ran.stderr, @"
    g.yaml:3:1: a tab indents this line, and YAML allows none there
      |
    3 |     prompt: x
      | ^
      hint: indent with spaces
    omg: g.yaml: 1 issue found
    ");
    let ran = lint(&env, "nodes: [{id: a, prompt: \"x}]\n").exits(1);
    insta::assert_snapshot!(ran.stdout + &ran.stderr, @r#"
    g.yaml:1:25: the text that begins here has no closing quote
      |
    1 | nodes: [{id: a, prompt: "x}]
      |                         ^
      hint: add the quote at its end
    omg: g.yaml: 1 issue found
    "#);
    let ran = lint(&env, "nodes:\n  - id: a\n    prompt: say: this\n").exits(1);
    insta::assert_snapshot!(ran.stdout + &ran.stderr, @"
    g.yaml:3:16: a colon stands where no key can
      |
    3 |     prompt: say: this
      |                ^
      hint: put quotes around text that holds a colon and a space, and check the indentation
    omg: g.yaml: 1 issue found
    ");
}

#[test]
fn an_artifact_that_can_never_be_there_costs_nothing() {
    let graph = "nodes:\n  - {id: draft, prompt: '@say x'}\n  - {id: late, prompt: '@sleep 1'}\n  - {id: b, depends_on: [draft], prompt: '{{ artifacts.draf }}'}\n";
    let env = TestEnv::new();
    let told = "node \"b\": prompt: {{ artifacts.draf }} names \"draf\", which is no node of this graph; did you mean \"draft\"?";
    says(&lint(&env, graph).exits(0).stderr, &[told]);
    for words in [&["run"][..], &["run", "--dry-run"], &["rehearse"]] {
        let ran = env.omg(&[words, &["g.yaml"]].concat()).exits(1);
        says(&ran.stderr, &[told, "nothing was run"]);
    }
    nothing_happened(&env);
    let linted = lint(&env, &graph.replace("draf ", "late ")).exits(0);
    says(&linted.stderr, &["does not wait for \"late\"; add it to depends_on"]);
}

/// The graph that the first page shows is one that nothing is to be said of.
#[test]
fn the_graph_of_the_readme_is_sound() {
    let page = include_str!("../../README.md");
    let graph = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let env = TestEnv::new();
    assert_eq!(lint(&env, graph).exits(0).stderr, "");
    env.omg(&["rehearse", "g.yaml"]).exits(0);
}

#[test]
fn a_file_that_cannot_be_read_is_one_line() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("folder")).unwrap();
    env.write("latin", b"nodes:\n- {id: \xe9}\n");
    let said = |name: &str| env.omg(&["lint", name]).exits(1).stderr;
    insta::assert_snapshot!([said("none.yaml"), said("folder"), said("latin")].concat(), @"
    omg: none.yaml: cannot be read: No such file or directory (os error 2)
    omg: folder: no graph was found
      hint: a graph is a *.yaml or *.yml file with nodes: at its top level
    omg: latin:2:8: the file is not UTF-8 here (byte 0xe9)
    ");
}

#[test]
fn lint_speaks_json() {
    let env = TestEnv::new();
    env.write("bad.yaml", "nodes:\n  - {id: a, promt: x}\n");
    let ran = env.omg(&["lint", "--json", "bad.yaml"]).exits(1);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["schema"], 2);
    assert_eq!(document["valid"], false);
    let problem = &document["files"][0]["problems"][0];
    assert_eq!(
        (&problem["file"], &problem["line"], &problem["node"]),
        (&"bad.yaml".into(), &2.into(), &"a".into())
    );
    assert!(problem["hint"].as_str().unwrap().contains("prompt"), "{problem}");

    env.write("ok.yaml", ADVISED);
    let ran = env.omg(&["lint", "ok.yaml", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["valid"], true);
    assert!(
        document["files"][0]["advice"].as_array().unwrap().iter().any(|advice| advice["node"] == "b"),
        "{document}"
    );
}
