// Light or dark: what was chosen here wins over what the system says. Also the build's label at the foot of a page.
import { byId, meta } from './dom.js';

const KEY = 'omg-theme';
const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

function label() {
  const built = meta('omg-built-at').slice(0, 16).replace('T', ' ');
  const parts = [meta('omg-revision'), built && `built ${built}`].filter(Boolean);
  return `omg v${meta('omg-version')}${parts.length ? ` (${parts.join(', ')})` : ''}`;
}

/** Remembers `value` under `key`, where the browser lets it. */
export function remember(key, value) {
  try { localStorage.setItem(key, value); } catch { /* private windows may refuse */ }
}

/** What was remembered under `key`, or null. */
export function remembered(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}

/** Turns the theme round. */
export function turnTheme() {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  remember(KEY, theme);
  show();
}

function show() {
  byId('theme').setAttribute('aria-pressed', String(isDark()));
}

const chosen = remembered(KEY);
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
byId('theme').addEventListener('click', turnTheme);
byId('build').textContent = label();
show();
