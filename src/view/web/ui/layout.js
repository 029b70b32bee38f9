// Where the nodes of a graph are drawn: in layers by their longest path, each ordered by where its parents stand. Pure.

/** `[{id, x, y}]` in columns and rows from 0, with `edges` `[[from, to]]`, `layers` and `width` (the widest layer). */
export function layout(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const depth = depths(nodes, byId);
  const layers = [];
  for (const node of nodes) (layers[depth.get(node.id)] ??= []).push(node.id);
  const width = Math.max(1, ...layers.map((layer) => layer.length));
  const place = new Map();
  layers.forEach((layer, y) => {
    if (y > 0) layer.sort((a, b) => centre(byId.get(a), place) - centre(byId.get(b), place));
    layer.forEach((id, i) => place.set(id, { id, x: i + (width - layer.length) / 2, y }));
  });
  const edges = nodes.flatMap((node) => (node.depends_on ?? []).filter((id) => byId.has(id)).map((id) => [id, node.id]));
  return { places: place, edges, layers: layers.length, width };
}

/** The longest path from a root to each node. A snapshot's graph has no cycle; one that had would be cut, not followed. */
function depths(nodes, byId) {
  const depth = new Map();
  const waiting = new Map(nodes.map((node) => [node.id, (node.depends_on ?? []).filter((id) => byId.has(id)).length]));
  const children = new Map(nodes.map((node) => [node.id, []]));
  for (const node of nodes) for (const id of node.depends_on ?? []) children.get(id)?.push(node.id);
  const ready = nodes.filter((node) => waiting.get(node.id) === 0).map((node) => node.id);
  for (const id of ready) depth.set(id, 0);
  for (let at = 0; at < ready.length; at++) {
    for (const child of children.get(ready[at])) {
      depth.set(child, Math.max(depth.get(child) ?? 0, depth.get(ready[at]) + 1));
      waiting.set(child, waiting.get(child) - 1);
      if (waiting.get(child) === 0) ready.push(child);
    }
  }
  for (const node of nodes) if (!depth.has(node.id)) depth.set(node.id, 0);
  return depth;
}

function centre(node, place) {
  const at = (node.depends_on ?? []).map((id) => place.get(id)?.x).filter((x) => x !== undefined);
  return at.length === 0 ? Infinity : at.reduce((sum, x) => sum + x, 0) / at.length;
}
