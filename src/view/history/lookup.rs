//! Finds the run that a person means: a whole id, a unique beginning of one, or `latest` (DECISIONS 29).
//!
//! What was typed is checked before it becomes part of a path, so no text leads out of the runs directory.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::record::{Home, RunDir, RunId};
use crate::text::sanitize;

/// How many runs an error names.
const NAMED_MAX: usize = 5;
/// How many letters of an id may be wrong for the run to be named as a near one.
const SLIPS_MAX: usize = 3;

/// Why no run was found.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// What was typed cannot be a run id.
    #[error("{text:?} cannot be a run id: an id is one name of letters, digits, '.', '_' and '-'")]
    Malformed {
        /// What was typed.
        text: String,
    },
    /// There is no run at all.
    #[error("no runs yet in {}", runs.display())]
    NoRuns {
        /// The runs directory.
        runs: PathBuf,
    },
    /// There is such a directory, and no run in it.
    #[error("{} is no run: it holds none of a run's files", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// Several runs begin so.
    #[error("{text:?} is the beginning of {count} runs: {}", named.join(", "))]
    Ambiguous {
        /// What was typed.
        text: String,
        /// How many there are.
        count: usize,
        /// The newest of them.
        named: Vec<String>,
    },
    /// No run begins so.
    #[error("no run {text:?} in {}{}", runs.display(), named_near(near))]
    Unknown {
        /// What was typed.
        text: String,
        /// The runs directory.
        runs: PathBuf,
        /// Runs with an id much like it.
        near: Vec<String>,
    },
    /// The runs directory could not be read.
    #[error("cannot read {}: {source}", runs.display())]
    Unreadable {
        /// The runs directory.
        runs: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LookupError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            LookupError::NoRuns { .. } => Some("omg run GRAPH starts one".to_owned()),
            LookupError::Ambiguous { .. } => Some("type more of the id, or `latest`".to_owned()),
            LookupError::Malformed { .. } | LookupError::NotARun { .. } | LookupError::Unknown { .. } => {
                Some("omg runs list names every run".to_owned())
            }
            LookupError::Unreadable { .. } => None,
        }
    }
}

/// What lies in the runs directory.
#[derive(Debug, Default)]
pub struct Entries {
    /// Directories whose name can be a run's, newest first.
    pub runs: Vec<RunId>,
    /// The names of everything else, but for hidden files.
    pub others: Vec<String>,
}

/// Reads the runs directory. A missing one is an empty one.
pub fn entries(home: &Home) -> Result<Entries, LookupError> {
    let runs = home.runs();
    let unreadable = |source| LookupError::Unreadable { runs: runs.clone(), source };
    let listing = match fs::read_dir(&runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::default()),
        listing => listing.map_err(unreadable)?,
    };
    let mut entries = Entries::default();
    for entry in listing {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link to a directory counts as one: a person may keep old runs elsewhere.
        let is_directory = match entry.file_type() {
            Ok(kind) if !kind.is_symlink() => kind.is_dir(),
            _ => fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir()),
        };
        match RunId::parse(&name).filter(|_| is_directory) {
            Some(id) => entries.runs.push(id),
            None if name.starts_with('.') => {}
            None => entries.others.push(name),
        }
    }
    newest_first(&mut entries.runs);
    entries.others.sort();
    Ok(entries)
}

/// Finds the run that `text` means.
pub fn find_run(home: &Home, text: &str) -> Result<(RunId, RunDir), LookupError> {
    let wanted = RunId::parse(text)
        .ok_or_else(|| LookupError::Malformed { text: sanitize::one_line(text).into_owned() })?;
    let dir = home.run(&wanted);
    if text != "latest" && dir.path().is_dir() {
        return match is_run(&dir) {
            true => Ok((wanted, dir)),
            false => Err(LookupError::NotARun { path: dir.path().to_path_buf() }),
        };
    }
    let runs: Vec<RunId> = entries(home)?.runs.into_iter().filter(|id| is_run(&home.run(id))).collect();
    let matching: Vec<&RunId> = match text {
        "latest" => runs.first().into_iter().collect(),
        beginning => runs.iter().filter(|id| id.as_str().starts_with(beginning)).collect(),
    };
    match matching[..] {
        [id] => Ok((id.clone(), home.run(id))),
        [] if runs.is_empty() => Err(LookupError::NoRuns { runs: home.runs() }),
        [] => Err(LookupError::Unknown {
            text: text.to_owned(),
            runs: home.runs(),
            near: resembling(text, &runs),
        }),
        _ => Err(LookupError::Ambiguous {
            text: text.to_owned(),
            count: matching.len(),
            named: matching.into_iter().take(NAMED_MAX).map(RunId::to_string).collect(),
        }),
    }
}

/// Whether a directory holds any file of a run. One that died at birth has its lock alone.
pub fn is_run(dir: &RunDir) -> bool {
    [dir.feed(), dir.snapshot(), dir.lock()].iter().any(|file| file.symlink_metadata().is_ok())
}

/// Orders `runs` by their ids, the newest first.
pub fn newest_first(runs: &mut [RunId]) {
    runs.sort_by_cached_key(|id| std::cmp::Reverse(start_order(id)));
}

/// Where among `runs`, the newest first, those begin that are older than `id`. It need not be among them any more.
pub fn older_than(runs: &[RunId], id: &RunId) -> usize {
    let order = start_order(id);
    runs.partition_point(|run| start_order(run) >= order)
}

/// What ids are ordered by: the moment in the id, then the counter as a number, then the id itself. Ids that were
/// not minted by this program come first, that is oldest.
fn start_order(id: &RunId) -> (Option<(String, u64)>, String) {
    let minted = id.as_str().rsplit_once('-').and_then(|(stamp, counter)| {
        let digits = stamp.bytes().filter(u8::is_ascii_digit).count();
        (digits >= 14).then_some(())?;
        Some((stamp.to_owned(), counter.parse().ok()?))
    });
    (minted, id.to_string())
}

/// Runs that a slip of the finger away, or that hold what was typed.
fn resembling(text: &str, runs: &[RunId]) -> Vec<String> {
    let is_near = |id: &&RunId| {
        let id = id.as_str();
        (text.len() >= SLIPS_MAX && id.contains(text)) || {
            let beginning = id.get(..text.len().min(id.len())).unwrap_or(id);
            text.len() > 2 * SLIPS_MAX && strsim::damerau_levenshtein(beginning, text) <= SLIPS_MAX
        }
    };
    runs.iter().filter(is_near).take(NAMED_MAX).map(RunId::to_string).collect()
}

fn named_near(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::House;

    const OLD: &str = "20260102-030405.000000001-9";
    const NEW: &str = "20260102-030405.000000001-10";
    const OTHER: &str = "20251231-235959.000000001-1";

    fn house() -> House {
        let house = House::new();
        for id in [OLD, OTHER, NEW] {
            house.run(id, r#"{"event":"run_started"}"#, None);
        }
        house.dir("99999999-junk");
        house
    }

    fn found(house: &House, text: &str) -> Result<String, String> {
        find_run(&house.home, text).map(|(id, _)| id.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_is_found_by_id_by_beginning_and_as_the_latest() {
        let house = house();
        for (text, id) in [(OLD, OLD), (NEW, NEW), ("2025", OTHER), ("latest", NEW)] {
            assert_eq!(found(&house, text), Ok(id.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_page_begins_after_a_run_that_may_be_gone() {
        let runs: Vec<RunId> = [NEW, OLD, OTHER].into_iter().filter_map(RunId::parse).collect();
        let after = |id| RunId::parse(id).map(|id| older_than(&runs, &id));
        let gone = "20260101-000000.000000001-1";
        assert_eq!([NEW, OLD, gone, OTHER].map(after), [Some(1), Some(2), Some(2), Some(3)]);
    }

    #[test]
    fn what_is_ambiguous_or_unknown_is_answered_with_names() {
        let house = house();
        let error = found(&house, "20260102").expect_err("two");
        assert!(error.contains(&format!("{NEW}, {OLD}")), "{error}");
        let error = found(&house, "20260201-030405.000000001-9").expect_err("a slip");
        assert!(error.contains(&format!("near it: {NEW}, {OLD}")), "{error}");
        let error = find_run(&house.home, "nothing-like-it").expect_err("unknown");
        assert!(error.hint().is_some_and(|hint| hint.contains("omg runs list")), "{error}");
        let error = found(&house, "99999999-junk").expect_err("junk");
        assert!(error.contains("is no run"), "{error}");
        assert!(matches!(find_run(&House::new().home, "latest"), Err(LookupError::NoRuns { .. })));
    }

    #[test]
    fn no_text_leads_out_of_the_runs_directory() {
        let house = house();
        for text in ["../x", "..", ".", "", "a/b", "/etc", "-x", "a\u{1b}[31m", "a\0b"] {
            let error = found(&house, text).expect_err(text);
            assert!(error.contains("cannot be a run id") && !error.contains('\u{1b}'), "{error}");
        }
    }
}
