// The entries of the feed as elements: one for every turn of a node, and lines where a leg begins and ends.
import { lanes } from './diff.js';
import { copy, h, omg } from './dom.js';
import { fetched } from './result.js';
import { ask, isLive } from './source.js';
import { clock, duration, inert, mark, moment, money, quoted, tokens, word } from './words.js';

/** How often the transcript of a running node is asked for. */
const TRANSCRIPT_MS = 3_000;

/** The address that shows `node`. */
export const link = (node) => `#node=${encodeURIComponent(node)}`;
const of = (route, node) => `api/${route}?node=${encodeURIComponent(node)}`;

/** An element for `entry` that `update` brings up to date. `page` says what the entry needs of the rest. */
export function element(entry, page) {
  if (entry.kind === 'leg') return leg(entry);
  if (entry.kind === 'end') return end(entry);
  return new Card(entry, page).root;
}

/** Brings the element of `entry` up to date. */
export function update(root, entry) {
  if (entry.kind === 'node') root.card.show(entry);
  else if (entry.kind === 'leg') root.replaceChildren(...leg(entry).childNodes);
}

function leg(entry) {
  return h('li', { class: 'line' }, h('time', {}, moment(entry.started)), ` ${begun(entry)}${entry.rehearsal ? ' · a rehearsal' : ''}`);
}

function begun({ number, phase, planning }) {
  if (phase === 'planning') return 'being planned';
  if (planning) return `planned for ${money(planning.cost, planning.unknown)}: run started`;
  return number === 1 ? 'run started' : `resumed: leg ${number}`;
}

function end(entry) {
  const states = Object.entries(entry.counts).map(([state, n]) => `${n} ${word(state)}`);
  if (entry.skipped) states.push(`${entry.skipped} ${word('skipped')}`);
  return h('li', { class: `line end ${entry.outcome}` },
    h('time', {}, clock(entry.at)), ' ', h('strong', {}, `${mark(entry.outcome)} ${word(entry.outcome)}`),
    ` · ${[...states, money(entry.cost, entry.unknown)].join(' · ')}`,
    entry.detail && h('p', { class: 'detail', dir: 'auto' }, inert(entry.detail)),
    entry.never.length > 0 && h('details', {}, h('summary', {}, 'what never ran'), h('ul', {}, ...entry.never.map((one) => h('li', {}, one.node, ': ', inert(reason(one)))))));
}

/** Why a node never ran. */
function reason({ because, why }) {
  const reasons = { ancestor_failed: `${because} failed`, rejected: `${because} was rejected`, halted: `the run halted when ${because} failed`, interrupted: `interrupted by ${because}` };
  return reasons[why] ?? `${why} ${because}`;
}

/** One turn of a node. What was opened and fetched stays while the head changes. */
class Card {
  constructor(entry, page) {
    this.page = page;
    this.head = h('div', { class: 'head' });
    this.detail = h('div', { class: 'details' });
    this.decision = h('div', { class: 'decision' });
    this.tail = h('div', { class: 'tail' });
    this.result = h('div', { class: 'produced' });
    this.attempts = h('details', { class: 'attempts', ontoggle: () => this.showAttempts() });
    this.root = h('li', { class: 'entry', tabindex: '-1', 'data-node': entry.node },
      this.head, this.decision, this.detail, this.tail, this.result, this.attempts);
    this.root.card = this;
    page.watch(this.root);
    this.show(entry);
  }

  show(entry) {
    this.entry = entry;
    this.root.dataset.state = entry.state;
    this.root.setAttribute('aria-label', `${entry.node}, ${word(entry.state)}`);
    this.root.classList.toggle('superseded', Boolean(entry.superseded));
    this.showHead(entry);
    this.detail.replaceChildren(...details(entry));
    this.attempts.hidden = Boolean(entry.isGate);
    if (!this.attempts.firstChild) this.attempts.append(h('summary', {}, 'attempts', h('span', { class: 'unseen' }, ` of ${entry.node}`)));
    // A later turn replaced the file that this one would show.
    if (entry.superseded && !this.older) this.result.replaceChildren(this.older = this.buildOlder());
    const settled = `${entry.state}@${entry.ended}`;
    if (this.settled !== settled) {
      this.settled = settled;
      this.due = !entry.superseded && (entry.state === 'passed' || entry.state === 'failed');
      if (this.due && this.seen) this.page.fetchSoon(this);
    }
    if (entry.state !== 'running') this.tail.replaceChildren();
    this.showDecision();
  }

  showHead(entry) {
    const took = entry.state === 'running'
      ? h('span', { class: 'ticking', 'data-since': entry.attempts.at(-1).started })
      : entry.ended && h('span', {}, duration(entry.took ?? entry.ended - entry.started));
    const { session } = entry;
    const spent = entry.cost > 0 || entry.unknown ? money(entry.cost, entry.unknown) : '';
    const until = entry.state === 'held' && Number.isFinite(entry.heldUntil) ? `until ${moment(entry.heldUntil)}` : '';
    const more = [until, entry.round > 0 && `round ${entry.round + 1}`, entry.provenance, entry.cause?.replaceAll('_', ' '), entry.leaky && 'leaky', spent, tokens(entry.usage)];
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.part : null;
    this.head.replaceChildren(
      h('span', { class: 'mark', 'aria-hidden': 'true' }, mark(entry.state)),
      h('a', { class: 'name', href: link(entry.node), 'data-part': 'name' }, entry.node),
      h('span', { class: 'word' }, entry.decided && entry.state !== 'running' ? entry.decided : word(entry.state)),
      h('span', { class: 'meta' }, took || '', ...more.filter(Boolean).map((text) => h('span', {}, text)),
        session && h('button', { type: 'button', class: 'small', 'data-part': 'session', title: 'copy the session id', onclick: (e) => copy(session, e.currentTarget) }, session.slice(0, 8))),
      h('time', {}, clock(entry.ended ?? entry.started)));
    if (focused) this.head.querySelector(`[data-part="${focused}"]`)?.focus();
  }

  /** Called when the entry comes near to what is seen, or goes from there. */
  near(isNear) {
    this.seen = isNear;
    if (isNear && this.due) this.page.fetchSoon(this);
  }

  /** Fetches what is due to be shown, if it is still near. */
  async fetchDue() {
    if (!this.due || !this.seen) return;
    this.due = false;
    const { node, state } = this.entry;
    const made = await this.fetchSaid(node, state).catch(() => { this.due = true; });
    if (made && !this.entry.superseded) this.result.replaceChildren(made);
  }

  async fetchSaid(node, state) {
    return (state === 'failed' && await fetched(of('failed', node), `the reply of ${node}`)) || fetched(of('result', node), `what ${node} produced`);
  }

  /** What an older turn said, fetched when somebody wants to see it. */
  buildOlder() {
    const shown = h('div');
    const label = `what ${this.entry.node} said in this turn`;
    const fold = h('details', { class: 'older', ontoggle: async () => {
      if (!fold.open || shown.firstChild) return;
      const made = await this.olderReply(label).catch(() => null);
      if (made === null) return void (fold.open = false);
      shown.append(made ?? h('p', { class: 'quiet' }, 'it was not kept: a newer result took its place'));
    } }, h('summary', {}, 'what it said then'), shown);
    return this.entry.isGate ? '' : fold;
  }

  /** The reply of the last attempt of this turn. */
  async olderReply(label) {
    const { node, leg: ofLeg, round } = this.entry;
    const answer = await ask(of('attempts', node));
    const found = answer.ok ? await answer.json() : [];
    const last = found.findLast((one) => one.leg === ofLeg && one.round === round && one.said.includes('reply'));
    return last && (await fetched(`${of('said', node)}&attempt=${last.leg}-${last.round}-${last.attempt}&what=reply`, label) ?? undefined);
  }

  async showAttempts() {
    if (!this.attempts.open || this.attempts.dataset.at === this.settled) return;
    this.attempts.dataset.at = this.settled;
    const { node } = this.entry;
    const answer = await ask(of('attempts', node)).catch(() => null);
    if (!answer) {
      delete this.attempts.dataset.at;
      return this.attempts.replaceChildren(this.attempts.firstChild, unheard());
    }
    const found = answer.ok ? await answer.json() : [];
    const rows = found.map(({ leg: of_leg, round, attempt, said }) => {
      const shown = h('div');
      const label = `leg ${of_leg}${round ? `, round ${round + 1}` : ''}, attempt ${attempt}`;
      const buttons = said.map((what) => h('button', { type: 'button', class: 'small', 'aria-label': `${what} of ${label} of ${node}`, onclick: async () => {
        const url = `${of('said', node)}&attempt=${of_leg}-${round}-${attempt}&what=${what}`;
        shown.replaceChildren(await fetched(url, `${what}, ${label}`, what !== 'reply').catch(unheard) ?? h('p', { class: 'quiet' }, `no ${what}`));
      } }, what === 'verify' ? 'evidence' : what));
      return h('li', {}, h('span', {}, label), ' ', ...buttons, shown);
    });
    const body = rows.length > 0 ? h('ul', {}, ...rows) : h('p', { class: 'quiet' }, 'nothing was kept');
    this.attempts.replaceChildren(this.attempts.firstChild, body);
  }

  /** The buttons of a gate, with what its parents produced and what the lanes before it changed. */
  showDecision() {
    const { node, state } = this.entry;
    const { status } = this.page;
    if (state !== 'gate-paused') {
      this.decision.replaceChildren();
      this.deciding = null;
      return;
    }
    if (!this.deciding) this.buildDecision(node);
    const isOpen = Boolean(status?.waiting?.includes(node)) && !status.in_flight && this.page.isHeard;
    this.deciding.buttons.forEach((button) => { button.disabled = !isOpen || this.pending; });
    const why = this.page.isHeard ? 'can be decided as soon as nothing else can run' : 'the server does not answer';
    this.deciding.note.textContent = isOpen || !isLive ? '' : why;
  }

  buildDecision(node) {
    const decide = (choice) => h('button', { type: 'button', class: choice, 'aria-label': `${choice} ${node}`, onclick: () => this.decide(choice) }, choice);
    const buttons = isLive ? [decide('approve'), decide('reject')] : [];
    const note = h('span', { class: 'quiet' });
    const material = h('div', { class: 'material' });
    const id = this.page.runId;
    this.deciding = { buttons, note };
    this.decision.replaceChildren(
      h('div', { class: 'buttons' }, ...buttons, note),
      material,
      h('div', { class: 'quiet' }, 'or in a terminal: ', omg(`resume ${quoted(id)} --approve ${quoted(node)}`)));
    this.page.parentsOf(node).then(async (parents) => {
      const produced = Promise.all(parents.map(async (parent) => [parent, await fetched(of('result', parent), `what ${parent} produced`)]));
      const [shown, changed] = await Promise.all([produced, lanes(node)]);
      material.replaceChildren(...shown.flatMap(([parent, made]) => [
        h('h3', {}, h('a', { href: link(parent) }, parent), made ? ' produced' : ' produced no text'), made ?? '']), ...changed);
    }).catch(() => {
      // Asked for anew when the server is heard again.
      this.deciding = null;
      material.replaceChildren(h('p', { class: 'quiet' }, 'what led here could not be fetched'));
    });
  }

  async decide(choice) {
    this.pending = true;
    this.showDecision();
    const problem = await this.page.decide(this.entry.node, choice);
    // What was accepted is told by the feed; until then nothing can be pressed twice.
    if (problem) {
      this.pending = false;
      this.showDecision();
    }
  }

  /** Asks what a running node is saying. */
  async showTail() {
    if (this.entry.state !== 'running') return;
    const answer = await ask(of('transcript', this.entry.node));
    if (answer.status !== 200 || this.entry.state !== 'running') return;
    const { entries } = await answer.json();
    this.tail.replaceChildren(...entries.slice(-4).map((said) => (said.type === 'tool_use'
      ? h('p', { class: 'tool' }, `uses ${inert(said.name)}`)
      : h('p', { dir: 'auto' }, inert(said.text).slice(-600)))));
  }
}

const unheard = () => h('p', { class: 'problem' }, 'the server does not answer');

function details(entry) {
  const retries = entry.retries.map(({ at, detail, attempt }) => h('p', { class: 'retry', dir: 'auto' },
    h('time', {}, clock(at)), attempt === null ? ` ${mark('held')} waited for the limit` : ` ↻ attempt ${attempt}`, detail ? ': ' : '', inert(detail)));
  const isBad = entry.state === 'failed' || entry.state === 'sent-back';
  return [...retries, entry.detail && isBad && h('p', { class: 'detail', dir: 'auto' }, inert(entry.detail))].filter(Boolean);
}

/** Keeps the tails of running nodes that are on the page fresh; says `note` in their place where there can be none. */
export function followTails(cards, note) {
  const look = () => {
    if (document.hidden) return;
    for (const card of cards()) {
      if (note()) card.tail.replaceChildren(h('p', { class: 'quiet' }, note()));
      else if (card.seen) card.showTail().catch(() => {});
    }
  };
  setInterval(look, TRANSCRIPT_MS);
}
