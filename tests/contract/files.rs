//! The promises of the other files, and of all files' modes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::snapshot::{is_gate, nodes};
use super::{Faults, text};

const KEPT_BYTES_MAX: u64 = 256 * 1024;

/// Checks the files beside snapshot and stream. `settled` says that no leg is open.
pub(super) fn check(run: &Path, snapshot: Option<&Value>, settled: bool, faults: &mut Faults) {
    check_lock(run, faults);
    check_modes(run, faults);
    let Some(snapshot) = snapshot.filter(|_| settled) else { return };
    for (id, record) in nodes(snapshot) {
        match text(record, "verdict") {
            "PASS" => check_passed(run, id, record, is_gate(snapshot, id), faults),
            "FAIL" => check_failed(run, id, record, faults),
            _ => {}
        }
    }
    let stems: Vec<String> = nodes(snapshot).map(|(id, _)| id.replace('/', "~")).collect();
    check_strays(run, "", &stems, faults);
    check_strays(run, "failed", &stems, faults);
}

fn check_lock(run: &Path, faults: &mut Faults) {
    let lock = fs::read_to_string(run.join("resume.lock")).unwrap_or_default();
    faults.unless(lock.starts_with("oh-my-graph-lock 1\n"), || "resume.lock: the marker is missing".into());
}

fn check_passed(run: &Path, id: &str, record: &Value, is_gate: bool, faults: &mut Faults) {
    check_artifact(run, id, record, !is_gate, faults);
    let failed = run.join("failed").join(file_name(id));
    faults.unless(!failed.exists(), || format!("{id}: passed, and its failed reply is still there"));
}

fn check_failed(run: &Path, id: &str, record: &Value, faults: &mut Faults) {
    let has_artifact = !text(record, "artifact_path").is_empty();
    check_artifact(run, id, record, has_artifact, faults);
    let is_over_budget = text(record, "cause") == "budget_exceeded" && record["judged"].is_null();
    faults.unless(!has_artifact || is_over_budget, || {
        format!("{id}: failed within its budget, yet has an artifact")
    });
    if let Ok(reply) = fs::read(run.join("failed").join(file_name(id))) {
        let is_bounded = reply.len() as u64 <= KEPT_BYTES_MAX;
        faults.unless(is_bounded, || format!("{id}: its failed reply has {} bytes", reply.len()));
        faults.unless(!reply.trim_ascii().is_empty(), || format!("{id}: its failed reply is blank"));
    }
}

fn check_artifact(run: &Path, id: &str, record: &Value, wanted: bool, faults: &mut Faults) {
    let artifact = run.join(file_name(id));
    let about = fs::symlink_metadata(&artifact);
    let is_there = about.is_ok_and(|about| about.is_file());
    faults.unless(is_there == wanted, || format!("{id}: artifact there: {is_there}, wanted: {wanted}"));
    let named = text(record, "artifact_path");
    let is_named = if wanted { Path::new(named) == artifact } else { named.is_empty() };
    faults.unless(is_named, || format!("{id}: artifact_path is \"{named}\""));
}

fn file_name(id: &str) -> String {
    format!("{}.out", id.replace('/', "~"))
}

/// Every `.out` belongs to a node that settled, and no temporary file outlives its leg.
fn check_strays(run: &Path, below: &str, stems: &[String], faults: &mut Faults) {
    for entry in fs::read_dir(run.join(below)).into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        match name.strip_suffix(".out") {
            Some(stem) => faults
                .unless(stems.iter().any(|known| known == stem), || format!("{below}/{name}: of no node")),
            None => faults.unless(!name.contains(".tmp-"), || format!("{below}/{name}: left over")),
        }
    }
}

/// Worktrees hold the user's checkouts, at the user's umask.
fn check_modes(path: &Path, faults: &mut Faults) {
    let Ok(about) = fs::symlink_metadata(path) else { return };
    let wanted = if about.is_dir() { 0o700 } else { 0o600 };
    let mode = about.permissions().mode() & 0o777;
    faults.unless(about.is_symlink() || mode == wanted, || format!("{}: mode {mode:o}", path.display()));
    if about.is_dir() && !path.ends_with("worktrees") {
        for entry in fs::read_dir(path).into_iter().flatten() {
            check_modes(&entry.unwrap().path(), faults);
        }
    }
}
