"""The asynchronous client against a scripted peer: what it sends, in which order, after what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import DEADLINE
from peer import Line, no, playing, subscribed

from akashik import AsyncClient, Disconnected, Notifications, Unreachable, errors
from akashik import _link as link
from akashik._inbox import QUEUED_MAX


def ask(client: AsyncClient, n: int) -> asyncio.Task[dict[str, Any]]:
    return asyncio.create_task(client.send("RECORD", {"n": n}))


async def test_unanswered_messages_are_sent_again_as_they_were() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        calls = [ask(client, n) for n in range(3)]
        first = [await line.request() for _ in calls]
        await line.reply(first[1], {"done": 1}, epoch=7)
        assert await calls[1] == {"done": 1}
        await line.cut()
        line = await peer.accept()
        again = [await line.request(), await line.request()]
        assert again == [first[0], first[2]], "same ids, same order, nothing answered twice"
        for request in again:
            await line.reply(request, {"done": 1}, epoch=8)
        await asyncio.gather(*calls)
        following = ask(client, 9)
        request = await line.request()
        assert (request["epoch"], client.epoch) == (8, 8), "the greatest epoch seen is sent"
        await line.reply(request, {}, epoch=3)
        await following
        assert client.epoch == 8


async def test_an_idle_agent_that_returns_says_so() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        call = ask(client, 1)
        await line.reply(await line.request(), {})
        await call
        await line.cut()
        line = await peer.accept()
        presence = await line.request()
        assert (presence["operation"], presence["agent_id"]) == ("ATTUNE", "ann")
        # Its reply is nobody's, and a push that nobody listens for disturbs no call.
        await line.reply(presence, {}, epoch=2)
        await line.push("sub-1", 2)
        for junk in ("<html>proxy</html>", "[]", '{"id":1}', '{"id":"x","payload":[]}'):
            await line.socket.send(junk)
        call = ask(client, 2)
        await line.reply(await line.request(), {"ok": 1})
        assert await call == {"ok": 1}


async def test_patience_ends_and_a_forgotten_call_is_not_sent_again() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann", timeout=0.05) as client:
        line = await peer.accept()
        with pytest.raises(Unreachable, match=r"no answer to RECORD within 0\.05 s"):
            await ask(client, 1)
        client._timeout = DEADLINE
        cancelled = ask(client, 2)
        assert (await line.request())["payload"] == {"n": 1}
        assert (await line.request())["payload"] == {"n": 2}
        cancelled.cancel()
        await asyncio.wait({cancelled})
        await line.cut()
        line = await peer.accept()
        call = ask(client, 3)
        request = await line.request()
        assert request["payload"] == {"n": 3}
        await line.reply(request, {})
        await call
        assert not client._link._pending


async def test_a_call_that_is_cancelled_in_the_moment_of_its_answer_leaves_nothing_behind() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        call = asyncio.create_task(client.subscribe(["memory.recorded"], id="s"))
        request = await line.request()
        taken = client._link._answer

        def answer_and_cancel(number: int, outcome: Any) -> None:
            taken(number, outcome)
            call.cancel()

        client._link._answer = answer_and_cancel  # type: ignore[method-assign]
        await line.reply(request, subscribed(request, "1.0"))
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not client._attached._inboxes


async def test_what_is_beyond_the_bound_waits_its_turn() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        calls = [ask(client, n) for n in range(link.IN_FLIGHT_MAX + 3)]
        requests = [await line.request() for _ in range(link.IN_FLIGHT_MAX)]
        assert len(client._link._pending) == link.IN_FLIGHT_MAX
        calls[-1].cancel()
        await line.reply(requests[0], {})
        assert (await line.request())["payload"] == {"n": link.IN_FLIGHT_MAX}
        await line.reply(requests[1], {})
        requests.append(await line.request())
        assert len(client._link._line) == 0
        await client.close()
        for result in await asyncio.gather(*calls[2:-1], return_exceptions=True):
            assert isinstance(result, Disconnected)
        assert calls[-1].cancelled()


async def test_closing_ends_calls_and_streams() -> None:
    async with playing() as peer:
        client = await AsyncClient(peer.url, "ann")
        line = await peer.accept()
        news = await attach(client, line)
        await line.push("s", 2)
        served = ask(client, 0)
        await line.reply(await line.request(), {})
        await served
        call = ask(client, 1)
        await line.request()
        await client.close()
        with pytest.raises(Disconnected, match="closed"):
            await call
        assert [n.epoch async for n in news] == [2], "what was queued is still there"
        with pytest.raises(Disconnected):
            await client.detect()
        await line.socket.wait_closed()
        assert line.socket.close_code == 1000
        assert client.connection == "closed"
        await client.close()


async def test_what_ends_every_connection_is_given_up() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        client._link._backoff.next = lambda: 0.0  # type: ignore[method-assign]
        call = ask(client, 1)
        for _ in range(link.REPEATS_MAX + 1):
            line = await peer.accept()
            await line.request()
            await line.cut()
        with pytest.raises(Disconnected, match="every connection was lost"):
            await call


async def test_close_codes_fail_what_would_be_wrong_to_repeat() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        small, big = ask(client, 1), asyncio.create_task(client.send("RECORD", {"n": "x" * 5_000}))
        await line.request()
        await line.request()
        await line.socket.close(1009)
        with pytest.raises(errors.MessageTooLarge):
            await big
        line = await peer.accept()
        await line.request()
        await line.socket.close(1008, "policy")
        with pytest.raises(Disconnected, match="policy"):
            await small
        line = await peer.accept()


async def attach(client: AsyncClient, line: Line, cursor: str = "1.0", **more: Any) -> Notifications:
    call = asyncio.create_task(client.subscribe(["memory.recorded"], id="s"))
    request = await line.request()
    await line.reply(request, subscribed(request, cursor, **more))
    return await call


async def epochs(news: Notifications, count: int) -> list[int]:
    return [(await asyncio.wait_for(news.__anext__(), DEADLINE)).epoch for _ in range(count)]


async def test_a_stream_resumes_by_its_cursor() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        news = await attach(client, line)
        for epoch in (2, 3, 3, 2):
            await line.push("s", epoch)
        assert await epochs(news, 2) == [2, 3]
        await line.cut()
        line = await peer.accept()
        again = await line.request()
        assert again["payload"]["subscription"] == {"id": "s", "resume_after": "3.0"}
        await line.push("s", 9)  # of the attachment before: not to be taken
        await line.reply(again, subscribed(again, "3.0"))
        for epoch in (3, 4):
            await line.push("s", epoch)
        assert await epochs(news, 1) == [4]
        assert news.cursor == "4.0"


async def test_a_failed_agent_returns_as_who_it_was() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        call = asyncio.create_task(client.register("researcher", interests=["x"]))
        request = await line.request()
        capabilities = {
            "conformance_level": 1,
            "supported_operations": [],
            "protocol_version": "0.1.0",
            "persistence": True,
            "conflict_strategies": [],
        }
        agent = {"id": "ann", "role": "researcher", "status": "idle"}
        registered = {"status": "registered", "agent": agent, "field_capabilities": capabilities, "new_key": 1}
        await line.reply(request, registered)
        assert (await call).extra == {"new_key": 1}
        news = await attach(client, line)
        await line.cut()
        line = await peer.accept()
        await line.reply(await line.request(), no("AGENT_NOT_REGISTERED", status="failed"))
        again = await line.request()
        assert (again["operation"], again["payload"]) == ("REGISTER", request["payload"])
        assert again["id"] != request["id"]
        await line.reply(again, registered)
        resumed = await line.request()
        await line.reply(resumed, subscribed(resumed, "1.0"))
        await line.push("s", 5)
        assert await epochs(news, 1) == [5]
        # Once only: an agent that cannot return is told so.
        await line.cut()
        for _ in range(2):
            line = await peer.accept() if _ == 0 else line
            request = await line.request()
            await line.reply(request, no("AGENT_NOT_REGISTERED", status="failed"))
            if _ == 0:
                await line.reply(await line.request(), no("AGENT_ID_TAKEN"))
        with pytest.raises(errors.AgentNotRegistered):
            await epochs(news, 1)
        assert [n async for n in news] == []


async def test_a_hub_that_cannot_attach_now_is_asked_again() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        news = await attach(client, line)
        await line.cut()
        line = await peer.accept()
        await line.reply(await line.request(), no("OVERLOADED", retry_after_ms=5))
        again = await line.request()
        await line.reply(again, subscribed(again, "1.0"))
        await line.push("s", 2)
        assert await epochs(news, 1) == [2]


async def test_a_subscription_that_fell_silent_is_looked_after() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann", look_every=0.05) as client:
        line = await peer.accept()
        news = await attach(client, line)
        request = await line.request()
        assert request["payload"] == {"action": "list"}
        there = {"id": "s", "events": ["memory.recorded"]}
        await line.reply(request, {"status": "ok", "subscriptions": [there]})
        await line.push("s", 2)
        assert await epochs(news, 1) == [2]
        await line.reply(await line.request(), {"status": "ok", "subscriptions": []})
        with pytest.raises(errors.SubscriptionNotFound, match="ended by somebody else"):
            await epochs(news, 1)


async def test_an_unreadable_notification_ends_the_stream() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        news = await attach(client, line)
        await line.socket.send('{"id":"push-s-2.0","epoch":2,"payload":{"summary":7}}')
        with pytest.raises(errors.ProtocolError, match=r"Notification\.\w+"):
            await epochs(news, 1)


async def test_a_slow_taker_is_bounded_and_loses_nothing() -> None:
    last = QUEUED_MAX * 3
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        news = await attach(client, line, "0.0")
        # A call that waits keeps the connection read, so that what does not fit is let go.
        call = ask(client, 1)
        waiting = await line.request()
        for epoch in range(1, last + 1):
            await line.push("s", epoch)
        await line.reply(waiting, {})
        await call
        assert len(news._inbox._queue) == QUEUED_MAX

        async def hub() -> None:
            while True:
                request = await line.request()
                after = int(request["payload"]["subscription"]["resume_after"].split(".")[0])
                await line.reply(request, subscribed(request, f"{after}.0"))
                for epoch in range(after + 1, last + 1):
                    await line.push("s", epoch)

        pushing = asyncio.create_task(hub())
        assert await epochs(news, last) == list(range(1, last + 1))
        pushing.cancel()


async def test_a_client_that_can_take_nothing_leaves_the_connection_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_UNREAD_MAX", 3_600.0)
    count = QUEUED_MAX * 8
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        news = await attach(client, line, "0.0")
        text = "x" * 10_000  # 80 MB in all: more than any buffer between the two

        async def hub() -> None:
            for epoch in range(1, count + 1):
                await line.push("s", epoch, summary=text)

        pushing = asyncio.create_task(hub())
        assert await epochs(news, count) == list(range(1, count + 1)), "nothing had to be asked for again"
        await pushing


async def test_direct_notifications_need_no_subscription_and_are_bounded() -> None:
    async with playing() as peer, AsyncClient(peer.url, "ann") as client:
        line = await peer.accept()
        direct = client.direct()
        for epoch in range(1, QUEUED_MAX + 6):
            await line.push("direct", epoch)
        call = ask(client, 1)
        await line.reply(await line.request(), {})
        await call
        assert direct.missed == 5
        assert (await direct.__anext__()).epoch == 1
        second = client.direct()
        assert [n.epoch async for n in direct][-1] == QUEUED_MAX, "a second one ends the first"
        second.close()
        assert [n async for n in second] == []
