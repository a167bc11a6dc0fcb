"""A peer that the test plays itself, where the very frames matter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from conftest import DEADLINE
from websockets.asyncio.server import ServerConnection, serve


class Line:
    """One connection to the peer."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def request(self) -> dict[str, Any]:
        """Await the next request."""
        found: dict[str, Any] = json.loads(await asyncio.wait_for(self.socket.recv(), DEADLINE))
        return found

    async def reply(self, request: dict[str, Any], payload: dict[str, Any], *, epoch: int = 1) -> None:
        """Answer a request."""
        await self.socket.send(json.dumps({**request, "epoch": epoch, "payload": payload}))

    async def push(self, subscription: str, epoch: int, *, index: int = 0, summary: str = "") -> None:
        """Push a notification."""
        cursor = f"{epoch}.{index}"
        payload = {
            "subscription_id": subscription,
            "event": "memory.recorded",
            "epoch": epoch,
            "relevance_score": 1.0,
            "summary": summary,
            "memory_unit_id": f"mem-{epoch}",
            "conflict_id": None,
            "requires_action": False,
            "cursor": cursor,
            "agent_id": "x",
            "task_id": None,
        }
        frame = {"id": f"push-{subscription}-{cursor}", "operation": "SUBSCRIBE", "epoch": epoch, "payload": payload}
        await self.socket.send(json.dumps(frame))

    async def cut(self) -> None:
        """End the connection as a broken wire would."""
        self.socket.transport.abort()
        await self.socket.wait_closed()


def subscribed(request: dict[str, Any], cursor: str, **more: Any) -> dict[str, Any]:
    """Answer ``subscribe``."""
    wish = request["payload"]["subscription"]
    subscription = {"id": wish.get("id", "sub-1"), "events": ["memory.recorded"], **more}
    return {"status": "ok", "subscription": subscription, "cursor": cursor}


def no(code: str, **details: Any) -> dict[str, Any]:
    """Make an error body."""
    body = {"code": code, "message": "m", "operation": "", "recoverable": True, "suggested_action": "s"}
    return {**body, "details": details}


class Peer:
    """A listener whose connections the test takes one by one."""

    def __init__(self) -> None:
        self.url = ""
        self._lines: asyncio.Queue[Line] = asyncio.Queue()
        self._over = asyncio.Event()

    async def _serve(self, socket: ServerConnection) -> None:
        self._lines.put_nowait(Line(socket))
        waits = [asyncio.create_task(self._over.wait()), asyncio.create_task(socket.wait_closed())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def accept(self) -> Line:
        """Await the next connection."""
        return await asyncio.wait_for(self._lines.get(), DEADLINE)


@asynccontextmanager
async def playing() -> AsyncIterator[Peer]:
    """Listen on a free port."""
    peer = Peer()
    async with serve(peer._serve, "127.0.0.1", 0, max_queue=None, max_size=None) as server:
        host, port = next(iter(server.sockets)).getsockname()
        peer.url = f"http://{host}:{port}"
        yield peer
        peer._over.set()
