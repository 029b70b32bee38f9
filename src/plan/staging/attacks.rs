//! Nodes that plant, edit, link and delete while their siblings start.
//!
//! What must hold: a spawn reads the bytes that were planned. A sibling that goes where it was told of (the run's
//! directory, its own copy, the sources) cannot even disturb that; one that searches the home of omg for the copies of
//! others and forces their modes is found out, and what was said under a changed copy does not count.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::copies::Copies;
use super::tests::Person;
use super::*;
use crate::node::Invocation;
use crate::node::provision::{Provision as _, Provisions};
use crate::process::Cancel;
use crate::record::staged::Planned;
use crate::record::{RunDir, RunId};

const SPAWNS: usize = 30;
const EVIL: &str = "---\nname: evil\n---\nEvil.\n";

/// A bound plan: `review` runs as an agent, `fix` and `plan` have skills.
struct Scene {
    person: Person,
    staging: Staging,
    copies: Arc<Copies>,
    dir: RunDir,
    victims: PathBuf,
}

/// A run that nobody ends.
fn going_on() -> Cancel {
    Cancel::new().expect("a pipe")
}

impl Scene {
    fn new() -> Self {
        let person = Person::new();
        person.agent("reviewer", "Read").skill("pdf").skill("charts");
        person.write("skills/pdf/scripts/fill.py", "print()");
        let victims = person.write("victims/mine", "mine").parent().unwrap().to_path_buf();
        let staging = person.plan(&["review", "fix", "plan"], &Choice::default());
        let run = RunId::parse("1-1").unwrap();
        let dir = person.home().run(&run);
        fs::create_dir_all(dir.path()).unwrap();
        let copies = staging.bind(&person.home(), &run, &dir).unwrap().unwrap();
        Scene { person, staging, copies, dir, victims }
    }

    fn spawn(&self, node: &str) -> Provisions {
        self.copies.before_spawn(&Invocation::plain(node), &going_on()).unwrap()
    }

    fn planned(&self, node: &str) -> &[Planned] {
        let plugin = if node == "review" { &self.staging.agents_plugin } else { &self.staging.skills_plugin };
        &plugin.as_ref().unwrap().files
    }

    /// The first planned file that a child of `node` would read otherwise from what it was given.
    fn read_otherwise(&self, node: &str, given: &Provisions) -> Option<String> {
        let dir = &given.plugin_dirs[0];
        let is_other =
            |file: &&Planned| fs::read(dir.join(&file.path)).ok().as_deref() != Some(&file.bytes[..]);
        self.planned(node).iter().find(is_other).map(|file| file.path.clone())
    }

    /// What lies where links lead is as it was, but for what those who planted them wrote through them.
    fn assert_nothing_went_through_a_link(&self) {
        assert_eq!(fs::read_to_string(self.victims.join("mine")).unwrap(), "mine");
        for path in everything(&self.victims) {
            let says = fs::read(&path).unwrap_or_default();
            let mut planned = self.planned("review").iter().chain(self.planned("fix"));
            assert!(planned.all(|file| file.bytes != says), "{} was written through a link", path.display());
        }
    }
}

/// Ends the attacks when the test has seen enough, or has failed.
struct Truce<'a>(&'a AtomicBool);

impl Drop for Truce<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn force(path: &Path) {
    if !path.is_symlink() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).ok();
    }
}

/// Everything below `root`, links not followed, whatever its modes.
fn everything(root: &Path) -> Vec<PathBuf> {
    force(root);
    let below = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    below
        .flat_map(|path| match path.is_dir() && !path.is_symlink() {
            true => [vec![path.clone()], everything(&path)].concat(),
            false => vec![path],
        })
        .collect()
}

/// One blow against what lies at `path`; which, tells `number`.
fn strike(path: &Path, victims: &Path, number: usize) {
    // What is watched is not theirs to hit, should one have come there through the other's link.
    if path.file_name().is_some_and(|name| name == "mine") {
        return;
    }
    force(path.parent().unwrap());
    force(path);
    match number % 5 {
        0 if path.is_dir() => drop(fs::create_dir_all(path.join("hooks"))),
        0 => drop(fs::write(path, EVIL)),
        1 if path.is_dir() => drop(fs::rename(path, path.with_extension("moved"))),
        1 => drop(fs::remove_file(path)),
        2 => {
            fs::rename(path, path.with_extension("moved")).ok();
            symlink(victims, path).ok();
        }
        3 => drop(symlink(victims, path.with_file_name("evil"))),
        _ => drop(fs::write(path.with_file_name("evil.md"), EVIL)),
    }
}

#[test]
fn s61_what_a_node_does_where_it_was_told_of_reaches_no_spawn() {
    let scene = Scene::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let truce = Truce(&is_over);
        let attacks = scope.spawn(|| {
            let mut number = 0;
            loop {
                for plugin in [scene.dir.agents_plugin(), scene.dir.skills_plugin()] {
                    fs::create_dir_all(plugin.join("skills/evil")).ok();
                    fs::create_dir_all(plugin.join("agents")).ok();
                    fs::write(plugin.join("skills/evil/SKILL.md"), EVIL).ok();
                    fs::write(plugin.join("agents/reviewer.md"), EVIL).ok();
                }
                // Its own copy, too.
                let own = scene.spawn("plan");
                for path in everything(&own.plugin_dirs[0]) {
                    strike(&path, &scene.victims, number);
                    number += 1;
                }
                for part in ["agents", "skills"] {
                    for path in everything(&scene.person.config().join(part)) {
                        strike(&path, &scene.victims, number);
                        number += 1;
                    }
                }
                for record in [scene.dir.agents_manifest(), scene.dir.skills_manifest()] {
                    fs::write(record, "{}").ok();
                }
                if is_over.load(Ordering::SeqCst) {
                    return number;
                }
            }
        });
        for spawn in 0..SPAWNS {
            let node = ["review", "fix"][spawn % 2];
            let given = scene.spawn(node);
            assert_eq!(scene.read_otherwise(node, &given), None, "spawn {spawn} of {node}");
            assert_eq!(given.held.as_ref().unwrap().altered(), None, "spawn {spawn} of {node}");
        }
        drop(truce);
        assert!(attacks.join().unwrap() > 0);
    });
    scene.assert_nothing_went_through_a_link();
}

#[test]
fn s61_a_copy_that_was_searched_for_and_changed_is_found_out() {
    let scene = Scene::new();
    let (is_over, passes) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _truce = Truce(&is_over);
        for thread in 0..2 {
            let (scene, is_over, passes) = (&scene, &is_over, &passes);
            scope.spawn(move || {
                let mut number = thread;
                while !is_over.load(Ordering::SeqCst) {
                    for path in everything(&scene.person.home().staged()) {
                        // The copies' own directory is needed to go on; what is in it is the prey.
                        if path.components().count() > scene.person.home().staged().components().count() + 1 {
                            strike(&path, &scene.victims, number);
                            number += 1;
                        }
                    }
                    passes.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // What was moved away stays until the end, so that each pass is longer than the one before.
        for spawn in 0..SPAWNS / 5 {
            let node = ["review", "fix", "plan"][spawn % 3];
            // A copy whose making was disturbed is no copy: that spawn does not happen.
            let Ok(given) = scene.copies.before_spawn(&Invocation::plain(node), &going_on()) else {
                continue;
            };
            let read = scene.read_otherwise(node, &given);
            // Every other child runs long enough for all copies to have been gone through from the first to the last.
            let patience = if spawn % 2 == 0 { 6 } else { 0 };
            let enough = passes.load(Ordering::SeqCst) + patience;
            while passes.load(Ordering::SeqCst) < enough {
                thread::yield_now();
            }
            let told = given.held.as_ref().unwrap().altered();
            assert!(
                read.is_none() || told.is_some(),
                "spawn {spawn} of {node} read something else: {read:?}"
            );
            assert!(patience == 0 || told.is_some(), "spawn {spawn} of {node} was hit, and nobody says so");
        }
    });
    scene.assert_nothing_went_through_a_link();
}

#[test]
fn s61_neither_a_changed_source_nor_a_removed_one_stops_or_changes_a_spawn() {
    let scene = Scene::new();
    scene.person.write("agents/reviewer.md", EVIL);
    fs::remove_dir_all(scene.person.config().join("skills")).unwrap();
    for node in ["review", "fix", "review"] {
        assert_eq!(scene.read_otherwise(node, &scene.spawn(node)), None);
    }
}

#[test]
fn a_spawn_is_given_only_what_is_its_own() {
    let scene = Scene::new();
    let (review, fix, again) = (scene.spawn("review"), scene.spawn("fix"), scene.spawn("fix"));
    assert!(review.plugin_dirs[0].join("agents/reviewer.md").exists());
    assert!(!review.plugin_dirs[0].join("skills").exists() && !fix.plugin_dirs[0].join("agents").exists());
    assert_ne!(fix.plugin_dirs, again.plugin_dirs);
    assert!(scene.spawn("stranger").plugin_dirs.is_empty());
    drop(fix);
    assert!(again.plugin_dirs[0].join("skills/pdf/scripts/fill.py").exists());
}

#[test]
fn a_copy_that_cannot_be_made_is_told_as_the_engines() {
    let scene = Scene::new();
    everything(&scene.person.home().staged());
    fs::remove_dir_all(scene.person.home().staged()).unwrap();
    let Err(why) = scene.copies.before_spawn(&Invocation::plain("review"), &going_on()) else {
        panic!("there is no room")
    };
    assert!(why.starts_with("its private copy of the agent cannot be made: "), "{why}");
}
