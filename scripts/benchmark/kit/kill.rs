//! Ends a command in a certain way while its children run, and tells how long each of its processes lived on.
//!
//! Its processes are known by a variable in their environment. What is left at the end is killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Options;
use crate::system::{self, SIGKILL};

/// How long the command may take to start its children.
const START: Duration = Duration::from_secs(20);
/// How long processes are watched after the trigger: longer than any ladder.
const GRACE: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// What became of the processes, counted from the trigger.
#[derive(Default)]
struct Course {
    children_gone: Option<Duration>,
    command_gone: Option<Duration>,
    all_gone: Option<Duration>,
    exit: Option<i32>,
}

/// Runs the cell of `options` and prints what came of it.
pub fn run(options: &Options) {
    let mark = format!("OMG_BENCH_MARK={}", options.text("mark"));
    let mut child = start(options, &mark);
    let pid = child.id();
    let reached = until(START, || children(&mark, pid) >= options.number("want", 10) as usize);
    let processes = marked(&mark).len();
    let trigger = pull(options.text("how"), &mark, pid);
    let course = watch(&mut child, &mark, trigger);
    let left: Vec<u32> = marked(&mark).into_keys().collect();
    for it in &left {
        system::send(*it as i32, SIGKILL);
    }
    child.wait().expect("the command was started here");
    println!(
        "{{\"reached\":{reached},\"processes\":{processes},\"children_gone_ms\":{},\"command_gone_ms\":{},\
         \"all_gone_ms\":{},\"left\":{},\"exit\":{}}}",
        milliseconds(course.children_gone),
        milliseconds(course.command_gone),
        milliseconds(course.all_gone),
        left.len(),
        course.exit.map_or("null".to_owned(), |exit| exit.to_string())
    );
}

fn start(options: &Options, mark: &str) -> Child {
    let (name, value) = mark.split_once('=').expect("a name and a value");
    Command::new(&options.command[0])
        .args(&options.command[1..])
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command can be started")
}

/// Does what the cell is about; returns when it was done.
fn pull(how: &str, mark: &str, pid: u32) -> Instant {
    let signal = match how {
        "int" => 2,
        "term" => 15,
        "kill" => SIGKILL,
        _ => {
            // One of the children fails by itself.
            let before = children(mark, pid);
            until(START, || children(mark, pid) < before);
            return Instant::now();
        }
    };
    sleep(Duration::from_millis(100));
    let trigger = Instant::now();
    system::send(pid as i32, signal);
    trigger
}

fn watch(child: &mut Child, mark: &str, trigger: Instant) -> Course {
    let (mut course, pid) = (Course::default(), child.id());
    while trigger.elapsed() < GRACE && course.all_gone.is_none() {
        if course.command_gone.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            course.command_gone = Some(trigger.elapsed());
            course.exit = status.code();
        }
        let now = marked(mark);
        if !now.iter().any(|(it, name)| is_model(*it, name, pid)) {
            course.children_gone.get_or_insert_with(|| trigger.elapsed());
        }
        if now.is_empty() && course.command_gone.is_some() {
            course.all_gone = Some(trigger.elapsed());
        }
        sleep(LOOK_EVERY);
    }
    course
}

fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if holds() {
            return true;
        }
        sleep(LOOK_EVERY);
    }
    false
}

fn children(mark: &str, pid: u32) -> usize {
    marked(mark).iter().filter(|(it, name)| is_model(**it, name, pid)).count()
}

fn is_model(pid: u32, name: &str, command: u32) -> bool {
    pid != command && name == "claude"
}

/// The processes that carry `mark` and still run, with their names.
fn marked(mark: &str) -> BTreeMap<u32, String> {
    let entries = fs::read_dir("/proc").expect("a Linux system").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).find(|variable| *variable == mark.as_bytes())?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        (!rest.trim_start().starts_with('Z')).then_some((pid, name))
    })
    .collect()
}

fn milliseconds(duration: Option<Duration>) -> String {
    duration.map_or("null".to_owned(), |it| format!("{:.1}", it.as_secs_f64() * 1e3))
}
