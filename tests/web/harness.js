// What the tests of the pages share: a home of their own, runs in it, a server, and a browser that notes what goes wrong.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = path.dirname(fileURLToPath(import.meta.url));
export const target = process.env.CARGO_TARGET_DIR ?? path.join(here, '../../target');
const OMG = path.resolve(target, 'debug/omg');
const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap((name) => process.env.PATH.split(':').map((dir) => path.join(dir, name)))
  .find((file) => fs.existsSync(file));

/**
 * A stand-in for `claude`: says what the file that its prompt names holds, and asks four cents for it. As a planner it says `plan-1`,
 * then `plan-2`, as a judge `judge-1` and so on, and waits where there is a pipe `plan-1.held`.
 */
const CLAUDE = `#!/bin/sh
case "$1" in --version) echo "2.1.332 (Claude Code)"; exit 0;; esac
[ -z "$HELD" ] || cat "$HELD" > /dev/null
said=$(printf '%s\\n' "$@" | sed -n 's/^@file //p' | head -1)
case "$*" in *"You plan work"*) role=plan;; *"You judge whether"*) role=judge;; esac
if [ -n "$role" ]; then
  echo >> "$role-turns"
  said=$role-$(wc -l < "$role-turns" | tr -d ' ')
  [ ! -p "$said.held" ] || cat "$said.held" > /dev/null
fi
printf '{"type":"result","subtype":"success","is_error":false,"result":%s,"session_id":"0f8fad5b-d9cb-469f-a165-70867728950e","total_cost_usd":0.0421,"usage":{"input_tokens":5120,"output_tokens":812}}' "$(cat "$said")"
`;

/** A directory to work in, with a home of `omg` and a stand-in for `claude`. */
export class Place {
  constructor(home = 'home') {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'omg-web-'));
    this.home = path.join(this.dir, home);
    this.runs = path.join(this.home, 'runs');
    fs.mkdirSync(path.join(this.dir, 'bin'));
    fs.writeFileSync(path.join(this.dir, 'bin/claude'), CLAUDE, { mode: 0o755 });
    const person = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org' };
    this.env = { ...process.env, ...person, OMG_HOME: this.home, HOME: this.dir, PATH: `${path.join(this.dir, 'bin')}:${process.env.PATH}` };
    this.children = new Set();
  }

  /** What the stand-in says to a prompt `@file NAME`. */
  says(name, text) {
    fs.writeFileSync(path.join(this.dir, name), JSON.stringify(text));
  }

  /** Makes the planner's next plans be graphs of one node with these tools, and the judge's next words these. */
  plans(tools, ...verdicts) {
    tools.forEach((tool, i) => this.says(`plan-${i + 1}`, JSON.stringify({ name: `plan ${i + 1}`, nodes: [{ id: 'work', prompt: '@file made', allowed_tools: [tool] }] })));
    verdicts.forEach((verdict, i) => this.says(`judge-${i + 1}`, JSON.stringify(verdict)));
    this.says('made', 'made');
  }

  /** A command that waits until `release(name)`. */
  held(name) {
    execFileSync('mkfifo', [path.join(this.dir, name)]);
    return `cat ${name}`;
  }

  /** Lets go what `held` holds, which then prints `text`. */
  release(name, text = 'released') {
    return fs.promises.writeFile(path.join(this.dir, name), text);
  }

  /** Runs git in the directory. */
  git(...words) {
    return execFileSync('git', words, { cwd: this.dir, env: this.env, encoding: 'utf8' }).trim();
  }

  /** Starts a run of `graph`; resolves with its id, how it ends as `ended`, and `kill`, after which it says nothing more. */
  async run(graph, ...flags) {
    const file = path.join(this.dir, `graph-${this.children.size}.yaml`);
    fs.writeFileSync(file, graph);
    return this.#runs('run', file, ...flags);
  }

  /** The same of a goal; the id is that of its first run. */
  auto(goal, ...flags) {
    return this.#runs('auto', goal, ...flags);
  }

  async #runs(...words) {
    const child = this.#start([...words, '--no-web']);
    const ended = new Promise((done) => child.on('close', done));
    const id = await firstMatch(child.stdout, /\(run ([^)]+)\)/);
    return { id, ended, kill: () => child.kill('SIGKILL') };
  }

  /** A run that is over. */
  async finished(graph, ...flags) {
    const { id, ended } = await this.run(graph, ...flags);
    await ended;
    return id;
  }

  /** `n` older runs that are copies of run `id`. */
  copies(id, n) {
    for (let i = 0; i < n; i++) {
      const copy = `20200101-0000${String(i % 60).padStart(2, '0')}.${String(i).padStart(9, '0')}-1`;
      fs.cpSync(path.join(this.runs, id), path.join(this.runs, copy), { recursive: true });
      for (const name of ['state.json', 'events.jsonl']) {
        const file = path.join(this.runs, copy, name);
        fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replaceAll(id, copy));
      }
    }
  }

  /** Writes the feed of run `id` anew: what `change` makes of its lines. */
  feed(id, change) {
    const file = path.join(this.runs, id, 'events.jsonl');
    const lines = fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    fs.writeFileSync(file, change(lines).map((line) => `${JSON.stringify(line)}\n`).join(''));
  }

  /** The session that run `id` told of `node`. */
  session(id, node) {
    const lines = fs.readFileSync(path.join(this.runs, id, 'events.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    return lines.findLast((line) => line.node_id === node && line.session_id).session_id;
  }

  /** Adds lines to the transcript that claude would keep of `session`. */
  transcribes(session, lines) {
    const project = path.join(this.dir, '.claude/projects/somewhere');
    fs.mkdirSync(project, { recursive: true });
    fs.appendFileSync(path.join(project, `${session}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }

  /** What a terminal that knows nothing of the home makes of a pasted `line`. */
  pasted(line) {
    fs.symlinkSync(OMG, path.join(this.dir, 'bin/omg'));
    const { OMG_HOME: _, ...env } = this.env;
    try {
      return execFileSync('/bin/sh', ['-c', line], { cwd: '/', env, encoding: 'utf8' });
    } finally {
      fs.unlinkSync(path.join(this.dir, 'bin/omg'));
    }
  }

  /** Serves all runs; at `port` where one is given. */
  async serve(port = 0) {
    const child = this.#start(['serve', '--port', String(port), '--no-open']);
    const url = await firstMatch(child.stdout, /(http:\/\/\S+)/);
    return { url, port: Number(new URL(url).port), stop: () => ended(child) };
  }

  /** What `omg` prints when it is called so. */
  omg(...words) {
    return execFileSync(OMG, words, { cwd: this.dir, env: this.env, encoding: 'utf8' });
  }

  async close() {
    await Promise.all([...this.children].map(ended));
    fs.rmSync(this.dir, { recursive: true, force: true });
  }

  #start(words) {
    const child = spawn(OMG, words, { cwd: this.dir, env: this.env, stdio: ['ignore', 'pipe', 'inherit'] });
    this.children.add(child);
    return child;
  }
}

function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => { child.on('close', done); child.kill('SIGTERM'); });
}

async function firstMatch(stream, form) {
  for await (const line of readline.createInterface({ input: stream })) {
    const found = form.exec(line);
    if (found) {
      stream.resume();
      return found[1];
    }
  }
  throw new Error(`ended without saying ${form}`);
}

/** A browser for a whole file of tests. */
export const launch = () => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });

/**
 * A page that notes every error and every request that leaves this machine's server, or the file that it is opened from. `page.isFine()` says that there was none; errors that
 * match `page.expected` are those of a test that breaks something.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(15_000);
  const wrong = [];
  const isOwn = (to) => (url.startsWith('file:') ? to === url : /^http:\/\/127\.0\.0\.1:\d+\//.test(to));
  context.on('console', (said) => { if (['error', 'warning'].includes(said.type())) wrong.push(said.text()); });
  context.on('weberror', (error) => wrong.push(String(error.error())));
  context.on('request', (request) => { if (!isOwn(request.url())) wrong.push(`left the origin: ${request.url()}`); });
  const page = await context.newPage();
  page.isFine = async () => {
    const unexpected = wrong.filter((text) => !page.expected?.test(text));
    assert.deepEqual(unexpected, []);
    await context.close();
  };
  await page.goto(url);
  return page;
}

/** Another page of the same browser; what goes wrong in it counts for `first`. */
export async function tab(first, url) {
  const page = await first.context().newPage();
  await page.goto(url);
  return page;
}

/** The last entry of `node` in `state`, as soon as there is one. */
export async function entry(page, node, state) {
  const found = page.locator(`.entry[data-node="${node}"][data-state="${state}"]:not(.superseded)`);
  await found.waitFor();
  return found;
}
