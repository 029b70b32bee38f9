//! What was found, for a person.

use std::collections::HashSet;
use std::io::Write;

use super::look::{Looked, State};
use crate::cli::context::Context;
use crate::cli::graph_file;
use crate::text::sanitize;

/// Prints every file in turn; of a single one, what makes it unsound is left to the last line.
pub(super) fn print(looked: &[Looked], context: &mut Context) {
    let single = looked.len() == 1;
    let mut disclosed: HashSet<&str> = HashSet::new();
    for file in looked {
        match &file.state {
            State::Valid => valid(file, &mut disclosed, context),
            State::Invalid(problems) => {
                graph_file::print_problems(problems, context);
                graph_file::print_advice(&file.path, &file.advice, context);
                if !single {
                    writeln!(
                        context.out,
                        "{}",
                        sanitize::one_line(&graph_file::counted(&file.path, problems))
                    )
                    .ok();
                }
            }
            State::Refused(reasons) if !single => {
                super::refused(&file.path, reasons).print(&mut context.err).ok();
            }
            State::Unreadable(error) if !single => {
                super::Failure::new(error.to_string()).print(&mut context.err).ok();
            }
            State::Refused(_) | State::Unreadable(_) => {}
        }
    }
}

/// Each disclosure is told once, however many files there are.
fn valid<'f>(file: &'f Looked, disclosed: &mut HashSet<&'f str>, context: &mut Context) {
    for note in &file.notes {
        writeln!(context.err, "note: {}", sanitize::one_line(note)).ok();
    }
    graph_file::print_splices(&file.splices, context);
    graph_file::print_advice(&file.path, &file.advice, context);
    for line in file.disclosures.iter().filter(|line| disclosed.insert(line)) {
        writeln!(context.out, "{}", sanitize::one_line(line)).ok();
    }
    writeln!(context.out, "{}: valid", sanitize::path(&file.path)).ok();
    // Of many files, each is told before the warnings of the next.
    context.out.flush().ok();
}
