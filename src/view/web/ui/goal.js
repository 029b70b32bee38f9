// What a planned run is for: its goal, which cycle of it the run is, what the judge said, and the runs of the other cycles.
import { h, omg } from './dom.js';
import { fetched } from './result.js';
import { ask, isLive } from './source.js';
import { inert, mark, met, money, quoted, word } from './words.js';

/** How often the other cycles are asked about while they go on. */
const ASK_MS = 5_000;
/** So often is a next cycle waited for that has not begun: it begins at once, or never. */
const TRIES_MAX = 12;
/** A goal of more characters is folded. */
const TEXT_OPEN = 280;

/** Shows it in `root`, and its cycle in `chip`. The result's `refresh(status)` is for whenever the run may stand otherwise. */
export function goal(root, chip, linkTo) {
  let told = '';
  let due = null;
  let tries = 0;

  const look = async (status) => {
    clearTimeout(due);
    const answer = await ask('api/goal').catch(() => null);
    const found = answer?.status === 200 ? await answer.json() : null;
    const text = JSON.stringify([found, status.state]);
    if (found && text !== told) {
      told = text;
      tries = 0;
      draw(found, status);
    }
    if (found && isLive && goesOn(found, status.run_id) && tries++ < TRIES_MAX) due = setTimeout(() => later(status), ASK_MS);
  };
  const later = (status) => (document.hidden ? due = setTimeout(() => later(status), ASK_MS) : look(status));

  const draw = (found, status) => {
    root.hidden = false;
    chip.hidden = !hasCycles(found);
    chip.textContent = `cycle ${found.cycle} of ${found.max_cycles}`;
    root.replaceChildren(h('h2', {}, 'Goal'), aim(found.text), standing(found, status), ...cycles(found, status.run_id, linkTo), ...verdict(found.verdict), ...(found.refused ? refused(status.run_id) : []));
  };
  return { refresh: look };
}

const hasCycles = (found) => found.max_cycles > 1;
const isInFlight = ({ state }) => state === 'running' || state === 'planning';

/** Whether more is to come of the goal than the run itself tells. */
function goesOn(found, own) {
  const others = (found.cycles ?? []).filter(({ run_id }) => run_id !== own);
  const isLast = found.cycle === found.max_cycles || others.some(({ cycle }) => cycle > found.cycle);
  return others.some(isInFlight) || (found.verdict?.goal_met === false && !isLast);
}

function aim(text) {
  const shown = h('p', { class: 'aim', dir: 'auto' }, inert(text));
  if (text.length <= TEXT_OPEN) return shown;
  return h('details', {}, h('summary', { dir: 'auto' }, `${inert(text.slice(0, TEXT_OPEN))}…`), shown);
}

/** What is waited for besides what the run itself tells. */
function standing(found, status) {
  const told = {
    planning: 'a planner is asked for a graph',
    passed: 'the judge has not said anything of this run',
    failed: found.refused ? 'the plan was refused, and nothing ran' : 'the judge has not said anything of this run',
  };
  const isTold = status.state === 'planning' || found.refused || (hasCycles(found) && !found.verdict);
  return isTold && told[status.state] ? h('p', { class: 'quiet' }, told[status.state]) : '';
}

/** The runs of the goal, and what they cost of what it may. */
function cycles(found, own, linkTo) {
  if (!hasCycles(found)) return [];
  const runs = found.cycles ?? [];
  const rows = runs.map((run) => {
    const isOwn = run.run_id === own;
    const name = `cycle ${run.cycle}`;
    const href = linkTo(run.run_id);
    return h('li', { 'data-state': run.state, 'aria-current': isOwn && 'true' },
      isOwn ? h('strong', {}, `${name}, this run`) : href ? h('a', { href }, name) : h('span', {}, name),
      h('span', { class: 'word' }, `${mark(run.state)} ${word(run.state)}`),
      run.goal_met === undefined ? '' : h('span', {}, met(run.goal_met)),
      h('span', { class: 'quiet' }, money(run.cost_usd, run.cost_unknown)),
      isOwn ? '' : h('code', { class: 'quiet' }, run.run_id));
  });
  const spent = runs.reduce((sum, run) => sum + run.cost_usd, 0);
  const isUnknown = runs.some((run) => run.cost_unknown);
  const most = found.budget_usd === undefined ? '' : ` of ${money(found.budget_usd)}, beyond which no cycle begins`;
  return [h('ol', { class: 'cycles' }, ...rows), h('p', { class: 'quiet' }, `spent on the goal so far: ${money(spent, isUnknown)}${most}`)];
}

function verdict(said) {
  if (!said) return [];
  const words = [['remaining', said.remaining], ['evidence', said.evidence]].filter(([, text]) => text);
  return [
    h('p', { class: 'verdict', 'data-state': said.goal_met ? 'passed' : 'gate-paused' }, h('span', { class: 'word' }, met(said.goal_met)),
      h('span', { class: 'quiet' }, ` says the judge, for ${money(said.assess_cost_usd, said.assess_cost_unknown)}`)),
    ...words.map(([what, text]) => h('p', { dir: 'auto', class: 'said' }, h('strong', {}, `${what}: `), inert(text)))];
}

/** What was refused, and how to see what was asked and said. */
function refused(run) {
  const shown = h('div');
  const fold = h('details', { ontoggle: async () => {
    if (!fold.open || shown.firstChild) return;
    shown.append(await fetched('api/refused', 'the refused plan', true).catch(() => null) ?? h('p', { class: 'quiet' }, 'it cannot be fetched'));
  } }, h('summary', {}, 'what the planner had planned'), shown);
  return [fold, h('p', {}, omg(`show ${quoted(run)} planner`))];
}
