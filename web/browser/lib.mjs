/** What the browser tests share: a hub of the real binary, a browser, agents that speak plain HTTP. */

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const web = dirname(dirname(fileURLToPath(import.meta.url)));
/** Nothing waits longer than this. */
export const PATIENCE = 45_000;

/** Where a browser is, if there is one. */
export function browserPath() {
  const named = process.env.AKASHIK_BROWSER;
  const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  return [named, ...usual].find((path) => path && existsSync(path)) ?? null;
}

/** A page that is handed in from outside counts as one from nowhere, which may not speak to loopback addresses. */
const handedIn = ['--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets'];

export function launch() {
  const more = process.env.FROM_DIST ? handedIn : [];
  return chromium.launch({ executablePath: browserPath(), args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', ...more] });
}

/** Hubs go with the script that started them, however it ends. */
const hubs = new Set();
process.once('exit', () => hubs.forEach((child) => child.kill('SIGTERM')));

/** A hub on a free port, or again on one that it had. */
export class Hub {
  static async start(binary, { data = mkdtempSync(join(tmpdir(), 'akashik-web-')), listen = '127.0.0.1:0', more = [] } = {}) {
    const child = spawn(binary, ['serve', '--listen', listen, '--data', data, '--log-filter', 'warn', ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
    hubs.add(child);
    child.once('exit', () => hubs.delete(child));
    const url = await new Promise((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (bytes) => {
        text += bytes;
        const found = /listening on (\S+)\n/.exec(text);
        if (found) resolve(found[1]);
      });
      child.once('exit', (code) => reject(new Error(`the hub ended with ${code}`)));
    });
    return new Hub(child, url, data);
  }

  constructor(child, url, data) {
    Object.assign(this, { child, url, data });
    this.binary = child.spawnfile;
  }

  async stop() {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
  }

  /** The same data on the same port, after a stop. */
  again() {
    return Hub.start(this.binary, { data: this.data, listen: this.url.replace('http://', '') });
  }

  async discard() {
    if (this.child.exitCode === null) await this.stop();
    rmSync(this.data, { recursive: true, force: true });
  }

  async ask(agent, operation, payload) {
    const answer = await fetch(`${this.url}/v1/${operation}`, {
      method: 'POST',
      headers: { 'Akashik-Agent': agent, 'Content-Type': 'application/json' },
      body: JSON.stringify(payload),
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(`${operation}: ${body.message}`);
    return body;
  }

  async register(agent, role = 'researcher', interests = []) {
    return this.ask(agent, 'register', { id: agent, role, interests });
  }

  async record(agent, content, more = {}) {
    const { type = 'finding', purpose = 'Know it', score = 0.8, reason = 'Seen.', relations = [], task = null } = more;
    const intent = { purpose, ...(task ? { task_id: task } : {}) };
    return this.ask(agent, 'record', { type, content, intent, confidence: { score, reason }, relations });
  }

  async log() {
    const text = await (await fetch(`${this.url}/v1/log?limit=1000`)).text();
    return text.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  async status() {
    return (await fetch(`${this.url}/v1/field/status`)).json();
  }

  /** Plays the demonstration to its end. */
  demo() {
    return new Promise((resolve, reject) => {
      const child = spawn(this.binary, ['demo', '--url', this.url, '--pace', 'fast', '--once'], { stdio: ['ignore', 'ignore', 'inherit'] });
      child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`the demo ended with ${code}`))));
    });
  }
}

/** With FROM_DIST set, serves the page from `web/dist` in place of the binary's, so that it can be worked on without building the hub. */
export async function fromDist(context) {
  if (!process.env.FROM_DIST) return;
  const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', woff2: 'font/woff2' };
  const serve = (path) => (route) => route.fulfill({
    body: readFileSync(join(web, 'dist', path)), contentType: types[path.split('.').pop()],
  });
  // At any prefix.
  await context.route(/^http:\/\/[^?#]+\/(\?[^#]*)?$/, serve('index.html'));
  await context.route(/\/assets\//, (route) => serve(new URL(route.request().url()).pathname.replace(/^.*(?=assets\/)/, ''))(route));
}

/**
 * What the page's own thread spends on each of its tasks, whoever else the machine works for meanwhile: a long task as the
 * browser tells of it also counts the time in which the thread had to wait for a processor.
 */
export class OwnTime {
  constructor(session) {
    this.session = session;
    this.threads = new Map();
    this.pages = new Set();
    session.on('Tracing.dataCollected', ({ value }) => {
      for (const { ph, name, pid, tid, tdur, args } of value) {
        const thread = `${pid}/${tid}`;
        if (name === 'thread_name' && args.name === 'CrRendererMain') this.pages.add(thread);
        if (ph !== 'X' || name !== 'ThreadControllerImpl::RunTask' || !tdur) continue;
        const { sum, most } = this.threads.get(thread) ?? { sum: 0, most: 0 };
        this.threads.set(thread, { sum: sum + tdur / 1_000, most: Math.max(most, tdur / 1_000) });
      }
    });
  }

  async start() {
    this.threads.clear();
    await this.session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel'] } });
  }

  /** All of it and the longest task, milliseconds. */
  async stop() {
    const complete = new Promise((resolve) => this.session.once('Tracing.tracingComplete', resolve));
    await this.session.send('Tracing.end');
    await complete;
    const [busiest] = [...this.threads].filter(([thread]) => this.pages.has(thread)).map(([, one]) => one).sort((a, b) => b.sum - a.sum);
    return busiest ?? { sum: 0, most: 0 };
  }
}
