//! YAML as a tree that knows where everything stands.
//!
//! `parse` composes the parser's events into [`tree::Node`]s; `scalar` reads words as the types that fields want.
//! Nothing here knows what a graph is. JSON is read by the same door, being YAML.

pub(crate) mod parse;
pub(crate) mod scalar;
mod syntax;
pub(crate) mod tree;

pub(crate) use parse::{Limits, parse, parse_at};
pub(crate) use tree::{Kind, Node, Part, Span, Woven};

/// A problem at a value.
pub(crate) fn problem_at(node: &Node<'_>, message: &str) -> crate::load::problem::Problem {
    crate::load::problem::Problem::at(node.span, message)
}
