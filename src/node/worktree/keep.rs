//! Finds what would become unreachable when a lane goes, and puts it under `refs/omg/<run>/<lane>/…`.
//!
//! Commits on a detached HEAD, of a rebase under way, amended, reset or rebased away: everything that git's own notes
//! on the worktree name (its HEAD, its logs, its pseudo refs), and every commit that was written since the lane was
//! made. Stashes, which all worktrees of a repository share. Contents that were staged and never committed.
//! Everything is decided by reachability, so that a second look finds nothing more to keep.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::node::worktree::git::{Call, Git, GitError};
use crate::node::worktree::lanes::Began;
use crate::text::lossy::lossy;

/// Notes of git that are larger are not read for names of commits.
const NOTES_BYTES_MAX: u64 = 8 << 20;
/// Loose objects that are looked at; a lane that wrote more has been packed by git meanwhile.
const LOOSE_MAX: usize = 200_000;
/// How many letters of a commit's name stand in the name of a ref.
const SHORT: usize = 12;

/// The place of what is kept of lane `name`.
pub(super) fn refs(run: &str, name: &str) -> String {
    format!("refs/omg/{run}/{name}")
}

/// The place of what was written in some lane; no lane can be called so.
pub(super) fn sweep_refs(run: &str) -> String {
    format!("refs/omg/{run}/_written")
}

/// The beginning of a commit's name that stands in the name of a ref.
pub(super) fn short(sha: &str) -> &str {
    &sha[..SHORT.min(sha.len())]
}

/// What was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) commits: usize,
    pub(super) stashes: usize,
    pub(super) staged: usize,
}

/// A look for what would be lost.
#[derive(Debug)]
pub(super) struct Lost<'a> {
    pub(super) git: &'a Git,
    /// A directory of the repository that stays.
    pub(super) repo: &'a Path,
    pub(super) common: &'a Path,
    /// Git's notes on the lane; they may be gone.
    pub(super) admin: &'a Path,
    pub(super) began: &'a Began,
    /// The lane's own branch.
    pub(super) branch: &'a str,
    /// Where refs go.
    pub(super) refs: &'a str,
}

/// The stashes of a repository, newest first.
pub(super) fn stashes(git: &Git, repo: &Path) -> Result<Vec<String>, GitError> {
    Ok(stash_list(git, repo)?.into_iter().map(|(sha, _)| sha).collect())
}

fn stash_list(git: &Git, repo: &Path) -> Result<Vec<(String, String)>, GitError> {
    if git.commit(repo, "refs/stash")?.is_none() {
        return Ok(Vec::new());
    }
    let text = git.line(repo, ["log", "-g", "--format=%H %gs", "refs/stash", "--"])?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(sha, why)| (sha.into(), why.into()))
        .collect())
}

impl Lost<'_> {
    /// Makes reachable what git's notes on the lane name, and the stashes that were made in it.
    ///
    /// # Errors
    /// When that could not be done; the lane must not go then.
    pub(super) fn keep(&self) -> Result<Kept, GitError> {
        let stashes = stash_list(self.git, self.repo)?;
        let own = self.own_stashes(&stashes)?;
        let lost = self.tips(&self.noted(), stashes.iter().map(|(sha, _)| sha.as_str()))?;
        self.write(&self.named("commit", &lost))?;
        self.write(&self.named("stash", &own))?;
        Ok(Kept { commits: lost.len(), stashes: own.len(), staged: 0 })
    }

    /// Makes reachable what else was written since the lane was made. Nobody can tell in which lane that was, so that it
    /// is done once for all, after each lane's own.
    ///
    /// # Errors
    /// When that could not be done; it lasts until git's next cleaning, whatever becomes of the lanes.
    pub(super) fn sweep(&self) -> Result<Kept, GitError> {
        let loose = self.loose()?;
        let foreign = self.foreign_notes();
        let written = loose.commits.iter().filter(|sha| !foreign.contains(*sha)).cloned().collect();
        let stashes = stashes(self.git, self.repo)?;
        let lost = self.tips(&written, stashes.iter().map(String::as_str))?;
        self.write(&self.named("commit", &lost))?;
        let staged = self.staged(&loose)?;
        let (commit, count) = staged.unzip();
        self.write(&self.named("staged", commit.as_slice()))?;
        Ok(Kept { commits: lost.len(), stashes: 0, staged: count.unwrap_or(0) })
    }

    fn named(&self, kind: &str, names: &[String]) -> Vec<(String, String)> {
        let name = |sha: &String| (format!("{}/{kind}-{}", self.refs, short(sha)), sha.clone());
        names.iter().map(name).collect()
    }

    /// Writes refs, all or none.
    pub(super) fn write(&self, refs: &[(String, String)]) -> Result<(), GitError> {
        if refs.is_empty() {
            return Ok(());
        }
        let lines: String = refs.iter().map(|(name, sha)| format!("update {name} {sha}\n")).collect();
        self.git.run(Call::new(self.repo, ["update-ref", "--stdin"]).reading(lines.into_bytes())).map(drop)
    }

    /// Stashes that were made since, but for those of branches that other worktrees stand on, and of what is kept
    /// already.
    fn own_stashes(&self, list: &[(String, String)]) -> Result<Vec<String>, GitError> {
        let kept: BTreeSet<String> = self
            .git
            .line(self.repo, ["for-each-ref", "--format=%(objectname)", "refs/omg/"])?
            .lines()
            .map(str::to_owned)
            .collect();
        let others = self.other_branches()?;
        let is_foreign = |why: &str| {
            others.iter().any(|branch| {
                ["WIP on ", "On "].iter().any(|lead| {
                    why.strip_prefix(lead)
                        .and_then(|rest| rest.strip_prefix(branch.as_str()))
                        .is_some_and(|rest| rest.starts_with(':'))
                })
            })
        };
        let own = list.iter().filter(|(sha, why)| {
            !self.began.stashes.contains(sha) && !kept.contains(sha) && !is_foreign(why)
        });
        Ok(own.map(|(sha, _)| sha.clone()).collect())
    }

    /// The branches that the repository's other worktrees stand on.
    fn other_branches(&self) -> Result<Vec<String>, GitError> {
        let text = self.git.line(self.repo, ["worktree", "list", "--porcelain"])?;
        let here = fs::read_to_string(self.admin.join("gitdir")).unwrap_or_default();
        let here = Path::new(here.trim_end()).parent().map(Path::to_path_buf);
        let mut others = Vec::new();
        let mut is_here = false;
        for line in text.lines() {
            if let Some(path) = line.strip_prefix("worktree ") {
                is_here = here.as_deref() == Some(Path::new(path));
            }
            if let (Some(branch), false) = (line.strip_prefix("branch refs/heads/"), is_here) {
                others.push(branch.to_owned());
            }
        }
        Ok(others)
    }

    /// Every commit name in git's notes on the lane and in the log of its branch.
    fn noted(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect_names(self.admin, &mut names);
        read_names(&self.common.join("logs/refs/heads").join(self.branch), &mut names);
        names
    }

    /// Commits in the logs of every worktree: what a person drops in theirs is looked after there.
    fn foreign_notes(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        read_names(&self.common.join("logs/HEAD"), &mut names);
        for entry in fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten() {
            read_names(&entry.path().join("logs/HEAD"), &mut names);
        }
        names
    }

    /// Those of `candidates` that nothing leads to, neither a ref nor one of the others.
    fn tips<'s>(
        &self,
        candidates: &BTreeSet<String>,
        stashes: impl Iterator<Item = &'s str>,
    ) -> Result<Vec<String>, GitError> {
        let commits = self.of_kind(candidates.iter().map(String::as_str))?;
        let commits = commits.get("commit").map(Vec::as_slice).unwrap_or_default();
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let mut input: String = commits.iter().map(|sha| format!("{sha}\n")).collect();
        input.extend(stashes.map(|sha| format!("^{sha}\n")));
        let call = Call::new(self.repo, ["rev-list", "--parents", "--stdin", "--not", "--glob=refs/*"]);
        let text = lossy(self.git.run(call.reading(input.into_bytes()))?);
        let (mut lost, mut led_to) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            let mut words = line.split(' ').map(str::to_owned);
            lost.extend(words.next());
            led_to.extend(words);
        }
        Ok(lost.difference(&led_to).cloned().collect())
    }

    /// Objects that are there, by kind.
    fn of_kind<'s>(
        &self,
        names: impl Iterator<Item = &'s str>,
    ) -> Result<BTreeMap<String, Vec<String>>, GitError> {
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let input: String = names.map(|name| format!("{name}\n")).collect();
        if input.is_empty() {
            return Ok(kinds);
        }
        let call = Call::new(self.repo, ["cat-file", "--batch-check=%(objectname) %(objecttype)"]);
        for line in lossy(self.git.run(call.reading(input.into_bytes()))?).lines() {
            if let Some((name, kind)) = line.split_once(' ') {
                kinds.entry(kind.to_owned()).or_default().push(name.to_owned());
            }
        }
        Ok(kinds)
    }

    /// Loose objects that were written since the lane was made.
    fn loose(&self) -> Result<Loose, GitError> {
        let Some(since) = self.began.since else { return Ok(Loose::default()) };
        let objects = self.git.path(self.repo, ["rev-parse", "--git-path", "objects"])?;
        let names = loose_names(&objects, since);
        let mut kinds = self.of_kind(names.iter().map(String::as_str))?;
        Ok(Loose {
            commits: kinds.remove("commit").unwrap_or_default(),
            blobs: kinds.remove("blob").unwrap_or_default(),
        })
    }

    /// A commit that holds contents which were staged, and which neither a commit nor an index holds any more.
    fn staged(&self, loose: &Loose) -> Result<Option<(String, usize)>, GitError> {
        let mut lost: BTreeSet<&str> = loose.blobs.iter().map(String::as_str).collect();
        if lost.is_empty() {
            return Ok(None);
        }
        let mut held = self.index_of_every_worktree()?;
        if !self.began.commit.is_empty() {
            held += &self.git.line(self.repo, ["ls-tree", "-r", "--full-tree", &self.began.commit])?;
            held.push('\n');
        }
        let before = Some(&self.began.commit).filter(|sha| !sha.is_empty()).map(|sha| format!("^{sha}\n"));
        let input: String = loose.commits.iter().map(|sha| format!("{sha}\n")).chain(before).collect();
        let call = Call::new(self.repo, ["rev-list", "--objects", "--no-object-names", "--stdin"]);
        held += &lossy(self.git.run(call.reading(input.into_bytes()))?);
        let held: BTreeSet<&str> = held.split_ascii_whitespace().collect();
        lost.retain(|sha| !held.contains(sha));
        if lost.is_empty() {
            return Ok(None);
        }
        let entries: String = lost.iter().map(|sha| format!("100644 blob {sha}\t{sha}\n")).collect();
        let call = Call::new(self.repo, ["mktree"]).reading(entries.into_bytes());
        let tree = lossy(self.git.run(call)?);
        let commit = commit_tree(
            self.git,
            self.repo,
            tree.trim(),
            None,
            "contents that were staged and not committed",
        )?;
        Ok(Some((commit, lost.len())))
    }

    fn index_of_every_worktree(&self) -> Result<String, GitError> {
        let admins = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let mut held = String::new();
        for admin in admins.map(|entry| entry.path()).chain([self.common.to_path_buf()]) {
            if admin.join("index").is_file() {
                let call = Call::new(self.repo, ["ls-files", "--stage", "--full-name", ":/"])
                    .with("GIT_LITERAL_PATHSPECS", "0")
                    .with("GIT_INDEX_FILE", admin.join("index"));
                // A bare repository has no worktree to list, and an index that is damaged holds nothing.
                held += &self.git.run(call).map(lossy).unwrap_or_default();
            }
        }
        Ok(held)
    }
}

/// Loose objects by kind.
#[derive(Debug, Default)]
struct Loose {
    commits: Vec<String>,
    blobs: Vec<String>,
}

/// Commits `tree` in omg's own name: the owner of the repository may not have told git theirs.
pub(super) fn commit_tree(
    git: &Git,
    repo: &Path,
    tree: &str,
    parent: Option<&str>,
    message: &str,
) -> Result<String, GitError> {
    let parent = parent.into_iter().flat_map(|parent| ["-p", parent]);
    let words =
        ["-c", "commit.gpgSign=false", "commit-tree", tree].into_iter().chain(parent).chain(["-m", message]);
    let mut call = Call::new(repo, words);
    for who in ["AUTHOR", "COMMITTER"] {
        call =
            call.with(&format!("GIT_{who}_NAME"), "omg").with(&format!("GIT_{who}_EMAIL"), "omg@localhost");
    }
    Ok(lossy(git.run(call)?).trim().to_owned())
}

fn loose_names(objects: &Path, since: SystemTime) -> Vec<String> {
    let is_pair = |name: &OsStr| name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
    let folders =
        fs::read_dir(objects).into_iter().flatten().flatten().filter(|entry| is_pair(&entry.file_name()));
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let is_new = |entry: &fs::DirEntry| {
        entry.metadata().and_then(|about| about.modified()).is_ok_and(|written| written >= since)
    };
    let name = |entry: fs::DirEntry| {
        let path = entry.path();
        let pair = path.parent()?.file_name()?.to_str()?;
        let name = format!("{pair}{}", path.file_name()?.to_str()?);
        is_name(&name).then_some(name)
    };
    files.filter(is_new).filter_map(name).take(LOOSE_MAX).collect()
}

fn is_name(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Every word in the files below `directory` that can be an object's name; indexes and our own notes left out.
fn collect_names(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_other = [OsStr::new("modules"), OsStr::new("index")].contains(&name.as_os_str())
            || name.as_encoded_bytes().starts_with(b"omg-");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_other => collect_names(&path, names),
            Ok(kind) if kind.is_file() && !is_other => read_names(&path, names),
            _ => {}
        }
    }
}

fn read_names(path: &PathBuf, names: &mut BTreeSet<String>) {
    if fs::metadata(path).is_ok_and(|about| about.len() <= NOTES_BYTES_MAX) {
        let text = lossy(fs::read(path).unwrap_or_default());
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        names.extend(
            words.filter(|word| is_name(word) && word.bytes().any(|byte| byte != b'0')).map(str::to_owned),
        );
    }
}
