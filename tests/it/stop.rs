//! `omg stop`: it ends what lives, waits for it, and touches nothing else.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::contract;
use crate::env::{Running, TestEnv};

const LONG: &str = r#"nodes: [{id: x, prompt: "@sh touch NAME; sleep MARK"}]"#;

/// Starts a run of one long node and waits until it is under way.
fn start(env: &TestEnv, name: &str, mark: &str) -> Running {
    let file = format!("{name}.yaml");
    env.write(&file, LONG.replace("NAME", name).replace("MARK", mark));
    let running = env.start(&["run", &file]);
    env.until("the node runs", || env.path(name).exists());
    running
}

fn id(env: &TestEnv) -> String {
    env.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

/// A process that has nothing to do with any run.
struct Bystander(Child);

impl Bystander {
    fn start(mark: &str) -> Self {
        Bystander(Command::new("/bin/sleep").arg(mark).stdin(Stdio::null()).spawn().unwrap())
    }

    #[track_caller]
    fn check_unharmed(&mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "it was ended");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn one_run_is_ended_as_by_a_signal_and_waited_for() {
    let env = TestEnv::new();
    let running = start(&env, "a", "371.01");
    let told = env.omg(&["stop", "latest"]).exits(0);
    assert_eq!(told.stdout, format!("run {} has ended: FAIL\n", id(&env)));
    env.assert_none_left("371.01");
    assert_eq!(env.events().pop().unwrap()["event"], "run_finished", "it had ended when stop returned");
    running.wait().exits(143);
    assert_eq!(env.record("x")["cause"], "interrupted");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn stops_that_come_together_end_the_run_once_and_in_order() {
    let env = TestEnv::new();
    let slow = "trap 'touch heard; sleep 371.08' TERM; touch begun; while :; do sleep 0.02; done";
    env.write("g.yaml", format!("nodes: [{{id: x, type: command, command: \"{slow}\"}}]"));
    for late in [false, true] {
        for name in ["begun", "heard"] {
            fs::remove_file(env.path(name)).ok();
        }
        let running = env.start(&["run", "g.yaml"]);
        env.until("the node runs", || env.path("begun").exists());
        let mut stops = vec![env.start(&["stop", "latest"])];
        if late {
            env.until("the node has been told", || env.path("heard").exists());
        }
        stops.push(env.start(&["stop", "latest"]));
        for stop in stops {
            assert_eq!(stop.wait().exits(0).stdout, format!("run {} has ended: FAIL\n", id(&env)));
        }
        running.wait().exits(143);
        assert_eq!(env.record("x")["cause"], "interrupted");
        assert_eq!(env.events().pop().unwrap()["event"], "run_finished");
        // What was asked of one leg is not asked of the next.
        fs::remove_file(env.path("begun")).unwrap();
        let running = env.start(&["resume", "latest", "--retry-failed"]);
        env.until("the node runs again", || env.path("begun").exists());
        env.omg(&["stop", "latest"]).exits(0);
        running.wait().exits(143);
        fs::remove_dir_all(env.run_dir()).unwrap();
    }
    env.assert_none_left("371.08");
}

#[test]
fn all_live_runs_are_ended_and_no_other() {
    let env = TestEnv::new();
    env.run_graph(r#"nodes: [{id: x, prompt: "@say PASS"}]"#, &[]).exits(0);
    let both = [start(&env, "a", "371.02"), start(&env, "b", "371.02")];
    let told = env.omg(&["stop", "--all", "--json"]).exits(0);
    let json: Value = serde_json::from_str(&told.stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!((&json["schema"], runs.len()), (&1.into(), 2), "{json}");
    let mut pids: Vec<i64> = both.iter().map(|it| i64::from(it.pid())).collect();
    for run in runs {
        assert_eq!((&run["result"], &run["status"]), (&"stopped".into(), &"FAIL".into()), "{json}");
        pids.retain(|pid| run["pid"] != *pid);
    }
    assert!(pids.is_empty(), "each run is told with its process: {json}");
    env.assert_none_left("371.02");
    for running in both {
        running.wait().exits(143);
    }
}

#[test]
fn where_nothing_lives_nothing_is_done() {
    let env = TestEnv::new();
    assert_eq!(env.omg(&["stop", "--all"]).exits(0).stdout, "no run is under way\n");
    env.run_graph(r#"nodes: [{id: x, prompt: "@say PASS"}]"#, &[]).exits(0);
    let id = id(&env);
    assert_eq!(env.omg(&["stop", "--all"]).exits(0).stdout, "no run is under way\n");
    // The pid in a lock that nobody holds may be anybody's.
    let mut bystander = Bystander::start("371.03");
    fs::write(env.run_dir().join("resume.lock"), format!("oh-my-graph-lock 1\n{}\n", bystander.0.id()))
        .unwrap();
    assert_eq!(env.omg(&["stop", "latest"]).exits(0).stdout, format!("run {id} is not running: PASS\n"));
    assert_eq!(env.omg(&["stop", "--all"]).exits(0).stdout, "no run is under way\n");
    bystander.check_unharmed();
}

#[test]
fn a_process_that_does_not_have_the_lock_open_is_left_alone() {
    let env = TestEnv::new();
    env.run_graph(r#"nodes: [{id: x, prompt: "@say PASS"}]"#, &[]).exits(0);
    let mut bystander = Bystander::start("371.04");
    let lock = env.run_dir().join("resume.lock");
    // The 1 of a container is above everything here.
    for pid in [bystander.0.id(), 1] {
        fs::write(&lock, format!("oh-my-graph-lock 1\n{pid}\n")).unwrap();
        // Held by this test, in the name of the other: as where pids are those of another container.
        let held = fs::File::open(&lock).unwrap();
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        for words in [["stop", "latest"], ["stop", "--all"]] {
            let told = env.omg(&words).exits(1);
            assert!(told.stdout.contains(&format!("was left alone: process {pid} ")), "{}", told.stdout);
        }
    }
    bystander.check_unharmed();
}

#[test]
fn a_run_whose_lock_was_taken_away_is_not_run_twice_and_can_be_stopped() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: f, type: command, command: "exit 1"}, {id: x, prompt: "@sh touch begun; [ -e again ] || sleep 371.07"}]"#;
    env.write("g.yaml", graph);
    let running = env.start(&["run", "g.yaml", "--continue-on-fail"]);
    env.until("the node runs", || env.path("begun").exists() && env.events_of("node_failed").len() == 1);
    let (lock, before) = (env.run_dir().join("resume.lock"), env.feed_lines());
    fs::remove_file(&lock).unwrap();
    for _ in 0..2 {
        let told = env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
        assert!(
            told.stderr.contains(&format!("another process is running this run (pid {})", running.pid())),
            "{}",
            told.stderr
        );
        assert!(env.omg(&["runs", "list"]).stdout.contains("RUNNING"));
    }
    assert_eq!((env.feed_lines(), lock.exists()), (before, false));
    assert!(env.omg(&["stop", "latest"]).exits(0).stdout.contains("has ended: FAIL"));
    running.wait().exits(143);
    env.assert_none_left("371.07");
    env.write("again", "");
    env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert_eq!(env.events_of("run_started").len(), 2);
}

#[test]
fn a_run_that_lost_its_process_is_not_running() {
    let env = TestEnv::new();
    start(&env, "a", "371.05").kill();
    let told = env.omg(&["stop", "latest"]).exits(0);
    assert_eq!(told.stdout, format!("run {} is not running: ABANDONED\n", id(&env)));
    env.until("the guard has done its work", || env.run_dir().join("guard.json").exists());
    env.assert_none_left("371.05");
}

/// A node calls `stop` in this way; it must be refused, and the run must pass.
#[track_caller]
fn check_refused(call: &str) {
    let mut env = TestEnv::new();
    env.set("OMG", env!("CARGO_BIN_EXE_omg"));
    let prompt = format!("@sh {call} >out 2>err; echo $? >code\\n@say PASS");
    env.run_graph(&format!("nodes: [{{id: x, prompt: \"{prompt}\"}}]"), &[]).exits(0);
    assert_eq!((env.read("code").trim(), env.read("out").as_str()), ("1", ""), "{call}: {}", env.read("err"));
    let told = env.read("err");
    assert!(
        told.contains(&format!("run {}: this command was started by the run itself", id(&env))),
        "{told}"
    );
}

#[test]
fn a15_a_node_cannot_stop_its_own_run() {
    for call in [
        "$OMG stop --all",
        "$OMG stop latest",
        "$OMG stop --json $OMG_RUN",
        // The variable may be cleared; the processes above it tell as well.
        "env -u OMG_RUN $OMG stop --all",
        "env -u OMG_RUN setsid -w $OMG stop latest",
    ] {
        check_refused(call);
    }
}

#[test]
fn a15_a_command_node_cannot_stop_its_own_run() {
    let mut env = TestEnv::new();
    env.set("OMG", env!("CARGO_BIN_EXE_omg"));
    let other = start(&env, "other", "371.06");
    let other_run = id(&env);
    let graph = r#"nodes: [{id: x, type: command, command: "$OMG stop --all && exit 9; $OMG stop $OTHER"}]"#;
    env.set("OTHER", &other_run);
    let ran = env.run_graph(graph, &[]).exits(0);
    assert!(ran.row("x").contains("PASS"), "another run may be stopped by its name: {}", ran.stdout);
    other.wait().exits(143);
    env.assert_none_left("371.06");
}

#[test]
fn which_run_is_meant_must_be_said() {
    let env = TestEnv::new();
    for (words, wanted) in [
        (&["stop"][..], "is missing"),
        (&["stop", "latest", "--all"], "cannot be used"),
        (&["stop", "latest"], "no runs yet"),
        (&["stop", "../x"], "cannot be a run id"),
    ] {
        let told = env.omg(words).exits(1);
        assert!(told.stderr.contains(wanted), "{words:?}: {}", told.stderr);
    }
}
