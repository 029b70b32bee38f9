//! What a listing remembers of runs that have ended, so that it need not read their files again (PERF P7).
//!
//! Never the truth: an entry counts only while snapshot and feed are the very files that it was made from, told by their
//! size, times and number; a file that is missing, damaged or of another version is an empty index. Nothing is lost
//! with it. Knows nothing of what is shown of a run.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::record::legs::Legs;
use crate::record::snapshot_reader::{Brief, KeptBrief};
use crate::record::{Home, RunDir, RunId, private};

/// The number of this file's format. It changes with anything that an entry is derived from.
const FORMAT: u32 = 2;
/// A larger file is not an index of ours: that would be one of a million runs.
const BYTES_MAX: u64 = 1 << 30;
const PREFIX: &str = "runs.tmp-";

/// Which files an entry was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    snapshot: Option<FileStamp>,
    feed: Option<FileStamp>,
}

/// Size, inode, and the times of the last change of content and of anything, in seconds and nanoseconds.
type FileStamp = (u64, u64, i64, i64, i64, i64);

impl Stamp {
    /// The stamp of the run in `dir` as its files are now; `None` when it has neither.
    pub fn of(dir: &RunDir) -> Option<Stamp> {
        let stamp = |path: PathBuf| fs::metadata(path).ok().as_ref().map(file_stamp);
        let stamp = Stamp { snapshot: stamp(dir.snapshot()), feed: stamp(dir.feed()) };
        (stamp.snapshot.is_some() || stamp.feed.is_some()).then_some(stamp)
    }
}

fn file_stamp(about: &Metadata) -> FileStamp {
    (about.size(), about.ino(), about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec())
}

/// The index of a home.
#[derive(Debug)]
pub struct Index {
    home: Home,
    /// What was read, and not asked for yet.
    old: HashMap<String, Entry>,
    /// What is to be written: entries that were found right, and new ones.
    seen: BTreeMap<String, Entry>,
    has_changed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    legs: Legs,
    brief: Option<KeptBrief>,
}

/// The first line of the file; the entries follow.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    omg_run_index: u32,
    version: String,
    sha256: String,
}

impl Head {
    fn of(body: &[u8]) -> Self {
        let sha256 = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
        Head { omg_run_index: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), sha256 }
    }
}

impl Index {
    /// The index of `home`; an empty one where there is none that can be trusted.
    pub fn open(home: &Home) -> Index {
        let old = read(home).unwrap_or_default();
        Index { home: home.clone(), old, seen: BTreeMap::new(), has_changed: false }
    }

    /// What is remembered of `run`, if its files are still those of `stamp`.
    pub fn get(&mut self, run: &RunId, stamp: Stamp) -> Option<(Legs, Option<Brief>)> {
        let entry = self.old.remove(run.as_str())?;
        if entry.stamp != stamp || entry.legs.open {
            self.has_changed = true;
            return None;
        }
        let told = (entry.legs.clone(), entry.brief.clone().map(Brief::from));
        self.seen.insert(run.to_string(), entry);
        Some(told)
    }

    /// Remembers `run`, which has ended and was read after `stamp` was taken.
    pub fn put(&mut self, run: &RunId, stamp: Stamp, legs: &Legs, brief: Option<&Brief>) {
        let entry = Entry { stamp, legs: legs.clone(), brief: brief.map(KeptBrief::from) };
        self.seen.insert(run.to_string(), entry);
        self.has_changed = true;
    }

    /// Writes the index if there is anything new. That it could not be written costs nothing but time.
    pub fn save(self) {
        // What nobody asked for is of runs that are gone.
        if self.has_changed || !self.old.is_empty() {
            write(&self.home, &self.seen).ok();
        }
    }
}

fn path(home: &Home) -> PathBuf {
    home.cache().join("runs")
}

fn read(home: &Home) -> Option<HashMap<String, Entry>> {
    if !private::is_real_directory(&home.cache()) {
        return None;
    }
    let mut bytes = Vec::new();
    private::open_to_read(&path(home)).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let end = memchr::memchr(b'\n', &bytes)?;
    let (head, body) = (&bytes[..end], &bytes[end + 1..]);
    let head: Head = serde_json::from_slice(head).ok()?;
    (head == Head::of(body)).then(|| serde_json::from_slice(body).ok())?
}

/// Not synced: a file that a crash cut does not fit its checksum.
fn write(home: &Home, entries: &BTreeMap<String, Entry>) -> io::Result<()> {
    let body = serde_json::to_vec(entries)?;
    let mut bytes = serde_json::to_vec(&Head::of(&body))?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&body);
    let place = path(home);
    private::create_directories(&home.cache())?;
    let mut file = private::temporary(place.parent().unwrap_or(Path::new(".")), PREFIX)?;
    file.write_all(&bytes)?;
    file.persist(&place).map_err(|refused| refused.error)?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct House {
        folder: tempfile::TempDir,
        home: Home,
        run: RunId,
    }

    impl House {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path());
            let run = RunId::parse("1-a").unwrap();
            fs::create_dir_all(home.run(&run).path()).unwrap();
            fs::write(home.run(&run).feed(), "{}\n").unwrap();
            House { folder, home, run }
        }

        fn stamp(&self) -> Stamp {
            Stamp::of(&self.home.run(&self.run)).unwrap()
        }

        fn remember(&self) {
            let mut index = Index::open(&self.home);
            index.put(&self.run, self.stamp(), &legs(), None);
            index.save();
        }

        fn remembers(&self) -> bool {
            Index::open(&self.home).get(&self.run, self.stamp()).is_some_and(|told| told.0 == legs())
        }
    }

    fn legs() -> Legs {
        Legs { count: 2, spoken: true, started: "t0".to_owned(), ..Legs::default() }
    }

    #[test]
    fn what_was_put_is_told_while_the_files_are_the_same() {
        let house = House::new();
        assert!(!house.remembers());
        house.remember();
        assert!(house.remembers());
        let feed = house.home.run(&house.run).feed();
        fs::write(&feed, "{ }\n").unwrap();
        assert!(!house.remembers(), "another size");
        house.remember();
        fs::copy(&feed, feed.with_extension("copy")).unwrap();
        fs::rename(feed.with_extension("copy"), &feed).unwrap();
        assert!(!house.remembers(), "another file");
        house.remember();
        fs::write(house.home.run(&house.run).snapshot(), "{}").unwrap();
        assert!(!house.remembers(), "a file more");
    }

    #[test]
    fn a_run_that_is_gone_is_forgotten() {
        let house = House::new();
        house.remember();
        Index::open(&house.home).save();
        assert!(read(&house.home).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_index_is_an_empty_one() {
        let house = House::new();
        house.remember();
        let place = path(&house.home);
        let whole = fs::read(&place).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&place, &bytes).unwrap();
            assert!(!house.remembers(), "byte {at}");
            fs::write(&place, &whole[..at]).unwrap();
            assert!(!house.remembers(), "cut at {at}");
        }
        house.remember();
        assert!(house.remembers(), "it is made anew");
    }

    #[test]
    fn the_file_is_private_and_nothing_is_written_through_a_link() {
        let house = House::new();
        house.remember();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&house.home.cache()), mode(&path(&house.home))), (0o700, 0o600));
        fs::remove_dir_all(house.home.cache()).unwrap();
        let elsewhere = house.folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, house.home.cache()).unwrap();
        house.remember();
        assert!(!house.remembers());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
