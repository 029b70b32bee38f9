//! Lists what was kept of a run's worktrees and gives it back: into a directory, or as branches.
//!
//! Asks the repository and the directory of the lanes alone, and changes neither but for the branches asked for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::node::worktree::git::{CHECKOUT, Call, Git, GitError, paths};
use crate::node::worktree::leftovers;
use crate::node::worktree::raw::{self, Blob, RawError};
use crate::text::lossy::lossy;

/// Why something could not be given back.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// Git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The directory holds something already.
    #[error("{} is not empty", .0.display())]
    Occupied(PathBuf),
    /// The system said no.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

impl From<RawError> for SalvageError {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Git(error) => SalvageError::Git(error),
            RawError::System { path, source } => SalvageError::Write { path, source },
        }
    }
}

/// What a thing is that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A worktree that stayed.
    Directory,
    /// A lane's branch.
    Branch,
    /// Commits on no branch.
    Commits,
    /// A stash.
    Stash,
    /// Files that git does not look after.
    Files,
    /// Contents that were staged and not committed.
    Staged,
}

impl Kind {
    /// The word on screens.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Directory => "directory",
            Kind::Branch => "branch",
            Kind::Commits => "commits",
            Kind::Stash => "stash",
            Kind::Files => "files",
            Kind::Staged => "staged",
        }
    }

    fn of_ref(last: &str) -> Self {
        match last.split('-').next() {
            Some("stash") => Kind::Stash,
            Some("files") => Kind::Files,
            Some("staged") => Kind::Staged,
            _ => Kind::Commits,
        }
    }
}

/// A thing that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The lane; empty for what was written in some lane.
    pub lane: String,
    /// What it is.
    pub kind: Kind,
    /// The ref, the branch or the path.
    pub name: String,
    /// The commit; empty for a directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Its first line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Files that it adds or changes.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Item {
    /// The last part of its name, for a directory or a branch of its own.
    pub fn short(&self) -> &str {
        match self.kind {
            Kind::Directory | Kind::Branch => self.kind.word(),
            _ => self.name.rsplit('/').next().unwrap_or(&self.name),
        }
    }

    fn lane_or_none(&self) -> &str {
        if self.lane.is_empty() { "_written" } else { &self.lane }
    }
}

/// What was given back.
#[derive(Debug, Default)]
pub struct Restored {
    /// A directory for each thing.
    pub places: Vec<PathBuf>,
    /// The things that are not there, or not wholly.
    pub failed: Vec<Failed>,
}

/// A thing that could not be given back wholly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The lane.
    pub lane: String,
    /// The ref, the branch or the path.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What a directory holds that no commit does.
struct Held {
    files: Vec<PathBuf>,
    is_worktree: bool,
}

/// What was kept of one run.
#[derive(Debug)]
pub struct Salvage<'a> {
    /// Git.
    pub git: &'a Git,
    /// The directory that the run was started in.
    pub base: &'a Path,
    /// The directory of its lanes.
    pub lanes: &'a Path,
    /// Its id.
    pub run: &'a str,
}

impl Salvage<'_> {
    /// Everything, by lane.
    ///
    /// # Errors
    /// When git cannot be asked.
    pub fn list(&self) -> Result<Vec<Item>, GitError> {
        let mut items = self.directories();
        if let Err(GitError::Refused { .. }) = self.git.line(self.base, ["rev-parse", "--git-dir"]) {
            return Ok(items);
        }
        let (kept, branches) = (format!("refs/omg/{}/", self.run), format!("refs/heads/omg/{}/", self.run));
        let format = "--format=%(refname) %(objectname) %(contents:subject)";
        let text = self.git.line(self.base, ["for-each-ref", format, &kept, &branches])?;
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(name), Some(commit)) = (words.next(), words.next()) else { continue };
            let about = words.next().unwrap_or_default();
            items.extend(self.of_ref(name, commit, about, &kept, &branches)?);
        }
        items.sort_by(|a, b| a.lane.cmp(&b.lane));
        Ok(items)
    }

    fn of_ref(
        &self,
        name: &str,
        commit: &str,
        about: &str,
        kept: &str,
        branches: &str,
    ) -> Result<Option<Item>, GitError> {
        let (lane, kind, shown) = match (name.strip_prefix(branches), name.strip_prefix(kept)) {
            (Some(lane), _) => (lane, Kind::Branch, name.trim_start_matches("refs/heads/")),
            (_, Some(rest)) => {
                let Some((lane, last)) = rest.rsplit_once('/') else { return Ok(None) };
                (if lane.starts_with('_') { "" } else { lane }, Kind::of_ref(last), name)
            }
            _ => return Ok(None),
        };
        let mut item = Item {
            lane: lane.to_owned(),
            kind,
            name: shown.to_owned(),
            commit: commit.to_owned(),
            about: about.to_owned(),
            files: 0,
            bytes: 0,
        };
        for (from, to) in self.spans(&item)? {
            if kind == Kind::Branch && from == to {
                // The branch of a lane that stayed, without anything of its own.
                return Ok(None);
            }
            let sizes = self.sizes(&from, &to)?;
            item.files += sizes.len();
            item.bytes += sizes.into_iter().sum::<u64>();
        }
        Ok(Some(item))
    }

    fn directories(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for entry in fs::read_dir(self.lanes).into_iter().flatten().flatten() {
            let path = entry.path();
            let (files, about) = match self.held(&path) {
                Ok(Held { files, is_worktree: true }) => (files, "a worktree with work in it".to_owned()),
                Ok(Held { files, .. }) => {
                    (files, "no worktree any more, with all that lies in it".to_owned())
                }
                // It is still there.
                Err(error) => (Vec::new(), format!("what it holds cannot be told: {error}")),
            };
            let sizes = files.iter().filter_map(|file| path.join(file).symlink_metadata().ok());
            items.push(Item {
                lane: entry.file_name().to_string_lossy().into_owned(),
                kind: Kind::Directory,
                name: path.display().to_string(),
                commit: String::new(),
                about,
                files: files.len(),
                bytes: sizes.map(|about| about.len()).sum(),
            });
        }
        items
    }

    /// Files of a directory that no commit holds; all of them where it is no worktree any more.
    fn held(&self, top: &Path) -> Result<Held, GitError> {
        let mut files = Vec::new();
        let is_worktree = self.is_worktree(top)?;
        let found = if is_worktree { self.changed(top)? } else { vec![PathBuf::new()] };
        for path in found {
            // A directory is a repository of its own: git says no more of it.
            collect(top, &path, &mut files);
        }
        // What git itself has written there is not work.
        files.retain(|file| is_worktree || file != Path::new(".git"));
        files.sort();
        files.dedup();
        Ok(Held { files, is_worktree })
    }

    fn is_worktree(&self, path: &Path) -> Result<bool, GitError> {
        let common = |dir: &Path| self.git.path(dir, ["rev-parse", "--git-common-dir"]);
        let top = self.git.path(path, ["rev-parse", "--show-toplevel"]);
        match top.and_then(|top| Ok((top, common(path)?, common(self.base)?))) {
            // A home that lies in a repository has another top; a repository that was made there has its own notes.
            Ok((top, its, ours)) => Ok(its == ours && path.canonicalize().is_ok_and(|path| path == top)),
            Err(GitError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn changed(&self, path: &Path) -> Result<Vec<PathBuf>, GitError> {
        let since_head = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "HEAD", "--"];
        let tracked = match self.git.commit(path, "HEAD")? {
            Some(_) => Call::new(path, since_head),
            // On a branch without a commit everything is new.
            None => Call::new(path, ["ls-files", "-z", "--cached"]),
        };
        let others = Call::new(path, ["ls-files", "-z", "--others"]);
        let mut files = leftovers::hidden(self.git, path)?;
        for call in [tracked, others] {
            files.extend(paths(&self.git.run(call.within(CHECKOUT))?));
        }
        Ok(files)
    }

    /// What an item adds, as pairs of trees.
    fn spans(&self, item: &Item) -> Result<Vec<(String, String)>, GitError> {
        let to = item.commit.clone();
        let parent = |n: u8| self.git.commit(self.base, &format!("{to}^{n}"));
        let from = match item.kind {
            Kind::Branch | Kind::Commits => {
                self.git.line(self.base, ["merge-base", "HEAD", &to]).ok().filter(|base| !base.is_empty())
            }
            _ => parent(1)?,
        };
        let empty = || self.git.line(self.base, ["hash-object", "-t", "tree", "/dev/null"]);
        let from = match from {
            Some(from) => from,
            None => empty()?,
        };
        let mut spans = vec![(from, to.clone())];
        // A stash holds what was staged in its second parent and untracked files in a third one.
        if item.kind == Kind::Stash
            && let Some(untracked) = parent(3)?
        {
            spans.push((empty()?, untracked));
        }
        Ok(spans)
    }

    /// Blobs that are in `to` and not in `from`, by path.
    fn added(&self, from: &str, to: &str) -> Result<Vec<Blob>, GitError> {
        let words =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--diff-filter=AMT", from, to];
        let bytes = self.git.run(Call::new(self.base, words))?;
        let mut fields = bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let mut added = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about);
            let mut words = about.split(' ');
            let (mode, blob) = (words.nth(1), words.nth(1));
            // A submodule's commit is not in this repository.
            if let (Some(mode), Some(sha)) = (mode.filter(|mode| *mode != "160000"), blob) {
                let (mode, sha) = (mode.to_owned(), sha.to_owned());
                added.push(Blob { path: OsStr::from_bytes(path).into(), mode, sha });
            }
        }
        Ok(added)
    }

    fn sizes(&self, from: &str, to: &str) -> Result<Vec<u64>, GitError> {
        let added = self.added(from, to)?;
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = added.iter().map(|blob| format!("{}\n", blob.sha)).collect();
        let call =
            Call::new(self.base, ["cat-file", "--batch-check=%(objectsize)"]).reading(input.into_bytes());
        Ok(lossy(self.git.run(call)?).lines().map(|size| size.parse().unwrap_or(0)).collect())
    }

    /// Writes the files of `items` below `target`, a directory for each; returns these, and what came of it where not all
    /// could be written.
    ///
    /// # Errors
    /// When `target` holds something.
    pub fn restore(&self, items: &[Item], target: &Path) -> Result<Restored, SalvageError> {
        if fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(SalvageError::Occupied(target.to_path_buf()));
        }
        let mut restored = Restored::default();
        for item in items {
            let place = target.join(item.lane_or_none()).join(item.short());
            if let Err(error) = self.restore_one(item, &place) {
                let (name, why) = (item.name.clone(), error.to_string());
                restored.failed.push(Failed { lane: item.lane.clone(), name, why });
            }
            restored.places.push(place);
        }
        Ok(restored)
    }

    fn restore_one(&self, item: &Item, place: &Path) -> Result<(), SalvageError> {
        let failed = |source| SalvageError::Write { path: place.to_path_buf(), source };
        fs::create_dir_all(place).map_err(failed)?;
        if item.kind == Kind::Directory {
            return self.copy(Path::new(&item.name), place);
        }
        for (from, to) in self.spans(item)? {
            match item.kind {
                Kind::Files | Kind::Staged => {
                    raw::write(self.git, self.base, &self.added(&from, &to)?, place)?;
                }
                _ => self.check_out(&from, &to, place)?,
            }
        }
        Ok(())
    }

    /// Copies what can be, and returns the first failure.
    fn copy(&self, from: &Path, to: &Path) -> Result<(), SalvageError> {
        let copy = |file: PathBuf| {
            let (source, path) = (from.join(&file), to.join(&file));
            copy_one(&source, &path).map_err(|source| SalvageError::Write { path, source })
        };
        let results: Vec<_> = self.held(from)?.files.into_iter().map(copy).collect();
        results.into_iter().collect()
    }

    fn check_out(&self, from: &str, to: &str, place: &Path) -> Result<(), SalvageError> {
        let files = self.added(from, to)?;
        if files.is_empty() {
            return Ok(());
        }
        let scratch =
            tempfile::tempdir().map_err(|source| SalvageError::Write { path: place.into(), source })?;
        let place = place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
        let work_tree = format!("--work-tree={}", place.display());
        let call = |words: &[&str]| {
            let words =
                ["-c", "core.sparseCheckout=false", &work_tree].into_iter().chain(words.iter().copied());
            Call::new(self.base, words).with("GIT_INDEX_FILE", scratch.path().join("index")).within(CHECKOUT)
        };
        self.git.run(call(&["read-tree", to]))?;
        let list: Vec<u8> =
            files.iter().flat_map(|blob| [blob.path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        self.git.run(call(&["checkout-index", "-z", "--stdin", "--force"]).reading(list))?;
        Ok(())
    }

    /// Makes a branch `prefix/<lane>/<item>` of each of `items` that is a commit; returns their names.
    ///
    /// # Errors
    /// When one cannot be made; then none is.
    pub fn branches(&self, items: &[Item], prefix: &str) -> Result<Vec<String>, SalvageError> {
        let commits = items.iter().filter(|item| !item.commit.is_empty());
        let made: HashMap<String, &str> = commits
            .map(|item| (format!("{prefix}/{}/{}", item.lane_or_none(), item.short()), item.commit.as_str()))
            .collect();
        for name in made.keys() {
            self.git.line(self.base, ["check-ref-format", "--branch", name])?;
        }
        let lines: String =
            made.iter().map(|(name, sha)| format!("create refs/heads/{name} {sha}\n")).collect();
        if !lines.is_empty() {
            self.git.run(Call::new(self.base, ["update-ref", "--stdin"]).reading(lines.into_bytes()))?;
        }
        let mut names: Vec<String> = made.into_keys().collect();
        names.sort();
        Ok(names)
    }
}

/// Files and links at or below `path`, relative to `top`.
fn collect(top: &Path, path: &Path, files: &mut Vec<PathBuf>) {
    let full = top.join(path);
    match full.symlink_metadata() {
        Ok(about) if about.is_dir() => {
            for entry in fs::read_dir(&full).into_iter().flatten().flatten() {
                collect(top, &path.join(entry.file_name()), files);
            }
        }
        // Reading a pipe would wait for its other end.
        Ok(about) if about.is_file() || about.is_symlink() => files.push(path.to_path_buf()),
        _ => {}
    }
}

fn copy_one(from: &Path, to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::read_link(from) {
        Ok(link) => std::os::unix::fs::symlink(link, to),
        Err(_) => fs::copy(from, to).map(drop),
    }
}
