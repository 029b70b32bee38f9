//! Advice on a graph that is valid: each sweep is a file, and a row in [`SWEEPS`] (FACTS 4, docs/LINT.md).
//!
//! Advice never changes an exit code by itself. Knows no screen and no file; where a remark stands in a file is
//! [`crate::load::locate`]'s business. Every sweep is linear in nodes, edges and text.

mod advice;
mod allowed;
mod ancestry;
mod budgets;
mod bypass;
mod catalogue;
mod causes;
mod checkout;
mod concurrency;
mod empty_prompt;
mod grants;
mod ignored_exit;
mod never_there;
mod parents;
mod reach;
mod repeated_input;
mod session_place;
mod session_retry;
mod spliced;
mod substitutions;
mod tame_verify;
mod tokens;
mod unanchored;
mod unawaited;
mod undeclared;
mod unread_feedback;
mod unread_verdict;
mod unused_input;

pub use advice::{Advice, Place};
pub use allowed::{ALLOW_KEY, Allowed, allowance_of_a_fragment};
pub use budgets::unkept as unkept_budgets;
pub use bypass::bypassing;
pub use catalogue::catalogue;
pub use never_there::never_there;
pub use reach::{Unreached, unreached};
pub use substitutions::unused_substitution;
pub use unread_feedback::unread as unread_feedback;

use crate::graph::Graph;
use crate::graph::raw::RawGraph;
use advice::Remarks;

/// A sweep: what it is called, what it says, and how it looks at a graph.
#[derive(Debug)]
pub struct Sweep {
    /// `OMG` and three digits; never reused. The tens are the subject, see docs/LINT.md.
    pub id: &'static str,
    /// A short name for a reader, such as `duplicate-parent`.
    pub name: &'static str,
    /// One line: what is the matter.
    pub summary: &'static str,
    /// Why that matters, and what to do; Markdown.
    pub why: &'static str,
    /// A graph that it speaks of.
    pub bad: &'static str,
    /// The same graph, mended.
    pub good: &'static str,
    /// How it looks; `None` when a runtime's preflight asks for it, because it is of no concern to other runtimes, or
    /// when it is found before there is a graph.
    look: Option<Look>,
}

/// Looks at a graph and adds what it finds.
type Look = fn(Subject<'_>, &mut Remarks);

/// A graph, as written and as checked.
#[derive(Clone, Copy)]
struct Subject<'g> {
    raw: &'g RawGraph,
    graph: &'g Graph,
}

/// The sweeps, in the order of their remarks.
pub const SWEEPS: [&Sweep; 25] = [
    &tokens::SWEEP,
    &undeclared::SWEEP,
    &never_there::SWEEP,
    &unawaited::SWEEP,
    &unused_input::SWEEP,
    &repeated_input::SWEEP,
    &session_place::SWEEP,
    &session_retry::SWEEP,
    &grants::SWEEP,
    &spliced::SWEEP,
    &unread_feedback::SWEEP,
    &unread_verdict::SWEEP,
    &ignored_exit::SWEEP,
    &unanchored::SWEEP,
    &empty_prompt::SWEEP,
    &reach::SWEEP,
    &tame_verify::SWEEP,
    &causes::SWEEP,
    &parents::SWEEP,
    &checkout::SWEEP,
    &concurrency::SWEEP,
    &bypass::SWEEP,
    &budgets::SWEEP,
    &substitutions::SWEEP,
    &allowed::SWEEP,
];

/// The sweep called `id`, in any case.
pub fn find(id: &str) -> Option<&'static Sweep> {
    SWEEPS.into_iter().find(|sweep| sweep.id.eq_ignore_ascii_case(id) || sweep.name.eq_ignore_ascii_case(id))
}

/// Everything there is to say about a graph, less what its author allows.
pub fn advise(raw: &RawGraph, graph: &Graph, allowed: &Allowed) -> Vec<Advice> {
    let subject = Subject { raw, graph };
    let mut advice = Vec::new();
    for sweep in SWEEPS {
        if let Some(look) = sweep.look {
            let mut remarks = Remarks::of(sweep);
            look(subject, &mut remarks);
            advice.append(&mut remarks.into_list());
        }
    }
    advice.append(&mut allowed.unknown(graph));
    advice.retain(|advice| !allowed.covers(advice));
    advice
}

#[cfg(test)]
mod tests;
