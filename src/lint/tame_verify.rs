//! Evidence commands that cannot say no.

use super::{Remarks, Subject, Sweep};
use crate::graph::node::Verify;

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG070",
    name: "verify-cannot-fail",
    summary: "the command of a `verify` ends with 0 whatever it finds",
    why: "`true`, `:` and `exit 0` as the last command hide the exit code of everything before them, and a PASS that such a \
          check gives is called verified. Let the command that looks come last, or judge what it prints by \
          `output_matches`.",
    bad: "nodes:\n  - id: build\n    type: command\n    command: make\n    success_check: {verify: {command: make test || true}}\n",
    good: "nodes:\n  - id: build\n    type: command\n    command: make\n    success_check: {verify: {command: make test}}\n",
    look: Some(look),
};

/// Words by which a command may end with another code before its last one is reached.
const EARLY: [&str; 6] = ["exit", "exec", "set", "trap", "kill", "return"];

fn look(Subject { graph, .. }: Subject<'_>, remarks: &mut Remarks) {
    for ix in graph.positions() {
        if let Some(verify) = &graph.node(ix).check.verify
            && let Some(last) = tame(verify)
        {
            let detail = format!(
                "ends with `{last}`, so it passes whatever it finds: let the command that looks come last"
            );
            remarks.node(graph, ix, "success_check.verify.command", detail);
        }
    }
}

/// The last command, when it decides alone and cannot fail.
fn tame(verify: &Verify) -> Option<&str> {
    if verify.expect_exit != 0 || verify.output_matches.is_some() {
        return None;
    }
    let line = without_comment(verify.command.trim());
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    let last = ["true", "exit 0", ":"].into_iter().find(|last| line.ends_with(last))?;
    let before = line[..line.len() - last.len()].trim_end_matches([' ', '\t']);
    let goes_on = before.ends_with("&&") || before.ends_with("\\\n");
    let decides = before.is_empty() || (before.ends_with([';', '\n', '|', '&']) && !goes_on);
    (decides && reaches_its_end(before)).then_some(last)
}

/// Whether nothing in `before` can end the command: no early word, no `${x:?}`, no document that goes on to the end.
fn reaches_its_end(before: &str) -> bool {
    let mut words = before.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    !words.any(|word| EARLY.contains(&word)) && !before.contains(":?") && !before.contains("<<")
}

/// The text without a comment at its end; where quotes stand, a `#` may be in them.
fn without_comment(line: &str) -> &str {
    let last = line.rfind('\n').map_or(0, |at| at + 1);
    match line[last..].find(" #") {
        Some(at) if !line[last + at..].contains(['\'', '"', '`']) => line[..last + at].trim_end(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, wanted: Option<&str>) {
        let node = serde_json::json!({"id": "a", "success_check": {"verify": {"command": command}}});
        let text = serde_json::json!({"nodes": [node]}).to_string();
        let (_, graph) = crate::graph::from_snapshot(&text).unwrap_or_else(|error| panic!("{error}"));
        let verify = graph.nodes()[0].check.verify.as_ref().expect("it was given");
        assert_eq!(tame(verify), wanted, "{command}");
    }

    #[test]
    fn a_command_that_cannot_fail_is_known_by_its_end() {
        for command in ["true", " : ", "exit 0", "make test || true", "make test; true;", "make test\ntrue\n"]
        {
            assert!(["true", ":", "exit 0"].iter().any(|last| {
                let trimmed = command.trim_end_matches([';', '\n', ' ']);
                trimmed.ends_with(last).then(|| check(command, Some(last))).is_some()
            }));
        }
        check("make test ||true # never mind", Some("true"));
        check("make lint && make test || :", Some(":"));
        check("make test | true", Some("true"));
        check("make test & true", Some("true"));
        check("make test\nexit 0", Some("exit 0"));
    }

    #[test]
    fn a_command_that_may_fail_is_not_told() {
        for command in [
            "make test",
            "make test && true",
            "test -f x || exit 1; true",
            "set -e; make test; true",
            "if ! make test; then exit 1; fi\nexit 0",
            "grep -q 'x; true' log",
            "grep -q x: log:",
            "test \"$x\" = true",
            "test $x = \\\ntrue",
            ": \"${x:?is not set}\"; true",
            "cat <<END\n;\ntrue",
            "make untrue",
            "nice true",
            "sh -c 'make test; true'",
            "(make test; true) && make lint",
            "make test || (echo no; false) # true",
        ] {
            check(command, None);
        }
    }
}
