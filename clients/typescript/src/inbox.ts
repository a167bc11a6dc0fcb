/**
 * What was pushed and not yet taken: one bounded queue for each subscription, and its place in the stream.
 *
 * A taker may be slower than the hub. Its queue is bounded; what does not fit is let go, the subscription counts as
 * *behind*, and once half of the queue is taken it is attached again after the last notification that did fit. So
 * nothing is lost, memory is bounded, and replies to calls on the same connection still come through.
 */

import type { AkashikError } from "./errors.js";
import { ProtocolError } from "./errors.js";
import type { Notification, Subscribed } from "./types.js";

/** Notifications that wait for a taker: as many as the hub sends ahead to one connection. */
export const QUEUED_MAX = 1_024;
/** Their size as JSON text, in UTF-16 units. */
export const QUEUED_MAX_SIZE = 4 * 1024 * 1024;
/** So full that the connection had better not be read, where it can be left unread: some frames come all the same. */
const FULL_AT = 0.75;

/** A cursor, comparable: epoch, then index. */
export type Place = readonly [epoch: number, index: number];

/** Reads `"<epoch>.<index>"`. */
export function readCursor(text: unknown): Place {
  const found = typeof text === "string" ? /^([0-9]{1,16})\.([0-9]{1,16})$/.exec(text) : null;
  if (found === null) throw new ProtocolError(`unreadable cursor ${JSON.stringify(text)}`);
  return [Number(found[1]), Number(found[2])];
}

/** Whether one place comes after another. */
export function isAfter(one: Place, other: Place): boolean {
  return one[0] > other[0] || (one[0] === other[0] && one[1] > other[1]);
}

/**
 * How a subscription stands with the hub on the current connection: what is pushed is queued (`live`); something did not
 * fit (`behind`); it is to be attached again (`detached`); that was asked for (`attaching`), and what is pushed before
 * the answer belongs to the attachment before.
 */
export type Standing = "live" | "behind" | "detached" | "attaching";

/** What an inbox tells the link. */
export interface Bell {
  /** There is room again. */
  room(): void;
  /** A subscription wants to be attached again. */
  attach(): void;
}

interface Queued {
  notification: Notification;
  place: Place;
  size: number;
}

/** One subscription's queue, between the link and the taker. */
export class Inbox {
  readonly resumable: boolean;
  standing: Standing;
  /** Notifications that were let go for good. */
  missed = 0;
  /** Everything up to here was queued. */
  #reached: Place = [0, 0];
  /** The place of what was taken last, or from where the subscription is told. */
  #taken: Place = [0, 0];
  #queue: Queued[] = [];
  /** Where the queue begins: taking from the front of an array would move everything else. */
  #head = 0;
  #size = 0;
  /** The queue has been full, and half of it is not taken yet. */
  #full = false;
  /** Cursors of a debounced subscription may come more than once. */
  #debounced = false;
  /** The agent was registered anew for this subscription, and the hub has not taken it back yet. */
  #returning = false;
  #ended = false;
  #why: AkashikError | undefined;
  #waiting: (() => void)[] = [];
  readonly #bell: Bell;

  /** An inbox; one that is not resumable loses what does not fit. */
  constructor(resumable: boolean, bell: Bell) {
    this.resumable = resumable;
    this.standing = resumable ? "attaching" : "live";
    this.#bell = bell;
  }

  /** The hub has attached it; the first time this also says from where it is told. */
  attached(answer: Subscribed, first: boolean): void {
    if (first) this.#reached = this.#taken = readCursor(answer.cursor);
    this.standing = "live";
    this.#debounced = answer.subscription.debounce_ms > 0;
    this.#returning = false;
  }

  /** Queues a notification, unless it was queued before, or there is no room. */
  offer(notification: Notification, size: number): void {
    const place = readCursor(notification.cursor);
    const known = this.resumable && !this.#debounced && !isAfter(place, this.#reached);
    if (this.#ended || this.standing !== "live" || known) return;
    const fits = this.waiting < QUEUED_MAX && this.#size + size < QUEUED_MAX_SIZE;
    // One always fits into an empty queue.
    if (!fits && this.waiting > 0) {
      if (this.resumable) this.standing = "behind";
      else this.missed += 1;
      return;
    }
    if (isAfter(place, this.#reached)) this.#reached = place;
    this.#size += size;
    this.#queue.push({ notification, place, size });
    this.#full ||= this.waiting >= QUEUED_MAX * FULL_AT || this.#size >= QUEUED_MAX_SIZE * FULL_AT;
    this.#wake();
  }

  /** Takes the next notification, if one is there. */
  take(): Notification | undefined {
    const next = this.#queue[this.#head];
    if (next === undefined) return undefined;
    this.#head += 1;
    if (this.#head >= QUEUED_MAX || this.#head === this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    this.#size -= next.size;
    if (isAfter(next.place, this.#taken)) this.#taken = next.place;
    if (this.#isHalfEmpty() && (this.#full || this.standing === "behind")) {
      this.#full = false;
      this.#bell.room();
      if (this.standing === "behind") this.#bell.attach();
    }
    return next.notification;
  }

  /** The next notification; nothing once there will be none. An error comes once, as the last. */
  async next(): Promise<Notification | undefined> {
    for (;;) {
      const notification = this.take();
      if (notification !== undefined) return notification;
      if (this.#ended) {
        const why = this.#why;
        this.#why = undefined;
        if (why !== undefined) throw why;
        return undefined;
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** From where to attach it again, if that is to be done now; it counts as asked for then. */
  reattach(newConnection: boolean): string | undefined {
    const due =
      this.standing === "behind" ? this.#isHalfEmpty() : this.standing === "detached" || newConnection;
    if (!this.resumable || this.#ended || !due) return undefined;
    this.standing = "attaching";
    return this.#reached.join(".");
  }

  /** Notes that the agent is registered anew for its sake; false if that was done already, and was of no use. */
  mayReturn(): boolean {
    const before = this.#returning;
    this.#returning = true;
    return !before;
  }

  /** Nothing more comes, but for what is queued. */
  end(why?: AkashikError): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#why = why;
    }
    this.#wake();
  }

  /** Whether reading on is of use to it: it has room, or awaits an answer. */
  get isOpen(): boolean {
    return this.standing === "attaching" || (this.standing === "live" && !this.#full);
  }

  /** How many notifications wait. */
  get waiting(): number {
    return this.#queue.length - this.#head;
  }

  /** The cursor of what was taken last, or from where the subscription is told. */
  get cursor(): string {
    return this.#taken.join(".");
  }

  #isHalfEmpty(): boolean {
    return this.waiting <= QUEUED_MAX / 2 && this.#size <= QUEUED_MAX_SIZE / 2;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
