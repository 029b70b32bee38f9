//! Tables without borders, and text cut or wrapped to a width.
//!
//! Widths are columns of a terminal, not bytes or characters: wide and combining characters line up. The last
//! column takes what is left of the line and wraps; every other one is as wide as its longest cell. Where a line is
//! too narrow for that, columns that a table can do without are left out, and then a first cell that is too long
//! stands on a line of its own, so that ids stay whole; where even that does not fit, each row is a block. A cell must be one line without control characters. Knows no
//! terminal: the width is handed in.

use std::borrow::Cow;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: &str = "  ";
/// A longer last cell is not wrapped into a sliver narrower than this.
const LAST_COLUMN_MIN: usize = 24;
/// The first column is not made narrower than this.
const FIRST_COLUMN_MIN: usize = 8;
/// A rule in a pipe is no longer than this or the header, however long a last cell is.
const RULE_MAX: usize = 100;

/// Which edge of its column a cell touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// One cell of a row.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style of its own.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::styled(text, Style::new())
    }
}

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    yielding: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// What of a table is printed, and how wide.
struct Layout {
    /// The columns that are shown.
    columns: Vec<usize>,
    /// The width of each of them.
    widths: Vec<usize>,
    /// How much of a line the last one may take.
    room: usize,
}

impl Table {
    /// A table with these columns, left to right.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), yielding: Vec::new(), rows: Vec::new() }
    }

    /// Adds a row; it has one cell a column.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len(), "a row has one cell a column");
        self.rows.push(cells.into());
    }

    /// Names the columns that a narrow terminal does without, the least needed first.
    pub fn yielding(mut self, titles: &[&'static str]) -> Self {
        self.yielding = titles.to_vec();
        self
    }

    /// Prints header, rule, rows and rule, for lines of at most `width` columns; whole lines when `None`.
    pub fn print(&self, width: Option<usize>) -> String {
        let layout = self.layout(width);
        if let Some(width) = width.filter(|_| layout.room == usize::MAX) {
            return self.blocks(width);
        }
        let before = layout.before();
        let last = layout.widths.last().copied().unwrap_or(0).min(layout.room);
        let title = self.columns.last().map_or(0, |(title, _)| title.width());
        let rule = "-".repeat((before + last).min(width.unwrap_or(RULE_MAX.max(before + title))));
        let header: Vec<Cell> = self.columns.iter().map(|(title, _)| Cell::from(*title)).collect();
        let mut out = String::new();
        self.line(&header, &layout, &mut out);
        out.push_str(&rule);
        out.push('\n');
        for row in &self.rows {
            self.line(row, &layout, &mut out);
        }
        out.push_str(&rule);
        out.push('\n');
        out
    }

    /// Each row as its first cell, with the others named below it; cells that say nothing are left out.
    fn blocks(&self, width: usize) -> String {
        let rule = "-".repeat(width) + "\n";
        let rows: String = self.rows.iter().map(|row| self.block(row, width)).collect();
        format!("{rule}{rows}{rule}")
    }

    fn block(&self, row: &[Cell], width: usize) -> String {
        let mut out = paint(row[0].style, &row[0].text).into_owned();
        let mut used = width;
        for ((title, _), cell) in self.columns.iter().zip(row).skip(1) {
            let text = cell.text.trim();
            if text.is_empty() || text == "-" {
                continue;
            }
            let before = GAP.len() + title.width() + ": ".len();
            let needed = before + text.width();
            if used + needed > width {
                out.push('\n');
                used = 0;
            }
            used += needed;
            let parts = wrap(text, width.saturating_sub(before).max(LAST_COLUMN_MIN / 2));
            out.extend([GAP, title, ": ", &paint(cell.style, parts[0])]);
            for part in &parts[1..] {
                out.extend(["\n", GAP, GAP, &paint(cell.style, part)]);
            }
        }
        out.push('\n');
        out
    }

    fn layout(&self, width: Option<usize>) -> Layout {
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        let widths = columns.iter().map(|at| self.width_of(*at)).collect();
        let mut layout = Layout { columns, widths, room: usize::MAX };
        let Some(width) = width else { return layout };
        for title in &self.yielding {
            if layout.lack(width) == 0 {
                break;
            }
            layout.leave_out(|at| self.columns[at].0 == *title);
        }
        let lack = layout.lack(width);
        if lack > 0 && layout.widths.len() > 1 {
            layout.widths[0] = self.first_within(layout.widths[0].saturating_sub(lack));
        }
        let room = width.saturating_sub(layout.before());
        let last = layout.widths.last().copied().unwrap_or(0);
        layout.room = if room >= last.min(LAST_COLUMN_MIN) { room.max(1) } else { usize::MAX };
        layout
    }

    /// The width of the first column when cells of more than `most` columns stand on lines of their own.
    fn first_within(&self, most: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[0].text.width());
        let kept = cells.filter(|width| *width <= most).max().unwrap_or(0);
        kept.max(self.columns[0].0.width()).max(FIRST_COLUMN_MIN)
    }

    fn width_of(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[at].text.width());
        cells.max().unwrap_or(0).max(self.columns[at].0.width())
    }

    /// One row: its cells padded, the last one wrapped into its room under itself.
    fn line(&self, row: &[Cell], layout: &Layout, out: &mut String) {
        let cells: Vec<(&Cell, Align)> =
            layout.columns.iter().map(|at| (&row[*at], self.columns[*at].1)).collect();
        let last = cells.len() - 1;
        let filled = cells.iter().rposition(|(cell, _)| !cell.text.is_empty()).unwrap_or(0);
        for (at, (cell, align)) in cells.iter().enumerate().take(filled.min(last.saturating_sub(1)) + 1) {
            let (width, wide) = (layout.widths[at], cell.text.width());
            let padding = " ".repeat(width.saturating_sub(wide));
            let painted = paint(cell.style, &cell.text);
            match align {
                Align::Right => out.extend([padding.as_str(), &painted]),
                Align::Left if at == filled => out.push_str(&painted),
                // Too long for its column: the others stand in their places on the next line.
                Align::Left if wide > width => out.extend([&painted as &str, "\n", &" ".repeat(width)]),
                Align::Left => out.extend([&painted as &str, &padding]),
            }
            out.push_str(if at < filled { GAP } else { "" });
        }
        if filled == last && last > 0 {
            for (nth, part) in wrap(&cells[last].0.text, layout.room).into_iter().enumerate() {
                if nth > 0 {
                    out.extend(["\n", &" ".repeat(layout.before())]);
                }
                out.push_str(&paint(cells[last].0.style, part));
            }
        }
        out.push('\n');
    }
}

impl Layout {
    /// What stands before the last column.
    fn before(&self) -> usize {
        self.widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum()
    }

    /// How many columns of a terminal are missing for the last column to be readable.
    fn lack(&self, width: usize) -> usize {
        let last = self.widths.last().copied().unwrap_or(0).min(LAST_COLUMN_MIN);
        (self.before() + last).saturating_sub(width)
    }

    fn leave_out(&mut self, is_it: impl Fn(usize) -> bool) {
        if let Some(at) = self.columns.iter().position(|at| is_it(*at)) {
            self.columns.remove(at);
            self.widths.remove(at);
        }
    }
}

/// `text` in `style`; exactly `text` in the plain one.
pub fn paint(style: Style, text: &str) -> Cow<'_, str> {
    if style.is_plain() || text.is_empty() { text.into() } else { format!("{style}{text}{style:#}").into() }
}

/// `text` in at most `width` columns, the end given up for an ellipsis when it is longer.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return text.into();
    }
    let head = &text[..fitting(text, width.saturating_sub(1))];
    if width == 0 { "".into() } else { format!("{head}…").into() }
}

/// `text` in pieces of at most `width` columns, broken at spaces where there are any. At least one piece.
pub fn wrap(text: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.width() > width {
        let end = fitting(rest, width).max(rest.chars().next().map_or(0, char::len_utf8));
        // A break in the first third would leave a ragged line for the sake of one long word.
        let space = rest[..end].rfind(' ').filter(|at| *at > end / 3);
        let (piece, after) =
            rest.split_at(if rest[end..].starts_with(' ') { end } else { space.unwrap_or(end) });
        pieces.push(piece.trim_end());
        rest = after.trim_start();
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// How many bytes of `text` fit into `width` columns; marks stay with what they combine with.
fn fitting(text: &str, width: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    fn table() -> Table {
        let columns = [("NODE", Align::Left), ("COST", Align::Right), ("DETAIL", Align::Left)];
        let mut table = Table::new(&columns);
        table.row(["日本語".into(), "0.0100".into(), "".into()]);
        table.row(["e\u{301}té".into(), "-".into(), "one two three four five six seven eight".into()]);
        table.row(["a-rather-long/id.of-a-node".into(), "unknown".into(), "x".into()]);
        table
    }

    #[test]
    fn columns_line_up_by_what_a_terminal_shows() {
        insta::assert_snapshot!(table().print(None), @"
        NODE                           COST  DETAIL
        ----------------------------------------------------------------------------
        日本語                       0.0100
        e\u{301}té                               -  one two three four five six seven eight
        a-rather-long/id.of-a-node  unknown  x
        ----------------------------------------------------------------------------
        ");
    }

    #[test]
    fn the_last_column_wraps_under_itself_on_a_terminal() {
        insta::assert_snapshot!(table().print(Some(64)), @"
        NODE                           COST  DETAIL
        ----------------------------------------------------------------
        日本語                       0.0100
        e\u{301}té                               -  one two three four five six
                                             seven eight
        a-rather-long/id.of-a-node  unknown  x
        ----------------------------------------------------------------
        ");
    }

    #[test]
    fn a_narrow_terminal_loses_what_it_can_do_without_and_no_id() {
        let columns = [
            ("NODE", Align::Left),
            ("SESSION", Align::Left),
            ("COST", Align::Right),
            ("DETAIL", Align::Left),
        ];
        let mut table = Table::new(&columns).yielding(&["SESSION"]);
        table.row([
            "short".into(),
            "0123456789".into(),
            "0.01".into(),
            "said no and then said it again".into(),
        ]);
        table.row(["a-node-with-a-long-name".into(), "-".into(), "0.02".into(), "fine".into()]);
        insta::assert_snapshot!(table.print(Some(74)), @"
        NODE                     SESSION     COST  DETAIL
        -------------------------------------------------------------------------
        short                    0123456789  0.01  said no and then said it again
        a-node-with-a-long-name  -           0.02  fine
        -------------------------------------------------------------------------
        ");
        insta::assert_snapshot!(table.print(Some(44)), @"
        NODE      COST  DETAIL
        --------------------------------------------
        short     0.01  said no and then said it
                        again
        a-node-with-a-long-name
                  0.02  fine
        --------------------------------------------
        ");
    }

    #[test]
    fn a_row_is_a_block_where_the_columns_do_not_fit() {
        insta::assert_snapshot!(table().print(Some(30)), @"
        ------------------------------
        日本語
          COST: 0.0100
        e\u{301}té
          DETAIL: one two three four
            five six seven eight
        a-rather-long/id.of-a-node
          COST: unknown  DETAIL: x
        ------------------------------
        ");
        assert!(table().print(Some(4)).contains("a-rather-long/id.of-a-node\n"));
    }

    #[test]
    fn colour_does_not_shift_a_column() {
        let mut table = Table::new(&[("A", Align::Left), ("B", Align::Right), ("C", Align::Left)]);
        table.row([Cell::styled("PASS", AnsiColor::Green.on_default()), "1".into(), "c".into()]);
        assert!(table.print(None).contains("\u{1b}[32mPASS\u{1b}[0m  1  c\n"));
    }

    #[test]
    fn cutting_and_wrapping_count_columns() {
        for (text, width, cuts, wraps) in [
            ("abc", 3, "abc", vec!["abc"]),
            ("abcd", 3, "ab…", vec!["abc", "d"]),
            ("日本語", 5, "日本…", vec!["日本", "語"]),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…", vec!["e\u{301}e\u{301}", "e\u{301}"]),
            ("one two", 3, "on…", vec!["one", "two"]),
            ("", 3, "", vec![""]),
            ("日", 1, "…", vec!["日"]),
        ] {
            assert_eq!((cut(text, width), wrap(text, width)), (cuts.into(), wraps), "{text}");
        }
    }
}
