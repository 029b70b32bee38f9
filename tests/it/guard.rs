//! What is left when the engine itself is killed: nothing, and whoever looks at the run is told so (case A8).

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::contract;
use crate::env::{Running, TestEnv};

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Starts `graph` and waits until `ready`.
fn begin(env: &TestEnv, graph: &str, ready: impl FnMut() -> bool) -> Running {
    env.write("g.yaml", graph);
    let running = env.start(&["run", "g.yaml"]);
    env.until("the nodes run", ready);
    running
}

/// The only guard, once it stands apart.
fn guard(env: &TestEnv) -> i32 {
    let apart = || env.guards().first().is_some_and(|pid| session_of(*pid) == *pid);
    env.until("the guard has begun", apart);
    let guards = env.guards();
    assert_eq!(guards.len(), 1, "{guards:?}");
    guards[0]
}

fn session_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    after.split_ascii_whitespace().nth(3).and_then(|word| word.parse().ok()).unwrap_or(-1)
}

/// Waits for the guard's note, and checks that nothing with `mark` in its command line is left.
#[track_caller]
fn check_ended(env: &TestEnv, mark: &str) -> serde_json::Value {
    let note = env.run_dir().join("guard.json");
    env.until("the guard has done its work", || note.exists());
    env.assert_none_left(mark);
    env.until("the guard is gone", || env.guards().is_empty());
    serde_json::from_slice(&fs::read(note).unwrap()).unwrap()
}

#[track_caller]
fn check_killed(graph: &str, mark: &str, ready: impl Fn(&TestEnv) -> bool) {
    let env = TestEnv::new();
    let running = begin(&env, &graph.replace("MARK", mark), || ready(&env));
    running.kill();
    let note = check_ended(&env, mark);
    assert_eq!(note["left"], 0, "{note}");
    assert!(note["ended"].as_u64().unwrap() > 0, "{note}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a8_a_killed_engine_leaves_no_model() {
    let graph = r#"nodes: [{id: x, prompt: "@sh touch begun; sleep MARK"}]"#;
    check_killed(graph, "361.01", |env| env.path("begun").exists());
}

#[test]
fn a8_a_killed_engine_leaves_nothing_in_another_session() {
    let graph = r#"nodes: [{id: x, prompt: "@orphansid MARK\n@sh setsid setsid sleep MARK & touch begun; sleep MARK"}]"#;
    check_killed(graph, "361.02", |env| env.path("begun").exists() && env.pids_of("sleep 361.02").len() >= 3);
}

#[test]
fn a8_a_killed_engine_leaves_nothing_that_ignores_signals() {
    let graph = r#"nodes: [{id: x, prompt: "@ignoreint\n@ignoreterm\n@orphan MARK\n@orphansid MARK\n@touch begun\n@sleep MARK"}]"#;
    check_killed(graph, "361.03", |env| env.path("begun").exists());
}

#[test]
fn a8_a_killed_engine_leaves_no_command() {
    let graph = r#"nodes: [{id: x, type: command, command: "trap '' TERM; (setsid sleep MARK &); touch begun; sleep MARK"}]"#;
    check_killed(graph, "361.04", |env| env.path("begun").exists());
}

#[test]
fn a8_a_killed_engine_leaves_no_command_that_cleared_its_environment() {
    let graph = r#"nodes: [{id: x, type: command, command: "touch begun; exec env -i sleep MARK"}]"#;
    check_killed(graph, "361.05", |env| env.pids_of("sleep 361.05").len() == 1 && env.path("begun").exists());
}

#[test]
fn a8_a_killed_engine_leaves_no_evidence_command() {
    let graph = r#"
nodes:
  - id: x
    prompt: "@say PASS"
    success_check: {verify: {command: "touch begun; sleep MARK"}}
"#;
    check_killed(graph, "361.06", |env| env.path("begun").exists());
}

#[test]
fn a8_a_killed_engine_leaves_none_of_ten() {
    let node = |n: usize| {
        format!("  - {{id: n{n}, prompt: \"@orphansid MARK\\n@ignoreterm\\n@touch up{n}\\n@sleep MARK\"}}\n")
    };
    let graph = format!("concurrency: 10\nnodes:\n{}", (0..12).map(node).collect::<String>());
    check_killed(&graph, "361.07", |env| (0..10).all(|n| env.path(&format!("up{n}")).exists()));
}

#[test]
fn a8_a_process_that_forks_on_and_on_is_ended() {
    let graph = r#"nodes: [{id: x, type: command, command: "trap '' TERM; touch begun; while test -e begun; do sleep MARK & sleep 0.01; kill -9 $!; done"}]"#;
    check_killed(graph, "361.08", |env| env.path("begun").exists());
}

#[test]
fn a8_a_run_within_a_run_dies_with_it() {
    let env = TestEnv::new();
    env.write(
        "inner.yaml",
        r#"nodes: [{id: y, type: command, command: "touch begun; setsid sleep 361.09"}]"#,
    );
    let omg = env!("CARGO_BIN_EXE_omg");
    let outer = format!(
        r#"nodes: [{{id: x, type: command, command: "OMG_HOME=$PWD/inner exec {omg} run inner.yaml"}}]"#
    );
    let running = begin(&env, &outer, || env.path("begun").exists());
    running.kill();
    check_ended(&env, "361.09");
    env.until("the inner engine is gone", || env.pids_of("run inner.yaml").is_empty());
    env.until("the inner guard is gone", || env.pids_of("__guard").is_empty());
}

#[test]
fn a8_every_surface_says_that_the_children_were_ended() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, prompt: "@sh touch begun; sleep 361.10"}]"#;
    begin(&env, graph, || env.path("begun").exists()).kill();
    check_ended(&env, "361.10");
    for words in [&["show", "latest"][..], &["runs", "list"], &["watch", "latest"]] {
        let ran = env.omg(words);
        let told = ran.stdout + &ran.stderr;
        assert!(
            told.contains("ABANDONED") && told.contains("its guard ended every child that it found"),
            "{words:?}: {told}"
        );
        assert!(!told.contains("may still be running"), "{words:?}: {told}");
    }
    let shown: serde_json::Value =
        serde_json::from_str(&env.omg(&["show", "latest", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(
        (&shown["run"]["status"], &shown["run"]["children_ended"]),
        (&"ABANDONED".into(), &true.into())
    );
}

#[test]
fn a8_a_later_leg_warns_of_no_orphans_and_forgets_the_note() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, type: command, command: "touch begun; test -e go || sleep 361.17"}]"#;
    begin(&env, graph, || env.path("begun").exists()).kill();
    check_ended(&env, "361.17");
    // One that is refused is no leg, and takes nobody's word away.
    env.omg(&["resume", "latest", "--approve", "x"]).exits(1);
    assert!(env.omg(&["show", "latest"]).stdout.contains("its guard ended every child that it found"));
    env.write("go", "");
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert!(!ran.stderr.contains("may still run"), "{}", ran.stderr);
    assert!(!env.run_dir().join("guard.json").exists());
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a8_without_a_guard_every_surface_warns_of_orphans() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, prompt: "@sh touch begun; exec sleep 361.11"}]"#;
    let running = begin(&env, graph, || env.path("begun").exists() && env.pids_of("sleep 361.11").len() >= 2);
    send(guard(&env), Signal::KILL);
    running.kill();
    for words in [&["show", "latest"][..], &["runs", "list"], &["watch", "latest"]] {
        let ran = env.omg(words);
        let told = ran.stdout + &ran.stderr;
        assert!(told.contains("a child of it may still be running"), "{words:?}: {told}");
    }
    // Both were killed, so the warning is true: these are this test's to end.
    let left = env.pids_of("361.11");
    assert!(!left.is_empty());
    left.into_iter().for_each(|pid| send(pid, Signal::KILL));
}

#[test]
fn a8_a_killed_guard_costs_a_warning_and_no_run() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: a, prompt: "@sh touch begun; while test ! -e go; do sleep 0.02; done"}
  - {id: b, depends_on: [a], prompt: "@say PASS"}
  - {id: c, depends_on: [b], prompt: "@say PASS"}
"#;
    let running = begin(&env, graph, || env.path("begun").exists());
    send(guard(&env), Signal::KILL);
    env.write("go", "");
    let ran = running.wait().exits(0);
    assert_eq!(ran.stderr.matches("its guard is gone").count(), 1, "{}", ran.stderr);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_guard_that_stands_still_stops_no_run() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: a, prompt: "@sh touch begun; while test ! -e go; do sleep 0.02; done"}
  - {id: b, depends_on: [a], prompt: "@say PASS"}
"#;
    let running = begin(&env, graph, || env.path("begun").exists());
    send(guard(&env), Signal::STOP);
    env.write("go", "");
    running.wait().exits(0);
    assert_eq!(env.guards(), [] as [i32; 0]);
}

#[test]
fn a_guard_is_ended_by_no_terminal_and_holds_nothing_of_the_engine() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, prompt: "@sh touch begun; sleep 361.12"}]"#;
    let running = begin(&env, graph, || env.path("begun").exists());
    let pid = guard(&env);
    let open = || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let held: Vec<_> = open().map(|fd| fs::read_link(fd.path()).unwrap()).collect();
    let lock = env.run_dir().join("resume.lock");
    assert!(!held.contains(&lock), "{held:?}");
    let open_as = |fd: i32| fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
    assert_eq!((open_as(1), open_as(2)), ("/memfd:omg-guard (deleted)".into(), "/dev/null".into()));
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    for signal in [Signal::INT, Signal::HUP, Signal::TERM, Signal::QUIT] {
        send(pid, signal);
    }
    running.kill();
    check_ended(&env, "361.12");
}

#[test]
fn what_may_be_left_running_is_left_by_the_guard_too() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: server, type: command, leave_running: true, command: "sleep 361.13 & echo up"}
  - {id: slow, type: command, leave_running: true, command: "touch slow; exec sleep 361.14"}
  - {id: x, depends_on: [server], prompt: "@sh touch begun; sleep 361.15"}
"#;
    let running = begin(&env, graph, || env.path("begun").exists() && env.path("slow").exists());
    running.kill();
    check_ended(&env, "361.15");
    for mark in ["sleep 361.13", "sleep 361.14"] {
        let left = env.pids_of(mark);
        assert_eq!(left.len(), 1, "{mark}");
        left.into_iter().for_each(|pid| send(pid, Signal::KILL));
    }
}

#[test]
fn a_run_that_ends_well_leaves_no_guard_and_no_note() {
    let env = TestEnv::new();
    env.run_graph(r#"nodes: [{id: x, type: command, command: "printf %s \"$OMG_RUN\""}]"#, &[]).exits(0);
    assert_eq!(env.guards(), [] as [i32; 0]);
    let run = env.run_dir();
    assert!(!run.join("guard.json").exists());
    let id = run.file_name().unwrap().to_str().unwrap();
    assert_eq!(env.artifact("x").unwrap(), id.as_bytes(), "a node knows its run");
}

#[test]
fn d12_a_planted_link_is_replaced_by_the_note() {
    let env = TestEnv::new();
    let victim = env.write("victim", "mine");
    let graph = r#"nodes: [{id: x, type: command, command: "ln -s $PWD/victim $OMG_HOME/runs/$OMG_RUN/guard.json; touch begun; sleep 361.16"}]"#;
    begin(&env, graph, || env.path("begun").exists()).kill();
    let note = env.run_dir().join("guard.json");
    env.until("the guard has done its work", || note.symlink_metadata().is_ok_and(|it| it.is_file()));
    assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    env.assert_none_left("361.16");
}
