//! Each directive of a script, through the two traits that the engine asks; and each mistake, with its place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::load::{self, Source};
use crate::process::capture::Whole;
use crate::text::money::{Cost, Money};
use crate::text::regexp::Pattern;
use crate::text::usage::Usage;

const GRAPH: &str = r"
name: demo
nodes:
  - {id: ask, prompt: hi}
  - {id: judge, prompt: hi, success_check: {result_matches: '^(CLEAN|FINDINGS:)', verify: {command: make, expect_exit: 3}}}
  - {id: build, type: command, command: make, success_check: {result_matches: '^ok$'}}
  - {id: list, type: command, command: ls}
  - {id: approve, type: gate, depends_on: [ask]}
";

fn graph(text: &str) -> Graph {
    let source = Source::from_bytes(Path::new("g.yaml"), text.into()).expect("it is text");
    load::load(&source).unwrap_or_else(|problems| panic!("{:?}", problems.lines())).graph
}

fn rehearsal(script: &str) -> Rehearsal {
    let graph = graph(GRAPH);
    let script =
        read::read("s.yaml", script, &graph).unwrap_or_else(|problems| panic!("{:?}", problems.lines()));
    Rehearsal::new(&graph, Some(script)).expect("every reply can be derived")
}

fn id(text: &str) -> NodeId {
    NodeId::parse(text).expect("an id")
}

fn not_fired() -> Cancel {
    Cancel::new().expect("a pipe")
}

fn invocation(node: &str) -> Invocation {
    Invocation { session: Session::Fresh(Some("fresh".to_owned())), ..Invocation::plain(node) }
}

fn request(node: &str) -> ShellRequest {
    ShellRequest {
        node: id(node),
        attempt: 0,
        command: "exit 1".to_owned(),
        cwd: PathBuf::new(),
        env: Vec::new(),
        timeout: Duration::from_secs(60),
        leave_running: false,
    }
}

fn ask(rehearsal: &Rehearsal, node: &str) -> Invoked {
    rehearsal.invoke(&invocation(node), &not_fired(), &mut |_| {})
}

fn run(rehearsal: &Rehearsal, node: &str) -> (Result<Ran, String>, String) {
    let mut stdout = Whole::default();
    let ran = rehearsal.run(&request(node), &mut stdout, &not_fired());
    (ran.map_err(|error| error.to_string()), String::from_utf8(stdout.0).expect("text"))
}

/// What the evidence command of `judge` shows: it must exit with 3 and print `fine`.
fn verify(rehearsal: &Rehearsal) -> Result<Evidence, String> {
    let expected =
        Expectation { exit: 3, output_matches: Some(Pattern::compile("^fine$").expect("a pattern")) };
    let mut log = Whole::default();
    let evidence = rehearsal.verify(&request("judge"), &expected, &mut log, &not_fired());
    evidence.inspect(|it| assert_eq!(it.tail.as_bytes(), log.0)).map_err(|error| error.to_string())
}

fn answered(exit: i32) -> End {
    End::Replied { exit: Exit::Code(exit), note: String::new() }
}

#[test]
fn without_a_script_every_check_passes_for_nothing() {
    let rehearsal = Rehearsal::new(&graph(GRAPH), None).expect("every reply can be derived");
    for (node, reply) in [("ask", "rehearsed ask"), ("judge", "CLEAN")] {
        let invoked = ask(&rehearsal, node);
        assert_eq!((invoked.end, invoked.reply.as_str()), (answered(0), reply));
        assert_eq!((invoked.charge, invoked.usage), (Cost::ZERO, Usage::default()));
        assert_eq!(invoked.session.as_deref(), Some("fresh"));
    }
    for (node, output) in [("build", "ok"), ("list", "rehearsed list\n")] {
        let (ran, stdout) = run(&rehearsal, node);
        assert_eq!((ran.expect("it ran").exit, stdout.as_str()), (Exit::Code(0), output));
    }
    let evidence = verify(&rehearsal).expect("it ran");
    assert_eq!((evidence.how, evidence.exit, evidence.matched), (How::Itself, Exit::Code(3), true));
}

#[test]
fn a_session_is_fresh_or_the_one_that_is_resumed() {
    let rehearsal = rehearsal("nodes: {}");
    let fresh = [(); 2].map(|()| rehearsal.fresh_session().expect("it chooses ids itself"));
    assert!(fresh.iter().all(|id| Uuid::parse_str(id).is_ok()) && fresh[0] != fresh[1], "{fresh:?}");
    let resume = Invocation { session: Session::Resume("parents".to_owned()), ..invocation("ask") };
    let invoked = rehearsal.invoke(&resume, &not_fired(), &mut |_| {});
    assert_eq!(invoked.session.as_deref(), Some("parents"));
}

#[test]
fn each_spawn_has_its_entry_and_the_last_repeats() {
    let script = "nodes: {ask: [{reply: one}, {exit: 4}, {reply: three, exit: 5}]}";
    let rehearsal = rehearsal(script);
    let said = [(); 4].map(|()| ask(&rehearsal, "ask")).map(|invoked| (invoked.reply, invoked.end));
    let wanted = [("one", 0), ("rehearsed ask", 4), ("three", 5), ("three", 5)];
    assert_eq!(said, wanted.map(|(reply, exit)| (reply.to_owned(), answered(exit))));
}

#[test]
fn a_later_leg_goes_on_where_the_one_before_it_stopped() {
    let rehearsal = rehearsal("nodes: {ask: [{limit: true}, {reply: again}]}");
    rehearsal.resume(&id("ask"), 1);
    assert_eq!(ask(&rehearsal, "ask").reply, "again");
}

#[test]
fn a_price_is_known_unknown_or_nothing() {
    let price = |script| ask(&rehearsal(script), "ask").charge;
    assert_eq!(price("nodes: {ask: {cost: 0.25}}"), Cost::known(Money::from_usd(0.25).expect("a price")));
    assert_eq!(price("nodes: {ask: {cost: unknown}}"), Cost::UNKNOWN);
    assert_eq!(price("nodes: {ask: {reply: x}}"), Cost::ZERO);
    let quarter = Cost::known(Money::from_usd(0.25).expect("a price"));
    assert_eq!(price("nodes: {ask: {cost: 0.25, timeout: true}}"), quarter);
}

#[test]
fn tokens_are_a_number_of_written_ones_or_all_four_counts() {
    let usage = |script| ask(&rehearsal(script), "ask").usage;
    assert_eq!(usage("nodes: {ask: {tokens: 7}}"), Usage { output_tokens: 7, ..Usage::default() });
    let all = Usage { input_tokens: 1, cached_input_tokens: 2, output_tokens: 3, reasoning_output_tokens: 4 };
    assert_eq!(
        usage("nodes: {ask: {tokens: {input: 1, cached_input: 2, output_tokens: 3, reasoning_output: 4}}}"),
        all
    );
}

#[test]
fn a_limit_is_told_in_its_words() {
    let end = |script| ask(&rehearsal(script), "ask").end;
    let limited = |cause: &str, resets: Option<&str>| End::Limited {
        cause: cause.to_owned(),
        resets: resets.map(str::to_owned),
    };
    assert_eq!(end("nodes: {ask: {limit: true}}"), limited("You've hit your session limit", None));
    let words = "nodes: {ask: {limit: 'no more · resets 5pm'}}";
    assert_eq!(end(words), limited("no more · resets 5pm", Some("5pm")));
    assert_eq!(end("nodes: {ask: {limit: no}}"), answered(0));
}

#[test]
fn what_cannot_start_or_runs_out_of_time_gives_no_answer() {
    let broken = ask(&rehearsal("nodes: {ask: {spawn_error: no such file}}"), "ask");
    assert_eq!(broken.end, End::Broken("cannot start the runtime: no such file".to_owned()));
    assert_eq!((broken.charge, broken.session), (Cost::ZERO, None));
    assert_eq!(ask(&rehearsal("nodes: {ask: {timeout: true}}"), "ask").end, End::TimedOut);

    let (ran, _) = run(&rehearsal("nodes: {list: {spawn_error: no such file}}"), "list");
    assert_eq!(ran.expect_err("it did not start"), "cannot start /bin/sh: no such file");
    let (ran, stdout) = run(&rehearsal("nodes: {list: {timeout: true}}"), "list");
    assert_eq!((ran.expect("it ran").how, stdout.as_str()), (How::TimedOut, ""));
}

#[test]
fn an_empty_reply_is_no_answer_unless_the_exit_says_more() {
    let end = |script| ask(&rehearsal(script), "ask").end;
    assert_eq!(end("nodes: {ask: {reply: ''}}"), End::Unreadable("the reply is empty".to_owned()));
    assert_eq!(end("nodes: {ask: {reply: '', exit: 2}}"), answered(2));
}

#[test]
fn a_command_prints_its_reply_byte_for_byte() {
    let (ran, stdout) = run(&rehearsal("nodes: {list: {reply: \"a\\r\\nb\", exit: 9}}"), "list");
    assert_eq!((ran.expect("it ran").exit, stdout.as_str()), (Exit::Code(9), "a\r\nb"));
}

#[test]
fn a_delay_ends_at_the_nodes_own_timeout() {
    let rehearsal = rehearsal("nodes: {ask: {delay: 1h, cost: 1}, list: {delay: 1h}}");
    let short = Duration::from_millis(1);
    let invoked =
        rehearsal.invoke(&Invocation { timeout: short, ..invocation("ask") }, &not_fired(), &mut |_| {});
    assert_eq!((invoked.end, invoked.reply.as_str()), (End::TimedOut, ""));
    let request = ShellRequest { timeout: short, ..request("list") };
    let ran = rehearsal.run(&request, &mut Whole::default(), &not_fired()).expect("it ran");
    assert_eq!(ran.how, How::TimedOut);
}

#[test]
fn a_delay_within_the_timeout_only_takes_its_time() {
    let invoked = ask(&rehearsal("nodes: {ask: {delay: 1ms, reply: late}}"), "ask");
    assert_eq!((invoked.end, invoked.reply.as_str()), (answered(0), "late"));
}

#[test]
fn a_cancellation_ends_a_delay() {
    let rehearsal = rehearsal("nodes: {ask: {delay: 1h, cost: 1}, list: {delay: 1h}}");
    let long = Duration::from_secs(3600);
    let cancel = not_fired();
    std::thread::scope(|scope| {
        let model = scope.spawn(|| {
            let invocation = Invocation { timeout: long, ..invocation("ask") };
            rehearsal.invoke(&invocation, &cancel, &mut |_| {}).end
        });
        let command = scope.spawn(|| {
            let request = ShellRequest { timeout: long, ..request("list") };
            match rehearsal.run(&request, &mut Whole::default(), &cancel) {
                Ok(ran) => ran.how == How::Cancelled,
                Err(error) => matches!(error, SpawnError::Cancelled),
            }
        });
        cancel.fire();
        assert_eq!(model.join().expect("no panic"), End::Cancelled);
        assert!(command.join().expect("no panic"));
    });
}

#[test]
fn nothing_begins_once_the_run_is_cancelled() {
    let rehearsal = rehearsal("nodes: {ask: [{reply: one}, {reply: two}]}");
    let cancel = not_fired();
    cancel.fire();
    assert_eq!(rehearsal.invoke(&invocation("ask"), &cancel, &mut |_| {}).end, End::Cancelled);
    let ran = rehearsal.run(&request("list"), &mut Whole::default(), &cancel);
    assert!(matches!(ran, Err(SpawnError::Cancelled)));
    assert_eq!(ask(&rehearsal, "ask").reply, "one", "an attempt that never began uses no entry");
}

#[test]
fn evidence_is_what_the_script_says_of_it() {
    let check = |said: &str, how: How, exit: Exit, matched: bool, tail: &str| {
        let rehearsal = rehearsal(&format!("nodes: {{judge: {{verify: {said}}}}}"));
        let evidence = verify(&rehearsal).expect("it ran");
        let seen = (evidence.how, evidence.exit, evidence.matched, evidence.tail.as_str());
        assert_eq!(seen, (how, exit, matched, tail), "{said}");
    };
    let (own, three) = (How::Itself, Exit::Code(3));
    check("pass", own, three, true, "");
    check("fail", own, Exit::Code(1), true, "");
    check("fine", own, three, true, "fine");
    check("'not so fine'", own, three, false, "not so fine");
    check("{exit: 0}", own, Exit::Code(0), true, "");
    check("{exit: 2, output: fine}", own, Exit::Code(2), true, "fine");
    check("{timeout: true, output: half}", How::TimedOut, Exit::Signal(15), false, "half");
    check("'pass'", own, three, true, "");
    check("'PASS'", own, three, false, "PASS");
}

#[test]
fn evidence_that_cannot_start_says_why() {
    let rehearsal = rehearsal("nodes: {judge: {verify: {spawn_error: gone}}}");
    assert_eq!(verify(&rehearsal).expect_err("it did not start"), "cannot start /bin/sh: gone");
}

#[test]
fn evidence_belongs_to_the_attempt_before_it() {
    let rehearsal = rehearsal("nodes: {judge: [{verify: fail}, {verify: pass}]}");
    let exits = [(); 2].map(|()| {
        ask(&rehearsal, "judge");
        verify(&rehearsal).expect("it ran").exit
    });
    assert_eq!(exits, [Exit::Code(1), Exit::Code(3)]);
}

#[test]
fn the_end_of_a_long_output_is_kept() {
    let output = format!("{}end", "é".repeat(20_000));
    let entry = Entry { verify: Check::Shows { exit: None, output: Some(output) }, ..Entry::default() };
    let script = Script::new([(id("judge"), vec![entry])]);
    let rehearsal = Rehearsal::new(&graph(GRAPH), Some(script)).expect("every reply can be derived");
    let expected = Expectation { exit: 0, output_matches: None };
    let mut log = Whole::default();
    let evidence = rehearsal.verify(&request("judge"), &expected, &mut log, &not_fired()).expect("it ran");
    assert!(evidence.tail.ends_with("éend") && evidence.tail.len() <= EVIDENCE_TAIL_BYTES);
    assert_eq!(log.0.len(), 40_003);
}

#[test]
fn a_pattern_without_a_reply_is_refused_unless_the_script_has_one() {
    let text = r"
nodes:
  - {id: never, prompt: x, success_check: {result_matches: 'a^'}}
  - {id: blank, prompt: x, success_check: {result_matches: '^\s*$'}}
  - {id: silent, type: command, command: x, success_check: {result_matches: '^$'}}
  - {id: gate, type: gate}
";
    let graph = graph(text);
    assert_eq!(
        Rehearsal::new(&graph, None).expect_err("two nodes have no reply"),
        [
            "node \"never\": result_matches `a^`: no reply that matches it could be derived; give the node a reply in a script (--script)",
            "node \"blank\": result_matches `^\\s*$`: only a blank reply matches it; give the node a reply in a script (--script)",
        ]
    );
    let script = |text| Some(read::read("s", text, &graph).expect("a script"));
    let scripted = script("nodes: {never: {reply: x}, blank: [{limit: true}, {timeout: true}]}");
    let rehearsal = Rehearsal::new(&graph, scripted).expect("the script says every reply");
    assert_eq!(run(&rehearsal, "silent").1, "");
    let half = script("nodes: {never: [{reply: x}, {exit: 1}], blank: {reply: x}}");
    assert_eq!(Rehearsal::new(&graph, half).expect_err("one attempt has no reply").len(), 1);
}

fn refused(script: &str, wanted: &[&str]) {
    let problems = read::read("s.yaml", script, &graph(GRAPH)).expect_err(script);
    let told: Vec<String> = problems
        .reports()
        .into_iter()
        .map(|it| {
            let node = it.node.map(|node| format!("{node}: ")).unwrap_or_default();
            let hint = it.hint.map(|hint| format!(" | {hint}")).unwrap_or_default();
            format!("{}:{}: {node}{}{hint}", it.line, it.column, it.message)
        })
        .collect();
    assert_eq!(told, wanted, "{script}");
}

#[test]
fn a_script_that_speaks_of_what_is_not_there_is_refused() {
    refused("nodes: {deploy: {}}", &["1:9: the graph has no node \"deploy\""]);
    refused("nodes: {biuld: {}}", &["1:9: the graph has no node \"biuld\" | did you mean \"build\"?"]);
    refused(
        "nodes:\n  approve: {}",
        &[
            "2:3: node \"approve\" is a gate, which no script answers | decide it with --approve or --reject, in a test with then: {approve: GATE}",
        ],
    );
    refused("node: {}\nx-shared: 1", &["1:1: unknown key \"node\" | did you mean \"nodes\"?"]);
    refused("nodes: {ask: {repyl: x}}", &["1:15: ask: unknown key \"repyl\" | did you mean \"reply\"?"]);
    refused(
        "nodes: {ask: {zzz: x}}",
        &[
            "1:15: ask: unknown key \"zzz\" | the keys here are reply, exit, cost, tokens, delay, limit, timeout, spawn_error, setup, verify",
        ],
    );
    refused("nodes: {ask: {verify: pass}}", &["1:15: ask: verify: the node has no success_check.verify"]);
    refused("nodes: {list: {cost: 1}}", &["1:16: list: cost: the node is a command, which asks no model"]);
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_place() {
    refused("- ask", &["1:1: a script is a mapping with the key nodes, and this is a list"]);
    refused("nodes: [ask]", &["1:8: nodes is a mapping from ids to what they answer, and this is a list"]);
    refused("nodes: {ask: []}", &["1:14: ask: the list is empty | leave the node out"]);
    refused(
        "nodes: {ask: [PASS]}",
        &[
            "1:15: ask: an attempt is a mapping, and this is \"PASS\" | the keys here are reply, exit, cost, tokens, delay, limit, timeout, spawn_error, setup, verify",
        ],
    );
    refused("nodes: {ask: {reply: [x]}}", &["1:22: ask: reply takes text, and this is a list"]);
    refused(
        "nodes: {ask: {exit: 256}}",
        &["1:21: ask: exit takes an exit code from 0 to 255, and this is \"256\""],
    );
    refused(
        "nodes: {ask: {cost: -1}}",
        &[
            "1:21: ask: cost takes a price in dollars from 0 to 1000000, or the word unknown, and this is \"-1\"",
        ],
    );
    refused(
        "nodes: {ask: {tokens: {input: -1, outptu: 2, output: 1, output_tokens: 2}}}",
        &[
            "1:31: ask: input takes a whole number from 0 to 1000000000000, and this is \"-1\"",
            "1:35: ask: unknown key \"outptu\" | did you mean \"output\"?",
            "1:57: ask: output is counted twice",
        ],
    );
    refused(
        "nodes: {ask: {delay: 30}}",
        &["1:22: ask: delay \"30\" is not a time: the unit is missing | write it as in 500ms, 30s or 1m30s"],
    );
    refused(
        "nodes: {ask: {delay: -1s}}",
        &["1:22: ask: delay \"-1s\" is not a time: it is negative | write it as in 500ms, 30s or 1m30s"],
    );
    refused("nodes: {ask: {timeout: 5m}}", &["1:24: ask: timeout takes true or false, and this is \"5m\""]);
    refused(
        "nodes: {ask: {limit: []}}",
        &["1:22: ask: limit takes true, false or the words of the error, and this is a list"],
    );
}

#[test]
fn a_verdict_that_is_misspelled_is_not_taken_for_an_output() {
    let hint = "put quotes around it when it is what the command prints";
    for word in ["fial", "PASS", "passed", "false"] {
        let wanted = format!("1:25: judge: verify: {word:?} is neither pass nor fail | {hint}");
        refused(&format!("nodes: {{judge: {{verify: {word}}}}}"), &[&wanted]);
    }
}

#[test]
fn parts_that_exclude_each_other_are_refused() {
    refused(
        "nodes: {ask: {limit: true, reply: x}}",
        &["1:14: ask: an attempt that ends by limit has no reply"],
    );
    refused(
        "nodes: {ask: {limit: true, timeout: true}}",
        &["1:14: ask: an attempt that ends by limit has no timeout"],
    );
    refused(
        "nodes: {ask: {spawn_error: true, cost: 1}}",
        &["1:14: ask: an attempt that ends by spawn_error has no cost"],
    );
    refused(
        "nodes: {judge: {timeout: true, verify: pass}}",
        &["1:16: judge: an attempt that ends by timeout has no verify"],
    );
    refused(
        "nodes: {judge: {verify: {timeout: true, exit: 1}}}",
        &["1:25: judge: verify: a command that ran out of time has no exit"],
    );
}

#[test]
fn json_is_read_and_every_mistake_is_told_at_once() {
    let script = r#"{"nodes": {"ask": [{"reply": "hi", "exit": null}]}}"#;
    let read_back = read::read("s.json", script, &graph(GRAPH)).expect("a script");
    assert_eq!(read_back.entries(&id("ask")), [Entry::reply("hi")]);
    refused(
        "nodes:\n  ask: {exit: x}\n  ask: {}\n  nobody: {}\n",
        &[
            "3:3: the key \"ask\" stands twice in this mapping",
            "2:15: ask: exit takes an exit code from 0 to 255, and this is \"x\"",
            "4:3: the graph has no node \"nobody\"",
        ],
    );
}
