import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { entry, launch, open, Place } from './harness.js';

let browser;
let place;
before(async () => { browser = await launch(); place = new Place(); });
after(async () => { await browser.close(); await place.close(); });

const HOSTILE = [
  'PASS',
  '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"><svg onload="window.pwned = 3">',
  '[click](javascript:window.pwned=4) ![picture](http://example.org/track.png) [data](data:text/html,<script>alert(1)</script>)',
  '<a href="javascript:window.pwned=5">raw</a> [ok](https://example.org/fine)',
  'bell \u0007 escape \u001b[31mred\u001b[0m null \u0000',
  'turned \u202egnp.exe and \u2066isolated',
  '\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645',
  'x'.repeat(50_000),
  `${'*'.repeat(3_000)} ${'['.repeat(3_000)} ${'`'.repeat(3_001)}`,
  '```',
  '</code></pre><script>window.pwned = 6</script>',
].join('\n\n');

test('a hostile reply stays inert and readable', async () => {
  place.says('hostile', HOSTILE);
  const id = await place.finished(`
name: "<img src=x onerror=window.pwned=7>"
nodes:
  - {id: hostile, prompt: "@file hostile"}
  - {id: bad, type: command, depends_on: [hostile], command: "printf '<script>window.pwned=8</script> \\\\033[31m' >&2; exit 1"}
  - {id: gate, type: gate, depends_on: [hostile]}
`, '--continue-on-fail');
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  const said = (await entry(page, 'hostile', 'passed')).locator('.produced');
  await said.locator('.markdown').waitFor();
  const text = await said.textContent();
  assert.match(text, /<script>window\.pwned = 1<\/script>/, 'markup is shown as it was written');
  assert.match(text, /bell \u2407 escape \u241b\[31mred/);
  assert.match(text, /turned \u27e8U\+202E\u27e9gnp\.exe and \u27e8U\+2066\u27e9/);
  const links = await said.locator('.body a').evaluateAll((all) => all.map((one) => [one.getAttribute('href'), one.rel]));
  assert.deepEqual([...new Set(links.map(([href]) => href))].sort(), ['http://example.org/track.png', 'https://example.org/fine']);
  assert.ok(links.every(([, rel]) => rel === 'noopener noreferrer'));
  await (await entry(page, 'bad', 'failed')).locator('.detail', { hasText: '<script>' }).waitFor();
  assert.equal(await page.locator('main script, main img, main iframe, main svg:not(#drawing svg)').count(), 0);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing widens the page');
  assert.equal(await page.locator('h1').textContent(), '<img src=x onerror=window.pwned=7>');
  await page.goto(server.url);
  await page.locator('.card', { hasText: '<img src=x' }).waitFor();
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await page.isFine();
  await server.stop();
});

/** Replies whose marks could be looked at without end, or make more elements than a page bears. */
const SLOW = {
  table: `x|y\n${' '.repeat(190_000)}x`,
  heading: `${`# ${'#'.repeat(7_900)}x\n`.repeat(25)}`,
  fence: `${`~~~${' '.repeat(7_900)}\`\n`.repeat(24)}`,
  strong: `${'**a '.repeat(1_990)}\n`.repeat(25),
  emphasis: `${'*a'.repeat(3_990)}\n`.repeat(25),
  code: `${'`a``b'.repeat(1_300)}\n`.repeat(25),
  lines: 'a\n'.repeat(99_000),
};

test('a reply that is made to be slow to show is shown all the same', async () => {
  for (const [name, text] of Object.entries(SLOW)) place.says(name, text);
  const id = await place.finished(`name: slow\nnodes:\n${Object.keys(SLOW).map((name) => `  - {id: ${name}, prompt: "@file ${name}"}\n`).join('')}`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  for (const name of Object.keys(SLOW)) {
    const shown = await entry(page, name, 'passed');
    await shown.scrollIntoViewIfNeeded();
    await shown.locator('.result').waitFor();
  }
  await page.isFine();
  await server.stop();
});

test('a name that turns the direction of writing does not turn the title', async () => {
  const id = await place.finished('name: "\\u202Eevil\\u0007"\nnodes:\n  - {id: a, type: command, command: "true"}\n');
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  await page.waitForFunction(() => document.title.includes('evil'));
  assert.match(await page.title(), /\u27e8U\+202E\u27e9evil\u2407/);
  await page.isFine();
  await server.stop();
});
