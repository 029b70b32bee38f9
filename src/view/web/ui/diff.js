// What a lane's nodes changed, beside the decision about it: a fold for each file, its patch as inert text.
import { command, h } from './dom.js';
import { ask } from './source.js';
import { inert, quoted } from './words.js';

/** A patch is open from the start while it is no longer than this, in lines, */
const LINES_OPEN = 40;
/** and as long as all the open ones together are no longer than this. */
const LINES_OPEN_ALL = 160;
/** More of one patch is not put on the page. */
const LINES_MAX = 5_000;
/** More of one line is not put on the page, in characters: a line of megabytes would hold it up. */
const LINE_MAX = 4_000;

/** What `api/diff` told of `node`, as elements; none when there are no lanes. */
export async function lanes(node) {
  const answer = await ask(`api/diff?node=${encodeURIComponent(node)}`);
  if (answer.status === 204 || answer.status === 404) return [];
  if (!answer.ok) return [h('p', { class: 'problem' }, inert(await answer.text()))];
  const told = await answer.json();
  const more = told.more > 0 ? [h('p', { class: 'quiet' }, `and ${told.more} more worktrees`)] : [];
  const room = { lines: LINES_OPEN_ALL };
  return [...told.lanes.flatMap((one) => lane(one, room)), ...more];
}

function lane(told, room) {
  const head = (...rest) => h('h3', {}, 'worktree ', h('code', {}, inert(told.lane)), ...rest, h('span', { class: 'quiet' }, ` · ${told.nodes.join(', ')}`));
  if (told.problem) return [head(), h('p', { class: 'problem', dir: 'auto' }, inert(told.problem))];
  if (!told.files) return [head(' holds no changes'), h('p', { class: 'quiet' }, 'nothing of it is left: it went unchanged, or was not entered')];
  if (told.files.length === 0) return [head(' holds no changes')];
  const sum = (key) => told.files.reduce((all, file) => all + (file[key] ?? 0), 0);
  const files = `${told.files.length} ${told.files.length === 1 ? 'file' : 'files'}`;
  const [from, to] = [quoted(told.since), told.directory ? '' : ` ${quoted(told.branch)}`];
  return [
    head(` changed ${files}, `, counts(sum('added'), sum('deleted'))),
    told.hidden ? h('p', { class: 'problem' }, `git was told not to look at ${inert(told.hidden.join(', '))}; changes there are not shown`) : '',
    ...told.files.map((file) => patch(file, room)),
    told.cut ? h('p', { class: 'problem' }, 'there is more than is shown here') : '',
    told.directory ? h('p', { class: 'quiet' }, 'in a terminal: ', command(`git -C ${quoted(told.directory)} diff ${from}`))
      : h('p', { class: 'quiet' }, 'in its repository: ', command(`git diff ${from}${to}`)),
  ].filter(Boolean);
}

/** `+3 −1`, and in words for who cannot see the signs. */
function counts(added, deleted) {
  const one = (kind, sign, n, what) => h('span', { class: kind }, h('span', { 'aria-hidden': 'true' }, `${sign}${n}`), h('span', { class: 'unseen' }, `${n} lines ${what}`));
  return h('span', { class: 'lines' }, one('came', '+', added ?? 0, 'added'), ' ', one('went', '−', deleted ?? 0, 'removed'));
}

function patch(file, room) {
  const lines = file.patch.split('\n');
  const body = lines.slice(begin(lines));
  if (body.at(-1) === '') body.pop();
  const fits = body.length > 0 && body.length <= LINES_OPEN && body.length <= room.lines;
  if (fits) room.lines -= body.length;
  const notes = [file.untracked && 'not in git', file.from && `was ${inert(file.from)}`, ...lines.slice(0, begin(lines)).filter((line) => /^(new file|deleted file|old mode|new mode)/.test(line))];
  const shown = h('pre', { class: 'patch', tabindex: '0', role: 'region', 'aria-label': `changes of ${inert(file.path)}` });
  const fold = h('details', { class: 'file', open: fits }, h('summary', {},
    h('code', {}, inert(file.path).replaceAll('\n', '␊')), ' ', file.added === undefined ? h('span', { class: 'quiet' }, 'no text') : counts(file.added, file.deleted),
    h('span', { class: 'quiet' }, notes.filter(Boolean).map((note) => ` · ${note}`).join(''))), shown);
  // A long patch becomes elements when somebody wants to see it.
  const fill = () => { if (fold.open && !shown.firstChild) shown.append(...rows(body)); };
  fold.addEventListener('toggle', fill);
  fill();
  return fold;
}

/** Where the text of a patch begins: what is before it says what the summary says. */
function begin(lines) {
  const at = lines.findIndex((line) => line.startsWith('@@') || line.startsWith('Binary ') || line.startsWith('Subproject '));
  return at < 0 ? lines.length : at;
}

/** A line of a patch; of one that is too long its beginning, and how much more there is. */
function cut(line) {
  if (line.length <= LINE_MAX) return inert(line);
  return `${inert(line.slice(0, LINE_MAX))} … and ${line.length - LINE_MAX} more characters`;
}

const KINDS = { '+': 'came', '-': 'went', '@': 'place', '\\': 'place' };

function rows(body) {
  if (body.length === 0) return ['no lines changed, or more than is sent'];
  const shown = body.slice(0, LINES_MAX).map((line) => h('span', { class: `row ${KINDS[line[0]] ?? ''}`, dir: 'ltr' }, cut(line) || ' ', '\n'));
  return body.length > LINES_MAX ? [...shown, `${body.length - LINES_MAX} more lines`] : shown;
}
