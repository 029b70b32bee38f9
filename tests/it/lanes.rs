//! Lanes: real git, real worktrees. Nothing that was written in a lane is lost, whichever way its run ends.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::contract;
use crate::env::{Ran, TestEnv};

/// A place whose folder is a repository with one commit.
pub(crate) fn repository() -> TestEnv {
    let env = TestEnv::new();
    git(&env.work(), &["init", "-q", "-b", "main"]);
    git(&env.work(), &["config", "user.email", "a@example.org"]);
    git(&env.work(), &["config", "user.name", "a"]);
    env.write("tracked", "first\n");
    env.write(".gitignore", "*.log\n.env\ndeps/\ng.yaml\n");
    git(&env.work(), &["add", "tracked", ".gitignore"]);
    git(&env.work(), &["commit", "-q", "-m", "first"]);
    env
}

fn command(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(words).current_dir(dir).stdin(Stdio::null());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

#[track_caller]
pub(crate) fn git(dir: &Path, words: &[&str]) -> String {
    let output = command(dir, words).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

fn lane(env: &TestEnv, name: &str) -> PathBuf {
    env.run_dir().join("worktrees").join(name)
}

fn run_name(env: &TestEnv) -> String {
    env.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

fn branches(env: &TestEnv) -> Vec<String> {
    let text = git(&env.work(), &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    lines(&text).into_iter().map(str::to_owned).collect()
}

fn kept_refs(env: &TestEnv) -> Vec<String> {
    let text = git(&env.work(), &["for-each-ref", "--format=%(refname)", "refs/omg"]);
    lines(&text).into_iter().map(str::to_owned).collect()
}

/// Every object that a ref leads to.
fn reachable(env: &TestEnv) -> BTreeSet<String> {
    let text = git(&env.work(), &["rev-list", "--objects", "--no-object-names", "--glob=refs/"]);
    lines(&text).into_iter().map(str::to_owned).collect()
}

fn blob(env: &TestEnv, text: &str) -> String {
    let path = env.write("blob.log", text);
    let sha = git(&env.work(), &["hash-object", path.to_str().unwrap()]);
    fs::remove_file(path).unwrap();
    sha
}

/// Runs `script` in a lane called `lane`.
fn run_in_lane(env: &TestEnv, script: &str) -> Ran {
    let graph = format!(
        "nodes:\n  - id: a\n    type: command\n    worktree: lane\n    command: |\n      {}\n",
        script.replace('\n', "\n      ")
    );
    env.run_graph(&graph, &[])
}

#[track_caller]
fn noted<'r>(ran: &'r Ran, words: &[&str]) -> &'r str {
    let mut notes = ran.stderr.lines().filter(|line| line.starts_with("note: worktree"));
    let found = notes.find(|note| words.iter().all(|word| note.contains(word)));
    found.unwrap_or_else(|| panic!("no note says {words:?}:\n{}", ran.stderr))
}

#[test]
fn g1_a_commit_that_no_branch_holds_is_kept_under_a_ref() {
    let env = repository();
    let ran = run_in_lane(&env, "git checkout -q --detach; echo z>z; git add z; git commit -q -m z").exits(0);
    assert!(reachable(&env).contains(&blob(&env, "z\n")));
    assert_eq!(branches(&env), ["main"]);
    assert!(!lane(&env, "lane").exists());
    noted(&ran, &["1 line of commits on no branch", "omg salvage"]);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn g1_what_was_amended_reset_or_deleted_is_kept_too() {
    for script in [
        "echo z>z; git add z; git commit -q -m z; echo y>z; git commit -qa --amend -m y",
        "echo z>z; git add z; git commit -q -m z; git reset -q --hard HEAD~1",
        "git checkout -q -b other; echo z>z; git add z; git commit -q -m z; git checkout -q -; git branch -q -D other",
        "echo z>z; git add z; git reset -q --hard",
        "echo z>z; git add z; git stash -q; git stash drop -q",
    ] {
        let env = repository();
        run_in_lane(&env, script).exits(0);
        assert!(reachable(&env).contains(&blob(&env, "z\n")), "{script}");
    }
}

#[test]
fn g2_an_ignored_file_is_kept_under_a_ref_and_comes_back() {
    let env = repository();
    let ran = run_in_lane(&env, "echo report > out.log; mkdir -p deps/x; echo d > 'deps/x/a b'").exits(0);
    noted(&ran, &["2 ignored files kept as refs/omg/"]);
    assert!(!lane(&env, "lane").exists());
    let listed = env.omg(&["salvage", "latest"]).exits(0).stdout;
    assert!(listed.contains("files") && listed.contains("lane"), "{listed}");
    let restored = env.omg(&["salvage", "latest", "--restore", "back"]).exits(0);
    let place = PathBuf::from(restored.stdout.trim());
    assert_eq!(fs::read_to_string(env.work().join(&place).join("out.log")).unwrap(), "report\n");
    assert_eq!(fs::read_to_string(env.work().join(&place).join("deps/x/a b")).unwrap(), "d\n");
    let again = env.omg(&["salvage", "latest", "--restore", "back"]).exits(1);
    assert!(again.stderr.contains("not empty"), "{}", again.stderr);
}

#[test]
fn g2_what_git_does_not_look_after_comes_back_byte_for_byte() {
    let env = repository();
    env.write(
        ".gitattributes",
        "* text=auto eol=lf\n*.env filter=strip\n.env filter=strip\n*.u16 working-tree-encoding=UTF-16\n",
    );
    git(&env.work(), &["config", "filter.strip.clean", "sed s/secret/x/"]);
    git(&env.work(), &["config", "filter.strip.smudge", "sed s/secret/y/"]);
    git(&env.work(), &["add", ".gitattributes"]);
    git(&env.work(), &["commit", "-q", "-m", "attributes"]);
    let odd = "deps/ a\"b\\\\c\\té\\nx.log";
    let script = format!(
        "mkdir deps; printf 'a\\r\\nsecret\\r\\n' | tee .env deps/odd.u16 x.log > 'hidden.log'; printf 'odd\\r\\n' > \"$(printf '{odd}')\"\n\
         printf '#!/bin/sh\\r\\n' > deps/run; chmod +x deps/run; ln -s ../.env deps/link; ln -s nowhere deps/dangling\n\
         git update-index --assume-unchanged tracked; printf 'mine\\r\\n' > tracked"
    );
    run_in_lane(&env, &script).exits(0);
    assert!(!lane(&env, "lane").exists());
    let restored = env.omg(&["salvage", "latest", "--restore", "back"]).exits(0);
    let place = env.work().join(restored.stdout.trim());
    for (file, wanted) in [
        (".env", "a\r\nsecret\r\n"),
        ("x.log", "a\r\nsecret\r\n"),
        ("deps/odd.u16", "a\r\nsecret\r\n"),
        ("tracked", "mine\r\n"),
        ("deps/run", "#!/bin/sh\r\n"),
        ("deps/link", "a\r\nsecret\r\n"),
        ("deps/ a\"b\\c\té\nx.log", "odd\r\n"),
    ] {
        assert_eq!(fs::read_to_string(place.join(file)).unwrap(), wanted, "{file}");
    }
    assert_eq!(fs::metadata(place.join("deps/run")).unwrap().permissions().mode() & 0o100, 0o100);
    assert_eq!(fs::read_link(place.join("deps/dangling")).unwrap(), Path::new("nowhere"));
}

#[test]
fn g2_ignored_files_above_the_bound_keep_the_directory() {
    let env = repository();
    let ran = run_in_lane(&env, "truncate -s 70M big.log").exits(0);
    noted(&ran, &["kept at", "MiB"]);
    assert!(lane(&env, "lane").join("big.log").exists());
}

#[test]
fn g2_a_change_that_git_was_told_not_to_look_at_is_kept() {
    let env = repository();
    run_in_lane(&env, "git update-index --assume-unchanged tracked; echo hidden > tracked").exits(0);
    assert!(reachable(&env).contains(&blob(&env, "hidden\n")));
}

#[test]
fn a_lane_without_work_leaves_nothing() {
    let env = repository();
    let ran = run_in_lane(&env, "pwd; git status --porcelain; cat tracked").exits(0);
    let printed = String::from_utf8(env.artifact("a").unwrap()).unwrap();
    assert_eq!(lines(&printed), [lane(&env, "lane").to_str().unwrap(), "first"]);
    assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
    assert_eq!((branches(&env), kept_refs(&env)), (vec!["main".to_owned()], vec![]));
    assert!(!env.run_dir().join("worktrees").exists());
    assert_eq!(lines(&git(&env.work(), &["worktree", "list"])).len(), 1);
    let listed = env.omg(&["salvage", "latest"]).exits(0).stdout;
    assert!(listed.contains("nothing is kept"), "{listed}");
}

#[test]
fn a_branch_with_commits_is_kept_by_its_own_name_or_a_new_one() {
    let env = repository();
    let ran = run_in_lane(&env, "echo z>z; git add z; git commit -q -m z").exits(0);
    let branch = format!("omg/{}/lane", run_name(&env));
    noted(&ran, &[&branch, "with 1 commit", "git merge", "git branch -D"]);
    assert_eq!(git(&env.work(), &["show", &format!("{branch}:z")]), "z");

    let env = repository();
    let ran = run_in_lane(&env, "echo z>z; git add z; git commit -q -m z; git branch -m mine").exits(0);
    noted(&ran, &["branch mine", "with 1 commit"]);
    assert_eq!(branches(&env), ["main", "mine"]);
    let made = env.omg(&["salvage", "latest", "--branch", "saved"]).exits(0).stdout;
    assert_eq!(git(&env.work(), &["show", &format!("{}:z", made.trim())]), "z");
}

#[test]
fn a_branch_that_was_there_before_is_never_removed() {
    let env = repository();
    git(&env.work(), &["branch", "develop"]);
    run_in_lane(&env, "git checkout -q develop").exits(0);
    assert_eq!(branches(&env), ["develop", "main"]);
}

#[test]
fn uncommitted_work_and_work_in_progress_keep_the_directory() {
    let conflict = "echo a>tracked; git commit -qam a; git checkout -q -b side HEAD~1; echo b>tracked; git commit -qam b";
    for (script, why) in [
        ("echo u > untracked", "uncommitted"),
        ("echo u > tracked", "uncommitted"),
        ("echo u > staged; git add staged", "uncommitted"),
        ("git config status.showUntrackedFiles no; echo u > untracked", "uncommitted"),
        (&format!("{conflict}; git rebase -q - || true"), "rebase"),
        (&format!("{conflict}; git merge -q - || true"), "merge"),
        (&format!("{conflict}; git cherry-pick -n - ; git cherry-pick - || true"), "lane"),
        ("git bisect start -q", "bisection"),
    ] {
        let env = repository();
        let ran = run_in_lane(&env, script).exits(0);
        noted(&ran, &["kept at", why, &format!("git -C {} worktree remove --force", env.work().display())]);
        assert!(lane(&env, "lane").join("tracked").exists(), "{script}");
    }
}

#[test]
fn a_lane_that_its_node_took_apart_loses_nothing() {
    let env = repository();
    let gone = "echo z>z; git add z; git commit -q -m z; git checkout -q --detach; echo y>y; git add y; git commit -q -m y";
    run_in_lane(&env, &format!("{gone}; rm -rf \"$PWD\"")).exits(0);
    let reached = reachable(&env);
    assert!(reached.contains(&blob(&env, "z\n")) && reached.contains(&blob(&env, "y\n")));
    assert_eq!(lines(&git(&env.work(), &["worktree", "list"])).len(), 1);

    let env = repository();
    run_in_lane(&env, "echo z>z; git add z; git commit -q -m z; git -C \"$(git rev-parse --git-common-dir)/..\" worktree remove --force \"$PWD\"").exits(0);
    assert!(reachable(&env).contains(&blob(&env, "z\n")));

    let env = repository();
    let ran = run_in_lane(&env, "rm .git; echo z>z").exits(0);
    noted(&ran, &["kept at", "no worktree"]);
    assert!(lane(&env, "lane").join("z").exists());
}

#[test]
fn a_repository_inside_the_lane_keeps_the_directory() {
    let env = repository();
    let ran = run_in_lane(&env, "git init -q deps; echo z > deps/z").exits(0);
    noted(&ran, &["kept at", "repository of its own"]);
}

/// Runs each script in a lane of its own.
fn run_in_lanes(env: &TestEnv, lanes: &[(&str, &str)]) -> Ran {
    let node = |(name, script): &(&str, &str)| {
        format!("  - id: {name}\n    type: command\n    worktree: {name}\n    command: |\n      {script}\n")
    };
    env.run_graph(&format!("nodes:\n{}", lanes.iter().map(node).collect::<String>()), &[]).exits(0)
}

#[test]
fn whatever_state_a_lane_is_in_salvage_gives_its_files_back() {
    let env = repository();
    let ran = run_in_lanes(
        &env,
        &[
            ("unborn", "git checkout -q --orphan new; git rm -rfq .; echo z>z; echo s>s; git add s"),
            ("broken", "rm .git; echo z>z; mkdir d; echo i>d/i.log"),
            (
                "own",
                "rm .git; git init -q .; echo z>z; git add z; git -c user.name=a -c user.email=a@b commit -qm z",
            ),
            (
                "inner",
                "git init -q deps; echo z>deps/z; git -C deps add z; git -C deps -c user.name=a -c user.email=a@b commit -qm z; rm deps/z",
            ),
            ("hidden", "git update-index --assume-unchanged tracked; echo z>tracked; echo u>u"),
            ("whole", "echo z>z"),
        ],
    );
    let listed = env.omg(&["salvage", "latest"]).exits(0).stdout;
    assert!(!listed.lines().any(|line| line.split_whitespace().nth(2) == Some("0")), "{listed}");
    env.omg(&["salvage", "latest", "--restore", "back"]).exits(0);
    for (file, wanted) in [
        ("unborn/directory/z", "z\n"),
        ("unborn/directory/s", "s\n"),
        ("broken/directory/z", "z\n"),
        ("broken/directory/d/i.log", "i\n"),
        ("broken/directory/tracked", "first\n"),
        ("own/directory/z", "z\n"),
        ("hidden/directory/tracked", "z\n"),
        ("whole/directory/z", "z\n"),
    ] {
        assert_eq!(env.read(&format!("back/{file}")), wanted, "{file}: {listed}");
    }
    for repository in ["inner/directory/deps", "own/directory"] {
        assert_eq!(git(&env.path(&format!("back/{repository}")), &["show", "HEAD:z"]), "z");
    }
    // What the notes say to type works, and leaves nothing.
    for note in ran.stderr.lines().filter(|line| line.starts_with("note: worktree")) {
        let Some((_, rest)) = note.split_once("; look: ") else { continue };
        let (look, drop) = rest.split_once("; drop it: ").unwrap();
        for line in [look, drop] {
            let line = format!("cd / && set -e; {line}");
            assert!(env.shell(&line).stdout(Stdio::null()).status().unwrap().success(), "{note}");
        }
    }
    assert_eq!(lines(&git(&env.work(), &["worktree", "list"])).len(), 1);
}

#[test]
fn what_cannot_be_given_back_does_not_keep_the_rest() {
    let env = repository();
    run_in_lanes(&env, &[("a", "echo z>z; git add z; git commit -q -m z; echo w>w"), ("b", "echo y>y")]);
    let lost = blob(&env, "z\n");
    fs::remove_file(env.work().join(".git/objects").join(&lost[..2]).join(&lost[2..])).unwrap();
    let ran = env.omg(&["salvage", "latest", "--restore", "back"]).exits(1);
    assert!(
        ran.stderr.contains("worktree \"a\": omg/") && ran.stderr.contains("is not restored"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (env.read("back/a/directory/w"), env.read("back/b/directory/y")),
        ("w\n".into(), "y\n".into())
    );
}

#[test]
fn a_stash_of_a_lane_is_kept_and_a_persons_own_is_left_alone() {
    let env = repository();
    env.write("tracked", "mine\n");
    git(&env.work(), &["stash", "-q"]);
    run_in_lane(&env, "for i in 1 2; do echo $i > tracked; echo $i > new$i; git stash -q -u; done").exits(0);
    let kept = kept_refs(&env);
    assert_eq!(kept.iter().filter(|name| name.contains("/lane/stash-")).count(), 2, "{kept:?}");
    let reached = reachable(&env);
    for text in ["1\n", "2\n"] {
        assert!(reached.contains(&blob(&env, text)));
    }
    assert_eq!(lines(&git(&env.work(), &["stash", "list"])).len(), 3, "the list is the person's");
}

#[test]
fn lanes_run_side_by_side_and_nodes_that_share_one_see_each_other() {
    let env = repository();
    let graph = r#"
nodes:
  - {id: a1, type: command, worktree: a, command: 'echo a > file; git add file; git commit -q -m a'}
  - {id: b1, type: command, worktree: b, command: 'echo b > file; git add file; git commit -q -m b'}
  - {id: c1, type: command, worktree: c, command: 'test ! -e file'}
  - {id: a2, type: command, worktree: a, depends_on: [a1, b1], command: 'cat file',
     success_check: {verify: {command: 'test "$(cat file)" = a'}}}
  - {id: out, type: command, depends_on: [a1, b1], command: 'test ! -e file'}
"#;
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.artifact("a2").unwrap(), b"a\n");
    assert_eq!(branches(&env).len(), 3);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_prompt_node_runs_at_the_top_of_its_lane_wherever_omg_was_started() {
    let env = repository();
    env.write("sub/keep", "x");
    git(&env.work(), &["add", "sub"]);
    git(&env.work(), &["commit", "-q", "-m", "sub"]);
    env.write("sub/g.yaml", "nodes: [{id: a, prompt: '@sh pwd > where.log', worktree: lane}]");
    let mut command = env.command(&["run", "g.yaml"]);
    command.current_dir(env.path("sub"));
    crate::env::Running::of(&mut command).wait().exits(0);
    let restored = env.omg(&["salvage", "latest", "--restore", "back"]).exits(0);
    let file = env.work().join(restored.stdout.trim()).join("where.log");
    assert_eq!(fs::read_to_string(file).unwrap().trim(), lane(&env, "lane").to_str().unwrap());
}

#[test]
fn g6_a_lane_that_cannot_be_is_refused_before_anything_is_spent() {
    let graph =
        "nodes: [{id: first, prompt: x}, {id: second, prompt: x, worktree: lane, depends_on: [first]}]";
    let check = |env: &TestEnv, why: &str| {
        let ran = env.run_graph(graph, &[]).exits(1);
        for words in ["node \"second\"", why, "nothing was run"] {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
        assert!(env.spawns().is_empty() && env.runs().is_empty());
    };
    let env = TestEnv::new();
    check(&env, "no git repository");
    git(&env.work(), &["init", "-q"]);
    check(&env, "no commit yet");
    let env = repository();
    git(&env.work(), &["branch", "omg"]);
    check(&env, "branch called omg");
}

#[test]
fn what_omg_was_started_from_does_not_point_a_lane_at_another_repository() {
    let (mut env, other) = (repository(), repository());
    env.set("GIT_DIR", other.path(".git").to_str().unwrap());
    env.set("GIT_INDEX_FILE", other.path(".git/index").to_str().unwrap());
    run_in_lane(&env, "echo z>z; git add z; git commit -q -m z").exits(0);
    assert_eq!((branches(&env).len(), branches(&other).len()), (2, 1));
}

#[test]
fn a_set_up_runs_once_in_each_fresh_lane_and_what_it_made_is_not_work() {
    let env = repository();
    env.write(".env", "SECRET=1\n");
    let graph = r#"
inputs: [word]
setup: 'cp "$OMG_BASE/.env" . && mkdir deps && echo "$OMG_INPUT_WORD" > deps/d && echo t > tool && echo "$PWD" >> "$OMG_BASE/setups.log"'
nodes:
  - {id: a, type: command, worktree: one, command: 'cat .env deps/d tool'}
  - {id: b, type: command, worktree: one, depends_on: [a], command: 'cat .env'}
  - {id: c, type: command, worktree: two, setup: 'echo own > own.log', command: 'cat own.log; test ! -e .env'}
"#;
    let ran = env.run_graph(graph, &["--input", "word=hello"]).exits(0);
    assert_eq!(env.artifact("a").unwrap(), b"SECRET=1\nhello\nt\n");
    assert_eq!(env.artifact("c").unwrap(), b"own\n");
    assert_eq!(lines(&env.read("setups.log")), [lane(&env, "one").to_str().unwrap()]);
    assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
    assert!(!env.run_dir().join("worktrees").exists());
    assert!(kept_refs(&env).is_empty());
}

#[test]
fn what_a_node_changed_of_a_set_up_is_work() {
    let env = repository();
    let graph = "nodes: [{id: a, type: command, worktree: lane, setup: 'echo 1 > .env; echo 2 > x.log', command: 'echo edited > .env'}]";
    env.run_graph(graph, &[]).exits(0);
    let reached = reachable(&env);
    assert!(reached.contains(&blob(&env, "edited\n")) && !reached.contains(&blob(&env, "2\n")));
}

#[test]
fn a_set_up_that_fails_fails_the_node_before_anything_is_paid_and_takes_the_lane_away() {
    let env = repository();
    let graph =
        r#"nodes: [{id: a, prompt: x, worktree: lane, setup: 'echo so >&2; test -e "$OMG_BASE/go"'}]"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    let record = env.record("a");
    assert_eq!((&record["verdict"], &record["cause"]), (&"FAIL".into(), &"setup".into()), "{record}");
    assert!(
        ran.row("a").contains("setup `echo so") && ran.row("a").contains("exit code 1: so"),
        "{}",
        ran.stdout
    );
    assert!(env.spawns().is_empty());
    assert_eq!((branches(&env), lane(&env, "lane").exists()), (vec!["main".to_owned()], false));
    env.write("go", "");
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!(env.spawns().len(), 1);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_set_up_is_bound_by_its_nodes_timeout_and_by_a_signal() {
    let env = repository();
    let graph = "nodes: [{id: a, prompt: x, worktree: lane, timeout: 200ms, setup: 'sleep 342.01'}]";
    let ran = env.run_graph(graph, &[]).exits(1);
    assert!(ran.row("a").contains("timed out after 200ms"), "{}", ran.stdout);
    let env = repository();
    env.write(
        "g.yaml",
        "nodes: [{id: a, prompt: x, worktree: lane, setup: 'touch \"$OMG_BASE/begun\"; sleep 342.02'}]",
    );
    let running = env.start(&["run", "g.yaml"]);
    env.until("the set-up runs", || env.path("begun").exists());
    running.signal(Signal::INT);
    running.wait().exits(130);
    assert_eq!(env.record("a")["cause"], "interrupted");
    env.assert_none_left("sleep 342.0");
    assert!(!lane(&env, "lane").exists());
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    for foreign in [
        "mkdir -p lane; echo mine > lane/file",
        "git init -q lane; echo mine > lane/file",
        "ln -s \"$OLDPWD\" lane",
    ] {
        let env = repository();
        let place = "cd \"$(echo \"$OMG_HOME\"/runs/*/)\"; mkdir -p worktrees; cd worktrees";
        let graph = format!(
            "nodes: [{{id: squat, type: command, command: '{place}; {foreign}'}}, {{id: a, prompt: x, worktree: lane, depends_on: [squat]}}]"
        );
        let ran = env.run_graph(&graph, &[]).exits(1);
        assert!(ran.row("a").contains("is not a worktree of this repository"), "{}", ran.stdout);
        assert_eq!(env.record("a")["cause"], "setup");
        assert!(env.spawns().is_empty() && lane(&env, "lane").symlink_metadata().is_ok(), "{foreign}");
    }
}

#[test]
fn a_repository_that_is_busy_for_a_moment_is_asked_again() {
    let env = repository();
    let (hook, seen) = (env.work().join(".git/hooks/post-checkout"), env.path("seen"));
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\nmkdir {} || exit 0\nexit 1\n", seen.display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    env.run_graph("nodes: [{id: a, type: command, command: pwd, worktree: lane}]", &[]).exits(0);
    assert!(seen.exists() && !lane(&env, "lane").exists(), "the hook spoke against the first checkout");
}

/// What a git that was killed while it made the lane's branch leaves beside it.
#[test]
fn a_hook_that_speaks_against_the_checkout_is_named() {
    let env = repository();
    let hook = env.work().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    for (says, wanted) in
        [("", "exit code 1, without a word"), ("echo no such tool >&2;", "git worktree: no such tool")]
    {
        fs::write(&hook, format!("#!/bin/sh\n{says} exit 1\n")).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        run_in_lane(&env, "true").exits(1);
        let detail = env.record("a")["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(wanted) && detail.contains("hooks/post-checkout"), "{detail}");
        assert!(!detail.contains("Preparing"), "{detail}");
        fs::remove_dir_all(env.run_dir()).unwrap();
    }
}

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

#[test]
fn a_rehearsal_makes_no_lane() {
    let env = repository();
    env.write("g.yaml", "setup: 'touch made'\nnodes: [{id: a, prompt: x, worktree: lane}]");
    env.omg(&["rehearse", "g.yaml"]).exits(0);
    assert_eq!((branches(&env), kept_refs(&env)), (vec!["main".to_owned()], vec![]));
    assert!(!env.path("made").exists());
}

// Random activity.

/// A small generator, so that a seed is a test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Shell functions: `w KIND` writes fresh contents to a fresh file, `over` to one that is always the same, and `c` commits
/// what was written; every blob's name is logged.
const WRITER: &str = r#"
n=0
log() { n=$((n+1)); echo "$LANE $$ $n" > "$f"; git hash-object --no-filters "$f" >> "$LOG"; }
w() { f=$1-$$-$n$2; log; }
over() { f=same; log; }
add() { git add "$f"; }
c() { git add "$f"; git commit -q -m "$n" "$@"; }
"#;

const DEEDS: [&str; 16] = [
    "w file; c",
    "over; c",
    "over; c --amend",
    "git checkout -q --detach; w detached; c",
    "git checkout -q -b side-$LANE-$$-$n; w side; c",
    "git branch -m renamed-$LANE-$$-$n",
    "w stash; add; git stash -q",
    "w stash; git stash -q -u",
    "w stash; add; git stash -q; git stash drop -q",
    "w staged; add; git reset -q --hard",
    "over; add; over; c",
    "w gone; c; git reset -q --hard HEAD~1",
    "w ignored .log",
    "w untracked",
    "b=$(git rev-parse HEAD); git checkout -q --detach; over; c; t=$(git rev-parse HEAD); \
     git checkout -q $b; over; c; git rebase -q $t",
    "b=$(git rev-parse HEAD); git checkout -q -b tmp-$LANE-$$-$n; t=$(git branch --show-current); w tmp; c; \
     git checkout -q $b; git branch -q -D $t",
];

fn script(dice: &mut Dice, name: &str, log: &Path, ending: &str) -> String {
    let mut script = format!("LANE={name}\nLOG={}\n{WRITER}", log.display());
    for _ in 0..2 + dice.roll(7) {
        // Things that lie about keep the directory, and then nothing can be lost: most lanes have none.
        let deed = match dice.roll(DEEDS.len() as u64) as usize {
            13 | 14 if dice.roll(3) > 0 => 12,
            other => other,
        };
        script += DEEDS[deed];
        script += "\n";
    }
    script + ending
}

/// Every blob in the log is reachable, or lies in a directory that was kept.
fn check_nothing_lost(env: &TestEnv, log: &Path, told: &str) {
    let mut found = reachable(env);
    for entry in fs::read_dir(env.run_dir().join("worktrees")).into_iter().flatten() {
        let dir = entry.unwrap().path();
        let held = git(&dir, &["rev-list", "--objects", "--no-object-names", "--indexed-objects", "HEAD"]);
        found.extend(lines(&held).into_iter().map(str::to_owned));
        for list in [["ls-files", "-z", "--others"], ["ls-files", "-z", "--modified"]] {
            for file in
                git(&dir, &list).split('\0').filter(|file| !file.is_empty() && dir.join(file).is_file())
            {
                found.insert(git(&dir, &["hash-object", file]));
            }
        }
    }
    let text = fs::read_to_string(log).unwrap();
    let written: Vec<&str> = lines(&text);
    assert!(!written.is_empty() || !told.contains("w "), "{told}");
    let lost: Vec<&&str> = written.iter().filter(|sha| !found.contains(**sha)).collect();
    assert!(
        lost.is_empty(),
        "{told}\nlost {lost:?} of {written:?}; the lanes are in {}",
        env.run_dir().display()
    );
}

#[test]
fn whatever_is_done_in_lanes_and_however_the_run_ends_nothing_is_lost() {
    for seed in 0..16 {
        let (env, mut dice) = (repository(), Dice(seed * 7919 + 1));
        let log = env.path("written.log");
        fs::write(&log, "").unwrap();
        let (begun, go) = (env.path("begun.log"), env.path("go.log"));
        let wait =
            format!("echo x >> {}; while test ! -e {}; do sleep 0.02; done", begun.display(), go.display());
        let ending = ["true", "exit 3", wait.as_str(), wait.as_str()][seed as usize % 4];
        let nodes = ["one", "two"].map(|name| {
            let text = script(&mut dice, name, &log, ending).replace('\n', "\n      ");
            format!("  - id: {name}\n    type: command\n    worktree: {name}\n    command: |\n      {text}\n")
        });
        let graph = format!("on_fail: continue\nnodes:\n{}", nodes.concat());
        env.write("g.yaml", &graph);
        let running = env.start(&["run", "g.yaml"]);
        if seed % 4 >= 2 {
            env.until("both are done", || {
                fs::read_to_string(&begun).is_ok_and(|text| text.lines().count() == 2)
            });
            running.signal(if seed % 4 == 2 { Signal::INT } else { Signal::KILL });
        }
        let mut ran = running.wait();
        if ran.code == -9 {
            fs::write(&go, "").unwrap();
            env.until("the nodes have ended", || env.pids_of("while test").is_empty());
            ran = env.omg(&["resume", "latest", "--retry-failed"]);
        }
        check_nothing_lost(&env, &log, &format!("seed {seed}\n{graph}\n{}", ran.stderr));
    }
}
