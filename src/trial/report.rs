//! The result of all tests as one value, for `--json`: shape 1, described in docs/CLI.md.

use std::path::PathBuf;

use serde::Serialize;

use crate::load::Report as Problem;
use crate::trial::judge;
use crate::trial::read::Unread;
use crate::trial::run::{Outcome, Verdict};
use crate::trial::suite::Suite;

/// All of it.
#[derive(Serialize)]
pub struct Report<'a> {
    schema: u32,
    /// How many tests passed.
    pub passed: usize,
    /// How many did not, or could not be run.
    pub failed: usize,
    tests: Vec<Test<'a>>,
    /// What is wrong with files whose tests could not be run.
    problems: Vec<Problem>,
    /// Files that could not be read at all, and why.
    unread: Vec<String>,
}

#[derive(Serialize)]
struct Test<'a> {
    file: String,
    name: &'a str,
    graph: String,
    passed: bool,
    seconds: f64,
    /// What came out otherwise than expected.
    differences: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

impl<'a> Report<'a> {
    /// The report of `outcomes`, and of what is wrong with other files.
    pub fn of(suites: &'a [Suite], outcomes: &[Outcome], wrong: &[(PathBuf, Unread)]) -> Self {
        let passed = outcomes.iter().filter(|outcome| outcome.has_passed()).count();
        let tests = outcomes.iter().map(|outcome| test(suites, outcome)).collect();
        let (mut problems, mut unread) = (Vec::new(), Vec::new());
        for (_, error) in wrong {
            match error {
                Unread::Problems(found) => problems.extend(found.reports()),
                Unread::Load(error) => unread.push(error.to_string()),
            }
        }
        Report { schema: 1, passed, failed: outcomes.len() - passed, tests, problems, unread }
    }
}

fn test<'a>(suites: &'a [Suite], outcome: &Outcome) -> Test<'a> {
    let suite = &suites[outcome.suite];
    let (differences, error) = match &outcome.verdict {
        Verdict::Passed => (Vec::new(), None),
        Verdict::Failed(differences) => (judge::problems(suite, differences).reports(), None),
        Verdict::Broken(error) => (Vec::new(), Some(error.to_string())),
    };
    Test {
        file: suite.file.display().to_string(),
        name: &suite.cases[outcome.case].name,
        graph: suite.tested.path.display().to_string(),
        passed: outcome.has_passed(),
        seconds: outcome.took.as_secs_f64(),
        differences,
        error,
        kept: outcome.kept.as_ref().map(|home| home.display().to_string()),
    }
}
