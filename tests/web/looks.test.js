// How the pages look: both themes, a phone's width, what axe-core finds. Leaves pictures in target/web.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { entry, launch, open, Place, target } from './harness.js';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PHONE = { viewport: { width: 390, height: 844 } };
const pictures = path.join(target, 'web');
let browser;
let place;
let server;
let id;
let moving;

before(async () => {
  browser = await launch();
  place = new Place();
  place.says('review', 'PASS\n\n## Review of the entry\n\nThe text **says what changed**. Two remarks:\n\n1. `parse()` keeps the *first* error only\n2. the date is missing\n\n| file | lines |\n|---|---|\n| parse.rs | 12 |\n| feed.rs | 40 |\n\n```rust\nfn main() {\n    println!("hello");\n}\n```');
  place.says('draft', 'PASS\n\n- the parser keeps line numbers\n- the feed is twice as fast');
  id = await place.finished(`
name: ship the changelog
nodes:
  - {id: log, type: command, command: "printf 'abc123 keep line numbers\\\\ndef456 a faster feed\\\\n'"}
  - {id: lint, type: command, command: "seq 60", depends_on: [log]}
  - {id: draft, prompt: "@file draft", depends_on: [log]}
  - {id: tests, type: command, command: "echo 'test feed::order ... FAILED' >&2; exit 101", depends_on: [lint], retry: {max: 1, on: [nonzero_exit]}}
  - {id: review, prompt: "@file review", depends_on: [draft]}
  - {id: may-publish, type: gate, depends_on: [review]}
  - {id: publish, type: command, command: "echo published", depends_on: [may-publish]}
`, '--continue-on-fail');
  await place.finished('name: nightly checks\nnodes:\n  - {id: build, type: command, command: "true"}\n  - {id: test, type: command, command: "true", depends_on: [build]}\n');
  await place.finished('name: migrate the store\nnodes:\n  - {id: copy, type: command, command: "true"}\n  - {id: check, type: command, command: "exit 3", depends_on: [copy]}\n');
  moving = await place.run(`name: answer the mail\nnodes:\n  - {id: read, type: command, command: "true"}\n  - {id: sort, type: command, command: "${place.held('sort')}", depends_on: [read]}\n  - {id: reply, type: command, command: "true", depends_on: [sort]}\n`);
  server = await place.serve();
});
after(async () => {
  await place.release('sort');
  await moving.ended;
  await browser.close();
  await place.close();
});

const runPage = async (options) => {
  const page = await open(browser, `${server.url}run/${id}/`, options);
  const gate = await entry(page, 'may-publish', 'gate-paused');
  await gate.locator('.material .markdown').waitFor();
  await page.locator('#drawing .node[data-state]').first().waitFor();
  return page;
};
const dashboard = async (options) => {
  const page = await open(browser, server.url, options);
  await page.locator('#settled .card').nth(1).waitFor();
  await page.locator('#flight .card').waitFor();
  return page;
};

async function seriousFaults(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id: rule, nodes }) => `${rule}: ${nodes.map((node) => node.html.slice(0, 150)).join(' | ')}`);
}

for (const theme of ['light', 'dark']) {
  for (const [name, show] of [['run', runPage], ['dashboard', dashboard]]) {
    test(`${name}, ${theme}: axe-core finds no serious fault`, async () => {
      const page = await show({ colorScheme: theme });
      const [r] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
      assert.equal(r < 128, theme === 'dark');
      fs.mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: path.join(pictures, `${name}-${theme}.png`) });
      if (name === 'run') {
        await page.keyboard.press('l');
        await page.locator('.attempts summary').first().click();
        await page.locator('.keys summary').click();
      }
      assert.deepEqual(await seriousFaults(page), []);
      await page.isFine();
    });
  }
}

test('a theme that was chosen stays, on both pages', async () => {
  const page = await runPage({ colorScheme: 'light' });
  await page.locator('#theme').click();
  assert.equal(await page.evaluate(() => localStorage.getItem('omg-theme')), 'dark');
  await page.goto(server.url);
  await page.locator('#theme[aria-pressed="true"]').waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.isFine();
});

test('nothing needs to be scrolled sideways on a phone', async () => {
  for (const [name, show] of [['run', runPage], ['dashboard', dashboard]]) {
    const phone = name === 'run' ? await open(browser, `${server.url}run/${id}/`, PHONE) : await show(PHONE);
    if (name === 'run') {
      await (await entry(phone, 'may-publish', 'gate-paused')).locator('.material .markdown').waitFor();
      assert.ok(await phone.locator('#map').isHidden(), 'the map is folded away');
    }
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
    await phone.screenshot({ path: path.join(pictures, `${name}-phone.png`) });
    await phone.isFine();
  }
});
