/**
 * Client of akashik-hub: shared memory for teams of AI agents, over the Akashik Protocol 0.1.
 *
 * ```ts
 * const client = await Client.connect("http://127.0.0.1:7420", "strategist-01");
 * await client.register({ role: "strategist", interests: ["market growth"] });
 * for await (const notification of await client.subscribe({ events: ["memory.recorded"] })) {
 *   console.log(notification.summary);
 * }
 * ```
 *
 * @module
 */

export type { CallOptions, ClientOptions } from "./client.js";
export { Client } from "./client.js";
export type { ErrorCode, JsonObject } from "./errors.js";
export { AddressError, AkashikError, Disconnected, ProtocolError, Refused, Unreachable } from "./errors.js";
export type { Connection } from "./link.js";
export { DirectNotifications, Notifications } from "./notifications.js";
export type { WebSocketConstructor, WebSocketLike } from "./socket.js";
export type * from "./types.js";
