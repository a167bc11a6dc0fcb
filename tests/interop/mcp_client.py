"""The official Python SDK of MCP against a hub: every version, both transports, every tool.

Called as: mcp_client.py HUB_URL AKASHIK_BINARY EMPTY_DIRECTORY
"""

import json
import socket
import subprocess
import sys

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ResourceUpdatedNotification

HUB, BINARY, DIRECTORY = sys.argv[1:4]
CONFLICTS = "akashik://conflicts"


def unit(content, **more):
    return {
        "type": "finding", "content": content, "intent": {"purpose": "to see it work"},
        "confidence": {"score": 0.7, "reason": "made up"}, **more,
    }


async def ok(client, tool, arguments):
    """Calls a tool that must succeed. The SDK itself holds the answer against the tool's output schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    assert result.content[0].text and result.structured_content is not None, (tool, result)
    return result.structured_content


async def no(client, tool, arguments, code):
    """Calls a tool that must be refused, with a whole error body."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, result)
    body = json.loads(result.content[0].text)
    assert body["code"] == code and body["suggested_action"], (tool, body)


async def team(client, name, remembers):
    """A team of two works through the tools."""
    def by(agent, arguments):
        return arguments if remembers and agent == first else {**arguments, "agent_id": agent}

    first, second = f"{name}-a", f"{name}-b"
    tools = (await client.list_tools()).tools
    names = {tool.name for tool in tools}
    assert {"akashik_register", "akashik_record", "akashik_attune", "akashik_retract"} <= names, names
    for tool in tools:
        assert tool.description and tool.input_schema["type"] == "object" and tool.output_schema, tool
        assert tool.annotations.read_only_hint is not None, tool
    await no(client, "akashik_record", unit("before anybody registered"), "AGENT_NOT_REGISTERED")
    for agent in (second, first):
        registered = await ok(client, "akashik_register", {"id": agent, "role": "researcher"})
        assert registered["agent"]["id"] == agent
    await no(client, "akashik_register", {"id": first, "role": "researcher"}, "AGENT_ID_TAKEN")
    recorded = await ok(client, "akashik_record", by(first, unit(f"{name}: the market grows")))
    mine = recorded["memory_unit_id"]
    against = unit(f"{name}: the market shrinks", relations=[{"type": "contradicts", "target_id": mine}])
    conflict = (await ok(client, "akashik_record", by(second, against)))["conflicts_detected"][0]
    scope = {"role": "researcher", "max_units": 5}
    brought = await ok(client, "akashik_attune", by(second, {"scope": scope, "context_hint": "market growth"}))
    assert any(one["memory_unit"]["id"] == mine for one in brought["record"]), brought
    again = await ok(client, "akashik_attune", by(second, {"scope": scope, "since_epoch": brought["epoch"]}))
    assert again["record"] == [], again
    listed = await ok(client, "akashik_detect", by(first, {"mode": "list"}))
    assert any(one["id"] == conflict for one in listed["conflicts"]), listed
    shown = await client.read_resource(CONFLICTS)
    assert conflict in shown.contents[0].text, shown
    merge = {"conflict_id": conflict, "strategy": "last_write_wins", "resolution": {"rationale": "newer"}}
    assert (await ok(client, "akashik_merge", by(first, merge)))["status"] == "resolved"
    await no(client, "akashik_merge", by(first, merge), "INVALID_TRANSITION")
    replay = {"target_type": "memory_unit", "target_id": mine, "depth": "full_trace"}
    assert (await ok(client, "akashik_replay", by(first, replay)))["total_events"] >= 4
    once = by(first, unit("only once", message_id=f"{name}-once"))
    assert await ok(client, "akashik_record", once) == await ok(client, "akashik_record", once)
    retract = by(first, {"memory_unit_id": (await ok(client, "akashik_record", once))["memory_unit_id"], "reason": "no"})
    await ok(client, "akashik_retract", retract)
    await no(client, "akashik_record", by(first, {"type": "opinion"}), "INVALID_TYPE")
    await no(client, "akashik_replay", by(first, {**replay, "target_id": "mem-99999"}), "UNIT_NOT_FOUND")
    if "akashik_compact" in names:
        compact = {"strategy": "archive", "filter": {"status": ["retracted"]}}
        assert (await ok(client, "akashik_compact", by(first, compact)))["status"] == "ok"
    try:
        await client.call_tool("akashik_forget", {})
        raise AssertionError("an unknown tool was called")
    except MCPError as error:
        assert "akashik_forget" in str(error), error
    await looks(client, mine)
    await ok(client, "akashik_deregister", by(second, {}) if not remembers else {"agent_id": second})


async def looks(client, known):
    """Resources and the prompt."""
    resources = (await client.list_resources()).resources
    assert {str(resource.uri) for resource in resources} == {CONFLICTS, "akashik://field/status"}, resources
    templates = (await client.list_resource_templates()).resource_templates
    assert templates[0].uri_template == "akashik://units/{id}", templates
    shown = json.loads((await client.read_resource(f"akashik://units/{known}")).contents[0].text)
    assert shown["id"] == known and shown["status"] == "superseded", shown
    try:
        await client.read_resource("akashik://units/mem-99999")
        raise AssertionError("a unit that is not there was read")
    except MCPError as error:
        assert "mem-99999" in str(error), error
    prompts = (await client.list_prompts()).prompts
    told = await client.get_prompt(prompts[0].name, {"role": "strategist"})
    assert "strategist" in told.messages[0].content.text, told


async def contradict(client, agent):
    """Makes a conflict."""
    first = await ok(client, "akashik_record", {**unit("one side"), "agent_id": agent})
    side = unit("other side", relations=[{"type": "contradicts", "target_id": first["memory_unit_id"]}])
    await ok(client, "akashik_record", {**side, "agent_id": agent})


async def handshake(server, name):
    """The versions with a handshake: what is known of the session stays, and resources are watched."""
    told = anyio.Event()

    async def heard(message):
        if isinstance(message, ResourceUpdatedNotification) and str(message.params.uri) == CONFLICTS:
            told.set()

    async with Client(server, mode="legacy", message_handler=heard, read_timeout_seconds=30) as client:
        assert client.protocol_version == "2025-11-25", client.protocol_version
        assert "akashik_attune" in client.instructions
        await client.send_ping()
        await team(client, name, remembers=True)
        await client.subscribe_resource(CONFLICTS)
        await contradict(client, f"{name}-a")
        with anyio.fail_after(20):
            await told.wait()
        await client.unsubscribe_resource(CONFLICTS)
    # Another session goes on as the same agent.
    async with Client(server, mode="legacy", read_timeout_seconds=30) as client:
        await ok(client, "akashik_record", {**unit("back again"), "agent_id": f"{name}-a"})
        await ok(client, "akashik_record", unit("and known from then on"))


async def sessionless(server, name):
    """The version without a handshake: every request says who speaks, and news come on a request that stays open."""
    async with Client(server, read_timeout_seconds=30) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        await team(client, name, remembers=isinstance(server, StdioServerParameters))
        async with client.listen(resource_subscriptions=[CONFLICTS]) as news:
            assert news.honored.resource_subscriptions == [CONFLICTS], news.honored
            events = aiter(news)
            with anyio.fail_after(20):
                # The first says that something may have been missed.
                await anext(events)
                await contradict(client, f"{name}-a")
                await anext(events)


def stdio(*arguments):
    return StdioServerParameters(command=BINARY, args=["mcp", *arguments])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def hub_on(port):
    """Starts a hub and waits for its one line."""
    data = ["--data", f"{DIRECTORY}/restarted", "--log-filter", "warn"]
    hub = subprocess.Popen([BINARY, "serve", "--listen", f"127.0.0.1:{port}", *data], stdout=subprocess.PIPE)
    assert b"listening" in hub.stdout.readline()
    return hub


async def restart():
    """A stdio server outlives its hub: tools say that it is away, and work again once it is back."""
    port = free_port()
    hub = hub_on(port)
    try:
        async with Client(stdio("--url", f"http://127.0.0.1:{port}"), mode="legacy", read_timeout_seconds=30) as client:
            await ok(client, "akashik_register", {"id": "stays", "role": "r"})
            hub.kill()
            hub.wait()
            await no(client, "akashik_record", unit("nobody hears it", message_id="m"), "OVERLOADED")
            assert (await client.list_tools()).tools
            hub = hub_on(port)
            await ok(client, "akashik_record", unit("nobody hears it", message_id="m"))
    finally:
        hub.kill()
        hub.wait()


async def lost_session():
    """A session that the hub has ended is a 404, upon which a client begins anew."""
    async with httpx2.AsyncClient() as http:
        accept = {"Accept": "application/json, text/event-stream"}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        lost = await http.post(f"{HUB}/mcp", json=call, headers={**accept, "Mcp-Session-Id": "gone"})
        assert lost.status_code == 404 and lost.json()["code"], lost.text


async def main():
    await handshake(f"{HUB}/mcp", "http")
    await sessionless(f"{HUB}/mcp", "modern")
    await handshake(stdio("--url", HUB), "pipe")
    await sessionless(stdio("--url", HUB), "pipe-modern")
    await handshake(stdio("--data", f"{DIRECTORY}/own"), "own")
    await sessionless(stdio("--data", f"{DIRECTORY}/own-modern"), "own-modern")
    await handshake(f"{HUB}/v1/fields/other/mcp", "other")
    await restart()
    await lost_session()
    print("the Python SDK is content")


anyio.run(main)
