//! How soon what is appended to a file reaches those who follow a server's stream of events.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Options;

const LIMIT: Duration = Duration::from_secs(30);
const MARK: &str = "mark-";
const DIGITS: usize = 6;

/// Opens `--clients` streams of `--path` on `--port` and as many that never read as `--stuck` says, waits until each client
/// has met the event `--ready`, appends `--events` lines to `--feed`, and prints how long each took to arrive.
///
/// With `--card` a line arrives when a card does; then there is one client, and the lines are far apart. Each line costs
/// something, so that the card is another.
pub fn run(options: &Options) {
    let clients = options.number("clients", 1) as usize;
    let events = options.number("events", 50) as usize;
    let gap = Duration::from_millis(options.number("gap-ms", 20));
    let begun = Instant::now();
    let sent: Arc<Vec<AtomicU64>> = Arc::new((0..events).map(|_| AtomicU64::new(0)).collect());
    let stuck: Vec<TcpStream> = (0..options.number("stuck", 0)).map(|_| connect(options)).collect();
    let (ready, is_ready) = mpsc::channel();
    let (arrived, arrivals) = mpsc::channel();
    for _ in 0..clients {
        let follower = Follower {
            stream: connect(options),
            ready_at: options.text("ready").to_owned(),
            by_card: !options.text("card").is_empty(),
            sent: Arc::clone(&sent),
            begun,
        };
        let (ready, arrived) = (ready.clone(), arrived.clone());
        thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(move || follower.run(&ready, &arrived))
            .expect("a thread");
    }
    for _ in 0..clients {
        is_ready.recv_timeout(LIMIT).expect("every stream has caught up in time");
    }
    let mut feed = OpenOptions::new().append(true).open(options.text("feed")).expect("a feed");
    for (at, moment) in sent.iter().enumerate() {
        // Not in step with anything that looks at fixed times.
        thread::sleep(gap / 2 + gap * ((at * 7) % 10) as u32 / 10);
        let node = format!("{MARK}{at:0DIGITS$}");
        let line = format!(
            "{{\"schema\":3,\"ts\":\"2026-01-02T03:04:05Z\",\"run_id\":\"r\",\"event\":\"node_retried\",\"node_id\":\"{node}\",\"cost_usd\":0.01}}\n"
        );
        moment.store(begun.elapsed().as_nanos() as u64, Ordering::SeqCst);
        feed.write_all(line.as_bytes()).expect("a line is written");
    }
    let wanted = clients * events;
    let mut took: Vec<f64> = Vec::with_capacity(wanted);
    while took.len() < wanted {
        match arrivals.recv_timeout(LIMIT) {
            Ok(ms) => took.push(ms),
            Err(_) => break,
        }
    }
    drop(stuck);
    took.sort_by(f64::total_cmp);
    let share =
        |part: f64| took.get(((took.len() as f64 * part) as usize).min(took.len().max(1) - 1)).copied();
    let (middle, nearly_all) = (share(0.5).unwrap_or(-1.0), share(0.99).unwrap_or(-1.0));
    println!(
        "{{\"got\":{},\"want\":{wanted},\"p50_ms\":{middle:.3},\"p99_ms\":{nearly_all:.3}}}",
        took.len()
    );
}

fn connect(options: &Options) -> TcpStream {
    let port = options.number("port", 0) as u16;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let path = options.text("path");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").expect("a request is sent");
    stream
}

struct Follower {
    stream: TcpStream,
    ready_at: String,
    by_card: bool,
    sent: Arc<Vec<AtomicU64>>,
    begun: Instant,
}

impl Follower {
    fn run(mut self, ready: &mpsc::Sender<()>, arrived: &mpsc::Sender<f64>) {
        let (mut text, mut is_ready, mut next) = (String::new(), false, 0);
        let mut piece = vec![0; 1 << 16];
        while next < self.sent.len() {
            let Ok(length @ 1..) = self.stream.read(&mut piece) else { return };
            let now = self.begun.elapsed().as_nanos() as u64;
            text += &String::from_utf8_lossy(&piece[..length]);
            if !is_ready {
                if let Some(at) = text.find(&self.ready_at) {
                    text.drain(..at);
                    is_ready = true;
                    ready.send(()).ok();
                }
                continue;
            }
            let is_told = |text: &str, next: usize| match self.by_card {
                true => text.contains("event: card\n"),
                false => text.contains(&format!("{MARK}{next:0DIGITS$}")),
            };
            while next < self.sent.len() && is_told(&text, next) {
                let from = self.sent[next].load(Ordering::SeqCst);
                arrived.send(now.saturating_sub(from) as f64 / 1e6).ok();
                next += 1;
                if self.by_card {
                    text.clear();
                }
            }
            // A mark may be torn in two.
            let keep = text.len().saturating_sub(256);
            if self.by_card && keep > 0 || keep > 1 << 20 {
                text.drain(..text.ceil_char_boundary(keep));
            }
        }
    }
}
