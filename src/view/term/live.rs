//! The part of a terminal that redraws itself: a line a running node, a line of totals, finished lines above.
//!
//! Drawn with `indicatif`, which hides itself in a pipe. Whatever goes wrong while drawing is dropped: a display
//! never touches a run.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::duration;
use crate::text::sanitize;
use crate::view::term::transcript::Transcript;

/// How often a second the terminal is drawn at most.
const DRAWS_A_SECOND: u8 = 10;
/// More rows than slots are never needed; this bounds a screen should slots grow.
const ROWS_MAX: usize = 16;

/// A live screen.
#[derive(Debug)]
pub(crate) struct Live {
    screen: MultiProgress,
    rows: BTreeMap<String, ProgressBar>,
    totals: ProgressBar,
    nodes: Option<usize>,
}

impl Live {
    /// A screen on this process's standard error; `nodes` is how many the graph has, if that is known.
    pub(crate) fn new(nodes: Option<usize>) -> Self {
        Live::on(ProgressDrawTarget::stderr_with_hz(DRAWS_A_SECOND), nodes)
    }

    fn on(target: ProgressDrawTarget, nodes: Option<usize>) -> Self {
        let screen = MultiProgress::with_draw_target(target);
        let totals = screen.add(row("{wide_msg:.dim}"));
        Live { screen, rows: BTreeMap::new(), totals, nodes }
    }

    /// Puts `lines` above the live part and draws what runs now.
    pub(crate) fn show(&mut self, lines: &[String], transcript: &Transcript, now: Duration) {
        let running: BTreeMap<&str, Duration> = transcript.running(now).collect();
        self.rows.retain(|node, bar| {
            let runs = running.contains_key(node.as_str());
            if !runs {
                bar.finish_and_clear();
            }
            runs
        });
        if !lines.is_empty() {
            self.screen.println(lines.join("\n")).ok();
        }
        for (node, elapsed) in running {
            if !self.rows.contains_key(node) && self.rows.len() < ROWS_MAX {
                let bar = self.screen.insert_before(&self.totals, row("{spinner:.cyan} {wide_msg}"));
                self.rows.insert(node.to_owned(), bar);
            }
            if let Some(bar) = self.rows.get(node) {
                // The time stands first: whatever the length of an id, it is never cut off, and times line up.
                bar.set_message(format!("{:>6}  {}", duration::format(elapsed), sanitize::one_line(node)));
                bar.tick();
            }
        }
        self.totals.set_message(self.sums(transcript, now));
        self.totals.tick();
    }

    /// Takes the live part off the screen.
    pub(crate) fn close(&mut self) {
        for bar in self.rows.values() {
            bar.finish_and_clear();
        }
        self.totals.finish_and_clear();
        self.screen.clear().ok();
    }

    fn sums(&self, transcript: &Transcript, now: Duration) -> String {
        let (settled, cost) = transcript.tally();
        let of = self.nodes.map_or_else(String::new, |nodes| format!("/{nodes}"));
        format!("{settled}{of} settled  {cost}  {}", duration::format(Duration::from_secs(now.as_secs())))
    }
}

fn row(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    let bar = ProgressBar::new_spinner();
    bar.set_style(style);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::term::Look;

    #[test]
    fn rows_come_and_go_with_their_nodes() {
        let mut live = Live::on(ProgressDrawTarget::hidden(), Some(3));
        let mut transcript = Transcript::new(Look::default());
        let mut out = Vec::new();
        let mut play = |transcript: &mut Transcript, line: &str| {
            transcript.event(&serde_json::from_str(line).expect(line), Duration::ZERO, &mut out);
        };
        play(&mut transcript, r#"{"event":"node_started","node_id":"a"}"#);
        play(&mut transcript, r#"{"event":"node_started","node_id":"b"}"#);
        live.show(&[], &transcript, Duration::from_secs(2));
        assert_eq!(live.rows.keys().collect::<Vec<_>>(), ["a", "b"]);
        play(&mut transcript, r#"{"event":"node_passed","node_id":"a","cost_usd":0.01}"#);
        live.show(&[], &transcript, Duration::from_secs(3));
        assert_eq!(live.rows.keys().collect::<Vec<_>>(), ["b"]);
        assert!(live.totals.message().starts_with("1/3 settled  $0.0100  "), "{}", live.totals.message());
        live.close();
    }
}
