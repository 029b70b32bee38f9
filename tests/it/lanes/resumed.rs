//! Lanes over more than one leg: after a crash, a pause, a failure, and what a person did meanwhile.

use super::*;

fn branch_lock(env: &TestEnv) -> PathBuf {
    let run = env.run_dir();
    let name = format!(".git/refs/heads/omg/{}/lane.lock", run.file_name().unwrap().to_str().unwrap());
    env.work().join(name)
}

#[test]
fn a_lane_that_died_while_it_was_made_is_made_again() {
    // What git leaves when it is killed during a checkout, before its notes are whole, and before it wrote any.
    for moment in ["checkout", "notes", "directory"] {
        let env = repository();
        killed(&env);
        let lane = lane(&env, "lane");
        let admin = PathBuf::from(git(&lane, &["rev-parse", "--absolute-git-dir"]));
        fs::write(admin.join("locked"), "initializing").unwrap();
        fs::remove_file(admin.join("omg-lane")).unwrap();
        fs::remove_file(lane.join("tracked")).unwrap();
        if moment == "notes" {
            fs::remove_file(admin.join("HEAD")).unwrap();
        }
        if moment == "directory" {
            fs::remove_file(admin.join("gitdir")).unwrap();
            fs::remove_dir_all(&lane).unwrap();
            fs::create_dir(&lane).unwrap();
        }
        fs::write(branch_lock(&env), "").unwrap();
        let ran = env.omg(&["resume", "latest", "--retry-failed"]);
        assert!(
            ran.row("a").contains("untracked"),
            "{moment}: a fresh checkout of the branch: {}",
            ran.stdout
        );
    }
}

#[test]
fn a_lane_that_was_half_taken_away_when_its_engine_died_is_whole_again() {
    let env = repository();
    killed(&env);
    let (place, tracked) = (lane(&env, "lane"), "tracked");
    let admin = PathBuf::from(git(&place, &["rev-parse", "--absolute-git-dir"]));
    fs::write(admin.join("omg-going"), "").unwrap();
    for gone in [".git", tracked, "done"] {
        fs::remove_file(place.join(gone)).unwrap();
    }
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.artifact("a").unwrap(), b"committed\nuntracked\n");
    assert_eq!(git(&place, &["status", "--porcelain"]), "?? untracked");
}

#[test]
fn the_lane_of_a_leg_that_died_is_taken_away_by_the_next_one_even_when_no_node_needs_it() {
    let env = repository();
    env.write(
        "g.yaml",
        "nodes:\n  - {id: a, type: command, worktree: lane, command: 'git checkout -q --detach; echo z>z; git add z; git commit -q -m z'}\n  \
         - id: b\n    type: command\n    depends_on: [a]\n    command: 'touch pid.log; while test ! -e go.log; do sleep 0.02; done'\n",
    );
    let running = env.start(&["run", "g.yaml"]);
    env.until("the second node is at work", || env.path("pid.log").exists());
    running.signal(Signal::KILL);
    running.wait().exits(-9);
    env.write("go.log", "");
    env.until("the node has ended", || env.pids_of("while test").is_empty());
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert!(!lane(&env, "lane").exists());
    assert!(reachable(&env).contains(&blob(&env, "z\n")));
}

#[test]
fn what_lanes_hold_is_found_when_the_engine_was_killed_between_its_last_word_and_its_tidying() {
    const DEED: &str = "echo ign > i.log; git checkout -q --detach; echo z>z; git add z; git commit -q -m z; \
                        git checkout -q -; echo st > tracked; git stash -q; false";
    for way in ["salvage", "resume"] {
        let env = repository();
        let paused = format!(
            "nodes:\n  - id: a\n    type: command\n    worktree: lane\n    command: |\n      {DEED} || touch pid.log; \
             touch {pid}; while test ! -e {go}; do sleep 0.02; done\n",
            pid = env.path("pid.log").display(),
            go = env.path("go.log").display()
        );
        env.write("g.yaml", &paused);
        let running = env.start(&["run", "g.yaml"]);
        env.until("the node has done all", || env.path("pid.log").exists());
        running.signal(Signal::KILL);
        running.wait().exits(-9);
        env.write("go.log", "");
        env.until("the node has ended", || env.pids_of("while test").is_empty());
        // The last words of a leg that passed, as far as it came.
        let feed = env.run_dir().join("events.jsonl");
        let line = |rest: &str| {
            format!(
                "{{\"schema\":3,\"ts\":\"2026-01-02T03:04:05Z\",\"run_id\":\"{}\",{rest}}}\n",
                run_name(&env)
            )
        };
        let ends = [
            line(r#""event":"node_passed","node_id":"a","verdict":"PASS""#),
            line(r#""event":"run_finished","outcome":"passed""#),
        ];
        fs::OpenOptions::new().append(true).open(feed).unwrap().write_all(ends.concat().as_bytes()).unwrap();
        if way == "resume" {
            let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
            assert!(ran.stdout.contains("everything has run"), "{}", ran.stdout);
            noted(&ran, &["1 line of commits on no branch", "1 stash"]);
            assert!(!lane(&env, "lane").exists());
        }
        let kept = env.omg(&["salvage", "latest"]).exits(0).stdout;
        for kind in ["commits", "stash"] {
            assert!(kept.contains(kind), "{way}: {kept}");
        }
        let reached = reachable(&env);
        assert!(
            reached.contains(&blob(&env, "z\n")) && reached.contains(&blob(&env, "st\n")),
            "{way}: {kept}"
        );
        let ran = env.omg(&["salvage", "latest", "--restore", "back"]).exits(0);
        let read = |name: &str| ran.stdout.lines().any(|place| env.path(place).join(name).exists());
        assert!(read("i.log") && read("z"), "{way}: {}", ran.stdout);
    }
}

/// A run whose engine is killed while its lane's node is at work; the node has ended by the time this returns.
fn killed(env: &TestEnv) {
    let (pid, go) = (env.path("pid.log"), env.path("go.log"));
    let graph = format!(
        "nodes:\n  - id: a\n    type: command\n    worktree: lane\n    command: |\n      \
         if test -e done; then cat done untracked; exit; fi\n      \
         echo committed > done; git add done; git commit -q -m done; echo untracked > untracked; echo i > i.log\n      \
         echo $$ > {}; while test ! -e {}; do sleep 0.02; done\n",
        pid.display(),
        go.display()
    );
    env.write("g.yaml", &graph);
    let running = env.start(&["run", "g.yaml"]);
    env.until("the node is at work", || pid.exists());
    running.signal(Signal::KILL);
    running.wait().exits(-9);
    fs::write(&go, "").unwrap();
    env.until("the node has ended", || env.pids_of("while test").is_empty());
}

#[test]
fn g3_the_lane_of_an_engine_that_died_is_adopted_with_its_files() {
    let env = repository();
    killed(&env);
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.artifact("a").unwrap(), b"committed\nuntracked\n");
    noted(&ran, &["kept at", "uncommitted"]);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn g3_a_directory_that_was_deleted_by_hand_is_made_again_from_its_branch() {
    for prune in [false, true] {
        let env = repository();
        killed(&env);
        fs::remove_dir_all(lane(&env, "lane")).unwrap();
        if prune {
            git(&env.work(), &["worktree", "prune"]);
        }
        let ran = env.omg(&["resume", "latest", "--retry-failed"]);
        let detail = ran.row("a");
        assert!(detail.contains("untracked"), "only what was committed is there: {detail}");
        noted(&ran, &["branch omg/", "with"]);
        let branch = format!("omg/{}/lane", run_name(&env));
        assert_eq!(git(&env.work(), &["show", &format!("{branch}:done")]), "committed");
        assert!(!lane(&env, "lane").exists());
    }
}

#[test]
fn g3_a_lane_goes_on_after_a_gate_where_it_stopped() {
    let env = repository();
    let graph = r#"
nodes:
  - {id: a, type: command, worktree: lane, command: 'echo z>z; git add z; git commit -q -m z'}
  - {id: ok, type: gate, depends_on: [a]}
  - {id: b, type: command, worktree: lane, depends_on: [ok], command: 'cat z; echo y>y; git add y; git commit -q -m y'}
"#;
    env.run_graph(graph, &[]).exits(2);
    assert!(!lane(&env, "lane").exists(), "a clean lane is taken away at a pause");
    env.omg(&["resume", "latest", "--approve", "ok"]).exits(0);
    assert_eq!(env.artifact("b").unwrap(), b"z\n");
    let branch = format!("omg/{}/lane", run_name(&env));
    assert_eq!(git(&env.work(), &["log", "--format=%s", &branch]), "y\nz\nfirst");
}

/// What a node may leave in its lane that its branch does not hold, and what the next one sees of it.
const LEFT: [(&str, &str); 7] = [
    (
        "git checkout -q --detach; echo z>z; git add z; git commit -q -m z",
        "cat z; git rev-parse --abbrev-ref HEAD",
    ),
    (
        "git checkout -q -b feature/x; echo z>z; git add z; git commit -q -m z",
        "cat z; git branch --show-current",
    ),
    ("echo z>z; git add z; git commit -q -m z; git branch -m mine", "cat z; git branch --show-current"),
    (
        "git checkout -q --orphan alone; git rm -rfq .; echo z>z; git add z; git commit -q -m z",
        "ls; git branch --show-current",
    ),
    (
        "git checkout -q --orphan unborn; git rm -rfq --cached .",
        "ls; git branch --show-current; git status --porcelain",
    ),
    ("echo secret > .env; mkdir -p deps/x; echo d > deps/x/d", "cat .env deps/x/d"),
    ("mkdir empty", "ls -d empty"),
];

#[test]
fn a_node_after_a_pause_finds_its_lane_as_the_one_before_left_it() {
    for (script, look) in LEFT {
        let env = repository();
        let graph = format!(
            "nodes:\n  - id: a\n    type: command\n    worktree: lane\n    command: |\n      set -e\n      {script}\n      {look}\n  \
             - {{id: ok, type: gate, depends_on: [a]}}\n  \
             - id: b\n    type: command\n    worktree: lane\n    depends_on: [ok]\n    command: |\n      {look}\n"
        );
        let ran = env.run_graph(&graph, &[]).exits(2);
        assert!(
            noted(&ran, &["kept at"]).contains("still to run") || script.contains("unborn"),
            "{}",
            ran.stderr
        );
        env.omg(&["resume", "latest", "--approve", "ok"]).exits(0);
        assert_eq!(env.artifact("b").unwrap(), env.artifact("a").unwrap(), "{script}");
        let stays = script.contains("unborn") || script.contains("empty");
        assert!(!lane(&env, "lane").exists() || stays, "{script}: nothing is to come any more");
    }
}

#[test]
fn a_lane_is_found_as_it_was_after_a_failure_and_goes_when_its_nodes_never_run_again() {
    let env = repository();
    let go = env.path("go.log");
    let graph = format!(
        "on_fail: continue\nnodes:\n  - {{id: a, type: command, worktree: lane, command: 'git checkout -q --detach; echo z>z; git add z; git commit -q -m z'}}\n  \
         - {{id: f, type: command, depends_on: [a], command: 'test -e {}'}}\n  \
         - {{id: b, type: command, worktree: lane, depends_on: [f], command: cat z}}\n  \
         - {{id: ok, type: gate, depends_on: [b]}}\n  \
         - {{id: c, type: command, worktree: lane, depends_on: [ok], command: cat z}}\n",
        go.display()
    );
    env.run_graph(&graph, &[]).exits(1);
    fs::write(&go, "").unwrap();
    env.omg(&["resume", "latest", "--retry-failed"]).exits(2);
    assert_eq!(env.artifact("b").unwrap(), b"z\n");
    assert!(lane(&env, "lane").join("z").exists());
    env.omg(&["resume", "latest", "--reject", "ok"]).exits(1);
    assert!(!lane(&env, "lane").exists(), "below a rejected gate nothing ever runs");
    assert!(reachable(&env).contains(&blob(&env, "z\n")));
}
