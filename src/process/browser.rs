//! Opens a page of this machine in the person's browser (FACTS 5.7).
//!
//! Only a plain address on the loopback is ever handed to the system's opener. What it starts belongs to the person and not
//! to this program: it has a group of its own, so that a Ctrl-C here is not meant for it, and a marker of its own, so that
//! nobody takes a browser that this process adopted for what a node left running. The opener itself is not waited for by the
//! caller, and never ended: it may have become the browser.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use crate::process::env::mark_name;
use crate::process::find;
use crate::process::own::Staff;

#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Why no browser was opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is not one that is opened.
    #[error("{0} is no page of this machine")]
    Elsewhere(String),
    /// There is nothing that it could be shown on.
    #[error("there is no display")]
    NoDisplay,
    /// There is no opener.
    #[error("there is no {OPENER}")]
    NoOpener,
    /// It could not be started.
    #[error("cannot start {OPENER}: {0}")]
    Start(#[from] io::Error),
}

/// Opens `address`.
///
/// # Errors
/// When it is not `http://` and a loopback name or number, with a path at most, or no opener can be started.
pub fn open(address: &str) -> Result<(), OpenError> {
    if !is_own(address) {
        return Err(OpenError::Elsewhere(address.to_owned()));
    }
    if !has_display(|name| std::env::var_os(name)) {
        return Err(OpenError::NoDisplay);
    }
    let opener = find::find(OPENER).map_err(|_| OpenError::NoOpener)?;
    let staff = Staff::start(&mut command(opener.into(), address))?;
    let wait = move || drop(staff.wait());
    thread::Builder::new().name("browser".to_owned()).spawn(wait)?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "part of the floor that starts children")]
fn command(program: OsString, address: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(address).env(mark_name("browser"), "1").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether a browser would have a window. Without one the opener takes a text browser, and that takes the terminal.
fn has_display(var: impl Fn(&str) -> Option<OsString>) -> bool {
    let names = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"];
    cfg!(target_os = "macos") || names.iter().any(|name| var(name).is_some_and(|value| !value.is_empty()))
}

fn is_own(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("http://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let loopback = name == "localhost" || name.parse::<std::net::Ipv4Addr>().is_ok_and(|it| it.is_loopback());
    loopback
        && !rest.contains(['?', '#', '@'])
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_of_this_machine_are_opened() {
        for address in ["http://127.0.0.1:8642/", "http://localhost:1/run/x/", "http://127.0.0.1"] {
            assert!(is_own(address), "{address}");
        }
        for address in [
            "https://127.0.0.1/",
            "http://evil/",
            "http://127.0.0.1@evil/",
            "http://127.0.0.1/?a=b",
            "http://127.0.0.1/#a",
            "http://127.0.0.1.evil/",
            "http://127.0.0.1/ -x",
            "-x",
            "",
        ] {
            assert!(matches!(open(address), Err(OpenError::Elsewhere(_))), "{address}");
        }
    }
}
