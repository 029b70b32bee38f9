//! Internal files beside the contract: `guard.json`, what a guard did after its engine had died, and `detached.log`,
//! what a run in the background had to say.

use std::fs::File;
use std::io;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::record::artifact::{self, ArtifactError};
use crate::record::{RunDir, lock, private};

/// What a guard did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardNote {
    /// The pid of the engine that died.
    pub engine: u32,
    /// When the guard was done, RFC 3339.
    pub at: String,
    /// How many processes it ended.
    pub ended: usize,
    /// How many it could not end.
    pub left: usize,
}

impl GuardNote {
    /// Leaves the note in `run`, in the place of whatever lies there.
    pub fn leave(&self, run: &RunDir) -> Result<(), ArtifactError> {
        let text = serde_json::to_string(self).expect("numbers and text always encode") + "\n";
        artifact::persist(&run.guard_note(), text.as_bytes())
    }

    fn read(run: &RunDir) -> Option<Self> {
        private::read_json(&run.guard_note())
    }
}

/// Removes the note of an earlier leg's guard: it says nothing of the leg that begins.
pub fn forget_guard(run: &RunDir) -> io::Result<()> {
    private::remove_file(&run.guard_note())
}

/// Whether a guard confirmed that nothing is left of the run's last leg, whose process is gone.
pub fn children_were_ended(run: &RunDir) -> bool {
    GuardNote::read(run).is_some_and(|note| note.left == 0 && lock::signer(run) == Some(note.engine))
}

/// How many skills the leg that planned staged, by its record. To be told and nothing else: a node may have written it.
pub fn skills_staged(run: &RunDir) -> Option<usize> {
    #[derive(Deserialize)]
    struct Staged {
        skills: Vec<IgnoredAny>,
    }
    private::read_json(&run.skills_manifest()).map(|staged: Staged| staged.skills.len())
}

/// Opens the log of a run in the background to append to it.
pub fn open_log(run: &RunDir) -> io::Result<File> {
    private::open_to_append(&run.log())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn died(note: Option<GuardNote>) -> (tempfile::TempDir, RunDir) {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::new(home.path().join("1-a"));
        drop(lock::acquire(&run).unwrap());
        if let Some(note) = note {
            note.leave(&run).unwrap();
        }
        (home, run)
    }

    fn note() -> GuardNote {
        GuardNote { engine: std::process::id(), at: "2026-01-02T03:04:05Z".to_owned(), ended: 2, left: 0 }
    }

    #[test]
    fn only_a_note_about_the_last_leg_that_left_nothing_confirms() {
        let check = |note: Option<GuardNote>, confirms: bool| {
            let (_home, run) = died(note.clone());
            assert_eq!(children_were_ended(&run), confirms, "{note:?}");
            forget_guard(&run).unwrap();
            assert!(!children_were_ended(&run));
        };
        check(None, false);
        check(Some(note()), true);
        check(Some(GuardNote { left: 1, ..note() }), false);
        check(Some(GuardNote { engine: 1, ..note() }), false);
    }

    #[test]
    fn d12_a_note_is_private_and_goes_through_no_link() {
        let (home, run) = died(None);
        let victim = home.path().join("victim");
        std::fs::write(&victim, serde_json::to_string(&note()).unwrap()).unwrap();
        symlink(&victim, run.guard_note()).unwrap();
        assert!(!children_were_ended(&run), "a link confirms nothing");
        GuardNote { ended: 7, ..note() }.leave(&run).unwrap();
        let about = std::fs::symlink_metadata(run.guard_note()).unwrap();
        assert!(about.is_file() && about.mode() & 0o777 == 0o600);
        assert!(std::fs::read_to_string(&victim).unwrap().contains("\"ended\":2"));
    }
}
