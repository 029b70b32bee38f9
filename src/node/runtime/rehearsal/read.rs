//! Reads a rehearsal's script out of YAML or JSON; every mistake is told with its place.
//!
//! The form is `nodes: {ID: [entry, …]}`; a single mapping stands for a list of one. What a node can never show, a
//! price of a command or the evidence of a node without a `verify`, is a mistake too: it would be left out in
//! silence otherwise. [`decode`] reads the same `nodes:` inside another document.

use std::time::Duration;

use crate::graph::check::Label;
use crate::graph::{Graph, Node, Work};
use crate::load::problem::{Problem, Problems};
use crate::load::values::{described, is_unset, plain, unknown_key};
use crate::load::yaml::tree::Entry as Pair;
use crate::load::yaml::{self, Limits, Node as Value, scalar};
use crate::node::runtime::rehearsal::script::{Check, Ending, Entry, Script};
use crate::text::duration;
use crate::text::money::{Cost, Money, PRICE_USD_MAX};
use crate::text::suggest;
use crate::text::usage::Usage;

/// The keys of an attempt.
const ENTRY_KEYS: [&str; 10] =
    ["reply", "exit", "cost", "tokens", "delay", "limit", "timeout", "spawn_error", "setup", "verify"];
/// The keys of `verify:`.
const VERIFY_KEYS: [&str; 4] = ["exit", "output", "timeout", "spawn_error"];
/// The keys of `tokens:`; the feed's own names, ending in `_tokens`, are read too.
const TOKEN_KEYS: [&str; 4] = ["input", "cached_input", "output", "reasoning_output"];
/// The most tokens of one attempt: sums over any run stay far from overflowing.
const TOKENS_MAX: i64 = 1_000_000_000_000;
/// What a spent limit is called when the script has no words for it.
const LIMIT_WORDS: &str = "You've hit your session limit";
/// What a set-up that fails says when the script has no words for it.
const SETUP_WORDS: &str = "the script says that the set-up fails";
/// What keeps an attempt from starting when the script has no words for it.
const SPAWN_WORDS: &str = "the script says that it cannot be started";

/// Reads the script `text` for `graph`; `file` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(file: &str, text: &str, graph: &Graph) -> Result<Script, Problems> {
    let failed = |list| Problems::new(file, text, list);
    let tree = yaml::parse(text, Limits::default()).map_err(|problem| failed(vec![problem]))?;
    let mut problems = tree.problems;
    let script = top(&tree.root, graph, &mut problems);
    if problems.is_empty() { Ok(script) } else { Err(failed(problems)) }
}

fn top(root: &Value<'_>, graph: &Graph, problems: &mut Vec<Problem>) -> Script {
    let Some(pairs) = root.entries() else {
        let message = format!("a script is a mapping with the key nodes, and this is {}", described(root));
        problems.push(Problem::at(root.span, message));
        return Script::default();
    };
    let mut script = Script::default();
    for pair in pairs {
        match pair.name {
            "nodes" => script = decode(pair.value, graph, problems),
            name if name.starts_with("x-") => {}
            name => problems.push(unknown_key(pair.key, name, &["nodes"])),
        }
    }
    script
}

/// Reads the value of a `nodes:` key.
pub(crate) fn decode(value: &Value<'_>, graph: &Graph, problems: &mut Vec<Problem>) -> Script {
    if is_unset(value) {
        return Script::default();
    }
    let Some(pairs) = value.entries() else {
        let message =
            format!("nodes is a mapping from ids to what they answer, and this is {}", described(value));
        problems.push(Problem::at(value.span, message));
        return Script::default();
    };
    let mut nodes = Vec::with_capacity(pairs.len());
    for Pair { name, key, value } in pairs {
        match find(graph, name) {
            Ok(node) => {
                let label = Label::Id(name.to_owned());
                let has_setup = node.worktree.as_deref().is_some_and(|name| graph.setup_of(name).is_some());
                let mut reader = Reader { node, has_setup, problems: &mut *problems, label };
                nodes.push((node.id.clone(), reader.entries(value)));
            }
            Err(problem) => problems.push(Problem { span: key.span, ..problem }),
        }
    }
    Script::new(nodes)
}

/// The node that a script may speak of as `id`.
fn find<'g>(graph: &'g Graph, id: &str) -> Result<&'g Node, Problem> {
    let refuse = |message: String| Problem::at(yaml::Span::default(), message);
    let Some(ix) = graph.find(id) else {
        let ids = graph.nodes().iter().map(|node| node.id.as_str());
        let problem = refuse(format!("the graph has no node {id:?}"));
        return Err(match suggest::hint(id, ids) {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    };
    match graph.node(ix) {
        Node { work: Work::Gate, .. } => {
            Err(refuse(format!("node {id:?} is a gate, which no script answers"))
                .hint("decide it with --approve or --reject, in a test with then: {approve: GATE}"))
        }
        node => Ok(node),
    }
}

/// Reads the entries of one node.
struct Reader<'a> {
    node: &'a Node,
    /// Whether its worktree is set up by a command.
    has_setup: bool,
    problems: &'a mut Vec<Problem>,
    label: Label,
}

/// An attempt as it is written; what is absent is `None`.
#[derive(Default)]
struct Draft {
    reply: Option<String>,
    exit: Option<i32>,
    cost: Option<Cost>,
    tokens: Option<Usage>,
    delay: Option<Duration>,
    limit: Option<String>,
    timeout: bool,
    spawn_error: Option<String>,
    setup: Option<String>,
    verify: Option<Check>,
}

impl Reader<'_> {
    fn entries(&mut self, value: &Value<'_>) -> Vec<Entry> {
        let Some(items) = value.items() else { return vec![self.entry(value)] };
        if items.is_empty() {
            self.problem(value, "the list is empty").hint = Some("leave the node out".to_owned());
        }
        items.iter().map(|item| self.entry(item)).collect()
    }

    fn entry(&mut self, value: &Value<'_>) -> Entry {
        let Some(pairs) = value.entries() else {
            let message = format!("an attempt is a mapping, and this is {}", described(value));
            let hint = format!("the keys here are {}", ENTRY_KEYS.join(", "));
            self.problem(value, message).hint = Some(hint);
            return Entry::default();
        };
        let mut draft = Draft::default();
        for pair in pairs.iter().filter(|pair| !is_unset(pair.value)) {
            self.field(pair, &mut draft);
        }
        self.conclude(value, draft)
    }

    fn field(&mut self, pair: &Pair<'_, '_>, draft: &mut Draft) {
        let value = pair.value;
        match pair.name {
            "reply" => draft.reply = self.text(value, "reply"),
            "exit" => draft.exit = self.exit(value),
            "cost" if self.is_paid(pair.key, "cost") => draft.cost = self.cost(value),
            "tokens" if self.is_paid(pair.key, "tokens") => draft.tokens = self.tokens(value),
            "limit" if self.is_paid(pair.key, "limit") => {
                draft.limit = self.words(value, "limit", LIMIT_WORDS);
            }
            "cost" | "tokens" | "limit" => {}
            "delay" => draft.delay = self.delay(value),
            "timeout" => draft.timeout = self.flag(value, "timeout"),
            "spawn_error" => draft.spawn_error = self.words(value, "spawn_error", SPAWN_WORDS),
            "setup" => {
                if !self.has_setup {
                    self.problem(pair.key, "setup: the node has no worktree that a command sets up");
                }
                draft.setup = self.failure(value, "setup", SETUP_WORDS);
            }
            "verify" => {
                if self.node.check.verify.is_none() {
                    self.problem(pair.key, "verify: the node has no success_check.verify");
                }
                draft.verify = self.verify(value);
            }
            name => {
                let problem = unknown_key(pair.key, name, &ENTRY_KEYS);
                self.tell(problem);
            }
        }
    }

    /// Whether the node asks a model; a command is neither paid for nor limited.
    fn is_paid(&mut self, key: &Value<'_>, name: &str) -> bool {
        let is_model = matches!(self.node.work, Work::Model(_));
        if !is_model {
            self.problem(key, format!("{name}: the node is a command, which asks no model"));
        }
        is_model
    }

    /// An entry of a draft whose parts do not exclude each other.
    fn conclude(&mut self, value: &Value<'_>, draft: Draft) -> Entry {
        let ends = [
            ("limit", draft.limit.is_some()),
            ("timeout", draft.timeout),
            ("spawn_error", draft.spawn_error.is_some()),
            ("setup", draft.setup.is_some()),
        ];
        let mut ends = ends.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name);
        if let Some(end) = ends.next() {
            let is_unpaid = draft.spawn_error.is_some() || draft.setup.is_some();
            let others = [
                ("reply", draft.reply.is_some()),
                ("exit", draft.exit.is_some()),
                ("verify", draft.verify.is_some()),
                ("cost", is_unpaid && draft.cost.is_some()),
                ("tokens", is_unpaid && draft.tokens.is_some()),
                ("delay", draft.setup.is_some() && draft.delay.is_some()),
            ];
            let others = others.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name);
            if let Some(other) = ends.chain(others).next() {
                self.problem(value, format!("an attempt that ends by {end} has no {other}"));
            }
        }
        Entry {
            cost: draft.cost.unwrap_or(Cost::ZERO),
            tokens: draft.tokens.unwrap_or_default(),
            delay: draft.delay.unwrap_or_default(),
            verify: draft.verify.unwrap_or_default(),
            ending: match (draft.setup, draft.spawn_error, draft.limit) {
                (Some(words), ..) => Ending::SetUpFails(words),
                (None, Some(words), _) => Ending::CannotStart(words),
                (None, None, Some(words)) => Ending::Limited(words),
                (None, None, None) if draft.timeout => Ending::TimesOut,
                (None, None, None) => Ending::Answers { reply: draft.reply, exit: draft.exit.unwrap_or(0) },
            },
        }
    }

    fn cost(&mut self, value: &Value<'_>) -> Option<Cost> {
        let cost = cost(value);
        if cost.is_none() {
            self.mismatch(value, "cost", &price_words());
        }
        cost
    }

    fn tokens(&mut self, value: &Value<'_>) -> Option<Usage> {
        let Some(pairs) = value.entries() else {
            let output_tokens = self.count(value, "tokens")?;
            return Some(Usage { output_tokens, ..Usage::default() });
        };
        let mut usage = Usage::default();
        let mut seen = Vec::new();
        for Pair { name, key, value } in pairs {
            let short = name.strip_suffix("_tokens").unwrap_or(name);
            if seen.contains(&short) {
                self.problem(key, format!("{short} is counted twice"));
            }
            seen.push(short);
            let member = match short {
                "input" => &mut usage.input_tokens,
                "cached_input" => &mut usage.cached_input_tokens,
                "output" => &mut usage.output_tokens,
                "reasoning_output" => &mut usage.reasoning_output_tokens,
                _ => {
                    let problem = unknown_key(key, name, &TOKEN_KEYS);
                    self.tell(problem);
                    continue;
                }
            };
            *member = self.count(value, name).unwrap_or(0);
        }
        Some(usage)
    }

    fn count(&mut self, value: &Value<'_>, key: &str) -> Option<u64> {
        let number =
            plain(value).and_then(scalar::integer).filter(|number| (0..=TOKENS_MAX).contains(number));
        if number.is_none() {
            self.mismatch(value, key, &format!("a whole number from 0 to {TOKENS_MAX}"));
        }
        number.and_then(|number| u64::try_from(number).ok())
    }

    fn exit(&mut self, value: &Value<'_>) -> Option<i32> {
        let code = plain(value).and_then(scalar::integer).filter(|code| (0..=255).contains(code));
        if code.is_none() {
            self.mismatch(value, "exit", "an exit code from 0 to 255");
        }
        code.and_then(|code| i32::try_from(code).ok())
    }

    fn delay(&mut self, value: &Value<'_>) -> Option<Duration> {
        let text = self.text(value, "delay")?;
        let why = match duration::parse(&text) {
            Ok(time) => match time.non_negative() {
                Some(time) => return Some(time),
                None => "it is negative".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        self.problem(value, format!("delay {text:?} is not a time: {why}")).hint =
            Some("write it as in 500ms, 30s or 1m30s".to_owned());
        None
    }

    fn verify(&mut self, value: &Value<'_>) -> Option<Check> {
        if let Some(pairs) = value.entries() {
            return Some(self.evidence(value, &pairs));
        }
        let Some(word) = value.text() else {
            self.mismatch(value, "verify", "pass, fail, a text or a mapping");
            return None;
        };
        match word {
            "pass" => Some(Check::Passes),
            "fail" => Some(Check::Fails),
            _ if plain(value).is_some_and(is_slip) => {
                self.problem(value, format!("verify: {word:?} is neither pass nor fail")).hint =
                    Some("put quotes around it when it is what the command prints".to_owned());
                None
            }
            output => Some(Check::Shows { exit: None, output: Some(output.to_owned()) }),
        }
    }

    fn evidence(&mut self, whole: &Value<'_>, pairs: &[Pair<'_, '_>]) -> Check {
        let (mut exit, mut output, mut timeout, mut spawn_error) = (None, None, false, None);
        for Pair { name, key, value } in pairs.iter().filter(|pair| !is_unset(pair.value)) {
            match *name {
                "exit" => exit = self.exit(value),
                "output" => output = self.text(value, "output"),
                "timeout" => timeout = self.flag(value, "timeout"),
                "spawn_error" => spawn_error = self.words(value, "spawn_error", SPAWN_WORDS),
                name => {
                    let problem = unknown_key(key, name, &VERIFY_KEYS);
                    self.tell(problem);
                }
            }
        }
        let clash = match (&spawn_error, timeout) {
            (Some(_), _) if timeout || exit.is_some() || output.is_some() => Some("spawn_error stands alone"),
            (None, true) if exit.is_some() => Some("a command that ran out of time has no exit"),
            _ => None,
        };
        if let Some(clash) = clash {
            self.problem(whole, format!("verify: {clash}"));
        }
        match (spawn_error, timeout) {
            (Some(words), _) => Check::CannotStart(words),
            (None, true) => Check::TimesOut(output.unwrap_or_default()),
            (None, false) => Check::Shows { exit, output },
        }
    }

    /// `true`, which takes `default`, or the words themselves; `false` is as if it were not there.
    fn words(&mut self, value: &Value<'_>, key: &str, default: &str) -> Option<String> {
        match plain(value).and_then(scalar::boolean) {
            Some(true) => Some(default.to_owned()),
            Some(false) => None,
            None => match value.text() {
                Some(words) if !words.trim().is_empty() => Some(words.to_owned()),
                _ => {
                    self.mismatch(value, key, "true, false or the words of the error");
                    None
                }
            },
        }
    }

    /// `pass`, `fail`, which takes `default`, or the words of the failure.
    fn failure(&mut self, value: &Value<'_>, key: &str, default: &str) -> Option<String> {
        match value.text() {
            Some("pass") => None,
            Some("fail") => Some(default.to_owned()),
            Some(words) if !words.trim().is_empty() && !plain(value).is_some_and(is_slip) => {
                Some(words.to_owned())
            }
            _ => {
                self.mismatch(value, key, "pass, fail or the words of the failure");
                None
            }
        }
    }

    fn flag(&mut self, value: &Value<'_>, key: &str) -> bool {
        let flag = plain(value).and_then(scalar::boolean);
        if flag.is_none() {
            self.mismatch(value, key, "true or false");
        }
        flag.unwrap_or(false)
    }

    fn text(&mut self, value: &Value<'_>, key: &str) -> Option<String> {
        let text = value.text().map(str::to_owned);
        if text.is_none() {
            self.mismatch(value, key, "text");
        }
        text
    }

    fn mismatch(&mut self, value: &Value<'_>, key: &str, wanted: &str) {
        self.problem(value, format!("{key} takes {wanted}, and this is {}", described(value)));
    }

    fn problem(&mut self, at: &Value<'_>, message: impl Into<String>) -> &mut Problem {
        self.tell(Problem::at(at.span, message))
    }

    fn tell(&mut self, problem: Problem) -> &mut Problem {
        self.problems.push(Problem { node: Some(self.label.clone()), ..problem });
        self.problems.last_mut().expect("it was put there")
    }
}

/// Reads a price in dollars, or `unknown`.
pub(crate) fn cost(value: &Value<'_>) -> Option<Cost> {
    match value.text()? {
        "unknown" => Some(Cost::UNKNOWN),
        word => scalar::float(word).and_then(Money::from_usd).map(Cost::known),
    }
}

/// What [`cost`] reads.
pub(crate) fn price_words() -> String {
    format!("a price in dollars from 0 to {PRICE_USD_MAX}, or the word unknown")
}

/// Whether a plain word was meant to be a verdict: near to one, or a truth value.
fn is_slip(word: &str) -> bool {
    scalar::boolean(word).is_some()
        || suggest::nearest(word, ["pass", "fail", "passed", "failed", "passes", "fails"]).is_some()
}
