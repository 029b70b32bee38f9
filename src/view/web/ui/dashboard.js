// The page of all runs: what waits for a person first, then what is in flight, then what is settled, as far as one scrolls.
import { byId, h, omg } from './dom.js';
import { miniature } from './map.js';
import { notify, offer } from './notify.js';
import { follow } from './stream.js';
import './theme.js';
import { duration, inert, mark, met, moment, money, quoted, word } from './words.js';

const PAGE = 48;
/** The height of the drawing of a broad graph; a narrow one is lower. */
const MINIATURE_PX = 76;
const cards = new Map(); // run id -> {card, root}
let fromStream = new Set(); // open cards that this connection has sent
let last = null; // the last settled card that was asked for
let isAtEnd = false;

const LISTS = ['waiting', 'flight', 'settled'];

/** The states of runs, what needs a person first. */
const ORDER = ['paused', 'abandoned', 'unknown', 'running', 'planning', 'pending', 'failed', 'passed'];

/** The list that a card belongs to. An abandoned or unreadable run waits for a person too. */
function listOf(card) {
  if (card.state === 'passed' || card.state === 'failed') return 'settled';
  return ['paused', 'abandoned', 'unknown'].includes(card.state) ? 'waiting' : 'flight';
}

follow('cards', 'api/cards/events', {
  begin() { fromStream = new Set(); },
  open() { fromStream = new Set(); show('passed', 'live'); },
  lost() { show('reconnecting', word('reconnecting')); },
  card(data) {
    const card = JSON.parse(data);
    fromStream.add(card.run_id);
    put(card);
  },
  card_removed(data) { drop(JSON.parse(data).run_id); },
  totals(data) { showTotals(JSON.parse(data)); },
  cards_ready() {
    // What was open before and was not sent is settled or gone: asked for anew.
    for (const [id, { card }] of cards) if (listOf(card) !== 'settled' && !fromStream.has(id)) drop(id);
    if (!isAtEnd && last === null) loadMore();
    else refreshSettled();
    arrange();
  },
});

function show(state, words) {
  byId('state').dataset.state = state;
  byId('state').textContent = words;
}

// ---- cards

function put(card) {
  const known = cards.get(card.run_id);
  const root = known?.root ?? h('li', { class: 'card', 'data-run': card.run_id });
  cards.set(card.run_id, { card, root });
  render(root, card);
  place(root, card);
  arrange();
  if (known && isLive(known.card) && !isLive(card)) notify(card.run_id, `${named(card)}: ${standing(card)}`, () => root.querySelector('a').click());
}

/** How a run stands, in words. */
const standing = (card) => (card.waiting?.length > 0 ? `waits for you at ${card.waiting.join(', ')}` : word(card.state));

function drop(id) {
  cards.get(id)?.root.remove();
  cards.delete(id);
  arrange();
}

/** Puts a card where it belongs, newest first. Ids sort by time. */
function place(root, card) {
  const list = byId(listOf(card));
  const isThere = root.parentNode === list;
  if (isThere) return;
  const focused = root.contains(document.activeElement);
  // Most come in order, at one end.
  const isLast = !list.lastChild || list.lastChild.dataset.run > card.run_id;
  list.insertBefore(root, isLast ? null : [...list.children].find((other) => other.dataset.run < card.run_id));
  if (focused) root.querySelector('a').focus();
}

function render(root, card) {
  root.dataset.state = card.state;
  root.toggleAttribute('data-waits', listOf(card) === 'waiting');
  const { counts } = card;
  const told = [['passed', counts?.passed], ['failed', counts?.failed], ['running', counts?.running], ['pending', counts?.pending]]
    .filter(([, n]) => n > 0)
    .map(([state, n]) => h('span', { class: 'count', 'data-state': state }, `${mark(state)} ${n}`, h('span', { class: 'unseen' }, ` ${word(state)}`)));
  const small = card.nodes?.length > 0 ? miniature(card.nodes) : '';
  if (small) small.style.height = `${Math.min(MINIATURE_PX, small.size[1] * 1.2)}px`;
  const asks = asked(card);
  const lifts = card.nodes?.map((node) => node.held_until).filter(Boolean).sort()[0];
  const link = root.querySelector('a') ?? root.appendChild(h('a', { href: `run/${encodeURIComponent(card.run_id)}/` }));
  link.replaceChildren(
    h('div', { class: 'title' }, h('span', {}, named(card)), h('span', { class: 'word' }, `${mark(card.state)} ${word(card.state)}`)),
    h('p', { class: 'quiet' }, h('code', {}, card.run_id), card.started_at ? ` · ${moment(card.started_at)}` : '', card.rehearsal ? ' · a rehearsal' : ''),
    ...aim(card),
    asks ? h('p', { class: 'asks' }, inert(asks)) : '',
    lifts ? h('p', { class: 'asks' }, `${mark('held')} ${word('held')} until ${moment(lifts)}`) : '',
    small,
    h('p', {}, ...told, h('span', { class: 'quiet' }, h('span', { class: 'took' }, took(card)), money(card.cost_usd, card.cost_unknown))));
  root.querySelector('.next')?.remove();
  if (goesOn(card)) root.append(h('p', { class: 'next' }, omg(`resume ${quoted(card.run_id)} --retry-failed`)));
  sift(root, card);
}

/** A run that is being planned has no graph with a name yet. */
const named = (card) => inert(card.name || card.goal?.text || card.run_id);

/** The goal of a planned run, and how far the goal is. */
function aim({ name, goal }) {
  if (!goal) return [];
  const far = [goal.max_cycles > 1 && `cycle ${goal.cycle} of ${goal.max_cycles}`, goal.goal_met !== undefined && met(goal.goal_met), goal.remaining && `remaining: ${inert(goal.remaining)}`].filter(Boolean);
  const lines = [name && ['aim', inert(goal.text)], far.length > 0 && ['quiet', far.join(' · ')]].filter(Boolean);
  return lines.map(([kind, text]) => h('p', { class: `${kind} clamped`, dir: 'auto' }, text));
}

/** What a run waits for a person to do. */
function asked(card) {
  if (card.waiting?.length > 0) return `decide ${card.waiting.join(', ')}`;
  if (card.state === 'abandoned') return [card.available ? '' : 'it saved nothing: run the graph again', card.children_ended || card.rehearsal ? '' : 'a child of it may still be running'].filter(Boolean).join('; ');
  if (card.state === 'paused') return [card.paused_because, card.held_until && `can go on after ${moment(card.held_until)}`].filter(Boolean).join(' · ');
  return card.error ?? '';
}

/** Whether a command takes it up, where there is nothing to decide first. */
const goesOn = (card) => card.available && !(card.waiting?.length > 0) && (card.state === 'paused' || card.state === 'abandoned');

const isLive = (card) => card.state === 'running' || card.state === 'planning';

function took(card) {
  if (!isLive(card)) return card.took_ms ? duration(card.took_ms) : '';
  return duration(Math.floor((card.took_ms + Date.now() - Date.parse(card.leg_started_at)) / 1000) * 1000);
}

setInterval(() => {
  if (document.hidden) return;
  for (const root of byId('flight').children) root.querySelector('.took').textContent = took(cards.get(root.dataset.run).card);
}, 1000);

function arrange() {
  for (const id of LISTS) byId(id).parentNode.hidden = !byId(id).querySelector('.card:not([hidden])');
  byId('found').textContent = byId('find').value.trim() ? `${document.querySelectorAll('.card:not([hidden])').length} shown` : '';
  byId('none').hidden = cards.size > 0 || !isAtEnd;
  const n = byId('waiting').childElementCount;
  document.title = n > 0 ? `(${n}) omg: runs` : 'omg: runs';
}

function showTotals({ runs, states, cost_usd: cost, cost_unknown: unknown }) {
  const place = ([state]) => ORDER.indexOf(state);
  const found = Object.entries(states).filter(([, n]) => n > 0).sort((a, b) => place(a) - place(b));
  const told = found.map(([state, n]) => h('button', { type: 'button', 'data-state': state, class: 'count', title: 'show these alone, or all again', onclick: () => findState(state) }, `${mark(state)} ${n} ${word(state)}`));
  byId('totals').replaceChildren(h('span', {}, `${runs} ${runs === 1 ? 'run' : 'runs'}`), ...told, h('span', {}, money(cost, unknown)));
}

// ---- the settled ones

let loading = null;
async function loadMore() {
  if (isAtEnd || loading) return;
  const before = last === null ? '' : `&before=${encodeURIComponent(last)}`;
  loading = fetch(`api/cards?of=settled&limit=${PAGE}${before}`).then((answer) => answer.json(), () => null);
  const page = await loading;
  loading = null;
  if (!page) return;
  isAtEnd = page.length < PAGE;
  last = page.at(-1)?.run_id ?? last;
  // What the stream said in the meantime is newer.
  for (const card of page) if (!fromStream.has(card.run_id)) put(card);
  arrange();
  if (!isAtEnd) {
    scrolled.unobserve(byId('more'));
    scrolled.observe(byId('more'));
  }
}

/** After a break: what settled meanwhile is among the newest. */
async function refreshSettled() {
  const page = await fetch(`api/cards?of=settled&limit=${PAGE}`).then((answer) => answer.json(), () => []);
  for (const card of page) if (!fromStream.has(card.run_id)) put(card);
}

const scrolled = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) loadMore(); }, { rootMargin: '800px' });
scrolled.observe(byId('more'));

// ---- finding

function sift(root, card) {
  const text = byId('find').value.trim().toLowerCase();
  const told = [inert(card.name ?? ''), inert(card.goal?.text ?? ''), card.run_id, card.state, word(card.state), card.waiting?.length > 0 ? standing(card) : ''];
  root.hidden = text !== '' && !told.join('\n').toLowerCase().includes(text);
}

function siftAll() {
  cards.forEach(({ card, root }) => sift(root, card));
  arrange();
}

/** Shows the runs in `state` alone, or all when it does already. */
function findState(state) {
  byId('find').value = byId('find').value === word(state) ? '' : word(state);
  siftAll();
}
byId('find').addEventListener('input', siftAll);
offer(byId('notify'));
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input')) return;
  event.preventDefault();
  byId('find').focus();
});
