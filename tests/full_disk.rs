//! A feed on a disk that fills up in the middle of a write. A binary of its own with one test, because the limit that
//! stands for the disk belongs to the whole process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use omg::clock::SystemClock;
use omg::record::{Event, EventKind, Feed, FeedError, RunDir, RunId};
use rustix::process::{Resource, getrlimit, setrlimit};

fn started(node: &str) -> Event {
    Event::of_node(EventKind::NodeStarted, node)
}

fn nodes(text: &str) -> Vec<String> {
    text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().node_id).collect()
}

/// The limit's signal would end the process; what is wanted is the error that comes with it.
fn limit_file_size(bytes: Option<u64>) {
    let mut limit = getrlimit(Resource::Fsize);
    limit.current = bytes;
    setrlimit(Resource::Fsize, limit).unwrap();
}

#[test]
fn a_torn_line_is_taken_back_and_whole_ones_stay() {
    const SIGXFSZ: i32 = 25;
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).unwrap();
    let home = tempfile::tempdir().unwrap();
    let run = RunDir::new(home.path().to_path_buf());
    let feed = Feed::open(&run, &RunId::parse("1-a").unwrap(), Arc::new(SystemClock)).unwrap();
    feed.append(&[started("first")]).unwrap();
    let line = fs::metadata(run.feed()).unwrap().len();

    limit_file_size(Some(line * 5 / 2));
    let refused = feed.append(&[started("whole"), started("torn"), started("never")]);
    limit_file_size(None);

    assert!(matches!(refused, Err(FeedError::Write { .. })));
    let text = fs::read_to_string(run.feed()).unwrap();
    assert!(text.ends_with("}\n"), "{text}");
    assert_eq!(nodes(&text), ["first", "whole"]);
    feed.append(&[started("later")]).unwrap();
    assert_eq!(nodes(&fs::read_to_string(run.feed()).unwrap()), ["first", "whole", "later"]);

    let length = fs::metadata(run.feed()).unwrap().len();
    let passed = |node: &str| {
        let mut event = Event::of_node(EventKind::NodePassed, node);
        event.cost_usd = Some(0.01);
        event
    };
    limit_file_size(Some(length + line * 3 / 2));
    assert!(feed.settle(&[passed("fits"), passed("owed")], &[started("no start")]).is_err());
    assert!(feed.lacks_charges());
    assert!(feed.settle(&[passed("owed too")], &[]).is_err());
    limit_file_size(None);
    let length = fs::metadata(run.feed()).unwrap().len();
    limit_file_size(Some(length + line * 7 / 2));
    assert!(feed.settle(&[passed("end")], &[started("taken back"), started("torn")]).is_err());
    limit_file_size(None);
    feed.append(&[started("last")]).unwrap();
    assert!(!feed.lacks_charges());
    let text = fs::read_to_string(run.feed()).unwrap();
    assert_eq!(nodes(&text)[3..], ["fits", "owed", "owed too", "end", "last"], "{text}");
}
