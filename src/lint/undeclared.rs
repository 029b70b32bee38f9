//! Inputs that a token uses and `inputs:` does not declare (FACTS 4.1).

use std::collections::HashSet;

use super::{Remarks, Subject, Sweep};
use crate::text::template::{self, Kind};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG002",
    name: "undeclared-input",
    summary: "a token uses an input that `inputs:` does not declare",
    why: "The token works, since an input is known by its use; but whoever reads the top of the file does not learn that a \
          value is needed, and a slip of the pen in a name makes a second input. Declare it.",
    bad: "inputs: [repo]\nnodes:\n  - {id: build, type: command, cwd: \"{{ inputs.repo }}\", command: \"make {{ inputs.target \
          }}\"}\n",
    good: "inputs: [repo, target]\nnodes:\n  - {id: build, type: command, cwd: \"{{ inputs.repo }}\", command: \"make {{ \
           inputs.target }}\"}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    let declared: HashSet<&str> = graph.inputs.iter().map(String::as_str).collect();
    for ix in graph.positions() {
        for (key, text) in graph.node(ix).templates() {
            for token in template::tokens(text).filter(|token| token.kind == Kind::Inputs) {
                if !declared.contains(token.reference) {
                    let detail = format!("{} uses an input that inputs: does not declare", token.written);
                    remarks.node(graph, ix, key, detail).within(token.written);
                }
            }
        }
    }
}
