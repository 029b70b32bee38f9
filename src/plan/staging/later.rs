//! What a later leg of a planned run takes away from its nodes, and how it says so (FACTS 8.15).
//!
//! What was staged was held in the memory of the leg that planned, which is gone. All that a later leg could stage from
//! lies where nodes could write, and an agent is a system prompt: so nothing is staged again, and no node gains by it.

use crate::graph::NodeId;

/// What a node of an earlier leg had that its later legs do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The nodes that ran as an agent, and which.
    pub agents: Vec<(NodeId, String)>,
    /// The nodes that could use skills.
    pub skills: Vec<NodeId>,
}

impl Lost {
    /// What the nodes lose, each given by its id, its agent and whether anything was staged for it.
    pub fn of<'n>(nodes: impl IntoIterator<Item = (&'n NodeId, Option<&'n str>, bool)>) -> Self {
        let mut lost = Lost::default();
        for (id, agent, is_staged) in nodes {
            match agent {
                Some(agent) => lost.agents.push((id.clone(), agent.to_owned())),
                None if is_staged => lost.skills.push(id.clone()),
                None => {}
            }
        }
        lost
    }

    /// The lines that say so, none when nothing is lost.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.agents.is_empty() {
            let told: Vec<String> =
                self.agents.iter().map(|(id, agent)| format!("{id} (was {agent})")).collect();
            lines.push(format!(
                "{} in this leg as an agent of yours: {}.",
                counted(self.agents.len(), "node no longer runs", "nodes no longer run"),
                told.join(", ")
            ));
        }
        if !self.skills.is_empty() {
            let told: Vec<&str> = self.skills.iter().map(NodeId::as_str).collect();
            lines.push(format!(
                "{} in this leg: {}.",
                counted(self.skills.len(), "node has no skills", "nodes have no skills"),
                told.join(", ")
            ));
        }
        if !lines.is_empty() {
            lines.push(
                "What was staged for them was held by the leg that planned them; what lies on disk could have been"
                    .to_owned(),
            );
            lines.push(
                "changed by a node, so nothing is staged from it. What the nodes may do is otherwise as it was."
                    .to_owned(),
            );
        }
        lines
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s63_what_is_lost_is_counted_and_named() {
        let ids = ["plan", "review", "fix"].map(|id| NodeId::parse(id).expect("an id"));
        let lost =
            Lost::of([(&ids[0], None, true), (&ids[1], Some("reviewer"), true), (&ids[2], None, true)]);
        let lines = lost.lines();
        assert_eq!(
            lines[0],
            "1 node no longer runs in this leg as an agent of yours: review (was reviewer)."
        );
        assert_eq!(lines[1], "2 nodes have no skills in this leg: plan, fix.");
        assert_eq!(lines.len(), 4);
        assert!(Lost::of([(&ids[0], None, false)]).lines().is_empty());
    }
}
