/** A hub of one's own for each test: the real binary on a free port, its data in a directory of the test. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";

import { Client, type ClientOptions, type ErrorCode, type Notification, Refused } from "../src/index.js";

/** No test waits longer than this for anything, milliseconds. */
export const DEADLINE_MS = 30_000;

/** Awaits something that must come. */
export async function soon<T>(what: string, promise: Promise<T>): Promise<T> {
  let alarm: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    alarm = setTimeout(() => reject(new Error(`${what} did not come`)), DEADLINE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(alarm));
}

/** A running hub; killed at the end of its test. */
export class Hub {
  url = "";
  #process: ChildProcess | undefined;
  readonly #data = mkdtempSync(join(tmpdir(), "akashik-client-"));
  readonly #flags: string[];

  private constructor(flags: string[]) {
    this.#flags = flags;
  }

  static async start(context: TestContext, ...flags: string[]): Promise<Hub> {
    const hub = new Hub(flags);
    context.after(async () => {
      await hub.end("SIGKILL");
      rmSync(hub.#data, { recursive: true, force: true });
    });
    await hub.#start("127.0.0.1:0");
    return hub;
  }

  async #start(listen: string): Promise<void> {
    const binary = process.env["AKASHIK_BIN"];
    if (binary === undefined) throw new Error("AKASHIK_BIN must name the akashik binary");
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("AKASHIK_")));
    const what = ["serve", "--listen", listen, "--data", this.#data, "--log-filter", "error", ...this.#flags];
    this.#process = spawn(binary, what, { env, stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.#process.stdout! });
    const [line] = (await soon("the hub's one line", once(lines, "line"))) as [string];
    lines.close();
    this.url = line.replace("akashik: listening on ", "");
  }

  /** Ends the process: as a power cut would, or in good order. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running === undefined || running.exitCode !== null) return;
    const gone = once(running, "exit");
    running.kill(signal);
    await soon("the hub's end", gone);
  }

  /** Starts it on the same data and the same port. */
  async startAgain(): Promise<void> {
    await this.#start(this.url.replace("http://", ""));
  }

  /** A registered agent; closed at the end of the test. */
  async agent(context: TestContext, id: string, options: ClientOptions = {}): Promise<Client> {
    const client = await Client.connect(this.url, id, { timeoutMs: DEADLINE_MS, ...options });
    context.after(() => client.close());
    await client.register({ role: "researcher" });
    return client;
  }
}

/** A RECORD request. */
export function finding(content: string) {
  return {
    type: "finding" as const,
    content,
    intent: { purpose: "to test" },
    confidence: { score: 0.5, reason: "made up" },
  };
}

/** The next notifications of a stream, as many as are asked for. */
export async function following(
  stream: AsyncIterableIterator<Notification>,
  count: number,
): Promise<Notification[]> {
  const told: Notification[] = [];
  while (told.length < count) {
    const { done, value } = await soon("a notification", stream.next());
    if (done === true) throw new Error(`the stream ended after ${told.length}`);
    told.push(value);
  }
  return told;
}

/** What is left of a stream. */
export async function rest(stream: AsyncIterableIterator<Notification>): Promise<Notification[]> {
  const told: Notification[] = [];
  for await (const notification of stream) told.push(notification);
  return told;
}

/** That a call is refused with this code; the refusal. */
export async function refused(code: ErrorCode, call: Promise<unknown>): Promise<Refused> {
  const found = await call.then(
    () => assert.fail("it was not refused"),
    (error: unknown) => error,
  );
  assert(found instanceof Refused, String(found));
  assert.equal(found.code, code);
  assert(found.suggestedAction !== "" && found.message.startsWith(code));
  return found;
}
