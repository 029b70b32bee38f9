//! Rebuilds when a shipped graph or fragment is added, which cargo would not see by itself, and says how the program is linked.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // One that is missing would count as changed at every build.
    for folder in ["graphs", "fragments"].into_iter().filter(|folder| Path::new(folder).is_dir()) {
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rerun-if-changed=scripts/build.rs");
    revision();
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        // A program at a fixed place has none of its nine thousand pointers to adjust before `main`: a tenth of what a
        // short command takes.
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

/// Tells the program which revision it is of: what `OMG_REVISION` says, else, of a release that is built in a checkout, the
/// commit. Other builds know none, so that a commit alone compiles nothing anew; sources without a repository build the same
/// anywhere.
fn revision() {
    println!("cargo:rerun-if-env-changed=OMG_REVISION");
    if env::var_os("OMG_REVISION").is_some() || env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    if let Some(commit) = commit() {
        println!("cargo:rustc-env=OMG_REVISION={}", &commit[..7]);
    }
}

/// The commit that is checked out, as git's own files tell it.
fn commit() -> Option<String> {
    let git = match fs::read_to_string(".git") {
        Ok(link) => PathBuf::from(link.strip_prefix("gitdir: ")?.trim()),
        Err(_) => PathBuf::from(".git"),
    };
    let common = match fs::read_to_string(git.join("commondir")) {
        Ok(common) => git.join(common.trim()),
        Err(_) => git.clone(),
    };
    let head = read(&git.join("HEAD"))?;
    let commit = match head.strip_prefix("ref: ") {
        None => head,
        Some(name) => read(&common.join(name)).or_else(|| {
            let packed = read(&common.join("packed-refs"))?;
            let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
            line.split(' ').next().map(str::to_owned)
        })?,
    };
    (commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(commit)
}

/// What a file of git says; another build asks anew when it has changed.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
