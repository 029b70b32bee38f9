import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { entry, launch, open, Place } from './harness.js';

let browser;
let place;
before(async () => { browser = await launch(); place = new Place(); });
after(async () => { await browser.close(); await place.close(); });

test('a run is followed live to its end', async () => {
  place.says('review', 'PASS\n\n# Review\n\nIt is **fit**:\n\n- one\n- two');
  const run = await place.run(`
name: live
nodes:
  - {id: log, type: command, command: "echo abc123"}
  - {id: work, type: command, depends_on: [log], command: "${place.held('work')}"}
  - {id: review, depends_on: [work], prompt: "@file review"}
`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${run.id}/`);
  await entry(page, 'log', 'passed');
  await entry(page, 'work', 'running');
  assert.match(await page.title(), /running · live/);
  await page.getByText(`omg stop ${run.id}`).waitFor();
  await place.release('work', 'a *released* thing');
  const review = await entry(page, 'review', 'passed');
  await page.locator('#state', { hasText: 'passed' }).waitFor();
  await review.locator('.markdown strong', { hasText: 'fit' }).waitFor();
  assert.equal(await review.locator('li').count(), 2);
  await review.getByRole('button', { name: 'raw' }).click();
  assert.match(await review.locator('pre').textContent(), /It is \*\*fit\*\*/);
  assert.equal(await (await entry(page, 'work', 'passed')).locator('em').textContent(), 'released');
  assert.equal(await page.locator('#cost').textContent(), '$0.0421');
  assert.equal(await page.locator('#map .node[data-state="passed"]').count(), 3);
  assert.match(await page.title(), /passed · live/);
  assert.equal(await page.locator('.line.end').count(), 1);
  await page.keyboard.press('l');
  await page.locator('#timeline .bar[data-state="passed"]').nth(2).waitFor();
  await page.locator('#timeline .critical', { hasText: /critical path .*: .*work/ }).waitFor();
  assert.match(await page.locator('#timeline [aria-label^="work:"]').getAttribute('aria-label'), /, on the critical path$/);
  await run.ended;
  await page.isFine();
  await server.stop();
});

test('a gate is decided by keys alone, with what its parents produced beside it', async () => {
  place.says('draft', 'PASS: the draft to decide on');
  const id = await place.finished(`
name: gated
nodes:
  - {id: draft, prompt: "@file draft"}
  - {id: may-publish, type: gate, depends_on: [draft]}
  - {id: publish, type: command, depends_on: [may-publish], command: "echo published"}
`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  const gate = await entry(page, 'may-publish', 'gate-paused');
  await gate.getByText('the draft to decide on').waitFor();
  assert.match(await page.title(), /waits for you/);
  await gate.getByText(`omg resume ${id} --approve may-publish`).waitFor();
  await gate.locator('.approve:enabled').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('Enter');
  await (await entry(page, 'publish', 'passed')).getByText('published').waitFor();
  await (await entry(page, 'may-publish', 'passed')).getByText('approved', { exact: true }).first().waitFor();
  assert.equal(await page.getByRole('button', { name: /approve|reject/ }).count(), 0);
  await page.locator('#state', { hasText: 'passed' }).waitFor();
  await page.getByText('resumed: leg 2').waitFor();
  await page.isFine();
  await server.stop();
});

test('a gate shows what the worktree before it changed', async () => {
  place.git('init', '-q');
  place.git('commit', '-q', '--allow-empty', '-m', 'first');
  const id = await place.finished(`
name: laned
nodes:
  - {id: work, type: command, worktree: lane, command: "seq 3 > few; seq 200 > many; git add .; git commit -qm one; head -c 100000 /dev/zero | tr '\\\\000' x > wide; printf '<script>alert(1)</script>\\n-x\\n' > loose; sed -i 2d few"}
  - {id: gate, type: gate, depends_on: [work]}
`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  const gate = await entry(page, 'gate', 'gate-paused');
  await gate.getByText('changed 4 files').waitFor();
  const few = gate.locator('.file', { hasText: 'few' });
  assert.deepEqual(await few.locator('.row.came').allTextContents(), ['+1\n', '+3\n']);
  const loose = gate.locator('.file', { hasText: 'loose' });
  assert.match(await loose.locator('summary').textContent(), /not in git/);
  assert.deepEqual(await loose.locator('.row.came').allTextContents(), ['+<script>alert(1)</script>\n', '+-x\n']);
  const many = gate.locator('.file', { hasText: 'many' });
  assert.equal(await many.locator('.row').count(), 0, 'folded');
  await many.locator('summary').click();
  await many.locator('.row.came', { hasText: '+200' }).waitFor();
  await gate.locator('.file', { hasText: 'wide' }).getByText('and 96001 more characters').waitFor();
  await gate.getByText(/git -C .*worktrees\/lane diff/).waitFor();
  await page.isFine();
  await server.stop();
});

test('a page outlives its server, and decides a gate with the next one', async () => {
  const run = await place.run(`
name: restarted
nodes:
  - {id: slow, type: command, command: "${place.held('slow')}"}
  - {id: gate, type: gate, depends_on: [slow]}
`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${run.id}/`);
  page.expected = /Failed to load resource|ERR_/;
  await entry(page, 'slow', 'running');
  await server.stop();
  await page.locator('#state', { hasText: 'reconnecting' }).waitFor();
  await place.release('slow');
  await run.ended;
  const next = await place.serve(server.port);
  const gate = await entry(page, 'gate', 'gate-paused');
  assert.equal(await page.locator('.entry').count(), 2, 'nothing is told twice');
  await gate.locator('.reject').click();
  await entry(page, 'gate', 'failed');
  await page.locator('#state', { hasText: 'failed' }).waitFor();
  await page.isFine();
  await next.stop();
});

test('a run that dies without a word is shown as one that lost its process, on both pages', async () => {
  const run = await place.run(`name: dies\nnodes:\n  - {id: x, type: command, command: "${place.held('dies')}"}\n`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${run.id}/`);
  const all = await open(browser, server.url);
  await entry(page, 'x', 'running');
  await all.locator('#flight .card').waitFor();
  run.kill();
  await entry(page, 'x', 'abandoned');
  await page.locator('#state[data-state="abandoned"]').waitFor();
  await page.getByText(`omg resume ${run.id} --retry-failed`).first().waitFor();
  assert.match(await page.title(), /lost its process/);
  await all.locator('#waiting .card[data-state="abandoned"]').waitFor();
  await page.isFine();
  await all.isFine();
  await server.stop();
});

test('a pause and an end are announced to a person who allowed it', async () => {
  const run = await place.run(`
name: told
nodes:
  - {id: first, type: command, command: "${place.held('first')}"}
  - {id: gate, type: gate, depends_on: [first]}
`);
  const server = await place.serve();
  const page = await open(browser, 'about:blank');
  // A browser without a desktop shows no notification: what it would have shown is kept.
  await page.addInitScript(() => {
    window.told = [];
    window.Notification = class { static permission = 'granted'; constructor(text) { window.told.push(text); } };
  });
  await page.goto(`${server.url}run/${run.id}/`);
  await entry(page, 'first', 'running');
  await place.release('first');
  await page.waitForFunction(() => window.told[0] === 'told: waits for you at gate');
  await (await entry(page, 'gate', 'gate-paused')).locator('.approve').click();
  await page.waitForFunction(() => window.told.at(-1) === 'told: passed');
  assert.equal(await page.evaluate(() => window.told.length), 2);
  await page.isFine();
  await server.stop();
});

test('why a node failed, every attempt of it and its evidence can be reached', async () => {
  place.says('wrong', 'PASS: I say so');
  const id = await place.finished(`
name: failing
nodes:
  - id: wrong
    prompt: "@file wrong"
    success_check: {verify: {command: "echo the evidence says no; exit 1"}}
    retry: {max: 1, on: [verify_failed]}
  - {id: after, type: command, command: "true", depends_on: [wrong]}
`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  const wrong = await entry(page, 'wrong', 'failed');
  await wrong.locator('.detail').waitFor();
  assert.equal(await wrong.locator('.retry').count(), 1);
  await wrong.locator('.result', { hasText: 'I say so' }).waitFor();
  await wrong.locator('summary').click();
  await wrong.getByRole('button', { name: 'verify of leg 1, attempt 2 of wrong' }).click();
  await wrong.locator('.attempts').getByText('the evidence says no').waitFor();
  await page.locator('.line.end summary').click();
  assert.match(await page.locator('.line.end li').textContent(), /^after: .*wrong/);
  await page.getByText(`omg resume ${id} --retry-failed`).waitFor();
  assert.equal(await page.locator('#cost').textContent(), '$0.0842');
  await page.isFine();
  await server.stop();
});

test('a command that is copied runs as pasted, wherever the runs are kept', async () => {
  const odd = new Place(`a "home" of $HOME, it's <odd> & so on`);
  const id = await odd.finished('name: odd\nnodes:\n  - {id: "a", type: command, command: "true"}\n  - {id: gate, type: gate, depends_on: [a]}\n');
  const server = await odd.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  const gate = await entry(page, 'gate', 'gate-paused');
  await gate.locator('.approve:enabled').waitFor();
  const [show] = await page.locator('#hint .command code').allTextContents();
  assert.match(odd.pasted(show), /PAUSED/);
  odd.pasted(await gate.locator('.command code', { hasText: 'resume' }).textContent());
  await page.locator('#state', { hasText: 'passed' }).waitFor();
  assert.match(odd.pasted(show), /PASS/);
  await page.isFine();
  await server.stop();
  await odd.close();
});

test('an older round keeps what it said within reach', async () => {
  const id = await place.finished(`
name: rounds
nodes:
  - {id: write, type: command, command: "echo draft $(cat tried 2> /dev/null || echo 0); echo 1 > tried"}
  - id: judge
    type: command
    command: "cat $OMG_ARTIFACT_WRITE"
    depends_on: [write]
    success_check: {result_matches: "draft 1"}
    feedback: {rerun: write, max: 2}
`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  await (await entry(page, 'judge', 'passed')).getByText('draft 1').waitFor();
  const older = page.locator('.entry.superseded[data-node="judge"]');
  assert.equal(await older.getByText('draft 0').count(), 0);
  await older.locator('.older summary').click();
  await older.getByText('draft 0').waitFor();
  const replaced = page.locator('.entry.superseded[data-node="write"]');
  await replaced.locator('.older summary').click();
  await replaced.getByText('a newer result took its place').waitFor();
  await page.isFine();
  await server.stop();
});

test('what a running prompt says can be followed', async () => {
  place.says('answer', 'PASS');
  place.held('thinking');
  place.env.HELD = 'thinking';
  const run = await place.run('name: thinking\nnodes:\n  - {id: think, prompt: "@file answer"}\n');
  delete place.env.HELD;
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${run.id}/`);
  const think = await entry(page, 'think', 'running');
  place.transcribes(place.session(run.id, 'think'), [
    { type: 'assistant', message: { content: [{ type: 'text', text: 'I look at <b>the parser</b>' }] } },
    { type: 'user', message: { content: 'not for you' } },
    { type: 'assistant', message: { content: [{ type: 'tool_use', name: 'Grep' }] } },
  ]);
  await think.locator('.tail .tool', { hasText: 'uses Grep' }).waitFor();
  assert.deepEqual(await think.locator('.tail p').allTextContents(), ['I look at <b>the parser</b>', 'uses Grep']);
  place.transcribes(place.session(run.id, 'think'), [{ type: 'assistant', message: { content: [{ type: 'text', text: 'it is fine' }] } }]);
  await think.locator('.tail p', { hasText: 'it is fine' }).waitFor();
  await place.release('thinking');
  const done = await entry(page, 'think', 'passed');
  assert.equal(await done.locator('.tail p').count(), 0);
  await run.ended;
  await page.isFine();
  await server.stop();
});

test('the timeline of two thousand attempts draws the rows in view', async () => {
  const id = await place.finished('name: long\nnodes:\n  - {id: a, type: command, command: "true"}\n');
  place.feed(id, (lines) => {
    const [first, ...rest] = lines;
    const at = (ms) => new Date(Date.parse(first.ts) + ms).toISOString();
    const more = Array.from({ length: 2000 }, (_, i) => [
      { ...first, event: 'node_started', node_id: `node-${i}`, ts: at(i * 10) },
      { ...first, event: i === 1990 ? 'node_failed' : 'node_passed', node_id: `node-${i}`, ts: at(i * 10 + 50), duration: 5e7 },
    ]).flat();
    return [first, ...more, ...rest.map((line) => ({ ...line, ts: at(30_000) }))];
  });
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  // The graph has none of these nodes, so nothing of them can be shown.
  page.expected = /404/;
  await page.locator('.line.end').waitFor();
  await page.keyboard.press('l');
  await page.locator('#timeline .rows[aria-label^="what ran when: 2001 nodes"]').waitFor();
  assert.ok(await page.locator('#timeline .bar').count() < 100);
  await page.locator('#timeline .rows').evaluate((rows) => { rows.scrollTop = rows.scrollHeight; });
  await page.locator('#timeline [aria-label^="node-1990: failed"]').waitFor();
  assert.ok(await page.locator('#timeline .bar').count() < 100);
  await page.isFine();
  await server.stop();
});

test('an entry is found by its address, by the map, by keys and by filters', async () => {
  const nodes = Array.from({ length: 40 }, (_, i) => `  - {id: n${i}, type: command, command: "${i === 30 ? 'exit 1' : 'seq 3'}"}`);
  const id = await place.finished(`name: many\nnodes:\n${nodes.join('\n')}\n`, '--continue-on-fail');
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/#node=n7`);
  await page.waitForFunction(() => document.activeElement.dataset.node === 'n7');
  await page.locator('#map .node[aria-label^="n30,"]').click();
  await page.waitForFunction(() => document.activeElement.dataset.node === 'n30');
  const [first, second] = await page.locator('.entry').evaluateAll((all) => all.slice(0, 2).map((one) => one.dataset.node));
  await page.reload();
  await page.goto(`${server.url}run/${id}/#node=${first}`);
  await page.waitForFunction((node) => document.activeElement.dataset.node === node, first);
  await page.keyboard.press('j');
  await page.waitForFunction((node) => document.activeElement.dataset.node === node, second);
  await page.keyboard.press('/');
  await page.keyboard.type('n3');
  await page.locator('#found', { hasText: '11 shown' }).waitFor();
  await page.locator('#of-state').selectOption('failed');
  await page.locator('#found', { hasText: '1 shown' }).waitFor();
  assert.equal(await page.locator('.entry:visible').getAttribute('data-node'), 'n30');
  await page.isFine();
  await server.stop();
});

test('a page whose server went says so, takes no decision, and goes on where it comes back', async () => {
  const id = await place.finished('name: away\nnodes:\n  - {id: a, type: command, command: "echo made"}\n  - {id: gate, type: gate, depends_on: [a]}\n');
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  page.expected = /Failed to load resource|ERR_/;
  const gate = await entry(page, 'gate', 'gate-paused');
  await gate.locator('.approve:enabled').waitFor();
  await server.stop();
  await page.locator('#hint', { hasText: 'does not answer' }).waitFor();
  await page.locator('#hint code', { hasText: `omg serve ${id}` }).waitFor();
  assert.match(await page.locator('#state').textContent(), /paused/, 'what is over stays so');
  await gate.locator('.approve:disabled').waitFor();
  const attempts = page.locator('.entry[data-node="a"] .attempts');
  await attempts.locator('summary').click();
  await attempts.getByText('the server does not answer').waitFor();
  const next = await place.serve(server.port);
  await gate.locator('.approve:enabled').click();
  await page.locator('#state', { hasText: 'passed' }).waitFor();
  await page.isFine();
  await next.stop();
});

test('a failed run says where it failed', async () => {
  const id = await place.finished('name: where\nnodes:\n  - {id: fine, type: command, command: "true"}\n  - {id: broken, type: command, command: "false"}\n', '--continue-on-fail');
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`);
  const named = page.locator('#hint', { hasText: 'failed at broken' }).locator('a');
  await named.click();
  assert.equal(await page.evaluate(() => document.activeElement.dataset.node), 'broken');
  await page.isFine();
  await server.stop();
});

test('what is decided stays in view below a head of any height', async () => {
  const long = 'a rather long name '.repeat(60).trim();
  const id = await place.finished(`name: ${long}\nnodes:\n  - {id: a, type: command, command: "seq 60"}\n  - {id: gate, type: gate, depends_on: [a]}\n`);
  const server = await place.serve();
  const page = await open(browser, `${server.url}run/${id}/`, { viewport: { width: 1000, height: 500 } });
  const gate = await entry(page, 'gate', 'gate-paused');
  await gate.getByRole('button', { name: 'show all' }).click();
  const hidden = () => {
    const [top, buttons] = ['.top', '.decision .buttons'].map((one) => document.querySelector(one).getBoundingClientRect());
    return { covered: top.bottom > buttons.top + 1, head: top.height / innerHeight };
  };
  await gate.evaluate((root) => root.scrollIntoView({ block: 'end' }));
  await page.waitForFunction(() => scrollY > 0);
  const seen = await page.evaluate(hidden);
  assert.ok(!seen.covered && seen.head < 0.5, JSON.stringify(seen));
  await page.isFine();
  await server.stop();
});
