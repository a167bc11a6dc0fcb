/** The WebSocket of the platform: where it comes from, how it is opened, and why it was not. */

import type { HubAddress } from "./address.js";
import type { AkashikError } from "./errors.js";
import { AkashikError as Failure, isErrorBody, isObject, ProtocolError, Refused, Unreachable } from "./errors.js";

/** What this client needs of a WebSocket: the browser's, Node's own, or that of the package `ws`. */
export interface WebSocketLike {
  readonly readyState: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number; reason: string }) => void): void;
  addEventListener(type: "open" | "error", listener: () => void): void;
  /** `ws` alone: leaves the socket unread, so that the hub waits. */
  pause?(): void;
  /** `ws` alone. */
  resume?(): void;
  /** `ws` alone: ends it without a goodbye. */
  terminate?(): void;
}

/** Makes a WebSocket. The third argument is for `ws`; others pass it over. */
export type WebSocketConstructor = new (url: string, protocols?: string[], options?: object) => WebSocketLike;

/** How long one attempt to connect may take, milliseconds. */
const CONNECT_PATIENCE_MS = 10_000;
/** Largest message taken from a hub: its largest reply, and the envelope around it, bytes. */
const MESSAGE_IN_MAX_BYTES = 16 * 1024 * 1024 + 64 * 1024;
/** How much of a body that is no hub's is quoted. */
const QUOTED_MAX = 120;

/** The platform's WebSocket; in Node 20, which has none, that of the package `ws`. */
export async function findWebSocket(given?: WebSocketConstructor): Promise<WebSocketConstructor> {
  if (given !== undefined) return given;
  if (typeof globalThis.WebSocket === "function") return globalThis.WebSocket as unknown as WebSocketConstructor;
  try {
    // Named at run time, so that no bundler for browsers looks for it.
    const name = "ws";
    const found = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as {
      WebSocket: WebSocketConstructor;
    };
    return found.WebSocket;
  } catch (error) {
    const help = "use Node 22 or newer, or `npm install ws`, or give the option `WebSocket`";
    throw new Failure(`there is no WebSocket here: ${help}`, { cause: error });
  }
}

/** Opens a connection, unless the signal comes first. The token goes as a subprotocol, which is all that browsers can send. */
export async function openSocket(
  make: WebSocketConstructor,
  address: HubAddress,
  token: string | undefined,
  signal?: AbortSignal,
): Promise<WebSocketLike> {
  const protocols = ["akashik.v0.1", ...(token === undefined ? [] : [`akashik.token.${token}`])];
  let socket: WebSocketLike;
  try {
    socket = new make(address.websocket, protocols, {
      maxPayload: MESSAGE_IN_MAX_BYTES,
      perMessageDeflate: false,
    });
  } catch (error) {
    throw new ProtocolError(`no WebSocket can be made of this address or token: ${String(error)}`);
  }
  const isOpen = await new Promise<boolean>((resolve) => {
    const alarm = setTimeout(() => resolve(false), CONNECT_PATIENCE_MS);
    const settle = (opened: boolean) => () => {
      clearTimeout(alarm);
      resolve(opened);
    };
    signal?.addEventListener("abort", settle(false));
    socket.addEventListener("open", settle(true));
    socket.addEventListener("error", settle(false));
    socket.addEventListener("close", settle(false));
  });
  if (isOpen) return socket;
  drop(socket);
  throw await reason(address, token, signal);
}

/** Ends a connection that is of no use any more, without waiting for anybody. */
export function drop(socket: WebSocketLike): void {
  try {
    if (socket.terminate !== undefined) socket.terminate();
    else socket.close();
  } catch {
    // One that never opened may object to being closed.
  }
}

/** A WebSocket does not tell why it was not opened, so the hub is asked over HTTP. */
async function reason(
  address: HubAddress,
  token: string | undefined,
  stop: AbortSignal | undefined,
): Promise<AkashikError> {
  const away = (why: string): AkashikError =>
    new Unreachable(
      `the hub at ${address.authority} cannot be reached: ${why}; start one with \`akashik serve\``,
    );
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  let status: number;
  let body: string;
  try {
    const late = AbortSignal.timeout(CONNECT_PATIENCE_MS);
    const signal = stop === undefined ? late : AbortSignal.any([stop, late]);
    const response = await fetch(address.status, { headers, redirect: "manual", signal });
    status = response.status;
    body = await response.text();
  } catch (error) {
    const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
    return away(cause instanceof Error ? cause.message || cause.name : String(cause));
  }
  const found = parse(body);
  if (isObject(found) && isErrorBody(found)) return new Refused(found);
  if (status >= 500) return away(`status ${status}`);
  if (isObject(found) && status === 200) return away("it does not take WebSockets just now");
  const quoted = JSON.stringify(body.slice(0, QUOTED_MAX));
  return new ProtocolError(`status ${status} with a body that no hub sends: ${quoted}: is it a hub?`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
