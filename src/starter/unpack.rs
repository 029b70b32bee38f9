//! Writes the shipped files below a directory, never over anything, and takes everything back when it fails (FACTS 1.5).
//!
//! Below the directory that the person named nothing is reached through a link: each folder and file is opened in the
//! open folder above it. What is there already is kept and compared.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, unlinkat};
use rustix::io::Errno;
use thiserror::Error;

use super::payload::Shipped;

const FOLDER: &str = "graphs";
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

const NOT_REGULAR: &str = "something that is no regular file stands in the place of a shipped one";

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was not there and was written.
    Written,
    /// It was there, the same byte for byte.
    Same,
    /// It was there with other contents, which it keeps.
    Differs,
}

/// A shipped file and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where it is: the directory that was named and the path below it.
    pub path: PathBuf,
    /// What became of it.
    pub fate: Fate,
}

/// Why nothing was unpacked. What had been written is gone again, but for what the message names.
#[derive(Debug, Error)]
#[error("{}: {what}{left}", place.display())]
pub struct UnpackError {
    place: PathBuf,
    what: String,
    left: String,
}

/// Writes `files` to `dir/graphs/`, creating what is missing; one entry for each, in their order.
///
/// # Errors
/// When something that is no regular file stands in the place of one, no directory in that of a folder, or the system
/// refuses.
pub fn unpack(files: &[Shipped], dir: &Path) -> Result<Vec<Placed>, UnpackError> {
    let mut unpacking = Unpacking::default();
    unpacking.all(files, dir).map_err(|error| UnpackError { left: unpacking.take_back(), ..error })
}

/// An open folder and how it is told.
struct Folder {
    handle: File,
    path: PathBuf,
}

/// What this call has made, in order.
#[derive(Default)]
struct Unpacking {
    made: Vec<Made>,
}

struct Made {
    parent: Rc<Folder>,
    name: PathBuf,
    is_folder: bool,
}

impl Unpacking {
    fn all(&mut self, files: &[Shipped], dir: &Path) -> Result<Vec<Placed>, UnpackError> {
        let named = self.named(dir)?;
        let root = self.folder(&named, OsStr::new(FOLDER))?;
        files.iter().map(|file| self.place(&root, file)).collect()
    }

    /// The directory that the person named, through whatever links they mean.
    fn named(&mut self, dir: &Path) -> Result<Rc<Folder>, UnpackError> {
        let at = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        match (open(at, FOLDER_FLAGS, Mode::empty()), dir.parent(), dir.file_name()) {
            (Ok(handle), ..) => Ok(Rc::new(Folder { handle: File::from(handle), path: dir.to_path_buf() })),
            (Err(Errno::NOENT), ..) if at.is_symlink() => {
                Err(failed(dir, "it is a link that leads nowhere; make the directory that it names"))
            }
            (Err(Errno::NOENT), Some(parent), Some(name)) => {
                let parent = self.named(parent)?;
                self.folder(&parent, name)
            }
            (Err(error), ..) => Err(refused(dir, error)),
        }
    }

    /// The folder `name` in `parent`, created when missing.
    fn folder(&mut self, parent: &Rc<Folder>, name: &OsStr) -> Result<Rc<Folder>, UnpackError> {
        let path = parent.path.join(name);
        match mkdirat(&parent.handle, name, FOLDER_MODE) {
            Ok(()) => {
                self.made.push(Made { parent: Rc::clone(parent), name: name.into(), is_folder: true });
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(refused(&path, error)),
        }
        match openat(&parent.handle, name, FOLDER_FLAGS | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(handle) => Ok(Rc::new(Folder { handle: File::from(handle), path })),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                Err(failed(&path, "a directory belongs here, and a link is not followed"))
            }
            Err(error) => Err(refused(&path, error)),
        }
    }

    fn place(&mut self, root: &Rc<Folder>, file: &Shipped) -> Result<Placed, UnpackError> {
        let path = Path::new(file.path);
        let name = path.file_name().unwrap_or(path.as_os_str());
        let folders = path.parent().into_iter().flat_map(Path::iter);
        let mut parent = Rc::clone(root);
        for folder in folders {
            parent = self.folder(&parent, folder)?;
        }
        let path = parent.path.join(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fate = match openat(&parent.handle, name, flags, FILE_MODE) {
            Ok(handle) => {
                self.made.push(Made { parent, name: name.into(), is_folder: false });
                File::from(handle).write_all(file.contents).map_err(|error| refused(&path, error))?;
                Fate::Written
            }
            Err(Errno::EXIST) => kept(&parent, name, file.contents)?,
            Err(error) => return Err(refused(&path, error)),
        };
        Ok(Placed { path, fate })
    }

    /// Removes what was made, latest first; what could not be removed, as the end of a message.
    fn take_back(&mut self) -> String {
        let mut left = String::new();
        for Made { parent, name, is_folder } in self.made.drain(..).rev() {
            let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            match unlinkat(&parent.handle, &name, flags) {
                // A folder that somebody else put something into is theirs now.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => {
                    let path = parent.path.join(&name);
                    write!(left, "; {} could not be taken back: {}", path.display(), io::Error::from(error))
                        .expect("a text takes everything");
                }
            }
        }
        left
    }
}

/// What became of a file whose place is taken.
fn kept(parent: &Folder, name: &OsStr, contents: &[u8]) -> Result<Fate, UnpackError> {
    let path = parent.path.join(name);
    // A pipe in the place of a file must not make this wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(&parent.handle, name, flags, Mode::empty()) {
        Ok(handle) => File::from(handle),
        Err(Errno::LOOP | Errno::NXIO) => return Err(failed(&path, NOT_REGULAR)),
        Err(error) => return Err(refused(&path, error)),
    };
    if !file.metadata().map_err(|error| refused(&path, error))?.is_file() {
        return Err(failed(&path, NOT_REGULAR));
    }
    let mut found = Vec::new();
    // One byte more than there should be tells a longer file; a huge one is not read.
    file.take(contents.len() as u64 + 1).read_to_end(&mut found).map_err(|error| refused(&path, error))?;
    Ok(if found == contents { Fate::Same } else { Fate::Differs })
}

fn failed(place: &Path, what: &str) -> UnpackError {
    UnpackError { place: place.to_path_buf(), what: what.to_owned(), left: String::new() }
}

fn refused(place: &Path, error: impl Into<io::Error>) -> UnpackError {
    failed(place, &error.into().to_string())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    const FILES: [Shipped; 3] = [
        Shipped { path: "a.yaml", contents: b"a" },
        Shipped { path: "fragments/f.yaml", contents: b"f" },
        Shipped { path: "z.yaml", contents: b"z" },
    ];

    fn fates(dir: &Path) -> Vec<Fate> {
        unpack(&FILES, dir).unwrap().iter().map(|placed| placed.fate).collect()
    }

    /// Everything below `dir`, folders included.
    fn tree(dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                found.extend(tree(&path));
            }
            found.push(path.display().to_string());
        }
        found.sort();
        found
    }

    #[test]
    fn what_is_there_is_kept_and_compared() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("new/deeper");
        assert_eq!(fates(&to), [Fate::Written; 3]);
        fs::write(to.join("graphs/a.yaml"), "ab").unwrap();
        fs::remove_file(to.join("graphs/z.yaml")).unwrap();
        assert_eq!(fates(&to), [Fate::Differs, Fate::Same, Fate::Written]);
        assert_eq!(fs::read_to_string(to.join("graphs/a.yaml")).unwrap(), "ab");
    }

    #[test]
    fn a_failure_takes_back_what_was_written_and_nothing_else() {
        for (plant, place) in [
            (&|path: &Path| fs::create_dir(path).unwrap()) as &dyn Fn(&Path),
            &|path: &Path| symlink("/etc/hostname", path).unwrap(),
            &|path: &Path| symlink("elsewhere", path).unwrap(),
            &|path: &Path| {
                rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, FILE_MODE, 0).unwrap();
            },
        ]
        .iter()
        .flat_map(|plant| [(plant, "graphs/z.yaml"), (plant, "graphs/fragments/f.yaml")])
        {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join(place).parent().unwrap()).unwrap();
            plant(&dir.path().join(place));
            let before = tree(dir.path());
            let error = unpack(&FILES, dir.path()).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains("no regular file"), "{error}");
            assert_eq!(tree(dir.path()), before);
        }
    }

    #[test]
    fn folders_that_were_made_go_as_well() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("new/deeper");
        let twice = [FILES[0], Shipped { path: "a.yaml/below.yaml", contents: b"" }];
        let error = unpack(&twice, &to).unwrap_err().to_string();
        assert!(error.contains("a directory belongs here"), "{error}");
        assert_eq!(tree(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn no_link_is_followed_below_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for place in ["graphs", "graphs/fragments"] {
            let to = dir.path().join(place.replace('/', "-"));
            fs::create_dir_all(to.join(place).parent().unwrap()).unwrap();
            symlink(elsewhere.path(), to.join(place)).unwrap();
            assert!(unpack(&FILES, &to).is_err(), "{place}");
        }
        assert_eq!(tree(elsewhere.path()), Vec::<String>::new());
        // The directory that was named may well be one.
        symlink(elsewhere.path(), dir.path().join("mine")).unwrap();
        assert_eq!(fates(&dir.path().join("mine")), [Fate::Written; 3]);
        symlink("nowhere", dir.path().join("lost")).unwrap();
        let error = unpack(&FILES, &dir.path().join("lost")).unwrap_err().to_string();
        assert!(error.contains("leads nowhere"), "{error}");
    }
}
