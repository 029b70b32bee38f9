//! `omg export RUN --format FORMAT`: a run as one file, to keep or to hand on.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::tz::TimeZone;

use super::context::Context;
use super::{Failure, serve};
use crate::process::signals;
use crate::record::lock;
use crate::text::sanitize;
use crate::view::export::{Export, ExportError, FORMATS, Format};
use crate::view::history::lookup::find_run;

/// Writes a run as one file: its page, a trace, or a report for CI.
///
/// A run that goes on is written as it stands. docs/EXPORT.md tells what each format holds.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// What to write.
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: usize,
    /// Writes to this file instead of standard output, readable by you alone; one that is there is replaced. `-` is standard
    /// output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The names of the formats, each read as its place among them.
fn formats() -> impl TypedValueParser<Value = usize> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(values).map(|word| {
        let named = FORMATS.iter().position(|format| format.name == word);
        named.expect("every word that is offered names a format")
    })
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let format = &FORMATS[args.format];
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if output.is_none() && context.out_is_terminal && !format.is_legible {
        let hint = format!("--output run.{}, or send standard output to a file", format.ending);
        return Err(Failure::new(format!("export: {} is not made for a terminal", format.name)).hinted(hint));
    }
    // A write that a limit on files ends is told of, and leaves nothing beside the file.
    signals::outlive_file_limit()
        .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let (id, _) = find_run(&context.home, &args.run)?;
    let now = (context.clock.now(), TimeZone::system());
    let export = Export::read(id, &context.home, lock::probe, now, serve::build())?;
    match output {
        None => export.write(format, &mut context.out).map_err(|error| refused(error, None))?,
        Some(path) => {
            into_file(&export, format, path)?;
            writeln!(context.out, "{}", sanitize::path(path)).ok();
        }
    }
    if export.is_in_flight() {
        writeln!(context.err, "note: the run goes on; it was written as it stands").ok();
    }
    Ok(0)
}

/// Writes the whole file beside `path` and then gives it that name, so that nobody sees a part of it and no link is followed.
fn into_file(export: &Export, format: &Format, path: &Path) -> Result<(), Failure> {
    let cannot = |error: &io::Error| {
        Failure::new(format!("export: {}: cannot be written: {error}", sanitize::path(path)))
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = match (found.is_symlink(), found.is_dir()) {
                (true, _) => "a link",
                (_, true) => "a directory",
                _ => "a device, a pipe or a socket",
            };
            let at = sanitize::path(path);
            return Err(Failure::new(format!("export: {at}: there is {what} of that name"))
                .hinted("name another file; without --output it goes to standard output"));
        }
        _ => {}
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".omg-export-")
        .tempfile_in(folder)
        .map_err(|error| cannot(&error))?;
    let mut out = io::BufWriter::new(file.as_file_mut());
    export.write(format, &mut out).map_err(|error| refused(error, Some(path)))?;
    out.flush().map_err(|error| cannot(&error))?;
    drop(out);
    file.as_file().sync_all().map_err(|error| cannot(&error))?;
    file.persist(path).map_err(|error| cannot(&error.error))?;
    Ok(())
}

fn refused(error: ExportError, path: Option<&Path>) -> Failure {
    match (error, path) {
        (ExportError::Output(error), None) => Failure::output(&error),
        (ExportError::Output(error), Some(path)) => {
            Failure::new(format!("export: {}: cannot be written: {error}", sanitize::path(path)))
        }
        (error @ ExportError::Feed(_), _) => Failure::new(error.to_string())
            .hinted("omg export --format markdown and junit need the snapshot alone"),
        (error, _) => Failure::new(error.to_string()),
    }
}
