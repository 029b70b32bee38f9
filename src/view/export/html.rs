//! The page of the run as one file: the page that the server serves, with its modules, its style and what the server would have
//! answered in it.
//!
//! A policy lets only what carries the word of this very file run or load. What the run's children said lies in a block of data,
//! where a browser looks for nothing but its end.

use std::io::Write;

use serde::Serialize;

use super::bundle::bundle;
use super::{Export, ExportError};
use crate::text::hex;
use crate::view::web::pages;
use crate::view::web::recording::Recording;

/// The module that stands in the place of [`LIVE`].
const OFFLINE: &str = "source_export.js";
/// The module that asks the server.
const LIVE: &str = "source.js";

/// What the page finds in itself.
#[derive(Serialize)]
struct Kept {
    /// The moment, in milliseconds.
    at: i64,
    #[serde(flatten)]
    recording: Recording,
}

/// Writes the page.
pub(super) fn write(export: &Export, out: &mut dyn Write) -> Result<(), ExportError> {
    let recording = Recording::of(export.id(), &export.home, export.probe, &export.shape)?;
    let kept = Kept { at: export.at.as_millisecond(), recording };
    let nonce = hex::random::<32>().map_err(ExportError::Randomness)?;
    let metas = format!("{}\n{}", policy(&nonce), pages::about(&export.build));
    out.write_all(page(&metas, &nonce, &inert(&kept)).as_bytes())?;
    Ok(())
}

fn policy(nonce: &str) -> String {
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-{nonce}'; \
         style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">"
    )
}

/// The page with everything that it names put into it.
fn page(metas: &str, nonce: &str, data: &str) -> String {
    let entry = |line| between(line, "<script type=\"module\" src=\"", "\"></script>");
    let entries: Vec<&str> = pages::RUN.lines().filter_map(entry).collect();
    let lines =
        pages::RUN.lines().filter(|line| entry(line).is_none() && !line.starts_with("<link rel=\"icon\""));
    let lines = lines.map(|line| {
        if let Some(sheet) = between(line, "<link rel=\"stylesheet\" href=\"", "\">") {
            format!("<style nonce=\"{nonce}\">\n{}</style>\n", pages::text(sheet).unwrap_or_default())
        } else if line == pages::PLACE {
            format!("{metas}\n")
        } else if line == "</body>" {
            let script = script(&entries);
            format!(
                "<script type=\"application/json\" id=\"omg-export\">{data}</script>\n\
                 <script type=\"module\" nonce=\"{nonce}\">\n{script}</script>\n</body>\n"
            )
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

fn script(entries: &[&str]) -> String {
    let file = |name: &str| pages::text(if name == LIVE { OFFLINE } else { name });
    bundle(entries, &file).expect("the modules are part of the program, and a test puts them together")
}

fn between<'l>(line: &'l str, before: &str, after: &str) -> Option<&'l str> {
    line.strip_prefix(before)?.strip_suffix(after)
}

/// `kept` as JSON that a page can hold: nothing in it ends the block, and no line break in it is one of a script.
fn inert(kept: &Kept) -> String {
    let json = serde_json::to_string(kept).expect("maps with text keys always encode");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_everything_that_it_names_and_asks_nobody() {
        let page = page("<meta>", "abc", "{}");
        assert_eq!(page.matches("nonce=\"abc\"").count(), 2, "one style, one script");
        assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (2, 2));
        assert!(page.contains("<meta>\n") && page.ends_with("</html>\n"));
        for loads in [" src=", "<link", "@import", "url(", "<!--"] {
            assert!(!page.contains(loads), "{loads}");
        }
        let asks = regex::Regex::new(r"\bfetch\(|\bnew EventSource|\bimport\b *\(|XMLHttpRequest|sendBeacon")
            .expect("a pattern");
        assert_eq!(asks.find(&page).map(|found| found.as_str()), None, "only {LIVE} may ask");
    }

    #[test]
    fn no_text_ends_the_block_of_data() {
        let recording = Recording::default();
        let json = inert(&Kept { at: 7, recording });
        assert_eq!(json, r#"{"at":7,"answers":{},"status":"","feed":[],"warnings":[]}"#);
    }
}
