//! The guard of a leg: posted when it begins, dismissed when it has closed (`ARCHITECTURE` 6).
//!
//! A leg without a guard runs as well as any; what is lost is said.

use std::path::PathBuf;
use std::sync::Arc;

use crate::leg::open::Leg;
use crate::process::Launcher;
use crate::record::observe::{Notice, Observer};
use crate::record::{RunDir, aside};

impl Leg {
    /// Posts the guard, except over a rehearsal, which has no children.
    pub(super) fn post_guard(&self) {
        if self.order.rehearsal.is_some() {
            forget(&self.dir, &*self.observer);
        } else {
            post(&self.order.launcher, &self.dir, &self.observer);
        }
    }
}

/// Does something that is no leg under a guard of its own; for the run in `dir`, if it is for one.
pub fn guarded<T>(
    launcher: &Launcher,
    dir: Option<&RunDir>,
    observer: &Arc<dyn Observer>,
    work: impl FnOnce() -> T,
) -> T {
    match dir {
        Some(dir) => post(launcher, dir, observer),
        None => start(launcher, None, observer),
    }
    let done = work();
    launcher.dismiss_guard();
    done
}

/// Posts a guard over the children of `launcher`, for the run in `dir`.
pub(super) fn post(launcher: &Launcher, dir: &RunDir, observer: &Arc<dyn Observer>) {
    forget(dir, &**observer);
    start(launcher, Some(dir.path().to_owned()), observer);
}

fn start(launcher: &Launcher, place: Option<PathBuf>, observer: &Arc<dyn Observer>) {
    let observer = Arc::clone(observer);
    launcher.post_guard(place, Box::new(move |message| warn(&*observer, message)));
}

/// Removes what the guard of an earlier leg left.
fn forget(dir: &RunDir, observer: &dyn Observer) {
    if let Err(error) = aside::forget_guard(dir) {
        warn(observer, format!("what an earlier guard left cannot be removed: {error}"));
    }
}

fn warn(observer: &dyn Observer, message: String) {
    observer.notice(Notice::Warning { node: None, message });
}
