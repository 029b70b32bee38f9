//! The person's own skills, all of which a planned node may be given (FACTS 8.8, ADR 0017 of the design).
//!
//! Only the directory of the person is read, never one of a repository or a plugin. A link in it is followed, as the
//! CLI follows it, but for links to directories inside a skill.

use std::fs;
use std::path::{Path, PathBuf};

use super::agents::is_path_element;
use super::front_matter;
use super::plugin::Found;
use super::reading::{self, BYTES_MAX, Read};
use crate::record::staged::DEPTH_MAX;
use crate::text::hex;

/// The largest corpus that is staged.
const CORPUS_BYTES_MAX: u64 = 64 << 20;
const TOO_LARGE: &str = "they hold more than 64 MiB";
/// How many files a corpus may have.
const FILES_MAX: usize = 20_000;
/// What each skill adds to every prompt, in tokens, as measured.
pub const TOKENS_EACH: usize = 172;
/// The directories around a skill's own in a copy: `skills` and its name.
const DEPTH_AROUND: usize = 2;

/// A skill that is staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it says it is for.
    pub description: String,
    /// The key of its head by which claude does not let a model use it unasked, if it has one.
    pub reserve: Option<&'static str>,
    /// Its directory.
    pub dir: PathBuf,
    /// The size of its `SKILL.md`.
    pub bytes: usize,
    /// SHA-256 of its `SKILL.md`, hex.
    pub sha256: String,
    /// How many files it has.
    pub files: usize,
    /// How many more things it has that are not staged: too large, too deep, unreadable, oddly named, links to
    /// directories.
    pub left_out: usize,
}

/// All of a person's skills.
#[derive(Debug, Default)]
pub struct Corpus {
    /// What is staged, in the order of their directories.
    pub skills: Vec<Skill>,
    /// Directories of skills that another with the same name stands in the place of: the name, and the directory.
    pub shadowed: Vec<(String, PathBuf)>,
    /// Directories that hold a `SKILL.md` and no skill that can be used, and why.
    pub unusable: Vec<(PathBuf, String)>,
    pub(super) found: Vec<Found>,
}

/// A directory that is a skill, before its other files are read.
struct Head {
    name: String,
    description: String,
    reserve: Option<&'static str>,
    dir: PathBuf,
    says: Vec<u8>,
}

/// What a corpus may still hold.
struct Room {
    bytes: u64,
    files: usize,
}

impl Corpus {
    /// The skills in `directory`. A directory that is not there holds none.
    ///
    /// # Errors
    /// Why there are too many to be staged, in words that end a sentence.
    pub fn scan(directory: &Path) -> Result<Self, String> {
        let mut corpus = Corpus::default();
        let mut heads: Vec<Head> = Vec::new();
        for path in entries(directory) {
            match read_head(&path) {
                None => {}
                Some(Err(why)) => corpus.unusable.push((path, why)),
                Some(Ok(head)) => {
                    // Names that differ in case alone are one on many a disk.
                    let is_same = |other: &Head| other.name.to_lowercase() == head.name.to_lowercase();
                    if let Some(at) = heads.iter().position(is_same) {
                        let earlier = heads.remove(at);
                        corpus.shadowed.push((earlier.name, earlier.dir));
                    }
                    heads.push(head);
                    if heads.iter().map(|head| head.says.len() as u64).sum::<u64>() > CORPUS_BYTES_MAX {
                        return Err(TOO_LARGE.to_owned());
                    }
                }
            }
        }
        let mut room = Room { bytes: CORPUS_BYTES_MAX, files: FILES_MAX };
        for head in heads {
            corpus.add(head, &mut room).map_err(|full| full.to_owned())?;
        }
        Ok(corpus)
    }

    fn add(&mut self, head: Head, room: &mut Room) -> Result<(), &'static str> {
        let Head { name, description, reserve, dir, says } = head;
        let (before, base) = (self.found.len(), format!("skills/{name}"));
        let mut skill = Skill {
            sha256: hex::sha256(&says),
            bytes: says.len(),
            files: 0,
            left_out: 0,
            name,
            description,
            reserve,
            dir,
        };
        room.take(says.len())?;
        self.found.push(Found {
            source: skill.dir.join("SKILL.md"),
            rel: format!("{base}/SKILL.md"),
            bytes: says,
            runnable: false,
            definition: true,
        });
        let mut below = vec![(skill.dir.clone(), base.clone(), DEPTH_AROUND)];
        while let Some((dir, rel, depth)) = below.pop() {
            for source in entries(&dir) {
                let Some(name) = source.file_name().and_then(|name| name.to_str()) else {
                    skill.left_out += 1;
                    continue;
                };
                let rel = format!("{rel}/{name}");
                if fs::symlink_metadata(&source).is_ok_and(|found| found.is_dir()) {
                    match depth < DEPTH_MAX {
                        true => below.push((source, rel, depth + 1)),
                        false => skill.left_out += 1,
                    }
                } else if rel != format!("{base}/SKILL.md") {
                    match read_file(&source) {
                        Some(Read { bytes, runnable }) => {
                            room.take(bytes.len())?;
                            self.found.push(Found { source, rel, bytes, runnable, definition: false });
                        }
                        None => skill.left_out += 1,
                    }
                }
            }
        }
        skill.files = self.found.len() - before;
        self.skills.push(skill);
        Ok(())
    }
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.bytes = self.bytes.checked_sub(bytes as u64).ok_or(TOO_LARGE)?;
        self.files = self.files.checked_sub(1).ok_or("they hold more than 20,000 files")?;
        Ok(())
    }
}

/// Whether `path` is a directory with a `SKILL.md`, and what that says.
fn read_head(path: &Path) -> Option<Result<Head, String>> {
    if !path.is_dir() || !path.join("SKILL.md").exists() {
        return None;
    }
    let Ok(dir) = path.canonicalize() else { return Some(Err("its directory cannot be entered".to_owned())) };
    let Some(Read { bytes: says, .. }) = read_file(&path.join("SKILL.md")) else {
        let why = format!("its SKILL.md cannot be read, or is larger than {} KiB", BYTES_MAX >> 10);
        return Some(Err(why));
    };
    let head = match front_matter::read(&says) {
        Ok(head) => head,
        Err(fault) => return Some(Err(format!("its front matter {}", fault.as_str()))),
    };
    if head.body.trim_ascii().is_empty() {
        return Some(Err("its SKILL.md says nothing below its front matter".to_owned()));
    }
    if !is_path_element(&head.name) {
        return Some(Err("its name cannot be the name of a directory".to_owned()));
    }
    let (name, description, reserve) = (head.name, head.description, head.reserve);
    Some(Ok(Head { name, description, reserve, dir, says }))
}

/// A whole regular file; `None` when it is none, is too large or cannot be read.
fn read_file(path: &Path) -> Option<Read> {
    reading::read(path, true).ok().filter(Read::is_whole)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
