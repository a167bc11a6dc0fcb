"""Streams of notifications against a real hub that dies, agents that fail, subscriptions that end."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from conftest import DEADLINE, Hub

from akashik import AsyncClient, Client, Notification, Notifications, Polling, errors

SURE: dict[str, Any] = {"purpose": "to test", "score": 0.5, "reason": "made up"}


@asynccontextmanager
async def agents(hub: Hub, *names: str, **options: Any) -> AsyncIterator[list[AsyncClient]]:
    clients = [await AsyncClient(hub.url, name, **options) for name in names]
    for client in clients:
        await client.register("researcher")
    yield clients
    await asyncio.gather(*(client.close() for client in clients))


async def following(news: Notifications) -> Notification:
    return await asyncio.wait_for(news.__anext__(), DEADLINE)


async def units(news: Notifications, count: int) -> list[str | None]:
    return [(await following(news)).memory_unit_id for _ in range(count)]


async def test_a_subscription_brings_what_it_asks_for(hub: Hub) -> None:
    async with agents(hub, "ann", "bob") as (ann, bob):
        async with await ann.subscribe(["memory.recorded", "conflict.detected"], id="s", include_unit=True) as news:
            assert news.subscription.events == ["memory.recorded", "conflict.detected"]
            assert [s.id for s in await ann.subscriptions()] == ["s"]
            first = (await bob.record("finding", "It grows.", **SURE)).memory_unit_id
            told = await following(news)
            assert (told.event, told.memory_unit_id, told.agent_id) == ("memory.recorded", first, "bob")
            assert told.memory_unit is not None
            assert told.memory_unit.content == "It grows."
            assert news.cursor == told.cursor
        # Whoever stopped listening can take it up again where it stopped.
        second = (await bob.record("finding", "It shrinks.", **SURE, relations=[("contradicts", first)])).memory_unit_id
        news = await ann.subscribe(id="s", resume_after=told.cursor)
        assert await units(news, 1) == [second]
        assert (await following(news)).event == "conflict.detected"
        await ann.unsubscribe("s")
        assert [n async for n in news] == []
        await ann.deregister()


async def test_authors_hear_of_resolutions_without_a_subscription(hub: Hub) -> None:
    async with agents(hub, "ann", "bob") as (ann, bob):
        direct = ann.direct()
        first = (await ann.record("finding", "It grows.", **SURE)).memory_unit_id
        (conflict,) = (
            await bob.record("finding", "It shrinks.", **SURE, relations=[("contradicts", first)])
        ).conflicts_detected
        await bob.merge(conflict, "last_write_wins", rationale="Newer.")
        told = await asyncio.wait_for(direct.__anext__(), DEADLINE)
        assert (told.event, told.conflict_id) == ("conflict.resolved", conflict)
        assert direct.missed == 0


async def test_nothing_is_lost_or_repeated_over_two_deaths(hub: Hub) -> None:
    """Records from many tasks and a stream, while the hub is killed and started again, twice."""
    tasks, each = 8, 25
    async with agents(hub, "ann", "bob", timeout=DEADLINE) as (ann, bob):
        news = await ann.subscribe(["memory.recorded"], id="s")
        recorded: list[str] = []

        async def record(task: int) -> None:
            for n in range(each):
                answer = await bob.record("finding", f"{task}/{n}", **SURE)
                recorded.append(answer.memory_unit_id)

        writing = [asyncio.create_task(record(task)) for task in range(tasks)]
        told: list[str | None] = []
        for deaths in (1, 2):
            while len(told) < deaths * tasks * each // 4:
                told += await units(news, 1)
            # Everybody writes without a pause, so messages are in flight now.
            await asyncio.to_thread(hub.kill)
            await asyncio.to_thread(hub.start_again)
        await asyncio.gather(*writing)
        told += await units(news, tasks * each - len(told))
        assert len(set(recorded)) == tasks * each, "no two records share a unit"
        assert told == sorted(told, key=lambda unit: int((unit or "").removeprefix("mem-"))), "in order"
        assert sorted(map(str, told)) == sorted(recorded), "nothing lost, nothing repeated"
        contents = [unit.memory_unit.content for unit in (await bob.attune("r", 1_000, include_own=True)).record]
        assert sorted(map(str, contents)) == sorted(f"{t}/{n}" for t in range(tasks) for n in range(each))


async def test_a_restart_in_good_order_is_no_end(hub: Hub) -> None:
    async with agents(hub, "ann", "bob") as (ann, bob):
        news = await ann.subscribe(["memory.recorded"])
        await asyncio.to_thread(hub.stop)
        call = asyncio.create_task(bob.record("finding", "while it is away", **SURE))
        await asyncio.to_thread(hub.start_again)
        assert await units(news, 1) == [(await call).memory_unit_id]


async def test_an_agent_that_failed_meanwhile_is_registered_again(hasty_hub: Hub) -> None:
    hub = hasty_hub
    async with agents(hub, "ann", "bob") as (ann, bob):
        news = await ann.subscribe(["memory.recorded"], id="s")
        failed = await bob.subscribe(["agent.failed"])
        # It keeps away for longer than the second of grace.
        stay_away = asyncio.Event()
        connect = ann._link._connect

        async def connect_later() -> Any:
            await stay_away.wait()
            return await connect()

        ann._link._connect = connect_later  # type: ignore[method-assign]
        assert ann._link._socket is not None
        ann._link._socket.transport.abort()
        assert (await following(failed)).agent_id == "ann"
        unit = (await bob.record("finding", "while ann is gone", **SURE)).memory_unit_id
        stay_away.set()
        assert await units(news, 1) == [unit]
        assert (await ann.detect()).status == "ok"


async def test_a_subscription_ended_elsewhere_ends_the_stream(hub: Hub) -> None:
    async with agents(hub, "ann", look_every=0.05) as (ann,):
        news = await ann.subscribe(["memory.recorded"], id="s")
        with Client(hub.url, "ann") as elsewhere:
            polling = elsewhere.subscribe(id="s")
            elsewhere.unsubscribe("s")
            with pytest.raises(errors.SubscriptionNotFound):
                polling.take(1)
        with pytest.raises(errors.SubscriptionNotFound):
            await following(news)
        # The agent itself, too.
        news = await ann.subscribe(["memory.recorded"], id="s")
        with Client(hub.url, "bob") as bob:
            bob.register("r")
            bob.deregister("ann")
        with pytest.raises((errors.AgentNotRegistered, errors.SubscriptionNotFound)):
            await following(news)


async def test_two_clients_of_one_agent_each_get_everything(hub: Hub) -> None:
    async with agents(hub, "ann", "bob") as (ann, bob), AsyncClient(hub.url, "ann") as twin:
        one = await ann.subscribe(["memory.recorded"], id="s")
        other = await twin.subscribe(id="s")
        recorded = [(await bob.record("finding", f"{n}", **SURE)).memory_unit_id for n in range(20)]
        assert await units(one, 20) == recorded
        assert await units(other, 20) == recorded
        # Their message ids do not meet: what one says is not taken for a repeat of what the other said.
        said = [await client.record("finding", "the same", **SURE) for client in (ann, twin)]
        assert said[0].memory_unit_id != said[1].memory_unit_id
        again = await ann.subscribe(id="s")
        assert [n async for n in one] == [], "a client has one stream for each subscription"
        again.close()


async def test_a_taker_far_behind_gets_everything(hub: Hub) -> None:
    count = 3_000
    async with agents(hub, "ann", "bob", timeout=DEADLINE) as (ann, bob):
        news = await ann.subscribe(["memory.recorded"])
        units_of_bob = [bob.record("finding", f"{n}", **SURE) for n in range(count)]
        recorded = [answer.memory_unit_id for answer in await asyncio.gather(*units_of_bob)]
        assert (await ann.detect()).status == "ok", "calls come through beside a full queue"
        assert await units(news, count) == sorted(recorded, key=lambda unit: int(unit.removeprefix("mem-")))


async def test_polling_survives_two_deaths(hub: Hub) -> None:
    with Client(hub.url, "ann", timeout=DEADLINE) as ann, Client(hub.url, "bob", timeout=DEADLINE) as bob:
        ann.register("researcher")
        bob.register("researcher")
        news = ann.subscribe(["memory.recorded"], id="s")
        told: list[str | None] = []

        def listen() -> None:
            told.extend(next(news).memory_unit_id for _ in range(60))

        listening = threading.Thread(target=listen)
        listening.start()
        recorded: list[str] = []
        writing = threading.Thread(
            target=lambda: recorded.extend(bob.record("finding", f"{n}", **SURE).memory_unit_id for n in range(60))
        )
        writing.start()
        for _ in range(2):
            hub.kill()
            hub.start_again()
        for thread in (writing, listening):
            await asyncio.to_thread(thread.join, DEADLINE)
        assert told == recorded
        assert len(set(recorded)) == 60
        assert news.take(0.01) is None
        resumed = ann.subscribe(id="s", resume_after=news.cursor)
        assert resumed.take(0.01) is None
        last = bob.record("finding", "last", **SURE).memory_unit_id
        for stream in (news, resumed):
            found = stream.take(5)
            assert found is not None
            assert found.memory_unit_id == last


def test_a_closed_client_ends_its_polling(hub: Hub) -> None:
    with Client(hub.url, "ann") as ann:
        ann.register("researcher")
        news = ann.subscribe(["memory.recorded"])
    assert list(news) == []
    with pytest.raises(errors.Disconnected):
        ann.detect()


def test_a_page_is_bounded(hub: Hub) -> None:
    with Client(hub.url, "ann") as ann, Client(hub.url, "bob") as bob:
        ann.register("researcher")
        bob.register("researcher")
        news: Polling = ann.subscribe(["memory.recorded"])
        recorded = [bob.record("finding", f"{n}", **SURE).memory_unit_id for n in range(230)]
        told = []
        for _ in recorded:
            found = news.take(5)
            assert found is not None
            assert len(news._page) < 100
            told.append(found.memory_unit_id)
        assert told == recorded


def test_an_http_agent_does_not_fail(hasty_hub: Hub) -> None:
    with Client(hasty_hub.url, "ann") as ann:
        ann.register("researcher")
    with urllib.request.urlopen(f"{hasty_hub.url}/v1/agents") as response:
        (agent,) = json.load(response)["agents"]
    assert (agent["status"], agent["connected"]) == ("idle", False)
