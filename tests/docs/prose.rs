//! What stands between the examples: commands and flags in a sentence are ones that there are, and links lead somewhere.

use std::fs;
use std::path::PathBuf;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::markdown::{code, pages};
use crate::{page, text};

/// Every page with its text.
fn texts() -> impl Iterator<Item = (PathBuf, String)> {
    pages().into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
}

/// The help of the command that `words` begin with, and its name.
fn help<'r>(reference: &'r str, words: &[&str]) -> Option<(&'r str, usize)> {
    (1..=words.len().min(3)).rev().find_map(|count| {
        let heading = format!("## `{}`\n", words[..count].join(" "));
        let below = reference.split(&heading).nth(1)?;
        Some((below.split("\n## `").next().unwrap(), count))
    })
}

#[test]
fn every_command_and_flag_in_a_sentence_is_one() {
    let reference = omg::cli::reference();
    for (path, text) in texts() {
        for span in code(&text) {
            let words: Vec<&str> = span.split_whitespace().collect();
            let (help, count) = match help(&reference, &words) {
                Some(found) => found,
                None if span.starts_with("--") => (reference.as_str(), 0),
                None => continue,
            };
            let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
            let no_command = help.contains("\nCommands:\n") && words.get(count).is_some_and(is_word);
            assert!(count == 0 || !no_command, "{}: `{span}` names no command", path.display());
            for flag in words.iter().filter(|word| word.len() > 2 && word.starts_with("--")) {
                let name = flag.split(['=', '[', ',']).next().unwrap();
                let known = [' ', '\n', '['].iter().any(|end| help.contains(&format!(" {name}{end}")));
                assert!(known, "{}: `{span}`: there is no {name}", path.display());
            }
        }
    }
}

/// The links of a page, and the anchors of its headings.
fn links_and_anchors(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut links, mut anchors, mut heading) = (Vec::new(), Vec::new(), None);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => links.push(dest_url.into_string()),
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|heading| anchor(&heading))),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    (links, anchors)
}

/// The anchor that a heading gets where pages are shown.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn every_link_leads_somewhere() {
    for (path, text) in texts() {
        let links = links_and_anchors(&text).0;
        for link in links.iter().filter(|link| !link.contains("://")) {
            let (file, name) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            let has_name =
                || links_and_anchors(&fs::read_to_string(&target).unwrap()).1.iter().any(|it| it == name);
            assert!(name.is_empty() || has_name(), "{}: {link}", path.display());
        }
    }
}

#[test]
fn the_index_lists_every_page() {
    let listed: Vec<PathBuf> =
        links_and_anchors(&text("README.md")).0.iter().map(|link| page(link)).collect();
    let inside = pages().into_iter().filter(|path| path.starts_with(page("")) && *path != page("README.md"));
    for path in inside {
        assert!(
            listed.iter().any(|place| path.starts_with(place)),
            "docs/README.md leaves out {}",
            path.display()
        );
    }
}
