"""The asynchronous client: one WebSocket, as one agent, to one Field."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, TypeVar

from . import _requests as requests
from ._address import read_address
from ._attached import DIRECT, Attached
from ._identity import Identity, write_json
from ._inbox import Inbox, write_cursor
from ._link import Call, Link
from ._reading import read
from ._requests import (
    CompactStrategy,
    ConflictStatus,
    ConflictType,
    DetectMode,
    EventName,
    Format,
    MemoryType,
    Mode,
    RelationLike,
    ReplayDepth,
    ReplayTarget,
    Strategy,
    TemporalLayer,
)
from .answers import (
    Acknowledged,
    Attuned,
    Compacted,
    Deregistered,
    Detected,
    Merged,
    Notification,
    Recorded,
    Registered,
    Replayed,
    Subscribed,
    Subscription,
    Subscriptions,
)
from .errors import Unreachable

#: How long a call may take, reconnecting included, seconds.
PATIENCE = 30.0
#: How long subscriptions may be quiet before the hub is asked whether they are still there, seconds.
LOOK_EVERY = 30.0


class AsyncClient:
    """An agent's connection to a Field.

    ::

        async with AsyncClient("http://127.0.0.1:7420", "researcher-01") as client:
            await client.register("market_researcher")
            await client.record("finding", "The market grows by 15 % a year.",
                                purpose="Size the market", score=0.9, reason="Primary data.")

    When the connection is lost, the client returns by itself and sends every unanswered message again under its same
    id; the hub answers a repeat with the first reply, so nothing is lost or done twice. A call that is cancelled is
    forgotten by the client; the hub may still carry it out. Calls may be made at once from many tasks of one event
    loop: up to 256 are in flight, further ones wait their turn.

    Every call may raise :class:`~akashik.errors.Refused` (of the class of its code), ``Unreachable``, ``Disconnected``
    or ``ProtocolError``.
    """

    def __init__(
        self,
        url: str,
        agent_id: str,
        *,
        session_id: str | None = None,
        field: str | None = None,
        token: str | None = None,
        timeout: float = PATIENCE,
        proxy: str | None = None,
        look_every: float = LOOK_EVERY,
    ) -> None:
        """Say which hub, and who asks; nothing is connected yet.

        ``timeout`` is how long a call may take in all, in seconds, waiting for a lost hub to return included.
        ``field`` chooses a Field where the address does not name one; neither means the hub's first. ``token`` is sent
        as ``Authorization: Bearer``. ``proxy`` is the URL of an HTTP or SOCKS proxy; the environment's are not used.
        After ``look_every`` seconds without a notification the client asks whether its subscriptions are still there.
        """
        self._timeout = timeout
        self._identity = Identity(agent_id, session_id)
        self._attached = Attached()
        self._link = Link(
            read_address(url, field),
            self._identity,
            self._attached,
            token=token,
            proxy=proxy,
            look_every=look_every,
        )

    async def open(self) -> AsyncClient:
        """Connect. Raises :class:`~akashik.errors.Unreachable` at once when nobody answers there.

        ``client = await AsyncClient(…)`` does the same; whoever does not use ``async with`` calls :meth:`close`.
        """
        await self._link.open()
        return self

    def __await__(self) -> Generator[Any, None, AsyncClient]:
        return self.open().__await__()

    async def close(self) -> None:
        """Close the connection. Calls that wait raise ``Disconnected``; streams end after what is queued."""
        await self._link.close()

    async def __aenter__(self) -> AsyncClient:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def agent_id(self) -> str:
        """The agent that this client speaks for."""
        return self._identity.agent_id

    @property
    def epoch(self) -> int:
        """The greatest epoch that this client has been shown."""
        return self._identity.epoch

    @property
    def connection(self) -> str:
        """How the connection stands: ``open``, ``lost`` (and the client tries to return), or ``closed``."""
        return self._link.connection

    # Agents

    async def register(
        self,
        role: str,
        *,
        interests: Iterable[str] | None = None,
        required_operations: Iterable[str] | None = None,
    ) -> Registered:
        """REGISTER. An answer with status ``rejected`` is no error."""
        payload = requests.register(self.agent_id, role, interests, required_operations)

        def registers(answer: dict[str, Any]) -> None:
            self._identity.learn(answer.get("field_capabilities") or {})
            if answer.get("status") == "registered":
                self._attached.registration = payload

        return read(Registered, await self._call("REGISTER", payload, registers))

    async def deregister(self, agent_id: str | None = None) -> Deregistered:
        """DEREGISTER, of this client's own agent if no other is named. Its own streams end with it."""
        target = self.agent_id if agent_id is None else agent_id

        def leaves(_: dict[str, Any]) -> None:
            if target == self.agent_id:
                self._attached.leaves()

        return read(Deregistered, await self._call("DEREGISTER", {"agent_id": target}, leaves))

    # Memory

    async def record(
        self,
        type: MemoryType,
        content: str,
        *,
        purpose: str,
        score: float | None = None,
        reason: str | None = None,
        evidence: Iterable[str] | None = None,
        assumptions: Iterable[str] | None = None,
        task_id: str | None = None,
        question: str | None = None,
        relations: Iterable[RelationLike] | None = None,
        mode: Mode | None = None,
    ) -> Recorded:
        """RECORD. ``score`` (0 to 1) and ``reason`` are required unless ``mode`` is ``"draft"``."""
        payload = requests.record(
            kind=type,
            content=content,
            purpose=purpose,
            task_id=task_id,
            question=question,
            score=score,
            reason=reason,
            evidence=evidence,
            assumptions=assumptions,
            relations=relations,
            mode=mode,
        )
        return read(Recorded, await self._call("RECORD", payload))

    async def attune(
        self,
        role: str,
        max_units: int = 10,
        *,
        hint: str | None = None,
        since_epoch: int | None = None,
        format: Format | None = None,
        explain: bool | None = None,
        max_tokens: int | None = None,
        interests: Iterable[str] | None = None,
        active_task_id: str | None = None,
        temporal_layers: Iterable[TemporalLayer] | None = None,
        relevance_threshold: float | None = None,
        recency_weight: float | None = None,
        include_own: bool | None = None,
        include_drafts: bool | None = None,
        include_archived: bool | None = None,
        session_id: str | None = None,
        types: Iterable[MemoryType] | None = None,
    ) -> Attuned:
        """ATTUNE: what matters to a role that is about to do what the hint says, 1 to 1,000 units."""
        payload = requests.attune(
            role=role,
            max_units=max_units,
            hint=hint,
            since_epoch=since_epoch,
            format=format,
            explain=explain,
            max_tokens=max_tokens,
            interests=interests,
            active_task_id=active_task_id,
            temporal_layers=temporal_layers,
            relevance_threshold=relevance_threshold,
            recency_weight=recency_weight,
            include_own=include_own,
            include_drafts=include_drafts,
            include_archived=include_archived,
            session_id=session_id,
            types=types,
        )
        return read(Attuned, await self._call("ATTUNE", payload))

    async def commit(
        self,
        unit_id: str,
        *,
        score: float | None = None,
        reason: str | None = None,
        evidence: Iterable[str] | None = None,
        assumptions: Iterable[str] | None = None,
        relations: Iterable[RelationLike] | None = None,
    ) -> Acknowledged:
        """COMMIT (Extension): make a draft everyone's memory. What is given takes the place of the draft's."""
        payload = requests.commit(unit_id, score, reason, evidence, assumptions, relations)
        return read(Acknowledged, await self._call("COMMIT", payload))

    async def retract(self, unit_id: str, reason: str) -> Acknowledged:
        """RETRACT (Extension): take a committed unit back."""
        return read(Acknowledged, await self._call("RETRACT", requests.give_up(unit_id, reason)))

    async def discard(self, unit_id: str, reason: str) -> Acknowledged:
        """DISCARD (Extension): give a draft up."""
        return read(Acknowledged, await self._call("DISCARD", requests.give_up(unit_id, reason)))

    async def compact(
        self,
        strategy: CompactStrategy,
        *,
        max_age_epochs: int | None = None,
        session_id: str | None = None,
        types: Iterable[MemoryType] | None = None,
        status: Iterable[str] | None = None,
        reason: str | None = None,
        confirm: bool | None = None,
        dry_run: bool | None = None,
    ) -> Compacted:
        """COMPACT: archive, summarize or purge what the filter matches.

        Extensions: ``reason`` stays in the log, whatever the strategy; ``confirm`` is for a purge that would leave
        nothing, with a ``max_age_epochs`` of 0 where every unit is meant; with ``dry_run`` nothing is changed, and the
        answer tells what would be.
        """
        payload = requests.compact(
            strategy=strategy,
            max_age_epochs=max_age_epochs,
            session_id=session_id,
            types=types,
            status=status,
            reason=reason,
            confirm=confirm,
            dry_run=dry_run,
        )
        return read(Compacted, await self._call("COMPACT", payload))

    # Conflicts and history

    async def detect(
        self,
        mode: DetectMode = "list",
        *,
        target_id: str | None = None,
        status: Iterable[ConflictStatus] | None = None,
        types: Iterable[ConflictType] | None = None,
        involving_agents: Iterable[str] | None = None,
    ) -> Detected:
        """DETECT. ``target_id`` belongs to mode ``check``."""
        payload = requests.detect(
            mode=mode, target_id=target_id, status=status, types=types, involving_agents=involving_agents
        )
        return read(Detected, await self._call("DETECT", payload))

    async def merge(
        self,
        conflict_id: str,
        strategy: Strategy,
        *,
        rationale: str,
        winner_id: str | None = None,
        synthesis: str | None = None,
    ) -> Merged:
        """MERGE. An answer that escalates or waits for votes is no error."""
        payload = requests.merge(conflict_id, strategy, rationale, winner_id, synthesis)
        return read(Merged, await self._call("MERGE", payload))

    async def replay(
        self,
        target_type: ReplayTarget,
        target_id: str,
        *,
        depth: ReplayDepth = "detailed",
        as_of_epoch: int | None = None,
    ) -> Replayed:
        """REPLAY: how something came about, read from the log."""
        return read(Replayed, await self._call("REPLAY", requests.replay(target_type, target_id, depth, as_of_epoch)))

    # Notifications

    async def subscribe(
        self,
        events: Iterable[EventName] | None = None,
        *,
        id: str | None = None,
        min_relevance: float | None = None,
        debounce_ms: int | None = None,
        include_unit: bool | None = None,
        resume_after: str | None = None,
    ) -> Notifications:
        """SUBSCRIBE: make a subscription, or take up a known one by its ``id``, and stream its notifications.

        What is left out stays as it is where the subscription is known. A client has one stream for each
        subscription: a second one of the same id ends the first. See :class:`Notifications`.
        """
        payload = requests.subscribe(
            events=events,
            id=id,
            min_relevance=min_relevance,
            debounce_ms=debounce_ms,
            include_unit=include_unit,
            resume_after=resume_after,
        )
        inbox = self._attached.inbox(resumable=True)

        def attaches(answer: dict[str, Any]) -> None:
            subscribed = read(Subscribed, answer)
            inbox.attached(subscribed, first=True)
            self._attached.enter(subscribed.subscription.id, inbox)

        try:
            answer = await self._call("SUBSCRIBE", payload, attaches)
        except BaseException:
            # It may have been attached in the same moment in which the caller was cancelled.
            self._attached.leave(inbox)
            raise
        return Notifications(read(Subscribed, answer).subscription, inbox, self._attached)

    async def unsubscribe(self, id: str) -> None:
        """SUBSCRIBE, action ``unsubscribe``: end a subscription, and its stream once what is queued is taken."""
        await self._call("SUBSCRIBE", requests.unsubscribe(id), lambda _: self._attached.end(id))

    async def subscriptions(self) -> list[Subscription]:
        """SUBSCRIBE, action ``list``: the agent's subscriptions, attached or not."""
        return read(Subscriptions, await self._call("SUBSCRIBE", requests.LIST_SUBSCRIPTIONS)).subscriptions

    def direct(self) -> DirectNotifications:
        """Stream what the agent is told without a subscription: that a conflict of its units was resolved.

        Only while it is connected; not resumable. A second call ends the first one's stream.
        """
        inbox = self._attached.inbox(resumable=False)
        self._attached.enter(DIRECT, inbox)
        return DirectNotifications(inbox, self._attached)

    # Anything else

    async def send(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Send any operation with any payload; the response payload as it came."""
        return await self._call(operation, payload)

    async def _call(
        self, operation: str, payload: dict[str, Any], effect: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        text = write_json(payload)
        loop = asyncio.get_running_loop()
        call = Call(operation, text, loop.create_future(), effect)
        alarm = loop.call_later(self._timeout, self._give_up, call)
        # There is one place to wait at, so that a cancelled call leaves nothing half done.
        try:
            self._link.submit(call)
            return await call.reply
        finally:
            alarm.cancel()
            self._link.forget(call)

    def _give_up(self, call: Call) -> None:
        call.fail(
            Unreachable(f"no answer to {call.operation} within {self._timeout:g} s; connection: {self.connection}")
        )


_S = TypeVar("_S", bound="_Stream")


class _Stream(AsyncIterator[Notification]):
    def __init__(self, inbox: Inbox, attached: Attached) -> None:
        self._inbox = inbox
        self._attached = attached

    def __aiter__(self: _S) -> _S:
        return self

    async def __anext__(self) -> Notification:
        notification = await self._inbox.next()
        if notification is None:
            raise StopAsyncIteration
        return notification

    async def __aenter__(self: _S) -> _S:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening. A subscription stays in the Field until it is unsubscribed."""
        self._attached.leave(self._inbox)
        self._inbox.end()


class Notifications(_Stream):
    """A subscription's notifications, in the order of their cursors.

    It goes on over lost connections and restarts of the hub: nothing is lost and, without ``debounce_ms``, nothing
    comes twice. An agent that was away for so long that it counts as failed is registered again, as it was over this
    client. It ends after ``unsubscribe``, after the agent has left, and with the client; if the Field does not take
    the subscription back, or somebody else has ended it, the reason is raised, as the last.

    **A slow taker** loses nothing and holds up no call. At most 1,024 notifications and 4 MiB of them wait here for
    each subscription (and 16 frames in the WebSocket). While none of a client's streams has room and no call waits,
    the connection is left unread, so that the hub waits too; for at most ten seconds, for the hub closes a connection
    that takes nothing. Otherwise what does not fit is let go, and once half of the queue is taken the hub is asked for
    everything after the last one that did fit.

    Leaving the loop does not end it: go on with another ``async for``, or :meth:`close` it.
    """

    def __init__(self, subscription: Subscription, inbox: Inbox, attached: Attached) -> None:
        super().__init__(inbox, attached)
        #: The subscription, as the Field had it when this stream began.
        self.subscription = subscription

    @property
    def cursor(self) -> str:
        """Where to resume: the cursor of what was taken last, or where the stream began."""
        return write_cursor(self._inbox.taken)


class DirectNotifications(_Stream):
    """What an agent is told without a subscription. Beyond 1,024 waiting ones further ones are let go and counted."""

    @property
    def missed(self) -> int:
        """How many were let go for want of room."""
        return self._inbox.missed
