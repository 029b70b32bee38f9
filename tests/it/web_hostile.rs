//! `omg serve` among hostile peers: what they send, hold open and never read harms neither the page, nor who follows, nor the run.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::env::{Running, TestEnv};
use crate::web::{Events, Server, feed, gated, id, lines, page_status};

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
fn what_is_too_much_is_refused_before_it_is_whole_and_says_why() {
    let env = TestEnv::new();
    let server = gated(&env);
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
    let long = "x".repeat(64 << 10);
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let body = "y".repeat(20_000);
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\n{host}X-Long: {long}"), 431),
        (format!("GET /{long} HTTP/1.1\r\n{host}\r\n"), 431),
        (format!("GET / HTTP/1.1\r\n{host}{many}\r\n"), 431),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 20000\r\n\r\n{body}"), 413),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n"), 411),
        (format!("GET / HTTP/9.9\r\n{host}\r\n"), 505),
        ("\0\u{1}\u{2}\r\n\r\n".to_owned(), 400),
    ] {
        let answer = server.raw(&request);
        assert_eq!(answer.status, status, "{request:.40}");
        assert_eq!(answer.headers["connection"], "close", "{request:.40}");
        assert!(answer.headers.contains_key("content-security-policy"), "{answer:?}");
        assert!(!answer.body.is_empty());
    }
    assert_eq!(page_status(&server), 200);
}

#[test]
fn requests_that_come_at_once_are_answered_in_order() {
    let env = TestEnv::new();
    let server = gated(&env);
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{host}\r\n");
    let head = format!("HEAD /api/graph HTTP/1.1\r\n{host}\r\n");
    let all = format!("{}{head}{}", get("/api/result?node=a"), get("/api/nothing"));
    let mut stream = server.connect();
    write!(stream, "{all}GET /api/result?node=zz HTTP/1.1\r\n{host}Connection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let answers: Vec<&str> = text.split("HTTP/1.1 ").skip(1).collect();
    let statuses: Vec<&str> = answers.iter().map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200", "404", "404"], "{text}");
    assert!(answers[0].ends_with("\r\n\r\nhello\n"), "{text}");
    assert!(answers[1].ends_with("\r\n\r\n") && !answers[1].contains("Content-Length: 0"), "{text}");
}

#[test]
fn a_head_that_comes_a_byte_at_a_time_is_given_up() {
    let env = TestEnv::new();
    let server = gated(&env);
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").unwrap();
    let mut answer = [0; 12];
    while let Err(error) = stream.read_exact(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
        stream.write_all(b"x").unwrap();
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[test]
fn of_too_many_connections_those_that_only_wait_make_room() {
    let env = TestEnv::new();
    let server = gated(&env);
    let mut follower = server.events("/api/events", None);
    follower.until("caught_up");
    let mut idle: Vec<TcpStream> = (0..500).map(|_| server.connect()).collect();
    assert_eq!(page_status(&server), 200);
    let mut byte = [0];
    assert_eq!(idle[0].read(&mut byte).unwrap(), 0, "the first that waited was hung up on");
    let token = format!("X-OMG-Token: {}", server.token("/"));
    assert_eq!(server.ask("POST", "/api/gate/approve", &[&token], r#"{"node":"g"}"#).status, 202);
    follower.until_line("gate_approved");
}

#[test]
fn a_flood_leaves_files_to_the_run_that_is_in_the_same_process() {
    let mut env = TestEnv::new();
    env.set("BROWSER", "true");
    let opened = env.path("opened");
    env.write_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
    let nodes: String = (0..30)
        .map(|n| format!("  - {{id: n{n}, type: command, depends_on: [first], command: 'true'}}\n"))
        .collect();
    env.write(
        "g.yaml",
        format!("concurrency: 10\nnodes:\n  - {{id: first, type: command, command: 'while ! test -e go; do sleep 0.02; done'}}\n{nodes}"),
    );
    let Some(mut run) = env.on_terminal("run g.yaml") else { return };
    let run = Running::of(&mut run);
    env.until("the page was opened", || opened.exists() && env.read("opened").ends_with("/\n"));
    let url = env.read("opened");
    let port: u16 = url.trim().trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let flood: Vec<TcpStream> =
        (0..2_000).filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok()).collect();
    env.write("go", "");
    run.wait().exits(0);
    drop(flood);
}
