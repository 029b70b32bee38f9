//! What planned nodes are given of a person's agents and skills, and what nodes can do to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{after, graph};
use crate::env::TestEnv;

const AGENT: &str = "---\nname: code-reviewer\ntools: Read\n---\nYou review.\n";
const SKILL: &str = "---\nname: pdf\ndescription: Reads PDF\n---\nDo pdf.\n";
/// Finds, in a command of a node, the directory that the node was given.
const GIVEN: &str = r"d=$(tr '\0' '\n' </proc/$PPID/cmdline | grep -A1 -x -- --plugin-dir | tail -1)";

fn person() -> TestEnv {
    let env = TestEnv::new();
    for (path, says) in [("agents/code-reviewer.md", AGENT), ("skills/pdf/SKILL.md", SKILL)] {
        let path = config(&env).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, says).unwrap();
    }
    env
}

fn config(env: &TestEnv) -> PathBuf {
    env.work().with_file_name("user/.claude")
}

/// Makes the planner answer with these nodes.
fn plan(env: &mut TestEnv, nodes: &[Value]) {
    let cues = env.write("cues", format!("You plan work => @say {}\n", graph(nodes)));
    env.set("FAKE_CUES", cues.to_str().unwrap());
}

fn node(id: &str, after: &[&str], script: &str) -> Value {
    json!({"id": id, "depends_on": after, "prompt": format!("Do {id}.\n@sh {script}"), "allowed_tools": ["Read"]})
}

/// The spawns of a node, told by its prompt.
fn spawns_of(env: &TestEnv, id: &str) -> Vec<Value> {
    let is_of = |spawn: &Value| {
        spawn["argv"]
            .as_array()
            .unwrap()
            .iter()
            .any(|word| word.as_str().unwrap().starts_with(&format!("Do {id}.")))
    };
    env.spawns().into_iter().filter(|spawn| is_of(spawn)).collect()
}

fn staged(env: &TestEnv) -> usize {
    fs::read_dir(env.home().join("staged")).map_or(0, Iterator::count)
}

#[test]
fn each_spawn_is_given_a_copy_of_its_own_of_what_the_screen_showed() {
    let mut env = person();
    let keep = |file: &str, name: &str| format!("{GIVEN}; cat $d/{file} >> seen-{name}");
    let mut fix = node("fix", &[], &keep("skills/pdf/SKILL.md", "fix"));
    fix["prompt"] = format!("{}\n@on 1 exit 1", fix["prompt"].as_str().unwrap()).into();
    fix["retry"] = json!({"max": 1, "on": ["nonzero_exit"]});
    plan(&mut env, &[fix, node("review", &["fix"], &keep("agents/code-reviewer.md", "review"))]);
    let ran = env.omg(&["auto", "Mend it", "--no-web"]).exits(0);
    for told in ["review runs as code-reviewer", "skills are ENABLED on 1 of 2 nodes: fix", "pdf: "] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert_eq!((env.read("seen-fix"), env.read("seen-review")), (SKILL.repeat(2), AGENT.to_owned()));

    let (fixes, reviews) = (spawns_of(&env, "fix"), spawns_of(&env, "review"));
    assert_eq!((fixes.len(), reviews.len()), (2, 1));
    for (spawn, tools, agent) in [
        (&fixes[0], "Read,Skill", None),
        (&fixes[1], "Read,Skill", None),
        (&reviews[0], "Read", Some("code-reviewer")),
    ] {
        assert_eq!((after(spawn, "--tools"), after(spawn, "--agent")), (Some(tools), agent));
        assert_eq!(
            (after(spawn, "--setting-sources"), after(spawn, "--allowedTools")),
            (Some(""), Some("Read"))
        );
        let prompt = after(spawn, "-p").unwrap();
        assert_eq!(prompt.contains("consult it if one fits this task."), agent.is_none(), "{prompt}");
    }
    let given: BTreeSet<&str> =
        fixes.iter().chain(&reviews).filter_map(|spawn| after(spawn, "--plugin-dir")).collect();
    assert_eq!(given.len(), 3);
    assert!(given.iter().all(|dir| !Path::new(dir).exists() && !dir.contains("/runs/")), "{given:?}");
    assert_eq!(staged(&env), 0);

    let record: Value =
        serde_json::from_slice(&fs::read(env.run_dir().join("skills-plugin.manifest.json")).unwrap())
            .unwrap();
    assert_eq!(record["nodes"], json!(["fix"]));
    let state = env.state();
    assert!(!state["graph"].to_string().contains("consult it"), "the plan can be run again without skills");
    assert_eq!(state["graph"]["nodes"][1]["agent"], "code-reviewer");
}

#[test]
fn s61_what_nodes_plant_edit_link_and_delete_reaches_no_sibling() {
    let mut env = person();
    let attack = format!(
        "{GIVEN}; r=$(ls -d $OMG_HOME/runs/*); n=0; while [ $n -lt 40 ]; do n=$((n+1)); \
         mkdir -p $r/skills-plugin/skills/evil $r/agents-plugin/agents; echo evil > $r/skills-plugin/skills/evil/SKILL.md; \
         echo evil > $r/agents-plugin/agents/code-reviewer.md; echo '{{}}' > $r/skills-plugin.manifest.json; \
         chmod -R u+w $d; rm -rf $d/skills; ln -sfn {config}/agents $d/skills; \
         echo evil > {config}/agents/code-reviewer.md; rm -rf {config}/skills; done",
        config = config(&env).display(),
    );
    let read = |name: &str| format!("{GIVEN}; cat $d/*/*/SKILL.md > seen-{name}");
    let mut nodes = vec![node("attack", &[], &attack)];
    let names: Vec<String> = (0..8).map(|number| format!("fix{number}")).collect();
    nodes.extend(names.iter().map(|name| node(name, &[], &read(name))));
    nodes.push(node("review", &["attack"], &format!("{GIVEN}; cat $d/agents/*.md > seen-review")));
    plan(&mut env, &nodes);
    env.omg(&["auto", "Mend it", "--no-web", "--continue-on-fail"]).exits(1);
    for name in &names {
        assert_eq!(env.read(&format!("seen-{name}")), SKILL, "{name}");
        assert_eq!(env.record(name)["verdict"], "PASS", "{name}");
    }
    // Whoever changed its own copy did so under what nobody planned any more.
    let attack = env.record("attack");
    assert_eq!(
        (&attack["verdict"], &attack["cause"], &attack["cost_usd"]),
        (&json!("FAIL"), &json!("run_error"), &json!(0.01))
    );
    assert!(attack["detail"].as_str().unwrap().contains("its private copy of the skills"), "{attack}");
    assert!(!env.path("seen-review").exists());
    assert_eq!(staged(&env), 0);
}

#[test]
fn what_is_declined_is_not_given() {
    let mut env = person();
    plan(&mut env, &[node("review", &[], "true")]);
    let ran = env
        .omg(&["auto", "Mend it", "--no-web", "--no-agent", "Code-Reviewer", "--no-skill-mapping"])
        .exits(0);
    assert!(
        ran.stdout.contains("! agent \"code-reviewer\" not applied to review: declined"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("--no-skill-mapping is now called --no-skill-activation"), "{}", ran.stderr);
    let spawn = &spawns_of(&env, "review")[0];
    assert_eq!(
        (after(spawn, "--agent"), after(spawn, "--plugin-dir"), after(spawn, "--tools")),
        (None, None, Some("Read"))
    );
    env.omg(&["auto", "Mend it", "--no-agent", " "]).exits(1);
}

#[test]
fn the_old_name_of_a_flag_is_told_once_and_is_no_value_of_another() {
    let mut env = person();
    plan(&mut env, &[node("fix", &[], "true")]);
    let told = "--no-skill-mapping is now called --no-skill-activation";
    let ran = env.omg(&["auto", "Mend it", "--no-web", "--no-skill-mapping", "--no-skill-mapping"]).exits(0);
    assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("OFF") && !ran.stdout.contains("ENABLED"), "{}", ran.stdout);
    let asked = env.spawns().len();
    let ran = env.omg(&["auto", "Mend it", "--verify-cmd", "--no-skill-mapping"]).exits(1);
    assert!(
        ran.stderr.contains("--no-skill-mapping was not found") && !ran.stderr.contains(told),
        "{}",
        ran.stderr
    );
    let ran = env.omg(&["auto", "--", "--no-skill-mapping"]).exits(0);
    assert!(
        ran.stdout.contains("goal \"--no-skill-mapping\"") && !ran.stderr.contains(told),
        "{}",
        ran.stderr
    );
    assert!(env.spawns().len() > asked);
    let chat =
        env.command(&["chat", "--no-skill-mapping"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8(chat.stderr).unwrap().matches(told).count(), 1);
}

#[test]
fn s63_a_later_leg_activates_no_skill_whether_it_is_told_so_or_not() {
    for flags in [&["--no-skill-activation"][..], &[]] {
        let mut env = person();
        let mut review = node("review", &[], "true");
        review["prompt"] = format!("{}\n@on 1 exit 1", review["prompt"].as_str().unwrap()).into();
        plan(&mut env, &[review, node("fix", &["review"], "true")]);
        env.omg(&["auto", "Mend it", "--no-web"]).exits(1);
        let ran = env.omg(&[&["resume", "latest", "--retry-failed", "--no-web"], flags].concat()).exits(0);
        for told in [
            "maps no agent and activates no skill",
            "that leg ran 1 node as 1 agent of yours: review as code-reviewer\n",
            "that leg gave 1 node 1 skill of yours: fix\n",
        ] {
            assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
        }
        for (id, spawned) in [("review", 2), ("fix", 1)] {
            let mut spawns = spawns_of(&env, id);
            assert_eq!(spawns.len(), spawned, "{id}");
            spawns.sort_by_key(|spawn| after(spawn, "--plugin-dir").is_none());
            let spawn = spawns.pop().unwrap();
            let given = (after(&spawn, "--agent"), after(&spawn, "--plugin-dir"), after(&spawn, "--tools"));
            assert_eq!(given, (None, None, Some("Read")), "{id}");
            assert_eq!(after(&spawn, "--setting-sources"), Some(""), "{id}");
        }
    }
    let env = person();
    env.run_graph("nodes: [{id: a, prompt: '@on 1 exit 1'}]", &[]).exits(1);
    env.omg(&["resume", "latest", "--retry-failed", "--no-skill-activation"]).exits(0);
}

/// What the spawn of `review` and that of `fix` were given: an agent, a directory, a tool for skills.
fn given(env: &TestEnv) -> [String; 2] {
    ["review", "fix"].map(|id| {
        let spawn = spawns_of(env, id).pop().unwrap();
        let told = [
            after(&spawn, "--agent").is_some_and(|name| name == "code-reviewer").then_some("agent"),
            after(&spawn, "--plugin-dir").map(|_| "directory"),
            after(&spawn, "--tools").unwrap().contains("Skill").then_some("skills"),
            after(&spawn, "-p").unwrap().contains("consult it if one fits").then_some("told"),
        ];
        told.into_iter().flatten().collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn each_flag_takes_away_what_it_says_and_nothing_else() {
    let (agent, skills) = ("agent directory", "directory skills told");
    for (flags, wanted) in [
        (&[][..], [agent, skills]),
        (&["--no-agent-mapping"], [skills, skills]),
        (&["--no-agent", "code-reviewer"], [skills, skills]),
        (&["--no-agent", "somebody-else"], [agent, skills]),
        (&["--no-skill-activation"], [agent, ""]),
        (&["--no-agent-mapping", "--no-skill-activation"], ["", ""]),
        (&["--accept-loaded-user-config"], ["", ""]),
    ] {
        let mut env = person();
        plan(&mut env, &[node("review", &[], "true"), node("fix", &["review"], "true")]);
        let ran = env.omg(&[&["auto", "Mend it", "--no-web"], flags].concat()).exits(0);
        assert_eq!(given(&env), wanted, "{flags:?}");
        assert_eq!(ran.stdout.contains("[agent: code-reviewer]"), wanted[0] == agent, "{}", ran.stdout);
        assert_eq!(ran.stdout.contains("skills are OFF: "), wanted[1].is_empty(), "{}", ran.stdout);
        if flags.contains(&"--accept-loaded-user-config") {
            continue;
        }
        let mut env = person();
        let cues = graph(&[node("review", &[], "true"), node("fix", &["review"], "true")]);
        let goal = r#"{"mode": "graph", "goal": "Mend it"}"#;
        let cues = env
            .write("cues", format!("You are the front desk => @say {goal}\nYou plan work => @say {cues}\n"));
        env.set("FAKE_CUES", cues.to_str().unwrap());
        let mut chat = env.command(&[&["chat"], flags].concat());
        let input = env.write("lines", "Mend it\ny\n");
        chat.stdin(fs::File::open(input).unwrap());
        crate::env::Running::of(&mut chat).wait().exits(0);
        assert_eq!(given(&env), wanted, "chat {flags:?}");
    }
}

#[test]
fn auto_60_a_repository_supplies_neither_an_agent_nor_a_skill() {
    let mut env = TestEnv::new();
    env.write(".claude/agents/code-reviewer.md", AGENT);
    env.write(".claude/skills/pdf/SKILL.md", SKILL);
    plan(&mut env, &[node("review", &[], "true"), node("fix", &["review"], "true")]);
    let ran = env.omg(&["auto", "Mend it", "--no-web"]).exits(0);
    assert_eq!(given(&env), ["", ""]);
    assert!(ran.stdout.contains("a repository cannot supply either"), "{}", ran.stdout);
    assert!(!env.run_dir().join("agents-plugin.manifest.json").exists());
}
