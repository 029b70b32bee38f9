//! Who holds a port that could not be bound (FACTS 9.1, case H8).
//!
//! It is asked for its page and recognised by the metas. It is never ended, and an answer is waited for only briefly.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::build::Build;

/// How long asking may take, all in all.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much of a page is read, in bytes.
const PAGE_BYTES_MAX: usize = 64 * 1024;
/// The longest value of a meta, in bytes.
const META_BYTES_MAX: usize = 128;

/// The build of the server on `port`; `None` when it is no `omg`, or does not say so in time.
pub fn identify(port: u16) -> Option<Build> {
    let page = ask(port).ok()?;
    let page = String::from_utf8_lossy(&page);
    (page.starts_with("HTTP/1.1 200 ") || page.starts_with("HTTP/1.0 200 ")).then_some(())?;
    let [version, revision, built_at] =
        ["omg-version", "omg-revision", "omg-built-at"].map(|name| meta(&page, name));
    let version = version.filter(|version| !version.is_empty())?;
    Some(Build { version, revision: revision?, built_at: built_at? })
}

fn ask(port: u16) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(left) }
    };
    let mut peer = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), left()?)?;
    peer.set_write_timeout(Some(left()?))?;
    write!(peer, "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
    let mut page = Vec::new();
    let mut piece = [0; 4096];
    while page.len() < PAGE_BYTES_MAX {
        peer.set_read_timeout(Some(left()?))?;
        match peer.read(&mut piece)? {
            0 => break,
            read => page.extend_from_slice(&piece[..read]),
        }
        // All metas stand before the end of the head.
        if memchr::memmem::find(&page, b"</head>").is_some() {
            break;
        }
    }
    Ok(page)
}

fn meta(page: &str, name: &str) -> Option<String> {
    let rest = page.split_once(&format!("<meta name=\"{name}\" content=\""))?.1;
    let value = rest.split_once('"')?.0;
    let plain = value.len() <= META_BYTES_MAX && !value.contains(char::is_control);
    let undone =
        || value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    plain.then(undone)
}

/// What to say about a taken `port`, and what to do; `own` is this build.
pub fn words(port: u16, held_by: Option<&Build>, own: &Build) -> (String, String) {
    let next = if port == u16::MAX { 8642 } else { port + 1 };
    match held_by {
        None => (
            format!("port {port} is taken, and not by an omg that answers"),
            format!("take another one: --port {next}, or --port 0 for any"),
        ),
        Some(other) if other == own => (
            format!("port {port} is served already, by this same build of omg, {}", own.label()),
            format!("open http://127.0.0.1:{port}/, or serve beside it with --port {next}"),
        ),
        Some(other) => {
            let than = age(other, own);
            (
                format!(
                    "port {port} is served by {than} build of omg, {}; this one is {}",
                    other.label(),
                    own.label()
                ),
                format!("stop that one, or serve beside it with --port {next}"),
            )
        }
    }
}

fn age(other: &Build, own: &Build) -> &'static str {
    let moment = |build: &Build| build.built_at.parse::<jiff::Timestamp>().ok();
    match (moment(other), moment(own)) {
        (Some(theirs), Some(ours)) if theirs < ours => "an older",
        (Some(theirs), Some(ours)) if theirs > ours => "a newer",
        _ => "a different",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, built_at: &str) -> Build {
        Build { version: version.into(), revision: String::new(), built_at: built_at.into() }
    }

    #[test]
    fn h8_the_holder_of_a_port_is_named_and_a_way_on_is_shown() {
        let own = build("2", "2026-01-02T00:00:00Z");
        for (port, other, what, way) in [
            (8642, None, "taken, and not by an omg", "--port 8643"),
            (
                8642,
                Some(own.clone()),
                "this same build of omg, v2 (built 2026-01-02 00:00)",
                "http://127.0.0.1:8642/",
            ),
            (
                u16::MAX,
                Some(build("1", "2026-01-01T00:00:00+01:00")),
                "an older build of omg, v1",
                "--port 8642",
            ),
            (1, Some(build("2", "2027-01-01T00:00:00Z")), "a newer build", "--port 2"),
            (1, Some(build("2", "")), "a different build", "--port 2"),
        ] {
            let (said, hint) = words(port, other.as_ref(), &own);
            assert!(said.contains(what) && hint.contains(way), "{said} / {hint}");
        }
    }

    #[test]
    fn a_meta_is_read_as_it_was_written() {
        let page = "<meta name=\"omg-version\" content=\"a&amp;lt;&quot;\">";
        assert_eq!(meta(page, "omg-version").as_deref(), Some("a&lt;\""));
        assert_eq!(meta(page, "omg-revision"), None);
        assert_eq!(meta("<meta name=\"x\" content=\"a\nb\">", "x"), None);
        let long = format!("<meta name=\"x\" content=\"{}\">", "a".repeat(META_BYTES_MAX + 1));
        assert_eq!(meta(&long, "x"), None);
    }
}
