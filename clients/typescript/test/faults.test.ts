/** Peers that are away or no hubs, addresses that are none, and the parts that need no peer. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { test, type TestContext } from "node:test";

import { readAddress } from "../src/address.js";
import { Backoff, CAP_MS, FIRST_MS } from "../src/backoff.js";
import { Identity } from "../src/identity.js";
import { isAfter, readCursor } from "../src/inbox.js";
import { AddressError, AkashikError, Client, ProtocolError, Refused, Unreachable } from "../src/index.js";
import { findWebSocket } from "../src/socket.js";

async function answering(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("nobody there is said at once", async () => {
  const free = createTcpServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as AddressInfo;
  free.close();
  await once(free, "close");
  await assert.rejects(Client.connect(`http://127.0.0.1:${port}`, "ann"), (error: Error) => {
    return error instanceof Unreachable && /akashik serve/.test(error.message);
  });
});

test("a page of a proxy is no hub", async (t) => {
  const page = "<!doctype html><title>Welcome</title>";
  const url = await answering(t, (_, response) => response.writeHead(200).end(page));
  await assert.rejects(Client.connect(url, "ann"), (error: Error) => {
    return error instanceof ProtocolError && /status 200.*Welcome/.test(error.message);
  });
  const moved = await answering(t, (_, response) => response.writeHead(302, { Location: "/" }).end());
  await assert.rejects(Client.connect(moved, "ann"), (error: Error) => {
    return error instanceof ProtocolError && /status 302/.test(error.message);
  });
  const away = await answering(t, (_, response) => response.writeHead(502).end(page));
  await assert.rejects(Client.connect(away, "ann"), (error: Error) => {
    return error instanceof Unreachable && /status 502/.test(error.message);
  });
  const body = { code: "TOO_EARLY", message: "m", recoverable: true, suggested_action: "s" };
  const later = await answering(t, (_, response) => response.writeHead(425).end(JSON.stringify(body)));
  await assert.rejects(Client.connect(later, "ann"), (error: Error) => {
    return error instanceof Refused && error.code === "TOO_EARLY" && error.recoverable;
  });
});

test("a token that is none, and a WebSocket that cannot be had, are said", async () => {
  await assert.rejects(Client.connect("http://127.0.0.1:1", "ann", { token: "no token" }), ProtocolError);
  const given = class {};
  assert.equal(await findWebSocket(given as never), given);
  assert.equal(typeof (await findWebSocket()), "function");
});

test("every form of an address is read", () => {
  for (const [text, websocket] of [
    ["http://127.0.0.1:7420", "ws://127.0.0.1:7420/v1/ws"],
    ["ws://localhost:7420/", "ws://localhost:7420/v1/ws"],
    ["HTTP://hub.example", "ws://hub.example/v1/ws"],
    ["https://hub.example", "wss://hub.example/v1/ws"],
    ["http://[::1]:7420/v1/", "ws://[::1]:7420/v1/ws"],
    ["ws://h:1/v1/ws", "ws://h:1/v1/ws"],
    ["http://h:1/v1/fields/lab-2/ws", "ws://h:1/v1/fields/lab-2/ws"],
    ["http://h:1/hub/v1/fields/x", "ws://h:1/hub/v1/fields/x/ws"],
  ] as const) {
    assert.equal(readAddress(text).websocket, websocket);
    assert.match(readAddress(text, "f").status, /^https?:.*\/v1\/fields\/f\/field\/status$/);
  }
});

test("what is no address is refused, and why", async () => {
  for (const [text, why] of [
    ["127.0.0.1:7420", /begin with/],
    ["ftp://h", /begin with/],
    ["http://", /malformed/],
    ["http://u:p@h", /credentials/],
    ["http://h:70000", /malformed/],
    ["http://h/?x", /query/],
    ["http://h/v1/units", /fields\/NAME/],
    ["http://h/v1/fields/a.b", /Field name/],
  ] as const) {
    await assert.rejects(Client.connect(text, "ann"), (error: Error) => {
      return error instanceof AddressError && error instanceof AkashikError && why.test(error.message);
    });
  }
});

test("delays double up to the cap with the jitter behind it", () => {
  const backoff = new Backoff();
  const delays = Array.from({ length: 200 }, () => backoff.next());
  for (const [n, delay] of delays.entries()) {
    const middle = Math.min(FIRST_MS * 2 ** n, CAP_MS);
    assert(delay >= middle / 2 && delay <= middle * 1.5, `delay ${n}: ${delay}`);
  }
  assert(Math.max(...delays) > CAP_MS);
  backoff.reset();
  assert(backoff.next() <= FIRST_MS * 1.5);
});

test("an identity keeps its clock and knows its messages", () => {
  const [one, other] = [new Identity("ann", "s"), new Identity("ann", null)];
  for (const epoch of [41, 7, 2 ** 53, -1, "99", 50.5]) one.saw(epoch);
  const frame = JSON.parse(one.frame(7, "RECORD", '{"x":1}')) as { id: string };
  assert.deepEqual(frame, {
    ...{ protocol: "akashik", version: "0.1.0", id: frame.id, operation: "RECORD", agent_id: "ann" },
    ...{ session_id: "s", epoch: 41, payload: { x: 1 } },
  });
  assert.deepEqual([one.number(frame.id), other.number(frame.id), one.number("push-s-4.0")], [7, undefined, undefined]);
});

test("cursors order as numbers", () => {
  assert(isAfter(readCursor("10.2"), readCursor("9.10")) && isAfter(readCursor("10.11"), readCursor("10.2")));
  assert(!isAfter(readCursor("10.2"), readCursor("10.2")));
  for (const wrong of ["", "1", "1.", ".1", "-1.0", "1.0.0", 1.5, null]) {
    assert.throws(() => readCursor(wrong), ProtocolError);
  }
});
