//! Where runs are kept: whether it is private, and whether files behave there as a run needs them to.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::statvfs;

use super::{Finding, Subject};
use crate::record::{RunDir, lock};
use crate::text::shell_word::shell_path;

/// With less than this a run cannot be recorded for long.
const FULL_BYTES: u64 = 16 << 20;
/// With less than this one may not last a day of work.
const SCARCE_BYTES: u64 = 1 << 30;

pub(super) fn look(subject: &Subject) -> Vec<Finding> {
    let home = subject.home.path();
    let mut found = base(home);
    found.extend(space(home));
    found.push(temporary(&subject.temporary));
    found
}

/// The directory of temporary files: what nodes start needs it more than a run does.
fn temporary(dir: &Path) -> Finding {
    let shown = dir.display();
    let warned = |what: String, remedy: &str| Finding::warning("temporary", what, remedy);
    let elsewhere = "set TMPDIR to a directory that is there and can be written to, or unset it";
    if !dir.is_absolute() {
        return warned(
            format!("TMPDIR is {shown:?}, which means another place in each directory that a node runs in"),
            "give TMPDIR as an absolute path, or unset it",
        );
    }
    if let Err(error) = tempfile::tempfile_in(dir).and_then(|mut file| file.write_all(b"x")) {
        return warned(
            format!("{shown}: no file can be written there, and what nodes start may want to: {error}"),
            elsewhere,
        );
    }
    match room(dir) {
        Some((_, free, _)) if free < FULL_BYTES => warned(
            format!("{} free at {shown}, where what nodes start may want some", told(free)),
            "make room there",
        ),
        Some((_, free, _)) => Finding::ok("temporary", format!("{} free at {shown}", told(free))),
        None => Finding::ok("temporary", format!("{shown}: files are written there")),
    }
}

fn base(home: &Path) -> Vec<Finding> {
    let shown = home.display();
    match home.metadata() {
        Ok(about) if !about.is_dir() => vec![Finding::problem(
            "home",
            format!("{shown} is no directory"),
            "move it away, or set OMG_HOME to a directory",
        )],
        Ok(about) => {
            let mut found = private(home, &about);
            found.push(trial(home));
            found
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && home.symlink_metadata().is_err() => {
            vec![to_come(home)]
        }
        Err(error) => vec![Finding::problem(
            "home",
            format!("{shown} cannot be entered: {error}"),
            "mend that, or set OMG_HOME to a directory of yours",
        )],
    }
}

/// A home that the first run will make, where a directory can be made.
fn to_come(home: &Path) -> Finding {
    let above = home.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    match tried(above) {
        Ok(()) => Finding::ok("home", format!("{} will be made by the first run", home.display())),
        Err((step, why)) => Finding::problem(
            "home",
            format!(
                "{} cannot be made: in {} a file cannot be {step}: {why}",
                home.display(),
                above.display()
            ),
            "set OMG_HOME to a directory of yours on a local disk",
        ),
    }
}

fn private(home: &Path, about: &fs::Metadata) -> Vec<Finding> {
    let shown = home.display();
    let mut found = Vec::new();
    if home.symlink_metadata().is_ok_and(|own| own.is_symlink()) {
        found.push(Finding::warning(
            "home",
            format!("{shown} is a link: whoever may change it decides where runs are kept"),
            "set OMG_HOME to where it leads",
        ));
    }
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push(Finding::warning(
            "home",
            format!("{shown} is open to others (mode {mode:o}): they may see which runs there are"),
            format!("chmod 700 {}", shell_path(home)),
        ));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        found.push(Finding::warning(
            "home",
            format!("{shown} belongs to another user, who can change what your runs recorded"),
            "set OMG_HOME to a directory of yours",
        ));
    }
    found
}

/// Writes, syncs, renames and locks in a directory that is gone afterwards.
fn trial(home: &Path) -> Finding {
    let shown = home.display();
    match tried(home) {
        Ok(()) => Finding::ok("home", format!("{shown}: files are written, renamed and locked there")),
        Err((step, why)) => Finding::problem(
            "home",
            format!("{shown}: a file cannot be {step} there: {why}"),
            "set OMG_HOME to a directory of yours on a local disk",
        ),
    }
}

fn tried(directory: &Path) -> Result<(), (&'static str, String)> {
    let at = |step: &'static str| move |error: io::Error| (step, error.to_string());
    let dir = tempfile::Builder::new().prefix(".doctor-").tempdir_in(directory).map_err(at("made"))?;
    let (first, second) = (dir.path().join("a"), dir.path().join("b"));
    let mut file = fs::File::create(&first).map_err(at("made"))?;
    file.write_all(b"x").and_then(|()| file.sync_all()).map_err(at("written"))?;
    fs::File::create(&second).map_err(at("made"))?;
    fs::rename(&first, &second).map_err(at("renamed"))?;
    let run = RunDir::new(dir.path().to_owned());
    let held = lock::acquire(&run).map_err(|error| ("locked", error.to_string()))?;
    match lock::probe(&run) {
        lock::Probe::Held => {}
        _ => return Err(("locked", "a lock that is held is not seen".to_owned())),
    }
    drop(held);
    dir.close().map_err(at("removed"))
}

/// How much room there is for runs, at the nearest directory that is there.
fn space(wanted: &Path) -> Option<Finding> {
    let (there, free, is_out_of_files) = room(wanted)?;
    Some(judge_space(there, free, is_out_of_files))
}

/// The nearest directory that is there, the bytes that are free at it, and whether no file can be made for want of inodes.
fn room(wanted: &Path) -> Option<(&Path, u64, bool)> {
    let there = wanted.ancestors().find(|above| above.exists())?;
    // What the kernel makes up has no blocks.
    let about = statvfs(there).ok().filter(|about| about.f_blocks > 0)?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    Some((there, free, about.f_files > 0 && about.f_favail == 0))
}

fn judge_space(place: &Path, free: u64, is_out_of_files: bool) -> Finding {
    let place = place.display();
    let remedy = "make room: omg runs prune removes old runs";
    if is_out_of_files {
        return Finding::problem(
            "disk",
            format!("no more files can be made at {place} (no inodes left)"),
            remedy,
        );
    }
    let told = format!("{} free at {place}", told(free));
    match free {
        0..FULL_BYTES => Finding::problem("disk", format!("{told}: a run could not be recorded"), remedy),
        FULL_BYTES..SCARCE_BYTES => Finding::warning("disk", told, remedy),
        _ => Finding::ok("disk", told),
    }
}

fn told(free: u64) -> String {
    match free {
        0..SCARCE_BYTES => format!("{} MB", free >> 20),
        _ => format!("{} GB", free >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn room_is_judged_by_what_a_run_needs() {
        for (free, out_of_files, wanted) in [
            (0, false, Level::Problem),
            (FULL_BYTES, false, Level::Warning),
            (SCARCE_BYTES, false, Level::Ok),
            (u64::MAX, true, Level::Problem),
        ] {
            let finding = judge_space(Path::new("/x"), free, out_of_files);
            assert_eq!(finding.level, wanted, "{free}: {}", finding.what);
        }
    }
}
