//! `omg new`: whatever it writes loads, has nothing that speaks against it, and rehearses to a PASS.

use std::fs;

use crate::env::{Ran, Running, TestEnv};

const SHAPES: [&str; 4] = ["prompt", "check", "review-loop", "report"];

/// Lints and rehearses what was written.
#[track_caller]
fn is_fit(env: &TestEnv, file: &str) {
    let linted = env.omg(&["lint", file]).exits(0);
    assert_eq!(linted.stderr, "", "{file}:\n{}", env.read(file));
    let task = !env.read(file).contains("type: command");
    let words: Vec<&str> = ["rehearse", file]
        .into_iter()
        .chain(task.then_some(["--input", "task=x"]).into_iter().flatten())
        .collect();
    let ran = env.omg(&words).exits(0);
    assert!(!ran.stdout.contains("FAIL"), "{file}: {}", ran.stdout);
}

#[test]
fn every_template_with_every_flag_that_it_takes() {
    let env = TestEnv::new();
    let mut written = 0;
    for shape in SHAPES {
        let checks: &[&str] = match shape {
            "check" => &["cargo test -q"],
            "review-loop" => &["", "cargo test -q", "test \"$(date +%u)\" != 'x' # it's: {a} [b]"],
            _ => &[""],
        };
        let lanes: &[bool] = if shape == "report" { &[false] } else { &[false, true] };
        for (check, lane) in checks.iter().flat_map(|check| lanes.iter().map(move |lane| (check, lane))) {
            written += 1;
            let file = format!("g{written}.yaml");
            let mut words = vec!["new", "--template", shape, "--budget", "0.5", &file];
            if !check.is_empty() {
                words.extend(["--check", check]);
            }
            if *lane {
                words.push("--lane");
            }
            let ran = env.omg(&words).exits(0);
            assert_eq!(ran.stderr, "");
            assert!(ran.stdout.starts_with(&format!("wrote {file} ({shape}, ")), "{}", ran.stdout);
            assert!(ran.stdout.contains(&format!("\nnext: omg rehearse {file}")), "{}", ran.stdout);
            let text = env.read(&file);
            assert_eq!(text.contains("worktree: work"), *lane, "{text}");
            assert_eq!(text.contains("verify:\n"), !check.is_empty(), "{text}");
            is_fit(&env, &file);
        }
    }
    assert_eq!(written, 11);
}

/// What the comment says the graph costs at worst is what comes out when everything goes wrong and is repeated.
#[test]
fn the_comment_tells_how_often_prompts_run_at_worst() {
    let env = TestEnv::new();
    env.omg(&["new", "-t", "review-loop", "--check", "make", "--budget", "1.5", "g.yaml"]).exits(0);
    assert!(env.read("g.yaml").contains("# Spends at worst: 9 executions (9 prompts), $13.50.\n"));
    let script = "nodes:\n  impl: [{verify: {exit: 1}}, {}, {verify: {exit: 1}}, {}, {verify: {exit: 1}}, {}]\n  \
                  review: [{reply: 'no: a.rs:1 is wrong'}]\n";
    env.write("script.yaml", script);
    let words = ["rehearse", "g.yaml", "--input", "task=x", "--script", "script.yaml"];
    env.omg(&words).exits(1);
    let attempts = ["impl", "review"].map(|node| {
        let kept = fs::read_dir(env.run_dir().join("attempts").join(node)).unwrap();
        kept.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "prompt")).count()
    });
    assert_eq!(attempts, [6, 3]);
}

#[test]
fn a_text_is_written_as_it_was_given() {
    let env = TestEnv::new();
    let check = "echo \"it's: done\" # {a} [b] *c &d !e %f";
    env.omg(&["new", "-t", "check", "--check", check, "--name", "no: 1", "g.yaml"]).exits(0);
    env.omg(&["rehearse", "g.yaml", "--input", "task=x"]).exits(0);
    let graph = &env.state()["graph"];
    assert_eq!(graph["name"], "no: 1");
    assert_eq!(graph["nodes"][0]["success_check"]["verify"]["command"], check);
}

#[test]
fn facts_of_ones_own_are_gathered() {
    let env = TestEnv::new();
    env.omg(&["new", "-t", "report", "--gather", "ls -l", "--gather", "uname -s", "g.yaml"]).exits(0);
    let text = env.read("g.yaml");
    assert!(text.contains("command: ls -l\n") && text.contains("depends_on: [fact-1, fact-2]"), "{text}");
    is_fit(&env, "g.yaml");
}

#[test]
fn the_file_is_named_after_the_graph_and_the_graph_after_the_file() {
    let env = TestEnv::new();
    env.omg(&["new", "-t", "prompt", "--name", "nightly"]).exits(0);
    assert!(env.read("nightly.yaml").contains("\nname: nightly\n"));
    env.omg(&["new", "-t", "prompt", "daily.yaml"]).exits(0);
    assert!(env.read("daily.yaml").contains("\nname: daily\n"));
}

#[test]
fn a_name_that_ends_like_a_file_or_begins_like_a_flag_makes_a_command_that_works() {
    let env = TestEnv::new();
    let ran = env.omg(&["new", "-t", "prompt", "--name", "int.yaml"]).exits(0);
    assert!(ran.stdout.contains("omg run int.yaml --input"), "{}", ran.stdout);
    let ran = env.omg(&["new", "-t", "prompt", "--", "-x.yaml"]).exits(0);
    assert!(ran.stdout.contains("then: omg run ./-x.yaml --input"), "{}", ran.stdout);
    is_fit(&env, "./-x.yaml");
}

#[test]
fn nothing_is_written_over_and_misuse_is_one_line() {
    let env = TestEnv::new();
    env.write("mine.yaml", "mine");
    std::os::unix::fs::symlink(env.path("elsewhere"), env.path("link.yaml")).unwrap();
    for (words, told) in [
        (&["-t", "prompt", "mine.yaml"][..], "omg: mine.yaml: it is there already"),
        (&["-t", "prompt", "link.yaml"], "omg: link.yaml: it is there already"),
        (&["-t", "prompt", "no/where.yaml"], "omg: no/where.yaml: cannot be written: No such file"),
        (&["-t", "prompt", "--name", "a/b"], "omg: new: the name \"a/b\" does not name a file"),
        (&["-t", "check", "g.yaml"], "omg: new: --template check needs --check"),
        (
            &["-t", "prompt", "--check", "make", "g.yaml"],
            "omg: new: --check belongs to check and review-loop",
        ),
        (&["-t", "report", "--lane", "g.yaml"], "omg: new: --lane belongs to prompt, check and review-loop"),
        (
            &["-t", "check", "--check", "make", "--gather", "ls", "g.yaml"],
            "omg: new: --gather belongs to report",
        ),
        (&["-t", "loop", "g.yaml"], "omg: --template cannot be \"loop\""),
        (&["-t", "prompt", "--budget", "-1", "g.yaml"], "omg: --budget cannot be \"-1\""),
        (&["-t", "prompt", "--budget", "1e9", "g.yaml"], "omg: --budget cannot be \"1e9\""),
        (&["-t", "prompt", "x.omgtest.yaml"], "omg: x.omgtest.yaml: a file that is named so holds tests"),
        (&["-t", "check", "--check", "a\nb", "g.yaml"], "omg: --check cannot be"),
        (&["g.yaml"], "omg: new: the questions need a terminal"),
        (&[], "omg: new: the questions need a terminal"),
    ] {
        let words: Vec<&str> = ["new"].iter().chain(words).copied().collect();
        let ran = env.omg(&words).exits(1);
        assert_eq!(ran.stdout, "", "{words:?}");
        assert!(ran.stderr.starts_with(told) && ran.stderr.lines().count() <= 2, "{words:?}: {}", ran.stderr);
    }
    assert_eq!(env.read("mine.yaml"), "mine");
    assert!(!env.path("elsewhere").exists() && !env.path("g.yaml").exists());
}

/// The session of a person who types `lines`; `None` where no terminal can be had.
fn answered(env: &TestEnv, words: &str, lines: &str) -> Option<Ran> {
    let mut running = Running::of(&mut env.on_terminal(words)?);
    running.types(lines.as_bytes());
    Some(running.wait())
}

#[test]
fn the_questions_on_a_terminal_lead_to_a_graph() {
    let env = TestEnv::new();
    let Some(ran) = answered(&env, "new", "nothing\n3\nnightly\ncargo test\nmuch\n1.5\ny\n\n") else {
        return;
    };
    let ran = ran.exits(0);
    for told in
        ["\"nothing\" is none of these", "it takes dollars", "File [nightly.yaml]", "wrote nightly.yaml"]
    {
        assert!(ran.stdout.contains(told), "no {told:?} in:\n{}", ran.stdout);
    }
    let text = env.read("nightly.yaml");
    assert!(text.contains("command: cargo test\n") && text.contains("worktree: work"), "{text}");
    assert!(text.contains("budget_usd: 1.5\n"), "{text}");
    is_fit(&env, "nightly.yaml");
}

#[test]
fn what_a_flag_has_answered_is_not_asked() {
    let env = TestEnv::new();
    let Some(ran) = answered(&env, "new --budget 3 --name x x.yaml", "report\n\n") else { return };
    let ran = ran.exits(0);
    for asked in ["Name", "Dollars", "File", "worktree"] {
        assert!(!ran.stdout.contains(asked), "{asked} was asked:\n{}", ran.stdout);
    }
    is_fit(&env, "x.yaml");
}

#[test]
fn answers_that_end_early_write_nothing() {
    let env = TestEnv::new();
    // The end of input, as typed.
    let Some(ran) = answered(&env, "new", "1\n\u{4}") else { return };
    let ran = ran.exits(1);
    assert!(ran.stdout.contains("the answers ended before the questions"), "{}", ran.stdout);
    assert_eq!(fs::read_dir(env.work()).unwrap().count(), 0);
}
