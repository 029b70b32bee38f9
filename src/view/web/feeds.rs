//! The feeds that somebody looks at: each is read once, and every new line goes to all its readers.
//!
//! The id of a frame is the byte at which the next line begins, so a reader that comes back goes on exactly where it
//! was, with this server or with the next (case H3). A reader catches up from the file by itself, then takes its frames
//! from a bounded queue. One that cannot keep up loses the queue and catches up from the file again; one that takes
//! nothing at all loses its connection. Neither holds up another.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde::Serialize;

use super::http::{self, Stream};
use super::sse::{self, Bytes, HEARTBEAT, QUEUE};
use super::state;
use super::watcher::Watcher;
use crate::record::assessment::Assessment;
use crate::record::lock::Probe;
use crate::record::stream::{Follow, Line, StreamError, Word};
use crate::record::{EventKind, Home, RunDir, RunId};
use crate::view::history::run_json::RunJson;
use crate::view::history::{Prober, Run, hint};

/// As much of a feed as goes out in one piece while a reader catches up, in bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// All feeds that have readers.
pub(super) struct Feeds {
    home: Home,
    probe: Prober,
    watcher: Arc<Watcher>,
    open: Mutex<HashMap<RunId, Arc<Feed>>>,
    over: AtomicBool,
}

/// One feed.
struct Feed {
    id: RunId,
    dir: RunDir,
    probe: Prober,
    tail: Mutex<Tail>,
}

/// How far a feed was read, and who hears of more.
struct Tail {
    follow: Follow,
    /// Where the next line begins.
    at: u64,
    newer: bool,
    readers: Vec<Sender<Frame>>,
    /// What the lock said when the status was last told.
    lock: Option<Probe>,
    /// Whether a judge had said something of the run then.
    is_judged: bool,
    status: String,
}

#[derive(Clone)]
struct Frame {
    /// Where the line ended; `None` of a frame that is no line.
    end: Option<u64>,
    bytes: Bytes,
}

impl Feeds {
    pub(super) fn new(home: Home, probe: Prober, watcher: Arc<Watcher>) -> Self {
        Feeds { home, probe, watcher, open: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// Sends the feed of `id` to one reader that has seen it up to byte `seen`, until it goes or the server ends.
    ///
    /// # Errors
    /// When the reader is gone.
    pub(super) fn follow(&self, id: &RunId, seen: Option<u64>, stream: &mut Stream) -> io::Result<()> {
        let dir = self.home.run(id);
        let mut reader = Reader { at: 0, newer: false, follow: Follow::new(&dir.feed(), 0) };
        match seen.filter(|seen| *seen > 0) {
            Some(seen) if begins_line(&dir, seen) => reader = reader.going_on_at(seen, &dir),
            // What it has seen is not this feed: it begins anew.
            Some(_) => stream.send(&sse::frame(Some(0), Some("reset"), "{}"))?,
            None => {}
        }
        while !self.over.load(Ordering::Acquire) {
            if let Err(error) = reader.catch_up(stream)? {
                return stream.send(&sse::failure(&error));
            }
            let (feed, queue, status) = self.join(id, &dir, reader.at);
            // What was appended before the queue was there.
            if let Err(error) = reader.catch_up(stream)? {
                return stream.send(&sse::failure(&error));
            }
            stream.send(&sse::frame(None, Some("status"), &status))?;
            stream.send(&sse::frame(None, Some("caught_up"), "{}"))?;
            let ended = reader.take(&queue, stream);
            drop(queue);
            self.leave(&feed);
            ended?;
            reader = reader.anew(&dir);
        }
        Ok(())
    }

    /// Reads what is new in the feed of `id`, if somebody looks at it.
    pub(super) fn changed(&self, id: &RunId) {
        let feed = lock(&self.open).get(id).cloned();
        if let Some(feed) = feed {
            feed.look(false);
        }
    }

    /// Looks at every open feed and its lock: what no event of the file system tells, and what one did not.
    pub(super) fn tick(&self) {
        let feeds: Vec<_> = lock(&self.open).values().cloned().collect();
        feeds.iter().for_each(|feed| feed.look(true));
    }

    /// Whether anybody reads.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Ends every stream.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        let feeds: Vec<_> = lock(&self.open).drain().map(|(_, feed)| feed).collect();
        for feed in feeds {
            // What a run wrote last is still told.
            feed.look(true);
            lock(&feed.tail).readers.clear();
        }
    }

    fn join(&self, id: &RunId, dir: &RunDir, at: u64) -> (Arc<Feed>, Receiver<Frame>, String) {
        self.watcher.watch(dir.path());
        // Held until it has its reader: one without any may be closed at any moment.
        let mut open = lock(&self.open);
        let feed = open.entry(id.clone()).or_insert_with(|| Arc::new(Feed::new(id, dir, self.probe, at)));
        let (queue, status) = feed.join();
        (Arc::clone(feed), queue, status)
    }

    fn leave(&self, feed: &Arc<Feed>) {
        let mut open = lock(&self.open);
        let mut tail = lock(&feed.tail);
        // A reader that is gone is found by trying; a comment disturbs no other.
        let beat = Frame { end: None, bytes: sse::heartbeat() };
        tail.publish(&beat);
        if tail.readers.is_empty() && open.get(&feed.id).is_some_and(|it| Arc::ptr_eq(it, feed)) {
            open.remove(&feed.id);
        }
        self.watcher.forget(feed.dir.path());
    }
}

impl Feed {
    fn new(id: &RunId, dir: &RunDir, probe: Prober, at: u64) -> Self {
        let tail = Tail {
            follow: Follow::new(&dir.feed(), at),
            at,
            newer: false,
            readers: Vec::new(),
            lock: None,
            is_judged: false,
            status: String::new(),
        };
        Feed { id: id.clone(), dir: dir.clone(), probe, tail: Mutex::new(tail) }
    }

    /// A queue of everything from the last line that was read, and how the run stands.
    fn join(&self) -> (Receiver<Frame>, String) {
        let (sender, receiver) = bounded(QUEUE);
        self.look(true);
        let mut tail = lock(&self.tail);
        tail.readers.push(sender);
        (receiver, tail.status.clone())
    }

    /// Reads and hands on what is new. With `ask` the lock is looked at too.
    fn look(&self, ask: bool) {
        let mut tail = lock(&self.tail);
        let mut turned = tail.status.is_empty();
        turned |= tail.read();
        if ask || turned {
            let found = (self.probe)(&self.dir);
            turned |= tail.lock != Some(found);
            tail.lock = Some(found);
            // That comes after the end of the run, and no event tells of it.
            let is_judged = self.dir.assessment().symlink_metadata().is_ok();
            turned |= std::mem::replace(&mut tail.is_judged, is_judged) != is_judged;
        }
        if turned {
            let status = status(&self.id, &self.dir, self.probe);
            if status != tail.status {
                tail.publish(&Frame { end: None, bytes: sse::frame(None, Some("status"), &status) });
                tail.status = status;
            }
        }
    }
}

impl Tail {
    /// Hands on every new line; says whether one of them may change how the run stands.
    fn read(&mut self) -> bool {
        let mut turned = false;
        let (mut at, mut newer) = (self.at, self.newer);
        let mut frames = Vec::new();
        let read = self.follow.poll(&mut |line| {
            let word = line.word();
            turned |= matches!(&word, Word::Event(event) if turns(&event.event));
            at = end(&line);
            let text = written(&line, &word, &mut newer);
            if !text.is_empty() {
                frames.push(Frame { end: Some(at), bytes: http::chunk(text.as_bytes()) });
            }
        });
        (self.at, self.newer) = (at, newer);
        frames.iter().for_each(|frame| self.publish(frame));
        if read.is_err() {
            // Each reader meets the same error, and tells it.
            self.readers.clear();
        }
        turned
    }

    fn publish(&mut self, frame: &Frame) {
        self.readers.retain(|reader| reader.try_send(frame.clone()).is_ok());
    }
}

/// One reader's own way through the file.
struct Reader {
    at: u64,
    newer: bool,
    follow: Follow,
}

impl Reader {
    fn going_on_at(self, at: u64, dir: &RunDir) -> Self {
        Reader { at, follow: Follow::new(&dir.feed(), at), ..self }
    }

    /// The same from where it is.
    fn anew(self, dir: &RunDir) -> Self {
        let at = self.at;
        self.going_on_at(at, dir)
    }

    /// Sends what the file has beyond what was sent. The outer error is the reader's, the inner one the file's.
    fn catch_up(&mut self, stream: &mut Stream) -> io::Result<Result<(), StreamError>> {
        let (mut piece, mut sent) = (String::new(), Ok(()));
        let polled = self.follow.poll(&mut |line| {
            // The queue may have brought it.
            if end(&line) <= self.at {
                return;
            }
            self.at = end(&line);
            piece += &written(&line, &line.word(), &mut self.newer);
            if piece.len() >= PIECE_BYTES && sent.is_ok() {
                sent = stream.send(&http::chunk(std::mem::take(&mut piece).as_bytes()));
            }
        });
        sent?;
        if !piece.is_empty() {
            stream.send(&http::chunk(piece.as_bytes()))?;
        }
        Ok(polled.map(drop))
    }

    /// Sends what comes, until there is no more to come this way.
    fn take(&mut self, queue: &Receiver<Frame>, stream: &mut Stream) -> io::Result<()> {
        loop {
            match queue.recv_timeout(HEARTBEAT) {
                Ok(Frame { end: Some(end), .. }) if end <= self.at => {}
                Ok(frame) => {
                    stream.send(&frame.bytes)?;
                    self.at = frame.end.unwrap_or(self.at);
                }
                Err(RecvTimeoutError::Timeout) => stream.send(&sse::heartbeat())?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }
}

/// What a reader gets of a line: nothing of one that does not decode.
fn written(line: &Line<'_>, word: &Word, newer: &mut bool) -> String {
    let mut text = String::new();
    if let Word::Newer(schema, _) = word
        && !*newer
    {
        *newer = true;
        let error = format!("a newer omg wrote this (event schema {schema}); what it means may not be shown");
        text += &sse::text(None, Some("stream_warning"), &serde_json::json!({ "error": error }).to_string());
    }
    if let Some(raw) = told(line, word) {
        text += &sse::text(Some(end(line)), None, raw);
    }
    text
}

/// What is told of a line; nothing of one that does not decode or that no frame can hold.
pub(super) fn told<'a>(line: &Line<'a>, word: &Word) -> Option<&'a str> {
    let is_told = !matches!(word, Word::Damaged) && memchr::memchr(b'\r', line.raw).is_none();
    std::str::from_utf8(line.raw).ok().filter(|_| is_told)
}

fn end(line: &Line<'_>) -> u64 {
    line.offset + line.raw.len() as u64 + 1
}

/// Whether an event may change how its run stands.
fn turns(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunStarted
            | EventKind::RunFinished
            | EventKind::GatePaused
            | EventKind::GateApproved
            | EventKind::GateRejected
    )
}

/// Whether a line of the feed in `dir` begins at byte `at`.
fn begins_line(dir: &RunDir, at: u64) -> bool {
    let before = || -> io::Result<u8> {
        let mut file = File::open(dir.feed())?;
        file.seek(SeekFrom::Start(at - 1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(byte[0])
    };
    before().is_ok_and(|byte| byte == b'\n')
}

/// How a run stands, for its page.
pub(super) fn status(id: &RunId, dir: &RunDir, probe: Prober) -> String {
    #[derive(Serialize)]
    struct Status<'a> {
        state: &'static str,
        #[serde(flatten)]
        run: RunJson<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        goal_met: Option<bool>,
    }
    let told = match Run::read(id.clone(), dir, probe) {
        Ok(run) => serde_json::to_string(&Status {
            state: state::of_run(run.status),
            hint: hint(&run),
            goal_met: Assessment::read(dir).map(|verdict| verdict.goal_met),
            run: RunJson::from(&run),
        }),
        Err(error) => serde_json::to_string(&serde_json::json!({
            "run_id": id.as_str(), "state": state::UNKNOWN, "error": error.to_string(),
        })),
    };
    told.unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
