// What a node produced, in a box: Markdown or as it stands, folded where it is long.
import { h } from './dom.js';
import { markdown } from './markdown.js';
import { ask, isLive } from './source.js';
import { bytes, inert } from './words.js';

/** More than this is not rendered on the page but linked to, in characters. */
const SHOWN_MAX = 200_000;
/** More lines than a person writes are shown as they stand: as Markdown they would be as many elements. */
const RENDERED_LINES_MAX = 3_000;
/** Folded from here on. */
const LINES_OPEN = 24;
const CHARACTERS_OPEN = 3_000;

/** Fetches `url` into a box; null when there is nothing. Tells what went wrong in its place. */
export async function fetched(url, label, plain = false) {
  const answer = await ask(url);
  if (answer.status === 204 || answer.status === 404) return null;
  const text = await answer.text();
  if (!answer.ok) return h('p', { class: 'problem' }, text);
  const whole = Number(answer.headers.get('X-OMG-Bytes') ?? 0);
  return text.trim() === '' && whole === 0 ? null : box(text, { url, label, whole, plain });
}

/** `text` in a box. */
export function box(text, { url, label, whole = 0, plain = false }) {
  const shown = inert(text.length > SHOWN_MAX ? text.slice(0, SHOWN_MAX) : text).trimEnd();
  if (!shown.includes('\n') && shown.length < 160) {
    return h('p', { class: 'result one-line', dir: 'auto' }, ...(plain ? [shown] : markdown(shown)[0]?.childNodes ?? [shown]));
  }
  const raw = () => h('pre', { tabindex: '0', role: 'region', 'aria-label': label, dir: 'auto' }, shown);
  // Of a cut text the marks at its end cannot be trusted.
  const rendered = () => h('div', { class: 'markdown' }, markdown(shown));
  const isCut = text.length > SHOWN_MAX || whole > new Blob([text]).size;
  const lines = shown.split('\n', RENDERED_LINES_MAX + 1).length;
  const isPlain = plain || isCut || lines > RENDERED_LINES_MAX;
  const body = h('div', { class: 'body' }, isPlain ? raw() : rendered());
  const tools = h('div', { class: 'tools' });
  const result = h('div', { class: 'result', role: 'group', 'aria-label': label }, body, tools);
  if (shown.length > CHARACTERS_OPEN || lines > LINES_OPEN) {
    result.classList.add('folded');
    const fold = h('button', { type: 'button', class: 'small', 'aria-expanded': 'false', onclick: () => {
      const folded = result.classList.toggle('folded');
      fold.setAttribute('aria-expanded', String(!folded));
      fold.textContent = folded ? 'show all' : 'fold';
    } }, 'show all');
    tools.append(fold);
  }
  if (!isPlain) {
    const swap = h('button', { type: 'button', class: 'small', 'aria-pressed': 'false', onclick: () => {
      const isRaw = swap.getAttribute('aria-pressed') === 'false';
      swap.setAttribute('aria-pressed', String(isRaw));
      body.replaceChildren(isRaw ? raw() : rendered());
    } }, 'raw');
    tools.append(swap);
  }
  if (isCut) tools.append(h('span', {}, `the first part of ${bytes(whole || text.length)}`));
  if (url && isLive) tools.append(h('a', { href: url, target: '_blank', rel: 'noopener' }, 'as a file', h('span', { class: 'unseen' }, `: ${label}`)));
  return result;
}
