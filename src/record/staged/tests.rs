//! What a copy is, what removes it, and what a hostile sibling can do to it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

fn planned(path: &str, says: &str) -> Planned {
    let definition = path.ends_with("SKILL.md") || path.ends_with(".json");
    Planned { path: path.into(), bytes: says.into(), runnable: path.ends_with(".sh"), definition }
}

fn corpus() -> Arc<[Planned]> {
    Arc::new([
        planned(".claude-plugin/plugin.json", "{}"),
        planned("skills/a-b/SKILL.md", "first"),
        planned("skills/a/SKILL.md", "second"),
        planned("skills/a/scripts/deep/run.sh", "echo"),
        planned("skills/a/scripts/run.sh", "true"),
        planned("skills/b/SKILL.md", "third"),
    ])
}

struct Staged {
    temp: TempDir,
    home: Home,
    run: RunId,
}

impl Staged {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(&temp.path().join("home"));
        Staged { temp, home, run: RunId::parse("20260101-000000.000000001-1").unwrap() }
    }

    fn shelf(&self) -> Arc<Shelf> {
        Shelf::open(&self.home, &self.run).unwrap()
    }

    fn names(&self) -> usize {
        fs::read_dir(self.home.staged()).unwrap().count()
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Lets a test, and a sibling that means it, write where modes forbid it.
fn unlock(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[test]
fn a_copy_holds_the_planned_bytes_and_goes_when_it_is_dropped() {
    let staged = Staged::new();
    let shelf = staged.shelf();
    let copy = shelf.copy(&corpus(), &|| false).unwrap();
    for file in corpus().iter() {
        let path = copy.path().join(&file.path);
        assert_eq!(fs::read(&path).unwrap(), file.bytes, "{}", file.path);
        assert_eq!(mode(&path), if file.runnable { 0o500 } else { 0o400 }, "{}", file.path);
    }
    assert_eq!((mode(&copy.path()), mode(&copy.path().join("skills/a"))), (0o500, 0o500));
    assert_eq!((mode(&staged.home.staged()), mode(copy.path().parent().unwrap())), (0o700, 0o300));
    assert_eq!(copy.altered(), None);
    let path = copy.path();
    drop(copy);
    assert!(!path.exists());
    assert_eq!(staged.names(), 1);
    drop(shelf);
    assert_eq!(staged.names(), 0);
}

#[test]
fn two_copies_share_nothing() {
    let staged = Staged::new();
    let shelf = staged.shelf();
    let (first, second) =
        (shelf.copy(&corpus(), &|| false).unwrap(), shelf.copy(&corpus(), &|| false).unwrap());
    let victim = first.path().join("skills/a/SKILL.md");
    unlock(&victim).unwrap();
    fs::write(&victim, "evil").unwrap();
    assert_eq!(fs::read_to_string(second.path().join("skills/a/SKILL.md")).unwrap(), "second");
    assert_eq!(first.altered().as_deref(), Some("was changed at skills/a/SKILL.md"));
    assert_eq!(second.altered(), None);
}

/// Goes on once the file system's clock, which is coarse, has moved on from when `copy` was written.
fn outlive(copy: &Copy) {
    let written = copy.stamps.last().unwrap().changed;
    let probe = tempfile::NamedTempFile::new_in(copy.shelf.path.parent().unwrap()).unwrap();
    loop {
        probe.as_file().set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
        if Stamp::of(&probe.as_file().metadata().unwrap()).changed > written {
            return;
        }
    }
}

#[test]
fn a_change_is_found_out_even_when_it_was_undone() {
    type Attack = fn(&Path) -> io::Result<()>;
    let definition = "was changed at skills/b/SKILL.md";
    let attacks: [(&str, Attack); 9] = [
        (definition, |skill| {
            unlock(&skill.join("SKILL.md"))?;
            fs::write(skill.join("SKILL.md"), "THIRD")
        }),
        (definition, |skill| {
            unlock(&skill.join("SKILL.md"))?;
            fs::write(skill.join("SKILL.md"), "third")
        }),
        (definition, |skill| {
            unlock(skill)?;
            fs::remove_file(skill.join("SKILL.md"))
        }),
        (definition, |skill| {
            unlock(skill)?;
            fs::rename(skill.join("SKILL.md"), skill.join("x"))?;
            fs::rename(skill.join("x"), skill.join("SKILL.md"))
        }),
        (definition, |skill| {
            unlock(skill.parent().unwrap())?;
            fs::rename(skill, skill.with_file_name("moved"))?;
            symlink("moved", skill)
        }),
        ("had something put into skills", |skill| {
            unlock(skill.parent().unwrap())?;
            fs::create_dir(skill.with_file_name("planted"))
        }),
        ("had something put into skills", |skill| {
            unlock(skill.parent().unwrap())?;
            fs::create_dir(skill.with_file_name("planted"))?;
            fs::remove_dir(skill.with_file_name("planted"))
        }),
        ("had something put into it", |skill| {
            let copy = skill.ancestors().nth(2).unwrap();
            unlock(copy)?;
            fs::create_dir(copy.join("hooks"))
        }),
        ("was moved away", |skill| {
            let copy = skill.ancestors().nth(2).unwrap();
            fs::rename(copy, copy.with_file_name("moved"))?;
            symlink("moved", copy)
        }),
    ];
    let staged = Staged::new();
    let shelf = staged.shelf();
    for (number, (told, attack)) in attacks.into_iter().enumerate() {
        let copy = shelf.copy(&corpus(), &|| false).unwrap();
        outlive(&copy);
        let skill = copy.path().join("skills/b");
        attack(&skill).unwrap();
        assert_eq!(copy.altered().as_deref(), Some(told), "attack {number}");
    }
}

#[test]
fn what_a_skill_leaves_in_its_own_folder_is_borne() {
    let staged = Staged::new();
    let copy = staged.shelf().copy(&corpus(), &|| false).unwrap();
    outlive(&copy);
    let scripts = copy.path().join("skills/a/scripts");
    for path in [&scripts, &scripts.join("run.sh")] {
        unlock(path).unwrap();
    }
    fs::create_dir(scripts.join("__pycache__")).unwrap();
    assert_eq!(copy.altered(), None);
    fs::write(scripts.join("run.sh"), "evil").unwrap();
    assert_eq!(copy.altered().as_deref(), Some("was changed at skills/a/scripts/run.sh"));
}

#[test]
fn d12_a_removal_follows_no_link_and_needs_no_mode() {
    let staged = Staged::new();
    let victims = staged.temp.path().join("victims");
    fs::create_dir(&victims).unwrap();
    fs::write(victims.join("mine"), "mine").unwrap();
    let shelf = staged.shelf();
    let copy = shelf.copy(&corpus(), &|| false).unwrap();
    let skills = copy.path().join("skills");
    unlock(&skills).unwrap();
    symlink(&victims, skills.join("c")).unwrap();
    fs::rename(skills.join("b"), skills.join("d")).unwrap();
    symlink(&victims, skills.join("b")).unwrap();
    fs::set_permissions(skills.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
    drop(copy);
    drop(shelf);
    assert_eq!(staged.names(), 0);
    assert_eq!(fs::read_to_string(victims.join("mine")).unwrap(), "mine");
}

#[test]
fn d12_nothing_is_written_through_a_planted_link() {
    let staged = Staged::new();
    let victims = staged.temp.path().join("victims");
    fs::create_dir(&victims).unwrap();
    fs::create_dir_all(staged.home.path()).unwrap();
    symlink(&victims, staged.home.staged()).unwrap();
    let shelf = staged.shelf();
    let copy = shelf.copy(&corpus(), &|| false).unwrap();
    assert_eq!(fs::read_dir(&victims).unwrap().count(), 0);
    assert!(copy.path().join("skills/a/SKILL.md").exists());
}

#[test]
fn what_a_dead_leg_left_is_swept_up_and_what_a_live_one_uses_is_not() {
    let staged = Staged::new();
    let leave = |run: &RunId| {
        let shelf = Shelf::open(&staged.home, run).unwrap();
        std::mem::forget(shelf.copy(&corpus(), &|| false).unwrap());
        std::mem::forget(shelf);
    };
    let [alive, dead, gone] = ["1-alive", "1-dead", "1-gone"].map(|id| RunId::parse(id).unwrap());
    let lock = lock::acquire(&staged.home.run(&alive)).unwrap();
    drop(lock::acquire(&staged.home.run(&dead)).unwrap());
    for run in [&alive, &dead, &gone] {
        leave(run);
    }
    fs::create_dir(staged.home.staged().join("not a run's")).unwrap();
    sweep(&staged.home, None);
    let mut left: Vec<String> = fs::read_dir(staged.home.staged())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert!(left.len() == 2 && left[0].starts_with("1-alive-") && left[1] == "not a run's", "{left:?}");
    // A later leg of the same run holds the lock itself.
    drop(lock);
    let lock = lock::acquire(&staged.home.run(&alive)).unwrap();
    let shelf = Shelf::open(&staged.home, &alive).unwrap();
    assert_eq!(staged.names(), 2);
    drop((shelf, lock));
    assert_eq!(staged.names(), 1);
}

#[test]
fn a_copy_that_cannot_be_made_leaves_nothing() {
    let staged = Staged::new();
    let shelf = staged.shelf();
    let clash: Arc<[Planned]> = Arc::new([planned("skills/a", "a file"), planned("skills/a/SKILL.md", "")]);
    shelf.copy(&clash, &|| false).unwrap_err();
    unlock(&shelf.path).unwrap();
    assert_eq!(fs::read_dir(&shelf.path).unwrap().count(), 0);
}
