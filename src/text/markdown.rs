//! Foreign text as a part of GitHub's Markdown in which nothing of it is markup: in a span of code, in a block of code, or as text of
//! HTML.
//!
//! Inside code no markup counts, no mention reaches anybody and no link is made. Pure.

use crate::text::sanitize;

/// `text` on one line as a span of code. Nothing when there is no text.
pub fn code(text: &str) -> String {
    let line = sanitize::one_line(text);
    if line.is_empty() {
        return String::new();
    }
    let marks = "`".repeat(longest_run(&line) + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{marks}{pad}{line}{pad}{marks}")
}

/// The same for a cell of a table, which would end at a bar even within code.
pub fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// `text` as a block of code that nothing in it can end, with a newline at its end.
pub fn block(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = sanitize::lines(&text);
    let marks = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{marks}text\n{}\n{marks}\n", text.trim_end_matches('\n'))
}

/// `text` on one line as the text of an HTML element.
pub fn html(text: &str) -> String {
    let line = sanitize::one_line(text);
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// How many backticks stand together at most.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    #[test]
    fn code_is_code_whatever_it_holds() {
        for (text, shown) in [
            ("plain", "`plain`"),
            ("a|b\nc", "`a|b c`"),
            ("`x`", "`` `x` ``"),
            ("a``b", "```a``b```"),
            ("\u{1b}[31m", "`␛[31m`"),
            ("", ""),
        ] {
            assert_eq!(code(text), shown);
        }
        assert_eq!(html("<b title=\"x\">&"), "&lt;b title=&quot;x&quot;&gt;&amp;");
    }

    /// What a reader of Markdown makes of `text`, with the kinds of everything that it found.
    fn read(text: &str) -> (String, Vec<String>) {
        let (mut said, mut kinds) = (String::new(), Vec::new());
        for event in Parser::new_ext(text, Options::all()) {
            match event {
                Event::Text(text) | Event::Code(text) => said += &text,
                Event::Start(Tag::Paragraph) => {}
                Event::Start(tag) => kinds.push(format!("{tag:?}")),
                Event::Html(html) | Event::InlineHtml(html) => kinds.push(html.to_string()),
                _ => {}
            }
        }
        (said, kinds)
    }

    proptest::proptest! {
        #[test]
        fn nothing_gets_out_of_a_span_or_a_block(text in "[a`~<>|*@#\\[\\]\\\\ \n-]{0,40}") {
            let (said, kinds) = read(&code(&text));
            proptest::prop_assert_eq!(kinds, Vec::<String>::new(), "{}", said);
            let (said, kinds) = read(&format!("| a | b |\n| --- | --- |\n| {} | end |\n", cell(&text)));
            proptest::prop_assert_eq!(kinds.len(), 7, "{:?}", kinds);
            proptest::prop_assert!(said.ends_with("end"), "{}", said);
            let (said, kinds) = read(&format!("{}\nafter\n", block(&text)));
            proptest::prop_assert_eq!(kinds.len(), 1, "{:?}", kinds);
            proptest::prop_assert!(kinds[0].starts_with("CodeBlock") && said.ends_with("after"), "{}", said);
        }
    }
}
