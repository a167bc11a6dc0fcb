/** How long to wait before the next attempt to connect. */

/** The first delay before jitter, milliseconds. */
export const FIRST_MS = 100;
/** The longest delay before jitter, milliseconds. */
export const CAP_MS = 5_000;

/**
 * Delays that double up to a cap. The jitter comes after the cap: otherwise all clients of a hub that was away for long
 * would return in the same moment.
 */
export class Backoff {
  #attempts = 0;

  /** The next delay, milliseconds. */
  next(): number {
    const doubled = Math.min(FIRST_MS * 2 ** Math.min(this.#attempts, 16), CAP_MS);
    this.#attempts += 1;
    return doubled * (0.5 + Math.random());
  }

  /** Starts over, after a connection that was of use. */
  reset(): void {
    this.#attempts = 0;
  }
}
