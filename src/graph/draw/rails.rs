//! Rails beside a list of nodes: one line a node, one more where its rails part or meet.
//!
//! A rail leads to one node that is still to come, and whoever that node waits for joins it. A rail that another line
//! merely passes keeps its upright: only a joint has arms.

use std::collections::HashMap;

use super::{Drawing, Kind};

/// The characters of a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ink {
    /// Glyphs of the kinds, in their order.
    pub(super) nodes: [char; 3],
    /// By arms: up 1, down 2, left 4, right 8.
    pub(super) lines: [char; 16],
}

/// Box characters.
pub(super) const BOXES: Ink = Ink {
    nodes: ['●', '■', '◆'],
    lines: [' ', '│', '│', '│', '─', '╯', '╮', '┤', '─', '╰', '╭', '├', '─', '┴', '┬', '┼'],
};
/// The same where only ASCII can be shown.
pub(super) const ASCII: Ink = Ink {
    nodes: ['*', '#', '?'],
    lines: [' ', '|', '|', '|', '-', '\'', '.', '+', '-', '\'', '.', '+', '-', '\'', '.', '+'],
};

// The arms of a line's character.
pub(super) const UP: usize = 1;
pub(super) const DOWN: usize = 2;
pub(super) const LEFT: usize = 4;
pub(super) const RIGHT: usize = 8;

impl Ink {
    /// The glyph of a kind of node.
    pub(super) fn node(&self, kind: Kind) -> char {
        match kind {
            Kind::Prompt => self.nodes[0],
            Kind::Command => self.nodes[1],
            Kind::Gate => self.nodes[2],
        }
    }
}

/// One line.
pub(super) struct Line {
    /// The rails, without white space at their end.
    pub(super) text: String,
    /// The node that stands on it.
    pub(super) node: Option<usize>,
}

/// Draws the nodes in `order`, parents first; `None` when more than `columns_max` rails stand side by side.
pub(super) fn draw(drawing: &Drawing, order: &[usize], columns_max: usize, ink: &Ink) -> Option<Vec<Line>> {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); drawing.nodes.len()];
    for edge in &drawing.edges {
        dependents[edge.from].push(edge.to);
    }
    let ranks: HashMap<usize, usize> = order.iter().enumerate().map(|(rank, node)| (*node, rank)).collect();
    let mut rails = Rails { columns: Vec::new(), left: None, columns_max };
    let mut lines = Vec::with_capacity(order.len());
    for &node in order {
        let own = rails.take(node)?;
        lines.push(rails.node(own, ink.node(drawing.nodes[node].kind), ink, node));
        let before = rails.columns.clone();
        let next = &mut dependents[node];
        next.sort_by_key(|node| ranks[node]);
        let mut joints = Vec::with_capacity(next.len());
        for &dependent in next.iter() {
            joints.push(rails.lead(dependent, own)?);
        }
        if !joints.is_empty() && joints != [own] {
            lines.push(rails.joints(own, &joints, &before, ink));
        }
        rails.left = joints.is_empty().then_some(own);
        rails.trim();
    }
    Some(lines)
}

struct Rails {
    /// The node that each column's rail leads to.
    columns: Vec<Option<usize>>,
    /// The column where the node of the last line ended: one that stood below it would look like its dependent.
    left: Option<usize>,
    columns_max: usize,
}

impl Rails {
    /// The column of `node`, whose rail ends there.
    fn take(&mut self, node: usize) -> Option<usize> {
        let own = match self.columns.iter().position(|to| *to == Some(node)) {
            Some(at) => at,
            None => self.free(0, self.left)?,
        };
        self.columns[own] = None;
        Some(own)
    }

    /// The column of the rail to `node`, which begins near `own` if there is none.
    fn lead(&mut self, node: usize, own: usize) -> Option<usize> {
        if let Some(at) = self.columns.iter().position(|to| *to == Some(node)) {
            return Some(at);
        }
        let at = self.free(own, None)?;
        self.columns[at] = Some(node);
        Some(at)
    }

    /// A free column other than `barred`, the nearest at or after `near` if there is one.
    fn free(&mut self, near: usize, barred: Option<usize>) -> Option<usize> {
        let is_free = |at: &usize| self.columns[*at].is_none() && Some(*at) != barred;
        let after = (near..self.columns.len()).find(is_free);
        if let Some(at) = after.or_else(|| (0..near).rev().find(is_free)) {
            return Some(at);
        }
        let at = self.columns.len() + usize::from(barred == Some(self.columns.len()));
        (at < self.columns_max).then(|| self.columns.resize(at + 1, None))?;
        Some(at)
    }

    fn trim(&mut self) {
        while self.columns.pop_if(|last| last.is_none()).is_some() {}
    }

    fn node(&self, own: usize, glyph: char, ink: &Ink, node: usize) -> Line {
        let cell = |at: usize| match self.columns[at] {
            _ if at == own => glyph,
            Some(_) => ink.lines[UP | DOWN],
            None => ' ',
        };
        let text: String = (0..self.columns.len()).flat_map(|at| [cell(at), ' ']).collect();
        Line { text: text.trim_end().to_owned(), node: Some(node) }
    }

    /// The line below a node: its rails part, and join those that are there.
    fn joints(&self, own: usize, joints: &[usize], before: &[Option<usize>], ink: &Ink) -> Line {
        let ends = || joints.iter().copied().chain([own]);
        let (first, last) = (ends().min().unwrap_or(own), ends().max().unwrap_or(own));
        let mut text = String::with_capacity(4 * self.columns.len());
        for at in 0..self.columns.len() {
            let (is_joint, rail) = (joints.contains(&at), before.get(at).is_some_and(Option::is_some));
            let mut arms = 0;
            if is_joint || at == own {
                arms |= if rail || at == own { UP } else { 0 };
                arms |= if is_joint { DOWN } else { 0 };
                arms |= if at > first { LEFT } else { 0 };
                arms |= if at < last { RIGHT } else { 0 };
            } else if rail {
                arms = UP | DOWN;
            } else if first < at && at < last {
                arms = LEFT | RIGHT;
            }
            text.push(ink.lines[arms]);
            text.push(if first <= at && at < last { ink.lines[LEFT | RIGHT] } else { ' ' });
        }
        Line { text: text.trim_end().to_owned(), node: None }
    }
}
