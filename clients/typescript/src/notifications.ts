/** The streams in which a client hands out what the hub pushes. */

import type { Attached } from "./attached.js";
import type { Inbox } from "./inbox.js";
import type { Notification, Subscription } from "./types.js";

/** What both kinds of streams are: async iterators. Leaving a `for await` loop closes the stream. */
class NotificationStream implements AsyncIterableIterator<Notification> {
  protected readonly inbox: Inbox;
  readonly #attached: Attached;

  constructor(inbox: Inbox, attached: Attached) {
    this.inbox = inbox;
    this.#attached = attached;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next notification; done once the stream has ended. */
  async next(): Promise<IteratorResult<Notification, undefined>> {
    const value = await this.inbox.next();
    return value === undefined ? { done: true, value } : { done: false, value };
  }

  /** What `for await` calls when its loop is left. */
  async return(): Promise<IteratorResult<Notification, undefined>> {
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Stops listening. A subscription stays in the Field until it is unsubscribed. */
  close(): void {
    this.#attached.leave(this.inbox);
    this.inbox.end();
  }
}

/**
 * A subscription's notifications, in the order of their cursors.
 *
 * It goes on over lost connections and restarts of the hub: nothing is lost and, without `debounce_ms`, nothing comes
 * twice. An agent that was away for so long that it counts as failed is registered again, as it was over this client. It
 * ends after `unsubscribe`, after the agent has left, and with the client; if the Field does not take the subscription
 * back, or somebody else has ended it, the reason is thrown, as the last.
 *
 * **A slow taker** loses nothing and holds up no call. At most 1,024 notifications and 4 Mi characters of them wait here
 * for each subscription. With the package `ws` the connection is left unread while none of a client's streams has room
 * and no call waits, so that the hub waits too, for at most ten seconds. Otherwise (a browser's WebSocket is always read)
 * what does not fit is let go, and once half of the queue is taken the hub is asked for everything after the last one
 * that did fit.
 *
 * Leaving a `for await` loop closes it; `subscribe({ id, resume_after: stream.cursor })` goes on.
 */
export class Notifications extends NotificationStream {
  /** The subscription, as the Field had it when this stream began. */
  readonly subscription: Subscription;

  constructor(subscription: Subscription, inbox: Inbox, attached: Attached, signal?: AbortSignal) {
    super(inbox, attached);
    this.subscription = subscription;
    if (signal?.aborted === true) this.close();
    else signal?.addEventListener("abort", () => this.close(), { once: true });
  }

  /** Where to resume: the cursor of what was taken last, or where the stream began. */
  get cursor(): string {
    return this.inbox.cursor;
  }
}

/** What an agent is told without a subscription. Beyond 1,024 waiting ones further ones are let go and counted. */
export class DirectNotifications extends NotificationStream {
  /** How many were let go for want of room. */
  get missed(): number {
    return this.inbox.missed;
  }
}
