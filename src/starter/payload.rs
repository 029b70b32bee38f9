//! The shipped graphs and fragments, as files inside the program (DESIGN "graphs/", FACTS 1.5).
//!
//! Whatever lies in `graphs/` and ends in `.yaml` ships, tests of graphs included. Knows nothing of what is in them.

use include_dir::{Dir, DirEntry, include_dir};

/// `graphs/fragments` is a link, which is followed: the fragments are in here as well.
static GRAPHS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/graphs");

/// A file that ships.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Where it belongs below `graphs/`: `NAME.yaml` or `fragments/NAME.yaml`.
    pub path: &'static str,
    /// What is in it.
    pub contents: &'static [u8],
}

/// Every file that ships, in the order of their paths.
pub fn files() -> Vec<Shipped> {
    let mut files = Vec::new();
    collect(&GRAPHS, &mut files);
    files.sort_by_key(|file| file.path);
    files
}

fn collect(dir: &'static Dir<'static>, files: &mut Vec<Shipped>) {
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(below) => collect(below, files),
            DirEntry::File(file) => {
                // Files come from this repository; one whose name is not UTF-8 would not be found by its name either.
                let path = file.path().to_str().filter(|path| path.ends_with(".yaml"));
                files.extend(path.map(|path| Shipped { path, contents: file.contents() }));
            }
        }
    }
}
