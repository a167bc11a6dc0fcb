/** Who a client is to a hub: the envelopes that it writes, and what it has seen. */

import { isObject, ProtocolError, tooLarge } from "./errors.js";

/** Epochs stay below this (section 2), which is also what a number holds exactly. */
export const EPOCH_CEILING = 2 ** 53;

const encoder = new TextEncoder();

/** Writes JSON, or says why it cannot. */
export function writeJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new ProtocolError(`the payload cannot be written as JSON: ${String(error)}`);
  }
  if (text === undefined) throw new ProtocolError("the payload cannot be written as JSON");
  return text;
}

/** Who speaks, and what it has seen. */
export class Identity {
  readonly agentId: string;
  readonly #sessionId: string | null;
  /** Message ids are this and a number: unique, also across restarts of whoever uses the client. */
  readonly #prefix: string;
  #sent = 0;
  #epoch = 0;
  #messageMaxBytes: number | undefined;

  constructor(agentId: string, sessionId: string | null) {
    this.agentId = agentId;
    this.#sessionId = sessionId;
    const random = crypto.getRandomValues(new Uint8Array(16));
    this.#prefix = `${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}-`;
  }

  /** The greatest epoch seen. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Largest message that the hub takes, once it has said so. */
  get messageMaxBytes(): number | undefined {
    return this.#messageMaxBytes;
  }

  /** Notes an epoch that the hub has shown; anything that is none is passed over. */
  saw(epoch: unknown): void {
    if (typeof epoch === "number" && Number.isSafeInteger(epoch) && epoch > this.#epoch) this.#epoch = epoch;
  }

  /** Learns how large a message may be: a larger one would only cost everybody the connection. */
  learn(capabilities: unknown): void {
    const limits = isObject(capabilities) ? capabilities["limits"] : undefined;
    const most = isObject(limits) ? limits["message_bytes"] : undefined;
    if (typeof most === "number") this.#messageMaxBytes = most;
  }

  /** The number of a new message. */
  nextNumber(): number {
    this.#sent += 1;
    return this.#sent;
  }

  /** The text of a message around a payload that is JSON text. */
  frame(number: number, operation: string, payload: string): string {
    const head = JSON.stringify({
      protocol: "akashik",
      version: "0.1.0",
      id: `${this.#prefix}${number}`,
      operation,
      agent_id: this.agentId,
      session_id: this.#sessionId,
      epoch: this.#epoch,
    });
    const frame = `${head.slice(0, -1)},"payload":${payload}}`;
    const most = this.#messageMaxBytes;
    // Three bytes are the most that a UTF-16 unit comes to: most messages need no counting.
    if (most !== undefined && frame.length * 3 > most) {
      const bytes = byteLength(frame);
      if (bytes > most) throw tooLarge(operation, bytes, most);
    }
    return frame;
  }

  /** The number in a message id of this client. */
  number(id: string): number | undefined {
    const rest = id.startsWith(this.#prefix) ? id.slice(this.#prefix.length) : "";
    return /^[0-9]+$/.test(rest) ? Number(rest) : undefined;
  }
}

/** How many bytes of UTF-8 a text has. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}
