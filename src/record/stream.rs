//! Reads `events.jsonl`: whole, or as it grows (RUN-FEED "the stream", FACTS 6.4).
//!
//! Bytes are read piece by piece, so a feed of any size costs one line of memory. A line that does not decode is
//! handed on as damage, never as an error; a line of a newer schema stops a one-shot [`walk`] and is reported to
//! a follower. Knows nothing of what the events mean together; that is `legs`. Writes nothing.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::Deserialize;

use crate::record::Event;
use crate::record::event::{EventKind, LINE_BYTES_MAX, SCHEMA};

/// How much is read at a time, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Why a feed could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The file is there, and reading it failed.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The feed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is longer than any writer of this format makes one.
    #[error(
        "{}: the line at byte {offset} is longer than {LINE_BYTES_MAX} bytes; this is no run feed, or it is damaged",
        path.display()
    )]
    LineTooLong {
        /// The feed.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
    },
    /// A newer program wrote the feed.
    #[error(
        "{}: written by a newer omg (event schema {schema}, this one reads up to {SCHEMA})",
        path.display()
    )]
    Newer {
        /// The feed.
        path: PathBuf,
        /// The number that it carries.
        schema: u32,
    },
}

/// One line of a feed, newline excluded.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The bytes as they lie on disk.
    pub raw: &'a [u8],
    /// Where the line begins in the file.
    pub offset: u64,
}

impl Line<'_> {
    /// What the line says.
    pub fn word(&self) -> Word {
        decode(self.raw)
    }
}

/// What a line says.
#[derive(Debug)]
pub enum Word {
    /// A transition. Its kind may be one that this program does not know.
    Event(Box<Event>),
    /// A line of a newer schema, with what could be understood of it.
    Newer(u32, Option<Box<Event>>),
    /// A line that does not decode.
    Damaged,
}

/// What a walk met besides events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Lines that did not decode.
    pub damaged: u64,
}

/// Hands every event of the feed at `path` to `each`, in file order. A missing feed has none.
pub fn walk(path: &Path, each: impl FnMut(Event)) -> Result<Walked, StreamError> {
    walk_some(path, |_| true, each)
}

/// The same with only those events that a run's legs and its cost are told by.
pub fn walk_legs(path: &Path, each: impl FnMut(Event)) -> Result<(), StreamError> {
    walk_some(path, |raw| !is_of_no_leg(raw), each).map(drop)
}

fn walk_some(
    path: &Path,
    wanted: impl Fn(&[u8]) -> bool,
    mut each: impl FnMut(Event),
) -> Result<Walked, StreamError> {
    let mut walked = Walked::default();
    let mut newer = None;
    let mut follow = Follow::new(path, 0);
    let mut take = |line: Line<'_>| {
        if !wanted(line.raw) {
            return;
        }
        match line.word() {
            Word::Event(event) => each(*event),
            Word::Newer(schema, _) => newer = newer.or(Some(schema)),
            Word::Damaged => walked.damaged += 1,
        }
    };
    follow.poll(&mut take)?;
    follow.rest(&mut take);
    match newer {
        Some(schema) => Err(StreamError::Newer { path: path.to_path_buf(), schema }),
        None => Ok(walked),
    }
}

/// Whether a line, without being decoded, is seen to be of this schema and to tell neither a leg nor a charge. A name
/// that is written with escapes is not seen, so a line with any is not judged.
fn is_of_no_leg(raw: &[u8]) -> bool {
    const TELLING: [&[u8]; 4] = [b"\"event\":\"run_", b"\"cost_", b"\"usage\"", b"\"held\""];
    raw.starts_with(b"{\"schema\":3,")
        && memchr::memchr(b'\\', raw).is_none()
        && !TELLING.iter().any(|name| memmem::find(raw, name).is_some())
}

/// A reader that remembers how far it came. A last line without its newline is held back until it is whole.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    file: Option<File>,
    /// What was read and not handed on yet.
    held: Vec<u8>,
    /// How much of `held` is known to hold no newline.
    scanned: usize,
    /// Where `held` begins in the file.
    offset: u64,
}

impl Follow {
    /// A reader of the feed at `path` that begins at byte `offset`. The file need not be there yet.
    pub fn new(path: &Path, offset: u64) -> Self {
        Follow { path: path.to_path_buf(), file: None, held: Vec::new(), scanned: 0, offset }
    }

    /// Hands on every whole line that was appended since the last call, and says how many there were.
    pub fn poll(&mut self, each: &mut dyn FnMut(Line<'_>)) -> Result<usize, StreamError> {
        let mut handed = 0;
        if !self.open()? {
            return Ok(handed);
        }
        loop {
            let more = self.fill()?;
            handed += self.hand_on(each);
            if self.held.len() > LINE_BYTES_MAX {
                return Err(StreamError::LineTooLong { path: self.path.clone(), offset: self.offset });
            }
            if !more {
                return Ok(handed);
            }
        }
    }

    /// Hands on what is left without a newline. Only a reader that will not come back may treat it as a line.
    fn rest(&mut self, each: &mut dyn FnMut(Line<'_>)) {
        if !self.held.is_empty() {
            each(Line { raw: &self.held, offset: self.offset });
        }
    }

    fn open(&mut self) -> Result<bool, StreamError> {
        if self.file.as_ref().is_some_and(|file| !self.is_replaced(file)) {
            return Ok(true);
        }
        self.file = open_regular(&self.path).map_err(|source| self.unreadable(source))?;
        let read = self.offset + self.held.len() as u64;
        if let Some(file) = &mut self.file
            && read > 0
        {
            let at = SeekFrom::Start(read);
            file.seek(at).map_err(|source| StreamError::Unreadable { path: self.path.clone(), source })?;
        }
        Ok(self.file.is_some())
    }

    /// Whether the feed is another file by now: its writer puts it back, with all it held, when somebody took it away.
    fn is_replaced(&self, file: &File) -> bool {
        let identity = |found: Metadata| (found.dev(), found.ino());
        let there = std::fs::metadata(&self.path).ok().filter(Metadata::is_file).map(identity);
        there.is_some() && there != file.metadata().ok().map(identity)
    }

    /// Reads one more piece; `false` at the end of what there is.
    fn fill(&mut self) -> Result<bool, StreamError> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let taken = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.held);
        taken.map(|bytes| bytes == CHUNK_BYTES).map_err(|source| self.unreadable(source))
    }

    fn hand_on(&mut self, each: &mut dyn FnMut(Line<'_>)) -> usize {
        let (mut start, mut handed) = (0, 0);
        while let Some(length) = memchr::memchr(b'\n', &self.held[self.scanned..]) {
            let end = self.scanned + length;
            let raw = &self.held[start..end];
            if !raw.is_empty() && raw.len() <= LINE_BYTES_MAX {
                each(Line { raw, offset: self.offset + start as u64 });
                handed += 1;
            } else if raw.len() > LINE_BYTES_MAX {
                // The caller's own look at the length of what is held turns this into the error.
                self.scanned = self.held.len();
                break;
            }
            start = end + 1;
            self.scanned = start;
        }
        self.held.drain(..start);
        self.offset += start as u64;
        self.scanned = self.held.len();
        handed
    }

    fn unreadable(&self, source: io::Error) -> StreamError {
        StreamError::Unreadable { path: self.path.clone(), source }
    }
}

/// How long the feed at `path` is now, in bytes: where a follower of the next leg begins.
pub fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Opens a regular file; `None` when nothing is there. A pipe or a device in its place would hold a reader up.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => File::open(path).map(Some),
        Ok(_) => Err(io::Error::other("not a regular file")),
        Err(error) if is_absent(path, &error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether `error` means that nothing is at `path`; a dangling link is something.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err()
}

/// The part of a line that is read when the rest of it does not decode.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u32,
}

/// Reads one line, newline excluded.
pub fn decode(raw: &[u8]) -> Word {
    match serde_json::from_slice::<Event>(raw) {
        Ok(event) if event.schema > SCHEMA => Word::Newer(event.schema, Some(Box::new(event))),
        Ok(event) if event.event == EventKind::Missing => Word::Damaged,
        Ok(event) => Word::Event(Box::new(event)),
        Err(_) => match serde_json::from_slice::<SchemaOnly>(raw) {
            Ok(SchemaOnly { schema }) if schema > SCHEMA => Word::Newer(schema, None),
            _ => Word::Damaged,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const STARTED: &str = r#"{"schema":3,"ts":"t","run_id":"1","event":"run_started"}"#;

    fn feed(text: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        file
    }

    #[test]
    fn a_walk_for_the_legs_leaves_out_only_what_tells_nothing() {
        let left_out = r#"{"schema":3,"ts":"t","run_id":"1","event":"node_started","node_id":"a"}"#;
        for (line, wanted) in [
            (left_out, false),
            (STARTED, true),
            (r#"{"schema":3,"event":"node_passed","node_id":"a","cost_usd":0.1}"#, true),
            (r#"{"schema":3,"event":"node_failed","node_id":"a","cost_unknown":true}"#, true),
            (r#"{"schema":3,"event":"node_passed","node_id":"a","usage":{"input_tokens":1}}"#, true),
            (r#"{"schema":3,"event":"run\u005fstarted"}"#, true),
            (r#"{"event":"node_started","schema":3}"#, true),
        ] {
            let file = feed([line, "\n"].concat().as_bytes());
            let mut seen = 0;
            walk_legs(file.path(), |_| seen += 1).expect("a feed");
            assert_eq!(seen > 0, wanted, "{line}");
        }
        let newer = feed(left_out.replace(":3", ":31").as_bytes());
        assert!(matches!(walk_legs(newer.path(), |_| ()), Err(StreamError::Newer { schema: 31, .. })));
    }

    fn kinds(file: &Path) -> Result<(Vec<String>, u64), String> {
        let mut seen = Vec::new();
        let walked = walk(file, |event| seen.push(event.event.as_str().to_owned()));
        walked.map(|walked| (seen, walked.damaged)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_does_not_decode_is_counted_and_skipped() {
        let text =
            format!("{STARTED}\n{{\"schema\":3,\n\n[1]\n\u{fffd}\n{{}}\n{STARTED}\n{{\"schema\":3,\"eve");
        let file = feed(text.as_bytes());
        assert_eq!(kinds(file.path()), Ok((vec!["run_started".into(), "run_started".into()], 5)));
    }

    #[test]
    fn d9_unknown_kinds_and_fields_are_read_and_an_older_schema_too() {
        let file = feed(b"{\"schema\":2,\"event\":\"tea_time\",\"sugar\":{\"lumps\":2}}\n");
        assert_eq!(kinds(file.path()), Ok((vec!["tea_time".into()], 0)));
    }

    #[test]
    fn d9_a_newer_schema_stops_a_one_shot_reader_even_when_it_retyped_a_field() {
        for line in ["{\"schema\":4,\"event\":\"x\"}", "{\"schema\":4,\"event\":[7]}"] {
            let file = feed(format!("{STARTED}\n{line}\n").as_bytes());
            let error = kinds(file.path()).expect_err("newer");
            assert!(error.contains("schema 4") && error.contains("newer"), "{error}");
        }
    }

    #[test]
    fn a_missing_feed_has_no_events_and_one_that_is_no_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(kinds(&folder.path().join("events.jsonl")), Ok((vec![], 0)));
        assert!(kinds(folder.path()).is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).expect("a link");
        assert!(kinds(&link).is_err());
    }

    #[test]
    fn a_line_over_the_cap_is_refused_and_one_of_exactly_the_cap_is_read() {
        let line = |bytes: usize| {
            let frame = r#"{"schema":3,"event":"run_started","detail":""}"#;
            frame.replace("\"\"}", &format!("\"{}\"}}", "x".repeat(bytes - frame.len())))
        };
        let fits = feed(format!("{}\n", line(LINE_BYTES_MAX)).as_bytes());
        assert_eq!(kinds(fits.path()), Ok((vec!["run_started".into()], 0)));
        for end in ["", "\n", "\n{}\n"] {
            let file = feed(format!("{STARTED}\n{}{end}", line(LINE_BYTES_MAX + 1)).as_bytes());
            let error = kinds(file.path()).expect_err("too long");
            assert!(error.contains(&format!("byte {}", STARTED.len() + 1)), "{error}");
        }
    }

    #[test]
    fn a_follower_holds_a_partial_line_back_and_begins_where_it_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let mut follow = Follow::new(&path, 0);
        let poll = |follow: &mut Follow| {
            let mut raws = Vec::new();
            follow.poll(&mut |line| raws.push(line.raw.len())).expect("read");
            raws
        };
        assert!(poll(&mut follow).is_empty());
        let (head, tail) = STARTED.split_at(20);
        std::fs::write(&path, format!("{STARTED}\n{head}")).expect("written");
        assert_eq!(poll(&mut follow), [STARTED.len()]);
        let mut file = File::options().append(true).open(&path).expect("open");
        writeln!(file, "{tail}").expect("written");
        assert_eq!(poll(&mut follow), [STARTED.len()]);
        assert!(poll(&mut follow).is_empty());
        assert_eq!(poll(&mut Follow::new(&path, STARTED.len() as u64 + 1)), [STARTED.len()]);
    }

    #[test]
    fn lines_that_straddle_the_pieces_of_reading_are_whole() {
        let line = format!(r#"{{"schema":3,"event":"node_started","detail":"{}"}}"#, "y".repeat(9_000));
        let file = feed(format!("{line}\n").repeat(40).as_bytes());
        assert_eq!(kinds(file.path()).map(|(kinds, damaged)| (kinds.len(), damaged)), Ok((40, 0)));
    }
}
