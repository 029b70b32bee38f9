//! Names of files for programs that look at them from elsewhere: relative to the workspace, or as a URI.

use std::path::{Component, Path, PathBuf};

/// From where files are named.
pub(super) struct Paths {
    /// The current directory.
    here: PathBuf,
    /// The top of the checkout, where a workflow says it.
    workspace: PathBuf,
}

impl Paths {
    /// As this process sees it; without `GITHUB_WORKSPACE` the current directory is the top.
    pub(super) fn of_process() -> Self {
        let here = crate::cli::context::Context::base();
        let workspace = std::env::var_os("GITHUB_WORKSPACE").filter(|path| !path.is_empty());
        Paths { workspace: workspace.map_or_else(|| here.clone(), PathBuf::from), here }
    }

    /// The file relative to the workspace; absolute when it lies elsewhere.
    pub(super) fn relative(&self, file: &str) -> String {
        let whole = plain(&self.here.join(file));
        let below = whole.strip_prefix(plain(&self.workspace)).map(Path::to_owned);
        below.unwrap_or(whole).display().to_string()
    }

    /// The same as a URI reference: relative to the workspace, or `file://…`.
    pub(super) fn uri(&self, file: &str) -> String {
        let path = self.relative(file);
        let scheme = if path.starts_with('/') { "file://" } else { "" };
        let encoded = path.bytes().map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        });
        format!("{scheme}{}", encoded.collect::<String>())
    }
}

/// The path without `.` and `..`, as far as the words tell.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_from_the_top_of_the_checkout() {
        let paths = Paths { here: "/home/me/repo/sub".into(), workspace: "/home/me/repo/".into() };
        for (file, relative, uri) in [
            ("g.yaml", "sub/g.yaml", "sub/g.yaml"),
            ("./a b.yaml", "sub/a b.yaml", "sub/a%20b.yaml"),
            ("../g.yaml", "g.yaml", "g.yaml"),
            ("/home/me/repo/ü.yaml", "ü.yaml", "%C3%BC.yaml"),
            ("/dev/stdin", "/dev/stdin", "file:///dev/stdin"),
        ] {
            assert_eq!((paths.relative(file), paths.uri(file)), (relative.to_owned(), uri.to_owned()));
        }
    }
}
