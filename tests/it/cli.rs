//! The command line itself: help, misuse, run ids, streams that close early, and what the last lines say.

use std::fs::File;
use std::process::Stdio;

use serde_json::Value;

use crate::contract;
use crate::env::{Ran, Running, TestEnv};

const TWO: &str =
    "name: two\nnodes: [{id: a, prompt: '@say one'}, {id: b, prompt: '@say two', depends_on: [a]}]";
const FAILING: &str = "nodes: [{id: a, prompt: \"@say no\\n@exit 3\"}, {id: b, prompt: x, depends_on: [a]}]";

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

/// A refusal: exit 1, nothing on standard output, one line and at most one hint.
#[track_caller]
fn misused(env: &TestEnv, words: &[&str], parts: &[&str]) {
    let ran = env.omg(words).exits(1);
    assert_eq!(ran.stdout, "", "{words:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("omg: "), "{words:?}: {}", ran.stderr);
    assert!(
        lines.len() == 1 || lines.len() == 2 && lines[1].starts_with("  hint: "),
        "{words:?}: {}",
        ran.stderr
    );
    says(&ran.stderr, parts);
    assert!(!env.home().exists(), "{words:?} made a run directory");
}

#[test]
fn i1_help_is_an_answer_wherever_it_is_asked_for() {
    let env = TestEnv::new();
    env.write("g.yaml", TWO);
    for words in [
        &["--help"][..],
        &["-h"],
        &["help"],
        &["help", "run"],
        &["run", "--help"],
        &["run", "-h"],
        &["run", "g.yaml", "--help"],
        &["run", "--no-web", "g.yaml", "-h"],
        &["--runtime", "codex", "run", "--help"],
        &["lint", "--help"],
        &["runs", "--help"],
        &["runs", "list", "--help"],
        &["help", "runs", "list"],
        &["show", "--help"],
        &["show", "latest", "--help"],
        &["watch", "--help"],
        &["watch", "latest", "--follow", "--help"],
        &["version", "--help"],
        &["completions", "--help"],
        &["init", "--help"],
        &["new", "--help"],
    ] {
        let ran = env.omg(words).exits(0);
        says(&ran.stdout, &["Usage: omg"]);
        assert_eq!(ran.stderr, "", "{words:?}");
    }
    assert!(!env.home().exists());
    assert!(env.spawns().is_empty());
}

#[test]
fn i1_the_version_is_an_answer() {
    let env = TestEnv::new();
    let wanted = format!("omg {}\n", env!("CARGO_PKG_VERSION"));
    for words in [&["--version"][..], &["-V"], &["version"]] {
        let ran = env.omg(words).exits(0);
        assert_eq!((ran.stdout, ran.stderr), (wanted.clone(), String::new()), "{words:?}");
    }
}

#[test]
fn i1_flags_stand_before_and_after_what_they_belong_to() {
    for words in [
        &["run", "--no-web", "g.yaml"][..],
        &["run", "g.yaml", "--no-web"],
        &["run", "--concurrency", "1", "--quiet", "g.yaml", "--continue-on-fail"],
        &["run", "--concurrency=2", "--concurrency", "1", "g.yaml"],
        &["run", "--", "g.yaml"],
        &["--color", "never", "run", "g.yaml"],
        &["--runtime", "claude", "run", "g.yaml"],
        &["--runtime=codex", "run", "g.yaml"],
        &["run", "g.yaml", "--runtime", "codex"],
        &["--runtime", "claude", "run", "g.yaml", "--runtime", "codex"],
    ] {
        let env = TestEnv::new();
        env.write("g.yaml", TWO);
        env.omg(words).exits(0);
        let codex = words.last() == Some(&"codex") || words[0].ends_with("=codex");
        assert_eq!(env.state()["runtime"], if codex { "codex" } else { "claude" }, "{words:?}");
    }
}

#[test]
fn i1_a_file_whose_name_begins_with_a_dash_is_run_behind_two() {
    let env = TestEnv::new();
    env.write("-weird.yaml", TWO);
    env.omg(&["run", "--", "-weird.yaml"]).exits(0);
    env.omg(&["lint", "--", "-weird.yaml"]).exits(0);
}

#[test]
fn without_a_command_the_usage_stands_on_standard_error() {
    let env = TestEnv::new();
    for words in [&[][..], &["runs"]] {
        let ran = env.omg(words).exits(1);
        assert_eq!(ran.stdout, "");
        says(&ran.stderr, &["Usage: omg", "Commands:"]);
    }
}

#[test]
fn misuse_is_one_line_with_a_hint_and_exit_1() {
    let env = TestEnv::new();
    env.write("g.yaml", TWO);
    for (words, parts) in [
        (&["rehears", "g.yaml"][..], &["\"rehears\"", "did you mean rehearse?"][..]),
        (&["frobnicate"], &["\"frobnicate\"", "omg --help"]),
        (&["runs", "lst"], &["runs: ", "\"lst\"", "did you mean list?"]),
        (&["run"], &["run: <GRAPH> is missing", "omg run"]),
        (&["run", "g.yaml", "--concurency", "3"], &["--concurency", "did you mean --concurrency?"]),
        (&["run", "g.yaml", "--frobnicate"], &["no flag --frobnicate", "omg run --help"]),
        (&["run", "g.yaml", "-z"], &["-z"]),
        (
            &["run", "g.yaml", "surplus", "--dry-run"],
            &["\"surplus\"", "too many", "omg run [OPTIONS] <GRAPH>"],
        ),
        (&["lint"], &["<GRAPH> is missing", "omg lint"]),
        (&["lint", "g.yaml", "--list"], &["--list"]),
        (&["runs", "list", "x"], &["\"x\"", "too many"]),
        (&["version", "x"], &["\"x\"", "too many"]),
        (&["show", "a", "b", "c"], &["\"c\"", "too many"]),
        (&["watch"], &["<RUN> is missing"]),
        (
            &["run", "g.yaml", "--concurrency", "many"],
            &["--concurrency", "\"many\"", "a whole number from 0 to 10"],
        ),
        (&["run", "g.yaml", "--concurrency", "99999999999999999999"], &["a whole number from 0 to 10"]),
        (&["run", "g.yaml", "--input"], &["--input needs a value", "write --input NAME=VALUE"]),
        (&["lint", ""], &["<GRAPH> is empty"]),
        (&["run", "g.yaml", "--concurrency", "-3"], &["--concurrency -3", "from 1 to 10"]),
        (&["run", "g.yaml", "--concurrency"], &["--concurrency needs a value"]),
        (&["run", "g.yaml", "--color", "pink"], &["--color", "\"pink\"", "auto, always, never"]),
        (&["run", "g.yaml", "--durability", "soft"], &["--durability", "paced, strict"]),
        (&["run", "g.yaml", "--quiet=false"], &["--quiet takes no value"]),
        (&["run", "g.yaml", "-dry-run"], &["-d"]),
        (&["run", "g.yaml", "--dry-run", "--json"], &["--dry-run", "--json"]),
        (&["--runtime"], &["--runtime needs a value"]),
        (&["--runtime", "gpt", "run", "g.yaml"], &["--runtime", "\"gpt\"", "claude, codex"]),
        (&["--runtime", "Claude", "run", "g.yaml"], &["\"Claude\""]),
        (&["--runtime", "claude", "runs", "list"], &["--runtime", "run, auto, resume, lint and doctor"]),
        (&["show", "--runtime", "claude", "latest"], &["--runtime", "run, auto, resume, lint and doctor"]),
        (
            &["--runtime", "claude", "rehearse", "g.yaml"],
            &["--runtime", "run, auto, resume, lint and doctor"],
        ),
        (&["rehearse", "g.yaml", "--dry-run"], &["rehearse: there is no flag --dry-run"]),
        (&["rehearse", "g.yaml", "--script", "none.yaml"], &["none.yaml: cannot be read"]),
        (&["--runtime", "claude", "version"], &["--runtime", "run, auto, resume, lint and doctor"]),
        (&["completions", "tcsh"], &["\"tcsh\"", "bash"]),
        (&["run", "none.yaml"], &["none.yaml: cannot be read"]),
        (&["show", "latest"], &["no runs yet", "omg run GRAPH"]),
        (&["watch", "20260102"], &["no runs yet"]),
    ] {
        misused(&env, words, parts);
    }
    assert!(env.spawns().is_empty());
}

#[test]
fn a_concurrency_above_the_ceiling_is_capped_with_a_note() {
    let env = TestEnv::new();
    let ran = env.run_graph(TWO, &["--concurrency", "99"]).exits(0);
    says(&ran.stderr, &["note: --concurrency 99 is capped at 10"]);
    env.run_graph(TWO, &["--concurrency", "0"]).exits(0);
}

#[test]
fn completions_are_printed_for_the_usual_shells() {
    let env = TestEnv::new();
    for (shell, word) in [("bash", "complete -F"), ("zsh", "#compdef omg"), ("fish", "complete -c omg")] {
        let ran = env.omg(&["completions", shell]).exits(0);
        says(&ran.stdout, &[word, "continue-on-fail"]);
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn a_run_is_named_by_its_id_its_beginning_or_latest() {
    let env = TestEnv::new();
    env.run_graph(TWO, &[]).exits(0);
    let first = name_of(&env.run_dir());
    env.run_graph(FAILING, &[]).exits(1);
    let second = name_of(env.runs().last().unwrap());
    let unique = &second[..common(&first, &second) + 1];
    for word in ["latest", &second, unique] {
        let ran = env.omg(&["show", word]).exits(0);
        says(&ran.stdout, &[&format!("Run {second} — FAIL")]);
        env.omg(&["watch", word]).exits(0);
        says(&env.omg(&["show", word, "a"]).exits(0).stdout, &[&format!("Node a of run {second}")]);
    }
    let ran = env.omg(&["show", &second[..4]]).exits(1);
    says(&ran.stderr, &["is the beginning of 2 runs", &first, &second, "hint: type more of the id"]);
    let ran = env.omg(&["show", "99999999"]).exits(1);
    says(&ran.stderr, &["no run \"99999999\"", "omg runs list"]);
}

fn name_of(dir: &std::path::Path) -> String {
    dir.file_name().unwrap().to_str().unwrap().to_owned()
}

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

#[test]
fn no_name_of_a_run_or_a_node_leads_out_of_the_runs() {
    let env = TestEnv::new();
    env.run_graph(TWO, &[]).exits(0);
    std::fs::create_dir_all(env.home().join("x")).unwrap();
    std::fs::copy(env.run_dir().join("state.json"), env.home().join("x/state.json")).unwrap();
    std::fs::write(env.home().join("secret.out"), "secret").unwrap();
    for run in ["../x", "..", ".", "", "/", "/etc", "runs/../../x", "a b", "%2e%2e", "-x/..", "~", "a\nb"] {
        for command in ["show", "watch"] {
            let ran = env.omg(&[command, "--", run]).exits(1);
            says(&ran.stderr, &["omg: ", "hint: "]);
            assert_eq!(ran.stdout, "");
        }
    }
    for node in ["../../secret", "..", "state.json", "a/../b", "", "/", "a\u{1b}[31m", "a~b", "-", "\n"] {
        let ran = env.omg(&["show", "latest", "--", node]).exits(1);
        says(&ran.stderr, &["has no node"]);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn show_prints_what_each_attempt_of_a_node_was_asked_and_said() {
    let env = TestEnv::new();
    let graph = "on_fail: continue\nnodes:\n  \
        - {id: a, prompt: '@reply-n first|second|third', retry: {max: 2, on: [verify_failed]}, \
           success_check: {verify: {command: 'echo seen; grep -q third {{ artifacts.a }}'}}}\n  \
        - {id: sh, type: command, command: 'echo out; echo err >&2'}\n  \
        - {id: bad, type: command, command: 'echo half; exit 9'}\n  \
        - {id: left, prompt: x, depends_on: [bad]}\n";
    let graph = graph.replace("grep -q third {{ artifacts.a }}", "test -e again3 || { touch again$(ls again* 2>/dev/null | wc -l | sed s/0/2/ | sed s/1/3/); exit 1; }");
    env.run_graph(&graph, &[]).exits(1);
    let shown = |node: &str| env.omg(&["show", "latest", node]).exits(0).stdout;
    says(
        &shown("a"),
        &[
            "attempt 1 of leg 1",
            "attempt 3 of leg 1",
            "--- prompt\n@reply-n",
            "--- reply\nsecond",
            "third",
            "--- check output\nseen",
        ],
    );
    says(&shown("sh"), &["PASS (verified)", "echo out; echo err >&2", "\nout\n", "--- standard error\nerr"]);
    says(&shown("bad"), &["FAIL", "half", "exit code 9"]);
    says(&shown("left"), &["SKIPPED", "bad failed"]);
    let document: Value =
        serde_json::from_str(&env.omg(&["show", "latest", "a", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(document["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(document["artifact"], "third");
}

/// Runs `words` with standard output on a pipe that nobody reads, or standard error, or both.
fn closed(env: &TestEnv, words: &[&str], out: bool, err: bool) -> i32 {
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let mut command = env.command(words);
    command.stdout(if out { gone() } else { Stdio::null() }).stderr(if err { gone() } else { Stdio::null() });
    command.status().unwrap().code().unwrap()
}

#[test]
fn a_run_goes_on_when_nobody_reads_it_any_more() {
    for (out, err) in [(true, false), (false, true), (true, true)] {
        for flags in [&[][..], &["--json"], &["--quiet"]] {
            for (graph, code) in [(TWO, 0), (FAILING, 1)] {
                let env = TestEnv::new();
                env.write("g.yaml", graph);
                let words = [&["run", "g.yaml"], flags].concat();
                assert_eq!(closed(&env, &words, out, err), code, "{words:?} {out} {err}");
                assert_eq!(env.events().last().unwrap()["event"], "run_finished");
                contract::check_run_dir(&env.run_dir());
            }
        }
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let env = TestEnv::new();
    env.run_graph(TWO, &[]).exits(0);
    for words in [
        &["runs", "list"][..],
        &["runs", "list", "--json"],
        &["show", "latest"],
        &["show", "latest", "--json"],
        &["show", "latest", "a"],
        &["show", "latest", "a", "--json"],
        &["watch", "latest"],
        &["watch", "latest", "--json"],
        &["--help"],
        &["version"],
        &["completions", "bash"],
        &["lint", "g.yaml"],
        &["lint", "--json", "g.yaml"],
        &["run", "--dry-run", "g.yaml"],
    ] {
        assert_eq!(closed(&env, words, true, false), 0, "{words:?}");
        assert_eq!(closed(&env, words, true, true), 0, "{words:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_told() {
    let env = TestEnv::new();
    env.run_graph(TWO, &[]).exits(0);
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    env.write("g.yaml", TWO);
    env.write("g.omgtest.yaml", "graph: g.yaml\ntests: [{name: it passes}]\n");
    for words in [
        &["runs", "list"][..],
        &["show", "latest"],
        &["show", "latest", "a"],
        &["watch", "latest"],
        &["lint", "g.yaml"],
        &["lint", "--json", "g.yaml"],
        &["lint", "--format", "sarif", "g.yaml"],
        &["lint", "--list"],
        &["lint", "--explain", "OMG020"],
        &["test"],
        &["test", "--json"],
        &["graph", "g.yaml"],
        &["estimate", "g.yaml"],
        &["schema"],
        &["completions", "bash"],
        &["version"],
        &["run", "--dry-run", "g.yaml"],
    ] {
        let mut command = env.command(words);
        let done = command.stdout(full()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{words:?}");
        says(&String::from_utf8(done.stderr).unwrap(), &["omg: cannot write the output"]);
    }
}

#[test]
fn a_run_whose_output_has_no_room_is_not_touched() {
    let env = TestEnv::new();
    env.write("g.yaml", TWO);
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let status = env.command(&["run", "g.yaml"]).stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn run_json_prints_the_feed_and_nothing_else() {
    for (graph, code) in [(TWO, 0), (FAILING, 1)] {
        let env = TestEnv::new();
        let ran = env.run_graph(graph, &["--json"]).exits(code);
        let feed = std::fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap();
        assert_eq!(ran.stdout, feed);
        says(&ran.stderr, &["Running graph", "TOTAL COST", "▶ a  running…"]);
    }
    let env = TestEnv::new();
    let ran = env.run_graph("nodes: [{id: a, promt: x}]", &["--json"]).exits(1);
    assert_eq!(ran.stdout, "", "what is no feed line stands on standard error");
    says(&ran.stderr, &["unknown key", "1 issue found"]);
}

#[test]
fn quiet_leaves_the_progress_out_and_keeps_the_ledger() {
    let env = TestEnv::new();
    let ran = env.run_graph(TWO, &["--quiet"]).exits(0);
    assert_eq!(ran.stderr, "");
    says(&ran.stdout, &["TOTAL COST: $0.0200"]);
    let ran = env.run_graph(FAILING, &["-q"]).exits(1);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
}

#[test]
fn the_last_lines_say_where_the_run_lies_and_what_to_do_next() {
    let env = TestEnv::new();
    let ran = env.run_graph(TWO, &[]).exits(0);
    let dir = env.run_dir().display().to_string();
    assert_eq!(ran.stdout.lines().nth(1), Some(&*dir));
    assert_eq!(ran.stdout.lines().last(), Some(&*dir));

    let env = TestEnv::new();
    let ran = env.run_graph(FAILING, &[]).exits(1);
    let run = name_of(&env.run_dir());
    says(&ran.stderr, &[&format!("omg show {run} a"), &format!("omg resume {run} --retry-failed\n")]);
    says(&ran.stdout, &["SKIPPED", "a failed"]);
    env.omg(&["show", &run, "a"]).exits(0);

    let env = TestEnv::new();
    let ran = env.run_graph(FAILING, &["--continue-on-fail"]).exits(1);
    says(&ran.stderr, &["completed with failed node(s) \"a\"", "hint: "]);
}

#[test]
fn watch_prints_a_finished_run_and_ends() {
    let env = TestEnv::new();
    env.run_graph(FAILING, &[]).exits(1);
    let run = name_of(&env.run_dir());
    let ran = env.omg(&["watch", "latest"]).exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], format!("run {run} is FAIL; 0 in flight."));
    assert_eq!(lines[1..3], ["▶ run started", "▶ a  running…"]);
    says(lines[3], &["✗ a  FAILED: exit code 3", "$0.0100"]);
    assert_eq!(lines[4..], ["■ run finished: failed  1 skipped"]);
    env.omg(&["watch", "latest", "--exit-status"]).exits(1);
    let ran = env.omg(&["watch", "latest", "--json"]).exits(0);
    assert_eq!(ran.stdout, std::fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap());
}

#[test]
fn watch_exits_as_a_failure_when_nobody_can_tell_how_the_run_ended() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: a, prompt: '@say x'}]", &[]).exits(0);
    for state in ["{", r#"{"schema": 99}"#] {
        std::fs::write(env.run_dir().join("state.json"), state).unwrap();
        let ran = env.omg(&["watch", "latest", "--exit-status"]).exits(1);
        says(&ran.stderr, &["has ended, and how cannot be told", "omg show"]);
        env.omg(&["watch", "latest"]).exits(0);
    }
}

#[test]
fn watch_follows_a_live_run_to_its_end() {
    let env = TestEnv::new();
    let go = env.path("go");
    env.write(
        "g.yaml",
        format!("nodes: [{{id: a, prompt: '@sh until test -e {}; do sleep 0.01; done'}}]", go.display()),
    );
    let run = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || !env.runs().is_empty() && !env.events_of("node_started").is_empty());
    let listed = env.omg(&["runs", "list"]).exits(0);
    says(&listed.stdout, &["RUNNING", "1 in flight"]);
    let watch = env.start(&["watch", "latest", "--exit-status"]);
    std::fs::write(go, "").unwrap();
    run.wait().exits(0);
    let ran = watch.wait().exits(0);
    says(&ran.stdout, &["is RUNNING; 1 in flight.", "▶ a  running…", "✓ a  PASS", "■ run finished: passed"]);
}

#[test]
fn watch_of_an_interrupted_person_ends_with_0_unless_the_runs_code_was_asked_for() {
    use rustix::process::Signal;
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, prompt: '@sleep 50'}]");
    let run = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || !env.runs().is_empty() && !env.spawns().is_empty());
    for (words, signal, code) in [
        (&["watch", "latest"][..], Signal::INT, 0),
        (&["watch", "latest", "--exit-status"], Signal::INT, 130),
        (&["watch", "latest", "--exit-status", "--follow"], Signal::TERM, 143),
    ] {
        let watch = env.start(words);
        // It prints before it listens for long; a signal that comes earlier would kill it.
        let caught = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", watch.pid())).unwrap();
            let mask =
                status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
            u64::from_str_radix(&mask, 16).unwrap() & 0b10 != 0
        };
        env.until("watch listens", caught);
        watch.signal(signal);
        watch.wait().exits(code);
    }
    run.signal(rustix::process::Signal::INT);
    run.wait().exits(130);
    contract::check_run_dir(&env.run_dir());
    let ran = env.omg(&["show", "latest"]).exits(0);
    says(&ran.stdout, &["FAIL", "CANCELLED"]);
}

/// The first word after `omg` in every command that `text` tells to type.
fn commands_told(text: &str) -> Vec<&str> {
    text.split("omg ").skip(1).filter_map(|rest| rest.split([' ', '\n', '`']).next()).collect()
}

#[test]
fn an_abandoned_run_is_told_and_every_command_named_exists() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, prompt: '@say x'}, {id: b, prompt: '@sleep 20', depends_on: [a]}]");
    let run = env.start(&["run", "g.yaml"]);
    env.until("the second node runs", || env.spawns().len() == 2);
    run.signal(rustix::process::Signal::KILL);
    run.wait();
    let child = rustix::process::Pid::from_raw(env.spawns()[1]["pid"].as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).ok();
    for (words, code) in [(&["runs", "list"][..], 0), (&["show", "latest"], 0), (&["watch", "latest"], 1)] {
        let ran = env.omg(words).exits(code);
        let text = ran.stdout + &ran.stderr;
        says(&text, &["ABANDONED"]);
        for command in commands_told(&text) {
            env.omg(&[command, "--help"]).exits(0);
        }
    }
}

#[test]
fn watch_shows_every_leg_of_a_feed() {
    let env = TestEnv::new();
    env.run_graph(FAILING, &[]).exits(1);
    let feed = env.run_dir().join("events.jsonl");
    let leg = std::fs::read_to_string(&feed).unwrap();
    let second = leg.replace("node_failed", "node_passed").replace("\"failed\"", "\"passed\"");
    std::fs::write(&feed, leg + &second).unwrap();
    let ran = env.omg(&["watch", "latest"]).exits(0);
    assert_eq!(ran.stdout.matches("run started").count(), 2, "{}", ran.stdout);
    says(&ran.stdout, &["run finished: failed", "run finished: passed"]);
}

#[test]
fn runs_list_and_show_speak_json() {
    let env = TestEnv::new();
    let empty: Value = serde_json::from_str(&env.omg(&["runs", "list", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(empty["runs"], Value::Array(vec![]));
    env.run_graph(TWO, &[]).exits(0);
    env.run_graph(FAILING, &[]).exits(1);
    let list: Value = serde_json::from_str(&env.omg(&["runs", "list", "--json"]).exits(0).stdout).unwrap();
    let statuses: Vec<&Value> = list["runs"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["FAIL", "PASS"]);
    let show: Value = serde_json::from_str(&env.omg(&["show", "latest", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(show["schema"], 1);
    assert_eq!(show["run"]["status"], "FAIL");
    assert_eq!(show["nodes"][0]["record"]["verdict"], "FAIL");
}

#[test]
fn without_runs_the_list_says_so() {
    let env = TestEnv::new();
    let Ran { stdout, stderr, .. } = env.omg(&["runs", "list"]).exits(0);
    says(&stdout.to_lowercase(), &["no runs"]);
    assert_eq!(stderr, "");
    assert!(!env.home().exists(), "reading makes nothing");
}

#[test]
fn a_missing_cli_is_found_before_the_first_spend() {
    let mut env = TestEnv::new();
    env.set("PATH", "/nonexistent");
    env.write("g.yaml", TWO);
    for runtime in ["claude", "codex"] {
        let ran = env.omg(&["run", "g.yaml", "--runtime", runtime]).exits(1);
        says(&ran.stderr, &["node \"a\"", runtime, "hint: install"]);
    }
    assert!(!env.home().exists());
    env.set("PATH", "/usr/bin:/bin");
    env.run_graph("nodes: [{id: a, type: command, command: 'true'}]", &[]).exits(0);
}

#[test]
fn words_that_are_not_unicode_are_refused_or_used_but_never_a_crash() {
    use std::os::unix::ffi::OsStrExt;
    let env = TestEnv::new();
    let odd = std::ffi::OsStr::from_bytes(b"g\xff.yaml");
    std::fs::write(env.work().join(odd), TWO).unwrap();
    for command in ["lint", "run", "show", "watch", "frob"] {
        let mut words = env.command(&[command]);
        words.arg(odd);
        let ran = Running::of(&mut words).wait();
        assert!(ran.code == 0 || ran.code == 1, "{command}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
    let mut command = env.command(&["run", "g.yaml", "--input"]);
    command.arg(std::ffi::OsStr::from_bytes(b"name=\xff"));
    let ran = Running::of(&mut command).wait().exits(1);
    says(&ran.stderr, &["\"name=\u{fffd}\" is not UTF-8"]);
}

#[test]
fn everything_that_a_runtime_refuses_is_told_by_lint_in_both_forms() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, prompt: x, agent: one}, {id: b, prompt: x, agent: two}]");
    let told = ["node \"a\": agent: is a claude feature", "node \"b\": agent: is a claude feature"];
    let ran = env.omg(&["--runtime", "codex", "lint", "g.yaml"]).exits(1);
    says(&ran.stderr, &told);
    says(&env.omg(&["--runtime", "codex", "run", "--dry-run", "g.yaml"]).exits(1).stderr, &told);
    let ran = env.omg(&["--runtime", "codex", "lint", "--json", "g.yaml"]).exits(1);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["valid"], false);
    assert_eq!(document["files"][0]["problems"].as_array().map(Vec::len), Some(2));
    env.omg(&["lint", "g.yaml"]).exits(0);
}

/// A hint that names a command that is not there sends people in circles.
#[test]
fn no_hint_names_a_command_that_there_is_not() {
    let env = TestEnv::new();
    env.run_graph(TWO, &[]).exits(0);
    let feed = env.run_dir().join("events.jsonl");
    let text = std::fs::read_to_string(&feed).unwrap();
    let cut: Vec<&str> = text.lines().filter(|line| !line.contains("run_finished")).collect();
    std::fs::write(&feed, cut.join("\n") + "\n").unwrap();
    let listed = env.omg(&["runs", "list"]).exits(0);
    says(&listed.stdout, &["ABANDONED", "lost its process", "omg resume "]);
    let help = env.omg(&["--help"]).exits(0).stdout;
    for (_, rest) in
        listed.stdout.match_indices("omg ").map(|(at, word)| listed.stdout.split_at(at + word.len()))
    {
        let command = rest.split_whitespace().next().unwrap();
        says(&help, &[&format!("\n  {command} ")]);
    }
}
