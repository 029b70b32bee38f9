import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { entry, launch, open, Place, target } from './harness.js';

let browser;
let place;
before(async () => { browser = await launch(); place = new Place(); });
after(async () => { await browser.close(); await place.close(); });

/** Exports run `id` and opens the file where there is no network. */
async function exported(id, options = {}) {
  const file = path.join(place.dir, `${id}.html`);
  place.omg('export', id, '--format', 'html', '--output', file);
  return open(browser, pathToFileURL(file).href, { offline: true, ...options });
}

test('an exported run is its page in one file, without a server', async () => {
  place.says('review', 'FAIL\n\n# Review\n\nIt is **not** fit:\n\n- one\n- two');
  const id = await place.finished(`
name: kept
nodes:
  - {id: log, type: command, command: "echo abc123"}
  - {id: flaky, depends_on: [log], prompt: "@file review", success_check: {result_matches: '^PASS'}, retry: {max: 1, on: [result_mismatch]}}
  - {id: never, depends_on: [flaky], prompt: x}
`);
  const page = await exported(id);
  const failed = await entry(page, 'flaky', 'failed');
  await (await entry(page, 'log', 'passed')).getByText('abc123').waitFor();
  await failed.locator('.markdown strong', { hasText: 'not' }).waitFor();
  await page.locator('#state', { hasText: 'failed' }).waitFor();
  assert.match(await page.title(), /failed · kept/);
  assert.match(await page.locator('#hint').textContent(), /as it stood on/);
  assert.equal(await page.locator('#cost').textContent(), '$0.0842');
  assert.equal(await page.locator('#map .node[data-state="passed"]').count(), 1);
  assert.equal(await page.locator('#map .node[data-state="skipped"]').count(), 1);
  await page.locator('.line.end', { hasText: 'what never ran' }).waitFor();
  await failed.locator('.attempts summary').click();
  await failed.getByRole('button', { name: 'prompt of leg 1, attempt 2 of flaky' }).click();
  await failed.locator('.attempts pre', { hasText: '@file review' }).waitFor();
  await page.keyboard.press('l');
  assert.equal(await page.locator('#timeline .bar').count(), 3);
  await page.locator('#find').fill('log');
  assert.equal(await page.locator('.entry:not([hidden])').count(), 1);
  await page.goto(`${page.url()}#node=flaky`);
  assert.equal(await page.getByText('as a file').count(), 0, 'nothing is linked to that only a server has');
  assert.match(await page.locator('#build').textContent(), /^omg v/);
  await page.screenshot({ path: path.join(target, 'web', 'export.png') });
  await page.isFine();
});

test('a gate in an exported run shows what there is to decide on, and decides nothing', async () => {
  place.says('draft', 'PASS: the draft to decide on');
  const id = await place.finished(`
name: gated
nodes:
  - {id: draft, prompt: "@file draft"}
  - {id: gate, type: gate, depends_on: [draft]}
`);
  const page = await exported(id, { colorScheme: 'dark' });
  const gate = await entry(page, 'gate', 'gate-paused');
  await gate.getByText('the draft to decide on').waitFor();
  await gate.getByText(`omg resume ${id} --approve gate`).waitFor();
  assert.equal(await page.getByRole('button', { name: /approve gate|reject gate|notify/ }).count(), 1, 'the one that copies the command');
  assert.equal(await page.locator('.buttons button').count(), 0);
  await page.isFine();
});

test('a run that goes on is exported as it stands', async () => {
  const run = await place.run(`
name: going
nodes:
  - {id: slow, type: command, command: "${place.held('slow')}"}
`);
  // It can be opened once the command reads it.
  const tap = await fs.promises.open(path.join(place.dir, 'slow'), 'w');
  const page = await exported(run.id);
  await entry(page, 'slow', 'running');
  await page.locator('#state', { hasText: 'running' }).waitFor();
  await page.locator('#hint', { hasText: 'as it stood on' }).waitFor();
  const before = await page.locator('#elapsed').textContent();
  assert.equal(await page.getByText('omg stop').count(), 0);
  await tap.close();
  await run.ended;
  await page.keyboard.press('l');
  assert.equal(await page.locator('#elapsed').textContent(), before, 'time stands still in a file');
  assert.equal(await page.locator('.entry[data-state="running"]').count(), 1);
  await page.isFine();
});

test('a hostile reply stays inert in a file', async () => {
  place.says('hostile', [
    'PASS </script><script>window.pwned = 1</script><!-- <script>',
    '<img src="http://example.org/x.png" onerror="window.pwned = 2"> ![picture](http://example.org/track.png)',
    '[click](javascript:window.pwned=3) \u2028window.pwned = 4\u2029 \u0007 \u202e',
    'x'.repeat(300_000),
    ']]> </style> </body> {{7*7}} ${window.pwned = 5}',
  ].join('\n\n'));
  const id = await place.finished(`
name: "</script><script>window.pwned=7</script>"
nodes:
  - {id: hostile, prompt: "@file hostile"}
  - {id: bad, type: command, depends_on: [hostile], command: "printf '</script><script>window.pwned=8</script> \\\\033[31m' >&2; exit 1"}
`);
  const page = await exported(id);
  const said = (await entry(page, 'hostile', 'passed')).locator('.produced');
  await said.getByText('the first part of 29').waitFor();
  assert.match(await said.textContent(), /<\/script><script>window\.pwned = 1/);
  await (await entry(page, 'bad', 'failed')).locator('.detail', { hasText: '<script>' }).waitFor();
  assert.equal(await page.locator('h1').textContent(), '</script><script>window.pwned=7</script>');
  assert.equal(await page.locator('script').count(), 2, 'the data and the program');
  assert.equal(await page.locator('main img, main iframe, main script').count(), 0);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await page.isFine();
});

test('what is not of the file itself may not run in it', async () => {
  const id = await place.finished('{name: strict, nodes: [{id: a, type: command, command: "true"}]}');
  const file = path.join(place.dir, 'tampered.html');
  const page = place.omg('export', id, '--format', 'html');
  fs.writeFileSync(file, page.replace('</body>', '<script>window.pwned = 1</script><img src="https://example.org/x.png"><style>h1 { color: red }</style></body>'));
  const opened = await open(browser, pathToFileURL(file).href, { offline: true });
  opened.expected = /Content Security Policy|example\.org/;
  const stopped = opened.waitForEvent('requestfailed');
  await opened.reload();
  assert.equal((await stopped).failure().errorText, 'csp');
  await entry(opened, 'a', 'passed');
  assert.equal(await opened.evaluate(() => window.pwned), undefined);
  assert.notEqual(await opened.locator('h1').evaluate((title) => getComputedStyle(title).color), 'rgb(255, 0, 0)');
  await opened.isFine();
});
