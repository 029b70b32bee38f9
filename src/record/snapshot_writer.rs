//! Keeps `state.json` up with a run, without a run waiting for it (`ARCHITECTURE` 5.3, FACTS 6.2, DECISIONS 30).
//!
//! A thread of its own owns the document: what never changes is encoded when the leg opens, a record when it is handed
//! over, and a write only copies these bytes to a temporary file, syncs it and renames it. How often it writes follows
//! what a write costs, so that snapshots never take more than a tenth of the time however large they grow.
//! Knows no schedule: its caller decides what must be on disk before something is announced, and calls `flush`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select, unbounded};
use thiserror::Error;

use crate::graph::NodeId;
use crate::record::document::Document;
use crate::record::event::Skipped;
use crate::record::observe::{Notice, Observer};
use crate::record::snapshot::GateState;
use crate::record::{Record, RunDir, Snapshot, private};

/// What a temporary snapshot is called, before random letters.
pub(crate) const TEMPORARY: &str = "state.json.tmp-";
/// A small snapshot takes a tenth of a millisecond, but each frees a file, which a file system may pass over one by one for
/// a minute whenever it makes a new one: nodes that settle faster than this share a write.
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// How far behind a snapshot may fall, beside the write itself.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A warning names so many nodes, and counts the rest.
const NAMED_MAX: usize = 10;

/// How soon a settled node is in the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At most one paced write behind; the feed has it at once.
    #[default]
    Paced,
    /// Before [`SnapshotWriter::record`] returns.
    Strict,
}

/// Why the snapshot on disk is not the newest.
#[derive(Clone, Debug, Error)]
pub enum SnapshotError {
    /// The writer could not be started.
    #[error("{}: cannot start writing the snapshot: {source}", path.display())]
    Start {
        /// The snapshot.
        path: PathBuf,
        /// What came of it.
        source: Arc<io::Error>,
    },
    /// The file system refused.
    #[error("{}: cannot write the snapshot: {source}", path.display())]
    Write {
        /// The snapshot.
        path: PathBuf,
        /// What came of it.
        source: Arc<io::Error>,
    },
    /// The writer's thread ended before its time.
    #[error("{}: nothing writes the snapshot any more", path.display())]
    Gone {
        /// The snapshot.
        path: PathBuf,
    },
}

/// The only writer of a run's snapshot. Shared by reference between threads; dropping it writes what is left.
pub struct SnapshotWriter {
    path: PathBuf,
    durability: Durability,
    changes: Option<Sender<Change>>,
    demands: Option<Sender<Demand>>,
    thread: Option<JoinHandle<()>>,
}

type Answer = Sender<Result<(), SnapshotError>>;

/// What is to be in the snapshot from now on. A change wakes the writer's thread only where nothing is unsaved yet:
/// while that waits for its next turn a run hands over its records for nothing.
enum Change {
    Record { node: NodeId, entry: Box<[u8]> },
    Gate(GateState),
    Skipped(Vec<Skipped>),
}

/// Write now, whatever the pace: what changed, or (`always`) also what did not.
struct Demand {
    always: bool,
    answer: Answer,
}

impl SnapshotWriter {
    /// Starts a writer whose document is `snapshot`: a new run's, without nodes, or the one that a resume loaded.
    /// Nothing is written before something changes or [`write_initial`](Self::write_initial) asks.
    pub fn start(
        run: &RunDir,
        snapshot: Snapshot,
        durability: Durability,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, SnapshotError> {
        let path = run.snapshot();
        let failed =
            |source: io::Error| SnapshotError::Start { path: path.clone(), source: Arc::new(source) };
        let document = Document::new(snapshot).map_err(|error| failed(error.into()))?;
        let (changes, changed) = unbounded();
        let (demands, demanded) = unbounded();
        let paced = durability == Durability::Paced;
        let keeper = Keeper { path: path.clone(), document, observer, unsaved: Unsaved::default(), paced };
        let run = move || keeper.run(&changed, &demanded);
        let thread = thread::Builder::new().name("snapshot".to_owned()).spawn(run).map_err(failed)?;
        let (changes, demands) = (Some(changes), Some(demands));
        Ok(SnapshotWriter { path, durability, changes, demands, thread: Some(thread) })
    }

    /// Writes the document as it stands, and returns once it is on disk.
    pub fn write_initial(&self) -> Result<(), SnapshotError> {
        self.write(true)
    }

    /// Says why nothing could be written here, without writing anything that stays.
    pub fn could_write(&self) -> Result<(), SnapshotError> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let refused = |source| SnapshotError::Write { path: self.path.clone(), source: Arc::new(source) };
        private::temporary(directory, TEMPORARY).map(drop).map_err(refused)
    }

    /// Takes over the record of `node` in place of an earlier one. A failure is told to the observer and made good
    /// by the next write.
    pub fn record(&self, node: &NodeId, record: &Record) {
        self.record_all([(node, record)]);
    }

    /// Takes over several records at once, which a strict writer writes together.
    pub fn record_all<'a>(&self, records: impl IntoIterator<Item = (&'a NodeId, &'a Record)>) {
        for (node, record) in records {
            self.change(Change::Record { node: node.clone(), entry: Document::entry(node.as_str(), record) });
        }
        if self.is_strict() {
            // The observer has heard of it.
            self.flush().ok();
        }
    }

    /// Whether a record is on disk when [`record_all`](Self::record_all) returns.
    pub fn is_strict(&self) -> bool {
        self.durability == Durability::Strict
    }

    /// Takes over where the gates stand.
    pub fn set_gate(&self, gate: GateState) {
        self.change(Change::Gate(gate));
    }

    /// Takes over which nodes never ran.
    pub fn set_skipped(&self, skipped: Vec<Skipped>) {
        self.change(Change::Skipped(skipped));
    }

    /// Returns once everything taken over so far is on disk, or says why it is not.
    pub fn flush(&self) -> Result<(), SnapshotError> {
        self.write(false)
    }

    fn write(&self, always: bool) -> Result<(), SnapshotError> {
        let (answer, answered) = bounded(1);
        // A thread that is gone has dropped its end, and the answer with it.
        self.demands.as_ref().map(|demands| demands.send(Demand { always, answer }).ok());
        answered.recv().unwrap_or_else(|_| Err(SnapshotError::Gone { path: self.path.clone() }))
    }

    fn change(&self, change: Change) {
        // A thread that is gone shows at the next flush.
        self.changes.as_ref().map(|changes| changes.send(change).ok());
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        drop((self.changes.take(), self.demands.take()));
        // That it panicked shows as `Gone` at the last flush; a second panic here would only hide the first.
        self.thread.take().map(|thread| thread.join().ok());
    }
}

/// The writer's thread.
struct Keeper {
    path: PathBuf,
    document: Document,
    observer: Arc<dyn Observer>,
    unsaved: Unsaved,
    /// Whether it writes by itself, or on demand only.
    paced: bool,
}

/// What the file lacks.
#[derive(Default)]
struct Unsaved {
    changed: bool,
    /// Whether something changed since the last attempt to write: one that failed is made good by the next.
    untried: bool,
    nodes: Vec<NodeId>,
}

impl Keeper {
    fn run(mut self, changes: &Receiver<Change>, demands: &Receiver<Demand>) {
        let mut not_before = Instant::now();
        while let Some(first) = self.wait(not_before, changes, demands) {
            let demands: Vec<Demand> = first.into_iter().chain(demands.try_iter()).collect();
            // What was handed over before a demand belongs into its write, and what came meanwhile may.
            self.take_all(changes);
            let always = demands.iter().any(|demand| demand.always);
            let due = self.unsaved.untried && Instant::now() >= not_before;
            let mut outcome = Ok(());
            if always || self.unsaved.changed && (due || !demands.is_empty()) {
                let begun = Instant::now();
                outcome = self.write();
                not_before = Instant::now() + pause_after(begun.elapsed());
            }
            answer_all(demands, &outcome);
        }
        self.take_all(changes);
        if self.unsaved.changed {
            // The observer has heard of it, and nobody waits for an answer.
            self.write().ok();
        }
    }

    /// Waits for something to do: a demand, or (`Some(None)`) a change or the time of a paced write. `None` at the
    /// end of the leg.
    fn wait(
        &mut self,
        not_before: Instant,
        changes: &Receiver<Change>,
        demands: &Receiver<Demand>,
    ) -> Option<Option<Demand>> {
        if !self.paced {
            return demands.recv().ok().map(Some);
        }
        if self.unsaved.untried {
            return match demands.recv_deadline(not_before) {
                Ok(demand) => Some(Some(demand)),
                Err(RecvTimeoutError::Timeout) => Some(None),
                Err(RecvTimeoutError::Disconnected) => None,
            };
        }
        select! {
            recv(demands) -> demand => demand.ok().map(Some),
            recv(changes) -> change => change.ok().map(|change| {
                self.take(change);
                None
            }),
        }
    }

    fn take_all(&mut self, changes: &Receiver<Change>) {
        changes.try_iter().for_each(|change| self.take(change));
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Record { node, entry } => {
                self.document.set_entry(node.as_str(), entry);
                self.unsaved.nodes.push(node);
            }
            Change::Gate(gate) => self.document.set_gate(&gate),
            Change::Skipped(skipped) => self.document.set_skipped(&skipped),
        }
        self.unsaved.changed = true;
        self.unsaved.untried = true;
    }

    fn write(&mut self) -> Result<(), SnapshotError> {
        match replace(&self.path, &self.document) {
            Ok(()) => {
                self.unsaved = Unsaved::default();
                Ok(())
            }
            Err(source) => {
                let error = SnapshotError::Write { path: self.path.clone(), source: Arc::new(source) };
                self.unsaved.changed = true;
                self.unsaved.untried = false;
                self.observer.notice(self.unsaved.warning(&error));
                Err(error)
            }
        }
    }
}

impl Unsaved {
    fn warning(&self, error: &SnapshotError) -> Notice {
        let mut names: Vec<String> = Vec::new();
        for node in &self.nodes {
            let name = format!("\"{node}\"");
            if !names.contains(&name) && names.len() < NAMED_MAX {
                names.push(name);
            }
        }
        let more = if self.nodes.len() > names.len() { " and others" } else { "" };
        let missing = match names.len() {
            0 => String::new(),
            _ => format!("; not in it yet: {}{more}", names.join(", ")),
        };
        let node = match self.nodes.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        Notice::Warning { node, message: format!("{error}{missing}") }
    }
}

fn answer_all(demands: Vec<Demand>, outcome: &Result<(), SnapshotError>) {
    for demand in demands {
        // Whoever asked may have given up.
        demand.answer.send(outcome.clone()).ok();
    }
}

/// How long the next write waits after one that took `took`: nine times that, within what a person does not notice and
/// what a reader can bear.
fn pause_after(took: Duration) -> Duration {
    took.saturating_mul(9).clamp(PAUSE_MIN, PAUSE_MAX)
}

/// Puts `document` at `path`: whole, durable, in place of whatever file or link has the name.
fn replace(path: &Path, document: &Document) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let temporary = private::temporary(directory, TEMPORARY)?;
    let mut buffered = io::BufWriter::with_capacity(128 * 1024, temporary.as_file());
    document.write_to(&mut buffered)?;
    io::Write::flush(&mut buffered)?;
    drop(buffered);
    temporary.as_file().sync_data()?;
    temporary.persist(path).map_err(|refused| refused.error)?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Mutex;

    use serde_json::value::RawValue;

    use super::*;
    use crate::record::Verdict;
    use crate::record::event::SkipWhy;

    const EMPTY: &str = r#"{"schema":3,"run_id":"1-a","graph":{"nodes":[]}}"#;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Notice>>);

    impl Observer for Heard {
        fn notice(&self, notice: Notice) {
            self.0.lock().unwrap().push(notice);
        }
    }

    struct Run {
        home: tempfile::TempDir,
        directory: RunDir,
        heard: Arc<Heard>,
    }

    impl Run {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let directory = RunDir::new(home.path().join("run"));
            fs::create_dir(directory.path()).unwrap();
            Run { home, directory, heard: Arc::default() }
        }

        fn start(&self, durability: Durability) -> SnapshotWriter {
            let snapshot = serde_json::from_str(EMPTY).unwrap();
            SnapshotWriter::start(&self.directory, snapshot, durability, self.heard.clone()).unwrap()
        }

        fn on_disk(&self) -> Snapshot {
            serde_json::from_slice(&fs::read(self.directory.snapshot()).unwrap()).unwrap()
        }

        fn ids(&self) -> Vec<String> {
            self.on_disk().nodes.into_keys().collect()
        }

        fn warnings(&self) -> Vec<Notice> {
            self.heard.0.lock().unwrap().clone()
        }
    }

    fn node(id: &str) -> NodeId {
        NodeId::parse(id).unwrap()
    }

    fn passed() -> Record {
        Record { verdict: Verdict::Pass, ..Record::default() }
    }

    #[test]
    fn nothing_is_written_before_there_is_a_reason() {
        let run = Run::new();
        let writer = run.start(Durability::Paced);
        writer.flush().unwrap();
        assert!(!run.directory.snapshot().exists());
        writer.write_initial().unwrap();
        assert_eq!(run.on_disk().run_id, "1-a");
    }

    #[test]
    fn a_flush_returns_when_everything_before_it_is_on_disk() {
        let run = Run::new();
        let writer = run.start(Durability::Paced);
        for round in 0..20 {
            writer.record(&node(&format!("n{round:02}")), &passed());
            writer.set_gate(GateState { paused_at: format!("g{round}"), ..GateState::default() });
            writer.flush().unwrap();
            assert_eq!((run.ids().len(), run.on_disk().gate.paused_at), (round + 1, format!("g{round}")));
        }
    }

    #[test]
    fn a_strict_writer_needs_no_flush() {
        let run = Run::new();
        let writer = run.start(Durability::Strict);
        writer.record(&node("b"), &passed());
        assert_eq!(run.ids(), ["b"]);
        writer.record_all([(&node("c"), &passed()), (&node("a"), &passed())]);
        assert_eq!(run.ids(), ["a", "b", "c"]);
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_writer_goes() {
        let run = Run::new();
        let writer = run.start(Durability::Paced);
        for id in ["a", "b", "c"] {
            writer.record(&node(id), &passed());
        }
        let entry = Skipped { node: "d".into(), because: "c".into(), why: SkipWhy::Halted };
        writer.set_skipped(vec![entry.clone()]);
        drop(writer);
        assert_eq!((run.ids().len(), run.on_disk().skipped), (3, vec![entry]));
        assert_eq!(fs::read_dir(run.directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_names_its_nodes_and_is_made_good_by_the_next_write() {
        let run = Run::new();
        let writer = run.start(Durability::Strict);
        let away = run.home.path().join("away");
        fs::rename(run.directory.path(), &away).unwrap();
        writer.record(&node("a"), &passed());
        assert!(matches!(writer.flush(), Err(SnapshotError::Write { .. })));
        assert!(matches!(writer.could_write(), Err(SnapshotError::Write { .. })));
        writer.record(&node("b"), &passed());
        let warnings = run.warnings();
        assert!(matches!(&warnings[0], Notice::Warning { node: Some(id), .. } if *id == node("a")));
        assert!(
            matches!(&warnings[2], Notice::Warning { node: None, message } if message.ends_with("\"a\", \"b\""))
        );
        fs::rename(&away, run.directory.path()).unwrap();
        writer.record(&node("c"), &passed());
        assert_eq!((run.ids().len(), run.warnings().len()), (3, 3));
        writer.could_write().unwrap();
        assert_eq!(fs::read_dir(run.directory.path()).unwrap().count(), 1, "nothing of it stays");
    }

    #[test]
    fn d12_a_planted_link_is_replaced_and_a_directory_reported() {
        let run = Run::new();
        let victim = run.home.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, run.directory.snapshot()).unwrap();
        let writer = run.start(Durability::Paced);
        writer.write_initial().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(run.on_disk().run_id, "1-a");
        fs::remove_file(run.directory.snapshot()).unwrap();
        fs::create_dir(run.directory.snapshot()).unwrap();
        writer.write_initial().unwrap_err();
        assert_eq!(fs::read_dir(run.directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_resumed_run_keeps_what_it_had() {
        let run = Run::new();
        let mut snapshot: Snapshot = serde_json::from_str(EMPTY).unwrap();
        snapshot.nodes.insert("a".into(), passed());
        snapshot.graph = RawValue::from_string(r#"{"nodes":[{"id":"a"},{"id":"b"}]}"#.into()).unwrap();
        let writer =
            SnapshotWriter::start(&run.directory, snapshot, Durability::Strict, run.heard.clone()).unwrap();
        writer.record(&node("b"), &passed());
        assert_eq!(run.ids(), ["a", "b"]);
    }

    #[test]
    fn the_pause_follows_the_cost() {
        let ms = Duration::from_millis;
        let cases =
            [(ms(0), ms(25)), (ms(3), ms(27)), (ms(111), ms(999)), (ms(112), ms(1000)), (ms(9000), ms(1000))];
        for (took, wanted) in cases {
            assert_eq!(pause_after(took), wanted);
        }
    }
}
