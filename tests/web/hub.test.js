// What the hub of the streams passes on, and to whom, with ports of this process and streams that the test fills.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { CardsHistory, FeedHistory } from '../../src/view/web/ui/history.js';
import { Hub, statusOf } from '../../src/view/web/ui/hub.js';

const sources = [];
class Source extends EventTarget {
  static CLOSED = 2;
  constructor(url) {
    super();
    Object.assign(this, { url, readyState: 1 });
    sources.push(this);
  }

  tell(event, data, id = '') { this.dispatchEvent(Object.assign(new Event(event), { data, lastEventId: id })); }
  close() { this.readyState = Source.CLOSED; }
}
const open = () => sources.filter(({ readyState }) => readyState !== Source.CLOSED).map(({ url }) => url);

let hub;
beforeEach((t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  globalThis.EventSource = Source;
  sources.length = 0;
  hub = new Hub();
});
afterEach(() => { delete globalThis.EventSource; });

/** A page that follows `address`: what it was told, and how it speaks. */
function page(address, { kind = 'feed', isHidden = false } = {}) {
  const told = [];
  const port = { postMessage: (events) => told.push(...events) };
  hub.connect(port);
  const say = (data) => port.onmessage({ data });
  say({ follow: address, kind, isHidden });
  return { told, say };
}
const lines = ({ told }) => told.filter(([event]) => event === 'message').map(([, data]) => data);

test('pages of one run share a stream, and who comes late is told everything once', (t) => {
  const first = page('a');
  sources[0].tell('message', 'one', '10');
  t.mock.timers.tick(20);
  sources[0].tell('message', 'two', '20');
  const late = page('a');
  sources[0].tell('message', 'three', '30');
  t.mock.timers.tick(20);
  assert.deepEqual([lines(first), lines(late)], [['one', 'two', 'three'], ['one', 'two', 'three']]);
  assert.equal(late.told[0][0], 'begin');
  assert.deepEqual(open(), ['a']);
});

test('a stream ends with its last page, and goes on where it was when its run is looked at again', () => {
  const pages = ['a', 'b', 'c', 'd'].map((address) => page(address));
  sources[0].tell('message', 'one', '10');
  const fifth = page('e');
  assert.deepEqual(open(), ['b', 'c', 'd', 'e'], 'who was looked at longest ago gives way');
  pages[0].say({ isHidden: false });
  assert.deepEqual(open(), ['c', 'd', 'e', 'a?from=10']);
  fifth.say({ isGone: true });
  assert.deepEqual(open(), ['c', 'd', 'a?from=10', 'b']);
  [...pages].forEach(({ say }) => say({ isGone: true }));
  assert.deepEqual(open(), []);
});

test('hidden pages give way first, the page of all runs last', () => {
  page('cards', { kind: 'cards', isHidden: true });
  page('hidden', { isHidden: true });
  ['a', 'b', 'c'].forEach((address) => page(address));
  assert.deepEqual(open(), ['cards', 'a', 'b', 'c']);
});

test('a hub of one page has no stream while it is hidden', () => {
  hub = new Hub({ isForHidden: false });
  const { say } = page('a', { isHidden: true });
  assert.deepEqual(open(), []);
  say({ isHidden: false });
  assert.deepEqual(open(), ['a']);
});

test('a line that comes again is not passed on, and after a reset all are', () => {
  const history = new FeedHistory();
  assert.deepEqual([history.take('message', 'x', '10'), history.take('message', 'x', '10')], [true, false]);
  history.take('status', 's');
  history.take('status', 't');
  assert.deepEqual(history.replay(), [['message', 'x'], ['status', 't']]);
  history.take('reset', '{}');
  assert.deepEqual([history.from, history.replay()], ['', []]);
});

test('of all runs the last card of each is told, and nothing of a connection before', () => {
  const history = new CardsHistory();
  const card = (id, state) => JSON.stringify({ run_id: id, state });
  [['card', card('r', 'running')], ['card', card('q', 'running')], ['card_removed', card('q')], ['card', card('r', 'passed')], ['cards_ready', '{}']].forEach((event) => history.take(...event));
  assert.deepEqual(history.replay(), [['card', card('r', 'passed')], ['cards_ready', '{}']]);
  history.connected();
  assert.deepEqual(history.replay(), []);
});

test('what is broken for good is tried again by who comes anew', (t) => {
  const first = page('a');
  sources[0].tell('message', 'one', '10');
  sources[0].tell('stream_error', '{}');
  assert.deepEqual(open(), []);
  const second = page('a');
  sources[1].tell('message', 'one', '10');
  t.mock.timers.tick(20);
  assert.deepEqual(lines(second), ['one']);
  assert.deepEqual(first.told.map(([event]) => event), ['begin', 'message', 'stream_error', 'begin', 'message']);
});

test('a run without a stream is asked about, in the words of a stream', async (t) => {
  const pages = ['a', 'b', 'c', 'd', 'e'].map((name) => page(`http://h/${name}/api/events`));
  const asked = [];
  t.mock.method(globalThis, 'fetch', async (url) => {
    asked.push(String(url));
    return { json: async () => ({ run: { status: 'PASS' } }) };
  });
  t.mock.timers.tick(10_000);
  await new Promise((done) => { setImmediate(done); });
  t.mock.timers.tick(20);
  assert.deepEqual(asked, ['http://h/a/api/run']);
  assert.equal(JSON.parse(pages[0].told.at(-1)[1]).state, 'passed');
  assert.equal(statusOf({}).state, 'pending');
});
