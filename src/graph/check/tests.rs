//! Every rule, as data: a graph in JSON, and all that is said about it.

use proptest::prelude::*;

use super::*;
use crate::graph::raw::RawFeedback;

fn raw(json: &str) -> RawGraph {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// A graph of these nodes.
fn graph(nodes: &str) -> RawGraph {
    raw(&format!(r#"{{"nodes":[{nodes}]}}"#))
}

fn faults_of(raw: &RawGraph) -> Vec<Fault> {
    check(raw).err().unwrap_or_default()
}

/// What is said about a graph of these nodes, one line a fault.
fn said(nodes: &str) -> String {
    let raw = graph(nodes);
    let lines: Vec<String> = faults_of(&raw).iter().map(|fault| fault.line(&raw)).collect();
    lines.join("\n")
}

/// Compares what is said about each graph of nodes.
#[track_caller]
fn table(cases: &[(&str, &str)]) {
    for (nodes, wanted) in cases {
        assert_eq!(said(nodes), *wanted, "{nodes}");
    }
}

fn good(nodes: &str) -> Graph {
    check(&graph(nodes)).unwrap_or_else(|faults| panic!("{nodes}: {faults:?}"))
}

#[test]
fn the_top_level_has_rules() {
    for (json, wanted) in [
        (r#"{"on_fail":"hault","nodes":[{"id":"a"}]}"#, r#"on_fail: "hault" is not one of halt, continue"#),
        (r#"{"concurrency":-1,"nodes":[{"id":"a"}]}"#, "concurrency is -1, which is below nothing"),
        (r#"{"model":" m","nodes":[{"id":"a"}]}"#, r#"model " m" begins or ends with white space"#),
        (r#"{"inputs":["a"," "],"nodes":[{"id":"a"}]}"#, "an input has no name"),
        (
            r#"{"inputs":["a=b"],"nodes":[{"id":"a"}]}"#,
            r#"input "a=b" holds a character that no --input can name"#,
        ),
        (r#"{"nodes":[]}"#, "the graph has no nodes"),
    ] {
        let raw = raw(json);
        let lines: Vec<String> = faults_of(&raw).iter().map(|f| f.line(&raw)).collect();
        assert_eq!(lines, [wanted], "{json}");
    }
}

#[test]
fn ids_are_there_once_and_well_formed() {
    table(&[
        (r#"{"id":"1"},{"id":"a.b_c-d"},{"id":"Z9"}"#, ""),
        (r#"{"id":""},{"id":" "}"#, "node 1: the node has no id\nnode 2: the node has no id"),
        (
            r#"{"id":"a"},{"id":"a"},{"id":"a"}"#,
            "node \"a\": an earlier node has the same id\nnode \"a\": an earlier node has the same id",
        ),
        (r#"{"id":"a"},{"id":"A"}"#, r#"node "A": the id differs from "a" only by case"#),
        (r#"{"id":"-a"}"#, r#"node "-a": the id is not well formed"#),
        (r#"{"id":".a"}"#, r#"node ".a": the id is not well formed"#),
        (r#"{"id":"a b"}"#, r#"node "a b": the id is not well formed"#),
        (r#"{"id":"a~b"}"#, r#"node "a~b": the id is not well formed"#),
        (r#"{"id":" a"}"#, r#"node " a": the id is not well formed"#),
        (r#"{"id":"é"}"#, r#"node "é": the id is not well formed"#),
    ]);
    let long = "x".repeat(200);
    assert_eq!(said(&format!(r#"{{"id":"{long}"}}"#)), "");
    assert!(said(&format!(r#"{{"id":"{long}x"}}"#)).ends_with("the id is not well formed"));
    assert_eq!(faults_of(&graph(r#"{"id":"a/b"}"#)), []);
    assert_eq!(faults_of(&graph(r#"{"id":"a//b"}"#)).len(), 1);
    let joined = format!("{}/{}", "x".repeat(100), "y".repeat(149));
    assert_eq!(said(&format!(r#"{{"id":"{joined}"}}"#)), "");
    assert!(
        said(&format!(r#"{{"id":"{joined}y"}}"#))
            .ends_with("has 251 bytes, and a file is called by it: 250 at most")
    );
}

#[test]
fn words_are_of_closed_sets() {
    table(&[
        (r#"{"id":"a","type":"gat"}"#, r#"node "a": type: "gat" is not one of claude-run, gate, command"#),
        (
            r#"{"id":"a","handoff":"sesion"}"#,
            r#"node "a": handoff: "sesion" is not one of artifact, session"#,
        ),
        (
            r#"{"id":"a","permission_mode":"dontask"}"#,
            r#"node "a": permission_mode: "dontask" is not one of acceptEdits, auto, bypassPermissions, dontAsk, manual, plan"#,
        ),
        (r#"{"id":"a","permission_mode":"auto"},{"id":"b","permission_mode":"manual"}"#, ""),
        (r#"{"id":"a","agent":" x"}"#, r#"node "a": agent " x" begins or ends with white space"#),
        (r#"{"id":"a","agent":""}"#, ""),
        (r#"{"id":"a","effort":"high "}"#, r#"node "a": effort "high " begins or ends with white space"#),
    ]);
    let faults = faults_of(&graph(r#"{"id":"a","permission_mode":"dontask"}"#));
    assert_eq!(faults[0].hint.as_deref(), Some("did you mean \"dontAsk\"?"));
}

#[test]
fn parents_are_nodes() {
    table(&[
        (
            r#"{"id":"review"},{"id":"b","depends_on":["reveiw","zzz"]}"#,
            "node \"b\": depends_on names \"reveiw\", which is no node of this graph\n\
             node \"b\": depends_on names \"zzz\", which is no node of this graph",
        ),
        (r#"{"id":"a","depends_on":["a","a"]}"#, r#"node "a": the node depends on itself"#),
    ]);
    let faults = faults_of(&graph(r#"{"id":"review"},{"id":"b","depends_on":["x","reveiw"]}"#));
    assert_eq!(faults[1].hint.as_deref(), Some("did you mean \"review\"?"));
    assert_eq!(faults[1].site, Site { node: Some(1), key: "depends_on", item: Some(1) });
}

#[test]
fn c4_a_parent_listed_twice_counts_once() {
    let graph = good(r#"{"id":"z"},{"id":"y"},{"id":"x","depends_on":["z","y","z"]}"#);
    assert_eq!(graph.nodes()[2].parents, [NodeIx::new(0), NodeIx::new(1)]);
    assert_eq!(graph.dependents(NodeIx::new(0)), [NodeIx::new(2)]);
}

#[test]
fn c7_a_cycle_is_printed_exactly_and_once() {
    table(&[
        (
            r#"{"id":"lead"},{"id":"a","depends_on":["lead","c"]},{"id":"b","depends_on":["a"]},
               {"id":"c","depends_on":["b"]},{"id":"behind","depends_on":["c"]}"#,
            r#"node "a": the nodes wait for each other: a → b → c → a"#,
        ),
        (
            r#"{"id":"b","depends_on":["a"]},{"id":"a","depends_on":["b"]}"#,
            r#"node "b": the nodes wait for each other: b → a → b"#,
        ),
        (
            r#"{"id":"a","depends_on":["a"]},{"id":"b","depends_on":["a"]}"#,
            r#"node "a": the node depends on itself"#,
        ),
    ]);
    let ring: Vec<String> =
        (0..50).map(|n| format!(r#"{{"id":"n{n}","depends_on":["n{}"]}}"#, (n + 49) % 50)).collect();
    let message = said(&ring.join(","));
    assert!(message.contains("n0 → n1 → ") && message.ends_with("→ n49 → n0"), "{message}");
    assert!(message.contains("n9 → (31 more) → n41"), "{message}");
}

#[test]
fn a_session_has_one_parent_that_has_a_session() {
    table(&[
        (
            r#"{"id":"a","handoff":"session"}"#,
            r#"node "a": handoff: session takes exactly one parent, and this node has 0"#,
        ),
        (
            r#"{"id":"a"},{"id":"b"},{"id":"c","depends_on":["a","b"],"handoff":"session"}"#,
            r#"node "c": handoff: session takes exactly one parent, and this node has 2"#,
        ),
        (
            r#"{"id":"g","type":"gate"},{"id":"c","depends_on":["g"],"handoff":"session"}"#,
            r#"node "c": handoff: session resumes its parent, and "g" is a gate"#,
        ),
        (
            r#"{"id":"k","type":"command","command":"true"},{"id":"c","depends_on":["k"],"handoff":"session"}"#,
            r#"node "c": handoff: session resumes its parent, and "k" is a command"#,
        ),
        (
            r#"{"id":"a"},{"id":"b","depends_on":["a","a"],"handoff":"session"},{"id":"c","depends_on":["a"],"handoff":"session"}"#,
            "",
        ),
    ]);
}

#[test]
fn a_chain_of_sessions_has_one_root() {
    let graph = good(
        r#"{"id":"c","depends_on":["b"],"handoff":"session"},{"id":"b","depends_on":["a"],"handoff":"session"},
           {"id":"a"},{"id":"d","depends_on":["a"],"handoff":"session"},{"id":"e","depends_on":["a"]}"#,
    );
    let roots: Vec<&str> =
        graph.positions().map(|ix| graph.node(graph.session_root(ix)).id.as_str()).collect();
    assert_eq!(roots, ["a", "a", "a", "a", "e"]);
}

#[test]
fn a_success_check_is_sound() {
    table(&[
        (
            r#"{"id":"a","success_check":{"result_matches":"("}}"#,
            r#"node "a": result_matches "(" does not compile: unclosed group"#,
        ),
        (
            r#"{"id":"a","success_check":{"verify":{"command":" ","timeout":"11m","output_matches":"a**","expect_exit":256}}}"#,
            "node \"a\": verify has no command\n\
             node \"a\": verify.timeout \"11m\" is longer than 10m0s\n\
             node \"a\": verify.expect_exit is 256, which is not 0 to 255\n\
             node \"a\": output_matches \"a**\" does not compile: invalid nested repetition operator",
        ),
        (
            r#"{"id":"a","success_check":{"verify":{"command":"x","timeout":"10m1s"}}}"#,
            r#"node "a": verify.timeout "10m1s" is longer than 10m0s"#,
        ),
        (
            r#"{"id":"a","success_check":{"verify":{"command":"x","timeout":"0s"}}}"#,
            r#"node "a": verify.timeout "0s" is not more than nothing"#,
        ),
        (r#"{"id":"a","success_check":{"verify":{"command":"x","timeout":"10m","expect_exit":0}}}"#, ""),
    ]);
    let graph = good(r#"{"id":"a","success_check":{"verify":{"command":"x","timeout":""}}}"#);
    let verify =
        graph.nodes()[0].check.verify.as_ref().map(|verify| (verify.timeout.as_secs(), verify.expect_exit));
    assert_eq!(verify, Some((120, 0)));
}

#[test]
fn a_node_has_one_place() {
    table(&[
        (
            r#"{"id":"a","worktree":"a/b","cwd":"/x"}"#,
            "node \"a\": worktree \"a/b\" is not well formed\nnode \"a\": worktree and cwd are both set",
        ),
        (r#"{"id":"a","worktree":"lane","cwd":""}"#, ""),
        (
            r#"{"id":"a","worktree":"a..b"}"#,
            "node \"a\": worktree \"a..b\" cannot be the name of a git branch",
        ),
        (r#"{"id":"a","worktree":"a."}"#, "node \"a\": worktree \"a.\" cannot be the name of a git branch"),
        (
            r#"{"id":"a","worktree":"a.lock"}"#,
            "node \"a\": worktree \"a.lock\" cannot be the name of a git branch",
        ),
        (r#"{"id":"a","worktree":"w","setup":"npm ci"},{"id":"b","worktree":"w"}"#, ""),
        (r#"{"id":"a","worktree":"w","setup":""},{"id":"b","worktree":"w","setup":"x"}"#, ""),
        (r#"{"id":"a","worktree":"w","setup":" "}"#, "node \"a\": setup is blank"),
        (r#"{"id":"a","setup":"x"}"#, "node \"a\": setup prepares a worktree, and the node names none"),
        (
            r#"{"id":"a","worktree":"w","setup":"x {{ inputs.v }}"}"#,
            "node \"a\": setup is no template, and names \"v\"",
        ),
        (
            r#"{"id":"a","worktree":"w","setup":"x"},{"id":"b","worktree":"v","setup":"y"},
               {"id":"c","worktree":"w","setup":"z"}"#,
            "node \"c\": setup differs from that of node \"a\", which shares worktree \"w\"",
        ),
    ]);
    let alone = r#"{"setup":"x","nodes":[{"id":"a"}]}"#;
    let raw: RawGraph = serde_json::from_str(alone).expect("a graph");
    let faults = faults_of(&raw);
    assert_eq!(faults[0].message, "setup prepares worktrees, and no node names one");
    let shared = r#"{"setup":"x","nodes":[{"id":"a","worktree":"w"},{"id":"b","worktree":"w","setup":"y"},{"id":"c","worktree":"v"}]}"#;
    let raw: RawGraph = serde_json::from_str(shared).expect("a graph");
    let graph = check(&raw).expect("no fault");
    assert_eq!((graph.setup_of("w"), graph.setup_of("v")), (Some("y"), Some("x")));
}

#[test]
fn c11_a_bound_that_bounds_nothing_is_refused() {
    let no_unit = |text: &str, why: &str| format!("node \"a\": timeout {text:?} is not a duration: {why}");
    for (text, wanted) in [
        ("0s", "node \"a\": timeout \"0s\" is not more than nothing".to_owned()),
        ("-5s", "node \"a\": timeout \"-5s\" is not more than nothing".to_owned()),
        ("30", no_unit("30", "the unit is missing")),
        ("1d", no_unit("1d", "the unit is not one of ns, us, ms, s, m and h")),
        ("soon", no_unit("soon", "it is not a number with a unit")),
    ] {
        assert_eq!(said(&format!(r#"{{"id":"a","timeout":"{text}"}}"#)), wanted);
    }
    table(&[
        (r#"{"id":"a","budget_usd":-1}"#, r#"node "a": budget_usd is -1, which is no amount to spend"#),
        (
            r#"{"id":"a","budget_usd":1e300}"#,
            &format!(r#"node "a": budget_usd is {}, which is no amount to spend"#, 1e300),
        ),
        (r#"{"id":"a","budget_usd":0},{"id":"b","timeout":"1.5h"},{"id":"c","timeout":""}"#, ""),
        (
            r#"{"id":"a","retry":{"max":999999999,"on":["timeout"]}}"#,
            r#"node "a": retry.max is 999999999, which is not 0 to 100"#,
        ),
        (r#"{"id":"a","retry":{"max":-1}}"#, r#"node "a": retry.max is -1, which is not 0 to 100"#),
    ]);
    for usd in [f64::NAN, f64::INFINITY] {
        let mut raw = graph(r#"{"id":"a"}"#);
        raw.nodes[0].budget_usd = Some(usd);
        let faults = faults_of(&raw);
        assert_eq!(
            faults[0].line(&raw),
            format!("node \"a\": budget_usd is {usd}, which is no amount to spend")
        );
    }
}

#[test]
fn c12_a_retry_names_its_causes() {
    table(&[
        (r#"{"id":"a","retry":{"max":2}}"#, r#"node "a": retry.max without retry.on retries nothing"#),
        (r#"{"id":"a","retry":{"max":0}},{"id":"b","retry":{"max":1,"on":["timeout","timeout"]}}"#, ""),
        (
            r#"{"id":"a","retry":{"max":1,"on":["timout"]}}"#,
            r#"node "a": retry.on: "timout" is not one of nonzero_exit, run_error, timeout, output_error, budget_exceeded, verify_failed, result_mismatch"#,
        ),
        (
            r#"{"id":"a","retry":{"max":1,"on":["cancelled"]}}"#,
            r#"node "a": retry.on: "cancelled" is not one of nonzero_exit, run_error, timeout, output_error, budget_exceeded, verify_failed, result_mismatch"#,
        ),
    ]);
}

#[test]
fn a_command_node_has_the_keys_of_a_command() {
    table(&[
        (r#"{"id":"a","type":"command"}"#, r#"node "a": a command node has no command"#),
        (
            r#"{"id":"a","type":"command","command":"x","prompt":"p","budget_usd":1,"handoff":"artifact"}"#,
            "node \"a\": prompt means nothing to a command node\n\
             node \"a\": budget_usd means nothing to a command node\n\
             node \"a\": handoff means nothing to a command node",
        ),
        (
            r#"{"id":"a","command":"x"}"#,
            r#"node "a": command belongs to type: command, and this is a claude-run"#,
        ),
        (
            r#"{"id":"a","type":"gate","command":"x"}"#,
            r#"node "a": command belongs to type: command, and this is a gate"#,
        ),
        (
            r#"{"id":"p"},{"id":"a","type":"command","command":"x","cwd":"/","timeout":"1m","depends_on":["p"],
               "retry":{"max":1,"on":["nonzero_exit"]},"success_check":{"exit_zero":true},
               "feedback":{"rerun":"p","max":1},"leave_running":true}"#,
            "",
        ),
    ]);
}

#[test]
fn c16_a_nul_byte_is_refused_before_anything_runs() {
    table(&[
        (
            r#"{"id":"a","prompt":"x\u0000y"}"#,
            r#"node "a": prompt holds a NUL byte, which no program can be given"#,
        ),
        (
            r#"{"id":"a","cwd":"\u0000","allowed_tools":["a\u0000","b\u0000"],"success_check":{"verify":{"command":"\u0000x"}}}"#,
            "node \"a\": cwd holds a NUL byte, which no program can be given\n\
             node \"a\": success_check.verify.command holds a NUL byte, which no program can be given\n\
             node \"a\": allowed_tools holds a NUL byte, which no program can be given",
        ),
    ]);
}

#[test]
fn an_arc_is_bounded_and_names_an_ancestor() {
    table(&[
        (
            r#"{"id":"a"},{"id":"b","depends_on":["a"],"feedback":{}}"#,
            "node \"b\": feedback has no max\nnode \"b\": feedback has no rerun",
        ),
        (
            r#"{"id":"a"},{"id":"b","depends_on":["a"],"feedback":{"rerun":"a","max":0}},{"id":"c","feedback":{"rerun":"x","max":101}}"#,
            "node \"b\": feedback.max is 0, which is not 1 to 100\n\
             node \"c\": feedback.max is 101, which is not 1 to 100\n\
             node \"c\": feedback.rerun names \"x\", which is no node of this graph",
        ),
        (
            r#"{"id":"a","feedback":{"rerun":"a","max":1}}"#,
            r#"node "a": feedback.rerun names the node itself, which is no ancestor of it"#,
        ),
        (
            r#"{"id":"a"},{"id":"b","feedback":{"rerun":"a","max":1}}"#,
            r#"node "b": feedback.rerun names "a", which is no ancestor of the node"#,
        ),
    ]);
}

#[test]
fn the_body_of_a_loop_is_what_lies_between() {
    let graph = good(
        r#"{"id":"plan"},{"id":"impl","depends_on":["plan"]},{"id":"other","depends_on":["plan"]},
           {"id":"left","depends_on":["impl"]},{"id":"right","depends_on":["impl","other"]},
           {"id":"judge","depends_on":["left","right"],"feedback":{"rerun":"impl","max":2}},
           {"id":"after","depends_on":["judge"]}"#,
    );
    let judge = graph.find("judge").expect("it is there");
    let body: Vec<&str> = graph.feedback_body(judge).iter().map(|ix| graph.node(*ix).id.as_str()).collect();
    assert_eq!(body, ["impl", "left", "right", "judge"]);
    assert_eq!(
        graph.node(judge).feedback.map(|arc| (arc.rerun, arc.max)),
        graph.find("impl").map(|ix| (ix, 2))
    );
    assert!(graph.feedback_body(NodeIx::new(0)).is_empty());
}

#[test]
fn a_loop_keeps_to_itself() {
    table(&[
        (
            r#"{"id":"a"},{"id":"g","type":"gate","depends_on":["a"]},{"id":"b","depends_on":["g"],"feedback":{"rerun":"a","max":1}}"#,
            r#"node "b": the loop holds the gate "g", and a decision is not asked twice"#,
        ),
        (
            r#"{"id":"r"},{"id":"a","depends_on":["r"],"handoff":"session"},{"id":"b","depends_on":["a"],"feedback":{"rerun":"a","max":1}}"#,
            r#"node "b": the loop holds "a", which resumes the session of "r" outside it"#,
        ),
        (
            r#"{"id":"a"},{"id":"out","depends_on":["a"]},{"id":"b","depends_on":["a"],"feedback":{"rerun":"a","max":1}}"#,
            r#"node "b": "out" depends on "a" in the middle of the loop"#,
        ),
        (
            r#"{"id":"a"},{"id":"b","depends_on":["a"],"feedback":{"rerun":"a","max":1}},
               {"id":"c","depends_on":["b"],"feedback":{"rerun":"b","max":1}}"#,
            r#"node "c": the loop holds "b", which the loop of "b" runs again already"#,
        ),
        (
            r#"{"id":"a"},{"id":"b","depends_on":["a"],"feedback":{"rerun":"a","max":1}},
               {"id":"c","depends_on":["b"]},{"id":"d","depends_on":["c","b"],"feedback":{"rerun":"c","max":1}}"#,
            "",
        ),
    ]);
}

#[test]
fn a_feedback_token_stands_in_its_loop() {
    let nodes = |token: &str, place: &str| {
        format!(
            r#"{{"id":"pre","prompt":"{0}"}},{{"id":"a","depends_on":["pre"],"prompt":"{1}"}},
               {{"id":"b","depends_on":["a"],"feedback":{{"rerun":"a","max":1}}}}"#,
            if place == "pre" { token } else { "" },
            if place == "a" { token } else { "" },
        )
    };
    for (token, place, wanted) in [
        ("{{ feedback.b }}", "a", ""),
        (
            "{{ feedback.b }}",
            "pre",
            r#"node "pre": {{ feedback.b }} would always be empty: the node is not in the loop that "b" runs again"#,
        ),
        (
            "{{ feedback.b | inline }}",
            "a",
            r#"node "a": {{ feedback.b | inline }} takes no filter: feedback is always inlined"#,
        ),
        (
            "{{ feedback.a }}",
            "a",
            r#"node "a": {{ feedback.a }} stands for nothing: "a" declares no feedback"#,
        ),
        ("{{feedback.zz}}", "a", r#"node "a": {{feedback.zz}} names "zz", which is no node of this graph"#),
    ] {
        assert_eq!(said(&nodes(token, place)), wanted, "{token} in {place}");
    }
}

#[test]
fn two_names_may_not_be_one_variable_where_a_shell_runs() {
    let shell = r#"{"id":"s","type":"command","command":"{{ inputs.a.b }}"}"#;
    let with = |node: &str| raw(&format!(r#"{{"inputs":["a-b"],"nodes":[{node}]}}"#));
    let clash = with(shell);
    let faults = faults_of(&clash);
    assert_eq!(
        faults[0].line(&clash),
        r#"node "s": inputs "a-b" and "a.b" would both be the variable OMG_INPUT_A_B"#
    );
    assert_eq!(faults_of(&with(r#"{"id":"p","prompt":"{{ inputs.a.b }}"}"#)), []);
    table(&[
        (
            r#"{"id":"x-1"},{"id":"x.1"},{"id":"s","depends_on":["x-1","x.1"],"success_check":{"verify":{"command":"true"}}}"#,
            r#"node "s": parents "x-1" and "x.1" would both be the variable OMG_ARTIFACT_X_1"#,
        ),
        (r#"{"id":"x-1"},{"id":"x.1"},{"id":"p","depends_on":["x-1","x.1"]}"#, ""),
    ]);
}

#[test]
fn everything_is_said_at_once_in_the_order_of_the_rules() {
    assert_eq!(
        said(
            r#"{"id":"a","timeout":"1d","type":"gat"},{"id":"a b","depends_on":["zz"],"retry":{"max":1}},
               {"id":"","success_check":{"result_matches":"("},"agent":"x "}"#
        ),
        "node 3: the node has no id\n\
         node \"a b\": the id is not well formed\n\
         node \"a\": type: \"gat\" is not one of claude-run, gate, command\n\
         node \"a b\": depends_on names \"zz\", which is no node of this graph\n\
         node 3: result_matches \"(\" does not compile: unclosed group\n\
         node 3: agent \"x \" begins or ends with white space\n\
         node \"a b\": retry.max without retry.on retries nothing\n\
         node \"a\": timeout \"1d\" is not a duration: the unit is not one of ns, us, ms, s, m and h"
    );
}

#[test]
fn c14_a_long_chain_in_reverse_and_a_wide_fan_load() {
    let link = |n: usize, parent: Option<usize>| RawNode {
        id: format!("n{n}"),
        depends_on: parent.map(|n| format!("n{n}")).into_iter().collect(),
        ..RawNode::default()
    };
    let count = 50_000;
    let chain: Vec<RawNode> = (0..count).rev().map(|n| link(n, n.checked_sub(1))).collect();
    let chain = check(&RawGraph { nodes: chain, ..RawGraph::default() }).expect("a chain");
    assert_eq!(chain.nodes().len(), count);
    let fan: Vec<RawNode> = (0..count).map(|n| link(n, (n > 0).then_some(0))).collect();
    let fan = check(&RawGraph { nodes: fan, ..RawGraph::default() }).expect("a fan");
    assert_eq!(fan.dependents(NodeIx::new(0)).len(), count - 1);
    let mut ring: Vec<RawNode> = (0..count).map(|n| link(n, Some((n + 1) % count))).collect();
    assert_eq!(check(&RawGraph { nodes: ring.clone(), ..RawGraph::default() }).expect_err("a ring").len(), 1);
    ring[0].depends_on.clear();
    // Every node loops back to the far end: all but one of these loops overlap.
    for node in &mut ring[..count - 1] {
        node.depends_on.clear();
    }
    for (n, node) in ring.iter_mut().enumerate().skip(1) {
        node.depends_on = vec![format!("n{}", n - 1)];
        node.feedback = Some(RawFeedback { rerun: "n0".to_owned(), max: Some(1) });
    }
    assert!(check(&RawGraph { nodes: ring, ..RawGraph::default() }).is_err());
}

fn any_node() -> impl Strategy<Value = RawNode> {
    let id = prop::sample::select(vec!["a", "b", "c", "d", "e", "A", "x/y", "", "a b"]);
    let ids = prop::collection::vec(id.clone(), 0..4);
    let kind = prop::sample::select(vec![None, Some("gate"), Some("command"), Some("claude-run"), Some("?")]);
    let text = prop::sample::select(vec![
        None,
        Some("{{ feedback.b }} {{ inputs.x }}"),
        Some("{{ feedback.c | x }}\0"),
        Some("plain"),
    ]);
    let handoff = prop::sample::select(vec![None, Some("session"), Some("artifact")]);
    let feedback = prop::option::of((id.clone(), -1_i64..4));
    let retry = prop::option::of((-1_i64..3, prop::collection::vec("timeout|x", 0..2)));
    (id, ids, kind, text.clone(), text, handoff, feedback, retry).prop_map(
        |(id, ids, kind, prompt, command, handoff, feedback, retry)| RawNode {
            id: id.to_owned(),
            depends_on: ids.into_iter().map(str::to_owned).collect(),
            kind: kind.map(str::to_owned),
            prompt: prompt.map(str::to_owned),
            command: command.map(str::to_owned),
            handoff: handoff.map(str::to_owned),
            feedback: feedback.map(|(rerun, max)| RawFeedback { rerun: rerun.to_owned(), max: Some(max) }),
            retry: retry.map(|(max, on)| crate::graph::raw::RawRetry { max: Some(max), on: Some(on) }),
            ..RawNode::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_graph_panics_and_a_refusal_has_a_reason(nodes in prop::collection::vec(any_node(), 0..8)) {
        let raw = RawGraph { nodes, ..RawGraph::default() };
        match check(&raw) {
            Ok(graph) => {
                prop_assert_eq!(graph.nodes().len(), raw.nodes.len());
                let json = serde_json::to_string(&raw.clone().normalised()).unwrap_or_default();
                let again = crate::graph::from_snapshot(&json);
                prop_assert!(again.is_ok(), "{:?}", again.err());
            }
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }

    #[test]
    fn a_body_is_the_nodes_on_paths_back(
        edges in prop::collection::vec(any::<bool>(), 28),
        target in 0_usize..8,
        declarer in 0_usize..8,
    ) {
        // Node n may depend on any node before it.
        let mut bits = edges.into_iter();
        let mut nodes: Vec<RawNode> = (0..8)
            .map(|n| RawNode {
                id: format!("n{n}"),
                depends_on: (0..n).filter(|_| bits.next() == Some(true)).map(|p| format!("n{p}")).collect(),
                ..RawNode::default()
            })
            .collect();
        nodes[declarer].feedback = Some(RawFeedback { rerun: format!("n{target}"), max: Some(1) });
        let parents = |n: usize| -> Vec<usize> {
            nodes[n].depends_on.iter().filter_map(|id| id[1..].parse().ok()).collect()
        };
        let mut above = [[false; 8]; 8];
        for child in 0..8 {
            for parent in parents(child) {
                let higher = above[parent];
                above[child][parent] = true;
                for (mine, theirs) in above[child].iter_mut().zip(higher) {
                    *mine |= theirs;
                }
            }
        }
        let inside = |n: usize| {
            n == target || n == declarer || (above[n][target] && above[declarer][n])
        };
        let exits = (0..8).filter(|n| !inside(*n)).any(|n| parents(n).into_iter().any(|p| inside(p) && p != declarer));
        let sound = above[declarer][target] && !exits;
        let checked = check(&RawGraph { nodes: nodes.clone(), ..RawGraph::default() });
        prop_assert_eq!(checked.is_ok(), sound);
        if let Ok(graph) = checked {
            let body: Vec<usize> =
                graph.feedback_body(NodeIx::new(declarer)).iter().map(|ix| ix.get()).collect();
            prop_assert_eq!(body, (0..8).filter(|n| inside(*n)).collect::<Vec<_>>());
        }
    }
}
