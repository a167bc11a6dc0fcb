"""Three agents argue about a market estimate until the conflict is merged.

Nobody calls anybody: each is told of what concerns it, and answers by recording. Start a hub (``akashik serve``),
then::

    pip install ./clients/python
    python examples/market_estimate.py          # on http://127.0.0.1:7420, or AKASHIK_URL
"""

from __future__ import annotations

import asyncio
import os

from akashik import AsyncClient, Notifications
from akashik.answers import MemoryUnit, Notification

URL = os.environ.get("AKASHIK_URL", "http://127.0.0.1:7420")
TASK = "task-market-estimate"


async def heard(news: Notifications, event: str, kind: str | None = None) -> tuple[Notification, MemoryUnit | None]:
    """Wait for the next event of this name and, where it says so, about a unit of this type."""
    async for notification in news:
        unit = notification.memory_unit
        if notification.event == event and (kind is None or (unit is not None and unit.type == kind)):
            return notification, unit
    raise RuntimeError("the stream has ended")


async def top_down(client: AsyncClient, news: Notifications) -> None:
    """Estimate from analysts' reports, and defend it when it is contradicted."""
    estimate = await client.record(
        "finding",
        "The European market for SMB HR tools grows at 23 % a year.",
        purpose="Estimate the market's growth",
        task_id=TASK,
        score=0.7,
        reason="Three analyst reports.",
    )
    print("top-down estimates 23 %")
    conflict, _ = await heard(news, "conflict.detected")
    print("top-down is contradicted; action required:", conflict.requires_action)
    await client.record(
        "observation",
        "All three analyst reports count licence revenue, services left out.",
        purpose="Say what the 23 % rest on",
        task_id=TASK,
        score=0.9,
        reason="Read in their appendices.",
        relations=[("supports", estimate.memory_unit_id)],
    )
    print("top-down argues: the reports count licences")


async def bottom_up(client: AsyncClient, news: Notifications) -> None:
    """Check others' estimates against customers' books, and contradict what does not fit."""
    _, theirs = await heard(news, "memory.recorded", "finding")
    assert theirs is not None
    estimate = await client.record(
        "finding",
        "The same market grows at 14 % a year.",
        purpose="Check the growth estimate",
        task_id=TASK,
        score=0.8,
        reason="Books of 60 customers.",
        relations=[("contradicts", theirs.id)],
    )
    print("bottom-up contradicts: 14 %")
    await heard(news, "memory.recorded", "observation")
    await client.record(
        "observation",
        "The customers' books count licences and services together.",
        purpose="Say what the 14 % rest on",
        task_id=TASK,
        score=0.9,
        reason="They are one item there.",
        relations=[("supports", estimate.memory_unit_id)],
    )
    print("bottom-up argues: the books count services too")


async def strategist(client: AsyncClient, news: Notifications) -> str:
    """Hear both sides out, then settle it."""
    conflict, _ = await heard(news, "conflict.detected")
    assert conflict.conflict_id is not None
    for _ in range(2):
        await heard(news, "memory.recorded", "observation")
    # What was said since then, brought without a query.
    found = await client.attune(
        "strategist",
        10,
        hint="settle the market growth estimate",
        active_task_id=TASK,
        since_epoch=conflict.epoch,
    )
    arguments = [u.memory_unit.content for u in found.record if u.memory_unit.type == "observation"]
    print(f"strategist has heard {len(arguments)} arguments")
    merged = await client.merge(
        conflict.conflict_id,
        "synthesis",
        rationale="Both are right about different things: licences, and licences with services.",
        synthesis="Licences grow at 23 % a year; licences and services together at 14 %.",
    )
    print("strategist merges:", merged.status)
    return conflict.conflict_id


async def main() -> None:
    """Let the three meet."""
    async with (
        AsyncClient(URL, "estimate-top-down") as one,
        AsyncClient(URL, "estimate-bottom-up") as other,
        AsyncClient(URL, "estimate-strategist") as third,
    ):
        await one.register("market_researcher", interests=["market growth"])
        await other.register("market_researcher", interests=["market growth"])
        await third.register("strategist", interests=["market growth"])
        streams = [
            await client.subscribe(
                ["memory.recorded", "conflict.detected"], id=f"{client.agent_id}-news", include_unit=True
            )
            for client in (one, other, third)
        ]
        # Both authors hear of the end without a subscription.
        endings = [one.direct(), other.direct()]
        _, _, conflict_id = await asyncio.gather(
            top_down(one, streams[0]), bottom_up(other, streams[1]), strategist(third, streams[2])
        )
        for ending in endings:
            notification = await ending.__anext__()
            print(f"{notification.event}: {notification.summary}")
        print("How it came about:")
        for event in (await third.replay("conflict", conflict_id)).timeline:
            print(f"  {event.event_type} by {event.agent_id}: {event.description}")
        for client in (one, other, third):
            await client.deregister()


if __name__ == "__main__":
    asyncio.run(main())
