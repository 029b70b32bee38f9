//! Braces that look like a token and are none, so that they stay in the text as they are (FACTS 4.1).

use super::Advice;
use crate::graph::Graph;
use crate::graph::raw::RawGraph;
use crate::text::template;

/// First words that somebody writes who means a token.
const MEANT: [&str; 7] = ["inputs", "artifacts", "feedback", "input", "artifact", "feedbacks", "with"];

pub(super) fn sweep(_: &RawGraph, graph: &Graph, advice: &mut Vec<Advice>) {
    for node in graph.nodes() {
        for (field, text) in node.templates() {
            let remarks = template::braced(text).filter_map(|(_, written)| remark(written));
            advice.extend(remarks.map(|detail| Advice { node: Some(node.id.to_string()), field, detail }));
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
