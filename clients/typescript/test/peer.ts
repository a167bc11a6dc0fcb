/** A peer that the test plays itself, where the very frames matter. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

import { WebSocket, WebSocketServer } from "ws";

import { soon } from "./hub.js";

export interface Frame {
  id: string;
  operation: string;
  agent_id: string;
  epoch: number;
  payload: Record<string, any>;
}

/** What can be awaited one by one. */
class Queue<T> {
  #items: T[] = [];
  #takers: ((item: T) => void)[] = [];

  put(item: T): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#items.push(item);
    else taker(item);
  }

  async take(what: string): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return item;
    return soon(what, new Promise<T>((resolve) => this.#takers.push(resolve)));
  }
}

/** One connection to the peer. */
export class Line {
  readonly closed: Promise<number>;
  readonly #frames = new Queue<Frame>();

  constructor(readonly socket: WebSocket) {
    socket.on("message", (data: Buffer) => this.#frames.put(JSON.parse(data.toString()) as Frame));
    this.closed = new Promise((resolve) => socket.on("close", resolve));
  }

  async request(): Promise<Frame> {
    return this.#frames.take("a request");
  }

  reply(request: Frame, payload: object, epoch = 1): void {
    this.socket.send(JSON.stringify({ ...request, epoch, payload }));
  }

  push(subscription: string, epoch: number, summary = ""): void {
    const cursor = `${epoch}.0`;
    const payload = { subscription_id: subscription, event: "memory.recorded", epoch, summary, cursor };
    this.socket.send(
      JSON.stringify({ id: `push-${subscription}-${cursor}`, operation: "SUBSCRIBE", epoch, payload }),
    );
  }

  /** Ends the connection as a broken wire would. */
  cut(): void {
    this.socket.terminate();
  }
}

export class Peer {
  url = "";
  /** A handshake came that was left unanswered. */
  readonly asked: Promise<void>;
  #isMute = false;
  #wasAsked = () => {};
  readonly #lines = new Queue<Line>();

  constructor() {
    this.asked = new Promise((resolve) => (this.#wasAsked = resolve));
  }

  static async play(context: TestContext): Promise<Peer> {
    const peer = new Peer();
    const server = new WebSocketServer({
      host: "127.0.0.1",
      port: 0,
      verifyClient: (_: unknown, verified: (result: boolean) => void) => {
        if (peer.#isMute) peer.#wasAsked();
        else verified(true);
      },
    });
    await once(server, "listening");
    server.on("connection", (socket) => peer.#lines.put(new Line(socket)));
    context.after(() => {
      for (const socket of server.clients) socket.terminate();
      server.close();
    });
    peer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return peer;
  }

  /** From now on connections are taken, and their handshakes left unanswered. */
  refuseToShakeHands(): void {
    this.#isMute = true;
  }

  async accept(): Promise<Line> {
    return this.#lines.take("a connection");
  }
}

/** Answers `subscribe`. */
export function subscribed(request: Frame, cursor: string, more: object = {}): object {
  const subscription = { id: "sub-1", events: ["memory.recorded"], debounce_ms: 0, ...more };
  return { status: "ok", subscription: { ...subscription, id: request.payload["subscription"].id }, cursor };
}

/** An error body. */
export function no(code: string, details: object = {}): object {
  return { code, message: "m", operation: "", recoverable: true, suggested_action: "s", details };
}

/** A WebSocket as browsers have it: it cannot be left unread, nor ended without a goodbye. */
export class BrowserWebSocket extends WebSocket {}
Object.defineProperty(BrowserWebSocket.prototype, "pause", { value: undefined });
Object.defineProperty(BrowserWebSocket.prototype, "resume", { value: undefined });
Object.defineProperty(BrowserWebSocket.prototype, "terminate", { value: undefined });
