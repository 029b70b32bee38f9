//! The person's own agents, as far as planned nodes may run as one of them (FACTS 8.6, ADR 0022 of the design).
//!
//! Only the directory of the person is read, never one of a repository: what is found becomes a node's system prompt.

use std::fs;
use std::path::{Path, PathBuf};

use super::front_matter;
use super::reading::{self, BYTES_MAX};

/// How many files are looked at, in the order of their names.
const AGENTS_MAX: usize = 2_000;
/// The agents that every claude has. Which of two would answer to one name was never measured.
const BUILT_IN: [&str; 5] = ["claude", "explore", "general-purpose", "plan", "statusline-setup"];

/// An agent of the person.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The tools that its head declares.
    pub tools: Vec<String>,
    /// Its file.
    pub path: PathBuf,
    /// All that the file said when it was scanned; `None` when that is too much to stage.
    pub bytes: Option<Vec<u8>>,
}

impl Agent {
    /// Why it cannot be staged, if it cannot.
    pub(super) fn unfit(&self) -> Option<String> {
        if !is_path_element(&self.name) {
            return Some("its name cannot be the name of a file".to_owned());
        }
        if BUILT_IN.contains(&self.name.to_lowercase().as_str()) {
            return Some("claude has an agent of that name built in".to_owned());
        }
        self.bytes.is_none().then(|| format!("its file is larger than {} KiB", BYTES_MAX >> 10))
    }
}

/// The agents in `directory`, by the names of their files. Of two with one name the later counts. What cannot be read
/// is no agent, so that a person who has none hears nothing.
pub fn scan(directory: &Path) -> Vec<Agent> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.sort();
    let mut agents: Vec<Agent> = Vec::new();
    for agent in paths.into_iter().take(AGENTS_MAX).filter_map(read) {
        agents.retain(|earlier| earlier.name != agent.name);
        agents.push(agent);
    }
    agents
}

fn read(path: PathBuf) -> Option<Agent> {
    let file = reading::read(&path, false).ok()?;
    let head = front_matter::read(&file.bytes).ok()?;
    let (name, tools) = (head.name, head.tools);
    Some(Agent { name, tools, path, bytes: file.is_whole().then_some(file.bytes) })
}

/// Whether a name can be that of a file and leads nowhere else.
pub(super) fn is_path_element(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']) && name.len() <= 200
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(name: &str) -> String {
        format!("---\nname: {name}\ntools: Read\n---\nYou are {name}.\n")
    }

    #[test]
    fn s60_only_regular_markdown_files_with_a_head_are_agents() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("b.md"), file("beta")).unwrap();
        fs::write(at("a.md"), file("alpha")).unwrap();
        fs::write(at("c.txt"), file("gamma")).unwrap();
        fs::write(at("open.md"), "---\nname: open\n").unwrap();
        fs::write(at("spaced.md"), file("a b")).unwrap();
        fs::create_dir(at("d.md")).unwrap();
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/e.md"), file("epsilon")).unwrap();
        symlink(at("c.txt"), at("link.md")).unwrap();
        let names: Vec<String> = scan(dir.path()).into_iter().map(|agent| agent.name).collect();
        assert_eq!(names, ["alpha", "beta"]);
        assert!(scan(&at("nowhere")).is_empty());
    }

    #[test]
    fn of_two_agents_with_one_name_the_later_file_counts() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1.md", "2.md"] {
            fs::write(dir.path().join(name), file("same")).unwrap();
        }
        let agents = scan(dir.path());
        assert_eq!((agents.len(), agents[0].path.file_name().unwrap()), (1, "2.md".as_ref()));
    }

    #[test]
    fn an_agent_that_cannot_be_staged_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let unfit = |said: String| {
            fs::write(dir.path().join("a.md"), said).unwrap();
            scan(dir.path())[0].unfit()
        };
        assert_eq!(unfit(file("fine")), None);
        assert_eq!(
            unfit(format!("{}{}", file("big"), "x".repeat(1 << 20))).unwrap(),
            "its file is larger than 1024 KiB"
        );
        for name in ["../up", ".hidden", "a/b"] {
            assert_eq!(unfit(file(name)).unwrap(), "its name cannot be the name of a file", "{name}");
        }
        assert_eq!(unfit(file("Explore")).unwrap(), "claude has an agent of that name built in");
    }
}
