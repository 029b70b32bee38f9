// The parts of the page that need no browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abandon, counts, elapsed, empty, fold } from '../../src/view/web/ui/model.js';
import { clock, duration, inert, moment, money, quoted } from '../../src/view/web/ui/words.js';

const at = (seconds) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
const folded = (...lines) => lines.reduce((model, [seconds, event, more]) => { fold(model, { ts: at(seconds), event, ...more }); return model; }, empty());

test('what is copied runs as pasted', () => {
  assert.equal(quoted('20260101-000000.1-1'), '20260101-000000.1-1');
  assert.equal(quoted("it's $HOME"), "'it'\\''s $HOME'");
  assert.equal(quoted(''), "''");
});

test('durations and costs are worded for people', () => {
  assert.deepEqual([7, 4_250, 185_000, 7_620_000].map(duration), ['7ms', '4.2s', '3m 05s', '2h 07m']);
  assert.equal(money(0.5, true), '$0.5000 + unknown');
  assert.equal(money(0, true), 'cost unknown');
});

test('a moment of another day is told with its day', () => {
  const [noon, later] = [new Date(2026, 4, 6, 12), new Date(2026, 4, 7, 12)];
  assert.equal(moment(noon, noon), clock(noon));
  assert.match(moment(noon, later), /6.*12:00:00/);
  assert.match(moment(noon, new Date(2027, 4, 6, 12)), /2026.*12:00:00/);
});

test('control and direction characters are shown, not obeyed', () => {
  assert.equal(inert('a\u001b[31m\u202eb\r\nc\td'), 'a\u241b[31m\u27e8U+202E\u27e9b\nc\td');
});

test('every charge of the feed counts once, and what is not known stays so', () => {
  const model = folded(
    [0, 'run_started'], [0, 'node_started', { node_id: 'a' }],
    [2, 'node_retried', { node_id: 'a', retries: 1, cost_usd: 0.25, detail: 'not yet' }],
    [5, 'node_passed', { node_id: 'a', cost_usd: 0.5, cost_unknown: true }],
    [6, 'run_finished', { outcome: 'passed' }]);
  assert.equal(model.cost, 0.75);
  assert.ok(model.unknown);
  const [entry] = model.entries.filter(({ kind }) => kind === 'node');
  assert.deepEqual([entry.state, entry.attempts.length, entry.retries[0].detail, entry.cost], ['passed', 2, 'not yet', 0.75]);
});

test('the time between two legs does not count as elapsed', () => {
  const model = folded([0, 'run_started'], [10, 'run_finished', { outcome: 'paused' }], [1000, 'run_started']);
  assert.equal(elapsed(model, Date.parse(at(1005))), 15_000);
});

test('planning a run and running it are one leg, and a later one is the second', () => {
  const model = folded(
    [0, 'run_started', { phase: 'planning' }], [30, 'run_started', { cost_usd: 0.25 }], [40, 'run_finished', { outcome: 'paused' }], [100, 'run_started'], [110, 'run_finished', { outcome: 'passed' }]);
  assert.deepEqual(model.legs.map(({ number, phase, planning }) => [number, phase, planning?.cost]), [[1, 'planning', undefined], [1, undefined, 0.25], [2, undefined, undefined]]);
  assert.equal(elapsed(model), 50_000);
  assert.equal(model.cost, 0.25);
});

test('a gate that is decided in a later leg keeps its one entry', () => {
  const model = folded(
    [0, 'run_started'], [0, 'node_started', { node_id: 'g' }], [0, 'gate_paused', { node_id: 'g' }], [1, 'run_finished', { outcome: 'paused' }],
    [9, 'run_started'], [9, 'gate_approved', { node_id: 'g' }], [9, 'node_passed', { node_id: 'g', provenance: 'approved' }]);
  const entries = model.entries.filter(({ kind }) => kind === 'node');
  assert.deepEqual(entries.map(({ state, decided }) => [state, decided]), [['passed', 'approved']]);
});

test('each round of a loop has an entry of its own', () => {
  const model = folded(
    [0, 'run_started'], [0, 'node_started', { node_id: 'judge' }], [1, 'node_retried', { node_id: 'judge', round: 1, detail: 'again' }],
    [2, 'node_started', { node_id: 'judge', round: 1 }], [3, 'node_passed', { node_id: 'judge', round: 1 }]);
  const entries = model.entries.filter(({ kind }) => kind === 'node');
  assert.deepEqual(entries.map(({ state, round }) => [state, round]), [['sent-back', 0], ['passed', 1]]);
  assert.ok(entries[0].superseded && !entries[1].superseded);
});

test('a node that a spent limit held back waits, and goes on with its turn', () => {
  const held = [[0, 'run_started'], [0, 'node_started', { node_id: 'a' }], [1, 'node_retried', { node_id: 'a', retries: 1, held_until: at(60), cost_usd: 0.5 }]];
  const waiting = folded(...held);
  const [entry] = waiting.entries.filter(({ kind }) => kind === 'node');
  assert.deepEqual([entry.state, entry.heldUntil, counts(waiting, ['a'])], ['held', Date.parse(at(60)), { held: 1 }]);
  const gone = folded(...held, [60, 'node_started', { node_id: 'a', session_id: 's' }], [61, 'node_passed', { node_id: 'a' }]);
  const [done, ...more] = gone.entries.filter(({ kind }) => kind === 'node');
  assert.deepEqual(more, []);
  assert.deepEqual(done.attempts.map(({ state, ended }) => [state, ended]), [['held', Date.parse(at(1))], ['passed', Date.parse(at(61))]]);
  const dead = folded(...held);
  abandon(dead);
  assert.deepEqual([counts(dead, ['a']), dead.latest.get('a').attempts[0].state], [{ abandoned: 1 }, 'held']);
});

test('what ran when a process died is neither passed nor failed', () => {
  const model = folded([0, 'run_started'], [0, 'node_started', { node_id: 'a' }]);
  abandon(model);
  assert.deepEqual(counts(model, ['a', 'b']), { abandoned: 1, pending: 1 });
});
