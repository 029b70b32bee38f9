//! The question that a planned run is asked before it spends: what shows that the work builds (DESIGN "Auto mode",
//! FACTS 8.10).
//!
//! A plan can carry no command of its own, so without one from the person every PASS of it rests on what a model said of
//! its own work. Where a build system stands, that has to be chosen. Looks at the names in a directory and never into a
//! file: a repository may stop a run, and never gives it a command.

use std::fs;
use std::path::Path;

use crate::text::sanitize;
use crate::text::shell_word::shell_word;

/// The flag that gives the evidence command.
pub const VERIFY_FLAG: &str = "--verify-cmd";
/// The flag by which a person goes without one.
pub const ACCEPT_FLAG: &str = "--accept-no-build-evidence";
/// What is recorded for [`ACCEPT_FLAG`]'s counterpart in a chat: the yes to a plan that said so.
const CHAT_CONFIRM: &str = "chat-confirm";

/// A file by which a build system is known.
#[derive(Debug, PartialEq, Eq)]
pub struct Marker {
    /// The file's name; one that begins with `*` stands for any name that ends so.
    pub file: &'static str,
    /// What builds there, as a phrase: `a Rust crate`.
    pub ecosystem: &'static str,
    /// A command that exercises it. A suggestion to a person, never run by itself.
    pub command: &'static str,
}

/// The markers, in the order in which they are looked for; the first one found makes the suggestion.
pub const MARKERS: [Marker; 16] = [
    marker("gradlew", "a Gradle build with its wrapper", "./gradlew build"),
    marker("build.gradle.kts", "a Gradle build", "gradle build"),
    marker("build.gradle", "a Gradle build", "gradle build"),
    marker("pom.xml", "a Maven project", "mvn -q verify"),
    marker("Cargo.toml", "a Rust package", "cargo test"),
    marker("package.json", "a Node package", "npm test"),
    marker("pyproject.toml", "a Python project", "python -m pytest"),
    marker("Gemfile", "a Ruby project", "bundle exec rake"),
    marker("mix.exs", "an Elixir project", "mix test"),
    marker("go.mod", "a Go module", "go build ./..."),
    marker("Makefile", "a makefile", "make"),
    marker("makefile", "a makefile", "make"),
    marker("GNUmakefile", "a makefile", "make"),
    marker("WORKSPACE", "a Bazel workspace", "bazel build //..."),
    marker("flake.nix", "a Nix flake", "nix flake check"),
    marker("*.csproj", "a .NET project", "dotnet build"),
];

const fn marker(file: &'static str, ecosystem: &'static str, command: &'static str) -> Marker {
    Marker { file, ecosystem, command }
}

/// A marker that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What it tells of.
    pub marker: &'static Marker,
    /// The name of the file that was found.
    pub file: String,
}

/// What a person said of evidence when asking for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// An evidence command was given.
    Command,
    /// [`ACCEPT_FLAG`] was given.
    Accepted,
    /// Nothing, and there is a flag for it.
    Nothing,
    /// Nothing, in a chat: the plan screen tells, and its question is the only one.
    InChat,
}

/// The answer, as `state.json` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command runs at the end of every chain of nodes.
    Attached,
    /// A build system is there, and a flag said to go without.
    Declared,
    /// A build system is there, and a plan that told of the lack was agreed to.
    Disclosed,
    /// There is nothing that a command would be evidence of.
    NoneDetected,
}

impl Answer {
    /// The word in `state.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Answer::Attached => "attached",
            Answer::Declared => "declared",
            Answer::Disclosed => "disclosed",
            Answer::NoneDetected => "none-detected",
        }
    }

    /// What was typed to give the answer, for the two that a person gives.
    pub fn declared_by(self) -> Option<&'static str> {
        match self {
            Answer::Declared => Some(ACCEPT_FLAG),
            Answer::Disclosed => Some(CHAT_CONFIRM),
            Answer::Attached | Answer::NoneDetected => None,
        }
    }
}

/// The answered question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The answer.
    pub answer: Answer,
    /// What was found, in the order of [`MARKERS`].
    pub signals: Vec<Signal>,
}

/// The question was not answered: nothing may be spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// What was found, at least one.
    signals: Vec<Signal>,
}

/// What builds in `directory`. A directory of a marker's name is none, and what cannot be read is not there.
pub fn detect(directory: &Path) -> Vec<Signal> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_file = |path: &Path| path.metadata().is_ok_and(|about| !about.is_dir());
    let files = entries.filter(|entry| is_file(&entry.path()));
    signals(files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// What the `files` of a directory tell.
fn signals(mut files: Vec<String>) -> Vec<Signal> {
    files.sort_unstable();
    let found = |marker: &'static Marker| {
        let is_it = |file: &&String| match marker.file.strip_prefix('*') {
            Some(end) => file.ends_with(end),
            None => *file == marker.file,
        };
        files.iter().find(is_it).map(|file| Signal { marker, file: file.clone() })
    };
    MARKERS.iter().filter_map(found).collect()
}

/// Answers the question, or finds that nobody has.
///
/// # Errors
/// When something builds here and nothing was said of evidence where there is a flag for it.
pub fn decide(signals: Vec<Signal>, stated: Stated) -> Result<Evidence, Unanswered> {
    let answer = match stated {
        Stated::Command => Answer::Attached,
        _ if signals.is_empty() => Answer::NoneDetected,
        Stated::Accepted => Answer::Declared,
        Stated::InChat => Answer::Disclosed,
        Stated::Nothing => return Err(Unanswered { signals }),
    };
    Ok(Evidence { answer, signals })
}

impl Unanswered {
    /// The refusal, several lines for standard output.
    pub fn text(&self) -> String {
        let several = match self.signals.len() {
            1 => "",
            _ => "Which of them the goal is about is not for omg to tell; the command below is a guess.\n",
        };
        let command = self.signals.first().map_or("make", |signal| signal.marker.command);
        format!(
            "This directory builds something, and nothing in this run would try whether it still does.\n\n\
             Found: {}\n{several}\n\
             A plan has no check that the engine runs, so that a node's own word is all that a PASS would rest on. Say which you \
             want:\n\n  \
             {VERIFY_FLAG} {}\n      runs the command when the work is done; a node whose work does not pass it fails\n  \
             {ACCEPT_FLAG}\n      goes without, and the run's record says so\n\n\
             No model was asked and nothing was spent.\n",
            list(&self.signals),
            shell_word(command)
        )
    }
}

impl Evidence {
    /// The names of the files that were found, for `state.json`.
    pub fn files(&self) -> Vec<String> {
        self.signals.iter().map(|signal| signal.file.clone()).collect()
    }

    /// What a person who gave no command is told before the planner is asked, several lines; `None` for one who did.
    pub fn advice(&self) -> Option<String> {
        if self.answer == Answer::Attached {
            return None;
        }
        let found = match self.signals.len() {
            0 => "Nothing that builds was recognised in this directory.".to_owned(),
            1 => format!("Found: {}.", list(&self.signals)),
            many => format!("Found {many} build systems: {}.", list(&self.signals)),
        };
        let command = self.signals.first().map_or("COMMAND", |signal| signal.marker.command);
        // A chat has no such flag.
        let asks = if self.answer == Answer::Disclosed { "omg auto and " } else { "" };
        let recorded = match self.answer {
            Answer::Declared => format!("\nThe run records that {ACCEPT_FLAG} was given."),
            _ => String::new(),
        };
        Some(format!(
            "Build evidence: none. {found}\nNothing in this run compiles or tests anything. With {asks}{VERIFY_FLAG} {} a command \
 would decide at its end.{recorded}\n",
            shell_word(command)
        ))
    }
}

/// `a Rust package (Cargo.toml), a makefile (Makefile)`.
fn list(signals: &[Signal]) -> String {
    let told =
        |signal: &Signal| format!("{} ({})", signal.marker.ecosystem, sanitize::one_line(&signal.file));
    signals.iter().map(told).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(names: &[&str]) -> Vec<Signal> {
        signals(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn files(signals: &[Signal]) -> Vec<&str> {
        signals.iter().map(|signal| signal.file.as_str()).collect()
    }

    #[test]
    fn every_marker_is_found_by_its_file_and_suggests_a_command() {
        for marker in &MARKERS {
            let file = marker.file.replace('*', "App");
            let signals = found(&["README.md", &file]);
            assert_eq!(signals, [Signal { marker, file }], "{}", marker.file);
            let refusal = decide(signals, Stated::Nothing).unwrap_err().text();
            assert!(refusal.contains(&shell_word(marker.command)), "{refusal}");
        }
    }

    #[test]
    fn the_order_of_the_markers_decides_and_of_many_projects_the_first_is_named() {
        let signals = found(&["Makefile", "b.csproj", "gradlew", "a.csproj", "Cargo.toml"]);
        assert_eq!(files(&signals), ["gradlew", "Cargo.toml", "Makefile", "a.csproj"]);
        let refusal = decide(signals, Stated::Nothing).unwrap_err().text();
        assert!(
            refusal.contains("--verify-cmd './gradlew build'") && refusal.contains("a guess"),
            "{refusal}"
        );
    }

    #[test]
    fn a_name_that_only_resembles_a_marker_is_none() {
        assert!(found(&["makefile.am", "cargo.toml", "go.mod.bak", "x.csproj.user", "csproj"]).is_empty());
    }

    #[test]
    fn the_question_has_these_answers() {
        let (some, none) = (found(&["go.mod"]), Vec::new());
        for (signals, stated, wanted) in [
            (&some, Stated::Command, Some((Answer::Attached, None))),
            (&none, Stated::Command, Some((Answer::Attached, None))),
            (&some, Stated::Accepted, Some((Answer::Declared, Some("--accept-no-build-evidence")))),
            (&none, Stated::Accepted, Some((Answer::NoneDetected, None))),
            (&some, Stated::InChat, Some((Answer::Disclosed, Some("chat-confirm")))),
            (&none, Stated::InChat, Some((Answer::NoneDetected, None))),
            (&some, Stated::Nothing, None),
            (&none, Stated::Nothing, Some((Answer::NoneDetected, None))),
        ] {
            let decided = decide(signals.clone(), stated).ok();
            if let Some(evidence) = &decided {
                assert_eq!(evidence.signals, *signals, "{stated:?}: what was found is kept");
            }
            let told = decided.map(|it| (it.answer, it.answer.declared_by()));
            assert_eq!(told, wanted, "{stated:?} with {} signals", signals.len());
        }
    }

    #[test]
    fn the_words_of_state_json() {
        let answers = [Answer::Attached, Answer::Declared, Answer::Disclosed, Answer::NoneDetected];
        assert_eq!(answers.map(Answer::as_str), ["attached", "declared", "disclosed", "none-detected"]);
    }

    #[test]
    fn a_refusal_says_what_is_here_why_it_matters_both_ways_on_and_that_nothing_was_spent() {
        let refusal = decide(found(&["Cargo.toml"]), Stated::Nothing).unwrap_err().text();
        insta::assert_snapshot!(refusal, @"
        This directory builds something, and nothing in this run would try whether it still does.

        Found: a Rust package (Cargo.toml)

        A plan has no check that the engine runs, so that a node's own word is all that a PASS would rest on. Say which you want:

          --verify-cmd 'cargo test'
              runs the command when the work is done; a node whose work does not pass it fails
          --accept-no-build-evidence
              goes without, and the run's record says so

        No model was asked and nothing was spent.
        ");
    }

    #[test]
    fn advice_is_for_those_who_gave_no_command() {
        let advice = |names: &[&str], stated| decide(found(names), stated).unwrap().advice();
        assert_eq!(advice(&["Makefile"], Stated::Command), None);
        insta::assert_snapshot!(advice(&[], Stated::Nothing).unwrap(), @"
        Build evidence: none. Nothing that builds was recognised in this directory.
        Nothing in this run compiles or tests anything. With --verify-cmd COMMAND a command would decide at its end.
        ");
        insta::assert_snapshot!(advice(&["go.mod"], Stated::Accepted).unwrap(), @"
        Build evidence: none. Found: a Go module (go.mod).
        Nothing in this run compiles or tests anything. With --verify-cmd 'go build ./...' a command would decide at its end.
        The run records that --accept-no-build-evidence was given.
        ");
        insta::assert_snapshot!(advice(&["go.mod", "Makefile"], Stated::InChat).unwrap(), @"
        Build evidence: none. Found 2 build systems: a Go module (go.mod), a makefile (Makefile).
        Nothing in this run compiles or tests anything. With omg auto and --verify-cmd 'go build ./...' a command would decide at its end.
        ");
    }

    #[test]
    fn a_directory_of_that_name_is_no_marker_and_a_link_to_a_file_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("go.mod")).unwrap();
        fs::create_dir(at("x.csproj")).unwrap();
        fs::write(at("real"), "").unwrap();
        std::os::unix::fs::symlink("real", at("Makefile")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("pom.xml")).unwrap();
        assert_eq!(files(&detect(dir.path())), ["Makefile"]);
        assert!(detect(&at("not-there")).is_empty());
    }

    proptest! {
        #[test]
        fn no_name_of_a_file_panics_or_reaches_a_screen_raw(name in r"[\PC\x00-\x1f]{0,20}") {
            let signals = found(&[&format!("{name}.csproj"), &name]);
            let refusal = decide(signals, Stated::Nothing).unwrap_err().text();
            prop_assert!(!refusal.chars().any(|c| c.is_control() && c != '\n'));
            prop_assert_eq!(refusal.lines().count(), 12);
        }
    }
}
