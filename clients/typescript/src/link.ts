/** The owner of the socket: sends what is asked for, hands out replies, returns when the hub was lost. */

import type { HubAddress } from "./address.js";
import type { Answered, Question } from "./attached.js";
import { Attached } from "./attached.js";
import { Backoff } from "./backoff.js";
import type { JsonObject } from "./errors.js";
import { AkashikError, Disconnected, isErrorBody, isObject, Refused, tooLarge } from "./errors.js";
import type { Identity } from "./identity.js";
import { byteLength, EPOCH_CEILING, writeJson } from "./identity.js";
import type { WebSocketConstructor, WebSocketLike } from "./socket.js";
import { drop, findWebSocket, openSocket } from "./socket.js";

/** Messages of one connection that may wait for their replies (wire, section 2). */
export const IN_FLIGHT_MAX = 256;
/** How many connections a message may see the end of. Calls usually run out of patience first. */
export const REPEATS_MAX = 10;
/** How long a closing handshake may take, milliseconds. */
const CLOSE_PATIENCE_MS = 1_000;
/** How long a client that can take nothing more leaves its connection unread while no call waits, milliseconds. */
const UNREAD_MAX_MS = 10_000;
/** How often the watch looks at what is due, milliseconds. */
const WATCH_EVERY_MS = 1_000;

/** A message that waits for its reply. */
export interface Call {
  operation: string;
  payload: string;
  resolve(answer: JsonObject): void;
  reject(why: unknown): void;
  /** What a good reply means for the client itself; done before the caller is told. */
  effect?: (answer: JsonObject) => void;
  number?: number;
  /** The whole frame, as it was first sent: a repeat must be the same message. */
  frame?: string;
  /** On how many connections it was sent again. */
  repeated: number;
}

/** How the connection stands: `lost` means that the client tries to return. */
export type Connection = "open" | "lost" | "closed";

interface Lost {
  code: number;
  reason: string;
}

/** What a link is made of. */
export interface LinkOptions {
  address: HubAddress;
  identity: Identity;
  token: string | undefined;
  WebSocket: WebSocketConstructor | undefined;
  lookEveryMs: number;
}

/** The owner of the socket. */
export class Link {
  readonly attached: Attached;
  connection: Connection = "closed";
  readonly #options: LinkOptions;
  readonly #backoff = new Backoff();
  #make: WebSocketConstructor | undefined;
  #socket: WebSocketLike | undefined;
  #pending = new Map<number, Call>();
  /** Calls beyond what may be in flight, in order. */
  #line = new Set<Call>();
  /** What the client itself has asked on the current connection. */
  #asked = new Map<number, Answered>();
  #looking = false;
  #lastHeard = 0;
  #lastPush = 0;
  /** The agent has been answered as a registered one, so a connection that returns should say so. */
  #joined = false;
  /** Since when the socket is left unread. */
  #unreadSince: number | undefined;
  #overdue = false;
  #over: AkashikError | undefined;
  #running: Promise<void> = Promise.resolve();
  /** Ends the current connection, or the pause before the next one. */
  #interrupt: () => void = () => {};

  constructor(options: LinkOptions) {
    this.#options = options;
    this.attached = new Attached({ room: () => this.#holdBack(), attach: () => this.#attach(false) });
  }

  /** Connects for the first time. */
  async open(): Promise<void> {
    this.#make = await findWebSocket(this.#options.WebSocket);
    const socket = await openSocket(this.#make, this.#options.address, this.#options.token);
    this.#running = this.#run(socket);
  }

  /** Closes the connection; calls that wait fail, streams end. */
  async close(): Promise<void> {
    this.#end(new Disconnected("the client was closed"));
    this.#interrupt();
    await this.#running;
  }

  /** Sends a message, at once or as soon as it may be in flight. */
  submit(call: Call): void {
    if (this.#over !== undefined) call.reject(this.#over);
    else if (this.#pending.size >= IN_FLIGHT_MAX) this.#line.add(call);
    else this.#enter(call);
  }

  /** Nobody waits for this call any more; the next one in line goes out. */
  forget(call: Call): void {
    this.#line.delete(call);
    if (call.number !== undefined) this.#pending.delete(call.number);
    for (const following of this.#line) {
      if (this.#pending.size >= IN_FLIGHT_MAX) break;
      this.#line.delete(following);
      this.#enter(following);
    }
  }

  #enter(call: Call): void {
    const number = this.#options.identity.nextNumber();
    try {
      call.frame = this.#options.identity.frame(number, call.operation, call.payload);
    } catch (error) {
      return call.reject(error);
    }
    call.number = number;
    this.#pending.set(number, call);
    this.#socket?.send(call.frame);
    // Whoever paused reads on: there is a reply to come.
    this.#holdBack();
  }

  #end(why: AkashikError): void {
    this.#over ??= why;
    this.connection = "closed";
    this.#failAll(why);
    this.attached.close();
  }

  #failAll(why: AkashikError): void {
    const calls = [...this.#pending.values(), ...this.#line];
    this.#pending.clear();
    this.#line.clear();
    for (const call of calls) call.reject(why);
  }

  // The life of connections.

  async #run(first: WebSocketLike): Promise<void> {
    let socket: WebSocketLike | undefined = first;
    while (socket !== undefined) {
      const lost = await this.#serve(socket);
      if (this.#over !== undefined) return;
      this.connection = "lost";
      this.#settle(lost);
      socket = await this.#reconnect();
    }
  }

  /** Speaks on one connection until it is lost, or the client is closed. */
  async #serve(socket: WebSocketLike): Promise<Lost> {
    this.connection = "open";
    const lost = new Promise<Lost>((resolve) => {
      socket.addEventListener("message", ({ data }) => {
        // What is heard of one that was given up belongs to nobody.
        if (this.#socket === socket) this.#take(data);
      });
      socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
      this.#interrupt = () => resolve({ code: 0, reason: "interrupted" });
    });
    if (this.#over === undefined) this.#begin(socket);
    // It may have been lost, or the client closed, between its opening and now.
    if (socket.readyState > 1 || this.#over !== undefined) this.#interrupt();
    const watch = setInterval(() => this.#watch(), Math.min(WATCH_EVERY_MS, this.#options.lookEveryMs));
    const end = await lost;
    clearInterval(watch);
    this.#socket = undefined;
    if (this.#over !== undefined) await goodbye(socket);
    else drop(socket);
    return end;
  }

  /** What a new connection begins with: subscriptions, then what is sent again, else a sign of life. */
  #begin(socket: WebSocketLike): void {
    this.#asked.clear();
    this.#looking = false;
    this.#overdue = false;
    this.#unreadSince = undefined;
    this.#lastHeard = this.#lastPush = Date.now();
    const worn = [...this.#pending.values()].filter((call) => call.repeated >= REPEATS_MAX);
    for (const call of worn) {
      call.reject(new Disconnected("every connection was lost before the hub answered this message"));
      this.forget(call);
    }
    this.#socket = socket;
    let isSilent = !this.#attach(true);
    for (const call of this.#pending.values()) {
      call.repeated += 1;
      if (call.frame !== undefined) socket.send(call.frame);
      isSilent = false;
    }
    if (isSilent && this.#joined) this.#ask(PRESENCE);
  }

  /** Tries until it succeeds, or the client is closed. Calls that come meanwhile wait. */
  async #reconnect(): Promise<WebSocketLike | undefined> {
    const { address, token } = this.#options;
    while (this.#over === undefined && this.#make !== undefined) {
      await new Promise<void>((resolve) => {
        const alarm = setTimeout(resolve, this.#backoff.next());
        this.#interrupt = () => {
          clearTimeout(alarm);
          resolve();
        };
      });
      if (this.#over !== undefined) return undefined;
      try {
        const stop = new AbortController();
        this.#interrupt = () => stop.abort();
        return await openSocket(this.#make, address, token, stop.signal);
      } catch (error) {
        if (error instanceof Refused && !error.recoverable) {
          this.#failAll(error);
          this.attached.endAll(error);
        }
      }
    }
    return undefined;
  }

  /** Fails what it would be wrong to send again after a close with this code. */
  #settle({ code, reason }: Lost): void {
    if (code === 1009) {
      const size = (call: Call): number => byteLength(call.frame ?? "");
      const calls = [...this.#pending.values()].sort((one, other) => size(other) - size(one));
      const largest = calls[0];
      if (largest === undefined) return;
      largest.reject(tooLarge(largest.operation, size(largest), this.#options.identity.messageMaxBytes));
      this.forget(largest);
    } else if (code === 1008 || code === 4001 || code === 4003) {
      // Policy, and the hub's own codes for who may not be here.
      this.#failAll(new Disconnected(`the hub closed the connection: ${code} ${reason}`));
    }
  }

  // Messages of the client's own.

  /** Attaches again what wants it; whether that was anything. */
  #attach(newConnection: boolean): boolean {
    if (this.#socket === undefined) return false;
    const questions = this.attached.again(newConnection);
    for (const question of questions) this.#ask(question);
    return questions.length > 0;
  }

  #ask({ operation, payload, answered }: Question): void {
    const number = this.#options.identity.nextNumber();
    if (answered !== undefined) this.#asked.set(number, answered);
    this.#socket?.send(this.#options.identity.frame(number, operation, writeJson(payload)));
    this.#holdBack();
  }

  /** Attaches what was put off, looks after quiet subscriptions, and gives up a connection that is dead. */
  #watch(): void {
    const now = Date.now();
    const quiet = this.#options.lookEveryMs;
    this.#holdBack();
    if (this.attached.putOff) this.#attach(false);
    if (this.#unreadSince !== undefined) {
      this.#lastHeard = now;
    } else if (this.#looking) {
      // A WebSocket of the platform cannot ping: an unanswered question is how a dead way to the hub is noticed.
      if (now > this.#lastHeard + 2 * quiet) this.#interrupt();
    } else if (now > this.#lastHeard + quiet || (this.attached.isListening && now > this.#lastPush + quiet)) {
      this.#looking = true;
      const { answered, ...question } = this.attached.look();
      const looked: Answered = (answer) => {
        this.#looking = false;
        this.#lastPush = Date.now();
        answered?.(answer);
      };
      this.#ask({ ...question, answered: looked });
    }
  }

  // What comes.

  /**
   * Leaves the connection unread, where that is possible, while no taker has room and nobody waits for a reply: what
   * stays in the socket, the hub need not send again. Not for too long, for the hub would close the connection.
   */
  #holdBack(): void {
    const socket = this.#socket;
    if (socket?.pause === undefined || socket.resume === undefined) return;
    const isFull = this.attached.isFull;
    if (!isFull) this.#overdue = false;
    if (this.#unreadSince !== undefined && Date.now() > this.#unreadSince + UNREAD_MAX_MS) this.#overdue = true;
    const isUnread = isFull && !this.#overdue && this.#pending.size === 0 && this.#asked.size === 0;
    if (isUnread && this.#unreadSince === undefined) {
      this.#unreadSince = Date.now();
      socket.pause();
    } else if (!isUnread && this.#unreadSince !== undefined) {
      this.#unreadSince = undefined;
      socket.resume();
    }
  }

  /** Takes a frame: a reply to one of ours, or something that was pushed. */
  #take(data: unknown): void {
    const frame = typeof data === "string" ? parse(data) : undefined;
    const { id, epoch, payload } = frame ?? {};
    // What is no envelope is passed over.
    if (typeof data !== "string" || typeof id !== "string" || !isObject(payload)) return;
    const { identity } = this.#options;
    this.#lastHeard = Date.now();
    this.#backoff.reset();
    identity.saw(epoch);
    const number = identity.number(id);
    if (number === undefined) {
      this.#lastPush = this.#lastHeard;
      this.attached.push(id, payload, data.length);
      return this.#holdBack();
    }
    const outcome = isErrorBody(payload) ? new Refused(payload) : payload;
    this.#joined ||= !(outcome instanceof Refused);
    const answered = this.#asked.get(number);
    this.#asked.delete(number);
    if (answered !== undefined) answered(outcome);
    else this.#answer(number, outcome);
    return this.#holdBack();
  }

  #answer(number: number, outcome: JsonObject | Refused): void {
    const call = this.#pending.get(number);
    if (call === undefined) return;
    this.forget(call);
    if (outcome instanceof Refused) return call.reject(outcome);
    try {
      // Before the caller is told, for pushes may come right behind it.
      call.effect?.(outcome);
    } catch (error) {
      return call.reject(error);
    }
    return call.resolve(outcome);
  }
}

/** A read that can match nothing: it tells the hub that this agent is connected again. */
const PRESENCE: Question = {
  operation: "ATTUNE",
  payload: {
    scope: { role: "returning", max_units: 1 },
    format: "ids_only",
    since_epoch: EPOCH_CEILING - 1,
  },
};

/** Says goodbye and waits a moment for the hub to say it too. */
async function goodbye(socket: WebSocketLike): Promise<void> {
  if (socket.readyState > 1) return;
  await new Promise<void>((resolve) => {
    const alarm = setTimeout(() => {
      drop(socket);
      resolve();
    }, CLOSE_PATIENCE_MS);
    socket.addEventListener("close", () => {
      clearTimeout(alarm);
      resolve();
    });
    socket.resume?.();
    socket.close(1000);
  });
}

function parse(text: string): JsonObject | undefined {
  try {
    const found = JSON.parse(text) as unknown;
    return isObject(found) ? found : undefined;
  } catch {
    return undefined;
  }
}
