// When what ran, and what it had cost by then: one bar for every attempt in rows by node, and a curve below. Only the rows
// in view are elements, so that a thousand nodes are as smooth as ten.
import { h, svg } from './dom.js';
import { duration, money, word } from './words.js';

const [ROW, NAMES, CURVE, EDGE] = [17, 160, 48, 8];
/** Rows above and below those in view that are drawn as well. */
const SPARE = 6;
const TICKS = 4;
/** As wide must it be for a label at each of them. */
const LABELS = 320;
/** How often it is drawn anew, and the critical path asked for, while things happen. */
const [DRAW_MS, ASK_MS] = [200, 2_000];

/** The timeline in `root`, whose `show(model, now)` brings it up to date. `askPath` fetches `api/path`. */
export function timeline(root, href, askPath) {
  const critical = h('p', { class: 'critical' });
  const sheet = h('div', { class: 'sheet' });
  const rows = h('div', { class: 'rows', tabindex: '0', role: 'region' }, sheet);
  const below = h('div', { class: 'below' });
  root.replaceChildren(critical, rows, below);
  let [model, now, told, path] = [null, 0, '', new Set()];
  let [drawnAt, due] = [-DRAW_MS, null];
  let [isAsking, askedOf] = [false, null];

  const draw = () => {
    due = null;
    if (!model || root.hidden) return;
    drawnAt = performance.now();
    ask();
    const { clientWidth: width, clientHeight: height, scrollTop } = rows;
    const names = Math.min(NAMES, width * 0.38);
    const axis = shownTime(model.legs, now);
    const scale = (ms) => names + (axis.at(ms) / Math.max(1, axis.length)) * (width - names - EDGE);
    const nodes = byNode(model);
    sheet.style.height = `${nodes.length * ROW + 4}px`;
    rows.setAttribute('aria-label', `what ran when: ${nodes.length} nodes over ${duration(axis.length)}`);
    const first = Math.max(0, Math.floor(scrollTop / ROW) - SPARE);
    const shown = nodes.slice(first, Math.ceil((scrollTop + height) / ROW) + SPARE);
    const drawn = svg('svg', { width, height: shown.length * ROW + 4 });
    drawn.append(...grid(axis, scale, shown.length * ROW + 4));
    shown.forEach(([node, entries], i) => drawn.append(...row(node, entries, i * ROW, { scale, now, names, href, isCritical: path.has(node) })));
    drawn.style.top = `${first * ROW}px`;
    const focused = document.activeElement?.closest?.('.sheet') ? document.activeElement.getAttribute('href') : null;
    sheet.replaceChildren(drawn);
    if (focused) sheet.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    below.replaceChildren(cost(model, axis, scale, now, width));
  };
  rows.addEventListener('scroll', draw, { passive: true });
  new ResizeObserver(draw).observe(rows);

  /** Asks for the critical path when more has settled since it was asked for last. */
  const ask = async () => {
    if (isAsking || root.hidden || askedOf === model.settled) return;
    [isAsking, askedOf] = [true, model.settled];
    const answer = await askPath();
    setTimeout(() => { isAsking = false; ask(); }, ASK_MS);
    const text = JSON.stringify(answer);
    if (!answer || text === told) return;
    told = text;
    path = new Set(answer.nodes.map(({ node }) => node));
    critical.replaceChildren(...(path.size === 0 ? [] : inWords(answer, href)));
    draw();
  };

  const show = (newModel, at) => {
    [model, now] = [newModel, at];
    const wait = drawnAt + DRAW_MS - performance.now();
    if (wait <= 0) draw();
    else due ??= setTimeout(draw, wait);
  };
  return { show };
}

/** The nodes in the order in which they began first, each with its turns. */
function byNode(model) {
  const found = new Map();
  for (const entry of model.entries) {
    if (entry.kind !== 'node' || entry.attempts.length === 0) continue;
    const known = found.get(entry.node);
    if (known) known.push(entry);
    else found.set(entry.node, [entry]);
  }
  return [...found];
}

/** The name and the bars of one node. */
function row(node, entries, y, { scale, now, names, href, isCritical }) {
  const most = Math.floor((names - 20) / 6.2);
  const name = svg('text', { x: 14, y: y + 13, class: isCritical ? 'on-path' : '' }, node.length > most ? `${node.slice(0, most - 1)}…` : node);
  const bars = entries.flatMap((entry) => entry.attempts.map(({ started, ended, state }) => {
    const [from, to] = [scale(started), scale(ended ?? now)];
    const shown = state === 'running' ? entry.state : state;
    const told = `${entry.node}: ${word(shown)}, ${duration((ended ?? now) - started)}${isCritical ? ', on the critical path' : ''}`;
    return svg('a', { href: href(entry.node), 'aria-label': told, tabindex: '-1' }, svg('title', {}, told),
      svg('rect', { class: `bar${isCritical ? ' on-path' : ''}`, 'data-state': shown, x: from, y: y + 3, width: Math.max(3, to - from), height: ROW - 6, rx: 2 }));
  }));
  return [isCritical ? svg('text', { x: 2, y: y + 13, class: 'diamond', 'aria-hidden': 'true' }, '◆') : null, name, ...bars].filter(Boolean);
}

function* ticks(axis) {
  for (let nth = 0; nth <= TICKS; nth++) yield [nth / TICKS, (axis.length * nth) / TICKS];
}

function grid(axis, scale, height) {
  const [left, right] = [scale(-Infinity), scale(Infinity)];
  return [...ticks(axis)].map(([part]) => svg('path', { class: 'tick', d: `M${(left + part * (right - left)).toFixed(1)} 0V${height}` }));
}

/** The curve of the cost, with the times of the axis. */
function cost(model, axis, scale, now, width) {
  const y = (usd) => CURVE - (usd / (model.cost || 1)) * (CURVE - 8);
  const steps = model.curve.flatMap(([at, usd], i) => [[scale(at), y(i === 0 ? 0 : model.curve[i - 1][1])], [scale(at), y(usd)]]);
  const [left, right] = [scale(-Infinity), scale(Infinity)];
  const points = [[left, y(0)], ...steps, [scale(now), y(model.cost)]];
  // Where there is no room for all, the ends are enough.
  const named = [...ticks(axis)].filter(([part]) => right - left > LABELS || part === 0 || part === 1);
  const labels = named.map(([part, ms]) => svg('text', { class: 'time', x: left + part * (right - left), y: CURVE + 14, 'text-anchor': part === 0 ? 'start' : part === 1 ? 'end' : 'middle' }, duration(ms)));
  return svg('svg', { width, height: CURVE + 20, role: 'img', 'aria-label': `it cost ${money(model.cost, model.unknown)} over ${duration(axis.length)}` },
    svg('polyline', { class: 'curve', points: points.map((point) => point.map((n) => n.toFixed(1)).join(',')).join(' ') }),
    svg('text', { x: 2, y: CURVE }, money(model.cost, model.unknown)), ...labels);
}

/** The critical path as a sentence. */
function inWords({ nodes, took_ms: took }, href) {
  const links = nodes.flatMap(({ node, took_ms: ms }, i) => [i > 0 ? ' → ' : '', h('a', { href: href(node), title: duration(ms) }, node)]);
  return [h('span', { class: 'diamond', 'aria-hidden': 'true' }, '◆ '), h('strong', {}, `critical path ${duration(took)}`), ': ', ...links];
}

/** Maps a moment to the time that legs had run by then; the pauses between them are left out. */
function shownTime(legs, now) {
  let sum = 0;
  const spans = legs.map(({ started, ended }) => {
    const span = { started, length: Math.max(0, (ended ?? now) - started), before: sum };
    sum += span.length;
    return span;
  });
  const at = (ms) => {
    const span = spans.findLast((leg) => leg.started <= ms);
    return span ? span.before + Math.min(span.length, ms - span.started) : 0;
  };
  return { at, length: sum };
}
