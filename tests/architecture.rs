//! The house rules as a test: floors, module texts, file sizes, the one spawner, the one printer, the one locker.
//!
//! Reads the sources as text, so that a rule holds for code that no build configuration compiles here, too.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the sources has failed")]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `src/`, lowest floor first; a module may use its own floor's others only where listed in `BESIDE`.
const FLOORS: [&[&str]; 8] = [
    &["process", "text", "clock"],
    &["graph"],
    &["load", "lint", "starter"],
    &["node", "record"],
    &["schedule"],
    &["plan", "leg", "doctor"],
    &["view", "trial"],
    &["cli"],
];

/// What a module may use on its own floor.
const BESIDE: [(&str, &str); 5] =
    [("load", "lint"), ("lint", "load"), ("process", "text"), ("process", "clock"), ("leg", "plan")];

/// What is forbidden although it lies below (ARCHITECTURE, section 2).
const APART: [(&str, &str); 4] =
    [("view", "schedule"), ("view", "leg"), ("node", "record"), ("record", "node")];

const LINES_MAX: usize = 800;

struct Source {
    path: PathBuf,
    module: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let below = path.strip_prefix(root).unwrap();
            let first = below.iter().next().unwrap().to_str().unwrap();
            let module = first.trim_end_matches(".rs").to_owned();
            found.push(Source { text: fs::read_to_string(&path).unwrap(), module, path });
        }
    }
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

fn used(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("crate::").map(move |(at, word)| {
        let rest = &text[at + word.len()..];
        &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())]
    })
}

/// The text without its unit tests, which may reach for anything.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

fn check(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn a_module_uses_only_the_floors_below_it() {
    let mut broken = Vec::new();
    for source in sources() {
        let own = source.module.as_str();
        let Some(here) = floor(own) else {
            assert!(["lib", "main"].contains(&own), "{own} has no floor");
            continue;
        };
        for other in used(shipped(&source.text)) {
            let Some(there) = floor(other) else { continue };
            let beside = there == here && (own == other || BESIDE.contains(&(own, other)));
            if (there >= here && !beside) || APART.contains(&(own, other)) {
                broken.push(format!("{}: {own} uses {other}", source.path.display()));
            }
        }
    }
    check("a module may use only the floors below it", broken);
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = sources().into_iter().filter(|source| !source.text.starts_with("//!"));
    check("every file begins with a text", silent.map(|source| source.path.display().to_string()).collect());
}

#[test]
fn no_file_has_two_jobs() {
    let long = sources().into_iter().filter(|source| source.text.lines().count() > LINES_MAX);
    check("a file has at most 800 lines", long.map(|source| source.path.display().to_string()).collect());
}

/// `words` stand only in files whose path contains one of `places`.
fn only_in(places: &[&str], words: &[&str]) {
    let mut broken = Vec::new();
    for source in sources() {
        let path = source.path.to_str().unwrap();
        let code = shipped(&source.text).lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            if let Some(word) = words.iter().find(|word| line.contains(**word))
                && !places.iter().any(|place| path.contains(place))
            {
                broken.push(format!("{path}: {word}"));
            }
        }
    }
    check(&format!("{words:?} stand only in {places:?}"), broken);
}

#[test]
fn only_the_process_floor_starts_children() {
    only_in(&["src/process/"], &["process::Command", "process::Child", "process::Stdio"]);
}

#[test]
fn only_the_command_line_prints() {
    only_in(&["src/cli/"], &["println!", "eprintln!", "io::stdout()", "io::stderr()"]);
}

#[test]
fn only_one_file_locks() {
    only_in(&["src/record/lock.rs"], &["try_lock_exclusive", "try_lock_shared", "fs4::"]);
}

#[test]
fn only_the_clock_asks_for_the_time_of_day() {
    only_in(&["src/clock.rs"], &["SystemTime::now", "Timestamp::now", "Zoned::now"]);
}

#[test]
fn the_modules_are_listed_in_reading_order() {
    let library = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let listed = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let floors: Vec<usize> = listed.map(|module| floor(module).unwrap()).collect();
    assert!(!floors.is_empty() && floors.is_sorted(), "lib.rs lists a module above its floor: {floors:?}");
}
