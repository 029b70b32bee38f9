//! Files of a lane that git does not look after: ignored ones, and tracked ones that git was told not to look at.
//!
//! What a set-up made and nobody touched since is no work: installed dependencies and copied settings are neither kept
//! nor in the way. Everything else becomes a commit on top of the lane's own, byte for byte, up to a bound.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::node::worktree::git::{CHECKOUT, Call, Git, GitError, paths};
use crate::node::worktree::keep::commit_tree;
use crate::node::worktree::lanes::{Lane, LaneError};
use crate::node::worktree::raw;
use crate::text::lossy::lossy;

/// What was there when the lane was set up; that it exists says that the lane was.
const SET_UP: &str = "omg-setup";
/// The most that is put into the repository; above it the directory stays.
const BYTES_MAX: u64 = 64 << 20;
/// The most files that are.
const FILES_MAX: usize = 10_000;

/// What git does not look after.
#[derive(Debug)]
pub(super) enum Leftovers {
    /// Nothing that would be missed.
    None,
    /// A commit that holds it.
    Commit {
        /// Its name.
        sha: String,
        /// How many files.
        files: usize,
    },
    /// It cannot be put into the repository; why.
    Stay(String),
}

/// Whether the lane has been set up.
pub(super) fn is_set_up(admin: &Path) -> bool {
    admin.join(SET_UP).is_file()
}

/// Remembers what a lane held when it was set up, but for what was there `before`.
pub(super) fn remember_set_up(git: &Git, lane: &Lane, before: &HashSet<PathBuf>) -> Result<(), LaneError> {
    let mut bytes = Vec::new();
    for file in others(git, &lane.path)?.difference(before) {
        if let Some(mark) = mark(&lane.path.join(file)) {
            bytes.extend_from_slice(format!("{mark} ").as_bytes());
            bytes.extend_from_slice(file.as_os_str().as_bytes());
            bytes.push(0);
        }
    }
    let path = lane.admin.join(SET_UP);
    fs::write(&path, bytes).map_err(|source| LaneError::System { what: "write", path, source })
}

/// Lets the lane be set up again.
pub(super) fn forget_set_up(admin: &Path) {
    fs::remove_file(admin.join(SET_UP)).ok();
}

/// The files that a set-up made and nobody touched since.
pub(super) fn untouched(lane: &Lane) -> HashSet<PathBuf> {
    let bytes = fs::read(lane.admin.join(SET_UP)).unwrap_or_default();
    let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| {
        let space = entry.iter().position(|byte| *byte == b' ')?;
        let (mark, path) = (std::str::from_utf8(&entry[..space]).ok()?, &entry[space + 1..]);
        Some((PathBuf::from(OsStr::from_bytes(path)), mark.to_owned()))
    });
    let then: HashMap<PathBuf, String> = entries.collect();
    then.into_iter()
        .filter(|(path, then)| mark(&lane.path.join(path)).as_ref() == Some(then))
        .map(|(path, _)| path)
        .collect()
}

/// What tells a file from a later state of it.
fn mark(path: &Path) -> Option<String> {
    let about = path.symlink_metadata().ok().filter(|about| !about.is_dir())?;
    Some(format!("{}.{}.{}.{}", about.mtime(), about.mtime_nsec(), about.size(), about.ino()))
}

/// Files that git does not track, ignored or not.
pub(super) fn others(git: &Git, path: &Path) -> Result<HashSet<PathBuf>, GitError> {
    let call = Call::new(path, ["ls-files", "-z", "--others"]).within(CHECKOUT);
    Ok(paths(&git.run(call)?).into_iter().collect())
}

/// Puts what git does not look after into a commit, with `message`.
pub(super) fn commit(
    git: &Git,
    lane: &Lane,
    untouched: &HashSet<PathBuf>,
    message: &str,
) -> Result<Leftovers, GitError> {
    let files = touched(git, lane, untouched)?;
    if files.is_empty() {
        return Ok(Leftovers::None);
    }
    match measure(lane, &files) {
        Err(why) => Ok(Leftovers::Stay(why)),
        Ok(files) if files.is_empty() => Ok(Leftovers::None),
        Ok(files) => write(git, lane, &files, message),
    }
}

/// Why it could not be put into a commit, if so.
pub(super) fn too_much(
    git: &Git,
    lane: &Lane,
    untouched: &HashSet<PathBuf>,
) -> Result<Option<String>, GitError> {
    Ok(measure(lane, &touched(git, lane, untouched)?).err())
}

fn touched(git: &Git, lane: &Lane, untouched: &HashSet<PathBuf>) -> Result<Vec<PathBuf>, GitError> {
    Ok(unwatched(git, lane)?.into_iter().filter(|file| !untouched.contains(file)).collect())
}

fn unwatched(git: &Git, lane: &Lane) -> Result<Vec<PathBuf>, GitError> {
    let ignored = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
    let mut files = paths(&git.run(Call::new(&lane.path, ignored).within(CHECKOUT))?);
    files.extend(hidden(git, &lane.path)?);
    Ok(files)
}

/// Tracked files with flags that hide changes: assume-unchanged in small letters, skip-worktree as S.
pub(super) fn hidden(git: &Git, path: &Path) -> Result<Vec<PathBuf>, GitError> {
    Ok(hidden_in(&git.run(flags(path))?))
}

/// Asks for the flags of tracked files.
pub(super) fn flags(path: &Path) -> Call<'_> {
    Call::new(path, ["ls-files", "-v", "-z"])
}

/// The files that are hidden by what was `listed` of flags.
pub(super) fn hidden_in(listed: &[u8]) -> Vec<PathBuf> {
    let hidden = listed
        .split(|byte| *byte == 0)
        .filter(|entry| entry.len() > 2 && (entry[0].is_ascii_lowercase() || entry[0] == b'S'));
    hidden.map(|entry| PathBuf::from(OsStr::from_bytes(&entry[2..]))).collect()
}

/// The files that can be committed, or why they must stay where they are.
fn measure(lane: &Lane, files: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    for file in files {
        let Ok(about) = lane.path.join(file).symlink_metadata() else { continue };
        if about.is_dir() {
            return Err(format!("{} is a repository of its own", file.display()));
        }
        if about.is_file() || about.is_symlink() {
            bytes += about.len();
            kept.push(file.clone());
        }
        if bytes > BYTES_MAX || kept.len() > FILES_MAX {
            let (most, mib) = (FILES_MAX, BYTES_MAX >> 20);
            return Err(format!("it holds ignored files that are more than {most} or larger than {mib} MiB"));
        }
    }
    Ok(kept)
}

fn write(git: &Git, lane: &Lane, files: &[PathBuf], message: &str) -> Result<Leftovers, GitError> {
    let index = lane.admin.join("omg-index");
    fs::remove_file(&index).ok();
    let call = |words: &[&str]| {
        let words = ["-c", "core.sparseCheckout=false"].iter().chain(words);
        Call::new(&lane.path, words).with("GIT_INDEX_FILE", &index).within(CHECKOUT)
    };
    let head = git.commit(&lane.path, "HEAD")?;
    git.run(call(&["read-tree", head.as_deref().unwrap_or("--empty")]))?;
    let entries = match raw::entries(git, &lane.path, files) {
        Ok(entries) => entries,
        Err(error) => return Ok(Leftovers::Stay(format!("its ignored files cannot be read: {error}"))),
    };
    git.run(call(&["update-index", "--add", "--replace", "-z", "--index-info"]).reading(entries))?;
    let tree = lossy(git.run(call(&["write-tree"]))?).trim().to_owned();
    fs::remove_file(&index).ok();
    if git.line(&lane.path, ["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).is_ok_and(|at| at == tree) {
        return Ok(Leftovers::None);
    }
    let sha = commit_tree(git, &lane.path, &tree, head.as_deref(), message)?;
    Ok(Leftovers::Commit { sha, files: files.len() })
}
