//! New run ids and the directories that go with them (FACTS 6.1).
//!
//! An id begins with the time, so that ids sort by age, and ends with a count, so that one process never mints
//! the same one twice; that no other process has it is settled by creating its directory exclusively.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

use crate::clock::Clock;
use crate::record::{Home, RunDir, RunId, private};

/// Two processes would have to share a nanosecond this often in a row.
const TRIES_MAX: u32 = 100;

static MINTED: AtomicU32 = AtomicU32::new(0);

/// Why there is no directory for a new run.
#[derive(Debug, Error)]
pub enum MintError {
    /// The file system refused.
    #[error("{}: cannot create it: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// Every id that was tried exists.
    #[error("{}: every run id of this moment is taken; is the clock standing still?", path.display())]
    Taken {
        /// The directory of runs.
        path: PathBuf,
    },
}

/// A new id, `YYYYMMDD-HHMMSS.nnnnnnnnn-k` in UTC. Plans that are not runs are numbered by it too.
pub fn run_id(clock: &dyn Clock) -> RunId {
    let count = MINTED.fetch_add(1, Ordering::Relaxed) + 1;
    let at = clock.now().strftime("%Y%m%d-%H%M%S.%9f");
    RunId::parse(&format!("{at}-{count}")).expect("digits, dots and dashes make an id")
}

/// Mints an id and creates its directory under `home`.
pub fn new_run(home: &Home, clock: &dyn Clock) -> Result<(RunId, RunDir), MintError> {
    new_under(home.runs(), clock)
}

/// The same for a plan that belongs to no run; its directory holds a plan's files and no others.
pub fn new_plan(home: &Home, clock: &dyn Clock) -> Result<RunDir, MintError> {
    new_under(home.plans(), clock).map(|(_, directory)| directory)
}

/// Removes the directory of a plan again, if nothing lies in it.
pub fn discard_empty(dir: &RunDir) {
    std::fs::remove_dir(dir.path()).ok();
}

fn new_under(runs: PathBuf, clock: &dyn Clock) -> Result<(RunId, RunDir), MintError> {
    private::create_directories(&runs).map_err(|source| MintError::Io { path: runs.clone(), source })?;
    for _ in 0..TRIES_MAX {
        let id = run_id(clock);
        let directory = RunDir::new(runs.join(id.as_str()));
        match private::create_directory(directory.path()) {
            Ok(()) => return Ok((id, directory)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(MintError::Io { path: directory.path().to_path_buf(), source }),
        }
    }
    Err(MintError::Taken { path: runs })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SystemClock;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp::new(1_700_000_000, 120_000_000).unwrap()
        }
    }

    #[test]
    fn an_id_is_the_moment_and_a_count() {
        let id = run_id(&Stopped);
        let (moment, count) = id.as_str().rsplit_once('-').unwrap();
        assert_eq!(moment, "20231114-221320.120000000");
        assert!(count.parse::<u32>().unwrap() >= 1);
        assert_ne!(run_id(&Stopped), id);
    }

    #[test]
    fn a_taken_id_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let home = Home::new(&home.path().join("deep/er"));
        let (first, directory) = new_run(&home, &SystemClock).unwrap();
        assert!(directory.path().is_dir() && directory.path().ends_with(first.as_str()));
        // Other tests mint too, so that the next count is one of these.
        let next: u32 = MINTED.load(Ordering::Relaxed) + 1;
        for count in next..next + 20 {
            std::fs::create_dir(home.runs().join(format!("20231114-221320.120000000-{count}"))).unwrap();
        }
        let (second, directory) = new_run(&home, &Stopped).unwrap();
        assert!(directory.path().is_dir());
        assert_ne!(first, second);
    }
}
