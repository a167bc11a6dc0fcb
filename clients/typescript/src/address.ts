/** Where a hub is: a URL, taken apart. */

import { AddressError } from "./errors.js";

/** A hub and, where named, one of its Fields. */
export interface HubAddress {
  /** The WebSocket's URL. */
  readonly websocket: string;
  /** The URL of what the Field says about itself. */
  readonly status: string;
  /** Host and port, for people. */
  readonly authority: string;
}

/**
 * Reads `http://host:port` or `ws://host:port` (or with TLS), with `/v1/fields/NAME` behind it or not.
 *
 * @throws {AddressError} when it is none of these, or the Field's name none that a Field can have.
 */
export function readAddress(text: string, field?: string): HubAddress {
  const wrong = (why: string): AddressError =>
    new AddressError(`${JSON.stringify(text)} is no hub's address: ${why}`);
  const scheme = /^(https?|wss?):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) throw wrong("it must begin with http://, https://, ws:// or wss://");
  if (/[?#]/.test(text)) throw wrong("it must not have a query or a fragment");
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw wrong("it is malformed");
  }
  if (url.username !== "" || url.password !== "") throw wrong("credentials do not belong into it; use a token");
  const segments = url.pathname.split("/").filter((segment) => segment !== "");
  const at = segments.includes("v1") ? segments.indexOf("v1") : segments.length;
  const rest = segments.slice(at + 1);
  if (rest.at(-1) === "ws") rest.pop();
  if (rest.length !== 0 && (rest.length !== 2 || rest[0] !== "fields")) {
    throw wrong("behind /v1 only /fields/NAME may follow");
  }
  const chosen = field ?? rest[1];
  if (chosen !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(chosen)) {
    throw new AddressError(`${JSON.stringify(chosen)} is no Field name: 1 to 64 letters, digits, '_' and '-'`);
  }
  const base = segments.slice(0, at).map((segment) => `/${segment}`).join("");
  const path = `${url.host}${base}/v1/${chosen === undefined ? "" : `fields/${chosen}/`}`;
  const tls = scheme === "https" || scheme === "wss";
  return {
    websocket: `${tls ? "wss" : "ws"}://${path}ws`,
    status: `${tls ? "https" : "http"}://${path}field/status`,
    authority: url.host,
  };
}
