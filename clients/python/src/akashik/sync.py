"""The synchronous client: one HTTP exchange for each call, as one agent, to one Field.

Why HTTP and not a WebSocket: a script that waits for a language model for minutes reads no socket meanwhile, and over a
WebSocket its agent would have to return within 30 seconds of every drop. Over HTTP an agent stays registered until it
deregisters, nothing has to be kept alive, there is no thread, and proxies and forks do no harm. What is lost is what
only a connection can bring: ``direct`` notifications, and notifications without a request for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from . import _requests as requests
from ._address import read_address
from ._http import Http
from ._identity import Identity, write_json
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
from .aio import PATIENCE
from .answers import (
    Acknowledged,
    Attuned,
    Compacted,
    Deregistered,
    Detected,
    Merged,
    Notification,
    Polled,
    Recorded,
    Registered,
    Replayed,
    Subscribed,
    Subscription,
    Subscriptions,
)
from .errors import Disconnected

#: Notifications that one poll brings at most, and so the most that wait for their taker; the hub adds 4 MiB to that.
PAGE_MAX = 100
#: How long one poll waits at the hub, seconds: also how long a closed client's stream may take to notice.
WAIT = 10.0


class Client:
    """An agent of a Field, over HTTP.

    ::

        with Client("http://127.0.0.1:7420", "researcher-01") as client:
            client.register("market_researcher")
            client.record("finding", "The market grows by 15 % a year.",
                          purpose="Size the market", score=0.9, reason="Primary data.")

    A call whose exchange breaks off is sent again under its same message id until ``timeout``; the hub answers a
    repeat with the first reply, so nothing is lost or done twice. It may be used from several threads.

    Every call may raise :class:`~akashik.errors.Refused` (of the class of its code), ``Unreachable``, ``Disconnected``
    (the client is closed) or ``ProtocolError``. While nobody has ever answered, ``Unreachable`` comes at once.
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
    ) -> None:
        """Say which hub, and who asks; nothing is sent yet. The options are those of the asynchronous client."""
        self._identity = Identity(agent_id, session_id)
        address = read_address(url, field)
        self._http = Http(address, self._identity, token=token, proxy=proxy, timeout=timeout)

    def close(self) -> None:
        """Close what is open. The agent stays registered until it deregisters."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def agent_id(self) -> str:
        """The agent that this client speaks for."""
        return self._identity.agent_id

    @property
    def epoch(self) -> int:
        """The greatest epoch that this client has been shown."""
        return self._identity.epoch

    # Agents

    def register(
        self,
        role: str,
        *,
        interests: Iterable[str] | None = None,
        required_operations: Iterable[str] | None = None,
    ) -> Registered:
        """REGISTER. An answer with status ``rejected`` is no error."""
        answer = self._call("REGISTER", requests.register(self.agent_id, role, interests, required_operations))
        self._identity.learn(answer.get("field_capabilities") or {})
        return read(Registered, answer)

    def deregister(self, agent_id: str | None = None) -> Deregistered:
        """DEREGISTER, of this client's own agent if no other is named."""
        target = self.agent_id if agent_id is None else agent_id
        return read(Deregistered, self._call("DEREGISTER", {"agent_id": target}))

    # Memory

    def record(
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
        return read(Recorded, self._call("RECORD", payload))

    def attune(
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
        return read(Attuned, self._call("ATTUNE", payload))

    def commit(
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
        return read(Acknowledged, self._call("COMMIT", payload))

    def retract(self, unit_id: str, reason: str) -> Acknowledged:
        """RETRACT (Extension): take a committed unit back."""
        return read(Acknowledged, self._call("RETRACT", requests.give_up(unit_id, reason)))

    def discard(self, unit_id: str, reason: str) -> Acknowledged:
        """DISCARD (Extension): give a draft up."""
        return read(Acknowledged, self._call("DISCARD", requests.give_up(unit_id, reason)))

    def compact(
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
        return read(Compacted, self._call("COMPACT", payload))

    # Conflicts and history

    def detect(
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
        return read(Detected, self._call("DETECT", payload))

    def merge(
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
        return read(Merged, self._call("MERGE", payload))

    def replay(
        self,
        target_type: ReplayTarget,
        target_id: str,
        *,
        depth: ReplayDepth = "detailed",
        as_of_epoch: int | None = None,
    ) -> Replayed:
        """REPLAY: how something came about, read from the log."""
        return read(Replayed, self._call("REPLAY", requests.replay(target_type, target_id, depth, as_of_epoch)))

    # Notifications

    def subscribe(
        self,
        events: Iterable[EventName] | None = None,
        *,
        id: str | None = None,
        min_relevance: float | None = None,
        debounce_ms: int | None = None,
        include_unit: bool | None = None,
        resume_after: str | None = None,
    ) -> Polling:
        """SUBSCRIBE: make a subscription, or take up a known one by its ``id``, and poll for its notifications.

        What is left out stays as it is where the subscription is known. See :class:`Polling`.
        """
        payload = requests.subscribe(
            events=events,
            id=id,
            min_relevance=min_relevance,
            debounce_ms=debounce_ms,
            include_unit=include_unit,
            resume_after=resume_after,
        )
        answer = read(Subscribed, self._call("SUBSCRIBE", payload))
        return Polling(answer.subscription, answer.cursor, self._http)

    def unsubscribe(self, id: str) -> None:
        """SUBSCRIBE, action ``unsubscribe``: end a subscription; its stream raises ``SubscriptionNotFound``."""
        self._call("SUBSCRIBE", requests.unsubscribe(id))

    def subscriptions(self) -> list[Subscription]:
        """SUBSCRIBE, action ``list``: the agent's subscriptions."""
        return read(Subscriptions, self._call("SUBSCRIBE", requests.LIST_SUBSCRIPTIONS)).subscriptions

    # Anything else

    def send(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Send any operation with any payload; the response payload as it came."""
        return self._call(operation, payload)

    def _call(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        return self._http.operate(operation, write_json(payload))


class Polling(Iterator[Notification]):
    """A subscription's notifications, in the order of their cursors, by long polling.

    It goes on over lost connections and restarts of the hub, for as long as it takes: nothing is lost and, without
    ``debounce_ms``, nothing comes twice. A slow taker loses nothing either: what is not asked for stays in the hub's
    log, and at most 100 notifications and about 4 MiB of them wait here. It ends when the client is closed, and raises
    ``SubscriptionNotFound`` once the subscription has ended.
    """

    def __init__(self, subscription: Subscription, cursor: str, http: Http) -> None:
        #: The subscription, as the Field had it when this stream began.
        self.subscription = subscription
        self._http = http
        self._page: deque[Notification] = deque()
        # Where the next poll goes on: behind everything on the page.
        self._after = cursor
        self._taken = cursor

    @property
    def cursor(self) -> str:
        """Where to resume: behind what was taken last."""
        return self._taken

    def __iter__(self) -> Polling:
        return self

    def __next__(self) -> Notification:
        """Wait for the next notification, for as long as it takes."""
        while True:
            try:
                notification = self._next(None)
            except Disconnected:
                raise StopIteration from None
            if notification is not None:
                return notification

    def take(self, timeout: float) -> Notification | None:
        """Wait at most so many seconds for the next notification; nothing when none came.

        Raises ``Unreachable`` when the hub is away all the while.
        """
        return self._next(timeout)

    def _next(self, timeout: float | None) -> Notification | None:
        if not self._page:
            self._poll(timeout)
        if not self._page:
            return None
        notification = self._page.popleft()
        # Behind the last of a page stands what was looked through without a match, too.
        self._taken = notification.cursor if self._page else self._after
        return notification

    def _poll(self, timeout: float | None) -> None:
        wait = WAIT if timeout is None else max(0.0, timeout)
        query = {
            "subscription_id": self.subscription.id,
            "poll": "true",
            "after": self._after,
            "limit": str(PAGE_MAX),
            "wait_ms": str(round(wait * 1000)),
        }
        patience = None if timeout is None else timeout + 1.0
        answer = read(Polled, self._http.get("events", query, patience=patience, slack=wait))
        self._page.extend(answer.events)
        self._after = answer.cursor
        if not self._page:
            self._taken = self._after
