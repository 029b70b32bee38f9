//! `omg run --detach`: the id of a run that has begun, or the failure that the foreground would have shown (case H9).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::contract;
use crate::env::{Ran, Running, TestEnv};

const UNTIL_TOLD: &str =
    r#"nodes: [{id: x, prompt: "@touch begun\n@sh while test -e begun -a ! -e go; do sleep 0.02; done"}]"#;

fn detach(env: &TestEnv, graph: &str) -> String {
    let ran = env.run_graph(graph, &["--detach"]).exits(0);
    let id = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(ran.stdout, format!("{id}\n"), "standard output is the id alone: {}", ran.stderr);
    id
}

/// The engine of the only run.
fn engine(env: &TestEnv) -> i32 {
    let lock = fs::read_to_string(env.run_dir().join("resume.lock")).unwrap();
    lock.lines().nth(1).unwrap().parse().unwrap()
}

fn log(env: &TestEnv) -> String {
    fs::read_to_string(env.run_dir().join("detached.log")).unwrap()
}

#[test]
fn h9_a_run_in_the_background_has_begun_when_its_id_is_printed() {
    let env = TestEnv::new();
    let id = detach(&env, UNTIL_TOLD);
    let engine = engine(&env);
    let of_engine = |name: &str| fs::read_link(format!("/proc/{engine}/fd/{name}")).unwrap();
    assert_eq!(of_engine("0"), Path::new("/dev/null"));
    let log_path = env.run_dir().join("detached.log");
    assert_eq!((of_engine("1"), of_engine("2")), (log_path.clone(), log_path.clone()));
    let stat = fs::read_to_string(format!("/proc/{engine}/stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, engine.to_string(), "no terminal reaches it");
    assert!(env.omg(&["show", &id]).exits(0).stdout.contains("RUNNING"));
    env.write("go", "");
    let watched = env.omg(&["watch", &id, "--exit-status"]).exits(0);
    assert!(watched.stdout.contains("run finished: passed"), "{}", watched.stdout);
    env.until("the engine is gone", || !Path::new(&format!("/proc/{engine}/fd/2")).exists());
    assert!(log(&env).contains("TOTAL COST"), "{}", log(&env));
    assert!(!log(&env).contains('\u{1b}'), "{}", log(&env));
    assert_eq!(fs::metadata(log_path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(env.guards(), [] as [i32; 0]);
    contract::check_run_dir(&env.run_dir());
}

/// Nobody would know of a run whose id could not be printed, so it does not go on.
#[test]
fn a_run_whose_id_nobody_hears_is_closed() {
    let env = TestEnv::new();
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@touch begun"}]"#);
    let mut unheard = env.command(&["run", "g.yaml", "--detached"]);
    let status = unheard.stdout(fs::File::create("/dev/full").unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let shown = env.omg(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("FAIL") && shown.contains("the run ended before any node settled"), "{shown}");
    assert!(!env.path("begun").exists());
    assert_eq!(env.guards(), [] as [i32; 0]);
}

#[test]
fn an_id_that_cannot_be_printed_is_told_on_standard_error() {
    let env = TestEnv::new();
    env.write("g.yaml", UNTIL_TOLD);
    let mut command = env.command(&["run", "g.yaml", "--detach"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let id = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told.contains(&format!("run {id} is under way")) && told.contains(&format!("omg stop {id}")),
        "{told}"
    );
    env.write("go", "");
    env.omg(&["watch", &id, "--exit-status"]).exits(0);
}

/// The same command fails alike with and without the flag.
#[track_caller]
fn check_alike(env: &TestEnv, words: &[&str], wanted: &str) {
    let before = env.runs();
    let foreground = env.omg(words);
    let background = env.omg(&[words, &["--detach"]].concat());
    let told = |ran: &Ran| (ran.code, ran.stdout.clone(), ran.stderr.clone());
    assert_eq!(told(&background), told(&foreground), "{words:?}");
    assert_eq!(background.code, 1, "{words:?}");
    assert!((background.stdout + &background.stderr).contains(wanted), "{words:?}: {}", background.stderr);
    assert_eq!(env.runs(), before);
}

#[test]
fn h9_what_cannot_begin_fails_as_in_the_foreground() {
    let mut env = TestEnv::new();
    env.write("bad.yaml", "nodes: [{id: x, promt: hello}]");
    env.write("ask.yaml", r#"nodes: [{id: x, prompt: "@say {{ inputs.who }}"}]"#);
    env.write("cwd.yaml", r#"nodes: [{id: x, cwd: /nowhere/at/all, prompt: "@say PASS"}]"#);
    env.write("good.yaml", r#"nodes: [{id: x, prompt: "@say PASS"}]"#);
    check_alike(&env, &["run", "bad.yaml"], "promt");
    check_alike(&env, &["run", "none.yaml"], "none.yaml");
    check_alike(&env, &["run", "ask.yaml"], "who");
    check_alike(&env, &["run", "ask.yaml", "--input", "whom=me"], "whom");
    check_alike(&env, &["run", "cwd.yaml"], "/nowhere/at/all");
    check_alike(&env, &["run", "good.yaml", "--concurrency", "-1"], "--concurrency");
    let file = env.write("file", "");
    env.set("OMG_HOME", &file.join("home").display().to_string());
    check_alike(&env, &["run", "good.yaml"], "the run cannot begin");
}

#[test]
fn h9_a_missing_cli_is_told_at_once() {
    let mut env = TestEnv::new();
    env.set("PATH", "/nowhere");
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@say PASS"}]"#);
    check_alike(&env, &["run", "g.yaml"], "claude was not found");
}

#[test]
fn a_graph_from_standard_input_is_read_before_the_run_goes_away() {
    let env = TestEnv::new();
    let graph = env.write("g.yaml", r#"nodes: [{id: x, type: command, command: "cat; echo read"}]"#);
    let mut command = env.command(&["run", "--detach", "/dev/stdin"]);
    command.stdin(fs::File::open(graph).unwrap());
    Running::of(&mut command).wait().exits(0);
    env.omg(&["watch", "latest", "--exit-status"]).exits(0);
    assert_eq!(env.artifact("x").unwrap(), b"read\n");
}

#[test]
fn a_run_in_the_background_that_fails_says_so_in_its_log() {
    let env = TestEnv::new();
    let id = detach(&env, r#"nodes: [{id: x, prompt: "@exit 3"}]"#);
    env.omg(&["watch", &id, "--exit-status"]).exits(1);
    env.until("the last word is written", || log(&env).contains("hint: "));
    assert!(log(&env).contains(&format!("omg: run {id}: ")), "{}", log(&env));
}

#[test]
fn a_run_in_the_background_can_be_stopped() {
    let env = TestEnv::new();
    let id = detach(&env, &UNTIL_TOLD.replace("0.02", "381.01"));
    env.until("the node runs", || env.path("begun").exists());
    assert_eq!(env.omg(&["stop", &id]).exits(0).stdout, format!("run {id} has ended: FAIL\n"));
    env.assert_none_left("381.01");
    env.until("the last word is written", || log(&env).contains("interrupted by SIGTERM"));
}

#[test]
fn a8_a_run_in_the_background_has_a_guard_too() {
    let env = TestEnv::new();
    detach(&env, &UNTIL_TOLD.replace("0.02", "381.02"));
    env.until("the node runs", || env.path("begun").exists());
    let engine = rustix::process::Pid::from_raw(engine(&env)).unwrap();
    rustix::process::kill_process(engine, rustix::process::Signal::KILL).unwrap();
    env.until("the guard has done its work", || env.run_dir().join("guard.json").exists());
    env.assert_none_left("381.02");
}

#[test]
fn h9_a_later_leg_goes_to_the_background_too() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, type: command, command: "test -e go"}]"#;
    env.run_graph(graph, &[]).exits(1);
    let id = env.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    env.write("go", "");
    let ran = env.omg(&["resume", "latest", "--retry-failed", "--detach"]).exits(0);
    assert_eq!(ran.stdout, format!("{id}\n"), "{}", ran.stderr);
    env.omg(&["watch", &id, "--exit-status"]).exits(0);
    env.until("the ledger is written", || log(&env).contains("TOTAL COST"));
    check_alike(&env, &["resume", &id, "--approve", "x"], "does not wait at \"x\"");
}

#[test]
fn flags_that_ask_for_output_do_not_go_with_it() {
    let env = TestEnv::new();
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@say PASS"}]"#);
    for flag in ["--json", "--dry-run"] {
        let told = env.omg(&["run", "g.yaml", "--detach", flag]).exits(1);
        assert!(told.stderr.contains("cannot be used with"), "{}", told.stderr);
    }
    assert!(env.runs().is_empty());
}
