//! The shipped graphs and fragments, as files inside the program (DESIGN "graphs/", FACTS 1.5).
//!
//! Of what lies in `graphs/` everything ships but pages for readers of the repository: graphs, fragments, tests of graphs,
//! and the schemas that their first lines name. Knows nothing of what is in them.

use include_dir::{Dir, DirEntry, include_dir};

/// `graphs/fragments` is a link, which is followed: the fragments are in here as well.
static GRAPHS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/graphs");

/// A file that ships.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Where it belongs below `graphs/`, such as `NAME.yaml` or `fragments/NAME.yaml`.
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

/// The schema that `name` is: `graph.schema.json` or `fragments/fragment.schema.json`.
pub fn schema(name: &str) -> Option<&'static [u8]> {
    GRAPHS.get_file(name).map(include_dir::File::contents)
}

fn collect(dir: &'static Dir<'static>, files: &mut Vec<Shipped>) {
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(below) => collect(below, files),
            DirEntry::File(file) => {
                let path =
                    file.path().to_str().filter(|path| path.ends_with(".yaml") || path.ends_with(".json"));
                files.extend(path.map(|path| Shipped { path, contents: file.contents() }));
            }
        }
    }
}
