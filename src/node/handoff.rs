//! What a node is handed: templates filled in, and the variables of command nodes and evidence commands.
//!
//! One pass; what is put in is never read again for tokens (FACTS 2.6). Knows where artifacts are only through
//! [`Material`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::graph::export;
use crate::text::template::{self, Kind, Piece};

/// What templates of one node may name.
pub struct Material<'a> {
    /// The inputs of the run.
    pub inputs: &'a BTreeMap<String, String>,
    /// Where the artifact of a node is, if it has one yet.
    pub artifact: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The latest payload of a feedback declarer; empty before its first round.
    pub feedback: &'a dyn Fn(&str) -> String,
}

/// A token that could not be filled in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoffError {
    /// No value was given for an input.
    #[error("{field}: input {name:?} has no value; give it with --input {name}=…")]
    MissingInput {
        /// The key whose template it is.
        field: &'static str,
        /// The input.
        name: String,
    },
    /// The node has not passed, or passes without an artifact.
    #[error("{field}: node {node:?} has no artifact at this point")]
    NoArtifact {
        /// The key whose template it is.
        field: &'static str,
        /// The node named.
        node: String,
    },
    /// The artifact cannot be read.
    #[error("{field}: cannot read the artifact of {node:?}: {reason}")]
    Unreadable {
        /// The key whose template it is.
        field: &'static str,
        /// The node named.
        node: String,
        /// The system's word.
        reason: String,
    },
    /// A filter on a feedback token, which always inlines.
    #[error("{field}: {{{{ feedback.{node} }}}} takes no filter")]
    FeedbackFilter {
        /// The key whose template it is.
        field: &'static str,
        /// The node named.
        node: String,
    },
    /// The result cannot be a word of a command line.
    #[error("{field}: the text holds a NUL byte, which no program can be given")]
    Nul {
        /// The key whose template it is.
        field: &'static str,
    },
}

impl Material<'_> {
    /// Fills in the `template` of key `field`.
    ///
    /// # Errors
    /// The first token that has nothing to put in.
    pub fn fill(&self, field: &'static str, template: &str) -> Result<String, HandoffError> {
        let mut text = String::with_capacity(template.len());
        for piece in template::pieces(template) {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Token(token) => match token.kind {
                    Kind::Inputs => text.push_str(self.input(field, token.reference)?),
                    Kind::Artifacts => text.push_str(&self.artifact(field, token.reference, token.inline)?),
                    Kind::Feedback if token.inline => {
                        return Err(HandoffError::FeedbackFilter { field, node: token.reference.to_owned() });
                    }
                    Kind::Feedback => text.push_str(&(self.feedback)(token.reference)),
                },
            }
        }
        if text.contains('\0') { Err(HandoffError::Nul { field }) } else { Ok(text) }
    }

    fn input(&self, field: &'static str, name: &str) -> Result<&str, HandoffError> {
        self.inputs
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| HandoffError::MissingInput { field, name: name.to_owned() })
    }

    fn artifact(&self, field: &'static str, node: &str, inline: bool) -> Result<String, HandoffError> {
        let path =
            (self.artifact)(node).ok_or_else(|| HandoffError::NoArtifact { field, node: node.to_owned() })?;
        if !inline {
            return Ok(path.to_string_lossy().into_owned());
        }
        let bytes = fs::read(&path).map_err(|error| HandoffError::Unreadable {
            field,
            node: node.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|raw| String::from_utf8_lossy(raw.as_bytes()).into_owned()))
    }

    /// The variables of a command or evidence command of `node` (DECISIONS 8): every input, and the artifacts of
    /// `parents`. A value over the system's bound is left out.
    pub fn exported<'n>(
        &self,
        node: &str,
        parents: impl Iterator<Item = &'n str>,
    ) -> Vec<(OsString, OsString)> {
        let inputs = self.inputs.iter().filter(|(_, value)| export::fits(value));
        let mut variables: Vec<(OsString, OsString)> =
            inputs.map(|(name, value)| (export::input_variable(name).into(), value.into())).collect();
        for parent in parents {
            let Some(path) = (self.artifact)(parent) else { continue };
            let names = export::artifact_variables(node, parent);
            variables.extend(names.map(|name| (name.into(), path.clone().into_os_string())));
        }
        variables
    }
}

/// Resolves a node's directory: `declared` against the run's own.
pub fn directory(base: &Path, declared: Option<&str>) -> PathBuf {
    match declared {
        Some(text) if !text.is_empty() => base.join(text),
        _ => base.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Result<String, HandoffError> {
        let inputs = BTreeMap::from([
            ("who".to_owned(), "Ann & {{ inputs.where }}".to_owned()),
            ("a.b".to_owned(), "dotted".to_owned()),
            ("where".to_owned(), "here".to_owned()),
        ]);
        let artifact = |id: &str| (id == "gather").then(|| PathBuf::from("/runs/1/gather.out"));
        let feedback = |id: &str| if id == "qa" { "fix it".to_owned() } else { String::new() };
        Material { inputs: &inputs, artifact: &artifact, feedback: &feedback }.fill("prompt", template)
    }

    #[test]
    fn c10_what_is_put_in_is_never_read_again() {
        assert_eq!(fill("Hi {{ inputs.who }}!"), Ok("Hi Ann & {{ inputs.where }}!".to_owned()));
    }

    #[test]
    fn tokens_of_every_kind_are_filled_in() {
        assert_eq!(fill("{{inputs.a.b}}/{{ inputs.where | inline }}"), Ok("dotted/here".to_owned()));
        assert_eq!(fill("see {{ artifacts.gather }}"), Ok("see /runs/1/gather.out".to_owned()));
        assert_eq!(fill("{{ feedback.qa }}|{{ feedback.other }}"), Ok("fix it|".to_owned()));
        assert_eq!(
            fill("{{ Inputs.who }} {{ artifacts.x | inlin }}"),
            Ok("{{ Inputs.who }} {{ artifacts.x | inlin }}".to_owned())
        );
    }

    #[test]
    fn a_token_with_nothing_to_put_in_names_itself() {
        let missing = HandoffError::MissingInput { field: "prompt", name: "no".into() };
        assert_eq!(fill("{{ inputs.no }}"), Err(missing));
        let none = HandoffError::NoArtifact { field: "prompt", node: "later".into() };
        assert_eq!(fill("{{ artifacts.later }}"), Err(none));
        let filter = HandoffError::FeedbackFilter { field: "prompt", node: "qa".into() };
        assert_eq!(fill("{{ feedback.qa | inline }}"), Err(filter));
    }
}
