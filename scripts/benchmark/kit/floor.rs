//! The cheapest program that runs N children and keeps the same promises: one thread, no graph, no parsing.
//!
//! What is kept: `bare` nothing; `promise` the artifact (temporary file, sync, rename) and one append and one sync
//! for an end and the start that it releases; `strict` three syncs a node: its start, the whole snapshot, its end.

use std::ffi::{CString, c_char};
use std::fs::{self, File, OpenOptions};
use std::io::{PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Instant;

use crate::Options;
use crate::system::{self, POLLIN, Poll};

/// The length of a feed line and of a node's record in the snapshot.
const LINE_BYTES: usize = 220;
const RECORD_BYTES: usize = 420;

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Bare,
    Promise,
    Strict,
}

struct Records {
    keep: Keep,
    dir: String,
    feed: Option<File>,
    snapshot: Vec<u8>,
}

/// A child under way: its two pipes, and what it wrote to the first.
struct Running {
    pid: i32,
    pipes: [Option<PipeReader>; 2],
    written: Vec<u8>,
}

/// Runs the floor of `options` and prints how long it took.
pub fn run(options: &Options) {
    let (count, slots) = (options.number("n", 100) as usize, options.number("conc", 1) as usize);
    let words: Vec<CString> =
        options.command.iter().map(|word| CString::new(word.as_str()).expect("no NUL byte")).collect();
    let ends = std::iter::once(std::ptr::null());
    let argv: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).chain(ends).collect();
    let mut records = Records::new(options);
    let mut buffer = vec![0; 64 * 1024];
    let (mut running, mut started, mut done): (Vec<Running>, usize, usize) = (Vec::new(), 0, 0);
    let begun = Instant::now();
    while done < count {
        while running.len() < slots && started < count {
            records.started();
            running.push(start(&argv));
            started += 1;
        }
        read_all(&mut running, &mut buffer);
        for at in (0..running.len()).rev().filter(|at| running[*at].is_closed()).collect::<Vec<_>>() {
            let ended = running.swap_remove(at);
            system::reap(ended.pid);
            records.ended(done, &ended.written);
            done += 1;
        }
    }
    println!("{{\"wall_ms\":{:.3}}}", begun.elapsed().as_secs_f64() * 1e3);
}

fn start(argv: &[*const c_char]) -> Running {
    let (out, out_end) = std::io::pipe().expect("a pipe");
    let (err, err_end) = std::io::pipe().expect("a pipe");
    let pid = system::spawn(argv, out_end.as_raw_fd(), err_end.as_raw_fd());
    Running { pid, pipes: [Some(out), Some(err)], written: Vec::new() }
}

impl Running {
    fn is_closed(&self) -> bool {
        self.pipes.iter().all(Option::is_none)
    }
}

/// Waits for news of any pipe and reads what there is.
fn read_all(running: &mut [Running], buffer: &mut [u8]) {
    let mut polled = Vec::new();
    let mut places = Vec::new();
    for (child, it) in running.iter().enumerate() {
        for (pipe, open) in it.pipes.iter().enumerate() {
            if let Some(open) = open {
                polled.push(Poll { fd: open.as_raw_fd(), events: POLLIN, revents: 0 });
                places.push((child, pipe));
            }
        }
    }
    system::wait_for(&mut polled, 60_000);
    for ((child, pipe), _) in places.into_iter().zip(&polled).filter(|(_, it)| it.revents != 0) {
        let it = &mut running[child];
        match it.pipes[pipe].as_mut().map_or(Ok(0), |open| open.read(buffer)) {
            Ok(read) if read > 0 && pipe == 0 => it.written.extend_from_slice(&buffer[..read]),
            Ok(read) if read > 0 => {}
            _ => it.pipes[pipe] = None,
        }
    }
}

impl Records {
    fn new(options: &Options) -> Self {
        let keep = match options.text("keep") {
            "strict" => Keep::Strict,
            "promise" => Keep::Promise,
            _ => Keep::Bare,
        };
        let dir = options.text("dir").to_owned();
        let feed = (keep != Keep::Bare).then(|| {
            let path = format!("{dir}/events.jsonl");
            OpenOptions::new().create(true).append(true).open(path).expect("a feed")
        });
        Records { keep, dir, feed, snapshot: vec![b'g'; options.number("base", 500) as usize] }
    }

    fn started(&mut self) {
        if self.keep == Keep::Strict {
            self.append(LINE_BYTES);
        }
    }

    fn ended(&mut self, number: usize, written: &[u8]) {
        let reply = &written[..written.len().min(2)];
        match self.keep {
            Keep::Bare => {}
            Keep::Promise => {
                self.replace(&format!("n{number}.out"), reply);
                self.append(2 * LINE_BYTES);
            }
            Keep::Strict => {
                fs::write(format!("{}/n{number}.out", self.dir), reply).expect("an artifact");
                self.snapshot.resize(self.snapshot.len() + RECORD_BYTES, b's');
                self.replace("state.json", &self.snapshot);
                self.append(LINE_BYTES);
            }
        }
    }

    fn append(&mut self, bytes: usize) {
        let feed = self.feed.as_mut().expect("a floor that keeps something has a feed");
        feed.write_all(&vec![b'e'; bytes]).expect("an append");
        feed.sync_data().expect("a sync");
    }

    fn replace(&self, name: &str, bytes: &[u8]) {
        let temporary = format!("{}/temporary", self.dir);
        let mut file = File::create(&temporary).expect("a temporary file");
        file.write_all(bytes).expect("a write");
        file.sync_data().expect("a sync");
        fs::rename(temporary, format!("{}/{name}", self.dir)).expect("a rename");
    }
}
