//! `omg serve` as a browser, a script and a hostile peer meet it: routes, statuses, headers, guards, streams.

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

#[test]
fn every_route_of_a_run_answers_as_the_contract_says() {
    let env = TestEnv::new();
    let server = gated(&env);
    let graph = server.json("/api/graph");
    assert_eq!((&graph["available"], &graph["run_id"]), (&true.into(), &id(&env).into()));
    assert_eq!(graph["nodes"][1], serde_json::json!({"id": "g", "type": "gate", "depends_on": ["a"]}));
    // The layout of `omg graph`.
    let drawn: Value =
        serde_json::from_str(&env.omg(&["graph", "--run", &id(&env), "--format", "json"]).exits(0).stdout)
            .unwrap();
    assert_eq!(graph["drawing"]["edges"], drawn["edges"]);
    assert_eq!(
        (&graph["drawing"]["nodes"][3]["row"], &drawn["layers"]),
        (&drawn["nodes"][3]["row"], &3.into())
    );
    assert_eq!(server.json("/api/run")["run"]["waiting"], serde_json::json!(["g", "h"]));
    for (path, status, kind) in [
        ("/", 200, "text/html; charset=utf-8"),
        ("/index.html", 200, "text/html; charset=utf-8"),
        ("/app.js", 200, "text/javascript; charset=utf-8"),
        ("/style.css", 200, "text/css; charset=utf-8"),
        ("/nothing.js", 404, "text/plain; charset=utf-8"),
        ("/api/nothing", 404, "text/plain; charset=utf-8"),
        ("/api/result?node=a", 200, "text/plain; charset=utf-8"),
        ("/api/result?node=b", 204, ""),
        ("/api/result?node=zz", 404, "text/plain; charset=utf-8"),
        ("/api/result", 404, "text/plain; charset=utf-8"),
        ("/api/failed?node=a", 204, ""),
        ("/api/attempts?node=a", 200, "application/json"),
        ("/api/said?node=a&attempt=1-0-1&what=nothing", 404, "text/plain; charset=utf-8"),
        ("/api/said?node=zz&attempt=1-0-1&what=reply", 404, "text/plain; charset=utf-8"),
        ("/api/path", 200, "application/json"),
        ("/api/diff?node=g", 200, "application/json"),
        ("/api/transcript?node=a", 204, ""),
        ("/api/transcript?node=zz", 404, "text/plain; charset=utf-8"),
    ] {
        let answer = server.get(path);
        let found = answer.headers.get("content-type").cloned().unwrap_or_default();
        assert_eq!((answer.status, found.as_str()), (status, kind), "{path}: {}", answer.body);
    }
    assert_eq!(server.get("/api/result?node=a").body, "hello\n");
    let path = server.json("/api/path");
    assert_eq!((&path["nodes"][0]["node"], &path["nodes"][0]["took_ms"]), (&"a".into(), &path["took_ms"]));
    let printed = server.end();
    assert!(printed.contains(&format!("Run {}: http://127.0.0.1:", id(&env))), "{printed}");
}

#[test]
fn h5_every_answer_is_guarded() {
    let env = TestEnv::new();
    let server = gated(&env);
    let port = server.port;
    let host = |host: &str| server.raw(&format!("GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"));
    for good in ["Host: 127.0.0.1\r\n", "Host: localhost:1\r\n"] {
        assert_eq!(host(good).status, 200, "{good}");
    }
    for bad in [
        "Host: evil\r\n",
        "Host: evil:8642\r\n",
        "Host: [::1]\r\n",
        "Host: 0.0.0.0\r\n",
        "Host: LOCALHOST\r\n",
        "Host: 127.0.0.1.evil\r\n",
        "Host: localhost\r\nHost: evil\r\n",
        "Host:\r\n",
        "",
    ] {
        assert_eq!(host(bad).status, 403, "{bad}");
    }
    for path in ["/", "/api/graph", "/api/events", "/api/gate/approve"] {
        assert_eq!(server.ask("GET", path, &["Origin: http://evil"], "").status, 403, "{path}");
    }
    for answer in [
        server.get("/"),
        server.get("/nothing"),
        server.get("/api/graph"),
        host("Host: evil\r\n"),
        server.ask("POST", "/api/gate/approve", &[], "{}"),
        server.ask("DELETE", "/", &[], ""),
    ] {
        let header = |name: &str| answer.headers.get(name).map(String::as_str).unwrap_or_default();
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{answer:?}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
    // Only the loopback listens.
    let tcp = fs::read_to_string("/proc/net/tcp").unwrap()
        + &fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let listening =
        tcp.lines().filter(|line| line.contains(&format!(":{port:04X} ")) && line.contains(" 0A "));
    for line in listening {
        assert!(line.contains("0100007F:"), "{line}");
    }
}

#[test]
fn h5_a_gate_is_decided_only_by_a_page_of_this_server() {
    let env = TestEnv::new();
    let server = gated(&env);
    let token = format!("X-OMG-Token: {}", server.token("/"));
    let own = format!("Origin: http://127.0.0.1:{}", server.port);
    let big = format!("{{\"node\":\"{}\"}}", "g".repeat(5000));
    for (headers, body, status) in [
        (vec!["Origin: http://evil"], "{}", 403),
        (vec!["Origin: null", &token], "{}", 403),
        (vec!["Origin: http://evil", &token], r#"{"node":"g"}"#, 403),
        (vec![], "{}", 400),
        (vec![&own], "{}", 400),
        (vec!["X-OMG-Token: wrong"], r#"{"node":"g"}"#, 403),
        (vec!["X-OMG-Token:"], r#"{"node":"g"}"#, 403),
        (vec![&own, &token], "not json", 400),
        (vec![&own, &token], "{}", 400),
        (vec![&own, &token], r#"{"node":""}"#, 400),
        (vec![&own, &token], &big, 400),
        (vec![&own, &token], r#"{"node":"a"}"#, 409),
        (vec![&own, &token], r#"{"node":"--retry-failed"}"#, 409),
    ] {
        let answer = server.ask("POST", "/api/gate/approve", &headers, body);
        assert_eq!(answer.status, status, "{headers:?} {body:.40}: {}", answer.body);
    }
    for method in ["GET", "HEAD", "PUT", "DELETE"] {
        assert_eq!(server.ask(method, "/api/gate/reject", &[&token], "").status, 405, "{method}");
    }
    for path in ["/", "/api/graph", "/api/events"] {
        assert_eq!(server.ask("POST", path, &[&token], "{}").status, 405, "{path}");
    }
    assert_eq!(env.events_of("run_started").len(), 1, "nothing was started");
}

#[test]
fn any_waiting_gate_is_decided_and_its_leg_outlives_the_server() {
    let env = TestEnv::new();
    env.run_graph(&GATED.replace("echo bye", "while ! test -e go; do sleep 0.02; done; echo bye"), &[])
        .exits(2);
    let server = Server::start(&env, &[&id(&env)]);
    let token = format!("X-OMG-Token: {}", server.token("/"));
    let mut events = server.events("/api/events", None);
    events.until("caught_up");
    let answer = server.ask("POST", "/api/gate/reject", &[&token], r#"{"node":"h"}"#);
    assert_eq!(answer.status, 202, "{}", answer.body);
    events.until_state("paused");
    let answer = server.ask("POST", "/api/gate/approve", &[&token], r#"{"node":"g","more":1}"#);
    assert_eq!(answer.status, 202, "{}", answer.body);
    events.until_state("running");
    let again = server.ask("POST", "/api/gate/approve", &[&token], r#"{"node":"g"}"#);
    assert_eq!(again.status, 409, "{}", again.body);
    assert!(again.body.contains("under way"), "{}", again.body);
    server.end();
    env.write("go", "");
    env.omg(&["watch", "latest"]).exits(0);
    assert_eq!(env.artifact("b").unwrap(), b"bye\n");
    assert_eq!(env.record("h")["verdict"], "FAIL");
}

#[test]
fn h3_a_reader_that_comes_back_gets_each_event_once_and_in_order() {
    let env = TestEnv::new();
    let server = gated(&env);
    let all = server.events("/api/events", None).until("caught_up");
    let data: Vec<&str> = lines(&all).iter().map(|event| event.data.as_str()).collect();
    assert_eq!(data, feed(&env));
    let port = server.port;
    server.end();
    // Another server, and every place to have left off at.
    let server = Server::on(&env, port, &[&id(&env)]);
    let whole = lines(&all);
    for (at, event) in whole.iter().enumerate() {
        let rest = server.events("/api/events", event.id.as_deref()).until("caught_up");
        assert_eq!(lines(&rest), whole[at + 1..], "after {at}");
        let from = format!("/api/events?from={}", event.id.as_deref().unwrap());
        assert_eq!(lines(&server.events(&from, None).until("caught_up")), whole[at + 1..], "from {at}");
        let rest = server.events(&from, whole[0].id.as_deref()).until("caught_up");
        assert_eq!(lines(&rest), whole[1..], "the header is newer");
    }
    for foreign in ["1", "999999999", "7x", "-1", ""] {
        let rest = server.events("/api/events", Some(foreign)).until("caught_up");
        assert_eq!(lines(&rest), whole, "{foreign}");
        let is_reset = rest.iter().any(|event| event.name == "reset");
        assert_eq!(is_reset, foreign.parse::<u64>().is_ok(), "{foreign}");
    }
}

#[test]
fn a_run_is_followed_from_before_its_first_event_to_its_end() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        r#"nodes: [{id: x, type: command, command: "while ! test -e go; do sleep 0.02; done"}]"#,
    );
    let server = Server::start(&env, &[]);
    let mut cards = server.events("/api/cards/events", None);
    cards.until("cards_ready");
    let run = env.start(&["run", "g.yaml"]);
    let card = cards.until("card").pop().unwrap();
    let mut events = server.events(&format!("/run/{}/api/events", id(&env)), None);
    events.until_state("running");
    env.write("go", "");
    run.wait().exits(0);
    events.until_state("passed");
    let mut last: Value = serde_json::from_str(&card.data).unwrap();
    let mut states = vec![last["state"].clone()];
    while last["state"] != "passed" {
        last = serde_json::from_str(&cards.until("card").pop().unwrap().data).unwrap();
        states.push(last["state"].clone());
    }
    assert!(!states.contains(&"failed".into()), "{states:?}");
    assert_eq!(last["counts"], serde_json::json!({"total":1,"passed":1,"failed":0,"running":0,"pending":0}));
    fs::remove_dir_all(env.run_dir()).unwrap();
    cards.until("card_removed");
    server.end();
    // The stream is ended in order: anything else stops the test.
    while cards.next().is_some() {}
}

#[test]
fn a_run_that_dies_without_a_word_is_shown_abandoned() {
    let env = TestEnv::new();
    env.write("g.yaml", r#"nodes: [{id: x, type: command, command: "touch begun; sleep 384.01"}]"#);
    let run = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || env.path("begun").exists());
    let server = Server::start(&env, &[]);
    let mut cards = server.events("/api/cards/events", None);
    cards.until("cards_ready");
    let mut events = server.events(&format!("/run/{}/api/events", id(&env)), None);
    events.until_state("running");
    run.kill();
    let status = events.until_state("abandoned");
    assert!(status["hint"].as_str().unwrap().contains("--retry-failed"), "{status}");
    loop {
        let card: Value = serde_json::from_str(&cards.until("card").pop().unwrap().data).unwrap();
        if card["state"] == "abandoned" {
            assert_eq!(card["nodes"][0]["state"], "abandoned");
            break;
        }
    }
    env.until("the guard has done its work", || env.run_dir().join("guard.json").exists());
}

#[test]
fn h6_no_path_leads_out_of_the_runs() {
    let env = TestEnv::new();
    env.run_graph(GATED, &[]).exits(2);
    let server = Server::start(&env, &[]);
    let id = id(&env);
    for path in [
        "/run/%2e%2e%2f%2e%2e/api/graph",
        "/run/../api/graph",
        "/run/../../etc/passwd",
        "/run//api/graph",
        "/run/./api/graph",
        "/run/nothing/api/graph",
        "/run/nothing",
        "/run/",
        "/../../etc/passwd",
        "//etc/passwd",
        "/index.html",
        "/app.js",
        "/ui/../app.js",
        &format!("/run/{id}/../{id}/api/graph"),
        &format!("/run/{}/api/graph", id.replace('-', "%2d")),
        &format!("/run/{id}/api/result?node=..%2fstate.json"),
        &format!("/run/{id}/api/result?node=%2fetc%2fpasswd"),
        &format!("/run/{id}/state.json"),
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let moved = server.get(&format!("/run/{id}"));
    assert_eq!((moved.status, moved.headers["location"].as_str()), (307, format!("/run/{id}/").as_str()));
    assert_eq!(server.get(&format!("/run/{id}/")).status, 200);
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.token("/"), server.token(&format!("/run/{id}/")));
}

#[test]
fn cards_are_paged_and_summed() {
    let env = TestEnv::new();
    for graph in [
        GATED,
        "nodes: [{id: x, type: command, command: 'true'}]",
        "nodes: [{id: x, type: command, command: 'false'}]",
    ] {
        env.run_graph(graph, &[]);
    }
    fs::create_dir(env.home().join("runs/20200101-000000.000000000-1")).unwrap();
    fs::write(env.home().join("runs/20200101-000000.000000000-1/state.json"), "{").unwrap();
    let server = Server::start(&env, &[]);
    let states = |cards: &Value| -> Vec<String> {
        let cards = cards.as_array().unwrap().iter();
        cards.map(|card| card["state"].as_str().unwrap().to_owned()).collect()
    };
    let all = server.json("/api/cards");
    assert_eq!(states(&all), ["failed", "passed", "paused", "unknown"]);
    assert!(all[3]["error"].as_str().unwrap().contains("state.json"));
    assert_eq!(all[2]["waiting"], serde_json::json!(["g", "h"]));
    assert_eq!(all[2]["nodes"][1]["state"], "gate-paused");
    assert_eq!(states(&server.json("/api/cards?of=open")), ["paused", "unknown"]);
    let page = server.json("/api/cards?of=settled&limit=1");
    assert_eq!(states(&page), ["failed"]);
    let before = page[0]["run_id"].as_str().unwrap();
    assert_eq!(states(&server.json(&format!("/api/cards?of=settled&limit=1&before={before}"))), ["passed"]);
    // A page goes on where it was, though that run was removed meanwhile.
    fs::remove_dir_all(env.home().join("runs").join(before)).unwrap();
    env.until("the run is gone", || server.json("/api/totals")["runs"] == 3);
    assert_eq!(states(&server.json(&format!("/api/cards?of=settled&limit=1&before={before}"))), ["passed"]);
    assert_eq!(server.json("/api/cards?before=20190101-000000.000000000-1"), serde_json::json!([]));
    assert_eq!(server.get("/api/cards?of=x").status, 400);
    assert_eq!(server.get("/api/cards?limit=x").status, 400);
    let totals = server.json("/api/totals");
    assert_eq!(totals["states"], serde_json::json!({"passed": 1, "paused": 1, "unknown": 1}));
    assert_eq!(totals["runs"], 3);
}

#[test]
fn an_empty_home_is_an_empty_dashboard() {
    let env = TestEnv::new();
    let server = Server::start(&env, &[]);
    assert_eq!(server.json("/api/cards"), serde_json::json!([]));
    assert_eq!(server.get("/").status, 200);
    let printed = server.end();
    assert!(printed.starts_with("All runs: http://127.0.0.1:"), "{printed}");
    env.omg(&["serve", "nothing-like-it"]).exits(1);
}

#[test]
fn h7_no_browser_keeps_a_page_or_its_files_without_asking() {
    let env = TestEnv::new();
    let server = gated(&env);
    for path in ["/", "/app.js", "/style.css", "/hub_worker.js", "/api/graph", "/nothing"] {
        for method in ["GET", "HEAD"] {
            let answer = server.ask(method, path, &[], "");
            assert_eq!(answer.headers["cache-control"], "no-cache", "{method} {path}");
        }
    }
}

#[test]
fn h8_any_port_will_do_when_none_is_named() {
    let env = TestEnv::new();
    let servers = [0, 1].map(|_| env.start(&["serve", "--port", "0", "--no-open"]));
    for server in &servers {
        env.until("it serves", || listens(server.pid()));
    }
    for server in servers {
        server.signal(Signal::INT);
        assert!(server.wait().exits(0).stdout.starts_with("All runs: http://127.0.0.1:"));
    }
}

/// Whether process `pid` listens on the loopback.
fn listens(pid: i32) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let opened: Vec<String> =
        files.filter_map(|file| Some(fs::read_link(file.ok()?.path()).ok()?.display().to_string())).collect();
    let tcp = fs::read_to_string("/proc/net/tcp").unwrap();
    tcp.lines().filter(|line| line.contains(" 0A ")).any(|line| {
        line.split_whitespace().nth(9).is_some_and(|inode| opened.contains(&format!("socket:[{inode}]")))
    })
}

#[test]
fn h8_a_port_that_is_taken_is_told_with_its_holder() {
    let env = TestEnv::new();
    let server = Server::start(&env, &[]);
    let port = server.port.to_string();
    let told = env.omg(&["serve", "--port", &port]).exits(1);
    assert!(told.stderr.contains("this same build of omg, v"), "{}", told.stderr);
    drop(server);
    // One that never answers.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let told = env.omg(&["serve", "--port", &port]).exits(1);
    assert!(told.stderr.contains("not by an omg that answers"), "{}", told.stderr);
    assert!(told.stderr.contains("--port"), "{}", told.stderr);
    let told = env.omg(&["serve", "--port", "70000"]).exits(1);
    assert!(told.stderr.contains("70000"), "{}", told.stderr);
}

/// `GET /` until it is answered: the status.
fn page_status(server: &Server) -> u16 {
    server.get("/").status
}

#[test]
fn h1_many_open_streams_hold_up_no_page_and_no_decision() {
    let env = TestEnv::new();
    let server = gated(&env);
    let mut streams: Vec<Events> = (0..12).map(|_| server.events("/api/events", None)).collect();
    streams.iter_mut().for_each(|stream| drop(stream.until("caught_up")));
    assert_eq!(page_status(&server), 200);
    let token = format!("X-OMG-Token: {}", server.token("/"));
    assert_eq!(server.ask("POST", "/api/gate/approve", &[&token], r#"{"node":"g"}"#).status, 202);
    for stream in &mut streams {
        while !stream.until("").pop().unwrap().data.contains("gate_approved") {}
    }
}

#[test]
fn a_stream_above_the_bound_is_refused() {
    let env = TestEnv::new();
    let server = gated(&env);
    let streams: Vec<Events> = (0..256).map(|_| server.events("/api/events", None)).collect();
    let refused = server.get("/api/events");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(page_status(&server), 200);
    drop(streams);
}

/// What hostile peers do to `server`; the connections stay open as long as the result is held.
fn hostility(server: &Server, path: &str) -> Vec<TcpStream> {
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
    let mut held = Vec::new();
    let mut send = |bytes: &[u8]| {
        let mut stream = server.connect();
        stream.write_all(bytes).ok();
        held.push(stream);
    };
    for _ in 0..20 {
        // Never reads; never finishes its head; its body; says nothing; is no HTTP at all; hangs up half way.
        send(format!("GET {path}/api/events HTTP/1.1\r\n{host}\r\n").as_bytes());
        send(b"GET / HTTP/1.1\r\nHo");
        send(
            format!("POST {path}/api/gate/approve HTTP/1.1\r\n{host}Content-Length: 4000\r\n\r\n{{")
                .as_bytes(),
        );
        send(b"");
        send(&[0, 255, 13, 10, 13, 10]);
        send(b"GET / HTTP/9.9\r\n\r\n");
    }
    let half = server.connect();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    drop(half);
    // Huge heads, many requests at once, negative and absurd lengths.
    let huge = "x".repeat(1 << 20);
    send(format!("GET / HTTP/1.1\r\n{host}X-Huge: {huge}\r\n\r\n").as_bytes());
    send(format!("GET /{huge} HTTP/1.1\r\n{host}\r\n").as_bytes());
    send(format!("GET / HTTP/1.1\r\n{host}\r\n").repeat(100).as_bytes());
    send(format!("POST {path}/api/gate/approve HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n").as_bytes());
    send(
        format!(
            "POST {path}/api/gate/approve HTTP/1.1\r\n{host}Content-Length: 99999999999999999999\r\n\r\n"
        )
        .as_bytes(),
    );
    for _ in 0..500 {
        held.push(server.connect());
    }
    held
}

#[test]
fn hostile_peers_hold_up_neither_the_page_nor_a_reader_nor_the_run() {
    let env = TestEnv::new();
    let nodes: String =
        (0..60).map(|n| format!("  - {{id: n{n}, type: command, command: 'echo {n}'}}\n")).collect();
    let graph = format!(
        "concurrency: 2\nnodes:\n  - {{id: first, type: command, command: 'while ! test -e go; do sleep 0.02; done'}}\n{}",
        nodes.replace("command, command", "command, depends_on: [first], command")
    );
    env.write("g.yaml", graph);
    let run = env.start(&["run", "g.yaml"]);
    env.until("the run has begun", || env.runs().len() == 1 && env.feed_lines() > 1);
    let server = Server::start(&env, &[]);
    let path = format!("/run/{}", id(&env));
    let mut good = server.events(&format!("{path}/api/events"), None);
    let mut seen = good.until("caught_up");
    let held = hostility(&server, &path);
    env.write("go", "");
    let asked = Instant::now();
    assert_eq!(page_status(&server), 200);
    assert!(asked.elapsed() < Duration::from_secs(20), "the page came after {:?}", asked.elapsed());
    run.wait().exits(0);
    while !seen.iter().any(|event| event.data.contains("run_finished")) {
        seen.push(good.next().unwrap());
    }
    let data: Vec<&str> = lines(&seen).iter().map(|event| event.data.as_str()).collect();
    assert_eq!(data, feed(&env), "each event once, in order");
    drop(held);
    assert_eq!(page_status(&server), 200);
    let printed = server.end();
    assert!(printed.contains("Ctrl-C"), "{printed}");
}

#[test]
fn requests_that_come_at_once_are_answered_in_order() {
    let env = TestEnv::new();
    let server = gated(&env);
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
    let ask = |what: &str| format!("{what} HTTP/1.1\r\n{host}\r\n");
    let first = ask("GET /api/result?node=a") + &ask("HEAD /api/graph") + &ask("GET /api/nothing");
    let text = server
        .raw_text(&format!("{first}GET /api/result?node=zz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"));
    let answers: Vec<&str> = text.split("HTTP/1.1 ").skip(1).collect();
    let statuses: Vec<&str> = answers.iter().map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200", "404", "404"], "{text}");
    assert!(answers[0].ends_with("\r\n\r\nhello\n") && answers[1].ends_with("\r\n\r\n"), "{text}");
}

#[test]
fn huge_and_slow_heads_and_silent_connections_hold_up_neither_the_page_nor_a_decision() {
    let env = TestEnv::new();
    let server = gated(&env);
    let mut follower = server.events("/api/events", None);
    follower.until("caught_up");
    let host = format!("Host: 127.0.0.1:{}\r\nConnection: close\r\n", server.port);
    let long = format!("X-Long: {}\r\n", "x".repeat(64 << 10));
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    let silent: Vec<TcpStream> = (0..500).map(|_| server.connect()).collect();
    for head in [long, many] {
        // Whatever it is answered, it is answered.
        assert_ne!(server.raw(&format!("GET / HTTP/1.1\r\n{host}{head}\r\n")).status, 0);
        slow.iter_mut().for_each(|stream| stream.write_all(b"G").unwrap());
        assert_eq!(page_status(&server), 200);
    }
    let token = format!("X-OMG-Token: {}", server.token("/"));
    assert_eq!(server.ask("POST", "/api/gate/approve", &[&token], r#"{"node":"g"}"#).status, 202);
    while !follower.until("").pop().unwrap().data.contains("gate_approved") {}
    drop((slow, silent));
}

#[test]
fn a_flood_leaves_files_to_the_run_that_is_in_the_same_process() {
    let mut env = TestEnv::new();
    env.set("BROWSER", "true");
    let opened = env.path("opened");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
    let node = |n: usize| format!("  - {{id: n{n}, type: command, depends_on: [first], command: 'true'}}\n");
    let nodes: String = (0..30).map(node).collect();
    let first = "  - {id: first, type: command, command: 'while ! test -e go; do sleep 0.02; done'}";
    env.write("g.yaml", format!("concurrency: 10\nnodes:\n{first}\n{nodes}"));
    let Some(mut run) = env.on_terminal("run g.yaml") else { return };
    let run = Running::of(&mut run);
    env.until("the page was opened", || opened.exists() && env.read("opened").ends_with("/\n"));
    let port = env.read("opened").trim_end_matches("/\n").rsplit(':').next().unwrap().parse().unwrap();
    let flood: Vec<_> = (0..1_000).map(|_| TcpStream::connect(("127.0.0.1", port))).collect();
    env.write("go", "");
    run.wait().exits(0);
    drop(flood);
}

#[test]
fn a_browser_that_was_opened_is_not_taken_for_what_a_node_left_running() {
    let mut env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes:\n  - {id: x, type: command, command: 'while ! test -e opened; do sleep 0.02; done'}\n  - {id: y, type: command, command: 'true', depends_on: [x]}\n",
    );
    env.set("BROWSER", "true");
    let opened = env.path("opened");
    let browser = format!("#!/bin/sh\nsleep 388.01 &\necho \"$1\" > {}\n", opened.display());
    env.write_program("xdg-open", &browser);
    let Some(mut run) = env.on_terminal("run g.yaml") else { return };
    Running::of(&mut run).wait().exits(0);
    let browsers = env.pids_of("388.01");
    assert_eq!(browsers.len(), 1, "it still runs");
    let pid = rustix::process::Pid::from_raw(browsers[0]).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_reader_that_takes_nothing_is_dropped_and_delays_nobody() {
    let env = TestEnv::new();
    let server = gated(&env);
    let mut stuck = server.connect();
    stuck.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut good = server.events("/api/events", None);
    good.until("caught_up");
    let mut feed = fs::OpenOptions::new().append(true).open(env.run_dir().join("events.jsonl")).unwrap();
    let long = "x".repeat(500_000);
    for n in 0..60 {
        let line = format!(
            "{{\"schema\":3,\"ts\":\"t\",\"run_id\":\"r\",\"event\":\"note\",\"node_id\":\"{n}\",\"detail\":\"{long}\"}}\n"
        );
        feed.write_all(line.as_bytes()).unwrap();
        let event = good.next().unwrap();
        assert!(event.data.contains(&format!("\"node_id\":\"{n}\"")), "{:.80}", event.data);
    }
    // It was hung up on: what the system still holds for it ends before the last line.
    env.until("the stuck reader's stream is closed", || open_sockets(&server) < 2);
    let mut got = Vec::new();
    stuck.read_to_end(&mut got).ok();
    assert!(!String::from_utf8_lossy(&got).contains("\"node_id\":\"59\""), "it was not served to its end");
}

/// How many connections `server` has.
fn open_sockets(server: &Server) -> usize {
    let tcp = fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!("0100007F:{:04X} ", server.port);
    let is_open = |line: &&str| {
        line.split_whitespace().nth(1).is_some_and(|it| format!("{it} ") == local)
            && line.split_whitespace().nth(3) == Some("01")
    };
    tcp.lines().filter(is_open).count()
}

#[test]
fn a_page_that_follows_a_run_on_a_terminal_gets_what_it_ended_with() {
    let mut env = TestEnv::new();
    let opened = env.path("opened");
    env.set("BROWSER", "true");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
    env.write(
        "g.yaml",
        r#"nodes: [{id: x, type: command, command: "while ! test -e go; do sleep 0.02; done; echo made"}]"#,
    );
    let Some(mut run) = env.on_terminal("run g.yaml") else { return };
    let run = Running::of(&mut run);
    env.until("the browser was opened", || opened.exists() && env.read("opened").ends_with('\n'));
    let port = env.read("opened").trim().trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
    let view = Server { running: None, port };
    let mut events = view.events("/api/events", None);
    events.until("caught_up");
    env.write("go", "");
    events.until_state("passed");
    assert_eq!(view.get("/api/result?node=x").body, "made\n");
    drop(events);
    run.wait().exits(0);
}

#[test]
fn a_run_on_a_terminal_has_a_view_and_one_in_a_pipe_has_none() {
    let mut env = TestEnv::new();
    env.write("g.yaml", "nodes: [{id: x, type: command, command: 'true'}]");
    env.set("BROWSER", "true");
    let opened = env.path("opened");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
    let piped = env.omg(&["run", "g.yaml"]).exits(0);
    assert!(!piped.stdout.contains("http://") && !opened.exists(), "{}", piped.stdout);
    let Some(mut without) = env.on_terminal("run g.yaml --no-web") else { return };
    let without = Running::of(&mut without).wait().exits(0);
    assert!(!without.stdout.contains("http://") && !opened.exists(), "{}", without.stdout);
    let with = Running::of(&mut env.on_terminal("run g.yaml").unwrap()).wait().exits(0);
    assert!(with.stdout.contains("Live view: http://127.0.0.1:"), "{}", with.stdout);
    env.until("the browser was opened", || opened.exists());
    assert!(env.read("opened").starts_with("http://127.0.0.1:"), "{}", env.read("opened"));
}
