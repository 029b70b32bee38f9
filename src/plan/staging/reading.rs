//! How a person's files are read: regular ones, bounded, and without waiting for a pipe.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The largest file that is staged.
pub(super) const BYTES_MAX: u64 = 1 << 20;

/// What a file says.
#[derive(Debug)]
pub(super) struct Read {
    /// Its bytes, as far as [`BYTES_MAX`] and one more.
    pub(super) bytes: Vec<u8>,
    /// Whether its owner may run it.
    pub(super) runnable: bool,
}

impl Read {
    /// Whether that is all of it.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() as u64 <= BYTES_MAX
    }
}

/// Reads the regular file `path`, which must not be a link unless links are `followed`.
///
/// # Errors
/// When it is something else, or the system refused.
pub(super) fn read(path: &Path, followed: bool) -> io::Result<Read> {
    let link = if followed { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = i32::try_from((OFlags::NONBLOCK | link).bits()).expect("the flags of open(2) are an int");
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(Read { bytes, runnable: about.permissions().mode() & 0o100 != 0 })
}
