//! Signals to the engine: whatever runs is ended and waited for, the feed is closed, the exit code names the signal.

use rustix::process::Signal;
use serde_json::Value;

use crate::contract;
use crate::env::{OMG, Ran, Running, TestEnv};

/// Everything that must hold after a run that a signal ended.
#[track_caller]
fn check_stopped(env: &TestEnv, ran: Ran, code: i32, signal: &str) {
    let ran = ran.exits(code);
    let last = env.events().pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&"run_finished".into(), &"failed".into()), "{last}");
    for failed in env.events_of("node_failed") {
        check_interrupted(&failed, &ran, signal);
    }
    assert!(
        ran.stderr.contains(&format!("{signal}: ending what runs")),
        "it says that it heard: {}",
        ran.stderr
    );
    assert!(ran.stderr.contains(&format!("interrupted by {signal}")), "{}", ran.stderr);
    contract::check_run_dir(&env.run_dir());
}

#[track_caller]
fn check_interrupted(failed: &Value, ran: &Ran, signal: &str) {
    let detail = failed["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("interrupted by {signal}")), "{failed}");
    assert_eq!((&failed["cause"], &failed["judged"]), (&"interrupted".into(), &Value::Null), "{failed}");
    let row = ran.row(failed["node_id"].as_str().unwrap());
    assert!(row.contains("CANCELLED"), "{row}");
}

/// Runs `graph`, sends `signal` once `ready`, and waits for the end.
fn stop(env: &TestEnv, graph: &str, signal: Signal, ready: impl FnMut() -> bool) -> Ran {
    env.write("g.yaml", graph);
    let running = env.start(&["run", "g.yaml"]);
    env.until("the nodes run", ready);
    running.signal(signal);
    running.wait()
}

const TWO: &str = r#"
nodes:
  - {id: a, prompt: "@sh sleep MARK"}
  - {id: b, prompt: "@sh setsid sleep MARK"}
  - {id: after, depends_on: [a], prompt: "@say never"}
"#;

fn check_two(signal: Signal, name: &str, code: i32, mark: &str) {
    let env = TestEnv::new();
    let ran = stop(&env, &TWO.replace("MARK", mark), signal, || {
        env.spawns().len() == 2 && env.pids_of(&format!("sleep {mark}")).len() >= 4
    });
    env.assert_none_left(&format!("sleep {mark}"));
    assert_eq!(env.events_of("node_failed").len(), 2);
    assert_eq!(env.spawns().len(), 2);
    let finished = env.events_of("run_finished");
    assert_eq!(finished[0]["skipped"][0]["node"], "after");
    assert_eq!(finished[0]["skipped"][0]["why"], "interrupted");
    assert!(ran.row("after").contains("SKIPPED"), "{}", ran.stdout);
    check_stopped(&env, ran, code, name);
}

#[test]
fn a5_ctrl_c_ends_the_children_and_closes_the_run() {
    check_two(Signal::INT, "SIGINT", 130, "341.01");
}

#[test]
fn a9_term_ends_the_children_and_closes_the_run() {
    check_two(Signal::TERM, "SIGTERM", 143, "341.02");
}

#[test]
fn a7_a_hangup_is_like_a_term() {
    check_two(Signal::HUP, "SIGHUP", 129, "341.03");
}

#[test]
fn a6_a_verify_command_is_interrupted_too() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    prompt: "@say PASS"
    retry: {max: 3, on: [verify_failed, run_error, timeout]}
    success_check: {verify: {command: "touch begun; sleep 341.04"}}
"#;
    let ran = stop(&env, graph, Signal::INT, || env.path("begun").exists());
    env.assert_none_left("sleep 341.04");
    assert_eq!(env.spawns().len(), 1);
    let record = env.record("x");
    assert_eq!(record["cost_usd"], 0.01, "its reply had been paid for, and its price is known: {record}");
    assert!(record["cost_unknown"].is_null(), "{record}");
    check_stopped(&env, ran, 130, "SIGINT");
}

#[test]
fn a6_a_command_node_is_interrupted_too() {
    for (signal, name, code) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let env = TestEnv::new();
        let graph = r#"nodes: [{id: x, type: command, command: "touch begun; (setsid sleep 341.05 &); sleep 341.05"}]"#;
        let ran = stop(&env, graph, signal, || env.path("begun").exists());
        env.assert_none_left("sleep 341.05");
        assert!(env.artifact("x").is_none(), "a command that was cut short has no artifact");
        check_stopped(&env, ran, code, name);
    }
}

#[test]
fn a6_a_failure_before_the_signal_does_not_change_the_exit_code() {
    let env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - {id: bad, prompt: "@exit 1"}
  - {id: long, prompt: "@sleep 341.06"}
"#;
    let ran = stop(&env, graph, Signal::INT, || {
        !env.runs().is_empty() && env.spawns().len() == 2 && env.events_of("node_failed").len() == 1
    })
    .exits(130);
    assert!(ran.row("bad").contains("FAIL"), "{}", ran.stdout);
    assert!(ran.row("long").contains("CANCELLED"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}

const UNTIL_TOLD: &str = r#"nodes: [{id: x, prompt: "@sh while test ! -e go; do sleep 0.02; done"}]"#;

fn with_ignored(env: &TestEnv, signals: &str) -> Running {
    env.write("g.yaml", UNTIL_TOLD);
    Running::of(&mut env.shell(&format!("trap '' {signals}; exec {OMG} run g.yaml")))
}

#[test]
fn a7_a_hangup_that_nohup_had_ignored_stays_ignored() {
    let env = TestEnv::new();
    let running = with_ignored(&env, "HUP");
    env.until("the node runs", || env.spawns().len() == 1);
    running.signal(Signal::HUP);
    env.write("go", "");
    running.wait().exits(0);
}

#[test]
fn a_parent_that_ignores_the_end_of_children_does_not_confuse_the_engine() {
    let env = TestEnv::new();
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@say hi", success_check: {verify: {command: "exit 3", expect_exit: 3}}}]"#);
    // GNU's env can start a program with a signal ignored, which the shell's trap cannot do for this one.
    let mut probe = std::process::Command::new("/usr/bin/env");
    if !probe.args(["--ignore-signal=CHLD", "true"]).status().is_ok_and(|status| status.success()) {
        return;
    }
    let mut command = env.program("/usr/bin/env");
    command.args(["--ignore-signal=CHLD", OMG, "run", "g.yaml"]);
    Running::of(&mut command).wait().exits(0);
    assert_eq!(env.record("x")["cost_usd"], 0.01);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a12_a_question_at_the_terminal_fails_at_once() {
    let env = TestEnv::new();
    let Some(mut command) = env.on_terminal("run g.yaml") else { return };
    let ask = "if read answer < /dev/tty; then echo told; else echo none; fi; echo 1 2> /dev/null > /dev/tty";
    let graph = format!(
        "nodes:\n  - {{id: c, type: command, timeout: 20s, command: \"{ask}\"}}\n  \
         - {{id: x, timeout: 20s, prompt: \"@sh ({ask}) > of_model\", \
         success_check: {{verify: {{timeout: 20s, command: \"({ask}) > of_verify\"}}}}}}\n"
    );
    env.write("g.yaml", graph);
    // The keyboard is held open and nobody types.
    Running::of(&mut command).wait().exits(0);
    assert_eq!(env.artifact("c").unwrap(), b"none\n");
    assert_eq!((env.read("of_model").as_str(), env.read("of_verify").as_str()), ("none\n", "none\n"));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a7_a_terminal_that_is_gone_ends_the_run_in_order() {
    let env = TestEnv::new();
    let Some(mut command) = env.on_terminal("run g.yaml") else { return };
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@sh setsid sleep 341.16 & sleep 341.16"}]"#);
    let running = Running::of(&mut command);
    env.until("the node runs", || env.pids_of("sleep 341.16").len() >= 2);
    running.signal(Signal::KILL);
    env.until("the run is closed", || {
        env.events().last().is_some_and(|event| event["event"] == "run_finished")
    });
    env.until("the engine is gone", || env.pids_of("run g.yaml").is_empty());
    running.wait().exits(-9);
    env.assert_none_left("sleep 341.16");
    assert!(env.record("x")["detail"].as_str().unwrap().contains("SIGHUP"), "{}", env.record("x"));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a5_an_interrupted_run_that_speaks_json_stays_readable() {
    let env = TestEnv::new();
    env.write("g.yaml", UNTIL_TOLD);
    let running = env.start(&["run", "--json", "g.yaml"]);
    env.until("the node runs", || env.spawns().len() == 1);
    running.signal(Signal::INT);
    let ran = running.wait().exits(130);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, env.events());
    assert!(ran.stderr.contains("CANCELLED"), "{}", ran.stderr);
}

#[test]
fn a5_an_interrupt_that_a_background_shell_had_ignored_is_heard() {
    for (signal, name, code) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let env = TestEnv::new();
        let running = with_ignored(&env, "INT TERM QUIT");
        env.until("the node runs", || env.spawns().len() == 1);
        running.signal(signal);
        check_stopped(&env, running.wait(), code, name);
    }
}

#[test]
fn a9_term_is_heard_on_a_terminal() {
    let env = TestEnv::new();
    let Some(mut command) = env.on_terminal("run g.yaml") else { return };
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@sleep 341.07"}]"#);
    let running = Running::of(&mut command);
    env.until("the node runs", || env.spawns().len() == 1);
    let engine = env.spawns()[0]["ppid"].as_i64().unwrap();
    let engine = rustix::process::Pid::from_raw(i32::try_from(engine).unwrap()).unwrap();
    rustix::process::kill_process(engine, Signal::TERM).unwrap();
    running.wait().exits(143);
    env.assert_none_left("@sleep 341.07");
    assert_eq!(env.record("x")["cause"], "interrupted");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a5_a_second_signal_kills_everything_at_once() {
    for (second, mark) in [(Signal::INT, "341.081"), (Signal::TERM, "341.082")] {
        let env = TestEnv::new();
        let stubborn = r#"
nodes:
  - id: x
    prompt: "@ignoreint\n@ignoreterm\n@orphan MARK\n@orphansid MARK\n@sh trap 'touch heard' INT; touch begun; while :; do sleep 0.02; done"
  - {id: y, prompt: "@ignoreint\n@ignoreterm\n@sleep MARK"}
  - {id: c, type: command, command: "env -i setsid -f sleep MARK; trap '' INT TERM; sleep MARK"}
"#;
        env.write("g.yaml", stubborn.replace("MARK", mark));
        let running = env.start(&["run", "g.yaml"]);
        env.until("the nodes run", || env.path("begun").exists() && env.spawns().len() == 2);
        running.signal(Signal::INT);
        env.until("the first signal is passed on", || env.path("heard").exists());
        running.signal(second);
        let ran = running.wait().exits(130);
        assert!(ran.stderr.contains("second signal"), "{}", ran.stderr);
        env.assert_none_left(mark);
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn a5_ten_children_are_ended_together() {
    let env = TestEnv::new();
    let node = |n: usize| format!("  - {{id: n{n}, prompt: \"@sh sleep 341.09\"}}\n");
    let graph = format!("concurrency: 10\nnodes:\n{}", (0..12).map(node).collect::<String>());
    let ran = stop(&env, &graph, Signal::INT, || env.spawns().len() == 10);
    env.assert_none_left("sleep 341.09");
    assert_eq!(env.events_of("node_failed").len(), 10);
    assert_eq!(env.events_of("run_finished")[0]["skipped_count"], 2);
    assert_eq!(env.spawns().len(), 10, "what waited was never started");
    check_stopped(&env, ran, 130, "SIGINT");
}

#[test]
fn a5_one_ladder_serves_all_children() {
    let env = TestEnv::new();
    let stubborn = "@ignoreint\\n@ignoreterm\\n@sh trap 'echo int >> log' INT; trap 'echo term >> log; exit' TERM; \
                    echo up >> log; while :; do sleep 0.02; done";
    let node = |n: usize| format!("  - {{id: n{n}, prompt: \"{stubborn}\"}}\n");
    let graph = format!("concurrency: 8\nnodes:\n{}", (0..8).map(node).collect::<String>());
    let ran =
        stop(&env, &graph, Signal::INT, || env.path("log").exists() && env.read("log").lines().count() == 8);
    let log = env.read("log");
    let told: Vec<&str> = log.lines().skip(8).collect();
    assert_eq!(told, [["int"; 8], ["term"; 8]].concat(), "every child is asked before any is told");
    check_stopped(&env, ran, 130, "SIGINT");
}

#[test]
fn a5_no_retry_follows_an_interrupt() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    retry: {max: 9, on: [nonzero_exit, run_error, timeout, output_error]}
    prompt: "@sh test -e once && sleep 341.10; touch once\n@exit 1"
"#;
    let ran = stop(&env, graph, Signal::INT, || env.spawns().len() == 2);
    env.assert_none_left("sleep 341.10");
    assert_eq!(env.spawns().len(), 2);
    assert_eq!(env.record("x")["retries"], 1);
    assert!(ran.row("x").contains("≥ 0.0100 (1 unknown)"), "{}", ran.stdout);
    check_stopped(&env, ran, 130, "SIGINT");
}

#[test]
fn a5_an_interrupt_between_attempts_ends_the_retries() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, type: command, command: "echo . >> tries; exit 1", retry: {max: 100, on: [nonzero_exit]}}]"#;
    let ran = stop(&env, graph, Signal::TERM, || env.path("tries").exists() && env.read("tries").len() > 10);
    let ran = ran.exits(143);
    let tries = env.read("tries").lines().count();
    assert!(tries < 101, "every attempt was made");
    assert_eq!(env.events().pop().unwrap()["event"], "run_finished", "{}", ran.stderr);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a5_what_had_settled_stays_settled() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: done, prompt: "@say kept"}
  - {id: long, depends_on: [done], prompt: "@sleep 341.11"}
"#;
    let ran = stop(&env, graph, Signal::INT, || env.spawns().len() == 2);
    assert_eq!(env.artifact("done").unwrap(), b"kept");
    assert_eq!(env.record("done")["verdict"], "PASS");
    check_stopped(&env, ran, 130, "SIGINT");
}

#[test]
fn a5_a_price_that_was_told_on_the_way_out_is_kept() {
    let env = TestEnv::new();
    // Interrupted, the CLI reports what it has and exits with 0; that is no pass.
    let graph = r#"nodes: [{id: x, prompt: "@ignoreint\n@say PASS\n@sh trap 'exit 0' INT; touch begun; while :; do sleep 0.02; done"}]"#;
    let ran = stop(&env, graph, Signal::INT, || env.path("begun").exists());
    let record = env.record("x");
    assert_eq!((&record["cost_usd"], &record["cost_unknown"]), (&0.01.into(), &Value::Null), "{record}");
    assert!(env.artifact("x").is_none());
    check_stopped(&env, ran, 130, "SIGINT");
}

#[test]
fn a5_ctrl_c_on_a_terminal_reaches_the_engine_alone() {
    let env = TestEnv::new();
    let Some(mut command) = env.on_terminal("run g.yaml") else { return };
    env.write("g.yaml", r#"nodes: [{id: x, prompt: "@say PASS\n@sh trap 'touch asked; exit 0' INT; touch begun; while :; do sleep 0.02; : 341.13; done"}]"#);
    let mut running = Running::of(&mut command);
    env.until("the node runs", || env.path("begun").exists());
    running.types(b"\x03");
    running.wait().exits(130);
    env.assert_none_left("341.13");
    assert_eq!(env.record("x")["cause"], "interrupted");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_server_that_was_left_is_told_however_the_run_ends() {
    for (second, mark) in [(false, "341.151"), (true, "341.152")] {
        let env = TestEnv::new();
        let graph = r#"
nodes:
  - {id: server, type: command, leave_running: true, command: "sleep MARK & echo up"}
  - {id: long, depends_on: [server], prompt: "@ignoreint\n@say PASS\n@sh trap 'touch heard; test -e soft && exit' INT; touch begun; while :; do sleep 0.02; done"}
"#;
        env.write("g.yaml", graph.replace("MARK", mark));
        if !second {
            env.write("soft", "");
        }
        let running = env.start(&["run", "g.yaml"]);
        env.until("the node runs", || env.path("begun").exists());
        running.signal(Signal::INT);
        if second {
            env.until("the first signal is passed on", || env.path("heard").exists());
            running.signal(Signal::INT);
        }
        let ran = running.wait().exits(130);
        let left = env.pids_of(&format!("sleep {mark}"));
        assert_eq!(left.len(), 1, "what was to be left running is left: {}", ran.stderr);
        rustix::process::kill_process(rustix::process::Pid::from_raw(left[0]).unwrap(), Signal::KILL)
            .unwrap();
        assert!(ran.stderr.contains(&format!("pid {}", left[0])), "{}", ran.stderr);
    }
}

#[test]
fn an_interrupted_watcher_is_no_failure_and_leaves_the_run_alone() {
    let env = TestEnv::new();
    env.write("g.yaml", UNTIL_TOLD);
    let running = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || env.spawns().len() == 1);
    let mut watch = env.command(&["watch", "latest"]);
    // The watcher's own file tells when it has shown something, and is at work.
    let seen = std::fs::File::create(env.path("seen")).unwrap();
    let mut watcher = watch.stdout(seen.try_clone().unwrap()).stderr(seen).spawn().unwrap();
    env.until("the watcher shows the node", || env.read("seen").contains('x'));
    rustix::process::kill_process(rustix::process::Pid::from_child(&watcher), Signal::INT).unwrap();
    assert_eq!(watcher.wait().unwrap().code(), Some(0), "{}", env.read("seen"));
    env.write("go", "");
    running.wait().exits(0);
}

#[test]
fn a_display_that_is_closed_ends_no_run() {
    let env = TestEnv::new();
    let node = |n: usize| format!("  - {{id: n{n}, type: command, command: \"sleep 0.05; echo {n}\"}}\n");
    env.write("g.yaml", format!("concurrency: 1\nnodes:\n{}", (0..6).map(node).collect::<String>()));
    for words in ["run g.yaml", "run --json g.yaml"] {
        let mut command = env.shell(&format!("{{ {OMG} {words}; echo $? > code; }} 2>&1 | head -c 1"));
        Running::of(&mut command).wait().exits(0);
        env.until("the run ends", || env.path("code").exists() && !env.read("code").is_empty());
        assert_eq!(env.read("code").trim(), "0", "{words}");
        std::fs::remove_file(env.path("code")).unwrap();
    }
    assert_eq!(env.runs().len(), 2);
    for run in env.runs() {
        assert_eq!(std::fs::read(run.join("n5.out")).unwrap(), b"5\n");
        contract::check_run_dir(&run);
    }
}

#[test]
fn a6_a_signal_while_the_last_node_passes_is_never_exit_0() {
    let env = TestEnv::new();
    let ran = env.run_graph("nodes: [{id: x, type: command, command: 'kill -TERM $PPID'}]", &[]).exits(143);
    assert!(ran.stderr.contains("SIGTERM"), "{}", ran.stderr);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a9_every_other_signal_that_ends_programs_ends_the_children_too() {
    for (signal, name, code, mark) in
        [(Signal::QUIT, "SIGQUIT", 131, "341.181"), (Signal::USR1, "SIGUSR1", 138, "341.182")]
    {
        check_two(signal, name, code, mark);
    }
}

#[test]
fn a5_a_second_signal_misses_no_child_that_is_being_started() {
    for round in 0..12 {
        let env = TestEnv::new();
        let node = |n: usize| format!("  - {{id: n{n}, type: command, command: \"exec sleep 341.19\"}}\n");
        env.write("g.yaml", format!("concurrency: 10\nnodes:\n{}", (0..10).map(node).collect::<String>()));
        let running = env.start(&["run", "g.yaml"]);
        env.until("some run", || env.pids_of("sleep 341.19").len() > round % 6);
        running.signal(Signal::INT);
        running.signal(Signal::TERM);
        running.wait();
        env.until("the killed are gone", || env.pids_of("sleep 341.19").is_empty());
    }
}

/// What `child` exits with; one that hangs is killed and fails the test.
fn code_of(env: &TestEnv, child: &mut std::process::Child) -> Option<i32> {
    let mut status = None;
    env.until("it ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.and_then(|status| status.code())
}

#[test]
fn a5_a_screen_that_takes_nothing_holds_up_no_signal() {
    let env = TestEnv::new();
    let node =
        |n: usize| format!("  - {{id: node-{n}-{}, type: command, command: 'true'}}\n", "x".repeat(150));
    env.write("g.yaml", format!("concurrency: 10\nnodes:\n{}", (0..500).map(node).collect::<String>()));
    let mut command = env.command(&["run", "-q", "g.yaml"]);
    // Nobody reads the pipe, and the ledger does not fit in it.
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    // Read as text: the last line may be half written.
    let feed = || std::fs::read_to_string(env.runs()[0].join("events.jsonl")).unwrap_or_default();
    let finished = || env.runs().len() == 1 && feed().contains("\"run_finished\"");
    env.until("the run is over", finished);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(code_of(&env, &mut child), Some(143));
}
