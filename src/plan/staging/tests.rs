//! What a person's files come to: who is given what, what is recorded of it, and what the screen says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::node::policy::{Configuration, Policy};
use crate::record::{Home, RunId};
use crate::text::hex;

/// A person's `~/.claude`, and a home of omg's beside it.
pub(super) struct Person {
    temp: TempDir,
}

impl Person {
    pub(super) fn new() -> Self {
        Person { temp: tempfile::tempdir().unwrap() }
    }

    pub(super) fn config(&self) -> PathBuf {
        self.temp.path().join(".claude")
    }

    pub(super) fn home(&self) -> Home {
        Home::new(&self.temp.path().join("omg"))
    }

    pub(super) fn write(&self, path: &str, says: impl AsRef<[u8]>) -> PathBuf {
        let path = self.config().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, says).unwrap();
        path
    }

    pub(super) fn agent(&self, name: &str, tools: &str) -> &Self {
        self.write(
            &format!("agents/{name}.md"),
            format!("---\nname: {name}\ntools: {tools}\n---\nYou are {name}.\n"),
        );
        self
    }

    pub(super) fn skill(&self, name: &str) -> &Self {
        let head = format!("---\nname: {name}\ndescription: Does {name}\n---\n\nDo {name}.\n");
        self.write(&format!("skills/{name}/SKILL.md"), head);
        self
    }

    pub(super) fn plan(&self, ids: &[&str], choice: &Choice) -> Staging {
        Staging::plan(Some(&self.config()), &graph(ids), choice)
    }

    /// What the screen says, with the places of this test named as a person's.
    fn screen(&self, staging: &Staging) -> String {
        let here = self.temp.path().canonicalize().unwrap();
        let lines = staging.lines().join("\n");
        lines
            .replace(here.to_str().unwrap(), "/home/me")
            .replace(self.temp.path().to_str().unwrap(), "/home/me")
    }
}

pub(super) fn graph(ids: &[&str]) -> Graph {
    let node = |id: &&str| format!(r#"{{"id":"{id}","prompt":"x","allowed_tools":["Read","Bash(git *)"]}}"#);
    let nodes: Vec<String> = ids.iter().map(node).collect();
    let json = format!(r#"{{"nodes":[{}]}}"#, nodes.join(","));
    crate::graph::from_snapshot(&json).map(|(_, graph)| graph).unwrap_or_else(|error| panic!("{error}"))
}

fn ids(nodes: &[NodeId]) -> Vec<&str> {
    nodes.iter().map(NodeId::as_str).collect()
}

fn id(text: &str) -> NodeId {
    NodeId::parse(text).unwrap()
}

#[test]
fn a_node_runs_as_an_agent_or_may_use_skills_and_never_both() {
    let person = Person::new();
    person.agent("code-reviewer", "Read").agent("writer", "Write").skill("pdf").skill("charts");
    let staging = person.plan(&["draft-writer", "review", "fix"], &Choice::default());
    assert_eq!(staging.agent_of(&id("review")), Some("code-reviewer"));
    assert_eq!(ids(staging.activated()), ["draft-writer", "fix"]);

    let dir = RunDir::new("/runs/1".into());
    let tools = ["Read".to_owned(), "Bash(git *)".to_owned()];
    let before = || Policy::planned(&tools, Configuration::Isolated);
    let mut ceiling: Ceiling =
        ["draft-writer", "review", "fix"].into_iter().map(|node| (id(node), before())).collect();
    staging.apply(&mut ceiling, &dir);
    let fix = ceiling.policy(&id("fix")).unwrap();
    assert_eq!(*fix, before().with_skills("/runs/1/skills-plugin".into()));
    let review = ceiling.policy(&id("review")).unwrap();
    assert_eq!(*review, Policy { plugin_dirs: vec!["/runs/1/agents-plugin".into()], ..before() });
}

#[test]
fn the_plan_that_is_kept_names_agents_and_says_nothing_of_skills() {
    let person = Person::new();
    person.agent("code-reviewer", "Read").skill("pdf");
    let staging = person.plan(&["review", "fix"], &Choice::default());
    let mut raw: RawGraph =
        serde_json::from_str(r#"{"nodes":[{"id":"review","prompt":"x"},{"id":"fix","prompt":"Mend it."}]}"#)
            .unwrap();
    staging.map(&mut raw);
    let graph = staging.activate(&raw).unwrap();
    let prompt = |at: usize| match &graph.nodes()[at].work {
        Work::Model(model) => model.prompt.clone(),
        Work::Command(_) | Work::Gate => unreachable!("both are prompts"),
    };
    assert_eq!(raw.nodes[0].agent.as_deref(), Some("code-reviewer"));
    assert_eq!((prompt(0), prompt(1)), ("x".to_owned(), format!("Mend it.\n\n{ACTIVATION}")));
    assert_eq!(raw.nodes[1].prompt.as_deref(), Some("Mend it."));
}

#[test]
fn the_screen_names_what_is_staged_and_what_it_costs() {
    let person = Person::new();
    person.agent("code-reviewer", "Read").agent("writer", "Write").skill("pdf").skill("charts");
    person.write("skills/pdf/scripts/fill.py", "print()");
    person.write("skills/old/SKILL.md", "---\nname: pdf\n---\nOld.\n");
    person.write("skills/blank/SKILL.md", "---\nname: blank\n---\n \n");
    person.write("skills/notes/README.md", "no skill at all");
    insta::assert_snapshot!(
        person.screen(&person.plan(&["draft-writer", "review", "fix"], &Choice::default()))
    );
}

#[test]
fn a_skill_that_keeps_itself_from_being_used_unasked_is_told() {
    let person = Person::new();
    let heads = [
        ("tools", "allowed-tools: Bash(touch *)", Some("allowed-tools")),
        ("hooked", "hooks: {PreToolUse: []}", Some("hooks")),
        ("kept", "disable-model-invocation: true\nallowed-tools: Read", Some("disable-model-invocation")),
        ("open", "disable-model-invocation: false\nallowed-tools:\nversion: 1", None),
    ];
    for (name, head, _) in heads {
        person.write(&format!("skills/{name}/SKILL.md"), format!("---\nname: {name}\n{head}\n---\nDo it.\n"));
    }
    let screen = person.screen(&person.plan(&["fix"], &Choice::default()));
    for (name, _, told) in heads {
        let line = screen.lines().find(|line| line.starts_with(&format!("  {name}: "))).unwrap();
        let wanted = told.map(|key| format!("({key} in its head: nobody is there to agree,"));
        assert_eq!(wanted.is_none(), !line.contains("in its head"), "{line}");
        assert!(wanted.is_none_or(|words| line.contains(&words)), "{line}");
    }
}

#[test]
fn the_screen_says_why_skills_are_off() {
    let person = Person::new();
    let off = |person: &Person, choice: &Choice| {
        let screen = person.screen(&person.plan(&["review"], choice));
        screen.lines().find(|line| line.contains("OFF")).unwrap_or_default().to_owned()
    };
    assert_eq!(off(&person, &Choice::default()), "skills are OFF: none of yours can be used");
    person.skill("pdf");
    let declined = Choice { without_skills: true, ..Choice::default() };
    assert_eq!(off(&person, &declined), "skills are OFF: --no-skill-activation was given");
    let loaded = Choice { loaded: true, ..Choice::default() };
    assert!(off(&person, &loaded).contains("your configuration is loaded"));
    person.agent("reviewer", "Read");
    assert!(off(&person, &Choice::default()).contains("every node runs as an agent of yours"));
    assert_eq!(off(&person, &Choice { without_agents: true, ..Choice::default() }), "");
    let nowhere = Staging::plan(None, &graph(&["review"]), &Choice::default()).lines();
    assert_eq!(nowhere[0], "skills are OFF: where your home directory is cannot be told");
}

#[test]
fn a_decline_of_nobody_is_told() {
    let person = Person::new();
    person.agent("code-reviewer", "Read");
    let declined = vec![" Code-Reviewer ".to_owned(), "code-reviwer".to_owned()];
    let lines = person.plan(&["review"], &Choice { declined, ..Choice::default() }).lines();
    assert_eq!(
        lines[..2],
        [
            "! --no-agent \"code-reviwer\": no agent of yours is called so; did you mean \"code-reviewer\"?",
            "! agent \"code-reviewer\" not applied to review: declined by --no-agent",
        ]
    );
}

#[test]
fn what_a_file_calls_itself_cannot_forge_a_line_of_the_screen() {
    let person = Person::new();
    person.write(
        "skills/a/SKILL.md",
        "---\nname: \"a\\e[2K\"\ndescription: \"x\\r\\n  - ok\\e[1m\"\n---\nDo.\n",
    );
    let screen = person.screen(&person.plan(&["fix"], &Choice::default()));
    assert!(!screen.contains('\x1b') && screen.contains(": x - ok␛[1m"), "{screen}");
}

#[test]
fn s64_a_person_who_loads_their_own_configuration_gets_nothing_staged() {
    let person = Person::new();
    person.agent("reviewer", "Read").skill("pdf");
    let staging = person.plan(&["review"], &Choice { loaded: true, ..Choice::default() });
    let run = RunId::parse("1-1").unwrap();
    let dir = person.home().run(&run);
    assert_eq!((staging.agent_of(&id("review")), staging.activated().len()), (None, 0));
    assert!(staging.bind(&person.home(), &run, &dir).unwrap().is_none());
    assert!(!person.home().path().exists());
}

#[test]
fn a_skill_is_all_its_regular_files_within_the_limits() {
    let person = Person::new();
    person.skill("pdf");
    let script = person.write("skills/pdf/scripts/fill.sh", "true");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    person.write("skills/pdf/big", vec![b'x'; (1 << 20) + 1]);
    person.write("skills/pdf/fits", vec![b'x'; 1 << 20]);
    let elsewhere = person.write("elsewhere/shared.md", "shared");
    symlink(&elsewhere, person.config().join("skills/pdf/shared.md")).unwrap();
    symlink(elsewhere.parent().unwrap(), person.config().join("skills/pdf/folder")).unwrap();
    person.write("linked/SKILL.md", "---\nname: linked\n---\nDo.\n");
    symlink(person.config().join("linked"), person.config().join("skills/linked")).unwrap();
    let staging = person.plan(&["fix"], &Choice::default());
    let plugin = staging.skills_plugin.as_ref().unwrap();
    let files: BTreeMap<&str, bool> =
        plugin.files.iter().map(|file| (file.path.as_str(), file.runnable)).collect();
    let wanted = [
        (".claude-plugin/plugin.json", false),
        ("skills/linked/SKILL.md", false),
        ("skills/pdf/SKILL.md", false),
        ("skills/pdf/fits", false),
        ("skills/pdf/scripts/fill.sh", true),
        ("skills/pdf/shared.md", false),
    ];
    assert_eq!(files, BTreeMap::from(wanted));
    let pdf = staging.corpus.as_ref().unwrap().skills.iter().find(|skill| skill.name == "pdf").unwrap();
    assert_eq!((pdf.files, pdf.left_out), (4, 2));
}

#[test]
fn a_corpus_that_is_too_large_is_not_staged_in_part() {
    let person = Person::new();
    person.skill("huge");
    for number in 0..64 {
        person.write(&format!("skills/huge/{number}"), vec![0; 1 << 20]);
    }
    let staging = person.plan(&["fix"], &Choice::default());
    assert!(staging.activated().is_empty() && staging.skills_plugin.is_none());
    assert!(person.screen(&staging).contains("skills are OFF: they hold more than 64 MiB"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever lies there: what is staged is what is recorded, with the bytes that were read, below a name of its own.
    #[test]
    fn the_staged_set_is_the_recorded_one(
        files in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "agents/a.md", "agents/b.md", "agents/ü.md", "skills/x/SKILL.md", "skills/y/SKILL.md", "skills/y/more",
                    "skills/y/sub/deep", "skills/z/nested/SKILL.md", "skills/SKILL.md", "skills/w/SKILL.md",
                ]),
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..40),
                    ("[a-z./A-Z]{1,6}", "(.|\n){0,8}").prop_map(|(name, body)| {
                        format!("---\nname: {name}\n---\n{body}").into_bytes()
                    }),
                ],
            ),
            0..10,
        ),
    ) {
        let person = Person::new();
        for (path, says) in &files {
            person.write(path, says);
        }
        let staging = person.plan(&["a", "fix", "x-y"], &Choice::default());
        staging.lines();
        let run = RunId::parse("1-1").unwrap();
        let dir = person.home().run(&run);
        fs::create_dir_all(dir.path()).unwrap();
        let copies = staging.bind(&person.home(), &run, &dir).unwrap();
        prop_assert_eq!(copies.is_some(), staging.applied().next().is_some() || !staging.activated().is_empty());
        for (plugin, manifest) in
            [(&staging.agents_plugin, dir.agents_manifest()), (&staging.skills_plugin, dir.skills_manifest())]
        {
            prop_assert_eq!(plugin.is_some(), manifest.exists());
            let Some(plugin) = plugin else { continue };
            let record: serde_json::Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
            let recorded: BTreeSet<(String, String)> = record["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| (file["rel"].as_str().unwrap().to_owned(), file["sha256"].as_str().unwrap().to_owned()))
                .collect();
            let staged: BTreeSet<(String, String)> = plugin
                .files
                .iter()
                .filter(|file| file.path != ".claude-plugin/plugin.json")
                .map(|file| (file.path.clone(), hex::sha256(&file.bytes)))
                .collect();
            prop_assert_eq!(&staged, &recorded);
            for (path, _) in &staged {
                let names: Vec<&str> = path.split('/').collect();
                prop_assert!(names.len() >= 2 && names.iter().all(|name| !name.is_empty() && !name.starts_with('.')));
            }
        }
    }
}
