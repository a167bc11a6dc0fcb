/** The subscriptions of one client: which inbox a push belongs to, and what to send to attach them again. */

import type { AkashikError, JsonObject } from "./errors.js";
import { endedElsewhere, isObject, ProtocolError, Refused } from "./errors.js";
import type { Bell } from "./inbox.js";
import { Inbox, readCursor } from "./inbox.js";
import type { Notification, Subscribed } from "./types.js";

/** The name under which authors hear of resolved conflicts without a subscription. */
export const DIRECT = "direct";

/** What the hub may say of a moment, and not of the subscription. */
const PASSING = new Set(["OVERLOADED", "RATE_LIMITED", "STORAGE_FULL", "INTERNAL_ERROR"]);

/** Takes the answer to a message of the client's own: its payload, or why there is none. */
export type Answered = (answer: JsonObject | AkashikError) => void;

/** A message of the client's own. */
export interface Question {
  operation: string;
  payload: JsonObject;
  answered?: Answered;
}

/** Reads SUBSCRIBE's answer as far as a client lives by it. */
export function readSubscribed(answer: JsonObject): Subscribed {
  const subscription = answer["subscription"];
  if (!isObject(subscription) || typeof subscription["id"] !== "string") {
    throw new ProtocolError("unreadable answer: Subscribed.subscription.id is no string");
  }
  readCursor(answer["cursor"]);
  return answer as unknown as Subscribed;
}

/** Every inbox that something can be pushed to. */
export class Attached {
  /** The hub could not attach something just now. */
  putOff = false;
  /** How the agent was registered over this client: REGISTER's payload. */
  registration: JsonObject | undefined;
  readonly bell: Bell;
  #inboxes = new Map<string, Inbox>();
  /** The agent failed meanwhile, and is to be registered again. */
  #returns = false;
  #over = false;

  constructor(bell: Bell) {
    this.bell = bell;
  }

  /** What is pushed under this id goes there from now on. Whoever took it before is told that it ended. */
  enter(id: string, inbox: Inbox): void {
    if (this.#over) return inbox.end();
    const before = this.#inboxes.get(id);
    this.#inboxes.set(id, inbox);
    if (before !== inbox) before?.end();
  }

  /** Nobody takes from this inbox any more. */
  leave(inbox: Inbox): void {
    for (const [id, known] of this.#inboxes) if (known === inbox) this.#inboxes.delete(id);
    // It may have been what kept the link from reading.
    this.bell.room();
  }

  /** Ends one of them. */
  end(id: string, why?: AkashikError): void {
    const inbox = this.#inboxes.get(id);
    this.#inboxes.delete(id);
    inbox?.end(why);
    this.bell.room();
  }

  /** Ends all of them. */
  endAll(why?: AkashikError): void {
    for (const id of [...this.#inboxes.keys()]) this.end(id, why);
  }

  /** The agent has left, and its subscriptions with it. */
  leaves(): void {
    this.registration = undefined;
    this.endAll();
  }

  /** Ends all of them, and whatever would still come. */
  close(): void {
    this.#over = true;
    this.endAll();
  }

  /** Hands a push to its inbox. The id is the message's, `push-<subscription>-<cursor>`. */
  push(id: string, payload: JsonObject, size: number): void {
    const name = id.startsWith("push-") ? id.slice("push-".length, id.lastIndexOf("-")) : "";
    const inbox = this.#inboxes.get(name);
    try {
      inbox?.offer(payload as unknown as Notification, size);
    } catch (error) {
      // Going on would leave a hole that nobody sees.
      this.end(name, error instanceof ProtocolError ? error : new ProtocolError(String(error)));
    }
  }

  /** What is to be sent now: everything that has room on a new connection, else what has asked for it. */
  again(newConnection: boolean): Question[] {
    this.putOff = false;
    const questions: Question[] = [];
    if (this.#returns && this.registration !== undefined) {
      // Refused, it leaves the subscriptions refused as well, and those say why.
      questions.push({ operation: "REGISTER", payload: this.registration });
    }
    this.#returns = false;
    for (const [id, inbox] of this.#inboxes) {
      const cursor = inbox.reattach(newConnection);
      if (cursor === undefined) continue;
      const payload = { action: "subscribe", subscription: { id, resume_after: cursor } };
      const answered: Answered = (answer) => this.#reattached(id, inbox, answer);
      questions.push({ operation: "SUBSCRIBE", payload, answered });
    }
    return questions;
  }

  /** Asks which subscriptions there still are: one that somebody else ends just falls silent on this connection. */
  look(): Question {
    const live = [...this.#inboxes].filter(([id, inbox]) => id !== DIRECT && inbox.standing === "live");
    const answered: Answered = (answer) => {
      const listed = answer instanceof Error ? undefined : answer["subscriptions"];
      const known = Array.isArray(listed)
        ? new Set(listed.map((found: unknown) => (isObject(found) ? found["id"] : undefined)))
        : undefined;
      for (const [id, inbox] of live) {
        if (this.#inboxes.get(id) !== inbox) continue;
        if (answer instanceof Refused && answer.code === "AGENT_NOT_REGISTERED") this.#refused(id, inbox, answer);
        else if (known !== undefined && !known.has(id)) this.end(id, endedElsewhere(id));
      }
    };
    return { operation: "SUBSCRIBE", payload: { action: "list" }, answered };
  }

  /** Whether there is a subscription that is told on this connection. */
  get isListening(): boolean {
    return [...this.#inboxes].some(([id, inbox]) => id !== DIRECT && inbox.standing === "live");
  }

  /** Whether there are subscriptions and none of them has room: then reading on would only let things go. */
  get isFull(): boolean {
    const subscribed = [...this.#inboxes.values()].filter((inbox) => inbox.resumable);
    return subscribed.length > 0 && !subscribed.some((inbox) => inbox.isOpen);
  }

  #reattached(id: string, inbox: Inbox, answer: JsonObject | AkashikError): void {
    if (this.#inboxes.get(id) !== inbox) return;
    if (answer instanceof Error) return this.#refused(id, inbox, answer);
    try {
      inbox.attached(readSubscribed(answer), false);
    } catch (error) {
      this.end(id, error as AkashikError);
    }
  }

  /** What a no to attaching means: come back later, come back as who you are, or never. */
  #refused(id: string, inbox: Inbox, why: AkashikError): void {
    const code = why instanceof Refused ? why.code : undefined;
    const details = why instanceof Refused ? why.details : {};
    if (code === undefined || PASSING.has(code)) {
      inbox.standing = "detached";
      this.putOff = true;
    } else if (
      // Away for too long. An agent that has left did so on purpose, and its subscriptions are gone.
      code === "AGENT_NOT_REGISTERED" &&
      details["status"] === "failed" &&
      this.registration !== undefined &&
      inbox.mayReturn()
    ) {
      inbox.standing = "detached";
      this.#returns = true;
      this.bell.attach();
    } else if (code === "INVALID_MESSAGE" && details["key"] === "subscription.events") {
      // Unknown, so it would be a new one, and that would have to say its events.
      this.end(id, endedElsewhere(id));
    } else {
      this.end(id, why);
    }
  }
}
