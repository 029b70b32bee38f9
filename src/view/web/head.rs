//! Requests as they come in on one connection: read within bounds of size, number and time, one after the other.
//!
//! Nothing that a peer sends is kept beyond [`HEAD_BYTES_MAX`] and [`BODY_BYTES_MAX`], and no peer holds its connection
//! longer than it has something to say.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::http::{Refusal, Request};

/// The longest head, in bytes: many times what a browser sends.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// The longest body, in bytes: the longest that any route takes is 4 KiB, and says so itself.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// How long a connection may be silent before a request begins.
const IDLE: Duration = Duration::from_secs(5);
/// How long a head may take from its first byte, and how long its body.
const PATIENCE: Duration = Duration::from_secs(5);
/// As much as is read at a time, in bytes.
const PIECE_BYTES: usize = 4 * 1024;

const TOO_LONG: Refusal = Refusal(431, "the head of a request has at most 16 KiB and 64 headers here");
const TOO_BIG: Refusal = Refusal(413, "nothing here takes a body that long");
const NO_LENGTH: Refusal = Refusal(411, "a body needs a Content-Length here");
const SLOW: Refusal = Refusal(408, "the request did not arrive in time");
const OTHER_VERSION: Refusal = Refusal(505, "this server speaks HTTP/1.0 and HTTP/1.1");
const MALFORMED: Refusal = Refusal(400, "this is no HTTP request");

/// What comes in on one connection.
pub(super) struct Incoming<'a> {
    socket: &'a TcpStream,
    /// What was read and belongs to no request yet.
    buffer: Vec<u8>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(socket: &'a TcpStream) -> Self {
        Incoming { socket, buffer: Vec::new() }
    }

    /// The next request; `None` when the peer is gone or has nothing more to say.
    ///
    /// # Errors
    /// Why what comes is not taken. Where the next request would begin is not known then.
    pub(super) fn next(&mut self) -> Result<Option<Request>, Refusal> {
        let Some((mut request, length)) = self.head()? else { return Ok(None) };
        let until = Instant::now() + PATIENCE;
        while self.buffer.len() < length {
            match self.fill(until) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(_) => return Err(SLOW),
            }
        }
        request.body = self.buffer.drain(..length).collect();
        Ok(Some(request))
    }

    /// The next head, and the length of the body that follows.
    fn head(&mut self) -> Result<Option<(Request, usize)>, Refusal> {
        let mut has_begun = !self.buffer.is_empty();
        let mut until = Instant::now() + if has_begun { PATIENCE } else { IDLE };
        loop {
            if let Some(head) = parse(&self.buffer)? {
                self.buffer.drain(..head.length);
                return Ok(Some((head.request, head.body)));
            }
            match self.fill(until) {
                Ok(0) => return Ok(None),
                Ok(_) if !has_begun => {
                    has_begun = true;
                    until = Instant::now() + PATIENCE;
                }
                Ok(_) => {}
                Err(_) if has_begun => return Err(SLOW),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Reads some more; 0 at the end.
    fn fill(&mut self, until: Instant) -> io::Result<usize> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.read(&mut piece) {
                Ok(read) => {
                    self.buffer.extend_from_slice(&piece[..read]);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

struct Head {
    request: Request,
    /// How many bytes it had.
    length: usize,
    /// How many are to follow.
    body: usize,
}

/// The head at the beginning of `bytes`, if all of it is there.
fn parse(bytes: &[u8]) -> Result<Option<Head>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
        Err(httparse::Error::Version) => return Err(OTHER_VERSION),
        Err(_) => return Err(MALFORMED),
    };
    let text = |header: &httparse::Header<'_>| {
        let value = std::str::from_utf8(header.value).map_err(|_| MALFORMED)?;
        Ok((header.name.to_owned(), value.to_owned()))
    };
    let request = Request::new(
        parsed.method.unwrap_or_default(),
        parsed.path.unwrap_or_default(),
        parsed.version == Some(0),
        parsed.headers.iter().map(text).collect::<Result<_, _>>()?,
    );
    let body = body_length(&request)?;
    Ok(Some(Head { request, length, body }))
}

fn body_length(request: &Request) -> Result<usize, Refusal> {
    if request.has("Transfer-Encoding") {
        return Err(NO_LENGTH);
    }
    if !request.has("Content-Length") {
        return Ok(0);
    }
    let told = request.header("Content-Length").unwrap_or_default();
    if told.is_empty() || !told.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    // What is no number then is too big for one.
    told.parse().ok().filter(|length| *length <= BODY_BYTES_MAX).ok_or(TOO_BIG)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn refused(head: &str) -> u16 {
        parse(head.as_bytes()).map(|_| ()).unwrap_err().0
    }

    #[test]
    fn a_head_ends_where_its_body_begins() {
        let head =
            parse(b"POST /a?b=c HTTP/1.1\r\nHost: x\r\ncontent-length: 2\r\n\r\n{}GET").unwrap().unwrap();
        assert_eq!((head.length, head.body), (52, 2));
        assert_eq!((head.request.path(), head.request.header("HOST")), ("/a", Some("x")));
        assert!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap().is_none());
    }

    #[test]
    fn what_is_too_long_or_too_much_is_refused_before_it_is_whole() {
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_BYTES_MAX))), 431);
        assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(HEAD_BYTES_MAX))), 431);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(HEADERS_MAX + 1))), 431);
    }

    #[test]
    fn only_a_body_of_a_known_and_small_length_is_taken() {
        let with = |headers: &str| refused(&format!("POST / HTTP/1.1\r\n{headers}\r\n"));
        assert_eq!(with("Content-Length: 99999999999999999999\r\n"), 413);
        assert_eq!(with("Content-Length: 16385\r\n"), 413);
        assert_eq!(with("Content-Length: -1\r\n"), 400);
        assert_eq!(with("Content-Length: 1\r\nContent-Length: 2\r\n"), 400);
        assert_eq!(with("Transfer-Encoding: chunked\r\n"), 411);
    }

    #[test]
    fn what_is_no_http_of_these_versions_is_refused() {
        assert_eq!(refused("GET / HTTP/9.9\r\n\r\n"), 505);
        assert_eq!(refused("\u{0}\u{1}\r\n\r\n"), 400);
        assert_eq!(refused("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
    }
}
