// Counts the frames of a run's page while the run streams into it: `node frames.mjs URL`, with the run about to begin or under way. Prints
// `{frames, seconds, longest_ms, p95_ms, idle}`, where `idle` is the frame rate of the page once nothing happens any more.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(new URL('../../tests/web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const executablePath = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap((name) => process.env.PATH.split(':').map((dir) => path.join(dir, name)))
  .find((file) => fs.existsSync(file));

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
page.setDefaultTimeout(120_000);
await page.addInitScript(() => {
  window.frames_at = [];
  const note = (at) => { window.frames_at.push([at, document.getElementById('state')?.dataset.state]); requestAnimationFrame(note); };
  requestAnimationFrame(note);
});
await page.goto(process.argv[2]);
await page.waitForFunction(() => document.querySelector('.line.end') && document.getElementById('state').dataset.state === 'passed', null, { polling: 500 });
const streamed = await page.evaluate(() => window.frames_at.filter(([, state]) => state === 'running').map(([at]) => at));
const idle = await page.evaluate(() => new Promise((done) => {
  const from = performance.now();
  let frames = 0;
  const count = (at) => (at - from > 2000 ? done(frames / ((at - from) / 1000)) : (frames++, requestAnimationFrame(count)));
  requestAnimationFrame(count);
}));
const gaps = streamed.slice(1).map((at, i) => at - streamed[i]).sort((a, b) => a - b);
process.stdout.write(JSON.stringify({
  frames: gaps.length,
  seconds: (streamed.at(-1) - streamed[0]) / 1000,
  p95_ms: gaps[Math.floor(gaps.length * 0.95)],
  longest_ms: gaps.at(-1),
  idle,
  entries: await page.locator('.entry').count(),
}));
await browser.close();
