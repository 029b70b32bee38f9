//! Which planned node runs as which of the person's agents (FACTS 8.6): by name alone, and only when nothing is in doubt.

use super::agents::Agent;
use crate::graph::{Graph, NodeId, Work};

/// The shortest word that counts as the beginning of another, in characters.
const PREFIX_CHARS_MIN: usize = 4;

/// What was decided about a node whose name matched one agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The node.
    pub node: NodeId,
    /// The agent, by its place in the scan.
    pub agent: usize,
    /// Why it is not applied all the same.
    pub refused: Option<String>,
}

/// Matches the nodes of `graph`, in its order, with `agents`. Names in `declined` are refused after they matched, so
/// that to decline one never brings another into play.
pub fn matches(graph: &Graph, agents: &[Agent], declined: &[String]) -> Vec<Match> {
    let words: Vec<Vec<String>> = agents.iter().map(|agent| words(&agent.name)).collect();
    let nodes = graph.nodes().iter().filter_map(|node| match &node.work {
        Work::Model(model) => Some((&node.id, model.allowed_tools.as_deref().unwrap_or_default())),
        Work::Command(_) | Work::Gate => None,
    });
    nodes
        .filter_map(|(id, allowed)| {
            let own = self::words(id.as_str());
            let agent = only(words.iter().enumerate().filter(|(_, words)| is_match(&own, words)))?.0;
            let refused = refusal(&agents[agent], allowed, declined);
            Some(Match { node: id.clone(), agent, refused })
        })
        .collect()
}

fn refusal(agent: &Agent, allowed: &[String], declined: &[String]) -> Option<String> {
    if declined.iter().any(|name| is_named(&agent.name, name)) {
        return Some("declined by --no-agent".to_owned());
    }
    let beyond: Vec<&str> =
        agent.tools.iter().filter(|tool| !allowed.contains(tool)).map(String::as_str).collect();
    if !beyond.is_empty() {
        return Some(format!(
            "it declares tools that the plan does not give the node: {}",
            beyond.join(", ")
        ));
    }
    agent.unfit()
}

/// Whether somebody who typed `typed` meant the agent `name`, whatever the case and the space around.
pub(super) fn is_named(name: &str, typed: &str) -> bool {
    typed.trim().to_lowercase() == name.to_lowercase()
}

fn words(name: &str) -> Vec<String> {
    name.to_lowercase().split(['-', '_']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn is_match(node: &[String], agent: &[String]) -> bool {
    node.iter().any(|a| agent.iter().any(|b| are_akin(a, b)))
}

fn are_akin(a: &str, b: &str) -> bool {
    let (shorter, longer) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    a == b || (shorter.chars().count() >= PREFIX_CHARS_MIN && longer.starts_with(shorter))
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agent(name: &str, tools: &[&str]) -> Agent {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        Agent {
            name: name.into(),
            tools,
            path: "/home/me/.claude/agents/a.md".into(),
            bytes: Some(Vec::new()),
        }
    }

    fn graph(ids: &[&str]) -> Graph {
        let nodes: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"{{"id":"{id}","prompt":"x","allowed_tools":["Read","Bash(git *)"]}}"#))
            .collect();
        let json = format!(r#"{{"nodes":[{}]}}"#, nodes.join(","));
        crate::graph::from_snapshot(&json).map(|(_, graph)| graph).unwrap_or_else(|error| panic!("{error}"))
    }

    /// `node>agent`, and what was refused in brackets.
    fn decided(ids: &[&str], agents: &[Agent], declined: &[&str]) -> String {
        let declined: Vec<String> = declined.iter().map(|name| (*name).to_owned()).collect();
        let told = matches(&graph(ids), agents, &declined).into_iter().map(|found| {
            let why = found.refused.map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{}>{}{why}", found.node, agents[found.agent].name)
        });
        told.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_word_in_common_or_a_beginning_of_four_characters_matches() {
        let check = |node: &str, name: &str, wanted: bool| {
            assert_eq!(!decided(&[node], &[agent(name, &[])], &[]).is_empty(), wanted, "{node} {name}");
        };
        check("review-code", "code-reviewer", true);
        check("Review_security", "review", true);
        check("doc", "doc-writer", true);
        check("do", "doc-writer", false);
        check("docs", "doc", false);
        check("document", "docu", true);
        check("writers", "doc-writer", true);
        check("impl", "implementation", true);
        check("test", "e2e", false);
    }

    #[test]
    fn a_beginning_is_counted_in_characters() {
        assert!(!are_akin("übe", "überall") && are_akin("über", "überall"));
    }

    #[test]
    fn s59_what_is_ambiguous_maps_nothing_and_to_decline_one_promotes_none() {
        let two = [agent("code-reviewer", &[]), agent("reviewer-deep", &[])];
        assert_eq!(decided(&["review"], &two, &[]), "");
        assert_eq!(decided(&["review"], &two, &["code-reviewer"]), "");
        assert_eq!(
            decided(&["review"], &two[..1], &[" Code-Reviewer\t"]),
            "review>code-reviewer (declined by --no-agent)"
        );
    }

    #[test]
    fn an_agent_with_more_tools_than_the_plan_gives_is_not_applied() {
        let told = |tools: &[&str]| decided(&["review"], &[agent("reviewer", tools)], &[]);
        assert_eq!(told(&["Bash(git *)", "Read"]), "review>reviewer");
        assert_eq!(
            told(&["Read", "Bash", "Write"]),
            "review>reviewer (it declares tools that the plan does not give the node: Bash, Write)"
        );
    }

    proptest! {
        #[test]
        fn a_match_is_with_one_agent_and_never_beyond_the_nodes_tools(
            ids in prop::collection::btree_set("[a-c]{1,5}(-[a-c]{1,5})?", 1..6),
            names in prop::collection::btree_set("[a-c]{1,5}([-_][a-c]{1,5})?", 0..6),
            tools in prop::collection::vec(prop::sample::select(vec!["Read", "Bash", "Bash(git *)"]), 0..3),
        ) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let agents: Vec<Agent> = names.iter().map(|name| agent(name, &tools)).collect();
            for found in matches(&graph(&ids), &agents, &[]) {
                let own = words(found.node.as_str());
                let count = agents.iter().filter(|agent| is_match(&own, &words(&agent.name))).count();
                prop_assert_eq!(count, 1);
                prop_assert_eq!(found.refused.is_none(), !tools.contains(&"Bash"));
            }
        }
    }
}
