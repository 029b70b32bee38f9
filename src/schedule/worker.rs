//! The worker threads: a pool that grows to the number of slots and is reused (`ARCHITECTURE` 4).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Select, Sender, TryRecvError, unbounded};

use crate::schedule::machine::UnitIx;
use crate::schedule::permits::Permit;
use crate::schedule::work::{Settled, Workload};

/// A unit on its way to a worker. Its slot travels with it and comes back with [`Done`].
struct Job<T> {
    unit: UnitIx,
    ticket: T,
    permit: Permit,
}

/// A unit that a worker has run.
#[derive(Debug)]
pub struct Done {
    /// The unit.
    pub unit: UnitIx,
    /// What came of it.
    pub settled: Settled,
    /// The slot that it held.
    pub permit: Permit,
}

/// The workers of one leg.
pub struct Pool<W: Workload> {
    work: Arc<W>,
    jobs: Sender<Job<W::Ticket>>,
    queue: Receiver<Job<W::Ticket>>,
    done: Sender<Done>,
    results: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
    running: usize,
}

impl<W: Workload> Pool<W> {
    /// A pool without threads yet.
    pub fn new(work: Arc<W>) -> Self {
        let (jobs, queue) = unbounded();
        let (done, results) = unbounded();
        Pool { work, jobs, queue, done, results, threads: Vec::new(), running: 0 }
    }

    /// Where results arrive. Each one taken must be told to [`Pool::took`].
    pub fn results(&self) -> &Receiver<Done> {
        &self.results
    }

    /// Counts a result that was taken.
    pub fn took(&mut self) {
        self.running -= 1;
    }

    /// Hands a unit to a worker.
    pub fn submit(&mut self, unit: UnitIx, ticket: W::Ticket, permit: Permit) {
        self.running += 1;
        if self.running > self.threads.len() {
            self.grow();
        }
        let job = Job { unit, ticket, permit };
        // The pool holds a receiver, so that the queue is open as long as there is a pool.
        self.jobs.send(job).ok();
    }

    fn grow(&mut self) {
        let (work, queue, done) = (Arc::clone(&self.work), self.queue.clone(), self.done.clone());
        let name = format!("worker-{}", self.threads.len() + 1);
        match Builder::new().name(name).spawn(move || serve(&*work, &queue, &done)) {
            Ok(thread) => self.threads.push(thread),
            // With at least one worker the unit is run, if later; with none the run cannot go on at all.
            Err(error) => assert!(!self.threads.is_empty(), "cannot start a worker thread: {error}"),
        }
    }

    /// Waits for the workers to end. Results not taken are lost.
    pub fn join(self) {
        drop(self.jobs);
        for thread in self.threads {
            // A worker catches the panics of its units; its own loop has none.
            thread.join().expect("a worker's loop does not panic");
        }
    }
}

fn serve<W: Workload>(work: &W, queue: &Receiver<Job<W::Ticket>>, done: &Sender<Done>) {
    while let Some(Job { unit, ticket, permit }) = next(queue) {
        let settled = catch_unwind(AssertUnwindSafe(|| work.run(unit, ticket)))
            .unwrap_or_else(|panic| work.panicked(unit, message(&*panic)));
        if done.send(Done { unit, settled, permit }).is_err() {
            return;
        }
    }
}

/// The next job, once there is one; `None` when there will be none. A plain `recv` would first spin, and on a machine
/// with few cores take the time of the very thread that is about to send.
fn next<T>(queue: &Receiver<Job<T>>) -> Option<Job<T>> {
    let mut wait = Select::new();
    wait.recv(queue);
    loop {
        match queue.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => drop(wait.ready()),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words")
}
