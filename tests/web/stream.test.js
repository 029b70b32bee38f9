// How many pages share the streams of one server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { entry, launch, open, Place, tab } from './harness.js';

const TABS = 8;
let browser;
let place;
before(async () => { browser = await launch(); place = new Place(); });
after(async () => { await browser.close(); await place.close(); });

/** A run whose nodes each wait to be let go, one after the other. */
const staged = (name, count) => `name: ${name}\nnodes:\n${Array.from({ length: count }, (_, i) => `  - {id: s${i}, type: command, command: "${place.held(`${name}-${i}`)}"${i ? `, depends_on: [s${i - 1}]` : ''}}\n`).join('')}`;

test('h1: eight pages of one run and the page of all runs are live at once, with one stream each', async () => {
  const run = await place.run(staged('shared', 3));
  const server = await place.serve();
  const first = await open(browser, server.url);
  await first.locator('#flight .card').waitFor();
  const pages = [];
  for (let i = 0; i < TABS; i++) pages.push(await tab(first, `${server.url}run/${run.id}/`));
  const all = (state, node) => Promise.all(pages.map((page) => entry(page, node, state)));
  await all('running', 's0');
  await place.release('shared-0');
  await all('passed', 's0');
  await first.locator('.card .count[data-state="passed"]', { hasText: '1' }).waitFor();
  // A ninth comes late and is told what happened, and whoever came first goes.
  const late = await tab(first, `${server.url}run/${run.id}/`);
  await entry(late, 's0', 'passed');
  await pages.shift().close();
  pages.push(late);
  await place.release('shared-1');
  await all('passed', 's1');
  await place.release('shared-2');
  for (const page of pages) {
    await page.locator('#state', { hasText: 'passed' }).waitFor();
    await page.locator('.line.end').waitFor();
    assert.deepEqual(await page.locator('.entry').evaluateAll((found) => found.map((one) => one.dataset.node)), ['s0', 's1', 's2'], 'nothing is lost or told twice');
  }
  await run.ended;
  await first.isFine();
  await server.stop();
});

test('pages outlive their server together, and lose and double nothing', async () => {
  const run = await place.run(staged('outlived', 3));
  const server = await place.serve();
  const first = await open(browser, `${server.url}run/${run.id}/`);
  first.expected = /Failed to load resource|ERR_/;
  const pages = [first, await tab(first, `${server.url}run/${run.id}/`), await tab(first, `${server.url}run/${run.id}/`)];
  await Promise.all(pages.map((page) => entry(page, 's0', 'running')));
  await server.stop();
  await Promise.all(pages.map((page) => page.locator('#state', { hasText: 'reconnecting' }).waitFor()));
  await place.release('outlived-0');
  await place.release('outlived-1');
  const next = await place.serve(server.port);
  await Promise.all(pages.map((page) => entry(page, 's2', 'running')));
  await place.release('outlived-2');
  for (const page of pages) {
    await page.locator('#state', { hasText: 'passed' }).waitFor();
    await page.locator('.line.end').waitFor();
    assert.deepEqual(await page.locator('.entry').evaluateAll((found) => found.map((one) => one.dataset.node)), ['s0', 's1', 's2']);
  }
  await run.ended;
  await first.isFine();
  await next.stop();
});

test('pages whose worker dies begin anew with another', async () => {
  const run = await place.run(staged('orphaned', 2));
  const server = await place.serve();
  const first = await open(browser, `${server.url}run/${run.id}/`);
  const pages = [first, await tab(first, `${server.url}run/${run.id}/`)];
  await Promise.all(pages.map((page) => entry(page, 's0', 'running')));
  const session = await browser.newBrowserCDPSession();
  const workers = async () => {
    const { targetInfos } = await session.send('Target.getTargets');
    return targetInfos.filter(({ type, url }) => type === 'shared_worker' && url.startsWith(server.url)).map(({ targetId }) => targetId);
  };
  const before = await workers();
  assert.equal(before.length, 1);
  await session.send('Target.closeTarget', { targetId: before[0] });
  await place.release('orphaned-0');
  await Promise.all(pages.map((page) => entry(page, 's1', 'running')));
  for (const page of pages) assert.equal(await page.locator('.entry').count(), 2);
  const after = await workers();
  assert.equal(after.length, 1);
  assert.notEqual(after[0], before[0]);
  await place.release('orphaned-1');
  await Promise.all(pages.map((page) => page.locator('.line.end').waitFor()));
  await run.ended;
  await first.isFine();
  await server.stop();
});

test('more runs than there are streams: whoever is looked at is live, and every title stays true', async () => {
  const server = await place.serve();
  const runs = [];
  for (let i = 0; i < 6; i++) runs.push(await place.run(staged(`many${i}`, 1)));
  const first = await open(browser, `${server.url}run/${runs[0].id}/`);
  const pages = [first];
  for (const { id } of runs.slice(1)) pages.push(await tab(first, `${server.url}run/${id}/`));
  await Promise.all(pages.map((page) => entry(page, 's0', 'running')));
  for (let i = 0; i < 6; i++) await place.release(`many${i}-0`);
  await Promise.all(pages.map((page) => page.waitForFunction(() => /passed/.test(document.title))));
  await first.isFine();
  await server.stop();
});

test('a hidden page tells of a pause in its title at once', async () => {
  const run = await place.run(`name: aside\nnodes:\n  - {id: first, type: command, command: "${place.held('aside')}"}\n  - {id: gate, type: gate, depends_on: [first]}\n`);
  const server = await place.serve();
  const page = await open(browser, 'about:blank');
  // A browser without a screen hides no page: this one is told that it is hidden.
  await page.addInitScript(() => Object.defineProperty(document, 'hidden', { get: () => !window.isLookedAt }));
  await page.goto(`${server.url}run/${run.id}/`);
  await page.waitForFunction(() => document.title.includes('running'));
  await place.release('aside');
  await page.waitForFunction(() => document.title.includes('waits for you'));
  await page.evaluate(() => { window.isLookedAt = true; document.dispatchEvent(new Event('visibilitychange')); });
  await entry(page, 'gate', 'gate-paused');
  await run.ended;
  await page.isFine();
  await server.stop();
});

test('without a worker that pages share, each has a stream as long as it is looked at', async () => {
  const run = await place.run(staged('alone', 2));
  const server = await place.serve();
  const page = await open(browser, 'about:blank');
  await page.addInitScript(() => {
    delete window.SharedWorker;
    Object.defineProperty(document, 'hidden', { get: () => Boolean(window.isAside), configurable: true });
  });
  await page.goto(`${server.url}run/${run.id}/`);
  await entry(page, 's0', 'running');
  const turn = (isAside) => page.evaluate((is) => { window.isAside = is; document.dispatchEvent(new Event('visibilitychange')); }, isAside);
  await turn(true);
  await place.release('alone-0');
  await turn(false);
  await entry(page, 's1', 'running');
  await place.release('alone-1');
  await entry(page, 's1', 'passed');
  assert.equal(await page.locator('.entry').count(), 2);
  await run.ended;
  await page.isFine();
  await server.stop();
});
