//! The place a test runs in: a scratch folder with a home, a `PATH` that begins with the stand-in, no other variables.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const OMG: &str = env!("CARGO_BIN_EXE_omg");

/// A command that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(60);

/// A scratch folder and the environment of the commands that run in it.
pub(crate) struct TestEnv {
    dir: TempDir,
    vars: Vec<(String, String)>,
}

impl TestEnv {
    /// A fresh place with `claude` and `codex` as stand-ins.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("omg-it-").tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(dir.path().join("work")).unwrap();
        for name in ["claude", "codex"] {
            std::os::unix::fs::symlink(stand_in(), bin.join(name)).unwrap();
        }
        let at = |name: &str| dir.path().join(name).display().to_string();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let vars = vec![
            ("PATH".into(), path),
            ("HOME".into(), at("user")),
            ("OMG_HOME".into(), at("home")),
            ("FAKE_LOG".into(), at("spawns.jsonl")),
            ("TMPDIR".into(), at("")),
        ];
        TestEnv { dir, vars }
    }

    /// Sets a variable for every command that follows.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.vars.retain(|(known, _)| known != name);
        self.vars.push((name.into(), value.into()));
        self
    }

    /// The folder that commands run in.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A path in that folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// The base of all runs.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Everything that is in the place, in the order of names.
    pub(crate) fn everything(&self) -> Vec<PathBuf> {
        fn below(dir: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, found);
                }
                found.push(path);
            }
        }
        let mut found = Vec::new();
        below(self.dir.path(), &mut found);
        found.sort();
        found
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Puts an executable file first on `PATH`, in the place of a stand-in of that name.
    pub(crate) fn write_program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.dir.path().join("bin").join(name);
        fs::remove_file(&path).ok();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Reads a file of the folder.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes `g.yaml` and runs it.
    pub(crate) fn run_graph(&self, graph: &str, flags: &[&str]) -> Ran {
        self.write("g.yaml", graph);
        let words: Vec<&str> = ["run", "g.yaml"].iter().chain(flags).copied().collect();
        self.omg(&words)
    }

    /// Runs `omg` to its end.
    pub(crate) fn omg(&self, words: &[&str]) -> Ran {
        self.start(words).wait()
    }

    /// Starts `omg`, its output captured.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        Running::of(&mut self.command(words))
    }

    /// The command as it would be started, for tests that change it.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.program(OMG);
        command.args(words);
        command
    }

    /// Any other program, in the same place.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.work()).stdin(Stdio::null());
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A line for the shell, in the same place.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = self.program("/bin/sh");
        command.args(["-c", line]);
        command
    }

    /// `omg` on a terminal whose keyboard is the command's standard input; `None` where there is no such program.
    pub(crate) fn on_terminal(&self, words: &str) -> Option<Command> {
        let script = "/usr/bin/script";
        let mut command = self.program(script);
        command.args(["-qec", &format!("{OMG} {words}"), "/dev/null"]).stdin(Stdio::piped());
        command.env("SHELL", "/bin/sh").env("TERM", "xterm");
        Path::new(script).exists().then_some(command)
    }

    /// The directories of all runs, oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.home().join("runs")) else { return Vec::new() };
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        runs.sort();
        runs
    }

    /// The directory of the only run.
    pub(crate) fn run_dir(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_iter().next().unwrap()
    }

    /// The snapshot of the only run.
    pub(crate) fn state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.run_dir().join("state.json")).unwrap()).unwrap()
    }

    /// The record of a node of the only run.
    pub(crate) fn record(&self, node: &str) -> Value {
        self.state()["nodes"][node].clone()
    }

    /// The feed of the only run.
    pub(crate) fn events(&self) -> Vec<Value> {
        lines(&self.run_dir().join("events.jsonl"))
    }

    /// How many lines the feed of the only run has by now.
    pub(crate) fn feed_lines(&self) -> usize {
        let feed = fs::read(self.run_dir().join("events.jsonl")).unwrap_or_default();
        feed.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The events of one kind.
    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The artifact of a node of the only run.
    pub(crate) fn artifact(&self, node: &str) -> Option<Vec<u8>> {
        fs::read(self.run_dir().join(format!("{node}.out"))).ok()
    }

    /// What the stand-in was asked, one entry a spawn.
    pub(crate) fn spawns(&self) -> Vec<Value> {
        lines(&self.dir.path().join("spawns.jsonl"))
    }

    /// Pids of running processes whose command line holds `words` and that began in this place; zombies do not count.
    pub(crate) fn pids_of(&self, words: &str) -> Vec<i32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        // Another checkout may run the very same tests at the same time.
        let place = self.dir.path().canonicalize().unwrap();
        let here =
            |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&place));
        pids.filter(here).filter(|pid| command_line(*pid).contains(words)).collect()
    }

    /// Pids of the guards over runs of this place; zombies do not count.
    pub(crate) fn guards(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let words = format!("__guard {}", self.home().display());
        pids.filter(|pid| command_line(*pid).contains(&words)).collect()
    }

    /// Stops the test when a process whose command line holds `words` still runs.
    #[track_caller]
    pub(crate) fn assert_none_left(&self, words: &str) {
        let left = self.pids_of(words);
        let left: Vec<String> = left.into_iter().map(|pid| format!("{pid}: {}", command_line(pid))).collect();
        assert!(left.is_empty(), "still running: {left:#?}");
    }

    /// Waits until `holds`, looking again and again; for what another process does.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + HANG;
        while !holds() {
            assert!(Instant::now() < deadline, "it never came to this: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // A line that is still being written is none yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn command_line(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

fn stand_in() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_omg")).with_file_name("examples").join("fake-claude");
    assert!(program.is_file(), "{} is built by cargo test and cargo nextest", program.display());
    program
}

/// A command under way.
pub(crate) struct Running {
    child: Child,
    readers: Vec<std::thread::JoinHandle<String>>,
    since: Instant,
}

impl Running {
    /// Starts a prepared command with its output captured.
    pub(crate) fn of(command: &mut Command) -> Self {
        let since = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let readers = vec![drain(out), drain(err)];
        Running { child, readers, since }
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Kills it as no program can help, and waits for its end.
    pub(crate) fn kill(self) {
        self.signal(rustix::process::Signal::KILL);
        self.wait().exits(-9);
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Whether it has ended; one that hangs fails the test.
    pub(crate) fn is_over(&mut self) -> bool {
        assert!(self.since.elapsed() < HANG, "omg hangs");
        self.child.try_wait().unwrap().is_some()
    }

    /// Watches it to its end and tells the most memory that it held at any time.
    pub(crate) fn peak_kilobytes(&self) -> u64 {
        let (mut peak, deadline) = (0, self.since + HANG);
        // A process that ended and was not waited for yet has no memory to tell of.
        while let Some(now) = peak_of(self.pid()) {
            peak = now;
            assert!(Instant::now() < deadline, "omg hangs");
            std::thread::sleep(Duration::from_millis(2));
        }
        peak
    }

    /// Writes to its standard input, which the test had piped.
    pub(crate) fn types(&mut self, bytes: &[u8]) {
        std::io::Write::write_all(self.child.stdin.as_mut().unwrap(), bytes).unwrap();
    }

    /// Waits for its end; one that hangs is killed and fails the test.
    pub(crate) fn wait(mut self) -> Ran {
        let deadline = self.since + HANG;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                panic!("omg hangs");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut texts = std::mem::take(&mut self.readers).into_iter().map(|reader| reader.join().unwrap());
        let (stdout, stderr) = (texts.next().unwrap(), texts.next().unwrap());
        let code = std::os::unix::process::ExitStatusExt::signal(&status)
            .map_or_else(|| status.code().unwrap(), |signal| -signal);
        Ran { code, stdout, stderr }
    }
}

fn peak_of(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// A test that stops early leaves nothing running: the command is asked to tidy up, and killed when it does not.
impl Drop for Running {
    fn drop(&mut self) {
        let asked = Instant::now();
        while std::thread::panicking() && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if asked.elapsed() > Duration::from_secs(10) {
                self.child.kill().ok();
            } else if let Some(pid) = rustix::process::Pid::from_raw(self.pid()) {
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its exit code; a signal's number, negative, when one killed it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The row of `node` in the ledger, empty when it has none.
    pub(crate) fn row(&self, node: &str) -> &str {
        let is_row = |line: &&str| line.split_whitespace().next() == Some(node);
        self.stdout.lines().rfind(is_row).unwrap_or("")
    }

    /// Stops the test unless it exited with `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }
}
