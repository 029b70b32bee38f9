import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { entry, launch, open, Place } from './harness.js';

let browser;
let place;
before(async () => { browser = await launch(); place = new Place(); });
after(async () => { await browser.close(); await place.close(); });

test('all runs are told as they change, what waits first, and old ones as one scrolls', async () => {
  const server = await place.serve();
  const page = await open(browser, server.url);
  await page.getByText('No runs yet').waitFor();
  const settled = await place.finished('name: settled\nnodes:\n  - {id: a, type: command, command: "true"}\n');
  await page.locator('#settled .card', { hasText: 'settled' }).waitFor();
  const run = await place.run(`
name: moving
nodes:
  - {id: a, type: command, command: "${place.held('a')}"}
  - {id: gate, type: gate, depends_on: [a]}
`);
  const card = page.locator(`.card[data-run="${run.id}"]`);
  await page.locator('#flight').locator(card).waitFor();
  await card.locator('.miniature [data-state="running"]').waitFor();
  await place.release('a');
  await page.locator('#waiting').locator(card).waitFor();
  await card.getByText('decide gate').waitFor();
  await page.waitForFunction(() => document.title.startsWith('(1)'));
  assert.equal(await page.locator('main section:visible').first().getAttribute('aria-labelledby'), 'waiting-title');
  await page.locator('#totals', { hasText: '2 runs' }).waitFor();

  place.copies(settled, 120);
  await page.locator('#totals', { hasText: '122 runs' }).waitFor();
  const fresh = await open(browser, server.url);
  await fresh.locator('#settled .card').nth(40).waitFor();
  assert.ok(await fresh.locator('#settled .card').count() < 121, 'not all at once');
  await fresh.waitForFunction(() => {
    scrollTo(0, document.body.scrollHeight);
    return document.querySelectorAll('#settled .card').length === 121;
  });
  const ids = await fresh.locator('#settled .card').evaluateAll((all) => all.map((one) => one.dataset.run));
  assert.deepEqual(ids, [...ids].sort().reverse(), 'newest first');
  await fresh.isFine();

  await card.locator('a').click();
  await (await entry(page, 'gate', 'gate-paused')).locator('.approve').click();
  await page.locator('#state', { hasText: 'passed' }).waitFor();
  await page.getByRole('link', { name: 'all runs' }).click();
  await page.locator('#settled').locator(card).waitFor();
  await run.ended;
  await page.isFine();
  await server.stop();
});

test('runs are found by the words that they are shown with, and by the sums', async () => {
  const own = new Place();
  const passed = await own.finished('name: fine\nnodes:\n  - {id: a, type: command, command: "true"}\n');
  const failed = await own.finished('name: bad\nnodes:\n  - {id: a, type: command, command: "false"}\n');
  const held = await own.run(`name: lost\nnodes:\n  - {id: a, type: command, command: "${own.held('a')}"}\n`);
  const server = await own.serve();
  const page = await open(browser, server.url);
  const shown = () => page.locator('.card:visible').evaluateAll((all) => all.map((one) => one.dataset.run));
  await page.locator('#flight .card').waitFor();
  held.kill();
  await page.locator('#waiting .card', { hasText: 'lost its process' }).waitFor();
  await page.locator('#waiting .next code', { hasText: `resume ${held.id} --retry-failed` }).waitFor();
  await page.locator('#settled .card').nth(1).waitFor();
  await page.fill('#find', 'LOST its');
  await page.locator('#found', { hasText: '1 shown' }).waitFor();
  assert.deepEqual(await shown(), [held.id]);
  assert.ok(await page.locator('#settled-title').isHidden(), 'no title without a run below it');
  const sum = page.getByRole('button', { name: '1 failed' });
  await sum.click();
  assert.deepEqual(await shown(), [failed]);
  await sum.click();
  assert.deepEqual((await shown()).sort(), [passed, failed, held.id].sort());
  const sums = await page.locator('#totals .count').allTextContents();
  assert.deepEqual(sums.map((text) => text.replace(/^\S+ \d+ /, '')), ['lost its process', 'failed', 'passed'], 'what needs a person first');
  await page.isFine();
  await own.close();
});
