//! `omg init`: the shipped graphs in a folder of one's own, and every one of them fit to be run there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::env::{OMG, TestEnv};

/// Every file below `dir`, by its path there.
fn below(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("graphs")
}

/// The unpacked graphs, without tests of graphs.
fn graphs(env: &TestEnv) -> Vec<String> {
    let is_graph =
        |name: &String| !name.contains('/') && name.ends_with(".yaml") && !name.ends_with(".omgtest.yaml");
    below(&env.path("graphs")).into_iter().filter(is_graph).collect()
}

#[test]
fn every_shipped_file_is_unpacked_and_told() {
    let env = TestEnv::new();
    let ran = env.omg(&["init"]).exits(0);
    let shipped: Vec<String> = below(&checkout())
        .into_iter()
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".json"))
        .collect();
    assert_eq!(below(&env.path("graphs")), shipped);
    for name in &shipped {
        let there = fs::read(env.path("graphs").join(name)).unwrap();
        assert_eq!(there, fs::read(checkout().join(name)).unwrap(), "{name}");
        assert!(ran.stdout.contains(&format!("wrote graphs/{name}\n")), "{}", ran.stdout);
    }
    assert!(ran.stdout.contains(&format!("{} files written to graphs", shipped.len())), "{}", ran.stdout);
    assert!(!env.home().exists());
}

#[test]
fn the_next_command_works_as_it_is_printed_whatever_the_directory_is_called() {
    let mut env = TestEnv::new();
    env.set("OMG", OMG);
    for (words, wanted) in [
        (&["init", "--", "-d"][..], "./-d/graphs/quickstart.yaml"),
        (&["init", "a b"], "'a b/graphs/quickstart.yaml'"),
        (&["new", "-t", "prompt", "--", "-n.yaml"], "./-n.yaml"),
    ] {
        let ran = env.omg(words).exits(0);
        let next = ran.stdout.lines().find_map(|line| line.strip_prefix("next: omg ")).unwrap();
        assert!(next.contains(wanted), "{next}");
        let done = env.shell(&format!("$OMG {next}")).output().unwrap();
        assert!(done.status.success(), "{next}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_file_that_is_there_is_kept_and_one_that_differs_is_told() {
    let env = TestEnv::new();
    env.omg(&["init", "my place"]).exits(0);
    env.write("my place/graphs/review-loop.yaml", "mine");
    fs::remove_file(env.path("my place/graphs/quickstart.yaml")).unwrap();
    let ran = env.omg(&["init", "my place"]).exits(0);
    for told in [
        "wrote my place/graphs/quickstart.yaml\n",
        "kept my place/graphs/review-loop.yaml (DIFFERS from the shipped one)\n",
        "kept my place/graphs/haiku-smoke.yaml (the same as the shipped one)\n",
        "1 file written to my place/graphs\n",
        "1 of them DIFFERS",
        "omg run 'my place/graphs/quickstart.yaml'",
    ] {
        assert!(ran.stdout.contains(told), "no {told:?} in:\n{}", ran.stdout);
    }
    assert_eq!(env.read("my place/graphs/review-loop.yaml"), "mine");
}

#[test]
fn a_refusal_leaves_nothing_behind_and_no_link_is_followed() {
    let env = TestEnv::new();
    env.write("elsewhere/keep", "");
    fs::create_dir_all(env.path("a/graphs")).unwrap();
    symlink(env.path("elsewhere"), env.path("a/graphs/review-loop.yaml")).unwrap();
    fs::create_dir_all(env.path("b/graphs")).unwrap();
    symlink(env.path("elsewhere"), env.path("b/graphs/fragments")).unwrap();
    fs::create_dir_all(env.path("c")).unwrap();
    symlink(env.path("elsewhere"), env.path("c/graphs")).unwrap();
    env.write("d", "a file");
    for (dir, place) in
        [("a", "a/graphs/review-loop.yaml"), ("b", "b/graphs/fragments"), ("c", "c/graphs"), ("d", "d")]
    {
        let ran = env.omg(&["init", dir]).exits(1);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with(&format!("omg: {place}: ")), "{}", ran.stderr);
    }
    assert_eq!(below(&env.path("elsewhere")), ["keep"]);
    assert_eq!(below(&env.path("a/graphs")), ["review-loop.yaml/keep"]);
}

#[test]
fn a_name_that_cannot_be_shown_is_in_no_command() {
    let env = TestEnv::new();
    let ran = env.omg(&["init", "x\u{1b}[31m"]).exits(0);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    assert!(ran.stdout.contains("next, in that directory: omg run quickstart.yaml "), "{}", ran.stdout);
    assert!(env.path("x\u{1b}[31m/graphs/quickstart.yaml").exists());
}

#[test]
fn a_limit_on_the_size_of_files_leaves_nothing_behind() {
    let env = TestEnv::new();
    let limited = format!("ulimit -f 1; exec {OMG} init place");
    let done = std::process::Command::new("/bin/sh")
        .args(["-c", &limited])
        .current_dir(env.path("."))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(String::from_utf8(done.stderr).unwrap().contains("what was there is unchanged"));
    assert!(!env.path("place").exists());
}

#[test]
fn every_graph_loads_here_and_unpacked_and_nothing_speaks_against_it() {
    let env = TestEnv::new();
    env.omg(&["init"]).exits(0);
    for name in graphs(&env) {
        for folder in [env.path("graphs"), checkout()] {
            let ran = env.omg(&["lint", folder.join(&name).to_str().unwrap()]).exits(0);
            assert_eq!(ran.stderr, "", "{name}");
        }
    }
}

/// What codex cannot keep is said of these graphs and of no other; one that asks for an agent is refused.
#[test]
fn under_codex_only_budgets_and_agents_are_remarked_on() {
    let env = TestEnv::new();
    env.omg(&["init"]).exits(0);
    let bounded = ["backlog-batch.yaml", "dev-review-pr.yaml", "review-loop.yaml", "self-dev.yaml"];
    for name in graphs(&env) {
        let refused = name == "adr-driven-dev.yaml";
        let ran =
            env.omg(&["--runtime", "codex", "lint", &format!("graphs/{name}")]).exits(i32::from(refused));
        let budgets = ran.stderr.lines().filter(|line| line.contains("budget_usd")).count();
        let others = ran.stderr.lines().count() - budgets - usize::from(refused);
        assert_eq!(others, 0, "{name}: {}", ran.stderr);
        assert_eq!(budgets > 0, bounded.contains(&name.as_str()), "{name}: {}", ran.stderr);
    }
}

/// The command in the comment of each graph, rehearsed where it was unpacked.
#[test]
fn the_command_in_each_comment_works() {
    let env = TestEnv::new();
    env.omg(&["init"]).exits(0);
    env.write_program("omg", &format!("#!/bin/sh\nexec {OMG} \"$@\"\n"));
    for name in graphs(&env) {
        let text = env.read(&format!("graphs/{name}"));
        let line = text.lines().find_map(|line| line.strip_prefix("# Run it: ")).unwrap();
        let command = line.replace("omg run", "omg rehearse").replace("/tmp/omg-smoke", "smoke");
        let ended = crate::env::Running::of(&mut env.shell(&command)).wait();
        let waits = text.contains("type: gate");
        ended.exits(if waits { 2 } else { 0 });
    }
}

#[test]
fn the_next_command_that_init_names_runs_as_it_stands() {
    let env = TestEnv::new();
    let ran = env.omg(&["init", "."]).exits(0);
    env.write_program("omg", &format!("#!/bin/sh\nexec {OMG} \"$@\"\n"));
    let next = ran.stdout.lines().find_map(|line| line.strip_prefix("next: ")).unwrap();
    let ended = crate::env::Running::of(&mut env.shell(next)).wait().exits(0);
    assert!(ended.stdout.contains("TOTAL COST: $0.0000"), "{}", ended.stdout);
    assert!(env.spawns().is_empty());
}
