//! What holds of every file that is loaded as a graph, whatever is in it.
//!
//! The fuzzer looks for bytes that break it, from `seeds/` on; `tests/corpus.rs` looks at those that are kept in `corpus/`.

use std::path::Path;

use omg::graph::from_snapshot;
use omg::load::{Source, load};

/// Where the file is taken to lie: what it cites is looked for in `tests/fuzz/fragments`.
const PLACE: &str = "tests/fuzz/graph.yaml";

/// Loads `bytes`. A graph survives being written to a snapshot and read again, also as a file; a file that is none is told
/// so, at places within it and without a control character.
///
/// # Panics
/// When this does not hold.
pub(crate) fn holds(bytes: &[u8]) {
    let Ok(source) = Source::from_bytes(Path::new(PLACE), bytes.to_vec()) else { return };
    let loaded = match load(&source) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let lines = source.text.split(['\n', '\r']).count();
            assert!(problems.len() > 0, "refused without a reason");
            for report in problems.reports() {
                let last = if report.file == PLACE { lines } else { usize::MAX };
                assert!((1..=last).contains(&report.line) && report.column >= 1, "{report:?}");
                assert!(!report.message.is_empty(), "{report:?}");
            }
            let told = problems.render(false, 100);
            let odd = |c: char| c.is_control() && c != '\n';
            assert!(!told.contains(odd), "{told:?}");
            return;
        }
    };
    let encoded = loaded.encoded();
    let (raw, _) = from_snapshot(encoded.get()).expect("what was loaded is a snapshot's graph");
    assert_eq!(raw, loaded.raw.clone().normalised(), "the snapshot says something else");
    assert_eq!(raw.clone().normalised(), raw, "it is normalised once");
    if raw.nodes.iter().any(|node| node.id.contains('/')) {
        // Only a snapshot may hold what fragments were spliced into.
        return;
    }
    let file = Source::from_bytes(Path::new(PLACE), encoded.get().into()).expect("JSON is UTF-8");
    let again = load(&file).unwrap_or_else(|problems| panic!("{problems}\n{encoded}"));
    assert_eq!(again.raw.normalised(), raw, "the file says something else");
}
