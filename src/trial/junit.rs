//! The result of all tests as JUnit's XML: one suite a file, one case a test.

use std::io;

use crate::text::junit::{self, Case, Ending, Wrong};
use crate::trial::judge;
use crate::trial::run::{Outcome, Verdict};
use crate::trial::suite::Suite;

/// A file whose tests could not be read.
pub struct Broken {
    /// The file.
    pub file: String,
    /// What is wrong with it, line by line.
    pub lines: Vec<String>,
}

/// Writes the results to `out`: of every file of `suites`, then of the files that could not be read.
///
/// # Errors
/// When `out` takes no more.
pub fn write(
    suites: &[Suite],
    outcomes: &[Outcome],
    broken: &[Broken],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let read = suites.iter().enumerate().map(|(at, suite)| file(at, suite, outcomes));
    let all: Vec<junit::Suite> =
        read.filter(|suite| !suite.cases.is_empty()).chain(broken.iter().map(unread)).collect();
    junit::write("omg test", &all, out)
}

fn file(at: usize, suite: &Suite, outcomes: &[Outcome]) -> junit::Suite {
    let own = outcomes.iter().filter(|outcome| outcome.suite == at);
    let case = |outcome: &Outcome| Case {
        name: suite.cases[outcome.case].name.clone(),
        seconds: outcome.took.as_secs_f64(),
        ending: match &outcome.verdict {
            Verdict::Passed => Ending::Passed,
            Verdict::Failed(differences) => {
                Ending::Failure(wrong(&judge::problems(suite, differences).lines()))
            }
            Verdict::Broken(error) => Ending::Error(wrong(&[error.to_string()])),
        },
    };
    junit::Suite {
        name: suite.file.display().to_string(),
        cases: own.map(case).collect(),
        ..junit::Suite::default()
    }
}

fn unread(broken: &Broken) -> junit::Suite {
    let ending = Ending::Error(wrong(&broken.lines));
    let case = Case { name: "the file can be read".to_owned(), seconds: 0.0, ending };
    junit::Suite { name: broken.file.clone(), cases: vec![case], ..junit::Suite::default() }
}

fn wrong(lines: &[String]) -> Wrong {
    Wrong { kind: "omg".to_owned(), text: lines.join("\n") }
}
