//! The view that a run on a terminal has of its own.

use rustix::process::Signal;

use super::Server;
use crate::env::{Running, TestEnv};

#[test]
fn a_browser_that_was_opened_is_not_taken_for_what_a_node_left_running() {
    let mut env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes:\n  - {id: x, type: command, command: 'while ! test -e opened; do sleep 0.02; done'}\n  - {id: y, type: command, command: 'true', depends_on: [x]}\n",
    );
    env.set("BROWSER", "true");
    let opened = env.path("opened");
    let browser = format!("#!/bin/sh\nsleep 388.01 &\necho \"$1\" > {}\n", opened.display());
    env.write_program("xdg-open", &browser);
    let Some(mut run) = env.on_terminal("run g.yaml") else { return };
    Running::of(&mut run).wait().exits(0);
    let browsers = env.pids_of("388.01");
    assert_eq!(browsers.len(), 1, "it still runs");
    let pid = rustix::process::Pid::from_raw(browsers[0]).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_page_that_follows_a_run_on_a_terminal_gets_what_it_ended_with() {
    let mut env = TestEnv::new();
    let opened = env.path("opened");
    env.set("BROWSER", "true");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
    env.write(
        "g.yaml",
        r#"nodes: [{id: x, type: command, command: "while ! test -e go; do sleep 0.02; done; echo made"}]"#,
    );
    let Some(mut run) = env.on_terminal("run g.yaml") else { return };
    let run = Running::of(&mut run);
    env.until("the browser was opened", || opened.exists() && env.read("opened").ends_with('\n'));
    let port = env.read("opened").trim().trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
    let view = Server { running: None, port };
    let mut events = view.events("/api/events", None);
    events.until("caught_up");
    env.write("go", "");
    events.until_state("passed");
    assert_eq!(view.get("/api/result?node=x").body, "made\n");
    drop(events);
    run.wait().exits(0);
}

#[test]
fn a_run_on_a_terminal_has_a_view_and_one_in_a_pipe_has_none() {
    let mut env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: x, type: command, command: 'true'}]");
    env.set("BROWSER", "true");
    let opened = env.path("opened");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
    let piped = env.omg(&["run", "g.yaml"]).exits(0);
    assert!(!piped.stdout.contains("http://") && !opened.exists(), "{}", piped.stdout);
    let Some(mut without) = env.on_terminal("run g.yaml --no-web") else { return };
    let without = Running::of(&mut without).wait().exits(0);
    assert!(!without.stdout.contains("http://") && !opened.exists(), "{}", without.stdout);
    let with = Running::of(&mut env.on_terminal("run g.yaml").unwrap()).wait().exits(0);
    assert!(with.stdout.contains("Live view: http://127.0.0.1:"), "{}", with.stdout);
    env.until("the browser was opened", || opened.exists());
    assert!(env.read("opened").starts_with("http://127.0.0.1:"), "{}", env.read("opened"));
}
