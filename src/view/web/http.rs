//! Requests and answers of HTTP/1.1, as the rest of the view sees them, and how an answer is written.
//!
//! `door` takes connections and `head` reads what they bring; here nothing is known of either. An answer is written as long
//! as its peer takes some of it now and then; each connection has a thread of its own, so one that does not holds up nobody.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a peer may take for one piece of an answer, even if it always takes some.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    method: String,
    path: String,
    query: String,
    is_old: bool,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Why what a peer sent is no request: a status, and a line for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str);

/// What is done about a request: `Get` stands for HEAD too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// GET or HEAD.
    Get,
    /// POST.
    Post,
    /// Anything else.
    Other,
}

impl Request {
    /// A request without its body. `is_old` is one of HTTP/1.0.
    pub(super) fn new(method: &str, target: &str, is_old: bool, headers: Vec<(String, String)>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        Request { method, path, query, is_old, headers, body: Vec::new() }
    }

    /// The path as it was sent: nothing in it is decoded.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// What is asked.
    pub(super) fn verb(&self) -> Verb {
        match self.method.as_str() {
            "GET" | "HEAD" => Verb::Get,
            "POST" => Verb::Post,
            _ => Verb::Other,
        }
    }

    /// The decoded value of `name` in the query; `None` when it is missing or no text.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
        decoded(value)
    }

    /// The value of the header `name`; `None` when there is none or more than one.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// Whether there is a header `name` at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name))
    }

    /// Whether its connection ends with it.
    pub(super) fn is_last(&self) -> bool {
        let told = self.header("Connection").unwrap_or_default().to_ascii_lowercase();
        told.contains("close") || (self.is_old && !told.contains("keep-alive"))
    }
}

/// Undoes percent-encoding; `None` when it is none, or hides no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// What a request is answered with.
pub(super) enum Answer {
    /// All at once.
    Whole(Whole),
    /// Bit by bit, for as long as the function runs; it is called on the thread of the request.
    Stream(Vec<(&'static str, String)>, Body),
}

/// What fills a stream.
pub(super) type Body = Box<dyn FnOnce(&mut Stream<'_>) -> io::Result<()> + Send>;

/// An answer that is known in full.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// An answer of this kind of content.
    pub(super) fn of(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type", kind.to_owned())];
        Answer::Whole(Whole { status, headers, body: body.into() })
    }

    /// A line for a person.
    pub(super) fn text(status: u16, line: impl Into<String>) -> Self {
        Answer::of(status, "text/plain; charset=utf-8", line.into() + "\n")
    }

    /// Nothing.
    pub(super) fn empty() -> Self {
        Answer::Whole(Whole { status: 204, headers: Vec::new(), body: Vec::new() })
    }

    /// The same with another header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        match &mut self {
            Answer::Whole(Whole { headers, .. }) | Answer::Stream(headers, _) => {
                headers.push((name, value.into()));
            }
        }
        self
    }
}

/// The writing end of an answer that goes on.
pub(super) struct Stream<'a>(&'a TcpStream);

impl Stream<'_> {
    /// Sends a chunk that [`chunk`] made.
    ///
    /// # Errors
    /// When the peer is gone, or does not take it.
    pub(super) fn send(&mut self, chunk: &[u8]) -> io::Result<()> {
        send(self.0, chunk)
    }
}

/// `text` as it goes over the wire, so that it is made once for all who get it.
pub(super) fn chunk(text: &[u8]) -> Arc<[u8]> {
    let mut bytes = format!("{:x}\r\n", text.len()).into_bytes();
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
    bytes.into()
}

/// Writes `answer` to `request`, or to what is none.
///
/// # Errors
/// When the peer is gone or does not take it; or the connection cannot go on for another reason.
pub(super) fn answer(socket: &TcpStream, request: Option<&Request>, answer: Answer) -> io::Result<()> {
    let is_head = request.is_some_and(|request| request.method == "HEAD");
    let closes = if request.is_none_or(Request::is_last) { "Connection: close\r\n" } else { "" };
    match answer {
        Answer::Whole(Whole { status, headers, body }) => {
            let length =
                if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
            let mut bytes = head(status, &headers, &format!("{length}{closes}"));
            if !is_head {
                bytes.extend_from_slice(&body);
            }
            send(socket, &bytes)
        }
        Answer::Stream(headers, run) => {
            send(socket, &head(200, &headers, &format!("Transfer-Encoding: chunked\r\n{closes}")))?;
            if is_head {
                return Ok(());
            }
            let mut stream = Stream(socket);
            run(&mut stream)?;
            stream.send(&chunk(b""))
        }
    }
}

fn head(status: u16, headers: &[(&'static str, String)], more: &str) -> Vec<u8> {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} {}\r\n{lines}{more}\r\n", reason(status)).into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        // The number is what counts; the words are for people.
        _ => "Error",
    }
}

/// Writes all of `bytes`. The timeout of the socket bounds how long none of it is taken.
fn send(mut socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_query_is_decoded_once() {
        assert_eq!(decoded("a%2Fb+c%25").as_deref(), Some("a/b c%"));
        assert_eq!(decoded("%zz"), None);
        assert_eq!(decoded("%f"), None);
        assert_eq!(decoded("%ff"), None);
    }

    #[test]
    fn a_chunk_carries_its_length() {
        assert_eq!(&*chunk(b"data: x\n\n"), b"9\r\ndata: x\n\n\r\n");
        assert_eq!(&*chunk(b""), b"0\r\n\r\n");
    }
}
