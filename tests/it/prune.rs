//! `omg runs prune`: what has ended goes, everything else stays and is named, and no work is lost.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::lanes::{git, repository};

const PASSES: &str = "nodes: [{id: x, type: command, command: 'true'}]";

fn passed(env: &TestEnv, count: usize) {
    for _ in 0..count {
        env.run_graph(PASSES, &[]).exits(0);
    }
}

fn name(run: &Path) -> &str {
    run.file_name().unwrap().to_str().unwrap()
}

fn prune(env: &TestEnv, flags: &[&str]) -> Ran {
    env.omg(&[&["runs", "prune"], flags].concat())
}

fn json(env: &TestEnv, flags: &[&str]) -> Value {
    serde_json::from_str(&prune(env, &[flags, &["--json"]].concat()).exits(0).stdout).unwrap()
}

/// Why the only run that was looked at stays.
#[track_caller]
fn stays(env: &TestEnv, reason: &str) {
    let before = env.runs();
    let report = json(env, &["--keep", "0"]);
    assert_eq!(report["left"][0]["reason"], reason, "{report}");
    assert!(report["removed"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(env.runs(), before);
}

#[test]
fn the_newest_are_kept_and_a_dry_run_changes_nothing() {
    let env = TestEnv::new();
    passed(&env, 3);
    let runs = env.runs();
    let said = prune(&env, &["--keep", "1", "--dry-run"]).exits(0).stdout;
    assert!(said.contains(&format!("would remove {} (", name(&runs[0]))), "{said}");
    assert!(said.contains("2 run(s) would be removed, "), "{said}");
    assert_eq!(env.runs(), runs);
    let said = prune(&env, &["--keep", "1"]).exits(0).stdout;
    assert!(said.contains("2 run(s) removed, ") && said.ends_with("freed; 0 left\n"), "{said}");
    assert_eq!(env.runs(), runs[2..]);
    let listed = env.omg(&["runs", "list"]).exits(0).stdout;
    assert!(listed.contains("1 of 1 run(s) shown; 0 in flight, 0 abandoned; 0 skipped"), "{listed}");
}

#[test]
fn age_is_that_of_the_last_word() {
    let env = TestEnv::new();
    passed(&env, 2);
    let runs = env.runs();
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    for (run, files) in [(&runs[0], &["events.jsonl", "state.json"][..]), (&runs[1], &["events.jsonl"][..])] {
        for file in files {
            File::options().append(true).open(run.join(file)).unwrap().set_modified(long_ago).unwrap();
        }
    }
    let report = json(&env, &["--older-than", "1h"]);
    assert_eq!(report["removed"][0]["run_id"], name(&runs[0]));
    assert!(
        report["freed_bytes"].as_u64().unwrap() > 0 && report["removed"][0]["bytes"] == report["freed_bytes"]
    );
    assert_eq!(env.runs(), runs[1..]);
}

#[test]
fn exactly_one_measure_is_asked_for() {
    let env = TestEnv::new();
    passed(&env, 1);
    for flags in
        [&[][..], &["--keep", "1", "--older-than", "1h"], &["--older-than", "3d"], &["--keep", "few"]]
    {
        let ran = prune(&env, flags).exits(1);
        assert!(
            ran.stderr.contains("keep") || ran.stderr.contains("older-than"),
            "{flags:?}: {}",
            ran.stderr
        );
    }
    assert_eq!(env.runs().len(), 1);
}

#[test]
fn what_is_under_way_stays() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: x, type: command, command: 'touch here; sleep 372.01'}]");
    let running = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || env.path("here").exists());
    stays(&env, "running");
    running.signal(rustix::process::Signal::TERM);
    running.wait().exits(143);
    assert_eq!(json(&env, &["--keep", "0"])["removed"].as_array().unwrap().len(), 1);
    assert!(env.runs().is_empty());
}

#[test]
fn what_is_paused_stays() {
    let env = TestEnv::new();
    let graph = "nodes: [{id: a, prompt: '@say ok'}, {id: b, depends_on: [a], prompt: '@say ok'}]";
    env.run_graph(graph, &["--max-usd", "0.01"]).exits(2);
    stays(&env, "paused");
}

#[test]
fn what_lost_its_process_goes_only_once_its_children_are_known_to_have_ended() {
    let env = TestEnv::new();
    passed(&env, 1);
    let feed = env.run_dir().join("events.jsonl");
    let text = fs::read_to_string(&feed).unwrap();
    let open: Vec<&str> = text.lines().filter(|line| !line.contains("run_finished")).collect();
    fs::write(&feed, open.join("\n") + "\n").unwrap();
    stays(&env, "lost");
    let lock = fs::read_to_string(env.run_dir().join("resume.lock")).unwrap();
    let engine = lock.lines().nth(1).unwrap();
    let note = format!(r#"{{"engine":{engine},"at":"2026-01-02T03:04:05Z","ended":1,"left":0}}"#);
    fs::write(env.run_dir().join("guard.json"), note).unwrap();
    assert_eq!(json(&env, &["--keep", "0"])["removed"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_read_stays() {
    let env = TestEnv::new();
    passed(&env, 1);
    fs::write(env.run_dir().join("state.json"), "{").unwrap();
    stays(&env, "unreadable");
}

#[test]
fn no_link_is_followed() {
    let env = TestEnv::new();
    passed(&env, 1);
    let elsewhere = env.path("elsewhere");
    let run = env.run_dir();
    fs::rename(&run, &elsewhere).unwrap();
    symlink(&elsewhere, &run).unwrap();
    stays(&env, "link");
    assert!(elsewhere.join("state.json").exists());
    // The same for a directory of runs that lies elsewhere as a whole.
    fs::remove_file(&run).unwrap();
    fs::rename(&elsewhere, &run).unwrap();
    fs::rename(env.home().join("runs"), &elsewhere).unwrap();
    symlink(&elsewhere, env.home().join("runs")).unwrap();
    stays(&env, "link");
}

#[test]
fn a_removal_that_was_cut_short_shows_nowhere_and_is_ended_by_the_next() {
    let env = TestEnv::new();
    passed(&env, 1);
    let trash: PathBuf = env.home().join("runs").join(format!(".pruned-{}", name(&env.run_dir())));
    fs::rename(env.run_dir(), &trash).unwrap();
    fs::remove_file(trash.join("state.json")).unwrap();
    let listed = env.omg(&["runs", "list"]).exits(0).stdout;
    assert_eq!(listed, "no runs yet\n");
    assert!(json(&env, &["--keep", "9"])["freed_bytes"].as_u64().unwrap() > 0);
    assert!(!trash.exists());
}

fn run_in_lane(env: &TestEnv, script: &str) {
    let graph = format!("nodes: [{{id: a, type: command, worktree: lane, command: '{script}'}}]");
    env.run_graph(&graph, &[]).exits(0);
}

#[test]
fn what_was_kept_of_worktrees_outlives_the_run() {
    let env = repository();
    run_in_lane(&env, "echo z > z; git add z; git commit -q -m z; echo report > out.log");
    let report = json(&env, &["--keep", "0"]);
    let kept = report["removed"][0]["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "a branch and a ref: {report}");
    for reference in kept {
        git(&env.work(), &["rev-parse", "--verify", "-q", reference.as_str().unwrap()]);
    }
    assert!(env.runs().is_empty());
}

#[test]
fn a_worktree_with_work_keeps_its_run() {
    let env = repository();
    run_in_lane(&env, "echo z > z");
    let lane = env.run_dir().join("worktrees/lane");
    for flags in [&["--keep", "0", "--dry-run"][..], &["--keep", "0"]] {
        let report = json(&env, flags);
        assert_eq!(report["left"][0]["reason"], "worktrees", "{report}");
        assert!(report["left"][0]["detail"].as_str().unwrap().contains("omg salvage"), "{report}");
        assert_eq!(fs::read_to_string(lane.join("z")).unwrap(), "z\n");
    }
    // Once the work is committed it can go, and nothing is lost.
    git(&lane, &["add", "z"]);
    git(&lane, &["commit", "-q", "-m", "z"]);
    let removed = json(&env, &["--keep", "0"]);
    assert_eq!(removed["removed"].as_array().unwrap().len(), 1, "{removed}");
    let branch = removed["removed"][0]["kept"][0].as_str().unwrap().to_owned();
    assert_eq!(git(&env.work(), &["show", &format!("{branch}:z")]), "z");
    assert_eq!(git(&env.work(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_worktree_that_waits_for_a_resume_is_kept_in_the_repository_and_goes_with_its_run() {
    let env = repository();
    let script =
        "git checkout -q --detach; echo z > z; git add z; git commit -q -m z; echo report > out.log; exit 1";
    let graph = format!("nodes: [{{id: a, type: command, worktree: lane, command: '{script}'}}]");
    env.run_graph(&graph, &[]).exits(1);
    let lane = env.run_dir().join("worktrees/lane");
    assert!(lane.join("out.log").exists());
    let dry = json(&env, &["--keep", "0", "--dry-run"]);
    assert_eq!((dry["removed"].as_array().unwrap().len(), lane.join("out.log").exists()), (1, true), "{dry}");
    let report = json(&env, &["--keep", "0"]);
    let kept = report["removed"][0]["kept"].as_array().unwrap();
    let holds = |file: &str| {
        let shown = |name: &str| git(&env.work(), &["ls-tree", "-r", "--name-only", name]).contains(file);
        kept.iter().any(|name| shown(name.as_str().unwrap()))
    };
    assert!(holds("z") && holds("out.log"), "{report}");
    assert!(env.runs().is_empty());
}

#[test]
fn worktrees_whose_repository_is_gone_keep_their_run() {
    let env = repository();
    run_in_lane(&env, "echo z > z");
    fs::rename(env.work().join(".git"), env.work().join("git-elsewhere")).unwrap();
    stays(&env, "worktrees");
    assert!(env.run_dir().join("worktrees/lane/z").exists());
}

#[test]
fn the_list_says_the_same_with_and_without_its_index() {
    let env = TestEnv::new();
    passed(&env, 2);
    env.run_graph("nodes: [{id: x, type: command, command: 'false'}]", &[]).exits(1);
    let list = || {
        let table = env.omg(&["runs", "list"]).exits(0).stdout;
        table + &env.omg(&["runs", "list", "--json"]).exits(0).stdout
    };
    let index = env.home().join("cache/runs");
    let said = list();
    assert!(index.exists());
    assert_eq!(list(), said);
    fs::write(&index, "damaged").unwrap();
    assert_eq!(list(), said);
    // A file where the folder belongs: there can be no index, and nobody is bothered.
    fs::remove_dir_all(index.parent().unwrap()).unwrap();
    fs::write(env.home().join("cache"), "").unwrap();
    assert_eq!(list(), said);
}
