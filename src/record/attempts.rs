//! What each attempt of a node said: `attempts/<id>/<leg>-<round>-<attempt>.{prompt,reply,stderr,verify}` (DECISIONS 15).
//! What the planner and the judge of a planned run were asked and said lies beside it, under ids with a slash, which no planned
//! node has.
//!
//! Internal to this program: `omg show RUN NODE` and the live view read it. Bounded, written when there is something
//! to write, and not synced: nothing is decided by it.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::graph::NodeId;
use crate::record::excerpt::{KEPT_BYTES_MAX, excerpt};
use crate::record::{RunDir, private};

/// Which attempt of a node: the leg and the attempt count from 1, the feedback round from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    /// The leg of the run.
    pub leg: u32,
    /// The feedback round; 0 outside a loop and on its first pass.
    pub round: u32,
    /// The attempt within leg and round.
    pub attempt: u32,
}

/// What kind of thing was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    /// What the node was asked.
    Prompt,
    /// What it answered.
    Reply,
    /// What its child wrote to standard error.
    Stderr,
    /// What the check's command wrote.
    Verify,
}

impl Said {
    /// Every kind, in the order in which they come to be.
    pub const ALL: [Said; 4] = [Said::Prompt, Said::Reply, Said::Stderr, Said::Verify];

    /// The file's extension.
    pub fn as_str(self) -> &'static str {
        match self {
            Said::Prompt => "prompt",
            Said::Reply => "reply",
            Said::Stderr => "stderr",
            Said::Verify => "verify",
        }
    }
}

/// Who is asked for a run without being a node of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Who plans.
    Planner,
    /// Who judges.
    Assessor,
}

impl Caller {
    const ALL: [Caller; 2] = [Caller::Planner, Caller::Assessor];

    /// What a person calls it by where no node is called so.
    pub fn word(self) -> &'static str {
        match self {
            Caller::Planner => "planner",
            Caller::Assessor => "assessor",
        }
    }

    /// The same in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Caller::Planner => "the planner",
            Caller::Assessor => "the assessor",
        }
    }

    /// What its calls are kept under.
    pub fn id(self) -> NodeId {
        NodeId::parse(&format!("omg/{}", self.word())).expect("two words and a slash are an id")
    }

    /// The one that a person calls so.
    pub fn parse(word: &str) -> Option<Self> {
        Caller::ALL.into_iter().find(|caller| caller.word() == word)
    }
}

/// Keeps what `caller` was asked and said in its call number `call`, from 1. What is empty leaves no file.
pub fn keep_call(
    run: &RunDir,
    caller: Caller,
    call: u32,
    said: &[(Said, &String)],
) -> Result<(), AttemptError> {
    let folder = Folder::open(run, &caller.id())?;
    let id = AttemptId { leg: 1, round: 0, attempt: call };
    let mut told = said.iter().filter(|(_, text)| !text.is_empty());
    told.try_for_each(|(said, text)| folder.keep(id, *said, text.as_bytes()))
}

/// Why something said could not be kept or read back.
#[derive(Debug, Error)]
#[error("{}: {action}: {source}", path.display())]
pub struct AttemptError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

/// One attempt that left something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which one.
    pub id: AttemptId,
    /// What it left, in the order of [`Said::ALL`]; read it with [`read`].
    pub said: Vec<(Said, PathBuf)>,
}

/// Where what the attempts of one node say is kept.
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of `node`, made when it is not there.
    pub fn open(run: &RunDir, node: &NodeId) -> Result<Self, AttemptError> {
        let directory = run.attempts(node);
        make_directory(run, node).map_err(at(&directory, "cannot create it"))?;
        Ok(Folder(directory))
    }

    /// Keeps what an attempt said, at most [`KEPT_BYTES_MAX`] of it.
    pub fn keep(&self, id: AttemptId, said: Said, text: &[u8]) -> Result<(), AttemptError> {
        let path = self.0.join(file_name(id, said));
        write_new(&path, text).map_err(at(&path, "cannot write it"))
    }
}

/// As much of `text` as is kept.
pub(crate) fn bounded(text: &[u8]) -> Cow<'_, [u8]> {
    if text.len() <= KEPT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    Cow::Owned(excerpt(&String::from_utf8_lossy(text), KEPT_BYTES_MAX).into_owned().into_bytes())
}

/// What the attempts of `node` left, first attempt first.
pub fn list(run: &RunDir, node: &NodeId) -> Result<Vec<Attempt>, AttemptError> {
    let directory = run.attempts(node);
    if !is_real(run, &directory) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&directory).map_err(at(&directory, "cannot read it"))?;
    let mut found: Vec<(AttemptId, Said, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| parse(entry.file_name().to_str()?).map(|(id, said)| (id, said, entry.path())))
        .collect();
    found.sort();
    let mut attempts: Vec<Attempt> = Vec::new();
    for (id, said, path) in found {
        match attempts.last_mut().filter(|last| last.id == id) {
            Some(last) => last.said.push((said, path)),
            None => attempts.push(Attempt { id, said: vec![(said, path)] }),
        }
    }
    Ok(attempts)
}

/// Reads back one file that [`list`] named.
pub fn read(path: &Path) -> Result<String, AttemptError> {
    let text = private::open_to_read(path).and_then(|file| {
        let mut bytes = Vec::new();
        // A node may have put anything here.
        io::Read::read_to_end(&mut io::Read::take(file, KEPT_BYTES_MAX as u64), &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    text.map_err(at(path, "cannot read it"))
}

fn make_directory(run: &RunDir, node: &NodeId) -> io::Result<()> {
    let all = private::subdirectory(run.path(), "attempts")?;
    private::subdirectory(&all, &node.file_stem())?;
    Ok(())
}

fn is_real(run: &RunDir, directory: &Path) -> bool {
    private::is_real_directory(&run.path().join("attempts")) && private::is_real_directory(directory)
}

/// Whatever has the name, a link included, is removed and never written through.
fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = match private::create_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            private::remove_file(path)?;
            private::create_file(path)?
        }
        created => created?,
    };
    file.write_all(&bounded(text))
}

fn file_name(id: AttemptId, said: Said) -> String {
    format!("{}-{}-{}.{}", id.leg, id.round, id.attempt, said.as_str())
}

fn parse(name: &str) -> Option<(AttemptId, Said)> {
    let (stem, extension) = name.split_once('.')?;
    let said = Said::ALL.into_iter().find(|said| said.as_str() == extension)?;
    let mut numbers = stem.split('-').map(|number| number.parse().ok());
    let id = AttemptId { leg: numbers.next()??, round: numbers.next()??, attempt: numbers.next()?? };
    (numbers.next().is_none() && file_name(id, said) == name).then_some((id, said))
}

fn at(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> AttemptError {
    let path = path.to_path_buf();
    move |source| AttemptError { path, action, source }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const FIRST: AttemptId = AttemptId { leg: 1, round: 0, attempt: 1 };

    fn run() -> (tempfile::TempDir, RunDir, NodeId) {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::new(home.path().join("run"));
        fs::create_dir(run.path()).unwrap();
        (home, run, NodeId::parse("lane/a").unwrap())
    }

    fn keep(run: &RunDir, node: &NodeId, id: AttemptId, said: Said, text: &[u8]) -> Result<(), AttemptError> {
        Folder::open(run, node)?.keep(id, said, text)
    }

    #[test]
    fn attempts_come_back_in_the_order_in_which_they_ran() {
        let (_home, run, node) = run();
        let ids = [FIRST, AttemptId { attempt: 2, ..FIRST }, AttemptId { attempt: 10, ..FIRST }];
        let ids = [ids[0], ids[1], ids[2], AttemptId { round: 1, ..FIRST }, AttemptId { leg: 2, ..FIRST }];
        for id in ids.iter().rev() {
            keep(&run, &node, *id, Said::Reply, b"yes").unwrap();
            keep(&run, &node, *id, Said::Prompt, b"well?").unwrap();
        }
        let listed = list(&run, &node).unwrap();
        assert_eq!(listed.iter().map(|attempt| attempt.id).collect::<Vec<_>>(), ids);
        let (said, path) = &listed[0].said[0];
        assert_eq!((*said, read(path).unwrap().as_str()), (Said::Prompt, "well?"));
        assert!(path.ends_with("attempts/lane~a/1-0-1.prompt"));
    }

    #[test]
    fn what_is_too_long_is_cut_also_when_it_is_not_text() {
        let (_home, run, node) = run();
        keep(&run, &node, FIRST, Said::Stderr, &vec![0xff; KEPT_BYTES_MAX + 1]).unwrap();
        let text = read(&list(&run, &node).unwrap()[0].said[0].1).unwrap();
        assert!(text.len() <= KEPT_BYTES_MAX && text.contains("bytes dropped here"));
    }

    #[test]
    fn d12_planted_links_are_replaced_and_not_listed() {
        let (home, run, node) = run();
        let victim = home.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        keep(&run, &node, FIRST, Said::Reply, b"yes").unwrap();
        let (reply, prompt) =
            (run.attempts(&node).join("1-0-1.reply"), run.attempts(&node).join("1-0-1.prompt"));
        fs::remove_file(&reply).unwrap();
        symlink(&victim, &reply).unwrap();
        symlink(&victim, &prompt).unwrap();
        keep(&run, &node, FIRST, Said::Reply, b"again").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(list(&run, &node).unwrap()[0].said, [(Said::Reply, reply)]);
        read(&prompt).unwrap_err();
    }

    #[test]
    fn strange_names_are_passed_over() {
        let (_home, run, node) = run();
        keep(&run, &node, FIRST, Said::Reply, b"yes").unwrap();
        for name in ["x", "1-0.reply", "1-0-1-1.reply", "01-0-1.reply", "1-0-1.reply~", "1-0-2.out"] {
            fs::write(run.attempts(&node).join(name), "?").unwrap();
        }
        assert_eq!(list(&run, &node).unwrap().len(), 1);
    }
}
