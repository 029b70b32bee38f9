//! Properties of resolution that no single file shows: any fragments that cite each other, and any nonsense in them.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::load::{self, Loaded, Problems, Source, yaml};

/// Ids that are easily confused when they are joined or become file names.
const IDS: [&str; 8] = ["a", "b", "a.b", "a-b", "a_b", "0", "ab", "a..b"];

/// A fragment: how many nodes (none for `node:`), and for each of its nodes whether it cites the level below.
#[derive(Clone, Debug)]
struct Shape {
    nodes: usize,
    cites: Vec<bool>,
}

fn shapes() -> impl Strategy<Value = [Shape; 3]> {
    let shape = (0..4_usize, proptest::collection::vec(any::<bool>(), 4));
    let shape = shape.prop_map(|(nodes, cites)| Shape { nodes, cites });
    [shape.clone(), shape.clone(), shape]
}

/// Writes the fragment of `level`, which binds a point and hands it on.
fn written(level: usize, shapes: &[Shape; 3]) -> String {
    let Shape { nodes, cites } = &shapes[level];
    let mut text = format!("fragment: f{level}\ndescription: d\nsubstitutions: [p]\n");
    let body = |at: usize, own: &str| {
        // A fragment of one node cannot hold several.
        let fits = level < 2 && (*nodes > 0 || shapes[level + 1].nodes == 0);
        match fits && cites[at] {
            true => format!("use: f{}, with: {{p: '<{{{{ with.p }}}}{own}>'}}", level + 1),
            false => format!("prompt: '[{{{{ with.p }}}}{own}]'"),
        }
    };
    if *nodes == 0 {
        writeln!(text, "node: {{{}}}", body(0, "")).ok();
        return text;
    }
    writeln!(text, "exit: {}\nnodes:", IDS[nodes - 1]).ok();
    for at in 0..*nodes {
        let (edge, own) = match at {
            0 => (String::new(), String::new()),
            _ => {
                (format!("depends_on: [{}], ", IDS[at - 1]), format!(" {{{{ artifacts.{} }}}}", IDS[at - 1]))
            }
        };
        writeln!(text, "  - {{id: {}, {edge}{}}}", IDS[at], body(at, &own)).ok();
    }
    text
}

/// How many nodes a citation of `level` becomes.
fn count(level: usize, shapes: &[Shape; 3]) -> usize {
    let Shape { nodes, cites } = &shapes[level];
    let one = |at: usize| match level < 2 && (*nodes > 0 || shapes[level + 1].nodes == 0) && cites[at] {
        true => count(level + 1, shapes),
        false => 1,
    };
    (0..(*nodes).max(1)).map(one).sum()
}

struct Place(TempDir);

impl Place {
    fn new(graph: &str, fragments: &[(&str, &str)]) -> Self {
        let place = TempDir::new().unwrap_or_else(|error| panic!("{error}"));
        let put = |path: &Path, text: &str| fs::write(path, text).unwrap_or_else(|error| panic!("{error}"));
        fs::create_dir(place.path().join("fragments")).unwrap_or_else(|error| panic!("{error}"));
        put(&place.path().join("g.yaml"), graph);
        for (name, text) in fragments {
            put(&place.path().join(format!("fragments/{name}.yaml")), text);
        }
        Self(place)
    }

    fn source(&self) -> Source {
        Source::read(&self.0.path().join("g.yaml")).unwrap_or_else(|error| panic!("{error}"))
    }

    fn load(&self) -> Result<Loaded, Problems> {
        load::load(&self.source())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_resolved_stays_as_it_is_and_no_two_nodes_meet(shapes in shapes(), cites in 1..4_usize) {
        let mut graph = String::from("nodes:\n  - {id: first, prompt: x}\n");
        for at in 0..cites {
            let parent = if at == 0 { "first" } else { IDS[at - 1] };
            writeln!(
                graph,
                "  - {{id: {}, use: f0, depends_on: [{parent}], with: {{p: '{{{{ artifacts.{parent} }}}}'}}}}",
                IDS[at]
            ).ok();
        }
        let files = [written(0, &shapes), written(1, &shapes), written(2, &shapes)];
        let place = Place::new(&graph, &[("f0", &files[0]), ("f1", &files[1]), ("f2", &files[2])]);
        let loaded = place.load().unwrap_or_else(|problems| panic!("{}\n{graph}{files:?}", problems.render(false, 100)));

        // As many nodes as the shapes say, each below the node that cites it, no two of one name on a disk.
        let nodes = loaded.graph.nodes();
        prop_assert_eq!(nodes.len(), 1 + cites * count(0, &shapes));
        let stems: HashSet<String> = nodes.iter().map(|node| node.id.file_stem().to_lowercase()).collect();
        prop_assert_eq!(stems.len(), nodes.len());
        for node in nodes {
            let citer = node.id.as_str().split('/').next().unwrap_or_default();
            prop_assert!(citer == "first" || IDS[..cites].contains(&citer), "{}", node.id);
            // A chain of citations is a chain of nodes: everything but the first waits for something.
            prop_assert_eq!(node.parents.is_empty(), citer == "first", "{}", node.id);
        }
        prop_assert!(crate::lint::never_there(&loaded.graph).is_empty());

        // Once more, as a snapshot and as a tree.
        let raw = loaded.raw.normalised();
        let json = serde_json::to_string(&raw).unwrap_or_default();
        let (again, _) = crate::graph::from_snapshot(&json).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(&again.normalised(), &raw);
        let source = place.source();
        let mut library = Library::of(&source);
        let mut tree = yaml::parse(&source.text, yaml::Limits::default()).unwrap_or_else(|problem| panic!("{problem:?}"));
        resolve(&mut tree.root, &mut library);
        let once = tree.root.clone();
        let second = resolve(&mut tree.root, &mut library);
        prop_assert_eq!(tree.root, once);
        prop_assert!(second.splices.is_empty());
    }

    #[test]
    fn nonsense_is_refused_with_places_and_never_a_panic(
        graph in "nodes:(\n- (\\{|)(id: (a|b|é)|use: (f|g|h|\\[\\]|\\.\\./f)|with: (\\{p: (x|\\[y\\]|\\{\\{ artifacts\\.a \\}\\})\\}|\\*x|)|prompt: '\\{\\{ artifacts\\.a/b \\}\\}'|depends_on: (\\[a, b\\]|a)|feedback: \\{rerun: a\\}|, |\n  )*(\\}|)){1,4}\n",
        f in FILE,
        g in FILE,
    ) {
        let place = Place::new(&graph, &[("f", &f), ("g", &g)]);
        if let Err(problems) = place.load() {
            prop_assert!(problems.len() > 0);
            let reports = problems.reports();
            prop_assert_eq!(problems.lines().len(), reports.len());
            problems.render(true, 80);
            for report in reports {
                let text = if report.file.ends_with("fragments/f.yaml") { &f } else if report.file.ends_with("fragments/g.yaml") { &g } else { &graph };
                prop_assert!(report.line <= text.lines().count() + 1, "{:?}\n{}", report, text);
            }
        }
    }
}

/// Files that are nearly fragments.
const FILE: &str = "(fragment: (f|g)\n|)(description: (é|\\{)\n|)(substitutions: (\\[p\\]|p|\\[\\[\\]\\])\n|)(exit: (a|b|\\[\\])\n|)(node: \\{(prompt: (x|'\\{\\{ with\\.p \\}\\}'|'\\{\\{ with\\. \\}\\}'), )?(use: (f|g|h), )?(with: \\{p: '\\{\\{ with\\.p \\}\\}'\\}, )?(id: a, )?(timeout: (soon|1m), )?\\}\n|)(nodes:(\n- \\{id: (a|b|é|a/b), (prompt: '\\{\\{ (artifacts|feedback|with)\\.(a|b|p) \\}\\}', )?(use: (f|g), )?(with: \\{p: z\\}, )?(depends_on: (\\[\\]|\\[a\\]|b|\\[a, b\\]), )?(feedback: (\\{rerun: (a|b), max: 1\\}|x), )?(timeout: later, )?\\}){0,3}\n|)(---\nx\n|)";

#[test]
fn what_nesting_multiplies_is_bounded() {
    // Three hops of sixty nodes each are more than two hundred thousand nodes from one line.
    let many = |level: usize| {
        let mut text = format!("fragment: f{level}\ndescription: d\nexit: n0\nnodes:\n");
        for at in 0..60 {
            let body = if level < 2 { format!("use: f{}", level + 1) } else { "prompt: hello".to_owned() };
            writeln!(text, "  - {{id: n{at}, {body}}}").ok();
        }
        text
    };
    let files = [many(0), many(1), many(2)];
    let graph = "nodes: [{id: a, use: f0}, {id: b, use: f0}]";
    let place = Place::new(graph, &[("f0", &files[0]), ("f1", &files[1]), ("f2", &files[2])]);
    let problems = place.load().map(|loaded| loaded.raw.nodes.len()).expect_err("far too large");
    let said = problems.lines();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("the graph has more than 200000 nodes of them"), "{said:?}");
}

#[test]
fn bindings_of_bindings_that_multiply_are_bounded() {
    let doubled = |level: usize, body: &str| {
        let tokens = "{{ with.p }}".repeat(2000);
        format!("fragment: f{level}\ndescription: d\nsubstitutions: [p]\nexit: n\nnodes: [{{id: n, {body}\"{tokens}\"}}]\n")
            .replace("\"}]", if level < 2 { "\"}}]" } else { "\"}]" })
    };
    let files =
        [doubled(0, "use: f1, with: {p: "), doubled(1, "use: f2, with: {p: "), doubled(2, "prompt: ")];
    let graph = "nodes: [{id: a, use: f0, with: {p: 0123456789}}]";
    let place = Place::new(graph, &[("f0", &files[0]), ("f1", &files[1]), ("f2", &files[2])]);
    let problems = place.load().map(|loaded| loaded.raw.nodes.len()).expect_err("eighty gigabytes");
    assert!(problems.lines()[0].contains("64 MB"), "{:?}", problems.lines());
}

#[test]
fn a_file_is_read_once_however_many_nodes_cite_it() {
    let place = Place::new(
        "nodes: [{id: a, use: f}, {id: b, use: f}]",
        &[("f", "fragment: f\ndescription: d\nnode: {prompt: x}\n")],
    );
    let source = place.source();
    let mut library = Library::of(&source);
    let mut tree =
        yaml::parse(&source.text, yaml::Limits::default()).unwrap_or_else(|problem| panic!("{problem:?}"));
    assert!(resolve(&mut tree.root, &mut library).problems.is_empty());
    fs::remove_dir_all(place.0.path().join("fragments")).unwrap_or_else(|error| panic!("{error}"));
    let mut again =
        yaml::parse(&source.text, yaml::Limits::default()).unwrap_or_else(|problem| panic!("{problem:?}"));
    assert!(resolve(&mut again.root, &mut library).problems.is_empty());
    assert_eq!(library.files().iter().count(), 2);
}

#[test]
fn a_link_that_leads_nowhere_is_told_as_one() {
    let place = Place::new("nodes: [{id: a, use: f}]", &[]);
    std::os::unix::fs::symlink("nowhere.yaml", place.0.path().join("fragments/f.yaml"))
        .unwrap_or_else(|error| panic!("{error}"));
    let problems = place.load().map(|loaded| loaded.raw.nodes.len()).expect_err("there is no such file");
    let said = problems.render(false, 100);
    assert!(said.contains("f.yaml leads nowhere"), "{said}");
    assert!(!said.contains("did you mean"), "{said}");
}

/// What is said of a graph, each as `file:line:column id`.
fn places_of_advice(place: &Place) -> Vec<String> {
    let source = place.source();
    let (mut loaded, tree) = load::load_with_tree(&source).unwrap_or_else(|problems| panic!("{problems}"));
    tree.locate(&loaded.raw, &mut loaded.advice);
    let told = loaded.advice.iter().map(|advice| {
        let place = advice.place.as_ref().expect("it was asked for");
        let file = Path::new(&place.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{file}:{}:{} {} {}", place.line, place.column, advice.id, advice.detail)
    });
    told.collect()
}

#[test]
fn what_is_bound_inside_a_text_is_told_where_it_is_bound() {
    let fragment = "fragment: f\ndescription: d\nsubstitutions: [p]\nnode:\n  allowed_tools: []\n  prompt: |\n    {{ Inputs.a }}\n    {{ with.p }}\n    {{ Inputs.a }}\n";
    let graph = "nodes:\n- id: a\n  use: f\n  with:\n    p: |\n      one\n      {{ Inputs.a }} {{ with.p }}\n- {id: b, use: f, with: {p: x}}\n";
    let said = places_of_advice(&Place::new(graph, &[("f", fragment)]));
    let places: Vec<&str> = said.iter().filter_map(|line| line.split(" is no token").next()).collect();
    assert_eq!(
        places[..3],
        [
            "f.yaml:7:5 OMG001 {{ Inputs.a }}",
            "g.yaml:7:7 OMG001 {{ Inputs.a }}",
            "g.yaml:7:22 OMG001 {{ with.p }} stands for a binding inside the file of a fragment only: here it stays as it is",
        ]
    );
    let again = ["f.yaml:9:5 OMG001", "f.yaml:7:5 OMG001", "f.yaml:9:5 OMG001"];
    for (place, wanted) in places[3..].iter().zip(again) {
        assert!(place.starts_with(wanted), "{places:?}");
    }
    assert_eq!(places.len(), 6, "{places:?}");
}

#[test]
fn a_token_is_quoted_as_its_author_wrote_it() {
    let fragment = "fragment: f\ndescription: d\nexit: in\nnodes:\n- {id: in, type: command, command: ls}\n";
    let graph = "nodes:\n- {id: m, use: f}\n- {id: c, type: command, depends_on: [m], command: \"echo {{ artifacts.m | inline }}\"}\n";
    let said = places_of_advice(&Place::new(graph, &[("f", fragment)]));
    assert!(
        said[0].starts_with("g.yaml:3:58 OMG030 {{ artifacts.m | inline }} makes what a command printed"),
        "{said:?}"
    );
}
