//! The sweeps as text: what `omg lint --explain` prints and docs/LINT.md holds.

use super::{SWEEPS, Sweep};

/// Columns of the running text.
const WIDTH: usize = 100;

impl Sweep {
    /// The sweep with its reason and its examples, as Markdown.
    pub fn explanation(&self) -> String {
        let Sweep { id, name, summary, why, bad, good, .. } = self;
        let (summary, why) = (wrapped(&format!("{}.", capital(summary))), wrapped(why));
        format!(
            "## {id} {name}\n\n{summary}\n\n{why}\n\nTold of:\n\n```yaml\n{bad}```\n\nNot told of:\n\n```yaml\n{good}```\n"
        )
    }
}

/// Every sweep with its explanation, as Markdown.
pub fn catalogue() -> String {
    let row = |sweep: &Sweep| format!("| [{}](#{}) | {} |\n", sweep.id, anchor(sweep), sweep.summary);
    let rows: String = SWEEPS.into_iter().map(row).collect();
    let texts: Vec<String> = SWEEPS.into_iter().map(Sweep::explanation).collect();
    format!("| id | told of |\n| --- | --- |\n{rows}\n{}", texts.join("\n"))
}

/// How Markdown renderers name a heading.
fn anchor(sweep: &Sweep) -> String {
    format!("{}-{}", sweep.id.to_lowercase(), sweep.name)
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}

/// The text in lines of at most [`WIDTH`] columns, broken at spaces; what stands in backticks is one word.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    let mut quoted = false;
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() || quoted || line.chars().count() + 1 + word.chars().count() <= WIDTH {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
        quoted ^= word.matches('`').count() % 2 == 1;
    }
    lines.join("\n")
}
