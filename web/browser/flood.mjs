/** Measures the page under a stream: node browser/flood.mjs BINARY [events a second] [seconds]. */

import { fromDist, Hub, launch, OwnTime } from './lib.mjs';

const [binary, rate = '500', seconds = '60'] = process.argv.slice(2);
const hub = await Hub.start(binary);
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
await fromDist(context);
const page = await context.newPage();
await page.addInitScript(() => {
  window.longTasks = [];
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => [Math.round(one.startTime), Math.round(one.duration)]))).observe({ type: 'longtask', buffered: true });
});
const agents = Array.from({ length: 10 }, (_, n) => `flood-${n}`);
for (const agent of agents) await hub.register(agent);
await page.goto(`${hub.url}/#/live`);
await page.waitForSelector('[data-state=live]', { state: 'attached' });
const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
const session = await context.newCDPSession(page);
const heap = async () => {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return (usedSize / 1_048_576).toFixed(1);
};
console.log(`first contentful paint ${Math.round(paint)} ms`);
const begin = Date.now();
let sent = 0;
let nextHeap = 0;
/** Measured in a stretch in the middle. */
const stretch = { from: Number(seconds) * 300, until: Number(seconds) * 300 + 10_000, state: 'before' };
const ownTime = new OwnTime(session);
let own = null;
const heaps = [];
/** When a collection was asked for: what it takes is not the page's doing. */
const collections = [];
while (Date.now() - begin < Number(seconds) * 1_000) {
  const due = Math.floor(((Date.now() - begin) / 1_000) * Number(rate));
  const burst = [];
  while (sent < due && burst.length < 40) {
    const agent = agents[sent % agents.length];
    burst.push(hub.record(agent, `${agent} found number ${sent}: the market for small tools grows at ${sent % 40}% a year in its segment.`));
    sent += 1;
  }
  await Promise.all(burst);
  if (stretch.state === 'before' && Date.now() - begin > stretch.from) {
    stretch.state = 'within';
    await ownTime.start();
  } else if (stretch.state === 'within' && Date.now() - begin > stretch.until) {
    stretch.state = 'after';
    own = await ownTime.stop();
  }
  if (burst.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  if (Date.now() - begin > nextHeap) {
    nextHeap += 10_000;
    collections.push(await page.evaluate(() => performance.now()));
    heaps.push(await heap());
  }
}
const took = (Date.now() - begin) / 1_000;
const { epoch } = await hub.status();
const caughtUp = Date.now();
await page.waitForFunction((last) => document.querySelector('.event .epoch')?.textContent === `epoch ${last}`, epoch);
console.log(`${sent} events in ${took.toFixed(1)} s (${Math.round(sent / took)} a second), shown ${Date.now() - caughtUp} ms after the last`);
const longTasks = (await page.evaluate(() => window.longTasks)).filter(([at]) => at > 1_500 && !collections.some((asked) => at > asked - 400 && at < asked + 1_500));
const over = longTasks.filter(([, took]) => took > 100);
console.log(`long tasks over 50 ms: ${longTasks.length}, longest ${Math.max(0, ...longTasks.map(([, took]) => took))} ms; over 100 ms: ${over.length}`);
if (own) console.log(`the page's own time: ${(own.sum / 10).toFixed(0)} ms a second, its longest task ${own.most.toFixed(0)} ms`);
heaps.push(await heap());
console.log(`heap after a collection, MiB: ${heaps.join(', ')}`);
await browser.close();
await hub.discard();
