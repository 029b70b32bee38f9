//! `omg schema`, and what it refuses; scripts/check-schema holds both to a validator of another house.

use std::fs;
use std::path::Path;

use crate::env::TestEnv;

#[test]
fn it_prints_the_checked_in_schemas() {
    let env = TestEnv::new();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for (words, page) in [
        (&["schema"][..], "graph.schema.json"),
        (&["schema", "graph"], "graph.schema.json"),
        (&["schema", "fragment"], "fragment.schema.json"),
    ] {
        let ran = env.omg(words).exits(0);
        assert_eq!(ran.stdout, fs::read_to_string(docs.join(page)).unwrap(), "{words:?}");
    }
}

/// The schema says no more than the program does.
#[test]
fn what_the_schema_refuses_lint_refuses() {
    let env = TestEnv::new();
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema/broken");
    let mut count = 0;
    for entry in fs::read_dir(broken).unwrap() {
        let path = entry.unwrap().path();
        let ran = env.omg(&["lint", path.to_str().unwrap()]);
        assert_eq!(ran.code, 1, "{}: {}", path.display(), ran.stdout);
        count += 1;
    }
    assert!(count > 30, "the broken graphs were not found");
}
