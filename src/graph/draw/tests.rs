//! Whatever the graph, its drawing says what it says.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::rails::{self, BOXES};
use super::text::Page;
use super::*;
use crate::graph::check;
use crate::graph::raw::{RawFeedback, RawGraph, RawNode};

/// A graph of prompts `n0`, `n1` … with these parents.
fn graph(parents: &[Vec<usize>]) -> Graph {
    let node = |(at, parents): (usize, &Vec<usize>)| RawNode {
        id: format!("n{at}"),
        depends_on: parents.iter().map(|parent| format!("n{parent}")).collect(),
        ..RawNode::default()
    };
    let raw = RawGraph { nodes: parents.iter().enumerate().map(node).collect(), ..RawGraph::default() };
    check(&raw).expect("it is sound")
}

fn drawing(parents: &[Vec<usize>]) -> Drawing {
    Drawing::of(&graph(parents), "drawn")
}

fn printed(drawing: &Drawing, width: Option<usize>) -> String {
    text::print(drawing, &Page { unicode: true, width, paint: &|_, text| text.to_owned() })
}

#[test]
fn what_nodes_are_stands_in_one_column_whatever_became_of_them() {
    let mut drawing = drawing(&[vec![], vec![], vec![0, 1]]);
    for (spot, words) in
        drawing.nodes.iter_mut().zip(["PASS", "FAIL (rejected by a check of its result)", "skipped"])
    {
        spot.mark = Some(Mark { words: words.to_owned(), tone: Tone::Good });
    }
    let text = printed(&drawing, None);
    let columns = text.lines().filter(|line| line.contains(" n")).filter_map(|line| {
        let at = line.rfind("prompt")?;
        Some(line[..at].chars().count())
    });
    let columns: Vec<usize> = columns.collect();
    assert!(columns.len() == 3 && columns.iter().all(|at| *at == columns[0]), "{text}");
}

/// Up to 30 nodes, each with some of the earlier ones as parents.
fn any_parents() -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::btree_set(0..1000_usize, 0..4), 1..30).prop_map(|picks| {
        let earlier = |(at, picks): (usize, BTreeSet<usize>)| match at {
            0 => Vec::new(),
            _ => picks.into_iter().map(|pick| pick % at).collect::<BTreeSet<_>>().into_iter().collect(),
        };
        picks.into_iter().enumerate().map(earlier).collect()
    })
}

/// Reads rails as a person does: who stands above whom along the lines.
fn read_back(lines: &[rails::Line]) -> BTreeSet<(usize, usize)> {
    let mut edges = BTreeSet::new();
    let mut above: Vec<BTreeSet<usize>> = Vec::new();
    let (mut own, mut last) = (0, 0);
    for line in lines {
        let cells: Vec<char> = line.text.chars().step_by(2).collect();
        above.resize(above.len().max(cells.len()), BTreeSet::new());
        for (at, above) in above.iter_mut().enumerate() {
            let arms = BOXES.lines.iter().rposition(|c| Some(c) == cells.get(at)).unwrap_or(0);
            let is_node = cells.get(at).is_some_and(|c| BOXES.nodes.contains(c));
            match line.node.filter(|_| is_node) {
                Some(node) => {
                    edges.extend(above.iter().map(|parent| (*parent, node)));
                    (own, last) = (at, node);
                    *above = BTreeSet::from([node]);
                }
                None if arms & rails::DOWN == 0 => above.clear(),
                None if arms & (rails::LEFT | rails::RIGHT) != 0 && at != own => {
                    if arms & rails::UP == 0 {
                        above.clear();
                    }
                    above.insert(last);
                }
                None => {}
            }
        }
    }
    edges
}

proptest! {
    #[test]
    fn everything_has_a_place_of_its_own(parents in any_parents()) {
        let drawing = drawing(&parents);
        for (at, parents) in parents.iter().enumerate() {
            let deepest = parents.iter().map(|parent| drawing.nodes[*parent].layer + 1).max();
            prop_assert_eq!(drawing.nodes[at].layer, deepest.unwrap_or(0));
        }
        let rows = drawing.rows();
        prop_assert_eq!(rows.len(), parents.len());
        for pair in rows.windows(2) {
            let (one, next) = (&drawing.nodes[pair[0]], &drawing.nodes[pair[1]]);
            if one.layer == next.layer {
                prop_assert_eq!(one.position + 1, next.position);
                prop_assert!(next.row - one.row > 0.98, "{} and {}", one.row, next.row);
            }
        }
        for edge in &drawing.edges {
            prop_assert_eq!(edge.via.len() + 1, drawing.nodes[edge.to].layer - drawing.nodes[edge.from].layer);
        }
    }

    #[test]
    fn rails_lead_where_edges_do(parents in any_parents()) {
        let drawing = drawing(&parents);
        let lines = rails::draw(&drawing, &drawing.rows(), 200, &BOXES).expect("there is room");
        let edges: BTreeSet<(usize, usize)> = drawing.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        prop_assert_eq!(read_back(&lines), edges, "{}", printed(&drawing, None));
    }

    #[test]
    fn no_title_breaks_out(title in "[ -~\n\u{1b}é<&\"\\\\]{0,40}") {
        let drawing = Drawing::of(&graph(&[vec![]]), &title);
        let svg = svg::print(&drawing);
        let tags = svg.matches('<').count();
        prop_assert_eq!(tags, svg::print(&Drawing::of(&graph(&[vec![]]), "plain")).matches('<').count());
        let shown = svg.chars().all(|c| c == '\n' || !c.is_control());
        prop_assert!(shown, "{}", svg);
        let dot = dot::print(&drawing);
        let first = dot.lines().next().expect("a line");
        let bare = first.replace("\\\\", "").replace("\\\"", "");
        prop_assert_eq!(bare.matches('"').count(), 2, "{}", first);
        let mermaid = mermaid::print(&drawing);
        prop_assert_eq!(mermaid.matches("flowchart LR\n").count(), 1);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json::print(&drawing, None)).is_ok());
    }
}

#[test]
fn a_large_graph_is_drawn_in_every_format() {
    let count = 5000;
    let chain: Vec<Vec<usize>> =
        (0..count).map(|at: usize| at.checked_sub(1).into_iter().collect()).collect();
    let mut from_the_first = chain.clone();
    from_the_first.iter_mut().skip(2).for_each(|parents| parents.push(0));
    let mut fan = vec![vec![0]; count];
    fan[0].clear();
    fan.push((1..count).collect());
    for parents in [chain, from_the_first, fan] {
        let drawing = drawing(&parents);
        let stand_ins: usize = drawing.edges.iter().map(|edge| edge.via.len()).sum();
        assert!(stand_ins <= 20_000, "{stand_ins}");
        for text in [
            printed(&drawing, Some(80)),
            mermaid::print(&drawing),
            dot::print(&drawing),
            svg::print(&drawing),
            json::print(&drawing, None),
        ] {
            let last = format!("n{}", count - 1);
            assert!(text.contains(&last) && text.len() < 4_000_000, "{}", text.len());
        }
    }
}

#[test]
fn what_does_not_fit_beside_rails_is_a_list() {
    let mut parents = vec![vec![0]; 40];
    parents[0].clear();
    parents.push((1..40).collect());
    let text = printed(&drawing(&parents), Some(80));
    assert!(text.contains("1  ● n0  prompt\n"), "{text}");
    assert!(text.contains("3      ● n40  prompt  ← n1, n2, n3 and 36 more\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("2    ● n")).count(), 39);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_loop_is_drawn_from_its_declarer_back() {
    let mut raw = RawGraph::default();
    for (id, parent) in [("write", None), ("review", Some("write"))] {
        raw.nodes.push(RawNode {
            id: id.to_owned(),
            depends_on: parent.map(str::to_owned).into_iter().collect(),
            ..RawNode::default()
        });
    }
    raw.nodes[1].feedback = Some(RawFeedback { rerun: "write".to_owned(), max: Some(2) });
    let drawing = Drawing::of(&check(&raw).expect("it is sound"), "");
    assert_eq!(drawing.loops, [Loop { from: 1, to: 0, max: 2, body: vec![0, 1] }]);
    insta::assert_snapshot!(printed(&drawing, None), @"
    2 nodes in 2 steps

    1  ●  write   prompt
    2  ●  review  prompt  ↺ back to write, at most 2 rounds

    ● prompt
    ↺ runs everything from there again when it is judged to fail
    ");
    assert!(
        dot::print(&drawing)
            .contains("n1 -> n0 [style=dashed, constraint=false, label=\"at most 2 rounds\"]")
    );
    assert!(mermaid::print(&drawing).contains("n1 -.->|\"at most 2 rounds\"| n0"));
}

proptest! {
    #[test]
    fn a_sketch_stands_as_the_graph_does(parents in any_parents()) {
        let ids: Vec<Vec<String>> =
            parents.iter().map(|parents| parents.iter().map(|at| format!("n{at}")).collect()).collect();
        let names: Vec<String> = (0..ids.len()).map(|at| format!("n{at}")).collect();
        let nodes = names.iter().zip(&ids).map(|(name, ids)| (name.as_str(), Kind::Prompt, ids.as_slice()));
        prop_assert_eq!(Drawing::sketch("drawn", nodes), drawing(&parents));
    }
}

#[test]
fn a_sketch_leaves_circles_and_what_is_not_there_out() {
    let ids = |id: &str| vec![id.to_owned()];
    let (a, b, gone) = (ids("a"), ids("b"), ids("gone"));
    let nodes = [("a", &b), ("b", &a), ("c", &b), ("d", &gone)];
    let sketch = Drawing::sketch("t", nodes.into_iter().map(|(id, ids)| (id, Kind::Prompt, ids.as_slice())));
    assert_eq!((sketch.edges.len(), sketch.nodes.len(), sketch.layers), (0, 4, 1));
}
