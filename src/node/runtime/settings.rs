//! Settings files of the claude CLI that would change who pays or who is talked to (CLI-PROTOCOL 1, row 12).
//!
//! The scrub of the environment cannot reach what a settings file sets again inside the child, so a run says so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Variables that move a run off the person's own login or to another server.
const TELLING: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"];

/// One warning for each settings file in play that sets such a variable or a key helper: the person's own, and those
/// of the `directories` that prompts run in; claude looks in no directory above.
pub fn warnings(config: Option<&Path>, directories: &BTreeSet<PathBuf>) -> Vec<String> {
    let user = config.map(|dir| dir.join("settings.json"));
    let files = [".claude/settings.json", ".claude/settings.local.json"];
    let project = directories.iter().flat_map(|dir| files.map(|file| dir.join(file)));
    user.into_iter().chain(project).filter_map(|path| warning(&path)).collect()
}

fn warning(path: &Path) -> Option<String> {
    let settings: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let set = settings.get("env").and_then(Value::as_object);
    let mut found: Vec<&str> =
        TELLING.into_iter().filter(|name| set.is_some_and(|env| env.contains_key(*name))).collect();
    if settings.get("apiKeyHelper").is_some() {
        found.push("apiKeyHelper");
    }
    (!found.is_empty()).then(|| {
        format!(
            "{} sets {}: claude will use that instead of your own login, and omg cannot remove it",
            path.display(),
            found.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_change_the_payer_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("settings.json");
        fs::write(&path, r#"{"env":{"EDITOR":"vi"},"hooks":{}}"#).expect("settings");
        assert_eq!(warning(&path), None);
        fs::write(&path, r#"{"env":{"ANTHROPIC_API_KEY":"k"},"apiKeyHelper":"x"}"#).expect("settings");
        let warned = warning(&path).expect("a warning");
        assert!(warned.contains("ANTHROPIC_API_KEY, apiKeyHelper"), "{warned}");
    }

    #[test]
    fn every_directory_that_a_node_runs_in_is_looked_at() {
        let dir = tempfile::tempdir().expect("a directory");
        let project = dir.path().join("sub/.claude");
        fs::create_dir_all(&project).expect("a project");
        fs::write(project.join("settings.local.json"), r#"{"env":{"ANTHROPIC_BASE_URL":"http://x"}}"#)
            .expect("settings");
        let found = |name: &str| warnings(None, &BTreeSet::from([dir.path().join(name)])).len();
        assert_eq!((found("sub"), found("sub/below"), found("")), (1, 0, 0));
    }
}
