//! The guard of a run: no command of a person's, but what this program is when a leg starts it as its guard.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use crate::clock::{self, Clock, SystemClock};
use crate::process::guard::Orders;
use crate::process::guard::post::{self, Parting};
use crate::record::RunDir;
use crate::record::aside::GuardNote;

/// Stands guard when the command line says so; `None` when it is a person's.
pub(super) fn stand(words: &[OsString]) -> Option<u8> {
    let orders = Orders::read(words)?;
    if let Parting::Bereaved { ended, left } = post::keep(&orders, io::stdout().as_fd()) {
        let at = clock::rfc3339(SystemClock.now());
        // There is nobody to tell; without a note, whoever looks at the run is warned.
        GuardNote { engine: orders.engine, at, ended, left }.leave(&RunDir::new(orders.place)).ok();
    }
    Some(0)
}
