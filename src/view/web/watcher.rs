//! Tells when something in a run's directory changed: by the operating system, and by a slow look round.
//!
//! One thread for all readers. While nobody reads it sleeps for good. What changes without a trace, as a process does
//! that dies, is found by the look round, and so is everything where the system tells of nothing.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// How often everything open is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Watches directories.
pub(super) struct Watcher {
    to: Sender<Note>,
    system: Mutex<System>,
}

struct System {
    /// `None` where the operating system tells nothing.
    watcher: Option<RecommendedWatcher>,
    /// How often each directory was asked for.
    watched: HashMap<PathBuf, usize>,
}

enum Note {
    Changed(Vec<PathBuf>),
    /// Somebody began to read.
    Awake,
    End,
}

/// What is done about changes.
pub(super) trait Heed: Send {
    /// Something about `paths` changed.
    fn changed(&mut self, paths: &BTreeSet<PathBuf>);
    /// It is time to look at everything.
    fn look(&mut self);
    /// Whether nobody would notice.
    fn is_idle(&self) -> bool;
}

impl Watcher {
    /// A watcher, and what it hears; [`attend`] does something about that.
    pub(super) fn new() -> (Self, Notes) {
        let (to, from) = unbounded();
        let heard = to.clone();
        let tell = move |event: notify::Result<notify::Event>| {
            // That somebody reads changes nothing, and that a writer closed a file may mean that it died.
            if let Ok(event) = event
                && !is_reading(event.kind)
            {
                heard.send(Note::Changed(event.paths)).ok();
            }
        };
        let watcher = notify::recommended_watcher(tell).ok();
        let system = Mutex::new(System { watcher, watched: HashMap::new() });
        (Watcher { to, system }, Notes(from))
    }

    /// Watches `directory`, not what lies below it, once more; `false` when it cannot be, as one that is not there.
    pub(super) fn watch(&self, directory: &Path) -> bool {
        let mut system = self.system();
        let System { watcher, watched } = &mut *system;
        let times = watched.entry(directory.to_path_buf()).or_default();
        *times += 1;
        let is_new = *times == 1;
        let begin = |it: &mut RecommendedWatcher| it.watch(directory, RecursiveMode::NonRecursive).is_ok();
        let is_watched = !is_new || watcher.as_mut().is_some_and(begin);
        if !is_watched {
            // The look round finds what happens in it.
            watched.remove(directory);
        }
        drop(system);
        self.to.send(Note::Awake).ok();
        is_watched
    }

    /// Takes back one [`Watcher::watch`].
    pub(super) fn forget(&self, directory: &Path) {
        let mut system = self.system();
        let System { watcher, watched } = &mut *system;
        let Some(times) = watched.get_mut(directory) else { return };
        *times -= 1;
        if *times == 0 {
            watched.remove(directory);
            if let Some(watcher) = watcher {
                watcher.unwatch(directory).ok();
            }
        }
    }

    /// Ends [`attend`].
    pub(super) fn end(&self) {
        self.to.send(Note::End).ok();
    }

    fn system(&self) -> std::sync::MutexGuard<'_, System> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_reading(kind: EventKind) -> bool {
    use notify::event::{AccessKind, AccessMode};
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// What a watcher hears.
pub(super) struct Notes(Receiver<Note>);

/// Heeds what `notes` bring, on a thread of its own, until the watcher ends.
///
/// # Errors
/// When there is no thread.
pub(super) fn attend(notes: Notes, mut heed: impl Heed + 'static) -> io::Result<JoinHandle<()>> {
    let body = move || {
        let mut looked = Instant::now();
        loop {
            let next = match heed.is_idle() {
                true => notes.0.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => notes.0.recv_timeout(LOOK.saturating_sub(looked.elapsed())),
            };
            let mut paths = BTreeSet::new();
            let first = match next {
                Ok(note) => Some(note),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // What came meanwhile is one change.
            for note in first.into_iter().chain(notes.0.try_iter()) {
                match note {
                    Note::Changed(changed) => paths.extend(changed),
                    Note::Awake => {}
                    Note::End => return,
                }
            }
            if !paths.is_empty() {
                heed.changed(&paths);
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                heed.look();
            }
        }
    };
    thread::Builder::new().name("web watcher".to_owned()).spawn(body)
}
