//! The worktrees of a rehearsal: none is made, and each is set up once, as the script says.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::node::judge::Fault;
use crate::node::worktree::Lanes;

/// Worktrees that are all the directory `base`.
#[derive(Debug)]
pub struct RehearsedLanes {
    base: PathBuf,
    set_up: Mutex<HashSet<String>>,
}

impl RehearsedLanes {
    /// The worktrees of a rehearsal that is started in `base`.
    pub fn new(base: &Path) -> Self {
        RehearsedLanes { base: base.to_path_buf(), set_up: Mutex::default() }
    }
}

impl Lanes for RehearsedLanes {
    fn enter(
        &self,
        name: &str,
        set_up: &mut dyn FnMut(&Path) -> Result<(), Fault>,
    ) -> Result<PathBuf, Fault> {
        let mut ready = self.set_up.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.contains(name) {
            set_up(&self.base)?;
            ready.insert(name.to_owned());
        }
        Ok(self.base.clone())
    }
}
