//! Rebuilds when a shipped graph or fragment is added, which cargo would not see by itself, and says how the program is linked.

use std::env;
use std::path::Path;

fn main() {
    // One that is missing would count as changed at every build.
    for folder in ["graphs", "fragments"].into_iter().filter(|folder| Path::new(folder).is_dir()) {
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rerun-if-changed=scripts/build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        // A program at a fixed place has none of its nine thousand pointers to adjust before `main`: a tenth of what a
        // short command takes.
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
