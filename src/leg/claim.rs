//! Claiming a run: its directory and its lock, before it says anything; and what it says while it is being planned.
//!
//! A planned run is one leg with two beginnings (ADR 0023 of the design): `run_started` with `phase: planning` before the
//! planner is asked, and the ordinary one once there is a graph. A plan that comes to nothing closes it as failed.

use std::sync::Arc;

use crate::clock::SharedClock;
use crate::leg::open::{LegError, Order};
use crate::leg::watched;
use crate::process::Launcher;
use crate::record::feed::FeedError;
use crate::record::lock::{self, LegLock};
use crate::record::observe::Observer;
use crate::record::{Event, EventKind, Feed, Home, RunDir, RunId, Usage, artifact, mint};
use crate::text::money::Cost;

/// A run that has its directory and its lock, and has said nothing yet but that it is being planned, if it is.
pub struct Claimed {
    /// The run.
    pub run: RunId,
    /// Its directory.
    pub dir: RunDir,
    pub(super) lock: LegLock,
    /// The feed of a run that is being planned.
    pub(super) planning: Option<Arc<Feed>>,
}

impl Claimed {
    /// Claims a run that is there already, for a later leg.
    ///
    /// # Errors
    /// When another leg holds its lock.
    pub fn again(run: RunId, dir: RunDir) -> Result<Self, LegError> {
        let lock = lock::acquire_again(&dir)?;
        artifact::remove_leftovers(&dir);
        Ok(Claimed { run, dir, lock, planning: None })
    }

    /// Claims a new run under `home`.
    ///
    /// # Errors
    /// When its directory or its lock cannot be had.
    pub fn new(home: &Home, clock: &SharedClock) -> Result<Self, LegError> {
        let (run, dir) = mint::new_run(home, &**clock)?;
        let lock = lock::acquire(&dir)?;
        Ok(Claimed { run, dir, lock, planning: None })
    }

    /// Says that the run is being planned, and posts the guard over the planner.
    ///
    /// # Errors
    /// When that cannot be recorded.
    pub fn begin_planning(
        &mut self,
        launcher: &Launcher,
        clock: &SharedClock,
        observer: &Arc<dyn Observer>,
    ) -> Result<(), LegError> {
        launcher.name_run(self.run.as_str());
        let feed = Arc::new(Feed::open(&self.dir, &self.run, Arc::clone(clock))?);
        feed.append(&[Event { phase: "planning".to_owned(), ..Event::new(EventKind::RunStarted) }])?;
        self.planning = Some(feed);
        watched::post(launcher, &self.dir, observer);
        Ok(())
    }

    /// Closes a run that was being planned as failed: nothing of it will run. What was paid is told, and why.
    ///
    /// # Errors
    /// When that cannot be recorded.
    pub fn give_up_planning(
        self,
        launcher: &Launcher,
        paid: (Cost, Usage),
        why: &str,
    ) -> Result<(), LegError> {
        launcher.sweep();
        if let Some(feed) = self.planning {
            close(&feed, paid, why)?;
        }
        launcher.dismiss_guard();
        Ok(())
    }

    /// What closes the run should its leg not open, if it was being planned.
    pub(super) fn unfinished(&self, order: &Order) -> Option<Unfinished> {
        let feed = self.planning.clone()?;
        let paid = order.planned.as_ref().map(|planned| planned.planning).unwrap_or_default();
        Some(Unfinished { feed, launcher: Arc::clone(&order.launcher), paid })
    }
}

/// A run that was being planned and whose leg did not open.
pub(super) struct Unfinished {
    feed: Arc<Feed>,
    launcher: Arc<Launcher>,
    paid: (Cost, Usage),
}

impl Unfinished {
    /// Says so, as far as anything can still be written.
    pub(super) fn close(self) {
        close(&self.feed, self.paid, "its leg could not begin").ok();
        self.launcher.dismiss_guard();
    }
}

fn close(feed: &Feed, (cost, usage): (Cost, Usage), why: &str) -> Result<(), FeedError> {
    let last = Event { outcome: "failed".to_owned(), ..Event::new(EventKind::RunFinished) };
    let mut last = Event { detail: why.to_owned(), ..last };
    last.set_charge(cost, usage);
    let told = feed.append(&[last]);
    feed.close();
    told
}
