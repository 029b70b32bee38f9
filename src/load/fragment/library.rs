//! Where fragments lie, and each file read once: `fragments/<name>.yaml` beside the graph's own file and nowhere else.
//!
//! The place follows from the path of the graph alone, at every depth of citation. A name is checked before any file is
//! opened. Knows nothing of who cites what.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::body::Fragment;
use super::citing::SUGGESTIONS_MAX;
use super::definition;
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::source::{Origin, Source};
use crate::load::yaml::{self, Limits, Span};
use crate::text::suggest;

/// How many bytes the fragments of one graph may have together; the largest graph file may have as many.
const BYTES_MAX: usize = 64 << 20;

/// The fragments that a graph can cite.
#[derive(Debug)]
pub(crate) struct Library<'s> {
    shelf: Shelf,
    files: Files<'s>,
    known: HashMap<String, Volume>,
    bytes_left: usize,
    suggestions_left: usize,
}

/// Where to look.
#[derive(Debug)]
enum Shelf {
    /// In a directory.
    Directory(PathBuf),
    /// Nowhere.
    None(Origin),
}

/// What is known of a fragment that was looked for.
#[derive(Clone, Debug)]
pub(super) enum Volume {
    /// It holds.
    Good(Rc<Fragment>),
    /// Its file was read, and this is wrong with it.
    Broken {
        /// The position of its file.
        file: usize,
        /// What is wrong, each in that file.
        problems: Rc<[Problem]>,
    },
    /// There is no file to read; the place is that of a citation.
    Missing(Rc<Problem>),
}

impl<'s> Library<'s> {
    /// The library of the graph in `source`; nothing is opened yet.
    pub(crate) fn of(source: &'s Source) -> Self {
        let shelf = match source.origin {
            Origin::File => Shelf::Directory(source.path.parent().unwrap_or(Path::new("")).join("fragments")),
            origin => Shelf::None(origin),
        };
        let files = Files::of(source.path.display().to_string(), &source.text);
        Self { shelf, files, known: HashMap::new(), bytes_left: BYTES_MAX, suggestions_left: SUGGESTIONS_MAX }
    }

    /// The graph's own file, and the fragments that were read.
    pub(crate) fn files(&self) -> &Files<'s> {
        &self.files
    }

    /// The files alone, when nothing more is looked for.
    pub(crate) fn into_files(self) -> Files<'s> {
        self.files
    }

    /// The fragment `name`, which is well formed.
    pub(super) fn find(&mut self, name: &str) -> Volume {
        if let Some(volume) = self.known.get(name) {
            return volume.clone();
        }
        let volume = self.open(name);
        self.known.insert(name.to_owned(), volume.clone());
        volume
    }

    fn open(&mut self, name: &str) -> Volume {
        let missing = |message: String, hint: Option<String>| {
            Volume::Missing(Rc::new(Problem { hint, ..Problem::at(Span::default(), message) }))
        };
        let directory = match &self.shelf {
            Shelf::Directory(directory) => directory.clone(),
            Shelf::None(origin) => return missing(nowhere(*origin, name), where_to_write(*origin)),
        };
        let path = directory.join(format!("{name}.yaml"));
        let about = match fs::metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if fs::symlink_metadata(&path).is_ok() {
                    let message =
                        format!("there is no fragment {name:?}: the link {} leads nowhere", path.display());
                    return missing(message, None);
                }
                let message = format!("there is no fragment {name:?}: no file {}", path.display());
                // The directory is listed and compared with for so many names only.
                let left = self.suggestions_left.checked_sub(1);
                self.suggestions_left = left.unwrap_or(0);
                return missing(message, left.map(|_| remedy(&directory, name)));
            }
            Err(error) => return missing(format!("{}: cannot be read: {error}", path.display()), None),
        };
        if !about.is_file() {
            return missing(format!("{}: is no regular file, and a fragment is one", path.display()), None);
        }
        let source = match Source::read(&path) {
            Ok(source) => source,
            Err(error) => return missing(error.to_string(), None),
        };
        let Some(left) = self.bytes_left.checked_sub(source.text.len()) else {
            let message = format!(
                "with {} the fragments of this graph have more than {} MB",
                path.display(),
                BYTES_MAX >> 20
            );
            return missing(message, None);
        };
        self.bytes_left = left;
        self.read(name, &path, source.text)
    }

    fn read(&mut self, name: &str, path: &Path, text: String) -> Volume {
        let base = self.files.next_base();
        let mut problems = Vec::new();
        let position = self.files.push(path.display().to_string(), text);
        let fragment = match yaml::parse_at(&self.files.get(position).text, base, Limits::default()) {
            Ok(tree) => {
                problems.extend(tree.problems);
                definition::read(name, position, &tree.root, &self.files, &mut problems)
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        match fragment.filter(|_| problems.is_empty()) {
            Some(fragment) => Volume::Good(Rc::new(fragment)),
            None => Volume::Broken { file: position, problems: problems.into() },
        }
    }
}

fn nowhere(origin: Origin, name: &str) -> String {
    match origin {
        Origin::Memory => format!("use names the fragment {name:?}, and this graph may cite none"),
        _ => format!(
            "use names the fragment {name:?}, and a graph that comes through a pipe has no directory to look in"
        ),
    }
}

fn where_to_write(origin: Origin) -> Option<String> {
    (origin != Origin::Memory)
        .then(|| "save the graph as a file: fragments lie in the directory fragments beside it".to_owned())
}

/// What to do about a fragment that is not there.
fn remedy(directory: &Path, name: &str) -> String {
    let Ok(entries) = fs::read_dir(directory) else {
        return format!(
            "fragments are looked for in the directory fragments beside the graph and nowhere else: put one there, or a link \
             to one ({}); `omg init DIR` unpacks one at DIR/graphs/fragments",
            directory.display()
        );
    };
    let names = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".yaml")?.to_owned()));
    let mut there: Vec<String> = names.collect();
    there.sort_unstable();
    if let Some(hint) = suggest::hint(name.trim_end_matches(".yaml"), there.iter().map(String::as_str)) {
        return hint;
    }
    let holds = if there.is_empty() { "no fragment yet".to_owned() } else { listed(&there) };
    format!("nothing but {} is searched, and it holds {holds}", directory.display())
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
