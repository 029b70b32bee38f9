//! A drawing as one SVG file: no script, nothing from elsewhere, light and dark by the reader's wish.
//!
//! Layers are columns from left to right. Text is set in a fixed pitch, so that its width is known here and no box is
//! too small for it; a long id is broken over lines. What a colour says stands there in words as well.

use std::fmt::Write;

use super::{Drawing, Edge, Kind, Loop, Spot};
use crate::text::table::cut;

/// The advance of one character at 12 px, above that of every common fixed-pitch font.
const CHAR: f64 = 7.4;
/// The same at 11 px.
const SMALL: f64 = 6.8;
/// Characters of an id on one line.
const LINE_MAX: usize = 32;
/// The height of a line of text.
const LINE: f64 = 16.0;
/// From the text to the edge of its box.
const PAD: f64 = 14.0;
/// Between two columns, for edges; between two rows; around everything.
const GAP: f64 = 56.0;
const ROW_GAP: f64 = 18.0;
const MARGIN: f64 = 24.0;
/// From one way back to the next below it.
const TRACK: f64 = 26.0;
/// How many colours lanes have before they begin again; their names tell them apart anyway.
const LANE_COLOURS: usize = 6;
/// The smallest width, so that the legend has room.
const WIDTH_MIN: f64 = 420.0;

const STYLE: &str = "\
:root{--bg:#fff;--ink:#1b1f24;--soft:#57606a;--line:#8c959f;--box:#f6f8fa;--back:#8250df;\
--good:#1a7f37;--goodbg:#dafbe1;--bad:#cf222e;--badbg:#ffebe9;--wary:#9a6700;--warybg:#fff8c5;\
--busy:#0969da;--busybg:#ddf4ff;--faint:#59636e;--faintbg:#eaeef2;\
--l0:#0969da;--l1:#bf3989;--l2:#1a7f37;--l3:#bc4c00;--l4:#8250df;--l5:#0a7c86}\
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--ink:#e6edf3;--soft:#9da7b3;--line:#6e7681;--box:#161b22;--back:#bc8cff;\
--good:#3fb950;--goodbg:#12261e;--bad:#ff7b72;--badbg:#2d1517;--wary:#d29922;--warybg:#272115;\
--busy:#58a6ff;--busybg:#121d2f;--faint:#8b949e;--faintbg:#1c2128;\
--l0:#58a6ff;--l1:#f778ba;--l2:#3fb950;--l3:#f0883e;--l4:#bc8cff;--l5:#39c5cf}}\
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:var(--ink)}\
.bg{fill:var(--bg)}.h{font-size:15px;font-weight:bold}.s{fill:var(--soft);font-size:11px}\
.n>.b{fill:var(--box);stroke:var(--line);stroke-width:1.5}\
.e{fill:none;stroke:var(--line);stroke-width:1.5}.e.session{stroke-width:3}\
.k{fill:none;stroke:var(--back);stroke-width:1.5;stroke-dasharray:6 4}.kt{fill:var(--back);font-size:11px}.a{fill:var(--line)}.ka{fill:var(--back)}\
.good>.b{fill:var(--goodbg);stroke:var(--good)}.bad>.b{fill:var(--badbg);stroke:var(--bad)}\
.wary>.b{fill:var(--warybg);stroke:var(--wary)}.busy>.b{fill:var(--busybg);stroke:var(--busy)}\
.faint>.b{fill:var(--faintbg);stroke:var(--faint);stroke-dasharray:4 3}\
.good>.m{fill:var(--good)}.bad>.m{fill:var(--bad)}.wary>.m{fill:var(--wary)}.busy>.m{fill:var(--busy)}.faint>.m{fill:var(--faint)}\
.m{font-weight:bold;font-size:11px}\
.l0{fill:var(--l0)}.l1{fill:var(--l1)}.l2{fill:var(--l2)}.l3{fill:var(--l3)}.l4{fill:var(--l4)}.l5{fill:var(--l5)}";

/// The document, with a newline at its end.
pub fn print(drawing: &Drawing) -> String {
    Sheet::of(drawing).print()
}

/// Where a drawing's parts lie, in pixels.
struct Sheet<'a> {
    drawing: &'a Drawing,
    boxes: Vec<Box>,
    /// The left edge of each layer, and its width.
    columns: Vec<(f64, f64)>,
    /// The middle of row 0, and the distance of rows.
    top: f64,
    pitch: f64,
    /// The track of each way back.
    tracks: Vec<usize>,
    /// The lowest edge of a box or line.
    floor: f64,
}

/// A node's box.
struct Box {
    lines: Vec<String>,
    below: String,
    state: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl<'a> Sheet<'a> {
    fn of(drawing: &'a Drawing) -> Self {
        let mut boxes: Vec<Box> = drawing.nodes.iter().map(|spot| measured(drawing, spot)).collect();
        let mut widths = vec![0.0_f64; drawing.layers];
        for (spot, place) in drawing.nodes.iter().zip(&boxes) {
            widths[spot.layer] = widths[spot.layer].max(place.width);
        }
        let mut columns = Vec::with_capacity(widths.len());
        let mut x = MARGIN;
        for width in widths {
            columns.push((x, width));
            x += width + GAP;
        }
        let height = boxes.iter().map(|place| place.height).fold(0.0, f64::max);
        let (pitch, top) = (height + ROW_GAP, MARGIN + 48.0 + height / 2.0);
        let mut floor = top;
        for (spot, place) in drawing.nodes.iter().zip(&mut boxes) {
            let (left, width) = columns[spot.layer];
            (place.x, place.width) = (left, width);
            place.y = top + spot.row * pitch - place.height / 2.0;
            floor = floor.max(place.y + place.height);
        }
        for row in drawing.edges.iter().flat_map(|edge| &edge.via) {
            floor = floor.max(top + row * pitch);
        }
        Sheet { drawing, boxes, columns, top, pitch, tracks: tracks(drawing), floor }
    }

    fn print(&self) -> String {
        let right = self.columns.last().map_or(0.0, |(x, width)| x + width);
        let mut legend = String::new();
        let tracks = self.tracks.iter().max().map_or(0.0, |last| (f64_of(*last) + 1.0) * TRACK);
        let (legend_width, bottom) = self.legend(&mut legend, self.floor + tracks + 36.0);
        let title = if self.drawing.title.is_empty() { "graph" } else { &self.drawing.title };
        let title_width = f64_of(title.chars().count()) * CHAR * 1.25;
        let width = (right.max(legend_width).max(MARGIN + title_width) + MARGIN).max(WIDTH_MIN);
        let height = bottom + MARGIN;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"omg-title omg-desc\">\n\
             <title id=\"omg-title\">{}</title>\n<desc id=\"omg-desc\">{}</desc>\n<style>{STYLE}</style>\n\
             <defs>{}{}</defs>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
            escaped(title),
            escaped(&self.description()),
            marker("arrow", "a"),
            marker("back", "ka"),
        );
        writeln!(
            out,
            "<text class=\"h\" x=\"{MARGIN}\" y=\"{:.0}\">{}</text>",
            MARGIN + 10.0,
            escaped(title)
        )
        .ok();
        writeln!(
            out,
            "<text class=\"s\" x=\"{MARGIN}\" y=\"{:.0}\">{}</text>",
            MARGIN + 28.0,
            self.drawing.size()
        )
        .ok();
        self.drawing.edges.iter().for_each(|edge| self.edge(&mut out, edge));
        self.drawing
            .loops
            .iter()
            .zip(&self.tracks)
            .for_each(|(back, track)| self.back(&mut out, back, *track));
        self.drawing.nodes.iter().zip(&self.boxes).for_each(|(spot, place)| self.node(&mut out, spot, place));
        out + &legend + "</svg>\n"
    }

    /// What a person who does not see it should know.
    fn description(&self) -> String {
        let loops = self.drawing.loops.iter().map(|back| {
            let id = |at: usize| &self.drawing.nodes[at].id;
            format!("{} goes back to {} {}", id(back.from), id(back.to), back.words())
        });
        let states = self.drawing.states();
        let states = states.iter().map(|((_, words), count)| format!("{count} {words}"));
        let parts: Vec<String> = [self.drawing.size()].into_iter().chain(states).chain(loops).collect();
        parts.join("; ")
    }

    fn edge(&self, out: &mut String, edge: &Edge) {
        let (from, to) = (&self.boxes[edge.from], &self.boxes[edge.to]);
        let (mut x, mut y) = (from.x + from.width, middle(from));
        let mut path = format!("M{x:.1} {y:.1}");
        let first = self.drawing.nodes[edge.from].layer + 1;
        for (nth, row) in edge.via.iter().enumerate() {
            let (left, width) = self.columns[first + nth];
            let level = self.top + row * self.pitch;
            curve(&mut path, (x, y), (left, level));
            write!(path, " H{:.1}", left + width).ok();
            (x, y) = (left + width, level);
        }
        curve(&mut path, (x, y), (to.x - 7.0, middle(to)));
        let class = if edge.session { "e session" } else { "e" };
        writeln!(out, "<path class=\"{class}\" d=\"{path}\" marker-end=\"url(#arrow)\"/>").ok();
    }

    /// A way back: out to the right of its declarer, under everything, and up to the left of its target.
    fn back(&self, out: &mut String, back: &Loop, track: usize) {
        let (from, to) = (&self.boxes[back.from], &self.boxes[back.to]);
        let level = self.floor + 14.0 + f64_of(track) * TRACK;
        let (leaves, enters) = (from.x + from.width, to.x);
        // Those that meet in a gap go side by side.
        let aside = 12.0 + f64_of(track % 6) * 6.0;
        let (out_x, in_x) = (leaves + aside, enters - aside - 2.0);
        let (out_y, in_y) = (from.y + from.height * 0.78, to.y + to.height * 0.78);
        writeln!(
            out,
            "<path class=\"k\" d=\"M{leaves:.1} {out_y:.1} Q{out_x:.1} {out_y:.1} {out_x:.1} {:.1} V{:.1} \
             Q{out_x:.1} {level:.1} {:.1} {level:.1} H{:.1} Q{in_x:.1} {level:.1} {in_x:.1} {:.1} V{:.1} \
             Q{in_x:.1} {in_y:.1} {:.1} {in_y:.1}\" marker-end=\"url(#back)\"/>",
            out_y + 10.0,
            level - 10.0,
            out_x - 10.0,
            in_x + 10.0,
            level - 10.0,
            in_y + 10.0,
            enters - 7.0,
        )
        .ok();
        let words = format!("↺ {}", back.words());
        let (middle, width) = (f64::midpoint(out_x, in_x), f64_of(words.chars().count()) * SMALL + 8.0);
        writeln!(
            out,
            "<rect class=\"bg\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{LINE}\"/>\
             <text class=\"kt\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{words}</text>",
            middle - width / 2.0,
            level - LINE / 2.0,
            level + 4.0,
        )
        .ok();
    }

    fn node(&self, out: &mut String, spot: &Spot, place: &Box) {
        let tone = spot.mark.as_ref().map_or(String::new(), |mark| format!(" {}", mark.tone.as_str()));
        write!(out, "<g class=\"n{tone}\"><title>{}</title>", escaped(&self.told(spot, place))).ok();
        outline(out, spot.kind, place);
        if let Some(lane) = spot.lane {
            let (x, y) = (place.x + 5.0, place.y + 8.0);
            let (height, colour) = (place.height - 16.0, lane % LANE_COLOURS);
            write!(out, "<rect class=\"l{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"4\" height=\"{height:.1}\" rx=\"2\"/>").ok();
        }
        let x = place.x + PAD;
        let mut y = place.y + LINE + 3.0;
        for line in &place.lines {
            write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(line)).ok();
            y += LINE;
        }
        write!(out, "<text class=\"s\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(&place.below)).ok();
        if !place.state.is_empty() {
            y += LINE;
            write!(out, "<text class=\"m\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(&place.state)).ok();
        }
        out.push_str("</g>\n");
    }

    fn told(&self, spot: &Spot, place: &Box) -> String {
        let state = spot.mark.as_ref().map(|mark| format!(", {}", mark.words)).unwrap_or_default();
        format!("{}: {}, step {} of {}{state}", spot.id, place.below, spot.layer + 1, self.drawing.layers)
    }

    /// The kinds, the lanes, the lines and what became of the nodes; returns its right edge and its lower one.
    fn legend(&self, out: &mut String, top: f64) -> (f64, f64) {
        let mut pen = Pen { x: MARGIN, y: top, right: 0.0 };
        for kind in self.drawing.kinds() {
            let place = Box {
                lines: Vec::new(),
                below: String::new(),
                state: String::new(),
                x: pen.x,
                y: pen.y - 10.0,
                width: 20.0,
                height: 12.0,
            };
            out.push_str("<g class=\"n\">");
            outline(out, kind, &place);
            out.push_str("</g>");
            pen.word(out, 26.0, "s", kind.as_str());
        }
        if !self.drawing.loops.is_empty() {
            write!(out, "<path class=\"k\" d=\"M{:.1} {:.1} h24\"/>", pen.x, pen.y - 4.0).ok();
            pen.word(out, 30.0, "s", "runs again when judged to fail");
        }
        if self.drawing.edges.iter().any(|edge| edge.session) {
            write!(out, "<path class=\"e session\" d=\"M{:.1} {:.1} h24\"/>", pen.x, pen.y - 4.0).ok();
            pen.word(out, 30.0, "s", "goes on with the session");
        }
        pen.line();
        for (lane, name) in self.drawing.lanes.iter().enumerate() {
            let (x, y, colour) = (pen.x, pen.y - 10.0, lane % LANE_COLOURS);
            write!(
                out,
                "<rect class=\"l{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"4\" height=\"12\" rx=\"2\"/>"
            )
            .ok();
            pen.word(out, 10.0, "s", &format!("worktree {name}"));
        }
        if !self.drawing.lanes.is_empty() {
            pen.line();
        }
        for ((tone, words), count) in self.drawing.states() {
            let (x, y) = (pen.x, pen.y - 10.0);
            write!(
                out,
                "<g class=\"n {}\"><rect class=\"b\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"20\" height=\"12\" rx=\"3\"/></g>",
                tone.as_str()
            )
            .ok();
            pen.word(out, 26.0, "s", &format!("{count} {words}"));
        }
        pen.line();
        out.push('\n');
        (pen.right, pen.y - LINE)
    }
}

/// Where the next word of the legend goes.
struct Pen {
    x: f64,
    y: f64,
    right: f64,
}

impl Pen {
    fn word(&mut self, out: &mut String, lead: f64, class: &str, word: &str) {
        self.x += lead;
        write!(
            out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            self.x,
            self.y,
            escaped(word)
        )
        .ok();
        self.x += f64_of(word.chars().count()) * SMALL;
        self.right = self.right.max(self.x);
        self.x += 20.0;
        if self.x > 900.0 {
            self.line();
        }
    }

    fn line(&mut self) {
        if self.x > MARGIN {
            (self.x, self.y) = (MARGIN, self.y + LINE + 6.0);
        }
    }
}

/// A node's box before it has a place.
fn measured(drawing: &Drawing, spot: &Spot) -> Box {
    let letters: Vec<char> = spot.id.chars().collect();
    let lines: Vec<String> = letters.chunks(LINE_MAX).map(|line| line.iter().collect()).collect();
    let lane = spot.lane.map(|lane| format!(" · worktree {}", drawing.lanes[lane])).unwrap_or_default();
    let below = format!("{}{lane}", spot.kind.as_str());
    // All of it stands in the node's title.
    let state = spot.mark.as_ref().map(|mark| cut(&mark.words, LINE_MAX).into_owned()).unwrap_or_default();
    let longest = lines
        .iter()
        .map(String::as_str)
        .chain([below.as_str(), state.as_str()])
        .map(|line| line.chars().count())
        .max();
    let count = lines.len() + 1 + usize::from(spot.mark.is_some());
    let width = f64_of(longest.unwrap_or(0)) * CHAR + 2.0 * PAD;
    Box { lines, below, state, x: 0.0, y: 0.0, width, height: f64_of(count) * LINE + 12.0 }
}

/// The shape of a kind: round for a model, square for a command, pointed for a person.
fn outline(out: &mut String, kind: Kind, place: &Box) {
    let Box { x, y, width, height, .. } = place;
    let rect = |out: &mut String, rx: f64| {
        write!(out, "<rect class=\"b\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{rx}\"/>").ok();
    };
    match kind {
        Kind::Prompt => rect(out, (height / 3.0).min(12.0)),
        Kind::Command => rect(out, 0.0),
        Kind::Gate => {
            let cut = (height / 4.0).min(10.0);
            let (right, bottom, middle) = (x + width, y + height, y + height / 2.0);
            write!(
                out,
                "<polygon class=\"b\" points=\"{x:.1},{middle:.1} {:.1},{y:.1} {:.1},{y:.1} {right:.1},{middle:.1} \
                 {:.1},{bottom:.1} {:.1},{bottom:.1}\"/>",
                x + cut,
                right - cut,
                right - cut,
                x + cut,
            )
            .ok();
        }
    }
}

fn marker(id: &str, class: &str) -> String {
    format!(
        "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"1\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"{class}\" d=\"M0 0L8 4L0 8z\"/></marker>"
    )
}

fn middle(place: &Box) -> f64 {
    place.y + place.height / 2.0
}

fn curve(path: &mut String, from: (f64, f64), to: (f64, f64)) {
    let half = (to.0 - from.0) / 2.0;
    let (x1, x2) = (from.0 + half, to.0 - half);
    write!(path, " C{x1:.1} {:.1} {x2:.1} {:.1} {:.1} {:.1}", from.1, to.1, to.0, to.1).ok();
}

/// A track for each way back: those over the same columns lie below each other.
fn tracks(drawing: &Drawing) -> Vec<usize> {
    let span = |back: &Loop| (drawing.nodes[back.to].layer, drawing.nodes[back.from].layer);
    let mut order: Vec<usize> = (0..drawing.loops.len()).collect();
    order.sort_by_key(|&at| span(&drawing.loops[at]));
    // The last layer that each track is taken up to.
    let mut taken: Vec<usize> = Vec::new();
    let mut tracks = vec![0; drawing.loops.len()];
    for at in order {
        let (first, last) = span(&drawing.loops[at]);
        let track = taken.iter().position(|until| *until < first).unwrap_or(taken.len());
        if track == taken.len() {
            taken.push(last);
        }
        taken[track] = last;
        tracks[at] = track;
    }
    tracks
}

#[expect(clippy::cast_precision_loss, reason = "what is counted here is far below 2^52")]
fn f64_of(count: usize) -> f64 {
    count as f64
}

/// `text` between tags and in attributes; controls have been made visible before.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not even a reference to these may stand in XML.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
