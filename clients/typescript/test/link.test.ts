/** The client against a scripted peer: what it sends, in which order, after what. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { WebSocket } from "ws";

import { Client, type ClientOptions, Disconnected, ProtocolError, Unreachable, type WebSocketLike } from "../src/index.js";
import { QUEUED_MAX } from "../src/inbox.js";
import { IN_FLIGHT_MAX, REPEATS_MAX } from "../src/link.js";
import { following, refused, rest, soon } from "./hub.js";
import { BrowserWebSocket, type Line, no, Peer, subscribed } from "./peer.js";

/** A client, its peer, and their first connection. */
async function meet(t: TestContext, options: ClientOptions = {}) {
  const peer = await Peer.play(t);
  const client = await Client.connect(peer.url, "ann", options);
  t.after(() => client.close());
  return { peer, client, line: await peer.accept() };
}

async function attach(client: Client, line: Line, cursor = "1.0", more: object = {}) {
  const call = client.subscribe({ id: "s", events: ["memory.recorded"] });
  const request = await line.request();
  line.reply(request, subscribed(request, cursor, more));
  return call;
}

/** Sends something that the peer does not answer of itself. */
const ask = (client: Client, n: number, signal?: AbortSignal) =>
  client.send("RECORD", { n }, signal === undefined ? {} : { signal });

const epochs = async (...of: Parameters<typeof following>) => (await following(...of)).map(({ epoch }) => epoch);

test("unanswered messages are sent again as they were", async (t) => {
  const { peer, client, line } = await meet(t);
  const calls = [ask(client, 0), ask(client, 1), ask(client, 2)];
  const first = [await line.request(), await line.request(), await line.request()];
  line.reply(first[1]!, { done: 1 }, 7);
  assert.deepEqual(await calls[1], { done: 1 });
  line.cut();
  const second = await peer.accept();
  const again = [await second.request(), await second.request()];
  assert.deepEqual(again, [first[0], first[2]], "same ids, same order, nothing answered twice");
  for (const request of again) second.reply(request, {}, 8);
  await Promise.all(calls);
  const following = ask(client, 9);
  const request = await second.request();
  assert.deepEqual([request.epoch, client.epoch], [8, 8], "the greatest epoch seen is sent");
  second.reply(request, {}, 3);
  await following;
  assert.equal(client.epoch, 8);
});

test("an idle agent that returns says so, and what is no envelope disturbs nobody", async (t) => {
  const { peer, client, line } = await meet(t);
  const call = ask(client, 1);
  line.reply(await line.request(), {});
  await call;
  line.cut();
  const second = await peer.accept();
  const presence = await second.request();
  assert.deepEqual([presence.operation, presence.agent_id], ["ATTUNE", "ann"]);
  second.reply(presence, {}, 2);
  second.push("sub-1", 2);
  for (const junk of ["<html>proxy</html>", "[]", '{"id":1}', '{"id":"x","payload":[]}']) second.socket.send(junk);
  second.socket.send(Buffer.from([1, 2]));
  const other = ask(client, 2);
  second.reply(await second.request(), { ok: 1 });
  assert.deepEqual(await other, { ok: 1 });
});

test("patience ends", async (t) => {
  const { client, line } = await meet(t, { timeoutMs: 50 });
  await assert.rejects(ask(client, 1), (error: Error) => {
    return error instanceof Unreachable && /no answer to RECORD within 50 ms/.test(error.message);
  });
  assert.equal((await line.request()).payload["n"], 1);
});

test("a call that is aborted is forgotten", async (t) => {
  const { peer, client, line } = await meet(t);
  const aborting = new AbortController();
  const call = ask(client, 1, aborting.signal);
  await line.request();
  aborting.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  await assert.rejects(ask(client, 2, aborting.signal), /enough/, "nothing is sent for one that is aborted already");
  line.cut();
  const second = await peer.accept();
  const other = ask(client, 3);
  const request = await second.request();
  assert.equal(request.payload["n"], 3, "neither is sent again");
  second.reply(request, {});
  await other;
});

test("what is beyond the bound waits its turn, and closing fails what waits", async (t) => {
  const { client, line } = await meet(t);
  const calls = Array.from({ length: IN_FLIGHT_MAX + 2 }, (_, n) => ask(client, n));
  const requests = [];
  while (requests.length < IN_FLIGHT_MAX) requests.push(await line.request());
  line.reply(requests[0]!, {});
  const following = await line.request();
  assert.equal(following.payload["n"], IN_FLIGHT_MAX);
  const ends = Promise.allSettled(calls);
  await client.close();
  for (const [n, end] of (await ends).entries()) {
    if (n === 0) assert.equal(end.status, "fulfilled");
    else assert(end.status === "rejected" && end.reason instanceof Disconnected, `call ${n}`);
  }
  assert.equal(await soon("the end", line.closed), 1000);
  assert.equal(client.connection, "closed");
  await assert.rejects(client.detect(), Disconnected);
  await client.close();
});

test("closing leaves what is queued", async (t) => {
  const { client, line } = await meet(t);
  const news = await attach(client, line);
  line.push("s", 2);
  const call = ask(client, 1);
  line.reply(await line.request(), {});
  await call;
  await client.close();
  assert.deepEqual((await rest(news)).map(({ epoch }) => epoch), [2]);
});

test("a client that is closed while it tries to return ends at once", async (t) => {
  const { client, line } = await meet(t);
  const call = ask(client, 1);
  await line.request();
  line.cut();
  await soon("the loss", (async () => {
    while (client.connection !== "lost") await new Promise((resolve) => setImmediate(resolve));
  })());
  const end = assert.rejects(call, Disconnected);
  await client.close();
  await end;
});

test("a client that is closed while it connects ends at once", async (t) => {
  const { peer, client, line } = await meet(t);
  peer.refuseToShakeHands();
  line.cut();
  await peer.asked;
  await soon("the end", client.close());
});

test("a client that is closed in the moment of its return ends", async (t) => {
  let returned = (_: Promise<void>) => {};
  const closing = new Promise<Promise<void>>((resolve) => (returned = (end) => resolve(end)));
  let isSecond = false;
  // Closes its client when everybody knows that it is open, and nobody has acted on it.
  class Closing extends WebSocket {
    constructor(url: string, protocols?: string[]) {
      super(url, protocols);
      if (isSecond) this.addEventListener("open", () => queueMicrotask(() => returned(client.close())));
      isSecond = true;
    }
  }
  const { client, line } = await meet(t, { WebSocket: Closing as unknown as new () => WebSocketLike });
  line.cut();
  await soon("the end", closing);
});

test("what ends every connection is given up", async (t) => {
  t.mock.method(Math, "random", () => -0.5);
  const { peer, client, line } = await meet(t);
  const end = assert.rejects(ask(client, 1), /every connection was lost/);
  await line.request();
  line.cut();
  for (let n = 0; n < REPEATS_MAX; n += 1) {
    const another = await peer.accept();
    await another.request();
    another.cut();
  }
  await end;
});

test("close codes fail what would be wrong to repeat", async (t) => {
  const { peer, client, line } = await meet(t);
  const small = ask(client, 1);
  const big = client.send("RECORD", { n: "x".repeat(5_000) });
  await line.request();
  await line.request();
  line.socket.close(1009);
  await refused("MESSAGE_TOO_LARGE", big);
  const second = await peer.accept();
  await second.request();
  const end = assert.rejects(small, /policy/);
  second.socket.close(1008, "policy");
  await end;
});

test("a stream resumes by its cursor", async (t) => {
  const { peer, client, line } = await meet(t);
  const news = await attach(client, line);
  for (const epoch of [2, 3, 3, 2]) line.push("s", epoch);
  assert.deepEqual(await epochs(news, 2), [2, 3]);
  line.cut();
  const second = await peer.accept();
  const again = await second.request();
  assert.deepEqual(again.payload["subscription"], { id: "s", resume_after: "3.0" });
  second.push("s", 9); // of the attachment before: not to be taken
  second.reply(again, subscribed(again, "3.0"));
  second.push("s", 3);
  second.push("s", 4);
  assert.deepEqual(await epochs(news, 1), [4]);
  assert.equal(news.cursor, "4.0");
});

test("a debounced stream may repeat its cursors", async (t) => {
  const { client, line } = await meet(t);
  const news = await attach(client, line, "1.0", { debounce_ms: 5 });
  for (const epoch of [2, 2, 3]) line.push("s", epoch);
  assert.deepEqual(await epochs(news, 3), [2, 2, 3]);
});

test("a failed agent returns as who it was, once", async (t) => {
  const { peer, client, line } = await meet(t);
  const call = client.register({ role: "researcher", interests: ["x"] });
  const request = await line.request();
  line.reply(request, { status: "registered", new_key: 1 });
  assert.equal("new_key" in (await call), true, "unknown keys are kept");
  const news = await attach(client, line);
  line.cut();
  const second = await peer.accept();
  second.reply(await second.request(), no("AGENT_NOT_REGISTERED", { status: "failed" }));
  const register = await second.request();
  assert.deepEqual([register.operation, register.payload], ["REGISTER", request.payload]);
  assert.notEqual(register.id, request.id);
  second.reply(register, { status: "registered" });
  const resumed = await second.request();
  second.reply(resumed, subscribed(resumed, "1.0"));
  second.push("s", 5);
  assert.deepEqual(await epochs(news, 1), [5]);
  second.cut();
  const third = await peer.accept();
  third.reply(await third.request(), no("AGENT_NOT_REGISTERED", { status: "failed" }));
  third.reply(await third.request(), no("AGENT_ID_TAKEN"));
  third.reply(await third.request(), no("AGENT_NOT_REGISTERED", { status: "failed" }));
  await refused("AGENT_NOT_REGISTERED", soon("the end", news.next()));
});

test("a hub that cannot attach now is asked again", async (t) => {
  const { peer, client, line } = await meet(t);
  const news = await attach(client, line);
  line.cut();
  const second = await peer.accept();
  second.reply(await second.request(), no("OVERLOADED"));
  const again = await second.request();
  second.reply(again, subscribed(again, "1.0"));
  second.push("s", 2);
  assert.deepEqual(await epochs(news, 1), [2]);
});

test("a hub that answers nothing any more is left", async (t) => {
  const { peer, client, line } = await meet(t, { lookEveryMs: 30, timeoutMs: 30_000 });
  const news = await attach(client, line);
  assert.deepEqual((await line.request()).payload, { action: "list" });
  // No answer: the way to the hub may be dead, though nothing says so.
  const second = await peer.accept();
  const again = await second.request();
  assert.deepEqual(again.payload["subscription"], { id: "s", resume_after: "1.0" });
  second.reply(again, subscribed(again, "1.0"));
  second.push("s", 2);
  assert.deepEqual(await epochs(news, 1), [2]);
});

test("an unreadable notification ends the stream", async (t) => {
  const { client, line } = await meet(t);
  const news = await attach(client, line);
  line.socket.send('{"id":"push-s-2.0","epoch":2,"payload":{"summary":7}}');
  await assert.rejects(soon("the end", news.next()), ProtocolError);
});

test("a slow taker is bounded and loses nothing", async (t) => {
  const last = QUEUED_MAX * 3;
  const { client, line } = await meet(t, { WebSocket: BrowserWebSocket as unknown as new () => WebSocketLike });
  const news = await attach(client, line, "0.0");
  let pushed = 0;
  const push = (after: number) => {
    for (let epoch = after + 1; epoch <= last; epoch += 1, pushed += 1) line.push("s", epoch);
  };
  push(0);
  const call = ask(client, 1);
  line.reply(await line.request(), {});
  await call; // everything was read before, and what did not fit was let go
  const hub = (async () => {
    for (;;) {
      const request = await line.request().catch(() => undefined);
      if (request === undefined) return;
      const after = Number((request.payload["subscription"]["resume_after"] as string).split(".")[0]);
      line.reply(request, subscribed(request, `${after}.0`));
      push(after);
    }
  })();
  assert.deepEqual(await epochs(news, last), Array.from({ length: last }, (_, n) => n + 1));
  assert(pushed > last, "what was let go was asked for again");
  await client.close();
  void hub;
});

test("with ws, a client that can take nothing leaves the connection unread", async (t) => {
  const count = QUEUED_MAX * 8;
  const { client, line } = await meet(t, { WebSocket: WebSocket as unknown as new () => WebSocketLike });
  const news = await attach(client, line, "0.0");
  const summary = "x".repeat(10_000); // 80 MB in all: more than any buffer between the two
  for (let epoch = 1; epoch <= count; epoch += 1) line.push("s", epoch, summary);
  const told: number[] = [];
  while (told.length < count) {
    told.push(...(await epochs(news, 1)));
    // One at a time, while several come with each reading of the socket.
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(told, Array.from({ length: count }, (_, n) => n + 1), "nothing had to be asked for again");
});

test("direct notifications are bounded, and a second taker ends the first", async (t) => {
  const { client, line } = await meet(t);
  const direct = client.direct();
  for (let epoch = 1; epoch <= QUEUED_MAX + 5; epoch += 1) line.push("direct", epoch);
  const call = ask(client, 1);
  line.reply(await line.request(), {});
  await call;
  assert.equal(direct.missed, 5);
  const second = client.direct();
  assert.equal((await rest(direct)).length, QUEUED_MAX);
  second.close();
  assert.deepEqual(await rest(second), []);
});
