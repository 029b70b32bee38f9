//! What a test expects of a run, as values with the places where they stand.

use std::collections::BTreeMap;
use std::fmt;

use crate::graph::{Cause, NodeId};
use crate::load::yaml::Span;
use crate::record::event::SkipWhy;
use crate::text::money::{Cost, Money};
use crate::text::regexp::Pattern;

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) span: Span,
    pub(crate) value: T,
}

impl<T> At<T> {
    pub(crate) fn new(span: Span, value: T) -> Self {
        At { span, value }
    }
}

/// Everything that a test expects.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// Where what it does not name is told.
    pub(crate) span: Span,
    /// The exit codes.
    pub(crate) exits: Option<At<Exits>>,
    /// What the last leg pauses for.
    pub(crate) paused_by: Option<At<Vec<PausedBy>>>,
    /// The nodes in the order in which they begin, every attempt counted; nodes that it does not name count for nothing.
    pub(crate) order: Option<At<Vec<NodeId>>>,
    /// Nodes of which the first ends before the second begins.
    pub(crate) before: Vec<At<(NodeId, NodeId)>>,
    /// What everything costs together.
    pub(crate) spend: Option<At<Price>>,
    /// What becomes of nodes.
    pub(crate) nodes: BTreeMap<NodeId, OfNode>,
    /// What becomes of the nodes that are not named.
    pub(crate) others: Others,
}

impl Expected {
    /// Nothing in particular: every node passes.
    pub(crate) fn everything_passes(span: Span) -> Self {
        Expected {
            span,
            exits: None,
            paused_by: None,
            order: None,
            before: Vec::new(),
            spend: None,
            nodes: BTreeMap::new(),
            others: Others::Pass,
        }
    }
}

/// The exit codes that a run is expected to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exits {
    /// That of the last leg.
    Last(u8),
    /// That of each leg; there are no more and no fewer.
    Each(Vec<u8>),
}

impl Exits {
    /// That of the last leg.
    pub(crate) fn last(&self) -> Option<u8> {
        match self {
            Exits::Last(code) => Some(*code),
            Exits::Each(codes) => codes.last().copied(),
        }
    }
}

/// What is expected of one node.
#[derive(Clone, Debug)]
pub(crate) struct OfNode {
    /// What becomes of it.
    pub(crate) end: At<End>,
    /// How often it is begun, over all legs and rounds.
    pub(crate) attempts: Option<At<u32>>,
    /// How often feedback sends it back.
    pub(crate) rounds: Option<At<u32>>,
    /// What it is asked, or which command it runs.
    pub(crate) prompt: Option<Prompt>,
    /// What it costs in all.
    pub(crate) cost: Option<At<Price>>,
}

/// What becomes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It passes.
    Pass,
    /// It fails, for this cause where one is named.
    Fail(Option<Cause>),
    /// It is never run.
    Skipped {
        /// How that comes.
        why: Option<SkipWhy>,
        /// The node that it is owed to.
        because: Option<NodeId>,
    },
    /// It is a gate that nobody has decided.
    Waiting,
    /// The run is paused, and it has yet to run.
    Pending,
}

impl End {
    /// Every end that is one word.
    pub(crate) const WORDS: [(&'static str, End); 5] = [
        ("PASS", End::Pass),
        ("FAIL", End::Fail(None)),
        ("skipped", End::Skipped { why: None, because: None }),
        ("waiting", End::Waiting),
        ("pending", End::Pending),
    ];

    /// Whether a node that came to `actual` came to this.
    pub(crate) fn admits(&self, actual: &End) -> bool {
        fn says<T: PartialEq>(wanted: &Option<T>, actual: &Option<T>) -> bool {
            wanted.is_none() || wanted == actual
        }
        match (self, actual) {
            (End::Fail(wanted), End::Fail(cause)) => says(wanted, cause),
            (End::Skipped { why, because }, End::Skipped { why: actual_why, because: actual_because }) => {
                says(why, actual_why) && says(because, actual_because)
            }
            (wanted, actual) => wanted == actual,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Fail(Some(cause)) => write!(f, "FAIL ({})", cause.as_str()),
            End::Skipped { why, because } => {
                f.write_str("skipped")?;
                if let Some(why) = why {
                    write!(f, " ({})", why_word(*why))?;
                }
                match because {
                    Some(node) => write!(f, " because of \"{node}\""),
                    None => Ok(()),
                }
            }
            plain => {
                let word = End::WORDS.iter().find(|(_, end)| end == plain).map_or("", |(word, _)| *word);
                f.write_str(word)
            }
        }
    }
}

/// Every reason for never having run, with its word on the feed.
pub(crate) const WHYS: [(&str, SkipWhy); 4] = [
    ("ancestor_failed", SkipWhy::AncestorFailed),
    ("rejected", SkipWhy::Rejected),
    ("halted", SkipWhy::Halted),
    ("interrupted", SkipWhy::Interrupted),
];

fn why_word(why: SkipWhy) -> &'static str {
    WHYS.iter().find(|(_, known)| *known == why).map_or("", |(word, _)| *word)
}

/// What becomes of the nodes that a test does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// They pass; in a run that pauses they may be yet to run.
    Pass,
    /// They come to this.
    All(End),
    /// Anything.
    Any,
}

/// What a run pauses for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PausedBy {
    /// A person's decision.
    Gate,
    /// A subscription's limit that is spent.
    Limit,
    /// The bound on dollars.
    MaxUsd,
    /// The bound on executions.
    MaxExecutions,
    /// The bound on time.
    MaxWall,
}

impl PausedBy {
    /// All, with their words.
    pub(crate) const WORDS: [(&'static str, PausedBy); 5] = [
        ("gate", PausedBy::Gate),
        ("limit", PausedBy::Limit),
        ("max_usd", PausedBy::MaxUsd),
        ("max_executions", PausedBy::MaxExecutions),
        ("max_wall", PausedBy::MaxWall),
    ];

    /// The word.
    pub(crate) fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| *word)
    }
}

/// What something costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    /// This much.
    Exactly(Money),
    /// This much or less, all of it known.
    AtMost(Money),
    /// Something, and nobody knows how much.
    Unknown,
}

impl Price {
    /// Whether `cost` is this price.
    pub(crate) fn admits(self, cost: Cost) -> bool {
        match self {
            Price::Exactly(price) => cost == Cost::known(price),
            Price::AtMost(most) => !cost.is_unknown() && cost.known <= most,
            Price::Unknown => cost.is_unknown(),
        }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Price::Exactly(price) => price.fmt(f),
            Price::AtMost(most) => write!(f, "at most {most}"),
            Price::Unknown => f.write_str("unknown"),
        }
    }
}

/// What is expected of the prompts of a node.
#[derive(Clone, Debug)]
pub(crate) enum Prompt {
    /// The last one.
    Last(Vec<At<Words>>),
    /// Each, in the order in which they were asked; there are no more and no fewer.
    Each(Span, Vec<Vec<At<Words>>>),
}

/// What a text is compared with.
#[derive(Clone, Debug)]
pub(crate) enum Words {
    /// It holds this.
    Contains(String),
    /// It does not hold this.
    Lacks(String),
    /// It is this, but for white space at its ends.
    Equals(String),
    /// This pattern matches somewhere in it.
    Matches(Pattern),
}

impl Words {
    /// Whether `text` is as wanted.
    pub(crate) fn admit(&self, text: &str) -> bool {
        match self {
            Words::Contains(part) => text.contains(part),
            Words::Lacks(part) => !text.contains(part),
            Words::Equals(whole) => text.trim() == whole.trim(),
            Words::Matches(pattern) => pattern.is_match(text),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Words::Contains(part) => write!(f, "to contain {part:?}"),
            Words::Lacks(part) => write!(f, "not to contain {part:?}"),
            Words::Equals(whole) => write!(f, "to be {whole:?}"),
            Words::Matches(pattern) => write!(f, "to match `{}`", pattern.as_str()),
        }
    }
}
