//! Runs one command and tells its time, processor time, peak memory and end.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::Options;
use crate::system::{self, Moment, SIGKILL};

/// Runs the command of `options` and prints what it cost.
pub fn run(options: &Options) {
    let begun = Instant::now();
    let child = Command::new(&options.command[0])
        .args(&options.command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr(options.text("stderr")))
        .process_group(0)
        .spawn()
        .expect("the command can be started");
    let pid = child.id() as i32;
    let in_time = system::ends_within(child.id(), options.number("timeout", 300) * 1000);
    if !in_time {
        system::send(-pid, SIGKILL);
    }
    system::await_end(child.id());
    let wall_ms = begun.elapsed().as_secs_f64() * 1e3;
    let own_cpu_ms = system::own_cpu_ms(pid);
    let (status, usage) = system::reap(pid);
    let tree_cpu_ms = milliseconds(usage.user) + milliseconds(usage.system);
    let exit = ExitStatus::from_raw(status).code().unwrap_or(-1);
    println!(
        "{{\"wall_ms\":{wall_ms:.3},\"own_cpu_ms\":{own_cpu_ms:.3},\"tree_cpu_ms\":{tree_cpu_ms:.3},\
         \"peak_mb\":{:.2},\"exit\":{exit},\"in_time\":{in_time}}}",
        usage.peak_kb as f64 / 1024.0
    );
}

fn stderr(path: &str) -> Stdio {
    if path.is_empty() { Stdio::null() } else { File::create(path).expect("a file for stderr").into() }
}

fn milliseconds(moment: Moment) -> f64 {
    moment.seconds as f64 * 1e3 + moment.rest as f64 / 1e3
}
