// A run as its feed tells it: a pure fold over the lines of `events.jsonl`. Nothing here knows of a page.

/** Nothing of a run yet. */
export function empty() {
  return {
    leg: 0, // the number of the last one, its planner call counted with it
    legs: [], // {number, started, ended, outcome, phase, planning: what that cost}, times in ms; one that is planned has two
    entries: [], // in the order in which they began; see `entry`
    latest: new Map(), // node id -> its last entry
    states: new Map(), // node id -> state
    cost: 0,
    unknown: false,
    usage: { input_tokens: 0, output_tokens: 0 },
    curve: [], // [ms, cost so far]
    settled: 0, // how many entries have come to stand in their place
    last: null, // when the last line was written, ms
    skipped: new Map(), // node id -> {because, why}
  };
}

const FOLDS = {
  run_started: runStarted,
  node_started: nodeStarted,
  node_retried: nodeRetried,
  node_passed: (model, line) => settle(model, line, 'passed'),
  node_failed: (model, line) => settle(model, line, 'failed'),
  gate_paused: gatePaused,
  gate_approved: (model, line) => decided(model, line, 'approved'),
  gate_rejected: (model, line) => decided(model, line, 'rejected'),
  run_finished: runFinished,
};

/** Adds one line; returns the entries that it touched. Kinds that it does not know change nothing. */
export function fold(model, line) {
  model.touched = new Set();
  charge(model, line);
  FOLDS[line.event]?.(model, line);
  model.last = time(line);
  const { touched } = model;
  delete model.touched;
  return touched;
}

/** The process of the run is gone: what was running has no end of its own. Returns the entries that this touched. */
export function abandon(model) {
  model.touched = new Set();
  closeOpen(model, 'abandoned', model.last);
  const { touched } = model;
  delete model.touched;
  return touched;
}

/** How long the legs took together, until `now` where one is open. */
export function elapsed(model, now) {
  return model.legs.reduce((sum, leg) => sum + ((leg.ended ?? now) - leg.started), 0);
}

/** How many of the nodes `ids` are in each state. */
export function counts(model, ids) {
  const found = {};
  for (const id of ids) {
    const state = stateOf(model, id);
    found[state] = (found[state] ?? 0) + 1;
  }
  return found;
}

export const stateOf = (model, id) => model.states.get(id) ?? (model.skipped.has(id) ? 'skipped' : 'pending');

const time = (line) => Date.parse(line.ts);

function charge(model, line) {
  const at = { cost: line.cost_usd ?? 0, unknown: Boolean(line.cost_unknown), usage: line.usage ?? {} };
  model.cost += at.cost;
  model.unknown ||= at.unknown;
  for (const key of ['input_tokens', 'output_tokens']) model.usage[key] += at.usage[key] ?? 0;
  if (at.cost) model.curve.push([time(line), model.cost]);
  const entry = line.node_id && (line.event.startsWith('node_')) ? entryOf(model, line) : null;
  if (entry) {
    entry.cost += at.cost;
    entry.unknown ||= at.unknown;
    entry.usage = { input_tokens: (entry.usage.input_tokens ?? 0) + (at.usage.input_tokens ?? 0), output_tokens: (entry.usage.output_tokens ?? 0) + (at.usage.output_tokens ?? 0) };
  }
}

function runStarted(model, line) {
  // What a dead leg left open has no end of its own.
  closeOpen(model, 'abandoned', model.last ?? time(line));
  const before = model.legs.at(-1);
  // A plan that was bought goes on with the leg that bought it.
  const isPlanned = before?.phase === 'planning' && !line.phase && before.outcome === undefined;
  if (before) before.ended ??= isPlanned ? time(line) : model.last;
  model.skipped = new Map();
  if (!isPlanned) model.leg += 1;
  const planning = isPlanned ? { cost: line.cost_usd ?? 0, unknown: Boolean(line.cost_unknown) } : null;
  const leg = { kind: 'leg', key: `leg-${model.legs.length + 1}`, number: model.leg, planning, order: ++model.settled, started: time(line), ended: null, rehearsal: line.rehearsal, phase: line.phase };
  model.legs.push(leg);
  model.entries.push(leg);
  model.touched.add(leg);
}

function runFinished(model, line) {
  const leg = model.legs.at(-1);
  if (leg) Object.assign(leg, { ended: time(line), outcome: line.outcome });
  closeOpen(model, 'stopped', time(line));
  for (const { node, because, why } of line.skipped ?? []) model.skipped.set(node, { because, why });
  const end = { kind: 'end', key: `end-${model.legs.length}`, order: ++model.settled, at: time(line), outcome: line.outcome, detail: line.detail, cost: model.cost, unknown: model.unknown, skipped: line.skipped_count ?? 0, never: line.skipped ?? [], counts: Object.fromEntries(tally(model)) };
  model.entries.push(end);
  model.touched.add(end);
}

function tally(model) {
  const found = new Map();
  for (const state of model.states.values()) found.set(state, (found.get(state) ?? 0) + 1);
  return found;
}

function closeOpen(model, state, at) {
  for (const entry of model.latest.values()) {
    if (entry.state === 'running' || entry.state === 'held') setState(entry, state, model, at);
  }
}

const isOpen = (entry) => entry && ['running', 'gate-paused', 'held'].includes(entry.state);
const openEntry = (model, id) => (isOpen(model.latest.get(id)) ? model.latest.get(id) : null);
const entryOf = (model, line) => openEntry(model, line.node_id) ?? begin(model, line);

function begin(model, line) {
  const node = line.node_id;
  const before = model.latest.get(node);
  const entry = {
    kind: 'node',
    key: `node-${node}-${(before?.turn ?? 0) + 1}`,
    turn: (before?.turn ?? 0) + 1,
    node,
    leg: model.leg,
    round: line.round ?? 0,
    state: 'running',
    started: time(line),
    ended: null,
    session: line.session_id ?? '',
    attempts: [{ started: time(line), ended: null, state: 'running' }],
    retries: [], // {at, detail, attempt: the number of the one that began, null where a limit is waited for}
    cost: 0,
    unknown: false,
    usage: {},
  };
  if (before) {
    before.superseded = true;
    model.touched.add(before);
  }
  model.entries.push(entry);
  model.latest.set(node, entry);
  setState(entry, 'running', model);
  return entry;
}

/** A node that a spent limit held back goes on with its turn. */
function nodeStarted(model, line) {
  const open = openEntry(model, line.node_id);
  if (!open) return void begin(model, line);
  if (open.state !== 'held') return;
  open.attempts.push({ started: time(line), ended: null, state: 'running' });
  open.session = line.session_id ?? open.session;
  setState(open, 'running', model);
}

function setState(entry, state, model, ended = null) {
  entry.state = state;
  entry.ended = ended;
  if (ended !== null) {
    entry.order = ++model.settled;
    // An attempt that found the limit spent has its end.
    const last = entry.attempts.at(-1);
    if (last.ended === null) Object.assign(last, { ended, state });
  }
  model.states.set(entry.node, state);
  model.touched.add(entry);
}

function gatePaused(model, line) {
  const entry = entryOf(model, line);
  entry.isGate = true;
  setState(entry, 'gate-paused', model);
}

/** The gate's terminal event follows at once. */
function decided(model, line, decision) {
  const entry = entryOf(model, line);
  entry.decided = decision;
  setState(entry, 'running', model);
}

function nodeRetried(model, line) {
  const entry = entryOf(model, line);
  const at = time(line);
  entry.detail = line.detail;
  if (line.round && !line.retries) return setState(entry, 'sent-back', model, at);
  Object.assign(entry.attempts.at(-1), { ended: at, state: line.held_until ? 'held' : 'failed' });
  if (line.held_until) {
    entry.retries.push({ at, detail: line.detail ?? '', attempt: null });
    entry.heldUntil = Date.parse(line.held_until);
    return setState(entry, 'held', model);
  }
  entry.attempts.push({ started: at, ended: null, state: 'running' });
  entry.retries.push({ at, detail: line.detail ?? '', attempt: entry.attempts.length });
  entry.session = line.session_id ?? entry.session;
  model.touched.add(entry);
}

function settle(model, line, state) {
  const entry = entryOf(model, line);
  const ms = line.duration === undefined ? null : line.duration / 1e6;
  Object.assign(entry, { detail: line.detail, provenance: line.provenance, cause: line.cause, leaky: line.leaky, took: ms, session: line.session_id || entry.session });
  setState(entry, state, model, time(line));
}
