//! The result of all tests as JUnit's XML, which CI systems read: one suite a file, one case a test.
//!
//! XML has no form for most control characters and for two that are none, so that all are made visible first.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::text::sanitize;
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

/// One element `testcase`.
struct Case {
    name: String,
    seconds: f64,
    /// The element of what went wrong, its first line and all of its text.
    wrong: Option<(&'static str, String, String)>,
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
    let mut xml = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let files: Vec<(String, Vec<Case>)> =
        suites.iter().enumerate().map(|(at, suite)| file(at, suite, outcomes)).collect();
    let unread = broken.iter().map(|broken| (broken.file.clone(), vec![unread(broken)]));
    let files: Vec<(String, Vec<Case>)> =
        files.into_iter().filter(|(_, cases)| !cases.is_empty()).chain(unread).collect();
    let element = xml.create_element("testsuites").with_attribute(("name", "omg test"));
    element.write_inner_content(|xml| {
        for (file, cases) in &files {
            suite(xml, file, cases)?;
        }
        Ok(())
    })?;
    xml.get_mut().write_all(b"\n")
}

fn file(at: usize, suite: &Suite, outcomes: &[Outcome]) -> (String, Vec<Case>) {
    let own = outcomes.iter().filter(|outcome| outcome.suite == at);
    let case = |outcome: &Outcome| Case {
        name: suite.cases[outcome.case].name.clone(),
        seconds: outcome.took.as_secs_f64(),
        wrong: match &outcome.verdict {
            Verdict::Passed => None,
            Verdict::Failed(differences) => {
                Some(wrong("failure", &judge::problems(suite, differences).lines()))
            }
            Verdict::Broken(error) => Some(wrong("error", &[error.to_string()])),
        },
    };
    (suite.file.display().to_string(), own.map(case).collect())
}

fn unread(broken: &Broken) -> Case {
    Case { name: "the file can be read".to_owned(), seconds: 0.0, wrong: Some(wrong("error", &broken.lines)) }
}

fn wrong(element: &'static str, lines: &[String]) -> (&'static str, String, String) {
    let first = lines.first().map(String::as_str).unwrap_or_default();
    (element, line(first), text(&sanitize::lines(&lines.join("\n"))))
}

/// What an attribute may hold.
fn line(words: &str) -> String {
    text(&sanitize::one_line(words))
}

fn text(words: &str) -> String {
    words.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn suite(xml: &mut Writer<&mut dyn io::Write>, file: &str, cases: &[Case]) -> io::Result<()> {
    let file = line(file);
    let count = |element: &str| {
        let is = |case: &&Case| case.wrong.as_ref().is_some_and(|(own, ..)| *own == element);
        cases.iter().filter(is).count().to_string()
    };
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let element = xml.create_element("testsuite").with_attributes([
        ("name", file.as_str()),
        ("tests", &cases.len().to_string()),
        ("failures", &count("failure")),
        ("errors", &count("error")),
        ("skipped", "0"),
        ("time", &format!("{seconds:.3}")),
    ]);
    element.write_inner_content(|xml| cases.iter().try_for_each(|case| self::case(xml, &file, case)))?;
    Ok(())
}

fn case(xml: &mut Writer<&mut dyn io::Write>, file: &str, case: &Case) -> io::Result<()> {
    let (name, time) = (line(&case.name), format!("{:.3}", case.seconds));
    let element = xml.create_element("testcase").with_attributes([
        ("name", name.as_str()),
        ("classname", file),
        ("time", &time),
    ]);
    match &case.wrong {
        None => element.write_empty()?,
        Some((what, first, text)) => element.write_inner_content(|xml| {
            let message = [("message", first.as_str()), ("type", "omg")];
            xml.create_element(*what).with_attributes(message).write_text_content(BytesText::new(text))?;
            Ok(())
        })?,
    };
    Ok(())
}
