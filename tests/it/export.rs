//! `omg export`: a run as one file, in every format, as independent readers find it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use pulldown_cmark::{Event, Options, Parser};
use quick_xml::events::Event as Xml;
use serde_json::Value;

use crate::env::{OMG, Running, TestEnv};

/// A node of every fate, and words that would be markup.
const FATES: &str = r#"
name: "fates `| <b>x</b> @all"
on_fail: continue
nodes:
  - {id: fine, prompt: "@say PASS ``` </details> <script>x</script> @all", success_check: {exit_zero: true, verify: {command: echo ok}}}
  - {id: again, prompt: "@on 1 exit 1", retry: {max: 1, on: [nonzero_exit]}}
  - {id: bad, prompt: "@say FAIL <img src=x> | ```", success_check: {exit_zero: true, result_matches: '^PASS'}}
  - {id: below, depends_on: [bad], prompt: x}
  - {id: cmd, type: command, command: "printf '\\033[31m]]>\\376'; exit 3"}
  - {id: gate, type: gate, depends_on: [fine]}
  - {id: end, type: command, depends_on: [gate], command: echo end}
"#;

/// A run of two legs that has failed.
fn place() -> TestEnv {
    let env = TestEnv::new();
    env.run_graph(FATES, &["--concurrency", "1"]).exits(2);
    env.omg(&["resume", "latest", "--approve", "gate"]).exits(1);
    env
}

fn export(env: &TestEnv, format: &str) -> String {
    let ran = env.omg(&["export", "latest", "--format", format]).exits(0);
    assert_eq!(ran.stderr, "", "{format}");
    ran.stdout
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn json_is_what_show_prints_with_every_attempt() {
    let env = place();
    let (exported, shown) = (json(&export(&env, "json")), env.omg(&["show", "latest", "--json"]).exits(0));
    for (key, value) in json(&shown.stdout).as_object().unwrap() {
        assert_eq!(&exported[key], value, "{key}");
    }
    let timeline = &exported["timeline"];
    let attempts: Vec<String> = timeline["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {}", it["node_id"], it["attempt"], it["state"]).replace('"', ""))
        .collect();
    let mut sorted = attempts.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "again 1 retried",
            "again 2 passed",
            "bad 1 failed",
            "cmd 1 failed",
            "end 1 passed",
            "fine 1 passed"
        ]
    );
    // The prices of the attempts are the prices of the run.
    let sum: f64 =
        timeline["attempts"].as_array().unwrap().iter().map(|it| it["cost_usd"].as_f64().unwrap()).sum();
    assert!((sum - exported["run"]["cost_usd"].as_f64().unwrap()).abs() < 1e-9, "{sum}");
    assert_eq!(timeline["legs"][1]["outcome"], "failed");
    assert_eq!(timeline["gates"][0]["decision"], "approved");
    assert!(timeline["attempts"].as_array().unwrap().iter().all(|it| it["slot"] == 1), "one at a time");
}

/// An element of a document.
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    /// Its text as it is written.
    text: String,
}

impl Element {
    fn of(element: &quick_xml::events::BytesStart<'_>) -> Self {
        let attributes = element.attributes().map(Result::unwrap).map(|it| {
            let value = quick_xml::escape::unescape(&it.value).unwrap().into_owned();
            (it.key.as_ref().to_owned(), value)
        });
        Element {
            name: element.name().as_ref().to_owned(),
            attributes: attributes.collect(),
            text: String::new(),
        }
    }
}

/// The elements of a document in their order.
fn elements(xml: &str) -> Vec<Element> {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut found: Vec<Element> = Vec::new();
    loop {
        match (reader.read_event().unwrap(), found.last_mut()) {
            (Xml::Eof, _) => return found,
            (Xml::Start(element) | Xml::Empty(element), _) => found.push(Element::of(&element)),
            (Xml::Text(text), Some(last)) => last.text += &text,
            (Xml::GeneralRef(name), Some(last)) => last.text.extend(["&", &*name, ";"]),
            _ => {}
        }
    }
}

#[test]
fn junit_has_a_case_for_every_node() {
    let env = place();
    let xml = export(&env, "junit");
    assert!(!xml.contains(|c: char| c.is_control() && c != '\n'), "{xml}");
    let elements = elements(&xml);
    let suite = elements.iter().find(|it| it.name == "testsuite").unwrap();
    let counts = ["tests", "failures", "errors", "skipped"].map(|name| suite.attributes[name].clone());
    assert_eq!(counts, ["7", "2", "0", "1"]);
    assert_eq!(suite.attributes["name"], "fates `| <b>x</b> @all");
    assert_eq!(suite.attributes["timestamp"].len(), "2026-01-02T03:04:05".len());
    let cases: Vec<String> =
        elements.iter().filter(|it| it.name == "testcase").map(|it| it.attributes["name"].clone()).collect();
    assert_eq!(cases, ["fine", "again", "bad", "below", "cmd", "gate", "end"]);
    let failures: Vec<_> = elements.iter().filter(|it| it.name == "failure").collect();
    assert_eq!(failures[0].attributes["type"], "result_mismatch");
    assert!(failures[0].text.contains("--- reply\nFAIL &lt;img"), "{}", failures[0].text);
    assert_eq!(failures[1].attributes["message"], "exit code 3");
    assert!(failures[1].text.contains("␛[31m]]"), "{}", failures[1].text);
    let skipped = elements.iter().find(|it| it.name == "skipped").unwrap();
    assert_eq!(skipped.attributes["message"], "SKIPPED: bad failed");
}

#[test]
fn a_run_that_was_interrupted_is_no_success_to_a_ci_system() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes: [{id: slow, type: command, command: sleep 341.3}, {id: b, prompt: x, depends_on: [slow]}]",
    );
    let running = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || !env.pids_of("341.3").is_empty());
    running.signal(rustix::process::Signal::INT);
    running.wait().exits(130);
    let xml = export(&env, "junit");
    assert!(xml.contains("errors=\"1\" skipped=\"1\""), "{xml}");
    assert!(export(&env, "markdown").starts_with("## ❌ `a graph`: FAIL\n"));
}

/// The summary without what differs from run to run.
fn settled(markdown: &str) -> String {
    let mut text = markdown.to_owned();
    for (form, stands_for) in [
        (r"20\d{6}-\d{6}\.\d{9}-\d+", "RUN"),
        (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", "MOMENT"),
        (r"\| (\d+(\.\d+)?m?s) \|", "| TOOK |"),
    ] {
        text = regex::Regex::new(form).unwrap().replace_all(&text, stands_for).into_owned();
    }
    text
}

#[test]
fn markdown_is_a_summary_in_which_nothing_foreign_is_markup() {
    let env = place();
    let markdown = export(&env, "markdown");
    insta::assert_snapshot!(settled(&markdown));
    let (mut html, mut plain) = (Vec::new(), String::new());
    for event in Parser::new_ext(&markdown, Options::all()) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => html.push(text.to_string()),
            Event::Text(text) => plain += &text,
            _ => {}
        }
    }
    let foreign =
        html.iter().filter(|html| html.contains("script") || html.contains("img") || html.contains("<b>"));
    assert_eq!(foreign.count(), 0, "{html:?}");
    let opened = html.iter().filter(|html| html.starts_with("<details>")).count();
    let closed = html.iter().filter(|html| html.starts_with("</details>")).count();
    assert!(opened == closed && opened >= 4, "{html:?}");
    assert!(
        markdown.contains("FAIL <img src=x> | ```") && plain.contains("FAIL <img src=x> | ```"),
        "{markdown}"
    );
}

#[test]
fn a_large_run_makes_a_summary_that_fits_into_a_comment() {
    let env = TestEnv::new();
    let says = "y".repeat(5_000);
    let nodes: String = (0..500)
        .map(|n| {
            format!(
                "  - {{id: node-of-many-{n:03}, type: command, command: 'echo {says}; test {n} -ne 399'}}\n"
            )
        })
        .collect();
    env.run_graph(&format!("on_fail: continue\nnodes:\n{nodes}"), &["--quiet"]).exits(1);
    let markdown = export(&env, "markdown");
    assert!(markdown.len() < 65_000, "{}", markdown.len());
    assert!(markdown.contains("| ❌ | `node-of-many-399` |"), "what failed has a row");
    assert!(markdown.contains("**`node-of-many-399`**") && markdown.contains("the middle is left out"));
    let no_room = regex::Regex::new(r"There is no room here for \d+ more\.").unwrap();
    assert_eq!(no_room.find_iter(&markdown).count(), 2, "of the table, and of what was produced");
}

#[test]
fn a_trace_has_a_track_for_every_slot_and_arrows_along_the_edges() {
    let env = place();
    let trace = json(&export(&env, "trace"));
    let events = trace["traceEvents"].as_array().unwrap();
    let of =
        |key: &str, word: &str| events.iter().filter(|it| it[key] == word).cloned().collect::<Vec<Value>>();
    let tracks: Vec<String> =
        of("name", "thread_name").iter().map(|it| it["args"]["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(tracks, ["legs", "slot 1", "gates 1"]);
    assert_eq!(of("cat", "leg").len(), 2);
    assert_eq!(of("cat", "attempt").len(), 6);
    let gate = &of("cat", "gate")[0];
    assert_eq!((&gate["name"], &gate["args"]["decision"]), (&"gate".into(), &"approved".into()));
    let slices: Vec<&Value> = events.iter().filter(|it| it["ph"] == "X").collect();
    let (from, until) = (
        |it: &Value| it["ts"].as_i64().unwrap(),
        |it: &Value| it["ts"].as_i64().unwrap() + it["dur"].as_i64().unwrap(),
    );
    for (at, slice) in slices.iter().enumerate() {
        assert!(from(slice) >= 0 && slice["dur"].as_i64().unwrap() > 0, "{slice}");
        let overlaps =
            |it: &&&Value| it["tid"] == slice["tid"] && from(it) < until(slice) && from(slice) < until(it);
        assert_eq!(slices[at + 1..].iter().find(overlaps), None, "{slice}");
    }
    // fine -> gate and gate -> end; each end of an arrow lies in a slice of its track.
    let (starts, ends) = (of("ph", "s"), of("ph", "f"));
    assert_eq!((starts.len(), ends.len()), (2, 2));
    for end in starts.iter().chain(&ends) {
        let holds = |slice: &&&Value| {
            slice["tid"] == end["tid"] && from(slice) <= from(end) && from(end) < until(slice)
        };
        assert!(slices.iter().any(|slice| holds(&slice)), "{end}");
    }
    let cost = of("ph", "C").last().unwrap()["args"]["usd"].as_f64().unwrap();
    assert!((cost - json(&export(&env, "json"))["run"]["cost_usd"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn a_page_holds_the_run_as_data_and_asks_nobody() {
    let env = place();
    let page = export(&env, "html");
    let data = page.split("<script type=\"application/json\" id=\"omg-export\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    assert!(!data.contains('<'), "no text can end the block");
    let data = json(data);
    assert_eq!(data["feed"].as_array().unwrap().len(), env.feed_lines());
    let answers = &data["answers"];
    assert!(answers["api/result fine"]["text"].as_str().unwrap().starts_with("PASS ``` </details>"));
    assert_eq!(
        answers["api/said again 1-0-2 prompt"]["text"].as_str().map(|text| text.starts_with("@on 1")),
        Some(true)
    );
    let graph = json(answers["api/graph"]["text"].as_str().unwrap());
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 7);
    assert_eq!(json(data["status"].as_str().unwrap())["state"], "failed");
    assert!(
        page.contains("default-src 'none'") && !page.contains("<meta name=\"omg-token\""),
        "no secret of a server"
    );
}

#[test]
fn a_long_text_is_cut_in_a_page_and_its_length_told() {
    let env = TestEnv::new();
    env.run_graph("nodes: [{id: long, type: command, command: 'yes é | head -c 700000'}]", &[]).exits(0);
    let page = export(&env, "html");
    assert!(page.len() < 500_000, "{}", page.len());
    assert!(page.contains("\"bytes\":700000"));
}

#[test]
fn a_file_is_written_whole_and_for_its_owner_alone() {
    let env = place();
    let words = |path: &'static str| ["export", "latest", "--format", "json", "-o", path];
    let ran = env.omg(&words("run.json")).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("run.json\n", ""));
    assert_eq!(json(&env.read("run.json"))["schema"], 1);
    assert_eq!(fs::metadata(env.path("run.json")).unwrap().mode() & 0o777, 0o600);
    env.write("run.json", "an older one");
    env.omg(&words("run.json")).exits(0);
    assert_eq!(json(&env.read("run.json"))["run"]["status"], "FAIL");
    let dash = env.omg(&words("-")).exits(0);
    assert_eq!(json(&dash.stdout)["schema"], 1);
    assert!(!env.path("-").exists(), "a dash is standard output");

    let victim = env.write("victim", "mine");
    symlink(&victim, env.path("link.json")).unwrap();
    fs::create_dir(env.path("folder")).unwrap();
    for (path, told) in [
        ("link.json", "link.json: there is a link of that name"),
        ("folder", "folder: there is a directory of that name"),
        ("/dev/null", "there is a device, a pipe or a socket of that name"),
        ("no\u{1b}[31m/run.json", "no\u{241b}[31m/run.json: cannot be written"),
        ("nowhere/run.json", "nowhere/run.json: cannot be written"),
    ] {
        let ran = env.omg(&words(path)).exits(1);
        assert!(ran.stderr.starts_with("omg: export: ") && ran.stderr.contains(told), "{}", ran.stderr);
    }
    assert_eq!(env.read("victim"), "mine");
    let limited = format!("ulimit -f 1; exec {OMG} export latest --format html -o big.html");
    let ran = Running::of(&mut env.shell(&limited)).wait().exits(1);
    assert!(ran.stderr.starts_with("omg: export: big.html: cannot be written: "), "{}", ran.stderr);
    assert!(!env.path("big.html").exists());
    let left = fs::read_dir(env.work())
        .unwrap()
        .filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with(".omg-export"));
    assert_eq!(left.count(), 0, "nothing half-written is left");
}

#[test]
fn what_cannot_be_exported_is_told_in_a_line() {
    let env = place();
    let run = env.run_dir();
    for (words, told) in [
        (&["export", "latest", "--format", "pdf"][..], "html, trace, junit, markdown, json"),
        (&["export", "latest"], "--format"),
        (&["export", "nothing-like-it", "--format", "json"], "no run \"nothing-like-it\""),
        (&["export", "../x", "--format", "json"], "cannot be a run id"),
    ] {
        let ran = env.omg(words).exits(1);
        assert!(ran.stderr.contains(told) && ran.stdout.is_empty(), "{words:?}: {}", ran.stderr);
    }
    if let Some(mut command) = env.on_terminal("export latest --format html") {
        let ran = crate::env::Running::of(&mut command).wait();
        assert!(ran.stdout.contains("html is not made for a terminal"), "{}", ran.stdout);
    }
    fs::write(run.join("state.json"), "{").unwrap();
    let ran = env.omg(&["export", "latest", "--format", "html", "-o", "x.html"]).exits(1);
    assert!(
        ran.stderr.contains("state.json:1:1: not a run snapshot") && ran.stderr.lines().count() == 2,
        "{}",
        ran.stderr
    );
    assert!(!env.path("x.html").exists());
}

#[test]
fn a_feed_that_cannot_be_read_costs_only_what_needs_it() {
    let env = place();
    let feed = env.run_dir().join("events.jsonl");
    let text = fs::read_to_string(&feed).unwrap();
    fs::write(&feed, text + &"x".repeat(2 << 20)).unwrap();
    for format in ["markdown", "junit"] {
        env.omg(&["export", "latest", "--format", format]).exits(0);
    }
    for format in ["trace", "json", "html"] {
        let ran = env.omg(&["export", "latest", "--format", format]).exits(1);
        assert!(ran.stderr.contains("longer than") && ran.stdout.is_empty(), "{format}: {}", ran.stderr);
    }
}

#[test]
fn a_run_that_goes_on_is_exported_as_it_stands_and_says_so() {
    let env = TestEnv::new();
    env.write(
        "g.yaml",
        "nodes: [{id: slow, type: command, command: sleep 341.4}, {id: b, prompt: x, depends_on: [slow]}]",
    );
    let running = env.start(&["run", "g.yaml"]);
    env.until("the node runs", || !env.pids_of("341.4").is_empty());
    let export = |format: &str| {
        let ran = env.omg(&["export", "latest", "--format", format]).exits(0);
        assert_eq!(ran.stderr, "note: the run goes on; it was written as it stands\n");
        ran.stdout
    };
    let markdown = export("markdown");
    assert!(markdown.starts_with("## ⏳") && markdown.contains("The run goes on"), "{markdown}");
    assert!(
        markdown.contains("| ⏳ | `slow` | RUNNING |") && markdown.contains("| ⏳ | `b` | NOT RUN |"),
        "{markdown}"
    );
    assert_eq!(json(&export("json"))["timeline"]["attempts"][0]["state"], "running");
    let trace = json(&export("trace"));
    let slow = trace["traceEvents"].as_array().unwrap().iter().find(|it| it["name"] == "slow").unwrap();
    assert!(slow["dur"].as_i64().unwrap() > 0 && slow["args"]["state"] == "running", "{slow}");
    assert!(export("junit").contains("skipped=\"2\""));
    running.signal(rustix::process::Signal::INT);
    running.wait().exits(130);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let env = place();
    let line = format!("{OMG} export latest --format html | head -c 10; exit ${{PIPESTATUS:-0}}");
    let ran = crate::env::Running::of(&mut env.shell(&line)).wait();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("<!doctype ", ""));
}
