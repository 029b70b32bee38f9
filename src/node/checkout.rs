//! Where the git checkout begins that a directory lies in, told by names alone: no git is asked.

use std::path::Path;

/// The nearest directory at or above `real` that a checkout begins at: a clone, or a linked worktree, where `.git` is a
/// file. An empty `.git`, as sandboxes leave one behind (CLI-PROTOCOL 3.7), begins none.
pub fn top(real: &Path) -> Option<&Path> {
    real.ancestors().find(|above| {
        let git = above.join(".git");
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_checkout_begins_where_git_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for made in ["clone/.git", "clone/src/empty/.git/x", "lane"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        fs::write(at("clone/.git/HEAD"), "").unwrap();
        fs::write(at("lane/.git"), "gitdir: elsewhere").unwrap();
        for (path, wanted) in [
            ("clone", Some("clone")),
            ("clone/src/gone/file", Some("clone")),
            ("clone/src/empty", Some("clone")),
            ("lane/a", Some("lane")),
            ("other", None),
        ] {
            assert_eq!(top(&at(path)), wanted.map(at).as_deref(), "{path}");
        }
    }
}
