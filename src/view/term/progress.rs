//! Shows a run while it runs (FACTS 1.14, DECISIONS 28 and 29): follows the feed on a thread of its own, nudged by
//! the engine's notices.
//!
//! The thread wakes at most every 20 ms however fast the feed grows, and handles what came meanwhile in one go. A
//! screen that fails is given up; the run never hears of it. Writes nothing into the run directory.

use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded, select, unbounded};

use crate::record::RunDir;
use crate::record::observe::{Notice, Observer, Silent};
use crate::record::stream::{self, Follow, Word};
use crate::view::term::Look;
use crate::view::term::live::Live;
use crate::view::term::transcript::Transcript;

/// The least time between two looks at the feed.
const WAKE_MIN: Duration = Duration::from_millis(20);
/// How often a live screen is redrawn, whether or not something happens: no eye is faster.
const REDRAW: Duration = Duration::from_millis(100);
/// How long a pipe may stay silent: systems that run jobs take a longer silence for a hang.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The byte of the feed at which this leg begins: its length before the leg was opened.
    pub from: u64,
    /// Shows warnings only.
    pub quiet: bool,
    /// Redraws on standard error, which must then be a terminal with colour.
    pub live: bool,
    /// How the screen wants to be written to.
    pub look: Look,
    /// How many nodes the graph has, if that is known.
    pub nodes: Option<usize>,
}

/// Where progress is shown.
pub struct Outlets {
    /// Takes the lines for a person; unused by a live screen.
    pub screen: Box<dyn Write + Send>,
    /// Takes the feed's own lines as they appear (`run --json`).
    pub copy: Option<Box<dyn Write + Send>>,
}

/// A display under way.
#[derive(Debug)]
pub struct Progress {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts showing the run in `dir`. The observer is for the engine; [`finish`](Progress::finish) for the end.
    pub fn start(dir: &RunDir, options: Options, outlets: Outlets) -> (Arc<dyn Observer>, Progress) {
        let (notices, heard) = unbounded();
        let (nudge, nudged) = bounded(1);
        let (stop, stopped) = bounded(0);
        let display = Display {
            // Warnings come by notices alone.
            follow: (!options.quiet || outlets.copy.is_some())
                .then(|| Follow::new(&dir.feed(), options.from)),
            transcript: Transcript::new(options.look),
            face: Face::new(options, outlets.screen),
            copy: outlets.copy,
            heard,
            began: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || display.run(&nudged, &stopped));
        match thread {
            Ok(thread) => {
                let progress = Progress { stop: Some(stop), thread: Some(thread) };
                (Arc::new(Ear { notices, nudge }), progress)
            }
            // A machine that has no thread left for a display may still have one for the run.
            Err(_) => (Arc::new(Silent), Progress { stop: None, thread: None }),
        }
    }

    /// Shows what the feed holds by now, takes a live screen down and returns once everything is written.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A display that panicked has nothing to say that the run should hear.
            thread.join().ok();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

/// The engine's end of the display.
struct Ear {
    notices: Sender<Notice>,
    nudge: Sender<()>,
}

impl Observer for Ear {
    fn notice(&self, notice: Notice) {
        if notice != Notice::Fed {
            // The channel is unbounded because a notice must neither block a worker nor be lost; a run has a few
            // per node.
            self.notices.send(notice).ok();
        }
        match self.nudge.try_send(()) {
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

/// Who the lines go to.
enum Face {
    Lines { screen: Box<dyn Write + Send>, next_beat: Duration },
    Warnings(Box<dyn Write + Send>),
    Live(Live),
    Gone,
}

impl Face {
    fn new(options: Options, screen: Box<dyn Write + Send>) -> Self {
        match options {
            Options { quiet: true, .. } => Face::Warnings(screen),
            Options { live: true, nodes, .. } => Face::Live(Live::new(nodes)),
            _ => Face::Lines { screen, next_beat: HEARTBEAT },
        }
    }
}

struct Display {
    follow: Option<Follow>,
    transcript: Transcript,
    face: Face,
    copy: Option<Box<dyn Write + Send>>,
    heard: Receiver<Notice>,
    began: Instant,
}

impl Display {
    fn run(mut self, nudged: &Receiver<()>, stopped: &Receiver<()>) {
        loop {
            let mut last = select! {
                recv(nudged) -> nudge => nudge.is_err(),
                recv(stopped) -> _ => true,
                default(self.patience()) => false,
            };
            self.catch_up();
            if !last {
                last = stopped.recv_timeout(self.pause()) == Err(RecvTimeoutError::Disconnected);
                if last {
                    self.catch_up();
                }
            }
            if last {
                return self.close();
            }
        }
    }

    /// How long it rests after a look, however much is going on.
    fn pause(&self) -> Duration {
        if matches!(self.face, Face::Live(_)) { REDRAW } else { WAKE_MIN }
    }

    /// How long it may wait without a nudge.
    fn patience(&self) -> Duration {
        match &self.face {
            Face::Live(_) => REDRAW,
            Face::Lines { next_beat, .. } => next_beat.saturating_sub(self.began.elapsed()),
            Face::Warnings(_) | Face::Gone => HEARTBEAT,
        }
    }

    fn catch_up(&mut self) {
        let mut out = Vec::new();
        // The feed is read before the notices: whatever was noticed before a line was written is then at hand
        // when the line is shown.
        let lines = self.read(&mut out);
        let notices: Vec<Notice> = self.heard.try_iter().collect();
        if let Face::Warnings(_) = self.face {
            let warnings = notices.into_iter().filter(|notice| matches!(notice, Notice::Warning { .. }));
            warnings.for_each(|notice| self.transcript.notice(notice, &mut out));
            return self.show(&out);
        }
        notices.into_iter().for_each(|notice| self.transcript.notice(notice, &mut out));
        let now = self.began.elapsed();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let Word::Event(event) | Word::Newer(_, Some(event)) = stream::decode(line) {
                self.transcript.event(&event, now, &mut out);
            }
        }
        self.transcript.release(&mut out);
        self.beat(now, &mut out);
        self.show(&out);
    }

    /// What was appended to the feed, copied on the way if that was asked for. It stays bytes here: an event at a
    /// time is decoded later, which costs half of what a batch of them would.
    fn read(&mut self, out: &mut Vec<String>) -> Vec<u8> {
        let Some(follow) = &mut self.follow else { return Vec::new() };
        let mut lines = Vec::new();
        let read = follow.poll(&mut |line| {
            lines.extend_from_slice(line.raw);
            lines.push(b'\n');
        });
        if let Err(error) = read {
            let message = format!("the feed cannot be followed any more: {error}");
            self.transcript.notice(Notice::Warning { node: None, message }, out);
            self.follow = None;
        }
        if let Some(copy) = &mut self.copy
            && copy.write_all(&lines).and_then(|()| copy.flush()).is_err()
        {
            self.copy = None;
        }
        lines
    }

    fn beat(&mut self, now: Duration, out: &mut Vec<String>) {
        if let Face::Lines { next_beat, .. } = &mut self.face
            && now >= *next_beat
        {
            out.extend(self.transcript.heartbeat(now));
            *next_beat = now + HEARTBEAT;
        }
    }

    fn show(&mut self, lines: &[String]) {
        match &mut self.face {
            Face::Live(live) => live.show(lines, &self.transcript, self.began.elapsed()),
            Face::Lines { screen, .. } | Face::Warnings(screen) if !lines.is_empty() => {
                let text = lines.join("\n") + "\n";
                if screen.write_all(text.as_bytes()).and_then(|()| screen.flush()).is_err() {
                    self.face = Face::Gone;
                }
            }
            _ => {}
        }
    }

    fn close(mut self) {
        let mut out = Vec::new();
        self.transcript.release_all(&mut out);
        self.show(&out);
        if let Face::Live(live) = &mut self.face {
            live.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use super::*;
    use crate::graph::NodeId;

    /// A screen whose text the test keeps.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no writer panicked").clone()).expect("text")
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no writer panicked").write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A pipe whose reader went away.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const FEED: &str = concat!(
        r#"{"schema":3,"event":"run_started"}"#,
        "\n",
        r#"{"schema":3,"event":"node_started","node_id":"a"}"#,
        "\n",
        r#"{"schema":3,"event":"node_passed","node_id":"a","cost_usd":0.01,"duration":1000000}"#,
        "\n"
    );

    fn show(options: Options, screen: Box<dyn Write + Send>, copy: Option<Box<dyn Write + Send>>) {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::new(folder.path().to_path_buf());
        let (observer, progress) = Progress::start(&dir, options, Outlets { screen, copy });
        std::fs::write(dir.feed(), FEED).expect("written");
        observer.notice(Notice::Fed);
        observer.notice(Notice::Warning { node: NodeId::parse("a"), message: "careful".to_owned() });
        progress.finish();
    }

    #[test]
    fn everything_is_shown_by_the_time_it_is_finished() {
        let (screen, copy) = (Paper::default(), Paper::default());
        show(Options::default(), Box::new(screen.clone()), Some(Box::new(copy.clone())));
        let text = screen.text();
        for line in ["▶ a  running…\n", "✓ a  PASS  $0.0100  1ms\n", "⚠ a  careful\n"] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(text.lines().count(), 3);
        assert_eq!(copy.text(), FEED);
    }

    #[test]
    fn a_later_leg_is_shown_from_its_own_first_line() {
        let (screen, copy) = (Paper::default(), Paper::default());
        let from = FEED.find("{\"schema\":3,\"event\":\"node_passed").expect("there") as u64;
        let options = Options { from, ..Options::default() };
        show(options, Box::new(screen.clone()), Some(Box::new(copy.clone())));
        assert!(!screen.text().contains("running") && screen.text().contains("✓ a"), "{}", screen.text());
        assert_eq!(copy.text().lines().count(), 1);
    }

    #[test]
    fn quiet_keeps_warnings_and_the_copy() {
        let (screen, copy) = (Paper::default(), Paper::default());
        let options = Options { quiet: true, ..Options::default() };
        show(options, Box::new(screen.clone()), Some(Box::new(copy.clone())));
        assert_eq!((screen.text().as_str(), copy.text().as_str()), ("⚠ a  careful\n", FEED));
    }

    #[test]
    fn a_closed_pipe_on_one_side_leaves_the_other_whole() {
        let (screen, copy) = (Paper::default(), Paper::default());
        show(Options::default(), Box::new(Closed), Some(Box::new(copy.clone())));
        assert_eq!(copy.text(), FEED);
        show(Options::default(), Box::new(screen.clone()), Some(Box::new(Closed)));
        assert!(screen.text().contains("✓ a"));
    }
}
