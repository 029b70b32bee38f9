//! From a goal to a plan: what is asked, what is refused before and after it is paid, what is kept (FACTS 12, Auto).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{graph, node, place, planning, spawns};
use crate::contract;
use crate::env::TestEnv;

const WIDE: &str = r#"{"nodes": [{"id": "a", "prompt": "x", "allowed_tools": ["Bash(*)"]}]}"#;

/// The only directory of plans.
fn plan_dir(env: &TestEnv) -> std::path::PathBuf {
    let plans: Vec<_> =
        fs::read_dir(env.home().join("plans")).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(plans.len(), 1, "{plans:?}");
    plans.into_iter().next().unwrap()
}

#[test]
fn a_goal_is_planned_shown_and_run_and_its_planning_counts() {
    let env = planning(&[
        node("work", &[], "@say made"),
        node("check", &["work"], "@say PASS {{ artifacts.work }}"),
    ]);
    let ran = env.omg(&["auto", "make it good", "--verify-cmd", "test -d ."]).exits(0);
    let shown = [
        "Planning a graph for goal \"make it good\" (run ",
        "Plan \"planned\": 2 nodes, planned for $0.0100",
        "graph.json",
        "  - work [tools: Read, Bash(git *)]",
        "  - check (after work) [tools: Read, Bash(git *)]",
        "Ceiling: ",
        "Build evidence: when check is done the engine runs 'test -d .' (at most 10m0s)",
        "Running graph \"planned\"",
        "PLANNING COST: $0.0100",
        "TOTAL COST: $0.0300",
    ];
    let mut rest = ran.stdout.as_str();
    for words in shown {
        let at =
            rest.find(words).unwrap_or_else(|| panic!("{words} is not where it belongs: {}", ran.stdout));
        rest = &rest[at + words.len()..];
    }
    assert_eq!(env.record("check")["provenance"], "verified");
    assert_eq!(env.record("work")["provenance"], "exit-only");
    let state = env.state();
    assert_eq!(
        (state["planning_cost_usd"].clone(), state["build_evidence"].clone()),
        (json!(0.01), json!({"answer": "attached"}))
    );
    let starts = env.events_of("run_started");
    assert_eq!(
        (starts.len(), &starts[0]["phase"], &starts[1]["cost_usd"]),
        (2, &json!("planning"), &json!(0.01))
    );
    let list = env.omg(&["runs", "list"]).exits(0);
    assert!(list.stdout.contains("TOTAL COST: $0.0300"), "{}", list.stdout);
    contract::check_run_dir(&env.run_dir());
}

#[test]
fn auto_10_where_something_builds_evidence_is_asked_for_before_anything_else() {
    let env = planning(&[node("a", &[], "@say done")]);
    env.write("go.mod", "");
    for flags in [&["auto", "a goal"][..], &["auto", "a goal", "--plan-only"]] {
        let ran = env.omg(flags).exits(3);
        assert!(
            ran.stdout.contains("go.mod") && ran.stdout.contains("--verify-cmd") && ran.stderr.is_empty(),
            "{}",
            ran.stdout
        );
    }
    assert!(env.spawns().is_empty() && !env.home().exists());
    let ran = env.omg(&["auto", "a goal", "--accept-no-build-evidence"]).exits(0);
    assert!(ran.stdout.contains("Build evidence: NONE, go.mod found"), "{}", ran.stdout);
    let (before, _) = ran.stdout.split_once("Planning a graph").unwrap();
    assert!(before.contains("The run records that --accept-no-build-evidence was given."), "{before}");
    let evidence =
        json!({"answer": "declared", "declared_by": "--accept-no-build-evidence", "signals": ["go.mod"]});
    assert_eq!(env.state()["build_evidence"], evidence);
    let ran = env.omg(&["auto", "a goal", "--verify-cmd", "true"]).exits(0);
    assert!(!ran.stdout.contains("Build evidence: NONE"), "{}", ran.stdout);
    let last = fs::read(env.runs().pop().unwrap().join("state.json")).unwrap();
    let state: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!(state["build_evidence"], json!({"answer": "attached", "signals": ["go.mod"]}));
}

#[test]
fn what_is_particular_to_a_run_is_told_before_its_planner_is_asked() {
    let env = planning(&[node("a", &[], "@say done")]);
    env.write("../user/.claude/settings.json", r#"{"apiKeyHelper": "x"}"#);
    let before = |words: &[&str]| {
        let ran = env.omg(words).exits(0);
        assert_eq!(ran.stderr.contains("sets apiKeyHelper"), !words.contains(&"codex"), "{}", ran.stderr);
        ran.stdout.split_once("Planning a graph").unwrap().0.to_owned()
    };
    let none = "Nothing that builds was recognised in this directory.";
    let told = before(&["auto", "a goal"]);
    assert!(told.contains(none) && !told.contains("configuration"), "{told}");
    let told = before(&["auto", "a goal", "--accept-loaded-user-config"]);
    assert!(told.contains("Planned nodes will load your own configuration of the CLI"), "{told}");
    let told = before(&["--runtime", "codex", "auto", "a goal", "--plan-only"]);
    assert!(told.contains("codex: planned nodes get no agents and no skills of yours"), "{told}");
}

#[test]
fn auto_7_and_8_what_is_wrong_with_the_command_line_is_told_before_any_spend() {
    let env = planning(&[node("a", &[], "@say done")]);
    for (words, told) in [
        (&["auto", "  "][..], "the goal is blank"),
        (&["auto", "fix", "the", "bug"], "one argument too many"),
        (&["auto", "x", "--verify-cmd", "nosuch"], "nosuch was not found on PATH"),
        (&["auto", "x", "--verify-cmd", " "], "--verify-cmd is blank"),
        (&["auto", "x", "--verify-timeout", "1m"], "bounds nothing"),
        (&["auto", "x", "--verify-cmd", "true", "--verify-timeout", "11m"], "more than the 10m"),
        (&["auto", "x", "--verify-cmd", "cat {{ artifacts.a }}"], "{{ artifacts.a }}"),
        (&["auto", "x", "--verify-cmd", "true", "--accept-no-build-evidence"], "--accept-no-build-evidence"),
        (&["auto", "x", "--input", "nothing"], "NAME=VALUE"),
        (&["auto", "x", "--concurrency", "-1"], "--concurrency -1"),
    ] {
        let ran = env.omg(words).exits(1);
        assert!(ran.stderr.contains(told), "{words:?}: {}", ran.stderr);
    }
    assert!(env.spawns().is_empty() && !env.home().join("runs").exists());
}

#[test]
fn auto_57_a_plan_that_is_refused_twice_fails_the_run_and_is_kept() {
    let env = place(WIDE, WIDE);
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert!(ran.stderr.contains("the plan was refused") && ran.stderr.contains("Bash(*)"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("TOTAL COST: $0.0200") && ran.stdout.contains("rejected.json"),
        "{}",
        ran.stdout
    );
    assert_eq!(env.spawns().len(), 2);
    let kept: Value =
        serde_json::from_slice(&fs::read(env.run_dir().join("rejected.json")).unwrap()).unwrap();
    assert_eq!(kept["nodes"][0]["allowed_tools"][0], "Bash(*)");
    assert!(!env.run_dir().join("graph.json").exists() && !env.run_dir().join("state.json").exists());
    let kinds: Vec<Value> = env.events().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(kinds, ["run_started", "run_finished"]);
    let last = env.events().pop().unwrap();
    assert_eq!((&last["outcome"], &last["cost_usd"]), (&json!("failed"), &json!(0.02)));
    let list = env.omg(&["runs", "list"]).exits(0);
    assert!(list.stdout.contains("FAIL") && list.stdout.contains("0.0200"), "{}", list.stdout);
    let shown = env.omg(&["show", "latest"]).exits(0);
    assert!(shown.stdout.contains("\"Bash(*)\" is not one of"), "it says why: {}", shown.stdout);
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(1);
    assert!(ran.stderr.contains("plan the goal again") && ran.stderr.contains("Bash(*)"), "{}", ran.stderr);
}

#[test]
fn a_refused_plan_buys_one_corrected_reply_which_is_told() {
    let env = place(WIDE, &graph(&[node("a", &[], "@say done")]).to_string());
    let ran = env.omg(&["auto", "a goal"]).exits(0);
    assert!(
        ran.stdout.contains("Planned twice: the first reply was refused and cost $0.0100"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("  ! node \"a\": allowed_tools: \"Bash(*)\""), "{}", ran.stdout);
    let (planner, _) = spawns(&env);
    let again = planner[1]["prompt"].as_str().unwrap();
    assert!(
        again.starts_with(planner[0]["prompt"].as_str().unwrap())
            && again.contains("\"Bash(*)\" is not one of")
    );
    assert_eq!(env.state()["planning_cost_usd"], 0.02);
}

#[test]
fn what_the_planner_was_asked_and_said_can_be_read_back_private_and_harmless() {
    let plan = graph(&[node("planner", &[], "@say done\u{1b}[31m")]).to_string();
    let env = place("{\"nodes\": [{\"id\": \"a\u{202e}b\"}]}\u{7}", &plan);
    env.omg(&["auto", "a goal"]).exits(0);
    let folder = env.run_dir().join("attempts/omg~planner");
    for name in ["1-0-1.prompt", "1-0-1.reply", "1-0-2.prompt", "1-0-2.reply"] {
        assert_eq!(fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    contract::check_run_dir(&env.run_dir());
    let ran = env.omg(&["show", "latest", "planner"]).exits(0);
    assert!(
        ran.stdout.starts_with("Node planner of run "),
        "a node of that name comes first: {}",
        ran.stdout
    );
    let ran = env.omg(&["show", "latest", "omg/planner"]).exits(0);
    assert!(ran.stdout.contains("You plan work"), "{}", ran.stdout);

    let env = place(WIDE, "no\u{7}");
    env.omg(&["auto", "a goal"]).exits(1);
    let ran = env.omg(&["show", "latest"]).exits(0);
    let told = [
        "goal \"a goal\"\n",
        "no node has a record yet: the planner's reply holds no JSON object",
        " planner\n",
    ];
    assert!(told.iter().all(|told| ran.stdout.contains(told)), "{}", ran.stdout);
    let ran = env.omg(&["show", "latest", "planner"]).exits(0);
    let mut rest = ran.stdout.as_str();
    for words in [
        "The planner of run ",
        "cost $0.0200\n",
        "call 1\n--- prompt\nYou plan work",
        "--- reply\n",
        "\"Bash(*)\"",
        "call 2\n",
        "Your last reply was refused",
        "--- reply\nno␇\n",
    ] {
        let at =
            rest.find(words).unwrap_or_else(|| panic!("{words:?} is not where it belongs: {}", ran.stdout));
        rest = &rest[at + words.len()..];
    }
    let json: Value =
        serde_json::from_str(&env.omg(&["show", "latest", "planner", "--json"]).exits(0).stdout).unwrap();
    assert_eq!((json["attempts"].as_array().unwrap().len(), &json["node_id"]), (2, &json!("omg/planner")));
    assert!(env.omg(&["show", "latest", "assessor"]).exits(1).stderr.contains("has no node \"assessor\""));
}

#[test]
fn auto_58_a_reply_of_the_wrong_type_is_kept_and_buys_nothing() {
    let env = place(r#"{"nodes": "x"}"#, "no");
    env.omg(&["auto", "a goal"]).exits(1);
    assert_eq!(env.spawns().len(), 1);
    assert!(env.run_dir().join("rejected.json").exists());
}

#[test]
fn a_preview_is_no_run_and_its_plan_can_be_run() {
    let env = planning(&[node("a", &[], "@say done")]);
    let ran = env.omg(&["auto", "a goal", "--plan-only", "--verify-cmd", "true"]).exits(0);
    assert!(ran.stdout.contains("Nothing was run. 1 planner call was paid, $0.0100"), "{}", ran.stdout);
    assert!(!env.home().join("runs").exists());
    let path = plan_dir(&env).join("graph.json");
    env.omg(&["run", path.to_str().unwrap()]).exits(0);
    assert_eq!(env.record("a")["provenance"], "verified");
}

#[test]
fn a_preview_that_was_planned_twice_says_so() {
    let env = place(WIDE, &graph(&[node("a", &[], "@say done")]).to_string());
    let ran = env.omg(&["auto", "a goal", "--plan-only"]).exits(0);
    assert!(ran.stdout.contains("Nothing was run. 2 planner calls were paid, $0.0200"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Planned twice: "), "{}", ran.stdout);
}

/// Makes the planner put a directory in the place of a file of its run, and answer so.
fn blocked(file: &str, reply: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let block = format!("mkdir -p $(ls -d $OMG_HOME/runs/*)/{file}/x");
    let cues = env.write("cues", format!("You plan work => @sh {block}\nYou plan work => @say {reply}\n"));
    env.set("FAKE_CUES", cues.to_str().unwrap());
    env
}

#[test]
fn a_plan_that_cannot_be_kept_is_not_run_and_its_price_is_recorded() {
    let env = blocked("graph.json", &graph(&[node("a", &[], "@say done")]).to_string());
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert!(ran.stderr.contains("the plan was paid for and cannot be kept: "), "{}", ran.stderr);
    assert_eq!(env.spawns().len(), 1, "the planner alone");
    let last = env.events().pop().unwrap();
    assert_eq!((&last["outcome"], &last["cost_usd"]), (&json!("failed"), &json!(0.01)));
}

#[test]
fn a_refused_reply_that_cannot_be_kept_is_refused_all_the_same() {
    let env = blocked("rejected.json", WIDE);
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert!(ran.stderr.contains("note: the refused reply cannot be kept: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("the plan was refused") && !ran.stdout.contains("is kept"), "{}", ran.stdout);
    assert_eq!(env.events().pop().unwrap()["cost_usd"], 0.02);
}

#[test]
fn a_refused_preview_is_kept_with_the_plans() {
    let env = place(WIDE, WIDE);
    env.omg(&["auto", "a goal", "--plan-only"]).exits(1);
    assert!(plan_dir(&env).join("rejected.json").exists() && !env.home().join("runs").exists());
}

#[test]
fn while_it_is_planned_a_run_says_so_and_a_signal_ends_it() {
    let mut env = TestEnv::new();
    let cues = env.write("cues", "You plan work => @touch asked\nYou plan work => @sleep 600\n");
    env.set("FAKE_CUES", cues.to_str().unwrap());
    let running = env.start(&["auto", "a goal"]);
    env.until("the planner runs", || env.path("asked").exists());
    let list = env.omg(&["runs", "list"]).exits(0);
    assert!(list.stdout.contains("PLANNING"), "{}", list.stdout);
    running.signal(Signal::INT);
    let ran = running.wait().exits(130);
    assert!(ran.stderr.contains("interrupted by SIGINT while it was being planned"), "{}", ran.stderr);
    let last = env.events().pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("run_finished"), &json!("failed")));
    assert_eq!(last["cost_unknown"], true, "nobody knows what it had cost");
    let list = env.omg(&["runs", "list"]).exits(0);
    assert!(list.stdout.contains("FAIL"), "{}", list.stdout);
    env.assert_none_left("sleep 600");
}

#[test]
fn a8_the_guard_ends_a_planner_whose_engine_was_killed() {
    for flags in [&[][..], &["--plan-only"]] {
        let mut env = TestEnv::new();
        let cues = env.write("cues", "You plan work => @sh touch asked; sleep 600\n");
        env.set("FAKE_CUES", cues.to_str().unwrap());
        let running = env.start(&[&["auto", "a goal"], flags].concat());
        env.until("the planner runs", || env.path("asked").exists());
        running.kill();
        env.until("the guard has ended it", || env.pids_of("sleep 600").is_empty());
        env.until("the guard is gone", || env.guards().is_empty());
        assert_eq!(env.runs().len(), usize::from(flags.is_empty()));
    }
}

#[test]
fn a_second_signal_kills_a_planner_that_does_not_obey_the_first() {
    let mut env = TestEnv::new();
    let cues = ["ignoreint", "ignoreterm", "touch asked", "sleep 600"];
    let cues: String = cues.iter().map(|cue| format!("You plan work => @{cue}\n")).collect();
    let cues = env.write("cues", cues);
    env.set("FAKE_CUES", cues.to_str().unwrap());
    let running = env.start(&["auto", "a goal", "--plan-only"]);
    env.until("the planner runs", || env.path("asked").exists());
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    let ran = running.wait().exits(130);
    assert!(ran.stderr.contains("SIGINT: ending the planner; a second signal kills it"), "{}", ran.stderr);
    assert!(env.spawns().iter().all(|spawn| !is_alive(spawn)), "{:?}", env.spawns());
}

fn is_alive(spawn: &Value) -> bool {
    std::path::Path::new(&format!("/proc/{}", spawn["pid"])).exists()
}

#[test]
fn a_plan_whose_run_cannot_be_recorded_is_closed_with_its_price() {
    let env = blocked("state.json", &graph(&[node("a", &[], "@say done")]).to_string());
    env.omg(&["auto", "a goal"]).exits(1);
    assert_eq!(env.spawns().len(), 1, "the planner alone");
    let last = env.events().pop().unwrap();
    let wanted = (&json!("run_finished"), &json!("failed"), &json!(0.01));
    assert_eq!((&last["event"], &last["outcome"], &last["cost_usd"]), wanted);
}

#[test]
fn what_the_cli_does_not_know_of_a_plan_is_warned_of() {
    let mut bound = node("a", &[], "@say done");
    bound["budget_usd"] = json!(1);
    bound["permission_mode"] = "manual".into();
    let env = planning(&[bound]);
    let codex = ["--runtime", "codex"];
    let ran = env.omg(&[&codex[..], &["auto", "a goal"]].concat()).exits(0);
    assert_eq!(ran.stderr.matches("WARNING: node \"a\": budget_usd").count(), 1, "{}", ran.stderr);
    let ran = env.omg(&["auto", "a goal", "--plan-only"]).exits(0);
    assert!(!ran.stderr.contains("WARNING"), "{}", ran.stderr);
    let stand_in = fs::read_link(env.home().with_file_name("bin/codex")).unwrap();
    let old = env.home().with_file_name("old/claude");
    fs::create_dir(old.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(stand_in, &old).unwrap();
    let version = "case $1 in --version) echo '2.1.197 (Claude Code)';; *) exec";
    env.write_program("claude", &format!("#!/bin/sh\n{version} {} \"$@\";; esac\n", old.display()));
    let ran = env.omg(&["auto", "a goal", "--plan-only"]).exits(0);
    let told = "WARNING: node \"a\": claude 2.1.197 (Claude Code) may not know permission_mode manual";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn what_planning_cost_counts_against_the_bound_of_every_leg() {
    let env = planning(&[node("a", &[], "@say A"), node("b", &["a"], "@say B"), node("c", &["b"], "@say C")]);
    env.omg(&["auto", "a goal", "--max-usd", "0.015"]).exits(2);
    assert_eq!(env.spawns().len(), 2, "the planner and a");
    env.omg(&["resume", "latest", "--retry-failed", "--max-usd", "0.025"]).exits(2);
    assert_eq!(env.spawns().len(), 3, "b as well");
    env.omg(&["resume", "latest", "--retry-failed", "--max-usd", "1"]).exits(0);
}

#[test]
fn the_flags_of_a_run_are_those_of_a_planned_one() {
    let failing = || planning(&[node("a", &[], "@exit 1"), node("b", &[], "@sh sleep 0.1\n@say B")]);
    let env = failing();
    env.omg(&["auto", "a goal", "--continue-on-fail"]).exits(1);
    assert_eq!(env.record("b")["verdict"], "PASS");
    assert_eq!(env.state()["continue_on_fail"], true);
    let env = failing();
    env.omg(&["auto", "a goal", "--concurrency", "1"]).exits(1);
    assert_eq!(env.spawns().len(), 2, "the planner and a, whose failure halts the run");
    let env = failing();
    let inputs = env.write("inputs.yaml", "branch: main\n");
    let ran = env.omg(&["auto", "a goal", "--inputs", inputs.to_str().unwrap(), "--quiet"]).exits(1);
    assert_eq!(env.state()["inputs"], json!({"branch": "main"}));
    assert!(!ran.stderr.contains("▶") && !ran.stderr.contains("✗"), "{}", ran.stderr);
    let (planner, _) = spawns(&env);
    assert!(planner[0]["prompt"].as_str().unwrap().contains("Inputs of this run: branch."));
}

#[test]
fn inputs_reach_the_plan_and_no_other_name_is_taken() {
    let env = planning(&[node("a", &[], "@say on {{ inputs.branch }}")]);
    env.omg(&["auto", "a goal", "--input", "branch=main", "--input", "unused=x"]).exits(0);
    assert_eq!(env.artifact("a").unwrap(), b"on main");
    let env = planning(&[node("a", &[], "@say on {{ inputs.branch }}")]);
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert_eq!(env.spawns().len(), 2, "it is handed back");
    assert!(ran.stderr.contains("no JSON object"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("type the same again"), "{}", ran.stderr);
}

#[test]
fn evidence_commands_of_several_ends_run_one_after_another() {
    let env =
        planning(&[node("a", &[], "@say done"), node("b", &[], "@say done"), node("c", &[], "@say done")]);
    let alone = "mkdir busy && sleep 0.1 && rmdir busy";
    env.omg(&["auto", "a goal", "--verify-cmd", alone, "--concurrency", "3"]).exits(0);
}

#[test]
fn agents_and_skills_reach_the_nodes_of_the_leg_that_planned_and_no_later_one() {
    let env =
        planning(&[node("reviewer", &[], "@say A"), node("work", &["reviewer"], "@on 1 exit 1\n@say B")]);
    env.write(
        "../user/.claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: d\ntools: Read\n---\nReview.\n",
    );
    env.write("../user/.claude/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: d\n---\nTidy up.\n");
    let ran = env.omg(&["auto", "a goal"]).exits(1);
    assert!(ran.stdout.contains("[agent: reviewer]") && ran.stdout.contains("tidy"), "{}", ran.stdout);
    let plan = fs::read_to_string(env.run_dir().join("graph.json")).unwrap();
    assert!(plan.contains("\"agent\": \"reviewer\"") && !plan.contains("corpus of procedures"), "{plan}");
    let ran = env.omg(&["resume", "latest", "--retry-failed"]).exits(0);
    for told in [
        "This leg maps no agent and activates no skill: only the leg that planned",
        "\n  that leg ran 1 node as 1 agent of yours: reviewer as reviewer\n",
        "\n  that leg gave 1 node 1 skill of yours: work\n",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    let (_, nodes) = spawns(&env);
    assert_eq!(nodes.len(), 3);
    assert_eq!(super::after(&nodes[0], "--agent"), Some("reviewer"));
    assert_eq!(super::after(&nodes[1], "--tools"), Some("Read,Bash,Skill"));
    assert!(nodes[1]["prompt"].as_str().unwrap().contains("corpus of procedures"));
    let dirs: Vec<&str> = nodes.iter().filter_map(|spawn| super::after(spawn, "--plugin-dir")).collect();
    assert_eq!(dirs.len(), 2);
    let run = env.run_dir();
    assert!(
        dirs.iter().all(|dir| !dir.starts_with(run.to_str().unwrap())),
        "each has a copy of its own: {dirs:?}"
    );
    assert_eq!(super::after(&nodes[2], "--tools"), Some("Read,Bash"));
    assert_eq!(super::after(&nodes[2], "--setting-sources"), Some(""));
}

#[test]
fn a_checkout_elsewhere_that_is_named_is_warned_of_last_and_before_anything_runs() {
    let env = planning(&[node("a", &[], "@say done"), node("b", &["a"], "Mend ~/other/src.\n@say done")]);
    env.write("../user/other/.git/HEAD", "");
    env.write("../user/other/src/lib.rs", "");
    env.write("../user/.claude/skills/tidy/SKILL.md", "---\nname: tidy\n---\nSee ~/other.\n");
    for (flags, nothing_after) in [(&["--plan-only"][..], "Nothing was run."), (&[], "Running graph")] {
        let ran = env.omg(&[&["auto", "mend ~/other"], flags].concat()).exits(0);
        let (before, warning) = ran.stdout.split_once("WARNING: the work reaches into").unwrap();
        assert!(before.contains("Build evidence: NONE") && before.contains("Ceiling: "), "{before}");
        let told = "user/other, named as ~/other by the goal and node b\n";
        assert!(warning.contains(told), "{warning}");
        assert!(warning.contains("\n\n") && warning.contains(nothing_after), "{warning}");
    }
    let ran = env.omg(&["auto", "mend ~/elsewhere", "--plan-only"]).exits(0);
    assert!(ran.stdout.contains("named as ~/other/src by node b"), "{}", ran.stdout);
}
