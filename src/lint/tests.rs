//! The table: ids and names; and what an author allows. `tests/it/lint.rs` lints the examples.

use super::*;
use crate::load::{self, Source};

/// The ids of what is said of a graph.
fn said(text: &str) -> Vec<&'static str> {
    let source = Source::from_bytes("g.yaml".as_ref(), text.into()).unwrap_or_else(|error| panic!("{error}"));
    let loaded = load::load(&source).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    loaded.advice.iter().map(|advice| advice.id).collect()
}

#[test]
fn ids_are_in_order_and_names_are_words() {
    for pair in SWEEPS.windows(2) {
        assert!(pair[0].id < pair[1].id, "{} {}", pair[0].id, pair[1].id);
    }
    for sweep in SWEEPS {
        let digits = sweep.id.strip_prefix("OMG").unwrap_or_default();
        assert!(digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{}", sweep.id);
        assert!(sweep.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", sweep.name);
        assert_eq!(find(sweep.name).map(|found| found.id), Some(sweep.id));
    }
}

#[test]
fn an_allowance_silences_a_sweep_everywhere_or_at_a_node() {
    let nodes = "nodes:\n- {id: a, prompt: x}\n- {id: b, prompt: x}\n";
    for (allow, wanted) in [
        ("", vec!["OMG020", "OMG020"]),
        ("x-omg-allow: [OMG020]\n", vec![]),
        ("x-omg-allow: [omg020 b, OMG051]\n", vec!["OMG020"]),
        ("x-omg-allow: [OMG020 c]\n", vec!["OMG020", "OMG020", "OMG110"]),
        ("x-omg-allow: OMG020\n", vec![]),
        ("x-omg-allow: {OMG020: a}\n", vec!["OMG020", "OMG020", "OMG110"]),
    ] {
        assert_eq!(said(&format!("{allow}{nodes}")), wanted, "{allow}");
    }
}

#[test]
fn an_allowance_at_a_node_covers_the_nodes_of_the_fragment_that_it_cites() {
    let place = tempfile::TempDir::new().unwrap_or_else(|error| panic!("{error}"));
    let put = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it lies in a directory"))
            .and_then(|()| std::fs::write(&path, text))
            .unwrap_or_else(|error| panic!("{error}"));
        path
    };
    put(
        "fragments/f.yaml",
        "fragment: f\ndescription: d\nexit: b\nnodes:\n- {id: a, prompt: x}\n- {id: b, depends_on: [a], prompt: x}\n",
    );
    for (allow, wanted) in [
        ("OMG020 r", vec![]),
        ("OMG020 r/a", vec!["OMG020"]),
        ("OMG020 q", vec!["OMG020", "OMG020", "OMG110"]),
    ] {
        let path = put("g.yaml", &format!("x-omg-allow: [{allow}]\nnodes: [{{id: r, use: f}}]\n"));
        let source = Source::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let loaded = load::load(&source).unwrap_or_else(|problems| panic!("{problems}"));
        let said: Vec<&str> = loaded.advice.iter().map(|advice| advice.id).collect();
        assert_eq!(said, wanted, "{allow}");
    }
}
