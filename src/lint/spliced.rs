//! Text of a model that becomes part of a command line: the shell reads it as code (FACTS 4.4, case I5).

use super::Advice;
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, Node, Work, export};
use crate::text::template::{self, Kind, Token};

pub(super) fn sweep(_: &RawGraph, graph: &Graph, advice: &mut Vec<Advice>) {
    for node in graph.nodes() {
        for (field, line) in lines(node) {
            for token in template::tokens(line) {
                if let Some(detail) = remark(&token, node, graph) {
                    advice.push(Advice { node: Some(node.id.to_string()), field, detail });
                }
            }
        }
    }
}

/// The command lines of a node.
fn lines(node: &Node) -> impl Iterator<Item = (&'static str, &str)> {
    let own = match &node.work {
        Work::Command(line) => Some(("command", line.as_str())),
        Work::Model(_) | Work::Gate => None,
    };
    let verify = node.check.verify.as_ref();
    own.into_iter().chain(verify.map(|verify| ("success_check.verify.command", verify.command.as_str())))
}

fn remark(token: &Token<'_>, node: &Node, graph: &Graph) -> Option<String> {
    let written = token.written;
    match token.kind {
        Kind::Artifacts if token.inline && token.reference != node.id.as_str() => {
            graph.find(token.reference)?;
            let variable = export::artifact_variable(export::called(node.id.as_str(), token.reference));
            Some(format!(
                "{written} makes a reply part of the command line, where the shell reads it as code: \
                 read the file \"${variable}\" instead"
            ))
        }
        Kind::Feedback => Some(format!(
            "{written} makes what a check said part of the command line, where the shell reads it as code: \
             quote it in a prompt instead"
        )),
        Kind::Artifacts | Kind::Inputs => None,
    }
}
