//! The guard of a leg: posted when it begins, dismissed when it has closed (`ARCHITECTURE` 6).
//!
//! A leg without a guard runs as well as any; what is lost is said.

use crate::leg::open::Leg;
use crate::record::aside;
use crate::record::observe::Notice;

impl Leg {
    /// Posts the guard, except over a rehearsal, which has no children.
    pub(super) fn post_guard(&self) {
        let observer = std::sync::Arc::clone(&self.observer);
        let warn = move |message: String| observer.notice(Notice::Warning { node: None, message });
        if let Err(error) = aside::forget_guard(&self.dir) {
            warn(format!("what an earlier guard left cannot be removed: {error}"));
        }
        if self.order.rehearsal.is_none() {
            self.order.launcher.post_guard(self.dir.path().to_owned(), Box::new(warn));
        }
    }
}
