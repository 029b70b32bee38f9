//! Git checkouts outside the repository of a run that its goal or its plan names (DESIGN "Auto mode", FACTS 8.9).
//!
//! A planned node works wherever its prompt sends it, and `omg` makes no worktree and takes no lock there. The scan goes
//! by paths that are written out: what it finds is a warning, never a refusal, and its words say what it cannot see. It
//! reads names and links of the file system, no file's content.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::node::checkout;
use crate::text::sanitize;

/// Of a longer mention only this much is looked at: no path of more bytes can be opened (`PATH_MAX`).
const MENTION_BYTES_MAX: usize = 4096;
/// Where tools are installed, some of them as clones that nobody works in.
const INSTALLED: [&str; 5] = ["/usr", "/opt", "/Library", "/System", "/nix"];
/// Nodes beyond this many are counted, not named.
const NAMED_MAX: usize = 5;

/// A checkout that the run does not isolate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// Its top directory, links resolved.
    pub top: PathBuf,
    /// The first path that led there, as it was written.
    pub mention: String,
    /// Whether the goal names it.
    pub in_goal: bool,
    /// The ids of the nodes whose prompts name it, in the order of the graph.
    pub nodes: Vec<String>,
}

/// The checkouts outside the repository of `directory` that `goal` and `prompts`, pairs of a node's id and its own
/// prompt, name; in the order of their first mention. `~/` stands for `home`.
pub fn scan<'t>(
    goal: &'t str,
    prompts: impl IntoIterator<Item = (&'t str, &'t str)>,
    directory: &Path,
    home: Option<&Path>,
) -> Vec<Checkout> {
    let mut search = Search::from(directory, home);
    let mut found: Vec<Checkout> = Vec::new();
    let texts = prompts.into_iter().map(|(id, prompt)| (Some(id), prompt));
    for (node, text) in std::iter::once((None, goal)).chain(texts) {
        for mention in mentions(text) {
            let Some((top, mention)) = search.outside(mention) else { continue };
            let at = found.iter().position(|it| it.top == top).unwrap_or_else(|| {
                found.push(Checkout { top, mention: mention.to_owned(), in_goal: false, nodes: Vec::new() });
                found.len() - 1
            });
            let checkout = &mut found[at];
            match node {
                None => checkout.in_goal = true,
                Some(id) if checkout.nodes.last().is_some_and(|last| last == id) => {}
                Some(id) => checkout.nodes.push(id.to_owned()),
            }
        }
    }
    found
}

/// What a person is told of `found` before anything is spent, several lines; `None` when nothing was found.
pub fn warning(found: &[Checkout]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let list: String = found.iter().map(line).collect();
    Some(format!(
        "WARNING: the work reaches into git checkouts that this run was not started in:\n{list}\
         omg isolates nothing there: it makes no worktree and takes no lock. A node that works there makes a worktree of its\n\
         own first, or races whatever else stands in that checkout. (Nothing is isolated where the run was started either:\n\
         planned nodes edit and commit there directly. But that checkout you opened for this run.)\n\
         Only paths that are written out are seen; not one that is put together later, one that comes by --input or from\n\
         another node's reply, a repository reached by a relative path, a tool's own clone, nor what a node does once there.\n"
    ))
}

/// `  ! /home/me/other, named as ~/other/src by the goal and 2 nodes (a, b)`.
fn line(checkout: &Checkout) -> String {
    let named: Vec<&str> = checkout.nodes.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if checkout.nodes.len() > NAMED_MAX { ", …" } else { "" };
    let nodes = match checkout.nodes.len() {
        0 => None,
        1 => Some(format!("node {}", named.join(""))),
        many => Some(format!("{many} nodes ({}{more})", named.join(", "))),
    };
    let by: Vec<String> = checkout.in_goal.then(|| "the goal".to_owned()).into_iter().chain(nodes).collect();
    let line = format!("{}, named as {} by {}", checkout.top.display(), checkout.mention, by.join(" and "));
    format!("  ! {}\n", sanitize::one_line(&line))
}

/// The absolute paths in a text, each once: runs of what paths are mostly made of, from a `/` or `~/` that no word, `~`,
/// `.`, `/` or `-` stands before.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    let mut before = None;
    let mut past = 0;
    let starts = text.char_indices().filter_map(move |(at, c)| {
        let follows = before.replace(c);
        let begins = c == '/' || text[at..].starts_with("~/");
        // A path is told from the text before it by what is no letter of English: a sentence in a language that puts no
        // space there has its paths found as well.
        let stands_alone = !follows.is_some_and(|c| c.is_ascii_alphanumeric() || "_~./-".contains(c));
        if at < past || !begins || !stands_alone {
            return None;
        }
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || is_plain(c))).unwrap_or(rest.len());
        past = at + end;
        Some(&rest[..end])
    });
    starts.map(trimmed).filter(move |mention| mention.len() > 1 && seen.insert(*mention))
}

/// What a path is made of besides letters of other scripts.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_~./+@-".contains(c)
}

/// A mention without the end of the sentence that it stands in, and no longer than a path can be.
fn trimmed(mention: &str) -> &str {
    let most = mention.floor_char_boundary(MENTION_BYTES_MAX);
    mention[..most].trim_end_matches(['.', '/'])
}

/// Looks paths up.
struct Search<'p> {
    home: Option<&'p Path>,
    /// The home with its links resolved.
    real_home: Option<PathBuf>,
    /// The top of the repository that the run is started in, else the directory itself.
    own: PathBuf,
    /// What was looked up before.
    known: HashMap<PathBuf, Option<PathBuf>>,
}

impl<'p> Search<'p> {
    fn from(directory: &Path, home: Option<&'p Path>) -> Self {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let own = checkout::top(&real).map(Path::to_owned).unwrap_or(real);
        let real_home = home.and_then(|home| home.canonicalize().ok());
        Search { home, real_home, own, known: HashMap::new() }
    }

    /// The checkout that `mention` leads to, unless it is the run's own or a tool's; and what led there. That is the whole
    /// mention or what comes before its first letter of another script, which may be the sentence going on: whichever leads
    /// further down.
    fn outside<'m>(&mut self, mention: &'m str) -> Option<(PathBuf, &'m str)> {
        let plain = trimmed(&mention[..mention.find(|c| !is_plain(c)).unwrap_or(mention.len())]);
        let shorter = Some(plain).filter(|plain| plain.len() > 1 && *plain != mention);
        let led = shorter.into_iter().chain([mention]).filter_map(|it| Some((self.checkout(it)?, it)));
        led.max_by_key(|(top, _)| top.as_os_str().len()).filter(|(top, _)| !self.is_silent(top))
    }

    fn checkout(&mut self, mention: &str) -> Option<PathBuf> {
        let path = match mention.strip_prefix("~/") {
            Some(below) => self.home?.join(below.trim_start_matches('/')),
            None => PathBuf::from(mention),
        };
        if let Some(known) = self.known.get(&path) {
            return known.clone();
        }
        let top = nearest(&path).as_deref().and_then(checkout::top).map(Path::to_owned);
        self.known.insert(path, top.clone());
        top
    }

    fn is_silent(&self, top: &Path) -> bool {
        let below_home = self.real_home.as_deref().and_then(|home| top.strip_prefix(home).ok());
        let first = below_home.and_then(|below| below.components().next());
        let is_hidden = first.is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b"."));
        top.starts_with(&self.own) || is_hidden || INSTALLED.iter().any(|root| top.starts_with(root))
    }
}

/// `path` with its links resolved, or the nearest directory above it that is there: a plan may name what it will make.
fn nearest(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    if !plain.is_absolute() {
        return None;
    }
    plain.ancestors().find_map(|above| above.canonicalize().ok())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::LazyLock;

    /// A home with checkouts `own`, where the run is started, `other`, `lane` (a linked worktree) and `.tool`.
    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let world = World(tempfile::tempdir().unwrap());
            for clone in ["own", "other", ".tool/x", "own/nested", "ünï"] {
                fs::create_dir_all(world.at(clone).join(".git")).unwrap();
                fs::create_dir_all(world.at(clone).join("src")).unwrap();
                fs::write(world.at(clone).join(".git/HEAD"), "").unwrap();
            }
            for plain in ["plain", "left/.git", "lane"] {
                fs::create_dir_all(world.at(plain)).unwrap();
            }
            fs::write(world.at("lane/.git"), "gitdir: elsewhere").unwrap();
            symlink(world.at("own/src"), world.at("into-own")).unwrap();
            symlink(world.at("other/src"), world.at("into-other")).unwrap();
            world
        }

        fn home(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap()
        }

        fn at(&self, name: &str) -> PathBuf {
            self.home().join(name)
        }

        fn scan(&self, goal: &str, prompts: &[(&str, &str)]) -> Vec<Checkout> {
            scan(goal, prompts.iter().copied(), &self.at("own/src"), Some(&self.home()))
        }

        /// The checkout that `text` leads to, below the home.
        fn led(&self, text: &str) -> Option<String> {
            let text = text.replace("HOME", &self.home().display().to_string());
            let found = self.scan(&text, &[]);
            let below = |it: &Checkout| it.top.strip_prefix(self.home()).unwrap().display().to_string();
            found.first().map(below)
        }
    }

    #[test]
    fn a_path_is_told_from_the_words_around_it() {
        for (text, wanted) in [
            ("mend /a/b.rs, then /c.", vec!["/a/b.rs", "/c"]),
            ("(~/x/y) `/z/`: \"/q+r@s-t\"", vec!["~/x/y", "/z", "/q+r@s-t"]),
            ("and/or a/b ./c ../d x~/e -/f", vec![]),
            ("/ // ~/ ~", vec![]),
            ("/a /a /a", vec!["/a"]),
            ("=/a:/b", vec!["/a", "/b"]),
            ("file:///a", vec!["///a"]),
            ("見て/a。", vec!["/a"]),
        ] {
            assert_eq!(mentions(text).collect::<Vec<_>>(), wanted, "{text}");
        }
    }

    #[test]
    fn only_a_checkout_outside_the_runs_own_is_told() {
        let world = World::new();
        for (text, wanted) in [
            ("mend HOME/other/src/lib.rs.", Some("other")),
            ("mend ~/other", Some("other")),
            ("make ~/other/new/dir/file", Some("other")),
            ("make HOME/other/gone/../../lane/x", Some("lane")),
            ("look at ~/lane/a", Some("lane")),
            ("through HOME/into-other", Some("other")),
            ("~/other에서 고쳐라", Some("other")),
            ("mend ~/ünï/src", Some("ünï")),
            ("mend HOME/own/src and ~/own and ~/own/nested/src", None),
            ("through HOME/into-own", None),
            ("write to HOME/plain/x, HOME/gone and /tmp/scratch", None),
            ("see ~/left", None),
            ("the tool in ~/.tool/x/src", None),
            ("{{ inputs.dir }}/other https://example.com/other", None),
            ("relative ../other", None),
        ] {
            assert_eq!(world.led(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn of_two_readings_of_a_mention_the_deeper_counts() {
        let world = World::new();
        fs::create_dir(world.at(".git")).unwrap();
        fs::write(world.at(".git/HEAD"), "").unwrap();
        assert_eq!(world.led("~/other에서").as_deref(), Some("other"));
        assert_eq!(world.led("~/plain에서").as_deref(), Some(""));
        assert_eq!(world.led("HOME/own/에서"), None, "its own, whatever stands above");
    }

    #[test]
    fn a_run_outside_any_repository_owns_its_directory() {
        let world = World::new();
        let found = |text: &str| scan(text, [], &world.at("plain"), Some(&world.home())).len();
        assert_eq!((found("~/own"), found("~/plain/x")), (1, 0));
    }

    #[test]
    fn without_a_home_only_whole_paths_are_found() {
        let world = World::new();
        let text = format!("~/other {}", world.at("lane").display());
        let found = scan(&text, [], &world.at("own"), None);
        assert_eq!(found.iter().map(|it| it.top.clone()).collect::<Vec<_>>(), [world.at("lane")]);
    }

    #[test]
    fn there_is_one_entry_for_a_checkout_with_everything_that_names_it() {
        let world = World::new();
        let prompts = [
            ("b", "use ~/lane and ~/other/src"),
            ("a", "~/other ~/other/src"),
            ("c", "~/own"),
            ("d", "~/lane"),
        ];
        let found = world.scan("mend ~/other/README", &prompts);
        let wanted = [
            Checkout {
                top: world.at("other"),
                mention: "~/other/README".to_owned(),
                in_goal: true,
                nodes: vec!["b".to_owned(), "a".to_owned()],
            },
            Checkout {
                top: world.at("lane"),
                mention: "~/lane".to_owned(),
                in_goal: false,
                nodes: vec!["b".to_owned(), "d".to_owned()],
            },
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_words_name_the_checkout_and_their_own_limits() {
        assert_eq!(warning(&[]), None);
        let checkout = |mention: &str, in_goal, nodes: &[&str]| Checkout {
            top: PathBuf::from("/home/me/other"),
            mention: mention.to_owned(),
            in_goal,
            nodes: nodes.iter().map(|id| (*id).to_owned()).collect(),
        };
        let found = [
            checkout("~/other/x", true, &["a"]),
            checkout("~/other", false, &["a", "b", "c", "d", "e", "f"]),
            checkout("~/other", true, &[]),
        ];
        insta::assert_snapshot!(warning(&found).unwrap(), @"
        WARNING: the work reaches into git checkouts that this run was not started in:
          ! /home/me/other, named as ~/other/x by the goal and node a
          ! /home/me/other, named as ~/other by 6 nodes (a, b, c, d, e, …)
          ! /home/me/other, named as ~/other by the goal
        omg isolates nothing there: it makes no worktree and takes no lock. A node that works there makes a worktree of its
        own first, or races whatever else stands in that checkout. (Nothing is isolated where the run was started either:
        planned nodes edit and commit there directly. But that checkout you opened for this run.)
        Only paths that are written out are seen; not one that is put together later, one that comes by --input or from
        another node's reply, a repository reached by a relative path, a tool's own clone, nor what a node does once there.
        ");
    }

    #[test]
    fn a_mention_of_any_length_and_depth_is_looked_at_once() {
        let world = World::new();
        let deep = format!("{}{}", world.at("other").display(), "/x".repeat(100_000));
        let found = world.scan(&deep, &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].mention.len() <= MENTION_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_told_was_written(text in r"(/|~/|\.|é|한|~|[a-z]| |\PC){0,30}") {
            static WORLD: LazyLock<World> = LazyLock::new(World::new);
            for checkout in WORLD.scan(&text, &[("a", &text)]) {
                prop_assert!(text.contains(&checkout.mention) && checkout.in_goal && checkout.nodes == ["a"]);
            }
        }
    }
}
