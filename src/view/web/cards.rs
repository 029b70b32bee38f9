//! All runs as the dashboard shows them: one cache, one fan-out (FACTS 9.4, PERF P8).
//!
//! How each run stands comes from the listing, which remembers runs that have ended. The whole card of a run is made when
//! it is open or asked for, and kept until its files change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde::Serialize;

use super::card::{self, Card, CardBrief, Reading};
use super::http::{self, Stream};
use super::sse::{self, Bytes, HEARTBEAT, QUEUE};
use super::watcher::Watcher;
use crate::record::index::Stamp;
use crate::record::{Home, RunDir, RunId};
use crate::text::money::Cost;
use crate::view::history::cores::on_every_core;
use crate::view::history::list::{Listing, Reason};
use crate::view::history::lookup::{self, LookupError};
use crate::view::history::run_json::CostJson;
use crate::view::history::{Prober, Run};

/// After how many looks at what is in flight everything else is looked at, and how many where the system does not tell all.
const LOOKS: (u32, u32) = (30, 5);

/// All cards.
pub(super) struct Cards {
    home: Home,
    probe: Prober,
    watcher: Arc<Watcher>,
    state: Mutex<State>,
    over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Newest first.
    order: Vec<RunId>,
    cards: HashMap<RunId, Entry>,
    readers: Vec<Sender<Bytes>>,
    totals: String,
    looks: u32,
    /// Whether somebody follows, and so the cards are kept up to date.
    watched: bool,
    /// Whether the directory of all runs is watched, and which runs are.
    root: bool,
    /// Whether the system tells of some changes only, as where it has no more watches to give.
    deaf: bool,
    watching: HashSet<RunId>,
}

struct Entry {
    /// The files that it was made from.
    stamp: Option<Stamp>,
    /// Whether a judge had said something of it, which no other file tells.
    is_judged: bool,
    brief: CardBrief,
    json: Option<Arc<str>>,
    /// What the listing told of a run that has ended, until its card is made.
    listed: Option<Run>,
    /// How far an open run was read.
    reading: Option<Reading>,
}

/// Which cards are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Every run.
    All,
    /// Those that somebody or something is waited for.
    Open,
    /// Those that have ended.
    Settled,
}

impl Which {
    fn takes(self, brief: CardBrief) -> bool {
        match self {
            Which::All => true,
            Which::Open => !brief.is_settled(),
            Which::Settled => brief.is_settled(),
        }
    }
}

impl Cards {
    pub(super) fn new(home: Home, probe: Prober, watcher: Arc<Watcher>) -> Self {
        Cards { home, probe, watcher, state: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// At most `limit` cards of runs older than `before`, newest first, as a list in JSON.
    ///
    /// # Errors
    /// When the runs cannot be listed.
    pub(super) fn page(
        &self,
        which: Which,
        before: Option<&str>,
        limit: usize,
    ) -> Result<String, LookupError> {
        let mut state = self.current()?;
        let order = std::mem::take(&mut state.order);
        let from =
            before.map_or(0, |id| RunId::parse(id).map_or(order.len(), |id| lookup::older_than(&order, &id)));
        let mut page = String::from("[");
        let wanted =
            order[from..].iter().filter(|id| state.cards.get(id).is_some_and(|it| which.takes(it.brief)));
        let wanted: Vec<RunId> = wanted.take(limit).cloned().collect();
        self.make(&mut state, &wanted);
        for id in &wanted {
            if page.len() > 1 {
                page.push(',');
            }
            page += &self.json(&mut state, id);
        }
        state.order = order;
        Ok(page + "]")
    }

    /// The sums over all runs, in JSON.
    ///
    /// # Errors
    /// When the runs cannot be listed.
    pub(super) fn totals(&self) -> Result<String, LookupError> {
        self.current().map(|state| state.totals.clone())
    }

    /// Sends the open cards and then every change to one reader, until it goes or the server ends.
    ///
    /// # Errors
    /// When the reader is gone.
    pub(super) fn follow(&self, stream: &mut Stream) -> io::Result<()> {
        while !self.over.load(Ordering::Acquire) {
            let (queue, first) = match self.join() {
                Ok(joined) => joined,
                Err(error) => return stream.send(&sse::failure(&error)),
            };
            let ended = stream.send(&first).and_then(|()| take(&queue, stream));
            drop(queue);
            self.leave();
            ended?;
        }
        Ok(())
    }

    /// Something of the run `id` changed.
    pub(super) fn changed(&self, id: &RunId) {
        let mut state = self.state();
        if state.watched {
            self.refresh(&mut state, id);
            state.tell_totals();
        }
    }

    /// Looks at what changes without a trace, and now and then at everything.
    pub(super) fn tick(&self) {
        let mut state = self.state();
        if !state.watched {
            return;
        }
        state.looks += 1;
        let every = if state.deaf { LOOKS.1 } else { LOOKS.0 };
        // Before the first run there is nothing to watch.
        if self.watch_root(&mut state) || state.looks.is_multiple_of(every) {
            // Unreadable for a moment is not gone.
            self.sweep(&mut state).ok();
        }
        let in_flight: Vec<RunId> = {
            let cards = state.cards.iter().filter(|(_, entry)| entry.brief.is_in_flight());
            cards.map(|(id, _)| id.clone()).collect()
        };
        in_flight.iter().for_each(|id| self.rebuild(&mut state, id));
        state.tell_totals();
    }

    /// Whether anybody reads.
    pub(super) fn is_idle(&self) -> bool {
        self.state().readers.is_empty()
    }

    /// Ends every stream.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.state().readers.clear();
    }

    /// The cards as they are now. While somebody follows they are kept so.
    fn current(&self) -> Result<MutexGuard<'_, State>, LookupError> {
        let mut state = self.state();
        if !state.watched {
            self.sweep(&mut state)?;
            state.tell_totals();
        }
        Ok(state)
    }

    fn join(&self) -> Result<(Receiver<Bytes>, Bytes), LookupError> {
        let mut state = self.state();
        if !state.watched {
            // Watched first: what changes while the runs are read is read again.
            self.watch_root(&mut state);
            let runs = lookup::entries(&self.home)?.runs;
            runs.iter().for_each(|id| self.watch(&mut state, id));
            self.sweep(&mut state)?;
            state.watched = true;
            state.tell_totals();
        }
        let order = state.order.clone();
        let mut text = String::new();
        for id in &order {
            if state.cards.get(id).is_some_and(|entry| !entry.brief.is_settled()) {
                text += &sse::text(None, Some("card"), &self.json(&mut state, id));
            }
        }
        text += &sse::text(None, Some("totals"), &state.totals);
        text += &sse::text(None, Some("cards_ready"), "{}");
        let (sender, receiver) = bounded(QUEUE);
        state.readers.push(sender);
        Ok((receiver, http::chunk(text.as_bytes())))
    }

    /// One reader went; with the last one the watching ends.
    fn leave(&self) {
        let mut state = self.state();
        // Who is gone is found by trying; a comment disturbs no other.
        state.publish(&sse::heartbeat());
        if state.readers.is_empty() && std::mem::take(&mut state.watched) {
            if std::mem::take(&mut state.root) {
                self.watcher.forget(&self.home.runs());
            }
            state.watching.drain().for_each(|id| self.watcher.forget(self.home.run(&id).path()));
        }
    }

    /// Whether the directory of all runs is watched since now.
    fn watch_root(&self, state: &mut State) -> bool {
        let was = state.root;
        state.root = was || self.watcher.watch(&self.home.runs());
        state.root && !was
    }

    fn watch(&self, state: &mut State, id: &RunId) {
        if !state.watching.contains(id) {
            match self.watcher.watch(self.home.run(id).path()) {
                true => drop(state.watching.insert(id.clone())),
                false => state.deaf = true,
            }
        }
    }

    /// Finds runs that came, went or changed.
    fn sweep(&self, state: &mut State) -> Result<(), LookupError> {
        // Whoever follows already hears of each run that came, the first ones too.
        if state.cards.is_empty() && state.readers.is_empty() {
            return self.fill(state);
        }
        let found: HashSet<RunId> = lookup::entries(&self.home)?.runs.into_iter().collect();
        let gone: Vec<RunId> = state.order.iter().filter(|id| !found.contains(*id)).cloned().collect();
        gone.iter().for_each(|id| self.remove(state, id));
        found.iter().for_each(|id| self.refresh(state, id));
        Ok(())
    }

    /// Learns how every run stands.
    fn fill(&self, state: &mut State) -> Result<(), LookupError> {
        let stamp = |id: &RunId| Stamp::of(&self.home.run(id));
        let stamps: HashMap<RunId, Option<Stamp>> =
            lookup::entries(&self.home)?.runs.into_iter().map(|id| (id.clone(), stamp(&id))).collect();
        let listing = Listing::read(&self.home, self.probe)?;
        let entry =
            |id: &RunId, brief| Entry { stamp: stamps.get(id).copied().flatten(), ..Entry::of(brief) };
        let known = |run: Run| {
            let (id, brief) = (run.id.clone(), CardBrief::of(&run));
            (
                id.clone(),
                Entry {
                    listed: Some(run).filter(|run| brief.is_settled() && run.brief.is_some()),
                    ..entry(&id, brief)
                },
            )
        };
        state.cards = listing.runs.into_iter().map(known).collect();
        let unreadable = listing.skipped.iter().filter(|it| it.reason != Reason::NotARun);
        for skipped in unreadable {
            if let Some(id) = RunId::parse(&skipped.name) {
                let json = Some(card::unreadable(&id, &skipped.error).json.into());
                state.cards.insert(id.clone(), Entry { json, ..entry(&id, CardBrief::unknown()) });
            }
        }
        state.order = state.cards.keys().cloned().collect();
        lookup::newest_first(&mut state.order);
        Ok(())
    }

    /// Takes up a run that may be new or changed or gone.
    fn refresh(&self, state: &mut State, id: &RunId) {
        let dir = self.home.run(id);
        let is_same = |entry: &Entry| {
            let is_known = entry.stamp.is_some() && entry.stamp == Stamp::of(&dir);
            !entry.brief.is_in_flight() && is_known && entry.is_judged == is_judged(&dir)
        };
        if state.cards.get(id).is_some_and(is_same) {
            return;
        }
        if !lookup::is_run(&dir) {
            if !dir.path().is_dir() {
                self.remove(state, id);
            } else if state.watched {
                self.watch(state, id);
            }
            return;
        }
        if !state.cards.contains_key(id) {
            if state.watched {
                self.watch(state, id);
            }
            state.order.push(id.clone());
            lookup::newest_first(&mut state.order);
            state.cards.insert(id.clone(), Entry::of(CardBrief::unknown()));
        }
        self.rebuild(state, id);
    }

    /// Reads the run `id` and tells of it if its card is another now.
    fn rebuild(&self, state: &mut State, id: &RunId) {
        let dir = self.home.run(id);
        let Some(entry) = state.cards.get_mut(id) else { return };
        let card = entry.read(id, &dir, self.probe);
        let json: Arc<str> = card.json.into();
        let is_same = entry.json.as_ref() == Some(&json);
        (entry.brief, entry.json) = (card.brief, Some(Arc::clone(&json)));
        if !is_same {
            state.publish(&sse::frame(None, Some("card"), &json));
        }
    }

    fn remove(&self, state: &mut State, id: &RunId) {
        if state.cards.remove(id).is_some() {
            state.order.retain(|it| it != id);
            if state.watching.remove(id) {
                self.watcher.forget(self.home.run(id).path());
            }
            let gone = serde_json::json!({ "run_id": id.as_str() }).to_string();
            state.publish(&sse::frame(None, Some("card_removed"), &gone));
        }
    }

    /// The card of `id`, made now if it was not asked for before.
    fn json(&self, state: &mut State, id: &RunId) -> Arc<str> {
        let Some(entry) = state.cards.get_mut(id) else { return "null".into() };
        match &entry.json {
            Some(json) => Arc::clone(json),
            None => entry.make(id, &self.home.run(id), self.probe),
        }
    }

    /// Makes the cards of `ids` that were not asked for before, on every core: a first page may be a thousand runs.
    /// What is not made here is made when its turn comes.
    fn make(&self, state: &mut State, ids: &[RunId]) {
        let mut unmade: Vec<(RunId, Entry)> = Vec::new();
        for id in ids {
            if state.cards.get(id).is_some_and(|entry| entry.json.is_none()) {
                unmade.extend(state.cards.remove_entry(id));
            }
        }
        on_every_core(&mut unmade, |(id, entry)| {
            entry.make(id, &self.home.run(id), self.probe);
        });
        state.cards.extend(unmade);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends what comes, until there is no more to come this way: the reader could not keep up, and begins again with how
/// things stand then.
fn take(queue: &Receiver<Bytes>, stream: &mut Stream) -> io::Result<()> {
    loop {
        match queue.recv_timeout(HEARTBEAT) {
            Ok(frame) => stream.send(&frame)?,
            Err(RecvTimeoutError::Timeout) => stream.send(&sse::heartbeat())?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

impl Entry {
    fn of(brief: CardBrief) -> Self {
        Entry { stamp: None, is_judged: false, brief, json: None, listed: None, reading: None }
    }

    /// Makes the card, which is kept from now on.
    fn make(&mut self, id: &RunId, dir: &RunDir, probe: Prober) -> Arc<str> {
        let card = self.read(id, dir, probe);
        let json: Arc<str> = card.json.into();
        (self.brief, self.json) = (card.brief, Some(Arc::clone(&json)));
        json
    }

    fn read(&mut self, id: &RunId, dir: &RunDir, probe: Prober) -> Card {
        self.is_judged = is_judged(dir);
        let listed = self.listed.take().filter(|_| self.stamp == Stamp::of(dir));
        if let Some(card) = listed.and_then(|run| card::settled(&run, dir).ok()) {
            return card;
        }
        // Taken before the files are read: what changes meanwhile no longer fits it.
        self.stamp = Stamp::of(dir);
        let mut reading = self.reading.take().unwrap_or_else(|| Reading::new(id, dir));
        match reading.update(dir, probe) {
            Ok(card) => {
                self.reading = card.brief.is_in_flight().then_some(reading);
                card
            }
            Err(error) => card::unreadable(id, &error.to_string()),
        }
    }
}

fn is_judged(dir: &RunDir) -> bool {
    dir.assessment().symlink_metadata().is_ok()
}

impl State {
    fn publish(&mut self, frame: &Bytes) {
        self.readers.retain(|reader| reader.try_send(Arc::clone(frame)).is_ok());
    }

    fn tell_totals(&mut self) {
        #[derive(Serialize)]
        struct Totals {
            runs: usize,
            states: BTreeMap<&'static str, usize>,
            #[serde(flatten)]
            cost: CostJson,
        }
        let mut states = BTreeMap::new();
        self.cards.values().for_each(|entry| *states.entry(entry.brief.state).or_default() += 1);
        let cost: Cost = self.cards.values().map(|entry| entry.brief.cost).sum();
        let totals = Totals { runs: self.cards.len(), states, cost: cost.into() };
        let totals = serde_json::to_string(&totals).unwrap_or_default();
        if totals != self.totals {
            self.publish(&sse::frame(None, Some("totals"), &totals));
            self.totals = totals;
        }
    }
}
