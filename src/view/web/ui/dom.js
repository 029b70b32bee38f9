// Building pieces of a page. Text goes in as text nodes only; nothing here reads markup.

/** An element `tag` with `props` (attributes; `on…` functions are listeners; false, null and undefined are left out). */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Likewise, of SVG. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  // One by one: as arguments of one call, very many children have no room.
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

export const byId = (id) => document.getElementById(id);

/** The content of the meta element `name` that the server fills in. */
export const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? '';

/** Copies `text`, and says so in `button` for a moment. */
export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'copied';
  } catch {
    button.textContent = 'copy it by hand';
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

/** A command of this program: it finds the runs of this page in whatever terminal it is pasted. */
export const omg = (words) => command(`${meta('omg-command-prefix')}omg ${words}`);

/** A command to run in a terminal, with a button that copies it. */
export function command(line) {
  const button = h('button', { type: 'button', class: 'small', 'aria-label': `copy: ${line}`, onclick: () => copy(line, button) }, 'copy');
  return h('span', { class: 'command' }, h('code', {}, line), button);
}
