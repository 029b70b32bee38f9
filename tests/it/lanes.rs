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

mod random;
mod resumed;

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

/// What a git that is ended while it makes a lane leaves when it does not come to the end of taking it away: files that it
/// has struck off its list already.
#[test]
fn d5_a_lane_that_was_half_made_and_half_taken_away_is_made_again() {
    let env = repository();
    let place =
        "cd \"$(echo \"$OMG_HOME\"/runs/*/)\"; mkdir -p worktrees/lane; cd worktrees; touch .making-lane";
    let half = "echo gitdir: \"$OLDPWD\"/.git/worktrees/lane > lane/.git; echo half > lane/half";
    let graph = format!(
        "nodes: [{{id: killed, type: command, command: '{place}; {half}'}}, \
         {{id: a, type: command, command: 'ls', worktree: lane, depends_on: [killed]}}]"
    );
    env.run_graph(&graph, &[]).exits(0);
    let listed = String::from_utf8(env.artifact("a").unwrap()).unwrap();
    assert!(!listed.contains("half"), "{listed}");
    assert!(!env.run_dir().join("worktrees").exists(), "nothing is left of it");
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

#[test]
fn a_rehearsal_makes_no_lane() {
    let env = repository();
    env.write("g.yaml", "setup: 'touch made'\nnodes: [{id: a, prompt: x, worktree: lane}]");
    env.omg(&["rehearse", "g.yaml"]).exits(0);
    assert_eq!((branches(&env), kept_refs(&env)), (vec!["main".to_owned()], vec![]));
    assert!(!env.path("made").exists());
}
