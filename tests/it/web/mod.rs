//! `omg serve` as a browser, a script and a hostile peer meet it.

mod answers;
mod diff;
mod hostile;
mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::env::{Running, TestEnv};

const GATED: &str = r#"nodes:
  - {id: a, type: command, command: "echo hello"}
  - {id: g, type: gate, depends_on: [a]}
  - {id: h, type: gate, depends_on: [a]}
  - {id: b, type: command, command: "echo bye", depends_on: [g]}
"#;

/// How long a stream is listened to: it goes on for ever, with or without news.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server under way. Its words go to a file, which tells its address.
pub(crate) struct Server {
    running: Option<Running>,
    port: u16,
}

impl Server {
    pub(crate) fn start(env: &TestEnv, words: &[&str]) -> Server {
        let port = free_port();
        Server::on(env, port, words)
    }

    fn on(env: &TestEnv, port: u16, words: &[&str]) -> Server {
        let port_word = port.to_string();
        let words: Vec<&str> = ["serve", "--port", &port_word].iter().chain(words).copied().collect();
        let running = env.start(&words);
        env.until("it serves", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Server { running: Some(running), port }
    }

    /// Ends it as Ctrl-C does; returns what it printed.
    fn end(mut self) -> String {
        let running = self.running.take().unwrap();
        running.signal(Signal::INT);
        running.wait().exits(0).stdout
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends `head`, to which `Host` and the end of the head are added, and reads the whole answer.
    fn raw(&self, request: &str) -> Answer {
        Answer::of(&self.raw_text(request))
    }

    fn raw_text(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{headers}{length}\r\n{body}",
            self.port
        ))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    fn token(&self, page: &str) -> String {
        let page = self.get(page).body;
        page.split_once("omg-token\" content=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    }

    fn events(&self, path: &str, last: Option<&str>) -> Events {
        let mut stream = self.connect();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n{last}\r\n", self.port).unwrap();
        Events::of(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal(Signal::KILL);
            running.wait();
        }
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Answer {
    fn of(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|it| it.parse().ok());
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Answer {
            status: status.unwrap_or(0),
            headers: lines.filter_map(header).collect(),
            body: body.to_owned(),
        }
    }
}

/// A stream of events, its chunks taken apart.
struct Events {
    reader: BufReader<TcpStream>,
    text: String,
    until: Instant,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Event {
    id: Option<String>,
    name: String,
    data: String,
}

impl Events {
    fn of(stream: TcpStream) -> Events {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line.trim_end() != "" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Events { reader, text: String::new(), until: Instant::now() + PATIENCE }
    }

    /// The next event; `None` at the end of the stream.
    fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => event.id = Some(id.to_owned()),
                        Some(("event", name)) => event.name = name.to_owned(),
                        Some(("data", data)) => event.data += data,
                        _ => {}
                    }
                }
                self.text = rest.to_owned();
                if !event.data.is_empty() {
                    return Some(event);
                }
            }
            assert!(Instant::now() < self.until, "nothing that was waited for came");
            let mut size = String::new();
            self.reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return None;
            }
            self.text += std::str::from_utf8(&chunk[..size]).unwrap();
        }
    }

    /// Everything up to the first event `name`, that one included.
    #[track_caller]
    fn until(&mut self, name: &str) -> Vec<Event> {
        let mut seen = Vec::new();
        loop {
            let event = self.next().unwrap_or_else(|| panic!("the stream ended before {name}: {seen:#?}"));
            let is_it = event.name == name;
            seen.push(event);
            if is_it {
                return seen;
            }
        }
    }

    /// Waits for a status with this state.
    #[track_caller]
    fn until_state(&mut self, state: &str) -> Value {
        loop {
            let status = self.until("status").pop().unwrap();
            let status: Value = serde_json::from_str(&status.data).unwrap();
            if status["state"] == state {
                return status;
            }
        }
    }
}

fn lines(events: &[Event]) -> Vec<&Event> {
    events.iter().filter(|event| event.name.is_empty()).collect()
}

fn feed(env: &TestEnv) -> Vec<String> {
    let feed = fs::read_to_string(env.run_dir().join("events.jsonl")).unwrap();
    feed.lines().map(str::to_owned).collect()
}

fn id(env: &TestEnv) -> String {
    env.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

/// A run that waits at two gates, and a server of its page.
fn gated(env: &TestEnv) -> Server {
    env.run_graph(GATED, &[]).exits(2);
    Server::start(env, &[&id(env)])
}
