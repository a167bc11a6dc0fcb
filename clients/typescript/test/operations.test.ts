/** Every operation against a real hub. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, type ErrorCode, ProtocolError } from "../src/index.js";
import { finding, Hub, refused } from "./hub.js";

test("a team", async (t) => {
  const hub = await Hub.start(t);
  const ann = await hub.agent(t, "ann", { sessionId: "s-1" });
  const bob = await Client.connect(hub.url, "bob");
  t.after(() => bob.close());
  const rejected = await bob.register({ role: "researcher", required_operations: ["TELEPATHY"] });
  assert.equal(rejected.status, "rejected");
  assert.match(rejected.rejection_reason ?? "", /TELEPATHY/);
  const registered = await bob.register({ role: "researcher", interests: ["growth"] });
  assert.deepEqual(registered.agent?.interests, ["growth"]);
  assert.equal(registered.field_capabilities.field, "default");

  const first = await ann.record({
    ...finding("It grows by 23 %."),
    intent: { purpose: "p", task_id: "t-1" },
  });
  const relations = [{ type: "contradicts" as const, target_id: first.memory_unit_id }];
  const second = await bob.record({ ...finding("It grows by 14 %."), relations });
  const conflict = second.conflicts_detected[0]!;
  const attuned = await bob.attune({
    scope: { role: "strategist", max_units: 5, max_tokens: 4_000 },
    context_hint: "market growth",
    explain: true,
  });
  const best = attuned.record[0]!;
  assert.equal(best.memory_unit.source?.session_id, "s-1");
  assert(best.factors !== undefined && "recency" in best.factors);
  assert.equal(attuned.conflicts[0]?.id, conflict);
  assert(bob.epoch >= attuned.epoch);

  const detected = await ann.detect({ mode: "list", filter: { status: ["detected"] } });
  assert.equal(detected.conflicts[0]?.unit_a, first.memory_unit_id);
  const resolution = { rationale: "Both count.", synthesis: "14 to 23 %." };
  const merged = await ann.merge({ conflict_id: conflict, strategy: "synthesis", resolution });
  assert.equal(merged.status, "resolved");
  assert(merged.side_effects.new_unit_id !== null);
  const replayed = await ann.replay({ target_type: "conflict", target_id: conflict, depth: "detailed" });
  assert.equal(replayed.timeline.at(-1)?.event_type, "MERGE");

  const decision = { type: "decision" as const, content: "Go.", intent: { purpose: "p" }, mode: "draft" as const };
  const draft = (await ann.record(decision)).memory_unit_id;
  const committed = await ann.commit({ memory_unit_id: draft, confidence: { score: 1, reason: "sure" } });
  assert.equal(committed.memory_unit_id, draft);
  assert.equal((await ann.retract(draft, "No.")).status, "ok");
  const other = (await ann.record(decision)).memory_unit_id;
  assert.equal((await ann.discard(other, "No.")).status, "ok");
  assert.equal((await ann.send("DETECT", { mode: "list" }))["status"], "ok");
  if (registered.field_capabilities.supported_operations.includes("COMPACT")) {
    const everything = { strategy: "archive" as const, filter: { max_age_epochs: 0 }, reason: "A test." };
    const previewed = await ann.compact({ ...everything, dry_run: true });
    assert.ok(previewed.units_affected > 0 && previewed.dry_run);
    const compacted = await ann.compact(everything);
    // The preview left them for this one.
    assert.deepEqual([compacted.units_affected, compacted.dry_run], [previewed.units_affected, undefined]);
  } else {
    await refused("UNSUPPORTED_OPERATION", ann.compact({ strategy: "archive" }));
  }
  assert.equal((await ann.deregister()).status, "ok");
  const gone = await refused("AGENT_NOT_REGISTERED", ann.detect());
  assert.equal(gone.details["status"], "offline");
});

test("a purge of everything has to be confirmed", async (t) => {
  const hub = await Hub.start(t);
  const { extensions } = (await (await fetch(`${hub.url}/v1/field/capabilities`)).json()) as { extensions: string[] };
  if (!extensions.includes("level-3-purge")) return t.skip("this hub purges nothing");
  const ann = await hub.agent(t, "ann");
  const unit = { type: "finding" as const, intent: { purpose: "p" }, confidence: { score: 1, reason: "sure" } };
  await Promise.all(Array.from({ length: 101 }, (_, number) => ann.record({ ...unit, content: `Crate ${number} is full.` })));
  const purge = { strategy: "purge" as const, filter: { max_age_epochs: 0 } };
  await refused("INVALID_MESSAGE", ann.compact(purge));
  assert.equal((await ann.compact({ ...purge, confirm: true })).units_affected, 101);
});

test("refusals change nothing and say what to do", async (t) => {
  const hub = await Hub.start(t);
  const ann = await hub.agent(t, "ann");
  const more: [string, object, ErrorCode][] = [
    ["RECORD", { type: "finding", content: "x" }, "MISSING_INTENT"],
    ["RECORD", { type: "tale", content: "x" }, "INVALID_TYPE"],
    ["RECORD", { ...finding("x"), confidence: { score: Number.NaN, reason: "r" } }, "MISSING_CONFIDENCE"],
    ["RECORD", { ...finding("x"), confidence: { score: 7, reason: "r" } }, "INVALID_CONFIDENCE"],
    ["REPLAY", { target_type: "task", target_id: "none", depth: "summary" }, "UNIT_NOT_FOUND"],
    ["HANDOFF", {}, "UNSUPPORTED_OPERATION"],
    ["TELEPATHY", {}, "INVALID_MESSAGE"],
    ["SUBSCRIBE", { action: "unsubscribe", subscription: { id: "none" } }, "SUBSCRIPTION_NOT_FOUND"],
  ];
  for (const [operation, payload, code] of more) await refused(code, ann.send(operation, payload));
  await refused("AGENT_ID_TAKEN", ann.register({ role: "another" }));
  assert.deepEqual((await ann.attune({ scope: { role: "r", max_units: 1, include_own: true } })).record, []);
  for (const unwritable of [{ n: 1n }, undefined as unknown as object]) {
    await assert.rejects(ann.send("RECORD", unwritable), ProtocolError);
  }
  assert.equal((await ann.record(finding("still here"))).status, "accepted");
});

for (const [what, content] of [
  ["any script", 'Ærøskøbing, Київ, 東京, 🦀🧠, \u202ert\u0301l\u202c, "quoted" \\ and a\nline\tand \u0001'],
  ["200 KB of two bytes", "ß".repeat(100_000)],
  ["200 KB", "x".repeat(200_000)],
] as const) {
  test(`a content comes back as it was: ${what}`, async (t) => {
    const hub = await Hub.start(t);
    const [ann, bob] = [await hub.agent(t, "änn-日本"), await hub.agent(t, "bob")];
    await ann.record(finding(content));
    const { record } = await bob.attune({ scope: { role: "r", max_units: 10 } });
    assert.equal(record[0]?.memory_unit.content, content);
    assert.equal(record[0].memory_unit.source?.agent_id, "änn-日本");
  });
}

test("a message too large fails alone, and changes nothing", async (t) => {
  const hub = await Hub.start(t);
  const ann = await Client.connect(hub.url, "ann");
  t.after(() => ann.close());
  // Not told its limit yet: the hub closes the connection, which fails this call alone.
  await refused("MESSAGE_TOO_LARGE", ann.record(finding("x".repeat(1_100_000))));
  await ann.register({ role: "r" });
  const no = await refused("MESSAGE_TOO_LARGE", ann.record(finding("ß".repeat(540_000))));
  assert.equal(no.details["limit_bytes"], 1_048_576);
  await refused("INVALID_MESSAGE", ann.record(finding("x".repeat(262_145))));
  assert.deepEqual((await ann.attune({ scope: { role: "r", max_units: 1, include_own: true } })).record, []);
});

test("Fields are apart", async (t) => {
  const hub = await Hub.start(t, "--field", "one", "--field", "two");
  const ann = await hub.agent(t, "ann", { field: "two" });
  await ann.record(finding("of two"));
  const bob = await Client.connect(`${hub.url}/v1/fields/two`, "bob");
  t.after(() => bob.close());
  assert.equal((await bob.register({ role: "r" })).field_capabilities.field, "two");
  assert.equal((await bob.attune({ scope: { role: "r", max_units: 5 } })).record.length, 1);
  await refused("FIELD_NOT_FOUND", Client.connect(hub.url, "ann", { field: "three" }));
});
