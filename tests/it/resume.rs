//! A run that was left in any way is picked up where it stood (cases D4 to D6, FACTS 1.12 and 7.9).

use std::fs::{self, File};
use std::process::Stdio;

use rustix::process::Signal;

use crate::contract;
use crate::env::{Running, TestEnv};

fn retry(env: &TestEnv) -> crate::env::Ran {
    env.omg(&["resume", "latest", "--retry-failed"])
}

#[test]
fn what_failed_runs_again_and_is_told_what_it_said() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: a, prompt: "@say A"}
  - {id: b, depends_on: [a], prompt: "@reply-n no|PASS", success_check: {result_matches: "^PASS"}}
  - {id: c, depends_on: [b], prompt: "@say C"}
"#;
    env.run_graph(graph, &[]).exits(1);
    retry(&env).exits(0);
    let spawns = env.spawns();
    assert_eq!(spawns.len(), 4, "a once, b twice, c once");
    let prompt = spawns[2]["prompt"].as_str().unwrap();
    assert!(prompt.contains("--- previous attempt") && prompt.contains("\nno\n"), "{prompt}");
    assert_eq!(env.record("b")["cost_usd"], 0.02, "the money of the cleared record is carried");
    assert!(!env.run_dir().join("failed/b.out").exists());
    contract::check_run_dir(&env.run_dir());
    let ran = retry(&env).exits(0);
    assert!(ran.stdout.contains("nothing to run again"), "{}", ran.stdout);
    assert_eq!(env.events_of("run_started").len(), 2);
}

#[test]
fn a_run_that_was_started_from_a_pipe_goes_on_without_asking_the_pipe_again() {
    let mut env = TestEnv::new();
    env.set("OMG", env!("CARGO_BIN_EXE_omg"));
    env.write("g.yaml", "nodes: [{id: g, type: gate}, {id: a, prompt: '@say A', depends_on: [g]}]");
    env.write("other.yaml", "something else");
    env.program("mkfifo").arg("fifo").status().unwrap();
    for start in [
        "cat g.yaml | $OMG run /dev/stdin",
        "cat g.yaml > fifo & $OMG run fifo",
        "$OMG run /dev/fd/0 < g.yaml",
    ] {
        // A standard input that never ends, one that says something else, none.
        let (silent, _kept_open) = rustix::pipe::pipe().unwrap();
        let other = File::open(env.path("other.yaml")).unwrap();
        for input in [Stdio::from(silent), Stdio::from(other), Stdio::null()] {
            assert_eq!(env.shell(start).stdout(Stdio::null()).status().unwrap().code(), Some(2));
            let mut resume = env.command(&["resume", "latest", "--approve", "g"]);
            let ran = Running::of(resume.stdin(input)).wait().exits(0);
            assert!(!ran.stderr.contains("has changed"), "{start}: {}", ran.stderr);
            assert_eq!(env.artifact("a").unwrap(), b"A");
            fs::remove_dir_all(env.run_dir()).unwrap();
        }
    }
}

#[test]
fn a_run_whose_home_was_moved_hands_its_artifacts_on() {
    let mut env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: a, prompt: "@say made by a"}
  - {id: ok, type: gate, depends_on: [a]}
  - {id: b, type: command, depends_on: [a, ok], command: "cat {{ artifacts.a }} \"$OMG_ARTIFACT_A\""}
  - {id: c, prompt: "@say {{ artifacts.a | inline }}", depends_on: [a, ok]}
"#;
    env.run_graph(graph, &[]).exits(2);
    let moved = env.path("elsewhere");
    fs::rename(env.home(), &moved).unwrap();
    env.set("OMG_HOME", moved.to_str().unwrap());
    env.omg(&["resume", "latest", "--approve", "ok"]).exits(0);
    let run = fs::read_dir(moved.join("runs")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(run.join("b.out")).unwrap(), "made by amade by a");
    assert_eq!(fs::read_to_string(run.join("c.out")).unwrap(), "made by a");
}

#[test]
fn a_run_that_a_link_stands_in_is_refused_with_what_helps() {
    for name in ["", "events.jsonl", "resume.lock"] {
        let env = TestEnv::new();
        env.run_graph("nodes: [{id: g, type: gate}, {id: a, prompt: '@say A', depends_on: [g]}]", &[])
            .exits(2);
        let (place, aside) = (env.run_dir().join(name), env.path("aside"));
        let place = if name.is_empty() { env.run_dir() } else { place };
        fs::rename(&place, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &place).unwrap();
        let ran = env.omg(&["resume", "latest", "--approve", "g"]).exits(1);
        let told = format!("{} is a link", place.display());
        assert!(
            ran.stderr.contains(&told) && ran.stderr.contains("into its place"),
            "{name}: {}",
            ran.stderr
        );
        assert_eq!(env.spawns().len(), 0);
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
        env.omg(&["resume", "latest", "--approve", "g"]).exits(0);
    }
}

#[test]
fn a_changed_file_is_warned_of() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: g, type: gate}]", &[]).exits(2);
    env.write("g.yaml", "nodes: [{id: h, type: gate}]");
    let ran = env.omg(&["resume", "latest", "--approve", "g"]).exits(0);
    assert!(ran.stderr.contains("g.yaml has changed since"), "{}", ran.stderr);
}

#[test]
fn an_interrupted_run_goes_on() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes:\n  - {id: a, prompt: '@say A'}\n  - {id: b, depends_on: [a], prompt: \"@on 1 sleep 47.3\\n@say B\"}\n",
    );
    let run = env.start(&["run", "g.yaml"]);
    env.until("b runs", || env.spawns().len() == 2);
    run.signal(Signal::INT);
    run.wait().exits(130);
    retry(&env).exits(0);
    assert_eq!(env.spawns().len(), 3);
    assert_eq!(env.artifact("b").unwrap(), b"B");
}

#[test]
fn d6_a_killed_run_goes_on_at_once() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes:\n  - {id: a, prompt: '@say A'}\n  - {id: b, depends_on: [a], prompt: \"@on 1 sleep 48.7\\n@say B\"}\n",
    );
    let run = env.start(&["run", "g.yaml"]);
    env.until("b runs", || env.spawns().len() == 2);
    run.signal(Signal::KILL);
    run.wait().exits(-9);
    let listed = env.omg(&["runs", "list"]).exits(0);
    assert!(
        listed.stdout.contains("ABANDONED") && listed.stdout.contains("--retry-failed"),
        "{}",
        listed.stdout
    );
    let ran = retry(&env).exits(0);
    assert!(ran.stderr.contains("abandoned"), "{}", ran.stderr);
    assert_eq!(env.spawns().len(), 3, "a is not run again");
    assert_eq!(env.record("b")["cost_unknown"], true, "nobody knows what the lost attempt cost");
    contract::check_run_dir(&env.run_dir());
    for pid in env.pids_of("claude") {
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).ok();
    }
}

#[test]
fn d4_of_two_retries_at_once_one_runs() {
    let env = TestEnv::new();
    env.run_graph("nodes:\n  - {id: a, prompt: \"@sleep 0.4\\n@on 1 exit 1\"}\n", &[]).exits(1);
    let words = ["resume", "latest", "--retry-failed"];
    let (one, other) = (env.start(&words), env.start(&words));
    let codes = [one.wait().code, other.wait().code];
    assert!(codes.contains(&0) && codes.contains(&1), "{codes:?}");
    assert_eq!(env.spawns().len(), 2);
}

/// A chain in which each node says that it ran.
fn chain() -> String {
    let mut graph = String::from("nodes:\n");
    for n in 0..6 {
        let parent = if n == 0 { String::new() } else { format!("depends_on: [n{}], ", n - 1) };
        let n = n.to_string();
        graph.push_str(
            &["  - {id: n", &n, ", ", &parent, "prompt: \"@append ran-", &n, "\\n@say n", &n, "\"}\n"]
                .concat(),
        );
    }
    graph
}

#[test]
fn d5_a_kill_at_any_moment_pays_for_nothing_twice() {
    let rounds = std::env::var("OMG_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(40);
    for round in 0..rounds {
        let env = TestEnv::new();
        env.write("g.yaml", chain());
        let run = env.start(&["run", "g.yaml"]);
        // The moment differs from round to round, over the whole length of a run.
        std::thread::sleep(std::time::Duration::from_micros(1500 * (round % 40) + 97 * (round / 40)));
        run.signal(Signal::KILL);
        run.wait();
        if env.runs().is_empty() || !env.run_dir().join("state.json").exists() {
            continue;
        }
        env.until("its children are gone", || env.pids_of("claude").is_empty());
        let passed: Vec<String> = env
            .events_of("node_passed")
            .iter()
            .map(|event| event["node_id"].as_str().unwrap().to_owned())
            .collect();
        let before = env.spawns().len();
        retry(&env).exits(0);
        let again = &env.spawns()[before..];
        for node in &passed {
            let mark = format!("@say {node}");
            assert!(
                !again.iter().any(|spawn| spawn["prompt"].as_str().unwrap().contains(&mark)),
                "{node} ran again"
            );
        }
        for n in 0..6 {
            assert_eq!(env.artifact(&format!("n{n}")).unwrap(), format!("n{n}").into_bytes());
        }
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn an_end_that_the_feed_lost_is_taken_from_the_snapshot() {
    let env = TestEnv::new();
    let graph =
        "nodes:\n  - {id: a, prompt: '@on 1 exit 3'}\n  - {id: b, depends_on: [a], prompt: '@say b'}\n";
    env.run_graph(graph, &[]).exits(1);
    let feed = env.run_dir().join("events.jsonl");
    let before = std::fs::read(&feed).unwrap();
    retry(&env).exits(0);
    std::fs::write(&feed, before).unwrap();
    let ran = retry(&env).exits(0);
    assert!(ran.stdout.contains("nothing to run again"), "{}", ran.stdout);
    assert_eq!(env.spawns().len(), 3, "a is not paid a third time");
    let text = std::fs::read_to_string(&feed).unwrap();
    std::fs::write(&feed, &text[..text.rfind("{\"schema\":3").unwrap()]).unwrap();
    let ran = retry(&env).exits(0);
    assert!(ran.row("a").contains("PASS") && ran.row("b").contains("PASS"), "{}", ran.stdout);
}

#[test]
fn a_leg_that_died_after_its_last_verdict_is_closed() {
    let env = TestEnv::new();
    env.run_graph("nodes:\n  - {id: a, prompt: '@say a'}\n", &[]).exits(0);
    let feed = env.run_dir().join("events.jsonl");
    let text = std::fs::read_to_string(&feed).unwrap();
    let open = text.rfind("{\"schema\":3").unwrap();
    std::fs::write(&feed, &text[..open]).unwrap();
    assert!(env.omg(&["runs", "list"]).stdout.contains("ABANDONED"));
    retry(&env).exits(0);
    assert_eq!(env.spawns().len(), 1);
    let listed = env.omg(&["runs", "list"]).stdout;
    assert!(listed.contains("PASS") && !listed.contains("ABANDONED"), "{listed}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_run_that_has_passed_has_nothing_left_to_resume() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: a, prompt: '@say a'}]", &[]).exits(0);
    let ran = env.omg(&["resume", "latest"]).exits(1);
    assert!(ran.stderr.contains("nothing of it is left to run"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("--retry-failed"), "which would find nothing either: {}", ran.stderr);
    assert_eq!(env.spawns().len(), 1);
}

#[test]
fn d4_the_loser_is_told_of_the_winner_and_what_to_do() {
    let env = TestEnv::new();
    env.run_graph("nodes:\n  - {id: a, prompt: \"@on 1 exit 1\\n@on 2 sleep 44.6\"}\n", &[]).exits(1);
    let winner = env.start(&["resume", "latest", "--retry-failed"]);
    env.until("it runs", || env.spawns().len() == 2);
    let ran = retry(&env).exits(1);
    assert!(ran.stderr.contains(&format!("(pid {})", winner.pid())), "{}", ran.stderr);
    assert!(ran.stderr.contains("omg watch") && !ran.stderr.contains("OMG_HOME"), "{}", ran.stderr);
    winner.signal(Signal::INT);
    winner.wait().exits(130);
}

#[test]
fn a_rehearsals_script_goes_on_over_the_legs() {
    let env = TestEnv::new();
    env.write("g.yaml", "on_fail: continue\nnodes:\n  - {id: a, prompt: x}\n  - {id: b, prompt: x}\n");
    env.write(
        "s.yaml",
        "nodes:\n  a: [{exit: 1}, {exit: 2}, {reply: third}]\n  b: [{limit: true}, {reply: second}]\n",
    );
    env.omg(&["rehearse", "g.yaml", "--script", "s.yaml"]).exits(2);
    retry(&env).exits(1);
    retry(&env).exits(0);
    assert_eq!(env.artifact("a").unwrap(), b"third");
    assert_eq!(env.artifact("b").unwrap(), b"second");
}

#[test]
fn a_run_that_cannot_be_read_says_what_is_left_to_do() {
    let env = TestEnv::new();
    env.run_graph("nodes:\n  - {id: a, prompt: '@exit 1'}\n", &[]).exits(1);
    let path = env.run_dir().join("state.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    for (text, hint) in [
        (String::new(), "run the graph again"),
        (whole[..40].to_owned(), "run the graph again"),
        (whole.replacen("\"schema\": 3", "\"schema\": 99", 1), "the version of omg that wrote"),
    ] {
        std::fs::write(&path, text).unwrap();
        let ran = retry(&env).exits(1);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    }
    assert_eq!(env.spawns().len(), 1);
}

#[test]
fn a_leg_that_pauses_at_once_leaves_the_snapshot_as_it_was() {
    let env = TestEnv::new();
    let graph = "nodes:\n  - {id: a, prompt: \"@exit 1\"}\n  - {id: b, prompt: b, depends_on: [a]}\n";
    env.run_graph(graph, &[]).exits(1);
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "1"]).exits(2);
    assert_eq!((&env.record("a")["verdict"], &env.record("a")["cost_usd"]), (&"FAIL".into(), &0.01.into()));
    contract::check_run_dir(&env.run_dir());
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "3"]).exits(1);
    assert_eq!(env.record("a")["cost_usd"], 0.02);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_leg_that_pauses_at_once_leaves_the_marker_of_a_loop() {
    let env = TestEnv::new();
    let graph = "nodes:\n  - {id: w, prompt: \"@on 2 iserror\\nw\"}\n  - {id: r, depends_on: [w], prompt: \"@reply-n FAIL|PASS\", \
                 success_check: {result_matches: '^PASS'}, feedback: {rerun: w, max: 2}}\n";
    env.run_graph(graph, &[]).exits(1);
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "1"]).exits(2);
    let marker = env.record("r");
    assert_eq!(
        (&marker["verdict"], &marker["round"], &marker["cost_usd"]),
        (&"".into(), &1.into(), &0.01.into())
    );
    env.omg(&["resume", "latest", "--retry-failed", "--max-executions", "9"]).exits(0);
    assert_eq!(env.spawns().len(), 5);
    contract::check_run_dir(&env.run_dir());
}
