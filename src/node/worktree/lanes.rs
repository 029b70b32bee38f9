//! Makes a lane, or adopts the one that an earlier leg left (FACTS 11).
//!
//! Git is asked one question at a time. A lane's own lock is held while it is set up, so that a slow set-up keeps no
//! other lane waiting. What has to be known of a lane when it goes lies beside git's own notes on it, in the
//! repository's `worktrees/<id>/omg-lane`, and so lives exactly as long as the lane.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::graph::Cause;
use crate::node::judge::Fault;
use crate::node::worktree::git::{CHECKOUT, Call, Git, GitError};
use crate::node::worktree::{Lanes, keep, leftovers, tidy};
use crate::text::sanitize::lead_detail;

/// What a lane began with: its commit, then the stashes that were there before it.
const STATE: &str = "omg-lane";

/// How long a repository that refused is left alone before it is asked again.
const BUSY: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// Begins the name of the mark beside a lane that is being made; a lane's own name begins with a letter or a digit.
const MAKING: &str = ".making-";

/// Says that a lane was being taken away, everything in it kept.
pub(super) const GOING: &str = "omg-going";

/// Why there is no lane.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// Git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A hook of the repository said no.
    #[error("{refusal}; the repository's hook {} ran in the new checkout, and a checkout fails when it does", hook.display())]
    Hook {
        /// Git's words, which are the hook's, or none.
        refusal: GitError,
        /// The hook.
        hook: PathBuf,
    },
    /// Something else lies where the lane belongs.
    #[error("{} is not a worktree of this repository, and is left alone; move it away to let the lane be made", .0.display())]
    Foreign(PathBuf),
    /// The system said no.
    #[error("cannot {what} {}: {source}", path.display())]
    System {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// The lanes of one leg.
#[derive(Debug)]
pub struct GitLanes {
    pub(super) git: Git,
    /// The directory that the run was started in.
    pub(super) base: PathBuf,
    /// The directory that lanes lie in.
    pub(super) root: PathBuf,
    /// The run's id.
    pub(super) run: String,
    held: Mutex<BTreeMap<String, Slot>>,
    one_at_a_time: Mutex<()>,
}

type Slot = Arc<Mutex<Option<Lane>>>;

/// A lane that nodes run in.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Git's own notes on the worktree.
    pub(super) admin: PathBuf,
    /// Whether its branch was there before this leg.
    pub(super) adopted: bool,
    /// Whether its directory was made by this leg.
    pub(super) fresh: bool,
    /// What it began with.
    pub(super) began: Began,
}

/// What a lane began with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Began {
    /// The commit, empty when nobody knows.
    pub(super) commit: String,
    /// The stashes of the repository.
    pub(super) stashes: Vec<String>,
    /// When, by the clock of the repository's own disk.
    pub(super) since: Option<SystemTime>,
}

impl GitLanes {
    /// The lanes of `run` below `root`, of the repository that `base` lies in.
    pub fn new(git: Git, base: &Path, root: PathBuf, run: &str) -> Self {
        GitLanes {
            git,
            base: base.to_path_buf(),
            root,
            run: run.to_owned(),
            held: Mutex::default(),
            one_at_a_time: Mutex::default(),
        }
    }

    /// Takes away every lane that was entered, and loses nothing; returns what a person should know of, a line each.
    /// For the end of a leg, when nothing runs in a lane any more. A lane `to_come`, which a later leg may enter, goes
    /// only if that leg will find it the same.
    pub fn tidy(&self, to_come: &dyn Fn(&str) -> bool) -> Vec<String> {
        let held = std::mem::take(&mut *lock(&self.held));
        let mut lanes: Vec<Lane> = held.into_values().filter_map(|slot| lock(&slot).take()).collect();
        lanes.extend(self.left_over(&lanes));
        let notes = tidy::tidy(self, &lanes, to_come);
        // Stays when a lane stays.
        self.forget_marks();
        fs::remove_dir(&self.root).ok();
        notes
    }

    /// Removes the marks of lanes of which nothing is left.
    fn forget_marks(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let lane = name.to_str().and_then(|name| name.strip_prefix(MAKING));
            if lane.is_some_and(|lane| self.root.join(lane).symlink_metadata().is_err()) {
                fs::remove_file(entry.path()).ok();
            }
        }
    }

    /// Makes reachable what the lanes hold that an earlier leg left, and takes none away; returns what could not be, a
    /// line each. For a run that nothing runs of.
    pub fn keep(&self) -> Vec<String> {
        tidy::keep(self, &self.left_over(&[]))
    }

    /// The names of what would still lie in the directory of the lanes after [`GitLanes::tidy`]. Changes nothing.
    pub fn would_stay(&self) -> Vec<String> {
        let lanes = self.left_over(&[]);
        let mut staying = tidy::would_stay(self, &lanes);
        let is_lane = |name: &String| lanes.iter().any(|lane| lane.name == *name);
        staying.extend(self.names().into_iter().filter(|name| !is_lane(name)));
        staying.sort();
        staying
    }

    /// Lanes of a leg that died, which no node of this one asked for.
    fn left_over(&self, entered: &[Lane]) -> Vec<Lane> {
        let is_entered = |name: &String| entered.iter().any(|lane| lane.name == *name);
        let adopt = |name: &String| {
            let path = self.root.join(name);
            let is_own = self.is_own(&path).unwrap_or(false);
            let admin = self.admin(&path).ok().filter(|_| is_own)?;
            (!is_half_made(&admin) && !self.mark(name).exists()).then(|| adopted(name, path, admin))
        };
        self.names().iter().filter(|name| !is_entered(name)).filter_map(adopt).collect()
    }

    /// What lies in the directory of the lanes.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with(MAKING));
        names.sort();
        names
    }

    pub(super) fn branch(&self, name: &str) -> String {
        format!("omg/{}/{name}", self.run)
    }

    /// Where it is marked that a lane is being made, and that no node was let in.
    fn mark(&self, name: &str) -> PathBuf {
        self.root.join(format!("{MAKING}{name}"))
    }

    /// The repository's own directory, which all its worktrees share.
    pub(super) fn common(&self, dir: &Path) -> Result<PathBuf, GitError> {
        self.git.path(dir, ["rev-parse", "--git-common-dir"])
    }

    /// The nodes of other lanes use the same repository meanwhile: a lock is held, or a stash is gone between two
    /// questions. That passes, so a refusal is believed when it is repeated.
    fn provide_patiently(&self, name: &str) -> Result<Lane, LaneError> {
        for pause in BUSY {
            match self.provide(name) {
                Err(LaneError::Git(GitError::Refused { .. })) => thread::sleep(pause),
                done => return done,
            }
        }
        self.provide(name).map_err(|error| self.blame_hook(error))
    }

    /// Git passes on a failure of the hook without a word of its own.
    fn blame_hook(&self, error: LaneError) -> LaneError {
        let hook = self.git.path(&self.base, ["rev-parse", "--git-path", "hooks/post-checkout"]).ok();
        match (error, hook.filter(|hook| hook.is_file())) {
            (LaneError::Git(refusal), Some(hook)) if is_not_gits_own(&refusal) => {
                LaneError::Hook { refusal, hook }
            }
            (error, _) => error,
        }
    }

    fn provide(&self, name: &str) -> Result<Lane, LaneError> {
        let path = self.root.join(name);
        self.clear_half_made(name, &path)?;
        if path.symlink_metadata().is_ok() {
            self.come_back(&path)?;
            if !self.is_own(&path)? && !self.is_repaired(&path)? {
                return Err(LaneError::Foreign(path));
            }
            let admin = self.admin(&path)?;
            return Ok(adopted(name, path, admin));
        }
        self.forget(name, &path)?;
        self.make(name, path)
    }

    fn make(&self, name: &str, path: PathBuf) -> Result<Lane, LaneError> {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(&self.root);
        made.map_err(|source| LaneError::System { what: "make", path: self.root.clone(), source })?;
        let mark = self.mark(name);
        let marked = fs::write(&mark, "");
        marked.map_err(|source| LaneError::System { what: "write", path: mark.clone(), source })?;
        let branch = self.branch(name);
        // A git that was killed leaves its lock, and nobody but this run's lanes, one at a time, writes this branch.
        fs::remove_file(self.common(&self.base)?.join(format!("refs/heads/{branch}.lock"))).ok();
        let adopted = self.git.commit(&self.base, &format!("refs/heads/{branch}"))?.is_some();
        let stashes = keep::stashes(&self.git, &self.base)?;
        let add = if adopted {
            self.call_with(["worktree", "add", "--quiet"], &path, &[&branch])
        } else {
            self.call_with(["worktree", "add", "--quiet"], &path, &["-b", &branch, "HEAD"])
        };
        if let Err(error) = add {
            // A checkout that was cut short, or that a hook spoke against, is no lane.
            self.call(["worktree", "remove", "--force", "--force"], &path).ok();
            if !adopted {
                self.git.run(Call::new(&self.base, ["branch", "-D", "--", &branch])).ok();
            }
            return Err(error.into());
        }
        let admin = self.admin(&path)?;
        let commit = self.git.commit(&path, "HEAD")?.unwrap_or_default();
        write_state(&admin, &commit, &stashes)?;
        fs::remove_file(&mark).map_err(|source| LaneError::System { what: "remove", path: mark, source })?;
        let began = read_state(&admin).unwrap_or_default();
        Ok(Lane { name: name.to_owned(), path, admin, adopted, fresh: true, began })
    }

    /// What a `worktree add` that died with its engine left, at whatever point: an empty directory, one that git has on its
    /// list and may not find its way through yet, or one that it was taking away again, which it has struck off first.
    fn clear_half_made(&self, name: &str, path: &Path) -> Result<(), LaneError> {
        // Takes away nothing but an empty directory.
        fs::remove_dir(path).ok();
        let admin = registration(&self.common(&self.base)?, path);
        let mark = self.mark(name);
        if !mark.exists() && !admin.as_deref().is_some_and(is_half_made) {
            return Ok(());
        }
        if self.call(["worktree", "remove", "--force", "--force"], path).is_err() {
            for half in [Some(path), admin.as_deref()].into_iter().flatten() {
                absent(fs::remove_dir_all(half), half)?;
            }
        }
        absent(fs::remove_file(&mark), &mark)
    }

    /// A lane whose directory was deleted by hand is still on git's list, and its branch counts as taken. What its
    /// notes alone hold is kept before they go.
    fn forget(&self, name: &str, path: &Path) -> Result<(), LaneError> {
        let common = self.common(&self.base)?;
        let Some(admin) = registration(&common, path) else { return Ok(()) };
        let lost = keep::Lost {
            git: &self.git,
            repo: &self.base,
            common: &common,
            admin: &admin,
            began: &read_state(&admin).unwrap_or_default(),
            branch: &self.branch(name),
            refs: &keep::refs(&self.run, name),
        };
        lost.keep()?;
        Ok(self.call(["worktree", "remove", "--force"], path)?)
    }

    /// Whether the directory at `path` is a worktree of this run's repository, and its top.
    pub(super) fn is_own(&self, path: &Path) -> Result<bool, LaneError> {
        let is_real = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_real || !path.join(".git").is_file() {
            return Ok(false);
        }
        let top = match self.git.path(path, ["rev-parse", "--show-toplevel"]) {
            Ok(top) => top,
            Err(GitError::Refused { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let here = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(top == here && self.common(path)? == self.common(&self.base)?)
    }

    /// A lane that was half taken away when its engine died gets back what went: it was clean, git has all of it.
    fn come_back(&self, path: &Path) -> Result<(), LaneError> {
        let Some(admin) = registration(&self.common(&self.base)?, path) else { return Ok(()) };
        if !admin.join(GOING).exists() || !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
        let link = path.join(".git");
        if !link.exists() {
            let text = format!("gitdir: {}\n", admin.display());
            fs::write(&link, text).map_err(|source| LaneError::System {
                what: "write",
                path: link,
                source,
            })?;
        }
        leftovers::forget_set_up(&admin);
        self.git.run(Call::new(path, ["checkout-index", "--all", "--quiet"]).within(CHECKOUT)).ok();
        fs::remove_file(admin.join(GOING)).ok();
        Ok(())
    }

    /// A worktree whose repository was moved has lost its way back; git can find it again.
    fn is_repaired(&self, path: &Path) -> Result<bool, LaneError> {
        if !path.join(".git").is_file() || registration(&self.common(&self.base)?, path).is_none() {
            return Ok(false);
        }
        self.call(["worktree", "repair"], path).ok();
        self.is_own(path)
    }

    pub(super) fn admin(&self, path: &Path) -> Result<PathBuf, LaneError> {
        Ok(self.git.path(path, ["rev-parse", "--absolute-git-dir"])?)
    }

    fn set_up(&self, lane: &Lane, set_up: &mut dyn FnMut(&Path) -> Result<(), Fault>) -> Result<(), Fault> {
        let fault = |error: LaneError| refused(&lane.name, &error);
        // What an earlier leg left is work, whatever the set-up adds to it.
        let before = match lane.fresh {
            true => HashSet::new(),
            false => leftovers::others(&self.git, &lane.path).map_err(|error| fault(error.into()))?,
        };
        let done = set_up(&lane.path);
        let _one = lock(&self.one_at_a_time);
        if done.is_err() && lane.fresh {
            self.discard(lane);
        }
        done?;
        leftovers::remember_set_up(&self.git, lane, &before).map_err(fault)
    }

    /// Removes a lane that could not be set up, so that the next leg sets it up again.
    fn discard(&self, lane: &Lane) {
        let removed = self.call(["worktree", "remove", "--force", "--force"], &lane.path);
        if removed.is_ok() && !lane.adopted {
            let branch = self.branch(&lane.name);
            let at = self.git.commit(&self.base, &format!("refs/heads/{branch}"));
            if at.is_ok_and(|at| at.as_deref() == Some(lane.began.commit.as_str())) {
                self.git.run(Call::new(&self.base, ["branch", "-D", "--", &branch])).ok();
            }
        }
        fs::remove_dir(&self.root).ok();
    }

    /// Calls git with a path, the call of one that may take as long as a checkout.
    pub(super) fn call<const N: usize>(&self, words: [&str; N], path: &Path) -> Result<(), GitError> {
        self.call_with(words, path, &[])
    }

    fn call_with<const N: usize>(
        &self,
        words: [&str; N],
        path: &Path,
        more: &[&str],
    ) -> Result<(), GitError> {
        let words = words.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
        let call = Call::new(&self.base, words.chain(more.iter().map(AsRef::as_ref)));
        self.git.run(call.within(CHECKOUT)).map(drop)
    }
}

impl Lanes for GitLanes {
    fn enter(
        &self,
        name: &str,
        set_up: &mut dyn FnMut(&Path) -> Result<(), Fault>,
    ) -> Result<PathBuf, Fault> {
        let slot = Arc::clone(lock(&self.held).entry(name.to_owned()).or_default());
        let mut held = lock(&slot);
        if let Some(lane) = &*held {
            return Ok(lane.path.clone());
        }
        let lane = {
            let _one = lock(&self.one_at_a_time);
            self.provide_patiently(name).map_err(|error| refused(name, &error))?
        };
        if !leftovers::is_set_up(&lane.admin) {
            self.set_up(&lane, set_up)?;
        }
        Ok(held.insert(lane).path.clone())
    }
}

/// A lane whose directory an earlier leg left.
pub(super) fn adopted(name: &str, path: PathBuf, admin: PathBuf) -> Lane {
    let began = read_state(&admin).unwrap_or_default();
    Lane { name: name.to_owned(), path, admin, adopted: true, fresh: false, began }
}

fn is_not_gits_own(refusal: &GitError) -> bool {
    matches!(refusal, GitError::Refused { command, said } if command == "worktree" && !said.contains("fatal: "))
}

fn refused(name: &str, error: &LaneError) -> Fault {
    let lead = format!("worktree \"{name}\": ");
    Fault::ending(Cause::Setup, lead_detail(&lead, &error.to_string()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came of removing `path`, which may have been gone already.
fn absent(removed: io::Result<()>, path: &Path) -> Result<(), LaneError> {
    removed.or_else(|source| match source.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(LaneError::System { what: "remove", path: path.to_path_buf(), source }),
    })
}

/// Git's notes on the worktree at `path`, if it has any.
pub(super) fn registration(common: &Path, path: &Path) -> Option<PathBuf> {
    let wanted = resolved(path);
    let is_it = |admin: &PathBuf| {
        let Ok(text) = fs::read_to_string(admin.join("gitdir")) else { return false };
        // A relative link is relative to the notes.
        let link = admin.join(text.trim_end_matches('\n'));
        link.parent().is_some_and(|place| place == path || resolved(place) == wanted)
    };
    let entries = fs::read_dir(common.join("worktrees")).ok()?.flatten();
    entries.map(|entry| entry.path()).find(is_it)
}

/// A path of which only the last part may be gone.
fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.zip(path.file_name()).map_or_else(|| path.to_path_buf(), |(parent, name)| parent.join(name))
}

/// A checkout that died with its engine holds no work: git still has it locked, and no node was let in.
fn is_half_made(admin: &Path) -> bool {
    let is_locked = fs::read_to_string(admin.join("locked")).is_ok_and(|why| why.starts_with("initializing"));
    is_locked && !admin.join(STATE).exists()
}

fn write_state(admin: &Path, commit: &str, stashes: &[String]) -> Result<(), LaneError> {
    let path = admin.join(STATE);
    let lines = std::iter::once(commit).chain(stashes.iter().map(String::as_str));
    let text: String = lines.flat_map(|sha| [sha, "\n"]).collect();
    fs::write(&path, text).map_err(|source| LaneError::System { what: "write", path, source })
}

fn read_state(admin: &Path) -> Option<Began> {
    let path = admin.join(STATE);
    let text = fs::read_to_string(&path).ok()?;
    let since = fs::metadata(&path).and_then(|about| about.modified()).ok();
    let mut lines = text.lines().map(str::to_owned);
    Some(Began { commit: lines.next()?, stashes: lines.collect(), since })
}
