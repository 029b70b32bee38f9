//! `omg chat`: lines become talk or runs, and Ctrl-C takes effect wherever it is (FACTS 1.11, case 67).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::contract;
use crate::env::{Ran, Running, TestEnv};

const WORK: &str = r#"say {"mode": "graph", "goal": "make it good"}"#;
const TALK: &str = r#"say {"mode": "converse", "reply": "Hello yourself."}"#;

fn plan(prompt: &str) -> String {
    let nodes = json!([{"id": "work", "prompt": prompt, "allowed_tools": ["Read"]}]);
    format!("say {}", json!({"name": "planned", "version": "1", "nodes": nodes}))
}

/// A place whose router follows the directive `router`, and whose planner `planner`.
fn place(router: &str, planner: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let cues = format!("You are the front desk => @{router}\nYou plan work => @{planner}\n");
    let cues = env.write("cues", cues);
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

/// A chat whose lines come from a pipe.
fn piped(env: &TestEnv, flags: &[&str], lines: &str) -> Ran {
    let mut command = env.command(&[&["chat"], flags].concat());
    let mut chat = Running::of(command.stdin(Stdio::piped()));
    chat.types(lines.as_bytes());
    chat.closes();
    chat.wait()
}

/// The directories of plans that belong to no run.
fn plans(env: &TestEnv) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(env.home().join("plans"));
    entries.map_or_else(|_| Vec::new(), |it| it.map(|entry| entry.unwrap().path()).collect())
}

#[test]
fn a_line_is_answered_and_the_chat_goes_on() {
    let env = place(TALK, "say no");
    let ran = piped(&env, &[], "hello\n\n  \nwho are you?\nexit\nnever read\n").exits(0);
    assert_eq!(
        ran.stdout,
        "> Hello yourself.\n> > > Hello yourself.\n> Reading 2 lines cost $0.0200; each plan and run has told its own.\n"
    );
    let spawns = env.spawns();
    assert_eq!(spawns.len(), 2);
    let prompt = spawns[1]["prompt"].as_str().unwrap();
    assert!(prompt.ends_with("\n\nwho are you?\n"), "{prompt}");
    let denied = "Bash,Edit,Write,MultiEdit,NotebookEdit,WebFetch,WebSearch,Task,Agent";
    assert_eq!(after(&spawns[0], "--disallowedTools"), denied);
    assert_eq!(after(&spawns[0], "--permission-mode"), "plan");
    assert!(!env.home().join("runs").exists() && !env.home().join("cache").exists());
}

fn after<'s>(spawn: &'s Value, flag: &str) -> &'s str {
    let argv = spawn["argv"].as_array().unwrap();
    let at = argv.iter().position(|word| word == flag).unwrap();
    argv[at + 1].as_str().unwrap()
}

#[test]
fn auto_67_a_yes_runs_the_plan_under_its_ceiling() {
    let env = place(WORK, &plan("@say made"));
    env.write("go.mod", "");
    let ran = piped(&env, &[], "make it good\ny\nquit\n").exits(0);
    for words in [
        "Planning a graph for goal \"make it good\"...\n",
        "Plan \"planned\": 1 node",
        "Run this plan? [y/N] Running graph \"planned\"",
        "TOTAL COST: $0.0200",
        "Reading 1 line cost $0.0100",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("--accept-no-build-evidence"), "{}", ran.stdout);
    let state = env.state();
    assert_eq!(state["planning_cost_usd"], 0.01);
    let evidence = json!({"answer": "disclosed", "declared_by": "chat-confirm", "signals": ["go.mod"]});
    assert_eq!(state["build_evidence"], evidence);
    assert_eq!(state["tool_policies"]["work"]["setting_sources"], "");
    let starts = env.events_of("run_started");
    assert_eq!((starts.len(), &starts[0]["cost_usd"], &starts[0]["phase"]), (1, &json!(0.01), &Value::Null));
    assert!(env.run_dir().join("graph.json").exists() && plans(&env).is_empty());
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn auto_67_anything_else_keeps_the_plan_and_runs_nothing() {
    let env = place(WORK, &plan("@say made"));
    let ran = piped(&env, &[], "make it good\nyes please\nexit\n").exits(0);
    let kept = plans(&env);
    assert_eq!(kept.len(), 1);
    let path = kept[0].join("graph.json");
    assert!(
        ran.stdout.contains(&format!("Not run. The plan is kept: {}\n", path.display())),
        "{}",
        ran.stdout
    );
    assert!(env.runs().is_empty());
    env.omg(&["run", path.to_str().unwrap()]).exits(0);
}

#[test]
fn auto_67_lines_that_end_at_the_question_keep_nothing() {
    let env = place(WORK, &plan("@say made"));
    let ran = piped(&env, &[], "make it good\n").exits(0);
    assert!(ran.stdout.contains("Run this plan? [y/N] \n"), "{}", ran.stdout);
    assert!(env.runs().is_empty() && plans(&env).is_empty());
}

#[test]
fn what_fails_is_told_and_the_chat_goes_on() {
    let env = place(WORK, &plan("@exit 4"));
    let ran = piped(&env, &[], "make it good\ny\nmake it good\nn\n").exits(0);
    assert!(
        ran.stdout.contains("\nchat: run ") && ran.stdout.contains("  hint: see why: omg show "),
        "{}",
        ran.stdout
    );
    assert_eq!((env.runs().len(), plans(&env).len()), (1, 1));
    let env = place("exit 3", "say no");
    let ran = piped(&env, &[], "hello\nhello\n").exits(0);
    assert_eq!(ran.stdout.matches("chat: the router ended with exit code 3").count(), 2, "{}", ran.stdout);
    let env = place(WORK, r#"say {"nodes": [{"id": "a", "prompt": "x", "allowed_tools": ["Bash(*)"]}]}"#);
    let ran = piped(&env, &[], "make it good\n").exits(0);
    assert!(ran.stdout.contains("chat: the plan was refused"), "{}", ran.stdout);
    assert!(plans(&env)[0].join("rejected.json").exists() && env.runs().is_empty());
}

#[test]
fn what_chat_does_not_take_is_refused() {
    let env = place(TALK, "say no");
    for words in [&["chat", "hello"][..], &["chat", "--max-cycles", "2"], &["chat", "--verify-cmd", "true"]] {
        env.omg(words).exits(1);
    }
    assert!(env.spawns().is_empty());
    let long = "x".repeat((1 << 20) + 1);
    let ran = piped(&env, &[], &long).exits(1);
    assert!(ran.stderr.contains("a line is longer than 1048576 bytes"), "{}", ran.stderr);
}

#[test]
fn what_nobody_can_read_is_not_paid_for() {
    let env = place(WORK, &plan("@say made"));
    for line in ["hello\nhello\n", "make it good\ny\n"] {
        let mut command = env.program("/bin/sh");
        let lines = env.write("lines", line);
        let script = format!("exec {} chat <{} >/dev/full", crate::env::OMG, lines.display());
        let ran = Running::of(command.args(["-c", &script])).wait().exits(1);
        assert!(ran.stderr.contains("cannot write the output"), "{}", ran.stderr);
    }
    assert!(env.spawns().is_empty());
}

#[test]
fn a_nul_in_a_line_keeps_nobody_from_being_asked() {
    let env = place(TALK, "say no");
    piped(&env, &[], "a\0b\n").exits(0);
    assert!(env.spawns()[0]["prompt"].as_str().unwrap().ends_with("\n\na\u{FFFD}b\n"));
}

/// A chat on a terminal, whose screen can be looked at while it goes on.
struct OnTerminal<'e> {
    env: &'e TestEnv,
    chat: Running,
}

impl<'e> OnTerminal<'e> {
    /// Starts one and waits for its first prompt; `None` where there is no terminal to be had.
    fn start(env: &'e TestEnv) -> Option<Self> {
        let script = "/usr/bin/script";
        let (screen, line) = (env.path("screen"), format!("{} chat", crate::env::OMG));
        fs::remove_file(&screen).ok();
        let mut command = env.program(script);
        command.args(["-qefc", &line]).arg(&screen).stdin(Stdio::piped());
        command.env("SHELL", "/bin/sh").env("TERM", "xterm");
        let chat = std::path::Path::new(script).exists().then(|| Running::of(&mut command))?;
        let it = OnTerminal { env, chat };
        it.shows("it asks for a line", |screen| screen.contains("> "));
        Some(it)
    }

    /// Waits until the screen is so. What is typed before the editor has the terminal may be lost, as everywhere.
    fn shows(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let screen = self.env.path("screen");
        self.env.until(what, || {
            let shown = fs::read(&screen).unwrap_or_default();
            holds(&String::from_utf8_lossy(&shown))
        });
    }

    /// Waits for the prompt after the last time that `text` was shown, which has to be the `nth`.
    fn prompts_after(&self, text: &str, nth: usize) {
        self.shows("it asks again", |screen| {
            let mut parts = screen.split(text);
            let last = parts.by_ref().nth(nth).unwrap_or_default();
            parts.next().is_none() && last.contains("\n") && last.contains("> ")
        });
    }

    fn types(&mut self, keys: &[u8]) {
        self.chat.types(keys);
    }

    /// Types a goal and waits for the question that follows the plan.
    fn asks_for_work(&mut self) {
        self.types(b"make it good\r");
        self.shows("it asks whether to run", |screen| screen.contains("Run this plan? [y/N] "));
    }
}

#[test]
fn on_a_terminal_lines_are_edited_and_remembered() {
    let env = place(TALK, "say no");
    let Some(mut it) = OnTerminal::start(&env) else { return };
    // The word is mended: back over two letters, and the right one put in.
    it.types(b"helxo\x1b[D\x1b[D\x1b[3~l\r");
    it.prompts_after("Hello yourself.", 1);
    it.types(b" secret\r");
    it.prompts_after("Hello yourself.", 2);
    it.types(b"exit\r");
    it.chat.wait().exits(0);
    assert!(env.spawns()[0]["prompt"].as_str().unwrap().ends_with("\n\nhello\n"), "{:?}", env.spawns()[0]);
    let history = env.home().join("cache/chat-history");
    assert_eq!(fs::read_to_string(&history).unwrap(), "hello\nexit\n");
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    // Two lines up is the one of the last chat.
    let mut it = OnTerminal::start(&env).unwrap();
    it.types(b"\x1b[A\x1b[A\r");
    it.prompts_after("Hello yourself.", 1);
    it.types(b"\x04");
    it.chat.wait().exits(0);
    assert!(env.spawns()[2]["prompt"].as_str().unwrap().ends_with("\n\nhello\n"));
}

#[test]
fn what_was_typed_before_the_plan_was_on_the_screen_is_no_answer() {
    let planner = format!(
        "sh touch begun; until [ -e go ]; do sleep 0.01; done\nYou plan work => @{}",
        plan("@say made")
    );
    let env = place(WORK, &planner);
    let Some(mut it) = OnTerminal::start(&env) else { return };
    it.types(b"make it good\r");
    let begun = env.path("begun");
    env.until("it is being planned", || begun.exists());
    it.types(b"y\r");
    it.shows("the terminal has the key", |screen| screen.ends_with("\ny\r\n"));
    env.write("go", "");
    it.shows("it asks whether to run", |screen| screen.contains("Run this plan? [y/N] "));
    it.types(b"n\r");
    it.prompts_after("Not run. The plan is kept: ", 1);
    it.types(b"\x04");
    it.chat.wait().exits(0);
    assert!(env.runs().is_empty(), "nobody had seen the plan");
}

#[test]
fn lines_that_are_typed_ahead_are_all_asked_and_a_paste_is_one() {
    let env = place(TALK, "say no");
    let Some(mut it) = OnTerminal::start(&env) else { return };
    it.types(b"one\rtwo\r");
    it.prompts_after("Hello yourself.", 2);
    it.types(b"\x1b[200~three\rfour\r\x1b[201~\r");
    it.prompts_after("Hello yourself.", 3);
    it.types(b"\x04");
    let ran = it.chat.wait().exits(0);
    let asked: Vec<String> = env
        .spawns()
        .iter()
        .map(|spawn| spawn["prompt"].as_str().unwrap().rsplit("\n\n").next().unwrap().trim().to_owned())
        .collect();
    assert_eq!(asked, ["one", "two", "three\nfour"]);
    // A terminal is asked to mark what is pasted, and told in the end that this is over.
    let last = ran.stdout.rfind("\x1b[?2004").unwrap();
    assert!(
        ran.stdout.contains("\x1b[?2004h") && ran.stdout[last..].starts_with("\x1b[?2004l"),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_answer_to_the_question_is_not_remembered() {
    let env = place(WORK, &plan("@say made"));
    let Some(mut it) = OnTerminal::start(&env) else { return };
    it.asks_for_work();
    it.types(b"y\r");
    it.prompts_after("TOTAL COST: $0.0200", 1);
    it.types(b"\x04");
    it.chat.wait().exits(0);
    assert_eq!(fs::read_to_string(env.home().join("cache/chat-history")).unwrap(), "make it good\n");
}

#[test]
fn ctrl_c_at_a_prompt_ends_the_chat_at_once() {
    let env = place(WORK, &plan("@say made"));
    let Some(mut it) = OnTerminal::start(&env) else { return };
    it.types(b"half a li\x03");
    it.chat.wait().exits(130);
    assert!(env.spawns().is_empty());
    let mut it = OnTerminal::start(&env).unwrap();
    it.asks_for_work();
    it.types(b"\x03");
    it.chat.wait().exits(130);
    assert!(env.runs().is_empty() && plans(&env).is_empty());
}

/// Types Ctrl-C once `begun` is there, and waits for the end.
#[track_caller]
fn interrupted(mut it: OnTerminal<'_>) -> Ran {
    let begun = it.env.path("begun");
    it.env.until("it is under way", || begun.exists());
    it.types(b"\x03");
    let ran = it.chat.wait().exits(130);
    it.env.assert_none_left("sleep 600");
    ran
}

#[test]
fn ctrl_c_ends_whatever_a_chat_waits_for() {
    let sleep = "touch begun; sleep 600";
    let env = place(&format!("sh {sleep}"), "say no");
    let Some(mut it) = OnTerminal::start(&env) else { return };
    it.types(b"hello\r");
    let ran = interrupted(it);
    assert!(ran.stdout.contains("SIGINT: ending the router"), "{}", ran.stdout);
    let env = place(WORK, &format!("sh {sleep}"));
    let mut it = OnTerminal::start(&env).unwrap();
    it.types(b"make it good\r");
    let ran = interrupted(it);
    assert!(ran.stdout.contains("interrupted by SIGINT while it was being planned"), "{}", ran.stdout);
    assert!(env.runs().is_empty());
    let env = place(WORK, &plan(&format!("@sh {sleep}")));
    let mut it = OnTerminal::start(&env).unwrap();
    it.asks_for_work();
    it.types(b"y\r");
    let ran = interrupted(it);
    assert!(ran.stdout.contains("interrupted by SIGINT"), "{}", ran.stdout);
    let last = env.events().pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("run_finished"), &json!("failed")));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a8_the_guard_ends_what_a_chat_waits_for_when_it_is_killed() {
    let sleep = "sh touch begun; sleep 600";
    for (router, planner) in [(sleep, "say no"), (WORK, sleep)] {
        let env = place(router, planner);
        let mut command = env.command(&["chat"]);
        let mut chat = Running::of(command.stdin(Stdio::piped()));
        chat.types(b"make it good\n");
        env.until("it is under way", || env.path("begun").exists());
        chat.kill();
        env.until("the guard has ended it", || env.pids_of("sleep 600").is_empty());
        env.until("the guard is gone", || env.guards().is_empty());
    }
}

#[test]
fn a_signal_takes_effect_while_a_line_is_awaited() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let env = place(TALK, "say no");
        let mut command = env.command(&["chat"]);
        let mut chat = Running::of(command.stdin(Stdio::piped()));
        chat.types(b"hello\n");
        env.until("it has answered", || env.spawns().len() == 1);
        chat.signal(signal);
        chat.wait().exits(code);
    }
}
