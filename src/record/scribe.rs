//! Keeps what attempts say ([`super::attempts`]) on a thread of its own, a little later and many at once.
//!
//! A directory and its two or three files are most of the files that a node creates, and nobody waits for them. On its
//! way a node would start its child, and hand on its verdict, that much later; and each sync of the feed would write
//! a few of them along, where all the files of a moment cost the file system's journal hardly more than one.
//! They are written in the order in which they were said; [`Scribe::flush`] waits for what was said so far.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::graph::NodeId;
use crate::record::RunDir;
use crate::record::attempts::{self, AttemptError, AttemptId, Folder, Said};
use crate::record::observe::{Notice, Observer};

/// How long what was said may wait for more: too short for a person to notice.
const GATHER: Duration = Duration::from_millis(25);
/// How much may wait; who says more waits for the disk.
const WAITING_BYTES_MAX: usize = 2 * 1024 * 1024;
/// What a waiting order takes beside its text.
const ORDER_BYTES: usize = 256;

/// The only writer of a run's `attempts` directory. Shared by reference between threads; dropping it writes what is left.
pub struct Scribe {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// What the scribe's thread and its callers share.
struct Desk {
    run: RunDir,
    observer: Arc<dyn Observer>,
    tray: Mutex<Tray>,
    /// Something is to be written, or is to be written now.
    news: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct Tray {
    orders: Vec<Order>,
    bytes: usize,
    /// How many orders were ever given, and how many of them were carried out.
    given: u64,
    done: u64,
    hurry: bool,
    closed: bool,
}

struct Order {
    node: NodeId,
    id: AttemptId,
    said: Said,
    text: Vec<u8>,
}

impl Scribe {
    /// Starts a scribe for `run`. On a machine that has no thread left it writes on the threads of its callers.
    pub fn start(run: RunDir, observer: Arc<dyn Observer>) -> Self {
        let (tray, news, written) = Default::default();
        let desk = Arc::new(Desk { run, observer, tray, news, written });
        let worker = Arc::clone(&desk);
        let thread = thread::Builder::new().name("scribe".to_owned()).spawn(move || worker.serve()).ok();
        Scribe { desk, thread }
    }

    /// Keeps what an attempt of `node` said. A failure is told to the observer and costs nobody anything.
    pub fn keep(&self, node: &NodeId, id: AttemptId, said: Said, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let order = Order { node: node.clone(), id, said, text: attempts::bounded(text).into_owned() };
        if self.is_at_work() { self.give(order) } else { self.desk.carry_out(&mut [order]) }
    }

    fn give(&self, order: Order) {
        let mut tray = self.desk.lock();
        while tray.bytes >= WAITING_BYTES_MAX && self.is_at_work() {
            tray = self.desk.demand(tray);
        }
        tray.bytes += order.text.len() + ORDER_BYTES;
        tray.given += 1;
        tray.orders.push(order);
        if tray.orders.len() == 1 || tray.bytes >= WAITING_BYTES_MAX / 2 {
            self.desk.news.notify_one();
        }
    }

    /// Returns once everything said so far is in its files.
    pub fn flush(&self) {
        let mut tray = self.desk.lock();
        let given = tray.given;
        while tray.done < given && self.is_at_work() {
            tray = self.desk.demand(tray);
        }
    }

    fn is_at_work(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Scribe {
    fn drop(&mut self) {
        self.desk.lock().closed = true;
        self.desk.news.notify_one();
        self.thread.take().map(|thread| thread.join().ok());
    }
}

impl Desk {
    /// Asks for what waits to be written at once, and waits a moment for it.
    fn demand<'a>(&'a self, mut tray: MutexGuard<'a, Tray>) -> MutexGuard<'a, Tray> {
        tray.hurry = true;
        self.news.notify_one();
        self.written.wait_timeout(tray, GATHER).unwrap_or_else(PoisonError::into_inner).0
    }

    fn serve(&self) {
        while let Some(mut orders) = self.gather() {
            self.carry_out(&mut orders);
            self.lock().done += orders.len() as u64;
            self.written.notify_all();
        }
    }

    /// Waits for orders and for more of them; `None` when there will be none.
    fn gather(&self) -> Option<Vec<Order>> {
        let idle = |tray: &mut Tray| tray.orders.is_empty() && !tray.closed;
        let tray = self.news.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let patient = |tray: &mut Tray| !tray.hurry && !tray.closed && tray.bytes < WAITING_BYTES_MAX / 2;
        let waited = self.news.wait_timeout_while(tray, GATHER, patient);
        let (mut tray, _) = waited.unwrap_or_else(PoisonError::into_inner);
        tray.hurry = false;
        tray.bytes = 0;
        let orders = mem::take(&mut tray.orders);
        (!orders.is_empty()).then_some(orders)
    }

    /// Writes each node's in their order; its folder is looked at once for all of them.
    fn carry_out(&self, orders: &mut [Order]) {
        orders.sort_by(|one, other| one.node.cmp(&other.node));
        for of_node in orders.chunk_by(|one, other| one.node == other.node) {
            let node = &of_node[0].node;
            if let Err(error) = keep(&self.run, node, of_node) {
                let node = Some(node.clone());
                self.observer.notice(Notice::Warning { node, message: error.to_string() });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(run: &RunDir, node: &NodeId, orders: &[Order]) -> Result<(), AttemptError> {
    let folder = Folder::open(run, node)?;
    orders.iter().try_for_each(|order| folder.keep(order.id, order.said, &order.text))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;
    use crate::record::excerpt::KEPT_BYTES_MAX;

    const FIRST: AttemptId = AttemptId { leg: 1, round: 0, attempt: 1 };

    #[derive(Default)]
    struct Heard(Mutex<Vec<Notice>>);

    impl Observer for Heard {
        fn notice(&self, notice: Notice) {
            self.0.lock().unwrap().push(notice);
        }
    }

    fn place() -> (tempfile::TempDir, RunDir, NodeId) {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::new(home.path().to_path_buf());
        (home, run, NodeId::parse("a").unwrap())
    }

    #[test]
    fn what_was_said_is_there_after_a_flush_and_after_the_end() {
        let (_home, run, node) = place();
        let scribe = Scribe::start(run.clone(), Arc::new(Heard::default()));
        scribe.keep(&node, FIRST, Said::Prompt, b"well?");
        scribe.keep(&node, FIRST, Said::Stderr, b"");
        scribe.flush();
        let said = |run: &RunDir| attempts::list(run, &node).unwrap()[0].said.len();
        assert_eq!(said(&run), 1);
        scribe.keep(&node, FIRST, Said::Reply, &vec![b'y'; KEPT_BYTES_MAX * 2]);
        drop(scribe);
        assert_eq!(said(&run), 2);
        assert!(
            attempts::read(&attempts::list(&run, &node).unwrap()[0].said[1].1).unwrap().contains("dropped")
        );
    }

    #[test]
    fn nothing_said_leaves_no_trace() {
        let (_home, run, node) = place();
        let scribe = Scribe::start(run.clone(), Arc::new(Heard::default()));
        scribe.keep(&node, FIRST, Said::Stderr, b"");
        drop(scribe);
        assert!(!run.path().join("attempts").exists());
        assert_eq!(attempts::list(&run, &node).unwrap(), []);
    }

    #[test]
    fn a_failure_is_a_warning_that_names_the_node() {
        let (_home, run, node) = place();
        fs::write(run.path().join("attempts"), "in the way").unwrap();
        let heard = Arc::new(Heard::default());
        let scribe = Scribe::start(run, Arc::clone(&heard) as Arc<dyn Observer>);
        scribe.keep(&node, FIRST, Said::Prompt, b"well?");
        scribe.flush();
        let heard = heard.0.lock().unwrap();
        assert!(
            matches!(&heard[..], [Notice::Warning { node: Some(named), .. }] if *named == node),
            "{heard:?}"
        );
    }
}
