//! What hostile, slow and numerous peers can do to a view and to a run beside it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Events, Server, feed, gated, id, lines};
use crate::env::{Running, TestEnv};

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
