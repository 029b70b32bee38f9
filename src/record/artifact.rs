//! What nodes leave in a run directory: artifacts and the replies of nodes that failed (FACTS 6.1, 6.6, DECISIONS 14).
//!
//! Every file is written beside its place, synced, and only then gets its name, so that a reader sees all of it or
//! nothing, and a link that a node planted there is replaced and never followed (case D12). Where the system has files
//! without a name, that is one: it costs a directory one entry instead of two and a removal, and leaves no litter
//! behind. A short artifact is not waited for: it is durable in the line of its node, and put back from there (ADR 10).
//! Knows no verdict: whoever settles a node says what is kept and what is removed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;

use crate::graph::NodeId;
use crate::record::RunDir;
use crate::record::excerpt::{KEPT_BYTES_MAX, cut_marker, excerpt};
use crate::record::private;

const TEMPORARY: &str = "artifact.tmp-";
/// The longest artifact that the line of its node carries, in bytes.
pub const CARRIED_BYTES_MAX: usize = 4096;

/// Why a file of a node could not be kept or removed.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// A directory has the file's name, and may hold somebody's work.
    #[error("{}: a directory stands where the node's file belongs; move it away", path.display())]
    Directory {
        /// The name.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What came of it.
        source: io::Error,
    },
}

/// Puts `bytes` at `path`, durable when it returns.
pub fn persist(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut pending = Pending::create(directory)?;
    pending.write_all(bytes).map_err(at(path, "cannot write it"))?;
    pending.commit(path)
}

/// The same of an artifact, as [`Pending::commit_artifact`] does it.
pub fn persist_artifact(path: &Path, bytes: &[u8]) -> Result<String, ArtifactError> {
    let mut pending = Pending::create(path.parent().unwrap_or(Path::new(".")))?;
    pending.write_all(bytes).map_err(at(path, "cannot write it"))?;
    pending.commit_artifact(path)
}

/// Makes the artifact at `path` durable whose line could not be written.
pub fn sync(path: &Path) -> Result<(), ArtifactError> {
    let file = private::open_to_read(path).map_err(at(path, "cannot open it"))?;
    file.sync_data().map_err(at(path, "cannot sync it"))
}

/// Puts back what a machine that went down kept of an artifact in its node's line alone: a file that is not there, or has
/// nothing in it. One that somebody has changed since stays as it is. Only the holder of the run's lock may call it.
pub fn put_back(path: &Path, text: &str) -> Result<(), ArtifactError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && !is_blank(path, &found) => Ok(()),
        _ => persist(path, text.as_bytes()),
    }
}

/// Whether nothing of a file's bytes reached the disk. Its length did not either, or it is a hole, which reads as zeroes;
/// a file of some blocks is not looked into: a leg asks this of every node that passed.
fn is_blank(path: &Path, about: &fs::Metadata) -> bool {
    if about.len() == 0 || about.blocks() > 0 {
        return about.len() == 0;
    }
    let mut bytes = Vec::with_capacity(CARRIED_BYTES_MAX);
    let read = private::open_to_read(path)
        .and_then(|file| file.take(CARRIED_BYTES_MAX as u64).read_to_end(&mut bytes));
    read.is_ok() && bytes.iter().all(|byte| *byte == 0)
}

/// An artifact under way: bytes go to a temporary file, [`Pending::commit`] gives it its name, dropping it removes it.
#[derive(Debug)]
pub struct Pending {
    file: Unfinished,
}

#[derive(Debug)]
enum Unfinished {
    Nameless(File),
    Temporary(NamedTempFile),
}

impl Pending {
    /// Opens a temporary file in `directory`, which must be the one that the artifact will lie in.
    pub fn create(directory: &Path) -> Result<Self, ArtifactError> {
        let file = match private::nameless(directory) {
            Ok(file) => Unfinished::Nameless(file),
            Err(_) => Unfinished::Temporary(
                private::temporary(directory, TEMPORARY)
                    .map_err(at(directory, "cannot create a file in it"))?,
            ),
        };
        Ok(Pending { file })
    }

    /// The file as written so far, readable from any offset.
    pub fn file(&self) -> &File {
        match &self.file {
            Unfinished::Nameless(file) => file,
            Unfinished::Temporary(file) => file.as_file(),
        }
    }

    /// What was written so far, at most `bytes_max` of it: its head and tail around a cut that says how much is
    /// missing. What is not UTF-8 is replaced.
    pub fn excerpt(&self, bytes_max: usize) -> io::Result<String> {
        excerpt_of(self.file(), bytes_max)
    }

    /// Makes the bytes durable and gives them the name `path`, in place of whatever file or link has it.
    pub fn commit(self, path: &Path) -> Result<(), ArtifactError> {
        self.file().sync_data().map_err(at(path, "cannot sync it"))?;
        self.give_name(path)
    }

    /// The same of an artifact, but one that is short is on its way to the disk only: it is returned, and durable with the
    /// line of its node, which has to carry it. Returns nothing of one that is durable by itself, or empty.
    pub fn commit_artifact(self, path: &Path) -> Result<String, ArtifactError> {
        match self.short_text().filter(|_| private::begin_writing_back(self.file())) {
            Some(text) => self.give_name(path).map(|()| text),
            None => self.commit(path).map(|()| String::new()),
        }
    }

    fn short_text(&self) -> Option<String> {
        let length = usize::try_from(self.file().metadata().ok()?.len()).ok()?;
        let mut bytes = vec![0; Some(length).filter(|length| *length <= CARRIED_BYTES_MAX)?];
        self.file().read_exact_at(&mut bytes, 0).ok()?;
        String::from_utf8(bytes).ok()
    }

    fn give_name(self, path: &Path) -> Result<(), ArtifactError> {
        let named = match self.file {
            Unfinished::Nameless(file) => match private::give_name(&file, path) {
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => replace(&file, path),
                Err(_) => copy(&file, path),
            },
            Unfinished::Temporary(file) => file.persist(path).map(drop).map_err(|refused| refused.error),
        };
        named.map_err(|error| match private::is_real_directory(path) {
            true => ArtifactError::Directory { path: path.into() },
            false => at(path, "cannot give it its name")(error),
        })
    }
}

/// Gives a nameless file the name of what is there already. A name can be taken from another only by a rename.
fn replace(file: &File, path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let linked = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .make_in(directory, |temporary| private::give_name(file, temporary))?;
    linked.persist(path).map(drop).map_err(|refused| refused.error)
}

/// Makes a second file of a nameless one that cannot be given a name, as without `/proc`.
fn copy(file: &File, path: &Path) -> io::Result<()> {
    let mut copied = private::temporary(path.parent().unwrap_or(Path::new(".")), TEMPORARY)?;
    let mut from = file;
    from.rewind()?;
    io::copy(&mut from, &mut copied)?;
    copied.as_file().sync_data()?;
    copied.persist(path).map(drop).map_err(|refused| refused.error)
}

/// The artifact of `node`, as far as [`Pending::excerpt`] shows one; `None` when it has none. A link that was planted in its
/// place is not followed.
pub fn read_excerpt(run: &RunDir, node: &NodeId, bytes_max: usize) -> Option<String> {
    private::open_to_read(&run.artifact(node)).and_then(|file| excerpt_of(&file, bytes_max)).ok()
}

fn excerpt_of(file: &File, bytes_max: usize) -> io::Result<String> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if length <= bytes_max {
        return read_at(file, 0, length);
    }
    let half = bytes_max / 2;
    let (head, tail) = (read_at(file, 0, half)?, read_at(file, length - half, half)?);
    Ok(format!("{head}{}{tail}", cut_marker((length - 2 * half) as u64)))
}

fn read_at(file: &File, offset: usize, length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset as u64)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes the file or link at `path`, if there is one.
pub fn remove(path: &Path) -> Result<(), ArtifactError> {
    private::remove_file(path).map_err(|source| match private::is_real_directory(path) {
        true => ArtifactError::Directory { path: path.into() },
        false => at(path, "cannot remove it")(source),
    })
}

/// Keeps the reply of a `node` that failed, at most [`KEPT_BYTES_MAX`] of it, and says where. A blank reply leaves
/// no file, and removes an earlier one: the file tells of the node's last outcome.
pub fn keep_failed(run: &RunDir, node: &NodeId, reply: &str) -> Result<Option<PathBuf>, ArtifactError> {
    if reply.trim().is_empty() {
        return remove_failed(run, node).map(|()| None);
    }
    subdirectory(run, "failed")?;
    let path = run.failed(node);
    persist(&path, excerpt(reply, KEPT_BYTES_MAX).as_bytes())?;
    Ok(Some(path))
}

/// Removes the kept reply of `node`, if there is one.
pub fn remove_failed(run: &RunDir, node: &NodeId) -> Result<(), ArtifactError> {
    remove_below(run, "failed", &run.failed(node))
}

/// Keeps what the arc of `node` hands back to its target, and says where.
pub fn keep_feedback(run: &RunDir, node: &NodeId, payload: &str) -> Result<PathBuf, ArtifactError> {
    subdirectory(run, "feedback")?;
    let path = run.feedback(node);
    persist(&path, payload.as_bytes())?;
    Ok(path)
}

/// Removes the payload of the arc of `node`, if there is one.
pub fn remove_feedback(run: &RunDir, node: &NodeId) -> Result<(), ArtifactError> {
    remove_below(run, "feedback", &run.feedback(node))
}

/// Removes temporary files that a leg which was killed left behind. Only the holder of the run's lock may call it.
pub fn remove_leftovers(run: &RunDir) {
    for directory in [run.path().to_path_buf(), run.path().join("failed"), run.path().join("feedback")] {
        if !private::is_real_directory(&directory) {
            continue;
        }
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_leftover) {
                // One that stays is only litter.
                private::remove_file(&entry.path()).ok();
            }
        }
    }
}

/// A node may be called `artifact.tmp-a`, but its file then ends in `.out`.
fn is_leftover(name: &str) -> bool {
    [TEMPORARY, super::snapshot_writer::TEMPORARY, super::feed::TEMPORARY]
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix))
        .any(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn subdirectory(run: &RunDir, name: &str) -> Result<PathBuf, ArtifactError> {
    private::subdirectory(run.path(), name).map_err(at(&run.path().join(name), "cannot create it"))
}

fn remove_below(run: &RunDir, directory: &str, path: &Path) -> Result<(), ArtifactError> {
    // Below a planted link lie somebody else's files.
    if private::is_real_directory(&run.path().join(directory)) { remove(path) } else { Ok(()) }
}

fn at(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> ArtifactError {
    let path = path.to_path_buf();
    move |source| ArtifactError::Io { path, action, source }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Planted {
        home: tempfile::TempDir,
        run: RunDir,
    }

    impl Planted {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let run = RunDir::new(home.path().join("run"));
            fs::create_dir(run.path()).unwrap();
            fs::create_dir(home.path().join("victims")).unwrap();
            fs::write(home.path().join("victims/a.out"), "mine").unwrap();
            Planted { home, run }
        }

        fn link(&self, target: &str, name: &str) {
            symlink(self.home.path().join(target), self.run.path().join(name)).unwrap();
        }

        fn assert_victim_is_intact(&self) {
            assert_eq!(fs::read_to_string(self.home.path().join("victims/a.out")).unwrap(), "mine");
            assert_eq!(fs::read_dir(self.home.path().join("victims")).unwrap().count(), 1);
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(self.run.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    fn node(id: &str) -> NodeId {
        NodeId::parse(id).unwrap()
    }

    #[test]
    fn d12_a_planted_link_is_replaced() {
        let planted = Planted::new();
        planted.link("victims/a.out", "a.out");
        let path = planted.run.artifact(&node("a"));
        persist(&path, b"owned").unwrap();
        planted.assert_victim_is_intact();
        assert_eq!(fs::read_to_string(&path).unwrap(), "owned");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn d12_removing_a_planted_link_leaves_what_it_names() {
        let planted = Planted::new();
        planted.link("victims/a.out", "a.out");
        remove(&planted.run.artifact(&node("a"))).unwrap();
        planted.assert_victim_is_intact();
        assert!(planted.names().is_empty());
        remove(&planted.run.artifact(&node("a"))).unwrap();
    }

    #[test]
    fn d12_a_linked_directory_is_never_entered() {
        let planted = Planted::new();
        planted.link("victims", "failed");
        planted.link("victims", "feedback");
        remove_failed(&planted.run, &node("a")).unwrap();
        planted.assert_victim_is_intact();
        keep_failed(&planted.run, &node("a"), "no").unwrap();
        keep_feedback(&planted.run, &node("a"), "again").unwrap();
        planted.assert_victim_is_intact();
        assert_eq!(fs::read_to_string(planted.run.failed(&node("a"))).unwrap(), "no");
    }

    #[test]
    fn a_planted_directory_is_named_and_kept() {
        let planted = Planted::new();
        let path = planted.run.artifact(&node("a"));
        fs::create_dir(&path).unwrap();
        for refused in [persist(&path, b"owned").unwrap_err(), remove(&path).unwrap_err()] {
            assert!(matches!(refused, ArtifactError::Directory { .. }), "{refused}");
        }
        assert_eq!(planted.names(), ["a.out"]);
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let planted = Planted::new();
        let mut pending = Pending::create(planted.run.path()).unwrap();
        pending.write_all(&[0xff, 0x00]).unwrap();
        drop(pending);
        assert!(planted.names().is_empty());
        let mut pending = Pending::create(planted.run.path()).unwrap();
        pending.write_all(&[0xff, 0x00]).unwrap();
        pending.commit(&planted.run.artifact(&node("a/b"))).unwrap();
        assert_eq!(planted.names(), ["a~b.out"]);
        assert_eq!(fs::read(planted.run.artifact(&node("a/b"))).unwrap(), [0xff, 0x00]);
    }

    #[test]
    fn a_file_that_cannot_be_given_a_name_is_copied() {
        let planted = Planted::new();
        let path = planted.run.artifact(&node("a"));
        let mut file = private::temporary(planted.run.path(), "x").unwrap();
        file.write_all(b"owned").unwrap();
        copy(file.as_file(), &path).unwrap();
        drop(file);
        assert_eq!(planted.names(), ["a.out"]);
        assert_eq!(fs::read_to_string(path).unwrap(), "owned");
    }

    #[test]
    fn a_later_artifact_takes_the_place_of_an_earlier_one() {
        let planted = Planted::new();
        let path = planted.run.artifact(&node("a"));
        for reply in ["first", "second"] {
            persist(&path, reply.as_bytes()).unwrap();
            assert_eq!(
                (fs::read_to_string(&path).unwrap().as_str(), planted.names()),
                (reply, vec!["a.out".to_owned()])
            );
        }
    }

    #[test]
    fn a_kept_reply_tells_of_the_last_outcome_only() {
        let planted = Planted::new();
        let (run, id) = (&planted.run, node("a"));
        assert_eq!(keep_failed(run, &id, " \n").unwrap(), None);
        assert!(planted.names().is_empty());
        assert_eq!(keep_failed(run, &id, "no").unwrap(), Some(run.failed(&id)));
        assert_eq!(keep_failed(run, &id, "").unwrap(), None);
        assert!(!run.failed(&id).exists());
        keep_failed(run, &id, &"x".repeat(1 << 20)).unwrap();
        assert_eq!(fs::metadata(run.failed(&id)).unwrap().len() / 100, KEPT_BYTES_MAX as u64 / 100);
        remove_failed(run, &id).unwrap();
        assert!(!run.failed(&id).exists());
    }

    #[test]
    fn litter_of_a_killed_leg_is_removed_and_nothing_else() {
        let planted = Planted::new();
        for name in ["artifact.tmp-Ab3dEf", "state.json.tmp-Ab3dEf", "artifact.tmp-a.out", "state.json"] {
            fs::write(planted.run.path().join(name), "").unwrap();
        }
        remove_leftovers(&planted.run);
        assert_eq!(planted.names(), ["artifact.tmp-a.out", "state.json"]);
    }
}
