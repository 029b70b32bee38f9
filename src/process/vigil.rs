//! Watches one child from its start to its exit on the calling thread: reads its outputs, writes its input, and
//! walks its ladder when its time is up, the run is cancelled or a sink has had enough.
//!
//! Does not reap and does not look for what the child leaves behind; the launcher does both afterwards.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::process::exit::ExitWatch;
use crate::process::ladder::Descent;
use crate::process::own::Own;
use crate::process::{Cancel, Flow, How, Ladder, Sink};

/// How long a child may take to leave once its sink has had enough.
const LEAVE: Duration = Duration::from_secs(1);
/// How long a process that was just forked may take to redirect its output.
const REDIRECT: Duration = Duration::from_millis(50);
/// How often adopted processes that died are reaped while a child runs on and on.
const TIDY: Duration = Duration::from_secs(30);

/// An output of the child and where it goes.
pub(crate) struct Outlet<'a> {
    pipe: Option<PipeReader>,
    sink: &'a mut dyn Sink,
}

/// What is still to be written to the child, with the pipe.
pub(crate) struct Inlet {
    pub(crate) pipe: PipeWriter,
    pub(crate) bytes: Vec<u8>,
    pub(crate) written: usize,
}

/// What the vigil asks of its keeper at certain moments.
pub(crate) trait Moments {
    /// The first signal of a ladder is about to be sent.
    fn before_signal(&mut self);
    /// Some time has passed.
    fn tidy(&mut self);
}

/// How a vigil went.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) how: How,
    /// The outputs that were still open when the child was gone. They stay open until who holds them has been
    /// ended, since closing them would kill by SIGPIPE and look as if nobody had been there.
    pub(crate) held: Vec<PipeReader>,
    /// Whether the ladder was walked to its end.
    pub(crate) killed: bool,
    /// The first error of a sink.
    pub(crate) failed: Option<io::Error>,
}

enum Course {
    Running,
    Leaving(Instant),
    Ending(Descent),
}

/// A child being watched.
pub(crate) struct Vigil<'w, 's> {
    pub(crate) own: &'w Own,
    pub(crate) exit: ExitWatch,
    pub(crate) inlet: Option<Inlet>,
    pub(crate) outlets: Vec<Outlet<'s>>,
    pub(crate) cancel: &'w Cancel,
    pub(crate) ladder: Ladder,
    pub(crate) deadline: Option<Instant>,
    pub(crate) moments: &'w mut dyn Moments,
}

/// The vigil's state that changes as it goes.
struct State {
    course: Course,
    report: Report,
    tidy: Instant,
}

/// Which of the polled descriptors have news: the exit, the cancellation, the input, and each output.
#[derive(Default)]
struct News {
    exit: bool,
    cancel: bool,
    input: bool,
    outputs: [bool; 2],
}

impl<'a> Outlet<'a> {
    pub(crate) fn new(pipe: PipeReader, sink: &'a mut dyn Sink) -> Self {
        Outlet { pipe: Some(pipe), sink }
    }
}

impl Vigil<'_, '_> {
    /// Watches until the child has exited and what it wrote has been read.
    pub(crate) fn keep(mut self, buffer: &mut [u8]) -> io::Result<Report> {
        let report = Report { how: How::Itself, held: Vec::new(), killed: false, failed: None };
        let mut state = State { course: Course::Running, report, tidy: Instant::now() + TIDY };
        loop {
            let news = self.wait(&state)?;
            if news.input {
                self.write();
            }
            for (at, _) in news.outputs.iter().enumerate().filter(|(_, ready)| **ready) {
                self.read(at, buffer, &mut state);
            }
            if news.exit {
                self.drain(buffer, &mut state);
                state.report.held = self.outlets.iter_mut().filter_map(|it| it.pipe.take()).collect();
                return Ok(state.report);
            }
            if news.cancel {
                self.cancelled(&mut state);
            }
            self.step(&mut state, Instant::now());
        }
    }

    /// Does what the time asks for. Comes after the exit was looked at: who ends on time has ended on time.
    fn step(&mut self, state: &mut State, now: Instant) {
        match &state.course {
            Course::Running if self.deadline.is_some_and(|it| it <= now) => {
                self.end(state, How::TimedOut, self.ladder);
            }
            Course::Leaving(until) if *until <= now => self.end(state, How::Enough, Ladder::Terminate),
            _ => {}
        }
        if let Course::Ending(descent) = &mut state.course
            && let Some(signal) = descent.due(now)
        {
            self.own.signal_group(signal);
            // A stopped child would not see the signal before it goes on.
            self.own.signal_group(Signal::CONT);
            state.report.killed = signal == Signal::KILL;
        }
        if state.tidy <= now {
            self.moments.tidy();
            state.tidy = now + TIDY;
        }
    }

    fn cancelled(&mut self, state: &mut State) {
        match state.course {
            Course::Running => self.end(state, How::Cancelled, self.ladder),
            Course::Leaving(_) => self.end(state, How::Enough, Ladder::Terminate),
            Course::Ending(_) => {}
        }
    }

    fn end(&mut self, state: &mut State, how: How, ladder: Ladder) {
        self.moments.before_signal();
        state.report.how = how;
        state.course = Course::Ending(Descent::new(ladder, Instant::now()));
    }

    /// Sleeps until a descriptor has news or the time asks for something.
    fn wait(&self, state: &State) -> io::Result<News> {
        let heeds_cancel = !matches!(state.course, Course::Ending(_));
        let slots: [Option<(BorrowedFd<'_>, PollFlags)>; 5] = [
            Some((self.exit.fd(), PollFlags::IN)),
            heeds_cancel.then(|| (self.cancel.fd(), PollFlags::IN)),
            self.inlet.as_ref().map(|it| (it.pipe.as_fd(), PollFlags::OUT)),
            self.output_slot(0),
            self.output_slot(1),
        ];
        let mut fds: Vec<_> =
            slots.iter().flatten().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let timeout = self.until(state).saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(News::default()),
            Err(error) => return Err(error.into()),
        }
        let mut polled = fds.iter();
        let [exit, cancel, input, first, second] =
            slots.map(|it| it.is_some() && polled.next().is_some_and(|fd| !fd.revents().is_empty()));
        Ok(News { exit, cancel, input, outputs: [first, second] })
    }

    fn output_slot(&self, at: usize) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.outlets.get(at)?.pipe.as_ref().map(|it| (it.as_fd(), PollFlags::IN))
    }

    fn until(&self, state: &State) -> Instant {
        let due = match &state.course {
            Course::Running => self.deadline,
            Course::Leaving(until) => Some(*until),
            Course::Ending(descent) => descent.next(),
        };
        due.map_or(state.tidy, |it| it.min(state.tidy))
    }

    /// Writes what the pipe takes; a child that does not read to the end is no error.
    fn write(&mut self) {
        let Some(inlet) = &mut self.inlet else { return };
        match inlet.pipe.write(&inlet.bytes[inlet.written..]) {
            Ok(count) => inlet.written += count,
            Err(error) if is_passing(&error) => return,
            Err(_) => inlet.written = inlet.bytes.len(),
        }
        if inlet.written == inlet.bytes.len() {
            self.inlet = None;
        }
    }

    /// Reads once; returns how much came, and forgets the pipe at its end.
    fn read(&mut self, at: usize, buffer: &mut [u8], state: &mut State) -> usize {
        let outlet = &mut self.outlets[at];
        let Some(pipe) = &mut outlet.pipe else { return 0 };
        match pipe.read(buffer) {
            Ok(0) => outlet.pipe = None,
            Ok(count) => {
                self.hand_on(at, &buffer[..count], state);
                return count;
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => outlet.pipe = None,
        }
        0
    }

    fn hand_on(&mut self, at: usize, bytes: &[u8], state: &mut State) {
        if state.report.failed.is_some() {
            return;
        }
        match self.outlets[at].sink.take(bytes) {
            Ok(Flow::More) => {}
            Ok(Flow::Enough) => {
                if matches!(state.course, Course::Running) {
                    state.course = Course::Leaving(Instant::now() + LEAVE);
                }
            }
            Err(error) => {
                state.report.failed = Some(error);
                if !matches!(state.course, Course::Ending(_)) {
                    self.end(state, How::Itself, Ladder::Terminate);
                }
            }
        }
    }

    /// Reads what the exited child left in its pipes, and no more than is there now: a descendant that goes on
    /// writing must not keep us.
    fn drain(&mut self, buffer: &mut [u8], state: &mut State) {
        for at in 0..self.outlets.len() {
            let there = self.outlets[at].pipe.as_ref().and_then(|it| rustix::io::ioctl_fionread(it).ok());
            let mut left = usize::try_from(there.unwrap_or(0)).unwrap_or(usize::MAX);
            while left > 0 {
                match self.read(at, buffer, state) {
                    0 => break,
                    count => left = left.saturating_sub(count),
                }
            }
            self.read(at, buffer, state);
        }
    }
}

/// Whether any of the pipes is still held after a moment: a descendant that was forked just before the child's exit
/// may be about to redirect its output, and a child of another worker about to exec.
pub(crate) fn stay_held(pipes: &[PipeReader]) -> bool {
    let until = Instant::now() + REDIRECT;
    !pipes.iter().all(|pipe| hangs_up(pipe, until))
}

/// Whether nobody holds the writing end of `pipe`, by `until` at the latest.
fn hangs_up(pipe: &PipeReader, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        // Asked for nothing, a poll still tells a hang-up.
        match poll(&mut [PollFd::new(pipe, PollFlags::empty())], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            hung_up => return hung_up.is_ok_and(|count| count > 0),
        }
    }
}

/// Goes on reading an output that nobody listens to any more, as long as this program runs: what was to be left
/// running must not die of its next line.
pub(crate) fn drain_away(mut pipe: PipeReader) {
    let reads_on = move || {
        let mut buffer = [0; 4096];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], None) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        // What cannot be waited for would be read in a circle.
                        Err(_) => return,
                    }
                }
                Err(error) if is_passing(&error) => {}
                Err(_) => return,
            }
        }
    };
    // Without a thread the pipe closes here, which is what would have happened at the program's end.
    std::thread::Builder::new().name("drain".to_owned()).spawn(reads_on).ok();
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
