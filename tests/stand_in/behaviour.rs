//! What the prompt asks the stand-in to do.

use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::invocation::{Invocation, read_stdin};

/// What the directives add up to.
pub(crate) struct Behaviour {
    pub(crate) reply: String,
    pub(crate) code: i32,
    /// Printed instead of an envelope.
    pub(crate) raw: Option<Vec<u8>>,
    pub(crate) cost: Option<f64>,
    pub(crate) is_error: bool,
    /// Input and output tokens that codex reports.
    pub(crate) tokens: (u64, u64),
    pub(crate) session: String,
    /// Signals that this process, and what it starts from then on, ignore.
    ignored: Vec<&'static str>,
}

const BAD_UTF8: &[u8] = b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"a\xff\xfeb\",\"session_id\":\"s\",\"total_cost_usd\":0.01}";

impl Behaviour {
    /// Follows the prompt's directives in their order.
    pub(crate) fn act(call: &Invocation) -> io::Result<Self> {
        let mut it = Behaviour {
            reply: "PASS".to_owned(),
            code: 0,
            raw: None,
            cost: Some(0.01),
            is_error: false,
            tokens: (10, 5),
            session: session(call),
            ignored: Vec::new(),
        };
        for (key, value) in directives(&call.prompt).into_iter().chain(cued(&call.cues, &call.prompt)) {
            it.follow(call, key, value)?;
        }
        Ok(it)
    }

    fn follow(&mut self, call: &Invocation, key: &str, value: &str) -> io::Result<()> {
        match key {
            "say" => self.reply = value.to_owned(),
            "echo" => self.reply = call.prompt.clone(),
            "reply-n" => self.reply = nth_reply(call, value)?,
            "on" => self.follow_on(call, value)?,
            "big" => self.reply = "x".repeat(number(value)?),
            "ansi" => self.reply = "\x1b[31mRED\x1b[0m [bold]x[/bold] \r\nnext\x07".to_owned(),
            "readstdin" => {
                self.reply = read_stdin()?.chars().take(100).collect();
                self.reply.insert_str(0, "stdin:");
            }
            "raw" => self.raw = Some(value.as_bytes().to_vec()),
            "empty" => self.raw = Some(Vec::new()),
            "badutf8" => self.raw = Some(BAD_UTF8.to_vec()),
            "iserror" => self.is_error = true,
            "cost" => self.cost = Some(number(value)?),
            "nocost" => self.cost = None,
            "tokens" => self.tokens = pair(value)?,
            "session" => self.session = value.to_owned(),
            "exit" => self.code = number(value)?,
            _ => self.do_something(key, value)?,
        }
        Ok(())
    }

    /// `@on N DIRECTIVE` is followed by the n-th spawn only.
    fn follow_on(&mut self, call: &Invocation, value: &str) -> io::Result<()> {
        let (nth, directive) = value.split_once(' ').unwrap_or((value, ""));
        if times_before(call, value)? + 1 != number::<usize>(nth)? {
            return Ok(());
        }
        let (key, value) = directive.split_once(' ').unwrap_or((directive, ""));
        self.follow(call, key, value)
    }

    fn do_something(&mut self, key: &str, value: &str) -> io::Result<()> {
        match key {
            "sleep" => std::thread::sleep(Duration::from_secs_f64(number(value)?)),
            "kill" => kill_process(getpid(), signal(value)?)?,
            "ignoreterm" => self.ignore(SIGTERM, "TERM")?,
            "ignoreint" => self.ignore(SIGINT, "INT")?,
            "bigerr" => write_errors(number(value)?)?,
            "orphan" => drop(self.shell(&format!("exec sleep {value}")).spawn()?),
            "orphansid" => drop(self.shell(&format!("exec setsid sleep {value}")).spawn()?),
            "touch" => fs::write(value, "1")?,
            "append" => append(value, &format!("{}\n", std::process::id()))?,
            "sh" => drop(self.shell(value).status()?),
            _ => {}
        }
        Ok(())
    }

    /// A handler that does nothing stands for "ignored" here; what is started is told by its shell.
    fn ignore(&mut self, signal: i32, name: &'static str) -> io::Result<()> {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        self.ignored.push(name);
        Ok(())
    }

    fn shell(&self, line: &str) -> Command {
        let trap = match self.ignored.as_slice() {
            [] => String::new(),
            names => format!("trap '' {}\n", names.join(" ")),
        };
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(trap + line);
        command
    }
}

/// The directives outside a quoted previous attempt.
fn directives(prompt: &str) -> Vec<(&str, &str)> {
    let mut quoted = false;
    let mut found = Vec::new();
    for line in prompt.split('\n').map(str::trim) {
        if line.starts_with("--- previous attempt") {
            quoted = true;
        }
        if line.starts_with("--- end previous attempt") {
            quoted = false;
        }
        if let Some(directive) = line.strip_prefix('@').filter(|_| !quoted) {
            found.push(directive.split_once(' ').unwrap_or((directive, "")));
        }
    }
    found
}

/// The directives of the cues, `TEXT => @key value`, whose text the prompt holds.
fn cued<'c>(cues: &'c str, prompt: &str) -> Vec<(&'c str, &'c str)> {
    let cues = cues.lines().filter_map(|line| line.split_once(" => @"));
    let heard = cues.filter(|(text, _)| prompt.contains(text));
    heard.map(|(_, directive)| directive.split_once(' ').unwrap_or((directive, ""))).collect()
}

/// The session that was asked for, else a new one.
fn session(call: &Invocation) -> String {
    let resumed = call.codex.then(|| call.value_of("resume")).flatten();
    let named = resumed.or_else(|| call.value_of("--resume")).or_else(|| call.value_of("--session-id"));
    named.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// The n-th spawn gets the n-th reply, the last repeats.
fn nth_reply(call: &Invocation, value: &str) -> io::Result<String> {
    let choices: Vec<&str> = value.split('|').collect();
    Ok(choices[times_before(call, value)?.min(choices.len() - 1)].to_owned())
}

/// How many spawns came to this very line of this very prompt before; without a log there is no count.
fn times_before(call: &Invocation, line: &str) -> io::Result<usize> {
    let Some(log) = &call.log else { return Ok(0) };
    let mut hasher = DefaultHasher::new();
    (directives(&call.prompt), line).hash(&mut hasher);
    let counter = format!("{}.n-{:08x}", log.display(), hasher.finish() as u32);
    let before = fs::metadata(&counter).map_or(0, |it| it.len() as usize);
    append(&counter, ".")?;
    Ok(before)
}

fn append(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

fn write_errors(mut left: usize) -> io::Result<()> {
    let chunk = [b'e'; 65536];
    let mut stderr = io::stderr().lock();
    while left > 0 {
        let count = left.min(chunk.len());
        stderr.write_all(&chunk[..count])?;
        left -= count;
    }
    Ok(())
}

fn signal(text: &str) -> io::Result<Signal> {
    Signal::from_named_raw(number(text)?).ok_or_else(|| io::Error::other(format!("no signal {text}")))
}

fn pair(text: &str) -> io::Result<(u64, u64)> {
    let (first, second) = text.split_once(' ').unwrap_or((text, "0"));
    Ok((number(first)?, number(second)?))
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.trim().parse().map_err(|_| io::Error::other(format!("not a number: {text:?}")))
}
