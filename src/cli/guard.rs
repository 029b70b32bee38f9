//! What this program is when it starts itself: the guard of a run, or the engine of one that `omg doctor` kills to try its
//! guard. No commands of a person's.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use crate::clock::{self, Clock, SystemClock};
use crate::process::checkup;
use crate::process::guard::Orders;
use crate::process::guard::post::{self, Parting};
use crate::record::RunDir;
use crate::record::aside::GuardNote;

/// Stands guard, or in for an engine, when the command line says so; `None` when it is a person's.
pub(super) fn stand(words: &[OsString]) -> Option<u8> {
    if let Some(code) = checkup::stand_in(words, &mut io::stdout()) {
        return Some(code);
    }
    let orders = Orders::read(words)?;
    if let Parting::Bereaved { ended, left } = post::keep(&orders, io::stdout().as_fd()) {
        let at = clock::rfc3339(SystemClock.now());
        let note = GuardNote { engine: orders.engine, at, ended, left };
        // There is nobody to tell; without a note, whoever looks at the run is warned.
        orders.place.map(|place| note.leave(&RunDir::new(place)).ok());
    }
    Some(0)
}
