// Markdown as elements. Only elements of a fixed list are made, only http, https and mailto links are followed, nothing
// is loaded, and HTML is shown as the text that it is.
import { h } from './dom.js';

/** Longer lines are shown as they stand: what a model writes by hand is shorter. */
const LINE_MAX = 8_000;
const DEPTH_MAX = 6;
/** Marks within lines are looked at up to here; what comes after more of them than a person writes is shown as it stands. */
const MARKS_MAX = 10_000;

// A reply may be made to be slow to read: no form here takes more than a few looks at each character of a line.
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;

let marks = 0; // how many were looked at in this text

/** The elements that `text` makes. */
export function markdown(text) {
  marks = 0;
  return blocks(text.split('\n'), 0);
}

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const [made, next] = block(lines, at, depth);
    if (made) out.push(made);
    at = next;
  }
  return out;
}

/** One block that begins at line `at`, and the line after it. */
function block(lines, at, depth) {
  const line = lines[at];
  if (line.trim() === '') return [null, at + 1];
  if (line.length > LINE_MAX) return [h('p', { dir: 'auto' }, line), at + 1];
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at, fence);
  const heading = HEADING.exec(line);
  // The page has its own first and second headings.
  if (heading) return [h(`h${Math.min(6, heading[1].length + 2)}`, { dir: 'auto' }, inline(title(heading[2] ?? ''), 0)), at + 1];
  if (RULE.test(line)) return [h('hr'), at + 1];
  if (depth < DEPTH_MAX && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return list(lines, at, depth);
  if (line.includes('|') && isTableRule(lines[at + 1] ?? '')) return table(lines, at);
  return paragraph(lines, at);
}

/** What a heading says, without the signs that may close it. */
function title(text) {
  const open = text.trim();
  let end = open.length;
  while (open[end - 1] === '#') end--;
  return end === 0 || /\s/.test(open[end - 1]) ? open.slice(0, end).trimEnd() : open;
}

function code(lines, at, fence) {
  const body = [];
  let next = at + 1;
  const closing = new RegExp(`^ {0,3}${fence[1][0] === '`' ? '`' : '~'}{${fence[1].length},}\\s*$`);
  while (next < lines.length && !closing.test(lines[next])) body.push(lines[next++]);
  return [h('pre', { tabindex: '0', 'aria-label': `code ${fence[2].trim()}`.trim(), role: 'region' }, h('code', {}, body.join('\n'))), next + 1];
}

function quote(lines, at, depth) {
  const body = [];
  let next = at;
  for (let found; next < lines.length && (found = QUOTE.exec(lines[next])); next++) body.push(found[1]);
  return [h('blockquote', {}, blocks(body, depth + 1)), next];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const items = [];
  let next = at;
  while (next < lines.length) {
    const line = lines[next];
    const item = ITEM.exec(line);
    const deeper = line.length - line.trimStart().length > indent;
    if (item && item[1].length <= indent) {
      if (/\d/.test(item[2]) !== ordered || RULE.test(line)) break;
      items.push([item[3]]);
    } else if (line.trim() === '') {
      const after = lines[next + 1] ?? '';
      if (!ITEM.test(after) && !/^\s{2,}\S/.test(after)) break;
      items.at(-1).push('');
    } else if (deeper) {
      items.at(-1).push(line.slice(Math.min(indent + 2, line.length - line.trimStart().length)));
    } else break;
    next++;
  }
  const start = Number.parseInt(first[2], 10);
  const elements = items.map((body) => h('li', { dir: 'auto' }, tight(blocks(body, depth + 1))));
  return [h(ordered ? 'ol' : 'ul', ordered && start !== 1 ? { start } : {}, elements), next];
}

/** An item of one paragraph is shown without it. */
const tight = (made) => (made.length > 0 && made[0].tagName === 'P' ? [...made[0].childNodes, ...made.slice(1)] : made);

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());
const isTableRule = (line) => line.length <= LINE_MAX && cells(line).every((cell) => /^:?-+:?$/.test(cell));

function table(lines, at) {
  const row = (line, tag) => h('tr', {}, cells(line).map((cell) => h(tag, { dir: 'auto' }, inline(cell, 0))));
  const body = [];
  let next = at + 2;
  while (next < lines.length && lines[next].includes('|') && lines[next].length <= LINE_MAX) body.push(row(lines[next++], 'td'));
  return [h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'table' }, h('table', {}, h('thead', {}, row(lines[at], 'th')), h('tbody', {}, body))), next];
}

function paragraph(lines, at) {
  let next = at + 1;
  const ends = (line) => line.trim() === '' || line.length > LINE_MAX || [FENCE, HEADING, RULE, QUOTE, ITEM].some((form) => form.test(line));
  while (next < lines.length && !ends(lines[next])) next++;
  const children = lines.slice(at, next).flatMap((line, i) => (i === 0 ? inline(line, 0) : [h('br'), ...inline(line, 0)]));
  return [h('p', { dir: 'auto' }, children), next];
}

const INLINE = [
  [/^(`+)(.+?)\1(?!`)/, (m) => h('code', {}, m[2])],
  [/^\\([!-/:-@[-`{-~])/, (m) => m[1]],
  [/^\*\*(?=\S)(.{1,1000}?\S|\S)\*\*/, (m, depth) => h('strong', {}, inline(m[1], depth))],
  [/^~~(?=\S)(.{1,1000}?)~~/, (m, depth) => h('del', {}, inline(m[1], depth))],
  [/^\*(?=[^\s*])(.{1,1000}?)\*/, (m, depth) => h('em', {}, inline(m[1], depth))],
  [/^!?\[([^\]]{0,2000})\]\(\s*<?([^)\s>]{1,2000})>?(?:\s+"[^"]{0,500}")?\s*\)/, (m) => link(m[2], m[1] || m[2])],
  [/^<(https?:\/\/[^\s<>]{1,2000})>/, (m) => link(m[1], m[1])],
  [/^https?:\/\/[^\s<>()"'`]{1,2000}[^\s<>()"'`.,;:!?]/, (m) => link(m[0], m[0])],
];
/** Where something other than plain text can begin. */
const SPECIAL = /[`\\*~![<]|https?:/g;

/** What the first form that `rest` begins with matched, and what it makes. */
function firstOf(rest) {
  for (const [form, make] of INLINE) {
    const match = form.exec(rest);
    if (match) return [match, make];
  }
  return [];
}

function inline(text, depth) {
  if (depth > 4) return [text];
  const out = [];
  let plain = 0;
  SPECIAL.lastIndex = 0;
  for (let found; (found = SPECIAL.exec(text)); ) {
    if (++marks > MARKS_MAX) break;
    const [match, make] = firstOf(text.slice(found.index));
    if (!match) continue;
    const after = found.index + match[0].length;
    if (found.index > plain) out.push(text.slice(plain, found.index));
    // The expression is shared with the calls within.
    out.push(make(match, depth + 1));
    SPECIAL.lastIndex = after;
    plain = after;
  }
  if (plain < text.length) out.push(text.slice(plain));
  return out;
}

/** A link that opens in a page of its own; the words alone where it would do anything else. */
function link(to, words) {
  if (!/^(https?:\/\/|mailto:)/i.test(to)) return h('span', {}, `${words} (${to})`);
  return h('a', { href: to, target: '_blank', rel: 'noopener noreferrer' }, words);
}
