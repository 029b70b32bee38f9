//! Lines from a person: with an editor and a history on a terminal, as they come from a pipe.
//!
//! They are read on a thread of their own, so that a signal takes effect at once and not after the next line.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, select};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
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

/// What is asked of the thread that reads.
struct Question {
    prompt: String,
    /// Whether the answer is remembered.
    is_kept: bool,
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
    ///
    /// # Errors
    /// When there is no thread or no editor to be had.
    pub(super) fn start(home: &Home, signals: Receiver<Stop>) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::fmt::Display| Failure::new(format!("cannot read lines: {error}"));
        let has_editor = io::stdin().is_terminal() && io::stdout().is_terminal();
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

    /// Shows `prompt` and waits for a line or a signal.
    pub(super) fn read(&self, prompt: &str, is_kept: bool) -> Line {
        if self.ask.send(Question { prompt: prompt.to_owned(), is_kept }).is_err() {
            return Line::Broken("the thread that reads lines broke down; please report this".to_owned());
        }
        select! {
            recv(self.answers) -> answer => match answer {
                Ok(Answer::Text(text)) => Line::Text(text),
                Ok(Answer::End) => Line::End,
                Ok(Answer::Interrupted) => Line::Interrupted(Stop::Interrupt),
                Ok(Answer::Broken(why)) => Line::Broken(why),
                Err(_) => Line::Broken("the thread that reads lines broke down; please report this".to_owned()),
            },
            recv(self.signals) -> signal => {
                // The thread stays where it is, with the terminal as its editor wants it.
                if let Some(terminal) = &self.terminal {
                    tcsetattr(io::stdin(), OptionalActions::Now, terminal).ok();
                }
                Line::Interrupted(signal.unwrap_or(Stop::Interrupt))
            }
        }
    }
}

/// Where the thread has its lines from.
enum Source {
    Plain,
    Edited(Box<Editor<(), MemHistory>>, Home),
}

impl Source {
    fn edited(home: Home) -> Result<Self, ReadlineError> {
        // A line that begins with a blank is not remembered, as in a shell.
        let config = Config::builder()
            .max_history_size(typed::LINES_MAX)?
            .history_ignore_space(true)
            .bracketed_paste(false)
            .build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history)?;
        for line in typed::read(&home).unwrap_or_default() {
            editor.add_history_entry(line)?;
        }
        Ok(Source::Edited(Box::new(editor), home))
    }

    fn read(&mut self, question: &Question) -> Answer {
        match self {
            Source::Plain => plain(&question.prompt),
            Source::Edited(editor, home) => match editor.readline(&question.prompt) {
                Ok(line) => {
                    let is_new = question.is_kept && editor.add_history_entry(&line).unwrap_or(false);
                    if is_new {
                        // A chat without a memory is still a chat.
                        typed::add(home, &line).ok();
                    }
                    Answer::Text(line)
                }
                Err(ReadlineError::Eof) => Answer::End,
                Err(ReadlineError::Interrupted) => Answer::Interrupted,
                Err(error) => Answer::Broken(error.to_string()),
            },
        }
    }
}

fn plain(prompt: &str) -> Answer {
    let mut out = io::stdout();
    out.write_all(prompt.as_bytes()).and_then(|()| out.flush()).ok();
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
