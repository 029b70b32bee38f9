//! A node that cites, and what it may say: bindings for every point, and little else beside several nodes.

use std::collections::HashMap;
use std::rc::Rc;

use super::body::Fragment;
use super::splice::{Bindings, Namespace};
use super::tokens::{self, Kind as TokenKind};
use crate::graph::check::Label;
use crate::graph::id::is_segment;
use crate::load::citation::Chain;
use crate::load::decode::{self, described};
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::within::Finder;
use crate::load::yaml::{Kind, Node, Span};
use crate::text::suggest;

/// What a node that cites a fragment of several nodes may say.
const WIRING: [&str; 7] = ["id", "use", "with", "depends_on", "cwd", "worktree", "setup"];
/// How many names of no node get a suggestion; finding one compares with every id.
pub(super) const SUGGESTIONS_MAX: usize = 10;

/// A node on its way into the graph: one that cites, or that a citation brought in.
pub(super) struct Citing<'s> {
    /// What messages call it.
    pub label: Label,
    /// Its keys and values.
    pub entries: Vec<(Node<'s>, Node<'s>)>,
    /// Its place.
    pub span: Span,
    /// The citations that brought it in; none for a node of the graph's own file.
    pub chain: Option<Chain>,
    /// Whose ids it names; `None` for those of the graph's own file.
    pub namespace: Option<Namespace>,
    /// Whether it is what a fragment of one node made of its citer.
    pub is_alias: bool,
}

impl<'s> Citing<'s> {
    /// The entry of a key.
    pub(super) fn entry(&self, word: &str) -> Option<&(Node<'s>, Node<'s>)> {
        self.entries.iter().find(|(key, _)| key.text() == Some(word))
    }

    /// The value of a key.
    pub(super) fn get(&self, word: &str) -> Option<&Node<'s>> {
        self.entry(word).map(|(_, value)| value)
    }
    /// What `with` binds: everything that the fragment declares and nothing else.
    pub(super) fn bindings(
        &self,
        used: &Node<'s>,
        fragment: &Fragment,
    ) -> Result<Bindings<'s>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut bound = Bindings::new();
        let name = &*fragment.name;
        if let Some(with) = self.get("with").filter(|with| !with.is_null()) {
            let Some(entries) = with.entries() else {
                let message =
                    format!("with takes a mapping of names to values, and this is {}", described(with));
                return Err(vec![Problem::at(with.span, message)]);
            };
            for entry in entries {
                if !fragment.points.iter().any(|point| point == entry.name) {
                    let known = fragment.points.iter().map(String::as_str);
                    let hint =
                        suggest::hint(entry.name, known).unwrap_or_else(|| match fragment.points.len() {
                            0 => "it declares none".to_owned(),
                            _ => format!("it declares {}", fragment.points.join(", ")),
                        });
                    let message =
                        format!("with binds {:?}, which the fragment {name:?} does not declare", entry.name);
                    problems.push(Problem::at(entry.key.span, message).hint(hint));
                }
                let value = match &entry.value.kind {
                    Kind::Anchored(shared) | Kind::Alias(shared) => Rc::clone(shared),
                    _ => Rc::new(entry.value.clone()),
                };
                bound.insert(entry.name.to_owned(), value);
            }
        }
        for point in fragment.points.iter().filter(|point| !bound.contains_key(*point)) {
            problems.push(
                Problem::at(
                    used.span,
                    format!("the fragment {name:?} declares {point:?}, and with does not bind it"),
                )
                .hint(format!("add {point}: … to with; \"\" binds nothing")),
            );
        }
        if problems.is_empty() { Ok(bound) } else { Err(problems) }
    }

    /// The id of a node that cites a fragment of several nodes, when everything about the node is in order.
    pub(super) fn joined(
        &self,
        used: &Node<'s>,
        fragment: &Fragment,
        authored: &mut Authored,
        files: &Files<'_>,
    ) -> Result<String, Vec<Problem>> {
        let mut problems = Vec::new();
        for (key, _) in &self.entries {
            let word = key.text().unwrap_or_default();
            if !WIRING.contains(&word) {
                problems.push(beside_several(word, key.span, fragment));
            }
        }
        let id = match &self.label {
            Label::Id(id) => id.clone(),
            Label::Place(_) => {
                problems.push(Problem::at(
                    used.span,
                    "the node has no id, which the fragment's nodes are called by",
                ));
                String::new()
            }
        };
        let span = self.get("id").map_or(used.span, |id| id.span);
        if self.chain.is_none() && !id.is_empty() {
            if !is_segment(&id) {
                problems.push(Problem::at(span, "the id is not well formed").hint(
                    "letters, digits, \".\", \"_\" and \"-\", a letter or digit first, at most 200 bytes",
                ));
            } else if authored.is_shared(&id) {
                problems.push(
                    Problem::at(span, "another node has the same id")
                        .hint("the fragment's nodes take this node's place, and what names it would be led past the other"),
                );
            }
        }
        if let Some(other) = authored.folded(&id) {
            problems.push(
                Problem::at(
                    span,
                    format!("the id differs from {other:?} only by case, and both cite a fragment of several nodes"),
                )
                .hint("the nodes of both would be one file each on a disk that does not tell case apart"),
            );
        }
        problems.extend(self.bound_references(&id, authored, files));
        if problems.is_empty() { Ok(id) } else { Err(problems) }
    }

    /// Artifacts that a binding names and that can never be there.
    fn bound_references(&self, id: &str, authored: &mut Authored, files: &Files<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut finder = Finder::of(files);
        let Some(with) = self.get("with") else { return problems };
        with.each_scalar(&mut |at, text| {
            for token in tokens::tokens(text) {
                let TokenKind::Artifacts(named) = token.kind else { continue };
                if named == id {
                    let message = format!("{} is the node's own, which comes after it", token.written);
                    problems.push(finder.find("", at, token.written).problem(files, message));
                } else if self.chain.is_none() && !authored.counts.contains_key(named) {
                    let message =
                        format!("{} names {named:?}, which is no node of this graph", token.written);
                    let hint = authored.meant(named);
                    let problem = finder.find("", at, token.written).problem(files, message);
                    problems.push(Problem { hint, ..problem });
                }
            }
        });
        problems
    }
}

/// The ids of the graph's own file.
pub(super) struct Authored {
    counts: HashMap<String, usize>,
    /// By id in lower case: the first node that cites a fragment of several nodes and is called so.
    citers: HashMap<String, String>,
    suggestions_left: usize,
}

impl Authored {
    /// The ids, as often as each is there.
    pub(super) fn of<'i>(ids: impl Iterator<Item = &'i str>) -> Self {
        let mut counts = HashMap::new();
        for id in ids {
            *counts.entry(id.to_owned()).or_default() += 1;
        }
        Self { counts, citers: HashMap::new(), suggestions_left: SUGGESTIONS_MAX }
    }

    /// The earlier citer of several nodes whose id differs from `id` only by case.
    fn folded(&mut self, id: &str) -> Option<String> {
        let first = self.citers.entry(id.to_ascii_lowercase()).or_insert_with(|| id.to_owned());
        (first != id).then(|| first.clone())
    }

    /// Whether several nodes have the id.
    fn is_shared(&self, id: &str) -> bool {
        self.counts.get(id).is_some_and(|count| *count > 1)
    }

    /// The id that `name` probably meant, as a hint.
    fn meant(&mut self, name: &str) -> Option<String> {
        self.suggestions_left = self.suggestions_left.checked_sub(1)?;
        let mut ids: Vec<&str> = self.counts.keys().map(String::as_str).collect();
        ids.sort_unstable();
        suggest::hint(name, ids)
    }
}

/// A key that a citation of several nodes cannot have.
fn beside_several(word: &str, span: Span, fragment: &Fragment) -> Problem {
    if !decode::is_node_key(word) {
        let problem = Problem::at(span, format!("unknown key {word:?}"));
        return problem.hint(
            suggest::hint(word, WIRING).unwrap_or_else(|| format!("the keys here are {}", WIRING.join(", "))),
        );
    }
    let message =
        format!("{word} cannot stand here: the fragment {:?} declares several nodes", &*fragment.name);
    let hint = format!("beside use stand {}; everything else is the fragment's", WIRING.join(", "));
    Problem::at(span, message).hint(hint)
}
