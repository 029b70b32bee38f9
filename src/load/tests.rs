//! Files as a person writes them: what loads, what is refused, and in which words.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::graph::Work;

pub(super) fn source(text: &str) -> Source {
    Source::from_bytes(Path::new("g.yaml"), text.as_bytes().to_vec())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn loaded(text: &str) -> Loaded {
    load(&source(text)).unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)))
}

fn refused(text: &str) -> Problems {
    match load(&source(text)) {
        Ok(_) => panic!("it loads: {text}"),
        Err(problems) => problems,
    }
}

/// Compares the lines said about each file.
#[track_caller]
fn table(cases: &[(&str, &[&str])]) {
    for (text, wanted) in cases {
        assert_eq!(refused(text).lines(), *wanted, "{text}");
    }
}

fn prompt(graph: &Graph, at: usize) -> &str {
    match &graph.nodes()[at].work {
        Work::Model(model) => &model.prompt,
        other => panic!("{other:?}"),
    }
}

const FULL: &str = r#"
name: demo
version: 0.10
inputs: [repo, task]
concurrency: 2
on_fail: continue
model: opus
x-shared: &base
  cwd: "{{ inputs.repo }}"
  timeout: 45m
nodes:
  - id: 1
    <<: *base
    prompt: |
      Do {{ inputs.task }}.
        Indented.
    allowed_tools: [Read, "Bash(make *)"]
    permission_mode: plan
    budget_usd: 2
    retry: { max: 2.0, on: [nonzero_exit, timeout] }
    success_check: { exit_zero: yes, result_matches: '^PASS$', verify: { command: make, expect_exit: 0 } }
  - { id: gate, type: gate, depends_on: [1] }
  - id: cmd
    type: command
    depends_on: [gate]
    command: echo hi
    leave_running: on
"#;

#[test]
fn a_whole_graph_loads() {
    let loaded = loaded(FULL);
    let graph = &loaded.graph;
    assert_eq!((graph.name.as_str(), graph.version.as_str()), ("demo", "0.10"));
    assert_eq!(graph.nodes()[0].id.as_str(), "1");
    assert_eq!(graph.nodes()[0].cwd.as_deref(), Some("{{ inputs.repo }}"));
    assert_eq!(graph.nodes()[0].timeout.map(|t| t.as_secs()), Some(45 * 60));
    assert_eq!(prompt(graph, 0), "Do {{ inputs.task }}.\n  Indented.\n");
    assert_eq!(graph.nodes()[0].retry.max, 2);
    assert!(graph.nodes()[0].check.exit_zero && graph.nodes()[2].leave_running);
    assert_eq!(graph.effective_concurrency(None), 2);
    assert_eq!(loaded.advice, []);
    assert_eq!(loaded.sha256.len(), 64);
}

#[test]
fn json_is_yaml() {
    let json = "{\n\t\"name\": \"x\",\n\t\"nodes\": [{\"id\":\"a\",\"prompt\":\"\\ud83d\\ude00 \\/ \\u00e9\\n\"}]\n}\n";
    assert_eq!(prompt(&loaded(json).graph, 0), "😀 / é\n");
}

#[test]
fn c2_crlf_is_lf() {
    let crlf = loaded(&FULL.replace('\n', "\r\n"));
    let lf = loaded(FULL);
    assert_eq!(prompt(&crlf.graph, 0), "Do {{ inputs.task }}.\n  Indented.\n");
    assert_eq!(crlf.raw.clone().normalised(), lf.raw.clone().normalised());
    assert_ne!(crlf.sha256, lf.sha256);
    let folded = "nodes:\r\n  - id: a\r\n    prompt: >\r\n      one\r\n      two\r\n\r\n      three\r\n  - id: b\r\n    prompt: \"x\r\n      y\"\r\n  - id: c\r\n    prompt: x\r\n      y\r\n";
    let graph = loaded(folded).graph;
    assert_eq!((prompt(&graph, 0), prompt(&graph, 1), prompt(&graph, 2)), ("one two\nthree\n", "x y", "x y"));
}

#[test]
fn a_byte_order_mark_is_no_content() {
    assert_eq!(loaded("\u{feff}nodes: [{id: a}]\n").graph.nodes().len(), 1);
    table(&[("\u{feff}nodez: []\n", &["g.yaml:1:1: unknown key \"nodez\""])]);
}

#[test]
fn c3_a_misspelled_key_is_refused_with_the_right_one() {
    let text = "concurency: 2\nx-anchors: {}\nnodes:\n  - id: a\n    promt: x\n    depends-on: [b]\n    timeouts: 1m\n    succes_check: {}\n  - id: b\n    success_check: {verify: {comand: x}}\n    retry: {max: 1, no: [timeout]}\n    banana: 1\n";
    table(&[(
        text,
        &[
            "g.yaml:1:1: unknown key \"concurency\"",
            "g.yaml:5:5: node \"a\": unknown key \"promt\"",
            "g.yaml:6:5: node \"a\": unknown key \"depends-on\"",
            "g.yaml:7:5: node \"a\": unknown key \"timeouts\"",
            "g.yaml:8:5: node \"a\": unknown key \"succes_check\"",
            "g.yaml:10:30: node \"b\": unknown key \"comand\"",
            "g.yaml:11:21: node \"b\": unknown key \"no\"",
            "g.yaml:12:5: node \"b\": unknown key \"banana\"",
            "g.yaml:11:12: node \"b\": retry.max without retry.on retries nothing",
        ],
    )]);
    let hints: Vec<Option<String>> = refused(text).reports().into_iter().map(|report| report.hint).collect();
    let meant = |key: &str| Some(format!("did you mean {key:?}?"));
    assert_eq!(
        hints[..6],
        [
            meant("concurrency"),
            meant("prompt"),
            meant("depends_on"),
            meant("timeout"),
            meant("success_check"),
            meant("command")
        ]
    );
    assert!(hints[7].as_deref().is_some_and(|hint| hint.starts_with("the keys here are id, type, ")));
}

#[test]
fn c5_a_graph_without_nodes_is_refused() {
    table(&[
        ("", &["g.yaml:1:1: the file is empty"]),
        ("# only\n# comments\n", &["g.yaml:1:1: the file is empty"]),
        ("---\n", &["g.yaml:1:4: the file is empty"]),
        ("~", &["g.yaml:1:1: the file is empty"]),
        ("nodes: []\n", &["g.yaml:1:8: the graph has no nodes"]),
        ("name: x\n", &["g.yaml:1:1: the graph has no nodes"]),
        ("nodes:\n", &["g.yaml:1:6: the graph has no nodes"]),
    ]);
}

#[test]
fn c6_a_second_document_and_a_repeated_key_are_refused() {
    table(&[
        ("nodes: [{id: a}]\n---\nnodes: [{id: b}]\n", &["g.yaml:2:1: a second document begins here"]),
        (
            "nodes:\n  - id: a\n    prompt: x\n    prompt: y\nname: x\nname: z\n",
            &[
                "g.yaml:4:5: node \"a\": the key \"prompt\" stands twice in this mapping",
                "g.yaml:6:1: the key \"name\" stands twice in this mapping",
            ],
        ),
    ]);
    let many: String = (0..200).fold("nodes: [{id: a}]\nx-many:\n".to_owned(), |mut text, n| {
        writeln!(text, "  k{}: 1", n % 150).expect("writing to a string");
        text
    });
    assert_eq!(refused(&many).len(), 50);
    assert_eq!(refused(&many).lines()[0], "g.yaml:153:3: the key \"k0\" stands twice in this mapping");
}

#[test]
fn c7_a_citation_is_refused_in_plain_words() {
    table(&[
        (
            "nodes: [{id: a, use: ../x, with: {a: 1}}]",
            &["g.yaml:1:22: node \"a\": use names \"../x\", which is no name of a fragment"],
        ),
        (
            "nodes: [{id: a, use: x}]",
            &["g.yaml:1:22: node \"a\": use names the fragment \"x\", and this graph may cite none"],
        ),
        (
            "nodes: [{id: a, with: {a: 1}}]",
            &["g.yaml:1:17: node \"a\": with binds the values of a fragment, and no use: names one"],
        ),
    ]);
}

#[test]
fn types_are_told_with_the_value_that_was_found() {
    table(&[
        ("[]", &["g.yaml:1:1: a graph is a mapping with the key nodes, and this is a list"]),
        ("hello", &["g.yaml:1:1: a graph is a mapping with the key nodes, and this is \"hello\""]),
        ("nodes: x", &["g.yaml:1:8: nodes takes a list of nodes, and this is \"x\""]),
        ("nodes: [x]", &["g.yaml:1:9: node 1: a node is a mapping with the key id, and this is \"x\""]),
        (
            "inputs: who\nnodes: [{id: a, depends_on: b}]",
            &[
                "g.yaml:1:9: inputs takes a list, and this is \"who\"",
                "g.yaml:2:29: node \"a\": depends_on takes a list, and this is \"b\"",
            ],
        ),
        (
            "nodes: [{id: a, retry: {max: 2.5}, budget_usd: \"1\", success_check: {exit_zero: \"true\"}}]",
            &[
                "g.yaml:1:30: node \"a\": max takes a whole number, and this is \"2.5\"",
                "g.yaml:1:48: node \"a\": budget_usd takes a number, and this is the text \"1\"",
                "g.yaml:1:80: node \"a\": exit_zero takes true or false, and this is the text \"true\"",
            ],
        ),
        (
            "nodes: [{id: a, prompt: [x], depends_on: [~, [b]], retry: 3, feedback: x}]",
            &[
                "g.yaml:1:25: node \"a\": prompt takes text, and this is a list",
                "g.yaml:1:43: node \"a\": depends_on is a list of texts, and this is nothing",
                "g.yaml:1:46: node \"a\": depends_on is a list of texts, and this is a list",
                "g.yaml:1:59: node \"a\": retry takes a mapping, and this is \"3\"",
                "g.yaml:1:72: node \"a\": feedback takes a mapping, and this is \"x\"",
            ],
        ),
        (
            "nodes:\n  - prompt: {{ inputs.x }}\n    id: a\n",
            &["g.yaml:2:13: node 1: prompt takes text, and this is a mapping"],
        ),
        (
            "nodes: [{id: a, ? [x] : 1}]",
            &["g.yaml:1:19: node \"a\": a key is one word, and this is a list or a mapping"],
        ),
    ]);
    let hint = |text: &str| refused(text).reports()[0].hint.clone().unwrap_or_default();
    assert_eq!(hint("nodes: [{id: a, depends_on: b}]"), "write depends_on: [b]");
    assert_eq!(hint("nodes: [{id: a, retry: {max: '2'}}]"), "leave the quotes out");
    assert_eq!(
        hint("nodes: [{id: a, cwd: {{ inputs.x }}}]"),
        "put quotes around a value that begins with {{"
    );
}

#[test]
fn words_keep_their_spelling_and_nothing_is_unset() {
    let loaded = loaded(
        "name: ~\nversion: 1\nnodes:\n  - {id: 0x1F, prompt: yes, agent: null, cwd: , depends_on: ~, retry: ~, success_check: {verify: ~}}\n  - {id: on, prompt: '~', success_check: ~}\n",
    );
    let graph = &loaded.graph;
    assert_eq!((graph.name.as_str(), graph.version.as_str()), ("", "1"));
    assert_eq!((graph.nodes()[0].id.as_str(), prompt(graph, 0)), ("0x1F", "yes"));
    assert_eq!((graph.nodes()[1].id.as_str(), prompt(graph, 1)), ("on", "~"));
    assert_eq!(loaded.raw.nodes[0].cwd, None);
}

#[test]
fn no_tools_and_no_word_of_tools_differ() {
    let raw = loaded("nodes: [{id: a, allowed_tools: []}, {id: b}, {id: c, allowed_tools: ~}]").raw;
    let tools: Vec<Option<usize>> =
        raw.nodes.iter().map(|node| node.allowed_tools.as_ref().map(Vec::len)).collect();
    assert_eq!(tools, [Some(0), None, None]);
}

#[test]
fn faults_have_the_place_of_their_field() {
    table(&[
        (
            "nodes:\n  - id: a\n    timeout: 30\n    retry:\n      on: [timeout, timout]\n      max: 1\n    success_check:\n      verify:\n        timeout: 1h\n",
            &[
                "g.yaml:9:9: node \"a\": verify has no command",
                "g.yaml:9:18: node \"a\": verify.timeout \"1h\" is longer than 10m0s",
                "g.yaml:5:21: node \"a\": retry.on: \"timout\" is not one of nonzero_exit, run_error, timeout, output_error, budget_exceeded, verify_failed, result_mismatch",
                "g.yaml:3:14: node \"a\": timeout \"30\" is not a duration: the unit is missing",
            ],
        ),
        (
            "nodes:\n  - prompt: x\n  - id: b\n    depends_on:\n      - nope\n  - {id: c, type: command}\n",
            &[
                "g.yaml:2:5: node 1: the node has no id",
                "g.yaml:5:9: node \"b\": depends_on names \"nope\", which is no node of this graph",
                "g.yaml:6:10: node \"c\": a command node has no command",
            ],
        ),
        (
            "x-t: &t {timeout: 1d}\nnodes:\n  - <<: *t\n    id: a\n",
            &[
                "g.yaml:1:19: node \"a\": timeout \"1d\" is not a duration: the unit is not one of ns, us, ms, s, m and h",
            ],
        ),
        (
            "nodes: [{id: a/b}]",
            &["g.yaml:1:14: node \"a/b\": the id holds \"/\", which only the nodes of a fragment have"],
        ),
    ]);
}

#[test]
fn what_could_not_be_read_is_told_once() {
    table(&[
        (
            "nodes:\n  - id: [x]\n  - id: b\n    depends_on: [x]\n    handoff: session\n",
            &["g.yaml:2:9: node 1: id takes text, and this is a list"],
        ),
        (
            "nodes:\n  - {id: a, type: [command], command: x}\n  - {id: b, type: command, comand: x}\n",
            &[
                "g.yaml:2:19: node \"a\": type takes text, and this is a list",
                "g.yaml:3:28: node \"b\": unknown key \"comand\"",
            ],
        ),
        (
            "nodes:\n  - {id: a, retry: {max: 1, on: timeout}, success_check: {verify: {command: [x]}}, feedback: {rerun: a, mx: 1}}\n",
            &[
                "g.yaml:2:33: node \"a\": on takes a list, and this is \"timeout\"",
                "g.yaml:2:77: node \"a\": command takes text, and this is a list",
                "g.yaml:2:105: node \"a\": unknown key \"mx\"",
                "g.yaml:2:102: node \"a\": feedback.rerun names the node itself, which is no ancestor of it",
            ],
        ),
    ]);
}

#[test]
fn every_problem_of_a_file_of_one_line_has_its_column() {
    let nodes: Vec<String> = (0..5_000).map(|n| format!("{{id: é{n}, promt: xxxxxxxxxxxxxxxxxx}}")).collect();
    let problems = refused(&format!("nodes: [{}]", nodes.join(", ")));
    assert_eq!(problems.len(), 10_000);
    assert_eq!(problems.lines()[1], "g.yaml:1:55: node \"é1\": unknown key \"promt\"");
    assert_eq!(problems.render(false, 80).matches("\ng.yaml:1:").count(), 9_999);
}

#[test]
fn syntax_errors_have_a_place_and_a_remedy() {
    for (text, place, hint) in [
        ("nodes: [{id: a}\nx: 1\n", "g.yaml:2:2: ", "a bracket may be open above"),
        ("nodes:\n\t- id: a\n", "g.yaml:2:1: ", "indent with spaces"),
        (
            "a: b: c\n",
            "g.yaml:1:5: ",
            "put quotes around text that holds a colon and a space, and check the indentation",
        ),
        (
            "nodes: [{id: *nope}]\n",
            "g.yaml:1:14: the alias names no & anchor above it",
            "put quotes around text that begins with *",
        ),
        ("nodes: \"open\n", "g.yaml:1:8: ", "add the quote at its end"),
        ("nodes: [{id: \"a\u{0}\"}]\n", "g.yaml:1:16: ", "save the file as UTF-8 text"),
    ] {
        let problems = refused(text);
        let lines = problems.lines();
        assert!(lines.len() == 1 && lines[0].starts_with(place), "{lines:?}");
        assert_eq!(problems.reports()[0].hint.as_deref().unwrap_or_default(), hint, "{text}");
    }
}

#[test]
fn c14_bombs_are_refused() {
    let mut bomb = "x-a0: &a0 [l, l, l, l, l, l, l, l, l]\n".to_owned();
    for n in 1..10 {
        let items = vec![format!("*a{}", n - 1); 9].join(", ");
        writeln!(bomb, "x-a{n}: &a{n} [{items}]").expect("writing to a string");
    }
    let long = format!(
        "x-s: &s {}\nx-l: [{}]\nnodes: [{{id: a}}]\n",
        "y".repeat(100_000),
        vec!["*s"; 1000].join(", ")
    );
    let ladder: String = (1..5000).fold("x-0: &a0 [x]\n".to_owned(), |mut text, n| {
        writeln!(text, "x-{n}: &a{n} [*a{}]", n - 1).expect("writing to a string");
        text
    });
    for (text, wanted) in [
        (bomb.as_str(), "the document holds more than 4000000 values here, aliases followed"),
        (&long, "the document holds more than 64 MB of text here, aliases followed"),
        (&ladder, "the document nests deeper than 64 levels here"),
        ("a: &a [*a]\n", "the alias stands inside the value that it names"),
    ] {
        let lines = refused(text).lines();
        assert!(lines.len() == 1 && lines[0].ends_with(wanted), "{lines:?}");
    }
    for deep in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000)] {
        assert_eq!(refused(&deep).len(), 1);
    }
}

#[test]
fn c14_a_graph_of_fifty_thousand_nodes_loads() {
    let prompt = "x".repeat(200);
    let text = (0..50_000).fold("nodes:\n".to_owned(), |mut text, n| {
        writeln!(text, "  - id: n{n}\n    prompt: {prompt}\n    timeout: 1m").expect("writing to a string");
        text
    });
    assert_eq!(loaded(&text).graph.nodes().len(), 50_000);
}

#[test]
fn merges_and_aliases_give_what_they_name() {
    let raw = loaded(
        "x-a: &a {prompt: one, timeout: 1m}\nx-b: &b {prompt: two, agent: z}\nx-l: &l [Read]\nnodes:\n  - {id: n, <<: [*a, *b], timeout: 2m, allowed_tools: *l}\n  - &m {id: m, <<: *b}\n",
    )
    .raw;
    let node = &raw.nodes[0];
    assert_eq!(node.prompt.as_deref(), Some("one"));
    assert_eq!(node.timeout.as_deref(), Some("2m"));
    assert_eq!(node.agent.as_deref(), Some("z"));
    assert_eq!(node.allowed_tools, Some(vec!["Read".to_owned()]));
    assert_eq!(raw.nodes[1].prompt.as_deref(), Some("two"));
    table(&[
        ("nodes: [{id: a, <<: x}]", &["g.yaml:1:21: << takes a mapping or a list of mappings"]),
        ("nodes: [{id: a, '<<': {prompt: x}}]", &["g.yaml:1:17: node \"a\": unknown key \"<<\""]),
    ]);
}

/// The places of everything that is said of a graph, each as `line:column id`.
fn places(text: &str) -> Vec<String> {
    let source = Source::from_bytes("g.yaml".as_ref(), text.into()).expect("the text is UTF-8");
    let mut loaded = load(&source).unwrap_or_else(|problems| panic!("{problems}"));
    locate(&source, &loaded.raw, &mut loaded.advice);
    let place = |advice: &Advice| {
        let place = advice.place.as_ref().expect("each has one");
        assert_eq!(place.file, "g.yaml");
        format!("{}:{} {}", place.line, place.column, advice.id)
    };
    loaded.advice.iter().map(place).collect()
}

#[test]
fn advice_is_given_its_place() {
    assert_eq!(
        places(
            "inputs: [a, a]\nconcurrency: 12\nnodes:\n  - {id: z, prompt: 'ü {{ inputs.b }}{{ inputs.b }}{{ inputs.a }}'}\n  - {id: x, depends_on: [z, z, z], cwd: '{{ inputs.b }}', allowed_tools: []}\n",
        ),
        [
            "4:24 OMG002",
            "4:38 OMG002",
            "5:42 OMG002",
            "1:13 OMG006",
            // Keys that are not there are shown at the id.
            "4:10 OMG020",
            "5:10 OMG053",
            "5:29 OMG080",
            "2:14 OMG082",
        ]
    );
    // A token that is written in other words than it reads is shown where its text begins; one of an alias where the
    // anchor stands.
    assert_eq!(
        places("nodes: [{id: a, allowed_tools: [], prompt: \"{{ inputs\\x2Ea }}\"}]"),
        ["1:44 OMG002"]
    );
    assert_eq!(
        places(
            "x-p: &p '{{ inputs.a }}'\nnodes:\n- {id: a, allowed_tools: [], prompt: *p}\n- {id: b, allowed_tools: [], prompt: *p}\n"
        ),
        ["3:38 OMG002", "4:38 OMG002"]
    );
}

#[test]
fn several_problems_render_with_their_source() {
    let text = "name: demo\non_fail: hault\nnodes:\n  - id: impl\n    promt: |\n      Do it.\n    timeout: 90\n  - id: qa\n    depends_on: [impl, imp]\n    prompt: über\tx\n    prompt: again\n";
    let shown = refused(text).render(false, 100);
    insta::assert_snapshot!(shown, @r#"
    g.yaml:11:5: node "qa": the key "prompt" stands twice in this mapping
       |
    10 |     prompt: über    x
       |     ------ first here
       |
    11 |     prompt: again
       |     ^^^^^^
    g.yaml:5:5: node "impl": unknown key "promt"
      |
    5 |     promt: |
      |     ^^^^^
      hint: did you mean "prompt"?
    g.yaml:2:10: on_fail: "hault" is not one of halt, continue
      |
    2 | on_fail: hault
      |          ^^^^^
      hint: did you mean "halt"?
    g.yaml:9:24: node "qa": depends_on names "imp", which is no node of this graph
      |
    9 |     depends_on: [impl, imp]
      |                        ^^^
      hint: did you mean "impl"?
    g.yaml:7:14: node "impl": timeout "90" is not a duration: the unit is missing
      |
    7 |     timeout: 90
      |              ^^
      hint: write numbers with units, as in 90s, 10m or 1h30m
    "#);
    assert!(refused(text).render(true, 100).contains("\u{1b}["));
    assert_eq!(
        serde_json::to_string(&refused(text).reports()[1]).unwrap_or_default(),
        r#"{"file":"g.yaml","line":5,"column":5,"node":"impl","message":"unknown key \"promt\"","hint":"did you mean \"prompt\"?"}"#
    );
}

#[test]
fn a_problem_on_a_huge_line_shows_its_surroundings() {
    let text = format!("nodes: [{{id: a, prompt: {}, tmeout: 1}}]\n", "é".repeat(100_000));
    let shown = refused(&text).render(false, 100);
    assert!(shown.contains("tmeout") && shown.len() < 3000, "{}", shown.len());
}

#[test]
fn c15_a_pipe_is_read_like_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
    std::fs::write(file.path(), "nodes: [{id: a}]\n").unwrap_or_else(|error| panic!("{error}"));
    let from_file = Source::read(file.path()).unwrap_or_else(|error| panic!("{error}"));
    let (reader, mut writer) = std::io::pipe().unwrap_or_else(|error| panic!("{error}"));
    std::io::Write::write_all(&mut writer, from_file.text.as_bytes())
        .unwrap_or_else(|error| panic!("{error}"));
    drop(writer);
    let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let from_pipe = Source::read(Path::new(&path)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(from_pipe.sha256, from_file.sha256);
    assert!(load(&from_pipe).is_ok());
}

#[test]
fn what_is_no_graph_file_is_named() {
    let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let error = Source::read(directory.path()).expect_err("a directory");
    assert!(error.to_string().ends_with(": is a directory, and a graph is a file"), "{error}");
    let error = Source::read(&directory.path().join("gone.yaml")).expect_err("not there");
    assert!(error.to_string().contains("gone.yaml: cannot be read: No such file"), "{error}");
    let error = Source::from_bytes(Path::new("g"), b"a: 1\nb: \xc3\xa9\xff\n".to_vec()).expect_err("latin");
    assert_eq!(error.to_string(), "g:2:5: the file is not UTF-8 here (byte 0xff)");
    let huge = vec![b' '; usize::try_from(source::FILE_BYTES_MAX).unwrap_or(0) + 1];
    let error = Source::from_bytes(Path::new("g"), huge).expect_err("huge");
    assert_eq!(error.to_string(), "g: is larger than 64 MB, the most that a graph file may hold");
}

/// The JSON value of a tree, scalars as the core schema reads them.
fn value(node: &Node<'_>) -> serde_json::Value {
    use serde_json::Value;
    match &node.target().kind {
        yaml::Kind::Scalar { text, plain: false } => Value::String(text.clone().into_owned()),
        yaml::Kind::Scalar { text, .. } => match text.as_ref() {
            word if yaml::scalar::is_null(word) => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            word => serde_json::from_str(word).unwrap_or_else(|_| panic!("{word}")),
        },
        yaml::Kind::Sequence(items) => Value::Array(items.iter().map(value).collect()),
        _ => {
            let entries = node.entries().unwrap_or_default();
            Value::Object(entries.iter().map(|e| (e.name.to_owned(), value(e.value))).collect())
        }
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let text = "(\\PC|[\\t\\n\\r\"\\\\:#{}\\[\\],&*!|>'%@` -]){0,12}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn a_key_that_is_no_word_is_refused_whatever_stands_before_it() {
    for text in ["\u{feff}[a]: 1\n", "{é: {é[b]: 1}}\n", "- é\n- {\u{a0}{a: 1}: 1}\n"] {
        refused(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_tree_holds_what_json_says(document in json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        let text = text.unwrap_or_default();
        let tree = yaml::parse(&text, Limits::default());
        prop_assert!(tree.is_ok(), "{}: {:?}", text, tree.err());
        if let Ok(tree) = tree {
            prop_assert_eq!(&tree.problems, &Vec::new());
            prop_assert_eq!(value(&tree.root), document);
        }
    }

    #[test]
    fn no_text_panics(
        text in "((id|nodes|prompt|depends_on|x|a|retry|max|on|<<|timeout): ?|- |\\[|\\]|\\{|\\}|, ?|\n {0,4}|&a|\\*a|'|\"|\\||>|---|~|1|é|\t|\r|#|!|%|\\?|\u{feff}){0,40}"
    ) {
        if let Err(problems) = load(&source(&text)) {
            prop_assert!(problems.len() > 0);
            problems.render(true, 40);
            problems.reports();
        }
    }
}

#[test]
fn a_bracket_behind_a_byte_order_mark_is_no_panic() {
    assert_eq!(refused("\u{feff}{{a: b}: c}\n").len(), 1);
}

#[test]
fn a_tag_is_refused_because_it_would_swallow_a_word() {
    table(&[(
        "nodes:\n  - {id: a, prompt: !important do this}\n  - {id: b, prompt: !!binary aGk=}\n  - {id: !!str c, prompt: x}\n",
        &[
            "g.yaml:2:32: node \"a\": the tag !important means nothing in a graph",
            "g.yaml:3:30: node \"b\": the tag !!binary means nothing in a graph",
        ],
    )]);
}

#[test]
fn one_unread_parent_hides_nothing_of_the_others() {
    table(&[(
        "nodes:\n  - {id: a, depends_on: [nope, b, ~, nape]}\n  - {id: b, depends_on: [a]}\n",
        &[
            "g.yaml:2:35: node \"a\": depends_on is a list of texts, and this is nothing",
            "g.yaml:2:26: node \"a\": depends_on names \"nope\", which is no node of this graph",
            "g.yaml:2:38: node \"a\": depends_on names \"nape\", which is no node of this graph",
            "g.yaml:2:25: node \"a\": the nodes wait for each other: a → b → a",
        ],
    )]);
}

#[test]
fn what_nodes_share_is_told_once() {
    table(&[(
        "x-base: &base {timeot: 5m, retry: {max: 101, on: [timeout]}}\nnodes:\n  - {<<: *base, id: a}\n  - {<<: *base, id: b}\n",
        &[
            "g.yaml:1:16: node \"a\": unknown key \"timeot\"",
            "g.yaml:1:41: node \"a\": retry.max is 101, which is not 0 to 100",
        ],
    )]);
}

#[test]
fn every_slip_that_yaml_stumbles_over_says_what_to_write() {
    for (text, message) in [
        ("nodes: [{id: a, prompt: @x}]\n", "a value cannot begin with @"),
        ("nodes: [{id: a, prompt: `x`}]\n", "a value cannot begin with `"),
        (
            "nodes:\n- id: a\n  prompt: {{ inputs.x }} and\n",
            "text goes on here behind a value that begins with {{",
        ),
        (
            "nodes: [{id: a, prompt: {{ inputs.x }} and}]\n",
            "text goes on here behind a value that begins with {{",
        ),
        ("nodes: [{id: a}\n", "the [ that stands here is never closed"),
        ("nodes: [{id: 'it's'}]\n", "text goes on here behind a closing quote"),
        (
            "nodes:\n- id: a\n  prompt x\n",
            "this line is neither a key with its value nor part of the text above",
        ),
        ("nodes:\n  - id: a\n   prompt: x\n", "no item stands here where the list above goes on"),
        (
            "nodes: [{id: a, prompt: \"\\q\"}]\n",
            "this backslash in double quotes begins no escape that YAML knows",
        ),
        ("nodes: {a: {prompt: x}}\n", "nodes takes a list of nodes, and this is a mapping"),
        ("nodes: [{id: a, success_check: {verify: make}}]\n", "verify takes a mapping, and this is \"make\""),
    ] {
        let reports = refused(text).reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(reports[0].message, message, "{text}");
        assert!(reports[0].hint.is_some(), "{text}");
    }
}
