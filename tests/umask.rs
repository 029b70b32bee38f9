//! Everything a run leaves is its owner's alone under any umask (case D13). A binary of its own with one test, because
//! a umask belongs to the whole process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use omg::clock::SystemClock;
use omg::graph::NodeId;
use omg::record::attempts::{self, AttemptId, Said};
use omg::record::observe::Silent;
use omg::record::{
    Durability, Event, EventKind, Feed, Home, Record, RunDir, Snapshot, SnapshotWriter, artifact, lock, mint,
};
use rustix::fs::Mode;

fn leave_everything(home: &Home) -> RunDir {
    let (id, run) = mint::new_run(home, &SystemClock).unwrap();
    let _lock = lock::acquire(&run).unwrap();
    let node = NodeId::parse("lane/a").unwrap();
    let feed = Feed::open(&run, &id, Arc::new(SystemClock)).unwrap();
    feed.append(&[Event::new(EventKind::RunStarted)]).unwrap();
    let snapshot: Snapshot = serde_json::from_str(r#"{"schema":3,"graph":{"nodes":[]}}"#).unwrap();
    let writer = SnapshotWriter::start(&run, snapshot, Durability::Strict, Arc::new(Silent)).unwrap();
    writer.record(&node, &Record::default());
    let mut pending = artifact::Pending::create(run.path()).unwrap();
    pending.write_all(b"spooled").unwrap();
    pending.commit(&run.artifact(&node)).unwrap();
    artifact::keep_failed(&run, &node, "no").unwrap();
    artifact::keep_feedback(&run, &node, "again").unwrap();
    let first = AttemptId { leg: 1, round: 0, attempt: 1 };
    attempts::Folder::open(&run, &node).unwrap().keep(first, Said::Prompt, b"well?").unwrap();
    run
}

fn check_modes(path: &Path, found: &mut usize) {
    let about = fs::symlink_metadata(path).unwrap();
    let wanted = if about.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(about.permissions().mode() & 0o777, wanted, "{}", path.display());
    *found += 1;
    if about.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            check_modes(&entry.unwrap().path(), found);
        }
    }
}

#[test]
fn d13_no_umask_opens_or_closes_a_file() {
    let base = tempfile::tempdir().unwrap();
    for umask in [0o000, 0o022, 0o077, 0o777] {
        let home = Home::new(&base.path().join(format!("{umask:o}/deep")));
        let before = rustix::process::umask(Mode::from_raw_mode(umask));
        leave_everything(&home);
        rustix::process::umask(before);
        let mut found = 0;
        check_modes(home.path().parent().unwrap(), &mut found);
        assert_eq!(found, 15, "umask {umask:o}");
    }
}
