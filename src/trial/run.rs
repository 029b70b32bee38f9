//! Runs the tests of many files at once, as many as the machine has cores; results keep the order of the files.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::SharedClock;
use crate::record::Event;
use crate::trial::judge::{Difference, judge};
use crate::trial::play::{PlayError, play};
use crate::trial::suite::{Case, Suite};

/// What came of one test.
pub struct Outcome {
    /// The file, by its place in the list of suites.
    pub suite: usize,
    /// The test, by its place in the file.
    pub case: usize,
    /// Whether it is as expected.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
    /// The feed of its run, where the test did not come out as expected.
    pub events: Vec<Event>,
    /// The home of its run, where that is kept.
    pub kept: Option<PathBuf>,
}

/// Whether a test came out as expected.
pub enum Verdict {
    /// It did.
    Passed,
    /// It did not, in these points.
    Failed(Vec<Difference>),
    /// It could not be rehearsed.
    Broken(PlayError),
}

impl Outcome {
    /// Whether the test came out as expected.
    pub fn has_passed(&self) -> bool {
        matches!(self.verdict, Verdict::Passed)
    }
}

/// How tests are run.
#[derive(Clone)]
pub struct Manner {
    /// The directory that holds the home of each test.
    pub place: PathBuf,
    /// Whether these homes are kept.
    pub keep: bool,
    /// The time.
    pub clock: SharedClock,
}

/// Runs `wanted` tests of `suites`, by the places of file and test; returns what came of each, in this order.
///
/// # Errors
/// When no thread can be had.
pub fn run(
    suites: &Arc<Vec<Suite>>,
    wanted: &Arc<Vec<(usize, usize)>>,
    manner: &Manner,
) -> io::Result<Vec<Outcome>> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(wanted.len()).max(1);
    let next = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(Mutex::new(Vec::with_capacity(wanted.len())));
    let spawn = |n: usize| {
        let (suites, wanted, manner) = (Arc::clone(suites), Arc::clone(wanted), manner.clone());
        let (next, done) = (Arc::clone(&next), Arc::clone(&done));
        let work = move || {
            while let Some(&(suite, case)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = one(&suites[suite], suite, case, &manner);
                done.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
            }
        };
        thread::Builder::new().name(format!("test {n}")).spawn(work)
    };
    let threads = (0..workers).map(spawn).collect::<io::Result<Vec<_>>>()?;
    for thread in threads {
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
    let mut done = std::mem::take(&mut *done.lock().unwrap_or_else(PoisonError::into_inner));
    done.sort_by_key(|outcome| (outcome.suite, outcome.case));
    Ok(done)
}

fn one(suite: &Suite, suite_at: usize, case_at: usize, manner: &Manner) -> Outcome {
    let case = &suite.cases[case_at];
    let home = manner.place.join(format!("{}-{}", suite_at + 1, case_at + 1));
    let since = Instant::now();
    let (verdict, events) = verdict(suite, case, &home, manner);
    let kept = manner.keep.then_some(home.clone());
    if kept.is_none() {
        // What cannot be removed goes with the directory that holds it.
        fs::remove_dir_all(&home).ok();
    }
    Outcome { suite: suite_at, case: case_at, verdict, took: since.elapsed(), events, kept }
}

fn verdict(suite: &Suite, case: &Case, home: &Path, manner: &Manner) -> (Verdict, Vec<Event>) {
    let played = catch_unwind(AssertUnwindSafe(|| play(case, &suite.tested, home, &manner.clock)));
    match played.unwrap_or(Err(PlayError::Panic)) {
        Ok(played) => match judge(suite, case, &played) {
            none if none.is_empty() => (Verdict::Passed, Vec::new()),
            differences => (Verdict::Failed(differences), played.events),
        },
        Err(error) => (Verdict::Broken(error), Vec::new()),
    }
}
