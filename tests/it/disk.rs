//! What a run leaves on disk, and what reading it back makes of damage, of links and of odd clocks.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::contract;
use crate::env::{Running, TestEnv};

const ONE: &str = "nodes: [{id: a, prompt: '@say one'}]";

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

fn name_of(dir: &Path) -> &str {
    dir.file_name().unwrap().to_str().unwrap()
}

/// A run directory made by hand.
fn plant(env: &TestEnv, id: &str, state: Option<&str>, feed: Option<&str>) -> PathBuf {
    let dir = env.home().join("runs").join(id);
    fs::create_dir_all(&dir).unwrap();
    if let Some(state) = state {
        fs::write(dir.join("state.json"), state).unwrap();
    }
    if let Some(feed) = feed {
        fs::write(dir.join("events.jsonl"), feed).unwrap();
    }
    dir
}

/// The two files of a real run, for changing.
fn sample(env: &TestEnv) -> (String, String) {
    env.run_graph(ONE, &[]).exits(0);
    let dir = env.run_dir();
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    (read("state.json"), read("events.jsonl"))
}

#[test]
fn d8_damage_is_counted_and_does_not_hide_the_rest() {
    let env = TestEnv::new();
    let (state, feed) = sample(&env);
    let good = name_of(&env.run_dir()).to_owned();
    plant(&env, "20200101-000000.000000001-1", Some(""), None);
    plant(&env, "20200101-000000.000000002-1", Some(&state[..state.len() / 2]), Some(&feed));
    plant(
        &env,
        "20200101-000000.000000003-1",
        Some(&state.replacen("\"schema\": 3", "\"schema\": 99", 1)),
        Some(&feed),
    );
    plant(&env, "20200101-000000.000000004-1", Some(&state), Some(&feed[..feed.len() - 20]));
    plant(&env, "20200101-000000.000000005-1", Some("[]"), Some(&feed));
    plant(&env, "20200101-000000.000000006-1", None, Some(&"x".repeat(3 << 20)));
    let runs = env.home().join("runs");
    fs::create_dir(runs.join("junk")).unwrap();
    fs::create_dir(runs.join("20200101-000000.000000007-1")).unwrap();
    fs::write(runs.join("file"), "x").unwrap();
    symlink("/nonexistent", runs.join("20200101-000000.000000008-1")).unwrap();

    let ran = env.omg(&["runs", "list"]).exits(0);
    says(&ran.stdout, &[&good, "20200101-000000.000000004-1", "skipped", "--show-skipped"]);
    assert_eq!(ran.stderr, "");
    let ran = env.omg(&["runs", "list", "--show-skipped"]).exits(0);
    for bad in ["000000001-1", "000000002-1", "000000003-1", "000000005-1"] {
        says(&ran.stderr, &[bad]);
        let shown = env.omg(&["show", &format!("20200101-000000.{bad}")]).exits(1);
        assert_eq!(shown.stdout, "");
        says(&shown.stderr, &["omg: ", "state.json"]);
    }
    for damaged in ["000000004-1", "000000006-1", "000000007-1", "000000008-1"] {
        let shown = env.omg(&["show", &format!("20200101-000000.{damaged}")]);
        assert!(!shown.stderr.contains("panicked"), "{}", shown.stderr);
    }
    let json: Value = serde_json::from_str(&env.omg(&["runs", "list", "--json"]).exits(0).stdout).unwrap();
    assert!(json["runs"].as_array().unwrap().iter().any(|run| run["run_id"] == *good));
    env.omg(&["show", "latest"]).exits(0);
}

#[test]
fn d8_b6_files_that_somebody_else_wrote_are_shown_harmlessly() {
    let env = TestEnv::new();
    let (state, feed) = sample(&env);
    fs::write(env.home().join("secret.out"), "secret").unwrap();
    let evil = "../../secret\\u001b]0;x\\u0007\u{9b}\u{202e}";
    let id = "20300101-000000.000000001-1";
    let hostile = |text: &str| {
        let text =
            text.replace("\"a\"", &format!("\"{evil}\"")).replace("exit-only", evil).replace("PASS", evil);
        text.replace("claude", evil).replace("\"passed\"", &format!("\"{evil}\""))
    };
    for (n, (state, feed)) in [
        (hostile(&state), hostile(&feed)),
        (state.clone(), hostile(&feed)),
        (state.replace("\"a\"", "\"../../secret\""), feed.replace("\"a\"", "\"../../secret\"")),
        (
            state.replace("0.01", "1e308"),
            feed.replace("0.01", "-1e308").replace("\"duration\":", "\"duration\":-9"),
        ),
        (state.replace("one", "x"), feed.replace("2026", "\\u001b[31m")),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id.replace("000001-1", &format!("00000{n}-1"));
        plant(&env, &id, Some(&state), Some(&feed));
        for words in [
            &["show", &*id][..],
            &["show", &id, "../../secret"],
            &["show", &id, "a"],
            &["watch", &id],
            &["runs", "list"],
            &["runs", "list", "--show-skipped"],
        ] {
            let ran = env.omg(words);
            assert!(ran.code == 0 || ran.code == 1, "{words:?}: {ran:?}");
            let text = ran.stdout + &ran.stderr;
            assert!(!text.contains("panicked") && !text.contains("--- reply\nsecret"), "{text}");
            let acted_upon = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(acted_upon), "{n} {words:?}: {text:?}");
        }
    }
}

#[test]
fn d9_a_newer_snapshot_is_refused_and_its_feed_still_tailed() {
    let env = TestEnv::new();
    let (state, feed) = sample(&env);
    let id = "20300101-000000.000000001-1";
    plant(&env, id, Some(&state.replacen("\"schema\": 3", "\"schema\": 99", 1)), Some(&feed));
    let shown = env.omg(&["show", id]).exits(1);
    says(&shown.stderr, &["99", "hint: "]);
    says(&env.omg(&["watch", id]).exits(0).stdout, &["✓ a  PASS"]);
}

#[test]
fn d9_what_a_newer_version_adds_is_passed_over() {
    let env = TestEnv::new();
    let (state, feed) = sample(&env);
    let id = "20300101-000000.000000001-1";
    let newer = feed.replace("\"run_started\"", "\"run_started\",\"colour\":{\"deep\":[1]}");
    let tea = r#"{"schema":4,"ts":"2030-01-01T00:00:00Z","run_id":"x","event":"tea_time","node_id":"a"}"#;
    let (first, rest) = newer.split_once('\n').unwrap();
    let state = state.replacen("\"schema\": 3,", "\"schema\": 3, \"unheard\": {\"of\": 1},", 1);
    plant(&env, id, Some(&state), Some(&format!("{first}\n{tea}\nnot json\n{rest}")));
    let ran = env.omg(&["watch", id]).exits(0);
    says(&ran.stdout, &["✓ a  PASS", "■ run finished: passed"]);
    says(&ran.stderr, &["newer omg", "does not decode"]);
}

/// Runs a graph whose node `a` plants `link` in the run directory, pointing at `victim`, and ends as `end` says.
fn planted(link: &str, make: &str, end: &str) -> (TestEnv, PathBuf, i32) {
    let env = TestEnv::new();
    let victim = env.path("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "intact").unwrap();
    let run = format!("{}/runs/*", env.home().display());
    let target = if make == "-s" { victim.join("file") } else { victim.clone() };
    let plant = format!(
        "umask 077; cd {run} && mkdir -p failed attempts && rm -rf {link} && ln -s {} {link}",
        target.display()
    );
    let graph = json!({"on_fail": "continue", "nodes": [
        {"id": "a", "prompt": format!("@sh {plant}\n@say owned\n{end}")},
        {"id": "z", "prompt": "@say after"},
    ]});
    let ran = env.run_graph(&graph.to_string(), &["--concurrency", "1"]);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "intact", "{link}");
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 1, "{link}: something was written through it");
    (env, victim, ran.code)
}

#[test]
fn d12_a_planted_link_is_never_written_through() {
    for (link, make, end) in [
        ("a.out", "-s", ""),
        ("z.out", "-s", ""),
        ("a.out", "-d", ""),
        ("failed/a.out", "-s", "@exit 1"),
        ("failed", "-d", "@exit 1"),
        ("attempts", "-d", ""),
        ("attempts/a", "-d", ""),
        ("attempts/z", "-d", ""),
        ("attempts/a/1-0-1.reply", "-s", ""),
        ("state.json", "-s", ""),
    ] {
        let (env, _, code) = planted(link, make, end);
        assert_eq!(code, i32::from(!end.is_empty()), "{link}");
        contract::check_run_dir(&env.run_dir());
        for node in ["a", "z"] {
            let shown = env.omg(&["show", "latest", node]).exits(0);
            assert!(!shown.stdout.contains("intact"), "{link}: {}", shown.stdout);
        }
    }
}

#[test]
fn d12_a_pipe_or_a_folder_where_a_file_belongs_holds_nothing_up() {
    for name in [
        "a.out",
        "z.out",
        "failed/a.out",
        "attempts/a/1-0-1.reply",
        "attempts/z",
        "state.json",
        "events.jsonl",
        "resume.lock",
    ] {
        for make in ["mkfifo", "mkdir -m 700"] {
            let env = TestEnv::new();
            let plant = format!(
                "umask 077; cd {}/runs/* && mkdir -p failed attempts/a && rm -rf {name} && {make} {name}",
                env.home().display()
            );
            let end = if name.starts_with("failed") { "@exit 1" } else { "" };
            let graph = json!({"on_fail": "continue", "nodes": [
                {"id": "a", "prompt": format!("@sh {plant}\n@say owned\n{end}")},
                {"id": "z", "prompt": "@say after"},
            ]});
            let ran = env.run_graph(&graph.to_string(), &["--concurrency", "1"]);
            assert!(ran.code == 0 || ran.code == 1, "{name} {make}: {ran:?}");
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            for words in
                [&["show", "latest"][..], &["show", "latest", "a"], &["watch", "latest"], &["runs", "list"]]
            {
                let ran = env.omg(words);
                assert!(ran.code == 0 || ran.code == 1, "{name} {make} {words:?}: {ran:?}");
                assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            }
        }
    }
}

#[test]
fn d12_a_link_in_the_place_of_the_feed_is_not_followed() {
    let (env, victim, _) = planted("events.jsonl", "-s", "");
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "intact");
    let ran = env.omg(&["watch", "latest"]);
    assert!(!ran.stdout.contains("intact") && !ran.stderr.contains("intact"), "{ran:?}");
}

#[test]
fn d13_nothing_is_open_to_others_under_any_umask() {
    for mask in ["000", "022", "077"] {
        let env = TestEnv::new();
        env.write(
            "g.yaml",
            "on_fail: continue\nnodes: [{id: a, prompt: '@say x'}, {id: b, prompt: \"@say y\\n@exit 1\"}, \
                             {id: c, type: command, command: 'echo z'}]",
        );
        shell(&env, &format!("umask {mask}; exec $OMG run g.yaml")).wait().exits(1);
        open_to_others(&env.home());
        contract::check_run_dir(&env.run_dir());
    }
}

fn shell(env: &TestEnv, line: &str) -> Running {
    let mut command = Command::new("bash");
    command.arg("-c").arg(line).env_clear().current_dir(env.work());
    command.envs(env.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("OMG", env!("CARGO_BIN_EXE_omg"));
    Running::of(&mut command)
}

fn open_to_others(path: &Path) {
    let about = fs::symlink_metadata(path).unwrap();
    assert_eq!(about.permissions().mode() & 0o077, 0, "{}", path.display());
    if about.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| open_to_others(&entry.unwrap().path()));
    }
}

#[test]
fn d14_the_feed_is_utc_and_the_list_is_local_with_its_offset() {
    for (zone, offsets) in [
        ("KST-9", &["+09:00"][..]),
        ("NST3:30NDT,M3.2.0,M11.1.0", &["-03:30", "-02:30"]),
        ("Asia/Seoul", &["+09:00"]),
        ("UTC", &["+00:00"]),
        ("Nowhere/At_All", &["+00:00"]),
    ] {
        if zone.contains("Seoul") && !Path::new("/usr/share/zoneinfo").join(zone).exists() {
            continue;
        }
        let mut env = TestEnv::new();
        env.set("TZ", zone);
        env.run_graph(ONE, &[]).exits(0);
        for event in env.events() {
            assert!(event["ts"].as_str().unwrap().ends_with('Z'), "{event}");
        }
        let id = name_of(&env.run_dir()).to_owned();
        let ts = env.events()[0]["ts"].as_str().unwrap().to_owned();
        assert_eq!(id[..8], ts[..10].replace('-', ""), "the id is of the same zone as the feed");
        let list = env.omg(&["runs", "list"]).exits(0).stdout;
        assert!(offsets.iter().any(|offset| list.contains(offset)), "{zone}: {list}");
        assert!(env.record("a")["duration"].as_i64().unwrap() > 0);
    }
}

#[test]
fn d14_runs_are_listed_by_their_start_newest_first() {
    let env = TestEnv::new();
    let (state, feed) = sample(&env);
    let now = name_of(&env.run_dir()).to_owned();
    for id in ["20200101-000000.000000002-1", "20200101-000000.000000010-1", "20991231-235959.000000000-1"] {
        plant(&env, id, Some(&state.replace(&now, id)), Some(&feed.replace(&now, id)));
    }
    let list = env.omg(&["runs", "list"]).exits(0).stdout;
    let ids: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.contains('.'))
        .collect();
    assert_eq!(
        ids,
        ["20991231-235959.000000000-1", &*now, "20200101-000000.000000010-1", "20200101-000000.000000002-1"]
    );
}

#[test]
fn a_relative_home_is_made_absolute() {
    let mut env = TestEnv::new();
    env.set("OMG_HOME", "rel/home");
    fs::create_dir(env.path("sub")).unwrap();
    let graph = "nodes: [{id: a, prompt: '@say one'}, \
                 {id: b, type: command, cwd: sub, depends_on: [a], command: 'cat \"$OMG_ARTIFACT_A\" {{ artifacts.a }}'}]";
    env.run_graph(graph, &[]).exits(0);
    let runs = env.path("rel/home/runs");
    let dir = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read(dir.join("b.out")).unwrap(), b"oneone");
    let state: Value = serde_json::from_slice(&fs::read(dir.join("state.json")).unwrap()).unwrap();
    let named = Path::new(state["nodes"]["a"]["artifact_path"].as_str().unwrap());
    assert!(named.is_absolute() && named.is_file(), "{}", named.display());
    contract::check_run_dir(&dir);
}

#[test]
fn a_record_names_its_session_and_its_artifact() {
    let env = TestEnv::new();
    env.run_graph(
        "nodes: [{id: a, prompt: '@say one'}, {id: b, prompt: \"@say y\\n@exit 1\", depends_on: [a]}]",
        &[],
    )
    .exits(1);
    let session = env.record("a")["session_id"].clone();
    assert_eq!(env.events_of("node_started")[0]["session_id"], session);
    let argv = env.spawns()[0]["argv"].as_array().unwrap().clone();
    let at = argv.iter().position(|word| word == "--session-id").unwrap();
    assert_eq!(argv[at + 1], session);
    let artifact = env.run_dir().join("a.out");
    assert_eq!(env.record("a")["artifact_path"], artifact.display().to_string());
    assert_eq!(env.record("b")["artifact_path"], "");
    assert!(env.artifact("b").is_none());
    assert_eq!(fs::read(env.run_dir().join("failed/b.out")).unwrap(), b"y");
}

/// `omg run` where no file may grow beyond so many kilobytes, which is what a full disk looks like to it.
fn on_a_full_disk(env: &TestEnv, kilobytes: usize) -> crate::env::Ran {
    shell(env, &format!("trap '' XFSZ; ulimit -f {kilobytes}; exec $OMG run g.yaml")).wait()
}

#[test]
fn a_full_disk_starts_nothing_more_and_a_resume_goes_on_from_what_is_recorded() {
    let env = TestEnv::new();
    let nodes: String = (0..40)
        .map(|at| format!("  - {{id: node-{at:02}, type: command, command: 'echo {at} >> ran-{at}'}}\n"))
        .collect();
    env.write("g.yaml", format!("nodes:\n{nodes}"));
    let ran = on_a_full_disk(&env, 8).exits(1);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    says(&ran.stderr, &["⚠", "events.jsonl", "is not started", "could not be recorded", "--retry-failed"]);
    let feed = fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap();
    assert!(feed.ends_with("}\n"), "the feed ends in a torn line");
    let lines =
        |at: usize| fs::read_to_string(env.path(&format!("ran-{at}"))).map_or(0, |text| text.lines().count());
    for at in 0..40 {
        let started = feed.contains(&format!("\"node_started\",\"node_id\":\"node-{at:02}\""));
        assert_eq!(lines(at), usize::from(started), "node {at}: {}", ran.stderr);
    }
    let passed = env.events_of("node_passed").len();
    assert!(passed > 3 && lines(39) == 0);
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    let again = (0..40).filter(|at| lines(*at) > 1).count();
    assert!(again <= 4, "only what was under way runs twice: {again}");
    assert!((0..40).all(|at| lines(at) >= 1));
}

#[test]
fn what_was_paid_and_cannot_be_recorded_is_unknown_and_nothing_more_is_spent() {
    let env = TestEnv::new();
    let runs = env.home().join("runs");
    let away = env.path("away");
    let graph = json!({"on_fail": "continue", "nodes": [
        {"id": "a", "prompt": format!("@sh mv {}/* {}", runs.display(), away.display())},
        {"id": "b", "prompt": "@touch ran"},
        {"id": "c", "prompt": "c", "retry": {"max": 2, "on": ["nonzero_exit"]}},
    ]});
    let ran = env.run_graph(&graph.to_string(), &["--concurrency", "1"]).exits(1);
    assert_eq!(env.spawns().len(), 1, "{}", ran.stderr);
    says(&ran.stdout, &["TOTAL COST: unknown"]);
    says(&ran.stderr, &["b is not started", "could not be recorded", "hint: make room"]);
    // Once it is back, nothing is lost: the file was still in hand.
    fs::create_dir_all(&runs).unwrap();
    let id = away.join("state.json");
    let id: Value = serde_json::from_slice(&fs::read(id).unwrap()).unwrap();
    fs::rename(&away, runs.join(id["run_id"].as_str().unwrap())).unwrap();
    says(&env.omg(&["show", "latest"]).exits(0).stdout, &["TOTAL COST: $0.0100"]);
    assert_eq!(env.events_of("run_finished")[0]["outcome"], "failed");
}

#[test]
fn a_retry_that_cannot_be_recorded_is_not_begun() {
    let env = TestEnv::new();
    let runs = env.home().join("runs");
    let away = env.path("away");
    let graph = json!({"nodes": [
        {"id": "a", "prompt": format!("@sh mv {}/* {}\n@exit 1", runs.display(), away.display()), "retry": {"max": 3, "on": ["nonzero_exit"]}},
    ]});
    let ran = env.run_graph(&graph.to_string(), &[]).exits(1);
    assert_eq!(env.spawns().len(), 1, "{}", ran.stderr);
    let feed = fs::read_to_string(away.join("events.jsonl")).unwrap();
    let charged = feed.lines().filter(|line| line.contains("\"cost_usd\":0.01")).count();
    assert_eq!(charged, 1, "{feed}");
}

#[test]
fn a_resume_that_cannot_be_recorded_spends_nothing() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, prompt: a}, {id: g, type: gate, depends_on: [a]}, {id: b, prompt: b, depends_on: [g]}]");
    env.omg(&["run", "g.yaml"]).exits(2);
    let resume = "trap '' XFSZ; ulimit -f 1; exec $OMG resume latest --approve g";
    let ran = shell(&env, resume).wait().exits(1);
    says(&ran.stderr, &["cannot go on", "nothing was run"]);
    assert_eq!(env.spawns().len(), 1);
    env.omg(&["resume", "latest", "--approve", "g"]).exits(0);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_disk_without_any_room_is_told_before_anything_runs() {
    let env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: a, type: command, command: 'mkdir ran'}]");
    let ran = on_a_full_disk(&env, 0).exits(1);
    says(&ran.stderr, &["omg: the run cannot begin", "hint: set OMG_HOME"]);
    assert!(!env.path("ran").exists());
}

#[test]
fn an_artifact_that_finds_no_room_fails_its_node_alone() {
    let env = TestEnv::new();
    env.write("g.yaml", "on_fail: continue\nnodes: [{id: big, prompt: '@big 200000'}, {id: huge, type: command, command: 'head -c 200000 /dev/zero'}, {id: small, prompt: '@say s'}]");
    let ran = on_a_full_disk(&env, 64).exits(1);
    for node in ["big", "huge"] {
        assert_eq!(env.record(node)["verdict"], "FAIL", "{}", ran.stderr);
        assert!(env.artifact(node).is_none());
    }
    assert_eq!(env.record("small")["verdict"], "PASS");
    assert_eq!(env.record("big")["cost_usd"], 0.01);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_run_directory_that_vanishes_ends_the_run() {
    let env = TestEnv::new();
    let graph = json!({"on_fail": "continue", "nodes": [
        {"id": "a", "prompt": format!("@sh until rm -rf {}/runs/*; do :; done", env.home().display())},
        {"id": "b", "prompt": "@touch ran"},
    ]});
    let ran = env.run_graph(&graph.to_string(), &["--concurrency", "1"]).exits(1);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert!(!env.path("ran").exists(), "{}", ran.stderr);
    says(&ran.stderr, &["⚠", "b is not started", "could not be recorded"]);
    says(&ran.stdout, &["TOTAL COST: unknown"]);
}

#[test]
fn a_home_that_cannot_be_made_is_told_before_anything_runs() {
    for home in ["/proc/omg", "file"] {
        let mut env = TestEnv::new();
        env.write("file", "x");
        env.set("OMG_HOME", home);
        let ran = env.run_graph(ONE, &[]).exits(1);
        says(&ran.stderr, &["omg: the run cannot begin", "hint: "]);
        assert!(env.spawns().is_empty());
    }
}

#[test]
fn every_kind_of_run_keeps_the_contract() {
    let chain = "{id: c, prompt: x, depends_on: [b]}";
    for (what, graph, flags, code) in [
        ("pass", "nodes: [{id: a, prompt: '@say x'}, {id: b, prompt: y, depends_on: [a]}]".to_owned(), &[][..], 0),
        ("halt", format!("nodes: [{{id: a, prompt: '@sleep 30'}}, {{id: b, prompt: '@exit 1'}}, {chain}]"), &[], 1),
        ("skip", format!("on_fail: continue\nnodes: [{{id: a, prompt: x}}, {{id: b, prompt: '@exit 1'}}, {chain}]"), &[], 1),
        ("flag", format!("nodes: [{{id: a, prompt: x}}, {{id: b, prompt: '@exit 1'}}, {chain}]"), &["--continue-on-fail"], 1),
        (
            "retry",
            "nodes: [{id: a, prompt: '@reply-n no|yes', success_check: {result_matches: 'yes'}, retry: {max: 2, on: [result_mismatch]}}]".to_owned(),
            &[],
            0,
        ),
        ("unknown cost", "nodes: [{id: a, prompt: '@nocost'}, {id: b, prompt: '@empty', depends_on: [a]}]".to_owned(), &[], 1),
        ("budget", "nodes: [{id: a, prompt: x, budget_usd: 0.001}]".to_owned(), &[], 1),
        ("timeout", "nodes: [{id: a, prompt: '@sleep 30', timeout: 200ms}]".to_owned(), &[], 1),
        ("codex", "nodes: [{id: a, prompt: '@say x'}, {id: b, prompt: '@exit 1', depends_on: [a]}]".to_owned(), &["--runtime", "codex"], 1),
        ("strict", "nodes: [{id: a, prompt: '@say x'}]".to_owned(), &["--durability", "strict"], 0),
        ("session", "nodes: [{id: a, prompt: '@say x'}, {id: b, prompt: y, handoff: session, depends_on: [a]}]".to_owned(), &[], 0),
    ] {
        let env = TestEnv::new();
        let ran = env.run_graph(&graph, flags);
        assert_eq!(ran.code, code, "{what}: {}\n{}", ran.stdout, ran.stderr);
        let found = contract::violations(&env.run_dir());
        assert!(found.is_empty(), "{what}: {found:#?}");
        let shown: Value = serde_json::from_str(&env.omg(&["show", "latest", "--json"]).exits(0).stdout).unwrap();
        assert_eq!(shown["run"]["status"], if code == 0 { "PASS" } else { "FAIL" }, "{what}");
        assert_eq!(env.omg(&["watch", "latest", "--exit-status"]).code, code, "{what}");
    }
}

#[test]
fn an_interrupted_run_keeps_the_contract() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
    {
        let env = TestEnv::new();
        env.write("g.yaml", "nodes: [{id: a, prompt: '@sleep 50'}, {id: b, prompt: '@sleep 50'}, {id: c, prompt: x, depends_on: [a]}]");
        let run = env.start(&["run", "g.yaml"]);
        env.until("both run", || env.spawns().len() == 2);
        run.signal(signal);
        run.wait().exits(128 + signal.as_raw());
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn a_rehearsal_keeps_the_contract_and_spends_nothing() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes: [{id: a, prompt: x, success_check: {result_matches: '^yes'}}, \
                         {id: b, type: command, command: 'touch ran', depends_on: [a]}]",
    );
    let ran = env.omg(&["rehearse", "g.yaml"]).exits(0);
    says(&ran.stdout, &["PASS (rehearsed)"]);
    assert!(env.spawns().is_empty() && !env.path("ran").exists());
    contract::check_run_dir(&env.run_dir());
    let ran = env.omg(&["rehearse", "g.yaml", "--json"]).exits(0);
    assert!(ran.stdout.lines().all(|line| line.starts_with('{')), "{}", ran.stdout);
}

#[test]
fn a_passed_run_whose_snapshot_lacks_records_is_mended_by_a_resume() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: a, prompt: a}, {id: b, prompt: b, depends_on: [a]}]", &[]).exits(0);
    let file = env.run_dir().join("state.json");
    let mut state = env.state();
    state.as_object_mut().unwrap().remove("nodes");
    fs::write(&file, serde_json::to_string_pretty(&state).unwrap()).unwrap();
    let status = |env: &TestEnv| -> Value {
        let shown = env.omg(&["show", "latest", "--json"]).exits(0).stdout;
        serde_json::from_str::<Value>(&shown).unwrap()["run"]["status"].clone()
    };
    assert_eq!(status(&env), "FAIL");
    env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    assert_eq!((status(&env), env.spawns().len()), ("PASS".into(), 2));
    assert_eq!(env.record("b")["cost_usd"], 0.01);
    contract::check_run_dir(&env.run_dir());
    says(&env.omg(&["resume", "latest", "--retry-failed"]).exits(0).stdout, &["nothing to run again"]);
}

#[test]
fn a_pass_that_is_not_in_the_snapshot_is_told_as_none() {
    let env = TestEnv::new();
    let plant = format!("@sh cd {}/runs/* && rm state.json && mkdir state.json", env.home().display());
    let graph = json!({"nodes": [{"id": "a", "prompt": plant}]});
    let ran = env.run_graph(&graph.to_string(), &[]).exits(1);
    says(&ran.stderr, &["every node passed, but that is not recorded", "--retry-failed"]);
    assert_eq!(env.events_of("run_finished")[0]["outcome"], "failed");
}
