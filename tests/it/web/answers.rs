//! What is answered: routes, statuses, headers, guards, streams, ports.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::{GATED, Server, feed, gated, id, lines};
use crate::env::TestEnv;

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
        ("/api/goal", 204, ""),
        ("/api/refused", 204, ""),
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
