//! Settings files of the CLIs that would change who pays or who is talked to (CLI-PROTOCOL 1, row 12).
//!
//! The scrub of the environment cannot reach what a settings file sets again inside the child, so a run says so before it
//! spends. Names keys, never values: those may be secrets. Each CLI has a file here; whether a CLI is run isolated from its
//! settings is for the caller to know.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::node::runtime::RuntimeKind;
use crate::process::env::bills;

mod claude;
mod codex;

/// Larger files are no settings.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Variables that send a CLI to a server that is not its own. Both CLIs read their names as they stand.
const REDIRECTING: [&str; 8] = [
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "OPENAI_BASE_URL",
];

/// Where the settings of a CLI lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The CLI's own directory: `$CLAUDE_CONFIG_DIR` or `~/.claude`, `$CODEX_HOME` or `~/.codex`.
    pub config: Option<PathBuf>,
    /// The person's home.
    pub home: Option<PathBuf>,
    /// What the files that a machine's managers place lie below, `/`.
    pub system: PathBuf,
    /// The directories that prompts run in, absolute.
    pub directories: BTreeSet<PathBuf>,
    /// Whether the CLI is told to load nobody's configuration; what is managed applies all the same.
    pub is_isolated: bool,
}

/// Something to be told of a settings file; one for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// What about it.
    pub what: What,
    origin: Origin,
    cli: &'static str,
}

/// What is to be told of a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It sets a key that changes who pays or who is talked to.
    Sets {
        /// The key, dots between its parts: `env.ANTHROPIC_API_KEY`.
        key: String,
        /// What it does.
        effect: Effect,
    },
    /// Nobody can tell what it sets; why, as the end of a sentence.
    Unreadable(String),
}

/// What a key does to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A key pays for each token instead of the person's login.
    Bills,
    /// Another server is talked to.
    Redirects,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The person's.
    Own,
    /// Of the directory that a prompt runs in, so as a rule a repository's.
    Project,
    /// Of the managers of the machine.
    Managed,
}

/// What there is to be told of the settings that `kind` loads, the managers' files first, then the person's own.
pub fn findings(kind: RuntimeKind, at: &Whereabouts) -> Vec<Finding> {
    match kind {
        RuntimeKind::Claude => claude::findings(at),
        RuntimeKind::Codex => codex::findings(at),
        RuntimeKind::Rehearsal => Vec::new(),
    }
}

/// What a variable of this name and value does to a CLI; one that is empty, or a switch that is off, does nothing.
pub fn effect_of(name: &str, value: &str) -> Option<Effect> {
    let value = value.trim();
    let is_off = name.starts_with("CLAUDE_CODE_USE_") && ["0", "false", "no", "off"].contains(&value);
    if value.is_empty() || is_off {
        return None;
    }
    let redirects = || REDIRECTING.contains(&name).then_some(Effect::Redirects);
    if bills(name.as_ref()) { Some(Effect::Bills) } else { redirects() }
}

impl Finding {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match (&self.what, self.origin) {
            (_, Origin::Managed) => "whoever manages this machine can change it",
            (What::Unreadable(_), _) => "mend the file, or move it away",
            (What::Sets { .. }, Origin::Own) => "take it out there unless it is what you want",
            (What::Sets { .. }, Origin::Project) => {
                "take it out there unless you trust whoever wrote it with your money and your work"
            }
        }
    }
}

/// What is the matter, without the remedy.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, cli) = (self.path.display(), self.cli);
        match &self.what {
            What::Unreadable(why) => {
                write!(f, "{path} {why}, so nobody can tell whether it changes who pays for {cli}")
            }
            What::Sets { key, effect: Effect::Bills } => {
                write!(f, "{path} sets {key}: {cli} bills a key for it instead of using your login")
            }
            What::Sets { key, effect: Effect::Redirects } => {
                write!(f, "{path} sets {key}: {cli} sends its work to another server than its own")
            }
        }
    }
}

/// A settings file that may be there.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    origin: Origin,
    cli: &'static str,
}

impl Place {
    /// What the file holds; `None` when there is none, a finding when nobody can tell.
    fn read(&self) -> Option<Result<String, Finding>> {
        match text_of(&self.path) {
            Ok(text) => Some(Ok(text)),
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                None
            }
            Err(error) => Some(Err(self.unreadable(format!("cannot be read ({error})")))),
        }
    }

    fn sets(&self, key: impl Into<String>, effect: Effect) -> Finding {
        self.tells(What::Sets { key: key.into(), effect })
    }

    fn unreadable(&self, why: impl Into<String>) -> Finding {
        self.tells(What::Unreadable(why.into()))
    }

    fn tells(&self, what: What) -> Finding {
        Finding { path: self.path.clone(), what, origin: self.origin, cli: self.cli }
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for whoever writes to it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    let length = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {} MB", FILE_BYTES_MAX >> 20)));
    }
    // Editors of other systems begin a file with a mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    /// A scratch folder with a home, a project and a root for the managers' files.
    pub(super) struct World(tempfile::TempDir);

    impl World {
        pub(super) fn new() -> Self {
            World(tempfile::tempdir().unwrap())
        }

        pub(super) fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        pub(super) fn at(&self, config: &str) -> Whereabouts {
            let at = |name: &str| self.0.path().join(name);
            Whereabouts {
                config: Some(at(config)),
                home: Some(at("home")),
                system: at("root"),
                directories: BTreeSet::from([at("project")]),
                is_isolated: false,
            }
        }

        /// What is found, `<file>: <key> <effect>` or `<file>: unreadable`.
        pub(super) fn found(&self, kind: RuntimeKind, config: &str) -> Vec<String> {
            self.told(kind, &self.at(config))
        }

        /// The same of a CLI that is told to load nobody's configuration.
        pub(super) fn found_isolated(&self, kind: RuntimeKind, config: &str) -> Vec<String> {
            self.told(kind, &Whereabouts { is_isolated: true, ..self.at(config) })
        }

        fn told(&self, kind: RuntimeKind, at: &Whereabouts) -> Vec<String> {
            let told = |finding: &Finding| {
                let file = finding.path.strip_prefix(self.0.path()).unwrap().display();
                match &finding.what {
                    What::Sets { key, effect } => format!("{file}: {key} {effect:?}"),
                    What::Unreadable(why) => format!("{file}: {why}"),
                }
            };
            findings(kind, at).iter().map(told).collect()
        }
    }

    #[test]
    fn a_variable_that_is_empty_or_a_switch_that_is_off_does_nothing() {
        for (name, value, wanted) in [
            ("ANTHROPIC_API_KEY", "k", Some(Effect::Bills)),
            ("openai_api_key", "k", Some(Effect::Bills)),
            ("ANTHROPIC_API_KEY", " ", None),
            ("ANTHROPIC_API_KEY_BACKUP", "k", None),
            ("ANTHROPIC_BASE_URL", "http://x", Some(Effect::Redirects)),
            ("CLAUDE_CODE_USE_BEDROCK", "1", Some(Effect::Redirects)),
            ("CLAUDE_CODE_USE_BEDROCK", "0", None),
            ("CLAUDE_CODE_USE_VERTEX", "false", None),
            ("EDITOR", "vi", None),
        ] {
            assert_eq!(effect_of(name, value), wanted, "{name}={value}");
        }
    }

    #[test]
    fn the_words_name_the_file_the_key_and_what_to_do_and_never_a_value() {
        let world = World::new();
        world.write("project/.claude/settings.json", r#"{"env":{"ANTHROPIC_API_KEY":"sk-secret"}}"#);
        world.write("home/.claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"http://secret"}}"#);
        world.write("home/.claude.json", r#"{"secret": sk-secret}"#);
        let found = findings(RuntimeKind::Claude, &world.at("home/.claude"));
        let said: Vec<String> = found.iter().map(|it| format!("{it}; {}", it.remedy())).collect();
        let all = said.join("\n").replace(&world.0.path().display().to_string(), "");
        insta::assert_snapshot!(all, @"
        /home/.claude/settings.json sets env.ANTHROPIC_BASE_URL: claude sends its work to another server than its own; take it out there unless it is what you want
        /home/.claude.json is not JSON (line 1, column 12), so nobody can tell whether it changes who pays for claude; mend the file, or move it away
        /project/.claude/settings.json sets env.ANTHROPIC_API_KEY: claude bills a key for it instead of using your login; take it out there unless you trust whoever wrote it with your money and your work
        ");
        assert!(!all.contains("sk-secret") && !all.contains("http://secret"));
    }

    #[test]
    fn what_is_no_file_is_told_and_never_waited_for() {
        let world = World::new();
        fs::create_dir_all(world.0.path().join("project/.claude/settings.json")).unwrap();
        assert_eq!(
            world.found(RuntimeKind::Claude, "home/.claude"),
            ["project/.claude/settings.json: cannot be read (it is no file)"]
        );
    }

    #[test]
    fn a_rehearsal_has_no_settings() {
        let world = World::new();
        world.write("project/.claude/settings.json", r#"{"apiKeyHelper":"x"}"#);
        assert!(world.found(RuntimeKind::Rehearsal, "home/.claude").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r#"([\[\]{}":=.,\n]|env|model_provider|sets|[a-z]|\PC){0,40}"#) {
            let world = World::new();
            world.write("project/.claude/settings.json", &text);
            world.write("home/.codex/config.toml", &text);
            world.write("home/.codex/.env", &text);
            for kind in RuntimeKind::ALL {
                world.found(kind, "home/.codex");
            }
        }
    }
}
