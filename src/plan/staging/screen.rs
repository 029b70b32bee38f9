//! The part of the plan screen that says which agents and skills nodes get, and what that means (FACTS 8.14).
//!
//! Lines without colour, for whoever prints the screen. Names, descriptions and paths come from files, so they are made
//! harmless first.

use std::path::Path;

use super::skills::{Corpus, Skill, TOKENS_EACH};
use super::{Agent, Staging};
use crate::graph::NodeId;
use crate::text::hex;
use crate::text::sanitize::{self, one_line};
use crate::text::suggest;

/// How much of a description is shown.
const DESCRIPTION_CHARS_MAX: usize = 100;
/// How much of a hash is shown; all of it is in the record.
const HASH_CHARS: usize = 12;

impl Staging {
    /// The lines, in their order.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.refusals();
        lines.extend(self.mapping());
        lines.extend(self.skills());
        lines.push(
            "no agent and no skill of a project or a plugin is read: a repository cannot supply either"
                .to_owned(),
        );
        lines
    }

    /// What the paragraph on isolation says besides when nodes run as agents.
    pub fn isolation_note(&self) -> Option<&'static str> {
        self.applied().next().map(|_| {
            "That holds for the nodes that run as an agent of yours as well: of your files they get that agent's \
             definition and nothing else."
        })
    }

    fn refusals(&self) -> Vec<String> {
        let refused = self.matches.iter().filter_map(|found| {
            let why = found.refused.as_deref()?;
            let name = &self.agents[found.agent].name;
            Some(format!("! agent {:?} not applied to {}: {}", one_line(name), found.node, one_line(why)))
        });
        let strangers = self.strangers.iter().map(|name| {
            let known = self.agents.iter().map(|agent| agent.name.as_str());
            let hint = suggest::hint(name.trim(), known).map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("! --no-agent {:?}: no agent of yours is called so{}", one_line(name), one_line(&hint))
        });
        strangers.chain(refused).collect()
    }

    fn mapping(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.applied().map(|(node, agent)| applied(node, agent)).collect();
        if lines.is_empty() {
            return lines;
        }
        lines.insert(0, "agents of your own, matched by name:".to_owned());
        lines.extend(words(&[
            "  The agent's text becomes the node's system prompt. Its tools are within what the plan gives the node, and",
            "  the plan's ceiling still binds. The node cannot use skills, and reads no settings, CLAUDE.md or hooks of yours.",
            "  Every spawn gets a copy of its own of what the file says now; a later leg (omg resume) maps nothing.",
            "  --no-agent NAME keeps one agent out, --no-agent-mapping all of them.",
        ]));
        lines
    }

    fn skills(&self) -> Vec<String> {
        let mut lines = self.corpus.as_ref().map(scanned).unwrap_or_default();
        let (Ok(nodes), Some(corpus)) = (&self.activated, &self.corpus) else {
            let why = self.activated.as_ref().err().map_or("nothing was scanned", String::as_str);
            lines.push(format!("skills are OFF: {why}"));
            if self.applied().next().is_some() && self.corpus.is_some() {
                lines.push(
                    "  --no-agent-mapping would give them to the nodes instead of an agent.".to_owned(),
                );
            }
            return lines;
        };
        let without: Vec<String> = self.applied().map(|(node, _)| node.to_string()).collect();
        lines.push(format!(
            "skills are ENABLED on {} of {} nodes: {}; about {} tokens more in each of their prompts, retries and rounds included",
            nodes.len(),
            nodes.len() + without.len(),
            nodes.iter().map(NodeId::as_str).collect::<Vec<_>>().join(", "),
            TOKENS_EACH * corpus.skills.len(),
        ));
        lines.extend(corpus.skills.iter().map(skill));
        if !without.is_empty() {
            lines.push(format!(
                "  not on {}, which cannot use any since an agent runs there (--no-agent-mapping would change that)",
                without.join(", ")
            ));
        }
        lines.extend(words(&[
            "  Whether a node uses one, and which, its model decides while it runs; no screen can say so before. In one",
            "  measurement 8 of 9 nodes that were told of their skills used one; that their work was better was not shown.",
            "  A skill is instructions and grants nothing: the ceiling is the same with it, but for the Skill tool itself.",
            "  Every spawn gets a copy of its own of what the files say now; a later leg (omg resume) has none.",
            "  --no-skill-activation turns them off.",
        ]));
        lines
    }
}

fn applied(node: &NodeId, agent: &Agent) -> String {
    let bytes = agent.bytes.as_deref().unwrap_or_default();
    format!(
        "  {node} runs as {}: {}, {}, sha256 {}",
        one_line(&agent.name),
        sanitize::path(&agent.path),
        kib(bytes.len()),
        &hex::sha256(bytes)[..HASH_CHARS],
    )
}

fn scanned(corpus: &Corpus) -> Vec<String> {
    let unusable = match corpus.unusable.len() {
        0 => String::new(),
        count => format!(", and {count} that cannot be used"),
    };
    let mut lines = vec![format!("skills of your own: {}{unusable}", corpus.skills.len())];
    lines.extend(corpus.shadowed.iter().map(|(name, dir)| {
        format!("  ! skill {:?} in {} is hidden by a later one of that name", one_line(name), shown(dir))
    }));
    lines.extend(corpus.unusable.iter().map(|(dir, why)| format!("  ! {}: {why}", shown(dir))));
    lines
}

fn skill(skill: &Skill) -> String {
    let files = match (skill.files, skill.left_out) {
        (1, 0) => "1 file".to_owned(),
        (files, 0) => format!("{files} files"),
        (files, left_out) => format!("{files} files and {left_out} more that are not staged"),
    };
    let description = one_line(&skill.description);
    let cut = match description.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &description[..at]),
        None => description.into_owned(),
    };
    let reserve = match skill.reserve {
        Some(key) => format!(
            " ({key} in its head: nobody is there to agree, so that claude may not let a node use it)"
        ),
        None => String::new(),
    };
    format!(
        "  {}: {}, sha256 {}, {files}: {cut}{reserve}",
        one_line(&skill.name),
        kib(skill.bytes),
        &skill.sha256[..HASH_CHARS],
    )
}

fn shown(path: &Path) -> String {
    sanitize::path(path)
}

#[expect(clippy::cast_precision_loss, reason = "a size that is rounded to a tenth")]
fn kib(bytes: usize) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

fn words(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
