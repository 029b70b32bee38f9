//! `--verify-cmd` and `--verify-timeout`: the evidence command that a person gives to a planned run, checked before
//! anything is spent (FACTS 1.4). `auto` and `resume` ask here alike.
//!
//! A command that cannot even start would let a plan be bought and its nodes be paid, and then fail every one of them.
//! Only what a shell would certainly take for the name of a program is looked for; anything else is left to the shell.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::evidence::VERIFY_FLAG;
use crate::graph::node::VERIFY_TIMEOUT_MAX;
use crate::process::find;
use crate::text::duration::{self, DurationError, Signed};
use crate::text::shell_word::shell_word;

/// The flag that bounds it.
pub const TIMEOUT_FLAG: &str = "--verify-timeout";

/// Characters that give a command line a meaning of its own: what stands before them may not be a program.
const SHELL_SYNTAX: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '\n', '*', '?', '[', ']', '{', '}', '~',
    '=',
];

/// First words that a shell does not look for on `PATH`: its own commands, and those that begin a construct.
const SHELL_WORDS: [&str; 32] = [
    "!", ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "eval", "exec", "exit",
    "export", "fg", "for", "getopts", "hash", "if", "jobs", "read", "readonly", "return", "set", "shift",
    "times", "trap", "umask", "until", "unset", "wait", "while",
];

/// An evidence command, ready to be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyCommand {
    /// The command as it was given, for `sh -c`.
    pub command: String,
    /// How long it may take, at most [`VERIFY_TIMEOUT_MAX`].
    pub timeout: Duration,
}

impl VerifyCommand {
    /// The flags that give it again, as words of a shell.
    pub fn words(&self) -> String {
        let timeout = match self.timeout {
            VERIFY_TIMEOUT_MAX => String::new(),
            time => format!(" {TIMEOUT_FLAG} {}", duration::exact(time)),
        };
        format!("{VERIFY_FLAG} {}{timeout}", shell_word(&self.command))
    }
}

/// What is wrong with the flags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFlagsError {
    /// A bound on nothing.
    #[error("{TIMEOUT_FLAG} {given:?} bounds nothing: no {VERIFY_FLAG} is given")]
    TimeoutAlone {
        /// The flag's value.
        given: String,
    },
    /// A command of blanks.
    #[error("{VERIFY_FLAG} is blank: it would pass whatever the work is worth")]
    Blank,
    /// A timeout that is none.
    #[error("{TIMEOUT_FLAG} {given:?} is not a duration: {why}")]
    NoDuration {
        /// The flag's value.
        given: String,
        /// Why.
        why: DurationError,
    },
    /// A timeout below nothing.
    #[error("{TIMEOUT_FLAG} {given:?} is negative")]
    Negative {
        /// The flag's value.
        given: String,
    },
    /// A timeout above the bound of every check.
    #[error("{TIMEOUT_FLAG} {given:?} is more than the {most} that a check may take", most = duration::exact(VERIFY_TIMEOUT_MAX))]
    TooLong {
        /// The flag's value.
        given: String,
    },
    /// A path that cannot be run.
    #[error("{VERIFY_FLAG} cannot run: {path} {why}", path = path.display())]
    NotRunnable {
        /// The path that was tried, absolute.
        path: PathBuf,
        /// What is the matter with it, as the end of a sentence.
        why: &'static str,
    },
    /// A name that is nowhere on `PATH`.
    #[error("{VERIFY_FLAG} cannot run: {}", missing)]
    NotFound {
        /// The program and where it was looked for.
        missing: String,
    },
}

impl VerifyFlagsError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            VerifyFlagsError::TimeoutAlone { .. } => format!("give {VERIFY_FLAG} 'COMMAND' with it"),
            VerifyFlagsError::Blank => {
                format!("give a command that fails when the work is bad, as {VERIFY_FLAG} 'make test'")
            }
            VerifyFlagsError::NoDuration { .. } | VerifyFlagsError::Negative { .. } => {
                format!("write a number with a unit, as {TIMEOUT_FLAG} 5m")
            }
            VerifyFlagsError::TooLong { .. } => {
                "check what decides in that time, and leave the rest to a run of its own".to_owned()
            }
            VerifyFlagsError::NotRunnable { .. } => {
                "paths count from the directory that omg is started in".to_owned()
            }
            VerifyFlagsError::NotFound { .. } => "install it, or give its path".to_owned(),
        }
    }
}

/// Reads both flags, for a run in `directory` whose commands are looked for on `path`. An empty command is none, and a
/// timeout of nothing, or none, is [`VERIFY_TIMEOUT_MAX`].
///
/// # Errors
/// When the flags contradict each other, or the command could not be started.
pub fn read(
    command: Option<&str>,
    timeout: Option<&str>,
    directory: &Path,
    path: Option<&OsStr>,
) -> Result<Option<VerifyCommand>, VerifyFlagsError> {
    let bound = timeout.map(|given| signed(given).map(|time| (time, given))).transpose()?;
    let bound = bound.filter(|(time, _)| time.non_negative() != Some(Duration::ZERO));
    let Some(command) = command.filter(|command| !command.is_empty()) else {
        return match bound {
            Some((_, given)) => Err(VerifyFlagsError::TimeoutAlone { given: given.to_owned() }),
            None => Ok(None),
        };
    };
    if command.trim().is_empty() {
        return Err(VerifyFlagsError::Blank);
    }
    let timeout = bound.map(|(time, given)| bounded(time, given)).transpose()?;
    runnable(command.trim(), directory, path)?;
    Ok(Some(VerifyCommand { command: command.to_owned(), timeout: timeout.unwrap_or(VERIFY_TIMEOUT_MAX) }))
}

fn signed(given: &str) -> Result<Signed, VerifyFlagsError> {
    duration::parse(given).map_err(|why| VerifyFlagsError::NoDuration { given: given.to_owned(), why })
}

fn bounded(time: Signed, given: &str) -> Result<Duration, VerifyFlagsError> {
    match time.non_negative() {
        None => Err(VerifyFlagsError::Negative { given: given.to_owned() }),
        Some(time) if time > VERIFY_TIMEOUT_MAX => Err(VerifyFlagsError::TooLong { given: given.to_owned() }),
        Some(time) => Ok(time),
    }
}

/// Whether a shell could start `command`, as far as its first word tells.
fn runnable(command: &str, directory: &Path, path: Option<&OsStr>) -> Result<(), VerifyFlagsError> {
    let program = command.split_whitespace().next().unwrap_or_default();
    if command.contains(SHELL_SYNTAX) || SHELL_WORDS.contains(&program) {
        return Ok(());
    }
    if program.contains('/') {
        return runnable_file(directory.join(program));
    }
    // What stands in the directory of the run alone is the repository's; an empty element of PATH does not vouch for it.
    let named = path.map(|path| std::env::split_paths(path).filter(|it| !it.as_os_str().is_empty()));
    let named: Option<OsString> = named.and_then(|it| std::env::join_paths(it).ok());
    let found = find::find_in(program, named.as_deref().filter(|path| !path.is_empty()));
    found.map(drop).map_err(|missing| VerifyFlagsError::NotFound { missing: missing.to_string() })
}

fn runnable_file(path: PathBuf) -> Result<(), VerifyFlagsError> {
    let why = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
        Err(_) => "cannot be reached",
        Ok(about) if about.is_dir() => "is a directory",
        Ok(_) if find::is_executable(&path) => return Ok(()),
        Ok(_) => "is not executable",
    };
    Err(VerifyFlagsError::NotRunnable { path, why })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// A directory with `bin/tool`, which can be run, and `script` and `notes`, of which the second cannot.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Place(tempfile::tempdir().unwrap());
            fs::create_dir(place.at("bin")).unwrap();
            for (name, mode) in [("bin/tool", 0o755), ("script", 0o755), ("notes", 0o644)] {
                fs::write(place.at(name), "").unwrap();
                fs::set_permissions(place.at(name), fs::Permissions::from_mode(mode)).unwrap();
            }
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn read(&self, command: &str) -> Result<(), String> {
            let path = std::env::join_paths([PathBuf::new(), self.at("bin")]).unwrap();
            let read = read(Some(command), None, self.0.path(), Some(&path));
            let said = read.map_err(|error| error.to_string())?;
            assert_eq!(said.unwrap().command, command, "the command is attached as it was given");
            Ok(())
        }
    }

    fn timed(command: Option<&str>, timeout: &str) -> Result<Option<Duration>, VerifyFlagsError> {
        read(command, Some(timeout), Path::new("/"), None).map(|read| read.map(|it| it.timeout))
    }

    #[test]
    fn without_flags_there_is_no_command_and_an_empty_one_is_none() {
        for (command, timeout) in [(None, None), (Some(""), None), (None, Some("0")), (Some(""), Some("0s"))]
        {
            assert_eq!(read(command, timeout, Path::new("/"), None), Ok(None), "{command:?} {timeout:?}");
        }
    }

    #[test]
    fn a_timeout_is_a_duration_of_a_command_within_the_bound() {
        let minutes = |minutes: u64| Ok(Some(Duration::from_secs(60 * minutes)));
        for (timeout, wanted) in [("0", minutes(10)), ("10m", minutes(10)), ("1m", minutes(1))] {
            assert_eq!(timed(Some("exit 0"), timeout), wanted, "{timeout}");
        }
        assert_eq!(timed(Some("exit 0"), "1ns"), Ok(Some(Duration::from_nanos(1))));
        for (command, timeout, wanted) in [
            (None, "1m", r#"--verify-timeout "1m" bounds nothing: no --verify-cmd is given"#),
            (Some(""), "-1m", r#"--verify-timeout "-1m" bounds nothing: no --verify-cmd is given"#),
            (Some("exit 0"), "-1m", r#"--verify-timeout "-1m" is negative"#),
            (
                Some("exit 0"),
                "10m1ns",
                r#"--verify-timeout "10m1ns" is more than the 10m0s that a check may take"#,
            ),
            (Some("exit 0"), "90", r#"--verify-timeout "90" is not a duration: the unit is missing"#),
            (None, "soon", r#"--verify-timeout "soon" is not a duration: it is not a number with a unit"#),
        ] {
            assert_eq!(timed(command, timeout).unwrap_err().to_string(), wanted);
        }
    }

    #[test]
    fn a_command_of_blanks_is_refused() {
        for blank in [" ", "\t", "\n \n", "\u{a0}"] {
            assert_eq!(read(Some(blank), None, Path::new("/"), None), Err(VerifyFlagsError::Blank));
        }
    }

    #[test]
    fn a_program_has_to_be_there_before_anything_is_spent() {
        let place = Place::new();
        for command in ["tool", "  tool --fast ", "./script", "bin/tool x"] {
            assert_eq!(place.read(command), Ok(()), "{command}");
        }
        let bin = place.at("bin").display().to_string();
        let searched = format!("--verify-cmd cannot run: nosuch was not found on PATH (searched {bin})");
        assert_eq!(place.read("nosuch --all").unwrap_err(), searched);
        assert!(place.read("script").is_err(), "an empty element of PATH does not count");
        for (command, path, why) in [
            ("./gone/tool", "./gone/tool", "does not exist"),
            ("bin/", "bin/", "is a directory"),
            ("./notes", "./notes", "is not executable"),
            ("notes/x", "notes/x", "cannot be reached"),
        ] {
            let wanted = format!("--verify-cmd cannot run: {} {why}", place.at(path).display());
            assert_eq!(place.read(command).unwrap_err(), wanted);
        }
    }

    #[test]
    fn what_only_a_shell_understands_is_left_to_it() {
        let place = Place::new();
        for syntax in SHELL_SYNTAX {
            assert_eq!(place.read(&format!("nosuch a{syntax}b")), Ok(()), "{syntax:?}");
        }
        for command in ["nosuch && b", "CI=1 nosuch", "cd sub", ". ./env", "! nosuch x", "exec tool"] {
            assert_eq!(place.read(command), Ok(()), "{command}");
        }
    }

    #[test]
    fn without_a_path_no_program_is_found() {
        let error = read(Some("tool"), None, Path::new("/"), None).unwrap_err();
        assert_eq!(error.to_string(), "--verify-cmd cannot run: tool was not found on PATH");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_accepted_is_bounded(
            command in proptest::option::of(r"[\PC\s\x00]{0,12}"),
            timeout in proptest::option::of(r"-?[0-9]{0,3}(m|s|h|\PC)?"),
        ) {
            let read = read(command.as_deref(), timeout.as_deref(), Path::new("/"), Some(OsStr::new("/bin")));
            match read {
                Ok(Some(found)) => {
                    prop_assert_eq!(Some(found.command.as_str()), command.as_deref());
                    prop_assert!(found.timeout <= VERIFY_TIMEOUT_MAX && !found.timeout.is_zero());
                }
                Ok(None) => prop_assert!(command.unwrap_or_default().is_empty()),
                Err(error) => prop_assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
            }
        }
    }
}
