// Planned runs: their goal, its cycles, the judge's word, a plan that is being bought or was refused.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { entry, launch, open, Place, tab, target } from './harness.js';

const GOAL = 'Write the page about limits, with an example that a reader can paste, and link it from the index';
const UNMET = { goal_met: false, remaining: 'the example <b>is</b> missing\u001b[31m', evidence: 'no fence in limits.md' };
const PHONE = { viewport: { width: 360, height: 780 } };
const pictures = path.join(target, 'web');
let browser;
before(async () => { browser = await launch(); fs.mkdirSync(pictures, { recursive: true }); });
after(async () => { await browser.close(); });

const picture = (page, name) => page.screenshot({ path: path.join(pictures, `${name}.png`) });

test('a goal is followed through its cycles, its judge and a plan that is refused', async () => {
  const place = new Place();
  place.plans(['Read', 'Bash(*)', 'Bash(*)'], UNMET);
  for (const held of ['plan-1.held', 'judge-1.held', 'plan-2.held']) place.held(held);
  const server = await place.serve();
  const run = await place.auto(GOAL, '--max-cycles', '3', '--max-goal-budget-usd', '2');
  const page = await open(browser, `${server.url}run/${run.id}/`);
  const all = await tab(page, server.url);
  const card = (id) => all.locator(`.card[data-run="${id}"]`);

  // Being planned: there is no graph, and the goal is known.
  await page.locator('#state', { hasText: 'planning' }).waitFor();
  await page.locator('#goal .aim', { hasText: GOAL }).waitFor();
  await page.locator('#goal', { hasText: 'a planner is asked for a graph' }).waitFor();
  await page.locator('#feed .line', { hasText: 'being planned' }).waitFor();
  await page.locator('#cycle', { hasText: 'cycle 1 of 3' }).waitFor();
  await card(run.id).locator('.title', { hasText: GOAL }).waitFor();
  await picture(page, 'goal-planning');

  // It ran, and the judge is asked.
  await place.release('plan-1.held');
  await entry(page, 'work', 'passed');
  await page.locator('#feed .line', { hasText: 'planned for $0.0421: run started' }).waitFor();
  assert.equal(await page.getByText('resumed').count(), 0);
  await page.locator('#goal', { hasText: 'the judge has not said anything of this run' }).waitFor();

  // Its word comes when the run has long ended, and the next cycle begins.
  await place.release('judge-1.held');
  await page.locator('#goal .verdict', { hasText: '✗ goal not met says the judge, for $0.0421' }).waitFor();
  assert.equal(await page.locator('#goal .said').first().textContent(), 'remaining: the example <b>is</b> missing␛[31m');
  await page.locator('#goal .said', { hasText: 'evidence: no fence in limits.md' }).waitFor();
  const next = page.locator('#goal .cycles li', { hasText: 'cycle 2' });
  await next.getByText('planning').waitFor();
  assert.match(await page.locator('#goal .cycles li[aria-current]').textContent(), /cycle 1, this run✓ passed✗ goal not met\$0\.1263/);
  await page.locator('#goal', { hasText: 'spent on the goal so far: $0.1263 of $2.0000, beyond which no cycle begins' }).waitFor();
  await card(run.id).getByText('cycle 1 of 3 · ✗ goal not met · remaining: the example <b>is</b> missing␛[31m').waitFor();
  await picture(page, 'goal-light');
  await picture(all, 'goal-dashboard');

  // The next cycle's plan is refused twice.
  const second = await tab(page, await next.locator('a').evaluate((link) => link.href));
  await second.locator('#state', { hasText: 'planning' }).waitFor();
  await second.locator('#cycle', { hasText: 'cycle 2 of 3' }).waitFor();
  await place.release('plan-2.held');
  await second.locator('#state', { hasText: 'failed' }).waitFor();
  await second.locator('#goal', { hasText: 'the plan was refused, and nothing ran' }).waitFor();
  await second.locator('.line.end .detail', { hasText: 'the plan was refused: node "work": allowed_tools: "Bash(*)"' }).waitFor();
  await second.getByText('what the planner had planned').click();
  await second.locator('#goal pre', { hasText: '"plan 3"' }).waitFor();
  await second.locator('#goal .cycles a', { hasText: 'cycle 1' }).waitFor();
  assert.match(await second.locator('#goal .command code').textContent(), / omg show \S+ planner$/);
  assert.equal(await second.getByText('--retry-failed').count(), 0, 'there is nothing to go on with');
  await picture(second, 'goal-refused');
  await next.getByText('failed').waitFor();
  await card(await second.locator('.run-id').textContent()).getByText('cycle 2 of 3').waitFor();
  await all.fill('#find', 'a reader can paste');
  await all.locator('#found', { hasText: '2 shown' }).waitFor();
  await run.ended;
  await page.isFine();

  for (const theme of ['light', 'dark']) {
    const phone = await open(browser, `${server.url}run/${run.id}/`, { ...PHONE, colorScheme: theme });
    await phone.locator('#goal .verdict').waitFor();
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), theme);
    await picture(phone, `goal-phone-${theme}`);
    await phone.isFine();
    const wide = await open(browser, `${server.url}run/${run.id}/`, { colorScheme: theme });
    await wide.locator('#goal .verdict').waitFor();
    await picture(wide, `goal-${theme}`);
    await wide.isFine();
    const dashboard = await open(browser, server.url, { ...PHONE, colorScheme: theme });
    await dashboard.locator('#settled .card').nth(1).waitFor();
    assert.ok(await dashboard.evaluate(() => document.documentElement.scrollWidth <= innerWidth), theme);
    await picture(dashboard, `goal-dashboard-phone-${theme}`);
    await dashboard.isFine();
  }

  const file = path.join(place.dir, 'kept.html');
  place.omg('export', run.id, '--format', 'html', '--output', file);
  const kept = await open(browser, pathToFileURL(file).href, { offline: true });
  await kept.locator('#goal .verdict', { hasText: '✗ goal not met' }).waitFor();
  assert.equal(await kept.locator('#goal .cycles li').count(), 2);
  assert.equal(await kept.locator('#goal .cycles a').count(), 0, 'the other runs are not in the file');
  await kept.isFine();
  await place.close();
});

test('a goal of one cycle is told without cycles, and a hand-written run has none', async () => {
  const place = new Place();
  place.plans(['Read']);
  const planned = await place.auto(GOAL);
  await planned.ended;
  const written = await place.finished('name: written\nnodes:\n  - {id: a, type: command, command: "true"}\n');
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${planned.id}/`);
  await page.locator('#goal .aim', { hasText: GOAL }).waitFor();
  assert.ok(await page.locator('#cycle').isHidden());
  assert.equal(await page.locator('#goal .cycles, #goal .verdict, #goal .quiet').count(), 0);
  await page.goto(`${server.url}run/${written}/`);
  await entry(page, 'a', 'passed');
  assert.ok(await page.locator('#goal').isHidden());
  await page.isFine();
  await place.close();
});
