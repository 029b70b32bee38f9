//! Connections on the loopback: how many there may be, who goes first when there are too many, and a thread for each.
//!
//! A flood takes neither the page nor a run from anybody: there are never more connections than a share of the files that
//! this process may open, and when all are taken, the one that has waited longest without a request makes room.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::head::Incoming;
use super::http::{self, Answer, Refusal, Request};

/// How many connections there may be: all streams, and some for what else a page asks.
const CONNECTIONS_MAX: usize = 384;
/// The part of this process's files that connections may take: a run in the same process needs the rest.
const SHARE_OF_FILES: u64 = 4;
/// How many files may be open.
const FILES_MAX: u64 = 16 * 1024;
/// How long a peer may take nothing of what it is sent.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long, and for how many bytes, a peer that was refused is listened to, so that it hears why.
const FAREWELL: (Duration, usize) = (Duration::from_secs(1), 4 << 20);
/// How long the acceptor waits when the system has no more files.
const RECOVERY: Duration = Duration::from_millis(100);
/// What a thread that answers gets as its stack.
const STACK_BYTES: usize = 512 * 1024;

/// Answers requests, and what is no request.
pub(super) type Handler = dyn Fn(Result<&Request, Refusal>) -> Answer + Send + Sync;

/// A listener on the loopback, not yet listened to by anybody.
///
/// # Errors
/// When the port is taken, or the system refuses.
pub(super) fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// Lets this process have many more open files than is usual. What it starts inherits the limit, so it stays one that no
/// program minds. Returns how many there may be.
fn raise_the_limit_on_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_MAX, |maximum| maximum.min(FILES_MAX));
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return wanted };
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }) {
        Ok(()) => wanted,
        Err(_) => current,
    }
}

/// A running server; it ends when this is dropped.
pub(super) struct Running {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    connections: Arc<Connections>,
    acceptor: Option<thread::JoinHandle<()>>,
}

impl Running {
    /// Serves `listener`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn start(listener: TcpListener, handler: Arc<Handler>) -> io::Result<Self> {
        let share = usize::try_from(raise_the_limit_on_files() / SHARE_OF_FILES).unwrap_or(CONNECTIONS_MAX);
        let connections = Arc::new(Connections::new(share.clamp(1, CONNECTIONS_MAX)));
        let (address, listener) = (listener.local_addr()?, Arc::new(listener));
        let acceptor = {
            let (listener, connections) = (Arc::clone(&listener), Arc::clone(&connections));
            spawn("web", move || accept(&listener, &connections, &handler))?
        };
        Ok(Running { address, listener, connections, acceptor: Some(acceptor) })
    }

    /// Where it is reached.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connections.end();
        // One of them wakes the acceptor, according to the system.
        rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both).ok();
        TcpStream::connect(self.address).ok();
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body)
}

fn accept(listener: &TcpListener, connections: &Arc<Connections>, handler: &Arc<Handler>) {
    while !connections.are_over() {
        match listener.accept() {
            Ok((socket, _)) => {
                let place = Connections::enter(connections, socket);
                let handler = Arc::clone(handler);
                // Without a thread the connection is closed.
                spawn("web answer", move || serve(&place, &*handler)).ok();
            }
            Err(_) if connections.are_over() => return,
            Err(_) => {
                connections.make_room();
                thread::sleep(RECOVERY);
            }
        }
    }
}

/// Answers what comes on one connection.
fn serve(place: &Place, handler: &Handler) {
    let socket = &*place.socket;
    socket.set_nodelay(true).ok();
    if socket.set_write_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    let mut incoming = Incoming::new(socket);
    loop {
        let next = incoming.next();
        place.is_busy();
        match next {
            Ok(None) => return,
            Ok(Some(request)) => {
                let answered = http::answer(socket, Some(&request), handler(Ok(&request)));
                if answered.is_err() || request.is_last() {
                    return;
                }
            }
            Err(refusal) => {
                http::answer(socket, None, handler(Err(refusal))).ok();
                place.waits();
                return take_leave(socket);
            }
        }
        place.waits();
    }
}

/// Hears a refused peer out for a moment: it would lose the answer with a connection that is closed upon it.
fn take_leave(mut socket: &TcpStream) {
    socket.shutdown(Shutdown::Write).ok();
    let until = Instant::now() + FAREWELL.0;
    let (mut heard, mut piece) = (0, vec![0; 64 * 1024]);
    while heard < FAREWELL.1 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match socket.read(&mut piece) {
            Ok(read @ 1..) => heard += read,
            _ => return,
        }
    }
}

/// All connections.
struct Connections {
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<u64, Connection>,
    /// The number of the next connection, and of the next wait.
    next: u64,
    over: bool,
}

struct Connection {
    socket: Arc<TcpStream>,
    /// When it began to wait for a request, as a number that grows; `None` while one is answered.
    waits: Option<u64>,
}

impl Connections {
    fn new(max: usize) -> Self {
        Connections { max, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for `socket`. Another loses its own when there are too many.
    fn enter(connections: &Arc<Connections>, socket: TcpStream) -> Place {
        let mut state = connections.state();
        while state.open.len() >= connections.max && state.make_room() {}
        let (number, socket) = (state.number(), Arc::new(socket));
        if state.over {
            socket.shutdown(Shutdown::Both).ok();
        }
        state.open.insert(number, Connection { socket: Arc::clone(&socket), waits: Some(number) });
        Place { number, socket, connections: Arc::clone(connections) }
    }

    fn make_room(&self) {
        self.state().make_room();
    }

    fn are_over(&self) -> bool {
        self.state().over
    }

    /// Hangs up on everybody.
    fn end(&self) {
        let mut state = self.state();
        state.over = true;
        for connection in state.open.values() {
            connection.socket.shutdown(Shutdown::Both).ok();
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Hangs up on the connection that has waited longest for a request, else on the oldest; `false` if there is none.
    fn make_room(&mut self) -> bool {
        let longest = self.open.iter().min_by_key(|(number, it)| (it.waits.is_none(), it.waits, **number));
        let Some(number) = longest.map(|(number, _)| *number) else { return false };
        if let Some(connection) = self.open.remove(&number) {
            connection.socket.shutdown(Shutdown::Both).ok();
        }
        true
    }
}

/// The place of one connection among them.
struct Place {
    number: u64,
    socket: Arc<TcpStream>,
    connections: Arc<Connections>,
}

impl Place {
    fn is_busy(&self) {
        if let Some(connection) = self.connections.state().open.get_mut(&self.number) {
            connection.waits = None;
        }
    }

    fn waits(&self) {
        let mut state = self.connections.state();
        let since = state.number();
        if let Some(connection) = state.open.get_mut(&self.number) {
            connection.waits = Some(since);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.state().open.remove(&self.number);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_longest_makes_room_and_nobody_who_is_answered() {
        let listener = bind(0).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Connections::new(3));
        let mut peers = Vec::new();
        let mut enter = || {
            peers.push(TcpStream::connect(address).unwrap());
            Connections::enter(&connections, listener.accept().unwrap().0)
        };
        let (answered, idle, fresh) = (enter(), enter(), enter());
        answered.is_busy();
        // It has been answered since: the other one waits longer.
        idle.is_busy();
        idle.waits();
        let next = enter();
        let open = |place: &Place| connections.state().open.contains_key(&place.number);
        assert_eq!([&answered, &idle, &fresh, &next].map(open), [true, true, false, true]);
        drop(fresh);
        assert_eq!(connections.state().open.len(), 3);
        let mut byte = [0];
        assert_eq!(peers[2].read(&mut byte).unwrap(), 0, "it was hung up on");
    }
}
