//! Results as JUnit's XML, which CI systems read: suites of cases, each of which passed or says what became of it.
//!
//! XML has no form for most control characters and for two that are none, so that all are made visible first. Knows nothing of
//! what a case is.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::text::sanitize;

/// One element `testsuite`.
#[derive(Debug, Default)]
pub struct Suite {
    /// What it is called.
    pub name: String,
    /// When it began, UTC, as `2026-01-02T03:04:05`; left out when it is empty.
    pub timestamp: String,
    /// What else is said of it, by name.
    pub properties: Vec<(&'static str, String)>,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// One element `testcase`.
#[derive(Debug)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// What became of it.
    pub ending: Ending,
}

/// What became of a case.
#[derive(Debug)]
pub enum Ending {
    /// It passed.
    Passed,
    /// It was judged to fail.
    Failure(Wrong),
    /// It came to no judgement.
    Error(Wrong),
    /// It was not run, for this reason.
    Skipped(String),
}

/// What went wrong.
#[derive(Debug)]
pub struct Wrong {
    /// A word for the kind of fault.
    pub kind: String,
    /// All that there is to say; its first line is the message.
    pub text: String,
}

/// Writes `suites`, together called `name`, to `out`.
///
/// # Errors
/// When `out` takes no more.
pub fn write(name: &str, suites: &[Suite], out: &mut dyn io::Write) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let element = xml.create_element("testsuites").with_attribute(("name", line(name).as_str()));
    element.write_inner_content(|xml| suites.iter().try_for_each(|suite| self::suite(xml, suite)))?;
    xml.get_mut().write_all(b"\n")
}

fn suite(xml: &mut Writer<&mut dyn io::Write>, suite: &Suite) -> io::Result<()> {
    let name = line(&suite.name);
    let count = |element: &str| {
        let is = |case: &&Case| self::element(&case.ending) == Some(element);
        suite.cases.iter().filter(is).count().to_string()
    };
    let seconds: f64 = suite.cases.iter().map(|case| case.seconds).sum();
    let mut element = xml.create_element("testsuite").with_attributes([
        ("name", name.as_str()),
        ("tests", &suite.cases.len().to_string()),
        ("failures", &count("failure")),
        ("errors", &count("error")),
        ("skipped", &count("skipped")),
        ("time", &format!("{seconds:.3}")),
    ]);
    if !suite.timestamp.is_empty() {
        element = element.with_attribute(("timestamp", line(&suite.timestamp).as_str()));
    }
    element.write_inner_content(|xml| {
        if !suite.properties.is_empty() {
            properties(xml, &suite.properties)?;
        }
        suite.cases.iter().try_for_each(|case| self::case(xml, &name, case))
    })?;
    Ok(())
}

fn properties(xml: &mut Writer<&mut dyn io::Write>, properties: &[(&'static str, String)]) -> io::Result<()> {
    xml.create_element("properties").write_inner_content(|xml| {
        for (name, value) in properties {
            let attributes = [("name", *name), ("value", &line(value))];
            xml.create_element("property").with_attributes(attributes).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn case(xml: &mut Writer<&mut dyn io::Write>, suite: &str, case: &Case) -> io::Result<()> {
    let (name, time) = (line(&case.name), format!("{:.3}", case.seconds));
    let attributes = [("name", name.as_str()), ("classname", suite), ("time", &time)];
    let element = xml.create_element("testcase").with_attributes(attributes);
    match &case.ending {
        Ending::Passed => element.write_empty()?,
        Ending::Failure(wrong) | Ending::Error(wrong) => element.write_inner_content(|xml| {
            let first = line(wrong.text.lines().next().unwrap_or_default());
            let attributes = [("message", first.as_str()), ("type", &line(&wrong.kind))];
            let element = xml.create_element(self::element(&case.ending).unwrap_or_default());
            let text = permitted(&sanitize::lines(&wrong.text));
            element.with_attributes(attributes).write_text_content(BytesText::new(&text))?;
            Ok(())
        })?,
        Ending::Skipped(why) => element.write_inner_content(|xml| {
            xml.create_element("skipped").with_attribute(("message", line(why).as_str())).write_empty()?;
            Ok(())
        })?,
    };
    Ok(())
}

fn element(ending: &Ending) -> Option<&'static str> {
    match ending {
        Ending::Passed => None,
        Ending::Failure(_) => Some("failure"),
        Ending::Error(_) => Some("error"),
        Ending::Skipped(_) => Some("skipped"),
    }
}

/// What an attribute may hold.
fn line(words: &str) -> String {
    permitted(&sanitize::one_line(words))
}

fn permitted(words: &str) -> String {
    words.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
