// The page of one run: takes the feed, keeps the model, and has the parts of the page show it.
import { byId, h, meta, omg } from './dom.js';
import { element, followTails, link, update } from './entry.js';
import { goal } from './goal.js';
import { mapPanel } from './map_panel.js';
import { abandon, counts, elapsed, empty, fold, stateOf } from './model.js';
import { notify, offer } from './notify.js';
import { ask, follow, isLive, present } from './source.js';
import { remember, remembered, turnTheme } from './theme.js';
import { timeline } from './timeline.js';
import { duration, inert, mark, money, moment, quoted, tokens, word } from './words.js';

/** How long one frame may spend on entries, so that a flood of them leaves the page alive. */
const FRAME_MS = 10;
/** How often a page is drawn at most that changes all the time: what lies between costs nothing, and a person reads no faster. */
const DRAW_MS = 100;
/** Leaves connections for what a person does. */
const FETCHES_MAX = 3;
/** How long an entry is near to what is seen before its result is fetched. */
const LINGER_MS = 200;
const GRAPH_MS = 2_000;
/** So many failures are named above the feed. */
const NAMED_MAX = 5;

let model = empty();
let graph = { available: false };
let token = meta('omg-token');
const elements = new Map(); // key of an entry -> its element
const queue = new Set(); // entries to show in the next frames
const page = {
  runId: '',
  status: null,
  isHeard: true, // the server's stream is there, or not yet asked for
  parentsOf: async (id) => (graph.available ? graph : await askGraph()).nodes?.find((node) => node.id === id)?.depends_on ?? [],
  watch: (root) => near.observe(root),
  fetchSoon,
  decide,
};

// ---- the stream

let caughtUp = false;
const fresh = new Set(); // entries that are shown when all that had happened is told

function forget() {
  model = empty();
  caughtUp = false;
  fresh.clear();
  queue.clear();
}

follow({
  begin: forget,
  reset: forget,
  message(data) {
    const line = parsed(data);
    if (!line) return;
    fold(model, line).forEach((entry) => (caughtUp ? queue : fresh).add(entry));
    if (line.event === 'run_started') askGraph();
    if (caughtUp) draw();
  },
  status(data) { showStatus(parsed(data) ?? {}); },
  caught_up() {
    if (caughtUp) return;
    caughtUp = true;
    // What the feed no longer tells is no longer shown.
    const keys = new Set(model.entries.map((entry) => entry.key));
    for (const [key, root] of elements) if (!keys.has(key)) { root.remove(); elements.delete(key); }
    fresh.forEach((entry) => queue.add(entry));
    fresh.clear();
    if (page.status?.state === 'abandoned') abandon(model).forEach((entry) => queue.add(entry));
    showStanding();
    draw(arrive);
  },
  stream_warning(data) { say(parsed(data)?.error); },
  stream_error(data) { say(parsed(data)?.error); },
  open() {
    if (page.isHeard) return;
    page.isHeard = true;
    showStanding();
    // What could not be fetched meanwhile is still to be shown.
    for (const { card } of elements.values()) if (card?.due) near.observe(card.root);
  },
  lost() {
    page.isHeard = false;
    showStanding();
  },
});

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

async function askGraph() {
  const asked = await ask('api/graph').then((answer) => (answer.ok ? answer.json() : null), () => null);
  if (!asked?.available) {
    if (isLive && !(page.status && isOver())) setTimeout(askGraph, GRAPH_MS);
    return graph;
  }
  const isFirst = !graph.available;
  const isNew = JSON.stringify(asked.drawing) !== JSON.stringify(graph.drawing);
  graph = asked;
  if (isNew) panel.draw(graph.drawing, link);
  if (isFirst) showStanding();
  draw();
  return graph;
}

// ---- showing what was told

let isDrawing = false;
let drawn = -DRAW_MS; // when that was last
let whenDrawn = null;
function draw(then) {
  whenDrawn = then ?? whenDrawn;
  if (isDrawing) return;
  isDrawing = true;
  const wait = drawn + DRAW_MS - performance.now();
  if (wait <= 0) requestAnimationFrame(frame);
  else setTimeout(requestAnimationFrame, wait, frame);
}

function frame() {
  const until = performance.now() + FRAME_MS;
  const due = [...queue].sort((a, b) => (a.order ?? Infinity) - (b.order ?? Infinity));
  for (const entry of due) {
    queue.delete(entry);
    place(entry);
    if (performance.now() > until) break;
  }
  if (queue.size > 0) return void requestAnimationFrame(frame);
  showFigures();
  panel.paint((id) => stateOf(model, id));
  isDrawing = false;
  drawn = performance.now();
  whenDrawn?.();
  whenDrawn = null;
}

function place(entry) {
  let root = elements.get(entry.key);
  if (root) update(root, entry);
  else elements.set(entry.key, root = element(entry, page));
  const isOpen = entry.kind === 'node' && ['running', 'held', 'gate-paused'].includes(entry.state);
  const list = byId(isOpen ? 'now' : 'feed');
  if (root.parentNode !== list) {
    const focused = root.contains(document.activeElement) ? document.activeElement : null;
    list.append(root);
    focused?.focus({ preventScroll: true });
  }
  if (root.card?.due) near.observe(root);
  sift(root);
}

// ---- staying with what one looks at while the page grows

let anchor = null; // brings back into view what is to stay there
const toBottom = () => scrollTo(0, document.body.scrollHeight);
const atBottom = () => innerHeight + scrollY >= document.body.scrollHeight - 40;
const stayDown = () => { if (page.status?.in_flight && atBottom()) anchor ??= toBottom; };
for (const type of ['wheel', 'touchmove', 'keydown', 'pointerdown']) addEventListener(type, () => { anchor = null; }, { passive: true });
for (const type of ['scroll', 'keyup', 'pointerup']) addEventListener(type, stayDown, { passive: true });
new ResizeObserver(() => anchor?.()).observe(document.querySelector('.main'));
// What stays in view below the head has to know how high that is: names and reasons make it grow.
const head = document.querySelector('.top');
new ResizeObserver(() => document.documentElement.style.setProperty('--top', `${head.offsetHeight}px`)).observe(head);

const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    target.card.near(isIntersecting);
    // What is settled and shown needs no looking after: a long feed would cost time in every frame.
    if (!isIntersecting && target.card.entry.ended && !target.card.due) near.unobserve(target);
  }
}, { rootMargin: '600px' });

const wanted = []; // cards whose results are to be fetched, the latest last
let fetching = 0;
/** Of those that stay: a feed that streams by leaves no queue behind, and costs nothing to whoever watches it. */
function fetchSoon(card) {
  setTimeout(() => {
    if (!card.seen) return;
    wanted.push(card);
    fetchWanted();
  }, LINGER_MS);
}

function fetchWanted() {
  while (fetching < FETCHES_MAX && wanted.length > 0) {
    fetching++;
    wanted.pop().fetchDue().catch(() => {}).finally(() => {
      fetching--;
      fetchWanted();
    });
  }
}

function showFigures() {
  const ids = graph.nodes?.map((node) => node.id) ?? [...model.latest.keys()];
  const found = Object.entries(counts(model, ids));
  const told = found.map(([state, n]) => `${state}:${n}`).join();
  if (byId('counts').dataset.told !== told) {
    byId('counts').dataset.told = told;
    byId('counts').replaceChildren(...found.map(([state, n]) => h('span', { class: 'count', 'data-state': state, title: word(state) }, `${mark(state)} ${n}`, h('span', { class: 'unseen' }, ` ${word(state)}`))));
  }
  byId('cost').textContent = money(Math.max(model.cost, page.status?.cost_usd ?? 0), model.unknown || page.status?.cost_unknown);
  byId('tokens').textContent = tokens(model.usage);
  showElapsed();
}

function showElapsed() {
  const isOver = page.status && page.status.state !== 'running' && page.status.state !== 'planning';
  const now = isOver ? model.last : present();
  if (model.legs.length > 0) byId('elapsed').textContent = duration(Math.floor(elapsed(model, now) / 1000) * 1000 || elapsed(model, now));
  if (!byId('timeline').hidden) times.show(model, now);
}

setInterval(() => {
  if (document.hidden) return;
  if (page.status?.in_flight) showElapsed();
  for (const element of document.querySelectorAll('.ticking')) element.textContent = duration(Math.floor((present() - element.dataset.since) / 1000) * 1000);
}, 1000);

function showChip(state) {
  byId('state').dataset.state = state;
  byId('state').textContent = `${mark(state)} ${word(state)}`;
}

function showStatus(status) {
  const before = page.status?.state;
  page.status = status;
  page.runId = status.run_id ?? page.runId;
  byId('title').textContent = named();
  byId('title').title = page.runId;
  document.title = `${mark(status.state)} ${isWaiting() ? word('gate-paused') : word(status.state)} · ${named()}`;
  if (status.state === 'abandoned') abandon(model).forEach((entry) => queue.add(entry));
  showStanding();
  draw();
  aim.refresh(status);
  if (before && before !== status.state && isOver()) announce(status);
}

const named = () => inert(page.status.graph || page.runId);
const isWaiting = () => page.status.waiting?.length > 0 && !page.status.in_flight;
const isOver = () => !page.status.in_flight && page.status.state !== 'pending';

/** How the run stands, and what a person can do about it. What is over stays so while the server is away. */
function showStanding() {
  showChip(page.isHeard ? page.status?.state ?? 'connecting' : page.status && isOver() ? page.status.state : 'reconnecting');
  if (!page.status) return;
  byId('hint').replaceChildren(...hint(page.status, isWaiting()));
  for (const root of byId('now').children) root.card.showDecision();
}

function hint(status, waiting) {
  const id = quoted(page.runId);
  const said = [h('code', { class: 'run-id' }, page.runId)];
  if (!isLive) said.push(h('span', {}, `as it stood on ${new Date(present()).toLocaleString()}`));
  if (status.rehearsal) said.push(h('span', {}, 'a rehearsal'));
  if (status.error) said.push(h('span', { class: 'problem' }, inert(status.error)));
  if (waiting) said.push(h('span', {}, 'waits for you at ', ...status.waiting.flatMap((gate, i) => [i ? ', ' : '', h('a', { href: link(gate) }, gate)])));
  else if (status.state === 'abandoned') said.push(h('span', {}, inert(status.hint ?? '')));
  else if (status.state === 'paused' && status.paused_because) said.push(h('span', {}, inert(status.paused_because)));
  else if (status.state === 'failed') said.push(...failures());
  if (status.state === 'paused' && status.held_until && !waiting) said.push(h('strong', {}, `can go on after ${moment(status.held_until)}`));
  if (!page.isHeard) said.push(h('span', { class: 'problem' }, 'the server of this page does not answer; this goes on with it:'), omg(`serve ${id}`));
  // What saved nothing, as a plan that was refused, has nothing to go on with.
  const goesOn = ['paused', 'failed', 'abandoned'].includes(status.state) && !waiting && graph.available;
  const lines = [goesOn && `resume ${id} --retry-failed`, isLive && status.in_flight && `stop ${id}`, `show ${id}`];
  return [...said, ...lines.filter(Boolean).map(omg)];
}

/** Which nodes failed, each a link to what it said. */
function failures() {
  const failed = [...model.latest.values()].filter(({ state }) => state === 'failed').map(({ node }) => node);
  if (failed.length === 0) return [];
  const links = failed.slice(0, NAMED_MAX).flatMap((node, i) => [i ? ', ' : '', h('a', { href: link(node) }, node)]);
  const more = failed.length > NAMED_MAX ? ` and ${failed.length - NAMED_MAX} more` : '';
  return [h('span', {}, 'failed at ', links, more)];
}

function say(text) {
  byId('problem').textContent = inert(text ?? '');
  byId('problem').hidden = !text;
}

// ---- telling a person who looks elsewhere

const announce = (status) => notify(page.runId, `${named()}: ${isWaiting() ? `waits for you at ${status.waiting.join(', ')}` : word(status.state)}`);
if (isLive) offer(byId('notify'));

// ---- a person's decision

/** Decides a gate; returns what was wrong, or nothing. */
async function decide(node, choice) {
  say('');
  const post = () => ask(`api/gate/${choice}`, { method: 'POST', headers: { 'X-OMG-Token': token, 'Content-Type': 'application/json' }, body: JSON.stringify({ node }) });
  try {
    let answer = await post();
    // A server that was started anew has a token of its own.
    if (answer.status === 403 && await askToken()) answer = await post();
    if (answer.ok) return null;
    const problem = await answer.text();
    say(problem);
    return problem;
  } catch {
    say('the server does not answer; the gate was not decided');
    return 'no answer';
  }
}

async function askToken() {
  const text = await ask('./').then((answer) => answer.text());
  const served = new DOMParser().parseFromString(text, 'text/html').querySelector('meta[name="omg-token"]')?.content;
  const isNew = Boolean(served) && served !== token;
  token = served ?? token;
  return isNew;
}

// ---- finding one's way

/** Where the page of another run is; a view of one run alone has none. */
const isAmongOthers = isLive && /\/run\/[^/]+\/$/.test(location.pathname);
const aim = goal(byId('goal'), byId('cycle'), (id) => (isAmongOthers ? `../${encodeURIComponent(id)}/` : null));
const panel = mapPanel();
const times = timeline(byId('timeline'), link, () => ask('api/path').then((answer) => (answer.ok ? answer.json() : null), () => null));

function sift(root) {
  if (root.card === undefined) return void (root.hidden = Boolean(byId('find').value || byId('of-state').value));
  const { node, state } = root.card.entry;
  root.hidden = !node.toLowerCase().includes(byId('find').value.trim().toLowerCase()) || (byId('of-state').value !== '' && byId('of-state').value !== state);
}

function siftAll() {
  elements.forEach(sift);
  const shown = entries().length;
  byId('found').textContent = byId('find').value || byId('of-state').value ? `${shown} shown` : '';
}

const entries = () => [...document.querySelectorAll('.entry:not([hidden])')];
byId('filter').addEventListener('input', siftAll);
byId('filter').addEventListener('submit', (event) => event.preventDefault());

/** Goes to the latest entry of the node that the address names. */
function goToNode() {
  const node = /^#node=(.+)$/.exec(location.hash)?.[1];
  const entry = node && model.latest.get(decoded(node));
  const root = entry && elements.get(entry.key);
  if (!root) return false;
  root.hidden = false;
  root.scrollIntoView({ block: 'center' });
  root.focus({ preventScroll: true });
  root.classList.remove('flash');
  requestAnimationFrame(() => root.classList.add('flash'));
  return true;
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** Where a page that was just opened begins: at what was asked for, at what waits for a person, or at what runs. */
function arrive() {
  if (scrollY > 0) return;
  const gate = document.querySelector('#now .entry[data-state="gate-paused"]');
  if (goToNode()) anchor = () => document.activeElement.scrollIntoView?.({ block: 'center' });
  else if (page.status?.in_flight) anchor = toBottom;
  else if (gate) anchor = () => gate.scrollIntoView({ block: 'start' });
  anchor?.();
}

addEventListener('hashchange', goToNode);
document.addEventListener('click', (event) => {
  // The same address again is no change of it.
  const to = event.target.closest?.('a[href^="#node="]');
  if (to && to.getAttribute('href') === location.hash) goToNode();
});

function step(by) {
  const all = entries();
  const at = all.indexOf(document.activeElement.closest?.('.entry'));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: 'nearest' });
}

function showTimeline() {
  byId('timeline').hidden = !byId('timeline').hidden;
  byId('show-timeline').setAttribute('aria-expanded', String(!byId('timeline').hidden));
  remember('omg-timeline', byId('timeline').hidden ? 'closed' : 'open');
  showElapsed();
  if (!byId('timeline').hidden) byId('timeline').scrollIntoView({ block: 'start' });
}
byId('show-timeline').addEventListener('click', showTimeline);

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  g: () => document.querySelector('.entry[data-state="gate-paused"] .approve')?.focus(),
  m: () => panel.toggle(),
  l: showTimeline,
  t: turnTheme,
  '/': () => byId('find').focus(),
};
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('input, select, textarea')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

byId('all').hidden = !isAmongOthers;
byId('timeline').hidden = remembered('omg-timeline') !== 'open';
byId('show-timeline').setAttribute('aria-expanded', String(!byId('timeline').hidden));
if (isLive) followTails(() => [...byId('now').children].map((root) => root.card), () => graph.transcript_note);
askGraph();
