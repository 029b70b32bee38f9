//! Removes a whole run from the home, and follows no link while it does.
//!
//! Who removes a run holds its lock, so that no leg begins meanwhile. The directory first takes a hidden name beside
//! the others: a removal that is cut short leaves nothing that looks like a damaged run, and the next one ends it.
//! Knows neither which runs may go nor what their worktrees hold.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::record::lock::{self, LegLock, LockError};
use crate::record::{Home, RunDir, RunId, private, staged};

/// How the directory of a run is called that is being removed, before its id. No run id begins so.
const TRASH: &str = ".pruned-";
/// What the system counts allocated space in, whatever the file system.
const BLOCK_BYTES: u64 = 512;

/// Why a run was not removed, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// A link stands where a directory belongs; what it leads to is not this program's.
    #[error("{} is a link, and nothing is removed through one", .0.display())]
    Link(PathBuf),
    /// The lock could not be had: a leg is alive, or may be.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The system refused; the run is as it was.
    #[error("cannot move {} aside: {source}", path.display())]
    Untouched {
        /// The run's directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The run is gone from every list, and some of its files are still there.
    #[error("{} could not be removed wholly: {source}; the next prune tries again", path.display())]
    Rest {
        /// What is left.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A run whose lock is held, to be removed or let go.
#[derive(Debug)]
pub struct Claimed {
    dir: RunDir,
    trash: PathBuf,
    lock: LegLock,
}

/// Takes the lock of `run`, which must be a real directory of `home`.
///
/// # Errors
/// When it is none, or the lock cannot be had.
pub fn claim(home: &Home, run: &RunId) -> Result<Claimed, PruneError> {
    let dir = home.run(run);
    for place in [home.runs().as_path(), dir.path()] {
        if !private::is_real_directory(place) {
            return Err(PruneError::Link(place.to_path_buf()));
        }
    }
    let lock = lock::hold(&dir)?;
    Ok(Claimed { trash: home.runs().join(format!("{TRASH}{run}")), dir, lock })
}

impl Claimed {
    /// The run's directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Removes the run; returns how many bytes that freed.
    ///
    /// # Errors
    /// When the system refused.
    pub fn remove(self) -> Result<u64, PruneError> {
        let Claimed { dir, trash, lock } = self;
        let path = dir.path().to_path_buf();
        fs::rename(&path, &trash).map_err(|source| PruneError::Untouched { path, source })?;
        let bytes = size(&trash);
        let removed = fs::remove_dir_all(&trash);
        drop(lock);
        match removed {
            // Another prune may have swept it up meanwhile.
            Err(source) if trash.symlink_metadata().is_ok() => Err(PruneError::Rest { path: trash, source }),
            _ => Ok(bytes),
        }
    }
}

/// Ends removals that were cut short; returns how many bytes that freed. What dead legs had staged goes as well.
pub fn sweep(home: &Home) -> u64 {
    staged::sweep(home, None);
    if !private::is_real_directory(&home.runs()) {
        return 0;
    }
    let entries = fs::read_dir(home.runs()).into_iter().flatten().flatten();
    let is_trash = |name: &str| name.strip_prefix(TRASH).is_some_and(|id| RunId::parse(id).is_some());
    let trash = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_trash));
    trash.filter_map(|entry| end(&entry.path())).sum()
}

fn end(trash: &Path) -> Option<u64> {
    // A link of that name is no run of ours.
    let bytes = private::is_real_directory(trash).then(|| size(trash))?;
    fs::remove_dir_all(trash).ok().map(|()| bytes)
}

/// How much of the disk `path` takes up. Files that have another name elsewhere are not counted: they stay.
pub fn size(path: &Path) -> u64 {
    let Ok(about) = fs::symlink_metadata(path) else { return 0 };
    if !about.is_dir() {
        return if about.nlink() > 1 { 0 } else { about.blocks() * BLOCK_BYTES };
    }
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    about.blocks() * BLOCK_BYTES + below.map(|entry| size(&entry.path())).sum::<u64>()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn home_with(ids: &[&str]) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        for id in ids {
            let dir = home.run(&RunId::parse(id).unwrap());
            fs::create_dir_all(dir.path().join("attempts/a")).unwrap();
            fs::write(dir.path().join("attempts/a/1.err"), "x".repeat(9000)).unwrap();
            fs::write(dir.feed(), "{}\n").unwrap();
        }
        (folder, home)
    }

    fn names(home: &Home) -> Vec<String> {
        let entries = fs::read_dir(home.runs()).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_run_goes_with_everything_in_it_and_frees_what_it_took() {
        let (_folder, home) = home_with(&["1-a", "1-b"]);
        let bytes = claim(&home, &RunId::parse("1-a").unwrap()).unwrap().remove().unwrap();
        assert!(bytes >= 9000, "{bytes}");
        assert_eq!(names(&home), ["1-b"]);
    }

    #[test]
    fn a_run_that_somebody_holds_stays() {
        let (_folder, home) = home_with(&["1-a"]);
        let run = RunId::parse("1-a").unwrap();
        let lock = lock::acquire(&home.run(&run)).unwrap();
        assert!(matches!(claim(&home, &run), Err(PruneError::Locked(LockError::Held { .. }))));
        drop(lock);
        claim(&home, &run).unwrap();
        assert_eq!(lock::signer(&home.run(&run)), Some(std::process::id()), "the last leg's word stays");
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let (_folder, home) = home_with(&["1-a"]);
        let (elsewhere, _) = home_with(&["1-b"]);
        let place = elsewhere.path().join("runs/1-b");
        symlink(&place, home.runs().join("1-b")).unwrap();
        assert!(matches!(claim(&home, &RunId::parse("1-b").unwrap()), Err(PruneError::Link(_))));
        symlink(&place, home.runs().join("1-a/link")).unwrap();
        claim(&home, &RunId::parse("1-a").unwrap()).unwrap().remove().unwrap();
        symlink(&place, home.runs().join(".pruned-1-c")).unwrap();
        sweep(&home);
        assert!(place.join("attempts/a/1.err").exists());
    }

    #[test]
    fn what_a_removal_left_is_removed_by_the_next_and_nothing_else_is() {
        let (_folder, home) = home_with(&["1-a", "1-b"]);
        fs::rename(home.runs().join("1-a"), home.runs().join(".pruned-1-a")).unwrap();
        fs::create_dir(home.runs().join(".mine")).unwrap();
        assert!(sweep(&home) >= 9000);
        let mut left = names(&home);
        left.sort();
        assert_eq!(left, [".mine", "1-b"]);
    }
}
