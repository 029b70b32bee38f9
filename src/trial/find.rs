//! The test files below the paths that a person named.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How a file of tests ends.
pub const ENDINGS: [&str; 2] = [".omgtest.yaml", ".omgtest.yml"];
/// Directories that hold what others wrote or a build made.
const PASSED_OVER: [&str; 2] = ["target", "node_modules"];
/// How deep directories are searched: no project is deeper, and a file system may be.
const DEPTH_MAX: usize = 64;

/// Why there is nothing to test.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The system said no.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// No file has a name that ends as one of tests does.
    #[error("no file named *{} below {}", ENDINGS[0], list(paths))]
    None {
        /// Where was looked.
        paths: Vec<PathBuf>,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The files of tests below `paths`, each once: files as they are named, directories searched in the order of names.
/// Hidden directories, what a build made, and links to directories are passed over.
///
/// # Errors
/// When a path cannot be read, or there is no such file.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FindError> {
    let mut found = Vec::new();
    for path in paths {
        let about = fs::metadata(path).map_err(|source| FindError::Read { path: path.clone(), source })?;
        if about.is_dir() {
            search(path, DEPTH_MAX, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    if found.is_empty() { Err(FindError::None { paths: paths.to_vec() }) } else { Ok(found) }
}

fn search(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), FindError> {
    let failed = |source| FindError::Read { path: directory.to_path_buf(), source };
    let mut entries =
        fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // `.` alone would make a longer path of a short one.
        let path = if directory == Path::new(".") { entry.file_name().into() } else { entry.path() };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            if depth > 0 && !name.starts_with('.') && !PASSED_OVER.contains(&name.as_ref()) {
                search(&path, depth - 1, found)?;
            }
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) && !path.is_dir() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_below_directories_in_the_order_of_names_and_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in [
            "b.omgtest.yaml",
            "a/z.omgtest.yml",
            "a/g.yaml",
            "target/t.omgtest.yaml",
            ".git/h.omgtest.yaml",
            "named.yaml",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink("..", at("a/up")).unwrap();
        let paths = [dir.path().to_path_buf(), at("named.yaml"), at("b.omgtest.yaml")];
        let wanted = [at("a/z.omgtest.yml"), at("b.omgtest.yaml"), at("named.yaml")];
        assert_eq!(find(&paths).unwrap(), wanted);
    }

    #[test]
    fn nothing_to_test_says_where_was_looked() {
        let dir = tempfile::tempdir().unwrap();
        let said = find(&[dir.path().to_path_buf()]).unwrap_err().to_string();
        assert_eq!(said, format!("no file named *.omgtest.yaml below {}", dir.path().display()));
        let missing = dir.path().join("none");
        assert!(find(&[missing]).unwrap_err().to_string().contains("none: cannot be read"));
    }
}
