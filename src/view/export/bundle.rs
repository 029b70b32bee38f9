//! The modules of a page as one script: each in a function of its own that hands out what it exports.
//!
//! A page that is opened from a file may load no module, and a page under a policy no inline map of them. The modules are
//! those of the pages, which keep to plain forms: one `import` a line, `export` before a declaration, nothing exported that
//! changes, no circle. Anything else is an error, and a test bundles what is shipped.

/// Why modules could not be put together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BundleError {
    /// A module is not there.
    #[error("there is no module {0:?}")]
    Missing(String),
    /// A module needs itself.
    #[error("the module {0:?} needs itself")]
    Circle(String),
    /// A line that is not understood.
    #[error("{0}: not understood: {1}")]
    Form(String, String),
}

/// A script that does what loading `entries` would do, in their order; `file` is the text of a module.
pub(super) fn bundle<'t>(
    entries: &[&str],
    file: &dyn Fn(&str) -> Option<&'t str>,
) -> Result<String, BundleError> {
    let mut bundle = Bundle { file, under_way: Vec::new(), done: Vec::new(), modules: Vec::new() };
    entries.iter().try_for_each(|entry| bundle.add(entry))?;
    Ok(bundle.modules.concat())
}

struct Bundle<'f, 't> {
    file: &'f dyn Fn(&str) -> Option<&'t str>,
    under_way: Vec<String>,
    done: Vec<String>,
    modules: Vec<String>,
}

impl Bundle<'_, '_> {
    /// Adds a module after all that it needs, once.
    fn add(&mut self, name: &str) -> Result<(), BundleError> {
        if self.done.iter().any(|done| done == name) {
            return Ok(());
        }
        if self.under_way.iter().any(|open| open == name) {
            return Err(BundleError::Circle(name.to_owned()));
        }
        let text = (self.file)(name).ok_or_else(|| BundleError::Missing(name.to_owned()))?;
        self.under_way.push(name.to_owned());
        let (mut body, mut exported) = (Vec::new(), Vec::new());
        for line in text.lines() {
            if line.starts_with("import") {
                let (needed, names) = import(line).ok_or_else(|| form(name, line))?;
                self.add(&needed)?;
                if let Some(names) = names {
                    body.push(format!("const {{ {names} }} = {};", variable(&needed)));
                }
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exported.push(declared(declaration).ok_or_else(|| form(name, line))?);
                body.push(declaration.to_owned());
            } else {
                body.push(line.to_owned());
            }
        }
        let first = format!("const {} = (() => {{", variable(name));
        let last = format!("return {{ {} }};\n}})();\n", exported.join(", "));
        self.modules.push([vec![first], body, vec![last]].concat().join("\n"));
        self.under_way.pop();
        self.done.push(name.to_owned());
        Ok(())
    }
}

fn form(name: &str, line: &str) -> BundleError {
    BundleError::Form(name.to_owned(), line.to_owned())
}

/// The module that an `import` names, and what it takes of it, as a pattern.
fn import(line: &str) -> Option<(String, Option<String>)> {
    let rest = line.strip_prefix("import ")?.strip_suffix("';")?;
    let (taken, needed) = rest.split_once('\'')?;
    let needed = needed.strip_prefix("./").filter(|name| !name.contains('/'))?.to_owned();
    if taken.is_empty() {
        return Some((needed, None));
    }
    let names = taken.strip_prefix("{ ")?.strip_suffix(" } from ")?;
    let pattern: Vec<String> = names.split(", ").map(|name| name.replacen(" as ", ": ", 1)).collect();
    Some((needed, Some(pattern.join(", "))))
}

/// The name that a declaration gives to something that stays what it is.
fn declared(declaration: &str) -> Option<&str> {
    let rest = ["const ", "function ", "async function ", "class "]
        .iter()
        .find_map(|word| declaration.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$')?;
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// The variable that holds what a module exports.
fn variable(module: &str) -> String {
    module.replace(|c: char| !c.is_ascii_alphanumeric(), "_") + "$"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &'static str)]) -> Result<String, BundleError> {
        bundle(&["a.js"], &|name| files.iter().find(|(own, _)| *own == name).map(|(_, text)| *text))
    }

    #[test]
    fn a_module_comes_once_and_after_what_it_needs() {
        let script = of(&[
            ("a.js", "import './c.js';\nimport { b, two as c } from './b.js';\nb(c);\n"),
            ("b.js", "import './c.js';\nexport const two = 2;\nexport async function b(n) {}\n"),
            ("c.js", "let loaded = true;\n"),
        ]);
        assert_eq!(
            script.as_deref(),
            Ok("const c_js$ = (() => {\nlet loaded = true;\nreturn {  };\n})();\n\
                const b_js$ = (() => {\nconst two = 2;\nasync function b(n) {}\nreturn { two, b };\n})();\n\
                const a_js$ = (() => {\nconst { b, two: c } = b_js$;\nb(c);\nreturn {  };\n})();\n")
        );
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for line in [
            "import a from './b.js';",
            "import { a } from '../b.js';",
            "import {",
            "import * as b from './b.js';",
            "export default 1;",
            "export let a = 1;",
            "export { a };",
            "export const { a } = b;",
        ] {
            let file = |name: &str| (name == "a.js").then_some(line);
            assert_eq!(bundle(&["a.js"], &file), Err(form("a.js", line)));
        }
        assert_eq!(of(&[("a.js", "import './b.js';")]), Err(BundleError::Missing("b.js".to_owned())));
        let circle = of(&[("a.js", "import './b.js';"), ("b.js", "import './a.js';")]);
        assert_eq!(circle, Err(BundleError::Circle("a.js".to_owned())));
    }
}
