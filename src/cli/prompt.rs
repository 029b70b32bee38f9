//! Lines from a person: with an editor and a history on a terminal, as they come from a pipe.
//!
//! They are read on a thread of their own, so that a signal takes effect at once and not after the next line. What is typed
//! while the program works waits for the next line; it never answers a question that was not on the screen yet.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};

use super::Failure;
use crate::plan::chat::Line;
use crate::process::signals::Stop;
use crate::record::{Home, typed};
use crate::text::lossy::lossy;

/// A longer line is refused: somebody piped in something else than words.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How long a signal is waited for when lines broke off: a terminal that goes away does both, in either order.
const HANGUP_MAX: Duration = Duration::from_millis(500);
/// Terminals that know no sequences, and so have no editor.
const PLAIN_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];
/// An editor has asked the terminal to mark what is pasted; this takes it back.
const MARKS_NO_PASTE: &[u8] = b"\x1b[?2004l";

/// What is awaited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whatever comes to mind; it is remembered.
    Line,
    /// The answer to what is on the screen. What was typed before that was shown is no answer.
    Answer,
}

/// What is asked of the thread that reads.
struct Question {
    prompt: String,
    kind: Kind,
}

/// Where lines come from.
pub(super) struct Prompt {
    ask: Sender<Question>,
    answers: Receiver<Answer>,
    signals: Receiver<Stop>,
    /// How the terminal was before an editor had it.
    terminal: Option<Termios>,
}

/// What was typed, before a signal can have come.
enum Answer {
    Text(String),
    End,
    /// Ctrl-C, which an editor reads as a key.
    Interrupted,
    Broken(String),
}

impl Prompt {
    /// Begins to read standard input, with an editor where both ends are a terminal that can have one.
    /// Without one nobody shows what is asked but the caller.
    ///
    /// # Errors
    /// When there is no thread or no editor to be had.
    pub(super) fn start(home: &Home, signals: Receiver<Stop>) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::fmt::Display| Failure::new(format!("cannot read lines: {error}"));
        let has_editor = io::stdin().is_terminal() && io::stdout().is_terminal() && can_be_edited();
        let terminal = if has_editor { tcgetattr(io::stdin()).ok() } else { None };
        let (ask, asked) = bounded(1);
        let (answer, answers) = bounded(1);
        let home = home.clone();
        let read = move || {
            let mut source = match has_editor {
                true => Source::edited(home),
                false => Ok(Source::Plain),
            };
            for question in asked {
                let line = match &mut source {
                    Ok(source) => source.read(&question),
                    Err(error) => Answer::Broken(error.to_string()),
                };
                if answer.send(line).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("lines".to_owned()).spawn(read).map_err(|error| cannot(&error))?;
        Ok(Prompt { ask, answers, signals, terminal })
    }

    /// Whether an editor shows what is asked.
    pub(super) fn has_editor(&self) -> bool {
        self.terminal.is_some()
    }

    /// Waits for a line or a signal; an editor shows `prompt`.
    pub(super) fn read(&self, prompt: &str, kind: Kind) -> Line {
        if self.ask.send(Question { prompt: prompt.to_owned(), kind }).is_err() {
            return Line::Broken("the thread that reads lines broke down; please report this".to_owned());
        }
        select! {
            recv(self.answers) -> answer => match answer {
                Ok(Answer::Text(text)) => Line::Text(text),
                Ok(Answer::End) => Line::End,
                Ok(Answer::Interrupted) => Line::Interrupted(Stop::Interrupt),
                Ok(Answer::Broken(why)) => match self.signals.recv_timeout(HANGUP_MAX) {
                    Ok(signal) => Line::Interrupted(signal),
                    Err(_) => Line::Broken(why),
                },
                Err(_) => Line::Broken("the thread that reads lines broke down; please report this".to_owned()),
            },
            recv(self.signals) -> signal => {
                // The thread stays where it is, with the terminal as its editor wants it.
                if let Some(terminal) = &self.terminal {
                    tcsetattr(io::stdin(), OptionalActions::Now, terminal).ok();
                    let mut out = io::stdout();
                    out.write_all(MARKS_NO_PASTE).and_then(|()| out.flush()).ok();
                }
                Line::Interrupted(signal.unwrap_or(Stop::Interrupt))
            }
        }
    }
}

/// Whether the terminal knows the sequences that an editor draws with.
fn can_be_edited() -> bool {
    let name = std::env::var("TERM").unwrap_or_default();
    !PLAIN_TERMINALS.iter().any(|plain| name.eq_ignore_ascii_case(plain))
}

/// Where the thread has its lines from.
enum Source {
    Plain,
    Edited(Box<Edited>),
}

/// Editors at a terminal. Lines that were typed ahead wait in the buffer of theirs, where no answer is looked for.
struct Edited {
    lines: Editor<(), MemHistory>,
    answers: Editor<(), MemHistory>,
    home: Home,
}

impl Source {
    fn edited(home: Home) -> Result<Self, ReadlineError> {
        let mut lines = editor(typed::LINES_MAX)?;
        for line in typed::read(&home).unwrap_or_default() {
            lines.add_history_entry(line)?;
        }
        Ok(Source::Edited(Box::new(Edited { lines, answers: editor(0)?, home })))
    }

    fn read(&mut self, question: &Question) -> Answer {
        if question.kind == Kind::Answer {
            // Only a terminal has such a queue.
            tcflush(io::stdin(), QueueSelector::IFlush).ok();
        }
        match self {
            Source::Plain => plain(),
            Source::Edited(editors) => match editors.read(question) {
                Ok(line) => Answer::Text(line),
                Err(ReadlineError::Eof) => Answer::End,
                Err(ReadlineError::Interrupted) => Answer::Interrupted,
                Err(error) => Answer::Broken(error.to_string()),
            },
        }
    }
}

impl Edited {
    fn read(&mut self, question: &Question) -> Result<String, ReadlineError> {
        if question.kind == Kind::Answer {
            return self.answers.readline(&question.prompt);
        }
        let line = self.lines.readline(&question.prompt)?;
        if self.lines.add_history_entry(&line).unwrap_or(false) {
            // A chat without a memory is still a chat.
            typed::add(&self.home, &line).ok();
        }
        Ok(line)
    }
}

/// An editor that takes what is pasted as one text, and remembers so many lines, none that begins with a blank, as in a
/// shell.
fn editor(lines_max: usize) -> Result<Editor<(), MemHistory>, ReadlineError> {
    let config = Config::builder().max_history_size(lines_max)?.history_ignore_space(true).build();
    let history = MemHistory::with_config(&config);
    Editor::with_history(config, history)
}

fn plain() -> Answer {
    let mut line = Vec::new();
    let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX) + 1;
    match io::stdin().lock().take(limit).read_until(b'\n', &mut line) {
        Ok(0) => Answer::End,
        Ok(_) if line.len() > LINE_BYTES_MAX => {
            Answer::Broken(format!("a line is longer than {LINE_BYTES_MAX} bytes"))
        }
        Ok(_) => Answer::Text(lossy(line).trim_end_matches(['\n', '\r']).to_owned()),
        Err(error) => Answer::Broken(error.to_string()),
    }
}
