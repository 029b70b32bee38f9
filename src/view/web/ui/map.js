// A graph as a drawing: the map beside a run's feed, and the small one on a card. Where things stand is told by the server.
import { svg } from './dom.js';
import { mark, word } from './words.js';

const [NODE_W, NODE_H, GAP_X, GAP_Y] = [132, 30, 16, 26];
/** Around everything, and beside it where there are loops. */
const [EDGE, LOOP] = [4, 26];
const NAME_MAX = 15;

/**
 * `drawing`, as `api/graph` has it, each node a link to `href(id)`. Its `paint(states)` shows the state that `states` has for
 * an id.
 */
export function map(drawing, href) {
  const { nodes, edges, loops, lanes, layers } = drawing;
  const x = ({ row }) => row * (NODE_W + GAP_X) + EDGE;
  const y = ({ layer }) => layer * (NODE_H + GAP_Y) + EDGE;
  const widest = nodes.reduce((most, { row }) => Math.max(most, row), 0);
  const beside = loops.length > 0 ? LOOP : 0;
  const size = [widest * (NODE_W + GAP_X) + NODE_W + 2 * EDGE + beside, layers * (NODE_H + GAP_Y) - GAP_Y + 2 * EDGE];
  const root = svg('svg', { viewBox: `0 0 ${size[0]} ${size[1]}`, role: 'group', 'aria-label': 'the graph of this run' });
  for (const edge of edges) {
    const [from, to] = [nodes[edge.from], nodes[edge.to]];
    // Past the nodes of the layers that it crosses.
    const stops = [from, ...edge.via.map((row, i) => ({ row, layer: from.layer + 1 + i })), to];
    const path = stops.slice(1).map((stop, i) => curve(x(stops[i]) + NODE_W / 2, y(stops[i]) + NODE_H, x(stop) + NODE_W / 2, y(stop)));
    root.append(svg('path', { class: edge.session ? 'edge session' : 'edge', d: path.join('') }));
  }
  for (const { from, to, max } of loops) root.append(wayBack(nodes[from], nodes[to], max, x, y));
  const drawn = new Map();
  for (const node of nodes) {
    const glyph = svg('text', { class: 'glyph', x: x(node) + 14, y: y(node) + 20 });
    const title = svg('title');
    const name = node.id.length > NAME_MAX ? `${node.id.slice(0, NAME_MAX - 1)}…` : node.id;
    const link = svg('a', { class: 'node', href: href(node.id) }, title, outline(node.kind, x(node), y(node)), glyph,
      svg('text', { x: x(node) + 28, y: y(node) + 20 }, name));
    const where = node.lane === undefined ? '' : `, in worktree ${lanes[node.lane]}`;
    drawn.set(node.id, { link, glyph, title, where });
    root.append(link);
  }
  root.size = size;
  root.paint = (stateOf) => drawn.forEach(({ link, glyph, title, where }, id) => {
    const state = stateOf(id);
    if (link.dataset.state === state) return;
    link.dataset.state = state;
    glyph.textContent = mark(state);
    title.textContent = `${id}: ${word(state)}${where}`;
    link.setAttribute('aria-label', `${id}, ${word(state)}`);
  });
  return root;
}

/** From one layer straight through it where it is passed, and bent on the way to the next. */
function curve(x1, y1, x2, y2) {
  const bend = (y2 - y1) / 2;
  return `M${x1} ${y1 - NODE_H / 2}V${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}V${y2 + NODE_H / 2}`;
}

/** Where a loop begins anew. */
function wayBack(from, to, max, x, y) {
  const [x1, y1, x2, y2] = [x(from) + NODE_W, y(from) + NODE_H / 2, x(to) + NODE_W, y(to) + NODE_H / 2];
  const out = Math.max(x1, x2) + LOOP - 4;
  return svg('path', { class: 'loop', d: `M${x1} ${y1}C${out} ${y1} ${out} ${y2} ${x2} ${y2}` }, svg('title', {}, `again, at most ${max} ${max === 1 ? 'round' : 'rounds'}`));
}

/** A gate has points, a command corners, a prompt is round. */
function outline(kind, x, y) {
  const h = NODE_H / 2;
  if (kind !== 'gate') return svg('rect', { x, y, width: NODE_W, height: NODE_H, rx: kind === 'command' ? 3 : h });
  const corners = [[x + 10, y], [x + NODE_W - 10, y], [x + NODE_W, y + h], [x + NODE_W - 10, y + NODE_H], [x + 10, y + NODE_H], [x, y + h]];
  return svg('polygon', { points: corners.map((corner) => corner.join(',')).join(' ') });
}

/** The small drawing of a card: left to right, shapes only. */
export function miniature(nodes) {
  const [dx, dy] = [26, 16];
  const places = new Map(nodes.map(({ id, at: [layer, row] }) => [id, [layer * dx + 8, row * dy + 8]]));
  const most = (nth) => nodes.reduce((most, { at }) => Math.max(most, at[nth]), 0);
  const size = [most(0) * dx + 16, most(1) * dy + 16];
  const root = svg('svg', { class: 'miniature', viewBox: `0 0 ${size[0]} ${size[1]}`, 'aria-hidden': 'true' });
  for (const node of nodes) {
    const [x2, y2] = places.get(node.id);
    for (const [x1, y1] of (node.depends_on ?? []).map((id) => places.get(id)).filter(Boolean)) root.append(svg('path', { class: 'edge', d: `M${x1} ${y1}L${x2} ${y2}` }));
  }
  for (const { id, type, state } of nodes) {
    const [x, y] = places.get(id);
    root.append(type === 'gate'
      ? svg('polygon', { 'data-state': state, points: `${x},${y - 6} ${x + 6},${y} ${x},${y + 6} ${x - 6},${y}` })
      : svg('circle', { 'data-state': state, cx: x, cy: y, r: 5 }));
  }
  return Object.assign(root, { size });
}
