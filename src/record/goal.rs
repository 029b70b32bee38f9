//! The goal of a planned run, kept beside it as `goal.json` from before its planner is asked.
//!
//! The snapshot has the block too once there is one (RUN-FEED "Goal cycles"), and only where a goal may take several cycles. A
//! run that is being planned, and one whose plan was refused, has no snapshot.

use crate::record::RunDir;
use crate::record::artifact::{self, ArtifactError};
use crate::record::private;
use crate::record::snapshot::GoalState;
use crate::record::snapshot_reader;

impl GoalState {
    /// Keeps it in the run's directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, dir: &RunDir) -> Result<(), ArtifactError> {
        let text = serde_json::to_string_pretty(self).expect("it holds nothing that JSON cannot");
        artifact::persist(&dir.goal(), (text + "\n").as_bytes())
    }

    /// The goal of the run in `dir`; `None` of one that was not planned. A planned run of another program has the block in its
    /// snapshot alone.
    pub fn read(dir: &RunDir) -> Option<GoalState> {
        private::read_json(&dir.goal()).or_else(|| {
            let is_planned = dir.plan().symlink_metadata().is_ok();
            is_planned.then(|| snapshot_reader::goal(dir)).flatten()
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn goal() -> GoalState {
        GoalState {
            text: "make it good".into(),
            cycle: 1,
            max_cycles: 3,
            first_run_id: "1-a".into(),
            budget_usd: None,
        }
    }

    #[test]
    fn the_goal_of_a_run_is_found_before_and_without_a_snapshot_and_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::new(folder.path().to_path_buf());
        assert_eq!(GoalState::read(&dir), None);
        goal().keep(&dir).unwrap();
        assert_eq!(GoalState::read(&dir), Some(goal()));
        fs::remove_file(dir.goal()).unwrap();
        let state = serde_json::json!({"schema": 3, "run_id": "1-a", "graph": {"nodes": []}, "goal": goal()});
        fs::write(dir.snapshot(), state.to_string()).unwrap();
        assert_eq!(GoalState::read(&dir), None, "a hand-written run has no plan");
        fs::write(dir.plan(), "{}").unwrap();
        assert_eq!(GoalState::read(&dir), Some(goal()));
    }

    #[test]
    fn d12_a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::new(folder.path().to_path_buf());
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, serde_json::to_vec(&goal()).unwrap()).unwrap();
        symlink(&elsewhere, dir.goal()).unwrap();
        assert_eq!(GoalState::read(&dir), None);
    }
}
