// A graph as a drawing: the map beside a run's feed, and the small one on a card.
import { svg } from './dom.js';
import { layout } from './layout.js';
import { mark, word } from './words.js';

const [NODE_W, NODE_H, GAP_X, GAP_Y] = [132, 30, 16, 26];
const NAME_MAX = 15;

/** A drawing of `nodes`, each a link to `href(id)`. Its `paint(states)` shows the state that `states` has for an id. */
export function map(nodes, href) {
  const { places, edges, layers, width } = layout(nodes);
  const x = (place) => place.x * (NODE_W + GAP_X) + 4;
  const y = (place) => place.y * (NODE_H + GAP_Y) + 4;
  const size = [width * (NODE_W + GAP_X) - GAP_X + 8, layers * (NODE_H + GAP_Y) - GAP_Y + 8];
  const root = svg('svg', { viewBox: `0 0 ${size[0]} ${size[1]}`, role: 'group', 'aria-label': 'the graph of this run' });
  for (const [from, to] of edges) {
    const [a, b] = [places.get(from), places.get(to)];
    const [x1, y1, x2, y2] = [x(a) + NODE_W / 2, y(a) + NODE_H, x(b) + NODE_W / 2, y(b)];
    const bend = (y2 - y1) / 2;
    root.append(svg('path', { class: 'edge', d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` }));
  }
  const drawn = new Map();
  for (const node of nodes) {
    const place = places.get(node.id);
    const glyph = svg('text', { class: 'glyph', x: x(place) + 14, y: y(place) + 20 });
    const title = svg('title');
    const name = node.id.length > NAME_MAX ? `${node.id.slice(0, NAME_MAX - 1)}…` : node.id;
    const link = svg('a', { class: 'node', href: href(node.id) }, title, outline(node.type, x(place), y(place)), glyph,
      svg('text', { x: x(place) + 28, y: y(place) + 20 }, name));
    drawn.set(node.id, { link, glyph, title });
    root.append(link);
  }
  root.size = size;
  root.paint = (stateOf) => drawn.forEach(({ link, glyph, title }, id) => {
    const state = stateOf(id);
    if (link.dataset.state === state) return;
    link.dataset.state = state;
    glyph.textContent = mark(state);
    title.textContent = `${id}: ${word(state)}`;
    link.setAttribute('aria-label', `${id}, ${word(state)}`);
  });
  return root;
}

/** A gate has points, a command corners, a prompt is round. */
function outline(type, x, y) {
  const h = NODE_H / 2;
  if (type !== 'gate') return svg('rect', { x, y, width: NODE_W, height: NODE_H, rx: type === 'command' ? 3 : h });
  const corners = [[x + 10, y], [x + NODE_W - 10, y], [x + NODE_W, y + h], [x + NODE_W - 10, y + NODE_H], [x + 10, y + NODE_H], [x, y + h]];
  return svg('polygon', { points: corners.map((corner) => corner.join(',')).join(' ') });
}

/** The small drawing of a card: left to right, shapes only. */
export function miniature(nodes) {
  const { places, edges, layers, width } = layout(nodes);
  const [dx, dy] = [26, 16];
  const at = (id) => [places.get(id).y * dx + 8, places.get(id).x * dy + 8];
  const root = svg('svg', { class: 'miniature', viewBox: `0 0 ${(layers - 1) * dx + 16} ${(width - 1) * dy + 16}`, 'aria-hidden': 'true' });
  for (const [from, to] of edges) {
    const [[x1, y1], [x2, y2]] = [at(from), at(to)];
    root.append(svg('path', { class: 'edge', d: `M${x1} ${y1}L${x2} ${y2}` }));
  }
  for (const { id, type, state } of nodes) {
    const [x, y] = at(id);
    root.append(type === 'gate'
      ? svg('polygon', { 'data-state': state, points: `${x},${y - 6} ${x + 6},${y} ${x},${y + 6} ${x - 6},${y}` })
      : svg('circle', { 'data-state': state, cx: x, cy: y, r: 5 }));
  }
  return Object.assign(root, { size: [(layers - 1) * dx + 16, (width - 1) * dy + 16] });
}
