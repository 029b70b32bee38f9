//! Compares what a test expects with what its run did; every difference is a problem with the place of what was expected.

use std::fs;

use crate::graph::check::Label;
use crate::graph::{Node, NodeId, Work};
use crate::leg::drive::{Ending, Paused};
use crate::load::Problems;
use crate::load::problem::Problem;
use crate::load::yaml::Span;
use crate::record::attempts::{self, Said};
use crate::record::event::Skipped;
use crate::record::excerpt::{KEPT_BYTES_MAX, is_cut};
use crate::record::{Event, EventKind, Verdict};
use crate::schedule::machine::Cap;
use crate::text::money::Cost;
use crate::trial::expect::{At, End, Exits, Expected, OfNode, Others, PausedBy, Prompt, Words};
use crate::trial::play::Played;
use crate::trial::suite::{Case, Suite};

/// What stands for the run's directory in prompts: its real name is another one each time.
const RUN: &str = "RUN";
/// How much of a prompt a message shows, in characters.
const PROMPT_CHARS_SHOWN: usize = 400;

/// Something that came out otherwise than expected.
pub struct Difference {
    span: Span,
    node: Option<NodeId>,
    message: String,
}

/// Everything that came out otherwise than `case` of `suite` expects.
pub fn judge(suite: &Suite, case: &Case, played: &Played) -> Vec<Difference> {
    let mut judge = Judge { suite, case, played, found: Vec::new() };
    judge.legs();
    judge.nodes();
    judge.order();
    judge.implied_exit();
    if let Some(spend) = &case.expected.spend {
        judge.price(spend.span, "the run", spend.value, played.standing.legs.cost);
    }
    judge.found
}

/// Differences as problems of the file of tests, at the places of what was expected.
pub fn problems(suite: &Suite, differences: &[Difference]) -> Problems {
    let problem = |Difference { span, node, message }: &Difference| {
        let node = node.as_ref().map(|node| Label::Id(node.to_string()));
        Problem { node, ..Problem::at(*span, message.clone()) }
    };
    let list = differences.iter().map(problem).collect();
    Problems::new(&suite.file.display().to_string(), &suite.text, list)
}

struct Judge<'a> {
    suite: &'a Suite,
    case: &'a Case,
    played: &'a Played,
    found: Vec<Difference>,
}

impl Judge<'_> {
    fn expected(&self) -> &Expected {
        &self.case.expected
    }

    fn miss(&mut self, span: Span, message: String) {
        self.found.push(Difference { span, node: None, message });
    }

    fn miss_of(&mut self, node: &NodeId, span: Span, message: String) {
        self.found.push(Difference { span, node: Some(node.clone()), message });
    }

    /// Exit codes, pauses, and later legs that could not be.
    fn legs(&mut self) {
        if let Some((at, why)) = &self.played.refused {
            self.miss(self.case.then[*at].span, format!("this leg cannot be run: {why}"));
        }
        if let Some(At { span, value }) = &self.case.expected.exits {
            let codes = self.exits();
            let (wanted, actual) = match value {
                Exits::Last(code) => (std::slice::from_ref(code), &codes[codes.len().saturating_sub(1)..]),
                Exits::Each(each) => (&each[..], &codes[..]),
            };
            if wanted != actual {
                self.miss(*span, format!("expected exit {}, and it is {}", list(wanted), list(actual)));
            }
        }
        self.pause();
    }

    /// What nobody wrote, and what follows from the rest: worth a word only where nothing else is amiss.
    fn implied_exit(&mut self) {
        let wanted = implied_exit(self.expected()).filter(|_| self.expected().exits.is_none());
        let actual = self.exits().pop();
        if let (Some(wanted), Some(actual), true) = (wanted, actual, self.found.is_empty())
            && wanted != actual
        {
            let message = format!("expected exit {wanted}, as follows from the nodes, and it is {actual}");
            self.miss(self.expected().span, message);
        }
    }

    /// The exit code of each leg.
    fn exits(&self) -> Vec<u8> {
        self.played.endings.iter().map(exit_code).collect()
    }

    fn pause(&mut self) {
        let Some(At { span, value }) = &self.case.expected.paused_by else { return };
        let actual = match self.played.endings.last() {
            Some(Ending::Paused(pause)) => paused_by(pause),
            _ => Vec::new(),
        };
        let words = |list: &[PausedBy]| list.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(", ");
        if value.len() != actual.len() || !value.iter().all(|word| actual.contains(word)) {
            let what = if actual.is_empty() {
                "not paused".to_owned()
            } else {
                format!("paused by {}", words(&actual))
            };
            self.miss(*span, format!("expected a run that is paused by {}, and it is {what}", words(value)));
        }
    }

    fn nodes(&mut self) {
        let (suite, case) = (self.suite, self.case);
        for node in suite.tested.graph.nodes() {
            let actual = self.end_of(node);
            match case.expected.nodes.get(&node.id) {
                Some(wanted) => self.node(node, wanted, &actual),
                None if admits(&case.expected, &actual) => {}
                None => {
                    let wanted = match &case.expected.others {
                        Others::All(end) => end.to_string(),
                        Others::Pass | Others::Any => End::Pass.to_string(),
                    };
                    let message = format!(
                        "expected {wanted}, as of every node that is not named, and it is {}",
                        self.described(node, &actual)
                    );
                    self.miss_of(&node.id, case.expected.span, message);
                }
            }
        }
    }

    fn node(&mut self, node: &Node, wanted: &OfNode, actual: &End) {
        if !wanted.end.value.admits(actual) {
            let message =
                format!("expected {}, and it is {}", wanted.end.value, self.described(node, actual));
            self.miss_of(&node.id, wanted.end.span, message);
        }
        let now = self.played.nodes.by_id.get(node.id.as_str());
        let (attempts, cost) = now.map_or((0, Cost::ZERO), |now| (now.attempts, now.cost));
        let rounds = now.map_or(0, |now| now.ends.iter().map(|(round, _)| *round).max().unwrap_or(now.round));
        for (wanted, actual, what) in
            [(&wanted.attempts, attempts, "attempts"), (&wanted.rounds, rounds, "rounds")]
        {
            if let Some(At { span, value }) = wanted.as_ref().filter(|wanted| wanted.value != actual) {
                self.miss_of(&node.id, *span, format!("expected {value} {what}, and there were {actual}"));
            }
        }
        if let Some(At { span, value }) = &wanted.cost
            && !value.admits(cost)
        {
            self.miss_of(&node.id, *span, format!("expected a cost of {value}, and it is {cost}"));
        }
        if let Some(prompt) = &wanted.prompt {
            self.prompts(node, prompt);
        }
    }

    fn price(&mut self, span: Span, what: &str, wanted: crate::trial::expect::Price, cost: Cost) {
        if !wanted.admits(cost) {
            self.miss(span, format!("expected that {what} costs {wanted}, and it costs {cost}"));
        }
    }

    /// What became of a node.
    fn end_of(&self, node: &Node) -> End {
        let record = self.played.standing.records.get(node.id.as_str());
        match record.map(|record| record.verdict) {
            Some(Verdict::Pass) => return End::Pass,
            Some(Verdict::Fail) => return End::Fail(record.and_then(|record| record.cause)),
            Some(Verdict::Marker) | None => {}
        }
        if self.played.waiting.contains(&node.id) {
            return End::Waiting;
        }
        match self.skip_of(node) {
            Some(skip) => End::Skipped { why: Some(skip.why), because: NodeId::parse(&skip.because) },
            None => End::Pending,
        }
    }

    /// Why a node was never run; a leg that paused has left nothing out.
    fn skip_of(&self, node: &Node) -> Option<&Skipped> {
        if matches!(self.played.endings.last(), Some(Ending::Paused(_))) {
            return None;
        }
        self.played.standing.snapshot.skipped.iter().find(|skip| skip.node == node.id.as_str())
    }

    /// The same with the words of the failure.
    fn described(&self, node: &Node, actual: &End) -> String {
        let record = self.played.standing.records.get(node.id.as_str());
        match record.map(|record| record.detail.as_str()).filter(|detail| !detail.is_empty()) {
            Some(detail) if matches!(actual, End::Fail(_)) => format!("{actual}: {detail}"),
            _ => actual.to_string(),
        }
    }

    fn prompts(&mut self, node: &Node, wanted: &Prompt) {
        let asked = self.asked(node);
        match wanted {
            Prompt::Last(words) => match asked.last() {
                Some(prompt) => self.words(node, words, prompt, ""),
                None => {
                    let span = words.first().map_or(self.expected().span, |words| words.span);
                    self.miss_of(&node.id, span, "expected a prompt, and it was never asked".to_owned());
                }
            },
            Prompt::Each(span, each) => {
                if each.len() != asked.len() {
                    let message = format!("expected {} prompts, and there were {}", each.len(), asked.len());
                    self.miss_of(&node.id, *span, message);
                }
                for (at, (words, prompt)) in each.iter().zip(&asked).enumerate() {
                    self.words(node, words, prompt, &format!(" {}", at + 1));
                }
            }
        }
    }

    fn words(&mut self, node: &Node, wanted: &[At<Words>], prompt: &str, which: &str) {
        let is_cut = is_cut(prompt);
        for At { span, value } in wanted {
            let is_found = value.admit(prompt);
            // Of a prompt that is not all there, only what is found is certain.
            let is_told = is_found && (!is_cut || matches!(value, Words::Contains(_)));
            if is_told {
                continue;
            }
            let message = if is_cut {
                let kept = KEPT_BYTES_MAX / 1024;
                format!(
                    "expected prompt{which} {value}, which cannot be told: the prompt is longer than the {kept} KiB that are kept of it"
                )
            } else {
                format!("expected prompt{which} {value}, and it is {:?}", shortened(prompt))
            };
            self.miss_of(&node.id, *span, message);
        }
    }

    /// Every prompt of a node, or command, in the order in which they were asked.
    fn asked(&self, node: &Node) -> Vec<String> {
        let dir = &self.played.dir;
        let listed = attempts::list(dir, &node.id).unwrap_or_default();
        let prompts = listed.iter().filter_map(|attempt| {
            let (_, path) = attempt.said.iter().find(|(said, _)| *said == Said::Prompt)?;
            attempts::read(path).ok()
        });
        let place = dir.path().to_string_lossy().into_owned();
        let real = fs::canonicalize(dir.path()).ok().map(|path| path.to_string_lossy().into_owned());
        let hidden = |prompt: String| match &real {
            Some(real) => prompt.replace(&place, RUN).replace(real, RUN),
            None => prompt.replace(&place, RUN),
        };
        prompts.map(hidden).collect()
    }

    fn order(&mut self) {
        let events = &self.played.events;
        let gate = |event: &Event| {
            let graph = &self.suite.tested.graph;
            graph.find(&event.node_id).is_some_and(|ix| matches!(graph.node(ix).work, Work::Gate))
        };
        let begins = |event: &Event| is_beginning(event, gate(event));
        if let Some(At { span, value }) = &self.case.expected.order {
            let named = |event: &&Event| value.iter().any(|id| id.as_str() == event.node_id);
            let began = events.iter().filter(named).filter(|event| begins(event));
            let began: Vec<&str> = began.map(|event| event.node_id.as_str()).collect();
            if value.iter().map(NodeId::as_str).ne(began.iter().copied()) {
                let wanted = value.iter().map(NodeId::as_str).collect::<Vec<_>>().join(", ");
                let began = if began.is_empty() { "none of them began".to_owned() } else { began.join(", ") };
                self.found.push(Difference {
                    span: *span,
                    node: None,
                    message: format!("expected the order {wanted}, and it is: {began}"),
                });
            }
        }
        for At { span, value: (one, other) } in &self.case.expected.before {
            let ended = events.iter().position(|event| event.node_id == one.as_str() && is_end(event));
            let began = events.iter().position(|event| event.node_id == other.as_str() && begins(event));
            let wrong = match (ended, began) {
                (Some(ended), Some(began)) if ended < began => continue,
                (None, _) => format!("\"{one}\" never ended"),
                (_, None) => format!("\"{other}\" never began"),
                _ => format!("\"{other}\" began before \"{one}\" had ended"),
            };
            let message = format!("expected \"{one}\" before \"{other}\", and {wrong}");
            self.found.push(Difference { span: *span, node: None, message });
        }
    }
}

/// Whether an attempt begins. Each leg takes a gate up and puts it down again until it is decided; a retry without a
/// number is a round that is sent back.
fn is_beginning(event: &Event, is_gate: bool) -> bool {
    match event.event {
        EventKind::GateApproved | EventKind::GateRejected => true,
        EventKind::NodeStarted => !is_gate,
        EventKind::NodeRetried => event.retries > 0,
        _ => false,
    }
}

fn is_end(event: &Event) -> bool {
    matches!(event.event, EventKind::NodePassed | EventKind::NodeFailed)
}

/// Whether a node that is not named may have come to `actual`.
fn admits(expected: &Expected, actual: &End) -> bool {
    match &expected.others {
        Others::Any => true,
        Others::All(end) => end.admits(actual),
        Others::Pass if *actual == End::Pass => true,
        Others::Pass => pauses(expected) && matches!(actual, End::Waiting | End::Pending),
    }
}

/// Whether the run is expected to end paused.
fn pauses(expected: &Expected) -> bool {
    match &expected.exits {
        Some(exits) => exits.value.last() == Some(2),
        None => implied_exit(expected) == Some(2),
    }
}

/// The exit code that follows from what is expected of nodes; `None` when it could be any.
fn implied_exit(expected: &Expected) -> Option<u8> {
    let others = match &expected.others {
        Others::All(end) => Some(end),
        Others::Pass | Others::Any => None,
    };
    let ends = || expected.nodes.values().map(|node| &node.end.value).chain(others);
    if expected.paused_by.is_some() || ends().any(|end| matches!(end, End::Waiting | End::Pending)) {
        return Some(2);
    }
    if ends().any(|end| matches!(end, End::Fail(_) | End::Skipped { .. })) {
        return Some(1);
    }
    (expected.others != Others::Any).then_some(0)
}

fn exit_code(ending: &Ending) -> u8 {
    match ending {
        Ending::Passed => 0,
        Ending::Failed { .. } | Ending::Unrecorded { .. } => 1,
        Ending::Paused(_) => 2,
        Ending::Stopped(signal) | Ending::Abandoned(signal) => signal.exit_code(),
    }
}

fn paused_by(pause: &Paused) -> Vec<PausedBy> {
    let gate = (!pause.gates.is_empty()).then_some(PausedBy::Gate);
    let limit = (!pause.limited.is_empty()).then_some(PausedBy::Limit);
    let cap = pause.cap.map(|cap| match cap {
        Cap::Spend => PausedBy::MaxUsd,
        Cap::Executions => PausedBy::MaxExecutions,
        Cap::Wall => PausedBy::MaxWall,
    });
    [gate, limit, cap].into_iter().flatten().collect()
}

fn list(codes: &[u8]) -> String {
    codes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn shortened(prompt: &str) -> String {
    match prompt.char_indices().nth(PROMPT_CHARS_SHOWN) {
        Some((at, _)) => format!("{}…", &prompt[..at]),
        None => prompt.to_owned(),
    }
}
