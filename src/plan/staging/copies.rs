//! What each spawn of the leg that planned is given: a private copy of what was planned, made for it alone
//! (docs/adr/0009, which closes what ADR 0022 §7 of the design leaves open).

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::plugin::Plugin;
use super::skills::Skill;
use super::{Agent, Staging};
use crate::graph::NodeId;
use crate::node::Invocation;
use crate::node::provision::{Held, Provision, Provisions};
use crate::process::Cancel;
use crate::record::artifact::{self, ArtifactError};
use crate::record::staged::{Copy, Shelf};
use crate::record::{Home, RunDir, RunId};
use crate::text::hex;

/// Why nothing could be staged for a run. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The record of what is staged could not be written.
    #[error(transparent)]
    Record(#[from] ArtifactError),
    /// The directory of the copies could not be made.
    #[error("{}: cannot make room for the private copies of agents and skills: {source}", path.display())]
    Shelf {
        /// Where.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// The copies of a leg.
#[derive(Debug)]
pub struct Copies {
    shelf: Arc<Shelf>,
    given: BTreeMap<NodeId, (What, Plugin)>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Agent,
    Skills,
}

/// A copy that is lent to a spawn.
struct Lent {
    what: What,
    copy: Copy,
}

impl Staging {
    /// Records what is staged for `run`, whose lock the caller holds, and makes ready to copy it; `None` when nothing
    /// is.
    ///
    /// # Errors
    /// When the system refused.
    pub fn bind(&self, home: &Home, run: &RunId, dir: &RunDir) -> Result<Option<Arc<Copies>>, BindError> {
        let mut given = BTreeMap::new();
        if let Some(plugin) = &self.agents_plugin {
            let nodes: Vec<&NodeId> = self.applied().map(|(node, _)| node).collect();
            artifact::persist(&dir.agents_manifest(), &self.agents_record(plugin, &nodes))?;
            given.extend(nodes.into_iter().map(|node| (node.clone(), (What::Agent, plugin.clone()))));
        }
        if let (Some(plugin), Some(corpus)) = (&self.skills_plugin, &self.corpus) {
            let nodes: Vec<&NodeId> = self.activated().iter().collect();
            artifact::persist(&dir.skills_manifest(), &skills_record(plugin, &corpus.skills, &nodes))?;
            given.extend(nodes.into_iter().map(|node| (node.clone(), (What::Skills, plugin.clone()))));
        }
        if given.is_empty() {
            return Ok(None);
        }
        let shelf =
            Shelf::open(home, run).map_err(|source| BindError::Shelf { path: home.staged(), source })?;
        Ok(Some(Arc::new(Copies { shelf, given })))
    }

    fn agents_record(&self, plugin: &Plugin, nodes: &[&NodeId]) -> Vec<u8> {
        let mut agents: Vec<&Agent> = self.applied().map(|(_, agent)| agent).collect();
        agents.sort_by(|a, b| a.path.cmp(&b.path));
        agents.dedup_by(|a, b| a.path == b.path);
        let told = agents.into_iter().map(|agent| {
            let bytes = agent.bytes.as_deref().unwrap_or_default();
            json!({
                "Name": agent.name,
                "SourcePath": agent.path.to_string_lossy(),
                "Bytes": bytes.len(),
                "SHA256": hex::sha256(bytes),
            })
        });
        plugin.manifest("agents", told.collect(), nodes)
    }
}

fn skills_record(plugin: &Plugin, skills: &[Skill], nodes: &[&NodeId]) -> Vec<u8> {
    let told = skills.iter().map(|skill| {
        json!({
            "Name": skill.name,
            "Description": skill.description,
            "SourceDir": skill.dir.to_string_lossy(),
            "Bytes": skill.bytes,
            "SHA256": skill.sha256,
            "Files": skill.files,
        })
    });
    plugin.manifest("skills", told.collect(), nodes)
}

impl Provision for Copies {
    fn before_spawn(&self, invocation: &Invocation, cancel: &Cancel) -> Result<Provisions, String> {
        let Some((what, plugin)) = self.given.get(&invocation.node) else { return Ok(Provisions::default()) };
        let copy = self
            .shelf
            .copy(&plugin.files, &|| cancel.is_fired())
            .map_err(|error| format!("its private copy of {} cannot be made: {error}", what.as_str()))?;
        Ok(Provisions { plugin_dirs: vec![copy.path()], held: Some(Box::new(Lent { what: *what, copy })) })
    }
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            What::Agent => "the agent",
            What::Skills => "the skills",
        }
    }
}

impl Held for Lent {
    fn altered(&self) -> Option<String> {
        let how = self.copy.altered()?;
        Some(format!("its private copy of {} {how}", self.what.as_str()))
    }
}
