//! `omg doctor`: each finding can be made to appear, says what to do, and decides the exit code.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use crate::env::TestEnv;

/// A place where everything is well: both CLIs answer, both are logged in.
fn healthy() -> TestEnv {
    let env = TestEnv::new();
    env.write_program("claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n");
    env.write_program("codex", "#!/bin/sh\necho 'codex-cli 0.171.0'\n");
    env.write("../user/.claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"sk-secret"}}"#);
    env.write(
        "../user/.codex/auth.json",
        r#"{"tokens":{"refresh_token":"sk-secret"},"OPENAI_API_KEY":null}"#,
    );
    fs::create_dir(env.home()).unwrap();
    fs::set_permissions(env.home(), fs::Permissions::from_mode(0o700)).unwrap();
    env
}

/// What `omg doctor --json` finds, `check level` for each finding that is not ok, with its words.
struct Found(Vec<(String, String)>);

impl Found {
    fn of(env: &TestEnv, words: &[&str], exit: i32) -> Self {
        let words: Vec<&str> = words.iter().chain(&["doctor", "--json"]).copied().collect();
        let ran = env.omg(&words).exits(exit);
        assert!(!ran.stdout.contains("sk-secret"), "{}", ran.stdout);
        let told: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(told["schema"], 1);
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let findings = told["findings"].as_array().unwrap();
        for finding in findings {
            assert_eq!(finding["level"] == "ok", finding.get("remedy").is_none(), "{finding}");
        }
        let line = |it: &Value| {
            let check = format!("{} {}", text(it, "check"), text(it, "level"));
            (check, format!("{} => {}", text(it, "what"), text(it, "remedy")))
        };
        Found(findings.iter().map(line).collect())
    }

    /// Everything that is not well.
    fn amiss(&self) -> Vec<&str> {
        self.0.iter().map(|(check, _)| check.as_str()).filter(|check| !check.ends_with(" ok")).collect()
    }

    fn has(&self, check: &str, words: &str) {
        let is_it = |(found, told): &(String, String)| found == check && told.contains(words);
        assert!(self.0.iter().any(is_it), "no {check} with {words:?} in {:#?}", self.0);
    }
}

/// Checks one thing that was put out of order.
fn check(env: &TestEnv, exit: i32, finding: &str, words: &str) {
    let found = Found::of(env, &[], exit);
    assert_eq!(found.amiss(), [finding], "{:#?}", found.0);
    found.has(finding, words);
}

#[test]
fn a_machine_that_is_well_has_nothing_amiss_and_nothing_is_left_there() {
    let env = healthy();
    let before = env.everything();
    let found = Found::of(&env, &[], 0);
    assert_eq!(found.amiss(), [] as [&str; 0], "{:#?}", found.0);
    for (check, words) in [
        ("claude ok", "2.1.332 (Claude Code) at "),
        ("codex ok", "codex-cli 0.171.0 at "),
        ("login ok", "claude: a subscription"),
        ("login ok", "codex: a subscription"),
        ("git ok", "git version"),
        ("shell ok", "/sh"),
        ("home ok", "written, renamed and locked"),
        ("disk ok", "free at"),
        ("temporary ok", "free at"),
        ("leftovers ok", "ended with it"),
        ("guard ok", "what a killed omg leaves running is ended"),
    ] {
        found.has(check, words);
    }
    assert_eq!(env.everything(), before);
    env.assert_none_left("sleep 60");
}

#[test]
fn the_screen_has_a_row_for_each_finding_and_a_last_word() {
    let env = healthy();
    let ran = env.omg(&["doctor"]).exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("CHECK") && lines[1].starts_with("---"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nguard      ok     what a killed omg"), "{}", ran.stdout);
    assert_eq!(*lines.last().unwrap(), "Runs work here.");
}

#[test]
fn without_any_cli_no_prompt_can_be_asked() {
    let mut env = healthy();
    let bin = env.path("bin");
    fs::create_dir(&bin).unwrap();
    for (name, real) in [("sh", "/bin/sh"), ("sleep", "/bin/sleep"), ("git", "/usr/bin/git")] {
        let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(name))
            .find(|path| path.exists())
            .unwrap_or_else(|| real.into());
        symlink(real, bin.join(name)).unwrap();
    }
    env.set("PATH", &bin.display().to_string());
    check(&env, 1, "runtime problem", "neither claude nor codex is on PATH");
    symlink("/bin/true", bin.join("codex")).unwrap();
    let found = Found::of(&env, &[], 0);
    found.has("claude ok", "not on PATH");
    let found = Found::of(&env, &["--runtime", "claude"], 1);
    found.has("runtime problem", "claude is not on PATH: no prompt can be asked");
    fs::remove_file(bin.join("git")).unwrap();
    Found::of(&env, &[], 0).has("git warning", "worktree: nodes need it => install git");
    fs::remove_file(bin.join("sh")).unwrap();
    let found = Found::of(&env, &[], 1);
    found.has("shell problem", "sh was not found on PATH");
    found.has("guard warning", "sh was not found");
}

#[test]
fn a_cli_that_does_not_answer_or_is_old_is_told() {
    let env = healthy();
    env.write_program("claude", "#!/bin/sh\nexit 3\n");
    check(&env, 0, "claude warning", "did not tell its version: exit code 3");
    env.write_program("claude", "#!/bin/sh\nexec sleep 600\n");
    check(&env, 0, "claude warning", "did not tell its version within 5 s");
    env.assert_none_left("sleep 600");
    env.write_program("claude", "#!/bin/sh\necho '1.0.3 (Claude Code)'\n");
    check(&env, 0, "claude warning", "is older than 2.1.197, the oldest one");
    env.write_program("claude", "#!/bin/sh\necho '2.1.197 (Claude Code)'\n");
    let found = Found::of(&env, &[], 0);
    found.has("claude ok", "it may not know permission_mode manual");
    let found = Found::of(&env, &["--runtime", "codex"], 0);
    assert!(!found.0.iter().any(|(check, _)| check.starts_with("claude")), "{:#?}", found.0);
}

#[test]
fn what_a_cli_says_that_is_no_version_is_told_whatever_it_is() {
    let env = healthy();
    for (script, told) in [
        (":", "did not tell its version: it says nothing"),
        (
            "printf '\\033]0;pwn\\007 hello'",
            "did not tell its version: it says \"\u{241b}]0;pwn\u{2407} hello\"",
        ),
        ("printf '\\377\\376'", "did not tell its version: it says \"\u{fffd}\u{fffd}\""),
        ("exec head -c 300000000 /dev/zero", "did not tell its version: it prints without end"),
    ] {
        env.write_program("claude", &format!("#!/bin/sh\n{script}\n"));
        check(&env, 0, "claude warning", told);
    }
}

#[test]
fn a_cli_that_cannot_be_run_keeps_prompts_from_being_asked() {
    let env = healthy();
    for (program, told) in [
        // As npm installs it, on a machine that lost node.
        (
            "#!/bin/sh\necho 'env: node: No such file' >&2; exit 127\n",
            "cannot be run: exit code 127: env: node: No such file",
        ),
        ("#!/nowhere/node\n", "cannot be run: "),
    ] {
        env.write_program("claude", program);
        // codex is there and answers.
        check(&env, 0, "claude warning", told);
        Found::of(&env, &["--runtime", "claude"], 1).has("claude problem", "=> install claude again");
    }
}

#[test]
fn a_place_for_temporary_files_is_one_that_can_be_written_to() {
    let mut env = healthy();
    env.set("TMPDIR", "relative");
    check(&env, 0, "temporary warning", "TMPDIR is \"relative\"");
    env.set("TMPDIR", "/nowhere");
    check(&env, 0, "temporary warning", "/nowhere: no file can be written there");
    // A limit on the size of files does not end it without a word.
    let line = format!("ulimit -f 0; exec {} doctor --json", crate::env::OMG);
    let ran = crate::env::Running::of(&mut env.shell(&line)).wait();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}

#[test]
fn a_version_is_asked_without_what_no_child_may_see() {
    let mut env = healthy();
    env.write_program("claude", "#!/bin/sh\necho \"2.1.332 key:$ANTHROPIC_API_KEY\"\n");
    env.set("ANTHROPIC_API_KEY", "sk-secret");
    Found::of(&env, &[], 0).has("claude ok", "key: at ");
}

#[test]
fn a_login_is_told_as_far_as_files_tell_it() {
    let mut env = healthy();
    let credentials = env.path("../user/.claude/.credentials.json");
    fs::remove_file(&credentials).unwrap();
    check(&env, 0, "login warning", "claude: cannot be told");
    env.write("../user/.claude.json", r#"{"primaryApiKey":"sk-secret"}"#);
    check(&env, 0, "login warning", "claude: by a key of the Console");
    env.set("CLAUDE_CODE_OAUTH_TOKEN", "sk-secret");
    Found::of(&env, &[], 0).has("login ok", "claude: by CLAUDE_CODE_OAUTH_TOKEN");
    env.write("../user/.codex/auth.json", r#"{"OPENAI_API_KEY":"sk-secret"}"#);
    check(&env, 0, "login warning", "codex: by the API key");
    env.write("../user/.codex/auth.json", "{");
    check(&env, 0, "login warning", "codex: cannot be told");
}

#[test]
fn settings_and_variables_that_change_who_pays_are_told() {
    let mut env = healthy();
    env.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_API_KEY":"sk-secret"}}"#);
    check(&env, 0, "settings warning", ".claude/settings.json sets env.ANTHROPIC_API_KEY");
    fs::remove_file(env.path(".claude/settings.json")).unwrap();
    env.write("../user/.codex/config.toml", "model_provider = \"mine\"");
    check(&env, 0, "settings warning", "config.toml sets model_provider");
    fs::remove_file(env.path("../user/.codex/config.toml")).unwrap();
    env.set("OPENAI_API_KEY", "sk-secret");
    Found::of(&env, &[], 0).has("environment ok", "OPENAI_API_KEY is set; no child of a run is given it");
    env.set("ANTHROPIC_BASE_URL", "http://sk-secret");
    check(&env, 0, "environment warning", "ANTHROPIC_BASE_URL is set");
}

#[test]
fn a_home_that_is_not_private_or_not_usable_is_told() {
    let mut env = healthy();
    let home = env.home();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    check(
        &env,
        0,
        "home warning",
        "is open to others (mode 755): they may see which runs there are => chmod 700",
    );
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    // Only root can give a directory away.
    if std::os::unix::fs::chown(&home, Some(1), None).is_ok() {
        check(&env, 0, "home warning", "belongs to another user");
        std::os::unix::fs::chown(&home, Some(0), None).unwrap();
    }
    symlink(&home, env.path("link")).unwrap();
    env.set("OMG_HOME", &env.path("link").display().to_string());
    check(&env, 0, "home warning", "is a link");
    env.set("OMG_HOME", &env.write("file", "").display().to_string());
    check(&env, 1, "home problem", "is no directory");
    env.set("OMG_HOME", &env.path("new/home").display().to_string());
    Found::of(&env, &[], 0).has("home ok", "will be made by the first run");
    assert!(!env.path("new").exists(), "a look makes nothing");
    env.set("OMG_HOME", "/proc/omg");
    check(&env, 1, "home problem", "cannot be");
}

#[test]
fn an_old_or_broken_git_is_a_matter_of_worktrees_alone() {
    let env = healthy();
    env.write_program("git", "#!/bin/sh\necho git version 2.9.1\n");
    check(&env, 0, "git warning", "git version 2.9.1 is older than 2.17; worktree: nodes need it");
    env.write_program("git", "#!/bin/sh\necho broken >&2; exit 1\n");
    check(&env, 0, "git warning", "broken");
}

#[test]
fn a_shell_that_does_not_work_leaves_nothing_to_try_a_guard_with() {
    let env = healthy();
    env.write_program("sh", "#!/bin/false\n");
    let found = Found::of(&env, &[], 1);
    found.has("shell problem", "-c : does not succeed");
    found.has("leftovers warning", "did not start");
    found.has("guard warning", "it cannot be tried");
}
