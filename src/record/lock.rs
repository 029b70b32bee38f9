//! `resume.lock`: which process, if any, runs a leg of a run (RUN-FEED "liveness", FACTS 6.5, ADR 0015).
//!
//! The lock is `flock(2)` on the file, so the kernel ends it with its holder; the file itself says nothing by being
//! there and is never removed. A leg holds it exclusively, a reader asks with a shared one. A leg locks its feed as well:
//! a lock file that somebody took away under it lets no second leg begin. The only file that locks.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs4::TryLockError;
use rustix::io::Errno;
use rustix::process::Pid;
use thiserror::Error;

use crate::record::{RunDir, private};

/// The first line of a lock file of this format. A contract with readers outside this program.
const MARKER: &str = "oh-my-graph-lock 1";
/// Begins the line of somebody who wants the leg to end.
const STOP: &str = "stop ";
/// A marker line, a process id and the first line of a stop are shorter.
const HEAD_BYTES_MAX: u64 = 128;
/// A reader's probe holds the lock for an instant; only one that is held longer than this belongs to a leg.
const PROBES_PASS: Duration = Duration::from_millis(250);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// Why a leg could not take the lock.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another leg of the run is alive.
    #[error("{}: another process is running this run{}", path.display(), pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Held {
        /// The lock.
        path: PathBuf,
        /// The process that the file names, if it does.
        pid: Option<u32>,
    },
    /// The file was left by a version whose lock was the file itself.
    #[error(
        "{}: this lock was left by an older version, which did not say when it ended{}; once you are sure that \
         it has, remove it: rm -- '{}'",
        path.display(), if *stale { " (its process is gone)" } else { "" }, path.display()
    )]
    Legacy {
        /// The lock.
        path: PathBuf,
        /// Whether the process that it names is gone.
        stale: bool,
    },
    /// The file system cannot lock.
    #[error("{}: this file system cannot lock files", path.display())]
    Unsupported {
        /// The lock.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{}: cannot lock it: {source}", path.display())]
    Io {
        /// The lock.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
}

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A leg is alive.
    Held,
    /// No leg is alive.
    Free,
    /// It cannot be told; nothing may be concluded from it.
    Unknown,
}

/// The right to run a leg; dropping it gives it back. Not inherited by children.
#[derive(Debug)]
pub struct LegLock {
    file: File,
    /// What the file said of the leg before, while nothing has come of this one.
    before: Option<String>,
}

impl LegLock {
    /// The leg has begun: from now on the file tells of it.
    pub fn begun(&mut self) {
        self.before = None;
    }
}

impl Drop for LegLock {
    fn drop(&mut self) {
        if let Some(before) = self.before.take().filter(|before| before.starts_with(MARKER)) {
            rewrite(&self.file, &before).ok();
        }
        // Closing the file unlocks it as well, unless a child that is just being started still holds a copy.
        fs4::FileExt::unlock(&self.file).ok();
    }
}

/// Takes the lock of `run` for a leg of this process, creating directory and file when missing.
pub fn acquire(run: &RunDir) -> Result<LegLock, LockError> {
    private::create_directories(run.path()).map_err(|source| LockError::Io { path: run.lock(), source })?;
    let lock = hold(run)?;
    sign(&lock.file).map_err(|source| LockError::Io { path: run.lock(), source })?;
    Ok(lock)
}

/// The same for a later leg. Unless that [has begun](LegLock::begun), the file tells of the one before again once the lock
/// is dropped: what its guard did must not be doubted because somebody asked for a leg that was refused.
pub fn acquire_again(run: &RunDir) -> Result<LegLock, LockError> {
    let mut lock = hold(run)?;
    let failed = |source| LockError::Io { path: run.lock(), source };
    lock.before = Some(read_head(&mut lock.file).map_err(failed)?);
    sign(&lock.file).map_err(failed)?;
    Ok(lock)
}

/// Takes the lock of the existing `run` for something that is no leg: what the file says of the last leg stays.
pub fn hold(run: &RunDir) -> Result<LegLock, LockError> {
    let path = run.lock();
    let failed = |source| LockError::Io { path: path.clone(), source };
    // Before the file is made that may be missing: one that is there and free would say that nobody lives.
    if feed_stays_held(run) {
        return Err(LockError::Held { pid: signer(run), path });
    }
    let mut file = private::open_to_rewrite(&path).map_err(failed)?;
    let head = read_head(&mut file).map_err(failed)?;
    if let Contents::Legacy { pid } = Contents::of(&head) {
        return Err(LockError::Legacy { stale: pid.is_some_and(is_gone), path });
    }
    match lock_patiently(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(LockError::Held { pid: holder(&mut file), path }),
        Err(TryLockError::Error(error)) if cannot_lock(&error) => {
            return Err(LockError::Unsupported { path });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let lock = LegLock { file, before: None };
    match is_at(&lock.file, &path) {
        true => Ok(lock),
        // Whoever held it before has removed the run.
        false => Err(failed(io::Error::new(io::ErrorKind::NotFound, "the run has just been removed"))),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |about: Metadata| (about.dev(), about.ino());
    let there = fs::symlink_metadata(path).ok().map(identity);
    there.is_some() && there == file.metadata().ok().map(identity)
}

/// Asks whether a leg of `run` is alive. Creates and changes nothing.
pub fn probe(run: &RunDir) -> Probe {
    let Ok(mut file) = private::open_to_read(&run.lock()) else {
        return if feed_is_held(run) { Probe::Held } else { Probe::Unknown };
    };
    if !is_on_local_disk(&file) {
        return Probe::Unknown;
    }
    let Ok(head) = read_head(&mut file) else { return Probe::Unknown };
    match Contents::of(&head) {
        Contents::Marked => probe_marked(&file),
        Contents::Legacy { pid: Some(pid) } if is_gone(pid) => Probe::Free,
        Contents::Legacy { .. } | Contents::Empty => Probe::Unknown,
    }
}

/// Locks the feed of a live leg, for the time that its lock file may be taken away. Never in the way: where it cannot be
/// done, the lock file is what there is.
pub(crate) fn lock_feed(feed: &File) {
    lock_patiently(feed).ok();
}

/// Whether a leg of `run` is writing its feed, whatever became of its lock file.
fn feed_is_held(run: &RunDir) -> bool {
    let feed = private::open_to_read(&run.feed());
    feed.is_ok_and(|feed| is_on_local_disk(&feed) && probe_marked(&feed) == Probe::Held)
}

/// The same for longer than a child that was just being started when its engine died still holds a copy.
fn feed_stays_held(run: &RunDir) -> bool {
    let Ok(feed) = private::open_to_read(&run.feed()) else { return false };
    let locked = patiently(|| fs4::FileExt::try_lock_shared(&feed));
    is_on_local_disk(&feed) && matches!(locked, Err(TryLockError::WouldBlock))
}

/// The file that a live leg of `run` has open for certain.
pub fn held_file(run: &RunDir) -> PathBuf {
    if run.lock().exists() { run.lock() } else { run.feed() }
}

/// The process that signed the lock of `run` last: its holder, while it is held.
pub fn signer(run: &RunDir) -> Option<u32> {
    let Ok(mut file) = private::open_to_read(&run.lock()) else { return feed_holder(run) };
    let head = read_head(&mut file).ok()?;
    if Contents::of(&head) == Contents::Marked { signature(&head) } else { None }
}

/// Who has locked the feed, where the system tells.
fn feed_holder(run: &RunDir) -> Option<u32> {
    let feed = fs::symlink_metadata(run.feed()).ok()?;
    let (major, minor) = (rustix::fs::major(feed.dev()), rustix::fs::minor(feed.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", feed.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // A line is `1: FLOCK ADVISORY WRITE pid device:inode 0 EOF`.
    let mut holders = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&wanted.as_str());
        words.get(4).filter(|_| is_it)?.parse().ok()
    });
    holders.next()
}

fn probe_marked(file: &File) -> Probe {
    match fs4::FileExt::try_lock_shared(file) {
        Ok(()) => {
            fs4::FileExt::unlock(file).ok();
            Probe::Free
        }
        Err(TryLockError::WouldBlock) => Probe::Held,
        Err(TryLockError::Error(_)) => Probe::Unknown,
    }
}

fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    patiently(|| fs4::FileExt::try_lock(file))
}

fn patiently(try_lock: impl Fn() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    let patience_ends = Instant::now() + PROBES_PASS;
    loop {
        match try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < patience_ends => {
                std::thread::sleep(BETWEEN_TRIES);
            }
            settled => return settled,
        }
    }
}

/// Writes who holds the lock. Not synced: after a crash of the machine nobody does.
fn sign(file: &File) -> io::Result<()> {
    rewrite(file, &format!("{MARKER}\n{}\n", std::process::id()))
}

fn rewrite(mut file: &File, text: &str) -> io::Result<()> {
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    // The rest of a longer text goes last, so that no reader ever meets a file without its marker.
    file.set_len(text.len() as u64)
}

fn holder(file: &mut File) -> Option<u32> {
    signature(&read_head(file).ok()?)
}

/// Enters in the lock of a live leg that `asker` wants it to end; whether nobody did before. The next leg begins with a
/// lock that says nothing of it. A lock that cannot be written to keeps nobody from asking.
pub fn is_first_to_stop(run: &RunDir, asker: &str) -> bool {
    let enter = || -> io::Result<Option<String>> {
        let mut file = private::open_existing_to_append(&run.lock())?;
        if let Some(before) = first_to_stop(&read_head(&mut file)?) {
            return Ok(Some(before));
        }
        file.write_all(format!("{STOP}{asker}\n").as_bytes())?;
        // Of two at once the one whose line is above the other's was first.
        Ok(first_to_stop(&read_head(&mut file)?))
    };
    enter().ok().flatten().is_none_or(|first| first == asker)
}

fn first_to_stop(head: &str) -> Option<String> {
    head.lines().find_map(|line| line.strip_prefix(STOP)).map(str::to_owned)
}

fn signature(head: &str) -> Option<u32> {
    head.lines().nth(1)?.trim().parse().ok()
}

fn read_head(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES_MAX).read_to_end(&mut head)?;
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// What a lock file says.
#[derive(Debug, PartialEq, Eq)]
enum Contents {
    Empty,
    Marked,
    /// No marker; a process id when the file holds one line with a number, and nothing else.
    Legacy {
        pid: Option<Pid>,
    },
}

impl Contents {
    fn of(head: &str) -> Self {
        match head.split('\n').next().map(|line| line.trim_end_matches('\r')) {
            _ if head.is_empty() => Contents::Empty,
            Some(MARKER) => Contents::Marked,
            _ => Contents::Legacy {
                pid: head.trim().parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw),
            },
        }
    }
}

/// Whether `pid` names no process at all. One that names some process proves nothing: numbers are used again.
fn is_gone(pid: Pid) -> bool {
    rustix::process::test_kill_process(pid) == Err(Errno::SRCH)
}

fn cannot_lock(error: &io::Error) -> bool {
    [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether the kernel's own `flock` answers for `file`. Network file systems emulate it, and may block on it.
#[cfg(target_os = "linux")]
fn is_on_local_disk(file: &File) -> bool {
    /// ext, btrfs, xfs, tmpfs, overlayfs, zfs, f2fs, ramfs, bcachefs.
    const LOCAL: [u32; 9] = [
        0xEF53,
        0x9123_683E,
        0x5846_5342,
        0x0102_1994,
        0x794C_7630,
        0x2FC1_2FC1,
        0xF2F5_2010,
        0x8584_58F6,
        0xCA45_1A4E,
    ];
    // The field's type differs between machines; the numbers are 32 bits on all of them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "only the low 32 bits are the number"
    )]
    rustix::fs::fstatfs(file).is_ok_and(|about| LOCAL.contains(&(about.f_type as u32)))
}

/// Elsewhere nobody has checked which file systems lock truly, and "unknown" is always safe.
#[cfg(not(target_os = "linux"))]
fn is_on_local_disk(_file: &File) -> bool {
    false
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn run_dir() -> (tempfile::TempDir, RunDir) {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::new(home.path().join("runs/1-a"));
        (home, run)
    }

    fn run_with(lock: &str) -> (tempfile::TempDir, RunDir) {
        let (home, run) = run_dir();
        private::create_directories(run.path()).unwrap();
        fs::write(run.lock(), lock).unwrap();
        (home, run)
    }

    #[test]
    fn d3_a_second_leg_is_refused_and_told_who_holds_the_lock() {
        let (_home, run) = run_dir();
        let lock = acquire(&run).unwrap();
        let text = format!("oh-my-graph-lock 1\n{}\n", std::process::id());
        assert_eq!(fs::read_to_string(run.lock()).unwrap(), text);
        let refused = acquire(&run).unwrap_err();
        assert!(refused.to_string().ends_with(&format!("running this run (pid {})", std::process::id())));
        drop(lock);
        acquire(&run).unwrap();
    }

    #[test]
    fn d6_the_lock_of_a_process_that_died_is_free() {
        let (_home, run) = run_with("oh-my-graph-lock 1\n4194304123\nmore\n");
        assert_eq!(probe(&run), Probe::Free);
        let _lock = acquire(&run).unwrap();
        let text = format!("oh-my-graph-lock 1\n{}\n", std::process::id());
        assert_eq!(fs::read_to_string(run.lock()).unwrap(), text);
        assert_eq!(probe(&run), Probe::Held);
    }

    #[test]
    fn a_child_does_not_inherit_the_lock() {
        let (_home, run) = run_dir();
        let lock = acquire(&run).unwrap();
        assert!(rustix::io::fcntl_getfd(&lock.file).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_probe_creates_nothing() {
        let (home, run) = run_dir();
        assert_eq!(probe(&run), Probe::Unknown);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_of_this_format_proves_little() {
        let own = std::process::id().to_string();
        // Linux hands out no process id above 2^22.
        let gone = "2147483646";
        let cases = [
            ("", Probe::Unknown),
            (own.as_str(), Probe::Unknown),
            (gone, Probe::Free),
            ("2147483646\nmore", Probe::Unknown),
            ("-5", Probe::Unknown),
            ("oh-my-graph-lock 2\n2147483646\n", Probe::Unknown),
            ("oh-my-graph-lock 1\r\n1\n", Probe::Free),
        ];
        for (text, wanted) in cases {
            let (_home, run) = run_with(text);
            assert_eq!(probe(&run), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_lock_of_an_older_version_is_refused_with_the_way_out() {
        let (_home, run) = run_with("2147483646\n");
        let refused = acquire(&run).unwrap_err();
        assert!(matches!(refused, LockError::Legacy { stale: true, .. }));
        assert!(refused.to_string().contains(&format!("rm -- '{}'", run.lock().display())));
        assert_eq!(fs::read_to_string(run.lock()).unwrap(), "2147483646\n");
    }

    #[test]
    fn d12_a_planted_link_is_not_followed() {
        let (home, run) = run_with("");
        let victim = home.path().join("victim");
        fs::write(&victim, "").unwrap();
        fs::remove_file(run.lock()).unwrap();
        symlink(&victim, run.lock()).unwrap();
        acquire(&run).unwrap_err();
        assert_eq!((probe(&run), fs::read_to_string(victim).unwrap().as_str()), (Probe::Unknown, ""));
    }

    #[test]
    fn readers_that_probe_without_pause_do_not_keep_a_leg_from_starting() {
        let (_home, run) = run_dir();
        drop(acquire(&run).unwrap());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    probe(&run);
                }
            });
            let refused = (0..500).filter(|_| acquire(&run).is_err()).count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn readers_never_see_each_other() {
        let (_home, run) = run_dir();
        drop(acquire(&run).unwrap());
        let file = private::open_to_read(&run.lock()).unwrap();
        fs4::FileExt::try_lock_shared(&file).unwrap();
        assert_eq!(probe(&run), Probe::Free);
    }
}
