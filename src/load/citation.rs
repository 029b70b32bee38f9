//! How a piece of a graph came into it: from the node of the graph's own file down to the fragment that holds the piece.
//!
//! A fault in a fragment is told where the fragment stands, in the words of its author, with the citations that led
//! there; the same fault of the same line is one problem, however many nodes cite it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use crate::graph::check::Label;
use crate::load::files::Files;
use crate::load::problem::Problem;
use crate::load::yaml::Span;

/// A citation of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The node that cites, with its whole id.
    pub node: Label,
    /// The value of its `use`.
    pub at: Span,
    /// The fragment's name.
    pub fragment: Rc<str>,
    /// The position of the fragment's file among the files; `None` when it could not be read.
    pub file: Option<usize>,
}

/// Citations, the one in the graph's own file first.
pub(crate) type Chain = Rc<[Step]>;

/// Charges a problem of `node`, which came into the graph through `chain`, to the file that it stands in.
pub(crate) fn charged(problem: Problem, node: Label, chain: &Chain, files: &Files<'_>) -> Problem {
    let file = files.holding(problem.span);
    let Some(depth) = chain.iter().position(|step| step.file == Some(file)) else {
        return Problem { node: Some(node), ..problem };
    };
    let Label::Id(citer) = &chain[depth].node else {
        return Problem { sites: [chain.clone()].into(), ..problem };
    };
    let label = match &node {
        Label::Id(id) => id.strip_prefix(citer.as_str()).and_then(|rest| rest.strip_prefix('/')),
        Label::Place(_) => None,
    };
    Problem {
        node: label.map(|id| Label::Id(id.to_owned())),
        message: without_namespace(&problem.message, citer),
        hint: problem.hint.map(|hint| without_namespace(&hint, citer)),
        sites: [if depth + 1 == chain.len() { chain.clone() } else { chain[..=depth].into() }].into(),
        ..problem
    }
}

/// Makes one problem of those that say the same of the same place.
pub(crate) fn merged(list: Vec<Problem>) -> Vec<Problem> {
    let mut known: HashMap<(u32, String), usize> = HashMap::new();
    let mut kept: Vec<(Problem, Vec<Chain>)> = Vec::new();
    for problem in list {
        let (key, sites) = ((problem.span.start, problem.message.clone()), problem.sites.to_vec());
        match known.entry(key) {
            Entry::Vacant(free) => {
                free.insert(kept.len());
                kept.push((problem, sites));
            }
            Entry::Occupied(first) => {
                let all = &mut kept[*first.get()].1;
                for site in sites {
                    // A node that has two faults of one kind cites once.
                    if all.last() != Some(&site) {
                        all.push(site);
                    }
                }
            }
        }
    }
    kept.into_iter().map(|(problem, sites)| Problem { sites: sites.into(), ..problem }).collect()
}

/// `text` with the ids below `citer` as the fragment's author wrote them.
fn without_namespace(text: &str, citer: &str) -> String {
    let namespace = format!("{citer}/");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&namespace) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let whole = match out.chars().next_back() {
            Some('.') => out.ends_with("artifacts.") || out.ends_with("feedback."),
            Some(c) => !c.is_ascii_alphanumeric() && !"_-/".contains(c),
            None => true,
        };
        if !whole {
            out.push_str(&namespace);
        }
        rest = &found[namespace.len()..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_as_the_author_of_the_fragment_wrote_them() {
        for (text, told) in [
            ("the loop holds \"r/a\" and \"r/b/c\"", "the loop holds \"a\" and \"b/c\""),
            ("{{ feedback.r/a }} \"r\" other/r/a x.r/a rr/a", "{{ feedback.a }} \"r\" other/r/a x.r/a rr/a"),
            ("r/a → r/b", "a → b"),
            ("é", "é"),
        ] {
            assert_eq!(without_namespace(text, "r"), told);
        }
    }
}
