/** Pictures of every view, light and dark, wide and narrow, of a hub that runs: node browser/screenshots.mjs URL FOLDER [view …]. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fromDist, launch } from './lib.mjs';

const [url, folder, ...only] = process.argv.slice(2);
const conflicts = (await (await fetch(`${url}/v1/conflicts?status=escalated,resolved,detected`)).json()).conflicts;
const escalated = conflicts.find((one) => one.status === 'escalated');
const resolved = conflicts.find((one) => one.status === 'resolved');
const decision = (await (await fetch(`${url}/v1/units?type=decision&order=newest&limit=1`)).json()).units[0];
const views = {
  live: '#/live',
  unit: `#/live?unit=${decision?.id}`,
  memory: '#/memory',
  graph: '#/memory?view=graph',
  around: `#/memory?view=graph&around=${decision?.id}&unit=${decision?.id}`,
  search: '#/memory?q=how fast does the market grow',
  conflict: `#/conflicts/${escalated?.id}`,
  settled: `#/conflicts/${resolved?.id}`,
  agents: '#/agents',
  agent: '#/agents/ada',
  inspect: '#/agents?inspect=dee',
  replay: '#/replay',
  played: `#/replay/decision/${decision?.id}`,
  field: '#/field',
};
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const [size, width, height] of [['wide', 1440, 900], ['narrow', 390, 844]]) {
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    await fromDist(context);
    const page = await context.newPage();
    page.on('console', (message) => message.type() === 'error' && console.log(`${size} ${colorScheme}: ${message.text()}`));
    page.on('pageerror', (error) => console.log(`${size} ${colorScheme}: ${error}`));
    for (const [name, hash] of Object.entries(views)) {
      if (only.length > 0 && !only.includes(name)) continue;
      await page.goto(`${url}/${hash}`);
      if (page.url() !== `${url}/${hash}`) await page.reload();
      await page.waitForSelector('[data-state=live]', { state: 'attached' });
      if (name === 'inspect') {
        await page.fill('[name=hint]', 'Decide on the launch: growth, law, price');
        await page.fill('[name=tokens]', '900');
        await page.click('.inspect-form [type=submit]');
        await page.waitForSelector('.hit');
        await page.locator('.hit details summary').first().click();
      }
      await page.waitForTimeout(name === 'field' ? 7_000 : 900);
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) });
    }
    await context.close();
  }
}
await browser.close();
