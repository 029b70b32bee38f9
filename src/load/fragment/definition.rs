//! The file of a fragment: what it declares, and everything that is wrong with it whoever cites it (FACTS 3.3).
//!
//! A file is judged once. What holds is kept without its source, ready to be spliced in as often as it is cited. Knows
//! no graph.

use std::collections::HashSet;

use super::body::{Block, Body, Fragment};
use super::citing::SUGGESTIONS_MAX;
use super::loops;
use super::tokens::{self, Kind as TokenKind};
use crate::graph::check::Label;
use crate::graph::id;
use crate::lint::ALLOW_KEY;
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::within::Finder;
use crate::load::yaml::tree::Entry;
use crate::load::yaml::{Kind, Node, Span};
use crate::text::suggest;

/// The keys of a fragment file.
const KEYS: [&str; 6] = ["fragment", "description", "substitutions", "node", "nodes", "exit"];
/// Where a node runs, which the citing node decides.
pub(super) const PLACE_KEYS: [&str; 3] = ["cwd", "worktree", "setup"];
/// What a node does, which belongs to the fragment that it cites.
pub(super) const WORK_KEYS: [&str; 2] = ["prompt", "command"];

/// Reads the file of the fragment `name`; `None` when anything is wrong with it.
pub(super) fn read(
    name: &str,
    file: usize,
    root: &Node<'_>,
    files: &Files<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Fragment> {
    let before = problems.len();
    let mut reader = Reader {
        problems,
        finder: Finder::of(files),
        points: Points::default(),
        label: None,
        suggestions_left: SUGGESTIONS_MAX,
    };
    let fragment = reader.fragment(name, file, root);
    if problems.len() == before { fragment } else { None }
}

/// The declared points and which of them were met; unknown when the list could not be read.
#[derive(Default)]
struct Points {
    declared: Option<Vec<String>>,
    used: HashSet<String>,
}

struct Reader<'p, 's> {
    problems: &'p mut Vec<Problem>,
    finder: Finder<'p, 's>,
    points: Points,
    label: Option<Label>,
    suggestions_left: usize,
}

impl Reader<'_, '_> {
    fn fragment(&mut self, name: &str, file: usize, root: &Node<'_>) -> Option<Fragment> {
        let Some(entries) = root.entries() else {
            self.tell(
                root.span,
                "a fragment file is a mapping with the keys fragment, description and node or nodes",
            );
            return None;
        };
        let get = |word: &str| entries.iter().find(|entry| entry.name == word);
        for entry in &entries {
            if !KEYS.contains(&entry.name) && !entry.name.starts_with("x-") {
                let hint = suggest::hint(entry.name, KEYS)
                    .unwrap_or_else(|| format!("the keys here are {}", KEYS.join(", ")));
                self.problems
                    .push(Problem::at(entry.key.span, format!("unknown key {:?}", entry.name)).hint(hint));
            }
        }
        self.name(name, root, get("fragment"));
        let description = self.description(root, get("description"));
        self.points.declared = self.substitutions(get("substitutions"));
        let body = match (get("node"), get("nodes")) {
            (Some(_), Some(nodes)) => {
                self.tell(nodes.key.span, "the fragment has both node and nodes: keep one of them");
                return None;
            }
            (None, None) => {
                self.tell(root.span, "the fragment has neither node nor nodes");
                return None;
            }
            (Some(node), None) => Body::One(self.one(node, get("exit"))?),
            (None, Some(nodes)) => self.many(nodes, get("exit"))?,
        };
        let points = self.points.declared.take().unwrap_or_default();
        let declared = get("substitutions").and_then(|entry| entry.value.items()).unwrap_or_default();
        let unused = points.iter().filter(|point| !self.points.used.contains(*point));
        let place =
            |point: &String| declared.iter().find(|item| filled(item) == Some(point)).map(|item| item.span);
        let unused = unused.map(|point| (point.clone(), place(point).unwrap_or_default())).collect();
        let allowance = get(ALLOW_KEY).map(|entry| entry.key.span);
        Some(Fragment { name: name.into(), file, description, points, unused, allowance, body })
    }

    fn name(&mut self, name: &str, root: &Node<'_>, entry: Option<&Entry<'_, '_>>) {
        match entry.map(|entry| (entry.value.span, filled(entry.value))) {
            Some((_, Some(own))) if own == name => {}
            Some((span, Some(own))) => self.tell(
                span,
                format!("fragment is {own:?}, and the file is called {name:?}: both must be one name"),
            ),
            found => self.tell(
                found.map_or(root.span, |(span, _)| span),
                format!("the fragment does not say its name: write fragment: {name}"),
            ),
        }
    }

    fn description(&mut self, root: &Node<'_>, entry: Option<&Entry<'_, '_>>) -> String {
        let text = entry.and_then(|entry| filled(entry.value));
        if text.is_none() {
            let span = entry.map_or(root.span, |entry| entry.value.span);
            self.tell(span, "the fragment has no description, which every run that cites it prints");
        }
        text.unwrap_or_default().to_owned()
    }

    /// The declared points; `None` when they cannot be told.
    fn substitutions(&mut self, entry: Option<&Entry<'_, '_>>) -> Option<Vec<String>> {
        let Some(value) = entry.map(|entry| entry.value).filter(|value| !value.is_null()) else {
            return Some(Vec::new());
        };
        let Some(items) = value.items() else {
            self.problems.push(
                Problem::at(value.span, "substitutions takes a list of names")
                    .hint("write substitutions: [checks, scope]"),
            );
            return None;
        };
        let mut points: Vec<String> = Vec::with_capacity(items.len());
        let mut all = true;
        for item in items {
            match filled(item) {
                Some(point) if !points.iter().any(|known| known == point) => points.push(point.to_owned()),
                Some(_) => {}
                None => {
                    all = false;
                    self.tell(item.span, "a substitution point is a name, and this is none");
                }
            }
        }
        all.then_some(points)
    }

    fn one(&mut self, node: &Entry<'_, '_>, exit: Option<&Entry<'_, '_>>) -> Option<Block> {
        if let Some(exit) = exit {
            self.tell(exit.key.span, "exit names one of several nodes, and this fragment has one node");
        }
        let Some(entries) = node.value.entries() else {
            self.tell(node.value.span, "node takes a mapping with the keys of one node");
            return None;
        };
        let aliased = self.aliases(node.value);
        for entry in &entries {
            let why = match entry.name {
                "id" => "the citing node has one",
                "depends_on" => "the citing node has its own parents",
                "feedback" => "the citing node has its own loop",
                word if PLACE_KEYS.contains(&word) => "the citing node decides where it runs",
                _ => continue,
            };
            self.tell(entry.key.span, format!("a fragment of one node declares no {}: {why}", entry.name));
        }
        self.citation(&entries);
        for entry in &entries {
            self.bindings(entry.value);
            let mut namespaced = Vec::new();
            entry.value.each_scalar(&mut |at, text| {
                let ids = tokens::tokens(text).filter(|token| token.id().is_some_and(|id| id.contains('/')));
                let finder = &mut self.finder;
                namespaced.extend(
                    ids.map(|token| (finder.find("/", at, token.written).span, token.written.to_owned())),
                );
            });
            for (span, written) in namespaced {
                self.tell(
                    span,
                    format!("{written} reaches into another fragment: an id holds no \"/\" here"),
                );
            }
        }
        (!aliased).then(|| Block::of(String::new(), &entries, node.value.span))
    }

    fn many(&mut self, nodes: &Entry<'_, '_>, exit: Option<&Entry<'_, '_>>) -> Option<Body> {
        let Some(items) = nodes.value.items().filter(|items| !items.is_empty()) else {
            self.tell(nodes.value.span, "nodes takes a list with at least one node");
            return None;
        };
        let aliased = self.aliases(nodes.value);
        let mut ids = HashSet::new();
        let own: Vec<String> = items.iter().map(|item| self.id(item, &mut ids)).collect();
        let known = !own.iter().any(String::is_empty);
        for (at, item) in items.iter().enumerate() {
            self.label = Some(if own[at].is_empty() { Label::Place(at) } else { Label::Id(own[at].clone()) });
            self.internal(item, known.then_some(&ids));
        }
        self.label = None;
        let exit = self.exit(nodes, exit, known.then_some(&ids));
        if aliased || !known {
            return None;
        }
        let mut blocks = Vec::with_capacity(items.len());
        for (item, id) in items.iter().zip(own) {
            blocks.push(Block::of(id, &item.entries()?, item.span));
        }
        let exit = exit?;
        if let Some(declarer) = loops::around(&blocks, &exit.0) {
            let message = format!(
                "exit names {:?}, which the loop of {declarer:?} may run again: name {declarer:?} or a node after it",
                exit.0
            );
            self.tell(exit.1, message);
        }
        Some(Body::Many { blocks, ids, exit: exit.0 })
    }

    /// The id of a node, empty when it has none.
    fn id(&mut self, item: &Node<'_>, ids: &mut HashSet<String>) -> String {
        let Some(entries) = item.entries() else {
            self.tell(item.span, "a node is a mapping with the key id");
            return String::new();
        };
        let entry = entries.iter().find(|entry| entry.name == "id");
        let Some(own) = entry.and_then(|entry| filled(entry.value)) else {
            self.tell(entry.map_or(item.span, |entry| entry.value.span), "the node has no id");
            return String::new();
        };
        let span = entry.map_or(item.span, |entry| entry.value.span);
        if !id::is_segment(own) {
            self.problems.push(
                Problem::at(span, format!("the id {own:?} is not well formed")).hint(
                    "letters, digits, \".\", \"_\" and \"-\", a letter or digit first, at most 200 bytes",
                ),
            );
            return String::new();
        }
        if !ids.insert(own.to_owned()) {
            self.tell(span, format!("an earlier node has the id {own:?} as well"));
        }
        own.to_owned()
    }

    /// A node among several. Without `ids` nothing can be said about the nodes that it names.
    fn internal(&mut self, item: &Node<'_>, ids: Option<&HashSet<String>>) {
        let Some(entries) = item.entries() else { return };
        self.citation(&entries);
        for entry in &entries {
            match entry.name {
                word if PLACE_KEYS.contains(&word) => self.tell(
                    entry.key.span,
                    format!("a fragment declares no {word}: the citing node decides where its nodes run"),
                ),
                "depends_on" => self.parents(entry, ids),
                "feedback" => self.arc(entry, ids),
                _ => {}
            }
            self.bindings(entry.value);
            let Some(ids) = ids else { continue };
            let mut undeclared = Vec::new();
            entry.value.each_scalar(&mut |at, text| {
                let named = tokens::tokens(text).filter_map(|token| Some((token.written, token.id()?)));
                let unknown = named.filter(|(_, id)| !ids.contains(*id));
                let finder = &mut self.finder;
                undeclared.extend(unknown.map(|(written, id)| {
                    (finder.find("ids", at, written).span, written.to_owned(), id.to_owned())
                }));
            });
            for (span, written, id) in undeclared {
                self.undeclared(span, &written, &id, ids);
            }
        }
    }

    fn parents(&mut self, entry: &Entry<'_, '_>, ids: Option<&HashSet<String>>) {
        let Some(items) = entry.value.items() else {
            self.push(
                Problem::at(entry.value.span, "depends_on takes a list").hint("write depends_on: [a, b]"),
            );
            return;
        };
        if items.is_empty() {
            self.push(
                Problem::at(entry.value.span, "depends_on is empty, so that the node would wait for nothing")
                    .hint("leave the key out: the node then waits for the parents of the citing node"),
            );
        }
        for item in items {
            self.named("depends_on", item, ids);
        }
    }

    fn arc(&mut self, entry: &Entry<'_, '_>, ids: Option<&HashSet<String>>) {
        if entry.value.entries().is_none() {
            self.push(
                Problem::at(entry.value.span, "feedback takes a mapping")
                    .hint("write feedback: {rerun: ID, max: 2}"),
            );
            return;
        }
        match entry.value.get("rerun") {
            Some(rerun) => self.named("feedback.rerun", rerun, ids),
            None => self.tell(entry.value.span, "feedback has no rerun"),
        }
    }

    /// The name of a node in `key`, which must be one of the fragment's.
    fn named(&mut self, key: &str, value: &Node<'_>, ids: Option<&HashSet<String>>) {
        match (filled(value), ids) {
            (None, _) => self.tell(value.span, format!("{key} names no node here")),
            (Some(name), Some(ids)) if !ids.contains(name) => self.undeclared(value.span, key, name, ids),
            _ => {}
        }
    }

    fn undeclared(&mut self, span: Span, what: &str, id: &str, ids: &HashSet<String>) {
        let message = format!("{what} names {id:?}, which is no node of this fragment");
        let meant = self.suggestions_left.checked_sub(1).and_then(|left| {
            self.suggestions_left = left;
            let mut known: Vec<&str> = ids.iter().map(String::as_str).collect();
            known.sort_unstable();
            suggest::hint(id, known)
        });
        let outside = || "what comes from outside is bound: declare a point in substitutions".to_owned();
        let hint = meant.unwrap_or_else(outside);
        self.push(Problem::at(span, message).hint(hint));
    }

    fn exit(
        &mut self,
        nodes: &Entry<'_, '_>,
        exit: Option<&Entry<'_, '_>>,
        ids: Option<&HashSet<String>>,
    ) -> Option<(String, Span)> {
        let Some(id) = exit.and_then(|exit| filled(exit.value)) else {
            let span = exit.map_or(nodes.key.span, |exit| exit.value.span);
            self.problems.push(
                Problem::at(span, "the fragment has no exit")
                    .hint("name the node whose result is the fragment's"),
            );
            return None;
        };
        let span = exit?.value.span;
        let ids = ids?;
        if ids.contains(id) {
            return Some((id.to_owned(), span));
        }
        self.undeclared(span, "exit", id, ids);
        None
    }

    /// Whether an alias or a merge stands in `body`: what hides behind it would be neither checked nor filled in.
    fn aliases(&mut self, body: &Node<'_>) -> bool {
        let mut found = Vec::new();
        find_aliases(body, &mut found);
        for span in &found {
            self.problems.push(
                Problem::at(*span, "an alias or a merge cannot stand in a fragment's nodes")
                    .hint("write out what it stands for"),
            );
        }
        !found.is_empty()
    }

    /// The rules about a citation inside a fragment that need no citing node.
    fn citation(&mut self, entries: &[Entry<'_, '_>]) {
        let get = |word: &str| entries.iter().find(|entry| entry.name == word);
        let Some(cited) = get("use") else {
            if let Some(with) = get("with") {
                self.tell(with.key.span, "with binds the values of a fragment, and no use: names one");
            }
            return;
        };
        for work in WORK_KEYS.into_iter().filter_map(get) {
            self.push(beside_use(work.name, work.key.span));
        }
        if cited.value.text().is_some_and(tokens::is_templated) {
            self.problems.push(
                Problem::at(cited.value.span, "use takes a name as it is, and this one depends on a binding")
                    .hint("write one fragment for each, and let the graph choose"),
            );
        }
    }

    /// The bindings that stand in `value`.
    fn bindings(&mut self, value: &Node<'_>) {
        let mut wrong = Vec::new();
        let (points, finder) = (&mut self.points, &mut self.finder);
        value.each_scalar(&mut |at, text| {
            for token in tokens::tokens(text) {
                match (token.kind, &points.declared) {
                    (TokenKind::Malformed, _) => wrong.push((
                        finder.find("with", at, token.written).span,
                        format!("{} can never be filled: a binding is {{{{ with.NAME }}}}", token.written),
                        None,
                    )),
                    (TokenKind::With(name), Some(declared))
                        if !declared.iter().any(|point| point == name) =>
                    {
                        let hint = suggest::hint(name, declared.iter().map(String::as_str));
                        let message = format!("{} names no point of substitutions", token.written);
                        let span = finder.find("with", at, token.written).span;
                        wrong.push((span, message, hint.or(Some(format!("declare {name} there")))));
                    }
                    (TokenKind::With(name), _) => drop(points.used.insert(name.to_owned())),
                    _ => {}
                }
            }
        });
        for (span, message, hint) in wrong {
            self.push(Problem { hint, ..Problem::at(span, message) });
        }
    }

    fn tell(&mut self, span: Span, message: impl Into<String>) {
        self.push(Problem::at(span, message));
    }

    fn push(&mut self, problem: Problem) {
        self.problems.push(Problem { node: self.label.clone(), ..problem });
    }
}

/// `key` stands beside `use`.
pub(super) fn beside_use(key: &str, span: Span) -> Problem {
    Problem::at(span, format!("{key} stands beside use, and what the node does is the fragment's"))
        .hint("bind a point of the fragment in with:, or write the node out")
}

/// The text of a scalar that is not blank.
pub(super) fn filled<'t>(value: &'t Node<'_>) -> Option<&'t str> {
    value.text().map(str::trim).filter(|text| !text.is_empty() && !value.is_null())
}

fn find_aliases(node: &Node<'_>, found: &mut Vec<Span>) {
    match &node.kind {
        Kind::Scalar { .. } => {}
        Kind::Sequence(items) => items.iter().for_each(|item| find_aliases(item, found)),
        Kind::Mapping(entries) => {
            for (key, value) in entries {
                if key.is_merge_key() {
                    found.push(key.span);
                } else {
                    find_aliases(value, found);
                }
            }
        }
        Kind::Anchored(inner) => find_aliases(inner, found),
        Kind::Alias(_) | Kind::Woven(_) => found.push(node.span),
    }
}
