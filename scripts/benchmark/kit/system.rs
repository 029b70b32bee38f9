//! The calls of the C library that the standard library does not offer.

use std::ffi::{c_char, c_int, c_long, c_short, c_ulong};
use std::os::fd::RawFd;

pub const POLLIN: c_short = 1;
pub const SIGKILL: c_int = 9;
const SYS_PIDFD_OPEN: c_long = 434;
const P_PID: c_int = 1;
const WEXITED_NOWAIT: c_int = 4 | 0x0100_0000;

#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct Moment {
    pub seconds: i64,
    pub rest: i64,
}

/// `struct rusage`: times, peak memory, then counters of which the last two are context switches.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct Usage {
    pub user: Moment,
    pub system: Moment,
    pub peak_kb: i64,
    pub counters: [i64; 13],
}

#[repr(C)]
pub struct Poll {
    pub fd: c_int,
    pub events: c_short,
    pub revents: c_short,
}

unsafe extern "C" {
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
    fn waitid(kind: c_int, id: u32, info: *mut [u8; 128], options: c_int) -> c_int;
    fn clock_gettime(clock: c_int, moment: *mut Moment) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn poll(fds: *mut Poll, count: c_ulong, timeout_ms: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn posix_spawn(
        pid: *mut c_int,
        path: *const c_char,
        actions: *mut [u64; 16],
        attributes: *mut [u64; 64],
        argv: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    fn posix_spawn_file_actions_init(actions: *mut [u64; 16]) -> c_int;
    fn posix_spawn_file_actions_adddup2(actions: *mut [u64; 16], from: c_int, to: c_int) -> c_int;
    fn posix_spawn_file_actions_destroy(actions: *mut [u64; 16]) -> c_int;
    fn posix_spawnattr_init(attributes: *mut [u64; 64]) -> c_int;
    fn posix_spawnattr_setflags(attributes: *mut [u64; 64], flags: c_short) -> c_int;
    static environ: *const *const c_char;
}

/// Reaps `pid`; returns its wait status and what it and its children used.
pub fn reap(pid: i32) -> (i32, Usage) {
    let (mut status, mut usage) = (0, Usage::default());
    // SAFETY: both pointers are to live values of the layout that the call expects.
    unsafe { wait4(pid, &raw mut status, 0, &raw mut usage) };
    (status, usage)
}

/// Waits until `pid` has ended, without reaping it.
pub fn await_end(pid: u32) {
    let mut info = [0; 128];
    // SAFETY: `info` is as large as a `siginfo_t`.
    unsafe { waitid(P_PID, pid, &raw mut info, WEXITED_NOWAIT) };
}

/// Whether `pid` ends within `timeout_ms`.
pub fn ends_within(pid: u32, timeout_ms: u64) -> bool {
    // SAFETY: a system call that takes two numbers.
    let fd = unsafe { syscall(SYS_PIDFD_OPEN, c_long::from(pid as i32), 0 as c_long) } as c_int;
    let mut fds = [Poll { fd, events: POLLIN, revents: 0 }];
    wait_for(&mut fds, i32::try_from(timeout_ms).unwrap_or(i32::MAX)) != 0
}

/// The processor time of `pid` itself, its threads included and its children not, in milliseconds.
pub fn own_cpu_ms(pid: i32) -> f64 {
    const SCHEDULED: c_int = 2;
    let mut moment = Moment::default();
    // SAFETY: the pointer is to a live `timespec`; the clock's number is that of the process.
    unsafe { clock_gettime((!pid << 3) | SCHEDULED, &raw mut moment) };
    moment.seconds as f64 * 1e3 + moment.rest as f64 / 1e6
}

/// Waits for news of `fds`; returns of how many there are.
pub fn wait_for(fds: &mut [Poll], timeout_ms: i32) -> i32 {
    // SAFETY: the slice is as long as is said.
    unsafe { poll(fds.as_mut_ptr(), fds.len() as c_ulong, timeout_ms) }
}

/// Sends `signal` to `pid`, or to a group when it is negative.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: takes two numbers.
    unsafe { kill(pid, signal) };
}

/// Starts the program at `argv[0]`, in a group of its own, with `out` and `err` as its outputs.
pub fn spawn(argv: &[*const c_char], out: RawFd, err: RawFd) -> i32 {
    const SETPGROUP: c_short = 2;
    let (mut pid, mut actions, mut attributes) = (0, [0; 16], [0; 64]);
    // SAFETY: the arrays are larger than the C library's structures; `argv` ends with a null pointer.
    unsafe {
        posix_spawn_file_actions_init(&raw mut actions);
        posix_spawn_file_actions_adddup2(&raw mut actions, out, 1);
        posix_spawn_file_actions_adddup2(&raw mut actions, err, 2);
        posix_spawnattr_init(&raw mut attributes);
        posix_spawnattr_setflags(&raw mut attributes, SETPGROUP);
        let (actions_at, attributes_at) = (&raw mut actions, &raw mut attributes);
        let failed = posix_spawn(&raw mut pid, argv[0], actions_at, attributes_at, argv.as_ptr(), environ);
        assert!(failed == 0, "posix_spawn: {failed}");
        posix_spawn_file_actions_destroy(&raw mut actions);
    }
    pid
}
