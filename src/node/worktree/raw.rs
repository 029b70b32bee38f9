//! Contents byte for byte: git would pass them through the repository's filters and line endings, on their way in and
//! out, and what a filter takes away is gone once the file is.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::node::worktree::git::{CHECKOUT, Call, Git, GitError};
use crate::text::lossy::lossy;

const FILE: &str = "100644";
const PROGRAM: &str = "100755";
const LINK: &str = "120000";
/// How many contents are held at once.
const CHUNK: usize = 128;

/// Why contents could not be taken in or given back.
#[derive(Debug, thiserror::Error)]
pub(super) enum RawError {
    /// Git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The system said no.
    #[error("{}: {source}", path.display())]
    System {
        /// What.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// A file of a tree.
#[derive(Debug)]
pub(super) struct Blob {
    /// Its path in the tree.
    pub(super) path: PathBuf,
    /// Its mode, as git writes it.
    pub(super) mode: String,
    /// The object's name.
    pub(super) sha: String,
}

/// Puts `files` below `top` into the repository; returns lines for an index.
pub(super) fn entries(git: &Git, top: &Path, files: &[PathBuf]) -> Result<Vec<u8>, RawError> {
    let failed = |path: &Path, source| RawError::System { path: path.to_path_buf(), source };
    let scratch = tempfile::tempdir().map_err(|source| failed(top, source))?;
    let (mut modes, mut asked) = (Vec::with_capacity(files.len()), Vec::new());
    for (at, file) in files.iter().enumerate() {
        let path = top.join(file);
        let about = path.symlink_metadata().map_err(|source| failed(&path, source))?;
        if about.is_symlink() {
            // What a link says is its content; git would read what it leads to.
            let says = fs::read_link(&path).map_err(|source| failed(&path, source))?;
            let copy = scratch.path().join(at.to_string());
            fs::write(&copy, says.as_os_str().as_bytes()).map_err(|source| failed(&copy, source))?;
            asked.extend(quoted(&copy));
            modes.push(LINK);
        } else {
            asked.extend(quoted(file));
            modes.push(if about.permissions().mode() & 0o100 == 0 { FILE } else { PROGRAM });
        }
    }
    let words = ["hash-object", "-w", "--no-filters", "--stdin-paths"];
    let names = lossy(git.run(Call::new(top, words).within(CHECKOUT).reading(asked))?);
    let entry = |((file, mode), name): ((&PathBuf, &str), &str)| {
        [format!("{mode} {name}\t").as_bytes(), file.as_os_str().as_bytes(), b"\0"].concat()
    };
    Ok(files.iter().zip(modes).zip(names.lines()).flat_map(entry).collect())
}

/// A path on a line of its own, as git reads it back.
fn quoted(path: &Path) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\n' => line.extend(b"\\n"),
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            other => line.push(*other),
        }
    }
    line.extend(b"\"\n");
    line
}

/// Writes `blobs` of the repository that `repo` lies in below `place`.
pub(super) fn write(git: &Git, repo: &Path, blobs: &[Blob], place: &Path) -> Result<(), RawError> {
    for chunk in blobs.chunks(CHUNK) {
        let names: String = chunk.iter().map(|blob| format!("{}\n", blob.sha)).collect();
        let call = Call::new(repo, ["cat-file", "--batch"]).within(CHECKOUT);
        let said = git.run(call.reading(names.into_bytes()))?;
        let mut rest = said.as_slice();
        for blob in chunk {
            let path = place.join(&blob.path);
            let written = match next(&mut rest) {
                Some(content) => put(&path, &blob.mode, content),
                None => Err(io::Error::new(io::ErrorKind::NotFound, "its content is not in the repository")),
            };
            written.map_err(|source| RawError::System { path, source })?;
        }
    }
    Ok(())
}

/// The next content: a line with name, kind and size, then as many bytes and a newline.
fn next<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, after) = rest.split_at(line + 1);
    *rest = after;
    let size: usize = String::from_utf8_lossy(head).trim_end().rsplit(' ').next()?.parse().ok()?;
    let content = after.get(..size)?;
    *rest = after.get(size + 1..)?;
    Some(content)
}

fn put(path: &Path, mode: &str, content: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    if mode == LINK {
        return symlink(OsStr::from_bytes(content), path);
    }
    fs::write(path, content)?;
    if mode == PROGRAM {
        let about = fs::metadata(path)?.permissions().mode();
        fs::set_permissions(path, Permissions::from_mode(about | 0o111))?;
    }
    Ok(())
}
