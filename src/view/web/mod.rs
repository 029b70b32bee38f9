//! The live view: a server on the loopback for a browser on this machine (FACTS 9; `docs/WEB.md` is its contract with
//! the pages in `ui/`).
//!
//! `http` speaks the protocol and `guards` says who is answered; `routes` finds what is asked for; `feeds` and `cards` are
//! what streams, `watcher` is what wakes them. Reads runs and writes nothing: who carries out a decision
//! and who looks into a lane is handed in.

mod build;
mod card;
mod cards;
mod diff;
mod feeds;
mod gate;
mod guards;
pub mod holder;
mod http;
pub(in crate::view) mod pages;
pub(in crate::view) mod recording;
mod routes;
mod run_api;
mod sse;
mod state;
mod transcript;
mod watcher;

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::record::{Home, RunId};
use crate::view::history::Prober;

pub use build::Build;
pub use diff::LookIntoLanes;
pub use gate::{Choice, Decide};
pub(in crate::view) use run_api::Shape;

use cards::Cards;
use feeds::Feeds;
use routes::Routes;
use sse::Streams;
use watcher::{Heed, Watcher};

/// How long the last lines may take to reach their readers.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long pages have for what they show of a run that ended just now.
const LINGER: Duration = Duration::from_secs(2);

/// What is served.
pub struct Site {
    /// Where runs lie.
    pub home: Home,
    /// What stands before a command that is to find them there; empty where nothing must.
    pub command_prefix: String,
    /// The run whose page is the first one; `None` is the page of all runs.
    pub run: Option<RunId>,
    /// How a run's lock is looked at.
    pub probe: Prober,
    /// What the pages say of the program.
    pub build: Build,
    /// Where claude keeps its transcripts.
    pub projects: Option<PathBuf>,
    /// Who looks into lanes; without it nobody does.
    pub lanes: Option<Arc<dyn LookIntoLanes>>,
    /// Who carries out decisions; without it there are none.
    pub decide: Option<Arc<dyn Decide>>,
}

/// A served site; it ends when this is dropped.
pub struct Serving {
    running: Option<http::Running>,
    shared: Arc<Shared>,
    attendant: Option<JoinHandle<()>>,
}

/// What all threads of a site use.
struct Shared {
    streams: Streams,
    feeds: Feeds,
    cards: Cards,
    watcher: Arc<Watcher>,
    home: Home,
}

/// A listener for [`Serving::start`]; port 0 is any.
///
/// # Errors
/// When the port is taken, or the system refuses.
pub fn bind(port: u16) -> io::Result<TcpListener> {
    http::bind(port)
}

impl Serving {
    /// Serves `site` on `listener`.
    ///
    /// # Errors
    /// When threads cannot be started or there is no randomness.
    pub fn start(listener: TcpListener, site: Site) -> io::Result<Serving> {
        http::raise_the_limit_on_files();
        let (watcher, notes) = Watcher::new();
        let watcher = Arc::new(watcher);
        let feeds = Feeds::new(site.home.clone(), site.probe, Arc::clone(&watcher));
        let cards = Cards::new(site.home.clone(), site.probe, Arc::clone(&watcher));
        let shared =
            Arc::new(Shared { streams: Streams::default(), feeds, cards, watcher, home: site.home.clone() });
        let routes = Routes::new(site, Arc::clone(&shared))?;
        let attendant = watcher::attend(notes, Attendant(Arc::clone(&shared)))?;
        let running = http::Running::start(listener, Arc::new(move |request| routes.answer(request)))?;
        Ok(Serving { running: Some(running), shared, attendant: Some(attendant) })
    }

    /// Goes on for a moment where somebody looks, so that their pages fetch what the run ended with.
    pub fn linger(&self) {
        self.shared.streams.settle(LINGER);
    }

    /// Where it is reached: what a person opens.
    pub fn url(&self) -> String {
        self.running.as_ref().map(|running| format!("http://{}/", running.address())).unwrap_or_default()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.shared.feeds.end();
        self.shared.cards.end();
        self.shared.watcher.end();
        if let Some(attendant) = self.attendant.take() {
            attendant.join().ok();
        }
        self.shared.streams.settle(LAST_WORDS);
        drop(self.running.take());
    }
}

/// Passes on what changed.
struct Attendant(Arc<Shared>);

impl Heed for Attendant {
    fn changed(&mut self, paths: &BTreeSet<PathBuf>) {
        let runs = self.0.home.runs();
        let below = paths.iter().filter_map(|path| path.strip_prefix(&runs).ok());
        let names: BTreeSet<&str> = below.filter_map(run_of).collect();
        for id in names.into_iter().filter_map(RunId::parse) {
            self.0.feeds.changed(&id);
            self.0.cards.changed(&id);
        }
    }

    fn look(&mut self) {
        self.0.feeds.tick();
        self.0.cards.tick();
    }

    fn is_idle(&self) -> bool {
        self.0.feeds.is_idle() && self.0.cards.is_idle()
    }
}

/// The run that is shown otherwise when `below`, a path among the runs, changed: its directory itself, or a file that tells
/// how it stands.
fn run_of(below: &Path) -> Option<&str> {
    const TELLING: [&str; 5] = ["events.jsonl", "state.json", "resume.lock", "guard.json", "assess.json"];
    let mut names = below.iter().map(|name| name.to_str());
    let run = names.next()??;
    match (names.next(), names.next()) {
        (None, _) => Some(run),
        (Some(Some(name)), None) if TELLING.contains(&name) => Some(run),
        _ => None,
    }
}
