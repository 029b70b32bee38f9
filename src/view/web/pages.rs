//! The files of the pages, as they are in the program, and the metas that a page is filled in with.

use super::Site;
use super::build::Build;
use super::http::Answer;

/// Stands in a page where its metas come.
pub(in crate::view) const PLACE: &str = "<!-- omg:metas -->";
/// The page of one run.
pub(in crate::view) const RUN: &str = include_str!("ui/index.html");
/// The page of all runs.
pub(super) const DASHBOARD: &str = include_str!("ui/dashboard.html");

/// What the pages load.
static FILES: include_dir::Dir<'_> = include_dir::include_dir!("$CARGO_MANIFEST_DIR/src/view/web/ui");

/// `page` as a browser gets it.
pub(super) fn page(page: &str, token: &str, site: &Site) -> Answer {
    let own =
        [meta("omg-token", token), meta("omg-command-prefix", &site.command_prefix), about(&site.build)];
    Answer::of(200, "text/html; charset=utf-8", page.replacen(PLACE, &own.join("\n"), 1))
}

/// The metas that say which program made a page.
pub(in crate::view) fn about(build: &Build) -> String {
    let metas = [
        ("omg-version", &build.version),
        ("omg-revision", &build.revision),
        ("omg-built-at", &build.built_at),
    ];
    metas.map(|(name, value)| meta(name, value)).join("\n")
}

fn meta(name: &str, value: &str) -> String {
    format!("<meta name=\"{name}\" content=\"{}\">", escaped(value))
}

/// `text` in an attribute, character for character.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| c >= ' ' && !['&', '"', '<', '>'].contains(&c);
    text.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("&#{};", u32::from(c)) }).collect()
}

/// The text of the file `path` of the pages.
pub(in crate::view) fn text(path: &str) -> Option<&'static str> {
    FILES.get_file(path)?.contents_utf8()
}

/// The file `path`, looked up among those that the program has. The pages themselves are not files.
pub(super) fn asset(path: &str) -> Option<Answer> {
    let (_, extension) = path.rsplit_once('.')?;
    let kind = match extension {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => return None,
    };
    FILES.get_file(path).map(|file| Answer::of(200, kind, file.contents()))
}
