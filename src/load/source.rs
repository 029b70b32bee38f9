//! The bytes of a graph file, read once: a pipe, a FIFO and `/dev/stdin` give theirs only once (case C15).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::text::hex;

/// The largest file that is read.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// A graph file in memory.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file as it was named.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// SHA-256 of its bytes, hex.
    pub sha256: String,
    /// What it came from.
    pub origin: Origin,
}

/// What a graph came from, which says where its fragments lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A regular file: the directory `fragments` beside it.
    File,
    /// A pipe, a FIFO, a terminal, `/dev/stdin`: nothing lies beside it.
    Stream,
    /// Bytes that this program had already, such as a model's reply: it may not name files.
    Memory,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system said no.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// It is a directory.
    #[error("{}: is a directory, and a graph is a file", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// It is larger than [`FILE_BYTES_MAX`].
    #[error("{}: is larger than {} MB, the most that a graph file may hold", path.display(), FILE_BYTES_MAX >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not UTF-8.
    #[error("{}:{line}:{column}: the file is not UTF-8 here (byte {byte:#04x})", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The first byte that is wrong.
        byte: u8,
    },
}

impl Source {
    /// Reads `path`, whatever kind of file it is.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(LoadError::Directory { path: path.to_owned() });
        }
        let origin = if about.is_file() && !is_handle(path) { Origin::File } else { Origin::Stream };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        Ok(Self { origin, ..Self::from_bytes(path, bytes)? })
    }

    /// Reads `path` once more, if it is a file that can be: what a pipe or `/dev/stdin` gave once it does not give again,
    /// and to open one may wait for ever.
    pub fn read_again(path: &Path) -> Option<Self> {
        let is_file = !is_handle(path) && path.metadata().is_ok_and(|about| about.is_file());
        is_file.then(|| Self::read(path).ok())?
    }

    /// Takes the bytes of a file that was read already.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, LoadError> {
        let path = path.to_owned();
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(LoadError::TooLarge { path });
        }
        let sha256 = hex::sha256(&bytes);
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { path, text, sha256, origin: Origin::Memory }),
            Err(error) => {
                let valid_to = error.utf8_error().valid_up_to();
                let bytes = error.as_bytes();
                let before = String::from_utf8_lossy(&bytes[..valid_to]);
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                Err(LoadError::Encoding { path, line, column, byte: bytes[valid_to] })
            }
        }
    }
}

/// Whether the path is a name for what a process has open, as `/dev/stdin` of a redirected file is.
fn is_handle(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}
