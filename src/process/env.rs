//! The environment a child starts from: the engine's own, without the variables that would change who pays and
//! without what an outer run exported for its own nodes.
//!
//! One list for every child, whatever it is (FACTS 5.1, case I4); knows nothing of a particular runtime.

use std::ffi::{OsStr, OsString};

/// Variables that move a subscription login to metered billing. Matched whole and in any letter case.
const BILLING: [&str; 4] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "CODEX_API_KEY"];

/// What a run exports to its own command nodes; an outer run's must not be mistaken for this one's (DECISIONS 8).
const EXPORTED: [&str; 2] = ["OMG_INPUT_", "OMG_ARTIFACT_"];

/// The prefix of the variable that marks a run's children.
pub(crate) const MARK: &str = "OMG_MARK_";

/// The variable that tells a child which run it is part of.
pub const RUN: &str = "OMG_RUN";

/// The name of the variable that every child of `run` carries: it tells the processes of a run from all others,
/// and a run inside a run keeps both names.
pub fn mark_name(run: &str) -> String {
    run.bytes().fold(MARK.to_owned(), |mut name, byte| {
        for digit in [byte >> 4, byte & 15] {
            name.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
        name
    })
}

/// Variables by which a caller, a git hook above all, points git at a repository other than the directory's own.
const REPOSITORY: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_CEILING_DIRECTORIES",
];

/// Whether the variable points git at a repository.
pub(crate) fn names_a_repository(name: &OsStr) -> bool {
    REPOSITORY.iter().any(|it| name == *it)
}

/// Returns `inherited` without what no child may see.
pub fn scrub(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    inherited.into_iter().filter(|(name, _)| !is_scrubbed(name)).collect()
}

/// Whether a variable of this name moves a subscription login to metered billing.
pub fn bills(name: &OsStr) -> bool {
    BILLING.iter().any(|it| name.eq_ignore_ascii_case(it))
}

fn is_scrubbed(name: &OsStr) -> bool {
    bills(name) || EXPORTED.iter().any(|it| name.as_encoded_bytes().starts_with(it.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, kept: bool) {
        let left = scrub([(OsString::from(name), OsString::from("1"))]);
        assert_eq!(left.len(), usize::from(kept), "{name}");
    }

    #[test]
    fn i4_billing_variables_go_in_any_letter_case_and_only_whole() {
        for name in ["ANTHROPIC_API_KEY", "anthropic_api_key", "Anthropic_Auth_Token", "OPENAI_API_KEY"] {
            check(name, false);
        }
        for name in ["codex_api_KEY", "OMG_INPUT_A", "OMG_ARTIFACT_DEV"] {
            check(name, false);
        }
        for name in ["OPENAI_API_KEY_2", "ANTHROPIC_API_KEY_BACKUP", "MY_CODEX_API_KEY", "PATH", "OMG_HOME"] {
            check(name, true);
        }
        check("OMG_MARK_3132", true);
    }

    #[test]
    fn a_mark_is_a_name_a_shell_keeps() {
        assert_eq!(mark_name("2026-1.k"), "OMG_MARK_323032362d312e6b");
        assert_ne!(mark_name("a.b"), mark_name("a-b"));
    }
}
