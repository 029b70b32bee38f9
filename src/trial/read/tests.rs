//! What is told of files of tests that are wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use super::{Unread, read};

const GRAPH: &str = r#"
inputs: [topic]
nodes:
  - {id: draft, prompt: "Write about {{ inputs.topic }}"}
  - {id: review, depends_on: [draft], prompt: "Review", success_check: {result_matches: "^PASS"}}
  - {id: publish, type: gate, depends_on: [review]}
  - {id: upload, type: command, depends_on: [publish], command: upload}
"#;

/// What is wrong with a file of tests of [`GRAPH`], a line each, hints behind them.
fn problems(tests: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("g.yaml"), GRAPH).unwrap();
    let path = dir.path().join("g.omgtest.yaml");
    fs::write(&path, format!("graph: g.yaml\n{tests}")).unwrap();
    let place = format!("{}/", dir.path().display());
    match read(&path) {
        Ok(_) => "nothing is wrong".to_owned(),
        Err(Unread::Load(error)) => error.to_string().replace(&place, ""),
        Err(Unread::Problems(problems)) => {
            let hints = problems.reports().into_iter().map(|report| report.hint);
            let lines = problems.lines().into_iter().zip(hints);
            let lines = lines.map(|(line, hint)| match hint {
                Some(hint) => format!("{line} ({hint})"),
                None => line,
            });
            lines.collect::<Vec<_>>().join("\n").replace(&place, "")
        }
    }
}

#[test]
fn everything_that_may_be_written_is_read() {
    let tests = r#"
inputs: {topic: tea}
nodes: {draft: {reply: a draft, cost: 0.5}}
x-home: {}
tests:
  everything passes: ~
  everything:
    inputs: {topic: coffee}
    nodes: {review: [{reply: FAIL}, {reply: PASS}], upload: {exit: 1}}
    concurrency: 2
    continue_on_fail: true
    max_usd: 3
    max_executions: 9
    max_wall: 1h
    then:
      - {approve: publish, max_usd: 4}
      - {retry_failed: true}
      - {reject: [publish]}
    expect:
      exit: [1, 2, 0]
      paused_by: [gate, limit]
      order: [draft, review, draft before review]
      spend: {at_most: 2}
      nodes:
        draft: {attempts: 1, rounds: 0, cost: unknown, prompt: [tea, ~, {contains: [a, b], lacks: c, equals: d, matches: e}]}
        review: result_mismatch
        publish: {verdict: FAIL, cause: rejected}
        upload: {verdict: skipped, why: rejected, because: publish}
      others: any
"#;
    assert_eq!(problems(tests), "nothing is wrong");
}

#[test]
fn every_mistake_has_its_place_and_what_was_meant() {
    let tests = r#"
inputs: {topic: tea}
tset: []
tests:
  - {name: one, expct: {}}
  - name: two
    nodes: {reviw: {reply: PASS}, draft: {replay: x}}
    expect:
      exit: 3
      nodes:
        drft: PASS
        draft: PAS
        review: {attemps: 2}
        publish: {attempts: 1}
        upload: {cause: timeout, why: rejected}
      others: skiped
      order: [draft, review before uplaod]
      spend: much
  - expect: {}
  - name: one
  - name: three
    then: [{approve: draft}, {}, {approve: publish, retry_failed: true}, {approve: publish, reject: publish}]
    expect:
      paused_by: gates
      nodes:
        review: {verdict: PASS, cause: timeout, prompt: {matches: "("}}
"#;
    insta::assert_snapshot!(problems(tests));
}

#[test]
fn inputs_are_those_of_a_run() {
    insta::assert_snapshot!(problems("tests: [{name: one}, {name: two, inputs: {topc: x, topic: y}}]"), @r#"
    g.omgtest.yaml:2:16: input "topic" has no value, and node "draft" uses it in prompt (give inputs as in inputs: {name: value})
    g.omgtest.yaml:2:29: input "topc" is not an input of this graph (it has topic) (give inputs as in inputs: {name: value})
    "#);
}

#[test]
fn a_file_without_tests_or_without_a_graph_is_no_file_of_tests() {
    assert_eq!(
        problems("tests: []"),
        "g.omgtest.yaml:2:8: tests is missing: the list of tests (write tests: [{name: everything passes}])"
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.omgtest.yaml");
    let said = |text: &str| {
        fs::write(&path, text).unwrap();
        read(&path).err().unwrap().to_string().replace(&format!("{}/", dir.path().display()), "")
    };
    assert!(said("tests: [{name: x}]").starts_with("t.omgtest.yaml:1:1: graph is missing"));
    assert!(said("[]").starts_with("t.omgtest.yaml:1:1: a file of tests is a mapping"));
    assert_eq!(
        said("graph: none.yaml\ntests: []"),
        "t.omgtest.yaml:1:8: graph: none.yaml: cannot be read: No such file or directory (os error 2)"
    );
    fs::write(dir.path().join("bad.yaml"), "nodes: []").unwrap();
    assert!(said("graph: bad.yaml\ntests: [{name: x}]").starts_with("bad.yaml:1:"));
}
