//! Every fenced block of the pages is run, so that no example can rot. A page is gone through from its top in a scratch
//! folder of its own, as a newcomer would, with the stand-in for `claude`.
//!
//! - A block whose first line is a comment with a file's name (`# hello.yaml`) is written as that file. A graph is then
//!   linted, without a remark, and rehearsed; any other file must be used by a later command, a fragment by a later
//!   graph.
//! - A `yaml` block with the key `nodes` is a graph also without a name.
//! - A `sh` block is a script, which stops at the first command that fails. In a `console` block commands begin with
//!   `$ ` and what they print is compared ([`screen`]). Each exits 0 unless it ends with `# exits N`.
//!
//! Anything else needs a note (`<!-- example: KEY VALUE -->`) before it:
//!
//! - `not-run WHY`: the block is no example, or cannot be run here.
//! - `within YAML`: a part of a graph; it is put in the place of the line `...` of that graph.
//! - `advice WORDS`: lint makes one remark on the graph, which holds these words, and it is not rehearsed.
//! - `invalid`: the graph is one that lint refuses; a later command shows what it says.
//!
//! And between blocks: `setup LINES` for the shell, `claude TEXT => @DIRECTIVE` for what a prompt that holds TEXT makes
//! the stand-in do, and `start` for a fresh folder. `$CHECKOUT` is this repository. `OMG_UPDATE_DOCS=1` writes what
//! `console` commands print into the pages instead of comparing.

mod page;
mod screen;

use std::fs;
use std::path::Path;

use page::{Block, Step};
use serde_json::Value;

use crate::env::{OMG, Ran, Running, TestEnv};
use crate::markdown::pages;

macro_rules! pages {
    ($($name:ident: $path:literal),+ $(,)?) => {
        const PAGES: &[&str] = &[$($path),+];
        $(#[test] fn $name() { check($path); })+
    };
}

pages! {
    readme: "README.md",
    architecture: "docs/ARCHITECTURE.md",
    cli: "docs/CLI.md",
    run_feed: "docs/RUN-FEED.md",
    graph: "docs/GRAPH.md",
    graphs: "docs/GRAPHS.md",
    lint: "docs/LINT.md",
    testing_graphs: "docs/TESTING-GRAPHS.md",
    guide_testing_graphs: "docs/guide/testing-graphs.md",
    guide_fragments: "docs/guide/fragments.md",
    guide_first_graph: "docs/guide/first-graph.md",
    guide_evidence: "docs/guide/evidence.md",
    guide_review_loops: "docs/guide/review-loops.md",
    guide_lanes: "docs/guide/lanes.md",
    guide_approvals: "docs/guide/approvals.md",
    guide_money_and_limits: "docs/guide/money-and-limits.md",
    guide_ci: "docs/guide/ci.md",
    guide_parallel: "docs/guide/parallel.md",
    guide_auto: "docs/guide/auto.md",
    guide_this_machine: "docs/guide/this-machine.md",
    guide_when_it_stops: "docs/guide/when-it-stops.md",
}

/// A page without a line of its own above holds no example.
#[test]
fn every_page_with_an_example_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in pages() {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        let has_example = page::read(&path).iter().any(|step| matches!(step, Step::Block(_)));
        assert_eq!(PAGES.contains(&name), has_example, "{name}: is it in pages!?");
    }
}

/// Goes through a page and tells everything that is wrong with its examples.
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut reader = Reader::new();
    for step in page::read(&path) {
        match step {
            Step::Note(key, value, line) => reader.note(&key, value, line),
            Step::Block(block) => reader.block(&block),
        }
    }
    reader.unused_files();
    if std::env::var_os("OMG_UPDATE_DOCS").is_some() {
        let mut text = fs::read_to_string(&path).unwrap();
        reader.screens.iter().for_each(|(old, new)| text = text.replacen(old.as_str(), new, 1));
        fs::write(&path, text).unwrap();
        return;
    }
    let faults: Vec<String> =
        reader.faults.iter().map(|(line, fault)| format!("{name}:{line}: {fault}")).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Somebody who follows a page.
struct Reader {
    env: TestEnv,
    /// What the notes before the next block say.
    notes: Vec<(String, String)>,
    /// Files that no command has used yet, each with its line.
    unused: Vec<(String, usize)>,
    /// The text of `console` blocks, and what it would be if it were true.
    screens: Vec<(String, String)>,
    faults: Vec<(usize, String)>,
}

impl Reader {
    fn new() -> Self {
        let (notes, unused, screens, faults) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Reader { env: place(), notes, unused, screens, faults }
    }

    fn note(&mut self, key: &str, value: String, line: usize) {
        match key {
            "start" => self.env = place(),
            "claude" => {
                let cues = self.env.path(CUES);
                let known = fs::read_to_string(&cues).unwrap_or_default();
                fs::write(cues, format!("{known}{value}\n")).unwrap();
            }
            "setup" => {
                let ran = Running::of(&mut self.env.shell(&format!("set -e\n{value}"))).wait();
                self.unless(ran.code == 0, line, || format!("setup: {ran:?}"));
            }
            "not-run" if value.is_empty() => self.faults.push((line, "say why it is not run".to_owned())),
            "not-run" | "within" | "advice" | "invalid" => self.notes.push((key.to_owned(), value)),
            _ => self.faults.push((line, format!("there is no note {key:?}"))),
        }
    }

    fn block(&mut self, block: &Block) {
        let notes = std::mem::take(&mut self.notes);
        let note = |key: &str| notes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        if note("not-run").is_some() {
            return;
        }
        let file = block.file();
        if let Some(name) = file {
            self.env.write(name, &block.text);
            if note("invalid").is_some() || !block.is_graph() {
                self.unused.push((name.to_owned(), block.line));
                return;
            }
        }
        match block.language.as_str() {
            "yaml" if block.is_graph() => self.graph(file, &block.text, note("advice"), block.line),
            "yaml" if note("within").is_some() => {
                let whole = spliced(note("within").unwrap(), &block.text);
                self.graph(None, &whole, note("advice"), block.line);
            }
            "sh" => drop(self.command(&block.text, block.line)),
            "console" => self.screen(block),
            _ => self.faults.push((block.line, "this block is neither run nor exempted".to_owned())),
        }
    }

    /// A graph is linted and rehearsed; the rehearsal is not among the runs of the page.
    fn graph(&mut self, file: Option<&str>, text: &str, advice: Option<&str>, line: usize) {
        let name = file.unwrap_or("unnamed.yaml");
        self.env.write(name, text);
        self.unused
            .retain(|(name, _)| !fragment(name).is_some_and(|cited| text.contains(&format!("use: {cited}"))));
        let lint = self.env.omg(&["lint", "--json", name]);
        let report: Value = serde_json::from_str(&lint.stdout).unwrap_or_default();
        let as_told = report["files"][0]["advice"].as_array().is_some_and(|remarks| match advice {
            None => remarks.is_empty(),
            Some(words) => remarks.len() == 1 && remarks[0].to_string().contains(words),
        });
        self.unless(lint.code == 0 && as_told, line, || format!("lint says {}{}", lint.stdout, lint.stderr));
        if advice.is_none() {
            self.rehearse(name, text, line);
        }
        if file.is_none() {
            fs::remove_file(self.env.path(name)).unwrap();
        }
    }

    fn rehearse(&mut self, name: &str, text: &str, line: usize) {
        let mut words = vec!["rehearse".to_owned(), name.to_owned()];
        for input in inputs(text) {
            words.extend(["--input".to_owned(), format!("{input}=a value")]);
        }
        let mut command = self.env.program(OMG);
        let ran = Running::of(command.args(words).env("OMG_HOME", self.env.path("rehearsals"))).wait();
        let waits = text.contains("type: gate");
        self.unless(ran.code == if waits { 2 } else { 0 }, line, || {
            format!("the rehearsal fails: {}", ran.stderr)
        });
    }

    fn screen(&mut self, block: &Block) {
        let mut made = String::new();
        // The first command has no line before it.
        for part in format!("\n{}", block.text).split("\n$ ").skip(1) {
            let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
            let shown = shown.trim_end();
            let printed = self.command(command, block.line);
            let same = screen::is_as_shown(shown, &printed);
            self.unless(same, block.line, || format!("$ {command}\nprints\n{printed}"));
            let lines = [format!("$ {command}"), if same { shown } else { printed.trim_end() }.to_owned()];
            made.extend(lines.iter().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]));
        }
        self.screens.push((block.text.clone(), made));
    }

    /// Runs commands and tells what they printed, both streams together.
    fn command(&mut self, lines: &str, at: usize) -> String {
        let wanted = lines.rsplit_once("# exits ").map_or(0, |(_, code)| code.trim().parse().unwrap());
        self.unused.retain(|(name, _)| !lines.contains(name.as_str()));
        let Ran { code, stdout, .. } =
            Running::of(&mut self.env.shell(&format!("exec 2>&1\nset -e\n{lines}"))).wait();
        self.unless(code == wanted, at, || format!("$ {lines}\nexits {code}\n{stdout}"));
        let stdout = stdout.replace(self.env.home().to_str().unwrap(), "~/.oh-my-graph");
        stdout.replace(self.env.work().to_str().unwrap(), "~/project")
    }

    fn unused_files(&mut self) {
        let unused = std::mem::take(&mut self.unused);
        self.faults.extend(unused.into_iter().map(|(name, line)| (line, format!("no command uses {name}"))));
    }

    fn unless(&mut self, holds: bool, line: usize, fault: impl FnOnce() -> String) {
        if !holds {
            self.faults.push((line, fault()));
        }
    }
}

/// What prompts make the stand-in do on a page.
const CUES: &str = "../cues";

/// A folder in which `omg` is a command.
fn place() -> TestEnv {
    let mut env = TestEnv::new();
    let cues = env.path(CUES).display().to_string();
    let git = "GIT_CONFIG_GLOBAL";
    let config = env
        .write("../gitconfig", "[user]\nname = Ann\nemail = ann@example.org\n[init]\ndefaultBranch = main\n");
    env.set("CHECKOUT", env!("CARGO_MANIFEST_DIR"))
        .set("FAKE_CUES", &cues)
        .set(git, config.to_str().unwrap())
        .set("GIT_CONFIG_NOSYSTEM", "1");
    std::os::unix::fs::symlink(OMG, env.path("../bin/omg")).unwrap();
    env
}

/// The name by which a graph cites the file, if it is a fragment.
fn fragment(file: &str) -> Option<&str> {
    file.strip_prefix("fragments/")?.strip_suffix(".yaml")
}

/// The names in `inputs: [a, b]`.
fn inputs(graph: &str) -> Vec<&str> {
    let list = graph.lines().find_map(|line| line.strip_prefix("inputs: [")?.strip_suffix(']'));
    list.map_or(Vec::new(), |list| list.split(", ").collect())
}

/// A graph whose line `...` is a part of a page, as far to the right as that line.
fn spliced(graph: &str, part: &str) -> String {
    let lines = graph.lines().map(|line| match line.strip_suffix("...") {
        Some(indent) if indent.trim().is_empty() => {
            part.lines().map(|line| format!("{indent}{line}\n")).collect()
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}
