//! Children as a user meets them: what they print arrives, they end when they should, and nothing stays behind.
//!
//! Each process that must be gone is a `sleep` of a length that nobody else uses, looked up in the process table.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};
use omg::process::{
    Cancel, Discard, Ended, Exit, Flow, HeadTail, How, Ladder, Launcher, Sink, SpawnError, Spec, Stdin,
    Streams, Tail, Whole,
};
use rustix::process::{Pid, Signal, getpid, kill_process};

/// Far more than any test here needs; tells a hang from no hang.
const HANG: Duration = Duration::from_secs(60);

/// Held for reading by all, and for writing by what must be the only one with children.
static COMPANY: RwLock<()> = RwLock::new(());

fn in_company() -> RwLockReadGuard<'static, ()> {
    COMPANY.read().unwrap_or_else(PoisonError::into_inner)
}

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A length of sleep that names one process.
fn nap() -> String {
    format!("{}.{:04}", 100_000 + std::process::id(), number())
}

/// The pids of living processes with `word` among their arguments.
fn living(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text.split(|it| *it == 0).any(|it| it == word.as_bytes())
    };
    pids.filter(has).collect()
}

fn assert_gone(word: &str) {
    assert_eq!(living(word), [] as [u32; 0], "sleep {word} is still there");
}

fn launcher() -> Launcher {
    Launcher::new(&format!("{}-{}", std::process::id(), number()))
}

fn sh(script: &str) -> Spec {
    program(Path::new("/bin/sh"), &["-c", script])
}

/// The stand-in with a prompt.
fn stand_in(prompt: &str) -> Spec {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().unwrap().parent().unwrap().join("examples/fake-claude");
    assert!(path.exists(), "build the stand-in first: cargo build --example fake-claude");
    Spec { ladder: Ladder::InterruptFirst, ..program(&path, &["-p", prompt]) }
}

fn program(path: &Path, args: &[&str]) -> Spec {
    Spec {
        program: path.to_owned(),
        args: args.iter().map(OsString::from).collect(),
        cwd: None,
        env: Vec::new(),
        stdin: Stdin::Null,
        timeout: Some(HANG),
        ladder: Ladder::Terminate,
        mark: format!("node/{}", number()),
        leave_running: false,
    }
}

struct Ran {
    ended: Ended,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Ran {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

fn try_run(launcher: &Launcher, spec: Spec) -> Result<Ran, SpawnError> {
    let (mut stdout, mut stderr) = (Whole::default(), Tail::default());
    let streams = Streams::Split { stdout: &mut stdout, stderr: &mut stderr };
    let ended = launcher.run(spec, streams, &Cancel::new().unwrap())?;
    Ok(Ran { ended, stdout: stdout.0, stderr: stderr.into_bytes() })
}

fn run(launcher: &Launcher, spec: Spec) -> Ran {
    let ran = try_run(launcher, spec).unwrap();
    assert_ne!(ran.ended.how, How::TimedOut, "hung");
    ran
}

fn run_until(launcher: &Launcher, limit: Duration, spec: Spec) -> Ran {
    let ran = try_run(launcher, Spec { timeout: Some(limit), ..spec }).unwrap();
    assert_eq!(ran.ended.how, How::TimedOut);
    ran
}

/// Tells, once, that a child has said something.
struct Announce(Sender<()>, Whole);

impl Sink for Announce {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.0.try_send(()).ok();
        self.1.take(bytes)
    }
}

/// Runs `spec` on a thread and calls `act` as soon as the child has printed something.
fn run_and(launcher: &Launcher, cancel: &Cancel, spec: Spec, act: impl FnOnce()) -> Ran {
    let (said, hears) = bounded(1);
    thread::scope(|scope| {
        let runner = scope.spawn(move || {
            let mut stdout = Announce(said, Whole::default());
            let streams = Streams::Split { stdout: &mut stdout, stderr: &mut Discard };
            let ended = launcher.run(spec, streams, cancel).unwrap();
            Ran { ended, stdout: stdout.1.0, stderr: Vec::new() }
        });
        hears.recv().unwrap();
        act();
        runner.join().unwrap()
    })
}

#[test]
fn output_status_and_marker_reach_the_caller() {
    let _company = in_company();
    let launcher = launcher();
    let mut spec = sh("echo out; echo err >&2; env; exit 7");
    spec.env.push(("GREETING".into(), "hello".into()));
    let mark = format!("{}={}", launcher.mark_name(), spec.mark);
    let ran = run(&launcher, spec);
    assert_eq!((ran.ended.exit, ran.ended.how, ran.ended.leaky), (Exit::Code(7), How::Itself, false));
    assert_eq!(ran.stderr, b"err\n");
    let text = ran.text();
    assert!(text.starts_with("out\n") && text.contains("GREETING=hello\n"), "{text}");
    assert!(text.lines().any(|line| line == mark), "{mark} in {text}");
    assert_eq!(run(&launcher, sh("kill -9 $$")).ended.exit, Exit::Signal(9));
}

#[test]
fn merged_output_keeps_the_order_of_its_writing() {
    let _company = in_company();
    let mut both = Whole::default();
    let script = "for i in 1 2 3; do echo o$i; echo e$i >&2; done";
    launcher().run(sh(script), Streams::Merged(&mut both), &Cancel::new().unwrap()).unwrap();
    assert_eq!(String::from_utf8(both.0).unwrap(), "o1\ne1\no2\ne2\no3\ne3\n");
}

#[test]
fn a1_a_grandchild_that_holds_the_pipe_delays_nothing() {
    let _company = in_company();
    let (plain, own_session) = (nap(), nap());
    for (directive, nap) in [("orphan", &plain), ("orphansid", &own_session)] {
        let ran = run(&launcher(), stand_in(&format!("@{directive} {nap}\n@say PASS")));
        assert_eq!((ran.ended.exit, ran.ended.how, ran.ended.leaky), (Exit::Code(0), How::Itself, true));
        assert!(ran.text().contains(r#""result":"PASS""#), "{}", ran.text());
        assert_gone(nap);
    }
}

#[test]
fn a2_the_group_is_gone_after_a_natural_end() {
    let _company = in_company();
    let nap = nap();
    run(&launcher(), stand_in(&format!("@sh sleep {nap} >/dev/null 2>&1 &")));
    assert_gone(&nap);
}

#[test]
fn a3_a_verify_command_is_judged_by_its_shell() {
    let _company = in_company();
    let (nap, mut both) = (nap(), Whole::default());
    let spec = sh(&format!("sleep {nap} & echo ok"));
    let ended = launcher().run(spec, Streams::Merged(&mut both), &Cancel::new().unwrap()).unwrap();
    assert_eq!((ended.exit, ended.how, ended.leaky), (Exit::Code(0), How::Itself, true));
    assert_eq!(both.0, b"ok\n");
    assert_gone(&nap);
}

#[test]
fn a4_the_whole_ladder_reaches_a_tree_that_ignores_it() {
    let _company = in_company();
    let (orphan, main) = (nap(), nap());
    let prompt = format!("@ignoreint\n@ignoreterm\n@orphan {orphan}\n@sh exec sleep {main}\n@sleep 600");
    let begun = Instant::now();
    let ran = run_until(&launcher(), Duration::from_millis(300), stand_in(&prompt));
    assert_eq!((ran.ended.exit, ran.text().as_str()), (Exit::Signal(9), ""));
    assert!(begun.elapsed() >= Duration::from_secs(5), "INT and TERM got their time");
    assert_gone(&orphan);
    assert_gone(&main);
}

#[test]
fn a4_an_interrupted_child_may_still_print_its_cost() {
    let _company = in_company();
    let cancel = Cancel::new().unwrap();
    let script = "trap 'echo cost; exit 0' INT; echo ready; while :; do sleep 0.02; done";
    let spec = Spec { ladder: Ladder::InterruptFirst, ..sh(script) };
    let ran = run_and(&launcher(), &cancel, spec, || cancel.fire());
    assert_eq!((ran.ended.exit, ran.ended.how), (Exit::Code(0), How::Cancelled));
    assert_eq!(ran.text(), "ready\ncost\n");
}

#[test]
fn a5_the_stand_in_dies_of_an_interrupt_without_a_reply() {
    let _company = in_company();
    let cancel = Cancel::new().unwrap();
    let ran = run_and(&launcher(), &cancel, stand_in("@sh echo asleep\n@sleep 600"), || cancel.fire());
    assert_eq!((ran.ended.exit, ran.ended.how), (Exit::Signal(2), How::Cancelled));
    assert_eq!(ran.text(), "asleep\n");
}

#[test]
fn a_stopped_child_is_ended_too() {
    let _company = in_company();
    let ran = run_until(&launcher(), Duration::from_millis(300), sh("kill -STOP $$; echo never"));
    assert_eq!(ran.ended.exit, Exit::Signal(15));
}

#[test]
fn a_child_that_left_its_group_is_ended_too() {
    let _company = in_company();
    let script = "import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(600)";
    let Ok(python) = omg::process::find::find("python3") else { return };
    let ran = run_until(&launcher(), Duration::from_millis(500), program(&python, &["-c", script]));
    assert_eq!(ran.ended.exit, Exit::Signal(15));
}

#[test]
fn one_cancellation_ends_ten_children_at_once() {
    let _company = in_company();
    let (launcher, cancel, nap) = (launcher(), Cancel::new().unwrap(), nap());
    let (said, hears) = bounded(10);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..10 {
            let (launcher, cancel) = (&launcher, &cancel);
            let mut stdout = Announce(said.clone(), Whole::default());
            let spec = sh(&format!("trap '' TERM; echo ready; sleep {nap}; exit 0"));
            scope.spawn(move || {
                let streams = Streams::Split { stdout: &mut stdout, stderr: &mut Discard };
                let ended = launcher.run(spec, streams, cancel).unwrap();
                assert_eq!((ended.exit, ended.how), (Exit::Signal(9), How::Cancelled));
            });
        }
        for _ in 0..10 {
            hears.recv().unwrap();
        }
        cancel.fire();
    });
    assert!(begun.elapsed() < Duration::from_secs(15), "one ladder for all, not one after the other");
    assert_gone(&nap);
    let ran = launcher.run(sh("true"), Streams::Merged(&mut Discard), &cancel);
    assert!(matches!(ran, Err(SpawnError::Cancelled)), "nothing starts after a cancellation");
}

/// The pids of processes marked by any launcher of this test.
fn marked() -> Vec<u32> {
    let prefix = omg::process::env::mark_name(&format!("{}-", std::process::id()));
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        text.split(|it| *it == 0).any(|it| it.starts_with(prefix.as_bytes()))
    };
    pids.filter(has).collect()
}

#[test]
fn who_is_in_the_middle_of_an_exec_is_found_too() {
    let _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
    let launcher = launcher();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    run(&launcher, sh(&format!("(setsid sh -c 'sleep {0} & sleep {0}' &) ; exit 3", nap())));
                }
            });
        }
    });
    // Whoever was not scheduled for longer than anybody waits for an exec ends with the leg.
    launcher.sweep();
    assert_eq!(marked(), [] as [u32; 0]);
}

#[test]
fn descendants_are_found_wherever_they_went() {
    let _company = in_company();
    let scripts = [
        "setsid sleep NAP >/dev/null 2>&1 &",
        "setsid sh -c '(sleep NAP >/dev/null 2>&1 &)'",
        "trap '' TERM INT HUP; sleep NAP &",
        "trap '' TERM; setsid nohup sh -c 'sleep NAP; sleep NAP' &",
        "env -i sleep NAP &",
        "(setsid sh -c 'sh -c \"sleep NAP\" & sleep NAP' &) ; exit 3",
    ];
    for script in scripts {
        let nap = nap();
        run(&launcher(), sh(&script.replace("NAP", &nap)));
        assert_eq!(living(&nap), [] as [u32; 0], "{script}");
    }
}

#[test]
fn an_unmarked_daemon_ends_when_no_child_runs() {
    let _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
    let nap = nap();
    run(&launcher(), sh(&format!("setsid env -i sleep {nap} >/dev/null 2>&1 &")));
    assert_gone(&nap);
}

#[test]
fn dead_orphans_are_reaped() {
    let _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
    run(&launcher(), sh("(true & true &) ; (sh -c 'exit 3' &)"));
    let me = getpid();
    let children = fs::read_to_string(format!("/proc/self/task/{me}/children")).unwrap();
    let zombies = children
        .split_whitespace()
        .filter(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| it.contains(") Z ")));
    assert_eq!(zombies.count(), 0, "{children}");
}

#[test]
fn a11_a_child_holds_no_descriptor_of_ours() {
    let _company = in_company();
    let (launcher, cancel) = (launcher(), Cancel::new().unwrap());
    let _signals = omg::process::signals::listen().unwrap();
    let mut listing = None;
    run_and(&launcher, &cancel, sh("echo ready; exec sleep 600"), || {
        listing = Some(run(&launcher, program(Path::new("/bin/ls"), &["/proc/self/fd"])).text());
        cancel.fire();
    });
    let inherited = inheritable();
    let listing = listing.unwrap();
    let fds: Vec<i32> = listing.split_whitespace().map(|it| it.parse().unwrap()).collect();
    let extra = fds.iter().filter(|it| **it > 2 && !inherited.contains(it)).count();
    assert_eq!(extra, 1, "only the directory that ls reads: {listing}");
}

/// What this process itself was given by who started the tests.
fn inheritable() -> Vec<i32> {
    let fds = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let kept = fds.filter(|it| {
        let info = fs::read_to_string(it.path()).unwrap_or_default();
        let flags =
            info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("02000000").trim().to_owned();
        i64::from_str_radix(&flags, 8).unwrap() & 0o2_000_000 == 0
    });
    kept.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect()
}

#[test]
fn a12_standard_input_is_never_inherited() {
    let _company = in_company();
    let ran = run(&launcher(), sh("readlink /proc/self/fd/0; cat; echo end"));
    assert_eq!(ran.text(), "/dev/null\nend\n");
}

#[test]
fn a_large_prompt_goes_in_while_the_reply_comes_out() {
    let _company = in_company();
    let prompt: Vec<u8> = (0..5_000_000_u32).map(|it| (it % 251) as u8).collect();
    let with_prompt = |script| Spec { stdin: Stdin::Bytes(prompt.clone()), ..sh(script) };
    let ran = run(&launcher(), with_prompt("cat"));
    assert!(ran.stdout == prompt, "{} bytes came back", ran.stdout.len());
    let ran = run(&launcher(), with_prompt("exec <&-; echo deaf; exit 4"));
    assert_eq!((ran.ended.exit, ran.text().as_str()), (Exit::Code(4), "deaf\n"));
    let ran = run(&launcher(), Spec { stdin: Stdin::Bytes(Vec::new()), ..sh("cat; echo end") });
    assert_eq!(ran.text(), "end\n");
}

#[test]
fn b1_a_reply_of_eight_megabytes_is_whole() {
    let _company = in_company();
    let ran = run(&launcher(), stand_in("@big 8000000"));
    assert_eq!(ran.stdout.iter().filter(|it| **it == b'x').count(), 8_000_000);
    assert!(ran.stdout.ends_with(b"}"));
}

#[test]
fn b2_a_flood_of_errors_takes_no_memory() {
    let _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
    let before = peak_kb();
    let ran = run(&launcher(), stand_in("@bigerr 300000000"));
    assert_eq!((ran.ended.exit, ran.stderr.len()), (Exit::Code(0), 32 * 1024));
    let grown = peak_kb() - before;
    assert!(grown < 16 * 1024, "grew by {grown} KB");
}

fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn b3_both_ends_of_a_long_output_are_there() {
    let _company = in_company();
    let mut ends = HeadTail::new(100, 100);
    let script = "echo MARK; head -c 50000000 /dev/zero | tr '\\0' a; echo; echo LAST";
    launcher().run(sh(script), Streams::Merged(&mut ends), &Cancel::new().unwrap()).unwrap();
    let (head, missing, tail) = ends.into_parts();
    assert!(head.starts_with(b"MARK\naaa") && tail.ends_with(b"aaa\nLAST\n"));
    assert_eq!(missing, 5 + 50_000_000 + 1 + 5 - 200);
}

#[test]
fn b10_nothing_is_lost_of_a_burst_before_the_exit() {
    let _company = in_company();
    let launcher = launcher();
    for _ in 0..5 {
        let ran =
            run(&launcher, sh("i=0; while [ $i -lt 10000 ]; do echo line$i; i=$((i+1)); done; printf end"));
        assert_eq!(ran.text().lines().count(), 10_001);
        assert!(ran.text().ends_with("line9999\nend"));
    }
    let orphaned = run(&launcher, sh(&format!("sleep {} & head -c 60000 /dev/zero; exit 0", nap())));
    assert_eq!((orphaned.stdout.len(), orphaned.ended.leaky), (60_000, true));
}

#[test]
fn a_descendant_that_goes_on_writing_keeps_nobody() {
    let _company = in_company();
    let ran = run(&launcher(), sh("yes & head -c 1 /dev/zero; exit 0"));
    assert_eq!((ran.ended.exit, ran.ended.leaky), (Exit::Code(0), true));
}

#[test]
fn children_started_side_by_side_are_never_called_leaky() {
    let _company = in_company();
    let launcher = launcher();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let ran = run(&launcher, sh("echo x"));
                    assert_eq!((ran.text().as_str(), ran.ended.leaky), ("x\n", false));
                }
            });
        }
    });
}

/// Has had enough as soon as `done` is printed.
struct UntilDone(Whole);

impl Sink for UntilDone {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.0.take(bytes)?;
        Ok(if self.0.0.ends_with(b"done\n") { Flow::Enough } else { Flow::More })
    }
}

#[test]
fn a_child_that_lingers_after_its_last_word_is_ended() {
    let _company = in_company();
    for (script, how) in [("echo done; exec sleep 600", How::Enough), ("echo done; exec true", How::Itself)] {
        let streams = Streams::Split { stdout: &mut UntilDone(Whole::default()), stderr: &mut Discard };
        let ended = launcher().run(sh(script), streams, &Cancel::new().unwrap()).unwrap();
        assert_eq!(ended.how, how, "{script}");
    }
}

/// A disk that is full.
struct Full;

impl Sink for Full {
    fn take(&mut self, _: &[u8]) -> io::Result<Flow> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }
}

#[test]
fn a_sink_that_fails_ends_the_child() {
    let _company = in_company();
    let nap = nap();
    let spec = sh(&format!("echo x; sleep {nap}"));
    let error = launcher().run(spec, Streams::Merged(&mut Full), &Cancel::new().unwrap()).unwrap_err();
    assert!(matches!(&error, SpawnError::Lost { source, .. } if source.kind() == io::ErrorKind::StorageFull));
    assert_gone(&nap);
}

#[test]
fn what_is_to_be_left_running_is_left_and_told() {
    let _company = in_company();
    let (launcher, nap) = (launcher(), nap());
    // `living` finds it once it is a `sleep`, which may be long after the shell has gone on.
    let script =
        format!("setsid sleep {nap} & until grep -aq ^sleep /proc/$!/cmdline; do :; done; echo started");
    let spec = Spec { leave_running: true, ..sh(&script) };
    let ran = run(&launcher, spec);
    assert_eq!((ran.text().as_str(), ran.ended.how), ("started\n", How::Itself));
    run(&launcher, sh("true"));
    launcher.sweep();
    assert_eq!(ran.ended.left_running, living(&nap));
    assert_eq!(ran.ended.left_running.len(), 1);
    end_by_pid(&ran.ended.left_running);
}

fn end_by_pid(pids: &[u32]) {
    for pid in pids.iter().filter_map(|it| Pid::from_raw(i32::try_from(*it).unwrap())) {
        kill_process(pid, Signal::KILL).unwrap();
    }
}

#[test]
fn a_node_that_may_leave_things_running_takes_them_along_when_it_is_ended() {
    let _company = in_company();
    let nap = nap();
    let spec = Spec { leave_running: true, ..sh(&format!("setsid sleep {nap} & sleep 600")) };
    let ran = run_until(&launcher(), Duration::from_millis(300), spec);
    assert_eq!(ran.ended.left_running, [] as [u32; 0]);
    assert_gone(&nap);
}

#[test]
fn a_second_signal_kills_everything_at_once() {
    let _company = in_company();
    let (launcher, cancel, nap) = (launcher(), Cancel::new().unwrap(), nap());
    let script = format!("trap '' TERM INT; setsid sleep {nap} & echo ready; sleep {nap}; exit 0");
    let ran = run_and(&launcher, &cancel, sh(&script), || launcher.kill_all());
    assert_eq!(ran.ended.exit, Exit::Signal(9));
    assert_gone(&nap);
    let after = launcher.run(sh("true"), Streams::Merged(&mut Discard), &cancel);
    assert!(matches!(after, Err(SpawnError::Cancelled)), "nothing starts afterwards");
}

fn check_refused(spec: Spec, says: &str) {
    let message = match try_run(&launcher(), spec) {
        Ok(_) => "it ran".to_owned(),
        Err(error) => error.to_string(),
    };
    assert!(message.contains(says), "{message:?} does not say {says:?}");
}

#[test]
fn what_cannot_be_started_is_told_in_plain_words() {
    let _company = in_company();
    let cwd = |path: &str| Spec { cwd: Some(PathBuf::from(path)), ..sh("true") };
    check_refused(cwd("/no/such/place"), "working directory /no/such/place does not exist");
    check_refused(cwd("/etc/passwd"), "working directory /etc/passwd is not a directory");
    check_refused(program(Path::new("/no/such/tool"), &[]), "cannot start /no/such/tool: No such file");
    check_refused(
        program(Path::new("/bin/sh"), &["-c", "a\0b"]),
        "cannot start /bin/sh: NUL byte in argument 2",
    );
    let long = "x".repeat(3_000_000);
    check_refused(sh(&long), "the command line is too long for this system (3000012 bytes)");
    let in_tmp = Spec { cwd: Some(PathBuf::from("/tmp")), ..sh("pwd") };
    assert_eq!(run(&launcher(), in_tmp).text(), "/tmp\n");
}

#[test]
fn a_question_is_answered_or_not() {
    let _company = in_company();
    let ask = |script: &str, limit| launcher().question(Path::new("/bin/sh"), &["-c", script], limit).ok();
    assert_eq!(ask("echo 2.1.332", HANG).as_deref(), Some("2.1.332\n"));
    assert_eq!(ask("echo x; exit 1", HANG), None);
    assert_eq!(ask("echo x; sleep 600", Duration::from_millis(100)), None);
}

#[test]
fn the_portable_way_ends_groups_and_the_trees_it_saw() {
    let _company = in_company();
    let launcher = Launcher::portable(&format!("portable-{}", number()));
    let orphan = nap();
    let ran = run(&launcher, sh(&format!("sleep {orphan} & echo ok")));
    assert_eq!((ran.text().as_str(), ran.ended.leaky), ("ok\n", true));
    assert_gone(&orphan);
    let (far, near) = (nap(), nap());
    let script = format!("trap '' TERM; setsid sleep {far} & sleep {near} & wait; exit 0");
    run_until(&launcher, Duration::from_millis(500), sh(&script));
    assert_gone(&far);
    assert_gone(&near);
}

#[test]
fn signals_arrive_on_the_channel() {
    let _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
    let signals = omg::process::signals::listen().unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        kill_process(getpid(), signal).unwrap();
        assert_eq!(signals.recv_timeout(HANG).unwrap().exit_code(), code);
    }
}
