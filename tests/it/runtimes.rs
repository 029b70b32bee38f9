//! How the model CLIs are called, and what is made of everything they may answer.

use serde_json::{Value, json};

use crate::contract;
use crate::env::TestEnv;

/// The words of the n-th spawn, its prompt and session named instead of shown.
fn argv(env: &TestEnv, nth: usize) -> Vec<String> {
    let spawn = &env.spawns()[nth];
    let prompt = spawn["prompt"].as_str().unwrap();
    let words = spawn["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let named = |word: &str| match word {
        word if word == prompt => "PROMPT".to_owned(),
        word if uuid::Uuid::parse_str(word).is_ok() => "SESSION".to_owned(),
        word => word.to_owned(),
    };
    words.map(named).collect()
}

fn prompt(env: &TestEnv, nth: usize) -> String {
    env.spawns()[nth]["prompt"].as_str().unwrap().to_owned()
}

const EVERYTHING: &str = r#"
model: small
effort: low
nodes:
  - {id: plain, prompt: "@say plain"}
  - {id: next, depends_on: [plain], handoff: session, prompt: "@say next"}
  - id: full
    depends_on: [next]
    prompt: "@say full"
    permission_mode: plan
    allowed_tools: [Read, "Bash(git *)"]
    model: large
    effort: high
"#;

#[test]
fn claude_is_called_as_documented() {
    let env = TestEnv::new();
    let graph = EVERYTHING.to_owned() + "    budget_usd: 1.50\n    agent: reviewer\n";
    env.run_graph(&graph, &[]).exits(0);
    let said = |nth: usize| argv(&env, nth).join(" ");
    assert_eq!(
        said(0),
        "-p PROMPT --output-format json --permission-mode auto --model small --effort low --session-id SESSION"
    );
    assert_eq!(
        said(1),
        "-p PROMPT --output-format json --permission-mode auto --model small --effort low --resume SESSION"
    );
    assert_eq!(
        said(2),
        "-p PROMPT --output-format json --permission-mode plan --max-budget-usd 1.5 --model large --effort high \
         --agent reviewer --allowedTools Read,Bash(git *) --session-id SESSION"
    );
    assert_eq!(env.record("next")["session_id"], env.record("plain")["session_id"]);
    assert_ne!(env.record("full")["session_id"], env.record("plain")["session_id"]);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn codex_is_called_as_documented() {
    let env = TestEnv::new();
    env.run_graph(EVERYTHING, &["--runtime", "codex"]).exits(0);
    let said = |nth: usize| argv(&env, nth).join(" ");
    let start = "exec --json --color never --skip-git-repo-check --sandbox";
    let never = "--config approval_policy=\"never\"";
    let small = "-m small -c model_reasoning_effort=\"low\"";
    assert_eq!(said(0), format!("{start} workspace-write {never} {small} PROMPT"));
    assert_eq!(said(1), format!("{start} workspace-write {never} {small} resume SESSION PROMPT"));
    assert_eq!(
        said(2),
        format!("{start} read-only {never} -m large -c model_reasoning_effort=\"high\" PROMPT")
    );
    assert_eq!(env.record("next")["session_id"], env.record("plain")["session_id"]);
    assert_eq!(env.state()["runtime"], "codex");
    let started = env.events_of("node_started");
    assert!(started.iter().all(|event| event["session_id"] != Value::Null), "{started:?}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_prompt_that_looks_like_something_else_stays_a_prompt() {
    for start in ["- item", "--help me", "-p", "/cost of it", "/clear"] {
        for runtime in ["claude", "codex"] {
            let env = TestEnv::new();
            let graph = json!({"nodes": [{"id": "x", "prompt": format!("{start}\n@echo")}]}).to_string();
            env.run_graph(&graph, &["--runtime", runtime]).exits(0);
            assert_eq!(prompt(&env, 0), format!("\n{start}\n@echo"), "{runtime}");
        }
    }
    for word in ["help", "review", "resume", "fork"] {
        let env = TestEnv::new();
        env.run_graph(&format!("nodes: [{{id: x, prompt: {word}}}]"), &["--runtime", "codex"]).exits(0);
        assert_eq!(prompt(&env, 0), format!("\n{word}"));
    }
}

#[test]
fn c16_a_prompt_of_any_size_arrives_whole() {
    for runtime in ["claude", "codex"] {
        for size in [119_000, 131_071, 131_072, 3_000_000] {
            let env = TestEnv::new();
            let graph = format!(
                "nodes:\n  - {{id: a, type: command, command: \"head -c {size} /dev/zero | tr '\\\\0' Z\"}}\n  \
                 - {{id: b, depends_on: [a], prompt: \"@say got it\\n{{{{ artifacts.a | inline }}}}\"}}\n"
            );
            env.run_graph(&graph, &["--runtime", runtime]).exits(0);
            let arrived = prompt(&env, 0);
            assert_eq!(arrived.matches('Z').count(), size, "{runtime} {size}");
            let on_argv = argv(&env, 0).contains(&"PROMPT".to_owned());
            assert_eq!(on_argv, size == 119_000, "{runtime} {size}");
            assert_eq!(env.artifact("b").unwrap(), b"got it");
        }
    }
}

#[test]
fn c16_a_nul_byte_in_a_prompt_fails_its_node_before_it_is_paid() {
    for runtime in ["claude", "codex"] {
        let env = TestEnv::new();
        let graph = r#"
nodes:
  - {id: a, type: command, command: "printf 'one\\0two'"}
  - {id: b, depends_on: [a], prompt: "@say {{ artifacts.a | inline }}", retry: {max: 3, on: [run_error]}}
"#;
        env.run_graph(graph, &["--runtime", runtime]).exits(1);
        assert_eq!(env.artifact("a").unwrap(), b"one\0two");
        let record = env.record("b");
        assert!(record["detail"].as_str().unwrap().contains("NUL"), "{record}");
        assert_eq!((&record["cause"], &record["judged"]), (&"setup".into(), &Value::Null), "{record}");
        assert_eq!((&record["cost_usd"], &record["cost_unknown"]), (&0.0.into(), &Value::Null));
        assert!(env.spawns().is_empty() && env.events_of("node_retried").is_empty());
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn every_shape_of_claudes_answer_is_understood() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"s-9","total_cost_usd":0.07,"num_turns":2}"#;
    let early = r#"{"type":"result","subtype":"success","is_error":false,"result":"too early","session_id":"s-9","total_cost_usd":0.03}"#;
    let event = r#"{"type":"assistant","message":{"content":[]}}"#;
    for printed in [
        result.to_owned(),
        format!("\n\n  {result}  \n"),
        format!("[{event},{result}]"),
        format!("[{early},{event},{result}]\n"),
        format!("{early}\n{result}"),
        format!("{event}\n{early}\n{event}\n{result}\n"),
        result.replace(
            '}',
            r#","usage":{"input_tokens":null,"output_tokens":-1},"api_error":{},"api_error_status":"x"}"#,
        ),
    ] {
        let env = TestEnv::new();
        env.write("printed", &printed);
        let ran = env.run_graph(r#"nodes: [{id: x, prompt: "@empty\n@sh cat printed"}]"#, &[]);
        assert_eq!(ran.code, 0, "{printed}\n{}", ran.stdout);
        assert_eq!(env.artifact("x").unwrap(), b"the answer", "{printed}");
        let record = env.record("x");
        assert_eq!((&record["session_id"], &record["cost_usd"]), (&"s-9".into(), &0.07.into()));
    }
}

#[test]
fn what_is_no_answer_is_an_output_error_with_an_unknown_price() {
    for printed in
        ["", "Hello!", "{\"type\":\"result\"", "[]", "[1,2]", "42", "null", "{\"type\":\"system\"}"]
    {
        let env = TestEnv::new();
        env.write("printed", printed);
        let graph = r#"nodes: [{id: x, prompt: "@empty\n@sh cat printed; echo why >&2"}]"#;
        env.run_graph(graph, &[]).exits(1);
        let record = env.record("x");
        assert_eq!(
            (&record["cause"], &record["cost_unknown"]),
            (&"output_error".into(), &true.into()),
            "{printed}: {record}"
        );
        assert!(record["judged"].is_null());
        assert!(record["detail"].as_str().unwrap().contains("why"), "{record}");
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn b8_a_spent_limit_is_no_judgment_is_not_retried_and_says_when_it_ends() {
    for (says, code) in [
        ("You've hit your limit · resets 3pm", 0),
        ("You've hit your session limit · resets 3pm (UTC)", 1),
        ("You've hit your 5-hour limit · resets 3pm (UTC)", 1),
    ] {
        let env = TestEnv::new();
        let result = json!({"type": "result", "subtype": "success", "is_error": true, "result": says,
            "session_id": "s", "total_cost_usd": 0.0, "api_error_status": 429});
        env.write("printed", result.to_string());
        let graph = format!(
            "nodes:\n  - id: x\n    prompt: \"@empty\\n@sh cat printed\\n@exit {code}\"\n    \
             retry: {{max: 3, on: [run_error, nonzero_exit, output_error, result_mismatch]}}\n    \
             success_check: {{result_matches: limit}}\n"
        );
        let ran = env.run_graph(&graph, &[]).exits(2);
        assert_eq!(env.spawns().len(), 1, "{says}");
        assert!(env.record("x").is_null(), "it counts as not run");
        assert!(ran.stdout.contains("resets 3pm"), "{}", ran.stdout);
        contract::check_run_dir(&env.run_dir());
    }
}

#[test]
fn an_overload_of_the_server_is_no_limit() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - id: x
    prompt: "@iserror\n@say API Error: Server is temporarily limiting requests (not your usage limit)\n@exit 1"
    retry: {max: 1, on: [nonzero_exit]}
"#;
    env.run_graph(graph, &[]).exits(1);
    assert_eq!(env.spawns().len(), 2);
}

/// A codex node whose whole output is `events`.
fn codex(events: &str) -> (TestEnv, Value) {
    let env = TestEnv::new();
    env.write("events", events);
    env.run_graph(r#"nodes: [{id: x, prompt: "@empty\n@sh cat events"}]"#, &["--runtime", "codex"]);
    contract::check_run_dir(&env.run_dir());
    let record = env.record("x");
    (env, record)
}

const THREAD: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
const DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":2}}"#;

fn message(text: &str) -> String {
    format!("{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"{text}\"}}}}")
}

#[test]
fn codex_answers_with_its_last_message_whatever_else_it_reports() {
    let noise = r#"{"type":"error","message":"Reconnecting... 2/5"}
{"type":"item.completed","item":{"type":"error","message":"Model metadata not found"}}
{"type":"something.new","value":[1],"usage":"?","thread_id":7}
{"type":"item.completed","item":{"type":"command_execution","exit_code":1,"status":"failed"}}"#;
    // The last line has no newline (case B10).
    let (env, record) =
        codex(&format!("{THREAD}\n{}\n{noise}\n{}\n{DONE}", message("draft"), message("final")));
    assert_eq!(record["verdict"], "PASS", "{record}");
    assert_eq!(env.artifact("x").unwrap(), b"final");
    assert_eq!((&record["session_id"], &record["usage"]["input_tokens"]), (&"t-1".into(), &9.into()));
    assert_eq!(record["cost_unknown"], true);
}

#[test]
fn a_failed_turn_of_codex_fails_the_node_also_at_exit_0() {
    let failed =
        r#"{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. Try again at 8:25 AM."}}"#;
    let (env, record) = codex(&format!("{THREAD}\n{}\n{failed}\n", message("half")));
    assert_eq!((&record["verdict"], &record["cause"]), (&"FAIL".into(), &"nonzero_exit".into()));
    assert!(record["judged"].is_null());
    assert!(record["detail"].as_str().unwrap().contains("Try again at 8:25 AM."), "{record}");
    assert!(env.artifact("x").is_none());
}

#[test]
fn what_is_no_turn_of_codex_is_an_output_error() {
    let reply = message("hi");
    for (events, why) in [
        (String::new(), "no output"),
        (format!("{THREAD}\n{reply}\n"), "end of the turn"),
        (format!("{reply}\n{DONE}\n"), "thread"),
        (format!("{THREAD}\nnot json\n{reply}\n{DONE}\n"), "line 2"),
        (format!("{THREAD}\n{DONE}\n"), "empty"),
    ] {
        let (_, record) = codex(&events);
        assert_eq!(record["cause"], "output_error", "{events}: {record}");
        assert!(record["detail"].as_str().unwrap().contains(why), "{why}: {record}");
    }
}

#[test]
fn codex_must_resume_the_thread_it_was_asked_to() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: root, prompt: "@session t-root\n@tokens 100 20"}
  - {id: next, depends_on: [root], handoff: session, prompt: "@session t-other\n@tokens 30 4"}
"#;
    env.run_graph(graph, &["--runtime", "codex"]).exits(1);
    let record = env.record("next");
    assert_eq!((&record["cause"], &record["judged"]), (&"run_error".into(), &Value::Null));
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("t-root") && detail.contains("t-other"), "{record}");
    assert_eq!(record["usage"]["input_tokens"], 30, "a new thread has used what it says, no less: {record}");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_cli_that_is_not_there_is_missed_before_anything_is_paid() {
    for runtime in ["claude", "codex"] {
        let mut env = TestEnv::new();
        let bin = env.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
        env.set("PATH", bin.to_str().unwrap());
        let graph = r#"
nodes:
  - {id: prepare, type: command, command: ": > spent"}
  - {id: think, depends_on: [prepare], prompt: "@say hi"}
"#;
        let ran = env.run_graph(graph, &["--runtime", runtime]).exits(1);
        assert!(ran.stderr.contains("\"think\"") && ran.stderr.contains(runtime), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: install"), "{}", ran.stderr);
        assert!(!env.path("spent").exists());
        assert!(env.runs().is_empty(), "a run that was refused leaves nothing");
    }
}

#[test]
fn a_graph_of_commands_needs_no_cli() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/bin:/bin");
    env.run_graph("nodes: [{id: c, type: command, command: echo hi}]", &[]).exits(0);
    assert_eq!(env.artifact("c").unwrap(), b"hi\n");
}

#[test]
fn a_cli_that_cannot_be_executed_is_missed_too() {
    let mut env = TestEnv::new();
    env.write("bin/claude", "not a program");
    let path = format!("{}:/usr/bin:/bin", env.path("bin").display());
    env.set("PATH", &path);
    let ran = env.run_graph(r#"nodes: [{id: x, prompt: "hi"}]"#, &[]).exits(1);
    assert!(ran.stderr.contains("claude") && ran.stderr.contains("\"x\""), "{}", ran.stderr);
    assert!(env.runs().is_empty());
}

#[test]
fn g6_a_missing_directory_is_refused_before_anything_is_paid() {
    let env = TestEnv::new();
    env.write("file", "");
    for (cwd, why) in [
        ("/nonexistent", "does not exist"),
        ("nowhere", "does not exist"),
        ("file", "not a directory"),
        ("{{ inputs.dir }}", "does not exist"),
    ] {
        let graph = format!(
            "nodes:\n  - {{id: first, prompt: \"@say paid\"}}\n  - {{id: lost, cwd: \"{cwd}\", prompt: \"@say hi\"}}\n"
        );
        let flags: &[&str] =
            if cwd.contains("inputs") { &["--input", "dir=/nonexistent/there"] } else { &[] };
        let ran = env.run_graph(&graph, flags).exits(1);
        assert!(ran.stderr.contains("\"lost\"") && ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert!(env.spawns().is_empty() && env.runs().is_empty());
}

#[test]
fn a_directory_is_where_the_node_and_its_check_run() {
    let env = TestEnv::new();
    env.write("sub/here", "");
    let graph = r#"
inputs: [dir]
nodes:
  - id: x
    cwd: "{{ inputs.dir }}"
    prompt: "@sh pwd > where"
    success_check: {verify: {command: "test -e here && test -e where"}}
  - {id: c, type: command, cwd: sub, depends_on: [x], command: pwd}
"#;
    env.run_graph(graph, &["--input", "dir=sub"]).exits(0);
    let sub = format!("{}\n", env.path("sub").display());
    assert_eq!(env.read("sub/where"), sub);
    assert_eq!(String::from_utf8(env.artifact("c").unwrap()).unwrap(), sub);
}

#[test]
fn an_agent_is_refused_where_the_runtime_has_none() {
    let env = TestEnv::new();
    let graph = r#"
nodes:
  - {id: one, agent: reviewer, prompt: "@say hi"}
  - {id: two, prompt: "@say hi"}
  - {id: three, agent: other, prompt: "@say hi"}
"#;
    let ran = env.run_graph(graph, &["--runtime", "codex"]).exits(1);
    assert!(
        ran.stderr.contains("one") && ran.stderr.contains("three") && !ran.stderr.contains("two"),
        "{}",
        ran.stderr
    );
    assert!(env.spawns().is_empty() && env.runs().is_empty());
}

#[test]
fn what_a_claude_or_its_user_cannot_do_is_told_before_anything_is_spent() {
    let mut env = TestEnv::new();
    env.write_program("claude", "#!/bin/sh\necho '2.1.197 (Claude Code)'\n");
    env.write(
        "g.yaml",
        "nodes: [{id: x, prompt: hi, permission_mode: manual}, {id: y, prompt: hi, permission_mode: bypassPermissions}]",
    );
    let warned =
        |env: &TestEnv, words: &str| env.omg(&["run", "g.yaml", "--dry-run"]).exits(0).stderr.contains(words);
    let manual = "node \"x\": claude 2.1.197 (Claude Code) may not know permission_mode manual; update it or use dontAsk";
    assert!(warned(&env, manual));
    let root = "node \"y\": claude refuses bypassPermissions for root unless IS_SANDBOX=1 is set";
    assert_eq!(warned(&env, root), rustix::process::geteuid().is_root());
    env.set("IS_SANDBOX", "1");
    assert!(!warned(&env, root));
    env.write_program("claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n");
    assert!(!warned(&env, "may not know"));
}

#[test]
fn settings_that_change_who_pays_are_told() {
    let env = TestEnv::new();
    let settings = r#"{"env":{"ANTHROPIC_API_KEY":"sk-secret"}}"#;
    env.write("../user/.claude/settings.json", settings);
    env.write("project/.claude/settings.json", r#"{"apiKeyHelper":"x"}"#);
    env.write("broken/.claude/settings.json", "{");
    let graph = r#"
inputs: [dir]
nodes:
  - {id: x, cwd: "{{ inputs.dir }}", prompt: "@say hi"}
  - {id: y, cwd: broken, prompt: "@say hi"}
  - {id: g, type: gate}
"#;
    let ran = env.run_graph(graph, &["--input", "dir=project"]).exits(2);
    let told = |stderr: &str| {
        for words in [
            "user/.claude/settings.json sets env.ANTHROPIC_API_KEY: claude bills a key",
            "project/.claude/settings.json sets apiKeyHelper",
            "broken/.claude/settings.json is not JSON (line 1, column 1)",
        ] {
            assert_eq!(stderr.matches(words).count(), 1, "{words}: {stderr}");
        }
        assert!(!stderr.contains("sk-secret"), "{stderr}");
    };
    told(&ran.stderr);
    let words = ["resume", "latest", "--approve", "g"];
    let elsewhere = env.command(&words).current_dir(env.home()).output().unwrap();
    assert!(elsewhere.status.success());
    told(&String::from_utf8_lossy(&elsewhere.stderr));
}

#[test]
fn settings_are_of_no_concern_where_no_model_is_asked() {
    let env = TestEnv::new();
    env.write(".claude/settings.json", r#"{"apiKeyHelper":"x"}"#);
    let ran = env.run_graph("nodes: [{id: x, type: command, command: 'true'}]", &[]).exits(0);
    assert!(!ran.stderr.contains("apiKeyHelper"), "{}", ran.stderr);
    env.write("../user/.codex/config.toml", "model_provider = \"mine\"");
    let ran = env.run_graph(r#"nodes: [{id: x, prompt: "@say hi"}]"#, &["--runtime", "codex"]).exits(0);
    assert!(
        ran.stderr.contains("user/.codex/config.toml sets model_provider: codex sends"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("apiKeyHelper"), "another CLI's: {}", ran.stderr);
}

#[test]
fn codex_is_not_waited_for_once_its_turn_is_over() {
    let env = TestEnv::new();
    env.write("events", format!("{THREAD}\n{}\n{DONE}\n", message("done")));
    let graph = r#"nodes: [{id: x, prompt: "@empty\n@sh cat events; sleep 341.40\n@exit 3"}]"#;
    env.run_graph(graph, &["--runtime", "codex"]).exits(0);
    assert_eq!(env.artifact("x").unwrap(), b"done");
    env.assert_none_left("sleep 341.40");
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn a_failed_turn_of_codex_is_retried_like_any_failure() {
    let env = TestEnv::new();
    env.write("events", format!("{THREAD}\n{{\"type\":\"turn.failed\",\"error\":\"overloaded\"}}\n"));
    let graph = r#"
nodes: [{id: x, prompt: "@say good\n@on 1 empty\n@on 1 sh cat events\n@on 1 exit 1", retry: {max: 1, on: [nonzero_exit]}}]
"#;
    env.run_graph(graph, &["--runtime", "codex"]).exits(0);
    assert_eq!(env.artifact("x").unwrap(), b"good");
    let prompts: Vec<_> = env.spawns().iter().map(|spawn| spawn["prompt"].clone()).collect();
    assert_eq!(prompts[0], prompts[1], "what was not judged is not quoted");
    contract::check_run_dir(&env.run_dir());
}
