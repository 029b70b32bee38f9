//! A drawing as Graphviz reads it.

use std::fmt::Write;

use super::{Drawing, Kind, Spot, Tone};

/// The document. Graphviz finds places of its own.
pub fn print(drawing: &Drawing) -> String {
    let mut out = format!("digraph {} {{\n", quoted(&drawing.title));
    out.push_str("  rankdir=LR;\n  node [fontname=\"monospace\", fontsize=11, style=\"filled\", fillcolor=\"white\"];\n");
    let in_lane =
        |lane: Option<usize>| drawing.nodes.iter().enumerate().filter(move |(_, spot)| spot.lane == lane);
    in_lane(None).for_each(|(at, spot)| node(&mut out, "  ", at, spot));
    for (lane, name) in drawing.lanes.iter().enumerate() {
        let label = quoted(&format!("worktree {name}"));
        write!(
            out,
            "  subgraph cluster_{lane} {{\n    label={label}; fontname=\"monospace\"; style=\"rounded\";\n"
        )
        .ok();
        in_lane(Some(lane)).for_each(|(at, spot)| node(&mut out, "    ", at, spot));
        out.push_str("  }\n");
    }
    for edge in &drawing.edges {
        let style = if edge.session { " [label=\"session\", style=bold]" } else { "" };
        writeln!(out, "  n{} -> n{}{style};", edge.from, edge.to).ok();
    }
    for back in &drawing.loops {
        let label = quoted(&back.words());
        writeln!(out, "  n{} -> n{} [style=dashed, constraint=false, label={label}];", back.from, back.to)
            .ok();
    }
    out.push_str("}\n");
    out
}

fn node(out: &mut String, lead: &str, at: usize, spot: &Spot) {
    let shape = match spot.kind {
        Kind::Prompt => "box, style=\"filled,rounded\"",
        Kind::Command => "box",
        Kind::Gate => "hexagon",
    };
    let mut label = format!("{}\n{}", spot.id, spot.kind.as_str());
    let mut colour = "";
    if let Some(mark) = &spot.mark {
        label = format!("{label}\n{}", mark.words);
        colour = match mark.tone {
            Tone::Good => ", fillcolor=\"#d4edda\"",
            Tone::Bad => ", fillcolor=\"#f8d7da\"",
            Tone::Wary => ", fillcolor=\"#fff3cd\"",
            Tone::Busy => ", fillcolor=\"#d1ecf1\"",
            Tone::Faint => ", fillcolor=\"#eeeeee\"",
        };
    }
    writeln!(out, "{lead}n{at} [shape={shape}, label={}{colour}];", quoted(&label)).ok();
}

/// `text` as a quoted word: only a backslash, a quote and a line break mean anything in it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
