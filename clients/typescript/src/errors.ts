/** Why a call to a hub did not bring what was asked for. */

/** The codes of the protocol (section 9). */
export type ErrorCode =
  | "MISSING_INTENT"
  | "MISSING_CONFIDENCE"
  | "INVALID_CONFIDENCE"
  | "INVALID_TYPE"
  | "AGENT_NOT_REGISTERED"
  | "AGENT_ID_TAKEN"
  | "INVALID_TRANSITION"
  | "MERGE_FAILED"
  | "CONFLICT_NOT_FOUND"
  | "UNIT_NOT_FOUND"
  | "UNSUPPORTED_OPERATION"
  | "ENRICHMENT_FAILED"
  | "DETECTION_TIMEOUT"
  | "REPLAY_TOO_LARGE"
  | "STORAGE_FULL"
  | "EPOCH_OVERFLOW"
  | "INTERNAL_ERROR"
  | "INVALID_MESSAGE"
  | "MESSAGE_TOO_LARGE"
  | "UNAUTHENTICATED"
  | "FORBIDDEN"
  | "FIELD_NOT_FOUND"
  | "SUBSCRIPTION_NOT_FOUND"
  | "RATE_LIMITED"
  | "OVERLOADED";

/** Any JSON object. */
export type JsonObject = Record<string, unknown>;

/** What every error of this package is. */
export class AkashikError extends Error {
  override readonly name: string = "AkashikError";
}

/** The URL is not a hub's address, or the name none that a Field can have. */
export class AddressError extends AkashikError {
  override readonly name = "AddressError";
}

/** Nobody answered in time; the message may have been carried out or not. */
export class Unreachable extends AkashikError {
  override readonly name = "Unreachable";
}

/** The connection is gone for good, or the client was closed; the message may have been carried out or not. */
export class Disconnected extends AkashikError {
  override readonly name = "Disconnected";
}

/** The other side does not speak as a hub does, or the message cannot be written as JSON. */
export class ProtocolError extends AkashikError {
  override readonly name = "ProtocolError";
}

/** The Field said no; nothing was changed. */
export class Refused extends AkashikError {
  override readonly name = "Refused";
  /** What kind of no; a later hub may know more codes. */
  readonly code: ErrorCode | (string & {});
  /** The operation that was refused; empty where the hub could not read it. */
  readonly operation: string;
  /** Whether the same agent can succeed after changing something or waiting. */
  readonly recoverable: boolean;
  /** What to do next, in words that a language model can act on. */
  readonly suggestedAction: string;
  /** The offending key, the limit or the current state, where there is one. */
  readonly details: JsonObject;
  /** The whole error body as it came. */
  readonly body: JsonObject;

  constructor(body: JsonObject) {
    super(`${String(body["code"])}: ${String(body["message"])} ${String(body["suggested_action"])}`);
    this.code = String(body["code"]);
    this.operation = String(body["operation"] ?? "");
    this.recoverable = body["recoverable"] === true;
    this.suggestedAction = String(body["suggested_action"]);
    this.details = isObject(body["details"]) ? body["details"] : {};
    this.body = body;
  }

  /** How many milliseconds to wait before the next try, where the hub says it (RATE_LIMITED, OVERLOADED). */
  get retryAfterMs(): number | undefined {
    const pause = this.details["retry_after_ms"];
    return typeof pause === "number" ? pause : undefined;
  }
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Tells an error body from a response: no response has these keys. */
export function isErrorBody(payload: JsonObject): boolean {
  return "code" in payload && "suggested_action" in payload;
}

/** The refusal of a message that is not even sent, or for which the hub closed the connection. */
export function tooLarge(operation: string, bytes: number, most: number | undefined): Refused {
  return new Refused({
    code: "MESSAGE_TOO_LARGE",
    message: `The message has ${bytes} bytes; the hub takes at most ${most ?? "fewer"}.`,
    operation,
    recoverable: true,
    suggested_action: "Send less in one message: shorten the content, or record it as several units.",
    details: most === undefined ? { bytes } : { bytes, limit_bytes: most },
  });
}

/** The refusal with which a stream ends whose subscription somebody else has ended. */
export function endedElsewhere(id: string): Refused {
  return new Refused({
    code: "SUBSCRIPTION_NOT_FOUND",
    message: `The subscription ${JSON.stringify(id)} was ended by somebody else.`,
    operation: "SUBSCRIBE",
    recoverable: false,
    suggested_action: "SUBSCRIBE again, with the events to be told of.",
    details: { subscription_id: id },
  });
}
