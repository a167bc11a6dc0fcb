/** The page in a real browser on real hubs. AKASHIK_BINARY names the hub's binary. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fromDist, Hub, launch, PATIENCE, web } from './lib.mjs';

const binary = process.env.AKASHIK_BINARY ?? join(web, '../target/debug/akashik');
const axe = readFileSync(join(web, 'node_modules/axe-core/axe.min.js'), 'utf8');
let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** A hub and a page on it; both are gone after the test. What the page complains of fails it. */
async function staged(t, { colorScheme = 'light', width = 1280, height = 800 } = {}) {
  const hub = await Hub.start(binary);
  const context = await browser.newContext({ colorScheme, viewport: { width, height } });
  context.setDefaultTimeout(PATIENCE);
  await fromDist(context);
  const complaints = [];
  const asked = new Set();
  const page = await opened(context, complaints, asked);
  t.after(async () => {
    await context.close();
    await hub.discard();
  });
  return { hub, context, page, complaints, asked, open: () => opened(context, complaints, asked) };
}

async function opened(context, complaints, asked) {
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog said ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (one) => asked.add(new URL(one.url()).host));
  page.on('websocket', (socket) => asked.add(new URL(socket.url()).host));
  return page;
}

async function visit(page, url, hash = '') {
  await page.goto(`${url}/${hash}`);
  await live(page);
}

const live = (page) => page.waitForSelector('[data-state=live]', { state: 'attached' });

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} (${node.failureSummary})`).join('; ')}`);
}

test('an empty Field says how to begin, and fills before one\'s eyes', async (t) => {
  const { hub, page, complaints } = await staged(t);
  await visit(page, hub.url);
  await page.getByText('This Field is empty').waitFor();
  assert.ok((await page.locator('.command').first().textContent()).includes(`akashik demo --url ${hub.url}`));
  assert.deepEqual(await violations(page), []);
  const fits = await page.evaluate(() => [...document.querySelectorAll('.command')].every((one) => one.getBoundingClientRect().right <= innerWidth));
  assert.ok(fits, 'a command is cut off');
  await hub.demo();
  await page.getByText('We open in the Nordics in spring').first().waitFor();
  assert.deepEqual(complaints, []);
});

test('every view shows what the hub holds, without a barrier to anybody', async (t) => {
  for (const [colorScheme, width] of [['light', 1280], ['dark', 390]]) {
    const { hub, page, complaints, asked } = await staged(t, { colorScheme, width });
    await hub.demo();
    const { conflicts } = await (await fetch(`${hub.url}/v1/conflicts`)).json();
    const { units } = await (await fetch(`${hub.url}/v1/units?type=decision&order=newest&limit=1`)).json();
    const decision = units[0].id;
    const views = [
      ['#/live', () => page.locator('.event').first().waitFor()],
      [`#/live?unit=${decision}`, () => page.locator('.panel .chain li').first().waitFor()],
      ['#/memory', () => page.locator('.unit-row').first().waitFor()],
      ['#/memory?view=graph', () => page.locator('.loom-canvas[data-ties]:not([data-ties="0"])').waitFor()],
      [`#/memory?view=graph&around=${decision}`, () => page.locator('.loom-canvas[data-ties]:not([data-ties="0"])').waitFor()],
      ['#/memory?q=where do backups go', () => page.locator('.unit-row .score').first().waitFor()],
      [`#/conflicts/${conflicts[0].id}`, () => page.locator('.side-card mark').first().waitFor()],
      ['#/agents', () => page.locator('.agent-card').first().waitFor()],
      ['#/agents/ada', () => page.locator('.recent').first().waitFor()],
      ['#/agents?inspect=dee', async () => {
        await page.fill('[name=hint]', 'Decide on the launch');
        await page.fill('[name=tokens]', '600');
        await page.getByRole('button', { name: 'Look', exact: true }).click();
        await page.locator('.hit .factor-stack').first().waitFor();
      }],
      ['#/replay', () => page.locator('.suggest li').first().waitFor()],
      [`#/replay/decision/${decision}`, () => page.locator('.timeline li.now').waitFor()],
      ['#/field', () => page.locator('.chart canvas').first().waitFor()],
    ];
    for (const [hash, shown] of views) {
      await visit(page, hub.url, hash);
      await page.reload();
      await live(page);
      await shown();
      assert.deepEqual(await violations(page), [], `${hash} ${colorScheme}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
      assert.ok(wide, `${hash} is wider than ${width} pixels`);
    }
    assert.deepEqual(complaints, []);
    assert.deepEqual([...asked], [hub.url.replace('http://', '')], 'nobody but the hub is asked');
  }
});

test('a person resolves a conflict, and the log says so', async (t) => {
  const { hub, page, complaints } = await staged(t);
  for (const agent of ['ann', 'bob']) await hub.register(agent);
  const first = await hub.record('ann', 'The bridge holds 40 tons.', { score: 0.6 });
  const second = await hub.record('bob', 'The bridge holds 25 tons.', { score: 0.9, relations: [{ type: 'contradicts', target_id: first.memory_unit_id }] });
  const [id] = second.conflicts_detected;
  await visit(page, hub.url, `#/conflicts/${id}`);
  await page.locator('.side-card mark').first().waitFor();
  assert.deepEqual(await page.locator('.side-card mark').allTextContents(), ['40', '25']);
  await page.locator('.strategy', { hasText: 'Surer one' }).getByText(`${second.memory_unit_id} would prevail.`).waitFor();
  await page.locator('[name=strategy][value=confidence_weighted]').check();
  await page.fill('[name=rationale]', 'Measured, not estimated.');
  await page.getByRole('button', { name: 'Resolve', exact: true }).click();
  await page.fill('[name=person]', 'maria');
  await page.getByRole('button', { name: 'Join' }).click();
  await page.getByText(`${second.memory_unit_id} prevails, by surer one`).waitFor();
  await page.getByText('Your decision stands.').waitFor();
  await page.locator('.chain').getByText('Measured, not estimated.').waitFor();
  const log = await hub.log();
  const merge = log.find((line) => line.event_type === 'MERGE');
  assert.equal(merge.agent_id, 'maria');
  assert.ok(JSON.stringify(merge).includes('Measured, not estimated.'));
  assert.equal(log.find((line) => line.event_type === 'REGISTER' && line.agent_id === 'maria') !== undefined, true);
  const { agents } = await (await fetch(`${hub.url}/v1/agents`)).json();
  const maria = agents.find((agent) => agent.id === 'maria');
  assert.deepEqual([maria.role, maria.connected], ['human_operator', true]);
  assert.deepEqual(complaints, []);
});

test('a decision is told of before the next conflict is shown', async (t) => {
  const { hub, page, complaints } = await staged(t);
  for (const agent of ['ann', 'bob']) await hub.register(agent);
  const clash = async (subject) => {
    const { memory_unit_id: target_id } = await hub.record('ann', `The ${subject} is red.`, { score: 0.6 });
    return hub.record('bob', `The ${subject} is not red.`, { score: 0.9, relations: [{ type: 'contradicts', target_id }] });
  };
  const [one, two] = [await clash('roof'), await clash('door')];
  // No conflict is named: the page shows the first of the list, and that leaves the list.
  await visit(page, hub.url, '#/conflicts');
  const shown = await page.locator('.stage-head .id').textContent();
  const [here, next] = shown === one.conflicts_detected[0] ? [one, two] : [two, one];
  await page.locator('[name=strategy][value=confidence_weighted]').check();
  await page.fill('[name=rationale]', 'Looked again.');
  await page.getByRole('button', { name: 'Resolve', exact: true }).click();
  await page.fill('[name=person]', 'maria');
  await page.getByRole('button', { name: 'Join' }).click();
  const told = page.locator('.decided');
  await told.getByText(`${here.memory_unit_id} is active again`).waitFor();
  await told.getByText('It cannot be undone').waitFor();
  assert.equal(await told.getByRole('link', { name: 'How it came about' }).getAttribute('href'), `#/replay/conflict/${here.conflicts_detected[0]}`);
  await told.getByRole('link', { name: 'Next open conflict' }).click();
  await page.locator('.stage-head', { hasText: next.conflicts_detected[0] }).waitFor();
  assert.equal(await told.count(), 0);
  assert.deepEqual(complaints, []);
});

test('old memory is looked after: first foreseen, then done', async (t) => {
  const { hub, page, complaints } = await staged(t);
  await hub.register('ann');
  const { memory_unit_id: old } = await hub.record('ann', 'The first count.');
  for (let n = 0; n < 101; n += 1) await hub.record('ann', `Crate ${n} is full.`, n === 0 ? { relations: [{ type: 'supersedes', target_id: old }] } : {});
  await visit(page, hub.url, '#/field');
  const block = page.getByRole('region', { name: 'Look after old memory' });
  const dialog = page.locator('.dialog', { hasText: 'Units that are meant' });
  await block.locator('[name=reason]').fill('Counted anew.');
  await block.getByRole('button', { name: 'See what it would do' }).click();
  await page.fill('[name=person]', 'maria');
  await page.getByRole('button', { name: 'Join' }).click();
  await dialog.getByRole('heading', { name: 'Archive 1 unit?' }).waitFor();
  await dialog.getByText('with the status superseded').waitFor();
  await dialog.getByRole('button', { name: 'Archive' }).click();
  await block.getByText('1 unit archived.').waitFor();
  assert.ok(JSON.stringify(await hub.log()).includes('Counted anew.'));
  // The list picks out what is archived.
  await page.evaluate(() => { location.hash = '#/memory?status=archived'; });
  await page.getByText('1 match').waitFor();
  await page.locator('.unit-row').getByText('The first count.').waitFor();
  // What no session can be called is refused in the form's own words.
  await page.evaluate(() => { location.hash = '#/field'; });
  await block.locator('[name=session]').fill('x'.repeat(3_000));
  await block.getByRole('button', { name: 'See what it would do' }).click();
  await block.getByText('The session is not a name that a session can have.').waitFor();
  // A purge of everything: the dialog is the confirmation.
  await block.locator('[name=session]').fill('');
  await block.getByLabel('What to do').selectOption('purge');
  await block.getByLabel('Status').selectOption('');
  await block.getByRole('button', { name: 'See what it would do' }).click();
  await dialog.getByRole('heading', { name: 'Purge 102 units?' }).waitFor();
  assert.equal((await hub.status()).units.active, 101, 'nothing is done by looking');
  await dialog.getByRole('button', { name: 'Purge' }).click();
  await block.getByText(/^102 units purged/).waitFor();
  assert.equal((await hub.status()).units.active, 0);
  assert.deepEqual(complaints, []);
});

test('each way of looking after old memory is foreseen, and the hub\'s no is said in words', async (t) => {
  const { hub, page, complaints } = await staged(t);
  await hub.register('ann');
  const made = [];
  for (let n = 0; n < 4; n += 1) made.push(await hub.record('ann', `Crate ${n} is full.`, { task: 'task-crates' }));
  const { memory_unit_id: rotten } = await hub.record('ann', 'Crate 0 is not full.', { relations: [{ type: 'contradicts', target_id: made[0].memory_unit_id }] });
  await visit(page, hub.url, '#/field');
  const block = page.getByRole('region', { name: 'Look after old memory' });
  const dialog = page.locator('.dialog', { hasText: 'Units that are meant' });
  const foresee = () => block.getByRole('button', { name: 'See what it would do' }).click();
  const leave = () => dialog.getByRole('button', { name: 'Leave it' }).click();
  const archived = page.locator('.facts dd', { has: page.locator('a[href*="status=archived"]') });
  await block.getByLabel('Status').selectOption('');
  await foresee();
  await page.fill('[name=person]', 'maria');
  await page.getByRole('button', { name: 'Join' }).click();
  // Both sides of the open conflict are left out, whatever is done.
  await dialog.getByRole('heading', { name: 'Archive 3 units?' }).waitFor();
  await leave();
  await block.getByLabel('What to do').selectOption('purge');
  await foresee();
  await dialog.getByRole('heading', { name: 'Purge 3 units?' }).waitFor();
  await dialog.getByText('nothing brings them back').waitFor();
  assert.deepEqual(await violations(page), []);
  await leave();
  // Nothing was done so far but looking: an epoch passes by, and no unit changes.
  assert.deepEqual([(await hub.status()).units.active, (await hub.status()).units_archived], [3, 0]);
  await block.locator('[name=age]').fill('100000');
  await foresee();
  await dialog.getByRole('heading', { name: 'No unit matches' }).waitFor();
  assert.equal(await dialog.getByRole('button', { name: 'Purge' }).count(), 0);
  await leave();
  await block.locator('[name=age]').fill('');
  await block.getByLabel('What to do').selectOption('summarize');
  await block.locator('[name=reason]').fill('All of it was counted.');
  await foresee();
  await dialog.getByRole('heading', { name: 'Summarize 3 units?' }).waitFor();
  await dialog.getByText('1 synthesis would be written.').waitFor();
  await dialog.getByRole('button', { name: 'Summarize' }).click();
  await block.getByText('3 units archived behind 1 synthesis.').waitFor();
  assert.equal((await hub.status()).units_archived, 3);
  await assertEventually(async () => assert.equal(await archived.textContent(), '3'));
  // In a replay it is one step, and each unit keeps the colours of its time.
  await visit(page, hub.url, '#/replay/task/task-crates');
  await page.locator('.timeline li', { hasText: '3 units archived by COMPACT: All of it was counted.' }).waitFor();
  assert.equal(await page.locator('.timeline li', { hasText: /Archived mem-/ }).count(), 0);
  // What is wrong with a wish is said by the form.
  await visit(page, hub.url, '#/field');
  await block.locator('[name=reason]').fill('x'.repeat(60_000));
  await foresee();
  await block.getByText('The reason is too long. Nothing was changed.').waitFor();
  assert.equal((await hub.status()).units.contested, 2, rotten);
  assert.deepEqual(complaints, []);
});

test('what a Field cannot do is not offered', async (t) => {
  const hub = await Hub.start(binary, { more: ['--level', '1'] });
  const context = await browser.newContext();
  await fromDist(context);
  t.after(async () => {
    await context.close();
    await hub.discard();
  });
  await hub.register('ann');
  const page = await context.newPage();
  await visit(page, hub.url, '#/field');
  await page.getByRole('region', { name: 'What it can do' }).waitFor();
  const offered = (await page.locator('.ops .tag').allTextContents()).includes('COMPACT');
  assert.equal(await page.getByRole('region', { name: 'Look after old memory' }).count(), offered ? 1 : 0);
  assert.equal(offered, false, 'at level 1 nothing is compacted');
});

test('a replay of nothing says so in the page\'s words', async (t) => {
  const { hub, page } = await staged(t);
  await hub.register('ann');
  await hub.record('ann', 'Something.');
  for (const [path, words] of [['task/none', 'There is no task none in this Field.'], ['decision/mem-9', 'What is not a decision is replayed as a unit.'], ['tale/mem-9', 'A tale cannot be replayed']]) {
    await visit(page, hub.url, `#/replay/${path}`);
    await page.getByText(words).waitFor();
    assert.equal(await page.getByText('target_type').count(), 0);
  }
});

test('escalation, a person\'s decision, and a vote', async (t) => {
  const { hub, page } = await staged(t);
  for (const agent of ['ann', 'bob', 'cid']) await hub.register(agent);
  const clash = async (text) => {
    const { memory_unit_id: target_id } = await hub.record('ann', text);
    const { memory_unit_id, conflicts_detected } = await hub.record('bob', `Not so: ${text}`, { relations: [{ type: 'contradicts', target_id }] });
    return { a: target_id, b: memory_unit_id, id: conflicts_detected[0] };
  };
  const [one, two] = [await clash('We ship on Friday.'), await clash('The roof is red.')];
  await visit(page, hub.url, `#/conflicts/${one.id}`);
  await page.locator('[name=strategy][value=human_escalation]').check();
  await page.fill('[name=rationale]', 'Ask me.');
  await page.getByRole('button', { name: 'Escalate' }).click();
  await page.fill('[name=person]', 'maria');
  await page.getByRole('button', { name: 'Join' }).click();
  await page.getByText('A person has to decide this').waitFor();
  await page.getByRole('button', { name: `${one.a} by ann` }).click();
  await page.fill('[name=rationale]', 'Friday it is.');
  await page.getByRole('button', { name: 'Decide' }).click();
  await page.getByText(`${one.a} prevails`).first().waitFor();
  // A vote needs more than one voice.
  await page.goto(`${hub.url}/#/conflicts/${two.id}`);
  await page.locator('[name=strategy][value=vote]').check();
  await page.getByRole('button', { name: `${two.b} by bob` }).click();
  await page.fill('[name=rationale]', 'I saw it.');
  await page.getByRole('button', { name: 'Cast ballot' }).click();
  await page.getByText('Ballots: 1 of a quorum of 3').waitFor();
  await hub.ask('cid', 'merge', { conflict_id: two.id, strategy: 'vote', resolution: { rationale: 'Me too.', winner_id: two.b } });
  await page.getByText(`${two.b} prevails`).first().waitFor();
});

test('the page comes back by itself after the hub was away, with nothing lost and nothing twice', async (t) => {
  const { hub, page } = await staged(t);
  await hub.register('ann');
  await hub.record('ann', 'said before');
  await visit(page, hub.url, '#/live');
  await page.getByText('said before').waitFor();
  await hub.stop();
  await page.waitForSelector('[data-state=broken]', { state: 'attached' });
  const again = await hub.again();
  t.after(() => again.stop());
  // Recorded before the page is back.
  await again.record('ann', 'said meanwhile');
  await page.getByText('said meanwhile').waitFor();
  await live(page);
  await again.record('ann', 'said after');
  await page.getByText('said after').waitFor();
  for (const text of ['said before', 'said meanwhile', 'said after']) assert.equal(await page.getByText(text, { exact: true }).count(), 1, text);
});

test('a page that is opened late shows the same as one that watched all along', async (t) => {
  const { hub, page, open } = await staged(t, { height: 2_400 });
  await visit(page, hub.url, '#/memory');
  await hub.demo();
  const late = await open();
  await visit(late, hub.url, '#/memory');
  const rows = async (of) => {
    await of.locator('.unit-row').first().waitFor();
    return of.evaluate(() => [...document.querySelectorAll('.unit-row')].map((row) => row.textContent));
  };
  // The last word of the story.
  await page.getByText('Tell me before anything is promised').waitFor();
  const expected = await rows(late);
  assert.equal(expected.length, 22);
  await assertEventually(async () => assert.deepEqual(await rows(page), expected));
  const events = (of) => of.evaluate(() => [...document.querySelectorAll('.event')].map((row) => row.textContent));
  for (const of of [page, late]) {
    await of.evaluate(() => { location.hash = '#/live'; });
    await of.locator('.event').first().waitFor();
  }
  assert.deepEqual(await events(page), await events(late));
});

/** Until it holds, or says why not. */
async function assertEventually(check) {
  const until = Date.now() + PATIENCE;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

test('what agents say is text, whatever it is', async (t) => {
  const { hub, page, complaints } = await staged(t);
  const nasty = [
    '<script>window.owned = 1</script><img src=x onerror="window.owned = 1">',
    '\u202Egnitirw desrever\u202C and \u2066isolated',
    'javascript:alert(1) "><svg/onload=alert(1)>',
    '👩‍👩‍👧‍👦🏳️‍🌈 שלום مرحبا 漢字 e\u0301\u0000\u0007',
    `${'a'.repeat(100_000)}\n${'long line '.repeat(1_000)}`,
    '{{constructor.constructor("window.owned=1")()}} ${window.owned=1}',
  ];
  const agent = '<b onmouseover=alert(1)>eve</b>';
  await hub.register(agent, '"><img src=x onerror=alert(1)>', ['<i>x</i>']);
  const recorded = [];
  for (const text of nasty) {
    recorded.push(await hub.record(agent, text, { purpose: text.slice(0, 400), reason: text.slice(0, 400), task: '<img src=x onerror=alert(1)>' }));
  }
  await hub.record(agent, nasty[1], { relations: [{ type: 'contradicts', target_id: recorded[0].memory_unit_id }] });
  const { conflicts } = await (await fetch(`${hub.url}/v1/conflicts`)).json();
  const hashes = ['#/live', '#/memory', '#/memory?view=graph', '#/agents', `#/agents/${encodeURIComponent(agent)}`, `#/conflicts/${conflicts[0].id}`,
    `#/replay/task/${encodeURIComponent('<img src=x onerror=alert(1)>')}`, ...recorded.map((one) => `#/live?unit=${one.memory_unit_id}`)];
  for (const hash of hashes) {
    await visit(page, hub.url, hash);
    await page.locator('.event, .unit-row, .loom-canvas, .agent-card, .stage').first().waitFor();
    if (hash.includes('unit=')) await page.locator('.panel .said').first().waitFor();
    const state = await page.evaluate(() => ({
      owned: window.owned, strange: document.querySelectorAll('#app img, #app script, #app b[onmouseover], #app iframe').length,
      wide: document.documentElement.scrollWidth > innerWidth, override: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent),
    }));
    assert.deepEqual(state, { owned: undefined, strange: 0, wide: false, override: false }, hash);
  }
  await visit(page, hub.url, `#/live?unit=${recorded[4].memory_unit_id}`);
  await page.getByRole('button', { name: /more characters/ }).click();
  await page.getByRole('button', { name: 'Show less' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('the keyboard reaches everything', async (t) => {
  const { hub, page } = await staged(t);
  await hub.demo();
  await visit(page, hub.url, '#/live');
  await page.locator('.event').first().waitFor();
  await page.keyboard.press('2');
  await page.locator('.unit-row').first().waitFor();
  await page.locator('.unit-row a[data-main]').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('j');
  await assertEventually(async () => assert.equal(await page.evaluate(() => document.activeElement.closest('[data-at]')?.dataset.at), '2'));
  await page.keyboard.press('Enter');
  await page.locator('.panel').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.panel').waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('type')), 'search');
  await page.keyboard.press('Tab');
  await page.locator('.main').focus();
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.goto(`${hub.url}/#/memory?view=graph`);
  await page.locator('.loom-canvas[data-ties]:not([data-ties="0"])').focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('.panel').waitFor();
});

test('a replay is played to its end', async (t) => {
  const { hub, page } = await staged(t);
  await hub.demo();
  await visit(page, hub.url, '#/replay/task/task-sizing-1');
  await page.locator('.timeline li.now').waitFor();
  const all = await page.locator('.timeline li').count();
  assert.ok(all > 5);
  await page.getByLabel('Pace').selectOption('450');
  const play = page.getByRole('button', { name: 'Play', exact: true });
  await play.click();
  await page.locator('.timeline li.later').first().waitFor();
  await play.waitFor();
  assert.equal(await page.locator('.timeline li.later').count(), 0);
});

test('a search puts what says it before what stands next to it', async (t) => {
  const { hub, page } = await staged(t);
  await hub.demo();
  await visit(page, hub.url, '#/memory?q=how fast does the market grow');
  await page.locator('.unit-row .score').first().waitFor();
  const rows = await page.locator('.unit-row .event-main > .line:first-child').allTextContents();
  const place = (words) => {
    const at = rows.findIndex((row) => row.includes(words));
    assert.ok(at >= 0, `${words} is not among ${rows.join(' | ')}`);
    return at;
  };
  assert.equal(place('How fast does the market'), 0);
  // Relations lift this one above all others in an agent's context: it blocks the decision that is asked about.
  assert.ok(place('Recounted with the filings') < place('Payroll data of the Nordics'));
  const scores = (await page.locator('.unit-row .score').allTextContents()).map((text) => Number(text.replace('closeness ', '')));
  assert.deepEqual(scores, [...scores].sort((a, b) => b - a));
});

test('the graph is zoomed by wheel and keys, gently and about what one looks at', async (t) => {
  const { hub, page } = await staged(t);
  await hub.demo();
  await visit(page, hub.url, '#/memory?view=graph');
  const canvas = page.locator('.loom-canvas[data-ties]:not([data-ties="0"])');
  await canvas.waitFor();
  const zoom = async () => Number(await canvas.getAttribute('data-zoom'));
  await assertEventually(async () => assert.ok(await zoom() > 0));
  const first = await zoom();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, -100);
  // One notch is one sixth, whatever the library would make of it.
  await assertEventually(async () => assert.ok(Math.abs(await zoom() / first - Math.exp(0.15)) < 0.01, String(await zoom() / first)));
  await page.mouse.wheel(0, 100);
  await assertEventually(async () => assert.ok(Math.abs(await zoom() - first) < 0.01));
  await canvas.focus();
  await page.keyboard.press('+');
  await assertEventually(async () => assert.ok(Math.abs(await zoom() / first - 1.25) < 0.01));
  await page.keyboard.press('End');
  await page.locator('.panel').waitFor();
  assert.ok(await page.locator('.panel h2.id').textContent());
  await canvas.focus();
  await page.keyboard.press('0');
  // Beside the panel there is less room for all of it.
  await assertEventually(async () => assert.ok(await zoom() < first));
});

test('pausing holds the list still, and nothing is missed after', async (t) => {
  const { hub, page } = await staged(t);
  await hub.register('ann');
  await visit(page, hub.url, '#/live');
  await hub.record('ann', 'one');
  await page.getByText('one', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await hub.record('ann', 'two');
  await page.getByRole('button', { name: 'Resume · 1 new' }).waitFor();
  assert.equal(await page.getByText('two', { exact: true }).count(), 0);
  await page.getByRole('button', { name: /Resume/ }).click();
  await page.getByText('two', { exact: true }).waitFor();
});

test('thousands of events keep the page small and whole', async (t) => {
  const { hub, page } = await staged(t);
  const agents = Array.from({ length: 8 }, (_, n) => `flood-${n}`);
  for (const agent of agents) await hub.register(agent);
  await visit(page, hub.url, '#/live');
  await Promise.all(agents.map(async (agent) => {
    for (let n = 0; n < 400; n += 1) await hub.record(agent, `${agent} says ${n}`);
  }));
  const { epoch } = await hub.status();
  await assertEventually(async () => assert.equal(await page.evaluate(() => document.querySelector('.event .epoch').textContent), `epoch ${epoch}`));
  const { rows, setsize } = await page.evaluate(() => ({
    rows: document.querySelectorAll('.event').length, setsize: Number(document.querySelector('[aria-setsize]').getAttribute('aria-setsize')),
  }));
  assert.ok(rows < 80, `${rows} rows are drawn`);
  // 3,200 records and 8 that joined.
  assert.equal(setsize, 3_208);
  await page.goto(`${hub.url}/#/memory`);
  await page.locator('.unit-row').first().waitFor();
  await page.locator('.virtual').evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await assertEventually(async () => assert.ok(Number(await page.locator('.row').first().getAttribute('aria-setsize')) >= 400));
});

test('the page works behind a path prefix', async (t) => {
  const { hub, page, complaints } = await staged(t);
  await hub.demo();
  const target = new URL(hub.url);
  const proxy = createServer((incoming, outgoing) => {
    const path = incoming.url.replace(/^\/team\/hub/, '');
    if (path === incoming.url) return outgoing.writeHead(404).end();
    const onward = request({ host: target.hostname, port: target.port, path, method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  proxy.on('upgrade', (incoming, socket, head) => {
    const onward = connect(Number(target.port), target.hostname, () => {
      const headers = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}\r\n`).join('');
      onward.write(`GET ${incoming.url.replace(/^\/team\/hub/, '')} HTTP/1.1\r\n${headers}\r\n`);
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    for (const one of [socket, onward]) one.on('error', () => { socket.destroy(); onward.destroy(); });
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => { proxy.closeAllConnections(); proxy.close(); });
  await visit(page, `http://127.0.0.1:${proxy.address().port}/team/hub`, '#/memory?view=graph');
  await page.locator('.loom-canvas[data-ties]:not([data-ties="0"])').waitFor();
  assert.deepEqual(complaints, []);
});

test('the page weighs at most 400 KB', () => {
  const folder = join(web, 'dist/assets');
  const files = readdirSync(folder);
  const weight = (name) => statSync(join(folder, files.includes(`${name}.gz`) ? `${name}.gz` : name)).size;
  const whole = files.filter((name) => !/\.(br|gz)$/.test(name)).reduce((sum, name) => sum + weight(name), 0);
  assert.ok(whole <= 400_000, `${whole} bytes`);
});
