//! The tree of a file becomes a [`RawGraph`]; every field that cannot be read is a problem of its own.
//!
//! Knows which keys there are and what type each holds, and no rule about their values. What could not be read is
//! remembered, so that no rule complains about it a second time. A list of known keys stands beside the code that
//! reads them; a test keeps the two alike.

use std::collections::HashSet;

use crate::graph::check::{Label, Site};
use crate::graph::raw::{RawFeedback, RawGraph, RawNode, RawRetry, RawSuccessCheck, RawVerify};
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::within;
use crate::load::yaml::{Kind, Node, scalar};
use crate::text::suggest;

/// The keys of the top level.
const GRAPH_KEYS: [&str; 12] = [
    "name",
    "version",
    "inputs",
    "concurrency",
    "on_fail",
    "max_usd",
    "max_executions",
    "max_wall",
    "model",
    "effort",
    "setup",
    "nodes",
];
/// The keys of a node.
const NODE_KEYS: [&str; 22] = [
    "id",
    "type",
    "depends_on",
    "prompt",
    "cwd",
    "allowed_tools",
    "permission_mode",
    "budget_usd",
    "handoff",
    "success_check",
    "retry",
    "timeout",
    "agent",
    "worktree",
    "feedback",
    "command",
    "model",
    "effort",
    "leave_running",
    "setup",
    "use",
    "with",
];
const CHECK_KEYS: [&str; 3] =
    ["success_check.exit_zero", "success_check.result_matches", "success_check.verify"];
const VERIFY_KEYS: [&str; 5] = [
    "success_check.verify.command",
    "success_check.verify.cwd",
    "success_check.verify.timeout",
    "success_check.verify.expect_exit",
    "success_check.verify.output_matches",
];
const RETRY_KEYS: [&str; 2] = ["retry.max", "retry.on"];
const FEEDBACK_KEYS: [&str; 2] = ["feedback.rerun", "feedback.max"];

/// Every key that a graph file may hold, nested ones by their last word.
pub(crate) fn known_keys() -> impl Iterator<Item = &'static str> {
    let top = GRAPH_KEYS.into_iter().chain(NODE_KEYS);
    let nested = CHECK_KEYS.into_iter().chain(VERIFY_KEYS).chain(RETRY_KEYS).chain(FEEDBACK_KEYS);
    top.chain(nested).map(|key| key.rsplit('.').next().unwrap_or(key))
}

/// Whether a node may have the key.
pub(crate) fn is_node_key(word: &str) -> bool {
    NODE_KEYS.contains(&word)
}

/// What could be read of a file.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The graph, with defaults where a field could not be read.
    pub raw: RawGraph,
    /// What could not be read, each with the position of its node.
    pub problems: Vec<(Option<usize>, Problem)>,
    /// Where.
    pub doubt: Doubt,
    /// Whether some of it is a value of the wrong type, and not only a key that nobody knows.
    pub is_mistyped: bool,
}

/// The fields that could not be read, and the items of lists that could not while the others could.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    fields: HashSet<(Option<usize>, &'static str)>,
    items: HashSet<(Option<usize>, &'static str, usize)>,
    unresolved: HashSet<usize>,
}

impl Doubt {
    /// The field `key` of `node` holds a name that was refused.
    pub(crate) fn field(&mut self, node: usize, key: &'static str) {
        self.fields.insert((Some(node), key));
    }

    /// The item `item` of the list `key` of `node` holds a name that was refused.
    pub(crate) fn item(&mut self, node: usize, key: &'static str, item: usize) {
        self.items.insert((Some(node), key, item));
    }

    /// `node` stands for nodes of a fragment that are not there.
    pub(crate) fn unresolved(&mut self, node: usize) {
        self.unresolved.insert(node);
    }

    /// Whether the field at `site`, or what it lies in, could not be read.
    pub(crate) fn covers(&self, site: &Site) -> bool {
        let mut key = site.key;
        if site.node.is_some_and(|node| self.unresolved.contains(&node)) {
            return true;
        }
        if site.item.is_some_and(|item| self.items.contains(&(site.node, key, item))) {
            return true;
        }
        loop {
            if self.fields.contains(&(site.node, key)) {
                return true;
            }
            match key.rfind('.') {
                Some(dot) => key = &key[..dot],
                None => {
                    return !key.is_empty() && site.node.is_some() && self.fields.contains(&(site.node, ""));
                }
            }
        }
    }

    /// Whether ids could not be read, so that nothing can be said about the names of nodes.
    pub(crate) fn on_ids(&self) -> bool {
        self.fields.iter().any(|(_, key)| matches!(*key, "" | "id" | "nodes"))
    }

    /// Whether ids or edges could not be read, so that nothing can be said about what does not hang together.
    pub(crate) fn on_edges(&self) -> bool {
        self.on_ids()
            || !self.unresolved.is_empty()
            || self.fields.iter().any(|(_, key)| matches!(*key, "type" | "depends_on"))
            || self.items.iter().any(|(_, key, _)| *key == "depends_on")
    }

    /// Whether a node's type could not be read, so that nothing can be said about its keys.
    pub(crate) fn on_type(&self, node: Option<usize>) -> bool {
        self.fields.contains(&(node, "type"))
    }
}

/// Reads a graph out of its tree, whose spans lie in `files`; `doubt` is what is known not to be readable.
pub(crate) fn decode(files: &Files<'_>, root: &Node<'_>, doubt: Doubt) -> Draft {
    let mut decoder =
        Decoder { files, node: None, label: None, problems: Vec::new(), doubt, is_mistyped: false };
    let raw = decoder.graph(root);
    let Decoder { problems, doubt, is_mistyped, .. } = decoder;
    Draft { raw, problems, doubt, is_mistyped }
}

struct Decoder<'f, 's> {
    files: &'f Files<'s>,
    node: Option<usize>,
    label: Option<String>,
    problems: Vec<(Option<usize>, Problem)>,
    doubt: Doubt,
    is_mistyped: bool,
}

impl Decoder<'_, '_> {
    fn graph(&mut self, root: &Node<'_>) -> RawGraph {
        let mut raw = RawGraph::default();
        let Some(entries) = root.entries() else {
            let message = match &root.target().kind {
                Kind::Scalar { text, plain: true } if scalar::is_null(text) => "the file is empty".to_owned(),
                _ => format!("a graph is a mapping with the key nodes, and this is {}", described(root)),
            };
            self.problem(root, "nodes", message, None);
            return raw;
        };
        for entry in entries {
            let value = entry.value;
            match entry.name {
                "name" => raw.name = self.text(value, "name").unwrap_or_default(),
                "version" => raw.version = self.text(value, "version").unwrap_or_default(),
                "inputs" => raw.inputs = self.list(value, "inputs").unwrap_or_default(),
                "concurrency" => raw.concurrency = self.integer(value, "concurrency"),
                "on_fail" => raw.on_fail = self.text(value, "on_fail"),
                "max_usd" => raw.max_usd = self.float(value, "max_usd"),
                "max_executions" => raw.max_executions = self.integer(value, "max_executions"),
                "max_wall" => raw.max_wall = self.text(value, "max_wall"),
                "model" => raw.model = self.text(value, "model"),
                "effort" => raw.effort = self.text(value, "effort"),
                "setup" => raw.setup = self.text(value, "setup"),
                "nodes" => raw.nodes = self.nodes(value),
                name if name.starts_with("x-") => {}
                name => self.unknown(entry.key, name, &GRAPH_KEYS),
            }
        }
        raw
    }

    fn nodes(&mut self, value: &Node<'_>) -> Vec<RawNode> {
        if value.is_null() {
            return Vec::new();
        }
        let Some(items) = value.items() else {
            self.mismatch(value, "nodes", "a list of nodes");
            return Vec::new();
        };
        let mut nodes = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            self.node = Some(at);
            self.label = None;
            nodes.push(self.node(item));
        }
        self.node = None;
        self.label = None;
        nodes
    }

    fn node(&mut self, item: &Node<'_>) -> RawNode {
        let mut raw = RawNode::default();
        let Some(entries) = item.entries() else {
            let message = format!("a node is a mapping with the key id, and this is {}", described(item));
            self.problem(item, "", message, None);
            return raw;
        };
        for entry in &entries {
            let value = entry.value;
            match entry.name {
                "id" => raw.id = self.text(value, "id").unwrap_or_default(),
                "type" => raw.kind = self.text(value, "type"),
                "depends_on" => raw.depends_on = self.list(value, "depends_on").unwrap_or_default(),
                "prompt" => raw.prompt = self.text(value, "prompt"),
                "cwd" => raw.cwd = self.text(value, "cwd"),
                "allowed_tools" => raw.allowed_tools = self.list(value, "allowed_tools"),
                "permission_mode" => raw.permission_mode = self.text(value, "permission_mode"),
                "budget_usd" => raw.budget_usd = self.float(value, "budget_usd"),
                "handoff" => raw.handoff = self.text(value, "handoff"),
                "success_check" => raw.success_check = self.success_check(value),
                "retry" => raw.retry = self.retry(value),
                "timeout" => raw.timeout = self.text(value, "timeout"),
                "agent" => raw.agent = self.text(value, "agent"),
                "worktree" => raw.worktree = self.text(value, "worktree"),
                "feedback" => raw.feedback = self.feedback(value),
                "command" => raw.command = self.text(value, "command"),
                "model" => raw.model = self.text(value, "model"),
                "effort" => raw.effort = self.text(value, "effort"),
                "leave_running" => raw.leave_running = self.boolean(value, "leave_running"),
                "setup" => raw.setup = self.text(value, "setup"),
                name => self.unknown(entry.key, name, &NODE_KEYS),
            }
        }
        raw
    }

    fn success_check(&mut self, value: &Node<'_>) -> RawSuccessCheck {
        let mut raw = RawSuccessCheck::default();
        for entry in self.mapping(value, "success_check") {
            let value = entry.value;
            match entry.name {
                "exit_zero" => raw.exit_zero = self.boolean(value, "success_check.exit_zero"),
                "result_matches" => {
                    raw.result_matches = self.text(value, "success_check.result_matches");
                }
                "verify" => raw.verify = self.verify(value),
                name => self.unknown(entry.key, name, &CHECK_KEYS),
            }
        }
        raw
    }

    fn verify(&mut self, value: &Node<'_>) -> Option<RawVerify> {
        let mut raw = RawVerify::default();
        if value.is_null() {
            return None;
        }
        for entry in self.mapping(value, "success_check.verify") {
            let value = entry.value;
            match entry.name {
                "command" => {
                    raw.command = self.text(value, "success_check.verify.command").unwrap_or_default();
                }
                "cwd" => raw.cwd = self.text(value, "success_check.verify.cwd"),
                "timeout" => raw.timeout = self.text(value, "success_check.verify.timeout"),
                "expect_exit" => raw.expect_exit = self.integer(value, "success_check.verify.expect_exit"),
                "output_matches" => {
                    raw.output_matches = self.text(value, "success_check.verify.output_matches");
                }
                name => self.unknown(entry.key, name, &VERIFY_KEYS),
            }
        }
        Some(raw)
    }

    fn retry(&mut self, value: &Node<'_>) -> Option<RawRetry> {
        let mut raw = RawRetry::default();
        if value.is_null() {
            return None;
        }
        for entry in self.mapping(value, "retry") {
            match entry.name {
                "max" => raw.max = self.integer(entry.value, "retry.max"),
                "on" => raw.on = self.list(entry.value, "retry.on"),
                name => self.unknown(entry.key, name, &RETRY_KEYS),
            }
        }
        Some(raw)
    }

    fn feedback(&mut self, value: &Node<'_>) -> Option<RawFeedback> {
        let mut raw = RawFeedback::default();
        if value.is_null() {
            return None;
        }
        for entry in self.mapping(value, "feedback") {
            match entry.name {
                "rerun" => raw.rerun = self.text(entry.value, "feedback.rerun").unwrap_or_default(),
                "max" => raw.max = self.integer(entry.value, "feedback.max"),
                name => self.unknown(entry.key, name, &FEEDBACK_KEYS),
            }
        }
        Some(raw)
    }

    fn mapping<'t, 's>(
        &mut self,
        value: &'t Node<'s>,
        key: &'static str,
    ) -> Vec<crate::load::yaml::tree::Entry<'t, 's>> {
        if value.is_null() {
            return Vec::new();
        }
        value.entries().unwrap_or_else(|| {
            self.mismatch(value, key, "a mapping");
            Vec::new()
        })
    }

    /// Text keeps the spelling of the source: `version: 0.10` is "0.10".
    fn text(&mut self, value: &Node<'_>, key: &'static str) -> Option<String> {
        match &value.target().kind {
            Kind::Scalar { text, plain: true } if scalar::is_null(text) => None,
            Kind::Scalar { text, .. } => {
                if key == "id" {
                    self.label = Some(text.clone().into_owned());
                }
                Some(text.clone().into_owned())
            }
            _ => {
                self.mismatch(value, key, "text");
                None
            }
        }
    }

    fn list(&mut self, value: &Node<'_>, key: &'static str) -> Option<Vec<String>> {
        if value.is_null() {
            return None;
        }
        let Some(items) = value.items() else {
            self.mismatch(value, key, "a list");
            return None;
        };
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match &item.target().kind {
                Kind::Scalar { text, plain } if !(*plain && scalar::is_null(text)) => {
                    texts.push(text.clone().into_owned());
                }
                _ => {
                    let message =
                        format!("{} is a list of texts, and this is {}", last(key), described(item));
                    self.note(item, message, None);
                    self.is_mistyped = true;
                    self.doubt.items.insert((self.node, key, at));
                    // It keeps its place, so that what is wrong with the others is told where they stand.
                    texts.push(String::new());
                }
            }
        }
        Some(texts)
    }

    fn boolean(&mut self, value: &Node<'_>, key: &'static str) -> bool {
        self.plain(value, key, "true or false", scalar::boolean).unwrap_or(false)
    }

    fn integer(&mut self, value: &Node<'_>, key: &'static str) -> Option<i64> {
        self.plain(value, key, "a whole number", scalar::integer)
    }

    fn float(&mut self, value: &Node<'_>, key: &'static str) -> Option<f64> {
        self.plain(value, key, "a number", scalar::float)
    }

    fn plain<T>(
        &mut self,
        value: &Node<'_>,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if value.is_null() {
            return None;
        }
        let read_as = match &value.target().kind {
            Kind::Scalar { text, plain: true } => read(text),
            _ => None,
        };
        if read_as.is_none() {
            self.mismatch(value, key, wanted);
        }
        read_as
    }

    fn mismatch(&mut self, value: &Node<'_>, key: &'static str, wanted: &str) {
        let message = format!("{} takes {wanted}, and this is {}", last(key), described(value));
        let hint = match &value.target().kind {
            Kind::Scalar { text, .. } if wanted == "a list" && !text.contains('\n') => {
                Some(format!("write {}: [{text}]", last(key)))
            }
            Kind::Scalar { plain: false, .. } if wanted.contains("number") || wanted.starts_with("true") => {
                Some("leave the quotes out".to_owned())
            }
            Kind::Mapping(_) if self.files.stands_at(value.span, "{{") => {
                Some("put quotes around a value that begins with {{".to_owned())
            }
            _ => example(key).map(|example| format!("write {example}")),
        };
        self.problem(value, key, message, hint);
    }

    fn unknown(&mut self, key: &Node<'_>, name: &str, known: &[&'static str]) {
        let meant = suggest::nearest(name, known.iter().map(|key| last(key)));
        let hint = match meant {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => {
                let names: Vec<&str> = known.iter().map(|key| last(key)).collect();
                format!("the keys here are {}", names.join(", "))
            }
        };
        let key_meant = meant.and_then(|meant| known.iter().find(|key| last(key) == meant));
        self.note(key, format!("unknown key {name:?}"), Some(hint));
        // The key that was meant is not missing, it is misspelled.
        if let Some(key) = key_meant {
            self.doubt.fields.insert((self.node, key));
        }
    }

    /// A problem that leaves the field `key` unread.
    fn problem(
        &mut self,
        at: &Node<'_>,
        key: &'static str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.note(at, message, hint);
        self.is_mistyped = true;
        self.doubt.fields.insert((self.node, key));
    }

    fn note(&mut self, at: &Node<'_>, message: impl Into<String>, hint: Option<String>) {
        let label = self.label.as_ref();
        let node = self.node.map(|at| label.map_or(Label::Place(at), |id| Label::Id(id.clone())));
        let problem = within::whole(at).problem(self.files, message.into());
        self.problems.push((self.node, Problem { node, hint, ..problem }));
    }
}

fn last(key: &'static str) -> &'static str {
    key.rsplit('.').next().unwrap_or(key)
}

/// What a value of the key looks like, where its type alone does not say it.
fn example(key: &str) -> Option<&'static str> {
    Some(match key {
        "nodes" => "each node as an item, as in - {id: a, prompt: …}",
        "inputs" => "the names, as in inputs: [repo, task]",
        "concurrency" => "digits, as in concurrency: 4",
        "depends_on" => "ids, as in depends_on: [a, b]",
        "allowed_tools" => "names of tools, as in allowed_tools: [Read, Edit]",
        "budget_usd" => "dollars, as in budget_usd: 0.50",
        "success_check" => "success_check: {exit_zero: true}",
        "success_check.verify" => "verify: {command: make test}",
        "success_check.verify.expect_exit" => "an exit code, as in expect_exit: 0",
        "retry" => "retry: {max: 2, on: [timeout]}",
        "retry.max" | "feedback.max" => "digits, as in max: 2",
        "retry.on" => "causes, as in on: [nonzero_exit, timeout]",
        "feedback" => "feedback: {rerun: ID, max: 2}",
        _ => return None,
    })
}

/// What a value is, as the end of a sentence.
pub(crate) fn described(value: &Node<'_>) -> String {
    match &value.target().kind {
        Kind::Scalar { text, plain: true } if scalar::is_null(text) => "nothing".to_owned(),
        Kind::Scalar { text, plain } => {
            let short: String = text.chars().take(40).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            let quoted = if *plain { "" } else { "the text " };
            format!("{quoted}{:?}", short + more)
        }
        Kind::Sequence(_) => "a list".to_owned(),
        _ => "a mapping".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::yaml::{self, Limits};

    /// The problems of a file, as messages.
    fn problems(text: &str) -> Vec<String> {
        let tree = yaml::parse(text, Limits::default()).unwrap_or_else(|problem| panic!("{problem:?}"));
        let draft = decode(&Files::of("g".to_owned(), text), &tree.root, Doubt::default());
        draft.problems.into_iter().map(|(_, problem)| problem.message).collect()
    }

    #[test]
    fn every_key_that_is_offered_is_read() {
        // No key takes nothing amiss, so whatever is told is that a key is unknown.
        let nothing = |keys: &[&'static str]| -> String {
            let entries: Vec<String> = keys.iter().map(|key| format!("{}: ~", last(key))).collect();
            format!("{{{}}}", entries.join(", "))
        };
        let cites = |key: &&'static str| matches!(*key, "use" | "with");
        let node: Vec<&'static str> = NODE_KEYS.into_iter().filter(|key| !cites(key)).collect();
        let check = nothing(&CHECK_KEYS);
        let verify = nothing(&VERIFY_KEYS);
        for text in [
            nothing(&GRAPH_KEYS),
            format!("nodes: [{}]", nothing(&node)),
            format!("nodes: [{{success_check: {check}}}, {{success_check: {{verify: {verify}}}}}]"),
            format!(
                "nodes: [{{retry: {}}}, {{feedback: {}}}]",
                nothing(&RETRY_KEYS),
                nothing(&FEEDBACK_KEYS)
            ),
        ] {
            assert_eq!(problems(&text), Vec::<String>::new(), "{text}");
        }
    }
}
