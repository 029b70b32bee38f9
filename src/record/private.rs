//! Files and directories that only their owner may touch: 0600 and 0700 under any umask (FACTS 6.1, case D13),
//! and never through a link that a node planted (case D12).
//!
//! What exists already keeps its mode. Knows no name of a run directory; [`super::layout`] does.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// A note beside a run is shorter.
const JSON_BYTES_MAX: u64 = 1 << 20;

/// Creates `path` and whatever is missing above it.
pub(crate) fn create_directories(path: &Path) -> io::Result<()> {
    match create_directory(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_directories(path.parent().ok_or(error)?)?;
            // Another process may have made it meanwhile.
            create_directory(path).or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) })
        }
        Err(error) => Err(error),
    }
}

/// Creates the one directory `path`, which must not exist.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
    if fs::symlink_metadata(path)?.mode() & 0o777 != DIRECTORY_MODE {
        fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

/// The real directory `name` in `parent`, created when missing. A link of that name is replaced, not followed.
pub(crate) fn subdirectory(parent: &Path, name: &str) -> io::Result<PathBuf> {
    stays_real(parent)?;
    let path = parent.join(name);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => return Ok(path),
        Ok(found) if found.is_symlink() => fs::remove_file(&path)?,
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                "a file stands where a directory belongs",
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match create_directory(&path) {
        // Two workers may keep their first replies at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_real_directory(&path) => Ok(path),
        made => made.map(|()| path),
    }
}

/// Whether `path` is a directory, and not a link to one.
pub(crate) fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Refuses a link that was planted in the place of `directory`, so that nothing is written where it leads.
fn stays_real(directory: &Path) -> io::Result<()> {
    if fs::symlink_metadata(directory)?.is_symlink() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("a link stands in the place of {}", directory.display()),
        ));
    }
    Ok(())
}

/// Creates the file `path`, which must not exist, open for writing.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    restrict(&file)?;
    Ok(file)
}

/// Opens the regular file `path` to read and append, creating it when missing; a link or a pipe is refused.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    open_or_create(path, OpenOptions::new().read(true).append(true))
}

/// Opens the regular file `path` to read and append; it must be there.
pub(crate) fn open_existing_to_append(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).append(true).custom_flags(unfollowed()).open(path)?)
}

/// Opens the regular file `path` to read and overwrite, creating it when missing; a link or a pipe is refused.
pub(crate) fn open_to_rewrite(path: &Path) -> io::Result<File> {
    open_or_create(path, OpenOptions::new().read(true).write(true))
}

/// Opens the regular file `path` to read; a link or a pipe is refused.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(unfollowed()).open(path)?)
}

/// What the regular file `path` holds as JSON; nothing of a link, of what is not of this shape, and of what is far too long.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = Vec::new();
    open_to_read(path).ok()?.take(JSON_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Creates a temporary file in `directory`; dropping it unpersisted removes it.
pub(crate) fn temporary(directory: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    stays_real(directory)?;
    let file = tempfile::Builder::new().prefix(prefix).tempfile_in(directory)?;
    restrict(file.as_file())?;
    Ok(file)
}

/// Creates a file without a name in `directory`, for [`give_name`]; it vanishes unless it gets one. An error means
/// that this system has no such thing here, and that [`temporary`] does.
#[cfg(target_os = "linux")]
pub(crate) fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(directory, flags, Mode::from_raw_mode(FILE_MODE))?);
    restrict(&file)?;
    Ok(file)
}

/// Creates a file without a name, which this system cannot.
#[cfg(not(target_os = "linux"))]
pub(crate) fn nameless(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has the system begin to write `file` to the disk, without waiting for it. `false` where it cannot be told to.
#[cfg(target_os = "linux")]
pub(crate) fn begin_writing_back(file: &File) -> bool {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).is_ok()
}

/// Has nothing written back, for want of a call that this system has.
#[cfg(not(target_os = "linux"))]
pub(crate) fn begin_writing_back(_: &File) -> bool {
    false
}

/// Gives a [`nameless`] file the name `path`, which must not be taken by anything, a link included.
pub(crate) fn give_name(file: &File, path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), stays_real)?;
    let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, handle, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Removes the file or link `path`; what is not there needs no removal.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| match stays_real(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        checked => checked,
    })?;
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn open_or_create(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.mode(FILE_MODE).custom_flags(unfollowed());
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            restrict(&file)?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => regular(options.open(path)?),
        Err(error) => Err(error),
    }
}

/// A link at the end of the path fails the call, and a planted pipe does not make it wait for its other end.
fn unfollowed() -> i32 {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    i32::try_from(flags.bits()).expect("the flags of open(2) are an int")
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// A umask may have taken more away from a new file than the group's and the world's bits.
fn restrict(file: &File) -> io::Result<()> {
    if file.metadata()?.mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn d12_a_link_is_never_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &link).unwrap();
        open_to_append(&link).unwrap_err();
        open_to_rewrite(&link).unwrap_err();
        open_to_read(&link).unwrap_err();
        create_file(&link).unwrap_err();
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    }

    #[test]
    fn a_dangling_link_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink(dir.path().join("elsewhere"), &link).unwrap();
        open_to_append(&link).unwrap_err();
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        open_to_append(&pipe).unwrap_err();
        open_to_read(&pipe).unwrap_err();
    }

    #[test]
    fn a_linked_subdirectory_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::create_dir(&victim).unwrap();
        symlink(&victim, dir.path().join("failed")).unwrap();
        let made = subdirectory(dir.path(), "failed").unwrap();
        assert!(is_real_directory(&made) && victim.is_dir());
        fs::write(dir.path().join("attempts"), "").unwrap();
        subdirectory(dir.path(), "attempts").unwrap_err();
    }

    #[test]
    fn an_existing_directory_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        create_directories(&open.join("a/b")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&open), mode(&open.join("a")), mode(&open.join("a/b"))), (0o755, 0o700, 0o700));
    }
}
