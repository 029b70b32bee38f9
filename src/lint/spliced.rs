//! Text of a model or of another command that becomes part of a command line: the shell reads it as code (FACTS 4.4, case I5).

use super::{Remarks, Subject, Sweep};
use crate::graph::{Graph, Node, Work, export};
use crate::text::template::{self, Kind, Token};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG030",
    name: "spliced-reply",
    summary: "what a node said becomes part of a command line",
    why: "The shell reads the text as code: a quote or a semicolon in a reply ends the command that you wrote and begins \
          another. `{{ artifacts.ID }}` without the filter is safe, it is a path; so is the variable `$OMG_ARTIFACT_ID` of a \
          direct parent, in double quotes.",
    bad: "nodes:\n  - {id: draft, prompt: Write a haiku., allowed_tools: []}\n  - {id: keep, type: command, depends_on: \
          [draft], command: \"echo '{{ artifacts.draft | inline }}' > haiku.txt\"}\n",
    good: "nodes:\n  - {id: draft, prompt: Write a haiku., allowed_tools: []}\n  - {id: keep, type: command, depends_on: \
           [draft], command: \"cp \\\"$OMG_ARTIFACT_DRAFT\\\" haiku.txt\"}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        let node = graph.node(ix);
        for (key, line) in lines(node) {
            for token in template::tokens(line) {
                if let Some(detail) = remark(&token, node, graph) {
                    remarks.node(graph, ix, key, detail).within(token.written);
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
            let named = graph.node(graph.find(token.reference)?);
            let what = match named.work {
                Work::Command(_) => "what a command printed",
                Work::Model(_) | Work::Gate => "a reply",
            };
            let variable = export::artifact_variable(export::called(node.id.as_str(), token.reference));
            Some(format!(
                "{written} makes {what} part of the command line, where the shell reads it as code: \
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
