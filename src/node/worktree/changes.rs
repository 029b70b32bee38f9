//! What the nodes of a lane changed, for a person who decides about it: a patch for each file.
//!
//! Looks only: no index is written, and nothing runs that a repository names, neither a hook nor a filter, a driver for
//! differences or a pager. A lane whose directory is there is compared as it lies there, with what nobody committed; of
//! one that went its branch is.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::node::worktree::git::{Call, GitError, paths};
use crate::node::worktree::lanes::{self, GitLanes, Lane, LaneError};
use crate::node::worktree::leftovers;
use crate::process::capture::HeadTail;
use crate::text::lossy::lossy;

/// The most that is told of one lane, in bytes; what is longer is cut.
pub const BYTES_MAX: usize = 2 << 20;
/// The most files that are told of one lane.
pub const FILES_MAX: usize = 2_000;
/// How far into a file git looks for what is no text.
const TEXT_BYTES: usize = 8_000;

/// Makes git compare, whatever the settings of the repository say.
const WORDS: [&str; 14] = [
    "diff",
    "--numstat",
    "--patch",
    "-z",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--find-renames",
    "--ignore-submodules=dirty",
    "--submodule=short",
];

/// What a lane has beyond its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The commit that the lane began with.
    pub since: String,
    /// The lane's branch.
    pub branch: String,
    /// The lane's directory, unless it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Files that git was told not to look at, which may hold changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// What changed, in git's order, then what git does not track.
    pub files: Vec<Changed>,
    /// Whether there is more than is told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its path from the top of the checkout.
    pub path: String,
    /// What it was called before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How many lines came; `None` where they are not counted, as of what is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// How many went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<usize>,
    /// Whether git does not track it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untracked: bool,
    /// The patch, headers included; empty where it was cut.
    pub patch: String,
}

impl GitLanes {
    /// What the nodes of the lane `name` changed; `None` when it has neither a directory nor a branch: it was not entered,
    /// or went without a trace because nothing was changed in it.
    ///
    /// # Errors
    /// When git says no, or the directory is none of this repository's.
    pub fn changes(&self, name: &str) -> Result<Option<Changes>, LaneError> {
        let (path, branch) = (self.root.join(name), self.branch(name));
        // Without a repository nobody knows of a branch.
        self.common(&self.base)?;
        let tip = self.git.commit(&self.base, &format!("refs/heads/{branch}"))?;
        if path.symlink_metadata().is_ok() {
            if !self.is_own(&path)? {
                return Err(LaneError::Foreign(path));
            }
            return Ok(Some(self.in_directory(name, path, branch)?));
        }
        match tip {
            Some(tip) => Ok(Some(self.in_branch(branch, &tip)?)),
            None => Ok(None),
        }
    }

    fn in_directory(&self, name: &str, path: PathBuf, branch: String) -> Result<Changes, LaneError> {
        let admin = self.admin(&path)?;
        let lane = lanes::adopted(name, path, admin);
        let path = &lane.path;
        let since = self.beginning(&branch, &lane.began.commit)?;
        let call = self.unfiltered(WORDS.iter().copied().chain([since.as_str(), "--"]), path)?;
        let mut changes = self.compared(call)?;
        self.add_untracked(&lane, &mut changes)?;
        let flags = self.git.run(settled(leftovers::flags(path), &[]))?;
        let hidden = leftovers::hidden_in(&flags).into_iter().filter(|file| path.join(file).exists());
        let hidden = hidden.map(|file| file.display().to_string()).collect();
        Ok(Changes { since, branch, directory: Some(lane.path), hidden, ..changes })
    }

    fn in_branch(&self, branch: String, tip: &str) -> Result<Changes, LaneError> {
        let since = self.beginning(&branch, "")?;
        let words = WORDS.iter().copied().chain([since.as_str(), tip, "--"]);
        let changes = self.compared(settled(Call::new(&self.base, words), &[]))?;
        Ok(Changes { since, branch, ..changes })
    }

    /// The commit that the branch began with: its log knows it; else the lane's notes, which are of the last leg that made
    /// the directory; else where it parts from what is checked out in the repository.
    fn beginning(&self, branch: &str, noted: &str) -> Result<String, LaneError> {
        let common = self.common(&self.base)?;
        if let Some(made) = first_of_log(&common.join("logs/refs/heads").join(branch))
            && let Some(commit) = self.git.commit(&self.base, &made)?
        {
            return Ok(commit);
        }
        if !noted.is_empty()
            && let Some(commit) = self.git.commit(&self.base, noted)?
        {
            return Ok(commit);
        }
        let tip = format!("refs/heads/{branch}");
        Ok(self.git.line(&self.base, ["merge-base", "HEAD", &tip])?)
    }

    /// A call in a checkout that runs no filter: each that the settings know is named and switched off.
    fn unfiltered<'a>(
        &self,
        words: impl Iterator<Item = &'a str>,
        path: &'a Path,
    ) -> Result<Call<'a>, GitError> {
        let form = r"^filter\..*\.(clean|smudge|process|required)$";
        let named = match self.git.run(Call::new(path, ["config", "--name-only", "-z", "--get-regexp", form]))
        {
            Ok(named) => lossy(named),
            // There is none.
            Err(GitError::Refused { .. }) => String::new(),
            Err(error) => return Err(error),
        };
        let named: Vec<&str> = named.split('\0').filter(|name| !name.is_empty()).collect();
        Ok(settled(Call::new(path, words), &named))
    }

    fn compared(&self, call: Call<'_>) -> Result<Changes, GitError> {
        let mut out = HeadTail::new(BYTES_MAX, 0);
        self.git.run_into(call, &mut out)?;
        let (bytes, missing, _) = out.into_parts();
        Ok(parse(&bytes, missing > 0))
    }

    /// New files that nobody gave to git, without those that a set-up made.
    fn add_untracked(&self, lane: &Lane, changes: &mut Changes) -> Result<(), GitError> {
        let words = ["ls-files", "-z", "--others", "--exclude-standard"];
        let listed = paths(&self.git.run(settled(Call::new(&lane.path, words), &[]))?);
        let made = leftovers::untouched(lane);
        let mut room = BYTES_MAX.saturating_sub(changes.files.iter().map(|file| file.patch.len()).sum());
        for file in listed.into_iter().filter(|file| !made.contains(file)) {
            if changes.files.len() >= FILES_MAX {
                changes.cut = true;
                break;
            }
            let shown = untracked(&lane.path, &file, &mut room);
            changes.cut |= shown.added.is_none() && shown.patch.is_empty();
            changes.files.push(shown);
        }
        Ok(())
    }
}

/// `call` with settings that keep git from writing and from running what a repository names; `filters` are the keys of
/// its filters.
fn settled<'a>(call: Call<'a>, filters: &[&str]) -> Call<'a> {
    let fixed = [
        ("core.fsmonitor", "false"),
        ("core.hooksPath", "/dev/null"),
        ("core.quotePath", "false"),
        ("core.untrackedCache", "keep"),
        ("diff.autoRefreshIndex", "false"),
        ("diff.orderFile", "/dev/null"),
    ];
    let filters = filters.iter().map(|key| (*key, if key.ends_with(".required") { "false" } else { "" }));
    let mut count = 0;
    // Objects that a partial clone left behind are not fetched.
    let mut call = call.with("GIT_NO_LAZY_FETCH", "1").with("GIT_ALLOW_PROTOCOL", "none");
    for (key, value) in fixed.into_iter().chain(filters) {
        call = call
            .with(&format!("GIT_CONFIG_KEY_{count}"), key)
            .with(&format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    call.with("GIT_CONFIG_COUNT", count.to_string())
}

/// The commit that a ref was made at, as its log tells it.
fn first_of_log(log: &Path) -> Option<String> {
    let mut head = [0; 256];
    let read = File::open(log).ok()?.read(&mut head).ok()?;
    let line = lossy(head[..read].to_vec());
    let mut words = line.split(' ');
    let (before, made) = (words.next()?, words.next()?);
    before.bytes().all(|byte| byte == b'0').then(|| made.to_owned())
}

/// Reads what `git diff --numstat --patch -z` printed: the counts, an empty record, and the patches.
fn parse(bytes: &[u8], cut: bool) -> Changes {
    let mut rest = bytes;
    let mut record = || {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (record, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        (!record.is_empty()).then(|| lossy(record.to_vec()))
    };
    let mut files = Vec::new();
    while let Some(counts) = record() {
        let mut parts = counts.splitn(3, '\t');
        let mut count = || parts.next().and_then(|count| count.parse().ok());
        let (added, deleted) = (count(), count());
        let path = parts.next().unwrap_or_default().to_owned();
        let (from, path) = match path.is_empty() {
            true => (record(), record().unwrap_or_default()),
            false => (None, path),
        };
        files.push(Changed { path, from, added, deleted, ..Changed::default() });
    }
    let cut = cut || files.len() > FILES_MAX;
    files.truncate(FILES_MAX);
    let whole =
        if cut { rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) } else { rest.len() };
    let patches = lossy(rest[..whole].to_vec());
    let mut patches = sections(&patches).peekable();
    for file in &mut files {
        if let Some(patch) = patches.next_if(|patch| is_of(patch, &file.path)) {
            patch.clone_into(&mut file.patch);
        }
    }
    // What was touched and is the same has a heading and nothing else.
    files.retain(|file| {
        cut || file.added != Some(0) || file.deleted != Some(0) || file.patch.lines().count() > 1
    });
    Changes { files, cut, ..Changes::default() }
}

/// The patches of the files: each begins with a line as no line of a file's text does, which have a mark before them.
fn sections(patches: &str) -> impl Iterator<Item = &str> {
    const HEAD: &str = "diff --git ";
    let starts = patches.match_indices(HEAD).map(|(at, _)| at);
    let starts: Vec<usize> =
        starts.filter(|at| *at == 0 || patches.as_bytes()[at - 1] == b'\n').chain([patches.len()]).collect();
    (1..starts.len()).map(move |nth| &patches[starts[nth - 1]..starts[nth]])
}

/// Whether `patch` is that of the file at `path`; a name that git quotes is taken for it.
fn is_of(patch: &str, path: &str) -> bool {
    let heading = patch.lines().next().unwrap_or_default();
    heading.ends_with(path) || heading.ends_with('"')
}

/// A file that git does not track, as a patch that adds it, as far as there is `room`.
fn untracked(top: &Path, file: &Path, room: &mut usize) -> Changed {
    let path = file.display().to_string();
    let changed = Changed { untracked: true, deleted: Some(0), path, ..Changed::default() };
    let Some(bytes) = content(&top.join(file), *room) else { return changed };
    let path = &changed.path;
    if bytes[..bytes.len().min(TEXT_BYTES)].contains(&0) {
        return Changed { patch: format!("new file\nBinary file {path}\n"), ..changed };
    }
    let text = lossy(bytes);
    let lines = text.lines().count();
    let mut patch = format!("new file\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n");
    for line in text.lines() {
        patch.push('+');
        patch.push_str(line);
        patch.push('\n');
    }
    if !text.is_empty() && !text.ends_with('\n') {
        patch.push_str("\\ No newline at end of file\n");
    }
    if patch.len() > *room {
        return changed;
    }
    *room -= patch.len();
    Changed { added: Some(lines), patch, ..changed }
}

/// What is in the file, a link's target for a link; `None` for what is neither, or is larger than `bytes_max`.
fn content(path: &Path, bytes_max: usize) -> Option<Vec<u8>> {
    let about = path.symlink_metadata().ok()?;
    if about.is_symlink() {
        return Some(fs::read_link(path).ok()?.into_os_string().into_encoded_bytes());
    }
    if !about.is_file() || about.len() > bytes_max as u64 {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &str, cut: bool) -> Vec<(String, Option<String>, Option<usize>, usize)> {
        let files = parse(bytes.as_bytes(), cut).files.into_iter();
        files.map(|file| (file.path, file.from, file.added, file.patch.lines().count())).collect()
    }

    #[test]
    fn each_file_gets_the_patch_that_names_it() {
        let text = "1\t0\ta b\0-\t-\tpicture\x000\t0\t\0old\0new\x002\t0\t\"q\n\0\0\
            diff --git a/a b b/a b\n--- a/a b\n+++ b/a b\n@@ -1 +1,2 @@\n x\n+diff --git a/evil b/evil\n\
            diff --git a/picture b/picture\nBinary files differ\n\
            diff --git a/old b/new\nrename from old\nrename to new\n\
            diff --git \"a/\\\"q\\n\" \"b/\\\"q\\n\"\n@@ -0,0 +1,2 @@\n+x\n+y\n";
        let named = |path: &str, from: Option<&str>, added, lines| {
            (path.to_owned(), from.map(str::to_owned), added, lines)
        };
        assert_eq!(
            told(text, false),
            [
                named("a b", None, Some(1), 6),
                named("picture", None, None, 2),
                named("new", Some("old"), Some(0), 3),
                named("\"q\n", None, Some(2), 4),
            ]
        );
    }

    #[test]
    fn what_was_only_touched_is_no_change_and_what_was_cut_is_named() {
        assert_eq!(told("0\t0\tsame\0\0diff --git a/same b/same\n", false), []);
        let cut = told("9\t0\tlong\x009\t0\tlost\0\0diff --git a/long b/long\n@@ -0,0 +1,9 @@\n+x", true);
        assert_eq!(cut.iter().map(|file| file.3).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(parse(b"", false), Changes::default());
        assert_eq!(told("1\t0\tunfinished", true), []);
    }
}
