// When what ran, and what it had cost by then: one bar for every attempt, and a curve below.
import { svg } from './dom.js';
import { duration, money, word } from './words.js';

const [WIDTH, ROW, NAMES, CURVE] = [900, 16, 150, 56];
/** More rows would be a picture of nothing. */
const ROWS_MAX = 300;

/** A drawing of `model` as it is at `now`, in ms. The pauses between the legs are left out. */
export function timeline(model, now, href) {
  const axis = shownTime(model.legs, now);
  const entries = model.entries.filter((entry) => entry.kind === 'node' && entry.attempts.length > 0).slice(0, ROWS_MAX);
  const rows = [...new Set(entries.map((entry) => entry.node))];
  const bars = rows.length * ROW + 8;
  const scale = (ms) => NAMES + (axis.at(ms) / Math.max(1, axis.length)) * (WIDTH - NAMES - 8);
  const root = svg('svg', { viewBox: `0 0 ${WIDTH} ${bars + CURVE + 20}`, role: 'group', 'aria-label': `what ran when, over ${duration(axis.length)}` });
  rows.forEach((node, i) => root.append(svg('text', { x: 4, y: i * ROW + 13 }, node.length > 21 ? `${node.slice(0, 20)}…` : node)));
  for (const entry of entries) {
    const y = rows.indexOf(entry.node) * ROW + 3;
    for (const { started, ended, state } of entry.attempts) {
      const [from, to] = [scale(started), scale(ended ?? now)];
      const shown = state === 'running' ? entry.state : state;
      const told = `${entry.node}: ${word(shown)}, ${duration((ended ?? now) - started)}`;
      root.append(svg('a', { href: href(entry.node), 'aria-label': told, tabindex: '-1' }, svg('title', {}, told),
        svg('rect', { class: 'bar', 'data-state': shown, x: from, y, width: Math.max(3, to - from), height: ROW - 5, rx: 2 })));
    }
  }
  return drawCost(root, model, scale, bars, now);
}

function drawCost(root, model, scale, top, now) {
  const y = (usd) => top + CURVE - (usd / (model.cost || 1)) * (CURVE - 8);
  const steps = model.curve.flatMap(([at, usd], i) => [[scale(at), y(i === 0 ? 0 : model.curve[i - 1][1])], [scale(at), y(usd)]]);
  const points = [[NAMES, y(0)], ...steps, [scale(now), y(model.cost)]];
  root.append(svg('polyline', { class: 'curve', points: points.map((point) => point.map((n) => n.toFixed(1)).join(',')).join(' ') }),
    svg('text', { x: 4, y: top + CURVE }, money(model.cost, model.unknown)));
  return root;
}

/** Maps a moment to the time that legs had run by then. */
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
