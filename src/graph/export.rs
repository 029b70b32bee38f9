//! The names and the bound of the variables that a command and a check are given (DECISIONS 8).
//!
//! Names only: which values stand behind them is known where a node is run.

/// Inherited variables with these beginnings are removed before a child is given its own.
pub const PREFIXES: [&str; 2] = ["OMG_INPUT_", "OMG_ARTIFACT_"];

/// The longest value that is exported: one string of an environment may hold 128 KiB.
pub const VALUE_BYTES_MAX: usize = 120 * 1024;

/// `OMG_INPUT_<NAME>`, the variable of an input.
pub fn input_variable(name: &str) -> String {
    variable(PREFIXES[0], name)
}

/// `OMG_ARTIFACT_<ID>`, the variable of a direct parent's artifact.
pub fn artifact_variable(id: &str) -> String {
    variable(PREFIXES[1], id)
}

/// The variables of the artifact of `parent` in the commands of `node`: by its id, and by what the author of `node` calls
/// it, when that is another name. Whoever writes a fragment cannot know by which node it is cited.
pub fn artifact_variables(node: &str, parent: &str) -> impl Iterator<Item = String> {
    let called = called(node, parent);
    [parent, called].into_iter().take(if called == parent { 1 } else { 2 }).map(artifact_variable)
}

/// What the author of `node` calls `parent`: its own id inside the fragment that both are in, from outside the node that
/// cites its fragment.
pub fn called<'p>(node: &str, parent: &'p str) -> &'p str {
    let namespace = node.rsplit_once('/').map_or("", |(namespace, _)| namespace);
    let mut rest = parent;
    for citer in namespace.split('/') {
        match rest.split_once('/') {
            Some((first, inside)) if first == citer => rest = inside,
            _ => break,
        }
    }
    rest.split('/').next().unwrap_or(rest)
}

/// Whether `value` can stand in an environment.
pub fn fits(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX && !value.contains('\0')
}

fn variable(prefix: &str, name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    prefix.chars().chain(name.chars().map(upper)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_upper_case_and_has_no_punctuation() {
        assert_eq!(input_variable("task-a.v2"), "OMG_INPUT_TASK_A_V2");
        assert_eq!(artifact_variable("round1/review"), "OMG_ARTIFACT_ROUND1_REVIEW");
        assert_eq!(input_variable("größe"), "OMG_INPUT_GR__E");
    }

    #[test]
    fn a_parent_is_called_as_the_author_of_the_node_calls_it() {
        for (node, parent, name) in [
            ("b", "a", "a"),
            ("round1/apply", "round1/review", "review"),
            ("out", "round1/apply", "round1"),
            ("round1/review", "plan", "plan"),
            ("a/first/report", "a/first/repair/apply", "repair"),
            ("a/first/repair/review", "a/first/work", "work"),
            ("a/second/work", "a/first/report", "first"),
            ("a/b", "ab/c", "ab"),
        ] {
            assert_eq!(called(node, parent), name, "{node} {parent}");
        }
        let variables: Vec<String> = artifact_variables("r/b", "r/a").collect();
        assert_eq!(variables, ["OMG_ARTIFACT_R_A", "OMG_ARTIFACT_A"]);
        assert_eq!(artifact_variables("b", "a").count(), 1);
    }

    #[test]
    fn a_value_fits_up_to_its_bound() {
        assert!(fits(&"x".repeat(VALUE_BYTES_MAX)));
        assert!(!fits(&"x".repeat(VALUE_BYTES_MAX + 1)));
        assert!(!fits("a\0b"));
    }
}
