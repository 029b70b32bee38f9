//! What reading runs costs at least: `stat` both files of each, or `skim` every byte of them for its JSON tokens.
//!
//! `first` is the other half of the resume row: how long a command takes until its run has begun a node.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Options;

const FILES: [&str; 2] = ["state.json", "events.jsonl"];
const LOOK_EVERY: Duration = Duration::from_micros(100);
const LIMIT: Duration = Duration::from_secs(60);

/// Walks the runs below `--root` in the manner of `--mode`, and prints a line for each, as a listing would.
pub fn run(options: &Options) {
    let entries = fs::read_dir(options.text("root")).expect("a directory of runs").flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.sort();
    let (mut lines, mut buffer) = (String::new(), Vec::new());
    for run in runs.iter().rev() {
        let told: u64 = FILES.iter().map(|file| tell(&run.join(file), options.text("mode"), &mut buffer)).sum();
        lines.push_str(&format!("{} bench 8 0.0080 {told} PASS\n", run.display()));
    }
    print!("{lines}");
}

fn tell(file: &Path, mode: &str, buffer: &mut Vec<u8>) -> u64 {
    if mode == "stat" {
        return fs::metadata(file).expect("a run's file").len();
    }
    buffer.clear();
    File::open(file).and_then(|mut file| file.read_to_end(buffer)).expect("a run's file");
    skim(buffer)
}

/// Counts the members of objects, strings skipped with their escapes.
fn skim(bytes: &[u8]) -> u64 {
    let (mut at, mut members) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b':' => members += 1,
            _ => {}
        }
        at += 1;
    }
    members
}

/// Runs a command and prints when the feed at `--feed`, which is there already, first told of a node that began.
pub fn first(options: &Options) {
    let mut feed = File::open(options.text("feed")).expect("a feed");
    feed.seek(SeekFrom::End(0)).expect("a file");
    let begun = Instant::now();
    let mut child = Command::new(&options.command[0])
        .args(&options.command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command can be started");
    let mut said = Vec::new();
    let mut wall = None;
    while wall.is_none() && begun.elapsed() < LIMIT {
        feed.read_to_end(&mut said).expect("a file");
        match said.windows(12).any(|words| words == b"node_started") {
            true => wall = Some(begun.elapsed()),
            false => sleep(LOOK_EVERY),
        }
    }
    let exit = child.wait().expect("the command was started here").code().unwrap_or(-1);
    let wall = wall.map_or("null".to_owned(), |wall| format!("{:.3}", wall.as_secs_f64() * 1e3));
    println!("{{\"wall_ms\":{wall},\"exit\":{exit}}}");
}
