//! HTTP on the loopback: the one file that names `tiny_http`, and what it takes to trust it with a browser.
//!
//! - It has no timeouts and no access to its sockets. What is set on a listening socket holds for every connection that
//!   it accepts, so the timeouts are set there: a peer that neither sends nor takes anything loses its thread.
//! - A connection that comes with others can wait for a thread that never gets free. The *nudger* connects and hangs up,
//!   often for a moment after each request and ever more seldom when no more come: each nudge brings a thread that takes what waits.
//! - Its acceptor ends at the first error, and can die without telling. The listener is kept, and another acceptor is made
//!   when there is an error, or when not even the nudger's own requests come through.
//! - Its responses cannot stream. [`Answer::Stream`] takes the raw writer and frames the chunks itself.
//!
//! Each request is answered on a thread of its own: an answer to a peer that does not read holds up nobody.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_nodelay};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tiny_http::{Header, Method, Response, Server};

/// How long a connection may be silent before and between requests, and how long a peer may take nothing.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the nudger knocks after a request, and how many times.
const NUDGE_BUSY: (Duration, u32) = (Duration::from_millis(5), 50);
/// How often it knocks then, and for how long: a browser that has asked asks again.
const NUDGE_ALERT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// How often it knocks when nobody asks for anything: each knock wakes up several threads.
const NUDGE_IDLE: Duration = Duration::from_secs(1);
/// How long to wait before a new acceptor is made.
const RECOVERY: Duration = Duration::from_millis(100);
/// How often the nudger asks for something itself, and after how long without any request the acceptor is taken for dead:
/// it dies without a word when there are no more files.
const PULSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(15));
/// What it asks for.
const PULSE_URL: &str = "/pulse";
/// How many files may be open.
const FILES_MAX: u64 = 16 * 1024;
/// What a thread that answers gets as its stack.
const STACK_BYTES: usize = 512 * 1024;

/// One request.
pub(super) struct Request {
    inner: tiny_http::Request,
    path: String,
    query: String,
}

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
    fn of(inner: tiny_http::Request) -> Self {
        let (path, query) = inner.url().split_once('?').unwrap_or((inner.url(), ""));
        Request { path: path.to_owned(), query: query.to_owned(), inner }
    }

    /// The path as it was sent: nothing in it is decoded.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// What is asked.
    pub(super) fn verb(&self) -> Verb {
        match self.inner.method() {
            Method::Get | Method::Head => Verb::Get,
            Method::Post => Verb::Post,
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
    pub(super) fn header(&self, name: &'static str) -> Option<&str> {
        let mut found = self.inner.headers().iter().filter(|header| header.field.equiv(name));
        let first = found.next()?;
        found.next().is_none().then(|| first.value.as_str())
    }

    /// Whether there is a header `name` at all.
    pub(super) fn has(&self, name: &'static str) -> bool {
        self.inner.headers().iter().any(|header| header.field.equiv(name))
    }

    /// The body, if it is no longer than `bytes_max`.
    pub(super) fn body(&mut self, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        self.inner.as_reader().take(bytes_max as u64 + 1).read_to_end(&mut body)?;
        Ok((body.len() <= bytes_max).then_some(body))
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
pub(super) type Body = Box<dyn FnOnce(&mut Stream) -> io::Result<()> + Send>;

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
pub(super) struct Stream(Box<dyn Write + Send>);

impl Stream {
    /// Sends a chunk that [`chunk`] made.
    ///
    /// # Errors
    /// When the peer is gone, or has taken nothing for [`PATIENCE`].
    pub(super) fn send(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.0.write_all(chunk)?;
        self.0.flush()
    }
}

/// `text` as it goes over the wire, so that it is made once for all who get it.
pub(super) fn chunk(text: &[u8]) -> Arc<[u8]> {
    let mut bytes = format!("{:x}\r\n", text.len()).into_bytes();
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
    bytes.into()
}

/// Answers requests.
pub(super) type Handler = dyn Fn(&mut Request) -> Answer + Send + Sync;

/// A listener on the loopback, not yet listened to by anybody.
///
/// # Errors
/// When the port is taken, or the system refuses.
pub(super) fn bind(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    // A system that does not hand these on serves all the same, and keeps stalled peers for longer.
    set_socket_timeout(&listener, Timeout::Recv, Some(PATIENCE)).ok();
    set_socket_timeout(&listener, Timeout::Send, Some(PATIENCE)).ok();
    set_tcp_nodelay(&listener, true).ok();
    Ok(listener)
}

/// Lets this process have many more open files than is usual: a connection takes two. What it starts inherits the limit,
/// so it stays one that no program minds.
pub(super) fn raise_the_limit_on_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_MAX, |maximum| maximum.min(FILES_MAX));
    if limit.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).ok();
    }
}

/// A running server; it ends when this is dropped.
pub(super) struct Running {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    poke: Option<Sender<()>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Running {
    /// Serves `listener`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn start(listener: TcpListener, handler: Arc<Handler>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let (poke, poked) = bounded(1);
        let nudger = spawn("web nudger", move || nudge(address, &poked))?;
        let seen = (Arc::clone(&over), poke.clone());
        let acceptor = spawn("web", move || accept(&listener, &handler, &seen.0, &seen.1))?;
        Ok(Running { address, over, poke: Some(poke), threads: vec![acceptor, nudger] })
    }

    /// Where it is reached.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.poke = None;
        pulse(self.address);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body)
}

fn accept(listener: &TcpListener, handler: &Arc<Handler>, over: &AtomicBool, poke: &Sender<()>) {
    let is_over = || over.load(Ordering::Acquire);
    while !is_over() {
        let server = listener.try_clone().map_err(Into::into).and_then(|it| Server::from_listener(it, None));
        if let Ok(server) = server {
            take(&server, handler, &is_over, poke);
        }
        if !is_over() {
            thread::sleep(RECOVERY);
        }
    }
}

/// Takes requests until the server says that it takes no more connections.
fn take(server: &Server, handler: &Arc<Handler>, is_over: &dyn Fn() -> bool, poke: &Sender<()>) {
    let mut heard = Instant::now();
    while !is_over() && heard.elapsed() < PULSE.1 {
        match server.recv_timeout(NUDGE_IDLE) {
            Ok(Some(request)) => {
                heard = Instant::now();
                if request.url() != PULSE_URL {
                    poke.try_send(()).ok();
                }
                let handler = Arc::clone(handler);
                // Without a thread the peer is answered with a 500, by the request itself as it goes.
                spawn("web answer", move || answer(request, &*handler).unwrap_or_default()).ok();
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

fn answer(request: tiny_http::Request, handler: &Handler) -> io::Result<()> {
    let mut request = Request::of(request);
    match handler(&mut request) {
        Answer::Whole(whole) => {
            let mut response = Response::from_data(whole.body).with_status_code(whole.status);
            // It would answer with chunks otherwise, which a 204 must not have.
            response = response.with_chunked_threshold(usize::MAX);
            for header in
                whole.headers.iter().filter_map(|(name, value)| Header::from_bytes(*name, &**value).ok())
            {
                response.add_header(header);
            }
            request.inner.respond(response)
        }
        Answer::Stream(headers, run) => {
            let mut stream = Stream(request.inner.into_writer());
            let lines =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
            let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{lines}\r\n");
            stream.send(head.as_bytes())?;
            run(&mut stream)?;
            stream.send(&chunk(b""))
        }
    }
}

fn nudge(address: SocketAddr, poked: &Receiver<()>) {
    use crossbeam_channel::RecvTimeoutError::{Disconnected, Timeout};
    let knock = || drop(TcpStream::connect(address));
    let (mut poked_at, mut pulsed_at) = (Instant::now(), Instant::now());
    loop {
        let wait = if poked_at.elapsed() < NUDGE_ALERT.1 { NUDGE_ALERT.0 } else { NUDGE_IDLE };
        match poked.recv_timeout(wait) {
            Ok(()) => {
                poked_at = Instant::now();
                for _ in 0..NUDGE_BUSY.1 {
                    knock();
                    thread::sleep(NUDGE_BUSY.0);
                }
            }
            Err(Disconnected) => return,
            Err(Timeout) if pulsed_at.elapsed() < PULSE.0 => knock(),
            Err(Timeout) => {
                pulsed_at = Instant::now();
                pulse(address);
            }
        }
    }
}

/// Asks for something, so that the acceptor has something to take.
fn pulse(address: SocketAddr) {
    let request = format!("GET {PULSE_URL} HTTP/1.0\r\n\r\n");
    TcpStream::connect(address).and_then(|mut it| it.write_all(request.as_bytes())).ok();
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
