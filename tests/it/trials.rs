//! `omg test`: what a person writes, what is said of it, and that no trace of the runs is left.

use std::fs;

use serde_json::Value;

use crate::env::{Ran, TestEnv};

const GRAPH: &str = r#"
inputs: [topic]
nodes:
  - id: draft
    prompt: "Write about {{ inputs.topic }}. What was wrong before: {{ feedback.review }}"
    retry: {max: 1, on: [verify_failed]}
    success_check: {verify: {command: test -s sources.txt}}
  - id: review
    depends_on: [draft]
    prompt: "Read {{ artifacts.draft }} and begin with PASS or FAIL."
    success_check: {result_matches: '^[*_`\s]*PASS'}
    feedback: {rerun: draft, max: 3}
  - {id: publish, type: gate, depends_on: [review]}
  - {id: upload, type: command, depends_on: [publish], command: ./upload}
"#;

/// Runs tests of [`GRAPH`].
fn tests(env: &TestEnv, tests: &str, flags: &[&str]) -> Ran {
    env.write("g.yaml", GRAPH);
    env.write("g.omgtest.yaml", format!("graph: g.yaml\ninputs: {{topic: tea}}\ntests:\n{tests}"));
    let words: Vec<&str> = ["test"].iter().chain(flags).copied().collect();
    env.omg(&words)
}

/// The one test passes.
#[track_caller]
fn passes(test: &str) {
    let env = TestEnv::new();
    let ran = tests(&env, test, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// What is said of the one test, which fails: everything from its place on, without excerpts.
#[track_caller]
fn fails(test: &str) -> String {
    let env = TestEnv::new();
    let ran = tests(&env, test, &["--json"]).exits(1);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let said = report["tests"][0]["differences"].as_array().unwrap().iter().map(|difference| {
        let node = difference["node"].as_str().map(|node| format!("{node}: ")).unwrap_or_default();
        format!(
            "{}:{} {node}{}",
            difference["line"],
            difference["column"],
            difference["message"].as_str().unwrap()
        )
    });
    said.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_about_tests_is_true() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/TESTING-GRAPHS.md")).unwrap();
    let env = TestEnv::new();
    let yaml = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for text in yaml {
        let name = if text.contains("\ngraph: ") { "review.omgtest.yaml" } else { "review.yaml" };
        assert!(text.starts_with(&format!("# {name}")), "{text}");
        env.write(name, text);
    }
    let ran = env.omg(&["test"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("6 tests: 6 passed"), "{}", ran.stdout);
}

#[test]
fn the_shipped_graphs_pass_their_tests() {
    let env = TestEnv::new();
    let graphs = concat!(env!("CARGO_MANIFEST_DIR"), "/graphs");
    let ran = env.omg(&["test", graphs]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn nothing_runs_and_nothing_is_left() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: ask, prompt: "@touch asked"}
  - {id: work, type: command, command: touch ran, success_check: {verify: {command: touch checked}}}
  - {id: lane, prompt: "@touch laned", worktree: one, setup: touch set-up}
"#;
    env.write("g.yaml", graph);
    env.write("g.omgtest.yaml", "graph: g.yaml\ntests: [{name: all}]");
    let before = env.everything();
    env.omg(&["test"]).exits(0);
    assert_eq!(env.everything(), before);
    assert!(env.spawns().is_empty() && !env.home().exists());
}

#[test]
fn a_test_that_failed_says_what_was_expected_where_and_what_happened() {
    let env = TestEnv::new();
    let test = "  - name: it is published\n    then: {approve: publish}\n    nodes: {upload: {exit: 7}}\n    \
                expect:\n      nodes: {review: {attempts: 2}}\n";
    let ran = tests(&env, test, &[]).exits(1);
    insta::assert_snapshot!(ran.stdout, @r#"
    g.omgtest.yaml
      ✗ it is published
    g.omgtest.yaml:8:34: node "review": expected 2 attempts, and there were 1
      |
    8 |       nodes: {review: {attempts: 2}}
      |                                  ^
    g.omgtest.yaml:8:7: node "upload": expected PASS, as of every node that is not named, and it is FAIL (nonzero_exit): exit code 7
      |
    8 |       nodes: {review: {attempts: 2}}
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        what happened:
          ▶ run started
          ▶ draft  running…
          ✓ draft  PASS
          ▶ review  running…
          ✓ review  PASS
          ▶ publish  running…
          ⏸ publish  waiting for a decision
          ■ run finished: paused
          ▶ run started
          ▶ publish  running…
          • publish  gate_approved
          ✓ publish  PASS
          ▶ upload  running…
          ✗ upload  FAILED: exit code 7
          ■ run finished: failed

    1 test: 0 passed, 1 failed
    "#);
    assert_eq!(ran.stderr, "omg: test: 1 of 1 test failed\n");
}

#[test]
fn every_kind_of_difference_is_told_at_its_place() {
    let test = r#"  - name: all wrong
    nodes: {draft: {reply: a draft, cost: 0.25}, review: [{reply: no}, {reply: PASS}]}
    expect:
      exit: 0
      paused_by: limit
      order: [draft, review, upload before draft, draft before review, review before draft]
      spend: 0.25
      nodes:
        draft: {attempts: 1, rounds: 3, cost: 0.3, prompt: [sugar, {lacks: tea, matches: "x$", equals: tea}]}
        review: {verdict: FAIL, prompt: "Read RUN/draft.out and"}
        publish: skipped
"#;
    insta::assert_snapshot!(fails(test), @r#"
    7:13 expected exit 0, and it is 2
    8:18 expected a run that is paused by limit, and it is paused by gate
    12:27 draft: expected 1 attempts, and there were 2
    12:38 draft: expected 3 rounds, and there were 1
    12:47 draft: expected a cost of $0.3000, and it is $0.5000
    12:61 draft: expected prompt 1 to contain "sugar", and it is "Write about tea. What was wrong before: "
    12:76 draft: expected prompt 2 not to contain "tea", and it is "Write about tea. What was wrong before: no"
    12:90 draft: expected prompt 2 to match `x$`, and it is "Write about tea. What was wrong before: no"
    12:104 draft: expected prompt 2 to be "tea", and it is "Write about tea. What was wrong before: no"
    13:27 review: expected FAIL, and it is PASS
    14:18 publish: expected skipped, and it is waiting
    7:7 upload: expected PASS, as of every node that is not named, and it is pending
    9:14 expected the order draft, review, and it is: draft, review, draft, review
    9:30 expected "upload" before "draft", and "upload" never ended
    9:72 expected "review" before "draft", and "draft" began before "review" had ended
    10:14 expected that the run costs $0.2500, and it costs $0.5000
    "#);
}

#[test]
fn what_is_not_named_has_passed_or_waits_where_the_run_is_paused() {
    passes("  - {name: waits, expect: {paused_by: gate}}");
    passes("  - {name: waits, expect: {exit: 2}}");
    passes("  - {name: waits, expect: {nodes: {publish: waiting}}}");
    passes("  - {name: anything, expect: {others: any, exit: 2}}");
    insta::assert_snapshot!(fails("  - {name: passes}"), @"
    4:12 publish: expected PASS, as of every node that is not named, and it is waiting
    4:12 upload: expected PASS, as of every node that is not named, and it is pending
    ");
    insta::assert_snapshot!(fails("  - {name: fails, nodes: {draft: {exit: 1, verify: fail}}, expect: {nodes: {draft: FAIL}}}"), @r#"
    4:68 review: expected PASS, as of every node that is not named, and it is skipped (ancestor_failed) because of "draft"
    4:68 publish: expected PASS, as of every node that is not named, and it is skipped (ancestor_failed) because of "draft"
    4:68 upload: expected PASS, as of every node that is not named, and it is skipped (ancestor_failed) because of "draft"
    "#);
    passes(
        "  - {name: fails, nodes: {draft: {verify: fail}}, expect: {nodes: {draft: verify_failed}, others: skipped}}",
    );
}

#[test]
fn later_legs_are_those_that_a_person_could_run() {
    passes(
        "  - {name: approved, then: {approve: publish}, expect: {exit: [2, 0], order: [review, publish, upload]}}",
    );
    passes(
        "  - {name: rejected, then: {reject: publish}, expect: {nodes: {publish: rejected, upload: {why: rejected, because: publish}}}}",
    );
    passes(
        "  - {name: again, nodes: {upload: [{exit: 1}, {}]}, then: [{approve: publish}, {retry_failed: true}], \
         expect: {exit: [2, 1, 0], nodes: {upload: {attempts: 2}}}}",
    );
    insta::assert_snapshot!(fails("  - {name: early, then: [{approve: publish}, {approve: publish}]}"), @r#"
    4:46 this leg cannot be run: the run does not wait at "publish"; it waits at no gate
    "#);
    insta::assert_snapshot!(fails("  - {name: nothing failed, then: {retry_failed: true}, expect: {exit: 2}}"), @r#"
    4:34 this leg cannot be run: nothing failed and nothing is left to run; it waits at "publish"
    "#);
}

#[test]
fn bounds_and_limits_pause() {
    passes(
        "  - {name: money, max_usd: 1, nodes: {draft: {cost: 2}}, expect: {paused_by: max_usd, spend: 2, nodes: {review: pending}}}",
    );
    passes(
        "  - {name: more money, max_usd: 1, nodes: {draft: {cost: 2}}, then: [{retry_failed: true, max_usd: 5}, {approve: publish}], expect: {exit: [2, 2, 0]}}",
    );
    passes("  - {name: executions, max_executions: 1, expect: {paused_by: max_executions}}");
    passes(
        "  - {name: limit, nodes: {review: {limit: true, cost: 0.1}}, expect: {paused_by: limit, spend: 0.1, nodes: {review: {verdict: pending, cost: 0.1, attempts: 1}}}}",
    );
    passes(
        "  - {name: unknown, nodes: {draft: {cost: unknown}}, expect: {exit: 2, spend: unknown, nodes: {draft: {cost: unknown}}}}",
    );
    passes("  - {name: at most, nodes: {draft: {cost: 0.2}}, expect: {exit: 2, spend: {at_most: 0.2}}}");
}

#[test]
fn a_bound_given_to_a_leg_holds_for_the_legs_after_it() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: a, prompt: a}, {id: g1, type: gate, depends_on: [a]}, {id: b, prompt: b, depends_on: [g1]}, \
                 {id: g2, type: gate, depends_on: [b]}, {id: c, prompt: c, depends_on: [g2]}]";
    env.write("g.yaml", graph);
    let nodes = "nodes: {a: {cost: 1}, b: {cost: 1}, c: {cost: 1}}";
    env.write("s.yaml", nodes);
    let test = format!(
        "graph: g.yaml\n{nodes}\ntests:\n  - name: x\n    then: [{{approve: g1, max_usd: 2}}, {{approve: g2}}]\n    \
         expect: {{exit: [2, 2, 2], paused_by: max_usd, spend: 2, nodes: {{c: pending}}}}\n"
    );
    env.write("g.omgtest.yaml", test);
    let ran = env.omg(&["test"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    // As a person's own legs.
    env.omg(&["rehearse", "g.yaml", "--script", "s.yaml"]).exits(2);
    env.omg(&["resume", "latest", "--approve", "g1", "--max-usd", "2"]).exits(2);
    let last = env.omg(&["resume", "latest", "--approve", "g2"]).exits(2);
    assert!(last.stdout.contains("max-usd"), "{}", last.stdout);
}

#[test]
fn a_list_of_exits_has_one_for_each_leg() {
    insta::assert_snapshot!(fails("  - {name: x, then: {approve: publish}, expect: {exit: [0]}}"), @"4:56 expected exit 0, and it is 2, 0");
    passes("  - {name: x, then: {approve: publish}, expect: {exit: 0}}");
    passes("  - {name: x, expect: {exit: [2]}}");
}

#[test]
fn what_a_shortened_prompt_does_not_tell_is_not_taken_for_granted() {
    let env = TestEnv::new();
    let graph = "inputs: [much]\nnodes: [{id: a, type: command, command: \"echo {{ inputs.much }} secret\"}]";
    env.write("g.yaml", graph);
    let much = format!("{0} hidden {0}", "x".repeat(200_000));
    let test = format!(
        "graph: g.yaml\ninputs: {{much: {much}}}\ntests:\n  - {{name: seen, expect: {{nodes: {{a: {{prompt: {{contains: secret}}}}}}}}}}\n"
    );
    env.write("g.omgtest.yaml", &test);
    let ran = env.omg(&["test"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for words in ["lacks: hidden", "matches: secret", "equals: echo", "contains: hidden"] {
        env.write("g.omgtest.yaml", test.replace("contains: secret", words));
        let said = env.omg(&["test", "--json"]).exits(1).stdout;
        assert!(
            said.contains("cannot be told: the prompt is longer than the 256 KiB that are kept"),
            "{said}"
        );
    }
}

#[test]
fn a_set_up_that_fails_costs_nothing_and_is_tried_again_by_a_later_leg() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: fix, prompt: hi, worktree: one, setup: npm ci}, {id: check, type: command, command: make, \
                 worktree: one, depends_on: [fix]}]";
    env.write("g.yaml", graph);
    let test = "graph: g.yaml
tests:
  - name: set up at the second try
    nodes: {fix: [{setup: fail}, {cost: 0.5}]}
    then: {retry_failed: true}
    expect: {exit: [1, 0], spend: 0.5, nodes: {fix: {attempts: 2}}}
  - name: no registry
    nodes: {fix: {setup: no registry}}
    expect: {spend: 0, nodes: {fix: setup, check: skipped}}
  - name: too late
    nodes: {check: {setup: fail}}
    expect: {nodes: {check: run_error}}
";
    env.write("g.omgtest.yaml", test);
    let ran = env.omg(&["test"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    env.write(
        "g.omgtest.yaml",
        "graph: g.yaml\ntests: [{name: x, nodes: {fix: [{setup: fals}, {setup: fail, cost: 1}]}}]",
    );
    let said = env.omg(&["test"]).exits(1).stdout;
    assert!(
        said.contains("setup takes pass, fail or the words of the failure, and this is \"fals\""),
        "{said}"
    );
    assert!(said.contains("an attempt that ends by setup has no cost"), "{said}");
}

#[test]
fn a_filter_chooses_tests_by_name() {
    let env = TestEnv::new();
    let two =
        "  - {name: it is approved, then: {approve: publish}}\n  - {name: it waits, expect: {exit: 2}}\n";
    let ran = tests(&env, two, &["--filter", "waits"]).exits(0);
    assert!(ran.stdout.contains("it waits") && !ran.stdout.contains("approved"), "{}", ran.stdout);
    let ran = tests(&env, two, &["--filter", "nothing like it"]).exits(1);
    assert!(ran.stderr.contains("no test's name contains \"nothing like it\""), "{}", ran.stderr);
}

#[test]
fn without_tests_it_says_what_it_looked_for() {
    let env = TestEnv::new();
    env.write("g.yaml", GRAPH);
    let ran = env.omg(&["test"]).exits(1);
    assert!(
        ran.stderr.starts_with("omg: test: no file named *.omgtest.yaml below .\n  hint: "),
        "{}",
        ran.stderr
    );
    let ran = env.omg(&["test", "nowhere"]).exits(1);
    assert!(ran.stderr.contains("nowhere: cannot be read"), "{}", ran.stderr);
}

#[test]
fn a_file_that_cannot_be_read_fails_and_keeps_no_other_from_running() {
    let env = TestEnv::new();
    env.write("bad.omgtest.yaml", "graph: g.yaml\ntets: []\n");
    env.write("broken.yaml", "nodes: [{id: x, promt: y}]");
    env.write("broken.omgtest.yaml", "graph: broken.yaml\ntests: [{name: x}]\n");
    let ran = tests(&env, "  - {name: it waits, expect: {exit: 2}}\n", &[]).exits(1);
    for part in [
        "✓ it waits",
        "bad.omgtest.yaml:2:1: unknown key \"tets\"",
        "did you mean \"tests\"?",
        "broken.yaml:1:17: node \"x\": unknown key \"promt\"",
        "1 test: 1 passed, 2 files that cannot be read",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in:\n{}", ran.stdout);
    }
    assert_eq!(ran.stderr, "omg: test: 2 files cannot be read\n");
}

#[test]
fn junit_is_xml_that_holds_every_test_and_no_control_character() {
    let env = TestEnv::new();
    env.write("bad.omgtest.yaml", "graph: none.yaml");
    let two = "  - {name: \"a <b> & \\\"c\\\" \\e[31m\\uffff\", expect: {exit: 2}}\n  - {name: fails}\n";
    tests(&env, two, &["--junit", "out.xml"]).exits(1);
    let xml = env.read("out.xml");
    assert!(!xml.contains(|c: char| c.is_control() && c != '\n'), "{xml}");
    let times = regex::Regex::new("time=\"[0-9.]+\"").unwrap();
    insta::assert_snapshot!(times.replace_all(&xml, "time=\"…\""), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="omg test">
      <testsuite name="g.omgtest.yaml" tests="2" failures="1" errors="0" skipped="0" time="…">
        <testcase name="a &lt;b&gt; &amp; &quot;c&quot; ␛[31m�" classname="g.omgtest.yaml" time="…"/>
        <testcase name="fails" classname="g.omgtest.yaml" time="…">
          <failure message="g.omgtest.yaml:5:12: node &quot;publish&quot;: expected PASS, as of every node that is not named, and it is waiting" type="omg">g.omgtest.yaml:5:12: node &quot;publish&quot;: expected PASS, as of every node that is not named, and it is waiting
    g.omgtest.yaml:5:12: node &quot;upload&quot;: expected PASS, as of every node that is not named, and it is pending</failure>
        </testcase>
      </testsuite>
      <testsuite name="bad.omgtest.yaml" tests="1" failures="0" errors="1" skipped="0" time="…">
        <testcase name="the file can be read" classname="bad.omgtest.yaml" time="…">
          <error message="bad.omgtest.yaml:1:8: graph: none.yaml: cannot be read: No such file or directory (os error 2)" type="omg">bad.omgtest.yaml:1:8: graph: none.yaml: cannot be read: No such file or directory (os error 2)</error>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn what_is_kept_can_be_looked_at() {
    let mut env = TestEnv::new();
    let ran = tests(&env, "  - {name: it waits, expect: {exit: 2}}\n", &["--keep"]).exits(0);
    let home = ran.stdout.split("OMG_HOME=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    env.set("OMG_HOME", &home);
    let shown = env.omg(&["show", "latest", "draft"]).exits(0);
    assert!(shown.stdout.contains("Write about tea"), "{}", shown.stdout);
}

#[test]
fn many_tests_are_told_in_the_order_of_their_file() {
    let env = TestEnv::new();
    let many: String = (0..60).map(|n| format!("  - {{name: n{n:02}, expect: {{exit: 2}}}}\n")).collect();
    let ran = tests(&env, &many, &[]).exits(0);
    let names: Vec<&str> = ran.stdout.lines().filter_map(|line| line.strip_prefix("  ✓ ")).collect();
    assert!(names.len() == 60 && names.is_sorted(), "{}", ran.stdout);
}

#[test]
fn a_signal_ends_the_tests_and_leaves_nothing() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: slow, prompt: hi}]");
    env.write("g.omgtest.yaml", "graph: g.yaml\ntests: [{name: x, nodes: {slow: {delay: 341.7s}}}]");
    let running = env.start(&["test"]);
    env.until("the node runs", || env.everything().iter().any(|path| path.ends_with("slow")));
    running.signal(rustix::process::Signal::INT);
    running.wait().exits(130);
    let left: Vec<_> =
        env.everything().into_iter().filter(|path| path.to_string_lossy().contains("omg-test-")).collect();
    assert!(left.is_empty(), "{left:?}");
}
