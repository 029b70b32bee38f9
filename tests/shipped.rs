//! The shipped graphs: what they resolve to, and whether what their files and the documentation say of them is true.

#![expect(clippy::unwrap_used, reason = "a graph that cannot be read is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use omg::graph::node::Model;
use omg::graph::{Graph, Node, NodeIx, Work};
use omg::load::{Loaded, Source, load};

/// What a prompt says to where a caveat goes, in one line, so that a search finds every one.
const CAVEAT: &str = "Anything you need to qualify goes AFTER the";
/// What every verdict pattern begins with: anchored, and tolerant of what a model wraps around a bare word.
const DECORATION: &str = r"^[*_`\s]*";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder that end in `.yaml` and are no tests of graphs, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.to_str().unwrap().ends_with(".yaml"))
        .filter(|path| !path.to_str().unwrap().ends_with(".omgtest.yaml"))
        .collect();
    files.sort();
    files
}

fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

fn graphs() -> Vec<(String, Loaded)> {
    let graphs: Vec<_> = files("graphs").iter().map(|path| (stem(path).to_owned(), loaded(path))).collect();
    assert!(graphs.len() > 5, "the graphs were not found");
    graphs
}

fn loaded(path: &Path) -> Loaded {
    load(&Source::read(path).unwrap()).unwrap_or_else(|problems| panic!("{}", problems.render(false, 100)))
}

fn model(node: &Node) -> Option<&Model> {
    match &node.work {
        Work::Model(model) => Some(model),
        _ => None,
    }
}

fn prompts(graph: &Graph) -> impl Iterator<Item = (NodeIx, &Node, &Model)> {
    graph.positions().filter_map(|ix| Some((ix, graph.node(ix), model(graph.node(ix))?)))
}

/// The lines of the comment that a file begins with, without their marks.
fn header(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map_while(|line| line.strip_prefix('#')).map(|line| line.trim().to_owned());
    lines.collect()
}

/// The rest of the header's line that begins with `words`.
#[track_caller]
fn told(path: &Path, words: &str) -> String {
    let header = header(path);
    let line = header.iter().find_map(|line| line.strip_prefix(words));
    line.unwrap_or_else(|| panic!("{} says no {words:?}", path.display())).trim().to_owned()
}

#[test]
fn each_resolves_to_what_its_golden_file_holds() {
    let folder = root().join("tests/golden/shipped");
    let mut known = BTreeSet::new();
    for (name, loaded) in graphs() {
        let made = serde_json::to_string_pretty(&loaded.raw.normalised()).unwrap() + "\n";
        let path = folder.join(format!("{name}.json"));
        if std::env::var_os("OMG_UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &made).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            golden == made,
            "{} differs from graphs/{name}.yaml as it is loaded; \
             OMG_UPDATE_GOLDEN=1 cargo test --test shipped writes it anew, and git diff shows what that means",
            path.display()
        );
        known.insert(path);
    }
    let found: BTreeSet<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found, known, "a golden file without its graph");
}

#[test]
fn each_is_named_as_its_file_is() {
    for (name, loaded) in graphs() {
        assert_eq!(loaded.graph.name, name);
    }
}

/// How often a node runs at most: its attempts in each round.
fn executions(graph: &Graph, ix: NodeIx) -> u32 {
    let node = graph.node(ix);
    if matches!(node.work, Work::Gate) {
        return 0;
    }
    let further = graph.declarer_of(ix).and_then(|it| graph.node(it).feedback).map_or(0, |it| it.max);
    (1 + node.retry.max) * (1 + further)
}

#[test]
fn each_says_truly_what_it_spends_at_worst() {
    for path in files("graphs") {
        let graph = loaded(&path).graph;
        let all: u32 = graph.positions().map(|ix| executions(&graph, ix)).sum();
        let asked: u32 = prompts(&graph).map(|(ix, ..)| executions(&graph, ix)).sum();
        let budgets: Option<Vec<f64>> = prompts(&graph)
            .map(|(ix, _, model)| Some(model.budget?.usd() * f64::from(executions(&graph, ix))))
            .collect();
        let dollars = budgets
            .map_or("; no budget bounds the dollars, --max-usd does.".to_owned(), |budgets| {
                format!(", ${:.2}.", budgets.iter().fold(0.0, |sum, it| sum + it))
            });
        let plural = if asked == 1 { "" } else { "s" };
        let truth = format!("{all} executions ({asked} prompt{plural}){dollars}");
        let told = told(&path, "Spends at worst:");
        assert!(told.starts_with(&truth), "{}: {told:?} should begin {truth:?}", path.display());
    }
}

/// The words of a command as a shell takes them, as far as these commands go.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars().chain([' ']) {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            c => word.push(c),
        }
    }
    assert!(!quoted, "{command}");
    words
}

#[test]
fn each_says_how_it_is_run() {
    for path in files("graphs") {
        let command = told(&path, "Run it:");
        let (_, run) = command.split_once("omg run ").unwrap();
        let words = words(run);
        assert_eq!(root().join(&words[0]), path, "{command}");
        let given: Vec<&str> = words
            .windows(2)
            .filter(|pair| pair[0] == "--input")
            .map(|pair| pair[1].split_once('=').unwrap().0)
            .collect();
        assert_eq!(given, loaded(&path).graph.inputs, "{command}");
    }
}

/// The rows of the guide's table on a folder: a name, and the words in its last column that are marked as code.
fn rows(folder: &str) -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(root().join("docs/GRAPHS.md")).unwrap();
    let begin = format!("| [`{folder}/");
    let rows = page.lines().filter_map(|line| line.strip_prefix(&begin)?.split_once(".yaml`]"));
    rows.map(|(name, rest)| {
        let last = rest.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        (name.to_owned(), last.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    })
    .collect()
}

#[test]
fn the_guide_lists_each_graph_with_its_inputs() {
    let mut listed = rows("graphs");
    listed.sort();
    let there: Vec<_> = graphs().into_iter().map(|(name, loaded)| (name, loaded.graph.inputs)).collect();
    assert_eq!(listed, there);
}

#[test]
fn the_guide_lists_each_fragment_with_what_it_binds() {
    let mut listed = rows("fragments");
    listed.sort();
    let there: Vec<_> = files("fragments")
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let points = text.lines().find_map(|line| line.strip_prefix("substitutions: ["));
            let points = points.unwrap().trim_end_matches(']').split(", ").map(str::to_owned).collect();
            (stem(path).to_owned(), points)
        })
        .collect();
    assert_eq!(listed, there);
}

#[test]
fn each_fragment_is_cited() {
    let texts: String = ["graphs", "fragments"]
        .iter()
        .flat_map(|folder| files(folder))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for path in files("fragments") {
        let citation = format!("use: {}\n", stem(&path));
        assert!(texts.contains(&citation), "no graph says {citation:?}");
    }
}

#[test]
fn verdicts_are_anchored_and_caveats_have_a_place() {
    for (name, loaded) in graphs() {
        for (_, node, model) in prompts(&loaded.graph) {
            let Some(pattern) = &node.check.result_matches else { continue };
            let (pattern, prompt, at) = (pattern.as_str(), &model.prompt, format!("{name}: {}", node.id));
            assert!(pattern.starts_with(DECORATION), "{at}: {pattern}");
            assert!(node.check.exit_zero, "{at}");
            let is_whole = pattern.ends_with(r"[*_`\s]*$");
            let offers = prompt.lines().filter(|line| line.contains(CAVEAT)).count();
            assert_eq!(offers, usize::from(!is_whole), "{at}");
            assert!(prompt.contains("WRONG") || pattern.contains("# "), "{at}: the wrong shape is not shown");
        }
    }
}

/// A review that stops a run must send its findings somewhere; one that does not must let them pass.
#[test]
fn a_review_that_stops_at_findings_has_an_arc() {
    for (name, loaded) in graphs() {
        for (_, node, model) in prompts(&loaded.graph) {
            let Some(pattern) = &node.check.result_matches else { continue };
            if model.prompt.contains("FINDINGS:") && !pattern.is_match("FINDINGS: src/a.rs:3 is wrong") {
                assert!(node.feedback.is_some(), "{name}: {}", node.id);
            }
        }
    }
}

#[test]
fn what_a_person_or_a_node_wrote_is_fenced_in_prompts() {
    for (name, loaded) in graphs() {
        for (_, node, model) in prompts(&loaded.graph) {
            let lines: Vec<&str> = model.prompt.lines().map(str::trim).collect();
            for (at, line) in lines.iter().enumerate() {
                let free = ["{{ inputs.task", "{{ inputs.flags", "| inline }}", "{{ feedback."];
                if free.iter().any(|token| line.contains(token)) {
                    let (before, after) = (lines[at - 1], lines[at + 1]);
                    let is_fenced =
                        before.starts_with('<') && after.starts_with("</") && line.starts_with("{{");
                    assert!(is_fenced, "{name}: {}: {line}", node.id);
                }
            }
        }
    }
}
