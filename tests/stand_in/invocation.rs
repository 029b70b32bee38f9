//! How the stand-in was called: its arguments, its prompt, and the log of its spawns.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

/// One call.
pub(crate) struct Invocation {
    pub(crate) args: Vec<String>,
    pub(crate) codex: bool,
    pub(crate) prompt: String,
    pub(crate) log: Option<PathBuf>,
    /// What prompts that do not say it themselves ask for.
    pub(crate) cues: String,
}

impl Invocation {
    /// Reads the call from the process.
    pub(crate) fn read() -> io::Result<Self> {
        let mut words = env::args_os().map(|it| it.to_string_lossy().into_owned());
        let program = words.next().unwrap_or_default();
        let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let codex = name.starts_with("codex");
        let args: Vec<String> = words.collect();
        let asked = args == ["--version"];
        let prompt = match prompt_word(&args, codex) {
            Some(word) => word,
            None if asked => String::new(),
            None => read_stdin()?,
        };
        let log = env::var_os("FAKE_LOG").map(PathBuf::from);
        let cues =
            env::var_os("FAKE_CUES").and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        Ok(Invocation { args, codex, prompt, log, cues })
    }

    /// The word after `flag`.
    pub(crate) fn value_of(&self, flag: &str) -> Option<&str> {
        let at = self.args.iter().position(|it| it == flag)?;
        self.args.get(at + 1).map(String::as_str)
    }

    /// Appends this spawn to the log in one write, so that spawns at the same time never mix.
    pub(crate) fn log(&self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let line = json!({"t": time, "pid": std::process::id(), "ppid": std::os::unix::process::parent_id(),
            "argv": self.args, "prompt": self.prompt, "cwd": env::current_dir()?.to_string_lossy(),
            "keys": keys(), "codex": self.codex});
        OpenOptions::new().append(true).create(true).open(log)?.write_all(format!("{line}\n").as_bytes())
    }
}

/// The prompt after `--`, after `-p`, or codex's last word; `None` when it comes on standard input.
fn prompt_word(args: &[String], codex: bool) -> Option<String> {
    if let Some(at) = args.iter().position(|it| it == "--") {
        return Some(args.get(at + 1).cloned().unwrap_or_default());
    }
    if codex {
        return args.last().map_or(Some(String::new()), |it| (it != "-").then(|| it.clone()));
    }
    let at = args.iter().position(|it| it == "-p")?;
    args.get(at + 1).filter(|it| !it.starts_with("--")).cloned()
}

/// All of standard input, lossily.
pub(crate) fn read_stdin() -> io::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The names of variables that look like a login.
fn keys() -> Vec<String> {
    let names = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    names.filter(|it| ["API_KEY", "AUTH_TOKEN"].iter().any(|key| it.to_uppercase().contains(key))).collect()
}
