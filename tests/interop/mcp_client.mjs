// The official TypeScript SDK of MCP against a hub: both transports, every tool.
//
// Called as: mcp_client.mjs HUB_URL AKASHIK_BINARY EMPTY_DIRECTORY

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [hub, binary, directory] = process.argv.slice(2);
const CONFLICTS = "akashik://conflicts";

const unit = (content, more = {}) => ({
  type: "finding", content, intent: { purpose: "to see it work" },
  confidence: { score: 0.7, reason: "made up" }, ...more,
});

async function connect(transport) {
  const client = new Client({ name: "interop", version: "1.0.0" });
  await client.connect(transport);
  return client;
}

// Calls a tool that must succeed. The SDK itself holds the answer against the tool's output schema.
async function ok(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`);
  assert.ok(result.content[0].text && result.structuredContent, name);
  return result.structuredContent;
}

// Calls a tool that must be refused, with a whole error body.
async function no(client, name, args, code) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, `${name}: ${JSON.stringify(result)}`);
  const body = JSON.parse(result.content[0].text);
  assert.equal(body.code, code, name);
  assert.ok(body.suggested_action, name);
}

async function team(client, name) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  for (const expected of ["akashik_register", "akashik_record", "akashik_attune", "akashik_merge"]) {
    assert.ok(names.includes(expected), `${expected} in ${names}`);
  }
  assert.ok(tools.every((tool) => tool.outputSchema?.type === "object" && tool.annotations));
  await no(client, "akashik_record", unit("before anybody registered"), "AGENT_NOT_REGISTERED");
  const other = { agent_id: `${name}-b` };
  await ok(client, "akashik_register", { id: other.agent_id, role: "researcher" });
  await ok(client, "akashik_register", { id: `${name}-a`, role: "researcher" });
  await no(client, "akashik_register", { id: `${name}-a`, role: "researcher" }, "AGENT_ID_TAKEN");
  const mine = (await ok(client, "akashik_record", unit(`${name}: the market grows`))).memory_unit_id;
  const relations = [{ type: "contradicts", target_id: mine }];
  const against = await ok(client, "akashik_record", unit(`${name}: it shrinks`, { ...other, relations }));
  const conflict = against.conflicts_detected[0];
  const scope = { role: "researcher", max_units: 5 };
  const brought = await ok(client, "akashik_attune", { ...other, scope, context_hint: "market growth" });
  assert.ok(brought.record.some((one) => one.memory_unit.id === mine));
  for (const format of ["summary", "ids_only"]) await ok(client, "akashik_attune", { ...other, scope, format });
  assert.ok((await ok(client, "akashik_detect", { mode: "list" })).conflicts.some((one) => one.id === conflict));
  const merge = { conflict_id: conflict, strategy: "last_write_wins", resolution: { rationale: "newer" } };
  assert.equal((await ok(client, "akashik_merge", merge)).status, "resolved");
  const replay = { target_type: "memory_unit", target_id: mine, depth: "detailed" };
  assert.ok((await ok(client, "akashik_replay", replay)).total_events >= 3);
  const once = unit("only once", { message_id: `${name}-once` });
  const first = await ok(client, "akashik_record", once);
  assert.deepEqual(await ok(client, "akashik_record", once), first);
  await ok(client, "akashik_retract", { memory_unit_id: first.memory_unit_id, reason: "no" });
  await no(client, "akashik_record", { type: "opinion" }, "INVALID_TYPE");
  if (names.includes("akashik_compact")) {
    await ok(client, "akashik_compact", { strategy: "archive", filter: { status: ["retracted"] } });
  }
  const unknown = await client.callTool({ name: "akashik_forget", arguments: {} }).catch((error) => error);
  assert.match(String(unknown.message ?? JSON.stringify(unknown)), /akashik_forget/);
  await ok(client, "akashik_deregister", other);
  return mine;
}

async function looks(client, name, known) {
  assert.equal((await client.listResources()).resources.length, 2);
  assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, "akashik://units/{id}");
  const shown = await client.readResource({ uri: `akashik://units/${known}` });
  assert.equal(JSON.parse(shown.contents[0].text).id, known);
  await assert.rejects(client.readResource({ uri: "akashik://units/mem-99999" }), /mem-99999/);
  const prompt = (await client.listPrompts()).prompts[0].name;
  const told = await client.getPrompt({ name: prompt, arguments: { role: "strategist" } });
  assert.match(told.messages[0].content.text, /strategist/);
  const heard = new Promise((resolve) => {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      if (params.uri === CONFLICTS) resolve();
    });
  });
  await client.subscribeResource({ uri: CONFLICTS });
  const side = (await ok(client, "akashik_record", unit("one side"))).memory_unit_id;
  await ok(client, "akashik_record", unit("other side", { relations: [{ type: "contradicts", target_id: side }] }));
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("nothing was told")), 20_000).unref());
  await Promise.race([heard, late]);
  await client.unsubscribeResource({ uri: CONFLICTS });
}

async function http(path, name) {
  const url = new URL(hub + path);
  const transport = new StreamableHTTPClientTransport(url);
  const client = await connect(transport);
  const known = await team(client, name);
  await looks(client, name, known);
  const session = transport.sessionId;
  await transport.terminateSession();
  await client.close();
  // The session is over for good; the agent is not.
  const stale = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream", "Mcp-Session-Id": session,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
  assert.equal(stale.status, 404);
  const again = await connect(new StreamableHTTPClientTransport(url));
  await ok(again, "akashik_record", unit("back again", { agent_id: `${name}-a` }));
  await again.close();
}

async function stdio(name, ...args) {
  const client = await connect(new StdioClientTransport({ command: binary, args: ["mcp", ...args] }));
  const known = await team(client, name);
  await looks(client, name, known);
  await client.close();
}

await http("/mcp", "ts");
await http("/v1/fields/other/mcp", "ts");
await stdio("ts-pipe", "--url", hub);
await stdio("ts-own", "--data", `${directory}/ts-own`);
console.log("the TypeScript SDK is content");
