//! Runs children, and sees to it that nothing of them is left.
//!
//! One launcher serves one leg and is shared by all its workers; each runs its child on its own thread. Knows no
//! reason why a child is run or ended; the order of the last steps is the point of this file: read what the
//! child wrote, end what it left, reap it, and only then report.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::process::descendants::{Descendants, Family, Walk};
use crate::process::env::{RUN, mark_name, names_a_repository, scrub};
use crate::process::exit::ExitWatch;
use crate::process::guard::{Guard, Orders, Warn};
use crate::process::own::{self, Own};
use crate::process::remains::{self, GRACE, LOOK, STUBBORN};
use crate::process::start::{PipeId, Started, start};
use crate::process::vigil::{self, Inlet, Moments, Outlet, Report, Vigil};
use crate::process::{Cancel, Ended, Exit, How, Sink, SpawnError, Spec, Stdin, Streams};

/// What one read takes: a whole pipe.
const BUFFER: usize = 64 * 1024;

thread_local! {
    /// A worker's buffer, kept from child to child.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Starts children and sees to their ends; one per leg, shared by all workers.
#[derive(Debug)]
pub struct Launcher {
    base: Vec<(OsString, OsString)>,
    mark: String,
    descendants: Box<dyn Descendants>,
    portable: bool,
    /// Children that are not reaped yet: these numbers may be signalled while the lock is held.
    live: Mutex<BTreeSet<i32>>,
    /// Marks of children whose descendants were to be left running.
    kept: Mutex<Vec<String>>,
    killed: AtomicBool,
    /// The run, for the children to know it.
    run: RwLock<OsString>,
    guard: RwLock<Option<Guard>>,
    /// Held for reading from the look at `killed` until the new child is among `live`.
    starting: RwLock<()>,
}

impl Launcher {
    /// A launcher whose children carry a marker made of `run`. Give each leg a word of its own: at its end
    /// [`Launcher::sweep`] ends what carries it.
    pub fn new(run: &str) -> Self {
        match best() {
            Some(descendants) => Launcher::with(run, descendants, false),
            None => Launcher::portable(run),
        }
    }

    /// A launcher that uses nothing but what every Unix has. For tests; [`Launcher::new`] finds more.
    pub fn portable(run: &str) -> Self {
        Launcher::with(run, Box::new(Walk), true)
    }

    fn with(run: &str, descendants: Box<dyn Descendants>, portable: bool) -> Self {
        Launcher {
            base: scrub(std::env::vars_os()),
            mark: mark_name(run),
            descendants,
            portable,
            live: Mutex::default(),
            kept: Mutex::default(),
            killed: AtomicBool::new(false),
            run: RwLock::default(),
            guard: RwLock::default(),
            starting: RwLock::default(),
        }
    }

    /// The same for children that work in git worktrees: the directory alone tells them their repository.
    #[must_use]
    pub fn outside_repositories(mut self) -> Self {
        self.base.retain(|(name, _)| !names_a_repository(name));
        self
    }

    /// The name of the variable that marks this launcher's children.
    pub fn mark_name(&self) -> &str {
        &self.mark
    }

    /// Tells children from now on which run they are part of.
    pub fn name_run(&self, run: &str) {
        *self.run.write().unwrap_or_else(PoisonError::into_inner) = run.into();
    }

    /// Posts a guard that ends the children should this process die; it leaves its note in `place`, if there is one.
    /// `warn` hears, once, when there is no guard or no more.
    pub fn post_guard(&self, place: Option<PathBuf>, warn: Warn) {
        self.dismiss_guard();
        let warn: Arc<Warn> = Arc::new(warn);
        let hears = Arc::clone(&warn);
        match Guard::start(&Orders::here(place, &self.mark), Box::new(move |text| hears(text))) {
            Ok(guard) => {
                *self.guard.write().unwrap_or_else(PoisonError::into_inner) = Some(guard);
            }
            Err(error) => warn(format!(
                "its guard cannot be started ({error}): if omg itself is killed (SIGKILL), what its nodes started \
                 will go on running"
            )),
        }
    }

    /// Takes leave of the guard, at the end of a leg that closed; without it the guard ends what is left.
    pub fn dismiss_guard(&self) {
        if let Some(guard) = self.guard.write().unwrap_or_else(PoisonError::into_inner).take() {
            guard.dismiss();
        }
    }

    /// Runs `spec` to its end on the calling thread.
    ///
    /// # Errors
    /// When the child could not be started, or a sink failed.
    pub fn run(&self, mut spec: Spec, streams: Streams<'_>, cancel: &Cancel) -> Result<Ended, SpawnError> {
        let begun = Instant::now();
        let merged = matches!(streams, Streams::Merged(_));
        let (live, input, outputs) = self.start(&spec, merged, cancel)?;
        let bytes = match std::mem::replace(&mut spec.stdin, Stdin::Null) {
            Stdin::Null => Vec::new(),
            Stdin::Bytes(bytes) => bytes,
        };
        let watched = Watched {
            live,
            inlet: input.map(|pipe| Inlet { pipe, bytes, written: 0 }),
            outlets: outlets(outputs, streams),
            deadline: spec.timeout.and_then(|it| begun.checked_add(it)),
        };
        self.see_out(&spec, watched, cancel)
            .map_err(|source| SpawnError::Lost { program: spec.program.clone(), source })
    }

    /// Starts `spec`, unless it is too late for that. [`Launcher::kill_all`] sees every child that this starts.
    fn start(
        &self,
        spec: &Spec,
        merged: bool,
        cancel: &Cancel,
    ) -> Result<(Live<'_>, Option<PipeWriter>, Vec<PipeReader>), SpawnError> {
        let _starting = self.starting.read().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_fired() || self.is_killed() {
            return Err(SpawnError::Cancelled);
        }
        if spec.leave_running {
            self.tell_guard(|guard| guard.keep(&spec.mark));
        }
        let run = self.run.read().unwrap_or_else(PoisonError::into_inner).clone();
        let over = [(OsStr::new(&self.mark), OsStr::new(&spec.mark)), (OsStr::new(RUN), run.as_os_str())];
        // Without a run there is none to tell of, and an outer one's name stays.
        let over = &over[..if run.is_empty() { 1 } else { 2 }];
        let mut guarded = None;
        let Started { own, input, outputs } = start(spec, merged, &self.base, over, |pipe| {
            if !spec.leave_running {
                self.tell_guard(|guard| guard.starting(pipe));
                guarded = Some(pipe);
            }
        })?;
        Ok((Live::enter(self, own, guarded), input, outputs))
    }

    /// Kills every child and everything marked by this launcher, now; nothing is started afterwards. For a second
    /// signal, when the program is about to leave. The threads that watch the children see their ends.
    pub fn kill_all(&self) {
        self.killed.store(true, Ordering::SeqCst);
        // Whoever looked before the line above may be between the start and the list: it is waited for, since the
        // program leaves right after this and nobody would be there to end that child.
        drop(self.starting.write().unwrap_or_else(PoisonError::into_inner));
        for pid in self.live().iter().filter_map(|it| Pid::from_raw(*it)) {
            own::signal_group(pid, Signal::KILL);
        }
        let kept = self.kept().clone();
        remains::end(&|| self.descendants.left_by_run(&self.mark, &kept), &|_| (), Duration::ZERO);
        // What cleared its environment is adopted, and so can be found, once those that it came from are gone.
        // Each of those is waited for by a thread of its own, which has no word for this one: it looks at the list.
        let until = Instant::now() + STUBBORN;
        while !self.live().is_empty() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        if kept.is_empty() {
            remains::end(&|| self.descendants.unclaimed(), &|_| (), Duration::ZERO);
        }
    }

    /// Ends everything that still carries this launcher's mark, except what was to be left running. For the end
    /// of a leg, when no child is watched any more.
    pub fn sweep(&self) {
        let kept = self.kept().clone();
        remains::end(&|| self.descendants.left_by_run(&self.mark, &kept), &|_| (), self.grace());
        self.end_unclaimed();
    }

    /// Ends what a child marked `mark` was allowed to leave running, after all.
    pub fn end_left(&self, mark: &str) {
        self.kept().retain(|kept| kept != mark);
        let entry = format!("{}={mark}", self.mark).into_bytes();
        remains::end(&|| self.descendants.marked(&entry), &|_| (), self.grace());
    }

    fn tell_guard(&self, what: impl FnOnce(&Guard)) {
        self.guard.read().unwrap_or_else(PoisonError::into_inner).as_ref().inspect(|guard| what(guard));
    }

    fn see_out(&self, spec: &Spec, watched: Watched<'_, '_>, cancel: &Cancel) -> io::Result<Ended> {
        let own = watched.live.own();
        let mark = format!("{}={}", self.mark, spec.mark).into_bytes();
        let mut tree = Tree {
            descendants: &*self.descendants,
            family: Family { leader: own.pid(), mark, noted: Vec::new() },
        };
        let vigil = Vigil {
            own,
            exit: ExitWatch::new(own.pid(), self.portable)?,
            inlet: watched.inlet,
            outlets: watched.outlets,
            cancel,
            ladder: spec.ladder,
            deadline: watched.deadline,
            moments: &mut tree,
        };
        let mut report = with_buffer(|buffer| vigil.keep(buffer))?;
        let settled = self.settle_tree(spec, own, &tree.family, &mut report);
        let status = watched.live.leave()?;
        self.end_unclaimed();
        match report.failed {
            Some(error) => Err(error),
            None => Ok(Ended {
                exit: exit(status),
                how: report.how,
                leaky: settled.leaky,
                left_running: settled.left_running,
            }),
        }
    }

    /// Ends what is left of a tree, or lists it when it was to be left. Only a child that left by itself, or
    /// had said all that was wanted, leaves anything running: one that was ended takes its tree along.
    fn settle_tree(&self, spec: &Spec, own: &Own, family: &Family, report: &mut Report) -> Settled {
        let left = self.descendants.left(family);
        if left.is_empty() {
            return Settled::default();
        }
        let by_itself = matches!(report.how, How::Itself | How::Enough) && report.failed.is_none();
        if spec.leave_running && by_itself {
            self.kept().push(spec.mark.clone());
            report.held.drain(..).for_each(vigil::drain_away);
            let pids: BTreeSet<_> = left.iter().map(|it| it.pid.as_raw_pid().unsigned_abs()).collect();
            return Settled { leaky: false, left_running: pids.into_iter().collect() };
        }
        // A tree that is being ended dies in any order; that it holds its pipes meanwhile means nothing.
        let leaky = by_itself && vigil::stay_held(&report.held);
        let grace = if report.killed { Duration::ZERO } else { self.grace() };
        remains::end(&|| self.descendants.left(family), &|signal| own.signal_group(signal), grace);
        Settled { leaky, left_running: Vec::new() }
    }

    /// Ends the adopted processes that no marker claims, once no child runs that they could belong to.
    fn end_unclaimed(&self) {
        if self.kept().is_empty() && own::known().is_empty() {
            remains::end(&|| self.descendants.unclaimed(), &|_| (), self.grace());
        }
    }

    fn grace(&self) -> Duration {
        if self.is_killed() { Duration::ZERO } else { GRACE }
    }

    fn is_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    fn live(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Vec<String>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of the rest of a tree.
#[derive(Default)]
struct Settled {
    leaky: bool,
    left_running: Vec<u32>,
}

/// A started child with all that is watched of it.
struct Watched<'l, 's> {
    live: Live<'l>,
    inlet: Option<Inlet>,
    outlets: Vec<Outlet<'s>>,
    deadline: Option<Instant>,
}

/// A child among the launcher's live ones; taken off the list before it is reaped.
struct Live<'a> {
    launcher: &'a Launcher,
    own: Option<Own>,
}

impl<'a> Live<'a> {
    fn enter(launcher: &'a Launcher, own: Own, guarded: Option<PipeId>) -> Self {
        if let Some(pipe) = guarded {
            launcher.tell_guard(|guard| guard.started(own.pid(), pipe));
        }
        launcher.live().insert(own.pid().as_raw_pid());
        Live { launcher, own: Some(own) }
    }

    fn own(&self) -> &Own {
        self.own.as_ref().expect("the child is taken out by leave and drop only, which consume this value")
    }

    fn leave(mut self) -> io::Result<ExitStatus> {
        let own =
            self.take().expect("the child is taken out by leave and drop only, which consume this value");
        own.reap()
    }

    fn take(&mut self) -> Option<Own> {
        let own = self.own.take()?;
        self.launcher.live().remove(&own.pid().as_raw_pid());
        self.launcher.tell_guard(|guard| guard.ended(own.pid()));
        Some(own)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

struct Tree<'a> {
    descendants: &'a dyn Descendants,
    family: Family,
}

impl Moments for Tree<'_> {
    fn before_signal(&mut self) {
        self.descendants.note(&mut self.family);
    }

    fn tidy(&mut self) {
        self.descendants.tidy();
    }
}

#[cfg(target_os = "linux")]
fn best() -> Option<Box<dyn Descendants>> {
    crate::process::descendants::Marked::new().map(|it| Box::new(it) as Box<dyn Descendants>)
}

#[cfg(not(target_os = "linux"))]
fn best() -> Option<Box<dyn Descendants>> {
    None
}

fn outlets<'a>(pipes: Vec<PipeReader>, streams: Streams<'a>) -> Vec<Outlet<'a>> {
    let sinks: Vec<&'a mut dyn Sink> = match streams {
        Streams::Split { stdout, stderr } => vec![stdout, stderr],
        Streams::Merged(both) => vec![both],
    };
    pipes.into_iter().zip(sinks).map(|(pipe, sink)| Outlet::new(pipe, sink)).collect()
}

/// Lends this thread's buffer; a sink that runs a child of its own gets a fresh one.
fn with_buffer<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = SPARE.take();
    buffer.resize(BUFFER, 0);
    let result = work(&mut buffer);
    SPARE.replace(buffer);
    result
}

pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}
