//! What becomes of everything a node starts: nothing outlives it, nothing holds it up, nothing reaches it by accident.
//!
//! Every sleep has a length of its own, by which the test finds it in the process table.

use std::process::Stdio;

use crate::contract;
use crate::env::{OMG, Running, TestEnv};

#[test]
fn a1_a_grandchild_that_holds_the_pipe_holds_nobody_up() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, prompt: "@orphan 325.01\n@say PASS"}]"#;
    let ran = env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.artifact("x").unwrap(), b"PASS");
    let record = env.record("x");
    assert_eq!((&record["verdict"], &record["cost_usd"]), (&"PASS".into(), &0.01.into()));
    assert_eq!(record["leaky"], true, "{record}");
    assert_eq!(ran.row("x").matches("leaky").count(), 1, "{}", ran.stdout);
    env.assert_none_left("sleep 325.01");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a1_a_failure_says_leaky_too() {
    let env = TestEnv::new();
    let graph = r#"nodes: [{id: x, prompt: "@orphan 325.02\n@exit 3"}]"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.record("x")["leaky"], true);
    assert!(ran.row("x").contains("leaky"), "{}", ran.stdout);
    env.assert_none_left("sleep 325.02");
}

#[test]
fn a2_a_quiet_background_child_ends_with_its_node() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: x, prompt: "@sh sleep 325.03 >/dev/null 2>&1 & echo $! > one\n@say PASS"}
  - {id: c, type: command, depends_on: [x], command: "sleep 325.03 >/dev/null 2>&1 & echo $! > two"}
  - {id: late, type: command, depends_on: [c], command: "for child in one two; do kill -0 $(cat $child) 2>/dev/null && echo $child; done > left; true"}
"#;
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.read("left"), "", "a child outlived its node while the run went on");
    env.assert_none_left("sleep 325.03");
}

#[test]
fn a2_children_that_left_their_group_end_too() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: own_session, prompt: "@orphansid 325.041"}
  - {id: forked_twice, type: command, command: "(setsid sleep 325.042 >/dev/null 2>&1 &) & wait; echo ok"}
  - {id: forgot_all, type: command, command: "env -i setsid sleep 325.043 >/dev/null 2>&1 & echo ok"}
  - {id: verified, prompt: "@say PASS", success_check: {verify: {command: "setsid sleep 325.044 & echo ok"}}}
"#;
    let ran = env.run_graph(graph, &[]).exits(0);
    env.assert_none_left("sleep 325.04");
    assert!(ran.row("own_session").contains("leaky"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a3_a_verify_command_is_judged_by_its_exit_and_leaves_nothing() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    prompt: "@say PASS"
    success_check: {verify: {command: "sleep 325.05 & echo ok", timeout: 50s, output_matches: "^ok"}}
"#;
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.record("x")["provenance"], "verified");
    env.assert_none_left("sleep 325.05");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a3_a_verify_command_that_hangs_is_ended_with_all_it_started() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    prompt: "@say PASS"
    success_check: {verify: {command: "trap '' TERM; echo begun; (setsid sleep 325.06 &); sleep 325.06", timeout: 300ms}}
"#;
    env.run_graph(graph, &[]).exits(1);
    let record = env.record("x");
    assert_eq!(record["cause"], "verify_failed");
    assert!(record["judged"].is_null(), "a verification that was cut short has judged nothing: {record}");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("timed out after 300ms") && detail.contains("begun"), "{detail}");
    env.assert_none_left("325.06");
}

#[test]
fn a4_a_node_that_ignores_every_request_is_ended_by_the_whole_ladder() {
    let env = TestEnv::new();
    let graph = r#"
nodes: [{id: x, timeout: 1s, prompt: "@ignoreint\n@ignoreterm\n@orphan 325.07\n@orphansid 325.07\n@sleep 300"}]
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    let record = env.record("x");
    assert_eq!((&record["cause"], &record["cost_unknown"]), (&"timeout".into(), &true.into()));
    assert!(record["judged"].is_null(), "{record}");
    assert!(ran.row("x").contains("unknown"), "{}", ran.stdout);
    assert!(ran.stdout.contains("TOTAL COST: unknown"), "{}", ran.stdout);
    env.assert_none_left("325.07");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a4_a_tree_that_was_ended_is_not_called_leaky() {
    let env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - {id: c, type: command, timeout: 200ms, command: "(trap '' TERM; sleep 325.23; sleep 325.23) | cat"}
  - {id: x, timeout: 200ms, prompt: "@orphan 325.23\n@sleep 300"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    for node in ["c", "x"] {
        assert_eq!(env.record(node)["cause"], "timeout");
        assert!(!ran.row(node).contains("leaky"), "{}", ran.stdout);
    }
    env.assert_none_left("325.23");
}

#[test]
fn a11_children_get_no_descriptor_of_the_engine() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: busy, prompt: "@sleep 0.2"}
  - {id: x, prompt: "@sh ls /proc/self/fd > of_model", success_check: {verify: {command: "ls /proc/self/fd > of_verify"}}}
  - {id: c, type: command, command: "ls /proc/self/fd > of_command"}
"#;
    env.run_graph(graph, &[]).exits(0);
    // What the shell that runs the tests hands to everybody is no business of the engine's.
    let plain = Running::of(env.program("/bin/ls").arg("/proc/self/fd")).wait().stdout;
    for file in ["of_model", "of_verify", "of_command"] {
        assert_eq!(env.read(file), plain, "{file}");
    }
}

#[test]
fn a12_an_open_standard_input_reaches_no_child() {
    for runtime in ["claude", "codex"] {
        let env = TestEnv::new();
        let graph = r#"
nodes:
  - {id: x, prompt: "@readstdin", success_check: {verify: {command: "test -z \"$(cat)\""}}}
  - {id: c, type: command, command: cat}
"#;
        env.write("g.yaml", graph);
        let mut command = env.command(&["run", "--runtime", runtime, "g.yaml"]);
        // The harness holds the writing end until the command has ended.
        command.stdin(Stdio::piped());
        Running::of(&mut command).wait().exits(0);
        assert_eq!(env.artifact("x").unwrap(), b"stdin:", "{runtime}");
        assert_eq!(env.artifact("c").unwrap(), b"", "{runtime}");
    }
}

#[test]
fn i4_no_child_sees_a_billing_key_in_any_spelling() {
    let mut env = TestEnv::new();
    for name in [
        "anthropic_api_key",
        "ANTHROPIC_API_KEY",
        "Anthropic_Auth_Token",
        "ANTHROPIC_AUTH_TOKEN",
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "codex_api_key",
        "OPENAI_API_KEY_2",
    ] {
        env.set(name, "1");
    }
    let graph = r#"
nodes:
  - {id: x, prompt: "@say PASS", success_check: {verify: {command: "env | grep -iE 'api_key|auth_token' > of_verify"}}}
  - {id: c, type: command, command: "env | grep -iE 'api_key|auth_token'"}
"#;
    env.run_graph(graph, &[]).exits(0);
    assert_eq!(env.spawns()[0]["keys"], serde_json::json!(["OPENAI_API_KEY_2"]));
    assert_eq!(env.read("of_verify"), "OPENAI_API_KEY_2=1\n");
    assert_eq!(env.artifact("c").unwrap(), b"OPENAI_API_KEY_2=1\n");
}

#[test]
fn values_of_another_run_are_not_inherited() {
    let mut env = TestEnv::new();
    for name in ["OMG_INPUT_WHO", "OMG_INPUT_OTHER", "OMG_ARTIFACT_A", "OMG_ARTIFACT_FAR"] {
        env.set(name, "stale");
    }
    let graph = r#"
inputs: [who]
nodes:
  - {id: a, type: command, command: "env | grep -E '^OMG_(INPUT|ARTIFACT)_' | sort"}
  - id: b
    depends_on: [a]
    prompt: "@say hi {{ inputs.who }}"
    success_check: {verify: {command: "env | grep -E '^OMG_(INPUT|ARTIFACT)_' | sort > seen"}}
"#;
    env.run_graph(graph, &["--input", "who=Ann"]).exits(0);
    assert_eq!(env.artifact("a").unwrap(), b"OMG_INPUT_WHO=Ann\n");
    let artifact = env.run_dir().join("a.out");
    assert_eq!(env.read("seen"), format!("OMG_ARTIFACT_A={}\nOMG_INPUT_WHO=Ann\n", artifact.display()));
}

#[test]
fn what_may_be_left_running_is_left_and_told() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: server, type: command, leave_running: true, command: "sleep 325.08 & echo up"}
  - {id: agent, leave_running: true, depends_on: [server], prompt: "@orphan 325.081\n@say up"}
  - {id: tidy, type: command, depends_on: [agent], command: "sleep 325.09 & echo done"}
"#;
    let ran = env.run_graph(graph, &[]).exits(0);
    env.assert_none_left("sleep 325.09");
    let left = env.pids_of("sleep 325.08");
    kill(&left);
    assert_eq!(left.len(), 2, "{}", ran.stderr);
    for pid in left {
        assert!(ran.stderr.contains(&format!("pid {pid}")), "{pid}\n{}", ran.stderr);
    }
    assert_eq!(env.artifact("server").unwrap(), b"up\n");
    assert!(env.record("server")["leaky"].is_null(), "asked for, so no leak: {}", env.record("server"));
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn the_check_of_a_server_finds_it_running_and_leaves_it() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: server, type: command, leave_running: true, command: "sleep 325.17 & echo $! > pid", success_check: {verify: {command: "kill -0 $(cat pid); sleep 325.18 & true"}}}
  - {id: agent, leave_running: true, prompt: "@sh sleep 325.17 & echo $! > pid2", success_check: {verify: {command: "kill -0 $(cat pid2)"}}}
  - {id: user, type: command, depends_on: [server, agent], command: "kill -0 $(cat pid) && kill -0 $(cat pid2)"}
"#;
    let ran = env.run_graph(graph, &[]);
    let left = env.pids_of("sleep 325.17");
    kill(&left);
    assert_eq!((ran.code, left.len()), (0, 2), "{}{}", ran.stdout, ran.stderr);
    env.assert_none_left("sleep 325.18");
}

#[test]
fn a_server_that_codex_started_is_left_though_codex_was_not_waited_for() {
    let env = TestEnv::new();
    let events = concat!(
        r#"{"type":"thread.started","thread_id":"t-1"}"#,
        "\n",
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"up"}}"#,
        "\n",
        r#"{"type":"turn.completed"}"#,
        "\n"
    );
    env.write("events", events);
    let graph = r#"nodes: [{id: x, leave_running: true, prompt: "@empty\n@sh setsid sleep 325.21 & cat events; sleep 325.22"}]"#;
    let ran = env.run_graph(graph, &["--runtime", "codex"]).exits(0);
    let left = env.pids_of("sleep 325.21");
    kill(&left);
    assert_eq!(left.len(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("pid {}", left[0])), "{}", ran.stderr);
    env.assert_none_left("sleep 325.22");
}

#[test]
fn a_server_whose_attempt_failed_is_not_left() {
    let env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - id: server
    type: command
    leave_running: true
    command: "sleep 325.19 & echo try >> tries; echo $! > pid.$(wc -l < tries)"
    retry: {max: 1, on: [verify_failed]}
    success_check: {verify: {command: "test $(wc -l < tries) -ge 2 && ! kill -0 $(cat pid.1)"}}
  - {id: hopeless, leave_running: true, prompt: "@sh sleep 325.20 &\n@exit 3"}
"#;
    let ran = env.run_graph(graph, &[]);
    let left = env.pids_of("sleep 325.19");
    kill(&left);
    assert_eq!(env.record("server")["verdict"], "PASS", "{}{}", ran.stdout, ran.stderr);
    assert_eq!(left.len(), 1, "the server of the last attempt: {}", ran.stderr);
    assert!(ran.stderr.contains(&format!("pid {}", left[0])), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("left running").count(), 1, "{}", ran.stderr);
    env.assert_none_left("sleep 325.20");
}

/// Ends what a test left running on purpose.
fn kill(pids: &[i32]) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(*pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
}

#[test]
fn what_is_left_running_may_go_on_writing() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: server, type: command, leave_running: true, command: "(while test ! -e stop; do echo served; sleep 0.01; echo x >> beats; done; touch stopped) & echo up"}
  - {id: user, type: command, depends_on: [server], command: "n=$(wc -l < beats); while test $(wc -l < beats) -lt $((n + 20)); do sleep 0.01; done; touch stop; while test ! -e stopped; do sleep 0.01; done", timeout: 20s}
"#;
    env.run_graph(graph, &[]).exits(0);
    assert!(
        env.artifact("server").unwrap().starts_with(b"up\n")
            || env.artifact("server").unwrap().starts_with(b"served\n")
    );
}

#[test]
fn a_run_inside_a_node_tidies_up_its_own_and_only_its_own() {
    let env = TestEnv::new();
    env.write(
        "inner.yaml",
        r#"nodes: [{id: i, prompt: "@sh setsid sleep 325.10 & echo $! > theirs\n@say inner"}]"#,
    );
    let graph = format!(
        r#"
nodes:
  - id: x
    prompt: |
      @sh sleep 325.11 >/dev/null 2>&1 & echo $! > mine
      @sh {OMG} run inner.yaml > inner.txt 2>&1; echo $? > code
      @sh kill -0 $(cat theirs) 2>/dev/null && echo theirs > left; touch left
      @sh kill -0 $(cat mine) && echo alive > outer
      @say PASS
"#
    );
    env.run_graph(&graph, &[]).exits(0);
    assert_eq!(env.read("code").trim(), "0", "{}", env.read("inner.txt"));
    assert_eq!(env.read("left"), "", "the inner run left a child behind");
    assert_eq!(env.read("outer").trim(), "alive", "the inner run ended what was not its own");
    env.assert_none_left("sleep 325.10");
    env.assert_none_left("sleep 325.11");
    assert_eq!(env.runs().len(), 2);
    env.runs().iter().for_each(|run| contract::check_run_dir(run));
}

#[test]
fn a_run_inside_a_node_ends_with_the_node() {
    let env = TestEnv::new();
    env.write(
        "inner.yaml",
        r#"nodes: [{id: i, prompt: "@orphansid 325.12\n@ignoreint\n@ignoreterm\n@sleep 300.12"}]"#,
    );
    let graph = format!("nodes: [{{id: x, timeout: 2s, prompt: \"@sh {OMG} run inner.yaml\"}}]");
    env.run_graph(&graph, &[]).exits(1);
    env.assert_none_left("sleep 325.12");
    env.assert_none_left("@sleep 300.12");
}

#[test]
fn what_never_stops_writing_holds_nobody_up() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: x, prompt: "@sh yes 325.13 >&2 &\n@say PASS"}
  - {id: c, type: command, command: "(yes 325.13 >&2) & (setsid yes 325.13) & echo ok"}
  - {id: v, prompt: "@say PASS", success_check: {verify: {command: "yes 325.13 & yes 325.13 >&2 & echo ok"}}}
"#;
    let ran = env.run_graph(graph, &[]).exits(0);
    env.assert_none_left("yes 325.13");
    assert!(ran.row("v").contains("leaky"), "{}", ran.stdout);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn what_keeps_forking_is_ended_too() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: c, type: command, command: "setsid sh -c 'while :; do setsid sleep 325.14 & sleep 0.002; done' & sleep 0.1; echo ok"}
"#;
    env.run_graph(graph, &[]).exits(0);
    env.assert_none_left("sleep 325.14");
}

#[test]
fn what_stopped_itself_is_ended_too() {
    let env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - {id: c, type: command, timeout: 300ms, command: "(kill -STOP $$; : 325.15) & sleep 325.15"}
  - {id: o, type: command, command: "setsid sh -c 'kill -STOP $$; : 325.15' & sleep 0.05; echo ok"}
"#;
    let ran = env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.record("c")["cause"], "timeout", "{}", ran.stdout);
    env.assert_none_left("325.15");
}

#[test]
fn a_cli_that_does_not_read_its_prompt_is_no_trouble() {
    let mut env = TestEnv::new();
    let graph = r#"
on_fail: continue
nodes:
  - {id: a, type: command, command: "head -c 3000000 /dev/zero | tr '\\0' Z"}
  - {id: gone, depends_on: [a], prompt: "{{ artifacts.a | inline }}"}
  - {id: deaf, depends_on: [a], timeout: 300ms, cwd: deaf, prompt: "{{ artifacts.a | inline }}"}
"#;
    env.write("deaf/marker", "");
    let script = env.write("own/claude", "#!/bin/sh\ntest -e marker && exec sleep 325.16\nexit 7\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", script.parent().unwrap().display());
    env.set("PATH", &path);
    env.run_graph(graph, &[]).exits(1);
    let gone = env.record("gone");
    assert_eq!(gone["cause"], "output_error", "{gone}");
    assert!(gone["detail"].as_str().unwrap().contains("exit code 7"), "{gone}");
    assert_eq!(env.record("deaf")["cause"], "timeout");
    env.assert_none_left("sleep 325.16");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn what_vanishes_during_a_run_fails_its_node_in_plain_words() {
    let env = TestEnv::new();
    env.write("sub/file", "");
    let graph = r#"
on_fail: continue
nodes:
  - {id: a, type: command, command: "rm -r sub ../bin/claude"}
  - {id: no_cli, depends_on: [a], prompt: "@say hi"}
  - {id: no_place, depends_on: [a], type: command, cwd: sub, command: "echo hi"}
  - {id: check, depends_on: [a], type: command, command: "true", success_check: {verify: {command: "true", cwd: sub}}}
"#;
    let mut command = env.command(&["run", "g.yaml"]);
    env.write("g.yaml", graph);
    let bin = env.home().parent().unwrap().join("bin");
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    Running::of(&mut command).wait().exits(1);
    for (node, cause, word) in [
        ("no_cli", "run_error", "claude"),
        ("no_place", "run_error", "sub"),
        ("check", "verify_failed", "sub"),
    ] {
        let record = env.record(node);
        assert_eq!(
            (&record["cause"], &record["judged"]),
            (&cause.into(), &serde_json::Value::Null),
            "{record}"
        );
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{record}");
        assert!(record["cost_unknown"].is_null(), "nothing was started, so nothing was paid: {record}");
    }
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_timeout_bounds_the_node_and_not_its_check() {
    let env = TestEnv::new();
    let graph = r#"
nodes: [{id: x, timeout: 2s, prompt: "@say PASS", success_check: {verify: {command: "sleep 2.3"}}}]
"#;
    env.run_graph(graph, &[]).exits(0);
}

#[test]
fn a_shortage_of_descriptors_is_told_and_charges_nobody_wrongly() {
    for most in 6..40 {
        let env = TestEnv::new();
        env.write("g.yaml", r#"nodes: [{id: x, prompt: "@say hi"}]"#);
        let mut command = env.shell(&format!("ulimit -n {most}; exec {OMG} run g.yaml"));
        let ran = Running::of(&mut command).wait();
        assert!(ran.code == 0 || ran.code == 1, "{most}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{most}: {}", ran.stderr);
        let record =
            env.runs().first().map(|run| std::fs::read_to_string(run.join("state.json")).unwrap_or_default());
        let record: serde_json::Value = serde_json::from_str(&record.unwrap_or_default()).unwrap_or_default();
        let record = &record["nodes"]["x"];
        if !env.spawns().is_empty() && record.is_object() {
            let told = record["cost_usd"] == 0.01 || record["cost_unknown"] == true;
            assert!(told, "{most}: what was started may have cost something: {record}");
        }
    }
}
