//! What was found, as annotations of a GitHub workflow.
//!
//! <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>; the escapes are those of its runner.

use std::io::Write;

use super::look::Looked;
use super::paths::Paths;
use crate::cli::context::Context;
use crate::text::sanitize;

/// Prints one command a problem and a remark.
pub(super) fn print(looked: &[Looked], paths: &Paths, context: &mut Context) {
    for file in looked {
        for report in file.reports() {
            let node = report.node.map(|node| format!("node \"{node}\": ")).unwrap_or_default();
            let hint = report.hint.map(|hint| format!("hint: {hint}"));
            let place = (paths.relative(&report.file), report.line, report.column);
            let lines = [Some(format!("{node}{}", report.message)), hint];
            write(context, "error", place, "invalid graph", lines.into_iter().flatten());
        }
        for advice in &file.advice {
            if let Some(place) = &advice.place {
                let at = (paths.relative(&place.file), place.line, place.column);
                write(context, "warning", at, advice.id, std::iter::once(advice.to_string()));
            }
        }
    }
}

fn write(
    context: &mut Context,
    level: &str,
    (file, line, column): (String, usize, usize),
    title: &str,
    lines: impl Iterator<Item = String>,
) {
    let (file, title) = (property(&sanitize::one_line(&file)), property(title));
    let lines: Vec<String> = lines.map(|line| sanitize::one_line(&line).into_owned()).collect();
    let text = data(&lines.join("\n"));
    writeln!(context.out, "::{level} file={file},line={line},col={column},title={title}::{text}").ok();
}

/// What stands behind the command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which ends at a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_the_command() {
        assert_eq!(data("100%\r\nof a:b,c ::error::x"), "100%25%0D%0Aof a:b,c ::error::x");
        assert_eq!(property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
    }
}
