/** The client: one WebSocket, as one agent, to one Field. */

import { readAddress } from "./address.js";
import { DIRECT, readSubscribed } from "./attached.js";
import type { JsonObject } from "./errors.js";
import { Unreachable } from "./errors.js";
import { Identity, writeJson } from "./identity.js";
import { Inbox } from "./inbox.js";
import type { Call, Connection } from "./link.js";
import { Link } from "./link.js";
import { DirectNotifications, Notifications } from "./notifications.js";
import type { WebSocketConstructor } from "./socket.js";
import type {
  Acknowledged,
  Attuned,
  AttuneRequest,
  CommitRequest,
  Compacted,
  CompactRequest,
  Deregistered,
  Detected,
  DetectRequest,
  Merged,
  MergeRequest,
  Recorded,
  RecordRequest,
  Registered,
  RegisterRequest,
  Replayed,
  ReplayRequest,
  SubscribeRequest,
  Subscription,
} from "./types.js";

/** How long a call may take, reconnecting included, milliseconds. */
const PATIENCE_MS = 30_000;
/** How long it may be quiet before the hub is asked whether it and the subscriptions are still there, milliseconds. */
const LOOK_EVERY_MS = 30_000;

/** As whom to connect, and how. */
export interface ClientOptions {
  /** The protocol session that the messages belong to. */
  sessionId?: string;
  /** The Field, where the address does not name one; neither means the hub's first. */
  field?: string;
  /** Shown where the hub asks for tokens: as the subprotocol `akashik.token.…`, which is all that browsers can send. */
  token?: string;
  /** How long a call may take in all, waiting for a lost hub to return included; 30,000 ms if it does not say. */
  timeoutMs?: number;
  /** After so long without a sign of the hub, or without a notification, it is asked; 30,000 ms if it does not say. */
  lookEveryMs?: number;
  /** Another WebSocket than the platform's. That of the package `ws` can be left unread by a slow taker. */
  WebSocket?: WebSocketConstructor;
}

/** For one call. */
export interface CallOptions {
  /** Aborting forgets the call, and rejects it with the signal's reason; the hub may still carry it out. */
  signal?: AbortSignal;
}

/**
 * An agent's connection to a Field.
 *
 * When the connection is lost, the client returns by itself and sends every unanswered message again under its same id;
 * the hub answers a repeat with the first reply, so nothing is lost or done twice. Up to 256 calls are in flight, further
 * ones wait their turn. Every call may reject with {@link Refused}, {@link Unreachable}, {@link Disconnected} or
 * {@link ProtocolError}.
 */
export class Client {
  readonly #identity: Identity;
  readonly #link: Link;
  readonly #timeoutMs: number;

  private constructor(url: string, agentId: string, options: ClientOptions) {
    this.#timeoutMs = options.timeoutMs ?? PATIENCE_MS;
    this.#identity = new Identity(agentId, options.sessionId ?? null);
    this.#link = new Link({
      address: readAddress(url, options.field),
      identity: this.#identity,
      token: options.token,
      WebSocket: options.WebSocket,
      lookEveryMs: options.lookEveryMs ?? LOOK_EVERY_MS,
    });
  }

  /**
   * Connects to a hub at `http://host:port` or `ws://host:port`, with `/v1/fields/NAME` behind it or not.
   *
   * @throws {AddressError} for a URL that is not one of these, {@link Unreachable} at once when nobody answers there,
   * {@link Refused} when the hub does not let this client in.
   */
  static async connect(url: string, agentId: string, options: ClientOptions = {}): Promise<Client> {
    const client = new Client(url, agentId, options);
    await client.#link.open();
    return client;
  }

  /** Closes the connection. Calls that wait reject with {@link Disconnected}; streams end after what is queued. */
  async close(): Promise<void> {
    await this.#link.close();
  }

  /** The agent that this client speaks for. */
  get agentId(): string {
    return this.#identity.agentId;
  }

  /** The greatest epoch that this client has been shown. */
  get epoch(): number {
    return this.#identity.epoch;
  }

  /** How the connection stands. */
  get connection(): Connection {
    return this.#link.connection;
  }

  /** REGISTER. An answer with status `rejected` is no error. */
  async register(request: RegisterRequest, options?: CallOptions): Promise<Registered> {
    const payload: JsonObject = { id: this.agentId, ...request };
    return this.#call("REGISTER", payload, options, (answer) => {
      this.#identity.learn(answer["field_capabilities"]);
      if (answer["status"] === "registered") this.#link.attached.registration = payload;
    });
  }

  /** DEREGISTER, of this client's own agent if no other is named. Its own streams end with it. */
  async deregister(agentId: string = this.agentId, options?: CallOptions): Promise<Deregistered> {
    return this.#call("DEREGISTER", { agent_id: agentId }, options, () => {
      if (agentId === this.agentId) this.#link.attached.leaves();
    });
  }

  /** RECORD. */
  async record(request: RecordRequest, options?: CallOptions): Promise<Recorded> {
    return this.#call("RECORD", request, options);
  }

  /** ATTUNE: what matters to a role that is about to do what the hint says. */
  async attune(request: AttuneRequest, options?: CallOptions): Promise<Attuned> {
    return this.#call("ATTUNE", request, options);
  }

  /** DETECT; the known conflicts if it does not say otherwise. */
  async detect(request: DetectRequest = { mode: "list" }, options?: CallOptions): Promise<Detected> {
    return this.#call("DETECT", request, options);
  }

  /** MERGE. An answer that escalates or waits for votes is no error. */
  async merge(request: MergeRequest, options?: CallOptions): Promise<Merged> {
    return this.#call("MERGE", request, options);
  }

  /** REPLAY: how something came about, read from the log. */
  async replay(request: ReplayRequest, options?: CallOptions): Promise<Replayed> {
    return this.#call("REPLAY", request, options);
  }

  /** COMPACT: archives, summarizes or purges what the filter matches. */
  async compact(request: CompactRequest, options?: CallOptions): Promise<Compacted> {
    return this.#call("COMPACT", request, options);
  }

  /** COMMIT (Extension): makes a draft everyone's memory. What is given takes the place of the draft's. */
  async commit(request: CommitRequest, options?: CallOptions): Promise<Acknowledged> {
    return this.#call("COMMIT", request, options);
  }

  /** RETRACT (Extension): takes a committed unit back, for a reason. */
  async retract(unitId: string, reason: string, options?: CallOptions): Promise<Acknowledged> {
    return this.#call("RETRACT", { memory_unit_id: unitId, reason }, options);
  }

  /** DISCARD (Extension): gives a draft up, for a reason. */
  async discard(unitId: string, reason: string, options?: CallOptions): Promise<Acknowledged> {
    return this.#call("DISCARD", { memory_unit_id: unitId, reason }, options);
  }

  /**
   * SUBSCRIBE: makes a subscription, or takes up a known one by its `id`, and streams its notifications. A client has
   * one stream for each subscription: a second one of the same id ends the first. Aborting the signal also ends the
   * stream. See {@link Notifications}.
   */
  async subscribe(request: SubscribeRequest, options: CallOptions = {}): Promise<Notifications> {
    const { attached } = this.#link;
    const inbox = new Inbox(true, attached.bell);
    const payload = { action: "subscribe", subscription: request };
    try {
      const answer = await this.#call<JsonObject>("SUBSCRIBE", payload, options, (found) => {
        const subscribed = readSubscribed(found);
        inbox.attached(subscribed, true);
        attached.enter(subscribed.subscription.id, inbox);
      });
      return new Notifications(readSubscribed(answer).subscription, inbox, attached, options.signal);
    } catch (error) {
      attached.leave(inbox);
      throw error;
    }
  }

  /** SUBSCRIBE, action `unsubscribe`: ends a subscription, and with it its stream, once what is queued is taken. */
  async unsubscribe(id: string, options?: CallOptions): Promise<void> {
    const payload = { action: "unsubscribe", subscription: { id } };
    await this.#call("SUBSCRIBE", payload, options, () => this.#link.attached.end(id));
  }

  /** SUBSCRIBE, action `list`: the agent's subscriptions, attached or not. */
  async subscriptions(options?: CallOptions): Promise<Subscription[]> {
    const answer = await this.#call<{ subscriptions: Subscription[] }>("SUBSCRIBE", { action: "list" }, options);
    return answer.subscriptions;
  }

  /**
   * What the agent is told without a subscription: that a conflict of its units was resolved. Only while it is
   * connected; not resumable. A second call ends the first one's stream.
   */
  direct(): DirectNotifications {
    const { attached } = this.#link;
    const inbox = new Inbox(false, attached.bell);
    attached.enter(DIRECT, inbox);
    return new DirectNotifications(inbox, attached);
  }

  /** Any operation with any payload; the response payload as it came. */
  async send(operation: string, payload: object, options?: CallOptions): Promise<JsonObject> {
    return this.#call(operation, payload, options);
  }

  async #call<T>(
    operation: string,
    payload: object,
    options: CallOptions = {},
    effect?: (answer: JsonObject) => void,
  ): Promise<T> {
    const { signal } = options;
    signal?.throwIfAborted();
    const text = writeJson(payload);
    let call: Call | undefined;
    let alarm: ReturnType<typeof setTimeout> | undefined;
    let onAbort: (() => void) | undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        call = {
          operation,
          payload: text,
          resolve: (answer) => resolve(answer as T),
          reject,
          repeated: 0,
          ...(effect === undefined ? {} : { effect }),
        };
        const late = `no answer to ${operation} within ${this.#timeoutMs} ms`;
        alarm = setTimeout(
          () => reject(new Unreachable(`${late}; connection: ${this.connection}`)),
          this.#timeoutMs,
        );
        onAbort = () => reject(signal?.reason);
        signal?.addEventListener("abort", onAbort);
        this.#link.submit(call);
      });
    } finally {
      clearTimeout(alarm);
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      if (call !== undefined) this.#link.forget(call);
    }
  }
}
