//! Writing `events.jsonl`, the write-ahead log of a run (RUN-FEED "the stream", `ARCHITECTURE` 5).
//!
//! A call that returned is on disk. Calls that meet share one write and one sync: the first of them writes for all
//! that are waiting, in the order of the calls. Lines are only ever added; of a write that failed half-way, whole
//! lines stay and the torn end is cut off, or is ended by the next write where it cannot be cut.
//! A feed that was removed, or whose place something else has taken, is put back before the next line: what it held
//! is still in hand. The lines of an end that could not be written are owed: they go out before those of the next call.
//! Knows no meaning of an event; one process, the holder of the run's lock, writes a feed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::clock::{SharedClock, rfc3339};
use crate::record::event::{LINE_BYTES_MAX, SCHEMA, SKIPPED_MAX};
use crate::record::{Event, RunDir, RunId, lock, private};
use crate::text::money::Cost;

/// The most bytes of `detail` on a line; what the engine writes is far shorter.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

/// Why events are not in the feed, or not known to be.
#[derive(Clone, Debug, Error)]
pub enum FeedError {
    /// The feed could not be opened.
    #[error("{}: cannot open the feed: {source}", path.display())]
    Open {
        /// The feed.
        path: PathBuf,
        /// What came of it.
        source: Arc<io::Error>,
    },
    /// The file system refused the lines, or could not make them durable.
    #[error("{}: cannot append to the feed: {source}", path.display())]
    Write {
        /// The feed.
        path: PathBuf,
        /// Whether all of them are in the file all the same, for as long as the machine runs.
        written: bool,
        /// What came of it.
        source: Arc<io::Error>,
    },
    /// One event makes a line that no reader would accept. None of the call's events was written.
    #[error("{}: an event of {bytes} bytes is too long for a line", path.display())]
    TooLong {
        /// The feed.
        path: PathBuf,
        /// The length of its line.
        bytes: usize,
    },
    /// The leg has closed its feed.
    #[error("{}: the feed is closed", path.display())]
    Closed {
        /// The feed.
        path: PathBuf,
    },
}

/// A run's feed, open for the length of a leg. Shared by reference between threads.
pub struct Feed {
    path: PathBuf,
    run: RunId,
    clock: SharedClock,
    queue: Mutex<Queue>,
    settled: Condvar,
}

/// What the appending threads share. Whoever takes `log` out writes; the others wait for `settled`.
struct Queue {
    lines: Vec<u8>,
    /// Which of them are starts, that are not to be in the file when their call fails.
    starts: Range<usize>,
    batch: Arc<Batch>,
    log: Option<Log>,
    closed: bool,
    /// Lines that must not be lost and could not be written.
    owed: Vec<u8>,
    /// Whether charges of this leg are not known to be on disk.
    lacks_charges: bool,
}

/// The fate of the lines that go out in one write; `None` until it is known.
#[derive(Default)]
struct Batch(Mutex<Option<Durable>>);

/// How much of a batch is on disk, and why the rest is not.
#[derive(Clone)]
struct Durable {
    bytes: usize,
    /// How much of it is in the file, durable or not.
    written: usize,
    failure: Option<Arc<io::Error>>,
}

impl Feed {
    /// Opens the feed of `run` to append to it, creating it when missing. A link in its place is refused.
    pub fn open(directory: &RunDir, run: &RunId, clock: SharedClock) -> Result<Self, FeedError> {
        let path = directory.feed();
        let log = Log::open(&path)
            .map_err(|error| FeedError::Open { path: path.clone(), source: Arc::new(error) })?;
        let queue = Mutex::new(Queue {
            lines: Vec::new(),
            starts: 0..0,
            batch: Arc::default(),
            log: Some(log),
            closed: false,
            owed: Vec::new(),
            lacks_charges: false,
        });
        Ok(Feed { path, run: run.clone(), clock, queue, settled: Condvar::new() })
    }

    /// Appends `events` in their order, with nothing between them, and returns once they are durable.
    pub fn append(&self, events: &[Event]) -> Result<(), FeedError> {
        let lines = self.encode(events)?;
        self.put(&lines, None)
    }

    /// The same of `ends`, and of `starts` behind them. Of a call that fails the ends are owed, the starts are not: what
    /// cannot be announced does not start.
    pub fn settle(&self, ends: &[Event], starts: &[Event]) -> Result<(), FeedError> {
        let told = self.encode(ends).and_then(|mut lines| {
            let owed = lines.len();
            lines.extend(self.encode(starts)?);
            self.put(&lines, Some(owed))
        });
        if told.is_err() && ends.iter().any(|event| event.charge() != Cost::ZERO) {
            self.lock().lacks_charges = true;
        }
        told
    }

    /// Whether something was paid for in this leg that the file may not tell of.
    pub fn lacks_charges(&self) -> bool {
        self.lock().lacks_charges
    }

    /// Puts `lines` into the file. If that fails the first `owed` bytes of them are owed, and the others not in the file.
    fn put(&self, lines: &[u8], owed: Option<usize>) -> Result<(), FeedError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut queue = self.lock();
        if queue.closed {
            return Err(FeedError::Closed { path: self.path.clone() });
        }
        let begin = queue.lines.len();
        queue.lines.extend_from_slice(lines);
        let (batch, end) = (Arc::clone(&queue.batch), queue.lines.len());
        if let Some(owed) = owed {
            queue.starts = begin + owed..end;
        }
        let durable = self.await_batch(queue, &batch);
        match durable.failure {
            Some(source) if durable.bytes < end => {
                let written = durable.written.saturating_sub(begin);
                if let Some(rest) = lines.get(written..owed.unwrap_or(0)) {
                    self.lock().owed.extend_from_slice(rest);
                }
                let written = durable.written >= end;
                Err(FeedError::Write { path: self.path.clone(), written, source })
            }
            _ => Ok(()),
        }
    }

    /// Refuses all later appends. Those under way end first.
    pub fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        while queue.log.is_none() || !queue.lines.is_empty() {
            queue = self.settled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn encode(&self, events: &[Event]) -> Result<Vec<u8>, FeedError> {
        let ts = rfc3339(self.clock.now());
        let mut lines = Vec::with_capacity(256 * events.len());
        for event in events {
            let stamped =
                Event { schema: SCHEMA, ts: ts.clone(), run_id: self.run.to_string(), ..event.clone() };
            let line = encode_bounded(stamped);
            if line.len() > LINE_BYTES_MAX {
                return Err(FeedError::TooLong { path: self.path.clone(), bytes: line.len() });
            }
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        }
        Ok(lines)
    }

    /// Waits until the fate of `batch` is known, writing it when nobody else writes.
    fn await_batch<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, batch: &Batch) -> Durable {
        loop {
            if let Some(durable) = batch.get() {
                return durable;
            }
            queue = match queue.log.take() {
                Some(log) => self.write_waiting(queue, log),
                None => self.settled.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Writes everything that waits, without keeping others from queueing behind it.
    fn write_waiting<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, mut log: Log) -> MutexGuard<'a, Queue> {
        let mut lines = std::mem::take(&mut queue.owed);
        let owed = lines.len();
        lines.append(&mut queue.lines);
        let batch = std::mem::take(&mut queue.batch);
        let starts = std::mem::take(&mut queue.starts);
        drop(queue);
        let mut durable = log.append(&lines, owed + starts.start..owed + starts.end);
        let mut queue = self.lock();
        queue.lacks_charges &= durable.failure.is_some();
        if let Some(rest) = lines.get(durable.written..owed) {
            queue.owed.splice(..0, rest.iter().copied());
        }
        durable.bytes = durable.bytes.saturating_sub(owed);
        durable.written = durable.written.saturating_sub(owed);
        batch.set(durable);
        queue.log = Some(log);
        self.settled.notify_all();
        queue
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    fn get(&self) -> Option<Durable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, durable: Durable) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(durable);
    }
}

/// The line of `event` without its newline, its two lists that may grow without limit cut to what a line bears.
fn encode_bounded(mut event: Event) -> Vec<u8> {
    event.skipped.truncate(SKIPPED_MAX);
    if event.detail.len() > DETAIL_BYTES_MAX {
        let tail = event.detail.ceil_char_boundary(event.detail.len() - DETAIL_BYTES_MAX);
        event.detail = format!("…{}", &event.detail[tail..]);
    }
    let mut line = encode(&event);
    while line.len() > LINE_BYTES_MAX && !event.skipped.is_empty() {
        event.skipped.truncate(event.skipped.len() / 2);
        line = encode(&event);
    }
    line
}

fn encode(event: &Event) -> Vec<u8> {
    serde_json::to_vec(event).expect("an event holds nothing that JSON cannot")
}

/// What a feed that is put back is called before it has its name, before random letters.
pub(crate) const TEMPORARY: &str = "events.tmp-";

/// The file behind a feed.
struct Log {
    path: PathBuf,
    file: File,
    /// Where the last whole line ends.
    end: u64,
    /// Whether something without a newline stands after it.
    torn: bool,
}

impl Log {
    fn open(path: &Path) -> io::Result<Self> {
        let file = private::open_to_append(path)?;
        lock::lock_feed(&file);
        let end = file.metadata()?.len();
        let mut last = [b'\n'];
        if end > 0 {
            file.read_exact_at(&mut last, end - 1)?;
        }
        Ok(Log { path: path.to_path_buf(), file, end, torn: last != [b'\n'] })
    }

    /// Appends whole `lines` and makes them durable, as far as the disk allows. Of the bytes `starts` of them all or none.
    fn append(&mut self, lines: &[u8], starts: Range<usize>) -> Durable {
        // Lines that cannot be found by the feed's name are kept all the same: this program's own screen still reads
        // them, and the next call may be able to put the feed back.
        let misplaced = self.put_back().err();
        if let Err(error) = self.end_torn_line() {
            return Durable { bytes: 0, written: 0, failure: Some(Arc::new(error)) };
        }
        let (written, refused) = write_as_much_as_goes(&self.file, lines);
        let unsynced = misplaced.or_else(|| self.file.sync_data().err());
        let mut whole = match refused {
            None => written,
            Some(_) => lines[..written].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let is_durable = unsynced.is_none();
        let failure = refused.or(unsynced);
        if failure.is_some() && starts.contains(&whole.saturating_sub(1)) {
            whole = starts.start;
        }
        self.end += whole as u64;
        self.torn = whole < written && self.file.set_len(self.end).is_err();
        let bytes = if is_durable { whole } else { 0 };
        Durable { bytes, written: whole, failure: failure.map(Arc::new) }
    }

    /// Gives the feed its name again where a node took it away, with all that it holds.
    fn put_back(&mut self) -> io::Result<()> {
        let ours = self.file.metadata()?;
        let is_ours = |found: fs::Metadata| (found.dev(), found.ino()) == (ours.dev(), ours.ino());
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            return Ok(());
        }
        let mut copy = private::temporary(self.path.parent().unwrap_or(Path::new(".")), TEMPORARY)?;
        self.file.rewind()?;
        io::copy(&mut (&self.file).take(self.end), copy.as_file_mut())?;
        copy.as_file().sync_data()?;
        copy.persist(&self.path).map_err(|refused| refused.error)?;
        self.file = private::open_to_append(&self.path)?;
        lock::lock_feed(&self.file);
        self.torn = false;
        Ok(())
    }

    /// Keeps the next line from being glued to what a crash or a full disk cut off.
    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            (&self.file).write_all(b"\n")?;
            self.end = self.file.metadata()?.len();
            self.torn = false;
        }
        Ok(())
    }
}

fn write_as_much_as_goes(mut file: &File, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::fs::OpenOptions;
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;
    use crate::clock::SystemClock;
    use crate::record::EventKind;
    use crate::record::event::{SkipWhy, Skipped};

    struct Run {
        _home: tempfile::TempDir,
        directory: RunDir,
        id: RunId,
    }

    impl Run {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let directory = RunDir::new(home.path().to_path_buf());
            Run { _home: home, directory, id: RunId::parse("1-a").unwrap() }
        }

        fn open(&self) -> Feed {
            self.try_open().unwrap()
        }

        fn try_open(&self) -> Result<Feed, FeedError> {
            Feed::open(&self.directory, &self.id, Arc::new(SystemClock))
        }

        fn text(&self) -> String {
            fs::read_to_string(self.directory.feed()).unwrap()
        }

        fn events(&self) -> Vec<Event> {
            self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    }

    fn started(node: &str) -> Event {
        Event::of_node(EventKind::NodeStarted, node)
    }

    #[test]
    fn a_line_is_stamped_and_ends() {
        let run = Run::new();
        run.open().append(&[Event::new(EventKind::RunStarted)]).unwrap();
        let text = run.text();
        assert!(text.starts_with("{\"schema\":3,\"ts\":\"2"), "{text}");
        assert!(text.ends_with("Z\",\"run_id\":\"1-a\",\"event\":\"run_started\"}\n"), "{text}");
    }

    #[test]
    fn a_later_leg_adds_to_what_is_there() {
        let run = Run::new();
        for node in ["a", "b"] {
            run.open().append(&[started(node)]).unwrap();
        }
        let nodes: Vec<String> = run.events().into_iter().map(|event| event.node_id).collect();
        assert_eq!(nodes, ["a", "b"]);
    }

    #[test]
    fn a_line_that_a_crash_cut_is_ended_before_the_next() {
        let run = Run::new();
        fs::write(run.directory.feed(), "{\"schema\":3}\n{\"sche").unwrap();
        let feed = run.open();
        feed.append(&[started("a")]).unwrap();
        feed.append(&[started("b")]).unwrap();
        let text = run.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[1]), (4, "{\"sche"));
        assert!(lines[2].ends_with("\"node_id\":\"a\"}"));
    }

    #[test]
    fn calls_from_many_threads_are_whole_in_order_and_there_when_they_return() {
        const THREADS: u32 = 8;
        const CALLS: u32 = 50;
        let run = Run::new();
        let feed = run.open();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (feed, run) = (&feed, &run);
                scope.spawn(move || {
                    for call in 0..CALLS {
                        let mut pair = [started(&format!("t{thread}")), started("end")];
                        pair[0].retries = call;
                        feed.append(&pair).unwrap();
                        let marker = format!("\"node_id\":\"t{thread}\",\"retries\":{call}}}\n");
                        assert!(call == 0 || run.text().contains(&marker), "returned before it was there");
                    }
                });
            }
        });
        let events = run.events();
        assert_eq!(events.len(), (2 * THREADS * CALLS) as usize);
        let mut next = [0; THREADS as usize];
        for pair in events.chunks(2) {
            let thread: usize = pair[0].node_id[1..].parse().unwrap();
            assert_eq!((pair[0].retries, pair[1].node_id.as_str()), (next[thread], "end"));
            next[thread] += 1;
        }
    }

    #[test]
    fn nothing_is_appended_after_the_close() {
        let run = Run::new();
        let feed = run.open();
        feed.close();
        assert!(matches!(feed.append(&[started("a")]), Err(FeedError::Closed { .. })));
        assert_eq!(run.text(), "");
    }

    #[test]
    fn a_close_lets_what_is_under_way_end() {
        let run = Run::new();
        let feed = run.open();
        let appended = thread::scope(|scope| {
            let appends: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..).take_while(|_| feed.append(&[started("a")]).is_ok()).count()))
                .collect();
            while run.text().is_empty() {
                thread::yield_now();
            }
            feed.close();
            let closed_at = run.text();
            let appended: usize = appends.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!(closed_at, run.text());
            appended
        });
        assert_eq!(run.events().len(), appended);
    }

    #[test]
    fn d12_a_planted_link_or_directory_is_refused() {
        let run = Run::new();
        let victim = run.directory.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, run.directory.feed()).unwrap();
        assert!(matches!(run.try_open(), Err(FeedError::Open { .. })));
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
        fs::remove_file(run.directory.feed()).unwrap();
        fs::create_dir(run.directory.feed()).unwrap();
        assert!(matches!(run.try_open(), Err(FeedError::Open { .. })));
    }

    #[test]
    fn every_line_fits_a_reader() {
        let id = "n/".repeat(2000);
        let entry = Skipped { node: id.clone(), because: id, why: SkipWhy::Halted };
        let finished = |skipped: usize, detail: String| Event {
            skipped: vec![entry.clone(); skipped],
            detail,
            ..Event::new(EventKind::RunFinished)
        };
        for event in [finished(3000, String::new()), finished(0, "\u{1}→\"".repeat(1 << 20))] {
            let line = encode_bounded(event);
            assert!(line.len() < LINE_BYTES_MAX);
            serde_json::from_slice::<Event>(&line).unwrap();
        }
        let few = encode_bounded(Event { skipped_count: 7, ..finished(7, String::new()) });
        assert_eq!(serde_json::from_slice::<Event>(&few).unwrap().skipped.len(), 7);
    }

    #[test]
    fn what_still_does_not_fit_is_refused_whole() {
        let run = Run::new();
        let feed = run.open();
        let long = Event { session_id: "s".repeat(LINE_BYTES_MAX), ..started("b") };
        assert!(matches!(feed.append(&[started("a"), long]), Err(FeedError::TooLong { .. })));
        assert_eq!(run.text(), "");
    }

    #[test]
    fn d12_what_could_not_be_put_back_is_put_back_with_the_next_call() {
        let run = Run::new();
        let feed = run.open();
        feed.append(&[started("a")]).unwrap();
        let file = run.directory.feed();
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(matches!(feed.append(&[started("b")]), Err(FeedError::Write { .. })));
        fs::remove_dir(&file).unwrap();
        feed.append(&[started("c")]).unwrap();
        assert!(!feed.lacks_charges());
        let nodes: Vec<String> = run.events().into_iter().map(|event| event.node_id).collect();
        assert_eq!(nodes, ["a", "b", "c"]);
    }

    #[test]
    fn a_full_disk_is_reported() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let durable = Log { path: "/dev/full".into(), file, end: 0, torn: false }.append(b"line\n", 0..0);
        assert_eq!((durable.bytes, durable.failure.unwrap().kind()), (0, io::ErrorKind::StorageFull));
    }
}
