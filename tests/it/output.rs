//! What children print: huge, broken, hostile, empty, and whether it reaches the right place unchanged.

use crate::contract;
use crate::env::{Ran, TestEnv};

/// One prompt node `x`.
fn prompt(directives: &str) -> String {
    check(directives, "{}")
}

/// The same with a success check.
fn check(directives: &str, success: &str) -> String {
    let prompt = serde_json::to_string(directives).unwrap();
    format!("nodes: [{{id: x, prompt: {prompt}, success_check: {success}}}]")
}

/// One command node `x`.
fn command(line: &str) -> String {
    format!("nodes: [{{id: x, type: command, command: {}}}]", serde_json::to_string(line).unwrap())
}

/// Stops the test when a byte that a terminal acts upon is in `text`.
#[track_caller]
fn harmless(what: &str, text: &str) {
    let acted_upon = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(acted_upon), "{what} holds a control character: {text:?}");
}

#[test]
fn b1_a_reply_of_eight_megabytes_is_kept_whole() {
    let env = TestEnv::new();
    env.run_graph(&prompt("@big 8000000"), &[]).exits(0);
    assert_eq!(env.artifact("x").unwrap().len(), 8_000_000);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b2_a_flood_on_standard_error_is_not_held_in_memory() {
    let env = TestEnv::new();
    env.write("g.yaml", prompt("@bigerr 300000000\n@say PASS"));
    let run = env.start(&["run", "g.yaml"]);
    let peak = run.peak_kilobytes();
    run.wait().exits(0);
    assert!(peak > 0 && peak < 100_000, "{peak} kB");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b2_a_flood_on_standard_output_ends_the_node_and_not_the_engine() {
    for (runtime, said) in [("claude", "more than 256 MB"), ("codex", "longer than 256 MB")] {
        let env = TestEnv::new();
        env.write_program(runtime, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nexec cat /dev/zero\n");
        env.write("g.yaml", prompt("hello"));
        let run = env.start(&["run", "g.yaml", "--runtime", runtime]);
        let peak = run.peak_kilobytes();
        run.wait().exits(1);
        let record = env.record("x");
        assert_eq!(
            (&record["cause"], &record["cost_unknown"]),
            (&"output_error".into(), &true.into()),
            "{record}"
        );
        assert!(record["detail"].as_str().unwrap().contains(said), "{record}");
        assert!(peak < 400_000, "{peak} kB");
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn b3_a_pattern_finds_both_ends_of_a_long_check_output() {
    for (first, last) in [("echo MARK;", ""), ("", "; echo MARK")] {
        let env = TestEnv::new();
        let line = format!("{first} head -c 50000000 /dev/zero | tr '\\0' a {last}");
        let success = format!("{{verify: {{command: {line:?}, output_matches: MARK}}}}");
        env.run_graph(&check("@say ok", &success), &[]).exits(0);
        assert_eq!(env.record("x")["provenance"], "verified");
    }
}

#[test]
fn b3_a_long_output_that_lacks_the_pattern_fails() {
    let env = TestEnv::new();
    let success = "{verify: {command: \"head -c 3000000 /dev/zero | tr '\\\\0' a\", output_matches: MARK}}";
    env.run_graph(&check("@say ok", success), &[]).exits(1);
    assert_eq!(env.record("x")["cause"], "verify_failed");
}

#[test]
fn b5_a_reply_with_broken_utf8_is_judged() {
    let env = TestEnv::new();
    env.run_graph(&check("@badutf8", r#"{result_matches: "^a\uFFFD\uFFFDb$"}"#), &[]).exits(0);
    assert_eq!(String::from_utf8(env.artifact("x").unwrap()).unwrap(), "a\u{fffd}\u{fffd}b");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b5_check_output_with_broken_utf8_is_judged() {
    let env = TestEnv::new();
    let success = r#"{verify: {command: "printf '\\377\\376\\200ok'", output_matches: "ok$"}}"#;
    env.run_graph(&check("@say x", success), &[]).exits(0);
    let failing = r#"{verify: {command: "printf '\\377\\376\\200no'; exit 3"}}"#;
    let env = TestEnv::new();
    env.run_graph(&check("@say x", failing), &[]).exits(1);
    let detail = env.record("x")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("no"), "{detail}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b5_b10_codex_lines_with_broken_bytes_and_without_a_last_newline_are_read() {
    let env = TestEnv::new();
    let lines = concat!(
        r#"{"type":"thread.started","thread_id":"t1"}\n"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"a\377b"}}\n"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2}}"#,
    );
    env.write_program("codex", &format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nprintf '{lines}'\n"));
    let ran = env.run_graph(&prompt("hello"), &["--runtime", "codex"]);
    let ran = ran.exits(0);
    assert_eq!(String::from_utf8(env.artifact("x").unwrap()).unwrap(), "a\u{fffd}b");
    assert_eq!(env.record("x")["session_id"], "t1");
    assert!(ran.stdout.contains("output 2"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b6_no_control_character_of_a_child_or_a_file_reaches_a_screen() {
    let env = TestEnv::new();
    let evil = r"\033]0;pwn\007\033[31mred\rover\b\302\233";
    let graph = format!(
        r#"
name: "ev\e]0;il\a"
inputs: [who]
on_fail: continue
nodes:
  - {{id: err, prompt: "@sh printf '{sh}' >&2\n@raw x\n@exit 3"}}
  - {{id: raw, prompt: "@raw \u001b[31mx\r\u009by"}}
  - {{id: reply, prompt: "@ansi", success_check: {{result_matches: never}}}}
  - {{id: envelope, prompt: "@iserror\n@ansi"}}
  - {{id: checked, prompt: "@say x", success_check: {{verify: {{command: "printf '{sh}'; exit 1"}}}}}}
  - {{id: shell, type: command, command: "printf '{sh}'; printf '{sh}' >&2; exit 4"}}
  - {{id: verifying, prompt: "@say {{{{ inputs.who }}}}", success_check: {{verify: {{command: "true '{{{{ inputs.who }}}}'"}}}}}}
"#,
        sh = evil.replace('\\', "\\\\")
    );
    let ran = env.run_graph(&graph, &["--input", "who=\u{1b}[31mwho\u{7}\u{9b}"]).exits(1);
    harmless("run's stdout", &ran.stdout);
    harmless("run's stderr", &ran.stderr);
    for node in ["err", "raw", "reply", "envelope", "checked", "shell"] {
        let record = env.record(node);
        assert_eq!(record["verdict"], "FAIL", "{node}");
        harmless(node, record["detail"].as_str().unwrap());
        harmless_output(&env, &["show", "latest", node]);
    }
    for event in env.events() {
        harmless("the feed", event["detail"].as_str().unwrap_or_default());
    }
    for words in
        [&["show", "latest", "verifying"][..], &["show", "latest"], &["watch", "latest"], &["runs", "list"]]
    {
        harmless_output(&env, words);
    }
    assert_eq!(env.artifact("verifying").unwrap(), "\u{1b}[31mwho\u{7}\u{9b}".as_bytes());
    contract::check_run_dir(&env.run_dir());
}

#[track_caller]
fn harmless_output(env: &TestEnv, words: &[&str]) {
    let ran = env.omg(words).exits(0);
    harmless(&words.join(" "), &ran.stdout);
    harmless(&words.join(" "), &ran.stderr);
}

#[test]
fn b6_what_was_typed_is_shown_harmlessly_in_refusals() {
    let env = TestEnv::new();
    let evil = "e\u{1b}[31m\u{7}vil";
    env.write("g.yaml", "nodes: [{id: \"a\\e[31m\", prompt: x, \"pr\\eompt\": \"\\e]0;\"}]");
    let input = format!("{evil}=1");
    let nul_free: [&[&str]; 7] = [
        &["run", evil],
        &["lint", "g.yaml"],
        &["show", evil],
        &["watch", evil],
        &["run", "g.yaml", evil],
        &[evil],
        &["run", "ok.yaml", "--input", &input],
    ];
    env.write("ok.yaml", prompt("hi"));
    for words in nul_free {
        let ran = env.omg(words).exits(1);
        harmless(&format!("{words:?} stdout"), &ran.stdout);
        harmless(&format!("{words:?} stderr"), &ran.stderr);
    }
}

#[test]
fn b6_names_of_files_and_folders_are_shown_harmlessly() {
    let mut env = TestEnv::new();
    let home = env.home().join("h\u{1b}[31m");
    env.set("OMG_HOME", home.to_str().unwrap());
    let file = "g\u{1b}]0;x\u{7}.yaml";
    env.write(file, prompt("@say x\n@exit 1"));
    for (words, code) in [
        (&["lint", file][..], 0),
        (&["run", file, "--dry-run"], 0),
        (&["rehearse", file], 0),
        (&["run", file], 1),
        (&["show", "latest"], 0),
        (&["show", "nothing"], 1),
        (&["runs", "list"], 0),
        (&["watch", "latest"], 0),
    ] {
        let ran = env.omg(words).exits(code);
        harmless(&format!("{words:?} stdout"), &ran.stdout);
        harmless(&format!("{words:?} stderr"), &ran.stderr);
    }
}

#[test]
fn b6_an_excerpt_of_a_hostile_file_is_harmless() {
    let env = TestEnv::new();
    for graph in
        ["nodes: [{id: a, promt: \"x\u{1b}[31m\u{202e}\u{9b}\u{7f}\"}]", "# \u{1b}[31m\nnodes: 3 # \u{202e}"]
    {
        env.write("g.yaml", graph);
        let ran = env.omg(&["lint", "g.yaml"]).exits(1);
        harmless("the excerpt", &ran.stdout);
        assert!(!ran.stdout.contains('\u{202e}'), "{:?}", ran.stdout);
    }
}

#[test]
fn b7_an_empty_reply_is_no_pass_and_its_price_is_kept() {
    let raw = r#"@raw {"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s","total_cost_usd":0.02,"usage":{"output_tokens":13}}"#;
    let env = TestEnv::new();
    env.run_graph(&prompt(raw), &[]).exits(1);
    let record = env.record("x");
    assert_eq!(record["cause"], "output_error");
    assert_eq!(record["cost_usd"], 0.02);
    assert!(env.artifact("x").is_none());
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b7_no_output_at_all_is_no_pass() {
    let env = TestEnv::new();
    env.run_graph(&prompt("@empty"), &[]).exits(1);
    assert_eq!(env.record("x")["cause"], "output_error");
    assert_eq!(env.record("x")["cost_unknown"], true);
}

#[test]
fn b8_an_error_envelope_with_exit_0_pauses_or_fails_with_its_reply_as_the_cause() {
    let raw = r#"@raw {"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit · resets 3pm","session_id":"s","total_cost_usd":0.02}"#;
    let env = TestEnv::new();
    let ran = env.run_graph(&prompt(raw), &[]).exits(2);
    assert!(ran.stdout.contains("You've hit your limit"), "{}", ran.stdout);
    assert!(env.artifact("x").is_none());
    contract::check_run_dir(&env.run_dir());
    let env = TestEnv::new();
    env.run_graph(&prompt(&raw.replace("hit your limit", "run into a wall")), &[]).exits(1);
    let record = env.record("x");
    assert_eq!(record["verdict"], "FAIL");
    assert!(record["detail"].as_str().unwrap().contains("You've run into a wall"), "{record}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn b10_the_last_line_of_a_check_needs_no_newline() {
    let env = TestEnv::new();
    let success = "{verify: {command: \"seq 1 10000; printf LAST\", output_matches: '10000\\nLAST$'}}";
    env.run_graph(&check("@say x", success), &[]).exits(0);
}

#[test]
fn b10_every_line_of_a_burst_is_in_the_artifact() {
    let env = TestEnv::new();
    env.run_graph(&command("seq 1 10000; printf LAST"), &[]).exits(0);
    let text = String::from_utf8(env.artifact("x").unwrap()).unwrap();
    assert_eq!(text.lines().count(), 10_001);
    assert!(text.ends_with("\n10000\nLAST"));
}

/// A run with colours to show: something passed, something failed, something skipped, a load problem.
fn colourful(env: &TestEnv, flags: &[&str]) -> Vec<Ran> {
    let graph = "on_fail: continue\nnodes: [{id: a, prompt: '@say x'}, {id: b, prompt: '@exit 1'}, \
                 {id: c, prompt: x, depends_on: [b]}]";
    env.write("g.yaml", graph);
    env.write("bad.yaml", "nodes: [{id: a, promt: x}]");
    let commands: [&[&str]; 8] = [
        &["run", "g.yaml"],
        &["show", "latest"],
        &["show", "latest", "b"],
        &["watch", "latest"],
        &["runs", "list"],
        &["lint", "bad.yaml"],
        &["run", "bad.yaml"],
        &["--help"],
    ];
    let with = |words: &[&str]| env.omg(&[words, flags].concat());
    commands.into_iter().map(with).collect()
}

#[test]
fn b13_a_pipe_and_a_wish_for_no_colour_get_no_escape_byte() {
    for (variables, flags) in [
        (&[("TERM", "xterm-256color")][..], &[][..]),
        (&[("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], &[]),
        (&[("TERM", "dumb")], &[]),
        (&[("TERM", "xterm-256color"), ("CLICOLOR_FORCE", "1")], &["--color=never"]),
    ] {
        let mut env = TestEnv::new();
        for (name, value) in variables {
            env.set(name, value);
        }
        for ran in colourful(&env, flags) {
            assert!(!(ran.stdout + &ran.stderr).contains('\u{1b}'), "{variables:?} {flags:?}");
        }
    }
}

#[test]
fn b13_colour_can_be_forced_into_a_pipe() {
    for (variable, flags) in [("CLICOLOR_FORCE", &[][..]), ("IGNORED", &["--color", "always"])] {
        let mut env = TestEnv::new();
        env.set(variable, "1");
        let ran = colourful(&env, flags);
        for at in [0, 1, 3, 4, 5] {
            assert!((ran[at].stdout.clone() + &ran[at].stderr).contains('\u{1b}'), "{variable} {at}");
        }
    }
}

#[test]
fn b14_the_documented_pattern_reads_a_verdict_in_any_dress() {
    for reply in [r"PASS\r\n", "**PASS**", "`PASS`", "PASS", r"\n__PASS__\n"] {
        let env = TestEnv::new();
        let raw = format!(
            r#"@raw {{"type":"result","subtype":"success","is_error":false,"result":"{reply}","session_id":"s","total_cost_usd":0.01}}"#
        );
        env.run_graph(&check(&raw, r"{result_matches: '^[*_`\s]*PASS[*_`\s]*$'}"), &[]).exits(0);
    }
}

#[test]
fn a_command_s_output_is_its_artifact_byte_for_byte() {
    let env = TestEnv::new();
    env.run_graph(&command(r"printf 'a\000b\377\r\n\033[31m'"), &[]).exits(0);
    assert_eq!(env.artifact("x").unwrap(), b"a\0b\xff\r\n\x1b[31m");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_command_s_output_of_fifty_megabytes_is_spooled_not_held() {
    let env = TestEnv::new();
    env.write("g.yaml", command("head -c 50000000 /dev/zero"));
    let run = env.start(&["run", "g.yaml"]);
    let peak = run.peak_kilobytes();
    run.wait().exits(0);
    let artifact = std::fs::metadata(env.run_dir().join("x.out")).unwrap();
    assert_eq!(artifact.len(), 50_000_000);
    assert!(peak > 0 && peak < 60_000, "{peak} kB");
}

#[test]
fn a_command_that_prints_nothing_passes_with_an_empty_artifact() {
    let env = TestEnv::new();
    env.run_graph(&command("true"), &[]).exits(0);
    assert_eq!(env.artifact("x").unwrap(), b"");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn d12_a_feed_that_a_node_takes_away_is_put_back_with_all_it_held() {
    for take in
        ["rm events.jsonl", "ln -sf $PWD/../../victim events.jsonl", "rm events.jsonl; mkfifo events.jsonl"]
    {
        let env = TestEnv::new();
        let victim = env.home().join("victim");
        let graph = format!(
            "nodes:\n  - {{id: a, prompt: \"@sh cd $OMG_HOME/runs/* && touch ../../victim && {take}\\n@say one\"}}\n  \
             - {{id: b, depends_on: [a], prompt: \"@say two\"}}\n"
        );
        let ran = env.run_graph(&graph, &[]).exits(0);
        assert!(ran.stdout.contains("TOTAL COST: $0.0200"), "{}", ran.stdout);
        assert!(ran.stderr.contains("✓ b"), "{}", ran.stderr);
        assert_eq!(std::fs::read(victim).unwrap(), b"");
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn d12_a_link_in_the_place_of_the_run_is_not_followed() {
    let env = TestEnv::new();
    let elsewhere = env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let graph = r#"
nodes:
  - {id: a, prompt: "@sh r=$(echo $OMG_HOME/runs/*); mv $r $r.old; ln -s $PWD/elsewhere $r\n@say owned"}
  - {id: b, depends_on: [a], prompt: "@say never"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert!(ran.stderr.contains("a link stands in the place of"), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
    assert_eq!(env.spawns().len(), 1);
}

#[test]
fn a_write_past_the_limit_on_file_sizes_is_a_full_disk_and_not_the_end_of_the_engine() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes:\n  - {id: a, type: command, command: 'yes | head -c 3000000'}\n  - {id: b, prompt: '@sleep 0.3'}\n",
    );
    let command = env.command(&["run", "--continue-on-fail", "g.yaml"]);
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", "ulimit -f 1000; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = crate::env::Running::of(shell.current_dir(env.work()).stdin(std::process::Stdio::null()))
        .wait()
        .exits(1);
    assert!(ran.row("a").contains("/bin/sh could not be run to its end"), "{}", ran.stdout);
    assert!(ran.row("b").contains("PASS"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}
