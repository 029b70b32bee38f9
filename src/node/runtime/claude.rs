//! The `claude` CLI as a runtime: its argv (DESIGN, as CLI-PROTOCOL 1 corrects it), its envelope, its price.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::graph::node::{Model, PermissionMode};
use crate::graph::{Graph, Work};
use crate::lint;
use crate::node::invocation::{End, Invocation, Invoked, Preflight, Runtime, Session, mark};
use crate::node::policy::Policy;
use crate::node::runtime::envelope::{Denial, Envelope};
use crate::node::runtime::prompt::{self, Delivery};
use crate::node::runtime::{limit, mentions, transcript};
use crate::process::capture::{Bounded, OUTPUT_BYTES_MAX, Tail};
use crate::process::{Cancel, Ended, Exit, How, Ladder, Launcher, SpawnError, Spec, Streams};
use crate::text::fence;
use crate::text::lossy::lossy;
use crate::text::money::{Cost, Money};
use crate::text::sanitize::{self, stderr_tail};

/// How long `claude --version` may take before the preflight goes on without it.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// What claude takes on standard input at most.
const PROMPT_BYTES_MAX: usize = 10 * 1024 * 1024;
/// How many calls a warning about refused ones names.
const DENIED_NAMED_MAX: usize = 5;
/// How much of a refused command it shows.
const DENIED_BYTES_MAX: usize = 100;

/// The `claude` CLI.
#[derive(Debug)]
pub struct Claude {
    launcher: Arc<Launcher>,
    program: PathBuf,
    /// `$CLAUDE_CONFIG_DIR` or `~/.claude`.
    config: Option<PathBuf>,
    /// What each session was last reported to cost in all, where reports are cumulative.
    totals: Mutex<HashMap<String, Money>>,
}

impl Claude {
    /// The CLI at `program`, whose own files lie in `config`.
    pub fn new(launcher: Arc<Launcher>, program: PathBuf, config: Option<PathBuf>) -> Self {
        Claude { launcher, program, config, totals: Mutex::default() }
    }

    /// What the session had cost before this invocation, as far as its transcript or an earlier report tells.
    /// `None` means that this CLI reports each invocation by itself.
    fn baseline(&self, session: &Session) -> Option<Money> {
        let Session::Resume(id) = session else { return None };
        let stated = transcript::claude_total(self.config.as_deref()?, id)?;
        let seen = self.totals.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        Some(stated.max(seen.unwrap_or(Money::ZERO)))
    }

    fn remember(&self, session: Option<&str>, total: Money) {
        if let Some(session) = session {
            self.totals.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), total);
        }
    }

    /// Turns the total that was reported into what this invocation added to `baseline`.
    fn charge(&self, invoked: &mut Invoked, baseline: Option<Money>) {
        if invoked.charge.is_unknown() {
            invoked.charge.known = self.stated_since(invoked.session.as_deref(), baseline);
            return;
        }
        let total = invoked.charge.known;
        self.remember(invoked.session.as_deref(), total);
        let Some(before) = baseline else { return };
        if total < before {
            invoked.charge = Cost::UNKNOWN;
            invoked.warnings.push(format!(
                "claude reports {total} for a session that had already cost {before}; its cost is unknown"
            ));
        } else {
            invoked.charge = Cost::known(total - before);
        }
    }

    /// The part that the transcript of an invocation without a report states. A call of the model that was broken
    /// off is not in it, so that the price stays unknown.
    fn stated_since(&self, session: Option<&str>, baseline: Option<Money>) -> Money {
        let stated = || transcript::claude_total(self.config.as_deref()?, session?);
        stated().map_or(Money::ZERO, |total| total.saturating_sub(baseline.unwrap_or(Money::ZERO)))
    }

    fn version(&self) -> Option<String> {
        self.launcher.question(&self.program, &["--version"], VERSION_TIMEOUT).ok()
    }
}

impl Runtime for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn fresh_session(&self) -> Option<String> {
        Some(Uuid::new_v4().to_string())
    }

    fn preflight(&self, graph: &Graph) -> Preflight {
        let mut found = Preflight { advice: lint::bypassing(graph), ..Preflight::default() };
        if rustix::process::geteuid().is_root() && std::env::var_os("IS_SANDBOX").is_none() {
            for id in found.advice.iter().filter_map(|advice| advice.node.as_deref()) {
                found.warnings.push(format!(
                    "node {id:?}: claude refuses bypassPermissions for root unless IS_SANDBOX=1 is set"
                ));
            }
        }
        if let Some((id, _)) =
            models(graph).find(|(_, model)| model.permission_mode == Some(PermissionMode::Manual))
            && let Some(version) = self.version()
            && is_older_than_manual(&version)
        {
            found.warnings.push(format!(
                "node {id:?}: claude {version} may not know permission_mode manual; update it or use dontAsk"
            ));
        }
        found
    }

    fn invoke(&self, invocation: &Invocation, cancel: &Cancel, _announce: &mut dyn FnMut(&str)) -> Invoked {
        let baseline = self.baseline(&invocation.session);
        let asked = match invocation.policy.tools {
            Some(_) => mentions::detached(&invocation.prompt, &invocation.cwd),
            None => Cow::Borrowed(invocation.prompt.as_str()),
        };
        let delivery = prompt::deliver(&asked, &[]);
        let args = argv(invocation, delivery.word.as_deref());
        let spec = spec(self.program.clone(), args, invocation, delivery, Ladder::InterruptFirst);
        let (mut stdout, mut stderr) = (Bounded::default(), Tail::default());
        let streams = Streams::Split { stdout: &mut stdout, stderr: &mut stderr };
        let ended = match self.launcher.run(spec, streams, cancel) {
            Ok(ended) => ended,
            Err(error) => return not_started(&error),
        };
        let parsed = match stdout.into_bytes() {
            Some(printed) => Envelope::parse(&lossy(printed)),
            None => Err(format!("it printed more than {} MB, which is no reply", OUTPUT_BYTES_MAX >> 20)),
        };
        let mut invoked = read(parsed, &ended, &invocation.session, &lossy(stderr.into_bytes()));
        if invoked.session.is_none() {
            invoked.session = match &invocation.session {
                Session::Fresh(id) => id.clone(),
                Session::Resume(id) => Some(id.clone()),
            };
        }
        self.charge(&mut invoked, baseline);
        let size = invocation.prompt.len();
        Invoked { end: prompt::blame_size(invoked.end, "claude", size, PROMPT_BYTES_MAX, "bytes"), ..invoked }
    }
}

fn models(graph: &Graph) -> impl Iterator<Item = (&str, &Model)> {
    graph.nodes().iter().filter_map(|node| match &node.work {
        Work::Model(model) => Some((node.id.as_str(), &**model)),
        Work::Command(_) | Work::Gate => None,
    })
}

/// The oldest version that is known to take every flag that it is given.
pub const KNOWN_SINCE: &str = "2.1.197";

/// Whether what `--version` said is of a CLI of which nothing is known, as `1.0.3 (Claude Code)`.
pub fn is_older_than_known(version: &str) -> bool {
    number(version).is_some_and(|number| Some(number) < self::number(KNOWN_SINCE))
}

/// Whether what `--version` said is of a CLI that may not know `permission_mode: manual`, as `2.1.197 (Claude Code)`.
pub fn is_older_than_manual(version: &str) -> bool {
    number(version).is_some_and(|number| number < [2, 1, 220])
}

/// The three numbers of a version, where that is how what was said begins.
fn number(version: &str) -> Option<[u64; 3]> {
    let number = version.split_whitespace().next().unwrap_or_default();
    let parts: Vec<u64> = number.split('.').filter_map(|part| part.parse().ok()).collect();
    parts.try_into().ok()
}

/// The words after the program, in the order that DESIGN fixes.
pub(super) fn argv(invocation: &Invocation, prompt: Option<&str>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["-p".into()];
    args.extend(prompt.map(OsString::from));
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    push(&["--output-format", "json", "--permission-mode", invocation.permission_mode.as_str()]);
    if let Some(budget) = invocation.budget {
        push(&["--max-budget-usd", &budget.usd().to_string()]);
    }
    if let Some(model) = &invocation.model {
        push(&["--model", model]);
    }
    if let Some(effort) = &invocation.effort {
        push(&["--effort", effort]);
    }
    args.extend(definitions(invocation));
    args.extend(ceiling(&invocation.policy));
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    match &invocation.session {
        Session::Resume(id) => push(&["--resume", id]),
        Session::Fresh(Some(id)) => push(&["--session-id", id]),
        Session::Fresh(None) => {}
    }
    args
}

/// Where agents and skills come from, and which agent answers.
fn definitions(invocation: &Invocation) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    if invocation.policy.is_isolated {
        args.extend(["--setting-sources".into(), OsString::new()]);
    }
    for dir in &invocation.policy.plugin_dirs {
        args.extend(["--plugin-dir".into(), dir.into()]);
    }
    if let Some(agent) = &invocation.agent {
        args.extend(["--agent".into(), agent.into()]);
    }
    args
}

/// What may be done. An empty list of tools that exist is a list; an empty list of rules is none.
fn ceiling(policy: &Policy) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut push = |flag: &str, tools: &[String]| args.extend([flag.into(), tools.join(",").into()]);
    if !policy.allowed_tools.is_empty() {
        push("--allowedTools", &policy.allowed_tools);
    }
    if let Some(tools) = &policy.tools {
        push("--tools", tools);
    }
    if policy.has_strict_mcp {
        args.push("--strict-mcp-config".into());
    }
    if !policy.disallowed_tools.is_empty() {
        args.extend(["--disallowedTools".into(), policy.disallowed_tools.join(",").into()]);
    }
    args
}

/// The child of a prompt node; shared by the runtimes.
pub(crate) fn spec(
    program: PathBuf,
    args: Vec<OsString>,
    invocation: &Invocation,
    delivery: Delivery,
    ladder: Ladder,
) -> Spec {
    Spec {
        program,
        args,
        cwd: Some(invocation.cwd.clone()),
        env: Vec::new(),
        stdin: delivery.stdin,
        timeout: Some(invocation.timeout),
        ladder,
        mark: mark(&invocation.node, invocation.attempt),
        leave_running: invocation.leave_running,
    }
}

/// The answer of a child that was never started, or was lost: whether that one was paid for nobody knows.
pub(crate) fn not_started(error: &SpawnError) -> Invoked {
    let charge = if matches!(error, SpawnError::Lost { .. }) { Cost::UNKNOWN } else { Cost::ZERO };
    let end = match error {
        SpawnError::Cancelled => End::Cancelled,
        other => End::Broken(other.to_string()),
    };
    Invoked { charge, ..Invoked::unpaid(end) }
}

/// Makes sense of what was printed. An interrupted child may have printed its price; it never passes
/// (CLI-PROTOCOL 2.9).
fn read(parsed: Result<Envelope, String>, ended: &Ended, session: &Session, stderr: &str) -> Invoked {
    let mut invoked = Invoked {
        leaky: ended.leaky,
        left_running: ended.left_running.clone(),
        stderr: stderr.to_owned(),
        ..Invoked::unpaid(End::TimedOut)
    };
    match &parsed {
        Ok(envelope) => account(envelope, session, &mut invoked),
        Err(_) => invoked.charge = Cost::UNKNOWN,
    }
    invoked.end = match (ended.how, parsed) {
        (How::TimedOut, _) => End::TimedOut,
        (How::Cancelled, _) => End::Cancelled,
        (How::Itself | How::Enough, Err(why)) => unreadable(&why, ended.exit, stderr),
        (How::Itself | How::Enough, Ok(envelope)) => {
            let end = judge_envelope(&envelope, ended.exit, stderr);
            invoked.reply = envelope.result;
            end
        }
    };
    invoked
}

/// Takes over what a result says of its session, its tokens, its price and what was refused.
fn account(envelope: &Envelope, session: &Session, invoked: &mut Invoked) {
    invoked.session = (!envelope.session_id.is_empty()).then(|| envelope.session_id.clone());
    invoked.usage = match session {
        Session::Fresh(_) => envelope.fresh_usage(),
        Session::Resume(_) => envelope.usage.usage(),
    };
    invoked.warnings.extend(denied(envelope));
    let reported = envelope.total_cost_usd;
    match reported.and_then(Money::from_usd) {
        Some(total) => invoked.charge = Cost::known(total),
        None => {
            invoked.charge = Cost::UNKNOWN;
            if let Some(absurd) = reported {
                invoked
                    .warnings
                    .push(format!("claude reports a cost of {absurd}, which cannot be; it is unknown"));
            }
        }
    }
}

/// A refused tool call is no error to the CLI: it exits with 0, and the reply may or may not tell.
fn denied(envelope: &Envelope) -> Option<String> {
    let count = envelope.permission_denials.len();
    let calls: BTreeSet<String> = envelope.permission_denials.iter().map(call).collect();
    let named: Vec<String> = calls.into_iter().take(DENIED_NAMED_MAX).collect();
    (count > 0).then(|| {
        let calls = if count == 1 { "a tool call".to_owned() } else { format!("{count} tool calls") };
        format!(
            "claude refused {calls} ({}); allowed_tools and permission_mode decide",
            sanitize::one_line(&named.join(", "))
        )
    })
}

/// `Bash: touch x`, `Skill: pdf`: which it was says what the node lacks, where the tool's name does not.
fn call(denial: &Denial) -> String {
    let input = &denial.tool_input;
    match [&input.command, &input.skill].into_iter().find(|what| !what.is_empty()) {
        None => denial.tool_name.clone(),
        Some(what) => format!("{}: {}", denial.tool_name, fence::truncate(what, DENIED_BYTES_MAX)),
    }
}

fn unreadable(why: &str, exit: Exit, stderr: &str) -> End {
    let exit = match exit {
        Exit::Code(0) => String::new(),
        other => format!(" ({other})"),
    };
    let note = stderr_tail(stderr);
    let said = if note.is_empty() { String::new() } else { format!(" (claude stderr: {note})") };
    End::Unreadable(format!("{why}{exit}{said}"))
}

fn judge_envelope(envelope: &Envelope, exit: Exit, stderr: &str) -> End {
    if envelope.is_over_budget() {
        return End::OverBudget { cause: envelope.failure().unwrap_or_default() };
    }
    if let Some(cause) = envelope.failure() {
        if envelope.api_error == "usage_limit_reached" || limit::is_limit(&cause) {
            let resets = limit::resets(&cause);
            return End::Limited { cause, resets };
        }
        return End::Reported { exit, cause };
    }
    let note = if exit == Exit::Code(0) { String::new() } else { stderr_tail(stderr) };
    if limit::is_limit(&note) {
        let resets = limit::resets(&note);
        return End::Limited { cause: note, resets };
    }
    if envelope.result.trim().is_empty() && exit == Exit::Code(0) {
        return unreadable("the reply is empty", exit, stderr);
    }
    End::Replied { exit, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation() -> Invocation {
        let session = Session::Fresh(Some("71d7f1a8-6659-4699-a78f-d3f18c11704f".into()));
        Invocation { session, ..Invocation::plain("a") }
    }

    fn words(invocation: &Invocation) -> String {
        let delivery = prompt::deliver(&invocation.prompt, &[]);
        let args = argv(invocation, delivery.word.as_deref());
        args.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_argv_keeps_the_order_of_the_design() {
        assert_eq!(
            words(&invocation()),
            "-p Do it. --output-format json --permission-mode auto --session-id 71d7f1a8-6659-4699-a78f-d3f18c11704f"
        );
        let full = Invocation {
            session: Session::Resume("s".into()),
            permission_mode: PermissionMode::DontAsk,
            policy: Policy::granting(vec!["Read".into(), "Bash(git *)".into()]),
            budget: Money::from_usd(0.5),
            agent: Some("reviewer".into()),
            model: Some("opus".into()),
            effort: Some("max".into()),
            ..invocation()
        };
        assert_eq!(
            words(&full),
            "-p Do it. --output-format json --permission-mode dontAsk --max-budget-usd 0.5 --model opus --effort max \
             --agent reviewer --allowedTools Read,Bash(git *) --resume s"
        );
    }

    fn fresh() -> Session {
        Session::Fresh(None)
    }

    fn ended(exit: Exit, how: How) -> Ended {
        Ended { exit, how, leaky: false, left_running: vec![] }
    }

    fn end_of(printed: &str, exit: i32, stderr: &str) -> End {
        read(Envelope::parse(printed), &ended(Exit::Code(exit), How::Itself), &fresh(), stderr).end
    }

    #[test]
    fn b7_an_empty_reply_keeps_its_price_and_is_no_answer() {
        let printed = r#"{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s","total_cost_usd":0.02}"#;
        let invoked = read(Envelope::parse(printed), &ended(Exit::Code(0), How::Itself), &fresh(), "");
        assert_eq!(invoked.end, End::Unreadable("the reply is empty".into()));
        assert_eq!(invoked.charge, Cost::known(Money::from_usd(0.02).expect("a price")));
    }

    #[test]
    fn b8_an_error_with_exit_0_is_not_an_answer() {
        let printed = |words: &str| format!(r#"{{"is_error":true,"result":"{words}","total_cost_usd":0}}"#);
        assert_eq!(
            end_of(&printed("You've hit your limit · resets 3pm"), 0, ""),
            End::Limited { cause: "You've hit your limit · resets 3pm".into(), resets: Some("3pm".into()) }
        );
        assert_eq!(
            end_of(&printed("Not logged in"), 1, ""),
            End::Reported { exit: Exit::Code(1), cause: "Not logged in".into() }
        );
    }

    #[test]
    fn an_interrupted_child_never_answers_but_its_price_counts() {
        let printed = r#"{"subtype":"error_during_execution","is_error":true,"total_cost_usd":0.3}"#;
        let invoked = read(Envelope::parse(printed), &ended(Exit::Code(0), How::Cancelled), &fresh(), "");
        assert_eq!(
            (invoked.end, invoked.charge.known),
            (End::Cancelled, Money::from_usd(0.3).expect("a price"))
        );
        let silent = read(Envelope::parse(""), &ended(Exit::Code(0), How::TimedOut), &fresh(), "");
        assert_eq!((silent.end, silent.charge), (End::TimedOut, Cost::UNKNOWN));
    }

    #[test]
    fn no_envelope_is_explained_by_standard_error() {
        let End::Unreadable(why) = end_of("", 1, "--agent 'x' not found.\nAvailable agents: a, b\n") else {
            panic!("an unreadable end")
        };
        assert_eq!(
            why,
            "no output (exit code 1) (claude stderr: --agent 'x' not found. / Available agents: a, b)"
        );
    }

    #[test]
    fn a_price_that_is_missing_or_cannot_be_is_unknown() {
        let charge = |field: &str| {
            let printed = format!(r#"{{"result":"ok"{field}}}"#);
            let invoked = read(Envelope::parse(&printed), &ended(Exit::Code(0), How::Itself), &fresh(), "");
            (invoked.charge, invoked.warnings.len())
        };
        assert_eq!(charge(""), (Cost::UNKNOWN, 0));
        assert_eq!(charge(r#","total_cost_usd":-1"#), (Cost::UNKNOWN, 1));
        assert_eq!(charge(r#","total_cost_usd":1e300"#), (Cost::UNKNOWN, 1));
        assert_eq!(charge(r#","total_cost_usd":0"#), (Cost::ZERO, 0));
    }

    #[test]
    fn a_refused_tool_call_is_told() {
        let printed =
            |list: &str| format!(r#"{{"result":"ok","total_cost_usd":0,"permission_denials":[{list}]}}"#);
        let warnings = |list: &str| {
            read(Envelope::parse(&printed(list)), &ended(Exit::Code(0), How::Itself), &fresh(), "")
                .warnings
                .join("; ")
        };
        let call = |tool: &str| format!(r#"{{"tool_name":"{tool}"}}"#);
        assert_eq!(warnings(""), "");
        assert!(warnings(&call("Bash")).starts_with("claude refused a tool call (Bash);"));
        let three = [call("Write"), call("Bash"), call("Bash")].join(",");
        assert!(warnings(&three).starts_with("claude refused 3 tool calls (Bash, Write);"));
        let input = |input: &str| format!(r#"{{"tool_name":"Bash","tool_input":{input}}}"#);
        let touch = input(r#"{"command":"touch ../x\n\u001b[31m"}"#);
        assert!(
            warnings(&touch).starts_with("claude refused a tool call (Bash: touch ../x"),
            "{}",
            warnings(&touch)
        );
        assert!(!warnings(&touch).contains(['\n', '\u{1b}']), "{}", warnings(&touch));
        let skill = r#"{"tool_name":"Skill","tool_input":{"skill":"pdf"}}"#;
        assert!(warnings(skill).starts_with("claude refused a tool call (Skill: pdf);"));
        assert!(warnings(&input(r#"{"command":7}"#)).starts_with("claude refused a tool call (Bash);"));
        let long = input(&format!(r#"{{"command":"{}"}}"#, "x".repeat(10_000)));
        assert!(warnings(&long).len() < 300, "{}", warnings(&long));
    }

    #[test]
    fn a_killed_cli_is_charged_what_its_transcript_states_and_stays_unknown() {
        let config = tempfile::tempdir().expect("a directory");
        let project = config.path().join("projects/-srv");
        std::fs::create_dir_all(&project).expect("a project");
        std::fs::write(project.join("s.jsonl"), "{\"type\":\"cost-state\",\"totalCostUSD\":0.5}\n")
            .expect("a transcript");
        let launcher = Arc::new(Launcher::new("test"));
        let claude = Claude::new(launcher, "claude".into(), Some(config.path().to_owned()));
        let charge = |session: &str, baseline: Option<f64>| {
            let mut invoked = Invoked { charge: Cost::UNKNOWN, ..Invoked::unpaid(End::TimedOut) };
            invoked.session = Some(session.to_owned());
            claude.charge(&mut invoked, baseline.and_then(Money::from_usd));
            invoked.charge.to_string()
        };
        assert_eq!(charge("s", None), "≥ $0.5000 (1 unknown)");
        assert_eq!(charge("s", Some(0.2)), "≥ $0.3000 (1 unknown)");
        assert_eq!(charge("other", None), "unknown");
    }
}
