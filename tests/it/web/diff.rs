//! `GET api/diff`: what a person who decides at a gate sees of the lanes before it. Real git, real worktrees.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::Server;
use crate::env::TestEnv;
use crate::lanes::{git, repository};

/// A run that waits at a gate behind a lane in which `script` ran.
fn gated(env: &TestEnv, script: &str) -> String {
    let script = script.replace('\n', "\n      ");
    env.run_graph(
        &format!(
            "nodes:\n  - id: work\n    type: command\n    worktree: lane\n    command: |\n      {script}\n  \
             - {{id: gate, type: gate, depends_on: [work]}}\n  \
             - {{id: then, type: command, command: 'true', depends_on: [gate]}}\n"
        ),
        &[],
    )
    .exits(2);
    env.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

fn lane(env: &TestEnv) -> PathBuf {
    env.run_dir().join("worktrees/lane")
}

/// The lane that the gate's page shows.
#[track_caller]
fn shown(env: &TestEnv, run: &str) -> Value {
    let server = Server::start(env, &[run]);
    let answer = server.json("/api/diff?node=gate");
    assert_eq!(answer["lanes"].as_array().unwrap().len(), 1, "{answer}");
    let lane = answer["lanes"][0].clone();
    assert_eq!((&lane["lane"], &lane["nodes"]), (&"lane".into(), &serde_json::json!(["work"])));
    lane
}

fn names(lane: &Value) -> Vec<&str> {
    lane["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

fn file<'l>(lane: &'l Value, path: &str) -> &'l Value {
    let files = lane["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no {path} in {lane}"))
}

#[test]
fn a_gate_shows_what_its_lane_committed_changed_and_added() {
    let env = repository();
    env.write("old name", "one\ntwo\nthree\nfour\n");
    git(&env.work(), &["add", "old name"]);
    git(&env.work(), &["commit", "-q", "-m", "second"]);
    let run = gated(
        &env,
        "echo committed > new; git add new; git mv 'old name' 'new name'; git commit -q -m x\n\
         echo second >> tracked; printf 'not in git' > loose; ln -s /etc/passwd link; printf 'a\\0b' > binary\n\
         mkdir sub; echo t > \"$(printf 'sub/odd\\nname')\"; echo secret > x.log",
    );
    let lane = shown(&env, &run);
    assert_eq!(lane["since"], git(&env.work(), &["rev-parse", "HEAD"]));
    assert_eq!(lane["branch"], format!("omg/{run}/lane"));
    assert_eq!(names(&lane), ["new", "new name", "tracked", "binary", "link", "loose", "sub/odd\nname"]);
    let new = file(&lane, "new");
    assert_eq!((&new["added"], &new["deleted"], &new["untracked"]), (&1.into(), &0.into(), &Value::Null));
    assert!(new["patch"].as_str().unwrap().contains("\n+committed\n"), "{new}");
    assert_eq!(file(&lane, "new name")["from"], "old name");
    assert!(file(&lane, "tracked")["patch"].as_str().unwrap().contains("\n first\n+second\n"));
    let loose = file(&lane, "loose");
    assert_eq!((&loose["untracked"], &loose["added"]), (&true.into(), &1.into()));
    assert!(loose["patch"].as_str().unwrap().ends_with("+not in git\n\\ No newline at end of file\n"));
    // A link is shown, not followed; what is no text is named.
    assert!(file(&lane, "link")["patch"].as_str().unwrap().contains("\n+/etc/passwd\n"));
    assert_eq!(file(&lane, "binary")["patch"], "new file\nBinary file binary\n");
    assert!(lane["cut"].is_null() && lane["hidden"].is_null());
}

#[test]
fn a_lane_that_went_is_shown_from_its_branch_and_from_its_beginning_in_any_leg() {
    let env = repository();
    env.run_graph(
        "nodes:\n  - {id: a, type: command, worktree: lane, command: 'echo a>a; git add a; git commit -qm a'}\n  \
         - {id: g, type: gate, depends_on: [a]}\n  \
         - {id: b, type: command, worktree: lane, command: 'echo b>b; git add b; git commit -qm b', depends_on: [g]}\n  \
         - {id: gate, type: gate, depends_on: [b]}\n",
        &[],
    )
    .exits(2);
    let run = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(!lane(&env).exists());
    env.omg(&["resume", &run, "--approve", "g"]).exits(2);
    let server = Server::start(&env, &[&run]);
    let lane = server.json("/api/diff?node=gate")["lanes"][0].clone();
    assert_eq!((names(&lane), &lane["nodes"]), (vec!["a", "b"], &serde_json::json!(["b"])));
    assert!(lane["directory"].is_null());
    // A merge in between does not empty it.
    git(&env.work(), &["merge", "-q", &format!("omg/{run}/lane")]);
    let lane = server.json("/api/diff?node=gate")["lanes"][0].clone();
    assert_eq!(names(&lane), ["a", "b"]);
}

#[test]
fn looking_writes_nothing_and_runs_nothing_that_the_repository_names() {
    let env = repository();
    let trap = env.path("sprung");
    let run = gated(&env, "echo x >> tracked; echo y > z");
    let spring = format!("sh -c 'echo \"$0 $@\" >> {}; cat'", trap.display());
    for key in [
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "core.pager",
        "pager.diff",
        "alias.diff",
    ] {
        let value = if key == "alias.diff" { format!("!{spring}") } else { spring.clone() };
        git(&env.work(), &["config", key, &value]);
    }
    git(&env.work(), &["config", "filter.evil.required", "true"]);
    git(&env.work(), &["config", "color.ui", "always"]);
    git(&env.work(), &["config", "diff.noprefix", "true"]);
    fs::write(env.path(".git/info/attributes"), "* filter=evil diff=evil\n").unwrap();
    for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout"] {
        let path = env.path(&format!(".git/hooks/{hook}"));
        fs::write(&path, format!("#!/bin/sh\n{spring} </dev/null\n")).unwrap();
        let mut mode = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
        fs::set_permissions(&path, mode).unwrap();
    }
    // The same text with another time: git would note that in its index.
    let touched = lane(&env).join(".gitignore");
    let then = SystemTime::now() - Duration::from_secs(1000);
    fs::File::options().append(true).open(&touched).unwrap().set_modified(then).unwrap();
    let index = env.path(".git/worktrees/lane/index");
    let before = (fs::read(&index).unwrap(), fs::metadata(&index).unwrap().modified().unwrap());
    let lane = shown(&env, &run);
    assert_eq!(names(&lane), ["tracked", "z"]);
    let patch = file(&lane, "tracked")["patch"].as_str().unwrap();
    assert!(
        patch.starts_with("diff --git a/tracked b/tracked\n") && patch.ends_with(" first\n+x\n"),
        "{patch}"
    );
    assert_eq!(before, (fs::read(&index).unwrap(), fs::metadata(&index).unwrap().modified().unwrap()));
    assert!(!trap.exists(), "{}", fs::read_to_string(&trap).unwrap());
}

#[test]
fn what_git_was_told_not_to_look_at_is_named_and_what_is_long_is_cut() {
    let env = repository();
    let run = gated(
        &env,
        "git update-index --assume-unchanged tracked; echo hidden >> tracked\n\
         seq 400000 > long; git add long; git commit -qm long; seq 500000 > longer; echo short > short",
    );
    let lane = shown(&env, &run);
    assert_eq!(lane["hidden"], serde_json::json!(["tracked"]));
    assert_eq!((&lane["cut"], &file(&lane, "long")["added"]), (&true.into(), &400_000.into()));
    let sent: usize =
        lane["files"].as_array().unwrap().iter().map(|file| file["patch"].as_str().unwrap().len()).sum();
    assert!(sent <= 2 << 20, "{sent}");
    assert_eq!(file(&lane, "longer")["patch"], "");
}

#[test]
fn what_cannot_be_told_is_said() {
    let env = repository();
    let run = gated(&env, "true");
    // Nothing was changed, so nothing of it is left.
    let lane_now = shown(&env, &run);
    assert!(lane_now["files"].is_null() && lane_now["problem"].is_null(), "{lane_now}");
    let server = Server::start(&env, &[&run]);
    assert_eq!(server.json("/api/diff?node=then")["lanes"], serde_json::json!([]));
    assert_eq!(server.get("/api/diff?node=nobody").status, 404);
    assert_eq!(server.get("/api/diff").status, 404);
    fs::create_dir_all(lane(&env)).unwrap();
    fs::write(lane(&env).join("mine"), "").unwrap();
    let foreign = shown(&env, &run);
    assert!(
        foreign["problem"].as_str().unwrap().contains("is not a worktree of this repository"),
        "{foreign}"
    );
    fs::rename(env.path(".git"), env.path("git-gone")).unwrap();
    let gone = shown(&env, &run);
    assert!(gone["problem"].as_str().unwrap().contains("not a git repository"), "{gone}");
}
