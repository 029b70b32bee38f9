//! Braces that look like a token and are none, so that they stay in the text as they are (FACTS 4.1).

use super::{Remarks, Subject, Sweep};
use crate::text::template;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG001",
    name: "not-a-token",
    summary: "braces look like a token and are none, so they stay in the text as they are",
    why: "A token is `{{ inputs.NAME }}`, `{{ artifacts.ID }}`, `{{ artifacts.ID | inline }}` or `{{ feedback.ID }}`, in lower \
          case. Anything else in braces reaches the model or the shell as it is written. Braces that begin with any \
          other word are never spoken of; to write one of these words in braces on purpose, put it into an input.",
    bad: "inputs: [target]\nnodes:\n  - {id: build, type: command, command: \"make {{ Inputs.target }} {{ inputs.target }}\"}\n",
    good: "inputs: [target]\nnodes:\n  - {id: build, type: command, command: \"make {{ inputs.target }}\"}\n",
    look: Some(look),
};

/// First words that somebody writes who means a token.
const MEANT: [&str; 7] = ["inputs", "artifacts", "feedback", "input", "artifact", "feedbacks", "with"];

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        for (key, text) in graph.node(ix).templates() {
            for (_, written) in template::braced(text) {
                if let Some(detail) = remark(written) {
                    remarks.node(graph, ix, key, detail).within(written);
                }
            }
        }
    }
}

fn remark(written: &str) -> Option<String> {
    let inside = written[2..written.len() - 2].trim();
    let word = inside.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    if !MEANT.contains(&lower.as_str()) || template::tokens(written).next().is_some() {
        return None;
    }
    let what = if lower == "with" {
        "stands for a binding inside the file of a fragment only: here it stays as it is".to_owned()
    } else if word != lower {
        format!("is no token and stays as it is: write {lower} in lower case")
    } else {
        "is no token and stays as it is: a token is {{ inputs.NAME }}, {{ artifacts.ID }}, {{ artifacts.ID | inline }} \
         or {{ feedback.ID }}"
            .to_owned()
    };
    Some(format!("{written} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_token_and_is_none_is_told() {
        for (text, told) in [
            ("{{ inputs.x }} {{artifacts.x|inline}} {{ feedback.x }}", None),
            ("{{ user.name }} {{ }} {{ inputs.x", None),
            ("{{ artifacts.x | inlin }}", Some("{{ artifacts.x | inlin }} is no token")),
            (
                "a {{ Inputs.x }}",
                Some("{{ Inputs.x }} is no token and stays as it is: write inputs in lower case"),
            ),
            ("{{{{ artifact.x }}", Some("{{ artifact.x }} is no token")),
            ("{{ inputs. }}", Some("{{ inputs. }} is no token")),
            ("{{ with.x }}", Some("{{ with.x }} stands for a binding inside the file of a fragment only")),
        ] {
            let found: Vec<String> =
                template::braced(text).filter_map(|(_, written)| remark(written)).collect();
            let fits = match told {
                None => found.is_empty(),
                Some(told) => found.len() == 1 && found[0].starts_with(told),
            };
            assert!(fits, "{text}: {found:?}");
        }
    }
}
