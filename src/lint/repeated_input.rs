//! Inputs that `inputs:` declares more than once.

use std::collections::HashSet;

use super::{Remarks, Subject, Sweep};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG006",
    name: "repeated-input",
    summary: "`inputs:` declares a name more than once",
    why: "The second entry means nothing; most likely another name was meant.",
    bad: "inputs: [repo, repo]\nnodes:\n  - {id: build, type: command, cwd: \"{{ inputs.repo }}\", command: make}\n",
    good: "inputs: [repo]\nnodes:\n  - {id: build, type: command, cwd: \"{{ inputs.repo }}\", command: make}\n",
    look: Some(look),
};

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    let mut declared: HashSet<&str> = HashSet::new();
    for (at, name) in graph.inputs.iter().enumerate() {
        if !declared.insert(name) {
            remarks.graph("inputs", format!("{name:?} is declared twice")).item(at);
        }
    }
}
