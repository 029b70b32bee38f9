//! Takes a lane away when the leg ends, and loses nothing: what only the lane holds is kept first, and a directory with
//! uncommitted work stays (FACTS 11, ADR 0005).
//!
//! Every retention is told in one line that says what to type next. Whatever cannot be found out keeps the directory.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::node::worktree::git::{CHECKOUT, Call, Git, GitError, paths};
use crate::node::worktree::keep::{self, Kept, Lost};
use crate::node::worktree::lanes::{GOING, GitLanes, Lane};
use crate::node::worktree::leftovers::{self, Leftovers};
use crate::text::sanitize::one_line;
use crate::text::shell_word::shell_path;

const NO_WORKTREE: &str = "it is no worktree of this repository any more";

/// What git leaves in its notes on a worktree while it is in the middle of something.
const UNDER_WAY: [(&str, &str); 7] = [
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert"),
    ("BISECT_LOG", "a bisection"),
];

/// Takes `lanes` away; the notes. What each lane holds is kept before any goes, then what cannot be told apart.
pub(super) fn tidy(from: &GitLanes, lanes: &[Lane], to_come: &dyn Fn(&str) -> bool) -> Vec<String> {
    let each: Vec<Tidy<'_>> =
        lanes.iter().map(|lane| Tidy { to_come: to_come(&lane.name), ..Tidy::of(from, lane) }).collect();
    let kept: Vec<_> = each.iter().map(Tidy::keep).collect();
    let mut notes = Vec::new();
    for (tidy, kept) in each.iter().zip(kept) {
        let gone = kept.and_then(|kept| {
            notes.extend(tidy.told(kept));
            tidy.take_away(&mut notes)
        });
        if let Err(error) = gone {
            notes.push(tidy.stays(&one_line(&error.to_string())));
        }
    }
    let oldest = each.iter().min_by_key(|tidy| tidy.lane.began.since);
    notes.extend(oldest.and_then(Tidy::sweep));
    notes
}

/// Makes reachable what `lanes` hold, and takes none away; what could not be, a line each.
pub(super) fn keep(from: &GitLanes, lanes: &[Lane]) -> Vec<String> {
    let each: Vec<Tidy<'_>> = lanes.iter().map(|lane| Tidy::of(from, lane)).collect();
    let failed = |tidy: &Tidy<'_>| tidy.keep().err().map(|error| tidy.stays(&one_line(&error.to_string())));
    let notes = each.iter().filter_map(failed).collect();
    each.iter().min_by_key(|tidy| tidy.lane.began.since).and_then(Tidy::sweep);
    notes
}

/// Those of `lanes` that would not go.
pub(super) fn would_stay(from: &GitLanes, lanes: &[Lane]) -> Vec<String> {
    let stays = |lane: &&Lane| {
        let untouched = leftovers::untouched(lane);
        let holds_work = Tidy::of(from, lane).holds_work(&untouched);
        let stays = holds_work.and_then(|why| match why {
            Some(why) => Ok(Some(why)),
            None => leftovers::too_much(&from.git, lane, &untouched),
        });
        // What cannot be found out keeps the directory.
        stays.map_or(true, |why| why.is_some())
    };
    lanes.iter().filter(stays).map(|lane| lane.name.clone()).collect()
}

struct Tidy<'a> {
    lanes: &'a GitLanes,
    git: &'a Git,
    lane: &'a Lane,
    branch: String,
    refs: String,
    /// Whether a later leg may enter it.
    to_come: bool,
}

impl<'a> Tidy<'a> {
    fn of(lanes: &'a GitLanes, lane: &'a Lane) -> Self {
        let (branch, refs) = (lanes.branch(&lane.name), keep::refs(&lanes.run, &lane.name));
        Tidy { lanes, git: &lanes.git, lane, branch, refs, to_come: false }
    }

    fn lost<'l>(&'l self, common: &'l Path, refs: &'l str) -> Lost<'l> {
        Lost {
            git: self.git,
            repo: &self.lanes.base,
            common,
            admin: &self.lane.admin,
            began: &self.lane.began,
            branch: &self.branch,
            refs,
        }
    }

    fn keep(&self) -> Result<Kept, GitError> {
        let common = self.lanes.common(&self.lanes.base)?;
        self.lost(&common, &self.refs).keep()
    }

    fn sweep(&self) -> Option<String> {
        let (run, refs) = (&self.lanes.run, keep::sweep_refs(&self.lanes.run));
        let kept = self.lanes.common(&self.lanes.base).and_then(|common| self.lost(&common, &refs).sweep());
        match kept {
            Ok(kept) => {
                let what = listed(kept)?;
                Some(format!("worktrees: {what} kept under {refs}/; see them: omg salvage {run}"))
            }
            Err(error) => {
                let why = one_line(&error.to_string()).into_owned();
                Some(format!(
                    "worktrees: what no commit holds could not be looked for: {why}; see git fsck --lost-found"
                ))
            }
        }
    }

    fn take_away(&self, notes: &mut Vec<String>) -> Result<(), GitError> {
        let stands_on = self.stands_on();
        let path = &self.lane.path;
        if !path.exists() {
            if self.lane.admin.exists() {
                self.lanes.call(["worktree", "remove", "--force"], path)?;
            }
        } else if let Some(why) = self.why_it_stays(notes)? {
            notes.push(self.stays(&why));
            return Ok(());
        } else if let Err(error) = self.remove() {
            fs::remove_file(self.lane.admin.join(GOING)).ok();
            // Half of it may be gone: the next leg sets it up again.
            leftovers::forget_set_up(&self.lane.admin);
            return Err(error);
        }
        notes.extend(self.settle_branch(stands_on)?);
        Ok(())
    }

    fn remove(&self) -> Result<(), GitError> {
        // Without the mark a removal that is cut short costs nothing but a question to the person.
        fs::write(self.lane.admin.join(GOING), "").ok();
        self.lanes.call(["worktree", "remove"], &self.lane.path)
    }

    /// Why the directory must not go; what git does not look after is put under a ref first.
    fn why_it_stays(&self, notes: &mut Vec<String>) -> Result<Option<String>, GitError> {
        let lane = self.lane;
        let untouched = leftovers::untouched(lane);
        if let Some(why) = self.holds_work(&untouched)? {
            return Ok(Some(why));
        }
        if self.to_come && !self.is_its_branch_alone()? {
            return Ok(Some("nodes of it are still to run".to_owned()));
        }
        let message = format!(
            "files that git does not look after, of worktree {} of run {}",
            lane.name, self.lanes.run
        );
        match leftovers::commit(self.git, lane, &untouched, &message)? {
            Leftovers::None => {}
            Leftovers::Stay(why) => return Ok(Some(why)),
            Leftovers::Commit { sha, files } => {
                let name = format!("{}/files-{}", self.refs, keep::short(&sha));
                self.git.run(Call::new(&lane.path, ["update-ref", &name, &sha]))?;
                notes.push(format!(
                    "worktree \"{}\": {} kept as {name}; get them: omg salvage {} --restore DIR",
                    lane.name,
                    counted(files, "ignored file"),
                    self.lanes.run
                ));
            }
        }
        // What the set-up made is in the way of a removal that refuses untracked files, and can be made again.
        for file in untouched {
            fs::remove_file(lane.path.join(file)).ok();
        }
        Ok(None)
    }

    /// The work in the directory that a person has to look at, if there is any.
    fn holds_work(&self, untouched: &HashSet<PathBuf>) -> Result<Option<String>, GitError> {
        let lane = self.lane;
        if !self.lanes.is_own(&lane.path).unwrap_or(false) {
            return Ok(Some(NO_WORKTREE.to_owned()));
        }
        if let Some((_, what)) = UNDER_WAY.iter().find(|(file, _)| lane.admin.join(file).exists()) {
            return Ok(Some(format!("{what} is under way in it")));
        }
        Ok(self.is_dirty(untouched)?.then(|| "it holds uncommitted changes".to_owned()))
    }

    /// Whether a fresh checkout of its branch would be the same: it stands on it, and nothing else lies there.
    fn is_its_branch_alone(&self) -> Result<bool, GitError> {
        let stands_on = self.stands_on();
        if stands_on.is_none_or(|(branch, _)| branch != self.branch) {
            return Ok(false);
        }
        // Names empty directories as well.
        let others =
            Call::new(&self.lane.path, ["ls-files", "-z", "--others", "--directory"]).within(CHECKOUT);
        Ok(self.git.run(others)?.is_empty() && leftovers::hidden(self.git, &self.lane.path)?.is_empty())
    }

    /// Whether there are changes that no commit holds, whatever the repository's settings hide.
    fn is_dirty(&self, untouched: &HashSet<PathBuf>) -> Result<bool, GitError> {
        let words = [
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=none",
            "--no-renames",
        ];
        let bytes = self.git.run(Call::new(&self.lane.path, words).within(CHECKOUT))?;
        let changed = |entry: &PathBuf| {
            let entry = entry.as_os_str().as_encoded_bytes();
            let path = entry.get(3..).unwrap_or_default();
            !entry.starts_with(b"?? ") || !untouched.contains(Path::new(std::ffi::OsStr::new(&path_of(path))))
        };
        Ok(paths(&bytes).iter().any(changed))
    }

    /// The branch that the lane stands on, and its commit; a directory that is gone stands on what git noted.
    fn stands_on(&self) -> Option<(String, String)> {
        let asked = self.git.line(&self.lane.path, ["symbolic-ref", "--quiet", "HEAD"]).ok();
        let noted = || {
            let head = fs::read_to_string(self.lane.admin.join("HEAD")).ok()?;
            head.trim().strip_prefix("ref: ").map(str::to_owned)
        };
        let name = asked.or_else(noted)?;
        let commit = self.git.commit(&self.lanes.base, &name).ok()??;
        Some((name.strip_prefix("refs/heads/")?.to_owned(), commit))
    }

    /// Only a branch that this leg made, and that is provably where it began, goes.
    fn settle_branch(&self, stands_on: Option<(String, String)>) -> Result<Vec<String>, GitError> {
        let mut notes = Vec::new();
        let began = self.lane.began.commit.as_str();
        let at = self.git.commit(&self.lanes.base, &format!("refs/heads/{}", self.branch))?;
        match at.as_deref() {
            None => {}
            Some(at) if at == began && !self.lane.adopted => notes.extend(self.drop_branch()),
            Some(at) => notes.push(self.branch_stays(&self.branch, at)),
        }
        if let Some((branch, at)) = stands_on
            && branch != self.branch
        {
            // Under a ref as well, so that it is found whatever the branch is called.
            if at != began {
                let name = format!("{}/branch-{}", self.refs, keep::short(&at));
                self.git.run(Call::new(&self.lanes.base, ["update-ref", &name, &at]))?;
            }
            let (name, commits) = (&self.lane.name, self.commits_of(&at));
            notes.push(format!(
                "worktree \"{name}\": it stood on branch {branch} {commits}; take them: git merge {branch}"
            ));
        }
        Ok(notes)
    }

    fn drop_branch(&self) -> Option<String> {
        let dropped = self.git.run(Call::new(&self.lanes.base, ["branch", "-D", "--", &self.branch]));
        let error = dropped.err()?;
        let (name, branch) = (&self.lane.name, &self.branch);
        Some(format!(
            "worktree \"{name}\": branch {branch} could not be removed: {}",
            one_line(&error.to_string())
        ))
    }

    fn branch_stays(&self, branch: &str, at: &str) -> String {
        let (name, commits) = (&self.lane.name, self.commits_of(at));
        format!(
            "worktree \"{name}\": branch {branch} kept {commits}; take them: git merge {branch}; drop it: git branch -D {branch}"
        )
    }

    /// What a branch at `at` has beyond the lane's beginning, in words.
    fn commits_of(&self, at: &str) -> String {
        let began = self.lane.began.commit.as_str();
        let range = format!("{began}..{at}");
        let count = match began.is_empty() {
            true => None,
            false => self.git.line(&self.lanes.base, ["rev-list", "--count", &range, "--"]).ok(),
        };
        match count.and_then(|count| count.parse().ok()) {
            Some(0) => "without new commits".to_owned(),
            Some(count) => format!("with {}", counted(count, "commit")),
            None => "of an earlier leg".to_owned(),
        }
    }

    fn stays(&self, why: &str) -> String {
        let word = shell_path;
        let (name, path, repo) = (&self.lane.name, word(&self.lane.path), word(&self.lanes.base));
        let (look, drop) = match why {
            NO_WORKTREE => (format!("ls -lA {path}"), format!("rm -rf {path}; git -C {repo} worktree prune")),
            _ => (format!("git -C {path} status"), format!("git -C {repo} worktree remove --force {path}")),
        };
        format!("worktree \"{name}\" kept at {path}: {why}; look: {look}; drop it: {drop}")
    }

    fn told(&self, kept: Kept) -> Option<String> {
        let (name, run, refs) = (&self.lane.name, &self.lanes.run, &self.refs);
        let what = listed(kept)?;
        Some(format!("worktree \"{name}\": {what} kept under {refs}/; see them: omg salvage {run}"))
    }
}

fn listed(kept: Kept) -> Option<String> {
    let parts = [
        (kept.commits, "line of commits on no branch", "lines of commits on no branch"),
        (kept.stashes, "stash", "stashes"),
        (
            kept.staged,
            "content that was staged and not committed",
            "contents that were staged and not committed",
        ),
    ];
    let told = parts.iter().filter(|(count, ..)| *count > 0);
    let told: Vec<String> =
        told.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many })).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn path_of(bytes: &[u8]) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
