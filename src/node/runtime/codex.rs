//! The `codex` CLI as a runtime: its argv (DESIGN), its event lines, its thread (CLI-PROTOCOL 3).

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::graph::node::PermissionMode;
use crate::graph::{Graph, Work};
use crate::lint;
use crate::node::invocation::{End, Invocation, Invoked, Preflight, Runtime, Session};
use crate::node::runtime::claude::{not_started, spec};
use crate::node::runtime::codex_events::{Ending, Events};
use crate::node::runtime::{prompt, transcript};
use crate::process::capture::Tail;
use crate::process::{Cancel, Ended, Exit, Flow, How, Ladder, Launcher, Sink, Streams};
use crate::text::lossy::lossy;
use crate::text::money::Cost;
use crate::text::sanitize::stderr_tail;
use crate::text::usage::Usage;

/// Words that codex takes for subcommands where a prompt is meant.
const SUBCOMMANDS: [&str; 4] = ["help", "review", "resume", "fork"];
/// What codex takes at most.
const PROMPT_CHARS_MAX: usize = 1 << 20;
/// What it says on standard error whenever that is no terminal.
const GREETING: &str = "Reading additional input from stdin...";
/// Mount points that its sandbox may leave empty in a directory (CLI-PROTOCOL 3.7).
const LEFTOVERS: [&str; 4] = [".git", ".codex", ".agents", ".aws"];

/// What becomes of a permission mode, and with it of the network.
pub const SANDBOX: &str = "\
codex: permission_mode plan runs in a read-only sandbox, bypassPermissions in none, all others may write to the working \
directory and have no network";
/// What is told of every run (FACTS 5.5).
const DISCLOSURES: [&str; 4] = [
    SANDBOX,
    "codex: a node that publishes (git push, gh) needs the network: give it bypassPermissions, or set network_access = true below \
     [sandbox_workspace_write] in config.toml, which planned nodes do not load",
    "codex: costs are unknown for every node, so that budget_usd binds nothing; allowed_tools is not enforced, nothing is asked",
    "codex: a spent limit fails its node and pauses no run",
];

/// The `codex` CLI.
#[derive(Debug)]
pub struct Codex {
    launcher: Arc<Launcher>,
    program: PathBuf,
    /// `$CODEX_HOME` or `~/.codex`.
    home: Option<PathBuf>,
    /// The whole usage of each thread, as last reported.
    totals: Mutex<HashMap<String, Usage>>,
    /// Directories that were not there before a node ran in their parent.
    suspects: Mutex<BTreeSet<PathBuf>>,
}

impl Codex {
    /// The CLI at `program`, whose own files lie in `home`.
    pub fn new(launcher: Arc<Launcher>, program: PathBuf, home: Option<PathBuf>) -> Self {
        Codex { launcher, program, home, totals: Mutex::default(), suspects: Mutex::default() }
    }

    fn baseline(&self, session: &Session) -> Usage {
        let Session::Resume(thread) = session else { return Usage::default() };
        let seen = self.totals.lock().unwrap_or_else(PoisonError::into_inner).get(thread).copied();
        seen.or_else(|| transcript::codex_total(self.home.as_deref()?, thread)).unwrap_or_default()
    }

    /// The thread's usage as reported, or as its rollout states it: a turn that failed or was ended reports none.
    fn total(&self, events: &Events) -> Option<Usage> {
        events.usage().or_else(|| transcript::codex_total(self.home.as_deref()?, events.thread()?))
    }

    fn suspect(&self, cwd: &Path) {
        let absent =
            LEFTOVERS.iter().map(|name| cwd.join(name)).filter(|path| path.symlink_metadata().is_err());
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner).extend(absent);
    }
}

impl Runtime for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn fresh_session(&self) -> Option<String> {
        None
    }

    fn announces_late(&self) -> bool {
        true
    }

    fn preflight(&self, graph: &Graph) -> Preflight {
        let mut found = Preflight::default();
        let models = graph.nodes().iter().filter_map(|node| match &node.work {
            Work::Model(model) => Some((node, model)),
            Work::Command(_) | Work::Gate => None,
        });
        for (node, model) in models {
            if model.agent.is_some() {
                let id = &node.id;
                found.refusals.push(format!("node {id:?}: agent: is a claude feature; codex has none"));
            }
        }
        found.advice = lint::bypassing(graph);
        found.advice.append(&mut lint::unkept_budgets(graph));
        found.disclosures = DISCLOSURES.map(str::to_owned).to_vec();
        found
    }

    fn invoke(&self, invocation: &Invocation, cancel: &Cancel, announce: &mut dyn FnMut(&str)) -> Invoked {
        let baseline = self.baseline(&invocation.session);
        let delivery = prompt::deliver(&invocation.prompt, &SUBCOMMANDS);
        let args = argv(invocation, delivery.word.as_deref());
        self.suspect(&invocation.cwd);
        let spec = spec(self.program.clone(), args, invocation, delivery, Ladder::Terminate);
        let mut stderr = Tail::default();
        let mut lines =
            Lines { events: Events::default(), announce: Some(announce), wanted: &invocation.session };
        let streams = Streams::Split { stdout: &mut lines, stderr: &mut stderr };
        let ended = match self.launcher.run(spec, streams, cancel) {
            Ok(ended) => ended,
            Err(error) => return not_started(&error),
        };
        let stderr = lossy(stderr.into_bytes());
        let mut events = lines.events;
        events.end_of_output();
        let thread = events.thread().map(str::to_owned);
        let total = self.total(&events);
        if let (Some(thread), Some(total)) = (&thread, total) {
            self.totals.lock().unwrap_or_else(PoisonError::into_inner).insert(thread.clone(), total);
        }
        // A thread that was not asked for has nothing behind it.
        let is_wanted = thread.as_deref().is_none_or(|thread| is_wanted(&invocation.session, thread));
        let already = if is_wanted { baseline } else { Usage::default() };
        Invoked {
            session: thread,
            charge: Cost::UNKNOWN,
            usage: total.unwrap_or_default().saturating_sub(already),
            leaky: ended.leaky,
            left_running: ended.left_running.clone(),
            reply: events.reply().to_owned(),
            end: prompt::blame_size(
                read(events, &ended, &invocation.session, &stderr),
                "codex",
                invocation.prompt.chars().count(),
                PROMPT_CHARS_MAX,
                "characters",
            ),
            stderr,
            warnings: Vec::new(),
        }
    }

    fn close(&self) {
        // Only empty directories go: `remove_dir` refuses all others.
        for path in std::mem::take(&mut *self.suspects.lock().unwrap_or_else(PoisonError::into_inner)) {
            fs::remove_dir(path).ok();
        }
    }
}

/// The sandbox that a permission mode means.
pub fn sandbox(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => "read-only",
        PermissionMode::BypassPermissions => "danger-full-access",
        _ => "workspace-write",
    }
}

pub(super) fn argv(invocation: &Invocation, prompt: Option<&str>) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    push(&["exec", "--json", "--color", "never", "--skip-git-repo-check"]);
    push(&["--sandbox", sandbox(invocation.permission_mode), "--config", "approval_policy=\"never\""]);
    if invocation.policy.is_isolated {
        push(&["--ignore-user-config", "--ignore-rules", "--config", "project_doc_max_bytes=0"]);
        push(&["--config", "mcp_servers={}"]);
    }
    if let Some(model) = &invocation.model {
        push(&["-m", model]);
    }
    if let Some(effort) = &invocation.effort {
        push(&["-c", &format!("model_reasoning_effort={}", serde_json::Value::from(effort.as_str()))]);
    }
    if let Session::Resume(thread) = &invocation.session {
        push(&["resume", thread]);
    }
    push(&[prompt.unwrap_or("-")]);
    args
}

/// Feeds the events, and says the thread's id as soon as it is known and is the one that was asked for.
struct Lines<'a, 'b> {
    events: Events,
    announce: Option<&'a mut dyn FnMut(&str)>,
    wanted: &'b Session,
}

impl Sink for Lines<'_, '_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.events.feed(bytes);
        if let Some(thread) = self.events.thread()
            && is_wanted(self.wanted, thread)
            && let Some(announce) = self.announce.take()
        {
            announce(thread);
        }
        Ok(if self.events.is_over() { Flow::Enough } else { Flow::More })
    }
}

/// codex begins a new thread without a word when it does not know the one that it is asked to resume.
fn is_wanted(session: &Session, thread: &str) -> bool {
    !matches!(session, Session::Resume(wanted) if wanted != thread)
}

fn read(events: Events, ended: &Ended, session: &Session, stderr: &str) -> End {
    match ended.how {
        How::TimedOut => return End::TimedOut,
        How::Cancelled => return End::Cancelled,
        How::Itself | How::Enough => {}
    }
    if let (Session::Resume(wanted), Some(thread)) = (session, events.thread())
        && !is_wanted(session, thread)
    {
        return End::Broken(format!("asked to resume thread {wanted}, codex began another one, {thread}"));
    }
    let exit = if ended.how == How::Enough { Exit::Code(0) } else { ended.exit };
    match events.finish() {
        Ok(Ending::Completed) => {
            let note = if exit == Exit::Code(0) { String::new() } else { stderr_tail(stderr) };
            End::Replied { exit, note }
        }
        Ok(Ending::Failed(cause)) => {
            let exit = if exit == Exit::Code(0) { Exit::Code(1) } else { exit };
            End::Reported { exit, cause }
        }
        Err(why) => {
            let note = stderr_tail(&telling(stderr));
            let said = if note.is_empty() { String::new() } else { format!(" (codex stderr: {note})") };
            let exit = match exit {
                Exit::Code(0) => String::new(),
                other => format!(" ({other})"),
            };
            End::Unreadable(format!("{why}{exit}{said}"))
        }
    }
}

/// Standard error without the greeting and, when something else is there, without the lines of codex's own log.
fn telling(stderr: &str) -> String {
    let lines = || stderr.lines().filter(|line| line.trim() != GREETING);
    let said: Vec<&str> = lines().filter(|line| !is_log(line)).collect();
    if said.iter().all(|line| line.trim().is_empty()) { lines().collect::<Vec<_>>() } else { said }.join("\n")
}

/// `2026-11-30T10:55:30.095178Z ERROR codex_core::…`
fn is_log(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_time = |word: &str| word.ends_with('Z') && word.starts_with(|c: char| c.is_ascii_digit());
    words.next().is_some_and(is_time)
        && words.next().is_some_and(|level| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::policy::Policy;

    fn invocation(session: Session) -> Invocation {
        let policy = Policy::granting(vec!["Read".into()]);
        Invocation { session, policy, effort: Some("low".into()), ..Invocation::plain("a") }
    }

    fn words(session: Session, prompt: Option<&str>) -> String {
        let args = argv(&invocation(session), prompt);
        args.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_argv_keeps_the_order_of_the_design() {
        assert_eq!(
            words(Session::Fresh(None), Some("Do it.")),
            "exec --json --color never --skip-git-repo-check --sandbox workspace-write --config \
             approval_policy=\"never\" -c model_reasoning_effort=\"low\" Do it."
        );
        assert_eq!(
            words(Session::Resume("t".into()), None),
            "exec --json --color never --skip-git-repo-check --sandbox workspace-write --config \
             approval_policy=\"never\" -c model_reasoning_effort=\"low\" resume t -"
        );
    }

    fn end_of(lines: &str, exit: i32, session: &Session) -> End {
        let mut events = Events::default();
        events.feed(lines.as_bytes());
        let ended = Ended { exit: Exit::Code(exit), how: How::Itself, leaky: false, left_running: vec![] };
        read(events, &ended, session, "")
    }

    #[test]
    fn a_failed_turn_fails_even_with_exit_0() {
        let lines = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}\n";
        let cause = "no".to_owned();
        assert_eq!(end_of(lines, 0, &Session::Fresh(None)), End::Reported { exit: Exit::Code(1), cause });
    }

    #[test]
    fn a_thread_that_is_not_the_one_asked_for_is_no_answer() {
        let lines = "{\"type\":\"thread.started\",\"thread_id\":\"t2\"}\n";
        assert!(
            matches!(end_of(lines, 0, &Session::Resume("t1".into())), End::Broken(why) if why.contains("t2"))
        );
    }

    #[test]
    fn standard_error_is_told_without_its_noise() {
        let log = "2026-11-30T10:55:30.095178Z ERROR codex_core::tools::router: error=exit 1";
        let check = |stderr: &str, told: &str| assert_eq!(telling(stderr), told);
        check("Reading additional input from stdin...\n", "");
        check(
            &format!("Reading additional input from stdin...\n{log}\nError: no rollout\n"),
            "Error: no rollout",
        );
        check(log, log);
    }

    #[test]
    fn a_turn_that_reports_no_usage_is_counted_by_its_rollout() {
        let home = tempfile::tempdir().expect("a directory");
        let day = home.path().join("sessions/2026/11/30");
        fs::create_dir_all(&day).expect("a day");
        let line = r#"{"type":"token_usage_record","payload":{"thread_token_usage":{"input_tokens":300}}}"#;
        fs::write(day.join("rollout-2026-11-30T10-00-00-t.jsonl"), line).expect("a rollout");
        let codex = Codex::new(Arc::new(Launcher::new("test")), "codex".into(), Some(home.path().to_owned()));
        let input = |lines: &str| {
            let mut events = Events::default();
            events.feed(format!("{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{lines}").as_bytes());
            codex.total(&events).map(|usage| usage.input_tokens)
        };
        assert_eq!(input("{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":400}}\n"), Some(400));
        assert_eq!(input("{\"type\":\"turn.failed\"}\n"), Some(300));
        assert_eq!(input(""), Some(300));
    }
}
