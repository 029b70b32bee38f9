//! `omg init`: the shipped graphs, put where a person can run and change them (FACTS 1.5).

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Failure;
use super::context::Context;
use crate::process::signals;
use crate::starter::payload;
use crate::starter::unpack::{Fate, Placed, unpack};
use crate::text::sanitize;
use crate::text::shell_word::shell_path;

/// Puts the shipped graphs and fragments into a directory.
///
/// They go to DIR/graphs. A file that is there already is kept and told, so that a later version can be unpacked over an
/// earlier one. When something fails, nothing is left behind.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory, created when missing.
    #[arg(default_value = ".")]
    dir: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    signals::outlive_file_limit()
        .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let dir = args.dir.strip_prefix(".").unwrap_or(&args.dir);
    let placed = unpack(&payload::files(), dir).map_err(|error| {
        Failure::new(error.to_string())
            .hinted("what was there is unchanged; clear the way, or name another directory")
    })?;
    write!(context.out, "{}", report(&placed, dir))?;
    context.out.flush()?;
    Ok(0)
}

fn report(placed: &[Placed], dir: &Path) -> String {
    let count = |fate: Fate| placed.iter().filter(|it| it.fate == fate).count();
    let (written, same, differ) = (count(Fate::Written), count(Fate::Same), count(Fate::Differs));
    let mut lines: Vec<String> = placed.iter().map(line).collect();
    let graphs = dir.join("graphs");
    lines.push(String::new());
    lines.push(format!(
        "{written} {} to {}",
        plural(written, "file written", "files written"),
        sanitize::path(&graphs)
    ));
    if same + differ > 0 {
        let kept = plural(same + differ, "file kept as it was", "files kept as they were");
        lines
            .push(format!("{} {kept}; for a shipped copy move yours away and run this again", same + differ));
    }
    if differ > 0 {
        lines.push(format!(
            "{differ} of them {} from what ships with this version",
            plural(differ, "DIFFERS", "DIFFER")
        ));
    }
    // What cannot be shown as it is cannot be pasted.
    let is_plain = graphs.to_str().is_some_and(|path| path == sanitize::path(&graphs));
    let (there, below) =
        if is_plain { ("", graphs.as_path()) } else { (", in that directory", Path::new("")) };
    let graph = |name: &str| shell_path(&below.join(name));
    lines.push(format!(
        "next{there}: omg run {}   # shell commands only: no model, no login",
        graph("quickstart.yaml")
    ));
    lines.push(format!(
        "then{there}: mkdir -p /tmp/omg-smoke && omg run {} --input dir=/tmp/omg-smoke   # two short prompts",
        graph("haiku-smoke.yaml")
    ));
    lines.join("\n") + "\n"
}

fn line(Placed { path, fate }: &Placed) -> String {
    let path = sanitize::path(path);
    match fate {
        Fate::Written => format!("wrote {path}"),
        Fate::Same => format!("kept {path} (the same as the shipped one)"),
        Fate::Differs => format!("kept {path} (DIFFERS from the shipped one)"),
    }
}

fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}
