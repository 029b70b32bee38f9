//! A graph runs: order, handoff, evidence, what is left on disk.

use crate::contract;
use crate::env::TestEnv;

const PIPELINE: &str = r#"
name: pipeline
inputs: [who]
nodes:
  - id: ask
    prompt: |
      @say Hello {{ inputs.who }}
    success_check: {result_matches: "^Hello"}
  - id: count
    type: command
    depends_on: [ask]
    command: wc -c < "$OMG_ARTIFACT_ASK"; echo "for $OMG_INPUT_WHO"
  - id: judge
    depends_on: [ask, count]
    prompt: |
      @say PASS
      {{ artifacts.count | inline }}
    success_check:
      verify: {command: 'test "$(cat {{ artifacts.ask }})" = "Hello Ann"'}
"#;

#[test]
fn a_pipeline_passes_and_says_how() {
    let env = TestEnv::new();
    let ran = env.run_graph(PIPELINE, &["--input", "who=Ann"]).exits(0);
    assert_eq!(env.artifact("ask").unwrap(), b"Hello Ann");
    assert_eq!(String::from_utf8(env.artifact("count").unwrap()).unwrap().trim(), "9\nfor Ann");
    let provenance = |node: &str| env.record(node)["provenance"].clone();
    assert_eq!(provenance("ask"), "self-reported");
    assert_eq!(provenance("count"), "verified");
    assert_eq!(provenance("judge"), "verified");
    assert!(ran.stdout.contains("TOTAL COST: $0.0200"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}
