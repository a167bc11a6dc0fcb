/** Streams of notifications against a real hub that dies, agents that fail, subscriptions that end. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { WebSocket } from "ws";

import { Client, type WebSocketLike } from "../src/index.js";
import { DEADLINE_MS, finding, following, Hub, refused, rest, soon } from "./hub.js";
import { BrowserWebSocket } from "./peer.js";

const units = (told: { memory_unit_id: string | null }[]) => told.map((found) => found.memory_unit_id);
const inOrder = (ids: string[]) => ids.sort((one, other) => Number(one.slice(4)) - Number(other.slice(4)));

test("a subscription brings what it asks for, and can be taken up again", async (t) => {
  const hub = await Hub.start(t);
  const [ann, bob] = [await hub.agent(t, "ann"), await hub.agent(t, "bob")];
  const events = ["memory.recorded" as const, "conflict.detected" as const];
  const news = await ann.subscribe({ id: "s", events, include_unit: true });
  assert.deepEqual(news.subscription.events, events);
  assert.deepEqual((await ann.subscriptions()).map(({ id }) => id), ["s"]);
  const first = (await bob.record(finding("It grows."))).memory_unit_id;
  for await (const told of news) {
    assert.deepEqual([told.event, told.memory_unit_id, told.agent_id], ["memory.recorded", first, "bob"]);
    assert.equal(told.memory_unit?.content, "It grows.");
    assert.equal(news.cursor, told.cursor);
    break;
  }
  assert.deepEqual(await rest(news), [], "leaving the loop closes it");
  const relations = [{ type: "contradicts" as const, target_id: first }];
  const second = (await bob.record({ ...finding("It shrinks."), relations })).memory_unit_id;
  const again = await ann.subscribe({ id: "s", resume_after: news.cursor });
  const [recorded, detected] = await following(again, 2);
  assert.deepEqual([recorded?.memory_unit_id, detected?.event], [second, "conflict.detected"]);
  await ann.unsubscribe("s");
  assert.deepEqual(await rest(again), []);

  const aborting = new AbortController();
  const third = await ann.subscribe({ events }, { signal: aborting.signal });
  aborting.abort();
  assert.deepEqual(await rest(third), [], "aborting ends the stream");
});

test("authors hear of resolutions without a subscription", async (t) => {
  const hub = await Hub.start(t);
  const [ann, bob] = [await hub.agent(t, "ann"), await hub.agent(t, "bob")];
  const direct = ann.direct();
  const first = (await ann.record(finding("It grows."))).memory_unit_id;
  const relations = [{ type: "contradicts" as const, target_id: first }];
  const conflict = (await bob.record({ ...finding("It shrinks."), relations })).conflicts_detected[0]!;
  await bob.merge({ conflict_id: conflict, strategy: "last_write_wins", resolution: { rationale: "r" } });
  const [told] = await following(direct, 1);
  assert.deepEqual([told?.event, told?.conflict_id], ["conflict.resolved", conflict]);
});

test("nothing is lost or repeated over two deaths of the hub", async (t) => {
  const [tasks, each] = [8, 25];
  const hub = await Hub.start(t);
  const [ann, bob] = [await hub.agent(t, "ann"), await hub.agent(t, "bob")];
  const news = await ann.subscribe({ id: "s", events: ["memory.recorded"] });
  const recorded: string[] = [];
  const write = async (task: number) => {
    for (let n = 0; n < each; n += 1) recorded.push((await bob.record(finding(`${task}/${n}`))).memory_unit_id);
  };
  const writing = Promise.all(Array.from({ length: tasks }, (_, task) => write(task)));
  const told: (string | null)[] = [];
  for (const deaths of [1, 2]) {
    told.push(...units(await following(news, (deaths * tasks * each) / 4 - told.length)));
    // Everybody writes without a pause, so messages are in flight now.
    await hub.end("SIGKILL");
    await hub.startAgain();
  }
  await writing;
  told.push(...units(await following(news, tasks * each - told.length)));
  assert.equal(new Set(recorded).size, tasks * each, "no two records share a unit");
  assert.deepEqual(told, inOrder(recorded), "nothing lost, nothing repeated, in order");
  const all = await bob.attune({ scope: { role: "r", max_units: 1_000, include_own: true } });
  assert.equal(new Set(all.record.map((found) => found.memory_unit.content)).size, tasks * each);
  assert.equal(all.record.length, tasks * each, "done once");
});

test("a restart in good order is no end", async (t) => {
  const hub = await Hub.start(t);
  const [ann, bob] = [await hub.agent(t, "ann"), await hub.agent(t, "bob")];
  const news = await ann.subscribe({ events: ["memory.recorded"] });
  await hub.end("SIGTERM");
  const call = bob.record(finding("while it is away"));
  await hub.startAgain();
  assert.deepEqual(units(await following(news, 1)), [(await call).memory_unit_id]);
});

test("an agent that failed meanwhile is registered again", async (t) => {
  const hub = await Hub.start(t, "--grace-seconds", "1");
  let stayAway: Promise<void> = Promise.resolve();
  const sockets: WebSocket[] = [];
  // A WebSocket that can be cut, and that connects no sooner than it may.
  class Cable extends WebSocket {
    constructor(url: string, protocols?: string[]) {
      super(url, protocols, { finishRequest: (request) => void stayAway.then(() => request.end()) });
      sockets.push(this);
    }
  }
  const ann = await hub.agent(t, "ann", { WebSocket: Cable as unknown as new () => WebSocketLike });
  const bob = await hub.agent(t, "bob");
  const news = await ann.subscribe({ id: "s", events: ["memory.recorded"] });
  const failed = await bob.subscribe({ events: ["agent.failed"] });
  let comeBack = () => {};
  stayAway = new Promise((resolve) => (comeBack = resolve));
  sockets[0]?.terminate();
  assert.equal((await following(failed, 1))[0]?.agent_id, "ann");
  const unit = (await bob.record(finding("while ann is gone"))).memory_unit_id;
  comeBack();
  assert.deepEqual(units(await following(news, 1)), [unit]);
  assert.equal((await ann.detect()).status, "ok");
});

test("a subscription that is ended elsewhere ends the stream", async (t) => {
  const hub = await Hub.start(t);
  const ann = await hub.agent(t, "ann", { lookEveryMs: 50 });
  const twin = await Client.connect(hub.url, "ann");
  t.after(() => twin.close());
  const news = await ann.subscribe({ id: "s", events: ["memory.recorded"] });
  await twin.unsubscribe("s");
  await refused("SUBSCRIPTION_NOT_FOUND", soon("the end", news.next()));
  assert.deepEqual(await rest(news), []);
});

test("two clients of one agent each get everything", async (t) => {
  const hub = await Hub.start(t);
  const [ann, bob] = [await hub.agent(t, "ann"), await hub.agent(t, "bob")];
  const twin = await Client.connect(hub.url, "ann");
  t.after(() => twin.close());
  const one = await ann.subscribe({ id: "s", events: ["memory.recorded"] });
  const other = await twin.subscribe({ id: "s" });
  const recorded: string[] = [];
  for (let n = 0; n < 20; n += 1) recorded.push((await bob.record(finding(`${n}`))).memory_unit_id);
  assert.deepEqual(units(await following(one, 20)), recorded);
  assert.deepEqual(units(await following(other, 20)), recorded);
  const said = await Promise.all([ann, twin].map((client) => client.record(finding("the same"))));
  assert.notEqual(said[0]?.memory_unit_id, said[1]?.memory_unit_id);
  const again = await ann.subscribe({ id: "s" });
  assert.deepEqual(await rest(one), [], "a client has one stream for each subscription");
  again.close();
});

for (const [kind, options] of [
  ["ws", { WebSocket: WebSocket as unknown as new () => WebSocketLike }],
  ["a WebSocket as browsers have it", { WebSocket: BrowserWebSocket as unknown as new () => WebSocketLike }],
  ["the platform's own", {}],
] as const) {
  test(`a taker far behind gets everything: ${kind}`, { timeout: 2 * DEADLINE_MS }, async (t) => {
    const count = 3_000;
    const hub = await Hub.start(t);
    const [ann, bob] = [await hub.agent(t, "ann", options), await hub.agent(t, "bob")];
    const news = await ann.subscribe({ events: ["memory.recorded"] });
    const answers = await Promise.all(Array.from({ length: count }, (_, n) => bob.record(finding(`${n}`))));
    assert.equal((await ann.detect()).status, "ok", "calls come through beside a full queue");
    const recorded = inOrder(answers.map((answer) => answer.memory_unit_id));
    assert.deepEqual(units(await following(news, count)), recorded);
  });
}
