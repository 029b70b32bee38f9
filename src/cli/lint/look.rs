//! One file, looked at: what is wrong with it, or what should be known about it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::files::File;
use crate::cli::context::Context;
use crate::cli::services;
use crate::leg::preflight;
use crate::lint::Advice;
use crate::load::{self, LoadError, Loaded, Problems, Report, Splice, Tree};
use crate::node::runtime::RuntimeKind;

/// A file that was looked at.
pub(super) struct Looked {
    /// As it was named or found.
    pub(super) path: PathBuf,
    /// Whether it can be run.
    pub(super) state: State,
    /// What sweeps say, each with its place.
    pub(super) advice: Vec<Advice>,
    /// The fragments that went into it.
    pub(super) splices: Vec<Splice>,
    /// What the runtime says of this machine.
    pub(super) notes: Vec<String>,
    /// What every run on this runtime is told.
    pub(super) disclosures: Vec<String>,
}

/// Whether a graph can be run.
pub(super) enum State {
    /// It can.
    Valid,
    /// It has problems.
    Invalid(Problems),
    /// The runtime does not take it.
    Refused(Vec<String>),
    /// It could not be read.
    Unreadable(LoadError),
}

/// Looks at a file.
pub(super) fn look(File { path, read }: File, runtime: RuntimeKind) -> Looked {
    match read {
        Ok(source) => match load::load_with_tree(&source) {
            Ok((loaded, tree)) => sound(path, loaded, &tree, runtime),
            Err(problems) => {
                let advice = problems.advice().to_vec();
                Looked { advice, ..unsound(path, State::Invalid(problems)) }
            }
        },
        Err(error) => unsound(path, State::Unreadable(error)),
    }
}

fn unsound(path: PathBuf, state: State) -> Looked {
    Looked { path, state, advice: vec![], splices: vec![], notes: vec![], disclosures: vec![] }
}

fn sound(path: PathBuf, loaded: Loaded, tree: &Tree<'_>, runtime: RuntimeKind) -> Looked {
    let found = services::for_preflight(runtime).preflight(&loaded.graph);
    let settings = preflight::settings(
        runtime,
        &loaded.graph,
        &BTreeMap::new(),
        &Context::base(),
        services::whereabouts(runtime),
    );
    let mut advice = loaded.advice;
    let further = found.advice.into_iter().chain(loaded.fragment_advice);
    advice.extend(further.filter(|advice| !loaded.allowed.covers(advice)));
    tree.locate(&loaded.raw, &mut advice);
    let state = if found.refusals.is_empty() { State::Valid } else { State::Refused(found.refusals) };
    let mut notes = found.warnings;
    notes.extend(settings.iter().map(|finding| format!("{finding}; {}", finding.remedy())));
    let (disclosures, splices) = (found.disclosures, loaded.splices);
    Looked { path, state, advice, splices, notes, disclosures }
}

impl Looked {
    /// Whether the graph can be run.
    pub(super) fn is_valid(&self) -> bool {
        matches!(self.state, State::Valid)
    }

    /// What is wrong, as values; what concerns the whole file stands at its beginning.
    pub(super) fn reports(&self) -> Vec<Report> {
        let at = |line, column, message| {
            let file = self.path.display().to_string();
            Report { file, line, column, node: None, message, hint: None, cited_by: Vec::new() }
        };
        match &self.state {
            State::Valid => Vec::new(),
            State::Invalid(problems) => problems.reports(),
            State::Refused(reasons) => reasons.iter().map(|reason| at(1, 1, reason.clone())).collect(),
            State::Unreadable(error) => {
                let (line, column) = match error {
                    LoadError::Encoding { line, column, .. } => (*line, *column),
                    _ => (1, 1),
                };
                vec![at(line, column, error.to_string())]
            }
        }
    }
}
