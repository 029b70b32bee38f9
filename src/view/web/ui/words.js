// How states, times, money and foreign text are worded. Pure.

/** The mark and the word of each state, of a node or of a run. A state is never told by colour alone. */
const STATES = {
  pending: ['○', 'not started'],
  running: ['▶', 'running'],
  planning: ['▶', 'planning'],
  passed: ['✓', 'passed'],
  failed: ['✗', 'failed'],
  'gate-paused': ['‖', 'waits for you'],
  held: ['◷', 'waits for the limit'],
  paused: ['‖', 'paused'],
  'sent-back': ['↺', 'sent back'],
  stopped: ['■', 'not finished'],
  abandoned: ['⚠', 'lost its process'],
  skipped: ['–', 'skipped'],
  unknown: ['?', 'cannot be read'],
  connecting: ['…', 'connecting'],
  reconnecting: ['…', 'reconnecting'],
};

export const mark = (state) => (STATES[state] ?? STATES.unknown)[0];
export const word = (state) => (STATES[state] ?? [state, state])[1];

/** What a judge found of a goal. */
export const met = (isMet) => (isMet ? '✓ goal met' : '✗ goal not met');

/** `ms` milliseconds, as a person says them: `7ms`, `4.2s`, `3m 05s`, `2h 07m`. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '';
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  const two = (n) => String(n).padStart(2, '0');
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
}

/** A cost; with `unknown` only a part of it is known. */
export function money(usd, unknown) {
  const known = `$${(usd ?? 0).toFixed(usd >= 100 ? 2 : 4)}`;
  if (!unknown) return known;
  return usd > 0 ? `${known} + unknown` : 'cost unknown';
}

/** Tokens in and out, or nothing. */
export function tokens(usage) {
  const [input, output] = [usage?.input_tokens ?? 0, usage?.output_tokens ?? 0];
  return input + output === 0 ? '' : `${short(input)} in, ${short(output)} out`;
}

function short(n) {
  if (n < 1000) return String(n);
  return n < 1e6 ? `${(n / 1e3).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`;
}

export const bytes = (n) => (n < 1024 ? `${n} bytes` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`);

const CLOCK = new Intl.DateTimeFormat([], { hour: 'numeric', minute: 'numeric', second: 'numeric', hour12: false });

/** The time of day of `ts`, in the zone of the browser. */
export function clock(ts) {
  const at = new Date(ts);
  return Number.isNaN(at.getTime()) ? '' : CLOCK.format(at);
}

const DAY = new Intl.DateTimeFormat([], { weekday: 'short', day: 'numeric', month: 'short' });
const YEAR = new Intl.DateTimeFormat([], { day: 'numeric', month: 'short', year: 'numeric' });

/** The same with its day, where that is not the day of `now`. */
export function moment(ts, now = Date.now()) {
  const [at, today] = [new Date(ts), new Date(now)];
  if (Number.isNaN(at.getTime()) || at.toDateString() === today.toDateString()) return clock(ts);
  return `${(at.getFullYear() === today.getFullYear() ? DAY : YEAR).format(at)}, ${clock(ts)}`;
}

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Foreign text as it may be shown: control characters become pictures of themselves, and characters that turn the
 * direction of what follows are named instead of obeyed.
 */
export function inert(text) {
  return text
    .replace(/\r\n/g, '\n')
    .replace(CONTROL, (c) => (c <= '\u001f' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\ufffd'))
    .replace(DIRECTION, (c) => `\u27e8U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`);
}

/** `word` as a POSIX shell reads it back. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
