//! A drawing as Mermaid reads it, for Markdown.

use std::fmt::Write;

use super::{Drawing, Kind, Spot, Tone};

/// The document. Mermaid finds places of its own.
pub fn print(drawing: &Drawing) -> String {
    let mut out = String::new();
    if !drawing.title.is_empty() {
        let title = serde_json::Value::from(drawing.title.as_str());
        write!(out, "---\ntitle: {title}\n---\n").ok();
    }
    out.push_str("flowchart LR\n");
    let in_lane =
        |lane: Option<usize>| drawing.nodes.iter().enumerate().filter(move |(_, spot)| spot.lane == lane);
    in_lane(None).for_each(|(at, spot)| node(&mut out, "  ", at, spot));
    for (lane, name) in drawing.lanes.iter().enumerate() {
        writeln!(out, "  subgraph lane{lane} [\"{}\"]", escaped(&format!("worktree {name}"))).ok();
        in_lane(Some(lane)).for_each(|(at, spot)| node(&mut out, "    ", at, spot));
        out.push_str("  end\n");
    }
    for edge in &drawing.edges {
        let arrow = if edge.session { "==>|session|" } else { "-->" };
        writeln!(out, "  n{} {arrow} n{}", edge.from, edge.to).ok();
    }
    for back in &drawing.loops {
        writeln!(out, "  n{} -.->|\"{}\"| n{}", back.from, escaped(&back.words()), back.to).ok();
    }
    classes(drawing, &mut out);
    out
}

fn node(out: &mut String, lead: &str, at: usize, spot: &Spot) {
    let (open, close) = match spot.kind {
        Kind::Prompt => ("(", ")"),
        Kind::Command => ("[", "]"),
        Kind::Gate => ("{{", "}}"),
    };
    let mark = spot.mark.as_ref().map(|mark| format!("<br>{}", escaped(&mark.words))).unwrap_or_default();
    let label = format!("{}<br>{}{mark}", escaped(&spot.id), spot.kind.as_str());
    writeln!(out, "{lead}n{at}{open}\"{label}\"{close}").ok();
}

/// The colours of what became of the nodes.
fn classes(drawing: &Drawing, out: &mut String) {
    for tone in Tone::ALL {
        let has_tone = |spot: &Spot| spot.mark.as_ref().is_some_and(|mark| mark.tone == tone);
        let nodes: Vec<String> = drawing
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, spot)| has_tone(spot))
            .map(|(at, _)| format!("n{at}"))
            .collect();
        if nodes.is_empty() {
            continue;
        }
        let fill = match tone {
            Tone::Good => "fill:#d4edda,stroke:#28a745,color:#111",
            Tone::Bad => "fill:#f8d7da,stroke:#c82333,color:#111",
            Tone::Wary => "fill:#fff3cd,stroke:#b8860b,color:#111",
            Tone::Busy => "fill:#d1ecf1,stroke:#0c7c91,color:#111",
            Tone::Faint => "fill:#eeeeee,stroke:#888888,color:#555,stroke-dasharray:4 3",
        };
        writeln!(out, "  classDef {} {fill}\n  class {} {}", tone.as_str(), nodes.join(","), tone.as_str())
            .ok();
    }
}

/// `text` inside a quoted label, where quotes end it, `#` begins an entity and HTML is read as such.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | ';' | '[' | ']' | '{' | '}' | '|' => {
                write!(out, "#{};", u32::from(c)).ok();
            }
            c => out.push(c),
        }
    }
    out
}
