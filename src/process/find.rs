//! Finds a program the way a shell would, so that a missing one is told before anything is spent (DECISIONS 19).
//!
//! The result is absolute: starting a child by an absolute path keeps the system's fast way of spawning open, and
//! a later change of directory cannot make another program of it. Does not know what the program is for.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where a program was looked for in vain.
#[derive(Debug, thiserror::Error)]
#[error("{program} was not found on PATH{}", searched_list(searched))]
pub struct NotFound {
    /// The name that was looked for.
    pub program: String,
    /// The directories that were searched, in order.
    pub searched: Vec<PathBuf>,
}

/// Finds `program` on this process's `PATH`.
///
/// # Errors
/// When no directory of `PATH` holds an executable file of that name.
pub fn find(program: &str) -> Result<PathBuf, NotFound> {
    find_in(program, std::env::var_os("PATH").as_deref())
}

/// Finds `program` in the directories of `path`; a name with a slash stands for itself.
///
/// # Errors
/// When there is no executable file of that name.
pub fn find_in(program: &str, path: Option<&OsStr>) -> Result<PathBuf, NotFound> {
    if program.contains('/') {
        return absolute(Path::new(program))
            .filter(|it| is_executable(it))
            .ok_or_else(|| NotFound { program: program.to_owned(), searched: Vec::new() });
    }
    let directories = path.iter().flat_map(|it| std::env::split_paths(it));
    let searched: Vec<PathBuf> = directories.filter_map(|it| absolute(&it)).collect();
    let hit = searched.iter().map(|it| it.join(program)).find(|it| !program.is_empty() && is_executable(it));
    hit.ok_or_else(|| NotFound { program: program.to_owned(), searched })
}

/// An empty element of `PATH` means the current directory.
fn absolute(path: &Path) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).ok()
}

/// Whether `path` is a file that this process may execute.
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn searched_list(searched: &[PathBuf]) -> String {
    if searched.is_empty() {
        return String::new();
    }
    let list: Vec<_> = searched.iter().map(|it| it.display().to_string()).collect();
    format!(" (searched {})", list.join(", "))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_executable_file_wins() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir_all(a.join("tool")).unwrap();
        fs::create_dir_all(&b).unwrap();
        file(&a.join("plain"), 0o644);
        file(&b.join("plain"), 0o755);
        file(&b.join("tool"), 0o755);
        let path = std::env::join_paths([&a, &b]).unwrap();
        assert_eq!(
            find_in("plain", Some(&path)).unwrap(),
            b.join("plain"),
            "a file that cannot be run is passed over"
        );
        assert_eq!(find_in("tool", Some(&path)).unwrap(), b.join("tool"), "a directory is passed over");
    }

    #[test]
    fn a_missing_program_is_named_with_the_places_searched() {
        let error = find_in("no-such-tool", Some(OsStr::new("/x/one:/x/two"))).unwrap_err();
        assert_eq!(error.to_string(), "no-such-tool was not found on PATH (searched /x/one, /x/two)");
        assert_eq!(find_in("sh", None).unwrap_err().to_string(), "sh was not found on PATH");
        assert!(find_in("", Some(OsStr::new("/"))).is_err());
    }

    #[test]
    fn a_name_with_a_slash_is_not_searched_for() {
        assert_eq!(find_in("/bin/sh", None).unwrap(), Path::new("/bin/sh"));
        assert!(find_in("/bin/no-such-tool", None).is_err());
    }
}
