//! What the fuzzer once found, and what it begins with, still holds; the fuzzer itself is `scripts/fuzz`.

#![expect(clippy::unwrap_used, reason = "a corpus that cannot be read is a failed test")]

use std::fs;
use std::path::Path;

#[path = "fuzz/property.rs"]
mod property;

#[test]
fn every_kept_file_loads_as_it_should() {
    for folder in ["corpus", "seeds"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(folder);
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() > 5, "the files were not found");
        for file in files {
            let bytes = fs::read(&file).unwrap();
            if let Err(panic) = std::panic::catch_unwind(|| property::holds(&bytes)) {
                let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                panic!("{}: {said}", file.display());
            }
        }
    }
}
