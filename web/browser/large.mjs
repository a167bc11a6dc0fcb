/**
 * Measures the page on a large Field: node browser/large.mjs BINARY [units] [a data directory to fill once and use again].
 * The Field is filled by the hub's own `bench record`, then gets what the bench does not make: a unit that a thousand
 * others support, a chain, a task of 5,000 units, contradictions.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromDist, Hub, launch, OwnTime, PATIENCE } from './lib.mjs';

const [binary, units = '100000', kept] = process.argv.slice(2);
const data = kept ?? mkdtempSync(join(tmpdir(), 'akashik-large-'));
const hub = await Hub.start(binary, { data, more: ['--detection-budget-ms', '0'] });
const TASK = 'task-of-thousands';

/** Does work for many, so many at a time. */
async function each(count, atOnce, work) {
  let next = 0;
  const one = async () => {
    for (let at = next++; at < count; at = next++) await work(at);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function fill() {
  const bench = spawn(binary, ['bench', 'record', '--url', hub.url, '--agents', '64', '--depth', '8', '--units', units], { stdio: ['ignore', 'ignore', 'inherit'] });
  await new Promise((resolve, reject) => bench.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`the bench ended with ${code}`)))));
  const agents = Array.from({ length: 8 }, (_, n) => `surveyor-${n}`);
  for (const agent of agents) await hub.register(agent, 'surveyor', ['bridges']);
  const star = await hub.record('surveyor-0', 'The old bridge carries forty tons.', { type: 'decision', task: TASK });
  await each(1_000, 16, (n) => hub.record(agents[n % 8], `Measurement ${n}: the bridge bent by ${n % 17} mm under forty tons.`, { task: TASK, relations: [{ type: 'supports', target_id: star.memory_unit_id }] }));
  let before = star.memory_unit_id;
  for (let n = 0; n < 120; n += 1) {
    before = (await hub.record(agents[n % 8], `Step ${n} of the repair.`, { task: TASK, relations: [{ type: n % 2 ? 'caused_by' : 'depends_on', target_id: before }] })).memory_unit_id;
  }
  await each(4_000, 16, (n) => hub.record(agents[n % 8], `Entry ${n} of the bridge's log: wind from ${n % 360} degrees.`, { task: TASK }));
  await each(300, 8, async (n) => {
    const { memory_unit_id: target_id } = await hub.record('surveyor-1', `Beam ${n} is sound.`);
    await hub.record('surveyor-2', `Beam ${n} is rotten.`, { relations: [{ type: 'contradicts', target_id }] });
  });
}

const begun = Date.now();
if ((await hub.status()).log_entries === 0) await fill();
const recorded = (await hub.status()).units.active;
console.log(`${recorded} active units, ${(await hub.status()).conflicts_unresolved} open conflicts, there after ${((Date.now() - begun) / 1_000).toFixed(0)} s`);
const [star] = (await (await fetch(`${hub.url}/v1/units?type=decision&limit=1`)).json()).units;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
context.setDefaultTimeout(PATIENCE);
await fromDist(context);
await context.addInitScript(() => {
  window.longTasks = [];
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => Math.round(one.duration)))).observe({ type: 'longtask', buffered: true });
  // The longest time between two frames: what somebody who watches would call a freeze.
  window.longestFrame = 0;
  let last = performance.now();
  const frame = (now) => {
    window.longestFrame = Math.max(window.longestFrame, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});

const results = [];
async function measured(name, page, work) {
  await ownTime.start();
  await page.evaluate(() => { window.longTasks = []; window.longestFrame = 0; });
  const begin = performance.now();
  const note = (await work()) ?? '';
  const took = performance.now() - begin;
  // A long task is told of after it ended.
  const { tasks, frame } = await page.evaluate(() => new Promise((told) => { setTimeout(() => told({ tasks: window.longTasks, frame: window.longestFrame }), 300); }));
  const own = await ownTime.stop();
  results.push({ what: name, ms: Math.round(took), 'longest task': Math.max(0, ...tasks), 'of its own': Math.round(own.most), 'longest frame': Math.round(frame), 'own time in all': Math.round(own.sum), note });
}

const views = {
  Live: ['#/live', '.event'],
  'Memory, list': ['#/memory', '.unit-row'],
  'Memory, archived ones picked out': ['#/memory?status=archived', '.empty-title, .unit-row'],
  'Memory, one agent': ['#/memory?agent=surveyor-1', '.unit-row'],
  'Memory, sought': ['#/memory?q=how much does the bridge carry', '.unit-row .score'],
  'Graph, newest': ['#/memory?view=graph', '.loom-canvas[data-units]'],
  'Graph, around a unit with 1,000 relations': [`#/memory?view=graph&around=${star.id}`, '.loom-canvas[data-ties]:not([data-ties="0"])'],
  'Unit, with 1,000 relations': [`#/memory?unit=${star.id}`, '.panel .chain li'],
  Conflicts: ['#/conflicts', '.side-card mark'],
  Agents: ['#/agents', '.agent-card'],
  'One agent': ['#/agents/surveyor-1', '.recent'],
  'Replay, what there is': ['#/replay', '.suggest li'],
  'Replay of a task of 5,000 units': [`#/replay/task/${TASK}`, '.loom-canvas[data-units]'],
  Field: ['#/field', '.chart canvas'],
};

const loads = [];
for (const [name, [hash, selector]] of Object.entries(views)) {
  // As if opened in a tab of its own.
  const page = await context.newPage();
  page.on('pageerror', (error) => console.log(`${name}: ${error}`));
  const begin = performance.now();
  await page.goto(`${hub.url}/${hash}`);
  await page.waitForSelector(selector);
  const shown = performance.now() - begin;
  await page.waitForSelector('[data-state=live]', { state: 'attached' });
  const { paint, tasks } = await page.evaluate(() => new Promise((told) => {
    setTimeout(() => told({ paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN, tasks: window.longTasks }), 1_500);
  }));
  loads.push({ view: name, 'first content, ms': Math.round(paint), 'its own content, ms': Math.round(shown), 'longest task, ms': Math.max(0, ...tasks) });
  await page.close();
}
console.table(loads);

const page = await context.newPage();
page.on('pageerror', (error) => console.log(String(error)));
await page.goto(`${hub.url}/#/live`);
await page.waitForSelector('.event');
const session = await context.newCDPSession(page);
const ownTime = new OwnTime(session);
const heap = async () => {
  await session.send('HeapProfiler.collectGarbage');
  return ((await session.send('Runtime.getHeapUsage')).usedSize / 1_048_576).toFixed(1);
};
console.log(`heap at first, MiB: ${await heap()}`);
for (const [name, [hash, selector]] of Object.entries(views)) {
  await measured(`to ${name}`, page, async () => {
    await page.evaluate((to) => { location.hash = to; }, hash);
    await page.waitForSelector(selector);
  });
}
console.log(`heap after every view, MiB: ${await heap()}`);

const goTo = async (hash, selector) => {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForSelector(selector);
};
await goTo('#/memory', '.unit-row');
await page.mouse.move(700, 500);
await measured('Memory, 400 turns of the wheel', page, async () => {
  for (let n = 0; n < 400; n += 1) await page.mouse.wheel(0, 600);
  return `${await page.evaluate(() => Math.round(document.querySelector('.virtual').scrollTop / 46))} rows down`;
});
await measured('Memory, to the end again and again for 15 s', page, async () => {
  const until = performance.now() + 15_000;
  while (performance.now() < until) await page.evaluate(() => new Promise((drawn) => { const box = document.querySelector('.virtual'); box.scrollTop = box.scrollHeight; requestAnimationFrame(drawn); }));
  return `${await page.evaluate(() => document.querySelector('[aria-setsize]').getAttribute('aria-setsize'))} rows held`;
});
console.log(`heap with that list, MiB: ${await heap()}`);
await measured('Memory, back to the top', page, () => page.evaluate(() => new Promise((drawn) => { document.querySelector('.virtual').scrollTop = 0; requestAnimationFrame(() => requestAnimationFrame(() => drawn(''))); })));
await measured('Memory, a record comes while that list is held', page, async () => {
  await hub.record('surveyor-3', 'Said while the list was long.');
  await page.getByText('Said while the list was long.').waitFor();
});
await measured('Search, typed and answered', page, async () => {
  await page.fill('[data-search]', 'wind from the north');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.unit-row .score');
});
await goTo(`#/memory?view=graph&around=${star.id}`, '.loom-canvas[data-ties]:not([data-ties="0"])');
await page.locator('.loom-canvas').focus();
await measured('Graph, 40 steps by the arrow keys', page, async () => {
  for (let n = 0; n < 40; n += 1) await page.keyboard.press(n % 4 === 3 ? 'ArrowDown' : 'ArrowRight');
});
await page.mouse.move(500, 400);
await measured('Graph, zoomed by the wheel, 60 turns', page, async () => {
  for (let n = 0; n < 60; n += 1) await page.mouse.wheel(0, n < 30 ? -120 : 120);
});
await goTo(`#/replay/task/${TASK}`, '.loom-canvas[data-units]');
await measured('Replay, the slider through all of it, 60 steps', page, async () => {
  for (let n = 0; n <= 60; n += 1) {
    await page.locator('.player input[type=range]').evaluate((slider, part) => {
      slider.value = String(Math.round(Number(slider.max) * part));
      slider.dispatchEvent(new Event('input', { bubbles: true }));
    }, n / 60);
  }
  return page.locator('.player .when').textContent();
});
await page.getByLabel('Pace').selectOption('450');
await measured('Replay, played for 5 s', page, async () => {
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.waitForTimeout(5_000);
  return page.locator('.player .when').textContent();
});
console.table(results);
console.log(`heap at the end, MiB: ${await heap()}`);
await browser.close();
if (kept) await hub.stop();
else await hub.discard();
