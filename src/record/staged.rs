//! Private copies of planned files below `$OMG_HOME/staged`, one for each spawn (docs/adr/0009).
//!
//! A copy is written from memory a moment before its reader starts and removed when that has ended, so that what one
//! node does to a copy reaches no other node. Its name is random, the directory around it cannot be listed and nothing
//! in it can be written without a change of modes first. Every step goes through the handle of a directory and follows
//! no link. [`Copy::altered`] tells afterwards whether somebody changed a copy all the same. Knows neither what the
//! files say nor who reads them.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::record::lock::{self, Probe};
use crate::record::{Home, RunId, private};
use crate::text::hex;

/// How many directories a planned path may lie in; a removal follows a planted tree no deeper than twice that.
pub const DEPTH_MAX: usize = 32;
/// Directories no deeper than this below a copy hold definitions, so nothing may appear in them.
const GUARDED_DEPTH: usize = 1;

/// A planned file, held in memory.
#[derive(Debug)]
pub struct Planned {
    /// Its place below the copy, `/` between names; in at most [`DEPTH_MAX`] directories.
    pub path: String,
    /// What it says.
    pub bytes: Vec<u8>,
    /// Whether it may be run.
    pub runnable: bool,
    /// Whether a CLI takes instructions from it as it starts, so that not even a change that was undone is borne.
    pub definition: bool,
}

/// The directory that one leg's copies are made in. Dropping it removes it.
#[derive(Debug)]
pub struct Shelf {
    parent: OwnedFd,
    handle: OwnedFd,
    name: String,
    path: PathBuf,
}

/// One copy. Dropping it removes it.
#[derive(Debug)]
pub struct Copy {
    shelf: Arc<Shelf>,
    handle: OwnedFd,
    name: String,
    files: Arc<[Planned]>,
    /// Of [`Copy::files`], in their order.
    stamps: Vec<Stamp>,
    /// The guarded directories, by their paths.
    guarded: Vec<(String, Stamp)>,
}

/// What no program can set back once a file was written, renamed or linked: its number and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed: (i64, i64),
}

impl Shelf {
    /// Makes the directory for a leg of `run`, whose lock the caller holds, and removes what dead legs left.
    ///
    /// # Errors
    /// When the system refused.
    pub fn open(home: &Home, run: &RunId) -> io::Result<Arc<Self>> {
        sweep(home, Some(run));
        private::create_directories(home.path())?;
        let staged = private::subdirectory(home.path(), "staged")?;
        let parent = open_directory(CWD, &staged)?;
        let name = format!("{run}-{}", unguessable()?);
        let handle = make_directory(&parent, &name)?;
        // Entered and written, not listed: a name in here is known to whoever was told.
        rustix::fs::fchmod(&handle, Mode::WUSR | Mode::XUSR)?;
        Ok(Arc::new(Shelf { parent, handle, path: staged.join(&name), name }))
    }

    /// Writes `files`, which are sorted by their paths, to a fresh directory.
    ///
    /// # Errors
    /// When the system refused, or it `is_off` before all are written; nothing is left then.
    pub fn copy(self: &Arc<Self>, files: &Arc<[Planned]>, is_off: &dyn Fn() -> bool) -> io::Result<Copy> {
        let name = unguessable()?;
        let handle = make_directory(&self.handle, &name)?;
        let mut copy = Copy {
            shelf: Arc::clone(self),
            handle: handle.try_clone()?,
            name,
            files: Arc::clone(files),
            stamps: Vec::with_capacity(files.len()),
            guarded: Vec::new(),
        };
        let mut open = vec![(String::new(), handle)];
        for file in files.iter() {
            // There may be many, and a person who ends the run does not wait for them.
            if is_off() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            copy.enter(&mut open, directory)?;
            let (_, parent) = open.last().expect("the copy itself stays open until the end");
            copy.stamps.push(write(parent, name, file)?);
        }
        while let Some(directory) = open.pop() {
            copy.seal(directory)?;
        }
        Ok(copy)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        // What cannot be removed now is swept up by a later leg.
        remove(&self.parent, &self.name, 2 * DEPTH_MAX).ok();
    }
}

impl Copy {
    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.shelf.path.join(&self.name)
    }

    /// The first thing that is not as it was written, in words that follow "its private copy": somebody changed it.
    pub fn altered(&self) -> Option<String> {
        let told = stamp(&self.handle).ok().map(|told| told.inode);
        let found = open_directory(CWD, self.path()).and_then(|found| stamp(&found)).ok();
        if told.is_none() || found.map(|found| found.inode) != told {
            return Some("was moved away".to_owned());
        }
        let files = self.files.iter().zip(&self.stamps);
        let changed = files.filter(|(file, stamp)| !self.is_as_written(file, **stamp).unwrap_or(false));
        if let Some((file, _)) = changed.into_iter().next() {
            return Some(format!("was changed at {}", file.path));
        }
        let grown = self.guarded.iter().find(|(path, written)| {
            self.directory(path).and_then(|found| stamp(&found)).ok().as_ref() != Some(written)
        });
        grown.map(|(path, _)| match path.as_str() {
            "" => "had something put into it".to_owned(),
            path => format!("had something put into {path}"),
        })
    }

    fn is_as_written(&self, file: &Planned, written: Stamp) -> io::Result<bool> {
        let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let found = File::from(rustix::fs::openat(self.directory(directory)?, name, flags, Mode::empty())?);
        let about = found.metadata()?;
        if !about.is_file() || about.len() != file.bytes.len() as u64 {
            return Ok(false);
        }
        if file.definition && Stamp::of(&about) != written {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(file.bytes.len());
        found.take(about.len() + 1).read_to_end(&mut bytes)?;
        Ok(bytes == file.bytes)
    }

    /// The directory `path` of this copy, through no link.
    fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(self.handle.try_clone()?, |parent, name| open_directory(&parent, name))
    }

    /// Leaves `open` with the handles on the way to `directory`. What is left behind on the way is complete.
    fn enter(&mut self, open: &mut Vec<(String, OwnedFd)>, directory: &str) -> io::Result<()> {
        while open.last().is_some_and(|(path, _)| !is_within(directory, path)) {
            let left = open.pop().expect("it was there just now");
            self.seal(left)?;
        }
        let (here, _) = open.last().expect("every path is within the copy");
        for name in directory[here.len()..].split('/').filter(|name| !name.is_empty()) {
            let (path, parent) = open.last().expect("what was there and what was pushed");
            let made = make_directory(parent, name)?;
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            open.push((path, made));
        }
        Ok(())
    }

    /// Ends writing to a directory.
    fn seal(&mut self, (path, handle): (String, OwnedFd)) -> io::Result<()> {
        rustix::fs::fchmod(&handle, Mode::RUSR | Mode::XUSR)?;
        if path.split('/').filter(|name| !name.is_empty()).count() <= GUARDED_DEPTH {
            self.guarded.push((path, stamp(&handle)?));
        }
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed now goes with the shelf.
        remove(&self.shelf.handle, &self.name, 2 * DEPTH_MAX).ok();
    }
}

impl Stamp {
    fn of(about: &std::fs::Metadata) -> Self {
        Stamp { inode: about.ino(), changed: (about.ctime(), about.ctime_nsec()) }
    }
}

/// Removes the copies of legs that are dead, those of `own` included, a run whose lock the caller holds.
pub fn sweep(home: &Home, own: Option<&RunId>) {
    let staged = home.staged();
    if !private::is_real_directory(&staged) {
        return;
    }
    let Ok(parent) = open_directory(CWD, &staged) else { return };
    for entry in std::fs::read_dir(&staged).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(run) = name.rsplit_once('-').and_then(|(run, _)| RunId::parse(run)) else { continue };
        let dir = home.run(&run);
        let is_dead =
            own == Some(&run) || lock::probe(&dir) == Probe::Free || dir.path().symlink_metadata().is_err();
        if is_dead {
            remove(&parent, name, 2 * DEPTH_MAX).ok();
        }
    }
}

fn unguessable() -> io::Result<String> {
    hex::random::<16>().map_err(io::Error::other)
}

fn is_within(directory: &str, path: &str) -> bool {
    path.is_empty()
        || directory.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn write(parent: &OwnedFd, name: &str, file: &Planned) -> io::Result<Stamp> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut made = File::from(rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?);
    made.write_all(&file.bytes)?;
    rustix::fs::fchmod(&made, if file.runnable { Mode::RUSR | Mode::XUSR } else { Mode::RUSR })?;
    Ok(Stamp::of(&made.metadata()?))
}

fn stamp(handle: &OwnedFd) -> io::Result<Stamp> {
    Ok(Stamp::of(&File::from(handle.try_clone()?).metadata()?))
}

fn make_directory(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
    let made = open_directory(parent, name)?;
    // A umask may have taken more away.
    rustix::fs::fchmod(&made, Mode::RWXU)?;
    Ok(made)
}

fn open_directory(parent: impl AsFd, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, path.as_ref(), flags, Mode::empty())?)
}

/// Removes what `name` is, and what is below it to a depth of `deep`. A link goes, what it leads to stays.
fn remove(parent: &OwnedFd, name: &str, deep: usize) -> io::Result<()> {
    remove_raw(parent, std::ffi::CString::new(name)?.as_c_str(), deep)
}

fn remove_raw(parent: &OwnedFd, name: &std::ffi::CStr, deep: usize) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // What Linux and others say of a directory.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let deeper = deep.checked_sub(1).ok_or(Errno::LOOP)?;
    let directory = open_whatever_its_mode(parent, name)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    for name in names {
        remove_raw(&directory, &name, deeper)?;
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory that may neither be listed nor written, and lets the owner do both.
#[cfg(target_os = "linux")]
fn open_whatever_its_mode(parent: &OwnedFd, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    // A handle that needs no permission, since Linux changes no mode by a name without following links.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&handle, c".", flags, Mode::empty())?)
}

/// Opens a directory that may neither be listed nor written, and lets the owner do both.
#[cfg(not(target_os = "linux"))]
fn open_whatever_its_mode(parent: &OwnedFd, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests;
